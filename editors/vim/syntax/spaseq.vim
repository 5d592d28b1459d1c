" Queries in SPAseQ. Written by scripts/highlighters from the vocabulary of the language.
if exists("b:current_syntax")
  finish
endif
syntax case ignore
syntax keyword spaseqKeyword AS ASC BASE BIND BY CONSTRUCT DAYS DEFINE DESC DISTINCT EVENTS EXISTS FILTER FROM GPM GRAPH GROUP HAVING HOURS IN INTO LIMIT LONGEST MINUS MINUTES NAMED NOT OFFSET ON OPTIONAL ORDER PARTITION PREFIX PREV REDUCED SECONDS SELECT SEPARATOR SEQ SERVICE SHORTEST SILENT SKIP STREAM TUMBLING UNDEF UNION VALUES WHERE WITHIN
syntax match spaseqVariable /[?$]\w\+/
syntax match spaseqNumber /\<\d\+\%(\.\d\+\)\?\>/
syntax match spaseqPrefixed /\<\a[[:alnum:]_.-]*:[[:alnum:]_%.-]*/
syntax match spaseqIri /<[^<> ?$][^<> ]*>/
syntax region spaseqString start=/"/ skip=/\\./ end=/"/ oneline
syntax region spaseqString start=/'/ skip=/\\./ end=/'/ oneline
syntax match spaseqComment /#.*$/
highlight default link spaseqKeyword Keyword
highlight default link spaseqVariable Identifier
highlight default link spaseqNumber Number
highlight default link spaseqPrefixed Type
highlight default link spaseqIri String
highlight default link spaseqString String
highlight default link spaseqComment Comment
let b:current_syntax = "spaseq"
