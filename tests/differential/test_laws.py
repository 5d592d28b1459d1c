"""Laws of the operators, where they hold, on random patterns and histories."""

from __future__ import annotations

import itertools
from functools import cache

import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

import augury
from augury.algebra.nodes import Join, bound_vars, walk
from augury.algebra.place import place
from augury.algebra.plan import Plan
from augury.algebra.properties import all_properties
from augury.algebra.relations import ALLEN, holds
from augury.core.clock import SECOND, Clock
from augury.core.errors import Findings, Source
from augury.core.model import Event, HistoryItem, OrderKey, Revocation
from augury.language.checks.times import check_times
from augury.language.rules.read import read
from augury.language.rules.translate import translate
from augury.reference import evaluate, replay
from tests.generators.strategies import TYPES, histories, pattern_texts

CLOCK = Clock()
Answer = set[OrderKey]


@cache
def plan_of(text: str) -> Plan | None:
    """The plan of a program, or None where it is refused; the same patterns come again and again."""
    try:
        return augury.compile(text).plan
    except augury.ProgramError:
        return None


def compiled(text: str) -> Plan:
    """A program, where it is one: random patterns may contradict themselves or leave a variable open."""
    plan = plan_of(text)
    if plan is None:
        reject()
    return plan


def rule(pattern: str, policy: str = "") -> Plan:
    """A rule whose head carries all variables that the pattern binds."""
    names = sorted(bound_vars(compiled(f"e <- {pattern}.").rules[0].body))
    return compiled(f"e({', '.join(names)}) <- {pattern} {f'POLICY {policy}' if policy else ''}.")


def answer(plan: Plan, history: list[HistoryItem] | list[Event]) -> Answer:
    return {e.content for e in evaluate(plan, history, CLOCK).events}


# Operators


@pytest.mark.parametrize("op", ["AND", "PAR", "OR", "EQUALS"])
@given(pattern_texts, pattern_texts, histories())
def test_and_and_or_are_commutative(op: str, x: str, y: str, history: list[Event]) -> None:
    assert answer(rule(f"{x} {op} {y}"), history) == answer(rule(f"{y} {op} {x}"), history)


@pytest.mark.parametrize("op", ["SEQ", "AND", "OR", "EQUALS"])
@given(pattern_texts, pattern_texts, pattern_texts, histories(7))
def test_operators_are_associative(op: str, x: str, y: str, z: str, history: list[Event]) -> None:
    left, right = rule(f"({x} {op} {y}) {op} {z}"), rule(f"{x} {op} ({y} {op} {z})")
    assert answer(left, history) == answer(right, history)


def test_par_is_not_associative() -> None:
    history = [Event("a", (1,), 0, 4), Event("b", (1,), 1, 2), Event("c", (1,), 3, 5)]
    assert len(answer(rule("(a(X) PAR b(Y)) PAR c(Z)"), history)) == 1
    assert answer(rule("a(X) PAR (b(Y) PAR c(Z))"), history) == set()


@given(pattern_texts, pattern_texts, pattern_texts, histories(7))
def test_seq_distributes_over_or(x: str, y: str, z: str, history: list[Event]) -> None:
    together = compiled(f"e <- {x} SEQ ({y} OR {z}).")
    apart = compiled(f"e <- {x} SEQ {y}. e <- {x} SEQ {z}.")
    assert answer(together, history) == answer(apart, history)


@given(pattern_texts, pattern_texts, pattern_texts, histories())
def test_not_takes_away_from_the_sequence(n: str, x: str, y: str, history: list[Event]) -> None:
    sequence = answer(compiled(f"e <- {x} SEQ {y}."), history)
    without = answer(compiled(f"e <- NOT({n}).[{x}, {y}]."), history)
    assert without <= sequence


@given(pattern_texts, st.integers(0, 8), st.integers(0, 8), histories())
def test_nested_windows_keep_the_smaller(x: str, n: int, m: int, history: list[Event]) -> None:
    both = answer(rule(f"(({x}).{n}).{m}"), history)
    assert both == answer(rule(f"({x}).{min(n, m)}"), history)
    assert both == {c for c in answer(rule(x), history) if c[4] - c[3] <= min(n, m)}


@given(st.sampled_from(TYPES), st.integers(2, 4), histories())
def test_a_power_is_a_sequence(t: str, n: int, history: list[Event]) -> None:
    assert answer(rule(f"{t}(X) ^ {n}"), history) == answer(rule(" SEQ ".join([f"{t}(X)"] * n)), history)


@given(st.sampled_from(TYPES), st.integers(2, 3), histories())
def test_a_consecutive_power_is_a_nest_of_nots(t: str, n: int, history: list[Event]) -> None:
    nest = f"{t}(X)"
    for _ in range(n - 1):
        nest = f"NOT({t}(X)).[{nest}, {t}(X)]"
    assert answer(rule(f"{t}(X) ^ {n} CONSECUTIVE"), history) == answer(rule(nest), history)


@pytest.mark.parametrize("op", ["SEQ", "EQUALS", "MEETS", "DURING", "STARTS", "FINISHES"])
@given(pattern_texts, pattern_texts, histories())
def test_both_styles_mean_the_same(op: str, x: str, y: str, history: list[Event]) -> None:
    relation = "before" if op == "SEQ" else op.lower()
    literals = compiled(f"e <- i: {x}, j: {y}, i {relation} j.")
    assert answer(compiled(f"e <- {x} {op} {y}."), history) == answer(literals, history)


@given(pattern_texts, pattern_texts, histories())
def test_literals_side_by_side_are_an_and(x: str, y: str, history: list[Event]) -> None:
    assert answer(compiled(f"e <- {x}, {y}."), history) == answer(compiled(f"e <- {x} AND {y}."), history)


@given(pattern_texts, histories())
def test_conditions_may_be_split(x: str, history: list[Event]) -> None:
    assume("X" in bound_vars(compiled(f"e <- {x}.").rules[0].body))
    one = answer(compiled(f"e(X) <- {x} WHERE (X > 0, X < 2)."), history)
    assert one == answer(compiled(f"e(X) <- ({x} WHERE X > 0) WHERE X < 2."), history)
    assert one == answer(compiled(f"e(X) <- {x}, 0 < X < 2."), history)


@given(st.tuples(st.integers(0, 6), st.integers(1, 4)), st.tuples(st.integers(0, 6), st.integers(1, 4)))
def test_exactly_one_relation_of_allen_holds(i: tuple[int, int], j: tuple[int, int]) -> None:
    x, y = (i[0], i[0] + i[1]), (j[0], j[0] + j[1])
    assert sum(holds(bounds, x, y) for bounds in ALLEN.values()) == 1


INVERSE = {
    "before": "after", "meets": "met_by", "overlaps": "overlapped_by", "starts": "started_by", "during": "contains",
    "finishes": "finished_by", "equals": "equals",
}  # fmt: skip


@pytest.mark.parametrize("relation", INVERSE)
@given(histories())
def test_relations_have_inverses(relation: str, history: list[Event]) -> None:
    one = compiled(f"e(X, Y) <- i: a(X), j: b(Y), i {relation} j.")
    other = compiled(f"e(X, Y) <- i: a(X), j: b(Y), j {INVERSE[relation]} i.")
    assert answer(one, history) == answer(other, history)


# Programs and histories

PROGRAM = """
tc(X, Y) <- a(X) SEQ b(Y).
tc(X, Z) <- tc(X, Y) SEQ b(Z) WHERE Y <= Z.
calm(X) <- NOT(c(_)).[a(X), tc(X, _)].
waits(X) <- o: a(X), w: extend(o, 3s), while w: not b(X).
total(X, count(), sum(Y)) <- o: d(X), w: extend_backward(o, 4s), while w: collect b(Y).
pair(X, Y) <- a(X) SEQ b(Y) POLICY recent.
fifo(X, Y) <- a(X) SEQ b(Y) POLICY chronological.
late(X, avg(Y)) <- o: c(X), last 2: collect b(Y).
"""
PLAN = augury.compile(PROGRAM).plan


@given(pattern_texts, histories())
def test_renaming_variables_changes_nothing(x: str, history: list[Event]) -> None:
    names = {"X": "Alpha", "Y": "X", "Z": "Y"}
    plan = rule(x)
    order = [a.name for a in plan.rules[0].args]  # type: ignore[union-attr]
    head = ", ".join(names[n] for n in order)
    body = "".join(
        names.get(c, c) if not x[i - 1 : i].isalpha() and not x[i + 1 : i + 2].isalpha() else c for i, c in enumerate(x)
    )
    assert answer(compiled(f"e({head}) <- {body}."), history) == answer(plan, history)


@given(histories(), st.integers(0, 7))
def test_an_unrelated_event_changes_nothing(history: list[Event], time: int) -> None:
    more = [*history, Event("other", (1,), time, time, "other")]
    assume(history and time <= max(e.end for e in history))  # the clock is where it was
    assert answer(PLAN, history) == answer(PLAN, more)


@given(histories(), st.integers(0, 7), st.sampled_from(TYPES))
def test_revoking_what_came_last_gives_the_answer_before(history: list[Event], time: int, type: str) -> None:
    now = max((e.end for e in history), default=0) + time
    before = {e.content for e in evaluate(PLAN, history, CLOCK, until=now).events}
    told: list[HistoryItem] = [*history, Event(type, (1,), time, time, "last"), Revocation("last")]
    assert {e.content for e in evaluate(PLAN, told, CLOCK, until=now).events} == before


@given(histories(7), st.randoms(use_true_random=False))
def test_the_order_of_arrival_means_nothing(history: list[Event], random: object) -> None:
    shuffled: list[HistoryItem] = [*history, *history[:2], *([Revocation(history[0].id)] if history else [])]
    plain = answer(PLAN, list(shuffled))
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert answer(PLAN, shuffled) == plain


@given(histories(6))
def test_changes_add_up_to_the_answer(history: list[Event]) -> None:
    told: list[HistoryItem] = [*history, *(Revocation(e.id) for e in history[1:3])]
    changes = replay(PLAN, told, CLOCK).changes
    net: Answer = set()
    for change in changes:
        assert (change.event.content in net) == (change.op == "retract")
        net ^= {change.event.content}
    assert net == answer(PLAN, told)


@given(histories(6), st.integers(0, 3))
def test_final_changes_are_never_taken_back(history: list[Event], lateness: int) -> None:
    ordered = sorted(history, key=lambda e: e.end)
    changes, late, _ = replay(PLAN, ordered, CLOCK, emit="final", lateness=lateness)
    assert not late
    assert all(c.op == "insert" for c in changes)
    assert {c.event.content for c in changes} == answer(PLAN, ordered)


@given(pattern_texts, histories())
def test_placing_conditions_changes_no_unrestricted_answer(x: str, history: list[Event]) -> None:
    names = sorted(bound_vars(compiled(f"e <- {x}.").rules[0].body))
    where = f"WHERE ({', '.join(f'{n} < 2' for n in names)})" if names else ""
    early = compiled(f"e <- {x} {where}.")
    filtered = {c for c in answer(rule(x), history) if all(v[1] < 2 for v in c[2])}
    assert answer(early, history) == {("e", 0, (), c[3], c[4]) for c in filtered}


# Policies


@pytest.mark.parametrize("policy", ["recent", "recent shortest", "chronological", "chronological shortest"])
@given(pattern_texts, histories())
def test_policy_selects_among_unrestricted_answers(policy: str, x: str, history: list[Event]) -> None:
    assert answer(rule(x, policy), history) <= answer(rule(x), history)


@given(histories(types=["a", "b"]))
def test_chronological_uses_each_once(history: list[Event]) -> None:
    plan = compiled("e(X, Y) <- a(X) SEQ b(Y) POLICY chronological.")
    model = evaluate(plan, history, CLOCK)
    used = [p for ways in model.derivations.values() for d in ways for p in d.parts]
    assert len({p.id for p in used}) == len(used)


@given(histories(types=["a", "b"]))
def test_recent_pairs_each_later_part_once(history: list[Event]) -> None:
    plan = compiled("e(X, Y) <- a(X) SEQ b(Y) POLICY recent.")
    model = evaluate(plan, history, CLOCK)
    later = [d.parts[1].id for ways in model.derivations.values() for d in ways]
    assert len(set(later)) == len(later)


# Bounds


@given(pattern_texts, histories())
def test_bounds_hold_of_what_is_detected(x: str, history: list[Event]) -> None:
    """What is kept is enough: no pair of points is further apart than an operator remembers."""
    points = [Event(e.type, e.args, e.end, e.end, e.id) for e in history]
    plan = rule(x)
    found = all_properties(plan)["e"]
    model = evaluate(plan, points, CLOCK)
    longest = max((e.end - e.start for e in model.events), default=0)
    assert found.longest is None or longest <= CLOCK.length(found.longest)
    if found.horizon is not None:
        apart = [
            abs(p.end - q.end)
            for ways in model.derivations.values()
            for d in ways
            for p, q in itertools.combinations(d.parts, 2)
        ]
        top = place(plan.rules[0].body)
        if isinstance(top, Join) and not any(isinstance(n, Join) for n in walk(top) if n is not top):
            assert all(a <= CLOCK.length(found.horizon) for a in apart)


_relations = st.lists(
    st.one_of(
        st.builds(
            lambda i, r, j: f"{i} {r} {j}", st.sampled_from("ijk"), st.sampled_from(list(ALLEN)), st.sampled_from("ijk")
        ),
        st.builds(
            lambda i, j, n: f"{{{i}, {j}}} within {n}s",
            st.sampled_from("ijk"),
            st.sampled_from("ijk"),
            st.integers(0, 5),
        ),
        st.builds(
            lambda i, j, n: f"start({i}) - end({j}) > {n}s",
            st.sampled_from("ijk"),
            st.sampled_from("ijk"),
            st.integers(0, 3),
        ),
    ),
    min_size=2,
    max_size=5,
)


def _timed(relations: list[str]) -> tuple[Plan, bool]:
    """A rule over three labels, checked for its times alone, and whether they contradict one another."""
    findings = Findings()
    text = f"tick 1s. e <- i: a(_), j: b(_), k: c(_), {', '.join(relations)}."
    plan = translate(read(Source("p", text), findings), findings)
    check_times(plan, findings)
    return plan, any(d.code == "E501" for d in findings.items)


@given(_relations, histories(12))
def test_what_contradicts_itself_is_never_detected(relations: list[str], history: list[Event]) -> None:
    plan, contradictory = _timed(relations)
    assume(contradictory)
    assert answer(plan, history) == set()


@given(_relations)
def test_what_does_not_contradict_itself_can_be_detected(relations: list[str]) -> None:
    """The closed bounds give times that meet them all: each point as early as the others allow."""
    plan, contradictory = _timed(relations)
    assume(not contradictory)
    table = all_properties(plan)["e"].table
    limits = {p: [found for q in table.points if (found := table.limit(p, q))] for p in table.points}
    early = {p: min([0, *(found.value for found in limits[p])]) // SECOND for p in table.points}
    history = [
        Event(type, (1,), early[label, "s"], early[label, "e"]) for label, type in zip("ijk", "abc", strict=True)
    ]
    assert len(answer(plan, history)) == 1
