"""Limits while a source is read: unpacked size, length of a line, memory and time."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any

from augury.core.errors import DataError
from augury.core.limits import LINE, NO_LIMITS, UNPACKED, UNPACKED_TIMES, Limits, memory_left

_PIECE = 1 << 23
_LEAST = 100 << 20  # bytes of memory without which the system would end the process


class ReadLimits:
    """The limits of reading one source."""

    def __init__(self, location: str, limits: Limits = NO_LIMITS) -> None:
        self.location, self.limits = location, limits
        self._until = None if limits.time is None else monotonic() + limits.time / 1e6

    def check(self) -> None:
        """Refuses to read on where the time is over, or no memory is left."""
        if self._until is not None and monotonic() > self._until:
            assert self.limits.time is not None
            raise DataError(f"takes longer than {self.limits.time / 1e6:g} s to read", self.location, "--limit time=…")
        left = memory_left()
        if left is not None and left < _LEAST:
            hint = "give it in parts, leave out what no rule reads, or run it on Spark"
            raise DataError("takes more memory to read than there is", self.location, hint)


class BoundedStream:
    """The bytes of a file or of standard input. `packed` is its size, where they are unpacked from it."""

    def __init__(self, stream: Any, bounds: ReadLimits, packed: int | None = None) -> None:
        self.stream, self.bounds = stream, bounds
        self.live = getattr(stream, "live", False)
        self.longest_line = bounds.limits.line or LINE  # bytes of a line at most
        self.count = 0
        self.most = None if packed is None else bounds.limits.unpacked or max(UNPACKED, UNPACKED_TIMES * packed)

    def peek(self, size: int) -> bytes:
        return self.stream.peek(size)  # type: ignore[no-any-return]

    def read(self, size: int = -1, /) -> bytes:
        if size < 0:
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        data = bytes(self.stream.read(size))
        self.count += len(data)
        if self.most is not None and self.count > self.most:
            hint = "is it what you expect? --limit unpacked=… lets it be more"
            raise DataError(f"unpacks to more than {self.most:,} bytes", self.bounds.location, hint)
        if data and not self.live:
            self.bounds.check()
        return data

    def __enter__(self) -> BoundedStream:
        self.stream.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stream.__exit__(kind, error, trace)


def packed_size(path: str, compression: str | None) -> int | None:
    """The bytes of a file that is unpacked as it is read."""
    return None if compression is None or path == "-" else Path(path).stat().st_size
