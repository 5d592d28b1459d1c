"""Whole lines of a stream of bytes, some megabytes at a time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from augury.errors import DataError

SIZE = 1 << 23
_MOST = 1 << 28  # bytes that are searched for the end of a quoted field


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector of garbage, which would look at every one of many new objects; none of them is on a cycle."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Block:
    """Lines, of which the first one is `first` in its file; the line ends are as they were."""

    data: bytes
    first: int


def blocks(stream: Stream, quoted: bool = False, size: int = SIZE) -> Iterator[Block]:
    """The lines of a stream. Where fields may be quoted, a block does not end within quotes.

    A stream that is `live` gives what has come; else all that there is, so that the last line belongs to the block before.
    """
    live = getattr(stream, "live", False)
    rest, first = b"", 1
    data = stream.read(size).removeprefix(b"\xef\xbb\xbf")
    while data:
        more = b"" if live else stream.read(size)
        data = rest + data
        cut = _end_of_lines(data, quoted, size) if more or live else len(data)
        rest = data[cut:]
        if cut:
            yield Block(data[:cut], first)
            first += count_lines(data[:cut])
        data = stream.read(size) if live else more
    if rest:
        yield Block(rest, first)


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


def text_lines(block: Block, place: str, ends: bool = False) -> Iterator[tuple[int, str | DataError]]:
    """The lines one by one, with their numbers, and with their ends where asked; all ways to end a line are one.

    What is not UTF-8 is an error of its line.
    """
    for number, line in enumerate(block.data.splitlines(keepends=ends), block.first):
        try:
            yield number, line.decode()
        except UnicodeDecodeError as error:
            yield number, DataError(f"is not UTF-8 text (byte {error.start} of the line)", f"{place}:{number}")
