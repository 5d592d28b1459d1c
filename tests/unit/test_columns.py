"""Answers as columns: the same ids, traces and values as one by one."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib import import_module
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import augury
from augury.core.clock import Duration, Timestamp
from augury.core.errors import RunError
from augury.core.model import (
    Change,
    Event,
    Fact,
    Iri,
    Term,
    Value,
    content_id,
    give_ids,
    order_key,
    spelling,
    spelling_of,
    value_hash,
)
from augury.engine import insertion
from augury.engine.changes import Changes
from augury.engine.circuit import Circuit
from augury.engine.decoding import as_lists, decoded, from_tagged, hex_ids, tagged
from augury.engine.events import Events
from augury.engine.found import AnswerRows
from augury.engine.session import Session
from augury.engine.trace import StepCache, trace_of, traces_of
from augury.storage.column import Coded
from augury.storage.dictionary import Dictionary
from augury.storage.value_hashes import content_hashes, numbers_hashed, spellings_of
from tests.differential.test_differential import asked, compiled
from tests.generators.programs import STRATEGIES, Step, facts, tellings

pa = import_module("pyarrow")

whole = st.integers(-(2**63), 2**63 - 1)
plain: st.SearchStrategy[Any] = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.0, 1.0, -1.0, 2.0**61, -(2.0**63), 2.0**63, 1e300, 2**61, 2**62, -(2**63), 0.5]),
    whole,
    st.floats(allow_nan=False, allow_infinity=False).map(lambda f: f + 0.0),
    st.booleans(),
    st.none(),
    st.text(max_size=4),
    st.builds(Iri, st.text(max_size=4)),
    st.builds(Timestamp, st.integers(-3, 3)),
    st.builds(Duration, st.integers(-3, 3)),
)
values: st.SearchStrategy[Any] = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(tuple),
        st.builds(lambda f, a: Term(f, tuple(a)), st.sampled_from(["f", "iri", "Timestamp"]), st.lists(inner, max_size=2)),
    ),
    max_leaves=4,
)  # fmt: skip


# Ids


@given(st.lists(values, min_size=2, max_size=8))
def test_equal_values_have_one_hash(some: list[Value]) -> None:
    for x in some:
        for y in some:
            assert (value_hash(x) == value_hash(y)) == (order_key(x) == order_key(y))
            written_alike = repr(x) == repr(y)
            assert ((value_hash(x), spelling(x)) == (value_hash(y), spelling(y))) == written_alike


@given(st.lists(st.tuples(values, values, whole, whole), min_size=1, max_size=8))
def test_the_ids_of_columns_are_those_of_events(rows: list[tuple[Value, Value, int, int]]) -> None:
    words = Dictionary()
    codes = [words.encode_all(row[i] for row in rows) for i in (0, 1)]
    start, end = (np.array([row[i] for row in rows], np.int64) for i in (2, 3))
    hashes = content_hashes("e", [words.hashes(column) for column in codes], start, end)
    assert hex_ids(hashes).to_pylist() == [content_id("e", row[:2], row[2], row[3]) for row in rows]
    spelt = spellings_of([words.spellings(column) for column in codes], len(rows))
    assert spelt.tolist() == [spelling_of(row[:2]) for row in rows]


@given(
    st.lists(st.one_of(whole.map(float), st.floats()), min_size=1), st.lists(whole, min_size=1), st.lists(st.booleans())
)
def test_the_hashes_of_arrays(floats: list[float], ints: list[int], flags: list[bool]) -> None:
    read = [None if f != f else f + 0.0 for f in floats]
    for column, some in ((np.array(floats), read), (np.array(ints, np.int64), ints), (np.array(flags, bool), flags)):
        hashes, spelt = numbers_hashed(column)
        assert hashes.tolist() == [value_hash(v) for v in some]
        assert spelt.tolist() == [spelling(v) for v in some]


@given(
    st.lists(
        st.tuples(st.sampled_from([1, 1.0, 2, True, (1,), (1.0,), "x"]), st.sampled_from([1, 1.0, "y"]), st.booleans()),
        min_size=1,
        max_size=14,
    ),
    st.integers(1, 14),
    st.booleans(),
)
def test_inputs_get_the_ids_of_the_reference(rows: list[tuple[Any, Any, bool]], cut: int, prune: bool) -> None:
    """Equal events are numbered in the order in which they come, those that are written alike; others do not matter."""
    given_ids = [Event("a", row[:2], 5, id=f"g{i}" if row[2] else "") for i, row in enumerate(rows)]
    expected = [cast(Event, e).id for e in give_ids(given_ids)]
    program = augury.compile("b(X) <- a(X, _).")
    session = program.session(clock="logical")
    session.push(given_ids[:cut])
    if prune:
        session.prune()
        session = program.restore(session.snapshot())
    session.push(given_ids[cut:])
    events = session.circuit.inputs["a", 2]
    assert [events.id(row) for row in range(len(rows))] == expected
    free = np.array([row for row, given in enumerate(rows) if not given[2]], np.int64)
    assert hex_ids(events.made(free)).to_pylist() == [expected[row] for row in free.tolist()]
    assert events.all_names(np.arange(len(rows))) == [(id,) for id in expected]


def test_the_id_of_an_equal_event_does_not_hang_on_what_was_forgotten() -> None:
    program = augury.compile("b(X) <- a(X).")
    session = program.session(clock="logical")
    session.push([Event("a", (1,), 5)] * 3)
    session.prune()
    session.push([Event("a", (1,), 5)])
    events = session.circuit.inputs["a", 1]
    assert [events.id(row) for row in range(4)] == [content_id("a", (1,), 5, 5, number) for number in range(4)]


# Answers


def shown(changes: Changes) -> list[Change]:
    """Columns as changes, by way of Arrow."""
    found = []
    read = cache(from_tagged)  # a few values make hundreds of thousands of cells
    for part in changes.parts:
        assert isinstance(part, AnswerRows) and part.op is not None
        start, end, codes, dictionary = part.read()
        args = [decoded(dictionary, column, "json").to_pylist() for column in codes]
        ids, traces = hex_ids(part.ids()).to_pylist(), part.traces(0, len(part))
        assert traces.tuples() == [tuple(trace) for trace in as_lists(traces).to_pylist()]
        for i, (first, last, trace) in enumerate(zip(start.tolist(), end.tolist(), traces.tuples(), strict=True)):
            own = tuple(None if column[i] is None else read(column[i]) for column in args)
            found.append(Change(part.op, Event(part.type, own, first, last, ids[i], trace)))
    return found


def check(changes: Changes, session: Session) -> None:
    found = sorted(map(repr, shown(changes)))
    assert found == sorted(map(repr, changes))
    assert found == sorted(map(repr, shown(changes))), "once they have been made"


@pytest.mark.parametrize("kind", STRATEGIES)
def test_columns_say_what_changes_say(kind: str) -> None:
    @given(STRATEGIES[kind](), tellings(), facts(), st.booleans(), st.booleans())
    def told(text: str, steps: list[Step], known: list[Fact], prune: bool, named: bool) -> None:
        program = compiled(text)
        if program is None:
            return
        session = program.session(
            clock="logical", facts=asked(program.plan, known), lateness="3s" if prune else None, longest="60s"
        )
        for step in steps:
            if isinstance(step, tuple):
                check(session.advance(step[1]), session)
            else:
                items = step if named else [Event(i.type, i.args, i.start, i.end) for i in step if isinstance(i, Event)]
                check(session.push(items), session)
            if prune:
                session.prune()

    told()


def test_events_of_an_earlier_stage_bring_their_traces() -> None:
    program = augury.compile("d(X, Y) <- a(X) SEQ b(Y).\nc(X) <- d(X, _).")
    session = program.session(clock="logical")
    a, b = session.circuit.inputs["a", 1], session.circuit.inputs["b", 1]
    time = np.array([1, 2, 3])
    a.add(time, time, [np.array([1, 2, 3])], ["a1", "a2", None], [("x", "y"), ("y",), None])
    b.add(time + 9, time + 9, [["p", "q", "r"]], None, [["y", "z"], None, ()])
    session.circuit.run()
    restored = program.restore(session.snapshot())
    for one in (session, restored):
        d = one.circuit.derived["d", 2]
        ends = [one.circuit.inputs[type, 1].id(row) for type, row in (("a", 2), ("b", 1))]
        found = {one.circuit.event((d.out.table, row)).args: trace_of(one.circuit, d, row) for row in range(9)}
        assert found[1, "p"] == ("x", "y", "z")
        assert found[2, "p"] == ("y", "z")
        assert found[3, "q"] == (ends[0], ends[1])
        assert found[2, "r"] == ("y",)  # nothing was behind it, as in a window in which nothing happened
    restored.prune()
    check(restored.advance(99), restored)


def test_many_derivations_and_operators_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that share events, absence, OR and equal parts, on more rows than one portion has."""
    monkeypatch.setattr(insertion, "PORTION", 128)
    program = augury.compile(
        """
        p(K) <- (a(K, _) SEQ b(K, _)).20.
        p(K) <- (b(K, _) AND[recent] b(K, _)).20.
        q(K, X) <- (p(K) OR c(K, _)).20 SEQ a(K, X).
        r(K) <- (NOT(c(K, _)).[a(K, _), b(K, _)]).9.
        """
    )
    session = program.session(clock="logical")
    chance = np.random.default_rng(3)
    size = 800
    tables = {
        name: pa.table(
            {
                "time": np.sort(chance.integers(0, size, size)),
                "k": chance.integers(0, 40, size),
                "x": chance.integers(0, 6, size) / 2,
            }
        )
        for name in "abc"
    }
    check(session.push(tables), session)


def test_traces_of_what_is_collected() -> None:
    """Aggregates of events, of pairs, of aggregates; with ids, without, and some of each; also of what outlives its rows."""
    program = augury.compile(
        """
        s(K, sum(X)) <- r: b(K, _), w: extend_backward(r, 6s), while w: collect a(K, X).
        p(K, X) <- (a(K, X) SEQ b(K, _)).4.
        t(K, count(X)) <- r: c(K, _), w: extend_backward(r, 9s), while w: collect p(K, X).
        u(K, max(N)) <- (c(K, _) SEQ b(K, _)).5, last 3: collect s(_, N).
        v(K, list(N)) <- r: c(K, _), w: extend_backward(r, 40s), while w: collect (u(_, N) OR s(K, N)).
        """
    )
    chance = np.random.default_rng(5)
    history = [
        Event("abc"[int(kind)], (int(key), int(x)), t)
        for t, (kind, key, x) in enumerate(zip(*(chance.integers(0, 3, 150) for _ in range(3)), strict=True))
    ]
    for named in ("", "some", "all"):
        session = program.session(clock="logical", lateness="0s")
        for lo in range(0, len(history), 40):
            items = [
                Event(e.type, e.args, e.start, id=f"i{e.start}" if named == "all" or (named and e.start % 3) else "")
                for e in history[lo : lo + 40]
            ]
            check(session.push(items), session)
            for derived in session.circuit.derived.values():
                rows = np.flatnonzero(derived.out.table.alive[: derived.out.table.n])
                found = traces_of(session.circuit, derived, rows, StepCache()).tuples() if len(rows) else []
                assert found == [trace_of(session.circuit, derived, row) for row in rows.tolist()]
            session.prune()


# Values in columns


def test_values_become_arrow() -> None:
    words = Dictionary()

    def arrow(kind: Any, *some: Value) -> Any:
        return decoded(words, words.encode_all(some), kind)

    assert arrow("long", 1, 2.0, None, True, Timestamp(5), Duration(6), 2**62, 2.0**62).to_pylist() == [
        1, 2, None, 1, 5, 6, 2**62, 2**62,
    ]  # fmt: skip
    assert arrow("long", 1, 2).type == pa.int64()
    assert arrow("double", 1, 2.5, None, 2.0, 2**62, 1e300).to_pylist() == [1.0, 2.5, None, 2.0, 2.0**62, 1e300]
    assert arrow("double").type == pa.float64()
    assert arrow("string", "x", None, Iri("y"), "x").to_pylist() == ["x", None, "y", "x"]
    assert arrow("json", 1, 1.0, None, "x", (1, None)).to_pylist() == ["1", "1.0", None, '"x"', "[1,null]"]
    for kind, value, name in (
        ("long", 0.5, "0.5"),
        ("long", "x", "'x'"),
        ("long", 1e300, "1e+300"),
        ("double", True, "true"),
        ("double", "x", "'x'"),
        ("string", 7, "7"),
        ("string", Timestamp(0), "@'"),
    ):
        with pytest.raises(RunError, match=name.replace("+", r"\+")):
            arrow(kind, value)


@given(values)
def test_tagged_values_are_read_back(value: Value) -> None:
    assert repr(from_tagged(tagged(value))) == repr(value)


def test_what_nobody_tagged_is_refused() -> None:
    with pytest.raises(RunError, match="@what"):
        from_tagged('{"@what": 1}')


COMPILED_HASHES = r"""
from augury.core import jit
from augury.core.clock import Duration, Timestamp
from augury.core.model import spelling, value_hash
from augury.storage.value_hashes import content_hashes, hashes_of, numbers_hashed, spellings_of

jit.Kernel.all = [k for k in jit.Kernel.all if k.__name__ == "hash_texts"]
jit._HELPERS[:] = [h for h in jit._HELPERS if h.__module__.endswith("blake2b")]
jit.compile_all()
texts = ["", "a", 'a"', "\\n", "\\\\", "\x7f", "ü", "\ud800", *("x" * n for n in range(120, 140)), "y" * 500]
others = [None, True, 1, 1.0, (1.0,), Timestamp(-(2**62)), Timestamp(0), Duration(5)]
for values in (texts, [*texts[:7], *texts[8:], *others], others):
    many = values * 9
    hashes, spellings = hashes_of(many)
    assert hashes.tolist() == [value_hash(v) for v in many] and spellings.tolist() == [spelling(v) for v in many]
"""


def test_compiled_hashes_of_columns() -> None:
    subprocess.run([sys.executable, "-c", COMPILED_HASHES], check=True)


def test_coded_columns_are_columns() -> None:
    column = Coded(["x", "y", "z"], np.array([0, -1, 2, 0], np.int64))
    assert list(column) == ["x", None, "z", "x"] == [column[i] for i in range(4)]
    assert list(column[1:3]) == [None, "z"]
    assert list(column[np.array([3, 2])]) == ["x", "z"]
    program = augury.compile("b(X) <- a(X, _).")
    sessions = program.session(clock="logical"), program.session(clock="logical")
    time = np.array([1, 2, 3, 4])
    for session, given_column in zip(sessions, (column, list(column)), strict=True):
        session.circuit.inputs["a", 2].add(time, time, [given_column, given_column])
        session.circuit.run()
        session.circuit.settle()
        session.prune()
    restored = program.restore(sessions[0].snapshot())
    inputs: list[Events] = [one.circuit.inputs["a", 2] for one in (*sessions, restored)]
    assert all([one.event(row) for row in range(4)] == [inputs[0].event(row) for row in range(4)] for one in inputs)
    assert inputs[0].made(np.arange(4)).tolist() == inputs[1].made(np.arange(4)).tolist()
    for session in (*sessions, restored):
        check(session.advance(9), session)


@pytest.mark.parametrize(("absent", "calm"), [("b(X)", "23"), ("a(X)", "123")])
def test_what_is_looked_for_is_compared_with_its_own_in_columns(
    absent: str, calm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An occurrence is not its own absence; that is seen without looking at the events of single rows."""
    program = augury.compile(f"calm(X) <- o: a(X), w: extend(o, 5s), while w: not {absent}.")
    monkeypatch.setattr(Circuit, "label_parts", lambda *_: pytest.fail("row by row"))
    events = [Event("a", (n,), 10 * n) for n in (1, 2, 3)] + [Event("b", (1,), 12), Event("b", (2,), 26)]
    session = program.session(clock="logical")
    session.push(events)
    session.advance(100)
    assert sorted(str(e.args[0]) for e in session.events()) == list(calm)
