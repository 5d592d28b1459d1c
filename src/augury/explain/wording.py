"""Conditions, and the parts of rules and runs, as they are shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from augury.algebra.nodes import (
    ALL_COLLECTED,
    PAST_END,
    AnyOf,
    Collect,
    Compare,
    Condition,
    Holds,
    NoneInside,
    Relates,
    Relative,
    Run,
    RunPart,
    Spans,
    Top,
    Unless,
    part_after,
)
from augury.algebra.terms import show
from augury.core.clock import show_duration


def show_condition(condition: Condition) -> str:
    match condition:
        case Compare():
            return f"{show(condition.left)} {condition.op} {show(condition.right)}"
        case Holds():
            return f"{'was ' if condition.was else ''}{condition.name}({', '.join(show(a) for a in condition.args)})"
        case Unless():
            return (
                f"not {'was ' if condition.was else ''}{condition.name}({', '.join(show(a) for a in condition.args)})"
            )
        case AnyOf():
            return "(" + " or ".join(" and ".join(show_condition(c) for c in o) for o in condition.options) + ")"
        case Relates():
            return f"{condition.left} {condition.relation} {condition.right}"
        case Spans():
            return f"{{{', '.join(condition.labels)}}} within {show_duration(condition.length)}"
        case Relative():
            length = condition.length
            text = show_duration(length) if isinstance(length, int) else show(length)
            most = "" if condition.most is None else f", most = {show_duration(condition.most)}"
            return f"{condition.label} = {condition.kind}({condition.anchor}, {text}{most})"
        case NoneInside():
            part = part_after(condition.window)
            return f"none inside {condition.window}" if part is None else f"NOT before part {part + 1}"
        case _:
            assert_never(condition)


def show_all(where: Iterable[Condition]) -> str:
    """Conditions in their order."""
    return ", ".join(map(show_condition, where))


def top_text(top: Top) -> str:
    """A ranking."""
    which = "all" if top.count is None else str(top.count)
    order = (" ascending" if top.ascending else "") + (" with ties" if top.ties else "")
    per = f" per {', '.join(top.per)}" if top.per else ""
    return f"{which} by {show(top.by)}{order}{per}{f' as {top.place}' if top.place else ''}"


def at_most_text(count: int, per: Iterable[str], every: str | None) -> str:
    """How many events AT MOST lets through."""
    names = ", ".join(per)
    return f"{count}{f' per {names}' if names else ''}{'' if every is None else f' every {every}'}"


def collect_text(collect: Collect) -> str:
    """What is collected of, and what is asked of each."""
    if collect.window:
        which = f"while {collect.window}"
    elif collect.last == ALL_COLLECTED:
        which = "all"
    else:
        which = f"{'exactly' if collect.exactly else 'last'} {collect.last}"
    where = f" where {show_all(collect.where)}" if collect.where else ""
    by = f" by {', '.join(collect.by)}" if collect.by else ""
    return f"{which}{by}{where}{' or none' if collect.none else ''}"


def run_words(run: Run) -> list[str]:
    """The key of a run, how long it lasts, and how it chooses."""
    words = [f"per {', '.join(run.key)}" if run.key else "over all its events"]
    if run.windows:
        words.append(f"within {show_duration(min(run.windows))}")
    if run.which != "ALL":
        words.append(run.which.lower())
    if run.skip is not None:
        to = (
            "past the end"
            if run.skip == PAST_END
            else f"to the {run.skip.which.lower()} {run.parts[run.skip.part].label}"
        )
        words.append(f"skip {to}")
    at_end = [c for c in run.where if not (isinstance(c, NoneInside) and part_after(c.window) is not None)]
    return words + ([f"at the end {show_all(at_end)}"] if at_end else [])


def part_words(part: RunPart, linked: bool) -> str:
    """The operator to the left of a part, how often it may come, and what is asked of it."""
    words: list[str] = [part.link] if linked else []
    if (part.least, part.most) != (1, 1):
        words.append(_times(part) + ("" if part.between == part.link or not part.repeats else f" by {part.between}"))
    if part.where:
        words.append(f"{'each ' if part.repeats else ''}where {show_all(part.where)}")
    if part.after:
        words.append(f"then {show_all(part.after)}")
    return ", ".join(words)


def _times(part: RunPart) -> str:
    match part.least, part.most:
        case 0, 1:
            return "or not"
        case least, None:
            return {0: "any number of times", 1: "once or more"}.get(least, f"{least} times or more")
        case least, most:
            return f"{least} times" if least == most else f"{least} to {most} times"
