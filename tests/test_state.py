"""The state of a bucket in a stream: what happens when a step fails half-way."""

from __future__ import annotations

from typing import Any

import pytest

import augury
from augury.engine.answers import Changes
from augury.engine.session import Session
from augury.spark import state
from augury.spark.state import Bucket, Told


class Kept:
    """A value, or a map, as the state store keeps it."""

    def __init__(self) -> None:
        self.held: dict[Any, Any] = {}

    def exists(self) -> bool:
        return None in self.held

    def get(self) -> Any:
        return self.held.get(None)

    def update(self, value: Any) -> None:
        self.held[None] = value

    def getValue(self, key: Any) -> Any:
        return self.held[key]

    def updateValue(self, key: Any, value: Any) -> None:
        self.held[key] = value

    def removeKey(self, key: Any) -> None:
        del self.held[key]


class Store:
    def __init__(self) -> None:
        self.head, self.log, self.about = Kept(), Kept(), Kept()
        self.program = augury.compile("pair(X) <- a(X) SEQ b(X).")

    def bucket(self) -> Bucket:
        def tell(session: Session, told: Told) -> Changes:
            return session.push([{"type": p.decode()[0], "args": [1], "time": int(p[1:])} for p in told.payloads])

        def make(late: list[Any]) -> Session:
            return self.program.session(clock="logical")

        def restore(data: bytes, late: list[Any]) -> Session:
            return self.program.restore(data)

        return Bucket(self.head, self.log, make, restore, tell, {"rules": {}}, self.about)

    def take(self, *told: bytes, fails: bool = False) -> int:
        bucket, step = self.bucket(), Told(list(told), None)
        changes = len(bucket.step(step))
        if fails:  # between the step and the moment that it is saved
            raise OSError
        bucket.save(step, None)
        bucket.done()
        return changes


def test_a_step_that_failed_half_way_is_taken_once() -> None:
    store = Store()
    assert store.take(b"a1") == 0
    with pytest.raises(OSError):  # noqa: PT011
        store.take(b"a2", fails=True)
    assert store.take(b"a2") == 0  # the attempt that counts
    assert store.take(b"b3") == 2
    assert store.bucket().live.session.counted == 3  # not a2 twice


def test_a_large_state_is_looked_at_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "LEAST", 0)
    looks = 0
    prune = Session.prune

    def counted(session: Session) -> int:
        nonlocal looks
        looks += 1
        return prune(session)

    monkeypatch.setattr(Session, "prune", counted)
    store = Store()
    store.take(*(b"a%d" % n for n in range(200)))
    for n in range(200, 240):
        store.take(b"a%d" % n)
    assert looks < 10
