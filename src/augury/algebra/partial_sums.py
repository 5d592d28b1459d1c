"""Sums of a part of what a rule collects, as text: exact, so that the parts together give what one sum would.

    #total(V)   of 0.5 and 1       →  "float 2 3 1": two values, 3 / 2^1
    #sum(T)     of such texts      →  1.5; #avg(T) likewise the mean, and #count(N) how many

Rules with these stand for one with `sum`, `avg` and `count` (`planner/split_aggregates.py`).
"""

from __future__ import annotations

from fractions import Fraction

from augury.algebra.aggregates import AggregateFunction, StateForm
from augury.algebra.scalar import RowError
from augury.core.clock import Duration
from augury.core.model import MAX_INT, MIN_INT, Value

TOTAL = "#total"
_ERROR = "error "  # what a text begins with where values cannot be added up


def total_text(kind: str, count: int, numerator: int, denominator: int) -> str:
    """A sum of so many values; the denominator is a power of two."""
    return f"{kind} {count} {numerator:x} {denominator.bit_length() - 1}"


def total_kind(unit: str, floats: bool) -> str:
    """The kind of a sum, of values in a unit of time ("d"), or of numbers some of which are floats."""
    return "duration" if unit else "float" if floats else "int"


def _total(values: list[Value]) -> str | None:
    if not values:
        return None
    if all(isinstance(v, Duration) for v in values):
        length = sum(v.us for v in values if isinstance(v, Duration))
        return total_text("duration", len(values), length, 1)
    exact, floats = Fraction(0), False
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"{_ERROR}{value}"
        exact, floats = exact + Fraction(value), floats or isinstance(value, float)
    return total_text(total_kind("", floats), len(values), exact.numerator, exact.denominator)


def _added(texts: list[Value]) -> tuple[str, int, Fraction]:
    """The kind of a sum of sums, of how many values it is, and the exact sum."""
    kinds, values, exact = set[str](), 0, Fraction(0)
    for text in map(str, texts):
        if text.startswith(_ERROR):
            raise RowError("what is added up is no number")
        kind, count, numerator, bits = text.split()
        kinds.add(kind)
        values, exact = values + int(count), exact + Fraction(int(numerator, 16), 1 << int(bits))
    if "duration" in kinds and len(kinds) > 1:
        raise RowError("what is added up is no number")
    return "float" if "float" in kinds else kinds.pop(), values, exact


def _sum(texts: list[Value]) -> Value:
    if not texts:
        return None
    kind, _, exact = _added(texts)
    if kind == "duration":
        return Duration(round(exact))
    if kind == "float":
        return _float(exact)
    if not MIN_INT <= exact <= MAX_INT:
        raise RowError("integer overflow")
    return int(exact)


def _avg(texts: list[Value]) -> Value:
    if not texts:
        return None
    kind, values, exact = _added(texts)
    return Duration(round(exact / values)) if kind == "duration" else _float(exact / values)


def _float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        raise RowError("not a finite number") from None


PARTIAL = {
    row.name: row
    for row in (
        AggregateFunction(TOTAL, "number", "string", _total, form=StateForm(("value",), text=True), order_free=True),
        AggregateFunction("#sum", "string", "number", _sum, order_free=True),
        AggregateFunction("#avg", "string", "float", _avg, order_free=True),
        AggregateFunction("#count", "int", "int", sum, order_free=True),
    )
}
# For each aggregate that follows from those of parts: that of a part, and the one that combines them.
COMBINED = {
    "count": ("count", "#count"),
    "sum": (TOTAL, "#sum"),
    "avg": (TOTAL, "#avg"),
    "min": ("min", "min"),
    "max": ("max", "max"),
}
