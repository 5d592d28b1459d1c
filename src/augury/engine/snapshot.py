"""The state of a session as bytes, and back. State is flat arrays; what is found through them is made anew."""

from __future__ import annotations

import hashlib
import io
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.clock import Clock
from augury.engine.events import Chunk, Events
from augury.engine.operators.collect import Collect
from augury.engine.operators.derive import Derived
from augury.engine.table import grown
from augury.engine.values import Dictionary
from augury.errors import RunError
from augury.settings import Settings

if TYPE_CHECKING:
    from augury.algebra.program import Plan
    from augury.engine.circuit import Circuit
    from augury.engine.operators.base import Operator
    from augury.engine.session import Session
    from augury.program import Program

_MAGIC = b"augury session 4\n"
# What a snapshot may hold, beside plain Python values: arrays, and the values and facts of the language.
_KNOWN = {
    ("augury.clock", "Timestamp"), ("augury.clock", "Duration"), ("augury.clock", "Clock"),
    ("augury.model", "Iri"), ("augury.model", "Term"), ("augury.model", "Fact"), ("augury.model", "Event"),
    ("augury.model", "Revocation"), ("numpy", "dtype"), ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"), ("numpy._core.numeric", "_frombuffer"),
    ("numpy.core.multiarray", "_reconstruct"), ("numpy.core.numeric", "_frombuffer"),
    ("numpy._core.multiarray", "scalar"), ("copyreg", "_reconstructor"), ("builtins", "object"),
    ("augury.knowledge.table", "FactTable"), ("augury.sources.columns", "Coded"),
    ("augury.knowledge.timeline", "StatementTable"), ("augury.knowledge.timeline", "Statement"),
    ("augury.knowledge.facts", "Facts"), ("dataclasses", "_dataclass_setstate"),
}  # fmt: skip


def fingerprint(plan: Plan, clock: Clock) -> str:
    """Equal for plans whose circuits have the same tables."""
    text = repr((plan.rules, plan.clauses, sorted(plan.event_types), plan.outputs, clock))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def take(session: Session) -> bytes:
    circuit, arrivals = session.circuit, session.arrivals
    named = names(circuit)
    place = {id(o): name for name, o in named.items()}
    state: dict[str, Any] = {
        "plan": fingerprint(session.opened.plan, session.clock),
        "grown": session.grown,
        "settings": (
            session.clock,
            session.settings.emit,
            session.settings.lateness,
            session.settings.retention,
            session.settings.longest,
            None if session.shared is not None else session.facts,
            session.settings.revisable,
            sorted(circuit.may_change),
            session.settings.strict,
        ),
        "facts": circuit.knowledge.changes.state(),
        "pruned": session.pruned,
        "lasting": (circuit.longest_seen, circuit.relied),
        "time": (session.greatest, session.advanced),
        "counts": (session.steps, session.counted, session.matched, session.late_count),
        "late": session.late,
        "rejected": session.rejected,
        "errors": circuit.errors,
        "values": circuit.words.dictionary.state(),
        "durations": circuit.context.durations,
        "tables": {
            n: (o.out.table.data[:, : o.out.table.n], o.out.table.alive[: o.out.table.n]) for n, o in named.items()
        },
        "inputs": {
            n: (o.type, o.arity, [(c.count, list(c.columns), c.ids, c.traces) for c in o.chunks], o.fixed)
            for n, o in named.items()
            if isinstance(o, Events)
        },
        "members": {n: o.members for n, o in named.items() if isinstance(o, Collect)},
        "kept": {
            n: {row: [(place[id(circuit.maker(t))], r) for t, r in parts] for row, parts in o.kept_inputs.items()}
            for n, o in named.items()
            if isinstance(o, Derived)
        },
        "shown": [one.shown[: one.events.out.table.n] for one in session.answers],
        "ids": [(name, place[id(events)], row) for name, (events, row) in arrivals.by_id.items()],
        "tombstones": sorted(arrivals.tombstones),
        "unnamed": arrivals.unnamed,
        "looked_up": [place[id(e)] for e in circuit.inputs.values() if id(e) in arrivals.looked_up],
    }
    return _MAGIC + pickle.dumps(state, protocol=5)


def names(circuit: Circuit) -> dict[object, Operator]:
    """Names for the operators of a circuit: inputs by their type, since some come when their first event does; the others
    by number, as they are wired in the same order from the same rules."""
    inputs: dict[object, Operator] = {(o.type, o.arity): o for o in circuit.operators if isinstance(o, Events)}
    others = [o for o in circuit.operators if not isinstance(o, Events)]
    return {**inputs, **dict(enumerate(others))}


class _Reader(pickle.Unpickler):
    """Reads arrays and values, and nothing that could run."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _KNOWN:
            raise RunError(f"the snapshot holds something unknown: {module}.{name}")
        return super().find_class(module, name)


def give(program: Program, data: bytes, **given: Any) -> Session:
    """A session that goes on where another stopped."""
    from augury.engine.session import Session

    if not isinstance(data, bytes | bytearray) or not data.startswith(_MAGIC):
        raise RunError("not a snapshot of a session, or one of another version")
    try:
        state = _Reader(io.BytesIO(memoryview(data)[len(_MAGIC) :])).load()
    except (pickle.UnpicklingError, EOFError, ValueError, IndexError, KeyError, AttributeError, TypeError) as error:
        raise RunError(f"the snapshot is damaged: {error}") from None
    clock, emit, lateness, retention, longest, facts, revisable, changing, strict = state["settings"]
    if fingerprint(program.plan, clock) != state["plan"]:
        raise RunError("the snapshot is of another program", hint="restore it with the program that it was taken of")
    if facts is not None:
        given["facts"] = facts
    elif "knowledge" not in given:
        raise RunError("the snapshot is of a session that shared its knowledge", hint="give its facts and knowledge")
    settings = Settings(None, emit, lateness, retention, longest, revisable, frozenset(changing), strict=strict)
    session = Session(program, settings, clock=clock, **given)
    for what, text, after in state["grown"]:
        if what == "add":
            session._grow(session.program.with_rules(text), after)
        else:
            session.remove_rule(text)
    session.grown = state["grown"]
    circuit = session.circuit
    circuit.knowledge.changes.fill(state["facts"])
    session.pruned = state["pruned"]
    circuit.longest_seen, circuit.relied = state["lasting"]
    for type, arity, *_ in state["inputs"].values():
        if (type, arity) not in circuit.inputs:  # a type that no rule reads
            circuit.inputs[type, arity] = Events(circuit, type, arity, ())
    _fill(session, state)
    session.greatest, session.advanced = state["time"]
    session.steps, session.counted, session.matched, session.late_count = state["counts"]
    session.late, session.rejected = state["late"], state["rejected"]
    circuit.errors.update(state["errors"])
    return session


def _fill(session: Session, state: dict[str, Any]) -> None:
    circuit, arrivals = session.circuit, session.arrivals
    circuit.words.dictionary = circuit.context.dictionary = Dictionary.of(state["values"])
    circuit.context.durations = state["durations"]
    named = names(circuit)
    for name, (data, alive) in state["tables"].items():
        table, n = named[name].out.table, data.shape[1]
        table.n = n
        table.data, table.alive = grown(data, n + 16, n), grown(alive, n + 16, n, 0)
        table.dead = int(n - alive.sum())
        table.begin()
    for n, (_, _, chunks, fixed) in state["inputs"].items():
        events, first = named[n], 0
        assert isinstance(events, Events)
        events.chunks, events.fixed = [], fixed
        for count, columns, ids, traces in chunks:
            events.chunks.append(Chunk(first, count, columns, ids, traces))
            first += count
    for n, members in state["members"].items():
        named[n].members = members  # type: ignore[attr-defined]
    for n, kept in state["kept"].items():
        named[n].kept_inputs = {row: tuple((named[o].out.table, r) for o, r in parts) for row, parts in kept.items()}  # type: ignore[attr-defined]
    circuit.rebuild()
    circuit.settle()
    for one, shown in zip(session.answers, state["shown"], strict=True):
        one.shown = np.zeros(len(one.events.out.table.alive), np.uint8)
        one.shown[: len(shown)] = shown
        one.rebuild()
    session._index_answers()
    arrivals.by_id = {name: (named[n], row) for name, n, row in state["ids"]}  # type: ignore[misc]
    arrivals.tombstones, arrivals.unnamed = set(state["tombstones"]), state["unnamed"]
    arrivals.looked_up = {id(named[n]): named[n].out.table.n for n in state["looked_up"]}
