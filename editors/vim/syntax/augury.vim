" Rules of Augury. Written by scripts/highlighters from the vocabulary of the language.
if exists("b:current_syntax")
  finish
endif
syntax case ignore
syntax keyword augDeclaration event fact from function include latest output policy prefix rule static tick
syntax keyword augKeyword all as asc at by chronological collect consecutive desc distinct end every exactly first graph holding last longest most none not once past per recent shortest since skip ties to top unrestricted was where while with
syntax keyword augOperator after and before between during equals finished_by finishes in inside is meets met_by mod next or overlapped_by overlaps par seq started_by starts then within
syntax match augOperator /\<contains\>/
syntax keyword augConstant false null true
syntax keyword augType int float number string bool timestamp duration iri term list any contained
syntax match augFunction /\<\%(abs\|acos\|all\|any\|arg_max\|arg_min\|asin\|atan\|avg\|ceil\|coalesce\|concat\|contains\|cos\|count\|day\|day_of_year\|distance_km\|duration\|end\|ends_with\|every\|exp\|extend\|extend_backward\|first\|floor\|format_time\|from_end\|from_start\|hour\|if\|iri\|is_null\|last\|length\|list\|log\|lower\|matches\|max\|median\|min\|minute\|mod\|mode\|month\|nth\|occurrences\|overlap\|percentile\|pi\|pow\|regexp_extract\|replace\|round\|second\|shift_backward\|shift_forward\|shorten\|sin\|split\|sqrt\|start\|starts_with\|stddev\|substring\|sum\|tan\|to_float\|to_int\|to_string\|trim\|truncate\|until\|upper\|variance\|weekday\|year\)\ze\s*(/
syntax match augAttribute /:\s*\w\+/ contains=augType
syntax match augDuration /\<\d\+\%(\.\d\+\)\?\s*\%(milliseconds\|microseconds\|millisecond\|microsecond\|seconds\|minutes\|second\|minute\|hours\|weeks\|secs\|mins\|hour\|days\|week\|sec\|min\|day\|us\|ms\|s\|m\|h\|d\|w\)\>/
syntax match augNumber /\<\d\+\%(\.\d\+\)\?\%(e[+-]\?\d\+\)\?\>/
syntax match augArrow /<-\|:-\|←/
syntax match augVariable /\C\<\%(\u\w*\|_\w*\)\>\ze\_s*\%((\)\@!/
syntax region augString start=/'/ skip=/\\./ end=/'/ oneline
syntax region augString start=/"/ skip=/\\./ end=/"/ oneline
syntax match augIri /<\a[[:alnum:]+.-]*:[^ <>]*>/
syntax match augComment /[%#].*$/
syntax region augComment start=+/\*+ end=+\*/+
highlight default link augDeclaration Statement
highlight default link augKeyword Keyword
highlight default link augOperator Operator
highlight default link augConstant Constant
highlight default link augType Type
highlight default link augFunction Function
highlight default link augDuration Number
highlight default link augNumber Number
highlight default link augArrow Operator
highlight default link augVariable Identifier
highlight default link augString String
highlight default link augIri String
highlight default link augComment Comment
let b:current_syntax = "augury"
