"""Events, facts and answers as one line of text: `e7: wind('l1', 12.5) @ [1, 3]`, `<http://e/s> { e:a e:b 5 } @ 3`, `revoke e7`.

Used by spec files, by `augury why` and by tests; data files use CSV and JSON lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from augury.algebra.graph_queries import stream_type
from augury.algebra.nodes import Clause
from augury.algebra.terms import Build, Const, Expr
from augury.core.clock import Clock
from augury.core.errors import DataError, Findings, Source
from augury.core.model import Event, HistoryItem, Revocation, Term, Value, show_value
from augury.language.rules.read import read
from augury.language.rules.translate import translate

_EVENT = re.compile(
    r"(?:(?P<id>[\w.-]+)\s*:\s*)?(?P<atom>.+?)\s*@\s*(?P<time>\[.*\]|'[^']*'|\"[^\"]*\"|-?\d+)(?:\s+version\s+(?P<version>-?\d+))?"
    r"(?:\s+known\s+(?P<known>\S.*))?",
    re.DOTALL,
)
_GRAPH = re.compile(
    r"(?:(?P<id>[\w.-]+)\s*:\s+)?(?P<stream><[^<>]*>|[\w-]*:[\w-]+|\w+)\s*\{(?P<graph>.*)\}\s*@\s*"
    r"(?P<time>'[^']*'|\"[^\"]*\"|-?\d+)(?:\s+version\s+(?P<version>-?\d+))?(?:\s+known\s+(?P<known>\S.*))?",
    re.DOTALL,
)
_REVOKE = re.compile(r"revoke\s+(?P<id>[\w.-]+)(?:\s+version\s+(?P<version>-?\d+))?(?:\s+known\s+(?P<known>\S.*))?")


def read_atom(text: str, prefixes: Mapping[str, str] | None = None) -> tuple[str, tuple[Value, ...]]:
    """The name and values of a ground atom; `prefixes` are those of the program it belongs to."""
    clause = read_fact(text, text, prefixes or {}, "wind('l1', 12.5)")
    return clause.name, tuple(_ground(a, text) for a in clause.args)


def read_fact(atom: str, written: str, prefixes: Mapping[str, str], form: str) -> Clause:
    """An atom as a static rule without a body; where it is none, `written` is quoted and `form` said."""
    findings = Findings()
    declared = "".join(f"prefix {name}: <{iri}>. " for name, iri in prefixes.items() if name)
    result = translate(read(Source("", f"{declared}{atom}."), findings), findings).clauses
    if findings.errors or len(result) != 1 or result[0].body:
        detail = findings.errors[0].message if findings.errors else f"write it as {form}"
        raise DataError(f"not an event: {written!r}; {detail}")
    return result[0]


def _ground(expr: Expr, text: str) -> Value:
    match expr:
        case Const():
            return expr.value
        case Build():
            return Term(expr.functor, tuple(_ground(a, text) for a in expr.args))
    raise DataError(f"not an event: {text!r}; an event has values, not variables")


def read_event(
    text: str, clock: Clock, prefixes: Mapping[str, str] | None = None, streams: Mapping[str, str] | None = None
) -> HistoryItem:
    """An event or a revocation from one line. A graph event may name its stream as a query does: `streams` has the IRIs."""
    text = text.strip()
    graph = _GRAPH.fullmatch(text)
    if graph:
        return _graph_event(graph, clock, prefixes or {}, streams or {})
    revoke = _REVOKE.fullmatch(text)
    if revoke:
        version = int(revoke["version"]) if revoke["version"] else None
        return Revocation(revoke["id"], _time(revoke["known"], clock) if revoke["known"] else None, version)
    match = _EVENT.fullmatch(text)
    if match is None:
        raise DataError(f"not an event: {text!r}", hint="write it as `wind('l1', 12.5) @ 3` or `… @ [1, 3]`")
    type, args = read_atom(match["atom"], prefixes)
    time = match["time"]
    if time.startswith("["):
        start, end = (_time(part, clock) for part in time[1:-1].split(",", 1))
    else:
        start = end = _time(time, clock)
    known_time = _time(match["known"], clock) if match["known"] else None
    return Event(type, args, start, end, match["id"] or "", known=known_time, version=int(match["version"] or 0))


def _graph_event(match: re.Match[str], clock: Clock, prefixes: Mapping[str, str], streams: Mapping[str, str]) -> Event:
    stream = match["stream"]
    prefix, colon, local = stream.partition(":")
    if stream.startswith("<"):
        iri = stream[1:-1]
    elif colon and prefix in prefixes:
        iri = prefixes[prefix] + local
    elif stream in streams:
        iri = streams[stream]
    else:
        raise DataError(
            f"unknown stream `{stream}`", hint="write its IRI, <http://…>, or the name that a query gives it"
        )
    declared = "".join(f"@prefix {name}: <{namespace}> .\n" for name, namespace in prefixes.items())
    graph = match["graph"].strip()
    graph += " ." if graph and not graph.endswith(".") else ""
    time = _time(match["time"], clock)
    known_time = _time(match["known"], clock) if match["known"] else None
    version = int(match["version"] or 0)
    return Event(
        stream_type(iri), (declared + graph,), time, time, match["id"] or "", known=known_time, version=version
    )


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
