"""Spellings of papers and of Prolog for what the language writes otherwise; `augury fmt` rewrites them, too."""

from __future__ import annotations

import re

from augury.compiled import Compiled
from augury.core.errors import Edit, Findings, Fix, Source, Span
from augury.language.rules.statements import PIECES

PREFERRED = {
    "\\=": "!=", "=<": "<=", "==": "=", "\\+": "not", "←": "<-", "≠": "!=", "≤": "<=", "≥": ">=", "·": "*",
}  # fmt: skip
_SPELLING = re.compile("|".join(re.escape(spelling) for spelling in sorted(PREFERRED, key=len, reverse=True)))


def lint_spellings(program: Compiled, findings: Findings) -> None:
    """L113: `X \\= Y`, which is written `X != Y`."""
    for source in {module.span.source: None for module in program.modules}:
        code = _code(source)
        for match in _SPELLING.finditer(code):
            if match[0] == "==" and code[match.start() - 1 : match.start()] in ("<", ">", "="):
                continue
            span, preferred = Span(source, match.start(), match.end()), PREFERRED[match[0]]
            spaced = preferred + (" " if preferred == "not" and code[match.end() : match.end() + 1].strip() else "")
            fix = Fix(f"write {preferred}", (Edit(span, spaced),), safe=True)
            message = f"`{match[0]}` is an old spelling of `{preferred}`"
            findings.add("L113", message, span, hint=f"write `{preferred}`; `augury fmt` does so, too", fix=fix)


def _code(source: Source) -> str:
    """The text with blanks for comments, strings and IRIs."""
    pieces = (
        " " * len(piece[0]) if piece.lastgroup in ("comment", "string", "iri") else piece[0]
        for piece in PIECES.finditer(source.text)
    )
    return "".join(pieces)
