"""Fixes: those that follow from a finding, and how edits are applied to texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from augury.core.errors import Diagnostic, Edit, Fix, Source, Span

_MEANT = re.compile(r"^did you mean `([^`]+)`\?$")
_ONCE = re.compile(r"^write `_` or `(_\w+)`")


def with_fix(diagnostic: Diagnostic) -> Diagnostic:
    """The finding with the change that its hint proposes, where that is a text in place of another."""
    if diagnostic.fix is not None:
        return diagnostic
    fix = _from_hint(diagnostic)
    return diagnostic if fix is None else replace(diagnostic, fix=fix)


def _from_hint(diagnostic: Diagnostic) -> Fix | None:
    span, hint = diagnostic.span, diagnostic.hint or ""
    if diagnostic.code == "E102":
        end = Span(span.source, span.start, span.start)
        return Fix("add the full stop", (Edit(end, "."),), safe=True)
    if diagnostic.code == "W303" and (once := _ONCE.match(hint)):
        return Fix(f"write {once[1]}", (Edit(span, once[1]),), safe=True)
    if (meant := _MEANT.match(hint)) and (name := _name_in(span, diagnostic.message)):
        return Fix(f"write {meant[1]}", (Edit(name, meant[1]),))
    return None


def _name_in(span: Span, message: str) -> Span | None:
    """Where the first name that a message quotes stands in its span."""
    quoted = re.search(r"`([^`]+)`", message)
    if quoted is None:
        return None
    name = span.part(rf"(?<!\w){re.escape(quoted[1])}(?!\w)")
    return name if name.text == quoted[1] else None


def without(span: Span) -> tuple[Edit, ...] | None:
    """The edit that takes a condition out of a list or of a WHERE; None where it is not clear what goes with it."""
    text = span.source.text
    before, after = text[: span.start], text[span.end :]
    if follows := re.match(r"\s*(?:,|and\b)\s*", after, re.IGNORECASE):
        if re.search(r"(?:[,({]|\bwhere|\band|<-|←|:-)\s*$", before, re.IGNORECASE):
            return (Edit(Span(span.source, span.start, span.end + follows.end()), ""),)
    elif precedes := re.search(r"\s*(?:,|\band\b)\s*$", before, re.IGNORECASE):
        return (Edit(Span(span.source, precedes.start(), span.end), ""),)
    elif where := re.search(r"\s*\bwhere\s*$", before, re.IGNORECASE):
        return (Edit(Span(span.source, where.start(), span.end), ""),)
    return None


def without_statement(span: Span) -> Edit:
    """The edit that takes a statement out, with its full stop and, where it stands alone there, its lines."""
    text = span.source.text
    end = span.end
    if stop := re.compile(r"\s*\.").match(text, end):
        end = stop.end()
    start = text.rfind("\n", 0, span.start) + 1
    if text[start : span.start].strip() == "" and (line := re.compile(r"[ \t]*(?:\n|$)").match(text, end)):
        return Edit(Span(span.source, start, line.end()), "")
    return Edit(Span(span.source, span.start, end), "")


def apply(edits: Iterable[Edit]) -> dict[Source, str]:
    """The texts with their edits. One that overlaps another is left out, with those of its fix: apply one fix at a time."""
    by_source: dict[Source, list[Edit]] = {}
    for edit in edits:
        by_source.setdefault(edit.span.source, []).append(edit)
    texts: dict[Source, str] = {}
    for source, changes in by_source.items():
        text = source.text
        for edit in sorted(changes, key=lambda edit: edit.span.start, reverse=True):
            text = text[: edit.span.start] + edit.text + text[edit.span.end :]
        texts[source] = text
    return texts


def compatible(fixes: Iterable[Fix]) -> list[Fix]:
    """The fixes, without those that touch what one before changes."""
    chosen: list[Fix] = []
    for fix in fixes:
        if not any(_overlap(edit.span, other.span) for c in chosen for other in c.edits for edit in fix.edits):
            chosen.append(fix)
    return chosen


def _overlap(span: Span, other: Span) -> bool:
    return span.source == other.source and span.start < other.end and other.start < span.end
