"""Built-in functions of whole columns: of numbers by NumPy, of texts and calendars by Arrow.

Each gives the very values that `algebra/scalar.py` gives row by row; rows that are hard, and functions or arguments that have
no form here, are computed by the function itself, once for each distinct combination of arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from augury.algebra.regular import RegularExpressionError, naming
from augury.algebra.scalar import COMPARISONS, FUNCTIONS, SPACE, TESTS, RowError
from augury.algebra.wall_time import SHORT, directives, format_time, local_time
from augury.core.arrays import Array, Times
from augury.core.model import MAX_INT, MIN_INT, Value
from augury.storage.operands import ARITHMETIC, ColumnOperand
from augury.storage.unique import unique_first_inverse, unique_inverse

# Numbers, times and lengths of time


def _rounded(floor: Callable[[Array], Array], x: ColumnOperand) -> ColumnOperand | None:
    if x.kind != "n" or x.data.dtype.kind == "i":
        return x if x.kind == "n" else None
    result = floor(x.data)
    far = ~(np.abs(result) < 2.0**60)
    return replace(x.but(far), data=np.where(far, 0, result).astype(np.int64))


def _absolute(x: ColumnOperand) -> ColumnOperand | None:
    return replace(x, data=np.abs(x.data)) if x.kind in ("n", "d") else None


def _extreme(choose: Callable[[Array, Array], Array], *parts: ColumnOperand) -> ColumnOperand | None:
    if len({(part.kind, part.data.dtype) for part in parts}) > 1:
        return None
    result = parts[0].data
    for part in parts[1:]:
        result = choose(result, part.data)
    return replace(parts[0].broadcast(*parts[1:]), data=result)


def _to_float(x: ColumnOperand) -> ColumnOperand | None:
    if x.kind != "n":
        return None
    return replace(x.but(np.abs(x.data) > 2**53) if x.data.dtype.kind == "i" else x, data=x.data.astype(np.float64))


def _overlap(*parts: ColumnOperand) -> ColumnOperand | None:
    start, end, other_start, other_end = parts
    if len({part.kind for part in parts}) > 1 or any(part.data.dtype.kind != "i" for part in parts):
        return None
    shared = np.minimum(end.data, other_end.data) - np.maximum(start.data, other_start.data)
    return ColumnOperand("d" if start.kind == "t" else start.kind, np.maximum(shared, 0)).broadcast(*parts)


def _each(call: Callable[..., Any], *parts: ColumnOperand) -> ColumnOperand | None:
    """A function of Python of each row, whose results are all integers or all floats.

    NumPy may differ from Python in the last bit of a sine, so it is Python's that is called.
    """
    if any(part.kind != "n" for part in parts):
        return None
    columns, wrong = [part.data.tolist() for part in parts], np.zeros(len(parts[0]), bool)
    try:
        results = list(map(call, *columns))
    except (RowError, ValueError, ArithmeticError):
        results = []
        for row, args in enumerate(zip(*columns, strict=True)):
            try:
                results.append(call(*args))
            except (RowError, ValueError, ArithmeticError):
                wrong[row] = True
                results.append(None)
    kinds, data = {type(result) for result in results} - {type(None)}, parts[0].data
    if kinds == {int}:
        small = [result if result is not None and MIN_INT <= result <= MAX_INT else None for result in results]
        wrong = np.array([result is None for result in small], bool)
        data = np.array([result or 0 for result in small], np.int64)
    elif kinds == {float}:
        data = np.array([math.nan if result is None else result for result in results], np.float64)
        wrong = ~np.isfinite(data)
        data = np.where(wrong, 0.0, data) + 0.0
    else:
        return None
    return replace(parts[0].broadcast(*parts[1:]), data=data).but(wrong)


def _nearest(x: ColumnOperand, digits: ColumnOperand | None = None) -> ColumnOperand | None:
    """Halves away from zero. A float between two integers is as far from them as its shortest decimal form is."""
    if x.kind != "n" or (digits is not None and (digits.kind != "n" or not digits.easy)):
        return None
    if digits is not None and digits.data.any():
        return _each(FUNCTIONS["round"].call, x, digits)
    if x.data.dtype.kind == "i":
        return x
    whole = np.trunc(x.data)
    result = whole + np.where(np.abs(x.data - whole) >= 0.5, np.sign(x.data), 0.0)
    far = ~(np.abs(result) < 2.0**60)
    return replace(x.but(far), data=np.where(far, 0, result).astype(np.int64))


_PYTHON = {name: getattr(math, name) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "exp")}

NUMBERS: dict[str, Callable[..., ColumnOperand | None]] = {
    **{name: partial(_each, call) for name, call in _PYTHON.items()},
    **{name: partial(_each, FUNCTIONS[name].call) for name in ("log", "**", "pow")},
    "round": _nearest,
    "floor": partial(_rounded, np.floor),
    "ceil": partial(_rounded, np.ceil),
    "to_int": partial(_rounded, np.trunc),
    "to_float": _to_float,
    "abs": _absolute,
    "min": partial(_extreme, np.minimum),
    "max": partial(_extreme, np.maximum),
    "overlap": _overlap,
}

# Calendars: of times in microseconds, without nulls. A zone is a constant

_DAY, _HOUR, _MINUTE, _SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
_FIRST, _END = -62_135_596_800_000_000 + _DAY, 253_402_300_800_000_000 - _DAY  # years 1 to 9999, a day off for zones
_QUARTER = 15 * _MINUTE


def on_calendar(times: Times) -> Array:
    """Which times have a date in every zone."""
    result: Array = (times >= _FIRST) & (times < _END)
    return result


def wall_times(times: Times, zone: str | None) -> Times:
    """Wall times in a zone, as microseconds of a day without a zone."""
    if zone is None:
        return times
    quarters, inverse = unique_inverse(times // _QUARTER)

    def offset(us: int) -> int:
        wall = local_time(us, zone)
        return int((np.datetime64(wall, "us") - np.datetime64(0, "us")).astype(np.int64)) - us

    ends = [(offset(us), offset(us + _QUARTER - 1)) for us in (quarters * _QUARTER).tolist()]
    result = times + np.array([first for first, _ in ends], np.int64)[inverse]
    changing = np.array([first != last for first, last in ends], bool)[inverse]
    for row in np.flatnonzero(changing).tolist():
        result[row] = times[row] + offset(int(times[row]))
    return result


def _dates(unit: str, wall: Times) -> Array:
    """The numbers of days, months or years since 1970."""
    numbers: Array = (wall // _DAY).view("M8[D]").astype(f"M8[{unit}]").astype(np.int64)
    return numbers


def _day_of(unit: str, wall: Times) -> Array:
    """The day, from 1, of the month or year."""
    days = wall // _DAY
    first: Array = days.view("M8[D]").astype(f"M8[{unit}]").astype("M8[D]").astype(np.int64)
    return days - first + 1


PARTS: dict[str, Callable[[Times], Array]] = {
    "year": lambda wall: _dates("Y", wall) + 1970,
    "month": lambda wall: _dates("M", wall) % 12 + 1,
    "day": partial(_day_of, "M"),
    "hour": lambda wall: wall % _DAY // _HOUR,
    "minute": lambda wall: wall % _HOUR // _MINUTE,
    "second": lambda wall: wall % _MINUTE // _SECOND,
    "weekday": lambda wall: (wall // _DAY + 3) % 7 + 1,
    "day_of_year": partial(_day_of, "Y"),
}


def truncated(times: Times, unit: str, zone: str | None) -> Times | None:
    """When the unit begins; None for dates in a zone, whose midnights are looked for one by one."""
    if unit in SHORT:
        offset = wall_times(times, zone) - times
        begins: Times = (times + offset) // SHORT[unit] * SHORT[unit] - offset
        return begins
    if zone is not None:
        return None
    days = times // _DAY
    match unit:
        case "week":
            days = (days + 3) // 7 * 7 - 3
        case "month" | "quarter" | "year":
            months, length = _dates("M", times), {"month": 1, "quarter": 3, "year": 12}[unit]
            days = (months // length * length).view("M8[M]").astype("M8[D]").astype(np.int64)
        case "day":
            pass
        case _:
            return None
    return days * _DAY


def formatted(times: Times, form: str, zone: str | None) -> Any:
    """Times as texts: each instant that is different in the finest part of the format is written once."""
    finest = min((_STEPS.get(piece, _DAY) for piece in directives(form)), default=_DAY)
    wall = wall_times(times, zone)
    offsets, number = unique_inverse(wall - times)
    if len(offsets) > _OFFSETS:
        return None
    _, first, inverse = unique_first_inverse(wall // finest * len(offsets) + number)
    texts = [format_time(us, form, zone) for us in times[first].tolist()]
    return pa.array(texts, pa.large_string()).take(pa.array(inverse))


_OFFSETS = 16  # from UTC; more than a zone has in a century
_STEPS = {"%f": 1, "%S": _SECOND, "%M": _MINUTE, "%H": _HOUR}

# Texts: arrays of large strings without nulls; all other arguments are constants


def _of_ascii(compute: Callable[[Any], Any], call: Callable[[str], str], texts: Any) -> Any:
    """Capitals and small letters of Unicode are Python's; those of ASCII Arrow has, too."""
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return compute(texts)
    return pa.array([call(text) for text in texts.to_pylist()], texts.type)


def _substring(texts: Any, start: Any, length: Any = None) -> Any:
    if start < 1 or (length is not None and length < 0):
        return None
    first = int(start) - 1
    return pc.utf8_slice_codeunits(texts, first, None if length is None else first + int(length))


def _split(texts: Any, separator: str, n: Any) -> Any:
    index = int(n) - 1
    if index < 0 or not separator:
        return None
    parts = pc.split_pattern(texts, separator, max_splits=index + 1)
    sizes = pc.list_value_length(parts).to_numpy(zero_copy_only=False)
    places = np.asarray(parts.offsets)[:-1].astype(np.int64) + index
    return parts.values.take(pa.array(places, mask=sizes <= index))


def _extracted(texts: Any, pattern: str, group: Any) -> Any:
    return pc.struct_field(pc.extract_regex(texts, naming(pattern, int(group))), [0])


TEXTS: dict[str, tuple[tuple[type | tuple[type, ...], ...], Callable[..., Any]]] = {
    "length": ((), pc.utf8_length),
    "upper": ((), partial(_of_ascii, pc.ascii_upper, str.upper)),
    "lower": ((), partial(_of_ascii, pc.ascii_lower, str.lower)),
    "trim": ((), lambda texts: pc.utf8_trim(texts, SPACE)),
    "substring": (((int, float), (int, float)), _substring),
    "replace": ((str, str), lambda texts, old, new: pc.replace_substring(texts, old, new) if old else None),
    "contains": ((str,), pc.match_substring),
    "starts_with": ((str,), pc.starts_with),
    "ends_with": ((str,), pc.ends_with),
    "matches": ((str,), pc.match_substring_regex),
    "regexp_extract": ((str, (int, float)), _extracted),
    "split": ((str, (int, float)), _split),
    "occurrences": ((str,), lambda texts, part: pc.count_substring(texts, part) if part else None),
    "to_string": ((), lambda texts: texts),
}


def joined(parts: Sequence[Any], rows: int) -> Any:
    """Texts one after the other: arrays of texts or integers without nulls, and constants."""
    arrays = [part if isinstance(part, str) else part.cast(pa.large_string()) for part in parts]
    if all(isinstance(part, str) for part in arrays):
        return pa.array(["".join(arrays)] * rows, pa.large_string())
    large = [pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in arrays]
    return pc.binary_join_element_wise(*large, pa.scalar("", pa.large_string()))


def of_texts(name: str, texts: object, constants: Sequence[Value]) -> Any:
    """A function of an array of texts whose other arguments are constants; None where it has no form for these."""
    if name not in TEXTS:
        return None
    kinds, compute = TEXTS[name]
    fit = all(isinstance(c, kind) and not isinstance(c, bool) for c, kind in zip(constants, kinds, strict=False))
    try:
        return compute(texts, *constants) if fit and len(constants) <= len(kinds) else None
    except (pa.ArrowInvalid, RegularExpressionError, UnicodeEncodeError, OverflowError):  # one by one it is said why
        return None


# How columns of the usual types are computed: by NumPy, by Arrow, from codes, or once, as a constant
COLUMN_FORMS: dict[str, str] = {
    **dict.fromkeys((*ARITHMETIC, *NUMBERS), "numbers"),
    **{name: "numbers" for name, function in FUNCTIONS.items() if function.vector is not None},
    **dict.fromkeys((*PARTS, "truncate", "format_time"), "calendar"),
    **dict.fromkeys((*TEXTS, "concat", "iri"), "texts"),
    **dict.fromkeys((*COMPARISONS, *TESTS, "if"), "truths"),
    **dict.fromkeys(("is_null", "coalesce"), "codes"),
    **{name: "codes" for name, function in FUNCTIONS.items() if function.coded is not None},
    "pi": "constant",
}
