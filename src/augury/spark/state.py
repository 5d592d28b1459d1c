"""The state of a bucket in a stream: a snapshot of its session, and a log of the steps since.

A step writes what came, not what the session holds; a snapshot is written once the log has grown as large as the
last one. A worker keeps the sessions it has run. It brings one that is behind up to date with the rest of the log, so
that a step costs what its events cost, whichever worker a bucket comes to. What is read back is checked like a snapshot.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

from augury.algebra.plan import Predicate
from augury.core.errors import RunError, SnapshotError
from augury.core.model import Event
from augury.engine.changes import Changes
from augury.engine.saved import CorruptSnapshot, not_whole, packed, require, unpacked
from augury.engine.session import Session

PIECE = 4 << 20  # bytes of a snapshot that are kept under one key
LEAST = 1 << 20  # bytes of log that are not worth a snapshot
ENTRIES = 1000  # steps that are replayed at most
KEPT = 4_000_000  # rows of state that a worker keeps in sessions
_STEP, _HEAD = "step of a stream", "bucket of a stream"


class Value(Protocol):
    def exists(self) -> bool: ...
    def get(self) -> Any: ...
    def update(self, value: object) -> None: ...


class MapStateStore(Protocol):
    def getValue(self, key: object) -> Any: ...
    def updateValue(self, key: object, value: object) -> None: ...
    def removeKey(self, key: object) -> None: ...


@dataclass
class BucketHeader:
    """Where a bucket stands: the last step, the pieces of its snapshot, the steps since, and its timer.

    `name` is its own among all buckets of all streams, and the token that of the last step among all attempts at it.
    """

    name: str
    token: str = ""
    steps: int = 0
    first: int = 0
    pieces: int = 0
    snapshot_bytes: int = 0
    log_bytes: int = 0
    timer: int | None = None


@dataclass
class BucketStep:
    """What a micro-batch brings to a bucket: its packages, and the frontier."""

    payloads: list[bytes]
    frontier: int | None
    stored: bool = False  # whether it was read from a checkpoint
    ahead: list[Event] = field(default_factory=list)  # what was too far in the future to be taken in


@dataclass
class CachedSession:
    """A session in a worker, and the step that it has taken last."""

    session: Session
    token: str
    steps: int
    late: list[Any] = field(default_factory=list)
    errors: dict[tuple[str, str], int] = field(default_factory=dict)
    rejected: int = 0
    repeats: Counter[Predicate | None] = field(default_factory=Counter)
    fingerprint: dict[str, Any] = field(default_factory=dict)  # of what it runs


_CACHE: OrderedDict[str, CachedSession] = OrderedDict()  # of this worker, the last used last


class Host(Protocol):
    """Whoever makes sessions and feeds them. `version` is an earlier one of the program, None the one that runs."""

    def version(self, program: dict[str, Any]) -> int | None:
        """The earlier version whose fingerprint this is."""

    def session(self, late: list[Any], snapshot: bytes | None, version: int | None = None) -> Session:
        """A new session, or that of a snapshot; what comes too late is put into `late`."""

    def feed(self, session: Session, step: BucketStep, version: int | None = None) -> Changes:
        """Lets a session take a step."""

    def upgrade(self, session: Session, version: int) -> None:
        """Lets a session of an earlier version go on with the program that runs."""


class Bucket:
    """The state of one bucket in one step of a stream."""

    def __init__(
        self, head: Value, log: MapStateStore, program: Value, host: Host, fingerprint: dict[str, Any]
    ) -> None:
        """`head`, `log` and `program` are what Spark's state store keeps of the bucket."""
        self.head_state, self.log, self.program, self.host = head, log, program, host
        self.fingerprint = fingerprint
        self.upgraded = False  # whether the state was that of an earlier version of the program
        saved_header = head.get() if head.exists() else None
        if saved_header is None:
            program.update((json.dumps(fingerprint).encode(),))
        with _of_a_checkpoint():
            self.head = (
                _head(bytes(saved_header[0])) if saved_header is not None else BucketHeader(secrets.token_hex(8))
            )
            self.cached = self._session()

    def _session(self) -> CachedSession:
        """The session as of the last step: as this worker has it, brought up to date, or from the state.

        The worker lets go of it until the step is `done`: a session whose step failed half-way is not resumed.
        """
        head, cached = self.head, _CACHE.pop(self.head.name, None)
        if cached is not None and cached.fingerprint != self.fingerprint:  # of a program that ran here before
            cached = None
        if (
            cached is not None
            and (cached.token, cached.steps) != (head.token, head.steps)
            and not self._catch_up(cached)
        ):
            cached = None
        if cached is None:
            cached = self._restored(self._version() if head.steps else None)
        return cached

    def _version(self) -> int | None:
        """The version of the program that the state is of: None where it is the one that runs."""
        saved = self.program.get()
        program = _json(bytes(saved[0])) if saved is not None else {}
        version = None if program == self.fingerprint else self.host.version(program)
        if version is None:
            check_program(program, self.fingerprint)
        return version

    def _catch_up(self, cached: CachedSession) -> bool:
        """Takes in the steps since; not where the log does not reach back to it, or another attempt took that step."""
        head = self.head
        if not head.first <= cached.steps < head.steps:
            return False
        for n in range(cached.steps, head.steps):
            before, token, step = self._entry(n)
            if before != cached.token:
                return False
            self._replay(cached, step)
            cached.token, cached.steps = token, n + 1
        return cached.token == head.token

    def _restored(self, version: int | None) -> CachedSession:
        head, late = self.head, list[Any]()
        snapshot = b"".join(self._kept(-1 - n) for n in range(head.pieces)) if head.pieces else None
        session = self.host.session(late, snapshot, version)
        cached = CachedSession(session, "", head.first, late, fingerprint=self.fingerprint)
        know(cached)
        for n in range(head.first, head.steps):
            self._replay(cached, self._entry(n)[2], version)
        if version is not None:
            self.host.upgrade(cached.session, version)
            self.upgraded = True
        cached.token, cached.steps = head.token, head.steps
        return cached

    def _replay(self, cached: CachedSession, step: BucketStep, version: int | None = None) -> None:
        self.host.feed(cached.session, step, version)
        cached.late.clear()
        know(cached)

    def _entry(self, n: int) -> tuple[str, str, BucketStep]:
        try:
            before, token, payloads, frontier = unpacked(_STEP, self._kept(n))[1]
            require(isinstance(before, str) and isinstance(token, str), "tokens that are none")
            require(
                isinstance(payloads, list) and all(isinstance(payload, bytes) for payload in payloads), "no packages"
            )
            require(frontier is None or type(frontier) is int, "an invalid time")
        except (CorruptSnapshot, ValueError, TypeError) as error:
            raise not_whole(str(error)) from None
        return before, token, BucketStep(payloads, frontier, stored=True)

    def _kept(self, n: int) -> bytes:
        result = self.log.getValue((n,))
        if result is None:
            raise not_whole("a step or a piece is missing")
        return bytes(result[0])

    def step(self, step: BucketStep) -> Changes:
        return self.host.feed(self.cached.session, step)

    def done(self) -> None:
        """The session is as the state says."""
        _CACHE[self.head.name] = self.cached
        _trim()

    def save(self, step: BucketStep, timer: int | None) -> None:
        """The step is taken: it goes to the log, and now and then all becomes a snapshot."""
        head, cached = self.head, self.cached
        before, head.token = head.token, secrets.token_hex(8)
        entry = packed(_STEP, [before, head.token, step.payloads, step.frontier])
        head.log_bytes += len(entry)
        if self.upgraded:  # the steps of the log are those of the earlier version
            self.program.update((json.dumps(self.fingerprint).encode(),))
        if self.upgraded or self._worth_a_snapshot():
            self._snapshot()
        else:
            self.log.updateValue((head.steps,), (entry,))
            head.steps += 1
        self.keep_timer(timer)
        cached.token, cached.steps = head.token, head.steps

    def _worth_a_snapshot(self) -> bool:
        """Whether the log is longer than all that the session holds, or has too many steps to replay."""
        head, session = self.head, self.cached.session
        if head.steps - head.first >= ENTRIES:
            return True
        if head.log_bytes <= max(LEAST, head.snapshot_bytes):
            return False
        session.prune()
        size = sum(o.out.table.data[:, 0].nbytes * o.out.table.n for o in session.circuit.operators)
        if head.log_bytes > size:
            return True
        head.snapshot_bytes = size  # to look again, which costs what the session holds, the log must outgrow it
        return False

    def keep_timer(self, timer: int | None) -> None:
        """Nothing but the timer has changed."""
        self.head.timer = timer
        self.head_state.update((packed(_HEAD, dict(self.head.__dict__)),))

    def _snapshot(self) -> None:
        head, session = self.head, self.cached.session
        session.prune()
        data = session.snapshot()
        pieces = [data[start : start + PIECE] for start in range(0, len(data), PIECE)]
        for n, piece in enumerate(pieces):
            self.log.updateValue((-1 - n,), (piece,))
        for n in range(len(pieces), head.pieces):
            self.log.removeKey((-1 - n,))
        for n in range(head.first, head.steps):
            self.log.removeKey((n,))
        head.steps += 1
        head.first, head.pieces, head.snapshot_bytes, head.log_bytes = head.steps, len(pieces), len(data), 0


def _trim() -> None:
    """Lets go of sessions that were not used for longest, where there are too many rows of state."""
    rows = sum(cached.session.circuit.tables.rows for cached in _CACHE.values())
    while rows > KEPT and len(_CACHE) > 1:
        _, cached = _CACHE.popitem(last=False)
        rows -= cached.session.circuit.tables.rows


def know(cached: CachedSession) -> None:
    """What the session has reported is no news."""
    session = cached.session
    cached.errors, cached.rejected, cached.repeats = dict(session.errors), len(session.rejected), session.repeats.copy()


@contextmanager
def _of_a_checkpoint() -> Iterator[None]:
    """An error of saved state, as an error of the checkpoint."""
    try:
        yield
    except SnapshotError as error:
        raise SnapshotError(
            f"the checkpoint cannot be resumed: {error.given}",
            hint="start with a new checkpoint directory and all events, or put a copy of the old one in its place",
            code=error.code,
        ) from None


def _json(data: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(data)
        require(isinstance(parsed, dict), "it does not say where it stands")
    except (CorruptSnapshot, ValueError, RecursionError) as error:
        raise not_whole(str(error)) from None
    return parsed  # type: ignore[no-any-return]


def _head(data: bytes) -> BucketHeader:
    """Where a bucket stands, as it was saved."""
    result = unpacked(_HEAD, data)[1]
    if not isinstance(result, dict):
        raise not_whole("it does not say where it stands")
    texts, timer = (result.get("name"), result.get("token")), result.get("timer")
    numbers = [result.get(item.name) for item in fields(BucketHeader) if item.type == "int"]
    if (
        result.keys() != {item.name for item in fields(BucketHeader)}
        or not all(isinstance(text, str) for text in texts)
        or not all(type(number) is int and number >= 0 for number in numbers)
        or not (timer is None or type(timer) is int)
    ):
        raise not_whole("it does not say where it stands")
    return BucketHeader(**result)


NEW = "start with a new checkpoint directory, or run the program that it was made with"


def check_program(old: dict[str, Any], new: dict[str, Any], hint: str = NEW) -> None:
    """Refuses a checkpoint of another program, and names the difference."""
    if old == new:
        return
    raise RunError(
        "the checkpoint is of another program: " + "; ".join(differences(old, new)),
        hint=hint,
    )


def differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """What has changed between two descriptions of a stream."""
    before, after = old.get("rules", {}), new.get("rules", {})
    for label in sorted({**before, **after}):
        if label not in after:
            yield f"rule `{label}` is gone"
        elif label not in before:
            yield f"rule `{label}` is new"
        elif before[label] != after[label]:
            yield f"rule `{label}` was `{before[label]}`, is `{after[label]}`"
    for name in sorted({*old, *new} - {"rules"}):
        if old.get(name) != new.get(name):
            yield f"{name.replace('_', ' ')} was {old.get(name)}, is {new.get(name)}"
