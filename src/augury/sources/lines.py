"""JSON lines that differ only in their values: a kernel extracts the values without creating objects.

{"type": "wind", "args": ["l1", 12.5], "time": 3}      the literals {"type": "  ", "args": ["  ",  ], "time":  }
{"type": "wind", "args": ["l2", 13.5], "time": 4}      and between them the values of a text, a text, a float and an int

A line that is any different (other keys, another order or spacing, null, an escape of a character by its number, an int
where others have floats) is for the parser of JSON, with all lines around it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from augury.core.arrays import Array, Bytes, Integers
from augury.core.jit import Kernel
from augury.sources.arrow_cells import ArrowCells
from augury.sources.cells import Cells
from augury.sources.python_cells import ColumnCells

MAKES_NO_ARRAYS = True
_TOKEN = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*"|-?[0-9][0-9.eE+-]*|[\[\]{},:]')
_SPACE = re.compile(rb"[ \t]*")
_DIGITS = 18  # of an integer that surely has 64 bits
_INT, _FLOAT = 1, 2
_QUOTE, _BACKSLASH, _ZERO, _NINE, _MINUS, _PLUS, _POINT = b'"\\09-+.'
# What stands behind a backslash, and what the two are; 0 where they are for the parser of JSON
_ESCAPES = np.zeros(256, np.uint8)
_ESCAPES[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')


@dataclass(frozen=True)
class ObjectColumns:
    """The values of objects of one shape by their keys; `listed` are those of the list `args`."""

    length: int
    named: dict[str, Cells]
    listed: list[Cells] | None


@dataclass(frozen=True)
class Shape:
    """The common shape of lines: their keys and, between the values, literals. A value is text, or a number."""

    keys: list[str | None]  # of each value; None for one of `args`
    args: bool
    literals: Array
    ends: Integers  # of each literal
    texts: Array  # whether a value is text


def columns_of(data: bytes) -> ObjectColumns | None:
    """The values of lines that all end; None where they are not of one shape."""
    shape = _shape(data[: data.index(b"\n") + 1]) if len(data) <= 1 << 30 and _is_utf8(data) else None
    if shape is None:
        return None
    buffer, width = np.frombuffer(data, np.uint8), len(shape.keys)
    begins, stops, numbers = (np.empty((width, data.count(b"\n")), np.int64) for _ in range(3))
    kinds = np.zeros(width, np.int64)
    rows = scan(buffer, shape.literals, shape.ends, shape.texts, begins, stops, numbers, kinds, _ESCAPES)
    if rows < 0:
        return None
    named: dict[str, Cells] = {}
    listed: list[Cells] = []
    for index, key in enumerate(shape.keys):
        cells: Cells
        if kinds[index] == _INT:
            cells = ColumnCells(numbers[index])
        else:
            escapes = numbers[index] if shape.texts[index] else np.zeros(rows, np.int64)
            texts = _gathered(buffer, begins[index], stops[index], escapes)
            if shape.texts[index]:
                cells = ArrowCells(texts)
            else:
                floats = _floats(texts) if kinds[index] == _FLOAT else None
                if floats is None:
                    return None
                cells = ColumnCells(floats)
        if key is None:
            listed.append(cells)
        else:
            named[key] = cells
    return ObjectColumns(rows, named, listed if shape.args else None)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _gathered(buffer: Array, begins: Array, stops: Array, escapes: Array) -> pa.StringArray:
    """Parts of a text as an array of Arrow; `escapes` says how many characters of each are written as two."""
    offsets = np.zeros(len(begins) + 1, np.int32)
    np.cumsum(stops - begins - escapes, out=offsets[1:])
    result = np.empty(int(offsets[-1]), np.uint8)
    if escapes.any():
        unescape(buffer, begins, stops, result, _ESCAPES)
    else:
        gather(buffer, begins, offsets, result)
    return pa.StringArray.from_buffers(len(begins), pa.py_buffer(offsets), pa.py_buffer(result))


def _floats(texts: pa.StringArray) -> Array | None:
    """The floats that are nearest to what is written; None where one is too large."""
    try:
        result = texts.cast(pa.float64()).to_numpy() + 0.0
    except pa.ArrowInvalid:
        return None
    return result if np.isfinite(result).all() else None


def _shape(line: bytes) -> Shape | None:
    """The shape of a line: an object of texts and numbers, of which one may be a list of such, `args`."""
    tokens = _tokens(line)
    if tokens is None or tokens[0][0] != b"{":
        return None
    keys: list[str | None] = []
    texts: list[bool] = []
    literals: list[bytes] = []
    seen: set[str] = set()
    key: str | None = None
    literal, number, inside = 0, 1, False  # where the literal begins, the token, whether it is in the list
    while number < len(tokens):
        token, position = tokens[number]
        if not inside and key is None:
            if token[:1] != b'"' or number + 1 == len(tokens) or tokens[number + 1][0] != b":":
                return None
            key = token[1:-1].decode()
            if key in seen or "\\" in key:
                return None
            seen.add(key)
            number += 2
            continue
        if token == b"[" and key == "args" and not inside:
            inside, number = True, number + 1
            if number < len(tokens) and tokens[number][0] == b"]":
                return None
            continue
        text = token[:1] == b'"'
        if key == "args" and not inside:  # it is no list
            return None
        if not text and not token[:1].isdigit() and token[:1] != b"-":
            return None
        keys.append(None if inside else key)
        texts.append(text)
        literals.append(line[literal : position + text])
        literal, number = position + len(token) - text, number + 1
        after = tokens[number][0] if number < len(tokens) else b""
        if inside and after == b"]":
            inside, number = False, number + 1
            after = tokens[number][0] if number < len(tokens) else b""
        if not inside:
            key = None
            if after == b"}" and number == len(tokens) - 1:
                literals.append(line[literal:])
                break
        if after != b",":
            return None
        number += 1
    else:
        return None
    ends = np.cumsum([len(literal) for literal in literals])
    return Shape(keys, "args" in seen, np.frombuffer(b"".join(literals), np.uint8), ends, np.array(texts, bool))


def _tokens(line: bytes) -> list[tuple[bytes, int]] | None:
    """The tokens of a line, and where each begins; None where it has others than those of simple objects."""
    result: list[tuple[bytes, int]] = []
    position = _end_of_space(line, 0)
    while line[position:] not in (b"\n", b"\r\n"):
        token = _TOKEN.match(line, position)
        if token is None:
            return None
        result.append((token[0], position))
        position = _end_of_space(line, token.end())
    return result or None


def _end_of_space(line: bytes, position: int) -> int:
    space = _SPACE.match(line, position)
    return position if space is None else space.end()


@Kernel
def scan(
    data: Bytes, literals: Array, ends: Integers, texts: Array, begins: Array, stops: Array, numbers: Array, kinds: Array,
    escapes: Array,
) -> int:  # fmt: skip
    """Finds the values of lines of one shape, reads those that are integers, and counts the escapes of texts into `numbers`.
    How many lines there are; -1 where one is of another shape."""
    n, position, row, values = len(data), 0, 0, len(texts)
    while position < n:
        first = 0
        for value in range(values + 1):
            last = ends[value]
            if position + last - first > n:
                return -1
            for i in range(first, last):
                if data[position] != literals[i]:
                    return -1
                position += 1
            first = last
            if value == values:
                break
            begins[value, row] = position
            if texts[value]:
                escaped = 0
                while position < n and data[position] != _QUOTE:
                    if data[position] < 32:
                        return -1
                    if data[position] == _BACKSLASH:
                        position += 1
                        if position == n or escapes[data[position]] == 0:
                            return -1
                        escaped += 1
                    position += 1
                numbers[value, row] = escaped
            else:
                minus = position < n and data[position] == _MINUS
                if minus:
                    position += 1
                number, digits, kind = 0, position, _INT
                while position < n and _ZERO <= data[position] <= _NINE:
                    number = number * 10 + int(data[position]) - _ZERO
                    position += 1
                digits = position - digits
                if digits == 0 or digits > _DIGITS or (digits > 1 and data[position - digits] == _ZERO):
                    return -1
                if position < n and data[position] == _POINT:
                    kind, position = _FLOAT, position + 1
                    begin = position
                    while position < n and _ZERO <= data[position] <= _NINE:
                        position += 1
                    if position == begin:
                        return -1
                if position < n and data[position] | 32 == 101:  # e or E
                    kind, position = _FLOAT, position + 1
                    if position < n and (data[position] == _PLUS or data[position] == _MINUS):
                        position += 1
                    begin = position
                    while position < n and _ZERO <= data[position] <= _NINE:
                        position += 1
                    if position == begin:
                        return -1
                if kind == _INT and minus and number == 0:
                    return -1
                if kinds[value] == 0:
                    kinds[value] = kind
                elif kinds[value] != kind:
                    return -1
                numbers[value, row] = -number if minus else number
            stops[value, row] = position
        row += 1
    return row


@Kernel
def gather(data: Bytes, begins: Array, offsets: Array, texts: Array) -> None:
    """Copies parts of an array one behind the other."""
    for row in range(len(begins)):
        begin = begins[row] - offsets[row]
        for offset in range(offsets[row], offsets[row + 1]):
            texts[offset] = data[begin + offset]


@Kernel
def unescape(data: Bytes, begins: Array, stops: Array, texts: Array, escapes: Array) -> None:
    """Copies parts of an array one behind the other, and writes what is escaped as it is."""
    to = 0
    for row in range(len(begins)):
        position, stop = begins[row], stops[row]
        while position < stop:
            byte = data[position]
            if byte == _BACKSLASH:
                position += 1
                byte = escapes[data[position]]
            texts[to] = byte
            to += 1
            position += 1
