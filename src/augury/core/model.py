"""Values, events, facts, revocations and changes.

A value is an integer, float, string, boolean, timestamp, duration, IRI, nested term or null (`None`). `order_key` is the
one place that says when two values are equal and which comes first: `1` and `1.0` are one value, `true` and `1` are not.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import lru_cache, reduce
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from augury.core.clock import Duration, Timestamp, read_timestamp, show_timestamp
from augury.core.errors import DataError, brief, visible


@dataclass(frozen=True, slots=True)
class Iri:
    """A name of the web."""

    text: str

    def __str__(self) -> str:
        return f"<{self.text}>"


@dataclass(frozen=True, slots=True)
class Term:
    """A nested term such as `loc('N', 4042)`."""

    functor: str
    args: tuple[Value, ...]

    def __str__(self) -> str:
        return f"{self.functor}({', '.join(show_value(a) for a in self.args)})"


Value: TypeAlias = "int | float | str | bool | Timestamp | Duration | Iri | Term | tuple[Value, ...] | None"
OrderKey: TypeAlias = tuple[Any, ...]

MIN_INT, MAX_INT = -(2**63), 2**63 - 1


def order_key(value: Value) -> OrderKey:
    """The place of a value in the order of terms; two values are equal just when their keys are.

    null < booleans < numbers < timestamps < durations < strings < IRIs < nested terms < lists.
    """
    match value:
        case None:
            return (0,)
        case bool():
            return (1, value)
        case int() | float():
            return (2, value)
        case Timestamp():
            return (3, value.us)
        case Duration():
            return (4, value.us)
        case str():
            return (5, value)
        case Iri():
            return (6, value.text)
        case Term():
            return (7, value.functor, len(value.args), *(order_key(a) for a in value.args))
        case tuple():
            return (8, *(order_key(a) for a in value))
    raise TypeError(f"not a value: {value!r}")


def equal(left: Value, right: Value) -> bool:
    """Equality of the language: null equals nothing, itself included, at any depth."""
    match left, right:
        case (None, _) | (_, None):
            return False
        case Term(), Term():
            return left.functor == right.functor and equal(left.args, right.args)
        case tuple(), tuple():
            return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))
    return order_key(left) == order_key(right)


def has_null(value: Value) -> bool:
    """Whether a value is null, or has null inside."""
    match value:
        case None:
            return True
        case Term():
            return any(has_null(a) for a in value.args)
        case tuple():
            return any(has_null(a) for a in value)
    return False


_TYPES = {
    NoneType: "null", bool: "bool", int: "int", float: "float", str: "string", Timestamp: "timestamp",
    Duration: "duration", Iri: "iri", Term: "term", tuple: "list",
}  # fmt: skip
_ESCAPED = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"})


def type_name(value: Value) -> str:
    return next(name for kind, name in _TYPES.items() if isinstance(value, kind))


def show_value(value: Value) -> str:
    """A value as the rule language writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{visible(value.translate(_ESCAPED))}'"
        case Timestamp():
            return f"@'{value}'"
        case float():
            return repr(value)
        case tuple():
            return "[" + ", ".join(show_value(v) for v in value) + "]"
        case Iri() | Term():
            return visible(str(value))
    return str(value)


def to_json(value: Value) -> object:
    """A value as JSON; timestamps and durations as text, a nested term as functor and arguments."""
    match value:
        case Timestamp() | Duration():
            return str(value)
        case Iri():
            return value.text
        case Term():
            return {"functor": value.functor, "args": [to_json(a) for a in value.args]}
        case tuple():
            return [to_json(a) for a in value]
    return value


def from_json(value: object) -> Value:
    """A value from JSON, normalised at the edge: NaN is null, -0.0 is 0.0, an integer beyond 64 bits is refused."""
    match value:
        case bool() | None | str() | Timestamp() | Duration() | Iri():
            return value
        case int():
            if not MIN_INT <= value <= MAX_INT:
                raise DataError(f"an integer beyond 64 bits: {brief(value)}")
            return value
        case float():
            if math.isnan(value):
                return None
            if math.isinf(value):
                raise DataError("an infinite number")
            return value + 0.0
        case date():  # a datetime among them
            return Timestamp(read_timestamp(value.isoformat()))
        case timedelta():
            length = value // timedelta(microseconds=1)
            if not MIN_INT <= length <= MAX_INT:
                raise DataError(f"a duration beyond 64 bits: {value}")
            return Duration(length)
        case Term(functor, args) | {"functor": str(functor), "args": [*args]}:
            return Term(functor, tuple(from_json(a) for a in args))
        case list() | tuple():
            return tuple(from_json(a) for a in value)
    raise DataError(f"not a value: {_in_json(value)}", hint='a nested term is {"functor": "loc", "args": ["N", 4042]}')


def _in_json(value: object) -> str:
    try:
        return json.dumps(value, default=str)[:60]
    except (RecursionError, ValueError, TypeError):  # of what is nested without end, or has keys that are no text
        return brief(value)


def _canonical(value: Value) -> object:
    match value:
        case float() if value.is_integer():
            return int(value)
        case bool() | None | int() | float() | str():
            return value
        case Timestamp() | Duration():
            return {type(value).__name__: value.us}
        case Iri():
            return {"iri": value.text}
        case Term():
            return {value.functor: [_canonical(a) for a in value.args]}
        case tuple():
            return [_canonical(a) for a in value]


_compact = json.JSONEncoder(separators=(",", ":")).encode


def text_hash(text: str) -> int:
    """A hash of 64 bits."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


GOLDEN, MIX_1, MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_BITS = 2**64 - 1
INT_SEED, FLOAT_SEED = text_hash("int"), text_hash("float")


def mix(h: int, more: int) -> int:
    """A hash of 64 bits and one more number (splitmix64). `engine.values.mixed` is the same for columns."""
    h = ((h ^ more) + GOLDEN) & _BITS
    h = ((h ^ (h >> 30)) * MIX_1) & _BITS
    h = ((h ^ (h >> 27)) * MIX_2) & _BITS
    return h ^ (h >> 31)


def value_hash(value: Value) -> int:
    """A hash that equal values share: of the number, where it is one, else of the canonical form."""
    match value:
        case bool() | None:
            pass
        case int() if MIN_INT <= value <= MAX_INT:
            return mix(INT_SEED, value)
        case float():
            if not value.is_integer():
                return mix(FLOAT_SEED, int.from_bytes(struct.pack(">d", value)))
            if MIN_INT <= value <= MAX_INT:
                return mix(INT_SEED, int(value))
    return text_hash(_compact(_canonical(value)))


def spelling(value: Value) -> int:
    """Distinguishes equal values that are written differently: 0 where no whole float such as `1.0` is in it."""
    match value:
        case float():
            return int(value.is_integer())
        case Term() | tuple() if _has_whole(value):
            return text_hash(repr(value))
    return 0


def _has_whole(value: Value) -> bool:
    match value:
        case float():
            return value.is_integer()
        case Term():
            return any(_has_whole(a) for a in value.args)
        case tuple():
            return any(_has_whole(a) for a in value)
    return False


def spelling_of(args: tuple[Value, ...]) -> int:
    """How arguments are written: 0 where no whole float is in them."""
    result = [spelling(a) for a in args]
    return reduce(mix, result, 0) if any(result) else 0


@lru_cache(4096)
def content_seed(type: str, arity: int) -> int:
    """What the hash of an event begins with."""
    return text_hash(f"{type}/{arity}")


def content_id(type: str, args: tuple[Value, ...], start: int, end: int, number: int = 0, written: int = 0) -> str:
    """The id of an event that has none: a hash of its content; of an input also its number among equals and its spelling."""
    h = content_seed(type, len(args))
    for arg in args:
        h = mix(h, value_hash(arg))
    h = mix(mix(h, start), end)
    if number or written:
        h = mix(mix(h, number), written)
    return f"{h:016x}"


_AT_START = MIN_INT - 1  # no time point: the end of an event that is given none is its start


class Origin(Protocol):
    """Rows that events are made of. They know the id and the trace of each, and whether times are those of the calendar."""

    @property
    def calendar(self) -> bool: ...
    def id_of(self, row: int) -> str: ...
    def trace_of(self, row: int) -> tuple[str, ...]: ...


class _Made:
    """An event that was made of a row of an answer: its id and its trace are found when they are first looked at."""

    __slots__ = ("_origin",)

    if not TYPE_CHECKING:  # a type checker would take any attribute for one of these

        def __getattr__(self, name: str) -> Any:
            if name not in ("id", "trace"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            origin, row = self._origin
            result = origin.id_of(row) if name == "id" else origin.trace_of(row)
            object.__setattr__(self, name, result)
            return result


@dataclass(frozen=True, slots=True)
class Event(_Made):
    """`type(args)` over the closed interval `[start, end]`.

    `trace` lists the ids of the input events of one derivation; `known` is when an input was learnt of. Of the inputs
    with one id the one with the greatest `version` stands.
    """

    type: str
    args: tuple[Value, ...] = ()
    start: int = 0
    end: int = _AT_START
    id: str = ""
    trace: tuple[str, ...] = ()
    known: int | None = field(default=None, compare=False)
    version: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        if self.end == _AT_START:
            object.__setattr__(self, "end", self.start)
        if type(self.start) is not int or type(self.end) is not int:
            raise DataError(
                f"{self.type}: its times are {self.start!r} and {self.end!r}, but a time point is an integer",
                hint='give calendar times in the dict form: {"type": …, "args": […], "time": "2026-01-31 10:00"}',
            )
        if self.start > self.end:
            raise DataError(f"{self.type}: starts at {self.start}, after its end {self.end}")

    @property
    def content(self) -> OrderKey:
        """What makes two derived events one: type, arguments and interval."""
        return (self.type, len(self.args), tuple(order_key(a) for a in self.args), self.start, self.end)

    @property
    def order(self) -> OrderKey:
        """The order of events: (end, start, type, arguments, id)."""
        return (self.end, self.start, self.type, tuple(order_key(a) for a in self.args), self.id)

    def __str__(self) -> str:
        args = ", ".join(show_value(a) for a in self.args)
        origin, _ = getattr(self, "_origin", (None, 0))
        if origin is not None and origin.calendar:
            return f"{self.type}({args}) [{show_timestamp(self.start)}, {show_timestamp(self.end)}]"
        return f"{self.type}({args}) [{self.start}, {self.end}]"


class _Calendar:
    """The origin of events of the timestamp clock that have their id and trace already."""

    calendar = True


def on_calendar(event: Event) -> Event:
    """The event, whose times are shown as those of the calendar."""
    object.__setattr__(event, "_origin", (_Calendar, 0))
    return event


_TYPE, _ARGS, _START, _END, _KNOWN, _VERSION, _ORIGIN = (
    getattr(Event, name).__set__ for name in ("type", "args", "start", "end", "known", "version", "_origin")
)


def event_of(type: str, args: tuple[Value, ...], start: int, end: int, origin: Origin, row: int) -> Event:
    """The event of a row of an answer, of which all but the id and the trace is known. Nothing of it is checked."""
    event = object.__new__(Event)
    _TYPE(event, type)
    _ARGS(event, args)
    _START(event, start)
    _END(event, end)
    _KNOWN(event, None)
    _VERSION(event, 0)
    _ORIGIN(event, (origin, row))
    return event


@dataclass(frozen=True, slots=True)
class Revocation:
    """Takes the input event of this id back, whether it came already or is still to come.

    With a `version` it takes back the versions up to it; without one, all of them for ever.
    """

    id: str
    known: int | None = None
    version: int | None = None


HistoryItem: TypeAlias = Event | Revocation


@dataclass(frozen=True, slots=True)
class Change:
    """An answer appears (`insert`) or is withdrawn (`retract`)."""

    op: Literal["insert", "retract"]
    event: Event


@dataclass(frozen=True, slots=True)
class Fact:
    """`name(args)`, valid from `since` up to, not including, `until`; None is without a bound."""

    name: str
    args: tuple[Value, ...]
    since: int | None = None
    until: int | None = None

    def valid_at(self, time: int | None) -> bool:
        if time is None:
            return True
        return (self.since is None or self.since <= time) and (self.until is None or time < self.until)


VERSION_NEEDS_ID = "a version belongs to an id, and this event has none"


def give_ids(items: Iterable[HistoryItem]) -> list[HistoryItem]:
    """Events without an id get one: a hash of the content and a number among equals."""
    seen: dict[OrderKey, int] = {}
    result: list[HistoryItem] = []
    for item in items:
        if isinstance(item, Event) and not item.id:
            if item.version:
                raise DataError(f"{item}: {VERSION_NEEDS_ID}")
            # 1 and 1.0 are one value, but not written alike: which of two equal events is which must not hang on arrival.
            written = spelling_of(item.args)
            number = seen.get((item.content, written), 0)
            seen[item.content, written] = number + 1
            item = replace(item, id=content_id(item.type, item.args, item.start, item.end, number, written))
        result.append(item)
    return result
