"""The state of a bucket in a stream: what happens when a step fails half-way."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from typing import Any

import pytest

import augury
from augury.core.errors import SnapshotError
from augury.engine.changes import Changes
from augury.engine.saved import packed
from augury.engine.session import Session
from augury.spark import state
from augury.spark.state import Bucket, BucketStep


class KeptState:
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
        self.head, self.log, self.about = KeptState(), KeptState(), KeptState()
        self.program = augury.compile("pair(X) <- a(X) SEQ b(X).")

    def bucket(self) -> Bucket:
        return Bucket(self.head, self.log, self.about, self, {"rules": {}})

    def version(self, program: dict[str, Any]) -> int | None:
        return None

    def upgrade(self, session: Session, version: int) -> None:
        raise AssertionError("there is one version")

    def session(self, late: list[Any], snapshot: bytes | None, version: int | None = None) -> Session:
        return self.program.session(clock="logical") if snapshot is None else self.program.restore(snapshot)

    def feed(self, session: Session, step: BucketStep, version: int | None = None) -> Changes:
        return session.push([{"type": p.decode()[0], "args": [1], "time": int(p[1:])} for p in step.payloads])

    def take(self, *told: bytes, fails: bool = False) -> int:
        bucket, step = self.bucket(), BucketStep(list(told), None)
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
    assert store.bucket().cached.session.counted == 3  # not a2 twice


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


def test_whatever_is_wrong_with_a_checkpoint_is_said() -> None:
    def break_bit(kept: KeptState, key: Any) -> None:
        data = bytearray(kept.held[key][0])
        data[len(data) // 2] ^= 4
        kept.held[key] = (bytes(data),)

    def missing(kept: KeptState, key: Any) -> None:
        kept.held[key] = None

    def old(kept: KeptState, key: Any) -> None:
        kept.held[key] = (b"\x80\x04\x95" + b"x" * 100,)

    def said(what: str, data: bytes) -> Any:
        def change(kept: KeptState, key: Any) -> None:
            kept.held[key] = (data,)

        return change

    wrong: list[tuple[Any, Any, str]] = [
        (break_bit, (0,), "S101"), (missing, (1,), "S101"), (old, (0,), "S102"), (said("step", b""), (0,), "S101"),
        (said("kind", packed("session", [1])), (0,), "S101"), (said("form", packed("step of a stream", [1])), (0,), "S101"),
        (said("types", packed("step of a stream", ["", 1, [b""], None])), (0,), "S101"),
        (said("head", b"{"), None, "S101"), (said("head", packed("bucket of a stream", [])), None, "S101"),
        (said("head", packed("bucket of a stream", {"name": 5})), None, "S101"), (break_bit, None, "S101"),
    ]  # fmt: skip
    for change, key, code in wrong:
        store = Store()
        store.take(b"a1")
        store.take(b"b2")
        change(store.head if key is None else store.log, key)
        state._CACHE.clear()
        with pytest.raises(SnapshotError, match="the checkpoint cannot be resumed") as failure:
            store.bucket()
        assert failure.value.code == code and "new checkpoint" in failure.value.hint


def bit_flips(count: int, seed: int = 0) -> Iterator[str]:
    """What is said of a checkpoint in which one bit is another: of where it stands, of a step, or of a snapshot."""
    chance, entries = random.Random(seed), state.ENTRIES
    for n in range(count):
        state._CACHE.clear()
        store = Store()
        state.ENTRIES = 2 if n % 2 else entries
        for k in range(3):
            store.take(b"a%d" % k)
        state.ENTRIES = entries
        places = [(kept, key) for kept in (store.head, store.log) for key in kept.held]
        kept, key = chance.choice(places)
        data = bytearray(kept.held[key][0])
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        kept.held[key] = (bytes(data),)
        state._CACHE.clear()
        with pytest.raises(SnapshotError, match="the checkpoint cannot be resumed") as failure:
            store.bucket()
        yield failure.value.code


def test_a_flipped_bit_of_a_checkpoint_is_an_error() -> None:
    assert set(bit_flips(60)) <= {"S101", "S102"}


def test_a_snapshot_in_a_checkpoint_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "ENTRIES", 1)
    store = Store()
    for n in range(4):
        store.take(b"a%d" % n)
    state._CACHE.clear()
    assert store.take(b"b9") == 4
    assert (-1,) in store.log.held
    piece = store.log.held[(-1,)][0]
    store.log.held[(-1,)] = (piece[:-9],)
    state._CACHE.clear()
    with pytest.raises(SnapshotError, match="the checkpoint cannot be resumed"):
        store.bucket()


def test_errors_travel_from_workers() -> None:
    error = SnapshotError("broken", "mend it", "S102")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "broken [S102]\n  hint: mend it" and again.code == "S102"
