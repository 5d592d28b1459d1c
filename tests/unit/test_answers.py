"""Answers as columns and as events: the same, in the same order, however and whenever somebody looks."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from typing import Any

import duckdb
import pandas
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import augury
from augury import Event, Iri, Term
from augury.core.clock import Duration, Timestamp
from augury.core.model import Change, Fact, content_id
from augury.engine.changes import Changes
from augury.engine.found import AnswerRows
from augury.engine.session import Session
from augury.engine.trace import trace_of
from augury.sinks import Answers, answers_of, event_as_json, jsonl
from tests.differential.test_differential import asked, compiled
from tests.generators.programs import STRATEGIES, Step, facts, tellings

# Columns are what events say


def one_by_one(session: Session, changes: Changes) -> list[Change]:
    """The changes as events that are made and sorted one by one, straight from the tables of the circuit."""
    circuit, result = session.circuit, list[Change]()
    for op, found in (("retract", changes.retracted), ("insert", changes.inserted)):
        events = []
        for rows in found.parts:
            assert isinstance(rows, AnswerRows)
            for row in rows.numbers.tolist():
                event = circuit.event((rows.derived.out.table, row))
                trace = trace_of(circuit, rows.derived, row)
                events.append(Event(event.type, event.args, event.start, event.end, event.id, trace))
        result += [Change(op, event) for event in sorted(events, key=lambda e: e.order)]  # type: ignore[arg-type]
    return result


def rows_of(answers: Answers[Any]) -> list[AnswerRows]:
    return [part for part in answers.parts if isinstance(part, AnswerRows)]


def check(changes: Changes, expected: list[Change], session: Session) -> None:
    plan, clock = session.program.plan, session.clock
    assert len(changes) == len(expected)
    assert repr(list(changes)) == repr(expected)
    assert [changes[i] for i in range(len(changes))] == expected == changes[:]
    assert [change.event.id for change in changes] == [change.event.id for change in expected]
    listed = answers_of(expected, plan, clock, changes=True)
    assert repr(list(listed)) == repr(expected)
    assert changes.to_arrow().equals(listed.to_arrow())
    for type in plan.outputs:
        own = [change for change in expected if change.event.type == type]
        assert list(changes[type]) == own
        assert changes[type].to_arrow().equals(listed.to_arrow(type)) and len(listed.to_arrow(type)) == len(own)
    lines = b"".join(jsonl.lines(changes)).decode().splitlines()
    assert lines == [json.dumps(event_as_json(c.event, clock, c.op, plan), ensure_ascii=False) for c in expected]


@pytest.mark.parametrize("kind", STRATEGIES)
def test_columns_are_what_events_say(kind: str) -> None:
    @given(STRATEGIES[kind](), tellings(), facts(), st.sampled_from(["", "prune", "save"]), st.booleans())
    def told(text: str, steps: list[Step], known: list[Fact], way: str, named: bool) -> None:
        program = compiled(text)
        if program is None:
            return
        session = program.session(
            clock="logical", facts=asked(program.plan, known), lateness="3s" if way == "prune" else None, longest="60s"
        )
        held: list[tuple[Changes, list[Change]]] = []
        for step in steps:
            if isinstance(step, tuple):
                changes = session.advance(step[1])
            else:
                items = step if named else [Event(i.type, i.args, i.start, i.end) for i in step if isinstance(i, Event)]
                changes = session.push(items)
            expected = one_by_one(session, changes)
            held.append((changes, expected))
            if len(held) % 2:
                check(changes, expected, session)
            if way == "prune":
                session.prune()
            stand = session.events()
            assert [e.content for e in stand] == [e.content for e in sorted(stand, key=lambda e: e.order)]
            assert stand == list(session.events()) and len(stand) == stand.to_arrow().num_rows
        if way == "save":
            other = program.restore(session.snapshot())
            assert [e.content for e in other.events()] == [e.content for e in session.events()]
            assert other.events().to_arrow(trace=False).equals(session.events().to_arrow(trace=False))
        if way == "prune":  # what is held, whether it was looked at before or not, stays as it was
            for kept, expected in held:
                check(kept, expected, session)

    told()


PAIRS = augury.compile("pair(X, Y) <- (a(X) SEQ b(Y)).9.\nalone(X) <- a(X).")


def steps(count: int = 30) -> list[list[Event]]:
    return [[Event("a", (f"x{t}",), 2 * t), Event("b", (t,), 2 * t + 1)] for t in range(count)]


def test_answers_outlive_what_they_were_made_of() -> None:
    """Changes, single events and lists of those that stand, held over prunes that forget their rows and values."""
    session, plain = PAIRS.session(lateness="0s"), PAIRS.session()
    held: list[Any] = []
    for step in steps():
        changes, expected = session.push(step), list(plain.push(step))
        held += [(changes, expected), (list(changes), expected), (changes["pair"], [c for c in expected if c.event.type == "pair"])]  # fmt: skip
        stand = session.events()
        held.append((stand, copy.copy(list(session.events()))))
        session.prune()
    for got, expected in held:
        assert repr(list(got)) == repr(list(expected))
    assert session.pruned and len(session.events()) < len(plain.events())


@pytest.mark.parametrize("collect", ["while w: collect d(K)", "while w: collect x: d(K)", "last 2: collect d(K)"])
@pytest.mark.parametrize("reads", ["n(K, N)+ PER (K)", "n(K, N) NEXT z(K)", "n(K, N) AND n(K, _)", "w: every(5s), while w: collect n(K, N)"])  # fmt: skip
def test_traces_of_what_reads_groups_of_nothing(collect: str, reads: str) -> None:
    """A group that has collected no derived event adds nothing to a trace, whatever reads it."""
    counted = "list(N)" if "+" in reads or "every" in reads else "N"
    program = augury.compile(
        f"d(X) <- c(X). n(K, count()) <- o: a(K), w: extend(o, 3s), {collect} or none. r(K, {counted}) <- {reads}."
    )
    events = [Event("a", (1,), 1, id="a1"), Event("a", (1,), 6, id="a2"), Event("z", (1,), 11, id="z1")]
    for told in (events, [*events, Event("c", (1,), 3, id="c1")]):
        session = program.session(clock="logical")
        session.push(told)
        changes = session.advance(20)
        check(changes, one_by_one(session, changes), session)
        stand = session.events()["r"]
        assert len(stand) and stand.to_arrow().column("trace").to_pylist() == [list(e.trace) for e in stand]


def test_a_trace_is_of_a_derivation_that_stands() -> None:
    program = augury.compile("e(Y * 1.0) <- (b(X) SEQ a(Y)).\ng(X, Y) <- (a(X) AND[recent] e(Y)).")
    session = program.session(clock="logical")
    told = [
        ("b", 1, 1, 1),
        ("a", 2, 1, 1),
        ("b", 1, 1, 1),
        ("a", 2, 4, 4),
        ("a", 1, 5, 6),
        ("a", 1, 7, 7),
        ("a", 2, 7, 7),
    ]
    for type, value, start, end in told:
        session.push(Event(type, (value,), start, end))
    lists = session.events().to_arrow().column("trace").to_pylist()
    rows = [(part, row) for part in rows_of(session.events()) for row in part.numbers.tolist()]
    single = {trace_of(session.circuit, part.derived, row) for part, row in rows}
    assert {tuple(trace) for trace in lists} == single


def test_a_removed_rule_leaves_what_it_said() -> None:
    session = PAIRS.session()
    before = [session.push(step) for step in steps(4)]
    gone = session.remove_rule("pair")
    after = [c for changes in before for c in changes if c.event.type == "pair"]
    assert [c.op for c in gone] == ["retract"] * len(after)
    assert [c.event for c in gone] == [c.event for c in after] and all(len(c.event.trace) == 2 for c in gone)
    assert gone.to_arrow("pair").num_rows == len(after)
    assert [e.type for e in session.events()] == ["alone"] * 4


def test_little_is_kept_of_what_nobody_holds() -> None:
    session = PAIRS.session()
    for step in steps(5):
        session.push(step)
    assert len(session._unseen) == 0


# Events


def test_an_event_of_an_answer_is_an_event_like_any_other() -> None:
    def found() -> Event:
        return augury.run(PAIRS, steps(2)[0])["pair"][0]

    event = found()
    made = Event("pair", ("x0", 0), 0, 1, event.id, event.trace)
    assert found() == made and made == found() and hash(found()) == hash(made) and repr(found()) == repr(made)
    assert pickle.loads(pickle.dumps(found())) == made
    assert copy.copy(found()) == copy.deepcopy(found()) == made
    assert dataclasses.replace(found(), id="z") == dataclasses.replace(made, id="z")
    assert dataclasses.asdict(found()) == dataclasses.asdict(made)
    assert found().order == made.order and str(found()) == str(made)
    assert found().id == content_id("pair", ("x0", 0), 0, 1) and len(found().trace) == 2
    assert not hasattr(found(), "column_names")
    with pytest.raises(dataclasses.FrozenInstanceError):
        found().id = "x"  # type: ignore[misc]
    with pytest.raises(AttributeError, match="no attribute 'name'"):
        found().name  # type: ignore[attr-defined]  # noqa: B018


def test_ids_and_traces_one_by_one_and_all_at_once() -> None:
    history = [event for step in steps(60) for event in step]
    looked, whole = augury.run(PAIRS, history), augury.run(PAIRS, history)
    assert len(looked) > 200
    table = whole.to_arrow()
    ids, traces = table.column("id").to_pylist(), table.column("trace").to_pylist()
    for place in (7, 3, -1, *range(len(looked))):  # the first ones are found one by one
        assert (looked[place].trace, looked[place].id) == (tuple(traces[place]), ids[place])


# Results


def test_a_result_is_a_sequence() -> None:
    result = augury.run(PAIRS, [event for step in steps(6) for event in step])
    events = result.events
    assert len(result) == len(events) and list(result) == events
    assert result[0] == events[0] and result[-1] == events[-1] and result[2:5] == events[2:5]
    assert events == sorted(events, key=lambda e: e.order)
    assert events[3] in result and list(reversed(result)) == events[::-1]
    assert list(result["pair"]) == [e for e in events if e.type == "pair"] and len(result["alone"]) == 6
    with pytest.raises(IndexError):
        result[len(result)]
    with pytest.raises(augury.RunError, match="`pairs` is not an output of the program\n  hint: did you mean `pair`"):
        result["pairs"]
    with pytest.raises(augury.RunError, match="is not an output"):
        result.to_arrow("other")


def test_length_of_a_result_makes_no_events(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("somebody looked")

    monkeypatch.setattr("augury.engine.found.AnswerRows.read", fail)
    session = PAIRS.session()
    assert len(session.push(steps(1)[0])) == 2 and len(session.events()) == 2
    assert len(augury.run(PAIRS, steps(1)[0])) == 2


def test_the_columns_of_an_empty_result() -> None:
    for engine in ("embedded", "reference"):
        result = augury.run(PAIRS, [], engine=engine)
        assert len(result) == 0 and list(result) == [] == result.events
        assert result.to_arrow().schema.names == ["type", "x", "y", "start", "end", "id", "trace"]
        assert result["pair"].to_arrow().schema == pa.schema([("x", pa.string()), ("y", pa.string()), *REST])
        assert pa.table(result).num_rows == 0 and len(result.to_pandas()) == 0
    changes = PAIRS.session(clock="logical").advance(3)
    assert changes.to_arrow().schema.names == ["op", "type", "x", "y", "start", "end", "id", "trace"]
    assert list(changes) == [] and changes["pair"].to_arrow().num_rows == 0


REST = [("start", pa.int64()), ("end", pa.int64()), ("id", pa.string()), ("trace", pa.list_(pa.string()))]
UTC = pa.timestamp("us", "UTC")
DECLARED = """
event seen(place: string, level: float, number: int).
event alarm(place: string, level: float, number: number, at: timestamp, span: duration, flag: bool, name: iri).
output alarm.
alarm(P, L, N, T, D, F, I) <- r: seen(P, L, N), all(L, N, T, D, F, I).
"""


def test_a_declaration_says_what_a_column_is() -> None:
    expected = [("place", pa.string()), ("level", pa.float64()), ("number", pa.float64()), ("at", UTC), ("span", pa.duration("us")),
                ("flag", pa.bool_()), ("name", pa.string())]  # fmt: skip
    program = augury.compile(DECLARED, facts=["all"])
    seen = [Event("seen", ("l1", 2.0, 1), 1)]
    for known in ([], [(2.0, 1, None, None, None, None, None)], [(2, 1, Timestamp(5), Duration(6), True, Iri("i"))]):
        rows = [row[:6] for row in known]
        for engine in ("embedded", "reference"):
            result = augury.run(program, seen, facts={"all": rows}, engine=engine, clock="timestamp")
            assert result.to_arrow().schema.names[:7] == [name for name, _ in expected]
            assert [f.type for f in result.to_arrow().schema][:7] == [type for _, type in expected]
            assert len(result) == len(known)
    row = result.to_arrow().to_pylist()[0]
    assert (row["level"], row["number"], row["flag"], row["name"]) == (2.0, 1.0, True, "i")
    assert row["at"].isoformat() == "1970-01-01T00:00:00.000005+00:00" and row["span"].microseconds == 6


def columns(*values: Any, engine: str = "embedded") -> pa.ChunkedArray:
    """The column of an attribute that has these values."""
    history = [Event("a", (value,), t) for t, value in enumerate(values)]
    return augury.run("e(X) <- a(X).", history, engine=engine).to_arrow().column("x")


LOC = pa.struct([("functor", pa.string()), ("args", pa.struct([("_1", pa.string()), ("_2", pa.int64())]))])


@pytest.mark.parametrize(
    ("values", "type", "shown"),
    [
        ((1, -(2**63), None), pa.int64(), [1, -(2**63), None]),
        ((1, 2.5, None), pa.float64(), [1.0, 2.5, None]),
        ((0.5, 1e300, None), pa.float64(), [0.5, 1e300, None]),
        ((2**62, 0.5), pa.float64(), [2.0**62, 0.5]),
        ((True, None, False), pa.bool_(), [True, None, False]),
        (("x", None, "é\x00\n\"'😀", ""), pa.string(), ["x", None, "é\x00\n\"'😀", ""]),
        ((Iri("http://x"), "y"), pa.string(), ["http://x", "y"]),
        ((Timestamp(-1), None), UTC, None),
        ((Duration(5), None), pa.duration("us"), None),
        (((1, 2), (), None, (None,)), pa.list_(pa.int64()), [[1, 2], [], None, [None]]),
        (((1, 2.5), (True,)), pa.string(), ["[1, 2.5]", "[true]"]),
        ((((1,), (2.5,)),), pa.list_(pa.list_(pa.float64())), [[[1.0], [2.5]]]),
        ((Term("loc", ("N", 4042)), None), LOC, [{"functor": "loc", "args": {"_1": "N", "_2": 4042}}, None]),
        ((Term("p", (1, 2.5)), Term("q", (3,))), pa.struct([("functor", pa.string()), ("args", pa.list_(pa.float64()))]),
         [{"functor": "p", "args": [1.0, 2.5]}, {"functor": "q", "args": [3.0]}]),
        ((Term("p", ("N", 1)), Term("q", (3,))), pa.string(),
         ['{"functor": "p", "args": ["N", 1]}', '{"functor": "q", "args": [3]}']),
        ((1, "x", None), pa.string(), ["1", '"x"', None]),
        ((None,), pa.string(), [None]),
    ],
)  # fmt: skip
def test_values_have_their_arrow_types(values: tuple[Any, ...], type: pa.DataType, shown: list[Any] | None) -> None:
    for engine in ("embedded", "reference"):
        column = columns(*values, engine=engine)
        assert column.type == type
        assert shown is None or column.to_pylist() == shown


def test_times_are_timestamps() -> None:
    result = augury.run("e(X) <- a(X).", [{"type": "a", "args": [1], "time": "1969-12-31T23:59:59.5Z"}])
    assert [f.type for f in result.to_arrow().schema][1:3] == [UTC, UTC]
    assert result.to_arrow().column("start").to_pylist()[0].isoformat() == "1969-12-31T23:59:59.500000+00:00"
    assert result.to_pandas()["end"].iloc[0] == pandas.Timestamp("1969-12-31T23:59:59.5Z")


WIDE = """
event b(place: string, level: int).
output e, f, g.
e(P, L) <- a(P, L).
f(P, L) <- b(P, L).
g(P) <- c(P).
g(P, Q) <- c(P), d(Q).
"""


def test_all_types_in_one_table() -> None:
    history = [Event("a", ("x", "high"), 1), Event("b", ("y", 3), 1), Event("c", (7,), 2), Event("d", (8,), 2)]
    for engine in ("embedded", "reference"):
        result = augury.run(WIDE, history, engine=engine)
        assert [e.type for e in result] == ["e", "f", "g", "g"]
        table = result.to_arrow(trace=False).drop_columns(["id"])
        assert table.schema.names == ["type", "p", "l_e", "l_f", "arg1", "arg2", "start", "end"]
        assert table.to_pydict() == {
            "type": ["e", "f", "g", "g"], "p": ["x", "y", None, None], "l_e": ["high", None, None, None],
            "l_f": [None, 3, None, None], "arg1": [None, None, 7, 7], "arg2": [None, None, None, 8], "start": [1, 1, 2, 2],
            "end": [1, 1, 2, 2],
        }  # fmt: skip
        assert result.to_arrow("g", trace=False).column_names == ["arg1", "arg2", "start", "end", "id"]
        assert result["g"].to_arrow().column("arg2").to_pylist() == [None, 8]


def test_pandas_and_duckdb_read_results() -> None:
    duck = duckdb.connect()
    history = [event for step in steps(5) for event in step]
    for engine in ("embedded", "reference"):
        result = augury.run(PAIRS, history, engine=engine)
        pairs = result["pair"]
        assert pa.table(pairs).equals(pairs.to_arrow()) and pa.table(result).equals(result.to_arrow())
        assert duck.execute("select count(*), max(y) from pairs").fetchall() == [(len(pairs), 4)]
        assert duck.execute("select count(*) from result where type = 'alone'").fetchall() == [(5,)]
        assert list(result.to_pandas("pair")["y"]) == [e.args[1] for e in pairs]
    changes = PAIRS.session().push(history)
    assert pa.table(changes["alone"]).column_names == ["op", "x", "start", "end", "id", "trace"]
    assert changes.to_arrow("alone").column("op").to_pylist() == ["insert"] * 5


def test_polars_reads_results() -> None:
    polars = pytest.importorskip("polars")
    result = augury.run(PAIRS, [event for step in steps(5) for event in step])
    pairs = result["pair"]
    assert len(polars.from_arrow(pairs)) == polars.DataFrame(pairs).height == len(pairs)
    assert polars.DataFrame(pairs).equals(result.to_polars("pair"))
    assert result.to_polars().columns == result.to_arrow().column_names


def test_polars_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    with pytest.raises(augury.RunError, match="Polars is not installed\n  hint: pip install polars"):
        augury.run(PAIRS, []).to_polars()


# What the outputs rest on


def test_a_run_computes_what_its_outputs_rest_on() -> None:
    text = "output c. b(X) <- a(X). c(X) <- b(X). dear(1 / X) <- a(X) WHERE known(X). near(X) <- dear(X)."
    history = [Event("a", (0,), 1), Event("a", (0,), 2, id="i"), Event("a", (3,), 2, id="i")]
    for engine in ("embedded", "reference"):
        result = augury.run(text, history, facts={"known": [(0,)]}, engine=engine)
        assert [e.args for e in result] == [(0,), (0,)] and result.errors == {}
        assert len(result.rejected) == 1
        assert "by rule b" in result.why(result[0]) and "by rule b" in result.why(Event("b", (0,), 1))
        with pytest.raises(augury.RunError, match="no output rests on `dear`"):
            result.why(Event("dear", (1,), 1))
    tables = {"a": pandas.DataFrame({"x": [1, 2], "time": [1, 2]})}
    found = augury.run(text, tables, facts={"known": [(0,)]})
    assert [e.args for e in found] == [(1,), (2,)]
    assert sorted(found.model.session.circuit.rules) == ["b", "c"]  # type: ignore[attr-defined]
    with pytest.raises(augury.DataError, match="did you mean `another_name`"):
        augury.run("output c. c(X) <- long_name(X). d(X) <- another_name(X).", {"another_nam": tables["a"]})
    session = augury.compile(text, facts=["known"]).session(clock="logical", facts={"known": [(0,)]})
    session.push(history)
    assert session.errors and "dear" in session.circuit.rules, "a session has the whole program"


def test_facts_that_rules_make_for_an_output() -> None:
    text = "output found. fact at(P, R) <- enters(P, R). found(P, R) <- call(P) WHERE at(P, R). other(P) <- call(P)."
    history = [Event("enters", ("ann", "hall"), 1), Event("call", ("ann",), 2)]
    for engine in ("embedded", "reference"):
        assert [e.args for e in augury.run(text, history, engine=engine)] == [("ann", "hall")]


def test_columns_for_hosts_hold_after_a_compaction() -> None:
    session = PAIRS.session(lateness="0s")
    changes = session.push([event for step in steps(8) for event in step])
    ids = [part.ids().tolist() for part in rows_of(changes)]
    session.prune()
    assert [part.ids().tolist() for part in rows_of(changes)] == ids
