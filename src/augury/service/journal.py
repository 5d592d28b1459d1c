"""The inputs of a service, step by step, on disk before anything comes of them.

    journal/0000000000000001.log    records, each with a length and a checksum; a file begins with the step of its name

What a crash has cut off at the end of the last file was acknowledged to nobody, and is left out. Anything else that does not
fit its checksum is an error.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import orjson

from augury.connectors import Delivery, Poison
from augury.core.errors import RunError
from augury.engine.saved.saving import sync_names

SyncPolicy = Literal["step", "never"]
_FRAME = struct.Struct("<4sIIQ")  # magic, checksum, bytes of the head, bytes of all
_MAGIC = b"AuJ1"
_SEGMENT = 64 << 20  # bytes of a file before the next one begins


@dataclass(frozen=True)
class RuleSwitch:
    """Rules that leave, by their labels in this order, and the text of those that come."""

    removed: tuple[str, ...] = ()
    added: str = ""


@dataclass(frozen=True)
class Step:
    """What a session takes in at once: deliveries with the names of their sources; parts of sources from which something will
    come, and which parts are idle from now on; a promise of the wall clock that nothing more ends at or before a time; rules that come and go; whether nothing more comes.
    """

    number: int
    deliveries: tuple[tuple[str, Delivery], ...] = ()
    parts: tuple[str, ...] = ()
    idle: tuple[str, ...] | None = None
    promise: int | None = None
    rules: RuleSwitch | None = None
    over: bool = False

    def packed(self) -> bytes:
        """The step as a record."""
        pieces: list[bytes] = []
        listed: list[list[Any]] = []
        for name, delivery in self.deliveries:
            poison = [[each.reason, len(each.payload)] for each in delivery.poison]
            listed.append(
                [
                    name, delivery.part, delivery.form, delivery.first, delivery.type, delivery.facts,
                    delivery.position, len(delivery.header), len(delivery.data), poison,
                ]
            )  # fmt: skip
            pieces += [delivery.header, delivery.data, *(each.payload for each in delivery.poison)]
        head: dict[str, Any] = {"number": self.number, "deliveries": listed, "idle": self.idle, "promise": self.promise}
        if self.rules is not None:
            head["rules"] = [self.rules.removed, self.rules.added]
        if self.parts:
            head["parts"] = self.parts
        if self.over:
            head["over"] = True
        header = orjson.dumps(head)
        body = b"".join([header, *pieces])
        return _FRAME.pack(_MAGIC, zlib.crc32(body), len(header), len(body)) + body

    @staticmethod
    def unpacked(body: bytes, head_size: int) -> Step:
        head = orjson.loads(body[:head_size])
        offset = head_size

        def piece(size: int) -> bytes:
            nonlocal offset
            offset += size
            return body[offset - size : offset]

        deliveries: list[tuple[str, Delivery]] = []
        for name, part, form, first, type, facts, position, header_size, data_size, poison in head["deliveries"]:
            header, data = piece(header_size), piece(data_size)
            poisons = tuple(Poison(reason, piece(size)) for reason, size in poison)
            deliveries.append((name, Delivery(data, position, part, form, header, first, type, facts, poisons)))
        rules = RuleSwitch(tuple(head["rules"][0]), head["rules"][1]) if "rules" in head else None
        idle = None if head["idle"] is None else tuple(head["idle"])
        parts = tuple(head.get("parts", ()))
        return Step(head["number"], tuple(deliveries), parts, idle, head["promise"], rules, head.get("over", False))


class Journal:
    """The steps since the last snapshot."""

    def __init__(self, folder: Path, sync: SyncPolicy = "step") -> None:
        self.folder, self._sync = folder, sync
        self._file: BinaryIO | None = None
        self._size = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{folder} cannot be made: {error.strerror}") from None

    def segments(self) -> list[Path]:
        return sorted(self.folder.glob("*.log"))

    def steps(self, after: int) -> Iterator[Step]:
        """The steps behind a number, in order; cuts off the end that a crash has torn."""
        segments = self.segments()
        firsts = [int(path.stem) for path in segments]
        expected: int | None = None
        for index, path in enumerate(segments):
            if index + 1 < len(segments) and firsts[index + 1] <= after + 1:
                continue
            for step in self._records(path, last=index + 1 == len(segments)):
                if expected is not None and step.number != expected:
                    raise RunError(f"the journal {path} has step {step.number} where {expected} belongs")
                expected = step.number + 1
                if step.number > after:
                    yield step

    def _records(self, path: Path, last: bool) -> Iterator[Step]:
        size = path.stat().st_size
        with path.open("rb") as file:
            end = 0
            while end < size:
                frame = file.read(_FRAME.size)
                if len(frame) < _FRAME.size:
                    break
                magic, checksum, head_size, length = _FRAME.unpack(frame)
                whole = magic == _MAGIC and end + _FRAME.size + length <= size
                body = file.read(length) if whole else b""
                if not whole or zlib.crc32(body) != checksum:
                    if last and not _has_record(path, end + 1):
                        break
                    raise RunError(
                        f"the journal {path} is damaged at byte {end:,}",
                        hint="restore the state directory from a copy, or begin with another --state",
                    )
                yield Step.unpacked(body, head_size)
                end += _FRAME.size + length
        if end < size:
            os.truncate(path, end)

    def append(self, step: Step) -> int:
        """Writes a step; it is on disk when this returns, unless the policy says otherwise. How many bytes it has."""
        record = step.packed()
        try:
            if self._file is None or self._size > _SEGMENT:
                self.roll(step.number)
            assert self._file is not None
            self._file.write(record)
            self._file.flush()
            if self._sync == "step":
                os.fdatasync(self._file.fileno())
        except OSError as error:
            raise RunError(f"the journal in {self.folder} cannot be written: {error.strerror}") from None
        self._size += len(record)
        return len(record)

    def roll(self, first: int) -> None:
        """Begins a file whose first step has a number."""
        self.close()
        self._file, self._size = (self.folder / f"{first:016}.log").open("ab"), 0
        sync_names(self.folder)

    def trim(self, through: int) -> None:
        """Removes what a snapshot holds: all steps up to a number, which was the last one."""
        self.close()
        for path in self.segments():
            if int(path.stem) <= through:
                path.unlink()

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.segments())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _has_record(path: Path, start: int) -> bool:
    """Whether a whole record follows: what does not fit before it was not cut off by a crash."""
    data = path.read_bytes()
    begin = data.find(_MAGIC, start)
    while begin >= 0:
        if begin + _FRAME.size <= len(data):
            _, checksum, _, length = _FRAME.unpack_from(data, begin)
            body = data[begin + _FRAME.size : begin + _FRAME.size + length]
            if len(body) == length and zlib.crc32(body) == checksum:
                return True
        begin = data.find(_MAGIC, begin + 1)
    return False
