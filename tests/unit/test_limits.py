"""Limits of a session: each is an error that names the rule, and leaves the session as it was."""

from __future__ import annotations

from typing import Any

import pytest

import augury
from augury.core import limits as limits_module
from augury.core.errors import DataError, RunError
from augury.core.limits import Limits, memory_left
from augury.core.model import Event

PROGRAM = "cross(X, Y) <- a(X) AND b(Y).\n"
EVERY = {
    "pairs": (1000, "rule `cross` looks at more than 1,000 pairs of events in one step"),
    "rows": (1000, r"rule `cross` brings the state to more than 1,000 rows"),
    "bytes": ("200 kB", r"brings the state to more than 200,000 bytes"),
    "answers": (1000, r"brings the answers of one step to more than 1,000"),
    "time": (0, r"takes longer than 0 s for one step"),
}


def events(count: int, first: int = 0) -> list[Event]:
    return [Event(type, (i,), first + i) for i in range(count) for type in ("a", "b")]


@pytest.mark.parametrize("limit", EVERY)
def test_a_step_beyond_a_limit_is_undone(limit: str) -> None:
    most, said = EVERY[limit]
    program = augury.compile(PROGRAM)
    session = program.session(clock="logical", limits={limit: most} if limit != "time" else {})
    session.push(events(10))
    if limit == "time":
        session.circuit.tables.guard = type(session.circuit.tables.guard)(Limits(time=0))
    before = [e.content for e in session.events()], session.stats()["rows"], session.now
    with pytest.raises(RunError, match=said) as error:
        session.push(events(100, 10))
    assert "the step is undone" in error.value.message and f"'{limit}'" in error.value.hint
    assert ([e.content for e in session.events()], session.stats()["rows"], session.now) == before
    if limit != "time":
        assert len(session.push(events(2, 20))) == 42  # it goes on


def test_windows_of_a_step_that_was_undone_come_with_the_next() -> None:
    program = augury.compile("calm <- w: every(4s), while w: not a(_).")
    session = program.session(clock="logical", limits={"rows": 100})
    session.push(Event("b", (), 2))
    with pytest.raises(RunError, match="more than 100 rows"):
        session.push(Event("b", (), 1000))
    assert [(c.event.start, c.event.end) for c in session.push(Event("b", (), 8))] == [(0, 3), (4, 7)]


def test_a_restored_session_has_the_limits_that_it_is_given() -> None:
    program = augury.compile(PROGRAM)
    session = program.session(clock="logical", limits={"pairs": 50})
    session.push(events(5))
    data = session.snapshot()
    with pytest.raises(RunError, match="more than 60 pairs"):
        program.restore(data, limits={"pairs": 60}).push(events(20, 10))
    assert program.restore(data).push(events(20, 10))


def test_runs_and_the_command_line_take_limits(tmp_path: Any) -> None:
    from click.testing import CliRunner

    from augury.cli import cli

    with pytest.raises(RunError, match="more than 50 pairs"):
        augury.run(PROGRAM, events(20), limits={"pairs": 50})
    (tmp_path / "p.aug").write_text(PROGRAM)
    (tmp_path / "e.csv").write_text("type,x,time\n" + "".join(f"{t},{i},{i}\n" for i in range(20) for t in "ab"))
    given = ["run", str(tmp_path / "p.aug"), "--events", str(tmp_path / "e.csv"), "--engine", "embedded", "--limit"]
    found = CliRunner().invoke(cli, [*given, "pairs=50"])
    assert isinstance(found.exception, RunError) and "more than 50 pairs" in str(found.exception)
    assert CliRunner().invoke(cli, [*given, "pairs=500"]).exit_code == 0
    for wrong, said in {
        "pairs": "NAME=NUMBER",
        "pairz=1": "did you mean `pairs`",
        "rows=many": "not a number",
        "time=soon": "not a duration",
    }.items():
        found = CliRunner().invoke(cli, [*given, wrong])
        assert said in str(found.exception), found.exception


@pytest.mark.parametrize(("given", "wanted"), [
    ({"bytes": "2 GB"}, Limits(bytes=2_000_000_000)), ({"bytes": "1.5GiB"}, Limits(bytes=3 * 2**29)), ({"rows": 5}, Limits(rows=5)),
    ({"time": "2min"}, Limits(time=120_000_000)), ({"time": 0.5}, Limits(time=500_000)), ({"rows": "1_000"}, Limits(rows=1000)), (None, Limits()),
])  # fmt: skip
def test_limits_as_they_are_written(given: Any, wanted: Limits) -> None:
    assert Limits.of(given) == wanted


@pytest.mark.parametrize("wrong", [{"rows": "2 GB"}, {"rows": True}, {"bytes": -1}, {"time": None}])
def test_limits_that_are_none(wrong: Any) -> None:
    with pytest.raises(RunError):
        Limits.of(wrong)


@pytest.mark.parametrize("program", [PROGRAM, "out(X, Y) <- a(X) WHERE known(Y)."])
def test_a_step_that_needs_more_memory_than_there_is(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system would give out the memory, and end the process once it is used."""
    from augury.storage import guard

    facts = {"known": [(i,) for i in range(3000)]} if "known" in program else {}
    session = augury.compile(program, facts=facts).session(clock="logical", facts=facts)
    session.push(events(2))
    before = len(session.events())
    monkeypatch.setattr(guard, "_LARGE", 1 << 20)
    monkeypatch.setattr(guard, "memory_left", lambda: 1 << 22)
    with pytest.raises(RunError, match=r"rule `\w+` needs more memory than there is"):
        session.push(events(3000, 10))
    assert len(session.events()) == before
    session.push(Event("c", (1,), 50))


def test_how_much_memory_there_is(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    free = memory_left()
    assert free is None or free > 2**20
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("4000000\n")
    monkeypatch.setattr(limits_module, "_CONTROL", tmp_path)
    assert memory_left() in (None, 1_000_000)


def test_texts_count_towards_the_byte_limit() -> None:
    """Each rule doubles a text: forty of them would take a terabyte."""
    rules = "\n".join(f"d{i}(concat(X, X)) <- d{i - 1}(X)." for i in range(1, 41))
    session = augury.compile(rules).session(clock="logical", limits={"bytes": "5 MB"})
    with pytest.raises(RunError, match="brings the state to more than 5,000,000 bytes") as caught:
        session.push(Event("d0", ("ab",), 1))
    assert len(str(caught.value)) < 1000
    stats = session.stats()
    assert stats["values"] == 2
    assert stats["bytes"] < 100_000


def test_facts_count_and_their_values() -> None:
    program = augury.compile("static on(k: string).\np(K) <- a(K) WHERE on(K).")
    session = program.session(clock="logical", changing=["on"])
    before = session.stats()
    session.learn({"on": [{"args": [f"a rather long key, number {i}"], "valid_from": 1} for i in range(2000)]})
    after = session.stats()
    assert after["rows"] - before["rows"] == 2000
    assert after["bytes"] - before["bytes"] > 2000 * 100
    for limit, most in (("rows", 1000), ("bytes", "100 kB")):
        careful = program.session(clock="logical", changing=["on"], limits={limit: most})
        with pytest.raises(RunError, match=f"{limit}; the step is undone"):
            careful.learn({"on": [{"args": [f"a rather long key, number {i}"], "valid_from": 1} for i in range(2000)]})
        assert careful.stats()["knowledge"]["facts"] == 0


@pytest.mark.parametrize("made", [True, False])
def test_facts_that_come_and_go_do_not_grow(made: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an explicit `prune`, and whether events make them or the user says so."""
    monkeypatch.setattr("augury.engine.session_core._MANY", 2000)
    monkeypatch.setattr("augury.engine.session_core._FEW_VALUES", 100)
    makes = "fact on(K) <- up(K).\nfact not on(K) <- down(K).\n" if made else "static on(k: string).\n"
    program = augury.compile(f"{makes}p(K) <- ask(K) WHERE on(K).")
    session = program.session(clock="logical", lateness="5s", changing=[] if made else ["on"])
    largest = 0
    for number in range(150):
        keys, time = [f"key {number} {i}" for i in range(100)], 10 * number
        if made:
            session.push(
                [Event("up", (key,), time) for key in keys] + [Event("down", (key,), time + 4) for key in keys]
            )
        else:
            session.learn({"on": [{"op": "assert", "args": [key], "valid_from": time} for key in keys]})
            session.push([Event("ask", (keys[0],), time + 3)])
            session.learn({"on": [{"op": "retract", "args": [key], "valid_from": time + 4} for key in keys]})
        knowledge = session.stats()["knowledge"]
        largest = max(largest, knowledge["values"], knowledge["entries"])
    assert largest < 5000  # of 15,000 keys


def test_long_values_are_cut_in_messages() -> None:
    session = augury.compile("p(X + 1) <- a(X).").session(clock="logical")
    session.push(Event("a", ("long" * 100_000,), 1))
    assert all(len(message) < 3000 for _, message in session.errors)
    with pytest.raises(DataError) as caught:
        session.push({"type": "a" * 1_000_000, "args": [1], "time": "x" * 1_000_000})
    assert len(str(caught.value)) < 10_000


@pytest.mark.parametrize(
    "rule", ["e(K, count(V)) <- a(K, V)+ PER (K).", "e(K, sum(V)) <- a(K, V)+ PER (K) LONGEST."], ids=["all", "longest"]
)
def test_partial_matches_of_a_run_count_as_pairs(rule: str) -> None:
    """Two events at each of many times have two to the power of these matches."""
    session = augury.compile(rule).session(clock="logical", limits={"pairs": 2_000})
    twice = [Event("a", ("k", i + j), i) for i in range(16) for j in (0, 1)]
    session.push(twice[:8])
    before = [e.content for e in session.events()]
    with pytest.raises(RunError, match="rule `e` looks at more than 2,000 pairs of events in one step"):
        session.push(twice[8:])
    assert [e.content for e in session.events()] == before


@pytest.mark.parametrize(
    "rule",
    [
        "e(K, count(V)) <- a(K, V)+ PER (K).",
        "e(K, sum(V)) <- a(K, V)+ PER (K) LONGEST.",
        "e(K, sum(V)) <- a(K, V)+ WHERE sum(V) < 99 PER (K) LONGEST SKIP PAST END.",
    ],
)
def test_matches_that_ties_multiply_stop_the_step(rule: str) -> None:
    """Otherwise the step would never end."""
    program, twice = augury.compile(rule), [Event("a", ("k", j), i) for i in range(13) for j in (0, 1)]
    with pytest.raises(RunError, match="rule `e` makes more than 1,000 partial matches in one step") as caught:
        program.session(clock="logical", limits={"matches": 1_000}).push(twice)
    assert "--limit matches=" in caught.value.hint
    session = program.session(clock="logical", limits={"matches": 1_000})
    before = len(session.push(twice[:8]))
    with pytest.raises(RunError):
        session.push(twice[8:])
    assert len(session.events()) == before
