;;; augury-mode.el --- Rules of Augury and queries in SPAseQ  -*- lexical-binding: t -*-

;; Written by scripts/highlighters from the vocabulary of the language.

;;; Code:

(defvar augury-keywords
  '("after" "all" "and" "as" "asc" "at" "before" "between" "by" "chronological" "collect" "consecutive"
    "contains" "desc" "distinct" "during" "end" "equals" "event" "every" "exactly" "fact" "finished_by"
    "finishes" "first" "from" "function" "graph" "holding" "in" "include" "inside" "is" "last"
    "latest" "longest" "meets" "met_by" "mod" "most" "next" "none" "not" "once" "or" "output"
    "overlapped_by" "overlaps" "par" "past" "per" "policy" "prefix" "recent" "rule" "seq" "shortest"
    "since" "skip" "started_by" "starts" "static" "then" "tick" "ties" "to" "top" "unrestricted"
    "was" "where" "while" "with" "within"))

(defvar augury-constants '("false" "null" "true"))

(defvar augury-functions
  '("abs" "acos" "all" "any" "arg_max" "arg_min" "asin" "atan" "avg" "ceil" "coalesce" "concat"
    "contains" "cos" "count" "day" "day_of_year" "distance_km" "duration" "end" "ends_with"
    "every" "exp" "extend" "extend_backward" "first" "floor" "format_time" "from_end" "from_start"
    "hour" "if" "iri" "is_null" "last" "length" "list" "log" "lower" "matches" "max" "median"
    "min" "minute" "mod" "mode" "month" "nth" "occurrences" "overlap" "percentile" "pi" "pow"
    "regexp_extract" "replace" "round" "second" "shift_backward" "shift_forward" "shorten" "sin"
    "split" "sqrt" "start" "starts_with" "stddev" "substring" "sum" "tan" "to_float" "to_int"
    "to_string" "trim" "truncate" "until" "upper" "variance" "weekday" "year"))

(defvar augury-types
  '("any" "bool" "duration" "float" "int" "iri" "list" "number" "string" "term" "timestamp"))

(defvar spaseq-keywords
  '("AS" "ASC" "BASE" "BIND" "BY" "CONSTRUCT" "DAYS" "DEFINE" "DESC" "DISTINCT" "EVENTS" "EXISTS"
    "FILTER" "FROM" "GPM" "GRAPH" "GROUP" "HAVING" "HOURS" "IN" "INTO" "LIMIT" "LONGEST" "MINUS"
    "MINUTES" "NAMED" "NOT" "OFFSET" "ON" "OPTIONAL" "ORDER" "PARTITION" "PREFIX" "PREV" "REDUCED"
    "SECONDS" "SELECT" "SEPARATOR" "SEQ" "SERVICE" "SHORTEST" "SILENT" "SKIP" "STREAM" "TUMBLING"
    "UNDEF" "UNION" "VALUES" "WHERE" "WITHIN"))

(defvar augury-font-lock
  `((,(concat (regexp-opt augury-functions 'symbols) "\\s-*(") 1 font-lock-builtin-face)
    (,(regexp-opt (append augury-keywords (mapcar #'upcase augury-keywords)) 'symbols) . font-lock-keyword-face)
    (,(regexp-opt augury-constants 'symbols) . font-lock-constant-face)
    (,(concat ":\\s-*" (regexp-opt augury-types 'symbols)) 1 font-lock-type-face)
    ("\\_<\\([A-Z_][A-Za-z0-9_]*\\)\\_>" . font-lock-variable-name-face)
    ("\\_<\\([a-z][A-Za-z0-9_]*\\)\\s-*(" 1 font-lock-function-name-face)
    ("<-\\|:-\\|←" . font-lock-keyword-face)))

(defvar spaseq-font-lock
  `((,(regexp-opt (append spaseq-keywords (mapcar #'downcase spaseq-keywords)) 'symbols) . font-lock-keyword-face)
    ("[?$][A-Za-z0-9_]+" . font-lock-variable-name-face)
    ("<[^<> \n]*>" . font-lock-string-face)))

(defvar augury-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?% "<" table)
    (modify-syntax-entry ?# "<" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?' "\"" table)
    (modify-syntax-entry ?_ "_" table)
    table))

;;;###autoload
(define-derived-mode augury-mode prog-mode "Augury"
  "Rules of Augury."
  (setq-local comment-start "% ")
  (setq-local font-lock-defaults '(augury-font-lock)))

;;;###autoload
(define-derived-mode spaseq-mode prog-mode "SPAseQ"
  "Queries over graph streams."
  :syntax-table (let ((table (make-syntax-table)))
                  (modify-syntax-entry ?# "<" table)
                  (modify-syntax-entry ?\n ">" table)
                  table)
  (setq-local comment-start "# ")
  (setq-local font-lock-defaults '(spaseq-font-lock)))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.aug\\'" . augury-mode))
;;;###autoload
(add-to-list 'auto-mode-alist '("\\.spaseq\\'" . spaseq-mode))

(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs '((augury-mode spaseq-mode) . ("augury" "lsp"))))

(provide 'augury-mode)
;;; augury-mode.el ends here
