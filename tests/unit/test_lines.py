"""JSON lines of one shape, read without objects: the values that the parser of JSON finds, or none at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from augury.sources.lines import columns_of
from augury.storage.column import values_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
NUMBERS = st.sampled_from([
    "0", "-0", "7", "-12", "01", "1.", ".5", "1.5", "-0.0", "1e3", "1E-7", "1e", "1e400", "1e-400", "2.5e+10", "-", "+1",
    "999999999999999999", "9223372036854775807", "9223372036854775808", "0.1234567890123456789", "123456789012345678901.5",
    "true", "null", "NaN", "1 2", "4.9e-324", "2.2250738585072011e-308", "0x1",
])  # fmt: skip


def objects_of(data: bytes) -> list[dict[str, Any]] | None:
    """What the lines mean, if all are objects; None where one is not well-formed."""
    try:
        return [
            json.loads(line, parse_constant=lambda _: 1 / 0) for line in data.decode().removesuffix("\n").split("\n")
        ]
    except (ValueError, ZeroDivisionError):
        return None


def check(data: bytes) -> bool:
    """Whether lines were read as columns; if so, they have the values of the objects."""
    columns = columns_of(data)
    if columns is None:
        return False
    objects = objects_of(data)
    assert objects is not None and columns.length == len(objects) == data.count(b"\n")
    found: dict[str, list[Any]] = {key: list(values_of(cells.plain())) for key, cells in columns.named.items()}
    if columns.listed is not None:
        found["args"] = [list(row) for row in zip(*(values_of(cells.plain()) for cells in columns.listed), strict=True)]
    for row, expected in enumerate(objects):
        assert {key: values[row] for key, values in found.items()} == expected
        assert [type(v) for values in found.values() for v in _flat(values[row])] == [
            type(v) for key in found for v in _flat(expected[key])
        ]
    return True


def _flat(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_lines_of_one_shape_are_columns() -> None:
    assert check(
        b'{"type": "wind", "args": ["l1", 12.5], "time": 3}\n{"type": "rain", "args": ["", -1e-3], "time": -40}\n'
    )
    assert check('{"a":"ä","b":0}\r\n{"a":"€","b":999999999999999999}\r\n'.encode())
    assert check(b' { "a" : 1 } \n { "a" : 2 } \n')
    assert check(rb'{"a": "\"1\"^^<x> .\n\t\/\\"}' + b'\n{"a": "plain"}\n')


@pytest.mark.parametrize(
    "lines",
    [
        b'{"a": 1}\n{"a": 1.5}\n',  # an int is no float
        b'{"a": 1}\n{"b": 1}\n',
        b'{"a": 1}\n{"a":1}\n',
        b'{"a": 1}\n\n{"a": 1}\n',
        b'{"a": 1}\n{"a": 1} \n',
        b'{"a": 1}\n{"a": 1}{"a": 1}\n',
        b'{"a": 1, "a": 2}\n',
        b'{"a": "\\x"}\n',
        b'{"\\n": "x"}\n',
        b'{"a": "x\\"}\n',
        b'{"a": "x"}\n{"a": "\\u00e4"}\n',
        b'{"a": "\x01"}\n',
        b'{"a": "\xff"}\n',
        b'{"\xff": 1}\n',
        b'{"a": null}\n',
        b'{"a": {"b": 1}}\n',
        b'{"b": [1]}\n',
        b'{"args": []}\n',
        b'{"type": "a", "args": 7, "time": 1}\n',
        b'{"type": "a", "args": "7", "time": 1}\n',
        b'{"args": [1, [2]]}\n',
        b'{"args": [1,]}\n',
        b'{"a": 1,}\n',
        b'{"a" 1}\n',
        b"{}\n",
        b"[1]\n",
        b"\n",
        b'{"a": 1\n',
        b'"a"\n',
        b'{"a": "x}\n',
        b'{"a": "x"}\n{"a": "x\n',
    ],
)
def test_other_lines_are_for_the_parser(lines: bytes) -> None:
    assert not check(lines)


@given(st.data())
def test_columns_have_the_values_of_the_objects(data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.sampled_from(["a", "type", "ä", "x y", "args"]), min_size=1, max_size=3, unique=True))
    kinds = [data.draw(st.sampled_from(["text", "number", "int", "float"])) for _ in keys]
    listed = data.draw(st.integers(0, 2))
    comma, colon, end = (data.draw(st.sampled_from(some)) for some in ([",", ", "], [":", ": "], ["\n", "\r\n"]))
    written = {
        "text": TEXT.map(lambda text: json.dumps(text, ensure_ascii=False)),
        "number": NUMBERS,
        "int": st.integers(-(10**20), 10**20).map(str),
        "float": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    }
    lines = ""
    for _ in range(data.draw(st.integers(1, 4))):
        pairs = [f'"{key}"{colon}{data.draw(written[kind])}' for key, kind in zip(keys, kinds, strict=True)]
        if listed and "args" not in keys:
            pairs.append(f'"args"{colon}[{comma.join(data.draw(written["int"]) for _ in range(listed))}]')
        lines += "{" + comma.join(pairs) + "}" + end
    check(lines.encode())


@given(st.data())
def test_a_byte_that_is_changed_is_seen(data: st.DataObject) -> None:
    lines = bytearray(b'{"type": "a", "args": ["l\\n1", 12.5, -7], "time": 3}\n' * 2)
    for _ in range(data.draw(st.integers(1, 3))):
        lines[data.draw(st.integers(0, len(lines) - 2))] = data.draw(
            st.sampled_from(b'0123456789.eE+-"\\,:{}[] \n\rax\x00\xc3\xa4')
        )
    check(bytes(lines))
