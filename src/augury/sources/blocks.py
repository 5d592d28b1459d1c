"""Whole lines of a stream of bytes, some megabytes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from augury.core.errors import DataError
from augury.core.limits import LINE

SIZE = 1 << 23
_MOST = 1 << 28  # bytes that are searched for the end of a quoted field


class ByteStream(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Block:
    """Lines, of which the first one is `first` in its file; the line ends are as they were.

    `too_long` is how many bytes a line may have, where the line at `first` has more; then there is no data.
    """

    data: bytes
    first: int
    too_long: int = 0

    def problem(self, location: str) -> DataError:
        """The error for a line that is too long."""
        hint = "does the file have other ends of lines? --limit line=… lets it be longer"
        return DataError(f"a line of more than {self.too_long:,} bytes", f"{location}:{self.first}", hint)


def blocks(stream: ByteStream, quoted: bool = False, size: int = SIZE) -> Iterator[Block]:
    """The lines of a stream. Where fields may be quoted, a block does not end within quotes.

    A stream that is `live` gives what has come; else all that there is, so that the last line belongs to the block before.
    A line that is too long is a block without data, and what is left of it is passed over.
    """
    live, most = getattr(stream, "live", False), getattr(stream, "longest_line", LINE)
    size = min(size, most)
    held: list[bytes] = []  # the beginning of a line
    first, length = 1, 0
    data = stream.read(size).removeprefix(b"\xef\xbb\xbf")
    while data:
        more = b"" if live else stream.read(size)
        if (more or live) and b"\n" not in data and b"\r" not in data:
            held.append(data)
            length += len(data)
            cut = 0
        else:
            data = b"".join([*held, data])
            cut = _end_of_lines(data, quoted, size) if more or live else len(data)
            held, length = [data[cut:]], len(data) - cut
        if cut:
            yield from _within(Block(data[:cut], first), most, quoted)
            first += count_lines(data[:cut])
        elif length > (max(most, _MOST) if quoted and any(b'"' in piece for piece in held) else most):
            yield Block(b"", first, most)
            whole = b"".join(held)
            first += count_lines(whole[:most]) + 1
            more = _after_line(stream, whole[most:] + more)
            held, length = [], 0
        data = stream.read(size) if live and not more else more
    if length:
        yield from _within(Block(b"".join(held), first), most, quoted)


def _within(block: Block, most: int, quoted: bool) -> Iterator[Block]:
    """The lines of a block, those that are too long by themselves. What is quoted may have lines in it, and is left."""
    data = block.data
    if len(data) <= most or (quoted and b'"' in data):
        yield block
        return
    start = 0
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    bounds = np.r_[0, ends + 1, len(data)]
    for number in np.flatnonzero(np.diff(np.r_[bounds[:-1], len(data) + 1]) - 1 > most).tolist():
        before = int(bounds[number])
        if before > start:
            yield Block(data[start:before], block.first + int(np.searchsorted(ends, start)))
        yield Block(b"", block.first + number, most)
        start = int(bounds[number + 1])
    if start < len(data):
        yield Block(data[start:], block.first + int(np.searchsorted(ends, start)))


def _after_line(stream: ByteStream, data: bytes) -> bytes:
    """The bytes after the end of a line that is skipped; none where it is the last one."""
    while data and (end := data.find(b"\n") + 1) == 0:
        data = stream.read(SIZE)
    return data[end:] or stream.read(SIZE) if data else b""


def count_lines(data: bytes) -> int:
    """How many lines end; all ways to end one are one."""
    alone = data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else 0
    return data.count(b"\n") + alone


def _end_of_lines(data: bytes, quoted: bool, size: int) -> int:
    """Where the last whole line ends; 0 where there is none."""
    end = data.rfind(b"\n") + 1
    if not end and len(data) > size:
        end = data.rfind(b"\r", 0, len(data) - 1) + 1
    if not quoted or b'"' not in data[:end]:
        return end
    if data.count(b'"', 0, end) % 2 == 0 or len(data) > _MOST:
        return end
    array = np.frombuffer(data, np.uint8, end)
    lines = np.flatnonzero(array == 10)
    quotes = np.flatnonzero(array == 34)
    outside = lines[np.searchsorted(quotes, lines) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def text_lines(block: Block, location: str, ends: bool = False) -> Iterator[tuple[int, str | DataError]]:
    """The lines one by one, with their numbers, and with their ends where asked; all ways to end a line are one.

    What is not UTF-8 is an error of its line.
    """
    for number, line in enumerate(block.data.splitlines(keepends=ends), block.first):
        try:
            yield number, line.decode()
        except UnicodeDecodeError as error:
            yield number, DataError(f"is not UTF-8 text (byte {error.start} of the line)", f"{location}:{number}")
