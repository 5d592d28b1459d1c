"""Columns on their way through an expression, and the arithmetic of numbers, times and lengths of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from augury.core.arrays import Array, Codes, Mask
from augury.storage.dictionary import DURATION, FLOAT, INTEGER, NOTHING, NULL, OPEN, TIME, Dictionary, exact

Kind: TypeAlias = Literal["n", "t", "d", "b", "c"]


@dataclass(slots=True)  # not frozen: one is made for each part of an expression, also where there is a single row
class ColumnOperand:
    """A column: numbers ("n"), points ("t") or lengths ("d") of time in microseconds, truths ("b"), or codes ("c").

    `null` says which rows are null; the rows of `hard` are not computed here: they fail, or need another form.
    """

    kind: Kind
    data: Array
    null: Mask | None = None
    hard: Mask | None = None
    constant: bool = False

    def __len__(self) -> int:
        return len(self.data)

    def broadcast(self, *others: ColumnOperand) -> ColumnOperand:
        """The same column, hard and null wherever one of the others is."""
        parts = (self, *others)
        null, hard = either(p.null for p in parts), either(p.hard for p in parts)
        return ColumnOperand(self.kind, self.data, null, hard)

    def but(self, wrong: Mask) -> ColumnOperand:
        """The same column, with more rows that are hard."""
        return replace(self, hard=either((self.hard, wrong))) if wrong.any() else self

    @property
    def easy(self) -> bool:
        """Whether each row has a value of the kind."""
        return self.null is None and self.hard is None


def either(masks: Iterable[Mask | None]) -> Mask | None:
    """The rows of any of some masks, each of which may be missing."""
    result: Mask | None = None
    for mask in masks:
        if mask is not None:
            result = mask if result is None else result | mask
    return result


def typed(operand: ColumnOperand, dictionary: Dictionary) -> ColumnOperand | None:
    """Codes as numbers, times or lengths of time, whichever the first of them is; rows of another kind are hard."""
    if operand.kind != "c":
        return None if operand.kind == "b" else operand
    codes, hard = operand.data, operand.hard
    if not len(codes) or not (codes & 3).any():
        return ColumnOperand("n", codes >> 2, operand.null, hard, operand.constant)
    open_rows = codes == OPEN
    if open_rows.any():
        hard = either((hard, open_rows))
    kinds = dictionary.kinds(codes)
    null: Mask | None = kinds == NOTHING
    valid = kinds[~null] if null.any() else kinds  # type: ignore[union-attr, operator]
    null = null if len(valid) < len(kinds) else None
    if not len(valid):
        return replace(operand, kind="n", data=np.zeros(len(codes), np.int64), null=null, hard=hard)
    kind = valid[0]
    if kind not in (INTEGER, FLOAT, TIME, DURATION):
        return None
    same = kinds == kind
    if not same.all():
        other = ~same if null is None else ~same & ~null
        hard = either((hard, other)) if other.any() else hard
    if kind == INTEGER:
        return replace(operand, kind="n", data=codes >> 2, null=null, hard=hard)
    numbers = np.where(same, codes, 1) >> 1  # where it is of another kind, that of null
    if kind == FLOAT:
        whole = same & ((codes & 1) == 0)
        values = np.where(whole, (codes >> 2).astype(np.float64), dictionary.numbers[np.where(whole, 0, numbers)])
        return replace(operand, kind="n", data=values, null=null, hard=hard)
    return replace(operand, kind="t" if kind == TIME else "d", data=dictionary.payload[numbers], null=null, hard=hard)


_MOST = 2**62
ARITHMETIC = ("+", "-", "*", "/", "//", "mod")


def arithmetic(op: str, first: ColumnOperand, other: ColumnOperand) -> ColumnOperand | None:
    """`one op other`; rows that overflow or divide by zero are hard. None where the kinds do not go together so."""
    x, y, kinds = first.data, other.data, first.kind + other.kind
    unit = _UNIT.get((op, kinds))
    if unit is None or (unit != "n" and "f" in x.dtype.kind + y.dtype.kind):
        return None
    base = ColumnOperand(unit, x).broadcast(first, other)
    if x.dtype.kind == "f" or y.dtype.kind == "f":
        return _of_floats(op, base, x, y)
    zero = (y == 0) if op in ("/", "//", "mod") else None
    if zero is not None and zero.any():
        base, y = base.but(zero), np.where(zero, 1, y)
    with np.errstate(all="ignore"):
        near = _near(op, x, y)
        if near is not None:
            base = base.but(~near)
        result: Array = _WHOLE[op](x, y)
    return replace(base, data=result + 0.0 if op == "/" else result)


_UNIT: dict[tuple[str, str], Kind] = {
    **{(op, "nn"): "n" for op in ARITHMETIC},
    ("-", "tt"): "d", ("-", "dd"): "d", ("+", "dd"): "d", ("+", "td"): "t", ("+", "dt"): "t", ("-", "td"): "t",
    ("*", "nd"): "d", ("*", "dn"): "d", ("//", "dd"): "n",
}  # fmt: skip
_WHOLE = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "//": np.floor_divide, "mod": np.mod}


def _near(op: str, x: Array, y: Array) -> Mask | None:
    """The rows whose result is sure to be exact; None where all are."""
    if not len(x):
        return None
    a, b = int(np.abs(x).max()), int(np.abs(y).max())
    if op in ("//", "mod"):
        return None
    if op == "/":
        return None if max(a, b) <= 2**53 else (np.abs(x) <= 2**53) & (np.abs(y) <= 2**53)
    if op == "*":
        return None if a * b < _MOST else np.abs(x.astype(np.float64) * y) < _MOST / 2
    return None if a + b < _MOST else np.abs(x.astype(np.float64)) + np.abs(y.astype(np.float64)) < _MOST / 2


def _of_floats(op: str, base: ColumnOperand, x: Array, y: Array) -> ColumnOperand:
    for column in (x, y):  # an integer beside a float must be one
        if column.dtype.kind == "i" and not exact(column):
            base = base.but(np.abs(column) > 2**53)
    zero = (y == 0) if op in ("/", "//", "mod") else np.zeros(len(y), bool)
    with np.errstate(all="ignore"):
        if op == "//":
            result = np.floor(x / np.where(zero, 1, y))
            far = ~(np.abs(result) < 2.0**60)
            return replace(base.but(zero | far), data=np.where(far, 0, result).astype(np.int64))
        result = _WHOLE[op](x, np.where(zero, 1, y) if zero.any() else y)
    wrong = ~np.isfinite(result) | zero
    return replace(base.but(wrong), data=result + 0.0)


def negative(operand: ColumnOperand) -> ColumnOperand | None:
    """`-x`."""
    if operand.kind not in ("n", "d"):
        return None
    return replace(operand, data=-operand.data + (0.0 if operand.data.dtype.kind == "f" else 0), constant=False)


def codes_of(operand: ColumnOperand, dictionary: Dictionary) -> Codes:
    """A column as codes; hard rows have any."""
    data = operand.data
    if operand.kind == "c":
        return data
    if operand.hard is not None:
        data = np.where(operand.hard, np.zeros(1, data.dtype), data)
    if operand.kind in ("t", "d"):
        codes = dictionary.encode_times(data, operand.kind)
    else:
        codes = dictionary.encode_column(data)
    return codes if operand.null is None else np.where(operand.null, NULL, codes)
