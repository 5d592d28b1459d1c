"""The table of scalar functions: one row each, with its types and its meaning. Arithmetic is in it, too.

A row that cannot be computed (division by zero, overflow, a wrong type) raises RowError: the condition fails, and the
run counts and reports it.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import wraps
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin

from augury.clock import Duration, Timestamp, show_timestamp
from augury.errors import RunError, counted, nearest
from augury.model import MAX_INT, MIN_INT, Iri, Term, Value, from_json, has_null, order_key, show_value, type_name

Array: TypeAlias = Any  # a NumPy array

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
    spark: str | None = None
    vector: Callable[..., Array] | None = field(default=None, compare=False, repr=False)
    pure: bool = True

    def takes(self, count: int) -> bool:
        return len(self.types) - self.optional <= count and (self.variadic or count <= len(self.types))

    @property
    def arity(self) -> str:
        low, high = len(self.types) - self.optional, len(self.types)
        return f"{low} or more" if self.variadic else str(low) if low == high else f"{low} to {high}"

    @property
    def columns(self) -> Callable[..., Array] | None:
        """What computes many rows at once, where that is allowed."""
        return None if not self.pure else self.call if self.vectorised else self.vector

    def __call__(self, *args: Any) -> Any:
        return self.call(*args)


# Functions from Python


def function(
    python: Callable[..., Any] | None = None, *, name: str | None = None, types: Iterable[Any] | None = None,
    result: Any = None, vectorised: bool = False, pure: bool = True,
) -> Any:  # fmt: skip
    """Makes a Python function usable in rules; types are read from its annotations, or given.

    A type is one of the language, such as "timestamp", or one of Python: float, str, datetime, …. Parameters with a default
    may be left out. A `vectorised` function is given arrays, an element for each row, and gives an array as long. One that
    reads a clock, a service or a random number is not `pure`: a replay may then differ from the first run.

    >>> @function
    ... def index(t: float, h: float) -> float:
    ...     return t + h
    >>> function(math.hypot, types=("float", "float"), result="float").types
    ('float', 'float')
    """

    def register(call: Callable[..., Any]) -> Function:
        called = rule_name("function", call, name)
        where = f"the function `{called}`"
        given = None if types is None else (types,) if isinstance(types, str | type) else tuple(types)
        parameters = _parameters(call, where, given)
        declared = annotated(call, parameters) if given is None else given
        variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        optional = sum(p.default is not p.empty for p in parameters) + variadic
        gives = return_annotation(call) if result is None else result
        return Function(
            called, tuple(type_of(t, where, given is not None) for t in declared),
            type_of(gives, where, result is not None), opening(call, declared, opened_all if vectorised else opened),
            (getattr(call, "__doc__", "") or "").strip(), optional, variadic, registered=True, vectorised=vectorised,
            pure=pure,
        )  # fmt: skip

    return register(python) if python is not None else register


def rule_name(what: str, call: Callable[..., Any], name: str | None) -> str:
    """The name by which rules call something from Python."""
    if not callable(call):
        raise RunError(f"{call!r} is not a Python function", hint=f"decorate a function with @augury.{what}")
    found = getattr(call, "__name__", type(call).__name__) if name is None else name
    if not re.fullmatch(r"[^\W\d_A-Z]\w*", str(found)):
        raise RunError(
            f"rules cannot call a{'n' if what[0] in 'aeiou' else ''} {what} `{found}`",
            hint='a name begins with a small letter; give one with name="…"',
        )
    return str(found)


def _parameters(call: Callable[..., Any], where: str, given: Sequence[Any] | None) -> list[inspect.Parameter]:
    """What a rule gives a function, by position."""
    try:
        signature = inspect.signature(call)
    except (ValueError, TypeError):
        if given is None:
            raise RunError(f"Python does not tell the parameters of {where}", hint=_GIVE_TYPES) from None
        return []
    found: list[inspect.Parameter] = []
    for p in signature.parameters.values():
        if p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD:
            found.append(p)
        elif p.kind is p.KEYWORD_ONLY and p.default is p.empty:
            raise RunError(f"{where} needs `{p.name}` by name, but rules give arguments by position",
                           hint=f"give `{p.name}` a default, or move it before the `*`")  # fmt: skip
    return found if given is None else _typed(found, where, len(given))


def _typed(found: list[inspect.Parameter], where: str, types: int) -> list[inspect.Parameter]:
    """The parameters that so many types are for; those with a default may go without."""
    variadic = bool(found) and found[-1].kind is inspect.Parameter.VAR_POSITIONAL
    if variadic and types > len(found):
        return []  # it takes just as many as there are types
    if types > len(found) or any(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in found[types:]):
        raise RunError(f"{where} has {counted(len(found), 'parameter')}, but {counted(types, 'type')}",
                       hint="give one type for each parameter; that of *args holds for the rest")  # fmt: skip
    return found[:types]


_PYTHON = {
    int: "int", float: "number", str: "string", bool: "bool", list: "list", tuple: "list", Iri: "iri", Term: "term",
    datetime: "timestamp", Timestamp: "timestamp", timedelta: "duration", Duration: "duration",
}  # fmt: skip
_GIVE_TYPES = 'say them: function(types=("float", "string"), result="float")'


def annotated(call: Callable[..., Any], parameters: Iterable[inspect.Parameter]) -> tuple[Any, ...]:
    return tuple(_evaluated(p.annotation, call) for p in parameters)


def return_annotation(call: Callable[..., Any]) -> Any:
    try:
        return _evaluated(inspect.signature(call).return_annotation, call)
    except (ValueError, TypeError):
        return inspect.Parameter.empty


def _evaluated(annotation: Any, call: Callable[..., Any]) -> Any:
    """What an annotation written as text stands for; the text itself where it names a type of the language."""
    plain = inspect.unwrap(call)
    scope = getattr(plain, "__globals__", None) or getattr(type(plain).__call__, "__globals__", {})
    for _ in range(2):  # text may be quoted once more, to be read later
        if isinstance(annotation, str) and annotation not in TYPES:
            with suppress(Exception):
                annotation = eval(annotation, scope)
    return annotation


def type_of(given: Any, where: str, declared: bool = False) -> str:
    """The type of the language that an annotation or a declaration stands for; any, where only Python knows it.

    The float of an annotation is a number, since an integer may stand for it; a declared one is a float.
    """
    if isinstance(given, str):
        if given not in TYPES:
            guess = nearest(given, TYPES)
            meant = f"did you mean `{guess}`? " if guess else ""
            raise RunError(f"`{given}` is not a type, in {where}", hint=f"{meant}the types are {', '.join(TYPES)}")
        return "number" if given == "float" and not declared else given
    kinds = {"float" if declared and t is float else _python_type(t) for t in _options(given)}
    if declared and kinds == {"any"} and given is not Any:
        raise RunError(f"{given!r} is not a type, in {where}", hint=f"the types are {', '.join(TYPES)}")
    return kinds.pop() if len(kinds) == 1 else "number" if kinds <= {"int", "float", "number"} and kinds else "any"


def _python_type(annotation: Any) -> str:
    plain = get_origin(annotation) or annotation
    return next((name for python, name in _PYTHON.items() if python is plain), "any")


def _options(annotation: Any) -> tuple[Any, ...]:
    """The types of a union but for None, which every type allows."""
    if get_origin(annotation) in (Union, UnionType):
        return tuple(t for t in get_args(annotation) if t is not NoneType)
    return (annotation,)


def opening(call: Callable[..., Any], declared: Sequence[Any], opened: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function that is given datetime and timedelta of Python where it asks for them."""
    asks = [any(t is datetime or t is timedelta for t in _options(given)) for given in declared]
    if not any(asks):
        return call

    @wraps(call)
    def given(*args: Any) -> Any:
        return call(*(opened(a) if asks[min(i, len(asks) - 1)] else a for i, a in enumerate(args)))

    return given


def opened(value: Any) -> Any:
    """A time as Python has it; other values as they are."""
    try:
        match value:
            case Timestamp():
                return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value.us)
            case Duration():
                return timedelta(microseconds=value.us)
    except OverflowError:
        raise RowError(f"{show_value(value)} is beyond the times of Python") from None
    return value


def opened_all(values: Any) -> Any:
    """Times of a list or an array as Python has them."""
    found = [opened(v) for v in values]
    return found if isinstance(values, list) else _objects(found)


def from_python(value: Any) -> Value:
    """What a function from Python gave, a NumPy scalar among others, as a value."""
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


def _date(part: Callable[[datetime], int]) -> Callable[[Value], Value]:
    def call(value: Value) -> Value:
        if not isinstance(value, Timestamp):
            raise RowError(f"{show_value(value)} is not a timestamp")
        return part(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value.us))

    return call


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
    at = int(_number(start)) - 1
    if at < 0 or (length is not None and _number(length) < 0):
        raise RowError("a position is counted from 1, and a length is not negative")
    return _text(text)[at:] if length is None else _text(text)[at : at + int(_number(length))]


# Distances, made of sums, products and roots alone: these are the same on every machine, one by one and in columns

EARTH_KM = 6378.137  # the radius of E 9.1
_RAD = math.pi / 180


def _distance_km(lat1: Value, lon1: Value, lat2: Value, lon2: Value) -> Any:
    """The haversine formula (43) of E 9.1, with differences taken in degrees, where they are nearly exact."""
    phi1, phi2 = float(_number(lat1)), float(_number(lat2))
    for phi in (phi1, phi2):
        if not -90 <= phi <= 90:
            raise RowError(f"{show_value(phi)} is not a latitude, from -90 to 90")
    across = math.fmod(abs(math.fmod(float(_number(lon1)), 360) - math.fmod(float(_number(lon2)), 360)), 360)
    up, over = _sin_degrees(abs(phi1 - phi2) / 2), _sin_degrees(min(across, 360 - across) / 2)
    a = min(up * up + _sin_degrees(90 - abs(phi1)) * _sin_degrees(90 - abs(phi2)) * (over * over), 1.0)
    s = math.sqrt(a)
    if s < 0.5:
        return _arc_sine(s, a) * (2 * EARTH_KM)
    z = (1 - s) / 2
    return (math.pi / 2 - 2 * _arc_sine(math.sqrt(z), z)) * (2 * EARTH_KM)


def _sin_degrees(x: float) -> Any:
    """The sine of 0 to 90 degrees."""
    return _sine(x * _RAD) if x <= 45 else _cosine((90 - x) * _RAD)


def distances_km(lat1: Array, lon1: Array, lat2: Array, lon2: Array) -> Array:
    """`distance_km` of columns; NaN where there is none."""
    import numpy as np

    def sin_degrees(x: Array) -> Array:
        return np.where(x <= 45, _sine(x * _RAD), _cosine((90 - x) * _RAD))

    if any(np.asarray(c).dtype.kind not in "iuf" for c in (lat1, lon1, lat2, lon2)):
        raise TypeError("a column that is not of numbers")
    phi1, turn1, phi2, turn2 = (np.asarray(c, np.float64) for c in (lat1, lon1, lat2, lon2))
    with np.errstate(all="ignore"):
        across = np.fmod(np.abs(np.fmod(turn1, 360) - np.fmod(turn2, 360)), 360)
        up, over = sin_degrees(np.abs(phi1 - phi2) / 2), sin_degrees(np.minimum(across, 360 - across) / 2)
        a = up * up + sin_degrees(90 - np.abs(phi1)) * sin_degrees(90 - np.abs(phi2)) * (over * over)
        a = np.minimum(a, 1.0)
        s = np.sqrt(a)
        near = s < 0.5
        z = np.where(near, a, (1 - s) / 2)
        arc = _arc_sine(np.where(near, s, np.sqrt(z)), z)
        found = np.where(near, arc, math.pi / 2 - 2 * arc) * (2 * EARTH_KM)
    return np.where((np.abs(phi1) <= 90) & (np.abs(phi2) <= 90), found, np.nan)


# The polynomials of fdlibm, of a number or a column: sine and cosine up to 45 degrees, arc sine up to a half


def _sine(x: Any) -> Any:
    z = x * x
    r = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))  # fmt: skip
    return x + x * z * (-1.66666666666666324348e-01 + z * r)


def _cosine(x: Any) -> Any:
    z = x * x
    r = 4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))))  # fmt: skip
    return 1 - (z / 2 - z * z * r)


def _arc_sine(x: Any, z: Any) -> Any:
    """The arc sine of x, whose square is z."""
    p = z * (1.66666666666666657415e-01 + z * (-3.25565818622400915405e-01 + z * (2.01212532134862925881e-01 + z * (-4.00555345006794114027e-02 + z * (7.91534994289814532176e-04 + z * 3.47933107596021167570e-05)))))  # fmt: skip
    q = 1 + z * (-2.40339491173441421878e00 + z * (2.02094576023350569471e00 + z * (-6.88283971605453293030e-01 + z * 7.70381505559019352791e-02)))  # fmt: skip
    return x + x * (p / q)


def _square_roots(x: Array) -> Array:
    import numpy as np

    with np.errstate(invalid="ignore"):
        return np.sqrt(x)


_N, _S, _ANY = "number", "string", "any"


def _row(
    name: str, types: tuple[str, ...], result: str, call: Callable[..., Any], doc: str, *, optional: int = 0,
    variadic: bool = False, spark: str | None = None, vector: Callable[..., Array] | None = None,
) -> Function:  # fmt: skip
    return Function(name, types, result, call, doc, optional, variadic, spark=spark, vector=vector)


# What the forms in Spark are made of

_SPACE = " \t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
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
    _row("+", (_ANY, _ANY), _ANY, _add, "sum; also of a timestamp and a duration", spark="try_add"),
    _row("-", (_ANY, _ANY), _ANY, lambda x, y=None: _subtract(x, y) if y is not None else _negate(x), "difference; of timestamps, a duration", optional=1, spark="try_subtract"),
    _row("*", (_ANY, _ANY), _ANY, _multiply, "product; also of a duration and a number", spark="try_multiply"),
    _row("/", (_ANY, _ANY), _ANY, _divide, "quotient, a float", spark="try_divide"),
    _row("//", (_N, _N), "int", _floor_divide, "quotient, rounded down to an integer", spark=f"floor({_bounded('try_divide({0}, {1})')})"),
    _row("mod", (_N, _N), _N, lambda x, y: _number(x) % _nonzero(_number(y)), "remainder of //", spark="pmod({0}, nullif(greatest({1}, 0), 0))"),
    _row("**", (_N, _N), _N, _power, "power"),
    _row("pow", (_N, _N), _N, _power, "power"),
    _row("min", (_ANY, _ANY), _ANY, lambda *v: min(v, key=order_key), "least", variadic=True, spark="least"),
    _row("max", (_ANY, _ANY), _ANY, lambda *v: max(v, key=order_key), "greatest", variadic=True, spark="greatest"),
    _row("abs", (_ANY,), _ANY, lambda x: Duration(abs(x.us)) if isinstance(x, Duration) else abs(_number(x)), "absolute value", spark="abs(nullif({0}, -9223372036854775808))"),
    _row("round", (_N, "int"), _N, _round, "nearest, halves away from zero", optional=1),
    _row("floor", (_N,), "int", _math(math.floor), "next integer below", spark=f"floor({_bounded('{0}')})"),
    _row("ceil", (_N,), "int", _math(math.ceil), "next integer above", spark=f"ceil({_bounded('{0}')})"),
    _row("sqrt", (_N,), "float", _math(math.sqrt), "square root", spark="sqrt", vector=_square_roots),
    *(
        _row(name, (_N,), "float", _math(getattr(math, name)), doc)
        for name, doc in (
            ("sin", "sine"), ("cos", "cosine"), ("tan", "tangent"), ("asin", "arc sine"),
            ("acos", "arc cosine"), ("atan", "arc tangent"), ("exp", "power of e"),
        )
    ),
    _row("log", (_N, _N), "float", lambda x, b=math.e: math.log(_number(x)) if b == math.e else math.log(_number(x), _number(b)), "logarithm, natural unless a base is given", optional=1),
    _row("pi", (), "float", lambda: math.pi, "3.14159…", spark="pi"),
    _row("distance_km", (_N, _N, _N, _N), "float", _distance_km, "great-circle distance of two latitudes and longitudes in degrees: lat1, lon1, lat2, lon2; the haversine formula, on a sphere of radius 6378.137 km", vector=distances_km),
    _row("length", (_S,), "int", lambda s: len(_text(s)), "number of characters", spark="length"),
    _row("upper", (_S,), _S, lambda s: _text(s).upper(), "in capitals", spark=_ascii("upper")),
    _row("lower", (_S,), _S, lambda s: _text(s).lower(), "in small letters", spark=_ascii("lower")),
    _row("trim", (_S,), _S, lambda s: _text(s).strip(), "without space at the ends", spark=f"btrim({{0}}, {_SPACE!r})"),
    _row("concat", (_ANY,), _S, lambda *v: "".join(str(_to_string(x)) for x in v), "joined as text", variadic=True, spark="concat"),
    _row("substring", (_S, "int", "int"), _S, _substring, "from a position, counted from 1, and a length", optional=1, spark=f"substring({{0}}, {_at_least(1, '{1}')}, {_at_least(0, '{2}')})"),
    _row("replace", (_S, _S, _S), _S, lambda s, a, b: _text(s).replace(_text(a), _text(b)), "each a replaced by b", spark="replace({0}, nullif({1}, ''), {2})"),
    _row("contains", (_S, _S), "bool", lambda s, t: _text(t) in _text(s), "whether the second is in the first", spark="contains"),
    _row("starts_with", (_S, _S), "bool", lambda s, t: _text(s).startswith(_text(t)), "whether it begins so", spark="startswith"),
    _row("ends_with", (_S, _S), "bool", lambda s, t: _text(s).endswith(_text(t)), "whether it ends so", spark="endswith"),
    _row("to_string", (_ANY,), _S, _to_string, "as text"),
    _row("to_int", (_ANY,), "int", lambda v: _to_number(v, int), "as an integer, towards zero"),
    _row("to_float", (_ANY,), "float", lambda v: _to_number(v, float), "as a float"),
    _row("is_null", (_ANY,), "bool", lambda v: v is None, "whether it is null"),
    _row("coalesce", (_ANY,), _ANY, lambda *v: next((x for x in v if x is not None), None), "the first that is not null", variadic=True),
    _row("year", ("timestamp",), "int", _date(lambda d: d.year), "year", spark=_day("year")),
    _row("month", ("timestamp",), "int", _date(lambda d: d.month), "month, 1 to 12", spark=_day("month")),
    _row("day", ("timestamp",), "int", _date(lambda d: d.day), "day of the month", spark=_day("day")),
    _row("hour", ("timestamp",), "int", _date(lambda d: d.hour), "hour, 0 to 23, UTC", spark=f"div(pmod({{0}}, {_US_DAY}), {_US_HOUR})"),
    _row("minute", ("timestamp",), "int", _date(lambda d: d.minute), "minute", spark=f"div(pmod({{0}}, {_US_HOUR}), {_US_MINUTE})"),
    _row("second", ("timestamp",), "int", _date(lambda d: d.second), "second", spark=f"div(pmod({{0}}, {_US_MINUTE}), {_US_SECOND})"),
    _row("weekday", ("timestamp",), "int", _date(lambda d: d.isoweekday()), "day of the week, Monday is 1", spark=f"try_add({_day('weekday')}, 1)"),
    _row("day_of_year", ("timestamp",), "int", _date(lambda d: d.timetuple().tm_yday), "day of the year", spark=_day("dayofyear")),
)  # fmt: skip

FUNCTIONS: dict[str, Function] = {row.name: row for row in _ROWS}
_NULL_SAFE = {"is_null", "coalesce"}


def _negate(value: Value) -> Value:
    return Duration(-value.us) if isinstance(value, Duration) else -_number(value)


def apply(function: Function, args: tuple[Value, ...]) -> Value:
    """The value of a function. A null argument gives null, but for the functions that are about null."""
    if not function.registered and function.name not in _NULL_SAFE and any(a is None for a in args):
        return None
    try:
        result = _one_row(function, args) if function.vectorised else function.call(*args)
    except RowError:
        raise
    except (ValueError, ArithmeticError) as error:
        if function.registered:
            raise
        raise RowError(f"{function.name}: {error}") from error
    return _checked(from_python(result) if function.registered else result)


def _one_row(function: Function, args: tuple[Value, ...]) -> Any:
    """A vectorised function of a single row."""
    result = function.call(*(column_of([a]) for a in args))
    if len(result) != 1:
        raise ValueError(f"gave {len(result)} values for 1 row")
    return result[0]


def column_of(values: Sequence[Value]) -> Array:
    """An array: of numbers or booleans where all values are, else of objects."""
    import numpy as np

    kinds = {type(v) for v in values}
    return np.array(values) if kinds <= {int, float} or kinds == {bool} else _objects(values)


def _objects(values: Sequence[Any]) -> Array:
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
