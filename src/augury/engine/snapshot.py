"""The state of a session as bytes, and back. State is flat arrays; what is found through them is made anew.

What comes from outside is checked in three steps: the bytes (`saved/`), the shape of the state, which is that of the
circuit of this program, and what rows refer to (`sound.py`). Only then anything is made of it.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.clock import Clock
from augury.columns.dictionary import Dictionary
from augury.columns.table import grown
from augury.engine.events import Chunk, Events
from augury.engine.operators.collect import Collect
from augury.engine.operators.derive import Derived
from augury.engine.saved import Head, Unsound, not_whole, packed, pieces, read_file, require, unpacked, write_file
from augury.engine.saved.envelope import augury_version
from augury.engine.saved.forms import are_values, is_column, is_time
from augury.engine.saved.unsound import other_version
from augury.engine.sound import check_numbers, check_tables
from augury.errors import AuguryError, SnapshotError
from augury.jit import Array
from augury.knowledge.facts import Facts
from augury.knowledge.timeline import Statement
from augury.limits import Limits
from augury.model import Event, Revocation
from augury.settings import Settings

if TYPE_CHECKING:
    from augury.algebra.plan import Plan
    from augury.columns.table import Table
    from augury.engine.arrivals import Arrivals
    from augury.engine.circuit import Circuit
    from augury.engine.operators.base import Operator
    from augury.engine.session import Session
    from augury.program import Program

_KIND = "session"


def fingerprint(plan: Plan, clock: Clock) -> str:
    """Equal for plans whose circuits have the same tables."""
    text = repr((plan.rules, plan.clauses, sorted(plan.event_types), plan.outputs, clock))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


# Taking


def take(session: Session) -> bytes:
    return packed(_KIND, _state(session), program=fingerprint(session.opened.plan, session.clock))


def save(session: Session, path: str | Path) -> None:
    program = fingerprint(session.opened.plan, session.clock)
    write_file(path, pieces(_KIND, _state(session), program=program))


def _state(session: Session) -> dict[str, Any]:
    circuit, arrivals, settings = session.circuit, session.arrivals, session.settings
    named = names(circuit)
    place = {id(operator): number for number, operator in enumerate(named.values())}
    return {
        "clock": session.clock,
        "settings": {
            "emit": settings.emit,
            "lateness": settings.lateness,
            "retention": settings.retention,
            "longest": settings.longest,
            "revisable": settings.revisable,
            "strict": settings.strict,
            "changing": sorted(circuit.may_change),
        },
        "facts": None if session.shared is not None else session.facts,
        "changes": circuit.knowledge.changes.state(),
        "grown": [list(one) for one in session.grown],
        "pruned": session.pruned,
        "lasting": [circuit.longest_seen, circuit.begins],
        "time": [session.greatest, session.advanced],
        "counts": [session.steps, session.counted, session.matched, session.late_count],
        "late": session.late,
        "rejected": session.rejected,
        "errors": [(rule, message, count) for (rule, message), count in circuit.errors.items()],
        "values": circuit.words.dictionary.saved(),
        "durations": circuit.context.durations,
        "operators": [(name, o.kind, o.rule, o.out.table.width) for name, o in named.items()],
        "tables": [_table(o.out.table) for o in named.values()],
        "inputs": [_inputs(o) for o in named.values() if isinstance(o, Events)],
        "members": [_ragged(o.members.items()) for o in named.values() if isinstance(o, Collect)],
        "kept": [_kept(o, circuit, place) for o in named.values() if isinstance(o, Derived)],
        "shown": [one.shown[: one.events.out.table.n] for one in session.answers],
        "ids": {
            "names": _own_names(arrivals),
            "place": _whole(place[id(events)] for events, _ in arrivals.by_id.values()),
            "row": _whole(row for _, row in arrivals.by_id.values()),
        },
        "tombstones": sorted(arrivals.tombstones),
        "unnamed": arrivals.unnamed,
        "looked_up": [place[id(e)] for e in circuit.inputs.values() if id(e) in arrivals.looked_up],
    }


def names(circuit: Circuit) -> dict[object, Operator]:
    """Names for the operators of a circuit: inputs by their type, since some come when their first event does; the others
    by number, as they are wired in the same order from the same rules."""
    inputs: dict[object, Operator] = {(o.type, o.arity): o for o in circuit.operators if isinstance(o, Events)}
    others = [o for o in circuit.operators if not isinstance(o, Events)]
    return {**inputs, **dict(enumerate(others))}


def _table(table: Table) -> list[Array]:
    """The flags of rows, then their fields."""
    return [table.alive[: table.n], *table.data[:, : table.n]]


def _inputs(events: Events) -> dict[str, Any]:
    chunks = [{"count": c.count, "columns": list(c.columns), "ids": c.ids, "traces": c.traces} for c in events.chunks]
    return {"chunks": chunks, "fixed": events.fixed}


def _own_names(arrivals: Arrivals) -> list[str | None]:
    """The ids that name events; null where it is the one that the event came with."""
    given = {id(events): _given_ids(events) for events in arrivals.circuit.inputs.values()}
    return [
        None if (own := given[id(events)]) and own[row] == name else name
        for name, (events, row) in arrivals.by_id.items()
    ]


def _given_ids(events: Events) -> list[str | None]:
    """The ids that events came with; nothing where none did."""
    if all(chunk.ids is None for chunk in events.chunks):
        return []
    return [one for chunk in events.chunks for one in (chunk.ids if chunk.ids is not None else [None] * chunk.count)]


def _whole(numbers: Iterable[int]) -> Array:
    return np.fromiter(numbers, np.int64)


def _ragged(items: Iterable[tuple[int, Sequence[int]]]) -> dict[str, Array]:
    """Some numbers for each of some rows."""
    given = list(items)
    return {
        "row": _whole(row for row, _ in given),
        "count": _whole(len(some) for _, some in given),
        "of": _whole(chain.from_iterable(some for _, some in given)),
    }


def _kept(events: Derived, circuit: Circuit, place: dict[int, int]) -> dict[str, Array]:
    parts = [part for some in events.kept_inputs.values() for part in some]
    return {
        **_ragged((row, [at for _, at in some]) for row, some in events.kept_inputs.items()),
        "place": _whole(place[id(circuit.maker(table))] for table, _ in parts),
    }


# Giving


def give(program: Program, data: Any, **given: Any) -> Session:
    """A session that goes on where another stopped; of a snapshot, or of the file of one."""
    found = read_file(data) if isinstance(data, str | Path) else data
    given["limits"] = Limits.of(given.get("limits"))
    with _undisturbed():
        return _given(program, found, given)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Millions of things are made that stay: to look for garbage among them meanwhile is half of the time, and finds none."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _given(program: Program, data: Any, given: dict[str, Any]) -> Session:
    head, state = unpacked(_KIND, data)
    try:
        return _session(program, head, state, given)
    except SnapshotError:
        raise
    except Unsound as error:
        raise _unsound(head, str(error)) from None
    except (AuguryError, MemoryError):
        raise
    except Exception as error:  # whatever else the state says that cannot be
        raise _unsound(head, f"its state cannot be ({type(error).__name__})") from error


def _unsound(head: Head, why: str) -> SnapshotError:
    """What does not fit this version may be right for the one that it was taken with."""
    if head.augury != augury_version():
        return other_version(f"it was taken with Augury {head.augury[:40]}, this is {augury_version()}")
    return not_whole(why)


def _session(program: Program, head: Head, state: Any, given: dict[str, Any]) -> Session:
    from augury.engine.session import Session

    require(isinstance(state, dict) and all(isinstance(key, str) for key in state), "it is no state of a session")
    clock, facts = state["clock"], state["facts"]
    require(isinstance(clock, Clock), "no clock")
    if fingerprint(program.plan, clock) != head.about.get("program"):
        raise SnapshotError("a snapshot of another program", hint="restore it with the program that it was taken of", code="S103")  # fmt: skip
    if facts is None and "knowledge" not in given:
        raise SnapshotError("a snapshot of a session that shared its knowledge", hint="give its facts and knowledge", code="S104")  # fmt: skip
    if facts is not None:
        require(isinstance(facts, Facts), "no facts")
        given = {**given, "facts": facts}
    try:
        limits = given.pop("limits")
        session = Session(program, replace(_settings(state["settings"]), limits=limits), clock=clock, **given)
        _grow(session, state["grown"])
    except AuguryError as error:  # rules or facts that do not fit the program
        raise Unsound(str(error).splitlines()[0]) from None
    _fill(session, state)
    return session


def _settings(state: Any) -> Settings:
    emit, revisable, strict = state["emit"], state["revisable"], state["strict"]
    lateness, retention, longest = state["lateness"], state["retention"], state["longest"]
    require(emit in ("early", "final") and isinstance(strict, bool), "settings that there are not")
    require(
        all(is_time(one) and (one is None or one >= 0) for one in (lateness, retention, longest)),
        "a length that is none",
    )
    require(isinstance(revisable, bool) or (is_time(revisable) and revisable is not None), "a length that is none")
    changing = state["changing"]
    require(_texts(changing), "names that are none")
    return Settings(None, emit, lateness, retention, longest, revisable, frozenset(changing), strict=strict)


def _texts(given: Any, null: bool = False) -> bool:
    kinds = {str, type(None)} if null else {str}
    return isinstance(given, list) and set(map(type, given)) <= kinds


def _grow(session: Session, steps: Any) -> None:
    """Rules that came and went since the session was opened."""
    for what, text, after in steps:
        require(what in ("add", "remove") and isinstance(text, str) and is_time(after), "rules that are none")
        if what == "add":
            session._grow(session.program.with_rules(text + "\n"), after)  # text, and never a path
        else:
            session.remove_rule(text)
    session.grown = [(what, text, after) for what, text, after in steps]


def _fill(session: Session, state: dict[str, Any]) -> None:
    circuit, arrivals = session.circuit, session.arrivals
    circuit.knowledge.changes.fill(state["changes"])
    named = _operators(circuit, state["operators"])
    tables = [operator.out.table for operator in named]
    values = Dictionary.restored(state["values"]) if are_values(state["values"]["values"]) else None
    require(values is not None, "values that are none")
    assert values is not None
    circuit.words.dictionary = circuit.context.dictionary = values
    circuit.context.durations = _flag(state["durations"])
    for table, columns in zip(tables, state["tables"], strict=True):
        _fill_table(table, columns)
    for events, given in zip([o for o in named if isinstance(o, Events)], state["inputs"], strict=True):
        _fill_inputs(events, given)
    for collect, given in zip([o for o in named if isinstance(o, Collect)], state["members"], strict=True):
        members = _sorted_out(given, collect.out.table.n)
        check_numbers(given["of"], 0, collect.inputs[1].table.n, "something collected that is not there")
        collected = given["of"].tolist()
        collect.members = {row: tuple(collected[lo:hi]) for row, lo, hi in members}
    inputs = np.array([isinstance(o, Events) for o in named], bool)
    sizes = np.array([table.n for table in tables], np.int64)
    for derived, given in zip([o for o in named if isinstance(o, Derived)], state["kept"], strict=True):
        rows = _sorted_out(given, derived.out.table.n)
        _check_places(given["place"], given["of"], inputs, sizes)
        parts = [(tables[p], r) for p, r in zip(given["place"].tolist(), given["of"].tolist(), strict=True)]
        derived.kept_inputs = {row: tuple(parts[lo:hi]) for row, lo, hi in rows}
    check_tables(circuit)
    circuit.rebuild()
    circuit.settle()
    for one, shown in zip(session.answers, state["shown"], strict=True):
        n = one.events.out.table.n
        require(_is(shown, np.uint8, len(shown)) and len(shown) <= n, "answers that are not there")
        check_numbers(shown, 0, 2, "an answer that was neither given nor not")
        one.shown = np.zeros(len(one.events.out.table.alive), np.uint8)
        one.shown[: len(shown)] = shown
        one.rebuild()
    session._index_answers()
    ids = state["ids"]
    require(_texts(ids["names"], null=True), "names that are none")
    _check_places(ids["place"], ids["row"], inputs, sizes)
    given_ids = [_given_ids(o) if isinstance(o, Events) else [] for o in named]
    found = zip(ids["names"], ids["place"].tolist(), ids["row"].tolist(), strict=True)
    by_id: dict[Any, Any] = {
        given_ids[place][row] if name is None else name: (named[place], row) for name, place, row in found
    }
    require(None not in by_id and len(by_id) == len(ids["names"]), "names that are none, or stand twice")
    arrivals.by_id = by_id
    require(_texts(state["tombstones"]), "names that are none")
    arrivals.tombstones, arrivals.unnamed = set(state["tombstones"]), _flag(state["unnamed"])
    looked_up = np.array(state["looked_up"], np.int64)
    _check_places(looked_up, np.zeros(len(looked_up), np.int64), inputs, sizes + 1)
    arrivals.looked_up = {id(named[n]): tables[n].n for n in state["looked_up"]}
    _fill_counts(session, state)


def _fill_counts(session: Session, state: dict[str, Any]) -> None:
    """Where the session is, and what it has put aside."""
    greatest, advanced = state["time"]
    require(is_time(greatest) and is_time(advanced), "times that are none")
    longest, begins = state["lasting"]
    require(is_time(longest) and longest is not None and is_time(begins), "a length that is none")
    counts = state["counts"]
    require(len(counts) == 4 and all(type(n) is int and n >= 0 for n in counts), "counts that are none")
    late, rejected, errors = state["late"], state["rejected"], state["errors"]
    require(isinstance(late, list) and {type(one) for one in late} <= {Event, Revocation, Statement}, "no late events")
    require(isinstance(rejected, list), "no rejected events")
    for event, why in rejected:
        require(isinstance(event, Event) and isinstance(why, str), "no rejected events")
    for rule, message, count in errors:
        require(isinstance(rule, str) and isinstance(message, str) and type(count) is int, "errors that are none")
    session.greatest, session.advanced = greatest, advanced
    session.circuit.longest_seen, session.circuit.begins = longest, begins
    session.steps, session.counted, session.matched, session.late_count = counts
    session.late, session.rejected, session.pruned = late, rejected, _flag(state["pruned"])
    session.circuit.errors.update({(rule, message): count for rule, message, count in errors})


def _operators(circuit: Circuit, described: Any) -> list[Operator]:
    """The operators that a snapshot has tables of, in its order: all that the program has, and inputs that no rule reads."""
    for name, kind, _, _ in described:
        if kind == Events.kind:
            type_, arity = name
            require(isinstance(type_, str) and type(arity) is int and 0 <= arity < 1 << 16, "an input that is none")
            if (type_, arity) not in circuit.inputs:
                circuit.inputs[type_, arity] = Events(circuit, type_, arity, ())
    named = names(circuit)
    found = [named[name] for name, *_ in described if name in named]
    same = [(name, o.kind, o.rule, o.out.table.width) for name, o in named.items() if o in found]
    require(sorted(map(repr, same)) == sorted(map(repr, described)), "operators that the program has not")
    require(len(found) == len(named), "operators are missing")
    return found


def _is(given: Any, dtype: Any, length: int) -> bool:
    return isinstance(given, np.ndarray) and given.dtype == dtype and given.shape == (length,)


def _flag(given: Any) -> bool:
    require(isinstance(given, bool), "a flag that is none")
    return bool(given)


def _fill_table(table: Table, columns: Any) -> None:
    alive, *fields = columns
    n = len(alive)
    require(_is(alive, np.uint8, n) and len(fields) == table.width, "a table that does not fit")
    require(all(_is(field, np.int64, n) for field in fields), "a table that does not fit")
    check_numbers(alive, 0, 2, "a row that neither stands nor is gone")
    table.n, table.dead = n, int(n - alive.sum())
    table.data = np.empty((table.width, n + 16), np.int64)
    for at, field in enumerate(fields):
        table.data[at, :n] = field
    table.alive = grown(alive, n + 16, n, 0)
    table.begin()


def _fill_inputs(events: Events, given: Any) -> None:
    n, first, fixed = events.out.table.n, 0, given["fixed"]
    events.chunks = []
    for chunk in given["chunks"]:
        count, columns, ids, traces = chunk["count"], chunk["columns"], chunk["ids"], chunk["traces"]
        require(type(count) is int and 0 <= count <= n - first, "events that are not there")
        require(len(columns) == events.arity and all(is_column(c, count) for c in columns), "events that do not fit")
        require(ids is None or (_texts(ids, null=True) and len(ids) == count), "ids that do not fit")
        require(traces is None or (isinstance(traces, list) and len(traces) == count), "traces that do not fit")
        require(not traces or all(not one or _texts(list(one)) for one in traces), "traces that do not fit")
        events.chunks.append(Chunk(first, count, columns, ids, traces))
        first += count
    require(first == n, "events are missing")
    require(_is(fixed, np.int64, len(fixed)) and len(fixed) <= n, "numbers that do not fit")
    check_numbers(fixed, 0, n + 1 if n > 1 << 32 else 1 << 32, "an impossible number")
    events.fixed = fixed


def _sorted_out(given: Any, n: int) -> list[tuple[int, int, int]]:
    """Rows of a table with so many, and from where up to where the numbers of each lie."""
    rows, counts, numbers = given["row"], given["count"], given["of"]
    require(all(_is(one, np.int64, len(one)) for one in (rows, counts, numbers)), "rows that are none")
    check_numbers(rows, 0, n, "a row that is not there")
    check_numbers(counts, 0, len(numbers) + 1, "a count that is none")
    require(len(rows) == len(counts) and len(np.unique(rows)) == len(rows), "rows that do not fit")
    ends = np.cumsum(counts)
    require(int(counts.sum()) == len(numbers), "counts that do not add up")
    return list(zip(rows.tolist(), (ends - counts).tolist(), ends.tolist(), strict=True))


def _check_places(places: Any, rows: Any, inputs: Array, sizes: Array) -> None:
    """Rows of inputs that are there."""
    require(_is(places, np.int64, len(places)) and _is(rows, np.int64, len(places)), "rows that are none")
    check_numbers(places, 0, len(sizes), "an input that is not there")
    require(bool(inputs[places].all()), "an input that is none")
    require(bool(((rows >= 0) & (rows < sizes[places])).all()), "an event that is not there")
