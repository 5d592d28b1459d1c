"""Ties, duplicates and long chains of rules: what they cost is counted in calls and rows, never in seconds."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import augury
from augury.core.model import Event
from augury.engine.circuit import Circuit
from augury.engine.events import Events
from augury.engine.operators.derive import Derived
from augury.planner.push_constants import push_constants

_COLLECTS = {
    "last": "last 3: collect a(K, V)",
    "list": "w: extend_backward(x, 20s), while w: collect a(K, V)",
    "arg_max": "w: extend_backward(x, 20s), while w: collect a(K, V)",
}


def _rows(copies: int) -> list[dict[str, Any]]:
    rows = [{"type": "ab"[i % 3 == 2], "args": [i % 5, f"v{i % 7}"], "time": i // 4} for i in range(300)]
    return [row for row in rows for _ in range(copies)]


@pytest.mark.parametrize("kind", _COLLECTS)
def test_ties_are_ordered_without_making_events(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    event = Circuit.event
    monkeypatch.setattr(Circuit, "event", lambda self, part: (made.append(part), event(self, part))[1])  # type: ignore[func-returns-value]
    total = {"last": "last(V)", "list": "list(V)", "arg_max": "arg_max(V, V)"}[kind]
    augury.run(f"output r. r(K, {total}) <- x: b(K, _), {_COLLECTS[kind]}.", _rows(3))
    assert not made


@pytest.mark.parametrize("pushed", [False, True])
def test_the_content_of_a_duplicate_is_hashed_once(pushed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []
    keys = Events._content_keys
    monkeypatch.setattr(Events, "_content_keys", lambda self, rows: (hashed.append(len(rows)), keys(self, rows))[1])  # type: ignore[func-returns-value]
    program = augury.compile("output r. r(K, last(V)) <- b(K, _), last 3: collect a(K, V).")
    counts = {}
    for copies in (2, 4):
        hashed.clear()
        rows = _rows(copies)
        if pushed:
            session = program.session()
            for row in rows:
                session.push(row)
        else:
            augury.run(program, rows)
        counts[copies] = sum(hashed)
        assert counts[copies] <= 4 * len(rows)  # hash tables that double hash what they hold again
    assert counts[4] <= 3 * counts[2]


def test_a_chain_of_rules_is_looked_at_rule_by_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    names = push_constants.__globals__
    scans = names["_scans"]
    monkeypatch.setitem(names, "_scans", lambda rule: (looked.append(rule), scans(rule))[1])  # type: ignore[func-returns-value]
    rules = "\n".join(f"e{i + 1}(X) <- e{i}(X)." for i in range(300))
    result = augury.run(f"output e300.\n{rules}", [{"type": "e0", "args": [1], "time": 1}])
    assert [event.type for event in result] == ["e300"]
    assert 0 < len(looked) <= 2 * 300


@pytest.mark.parametrize(
    "condition",
    [
        "abs(end(a) - end(b)) < 30",
        "abs(end(a) - end(b)) <= 30s",
        "abs(end(b) - end(a)) = 30",
        "30 > abs(end(a) - end(b))",
        "30s >= abs(start(a) - end(b))",
        "abs(end(a) - end(b)) - 5 < 25",
        "5s - abs(end(a) - end(b)) > 0s",
    ],
)
def test_an_absolute_difference_bounds_the_state(condition: str) -> None:
    program = augury.compile(f"output r. r(K) <- a: x(K), b: y(K), {condition}.")
    assert not program.warnings
    session = program.session(lateness="0s")
    for time in range(0, 2000, 10):
        session.push({"type": "x", "args": [1], "time": time})
    session.prune()
    assert session.stats()["rows"] < 50


def test_a_lower_bound_on_an_absolute_difference_bounds_nothing() -> None:
    program = augury.compile("output r. r(K) <- a: x(K), b: y(K), abs(end(a) - end(b)) > 30.")
    assert [warning.code for warning in program.warnings] == ["W304"]


@pytest.mark.parametrize("count", [40, 300])  # below and beyond the depth at which rows are traced together
def test_answers_of_a_chain_of_rules_are_traced_rule_by_rule(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[int] = []
    supports = Derived._first_supports

    def counted(self: Derived, rows: Any) -> Any:
        traced.append(len(rows))
        return supports(self, rows)

    monkeypatch.setattr(Derived, "_first_supports", counted)
    rules = "\n".join(f"e{i + 1}(X) <- e{i}(X)." for i in range(count))
    events = [{"type": "e0", "args": [i], "time": i, "id": f"i{i}"} for i in range(3)]
    table = augury.run(rules, events).to_arrow()
    assert len(traced) <= 6 * count
    last = [e for e in augury.run(rules, events) if e.type == f"e{count}"]
    assert table.num_rows == 3 * count and [e.trace for e in last] == [("i0",), ("i1",), ("i2",)]


@pytest.mark.parametrize("count", [10, 12, 13, 14])
def test_many_longest_matches_that_fall_at_once(count: int) -> None:
    """A sweep of fallen matches reads only what is known of moments, not the room behind it."""
    program = augury.compile("e(K, sum(V)) <- a(K, V)+ PER (K) LONGEST.")
    events = [Event("a", ("k", i + j), i) for i in range(count) for j in (0, 1)]
    session = program.session(clock="logical")
    for first in (0, 8):
        session.push(events[first : first + 8] if not first else events[first:])
    assert {e.content for e in session.events()} == {e.content for e in augury.run(program, events, clock="logical")}


@pytest.mark.parametrize("seed", range(6))
def test_equal_events_are_one_in_any_order_of_ends(seed: int) -> None:
    """Derived events are found among the last ones while they come in order, and by their hash from then on."""
    random = Random(seed)
    program = augury.compile("r(X) <- a(X, _). s(X, Y) <- r(X) SEQ r(Y) WHERE X < Y.")
    ties, late = random.choice([3, 60]), random.random() < 0.5
    rows = [Event("a", (random.choice([1, 1.0, "x", n % 50]), n), n // ties, n // ties, id=f"e{n}") for n in range(120)]
    if late:
        rows[40], rows[100] = rows[100], rows[40]
    session, stand = program.session(clock="logical"), []
    first = 0
    while first < len(rows):
        step = random.randrange(1, 50)
        session.push(rows[first : first + step])
        stand += rows[first : first + step]
        first += step
        for event in random.sample(stand, 2):
            session.revoke(event.id)
            stand.remove(event)
        expected = augury.run(program, stand, clock="logical", engine="reference")
        assert [(e.type, e.args, e.end) for e in session.events()] == [(e.type, e.args, e.end) for e in expected]
