"""Sessions that are pruned, saved, restored, corrected and late, after every step: the answer stays the reference's."""

from __future__ import annotations

import os

import pytest

from augury.model import Event, Revocation
from tests.disturbances import check, failure, report
from tests.state_programs import KINDS, Story, story

COUNT = 1500 if os.environ.get("AUGURY_FUZZ") else 15


@pytest.mark.parametrize("kind", [*KINDS, "spaseq"])
def test_the_answer_after_every_step_is_that_of_the_reference(kind: str) -> None:
    answered = 0
    for seed in range(COUNT if kind != "spaseq" else COUNT // 2):  # the reference takes longer for queries
        one = story(kind, f"test {seed}")
        message = failure(one)
        assert message is None, report(kind, f"test {seed}", one, message)
        answered += bool(check(one)) if seed < 10 else 0
    assert answered


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
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("lateness", [None, 8])
@pytest.mark.parametrize("emit", ["early", "final"])
def test_what_was_found(name: str, lateness: int | None, emit: str) -> None:
    found = FOUND[name]
    check(Story(found.text, found.actions, found.facts, emit, lateness))  # type: ignore[arg-type]
