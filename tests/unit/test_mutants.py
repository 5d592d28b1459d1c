"""Small histories in which one mistake shows: those of `scripts/mutants` that no other test saw, or only by chance."""

from __future__ import annotations

from typing import Any

import pytest

import augury
from augury.core.errors import RunError
from augury.core.model import Event, Revocation
from augury.engine.session import Session


def session(program: str, **settings: Any) -> Session:
    functions = settings.pop("functions", ())
    return augury.compile(program, functions=functions).session(**{"clock": "logical", **settings})


def shown(changes: Any) -> list[str]:
    return [("+ " if c.op == "insert" else "- ") + str(c.event) for c in changes]


def event(type: str, time: int, *args: Any, id: str = "") -> Event:
    return Event(type, args, time, id=id)


IDLE = "idle(X) <- i: login(X), w: extend(i, 10s), while w: not click(X)."


# What is absent, and comes back


def test_of_two_blockers_of_a_pair_the_last_one_revoked_lets_it_appear() -> None:
    one = session("calm <- NOT(c).[a, b].")
    one.push([event("a", 1), event("c", 2, id="first"), event("c", 3, id="second"), event("b", 5)])
    assert not one.revoke("second")
    assert shown(one.revoke("first")) == ["+ calm() [1, 5]"]


def test_of_two_blockers_in_a_window_the_last_one_revoked_lets_it_appear() -> None:
    one = session(IDLE)
    one.push([event("login", 1, 7), event("click", 2, 7, id="first"), event("click", 3, 7, id="second")])
    one.push(event("other", 11))
    assert not one.revoke("first")
    assert shown(one.revoke("second")) == ["+ idle(7) [1, 11]"]


@pytest.mark.parametrize("way", ["prune", "restore"])
def test_a_blocker_is_revoked_after_a_compaction_or_a_restore(way: str) -> None:
    program = augury.compile(IDLE)
    one = program.session(clock="logical")
    one.push([event("login", 1, 7), event("click", 2, 7, id="c"), event("other", 11)])
    if way == "prune":
        one.prune()
    else:
        one = program.restore(one.snapshot())
    assert shown(one.revoke("c")) == ["+ idle(7) [1, 11]"]


# What is chosen and collected


def test_recent_looks_at_all_that_end_together() -> None:
    """The longest of them is the one that lies farthest back."""
    one = session("m(X) <- a(X) SEQ[recent] b.")
    assert shown(one.push([*(Event("a", (i,), i, 9) for i in range(5)), event("b", 10)])) == ["+ m(0) [0, 10]"]


def test_the_last_n_of_many_that_end_together() -> None:
    """The last ones in the order of events are those that came first."""
    one = session("n(sum(Y)) <- i: b, last 2: collect a(Y).")
    assert shown(one.push([*(Event("a", (i,), i, 9) for i in (5, 4, 3, 2, 1, 0)), event("b", 10)])) == [
        "+ n(9) [4, 10]"
    ]


def test_the_last_of_many_that_end_together_where_a_condition_asks_both() -> None:
    """Candidates are looked at in growing portions; what ends with the earliest one of a portion may go on in the next."""
    one = session("n(last(Y)) <- i: b(X), last 1: collect a(Y), Y > X.")
    assert shown(one.push([*(event("a", 9, i) for i in (4, 3, 5, 2, 1)), event("b", 10, 0)])) == ["+ n(5) [9, 10]"]


def test_an_occurrence_gives_an_aggregate_every_value_that_it_binds() -> None:
    window = "i: b, w: extend_backward(i, 10s), while w"
    one = session(f"known(1, 10). known(1, 20). n(sum(V)) <- {window}: collect (a(X) WHERE known(X, V)).")
    assert shown(one.push([event("a", 1, 1), event("b", 11)])) == ["+ n(30) [1, 11]"]


def test_what_is_collected_stays_while_one_row_of_the_occurrence_does() -> None:
    """Both sides of the OR are the same a and b; c takes just one of them away."""
    one = session("n(count()) <- i: (NOT(c).[a, b] OR (a SEQ b)), w: extend_backward(i, 3s), while w: collect d.")
    assert shown(one.push([event("a", 1), event("d", 2), event("b", 4)])) == ["+ n(1) [-2, 4]"]
    assert not one.push(event("c", 3))
    assert [str(e) for e in one.events()] == ["n(1) [-2, 4]"]


# Events that derive each other

LOOP = "p(X) <- a(X). p(X) <- q(X). q(X) <- p(X). q(X) <- b(X)."


def test_events_that_only_derive_each_other_fall() -> None:
    one = session(LOOP)
    one.push(event("a", 1, 1, id="a"))
    assert shown(one.revoke("a")) == ["- p(1) [1, 1]", "- q(1) [1, 1]"]


def test_an_event_that_falls_and_is_derived_again_has_not_changed() -> None:
    one = session(LOOP)
    one.push([event("a", 1, 1, id="a"), event("b", 1, 1, id="b")])
    assert shown(one.revoke("a")) == []
    assert [str(e) for e in one.events()] == ["p(1) [1, 1]", "q(1) [1, 1]"]
    assert shown(one.revoke("b")) == ["- p(1) [1, 1]", "- q(1) [1, 1]"]


def test_rules_that_share_a_pattern_and_look_at_other_parts_of_it() -> None:
    body = "i: a(X), j: b(X), i before j"
    one = session(f"first(start(i)) <- {body}. second(end(j)) <- {body}.")
    found = shown(one.push([event("a", 1, 1), event("b", 4, 1)]))
    assert found == ["+ first(1) [1, 4]", "+ second(4) [1, 4]"]


# Failing and forgetting


@augury.function
def picky(x: float) -> float:
    if x == 13:
        raise ValueError("unlucky")
    return x


def test_a_step_that_fails_leaves_a_blocker_in_place() -> None:
    one = session("calm <- NOT(c).[a, b]. hit(picky(X)) <- d(X).", functions=[picky])
    one.push([event("a", 1), event("c", 2, id="c"), event("b", 3)])
    with pytest.raises(RunError, match="unlucky"):
        one.push([Revocation("c"), event("d", 4, 13)])
    assert not one.events()
    assert shown(one.revoke("c")) == ["+ calm() [1, 3]"]


def test_a_part_is_held_until_no_partner_can_come() -> None:
    one = session("pair(X) <- (a(X) SEQ b(X)).10.", lateness="0s")
    one.push([event("a", 0, 1), event("other", 10)])
    one.prune()
    assert shown(one.push(event("b", 10, 1))) == ["+ pair(1) [0, 10]"]


def test_a_part_is_held_for_what_a_revoked_blocker_lets_appear() -> None:
    one = session("m(X) <- i: a(X), w: extend(i, 10s), while w: not c(X), j: b(X), i before j.", lateness="2s")
    one.push([event("a", 1, 1), event("b", 3, 1), event("c", 8, 1, id="c")])
    one.prune()
    one.revoke("c")
    assert shown(one.advance(11)) == ["+ m(1) [1, 11]"]


def test_what_ends_at_the_frontier_is_late() -> None:
    one = session("hit(X) <- a(X).", lateness="2s")
    one.push(event("other", 9))
    assert not one.push(event("a", 6, 1))
    assert one.stats()["late"] == 1
    assert shown(one.push(event("a", 7, 2))) == ["+ hit(2) [7, 7]"]


def test_a_restored_session_knows_what_was_revoked_before_it_came() -> None:
    program = augury.compile("hit(X) <- a(X).")
    one = program.session(clock="logical")
    one.revoke("x")
    one = program.restore(one.snapshot())
    assert shown(one.push([event("a", 1, 1, id="x"), event("a", 2, 2, id="y")])) == ["+ hit(2) [2, 2]"]


# What is known of the rows that were there, after some of them went


def test_a_late_part_finds_what_came_after_a_compaction() -> None:
    one = session("pair(X) <- (a(X) SEQ b(X)).3.", lateness="5s")
    for time in range(1, 21):
        one.push([event("b", time, 0), event("a", time, 0)])
    one.prune()
    one.push(event("b", 21, 7))
    assert shown(one.push(event("a", 20, 7))) == ["+ pair(7) [20, 21]"]


def test_what_must_be_absent_finds_a_window_that_came_after_a_compaction() -> None:
    one = session(IDLE, lateness="5s")
    for time in range(1, 21):
        one.push([event("login", time, time), event("click", time, 0)])
    one.prune()
    one.push(event("login", 21, 21))
    assert not [change for change in shown(one.push(event("click", 31, 21))) if "idle(21)" in change]
