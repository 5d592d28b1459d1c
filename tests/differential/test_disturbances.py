"""Sessions that are pruned, saved, restored, corrected and late, after every step: the answer stays the reference's."""

from __future__ import annotations

import os
from random import Random

import pytest

from augury.core.model import Event, Revocation
from augury.engine.operators import throttle
from tests.generators.disturbances import check, failure, report, story
from tests.generators.run_stories import KINDS as RUN_KINDS
from tests.generators.state_programs import KINDS, Story

COUNT = 1500 if os.environ.get("AUGURY_FUZZ") else 15


@pytest.mark.parametrize("kind", [*KINDS, *RUN_KINDS, "mixtures", "typed", "spaseq"])
def test_the_answer_after_every_step_is_that_of_the_reference(kind: str) -> None:
    """Final answers are those that the reference calls final, where a run chooses."""
    answered = 0
    few = kind in ("spaseq", "typed", "runs-alternatives")  # they take longer
    count = COUNT // 2 if few else 3 * COUNT if kind in RUN_KINDS else COUNT
    for seed in range(count):
        one = story(kind, f"test {seed}")
        message = failure(one)
        assert message is None, report(kind, f"test {seed}", one, message)
        answered += bool(check(one)) if seed < 10 else 0
    assert answered


@pytest.mark.parametrize("kind", ["throttles", "throttled"])
def test_throttles_decide_by_columns_as_they_do_one_by_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "_BATCH", 1)
    for seed in range(COUNT):
        one = story(kind, f"columns {seed}")
        message = failure(one)
        assert message is None, report(kind, f"columns {seed}", one, message)


def test_the_order_of_arrival_does_not_matter_to_a_run_that_chooses() -> None:
    """Events of a small history, with ties and intervals, are pushed one by one in random order."""
    for seed in range(2 * COUNT):
        one = story("runs-choices", f"orders {seed}")
        items = [item for action in one.actions if isinstance(action, list) for item in action]
        Random(seed).shuffle(items)
        shuffled = Story(one.text, tuple([item] for item in items))
        message = failure(shuffled)
        assert message is None, report("orders", seed, shuffled, message)


def event(type: str, end: int, *args: object, id: str, start: int | None = None) -> Event:
    return Event(type, args, end if start is None else start, end, id)  # type: ignore[arg-type]


# What random stories have found, made smaller.
FOUND = {
    "revoked after a restore, the only one that was collected": Story(
        "pa(count(V)) <- o: d(1), last 2: collect c(V).",
        ([event("c", 7, "x", id="c")], [event("d", 9, 1, id="d", start=4)], "save", [Revocation("c")]),
    ),
    "the first event is revoked, and another comes late": Story(
        "shop('q').\nt(K) <- w: every(4s), shop(K), while w: not a(K, _).",
        ([event("b", 2, id="x")], [event("b", 8, id="y")], [Revocation("x")], [event("b", 3, id="z")]),
    ),
    "an earlier part of a revoked pair, whose own choice is forgotten": Story(
        "k(X) <- b(X) AND[recent] d.",
        (
            [event("b", 19, 2, id="x")],
            [event("d", 45, id="y")],
            [event("b", 67, 2, id="z")],
            "prune",
            [Revocation("z")],
        ),
    ),
    "an absence asks how facts were at the end of an event long ago": Story(
        "fact on(X) <- c(X).\nfact not on(X) <- d(X).\ne <- NOT(c(_) WHERE on(X)).[a(X), b].",
        (
            [event("a", 16, 1, id="a")], [event("c", 17, 1, id="c")], [event("d", 28, 1, id="d")],
            [event("b", 37, id="x")], "prune", [event("b", 43, id="y")],
        ),
    ),
    "a collect asks how facts were at the end of an event long ago": Story(
        "fact on(X, Y) <- c(X, Y).\nfact not on(X, Y) <- d(X, Y).\ne(count()) <- i: b(K), last 2: collect a(X), on(X, K).",
        (
            [event("c", 16, 1, 1, id="c")], [event("a", 17, 1, id="a")], [event("d", 28, 1, 1, id="d")],
            [event("b", 37, 2, id="x")], "prune", [event("b", 43, 1, id="y")],
        ),
    ),
    "a part is used up by a pair whose own choice depends on pairs that are forgotten": Story(
        "h(X * 2, 'k') <- ((a(X) SEQ[unrestricted] a(_)) AND a(Z)).5 POLICY chronological by Z.",
        (
            [event("a", 10, 1, id="p")], [event("a", 11, 1, id="q")], [event("a", 14, 1, id="r")],
            [event("a", 19, 1, id="s")], [event("a", 20, 2, id="t")], "prune", [event("a", 21, 1, id="u")],
        ),
    ),
    "the same, saved and restored": Story(
        "h(X * 2, 'k') <- ((a(X) SEQ[unrestricted] a(_)) AND a(Z)).5 POLICY chronological by Z.",
        (
            [event("a", 10, 1, id="p")], [event("a", 11, 1, id="q")], [event("a", 14, 1, id="r")],
            [event("a", 19, 1, id="s")], [event("a", 20, 2, id="t")], "prune", "save", "prune", "save", [event("a", 21, 1, id="u")],
        ),
    ),
    "a match that is forgotten lets none of several begin that end together": Story(
        "e(max(end(p)), count(p)) <- (p: u(K, _)){1,2} WHERE start(p) - prev(end(p)) <= 2 PER (K) LONGEST SKIP PAST END.",
        (
            [event("u", 6, "k", 0, id="a")], [event("u", 9, "k", 3, id="b", start=8)], [event("u", 9, "k", 1, id="c", start=8)],
            [event("u", 12, "k", 0, id="d", start=9)], "prune", [event("u", 12, "k", 1, id="e", start=11)],
        ),
    ),
    "an event is several iterations, as facts say, and its match becomes longer": Story(
        "size(1, 1). size(1, 2). e(count(X)) <- u(X)* THEN u(Y)? WHERE (count(distinct X) != 1, size(Y, S)) PER () LONGEST.",
        ([event("u", 13, 1, id="a", start=12)], [event("b", 16, id="b")], "prune", [event("u", 17, 0, id="c")]),
    ),
    "a fact of a run that a later event may still make longer": Story(
        "fact latest mode(K, last(X)) PER (K) <- (v(K, X)+).4 WHERE X >= prev(X) PER (K) LONGEST SKIP PAST END.\n"
        "d(K) <- a(K), mode(K, 1).\nm(K, duration(x)) <- x: holding mode(K, 1).",
        (
            [event("v", 21, "k", 1, id="a")], [event("a", 21, "k", id="b")], 21, "prune", [event("n", 24, "k", id="c")], "prune",
            [event("v", 24, "k", 3, id="d")], [event("n", 30, "k", id="e")],
        ),
    ),
    "a row is kept for a fact when the window is over in which it looked at what held": Story(
        "fact latest up(K) PER () <- v(K).\nd(K, max(duration(x))) <- o: v(K), w: shift_backward(o, 3s), "
        "while w: collect x: holding up(K) or none.",
        ([event("v", 12, "k", id="a", start=11), event("b", 15, id="b", start=14)], "prune", [event("v", 19, "m", id="c")]),
        lateness=1,
    ),
    "a match that an event may still extend, whose window is over by the time it could end": Story(
        "d(K) <- n(K).\nd(K) <- NOT(d(K)).[d(K), d(K)].\ne(K, count(l)) <- ((l: d(K))*).3 PER (K) LONGEST SKIP PAST END.",
        ([event("n", 4, "m", id="a")], [event("v", 9, "m", id="b")]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("lateness", [None, 0, 8])
@pytest.mark.parametrize("emit", ["early", "final"])
def test_failures_of_earlier_fuzzing(name: str, lateness: int | None, emit: str) -> None:
    found = FOUND[name]
    check(Story(found.text, found.actions, found.facts, emit, lateness))  # type: ignore[arg-type]


# The longest run of one key may grow and take the place of a shorter one, long after other parts have come.
REVISED = "l(X) <- c(X).\nl(X) <- a(X)+ PER (X) LONGEST.\n"


@pytest.mark.parametrize(
    "rules",
    [
        "h(X) <- (l(X) SEQ[recent] b).8.",
        "h(X) <- (l(X) AND[recent] b).8.",
        "h(X) <- (NOT[recent](k(_)).[l(X), b]).8.",
        "h(X) <- (l(X) SEQ[chronological] b).8.",
        "h(X) <- (l(X) AND[chronological] b).8.",
        "h(X) <- (NOT[chronological](k(_)).[l(X), b]).8.",
    ],
)
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("saved", [False, True])
def test_a_part_whose_choice_vanishes_chooses_anew_after_a_prune(
    rules: str, held: bool, used: bool, saved: bool
) -> None:
    """The earlier candidate is out of reach of what comes, but not of the part that decides anew.

    `used`: another part has taken it already. `held`: a partial match of another rule keeps it in memory.
    """
    text = REVISED + rules + ("\nm(X) <- (l(X) SEQ d).2 SEQ f." if held else "")
    before = [event("c", 10, 1, id="c"), event("d", 11, id="d"), *([event("b", 12, id="p")] if used else [])]
    after = [event("a", 13, 2, id="x"), event("b", 16, id="q"), event("z", 19, id="z")]
    pushes = [[one] for one in (*before, *after)]
    disturbed = ("prune", "save") if saved else ("prune",)
    assert check(Story(text, (*pushes, *disturbed, [event("a", 20, 2, id="y")]), lateness=0))  # type: ignore[arg-type]


@pytest.mark.parametrize("saved", [False, True])
def test_an_event_stays_whose_certain_derivation_is_forgotten_while_another_one_vanishes(saved: bool) -> None:
    actions = (
        [event("a", 27, 1, id="a"), event("c", 27, 1, id="c")],
        [event("b", 31, id="b")],
        *(("prune", "save") if saved else ("prune",)),
        [event("a", 36, 1, id="x")],
    )
    assert check(Story(REVISED, actions, lateness=0))


def test_a_run_that_loses_its_last_event_comes_back_with_an_earlier_end() -> None:
    text = "l(X) <- c(X).\nl(X) <- (a(X)+).6 PER (X) LONGEST.\ng(Y) <- (NOT[chronological](d).[b, l(Y)]).5."
    assert check(
        Story(
            text,
            (
                [event("b", -2, id="b"), event("a", 0, 2, id="a")],
                [event("c", 1, 1, id="c", start=-1)],
                [event("a", 6, 2, id="x")],
                "prune",
                [Revocation("x")],
            ),
            lateness=4,
        )
    )
