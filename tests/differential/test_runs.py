"""Runs: the reference against every way to give events to iterations, and the laws that runs obey."""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import augury
from augury.algebra.properties import finality_delays
from augury.core.clock import SECOND, Clock
from augury.core.errors import Findings, Source
from augury.core.model import Event, order_key
from augury.explain.why import derivation_tree, show_tree
from augury.language.rules.read import read
from augury.language.rules.show import show_module
from augury.reference import evaluate, replay
from augury.sinks.names import attribute_names
from tests.differential.test_differential import compiled
from tests.generators.programs import flat
from tests.generators.run_programs import Spec, answers, example, examples, write_history, write_run_case

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))


def meant(program: str, events: list[Event]) -> set[tuple[object, int, int]]:
    """What the reference says."""
    model = evaluate(augury.compile(program).plan, events, Clock())
    return {(tuple(order_key(a) for a in e.args), e.start, e.end) for e in model.events if e.type == "e"}


def check(spec: Spec, events: list[Event]) -> None:
    if compiled(spec.text) is not None:  # else its times contradict one another
        assert meant(spec.text, events) == answers(spec, events), (spec.text, events)


@given(examples())
def test_the_reference_says_what_all_ways_together_say(drawn: tuple[Spec, list[Event]]) -> None:
    check(*drawn)


@pytest.mark.parametrize("portion", range(40 if FUZZ else 2))
def test_many_random_runs(portion: int) -> None:
    for seed in range(portion * 200, portion * 200 + 200):
        check(*example(seed))


def test_few_random_runs_are_refused_and_many_have_an_answer() -> None:
    specs = [example(f"refused {seed}") for seed in range(100)]
    kept = [(spec, events) for spec, events in specs if compiled(spec.text) is not None]
    assert len(kept) > 95
    assert sum(bool(answers(spec, events)) for spec, events in kept) > 25


# Laws


def law(smaller: str, larger: str, events: list[Event]) -> None:
    assert meant(smaller, events) <= meant(larger, events), (smaller, larger)


histories = st.builds(lambda seed: write_history(Random(seed).randint, 8), st.integers(0, 10**6))
CHAINS = [
    "e(I, X, Y) <- r(I, X) {} q(I, Y).",
    "e(I, X, Y) <- r(I, X) {} r(I, Y) WHERE X < Y PER (I).",
    "e(I, X, Y) <- (r(I, X) {} q(I, Y) {} u(I, Z)).4 WHERE Z > X.",
    "e(I, X, Y) <- r(I, X) {} (q(I, Y) OR u(I, Y)) WHERE Y > 1.",
]


@pytest.mark.parametrize("chain", CHAINS)
@given(events=histories)
def test_what_is_next_is_first_and_what_is_first_is_later(chain: str, events: list[Event]) -> None:
    """`A NEXT B` within `A THEN B` within `A SEQ B`, where parts are single and nothing but the conditions differs."""
    next_one, first, later = (chain.replace("{}", link) for link in ("NEXT", "THEN", "SEQ"))
    if "WHERE" not in chain:
        law(next_one, first, events)
    law(first, later.replace(" PER (I)", ""), events)
    law(next_one, later.replace(" PER (I)", ""), events)


@given(events=histories)
def test_next_without_conditions_on_it_is_first(events: list[Event]) -> None:
    law("e(I, X, Y) <- r(I, X) NEXT q(I, Y) WHERE X > 1.", "e(I, X, Y) <- r(I, X) THEN q(I, Y) WHERE X > 1.", events)


@pytest.mark.parametrize("which", ["LONGEST", "SHORTEST", "LONGEST SKIP PAST END", "LONGEST SKIP TO LAST l", "SHORTEST SKIP PAST END"])  # fmt: skip
@pytest.mark.parametrize("run", ["r(I, X)? NEXT (l: q(I, Y))+", "r(I, X)? THEN (l: q(I, Y)){1,2} THEN r(I, Z)?"])
@given(events=histories)
def test_what_is_chosen_is_a_match(run: str, which: str, events: list[Event]) -> None:
    law(f"e(I, X, count(Y), last(Y)) <- {run} {which}.", f"e(I, X, count(Y), last(Y)) <- {run}.", events)


@given(events=histories)
def test_next_over_one_type_is_consecutive(events: list[Event]) -> None:
    """`P{n}` under NEXT and `P ^ n CONSECUTIVE` are the same where P has no other variables than the key."""
    known = [e for e in events if e.args[0] is not None]
    run, power = "e(I) <- r(I, _){3} PER (I).", "e(I) <- r(I, _) ^ 3 CONSECUTIVE."
    assert meant(run, known) == meant(power, known)


@given(events=histories)
def test_a_run_of_single_parts_after_seq_is_a_sequence(events: list[Event]) -> None:
    known = [e for e in events if e.args[0] is not None]
    sequence = meant("e(I, X, Y) <- r(I, X) SEQ q(I, Y).", known)
    assert meant("e(I, X, Y) <- (u: r(I, X)) SEQ q(I, Y).", known) == sequence
    assert meant("e(I, first(X), Y) <- r(I, X){1} SEQ q(I, Y).", known) == sequence


@given(events=histories)
def test_iterations_that_nothing_asks_for_may_be_left_out(events: list[Event]) -> None:
    known = [e for e in events if e.args[0] is not None]
    many, window = (
        "e(I, X) <- r(I, X) SEQ q(I, _)+ SEQ r(I, _).",
        "e(I, X) <- (r(I, X) SEQ (c: q(I, _))+ SEQ r(I, _)).99 WHERE count(c) > 0.",
    )
    assert meant(many, known) == meant(window, known) == meant(many.replace("+", ""), known)


@given(events=histories)
def test_a_number_of_iterations_is_that_many_parts(events: list[Event]) -> None:
    many = "e(I, first(X), last(X)) <- r(I, X){3} PER (I)."
    single = "e(I, X, Z) <- r(I, X) NEXT r(I, Y) NEXT r(I, Z) PER (I)."
    assert meant(many, events) == meant(single, events)


@given(events=histories, seed=st.integers(0, 10**6))
def test_the_order_of_arrival_does_not_matter(events: list[Event], seed: int) -> None:
    spec, _ = example(seed)
    if compiled(spec.text) is None:
        return
    other = Random(seed).sample(events, len(events))
    assert meant(spec.text, events) == meant(spec.text, other)


# What is said about runs


def test_the_plan_of_a_run() -> None:
    program = augury.compile(
        "dip(S, min(P), count(u)) <- (tick(S, P0) NEXT tick(S, P)+ NEXT (u: tick(S, Q))+).1h "
        "WHERE (P < prev(P, P0), Q > prev(Q, last(P)), P0 > 3, count(P) > 1) LONGEST SKIP TO LAST u."
    )
    text = program.explain()
    plan = text[text.index("  runs as") : text.index("\n\n")]
    assert (
        plan
        == """\
  runs as   10 dip(S, min(P), count(u))
            └─ 9 longest → S, count(u), min(P)
               └─ 8 runs → S, count(u), min(P)
                  └─ 7 partial runs per S, within 1h, longest, skip to the last u, algorithm partials; keeps matches 1h
                     ├─ 6 moments per S; keeps events 1h
                     ├─ 5 scan tick(S, P0), where P0 > 3 → P0, S
                     ├─ NEXT, once or more, each where P < prev(P, P0), then count(P) > 1: 2 tick(S, P)
                     └─ NEXT, once or more, each where Q > prev(Q, last(P)): 2 tick(S, Q)"""
    )
    assert "NEXT, once or more" in program.explain("mermaid")
    assert "runs per S" in program.explain("json")


def test_why_lists_the_iterations_and_folds_many() -> None:
    program = augury.compile("most(I, count(u)) <- a(I) NEXT (u: b(I))+ LONGEST.")
    for count, lines in ((3, 4), (30, 13)):
        events = [Event("a", (1,), 0, 0, "a"), *(Event("b", (1,), n, n, f"b{n}") for n in range(1, count + 1))]
        model = evaluate(program.plan, events, Clock())
        (found,) = model.events
        assert found.trace == ("a", *(f"b{n}" for n in range(1, count + 1)))
        shown = show_tree(derivation_tree(model, found), Clock()).splitlines()[2:]
        assert len(shown) == lines
        assert ("… 19 more" in "".join(shown)) == (count == 30)


def test_the_key_is_what_spark_spreads_by() -> None:
    keyed = augury.compile("e(I, count(X)) <- (a(I) NEXT b(I, X)+).1h.")
    assert "by key: a.argument 1, b.argument 1" in keyed.explain()
    per_nothing = augury.compile("e(I) <- (a(I) NEXT b(I)).1h PER ().")
    assert "by key" not in per_nothing.explain()


# The words of runs


def test_the_words_of_runs_stay_names() -> None:
    program = """
    next(X) <- next(X) NEXT then(X)? THEN per(X) PER ().
    all(X) <- skip(X) SEQ longest(X) SEQ prev(X) AND last(X).
    shortest(X) <- past(X, After, Before) WHERE Before + After > X and X * After > 3.
    """
    assert augury.compile(program).plan.rules[2].type == "shortest"


@pytest.mark.parametrize(
    "text",
    [
        "e(I, count(X)) <- a(I) NEXT b(I, X)+ NEXT c(I) WHERE X > prev(X).",
        "e(I) <- a(I)* THEN (b(I) OR c(I)){2,} SEQ (u: d(I)){2,3} NEXT f(I){4} NEXT g(I)? PER (I).",
        "e(I) <- (a(I) NEXT (u: b(I, X) WHERE X > 3)+).1h PER (I) LONGEST SKIP TO LAST u.",
        "e(I) <- a(I) NEXT (u: b(I, X))+ PER (I) SHORTEST SKIP TO FIRST u.",
        "e <- a+ PER () SHORTEST SKIP PAST END.",
        "e(I) <- x(I), r: a(I) NEXT b(I) PER () ALL.",
    ],
)
def test_the_printer_says_what_was_read(text: str) -> None:
    (module,) = read(Source("", text), findings := Findings())
    assert not findings.items
    assert show_module(module) == text + "\n"


def test_results_of_runs_do_not_clash() -> None:
    program = augury.compile("e(I, count(X)) <- (a(I) NEXT b(I, X)+).1h.")
    assert attribute_names(program.plan, ("e", 2)) == ["i", "arg2"]


def test_long_runs_equal_brute_force() -> None:
    events = [Event("a", (1,), n, n, f"a{n}") for n in range(400)]
    (found,) = meant("e(count(u)) <- (u: a(_))+ WHERE start(u) - prev(end(u)) <= 1 PER () LONGEST SKIP PAST END.", events[:60])  # fmt: skip
    assert found == ((order_key(60),), 0, 59)
    deep = augury.compile("e(I, count(u)) <- s(I) NEXT (u: a(I))+ LONGEST.").plan
    model = evaluate(deep, [Event("s", (1,), -1, -1, "s"), *events], Clock())
    assert [e.args for e in model.events] == [(1, 400)]


def test_how_long_a_chosen_answer_may_change() -> None:
    program = """
    e(I, count(u)) <- (a(I) NEXT (u: b(I))+).5 LONGEST.
    f(I) <- e(I, _).
    g(I, count(u)) <- (a(I) NEXT (u: f(I))+).2 SHORTEST.
    h(I, count(u)) <- a(I) NEXT (u: b(I))+ LONGEST.
    k(I) <- (a(I) NEXT b(I)+).5.
    """
    delays = finality_delays(augury.compile(program).plan)
    assert {name: delay and delay // SECOND for (name, _), delay in delays.items()} == {"e": 5, "f": 5, "g": 7, "h": None, "k": 0}  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_what_was_said_as_final_stays(seed: int) -> None:
    number = Random(f"telling {seed}").randint
    spec, steps = write_run_case(number, 9)
    while (program := compiled(spec.text)) is None:  # refused: its conditions contradict each other
        spec, steps = write_run_case(number, 9)
    plan, history = program.plan, flat(steps)
    told = replay(plan, history, Clock(), emit="final", lateness=3)
    assert all(change.op == "insert" for change in told.changes)
    in_time = [item for item in history if item not in told.late]
    assert {c.event.content for c in told.changes} == {e.content for e in evaluate(plan, in_time, Clock()).events}
