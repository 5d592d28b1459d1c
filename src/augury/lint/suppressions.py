"""Comments that suppress a finding in place, with a reason: `% ignore L107: few sensors`.

At the end of a line it is about that line; on a line of its own about the statement that follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from augury.compiled import Compiled
from augury.core.errors import Diagnostic, Edit, Findings, Fix, Source, Span
from augury.language.rules.statements import PIECES, chunks
from augury.language.spaseq import tokens
from augury.language.spaseq.query_program import SPASEQ

_IGNORE = re.compile(r"^[%#]+\s*ignore\s+(?P<codes>[A-Z]\d+(?:\s*,\s*[A-Z]\d+)*)\s*(?::\s*(?P<reason>.*))?$", re.DOTALL)


@dataclass(frozen=True)
class Suppression:
    """A comment, the codes that it names, and the part of the text that it is about."""

    comment: Span
    codes: tuple[str, ...]
    reason: str
    scope: Span


def suppressed(findings: Findings, program: Compiled) -> tuple[Diagnostic, ...]:
    """The findings without those that a comment suppresses; with L100 for comments without reason or use."""
    sources = dict.fromkeys([m.span.source for m in program.modules])
    sources |= dict.fromkeys([q.span.source for q in program.plan.graph_queries if not q.inside])
    suppressions = [suppression for source in sources for suppression in _suppressions(source)]
    used: set[tuple[Span, str]] = set()
    hidden: set[int] = set()
    for number, diagnostic in enumerate(findings.items):
        for suppression in suppressions:
            if diagnostic.code in suppression.codes and _is_in(diagnostic.span, suppression.scope):
                used.add((suppression.comment, diagnostic.code))
                hidden.add(number)
    findings.items = [d for number, d in enumerate(findings.items) if number not in hidden]
    for suppression in suppressions:
        unused = [code for code in suppression.codes if (suppression.comment, code) not in used]
        if unused:
            fix = Fix("remove the comment", (Edit(suppression.comment, ""),), safe=True)
            message = f"there is no {' or '.join(unused)} here to ignore"
            findings.add(
                "L100", message, suppression.comment, fix=fix if len(unused) == len(suppression.codes) else None
            )
        elif not suppression.reason:
            hint = f"write `% ignore {', '.join(suppression.codes)}: why`"
            findings.add("L100", "a finding is ignored without a reason", suppression.comment, hint=hint)
    return findings.sorted()


def _is_in(span: Span, scope: Span) -> bool:
    return span.source == scope.source and scope.start <= span.start < max(scope.end, scope.start + 1)


def _suppressions(source: Source) -> Iterator[Suppression]:
    text = source.text
    if "ignore" not in text:
        return
    for start, comment in _comments(source):
        match = _IGNORE.match(comment)
        if match is None:
            continue
        codes = tuple(code.strip() for code in match["codes"].split(","))
        line = text.rfind("\n", 0, start) + 1
        end = text.find("\n", start)
        span = Span(source, start, start + len(comment))
        alone = not text[line:start].strip()
        scope = _following(source, span.end) if alone else Span(source, line, len(text) if end < 0 else end)
        yield Suppression(span, codes, (match["reason"] or "").strip(), scope)


def _comments(source: Source) -> list[tuple[int, str]]:
    if source.language == SPASEQ:
        return [(p.start, p.text) for p in tokens.pieces(source.text, comments=True) if p.kind == "comment"]
    return [(p.start(), p[0]) for p in PIECES.finditer(source.text) if p.lastgroup == "comment"]


def _following(source: Source, offset: int) -> Span:
    """The statement that is next after an offset, or around it; of a query all that follows."""
    if source.language == SPASEQ:
        return Span(source, offset, len(source.text))
    for chunk in chunks(source, {}):
        if chunk.start + len(chunk.text) > offset:
            return Span(source, chunk.start, chunk.start + len(chunk.text))
    return Span(source, offset, len(source.text))
