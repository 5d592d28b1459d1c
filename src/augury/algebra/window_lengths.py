"""Windows whose length is data: `extend(o, D)`, `until(o, Due, most = 30d)` (SEMANTICS 12)."""

from __future__ import annotations

from collections.abc import Iterable

from augury.algebra.nodes import Compare, Condition, Relative
from augury.algebra.scalar import RowError
from augury.algebra.terms import Apply, Const, Expr, Moment
from augury.core.bounds import FAR
from augury.core.clock import Clock, Duration, Timestamp, show_duration
from augury.core.model import Value, show_value

_WHOLE = "round it, or let a program count in finer ticks (`tick 1ms.`)"
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def time_points(window: Relative, value: Value, end: int, clock: Clock) -> int:
    """The length of a window in time points of the clock, for one row whose anchor ends at `end`.

    Raises RowError where the value is no length: null, negative, no whole tick, or beyond `most`.
    """
    length = measure(window, value, clock) - (end if window.kind == "until" else 0)
    if window.most is not None and length > clock.length(window.most):
        raise RowError(f"the window `{window.label}` is longer than {show_duration(window.most)}")
    if length < 0 and window.kind != "until":
        raise RowError(f"{show_value(value)} is a negative length of the window `{window.label}`")
    return min(max(length, 0), clock.length(FAR))


def measure(window: Relative, value: Value, clock: Clock) -> int:
    """A length, or of `until` a time, in time points of the clock."""
    return _time(value, clock) if window.kind == "until" else _length(value, clock)


def _length(value: Value, clock: Clock) -> int:
    match value:
        case Duration() if clock.kind == "timestamp":
            return value.us
        case Duration():
            if value.us % clock.tick:
                raise RowError(f"{show_value(value)} is not a whole number of ticks of {show_duration(clock.tick)}")
            return value.us // clock.tick
        case int() if clock.kind == "logical" and not isinstance(value, bool):
            return value
        case float() if clock.kind == "logical":
            raise RowError(
                f"{show_value(value)} is not a whole number of ticks, as the length of a window must be; {_WHOLE}"
            )
    raise RowError(f"{show_value(value)} is not the length of a window")


def _time(value: Value, clock: Clock) -> int:
    match value:
        case Timestamp() if clock.kind == "timestamp":
            return value.us
        case int() if clock.kind == "logical" and not isinstance(value, bool):
            return value
    raise RowError(f"{show_value(value)} is not a time of the {clock.kind} clock")


def bound_of(window: Relative, where: Iterable[Condition], second: int) -> int | None:
    """The greatest length, in microseconds, that `most` and comparisons with constants allow.

    `w: extend(o, D), D <= 7d` → 7 days. `w: until(o, T), T - end(o) < 1h` → 1 hour. A bare number is counted in `second`.
    """
    bounds = [] if window.most is None else [window.most]
    if isinstance(window.length, int):
        return window.length
    lengths: list[Expr] = [window.length]
    if window.kind == "until":
        lengths = [Apply("-", (window.length, Moment("end", window.anchor)))]
    for condition in where:
        if isinstance(condition, Compare) and condition.op in FLIPPED:
            for op, left, right in (
                (condition.op, condition.left, condition.right),
                (FLIPPED[condition.op], condition.right, condition.left),
            ):
                constant = _constant(right, second)
                if left in lengths and op in ("<", "<=", "=") and constant is not None:
                    bounds.append(constant)
    return min(bounds, default=None)


def _constant(expr: Expr, second: int) -> int | None:
    match expr:
        case Const(value=Duration() as duration):
            return duration.us
        case Const(value=int() as number) if not isinstance(number, bool):
            return number * second
    return None
