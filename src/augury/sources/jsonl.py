"""JSON lines: one object a line; or one JSON array of them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import orjson

from augury.core.collector import uncollected
from augury.core.errors import DataError
from augury.core.jit import Kernel, expect_work
from augury.sources.blocks import Block, ByteStream, blocks, text_lines
from augury.sources.json_array import is_array, read_array
from augury.sources.lines import columns_of
from augury.sources.problems import Problem
from augury.sources.sheet import Items

_SIZE = 1 << 20  # of a block: its objects should stay in the caches until they are columns
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")  # of characters beyond 16 bits, which are written as two
_LONG = re.compile(rb"(?<![0-9.])[0-9]{19,}")


def read(stream: ByteStream, location: str) -> Iterator[Items]:
    """The objects of a file, and what is wrong with the lines that are no JSON."""
    parts = blocks(stream, size=_SIZE)
    first = next(parts, None)
    if first is None:
        return
    if first.data.lstrip().startswith(b"["):
        first = Block(b"".join([first.data, *_all_lines(parts, location)]), first.first)
        if is_array(first.data):
            yield read_array(first.data, location)
            return
    for block in chain([first], parts):
        if block.too_long:
            yield Items([], location, problems=[(block.first, block.problem(location))])
            continue
        expect_work(block.first + block.data.count(b"\n"))  # these rows are still to come to the engine
        yield _of_one_shape(block, location) or _at_once(block, location) or _one_by_one(block, location)


def _all_lines(parts: Iterable[Block], location: str) -> Iterator[bytes]:
    """The lines of an array; one that is too long cannot be left out of it."""
    for block in parts:
        if block.too_long:
            raise block.problem(location)
        yield block.data


class _Objects(Sequence[Any]):
    """The objects of lines that are known to be well-formed, read on access."""

    def __init__(self, data: bytes, length: int) -> None:
        self.data, self.length = data, length

    @cached_property
    def _all(self) -> list[Any]:
        return _parsed(self.data.rstrip().replace(b"\n", b",")) or []

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, rows: Any) -> Any:
        return self._all[rows]


def _of_one_shape(block: Block, location: str) -> Items | None:
    """Lines that differ in their values alone, as columns. It takes compiled code."""
    if not Kernel.compiled:
        return None
    data, first = block.data if block.data.endswith(b"\n") else block.data + b"\n", block.first
    columns = columns_of(data)
    if columns is None:
        return None
    return Items(_Objects(data, columns.length), location, lambda row: first + row, columns=columns)


def _at_once(block: Block, location: str) -> Items | None:
    """All lines of a block as one list of objects; None where they have to be looked at one by one.

    The parser makes floats of integers beyond 64 bits, so that a block with a long number is read line by line.
    """
    data = block.data
    if data.count(b"\r") != data.count(b"\r\n"):  # each of them ends a line
        return None
    if b"0" * 19 in data.translate(_DIGITS) and _LONG.search(data):
        return None
    data = data.rstrip()
    count, first = data.count(b"\n") + 1 if data else 0, block.first
    objects = _parsed(data.replace(b"\n", b","))
    if objects is not None and len(objects) == count:
        return Items(objects, location, lambda row: first + row)
    numbered = [(n, line) for n, line in enumerate(data.split(b"\n"), first) if line and not line.isspace()]
    if len(numbered) == count:  # no line is empty: one of them is wrong
        return None
    objects = _parsed(b",".join([line for _, line in numbered]))
    if objects is None or len(objects) != len(numbered):
        return None
    return Items(objects, location, lambda row: numbered[row][0])


def _parsed(objects: bytes) -> list[Any] | None:
    try:
        with uncollected():
            return orjson.loads(b"[" + objects + b"]")  # type: ignore[no-any-return]
    except orjson.JSONDecodeError:
        return None


def _one_by_one(block: Block, location: str) -> Items:
    objects: list[Any] = []
    numbers: list[int] = []
    problems: list[Problem] = []
    for number, line in text_lines(block, location):
        if isinstance(line, DataError):
            problems.append((number, line))
        elif line.strip():
            try:
                objects.append(parse(line))
                numbers.append(number)
            except DataError as error:
                problems.append((number, DataError(error.message, f"{location}:{number}", error.hint)))
    return Items(objects, location, numbers.__getitem__, problems)


def parse(line: str) -> Any:
    """One line."""
    try:
        result = json.loads(line)
        if _ESCAPED.search(line):
            json.dumps(result, ensure_ascii=False).encode()
        return result
    except json.JSONDecodeError as error:
        raise DataError(f"malformed JSON: {error.msg} at column {error.colno}", hint="one JSON object a line") from None
    except RecursionError:
        raise DataError("malformed JSON: nested too deeply") from None
    except UnicodeEncodeError:
        raise DataError("malformed JSON: half of a surrogate pair, which is no character") from None
    except ValueError:
        raise DataError(f"malformed JSON: a number of more than {sys.get_int_max_str_digits()} digits") from None
