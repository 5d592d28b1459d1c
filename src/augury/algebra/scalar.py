"""The table of scalar functions: one row each, with its types and its meaning. Arithmetic is in it, too.

A row that cannot be computed (division by zero, overflow, a wrong type) raises RowError: the condition fails, and the
run counts and reports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any

from augury.algebra.regular import RegularExpressionError, extract, found_in
from augury.algebra.sphere import distance_km, distances_km
from augury.algebra.wall_time import UNITS, format_time, local_time, truncated
from augury.core.arrays import Array
from augury.core.clock import Duration, Timestamp, show_timestamp
from augury.core.model import MAX_INT, MIN_INT, Iri, Term, Value, from_json, has_null, order_key, show_value, type_name

TYPES = ("int", "float", "number", "string", "bool", "timestamp", "duration", "iri", "term", "list", "any")


class RowError(Exception):
    """One row cannot be computed."""


@dataclass(frozen=True)
class Function:
    """A row of the table. `types` are those of the arguments, the last one repeated where `variadic`.

    `spark` is the same function in Spark: its name there, or nested calls on the arguments `{0}`, `{1}`, …, or None where
    Spark has none that agrees. It holds for arguments that are not null, doubles below 2**53 and years from 1 to 9999;
    booleans are 0 and 1, times and durations microseconds. It never raises: where this function fails, or the two may
    differ, it gives null, NaN, or a number from 2**53 on that it made of doubles.

    `vector` is the same function of columns of numbers, equal to the last bit; NaN where this one fails. One that is not
    `pure` may give something else the next time: it is called once for each row that asks for it, never ahead or again.

    `coded` is the same function of a dictionary and columns of its codes: it gives booleans, or codes. It never fails.
    """

    name: str
    types: tuple[str, ...]
    result: str
    call: Callable[..., Any] = field(compare=False, repr=False)
    doc: str = ""
    optional: int = 0
    variadic: bool = False
    registered: bool = False
    vectorised: bool = False  # takes and gives arrays, one element a row
    arrow: bool = False  # whether these are arrays of Arrow, rather than of NumPy
    spark: str | None = None
    vector: Callable[..., Array] | None = field(default=None, compare=False, repr=False)
    pure: bool = True
    coded: Callable[[Any, Sequence[Array]], Array] | None = field(default=None, compare=False, repr=False)

    def takes(self, count: int) -> bool:
        return len(self.types) - self.optional <= count and (self.variadic or count <= len(self.types))

    @property
    def arity(self) -> str:
        low, high = len(self.types) - self.optional, len(self.types)
        return f"{low} or more" if self.variadic else str(low) if low == high else f"{low} to {high}"

    def __call__(self, *args: object) -> Any:
        return self.call(*args)


def from_python(value: object) -> Value:
    """The result of a Python function, a NumPy scalar among others, as a value."""
    return from_json(value.item() if type(value).__module__ == "numpy" and hasattr(value, "item") else value)


# What the rows of the table compute


def _number(value: Value) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RowError(f"{show_value(value)} is not a number")
    return value


def _checked(value: Any) -> Value:
    """A result that the language can hold: 64-bit integers, finite floats."""
    if isinstance(value, int) and not isinstance(value, bool) and not MIN_INT <= value <= MAX_INT:
        raise RowError("integer overflow")
    if isinstance(value, float) and not math.isfinite(value):
        raise RowError("not a finite number")
    if isinstance(value, Duration | Timestamp):
        _checked(value.us)
    return value + 0.0 if isinstance(value, float) else value


def _add(x: Value, y: Value) -> Value:
    match x, y:
        case (Timestamp(us=a), Duration(us=b)) | (Duration(us=b), Timestamp(us=a)):
            return Timestamp(a + b)
        case Duration(), Duration():
            return Duration(x.us + y.us)
    return _number(x) + _number(y)


def _subtract(x: Value, y: Value = 0) -> Value:
    match x, y:
        case Timestamp(), Timestamp():
            return Duration(x.us - y.us)
        case Timestamp(), Duration():
            return Timestamp(x.us - y.us)
        case Duration(), Duration():
            return Duration(x.us - y.us)
    return _number(x) - _number(y)


def _multiply(x: Value, y: Value) -> Value:
    match x, y:
        case (Duration(us=a), other) | (other, Duration(us=a)):
            return Duration(round(a * _number(other)))
    return _number(x) * _number(y)


def _divide(x: Value, y: Value) -> Value:
    match x, y:
        case Duration(), Duration():
            return x.us / _nonzero(y.us)
        case Duration(), _:
            return Duration(round(x.us / _nonzero(_number(y))))
    return _number(x) / _nonzero(_number(y))


def _floor_divide(x: Value, y: Value) -> Value:
    match x, y:
        case Duration(), Duration():
            return x.us // int(_nonzero(y.us))
    return (
        math.floor(_number(x) / _nonzero(_number(y)))
        if isinstance(x, float) or isinstance(y, float)
        else (int(_number(x)) // int(_nonzero(_number(y))))
    )


def _nonzero(value: int | float) -> int | float:
    if value == 0:
        raise RowError("division by zero")
    return value


def _power(x: Value, y: Value) -> Value:
    base, exponent = _number(x), _number(y)
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        if abs(base) > 1 and exponent > 64:
            raise RowError("integer overflow")
        return int(base**exponent)
    if base < 0 and not float(exponent).is_integer():
        raise RowError("a root of a negative number")
    return float(float(base) ** exponent)


def _round(x: Value, digits: Value = 0) -> Value:
    """Halves away from zero, as people and Spark do it."""
    if isinstance(x, int) and not isinstance(x, bool):
        return x
    places = int(_number(digits))
    rounded = Decimal(repr(_number(x))).quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    return int(rounded) if places <= 0 else float(rounded)


def _math(call: Callable[[float], float]) -> Callable[[Value], Value]:
    return lambda x: call(_number(x))


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise RowError(f"{show_value(value)} is not a string")
    return value


def _date(part: Callable[[datetime], int]) -> Callable[..., Value]:
    def call(value: Value, zone: Value = None) -> Value:
        return part(local_time(_time(value), None if zone is None else _text(zone)))

    return call


def _time(value: Value) -> int:
    if not isinstance(value, Timestamp):
        raise RowError(f"{show_value(value)} is not a timestamp")
    return value.us


def _truncate(value: Value, unit: Value, zone: Value = None) -> Value:
    if unit not in UNITS:
        raise RowError(f"{show_value(unit)} is not a unit to truncate to: {', '.join(UNITS)}")
    return Timestamp(truncated(_time(value), str(unit), None if zone is None else _text(zone)))


def _iri(value: Value) -> Value:
    return value if isinstance(value, Iri) else Iri(_text(value))


def _matches(text: Value, pattern: Value) -> Value:
    subject = text.text if isinstance(text, Iri) else _text(text)
    try:
        return found_in(subject, _text(pattern))
    except RegularExpressionError as error:
        raise RowError(str(error)) from None


def _extract(text: Value, pattern: Value, group: Value) -> Value:
    try:
        return extract(_text(text), _text(pattern), int(_number(group)))
    except RegularExpressionError as error:
        raise RowError(str(error)) from None


def _split(text: Value, separator: Value, n: Value) -> Value:
    index = int(_number(n)) - 1
    if index < 0:
        raise RowError("parts are counted from 1")
    parts = _text(text).split(_nonempty(separator), index + 1)
    return parts[index] if index < len(parts) else None


def _nonempty(value: Value) -> str:
    if not _text(value):
        raise RowError("the text to look for is empty")
    return _text(value)


def _format_time(value: Value, text: Value, zone: Value = None) -> Value:
    return format_time(_time(value), _text(text), None if zone is None else _text(zone))


def _overlap(start: Value, end: Value, other_start: Value, other_end: Value) -> Value:
    shared = _subtract(min(end, other_end, key=order_key), max(start, other_start, key=order_key))
    nothing = Duration(0) if isinstance(shared, Duration) else 0
    return max(shared, nothing, key=order_key)


def _chosen(condition: Value, then: Value, otherwise: Value) -> Value:
    return then if condition is True else otherwise


def _to_string(value: Value) -> Value:
    match value:
        case str():
            return value
        case Timestamp():
            return show_timestamp(value.us)
        case Iri():
            return value.text
    return show_value(value)


def _to_number(value: Value, kind: type[int] | type[float]) -> Value:
    try:
        return kind(value) if isinstance(value, str) else kind(_number(value))
    except ValueError:
        raise RowError(f"{show_value(value)} is not {'an integer' if kind is int else 'a number'}") from None


def _substring(text: Value, start: Value, length: Value = None) -> Value:
    first = int(_number(start)) - 1
    if first < 0 or (length is not None and _number(length) < 0):
        raise RowError("a position is counted from 1, and a length is not negative")
    return _text(text)[first:] if length is None else _text(text)[first : first + int(_number(length))]


def _distance_km(lat1: Value, lon1: Value, lat2: Value, lon2: Value) -> Any:
    phi1, phi2 = float(_number(lat1)), float(_number(lat2))
    for phi in (phi1, phi2):
        if not -90 <= phi <= 90:
            raise RowError(f"{show_value(phi)} is not a latitude, from -90 to 90")
    return distance_km(phi1, float(_number(lon1)), phi2, float(_number(lon2)))


def _square_roots(x: Array) -> Array:
    import numpy as np

    with np.errstate(invalid="ignore"):
        return np.sqrt(x)


_N, _S, _ANY = "number", "string", "any"
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


# What the forms in Spark are made of

SPACE = " \t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_US_DAY, _US_HOUR, _US_MINUTE, _US_SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000


def _bounded(text: str) -> str:
    """A double that can be made an integer."""
    return f"greatest(least({text}, {2**53}), {-(2**53)})"


def _at_least(low: int, text: str) -> str:
    """A number as a 32-bit integer, at most 2**30; null where it is less than `low`."""
    return f"int(nullif(greatest(least({text}, {2**30}), {low - 1}), {low - 1}))"


def _ascii(name: str) -> str:
    """Capitals and small letters depend on the version of Unicode; those of ASCII do not."""
    return f"nvl2(nullif(octet_length({{0}}), length({{0}})), null, {name}({{0}}))"


def _day(part: str) -> str:
    """A part of the date of a timestamp, whatever the time zone of the session."""
    return f"{part}(date_from_unix_date(int(div(try_subtract({{0}}, pmod({{0}}, {_US_DAY})), {_US_DAY}))))"


_ROWS = (
    Function("+", (_ANY, _ANY), _ANY, _add, "sum; also of a timestamp and a duration", spark="try_add"),
    Function("-", (_ANY, _ANY), _ANY, lambda x, y=None: _subtract(x, y) if y is not None else _negate(x), "difference; of timestamps, a duration", optional=1, spark="try_subtract"),
    Function("*", (_ANY, _ANY), _ANY, _multiply, "product; also of a duration and a number", spark="try_multiply"),
    Function("/", (_ANY, _ANY), _ANY, _divide, "quotient, a float", spark="try_divide"),
    Function("//", (_N, _N), "int", _floor_divide, "quotient, rounded down to an integer", spark=f"floor({_bounded('try_divide({0}, {1})')})"),
    Function("mod", (_N, _N), _N, lambda x, y: _number(x) % _nonzero(_number(y)), "remainder of //", spark="pmod({0}, nullif(greatest({1}, 0), 0))"),
    Function("**", (_N, _N), _N, _power, "power"),
    Function("pow", (_N, _N), _N, _power, "power"),
    Function("min", (_ANY, _ANY), _ANY, lambda *v: min(v, key=order_key), "least", variadic=True, spark="least"),
    Function("max", (_ANY, _ANY), _ANY, lambda *v: max(v, key=order_key), "greatest", variadic=True, spark="greatest"),
    Function("abs", (_ANY,), _ANY, lambda x: Duration(abs(x.us)) if isinstance(x, Duration) else abs(_number(x)), "absolute value", spark="abs(nullif({0}, -9223372036854775808))"),
    Function("round", (_N, "int"), _N, _round, "nearest, halves away from zero", optional=1),
    Function("floor", (_N,), "int", _math(math.floor), "next integer below", spark=f"floor({_bounded('{0}')})"),
    Function("ceil", (_N,), "int", _math(math.ceil), "next integer above", spark=f"ceil({_bounded('{0}')})"),
    Function("sqrt", (_N,), "float", _math(math.sqrt), "square root", spark="sqrt", vector=_square_roots),
    *(
        Function(name, (_N,), "float", _math(getattr(math, name)), doc)
        for name, doc in (
            ("sin", "sine"), ("cos", "cosine"), ("tan", "tangent"), ("asin", "arc sine"),
            ("acos", "arc cosine"), ("atan", "arc tangent"), ("exp", "power of e"),
        )
    ),
    Function("log", (_N, _N), "float", lambda x, b=math.e: math.log(_number(x)) if b == math.e else math.log(_number(x), _number(b)), "logarithm, natural unless a base is given", optional=1),
    Function("pi", (), "float", lambda: math.pi, "3.14159…", spark="pi"),
    Function("distance_km", (_N, _N, _N, _N), "float", _distance_km, "great-circle distance of two latitudes and longitudes in degrees: lat1, lon1, lat2, lon2; the haversine formula, on a sphere of radius 6378.137 km", vector=distances_km),
    Function("length", (_S,), "int", lambda s: len(_text(s)), "number of characters", spark="length"),
    Function("upper", (_S,), _S, lambda s: _text(s).upper(), "in capitals", spark=_ascii("upper")),
    Function("lower", (_S,), _S, lambda s: _text(s).lower(), "in small letters", spark=_ascii("lower")),
    Function("trim", (_S,), _S, lambda s: _text(s).strip(), "without space at the ends", spark=f"btrim({{0}}, {SPACE!r})"),
    Function("concat", (_ANY,), _S, lambda *v: "".join(str(_to_string(x)) for x in v), "joined as text", variadic=True, spark="concat"),
    Function("substring", (_S, "int", "int"), _S, _substring, "from a position, counted from 1, and a length", optional=1, spark=f"substring({{0}}, {_at_least(1, '{1}')}, {_at_least(0, '{2}')})"),
    Function("replace", (_S, _S, _S), _S, lambda s, a, b: _text(s).replace(_text(a), _text(b)), "each a replaced by b", spark="replace({0}, nullif({1}, ''), {2})"),
    Function("contains", (_S, _S), "bool", lambda s, t: _text(t) in _text(s), "whether the second is in the first", spark="contains"),
    Function("starts_with", (_S, _S), "bool", lambda s, t: _text(s).startswith(_text(t)), "whether it begins so", spark="startswith"),
    Function("ends_with", (_S, _S), "bool", lambda s, t: _text(s).endswith(_text(t)), "whether it ends so", spark="endswith"),
    Function("matches", (_ANY, _S), "bool", _matches, "whether a regular expression is found in it (RE2)"),
    Function("regexp_extract", (_S, _S, "int"), _S, _extract, "a group of the first match of a regular expression (RE2), 0 for the whole match; null without a match"),
    Function("split", (_S, _S, "int"), _S, _split, "the n-th of the parts between separators, counted from 1; null beyond the last"),
    Function("occurrences", (_S, _S), "int", lambda s, t: _text(s).count(_nonempty(t)), "how often the second is in the first, without overlaps"),
    Function("to_string", (_ANY,), _S, _to_string, "as text"),
    Function("to_int", (_ANY,), "int", lambda v: _to_number(v, int), "as an integer, towards zero"),
    Function("to_float", (_ANY,), "float", lambda v: _to_number(v, float), "as a float"),
    Function("is_null", (_ANY,), "bool", lambda v: v is None, "whether it is null"),
    Function("coalesce", (_ANY,), _ANY, lambda *v: next((x for x in v if x is not None), None), "the first that is not null", variadic=True),
    Function("if", (_ANY, _ANY, _ANY), _ANY, _chosen, "the second where the condition holds, else the third"),
    Function("iri", (_ANY,), "iri", _iri, "text as an IRI"),
    Function("truncate", ("timestamp", _S, _S), "timestamp", _truncate, "when its second, minute, hour, day, week, month, quarter or year begins", optional=1),
    Function("format_time", ("timestamp", _S, _S), _S, _format_time, "as text, by a format with %Y %m %d %H %M %S %f %j %a %b %z", optional=1),
    Function("overlap", (_ANY, _ANY, _ANY, _ANY), _ANY, _overlap, "the duration that two labels share: `overlap(i, j)`"),
    Function("year", ("timestamp", _S), "int", _date(lambda d: d.year), "year", optional=1, spark=_day("year")),
    Function("month", ("timestamp", _S), "int", _date(lambda d: d.month), "month, 1 to 12", optional=1, spark=_day("month")),
    Function("day", ("timestamp", _S), "int", _date(lambda d: d.day), "day of the month", optional=1, spark=_day("day")),
    Function("hour", ("timestamp", _S), "int", _date(lambda d: d.hour), "hour, 0 to 23", optional=1, spark=f"div(pmod({{0}}, {_US_DAY}), {_US_HOUR})"),
    Function("minute", ("timestamp", _S), "int", _date(lambda d: d.minute), "minute", optional=1, spark=f"div(pmod({{0}}, {_US_HOUR}), {_US_MINUTE})"),
    Function("second", ("timestamp", _S), "int", _date(lambda d: d.second), "second", optional=1, spark=f"div(pmod({{0}}, {_US_MINUTE}), {_US_SECOND})"),
    Function("weekday", ("timestamp", _S), "int", _date(lambda d: d.isoweekday()), "day of the week, Monday is 1", optional=1, spark=f"try_add({_day('weekday')}, 1)"),
    Function("day_of_year", ("timestamp", _S), "int", _date(lambda d: d.timetuple().tm_yday), "day of the year", optional=1, spark=_day("dayofyear")),
)  # fmt: skip

FUNCTIONS: dict[str, Function] = {row.name: row for row in _ROWS}
# Comparisons as values: what the condition of an `if` is made of. `&` and `|` are `and` and `or`.
TESTS: dict[str, Function] = {
    **{
        op: Function(op, (_ANY, _ANY), "bool", partial(lambda op, x, y: compare(op, x, y), op), "")
        for op in COMPARISONS
    },
    "&": Function("&", (_ANY,), "bool", lambda *v: all(x is True for x in v), "", variadic=True),
    "|": Function("|", (_ANY,), "bool", lambda *v: any(x is True for x in v), "", variadic=True),
}
_NULL_SAFE = {"is_null", "coalesce", "if", "&", "|"}


def _negate(value: Value) -> Value:
    return Duration(-value.us) if isinstance(value, Duration) else -_number(value)


def apply(function: Function, args: tuple[Value, ...]) -> Value:
    """The value of a function. A null argument gives null, but for the functions that are about null."""
    if not function.registered and function.name not in _NULL_SAFE and any(a is None for a in args):
        return None
    try:
        result = _of_single_row(function, args) if function.vectorised else function.call(*args)
    except RowError:
        raise
    except (ValueError, ArithmeticError) as error:
        if function.registered:
            raise
        raise RowError(f"{function.name}: {error}") from error
    return _checked(from_python(result) if function.registered else result)


def _of_single_row(function: Function, args: tuple[Value, ...]) -> Any:
    """A vectorised function of a single row."""
    result = function.call(*((arrow_of if function.arrow else column_of)([a]) for a in args))
    if len(result) != 1:
        raise ValueError(f"gave {len(result)} values for 1 row")
    return from_arrow(result[0])


def from_arrow(value: Any) -> Any:
    """What a function gave: a scalar of Arrow as a value of Python, all else as it is."""
    return value.as_py() if type(value).__module__.startswith("pyarrow") else value


def arrow_of(values: Sequence[Value]) -> Any:
    """An Arrow array: of numbers, booleans, texts (IRIs among them), times or lengths of time. Null may be in each."""
    import pyarrow as pa

    kinds = {type(v) for v in values} - {type(None)}
    if kinds == {Timestamp} or kinds == {Duration}:
        kind = pa.timestamp("us", "UTC") if kinds == {Timestamp} else pa.duration("us")
        return pa.array([None if v is None else v.us for v in values], pa.int64()).cast(kind)  # type: ignore[union-attr]
    if kinds <= {str, Iri} and kinds:
        return pa.array([v.text if isinstance(v, Iri) else v for v in values], pa.large_string())
    if kinds == {int, float}:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())  # type: ignore[arg-type]
    if len(kinds) > 1 or kinds & {Term, tuple}:
        named = ", ".join(sorted({type_name(v) for v in values if v is not None}))
        raise ValueError(f"values of these types are no array of Arrow: {named}")
    return pa.array(values)


def column_of(values: Sequence[Value]) -> Array:
    """An array: of numbers or booleans where all values are, else of objects."""
    import numpy as np

    kinds = {type(v) for v in values}
    return np.array(values) if kinds <= {int, float} or kinds == {bool} else array_of_objects(values)


def array_of_objects(values: Sequence[object]) -> Array:
    import numpy as np

    array = np.empty(len(values), object)
    for i, value in enumerate(values):  # a list among them is one value
        array[i] = value
    return array


def compare(op: str, left: Value, right: Value) -> bool:
    """A comparison of the language. Null compares with nothing; unlike types are unequal and have no order."""
    if has_null(left) or has_null(right):
        return False
    if op in ("=", "!="):
        same = order_key(left) == order_key(right)
        return same if op == "=" else not same
    if order_key(left)[0] != order_key(right)[0]:
        raise RowError(
            f"{show_value(left)} ({type_name(left)}) and {show_value(right)} ({type_name(right)}) have no order"
        )
    x, y = order_key(left), order_key(right)
    return {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[op]
