"""The state of a session as bytes, and back. State is flat arrays; indexes are rebuilt from them.

What comes from outside is checked in three steps: the bytes (`saved/`), the shape of the state, which is that of the
circuit of this program, and what rows refer to (`sound.py`). Only then anything is made of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from augury.core.arrays import Array
from augury.core.clock import Clock
from augury.core.collector import uncollected
from augury.core.errors import AuguryError, SnapshotError
from augury.core.limits import Limits
from augury.core.model import Event, Revocation
from augury.core.versions import InputVersions
from augury.engine import growing
from augury.engine.atomic import StepTransaction
from augury.engine.events import Events
from augury.engine.saved import (
    CorruptSnapshot,
    SnapshotHeader,
    check_numbers,
    is_array,
    not_whole,
    packed,
    pieces,
    read_file,
    require,
    unpacked,
    write_file,
)
from augury.engine.saved.corrupt import other_version
from augury.engine.saved.envelope import augury_version
from augury.engine.saved.forms import are_texts, are_values, is_time
from augury.engine.saved.references import check_events, check_inputs
from augury.engine.sound import check_tables
from augury.knowledge.facts import Facts
from augury.knowledge.timeline import Statement
from augury.planner.specs import InputSpec
from augury.settings import Settings
from augury.storage.dictionary import Dictionary
from augury.storage.table import grown

if TYPE_CHECKING:
    from augury.algebra.plan import Plan
    from augury.compiled import Compiled
    from augury.engine.circuit import Circuit
    from augury.engine.input_ids import InputIds, InputRow
    from augury.engine.operators.base import Operator
    from augury.engine.session import Session
    from augury.engine.session_core import SessionCore
    from augury.storage.table import Table

S = TypeVar("S", bound="Session")
_KIND = "session"

_COUNTS = ("steps", "counted", "matched", "late_count", "received", "accepted", "repeated")


def fingerprint(plan: Plan, clock: Clock) -> str:
    """Equal for plans whose circuits have the same tables."""
    text = repr((plan.rules, plan.clauses, sorted(plan.event_types), plan.outputs, clock))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


# Snapshot


def taken(session: SessionCore) -> bytes:
    return packed(_KIND, _state(session), program=fingerprint(session.opened.plan, session.clock))


def save(session: SessionCore, path: str | Path) -> None:
    program = fingerprint(session.opened.plan, session.clock)
    write_file(path, pieces(_KIND, _state(session), program=program))


def _state(session: SessionCore) -> dict[str, Any]:
    circuit, input_ids, settings = session.circuit, session.input_ids, session.settings
    named = names(circuit)
    numbers = {id(operator): number for number, operator in enumerate(named.values())}
    ids = [(name, row) for name in input_ids.by_id for row in input_ids.rows(name)]
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
        "grown": [list(each) for each in session.grown],
        "pruned": session.pruned,
        "lasting": [circuit.longest_seen, circuit.begins],
        "time": [session.greatest, session.advanced],
        "counts": [getattr(session, name) for name in _COUNTS],
        "late": session.late,
        "rejected": session.rejected,
        "errors": [(rule, message, count) for (rule, message), count in circuit.errors.items()],
        "values": circuit.tables.dictionary.saved(),
        "durations": circuit.context.durations,
        "operators": [(name, o.kind, o.rule, o.out.table.width) for name, o in named.items()],
        "tables": [_table(o.out.table) for o in named.values()],
        "states": [o.state(numbers) for o in named.values()],
        "shown": [each.emitted[: each.events.out.table.n] for each in session.answers],
        "ids": {
            "names": _own_names(input_ids, ids),
            "place": np.fromiter((numbers[id(events)] for _, (events, _) in ids), np.int64),
            "row": np.fromiter((row for _, (_, row) in ids), np.int64),
        },
        "tombstones": sorted(input_ids.tombstones),
        "versions": [(id, some.revoked, list(some.events.values())) for id, some in input_ids.versions.items()],
        "unnamed": input_ids.unnamed,
        "looked_up": [numbers[id(e)] for e in circuit.inputs.values() if id(e) in input_ids.looked_up],
    }


def names(circuit: Circuit) -> dict[object, Operator]:
    """Names for the operators of a circuit: inputs by their type, since some come when their first event does; the others
    by number, as they are wired in the same order from the same rules."""
    inputs: dict[object, Operator] = {(o.type, o.arity): o for o in circuit.operators if isinstance(o, Events)}
    others = [o for o in circuit.operators if not o.is_input]
    return {**inputs, **dict(enumerate(others))}


def _table(table: Table) -> list[Array]:
    """The flags of rows, then their fields."""
    return [table.alive[: table.n], *table.data[:, : table.n]]


def _own_names(input_ids: InputIds, ids: list[tuple[str, InputRow]]) -> list[str | None]:
    """The ids that name events; null where it is the one that the event came with."""
    texts = {id(events): _given_ids(events) for events in input_ids.circuit.inputs.values()}
    return [None if (names := texts[id(events)]) and names[row] == name else name for name, (events, row) in ids]


def _given_ids(events: Events) -> list[str | None]:
    """The ids that events came with; nothing where none did."""
    if all(chunk.ids is None for chunk in events.chunks):
        return []
    return [id for chunk in events.chunks for id in (chunk.ids if chunk.ids is not None else [None] * chunk.count)]


# Restore


def restored(program: Compiled, data: Any, session_type: type[S], **options: Any) -> S:
    """A session that goes on where another stopped; of a snapshot, or of the file of one.

    Of a session that has gone on with other programs, `programs` has all of them by their fingerprints.
    """
    state = read_file(data) if isinstance(data, str | Path) else data
    options["limits"] = Limits.of(options.get("limits"))
    with uncollected():
        return _restored(program, state, session_type, options)


def _restored(program: Compiled, data: Any, session_type: type[S], options: dict[str, Any]) -> S:
    head, state = unpacked(_KIND, data)
    try:
        return _session(program, head, state, session_type, options)
    except SnapshotError:
        raise
    except CorruptSnapshot as error:
        raise _corrupt(head, str(error)) from None
    except (AuguryError, MemoryError):
        raise
    except Exception as error:  # whatever else the state says that cannot be
        raise _corrupt(head, f"its state cannot be ({type(error).__name__})") from error


def _corrupt(head: SnapshotHeader, why: str) -> SnapshotError:
    """State that does not fit this version may fit the one that it was taken with."""
    if head.augury != augury_version():
        return other_version(f"it was taken with Augury {head.augury[:40]}, this is {augury_version()}")
    return not_whole(why)


def _session(program: Compiled, head: SnapshotHeader, state: Any, session_type: type[S], options: dict[str, Any]) -> S:
    require(isinstance(state, dict) and all(isinstance(key, str) for key in state), "it is not the state of a session")
    clock, facts = state["clock"], state["facts"]
    require(isinstance(clock, Clock), "not a clock")
    programs = options.pop("programs", {})
    program = programs.get(head.about.get("program"), program)
    if fingerprint(program.plan, clock) != head.about.get("program"):
        raise SnapshotError(
            "a snapshot of another program", hint="restore it with the program that it was taken of", code="S103"
        )
    if facts is None and "knowledge" not in options:
        raise SnapshotError(
            "a snapshot of a session that shared its knowledge", hint="give its facts and knowledge", code="S104"
        )
    if facts is not None:
        require(isinstance(facts, Facts), "not facts")
        options = {**options, "facts": facts}
    try:
        limits = options.pop("limits")
        session = session_type(program, replace(_settings(state["settings"]), limits=limits), clock=clock, **options)
        session.programs = programs
        _grow(session, state["grown"])
    except AuguryError as error:  # rules or facts that do not fit the program
        raise CorruptSnapshot(str(error).splitlines()[0]) from None
    _fill(session, state)
    return session


def _settings(state: Any) -> Settings:
    emit, revisable, strict = state["emit"], state["revisable"], state["strict"]
    lateness, retention, longest = state["lateness"], state["retention"], state["longest"]
    require(emit in ("early", "final") and isinstance(strict, bool), "unknown settings")
    require(
        all(is_time(length) and (length is None or length >= 0) for length in (lateness, retention, longest)),
        "an invalid length",
    )
    require(isinstance(revisable, bool) or (is_time(revisable) and revisable is not None), "an invalid length")
    changing = state["changing"]
    require(are_texts(changing), "invalid names")
    return Settings(
        emit=emit,
        lateness=lateness,
        retention=retention,
        longest=longest,
        revisable=revisable,
        changing=frozenset(changing),
        strict=strict,
    )


def _grow(session: Session, steps: Any) -> None:
    """Rules that came and went since the session was opened."""
    for change, text, after in steps:
        require(change in ("add", "remove", "plan"), "invalid rules")
        require(isinstance(text, str) and is_time(after), "invalid rules")
        if change == "plan":
            require(text in session.programs, "an unknown program")
            step = StepTransaction(session)
            growing.become(session, step, session.programs[text], after)
            step.complete()
        elif change == "add":
            growing.add(session, session.program.with_rules(text + "\n"), text + "\n", after)  # text, and never a path
        else:
            step = StepTransaction(session)
            growing.remove(session, step, session.program.without_rule(text), text)
            step.complete()
    session.grown = [(change, text, after) for change, text, after in steps]


def _fill(session: Session, state: dict[str, Any]) -> None:
    circuit, input_ids = session.circuit, session.input_ids
    circuit.knowledge.changes.fill(state["changes"])
    named = _operators(circuit, state["operators"])
    tables = [operator.out.table for operator in named]
    values = Dictionary.restored(state["values"]) if are_values(state["values"]["values"]) else None
    require(values is not None, "invalid values")
    assert values is not None
    circuit.tables.dictionary = circuit.context.dictionary = values
    circuit.context.durations = _flag(state["durations"])
    for table, columns in zip(tables, state["tables"], strict=True):
        _fill_table(table, columns)
    for operator, saved in zip(named, state["states"], strict=True):
        operator.fill(saved, named)
    check_tables(circuit)
    require(all(is_time(time) for time in state["time"]), "invalid times")
    circuit.now = max((time for time in state["time"] if time is not None), default=None)
    circuit.rebuild()
    circuit.settle()
    for answer_set, shown in zip(session.answers, state["shown"], strict=True):
        n = answer_set.events.out.table.n
        require(is_array(shown, np.uint8, len(shown)) and len(shown) <= n, "answers that are not there")
        check_numbers(shown, 0, 2, "an answer that was neither given nor not")
        answer_set.emitted = np.zeros(len(answer_set.events.out.table.alive), np.uint8)
        answer_set.emitted[: len(shown)] = shown
        answer_set.rebuild()
    session._index_answers()
    ids = state["ids"]
    require(are_texts(ids["names"], null=True), "invalid names")
    check_events(ids["place"], ids["row"], named)
    given_ids = [_given_ids(o) if isinstance(o, Events) else [] for o in named]
    rows = list(zip(ids["place"].tolist(), ids["row"].tolist(), strict=True))
    id_names: list[Any] = [
        given_ids[number][row] if name is None else name for name, (number, row) in zip(ids["names"], rows, strict=True)
    ]
    require(
        None not in id_names and (input_ids.copied or len(set(id_names)) == len(id_names)),
        "invalid or repeated names",
    )
    for name, (number, row) in zip(id_names, rows, strict=True):
        input_ids.note(name, (cast(Events, named[number]), row))
    require(are_texts(state["tombstones"]), "invalid names")
    input_ids.tombstones, input_ids.unnamed = set(state["tombstones"]), _flag(state["unnamed"])
    input_ids.versions.single = dict(map(_versions, state.get("versions", ())))
    looked_up = np.array(state["looked_up"], np.int64)
    check_inputs(looked_up, named)
    input_ids.looked_up = {id(named[n]): tables[n].n for n in state["looked_up"]}
    _fill_counts(session, state)


def _versions(saved: Any) -> tuple[str, InputVersions]:
    """An id with its versions."""
    name, revoked, events = saved
    require(isinstance(name, str) and (revoked is None or type(revoked) is int), "versions that are none")
    require(isinstance(events, list) and all(isinstance(event, Event) for event in events), "versions of no events")
    return name, InputVersions({event.version: event for event in events}, revoked)


def _fill_counts(session: Session, state: dict[str, Any]) -> None:
    """Where the session is, and what it has put aside."""
    greatest, advanced = state["time"]
    require(is_time(greatest) and is_time(advanced), "invalid times")
    longest, begins = state["lasting"]
    require(is_time(longest) and longest is not None and is_time(begins), "an invalid length")
    counts = state["counts"]
    require(len(counts) in (4, len(_COUNTS)) and all(type(n) is int and n >= 0 for n in counts), "invalid counts")
    late, rejected, errors = state["late"], state["rejected"], state["errors"]
    require(
        isinstance(late, list) and {type(item) for item in late} <= {Event, Revocation, Statement},
        "invalid late events",
    )
    require(isinstance(rejected, list), "invalid rejected events")
    for event, why in rejected:
        require(isinstance(event, Event) and isinstance(why, str), "invalid rejected events")
    for rule, message, count in errors:
        require(isinstance(rule, str) and isinstance(message, str) and type(count) is int, "invalid errors")
    session.greatest, session.advanced = greatest, advanced
    session.circuit.longest_seen, session.circuit.begins = longest, begins
    for name, number in zip(_COUNTS, counts, strict=False):
        setattr(session, name, number)
    if len(counts) == 4:  # of an earlier version, which did not count what is known already
        session.accepted = max(0, session.counted - session.late_count - len(rejected))
        session.received = session.accepted + session.late_count + len(rejected)
    session.late, session.rejected, session.pruned = late, rejected, _flag(state["pruned"])
    session.circuit.errors.update({(rule, message): count for rule, message, count in errors})


def _operators(circuit: Circuit, described: Any) -> list[Operator]:
    """The operators that a snapshot has tables of, in its order: all that the program has, and inputs that no rule reads."""
    for name, kind, _, _ in described:
        if kind == InputSpec.kind:
            type_, arity = name
            require(isinstance(type_, str) and type(arity) is int and 0 <= arity < 1 << 16, "an invalid input")
            circuit.input((type_, arity))
    named = names(circuit)
    operators = [named[name] for name, *_ in described if name in named]
    same = [(name, o.kind, o.rule, o.out.table.width) for name, o in named.items() if o in operators]
    require(sorted(map(repr, same)) == sorted(map(repr, described)), "operators that the program does not have")
    require(len(operators) == len(named), "operators are missing")
    return operators


def _flag(flag: Any) -> bool:
    require(isinstance(flag, bool), "an invalid flag")
    return bool(flag)


def _fill_table(table: Table, columns: Any) -> None:
    alive, *fields = columns
    n = len(alive)
    require(is_array(alive, np.uint8, n) and len(fields) == table.width, "a table that does not fit")
    require(all(is_array(field, np.int64, n) for field in fields), "a table that does not fit")
    check_numbers(alive, 0, 2, "a row that neither stands nor is gone")
    table.n, table.dead = n, int(n - alive.sum())
    table.data = np.zeros((table.width, n + 16), np.int64)
    for position, field in enumerate(fields):
        table.data[position, :n] = field
    table.alive = grown(alive, n + 16, n, 0)
    table.stood = alive.copy()
    table.begin()
