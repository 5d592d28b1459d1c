"""Runs that choose (LONGEST, SHORTEST, SKIP) in sessions: when answers are final, what is kept until then, and what ties cost.

Random stories of such runs are in `test_disturbances.py`.
"""

from __future__ import annotations

import pytest

import augury
from augury import Session
from augury.core.model import Event
from augury.engine.changes import Changes
from augury.engine.operators.runs.greedy import GreedyMatches


def final_session(text: str, longest: str = "0s", lateness: str = "0s") -> Session:
    return augury.compile(text).session(clock="logical", emit="final", lateness=lateness, longest=longest)


def emitted(changes: Changes) -> list[str]:
    assert all(change.op == "insert" for change in changes)
    return [str(change.event) for change in changes]


def points(type: str, *rows: tuple[object, ...]) -> list[Event]:
    """Events of a type: each row has the arguments and the time."""
    return [Event(type, row[:-1], row[-1], row[-1], f"{type}{n}@{row[-1]}") for n, row in enumerate(rows)]  # type: ignore[arg-type]


@pytest.mark.parametrize("longest", ["0s", "2s"])
@pytest.mark.parametrize("prune", [False, True])
@pytest.mark.parametrize(
    "run", ["a(K, V)+ WHERE V >= prev(V) PER (K)", "a(K, V)+ WHERE (V >= prev(V), sum(V) < 99) PER (K)"]
)
def test_an_answer_that_waits_is_not_forgotten(run: str, prune: bool, longest: str) -> None:
    session = final_session(f"e(K, count(V)) <- {run} LONGEST SKIP PAST END.", longest)
    found = []
    for event in [*points("a", (0, 2, 31), (0, 1, 38)), *points("c", (0, 1, 39))]:
        found += emitted(session.push(event))
        if prune:
            session.prune()
    assert found == (["e(0, 1) [31, 31]"] if longest == "0s" else [])
    assert sorted(found + emitted(session.finish())) == ["e(0, 1) [31, 31]", "e(0, 1) [38, 38]"]


VISITS = "visit(U, count(c)) <- (c: click(U, V))+ WHERE start(c) - prev(end(c)) <= 30min PER (U) LONGEST SKIP PAST END."
ASKING = VISITS.replace("WHERE ", "WHERE (").replace(" PER", ", sum(V) < 10000) PER")
RUNS = {"greedy": VISITS, "partial": ASKING, "without SKIP": VISITS.replace(" SKIP PAST END", "")}


@pytest.mark.parametrize("text", RUNS.values(), ids=RUNS)
def test_visits_end_by_the_clock_alone(text: str) -> None:
    """1,000 users who clicked once are answered, and leave no row behind."""
    session = final_session(text)
    assert not session.push(points("click", *((f"u{n}", n % 3, n) for n in range(1_000))))
    assert not session.advance(1_799)
    assert len(session.advance(1_800 + 499)) == 500
    assert len(session.advance(10_000)) == 500
    assert session.prune() == 0
    assert session.stats()["remembers"] == []
    assert not session.finish()


@pytest.mark.parametrize("text", RUNS.values(), ids=RUNS)
def test_with_a_length_visits_wait_for_it(text: str) -> None:
    session = final_session(text, longest="10s")
    session.push(points("click", ("u", 1, 0)))
    assert not session.advance(1_809)
    assert emitted(session.advance(1_810)) == ["visit('u', 1) [0, 0]"]


@pytest.mark.parametrize("text", RUNS.values(), ids=RUNS)
def test_a_window_bounds_visits(text: str) -> None:
    text = text.replace("(c: click(U, V))+", "((c: click(U, V))+).1d").replace(
        "start(c) - prev(end(c)) <= 30min", "1 = 1"
    )
    session = final_session(text)
    session.push(points("click", ("u", 1, 0), ("u", 1, 50_000)))
    assert not session.advance(86_399)
    assert "visit('u', 2) [0, 50000]" in emitted(session.advance(86_400))
    session.advance(10**6)
    assert session.prune() == 0


def test_a_visit_goes_on_while_it_is_clicked() -> None:
    """Each click moves the end of the wait, also where the clicks come one by one."""
    session = final_session(VISITS)
    for n in range(50):
        assert not session.push(points("click", ("u", 1, 1_000 * n)))
        assert not session.advance(1_000 * n + 900)
    assert not session.advance(49_000 + 1_799)
    assert emitted(session.advance(49_000 + 1_800)) == ["visit('u', 50) [0, 49000]"]


def test_one_that_waits_for_ever_holds_back_its_own_key_only() -> None:
    session = final_session("m(K, X, count(b)) <- a(K, X) NEXT (b: b(K, X))+ NEXT c(K, X) LONGEST SKIP PAST END.")
    session.push(
        [*points("a", ("k", 1, 0), ("m", 1, 0)), *points("b", ("k", 1, 1), ("m", 1, 1)), *points("c", ("m", 1, 2))]
    )
    assert emitted(session.advance(5)) == ["m('m', 1, 1) [0, 2]"]
    assert session.stats()["remembers"] == ["m"]


TIED = "m(X, count(b)) <- (a: a(K, X)) THEN (b: a(K, Y)){1,2} WHERE Y >= prev(Y, X) PER (K) LONGEST SKIP TO LAST a."


@pytest.mark.parametrize("text", [TIED, TIED.replace("WHERE Y >= prev(Y, X)", "WHERE (Y >= prev(Y, X), sum(Y) < 99)")])
def test_a_match_does_not_wait_for_a_later_one_at_the_same_time(text: str) -> None:
    """Simultaneous first events are taken in the order of events: one that is open holds back those behind it only."""
    session = final_session(text)
    assert not session.push(points("a", ("k", 1, 11), ("k", 3, 11), ("k", 2, 12), ("k", 2, 13)))
    assert emitted(session.advance(14)) == ["m(1, 2) [11, 13]"]


@pytest.mark.parametrize("text", [TIED, TIED.replace("WHERE Y >= prev(Y, X)", "WHERE (Y >= prev(Y, X), sum(Y) < 99)")])
def test_a_match_waits_for_an_earlier_one_at_the_same_time(text: str) -> None:
    session = final_session(text.replace(">=", "<=").replace("TO LAST a", "PAST END"))
    assert not session.push(points("a", ("k", 3, 11), ("k", 1, 11), ("k", 2, 12), ("k", 2, 13)))
    assert not session.advance(14)
    assert emitted(session.push(points("a", ("k", 0, 15)))) + emitted(session.finish()) == ["m(1, 1) [11, 15]"]


def test_what_skip_passes_over_at_the_same_time_holds_nothing_back() -> None:
    """The match that begins with `a` is complete; it comes before the open one of `b`, and passes over it."""
    run = "(b: b(K))* THEN a(K)? THEN (c: a(K)){1,2} PER (K) LONGEST SKIP PAST END"
    session = final_session(f"m(count(b), count(c)) <- {run}.")
    session.push([*points("a", ("k", 0)), *points("b", ("k", 0)), *points("a", ("k", 2), ("k", 3))])
    assert emitted(session.advance(4)) == ["m(0, 2) [0, 3]"]


WINDOWS = {
    "greedy": "((c: a(K, X))+).8 WHERE start(c) - prev(end(c)) <= 5",
    "partial": "((c: a(K, X))+).8 WHERE (start(c) - prev(end(c)) <= 5, sum(X) < 99)",
}


@pytest.mark.parametrize("run", WINDOWS.values(), ids=WINDOWS)
@pytest.mark.parametrize("skip", ["", "SKIP PAST END"])
def test_a_full_window_does_not_wait_for_the_length_of_events(run: str, skip: str) -> None:
    """What follows starts after the end, and there nothing more is within the window, however long events last."""
    session = final_session(f"m(K, count(c)) <- {run} PER (K) LONGEST {skip}.", longest="3s")
    session.push(points("a", ("k", 1, 18)))
    session.push([Event("a", ("k", 2), 23, 26, "long")])
    assert emitted(session.advance(27)) == ["m('k', 2) [18, 26]"]


def test_conditions_leave_no_room_behind_a_long_event() -> None:
    """The next end is less than 2s after the start of an event that lasts 2s: nothing can follow it."""
    run = "(c: b(K))+ WHERE (end(c) - prev(start(c)) < 2, count(c) <= 2) PER (K) LONGEST SKIP PAST END"
    session = final_session(f"m(K, count(c)) <- {run}.", longest="3s")
    session.push([Event("b", ("k",), 8, 10, "long")])
    assert emitted(session.advance(11)) == ["m('k', 1) [8, 10]"]


def test_a_match_waits_for_an_earlier_one_that_may_still_come() -> None:
    """With SKIP, what begins first is taken first, also where it is complete last."""
    text = "m(X, count(b)) <- a(X) THEN (b: b(X, Y))+ THEN c(X) WHERE sum(Y) < 9 PER () LONGEST SKIP PAST END."
    session = final_session(text)
    session.push([*points("a", (1, 0), (2, 1)), *points("b", (1, 0, 2), (2, 0, 3)), *points("c", (2, 4))])
    assert emitted(session.advance(6)) == []
    assert emitted(session.push(points("c", (1, 7)))) + emitted(session.finish()) == ["m(1, 1) [0, 7]"]


TIES = {
    "SKIP": VISITS,
    "merged": VISITS.replace(" SKIP PAST END", ""),
    "sums": VISITS.replace("count(c)", "sum(V)"),
    "two parts": "e(U, count(c), sum(W)) <- (c: click(U, V))+ NEXT click(U, W){2,} PER (U) LONGEST SKIP PAST END.",
}


@pytest.mark.parametrize("text", TIES.values(), ids=TIES)
def test_simultaneous_events_do_not_multiply(text: str) -> None:
    """Pairs of clicks at one time are alternatives; how many there are, the search looks at each of them once."""

    def cost(pairs: int) -> int:
        session = augury.compile(text).session(clock="logical")
        session.push(points("click", *(("u", v, n) for n in range(pairs) for v in range(2))))
        starts = 1 if "SKIP" in text else pairs
        assert len(session.events()) == starts
        return sum(operator["touched"] for operator in session.stats()["operators"])

    # Without SKIP, each first event has a match as long as what follows.
    assert cost(80) < (5 if "SKIP" in text else 20) * cost(20)


def test_many_events_at_one_time() -> None:
    session = augury.compile(VISITS).session(clock="logical")
    session.push(points("click", *(("u", v, n) for n in range(3) for v in range(200))))
    assert [str(event) for event in session.events()] == ["visit('u', 3) [0, 2]"]


@pytest.mark.parametrize("which", ["LONGEST", "SHORTEST"])
def test_a_first_event_that_is_tried_twice_keeps_its_match(which: str) -> None:
    """What comes late lets the search go back behind it more than once."""
    program = augury.compile(f"e(K, X, count(b)) <- (a(K, X) NEXT (b: b(K))+).5 PER (K) {which}.")
    session = program.session(clock="logical")
    session.push(Event("a", ("k", 1), 4, 5, "i0"))
    session.push(Event("a", ("k", 2), 1, 1, "i1"))
    session.push(Event("b", ("k",), 4, 6, "i2"))
    assert not session.push(Event("a", ("k", 2), 0, 1, "i3"))
    assert [str(event) for event in session.events()] == ["e('k', 2, 1) [1, 6]"]


def test_retraction_after_restore_has_a_trace_of_inputs() -> None:
    """A derivation that fell before the snapshot is not in it: its match is unknown, and no memory is read for it."""
    program = augury.compile("l(X) <- (a(X)+).6 PER (X) LONGEST.")
    session = program.session(clock="logical", lateness="0s", revisable="0s", longest="2s")
    for id, start, end in (("i1", 66, 66), ("i2", 67, 69), ("i3", 69, 70)):
        session.push(Event("a", (1,), start, end, id))
    session = program.restore(session.snapshot())
    for operator in session.circuit.operators:
        if isinstance(operator, GreedyMatches):
            operator.paths[:, operator.count_paths :] = -7  # what uninitialised memory may hold
    changes = session.push([Event("a", (1,), 70, 70, "i4"), Event("a", (1,), 70, 70, "i5")])
    traces = changes.to_arrow().column("trace").to_pylist()
    assert traces == [list(change.event.trace) for change in changes]
    assert {id for trace in traces for id in trace} <= {"i1", "i2", "i3", "i4", "i5"}
    assert any(change.op == "retract" for change in changes)
