"""What a service keeps in its state directory: a lock, the journal, and the last snapshot.

state/lock                  held by the process that runs
state/snapshot.bin          program, session, progress of the sources and positions of the sinks, after one step
state/journal/              the steps since then
state/dead.jsonl            messages that could not be taken in, where no other address is given
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from augury.core.errors import RunError, SnapshotError, Source
from augury.engine.saved import write_file
from augury.service.journal import Journal, SyncPolicy

_FRAME = struct.Struct("<4sIII")  # magic, version, checksum, bytes of the head
_MAGIC, _VERSION = b"AuSv", 1


@dataclass(frozen=True)
class ServiceSnapshot:
    """All that a service goes on from. `session` is empty before the first event."""

    step: int = 0
    program: tuple[Source, ...] = ()  # that the session was opened with
    session: bytes = b""
    positions: dict[str, Any] = field(default_factory=dict)  # of the sources
    sinks: dict[str, Any] = field(default_factory=dict)  # their positions
    watermarks: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)  # that came before the first event

    def pieces(self) -> Iterator[bytes]:
        sources = [[source.name, source.text, source.language] for source in self.program]
        fields = {name: getattr(self, name) for name in ("step", "positions", "sinks", "watermarks", "counts", "facts")}
        head = orjson.dumps({**fields, "program": sources})
        checksum = zlib.crc32(self.session, zlib.crc32(head))
        yield _FRAME.pack(_MAGIC, _VERSION, checksum, len(head)) + head
        yield self.session

    @staticmethod
    def read(path: Path) -> ServiceSnapshot | None:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}") from None
        magic, version, checksum, size = _FRAME.unpack(data[: _FRAME.size].ljust(_FRAME.size, b"\0"))
        if magic != _MAGIC or version != _VERSION or zlib.crc32(data[_FRAME.size :]) != checksum:
            raise SnapshotError(
                f"{path} is damaged, or was written by another version",
                hint="restore the state directory from a copy, or begin with another --state",
            )
        head = orjson.loads(data[_FRAME.size : _FRAME.size + size])
        program = tuple(Source(*texts) for texts in head.pop("program"))
        return ServiceSnapshot(program=program, session=data[_FRAME.size + size :], **head)


class StateDirectory:
    """The directory of one service."""

    def __init__(self, folder: Path, sync: SyncPolicy = "step") -> None:
        self.folder = folder
        self.journal = Journal(folder / "journal", sync)
        self.saved_bytes = 0

    @property
    def _path(self) -> Path:
        return self.folder / "snapshot.bin"

    def load(self) -> ServiceSnapshot:
        """The last snapshot; an empty one before the first."""
        return ServiceSnapshot.read(self._path) or ServiceSnapshot()

    def save(self, snapshot: ServiceSnapshot) -> None:
        """Writes a snapshot, and forgets the steps that it holds. A crash leaves the one before or this one."""
        pieces = list(snapshot.pieces())
        try:
            write_file(self._path, pieces)
            self.journal.trim(snapshot.step)
        except OSError as error:
            raise RunError(f"{self._path} cannot be written: {error.strerror}") from None
        self.saved_bytes = sum(map(len, pieces))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The state directory, for this process alone; the system frees it however the process ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise RunError(f"the state directory {folder} cannot be used: {error.strerror}") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(lock, 20, 0).decode(errors="replace")
            raise RunError(
                f"another service uses the state directory {folder}: process {holder}",
                hint="stop it, or name another directory with --state",
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(lock)
