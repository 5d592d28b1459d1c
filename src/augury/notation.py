"""Events, facts and answers as one line of text: `e7: wind('l1', 12.5) @ [1, 3]`, `revoke e7`.

Used by spec files, by `augury why` and by tests; data files use CSV and JSON lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from augury.algebra.nodes import Clause
from augury.algebra.terms import Build, Const, Expr
from augury.clock import Clock
from augury.errors import DataError, Findings, Source
from augury.language.read import read
from augury.language.translate import translate
from augury.model import Event, HistoryItem, Revocation, Term, Value, show_value

_EVENT = re.compile(
    r"(?:(?P<id>[\w.-]+)\s*:\s*)?(?P<atom>.+?)\s*@\s*(?P<time>\[.*\]|'[^']*'|\"[^\"]*\"|-?\d+)(?:\s+known\s+(?P<known>\S.*))?",
    re.DOTALL,
)
_REVOKE = re.compile(r"revoke\s+(?P<id>[\w.-]+)(?:\s+known\s+(?P<known>\S.*))?")


def read_atom(text: str, prefixes: Mapping[str, str] | None = None) -> tuple[str, tuple[Value, ...]]:
    """The name and values of a ground atom; `prefixes` are those of the program it belongs to."""
    findings = Findings()
    declared = "".join(f"prefix {name}: <{iri}>. " for name, iri in (prefixes or {}).items())
    modules = read(Source("", f"{declared}{text}."), findings)
    plan = translate(modules, findings)
    if findings.errors or len(plan.clauses) != 1 or plan.clauses[0].body:
        detail = findings.errors[0].message if findings.errors else "write it as wind('l1', 12.5)"
        raise DataError(f"not an event: {text!r}; {detail}")
    clause: Clause = plan.clauses[0]
    return clause.name, tuple(_ground(a, text) for a in clause.args)


def _ground(expr: Expr, text: str) -> Value:
    match expr:
        case Const():
            return expr.value
        case Build():
            return Term(expr.functor, tuple(_ground(a, text) for a in expr.args))
    raise DataError(f"not an event: {text!r}; an event has values, not variables")


def read_event(text: str, clock: Clock, prefixes: Mapping[str, str] | None = None) -> HistoryItem:
    """An event or a revocation from one line."""
    text = text.strip()
    revoke = _REVOKE.fullmatch(text)
    if revoke:
        return Revocation(revoke["id"], _time(revoke["known"], clock) if revoke["known"] else None)
    found = _EVENT.fullmatch(text)
    if found is None:
        raise DataError(f"not an event: {text!r}", hint="write it as `wind('l1', 12.5) @ 3` or `… @ [1, 3]`")
    type, args = read_atom(found["atom"], prefixes)
    time = found["time"]
    if time.startswith("["):
        start, end = (_time(part, clock) for part in time[1:-1].split(",", 1))
    else:
        start = end = _time(time, clock)
    known = _time(found["known"], clock) if found["known"] else None
    return Event(type, args, start, end, found["id"] or "", known=known)


def _time(text: str, clock: Clock) -> int:
    text = text.strip()
    return clock.read(text[1:-1] if text[:1] in ("'", '"') else text)


def show_event(event: Event, clock: Clock) -> str:
    """An event as `read_event` reads it, without its id."""
    args = f"({', '.join(show_value(a) for a in event.args)})" if event.args else ""
    if event.start == event.end:
        return f"{event.type}{args} @ {_show_time(event.end, clock)}"
    return f"{event.type}{args} @ [{_show_time(event.start, clock)}, {_show_time(event.end, clock)}]"


def _show_time(time: int, clock: Clock) -> str:
    shown = clock.show(time)
    return f"'{shown}'" if isinstance(shown, str) else str(shown)
