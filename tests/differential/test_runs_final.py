"""Runs that choose (LONGEST, SHORTEST, SKIP): whatever comes late, is revoked, pruned or restored, the answers are right.

Random programs with gaps, windows and conditions, over histories with ties and intervals. `final` answers are never
retracted, and at the end they are those of the reference evaluator.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

import augury
from augury import Session
from augury.core.errors import ProgramError, RunError
from augury.core.model import Event, HistoryItem, Revocation
from augury.engine.changes import Changes
from augury.engine.operators.runs.greedy import Greedy
from augury.program import Program
from augury.reference import evaluate
from augury.reference.finality import Finality
from tests.differential.test_differential import CLOCK, Told
from tests.generators.programs import Step

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))
QUANTIFIERS = ("", "", "", "+", "+", "+", "*", "?", "{2}", "{1,2}", "{2,}")


# Random programs


def write_program(chance: Random) -> str:
    """One run under LONGEST or SHORTEST, most often with SKIP."""
    keyed, count = chance.random() < 0.7, chance.choice((1, 1, 2, 2, 3))
    types = [chance.choice("aab") for _ in range(count)]
    quantifiers = [chance.choice(QUANTIFIERS) for _ in range(count)]
    if count == 1 and not quantifiers[0]:
        quantifiers[0] = "+"
    links = [chance.choice(("NEXT", "NEXT", "THEN")) for _ in range(count)]
    key = "K" if keyed else "_"
    parts = [f"(l{i}: {types[i]}({key}, X{i})){quantifiers[i]}" for i in range(count)]
    body = parts[0] + "".join(f" {links[i]} {parts[i]}" for i in range(1, count))
    if chance.random() < 0.3:
        body = f"({body}).{chance.choice((2, 3, 5, 8))}"
    where = [c for i in range(count) for c in _conditions(chance, i, quantifiers)]
    body += f" WHERE ({', '.join(where)})" if where else ""
    firm = [i for i in range(count) if quantifiers[i] not in ("*", "?")]
    skips = ["", "SKIP PAST END", "SKIP PAST END", "SKIP PAST END", *(f"SKIP TO LAST l{i}" for i in firm)]
    head = [*(["K"] if keyed else []), *_results(chance, quantifiers)]
    tail = f"PER ({'K' if keyed else ''}) {chance.choice(('LONGEST', 'LONGEST', 'SHORTEST'))} {chance.choice(skips)}"
    return f"e({', '.join(head)}) <- {body} {tail.rstrip()}."


def _repeats(quantifier: str) -> bool:
    return quantifier not in ("", "?")


def _conditions(chance: Random, i: int, quantifiers: list[str]) -> list[str]:
    singles = [j for j in range(i) if not _repeats(quantifiers[j])]
    length, number = chance.choice((1, 2, 3, 5)), chance.choice((0, 1, 2))
    options = [f"X{i} >= {number}"]
    if _repeats(quantifiers[i]):
        options += [f"start(l{i}) - prev(end(l{i})) <= {length}"] * 4
        options += [
            f"end(l{i}) - prev(start(l{i})) < {length + 1}",
            f"X{i} >= prev(X{i})",
            f"X{i} > prev(X{i}, {number})",
        ]
        options += [f"sum(X{i}) - X{i} <= {number + 2}", f"max(X{i}) <= {number + 1}", f"count(l{i}) <= {number + 1}"]
    for j in singles:
        if _repeats(quantifiers[i]):
            options.append(f"X{i} >= prev(X{i}, X{j})")
        options += [f"start(l{i}) - end(l{j}) <= {length}", f"end(l{i}) - start(l{j}) <= {length + 2}", f"X{i} >= X{j}"]
    return chance.sample(options, min(len(options), chance.choice((0, 0, 1, 1, 2))))


def _results(chance: Random, quantifiers: list[str]) -> list[str]:
    found = []
    for i, quantifier in enumerate(quantifiers):
        if _repeats(quantifier):
            found += chance.sample([f"count(l{i})", f"sum(X{i})", f"last(X{i})"], chance.choice((1, 1, 2)))
        elif chance.random() < 0.6:
            found.append(f"X{i}")
    return found


# Random histories


@dataclass
class Telling:
    """A history in steps, with how late its events come and how long they last at most."""

    steps: list[Step]
    lateness: int
    lasting: int


def write_telling(chance: Random, most: int = 12) -> Telling:
    lengths = chance.choice(((0,), (0,), (0, 0, 0, 1, 2), (0, 2, 3)))
    spread, lateness = chance.choice((2, 4, 8, 14, 30)), chance.choice((0, 0, 1, 3, 6))
    events = []
    for n in range(chance.randint(2, most)):
        start = chance.randint(0, spread)
        type = chance.choice("aaaabbc")
        events.append(
            Event(type, (chance.choice("kkkm"), chance.randint(0, 3)), start, start + chance.choice(lengths), f"i{n}")
        )
    events.sort(key=lambda e: (e.end + chance.choice((0, 0, lateness)), chance.random()))
    items: list[HistoryItem] = list(events)
    for event in events:
        if chance.random() < 0.1:
            at = items.index(event)
            near = [i for i in range(at, len(items)) if max(e.end for e in events[: i + 1]) <= event.end + lateness]
            items.insert(chance.choice(near or [at]) + 1, Revocation(event.id))
    steps: list[Step] = []
    at = 0
    while at < len(items):
        size = chance.choice((1, 1, 1, 2, 4, 20))
        steps.append(items[at : at + size])
        at += size
        left = [item.end for item in items[at:] if isinstance(item, Event)]
        if chance.random() < 0.2 and (bound := min(left, default=spread + 9) - 1) >= 0:
            steps.append(("advance", bound))
    if chance.random() < 0.5:
        last = max(e.end for e in events)
        steps += [("advance", last + extra) for extra in (1, 3, 7, 12)[: chance.randint(1, 4)]]
    return Telling(steps, lateness, chance.choice((0, 0, 2)) + max(e.end - e.start for e in events))


def compiled(chance: Random) -> Program:
    while True:
        try:
            return augury.compile(write_program(chance))
        except ProgramError:
            continue


def text_of(program: Program) -> str:
    return program.plan.rules[0].span.source.text


# What is compared


def tell(session: Session, told: Told, step: Step) -> Changes:
    if isinstance(step, tuple):
        told.advanced = step[1] if told.advanced is None else max(told.advanced, step[1])
        return session.advance(step[1])
    for item in step:
        told.tell(item)
    return session.push(step)


def disturbed(chance: Random, program: Program, session: Session, often: float) -> Session:
    """Prunes the session, or goes on with a restored snapshot of it, or both, or neither."""
    if chance.random() < often:
        session.prune()
    if chance.random() < often:
        session = program.restore(session.snapshot())
    return session


def check_final(seed: object) -> None:
    """Whatever is pruned or restored, final answers are never retracted, and in the end they are the reference's."""
    chance = Random(f"final runs {seed}")
    program, telling = compiled(chance), write_telling(chance)
    given = chance.random() < 0.7
    session = program.session(
        clock="logical",
        emit="final",
        lateness=f"{telling.lateness}s",
        longest=f"{telling.lasting}s" if given else None,
    )
    told, found, often = Told(telling.lateness), set(), chance.choice((0.0, 0.3, 1.0))
    try:
        for step in telling.steps:
            changes = tell(session, told, step)
            assert all(change.op == "insert" for change in changes), (seed, text_of(program))
            found |= {change.event.content for change in changes}
            session = disturbed(chance, program, session, often)
    except RunError as error:
        if not given and "lasts longer" in error.message:
            return  # nobody said how long events last, and this one begins in what is forgotten
        raise
    last = session.finish()
    assert all(change.op == "insert" for change in last), (seed, text_of(program))
    found |= {change.event.content for change in last}
    right = {e.content for e in evaluate(program.plan, told.items, CLOCK, [], told.now).events}
    assert found == right, (seed, text_of(program), "missing", right - found, "too much", found - right)


def check_early(seed: object) -> None:
    """After every step the answer is the reference's, whatever was pruned or restored before."""
    chance = Random(f"early runs {seed}")
    program, telling = compiled(chance), write_telling(chance)
    session = program.session(clock="logical", lateness=f"{telling.lateness}s", longest=f"{telling.lasting}s")
    told, often = Told(telling.lateness), chance.choice((0.0, 0.3, 1.0))
    answer: set[tuple[Any, ...]] = set()
    for step in telling.steps:
        for change in tell(session, told, step):
            (answer.add if change.op == "insert" else answer.remove)(change.event.content)
        right = {e.content for e in evaluate(program.plan, told.items, CLOCK, [], told.now).events}
        assert answer == right, (seed, text_of(program), "missing", right - answer, "too much", answer - right)
        session = disturbed(chance, program, session, often)


def check_finality(seed: object) -> None:
    """Answers are emitted just when the reference evaluator calls them final, by pushes and by the clock alone."""
    chance = Random(f"finality {seed}")
    program, telling = compiled(chance), write_telling(chance, 9)
    session = program.session(
        clock="logical", emit="final", lateness=f"{telling.lateness}s", longest=f"{telling.lasting}s"
    )
    told, found, often = Told(telling.lateness), set(), chance.choice((0.0, 0.3, 1.0))
    for step in telling.steps:
        found |= {change.event.content for change in tell(session, told, step)}
        if told.frontier is not None:
            finality = Finality(program.plan, CLOCK, told.frontier, telling.lasting)
            model = evaluate(program.plan, told.items, CLOCK, [], told.frontier, observe=finality.observe)
            right = {e.content for e in model.events if finality.is_final(e, model)}
            assert right <= found, (seed, text_of(program), "not emitted", right - found)
            assert found <= right, (seed, text_of(program), "emitted too early", found - right)
        session = disturbed(chance, program, session, often)


def check_orders(seed: object) -> None:
    """The answer does not depend on the order of arrival."""
    chance = Random(f"ordered runs {seed}")
    program, telling = compiled(chance), write_telling(chance, 7)
    items = [item for step in telling.steps if isinstance(step, list) for item in step]
    right = {e.content for e in evaluate(program.plan, items, CLOCK).events}
    for _ in range(4):
        chance.shuffle(items)
        session = program.session(clock="logical")
        for item in items:
            session.push(item)
        found = {e.content for e in session.events()}
        assert found == right, (seed, text_of(program), items)


@pytest.mark.parametrize("portion", range(200 if FUZZ else 4))
def test_final_answers_are_those_of_the_reference(portion: int) -> None:
    for seed in range(portion * 40, portion * 40 + 40):
        check_final(seed)


@pytest.mark.parametrize("portion", range(200 if FUZZ else 3))
def test_answers_are_emitted_when_they_are_final(portion: int) -> None:
    for seed in range(portion * 30, portion * 30 + 30):
        check_finality(seed)


@pytest.mark.parametrize("portion", range(200 if FUZZ else 3))
def test_early_answers_are_those_of_the_reference(portion: int) -> None:
    for seed in range(portion * 30, portion * 30 + 30):
        check_early(seed)


@pytest.mark.parametrize("portion", range(200 if FUZZ else 3))
def test_the_order_of_arrival_is_no_matter(portion: int) -> None:
    for seed in range(portion * 30, portion * 30 + 30):
        check_orders(seed)


# What was wrong once


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
        if isinstance(operator, Greedy):
            operator.paths[:, operator.count_paths :] = -7  # what uninitialised memory may hold
    changes = session.push([Event("a", (1,), 70, 70, "i4"), Event("a", (1,), 70, 70, "i5")])
    traces = changes.to_arrow().column("trace").to_pylist()
    assert traces == [list(change.event.trace) for change in changes]
    assert {id for trace in traces for id in trace} <= {"i1", "i2", "i3", "i4", "i5"}
    assert any(change.op == "retract" for change in changes)
