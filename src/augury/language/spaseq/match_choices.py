"""LONGEST, SHORTEST and SKIP behind a sequence: which of its matches are taken.

They compare matches by how often each `+` comes, so the sequence is one (no `?`), and its events follow each other by `,`
and `;`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from augury.algebra.graph_queries import EventCount, Item, MatchChoice, Window, uses
from augury.algebra.nodes import PAST_END, SkipTo
from augury.core.errors import Findings, Note, Span, nearest
from augury.language.spaseq import query_tree as t


@dataclass(frozen=True)
class _Mistake:
    message: str
    span: Span
    hint: str
    notes: tuple[Note, ...] = ()


def read_choice(
    choice: t.ChoiceText | None, items: tuple[Item, ...], window: Window | None, findings: Findings
) -> MatchChoice:
    """Which matches are taken; what does not fit the sequence is reported."""
    if choice is None:
        return MatchChoice()
    for mistake in _mistakes(choice, items, window):
        findings.add("E240", mistake.message, mistake.span, *mistake.notes, hint=mistake.hint)
    return MatchChoice(choice.which or "ALL", _skip(choice, items), choice.span)


def _mistakes(choice: t.ChoiceText, items: tuple[Item, ...], window: Window | None) -> Iterator[_Mistake]:
    if not choice.which:
        yield _Mistake("SKIP follows LONGEST or SHORTEST", choice.span, "write `LONGEST SKIP PAST END`")
    else:
        yield from _of_sequence(choice, items, window)
    if choice.to is not None:
        yield from _of_target(choice.to, items)


def _of_sequence(choice: t.ChoiceText, items: tuple[Item, ...], window: Window | None) -> Iterator[_Mistake]:
    which, matched = choice.which, [item for item in items if item.quantifier != "!"]
    for item in [item for item in matched[1:] if item.separator == ":"][:1]:
        message = f"{which} chooses among matches of `,` and `;`, and this sequence has `:`"
        hint = "after `:` any later event may follow; `;` takes the next one that matches"
        yield _Mistake(message, choice.span, hint, (Note("after `:`", item.span),))
    for item in [item for item in items if item.quantifier == "?"][:1]:
        message = f"{which} chooses among matches of one sequence, and {item.span.quoted} makes two of it"
        yield _Mistake(
            message, choice.span, "write a query for each, with it and without it", (Note("here", item.span),)
        )
    if items[-1].quantifier == "!":
        message = (
            f"{which} chooses among matches that have ended, and {items[-1].span.quoted} waits for what comes after"
        )
        hint = "let a rule read the answers of the query, and look for what is absent: `while w: not …`"
        yield _Mistake(message, choice.span, hint, (Note("here", items[-1].span),))
    if isinstance(window, EventCount):
        message = f"{which} chooses among matches within a time, and this window counts EVENTS"
        yield _Mistake(message, choice.span, "give the query a window of time: WITHIN 30 MINUTES")


def _of_target(name: t.QueryName, items: tuple[Item, ...]) -> Iterator[_Mistake]:
    named = _with(name, items)
    if not named:
        close = nearest(name.text, [use.name for item in items for use in uses(item.operand)])
        hint = f"did you mean `{close}`?" if close else "skip to an item of the sequence, or PAST END"
        yield _Mistake(f"`{name.text}` is not in the sequence", name.span, hint)
    elif len(named) > 1:
        notes = tuple(Note("here", items[number].span) for number in named)
        hint = "define the GPM a second time under another name, and skip to that"
        yield _Mistake(f"`{name.text}` is in the sequence more than once", name.span, hint, notes)
    elif items[named[0]].quantifier == "!":
        hint = "skip to an item that is matched, or PAST END"
        yield _Mistake(f"`{name.text}` is absent, so there is nothing to skip to", name.span, hint)


def _with(name: t.QueryName, items: tuple[Item, ...]) -> list[int]:
    """The numbers of the items that have a GPM."""
    return [n for n, item in enumerate(items) if any(use.name == name.text for use in uses(item.operand))]


def _skip(choice: t.ChoiceText, items: tuple[Item, ...]) -> Literal["PAST END"] | SkipTo | None:
    if choice.to is None:
        return PAST_END if choice.skip else None
    numbers = _with(choice.to, items)
    return SkipTo("FIRST" if choice.skip == "TO FIRST" else "LAST", numbers[0]) if numbers else None
