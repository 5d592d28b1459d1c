"""How the values, events and facts of the language are made of plain things, and how they are checked on the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from augury.core.clock import Clock, Duration, Timestamp
from augury.core.model import MAX_INT, MIN_INT, Event, Fact, Iri, Revocation, Term
from augury.core.time_units import TIME_UNITS
from augury.engine.saved.corrupt import require
from augury.knowledge.fact_table import FactTable
from augury.knowledge.facts import Facts
from augury.knowledge.timeline import Statement, StatementTable
from augury.storage.column import Coded

_PLAIN = {type(None), bool, int, float, str, Timestamp, Duration, Iri}
_NESTED = {Term, tuple}
_FEW = 1 << 16  # rows that nothing but a number stands for


@dataclass(frozen=True)
class Form:
    """A kind of thing: its name, the plain thing it is saved as, and how it is made of that again."""

    name: str
    kind: type
    state: Callable[[Any], Any]
    make: Callable[[Any], Any]


def are_values(values: Iterable[Any]) -> bool:
    """Whether all are values of the language."""
    listed = list(values)
    kinds = set(map(type, listed))
    if kinds <= _PLAIN:
        return True
    if not kinds <= _PLAIN | _NESTED:
        return False
    return all(are_values(v.args if type(v) is Term else v) for v in listed if type(v) in _NESTED)


def is_column(column: object, length: int) -> bool:
    """Whether it is a column of so many values."""
    if isinstance(column, np.ndarray):
        return column.ndim == 1 and len(column) == length
    return (
        isinstance(column, Coded | list) and len(column) == length and (isinstance(column, Coded) or are_values(column))
    )


def is_time(value: object) -> bool:
    return value is None or (type(value) is int and MIN_INT <= value <= MAX_INT)


def _text(kind: type, text: object) -> Any:
    require(isinstance(text, str), f"no text in {kind.__name__}")
    return kind(text)


def _number(kind: type, number: object) -> Any:
    require(type(number) is int, f"no number in {kind.__name__}")
    return kind(number)


def _term(state: Any) -> Term:
    functor, args = state
    require(isinstance(functor, str) and isinstance(args, tuple) and are_values(args), "not a term")
    return Term(functor, args)


def coded(values: list[Any], index: Any) -> Coded:
    """A column of some of these, which are values of the language."""
    require(isinstance(index, np.ndarray) and index.dtype.kind in "iu" and index.ndim == 1, "not an index of values")
    if len(index):
        require(int(index.min()) >= -1 and int(index.max()) < len(values), "an index beyond the values")
    return Coded(values, index)


def _fact(state: Any) -> Fact:
    name, args, since, until = state
    require(isinstance(name, str) and isinstance(args, tuple) and are_values(args), "not a fact")
    require(is_time(since) and is_time(until), "invalid times of a fact")
    return Fact(name, args, since, until)


def _event(state: Any) -> Event:
    type_, args, start, end, id, trace, known_time, version = state if len(state) == 8 else (*state, 0)
    require(isinstance(type_, str) and isinstance(args, tuple) and are_values(args), "not an event")
    require(
        type(start) is int and type(end) is int and start <= end and is_time(start) and is_time(end),
        "no times of an event",
    )
    require(
        isinstance(id, str) and all(isinstance(id_, str) for id_ in trace) and is_time(known_time),
        "invalid names of an event",
    )
    require(type(version) is int, "invalid version of an event")
    return Event(type_, args, start, end, id, tuple(trace), known_time, version)


def _revocation(state: Any) -> Revocation:
    id, known_time, version = state if len(state) == 3 else (*state, None)
    require(
        isinstance(id, str) and is_time(known_time) and (version is None or type(version) is int), "not a revocation"
    )
    return Revocation(id, known_time, version)


def _statement(state: Any) -> Statement:
    fact, retract = state
    require(isinstance(fact, Fact) and isinstance(retract, bool), "not a statement")
    return Statement(fact, retract)


def _table(state: Any) -> FactTable:
    name, columns, length, since, until = state
    require(isinstance(name, str) and type(length) is int and length >= 0, "not a table of facts")
    require(all(is_column(column, length) for column in columns), "columns of facts that do not fit")
    require(
        columns or since is not None or until is not None or length <= _FEW, "facts without arguments that are many"
    )
    for times in (since, until):
        require(
            times is None or (isinstance(times, np.ndarray) and times.dtype == np.int64 and times.shape == (length,)),
            "times of facts that do not fit",
        )
    return FactTable(name, tuple(columns), length, since, until)


def _statements(state: Any) -> StatementTable:
    facts, retract = state
    require(isinstance(facts, FactTable), "not a table of facts")
    require(
        retract is None
        or (isinstance(retract, np.ndarray) and retract.dtype == bool and retract.shape == (len(facts),)),
        "flags of facts that do not fit",
    )
    return StatementTable(facts, retract)


def _facts(state: Any) -> Facts:
    require(isinstance(state, list) and all(isinstance(t, StatementTable) for t in state), "not tables of facts")
    return Facts(state)


def _clock(state: Any) -> Clock:
    kind, tick, guessed, unit, unit_guessed, zone = state
    require(
        kind in ("logical", "timestamp") and type(tick) is int and tick > 0 and isinstance(guessed, bool), "not a clock"
    )
    require(
        (unit is None or unit in TIME_UNITS) and isinstance(unit_guessed, bool) and isinstance(zone, str), "not a clock"
    )
    return Clock(kind, tick, guessed, unit, unit_guessed, zone)


FORMS = (
    Form("iri", Iri, lambda v: v.text, lambda s: _text(Iri, s)),
    Form("timestamp", Timestamp, lambda v: v.us, lambda s: _number(Timestamp, s)),
    Form("duration", Duration, lambda v: v.us, lambda s: _number(Duration, s)),
    Form("term", Term, lambda v: (v.functor, v.args), _term),
    Form("fact", Fact, lambda v: (v.name, v.args, v.since, v.until), _fact),
    Form("event", Event, lambda v: (v.type, v.args, v.start, v.end, v.id, v.trace, v.known, v.version), _event),
    Form("revocation", Revocation, lambda v: (v.id, v.known, v.version), _revocation),
    Form("statement", Statement, lambda v: (v.fact, v.retract), _statement),
    Form("facts of a predicate", FactTable, lambda v: (v.name, list(v.columns), v.length, v.since, v.until), _table),
    Form("statements", StatementTable, lambda v: (v.facts, v.retract), _statements),
    Form("facts", Facts, lambda v: list(v.statement_tables), _facts),
    Form("clock", Clock, lambda v: (v.kind, v.tick, v.guessed, v.unit, v.unit_guessed, v.zone), _clock),
)
FORM_OF = {form.kind: form for form in FORMS}
FORM_NAMED = {form.name: form for form in FORMS}


def are_texts(texts: object, null: bool = False) -> bool:
    """Whether it is a list of texts, some of them null where that may be."""
    kinds = {str, type(None)} if null else {str}
    return isinstance(texts, list) and set(map(type, texts)) <= kinds
