"""How tables and what is found through them grow: contents stay, room is made once, and nothing is built unasked."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest

import augury
from augury.engine import insertion
from augury.engine.operators.join import JoinOperator
from augury.engine.session import Session
from augury.storage import table
from augury.storage.dictionary import Dictionary
from augury.storage.kernels.hashing import FAR_AWAY
from augury.storage.table import Table, Tables, marked_buckets, too_full

PAIRS = "pair(K, X, Y) <- (a(K, X) SEQ b(K, Y)).100. alone(K, X) <- (NOT(b(K, _)).[a(K, X), c(K)]).100."


def opened(text: str = PAIRS, **options: Any) -> Session:
    return augury.compile(text).session(clock="logical", **options)


def join_of(session: Session) -> JoinOperator:
    return next(o for o in session.circuit.operators if isinstance(o, JoinOperator))


def histories(keys: int, seed: int) -> Mapping[str, pd.DataFrame]:
    """Each key has an a, a b and a c within 90 ticks; the rows of a table are in any order."""
    rng = np.random.default_rng(seed)
    result = {}
    for name, columns in (("a", ("x",)), ("b", ("y",)), ("c", ())):
        order = rng.permutation(keys)
        rows = {"time": order + rng.integers(0, 90, keys), "key": order, **{c: rng.random(keys) for c in columns}}
        result[name] = pd.DataFrame(rows)
    return result


def expected(given: Mapping[str, pd.DataFrame]) -> set[tuple[Any, ...]]:
    """The answers, key by key."""
    a, b, c = (given[name].set_index("key").to_dict("index") for name in "abc")
    found: set[tuple[Any, ...]] = set()
    for key in a:
        t, u, v = a[key]["time"], b[key]["time"], c[key]["time"]
        if t < u:
            found.add(("pair", t, u, (key, a[key]["x"], b[key]["y"])))
        if t < v and not t < u < v:
            found.add(("alone", t, v, (key, a[key]["x"])))
    return found


def answers(session: Session) -> set[tuple[Any, ...]]:
    return {(e.type, e.start, e.end, e.args) for e in session.events()}


def test_one_push_of_whole_tables_is_many_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of portions, and however the rows of a table are ordered."""
    for seed in range(4):
        given = histories(600, seed)
        monkeypatch.setattr(insertion, "APART", Random(seed).choice((1, 4, 64)))
        monkeypatch.setattr(insertion, "PORTION", 64 * (1 + seed))
        whole, parts = opened(), opened()
        whole.push(given)
        for low in range(0, 600, 50):
            parts.push({name: rows[low : low + 50] for name, rows in given.items()})
        assert answers(whole) == answers(parts) == expected(given)


def test_many_keys_are_found() -> None:
    """More than the caches hold, so that buckets are read ahead."""
    keys = FAR_AWAY // 3
    given = histories(keys, 7)
    session = opened()
    session.push(given)
    assert answers(session) == expected(given)
    assert max(len(index.buckets) for index in join_of(session).indexes) >= FAR_AWAY
    again = augury.compile(PAIRS).restore(session.snapshot())
    late = {"a": [{"time": 0, "key": keys, "x": 0.5}], "b": [{"time": 9, "key": keys, "y": 0.25}]}
    for one in (session, again):
        changes = one.push({name: pd.DataFrame(rows) for name, rows in late.items()})
        assert [change.event.args for change in changes] == [(keys, 0.5, 0.25)]


def test_in_order_an_index_is_not_built_before_something_is_late() -> None:
    session = opened("pair(K) <- a(K) SEQ b(K).")
    for time in range(0, 40, 2):
        session.push({"type": "a", "args": [time], "time": time})
        session.push({"type": "b", "args": [time], "time": time + 1})
    left, right = join_of(session).indexes
    assert (left.seen, right.seen) == (20, 0)
    found = session.push({"type": "a", "args": [10], "time": 3})
    assert [change.event.start for change in found] == [3]
    assert right.seen == right.table.n == 20


def test_room_is_made_once_for_a_step_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_BLOCK", 64)
    monkeypatch.setattr(insertion, "PORTION", 256)
    made: list[int] = []
    grow = Table._grow

    def counted(self: Table, size: int) -> None:
        made.append(id(self))
        grow(self, size)

    monkeypatch.setattr(Table, "_grow", counted)
    session = opened("pair(K) <- (a(K, _) SEQ b(K, _)).100.")
    given = {name: rows.sort_values("time") for name, rows in histories(2000, 1).items() if name != "c"}
    session.push({name: rows[:0] for name, rows in given.items()} | {"a": given["a"][:1]})
    made.clear()
    session.push({"a": given["a"][1:], "b": given["b"]})
    inputs = [id(events.out.table) for events in session.circuit.inputs.values()]
    assert sum(made.count(one) for one in inputs) == 2  # of a and of b
    assert max(made.count(one) for one in made) <= 4  # until there is enough to go by
    assert session.circuit.tables.share == 1.0


def test_growing_keeps_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where there is no room for more than what comes."""

    def limited(array: Any, size: int, used: int, fill: Any = None) -> Any:
        if size > 100:
            raise MemoryError
        return grown(array, size, used, fill)

    grown = table.grown
    monkeypatch.setattr(table, "grown", limited)
    rows, tables = np.arange(60).reshape(6, 10), Tables(Dictionary())
    one = Table(1, tables)
    for _ in range(10):
        one.append(rows)
    assert one.data.shape == (6, 100) and one.n == 100
    assert (one.data == np.tile(rows, 10)).all() and one.alive.all()
    with pytest.raises(MemoryError):
        one.append(rows)
    assert one.data.shape == (6, 100) and len(one.alive) == 100


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 1000])
def test_buckets_are_at_most_half_full(count: int) -> None:
    buckets = marked_buckets(count)
    assert len(buckets) >= max(2 * count, 16) and not too_full(buckets, count)
    assert len(buckets) & (len(buckets) - 1) == 0
