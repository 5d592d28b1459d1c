"""A JSON array: its elements are read as those of JSON lines are, one an event.

[{"type": "wind", "args": ["l1", 12.5], "time": 3},
 {"type": "wind", "args": ["l2", 13.5], "time": 4}]
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from typing import Any

import orjson

from augury.core.collector import uncollected
from augury.core.errors import DataError
from augury.sources.problems import Problem
from augury.sources.sheet import Items

_SPACE = re.compile(r"[ \t\r\n]*")
_LONG = re.compile(rb"[0-9]{19}")  # digits of an integer that the fast parser may make a float of
_decode = json.JSONDecoder().raw_decode


def is_array(data: bytes) -> bool:
    """Whether a file that begins with these bytes is a JSON array, and not lines of which the first one has a `[`."""
    start = data.lstrip()
    if not start.startswith(b"["):
        return False
    lines = [line.strip() for line in start.split(b"\n", 4)[:4]]
    first, second, third = ([line for line in lines if line] + [b""] * 3)[:3]
    if first == b"[" or not second:
        return True
    return not _is_json(first) and not (_is_json(second) and not third.startswith(b"]"))


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def read_array(data: bytes, location: str) -> Items:
    """The elements of an array. What is wrong with one ends it, and is a problem of its line."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Items([], location, problems=[(line, DataError("is not UTF-8 text", f"{location}:{line}"))])
    elements = _Elements(text)
    if not _LONG.search(data):
        try:
            with uncollected():
                return Items(orjson.loads(data), location, elements.line)
        except orjson.JSONDecodeError:
            pass
    return Items(
        elements.objects, location, elements.line, [(n, error.at(f"{location}:{n}")) for n, error in elements.problems]
    )


class _Elements:
    """The elements of an array one by one, with the places where they begin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.problems: list[Problem] = []

    @property
    def objects(self) -> list[Any]:
        return [element for element, _ in self._all]

    def line(self, row: int) -> int:
        return self._line_at(self._all[row][1])

    @cached_property
    def _all(self) -> list[tuple[Any, int]]:
        elements: list[tuple[object, int]] = []
        try:
            self._scan(elements)
        except json.JSONDecodeError as error:
            self._problem(f"malformed JSON: {error.msg} at column {error.colno}", error.pos)
        except RecursionError:
            self._problem("malformed JSON: nested too deeply", elements[-1][1] if elements else 0)
        except ValueError as error:
            self._problem(f"malformed JSON: {error}", elements[-1][1] if elements else 0)
        return elements

    def _scan(self, elements: list[tuple[Any, int]]) -> None:
        text = self.text
        end = self._after_space(self._after_space(0) + 1)
        if text[end : end + 1] == "]":
            return self._finish(end)
        while True:
            begin = end
            element, end = _decode(text, begin)
            elements.append((element, begin))
            end = self._after_space(end)
            if text[end : end + 1] == "]":
                return self._finish(end)
            if text[end : end + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' or ']'", text, end)
            end = self._after_space(end + 1)

    def _finish(self, end: int) -> None:
        remaining = self._after_space(end + 1)
        if remaining < len(self.text):
            raise json.JSONDecodeError("Extra data after the array", self.text, remaining)

    def _after_space(self, index: int) -> int:
        space = _SPACE.match(self.text, index)
        return index if space is None else space.end()

    def _problem(self, message: str, index: int) -> None:
        self.problems.append((self._line_at(index), DataError(message)))

    def _line_at(self, index: int) -> int:
        return bisect_right(self._line_starts, index)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *accumulate(len(line) for line in self.text.splitlines(keepends=True))]


def as_lines(data: bytes) -> Iterator[bytes]:
    """The elements of an array as JSON lines; lines as they are. What is no JSON is one line, and refused as such."""
    if not is_array(data):
        yield from data.split(b"\n")
        return
    items = read_array(data, "")
    for element in items.objects:
        yield json.dumps(element, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for _, error in items.problems:
        yield f"[ {error.message}".encode()
