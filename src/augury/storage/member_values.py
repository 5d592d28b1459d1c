"""The values that an aggregate receives, one for each member of a group, as columns."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from augury.algebra.terms import Expr
from augury.core.arrays import Array
from augury.core.model import order_key
from augury.storage.conditions import Context
from augury.storage.dictionary import NULL, OPEN
from augury.storage.exact_sums import GroupSums, Numbers
from augury.storage.frame import Frame
from augury.storage.unique import unique_first_inverse

_LARGE, _SMALL = 1e100, 1e-100  # floats between them are squared without loss
_WHOLE = 2**53  # integers up to it are floats


class MemberValues:
    """Values as codes; or points ("t") or lengths ("d") of time in microseconds, with a mask of those that are null."""

    def __init__(self, context: Context, column: Array, unit: str = "", null: Array | None = None) -> None:
        self.context, self.dictionary, self.column, self.unit = context, context.dictionary, column, unit
        if not unit:
            null = column == NULL
        self.null: Array = np.zeros(len(column), bool) if null is None else null

    @staticmethod
    def of(context: Context, codes: Array) -> MemberValues:
        """Values that are given as codes: times are read as such where all values are."""
        null = codes == NULL
        some = null.any()
        times = context.dictionary.times(codes[~null] if some else codes)
        if times is None:
            return MemberValues(context, codes)
        unit, column = times
        if some:
            column = np.zeros(len(codes), np.int64)
            column[~null] = times[1]
        return MemberValues(context, column, unit, null)

    @staticmethod
    def compute(context: Context, expr: Expr, frame: Frame) -> MemberValues | None:
        """The values of an argument in each row; None where that takes row by row."""
        codes = context.codes(expr, frame)
        if codes is not None:
            return None if (codes == OPEN).any() else MemberValues.of(context, codes)
        times = context.vector(expr, frame)
        return None if times is None or times[0] == "n" else MemberValues(context, times[1], times[0])

    def __len__(self) -> int:
        return len(self.column)

    def take(self, members: Array) -> MemberValues:
        return MemberValues(self.context, self.column[members], self.unit, self.null[members])

    def codes(self, members: Array) -> Array:
        """The codes of some members."""
        if not self.unit:
            return self.column[members]
        codes = self.context.encode_times(self.column[members], self.unit)
        return np.where(self.null[members], NULL, codes)

    def encode(self, numbers: Array) -> Array:
        """The codes of numbers in the unit of these values."""
        if self.unit:
            return self.context.encode_times(numbers, self.unit)
        return self.dictionary.encode_column(numbers)

    @cached_property
    def keys(self) -> Array:
        """Integers that are equal where values are."""
        return self.column if self.unit else self.dictionary.canonical(self.column)

    @cached_property
    def plain(self) -> Array | None:
        """The values as numbers of one kind, which are written in one way only; None where they are not."""
        if self.unit:
            return None if self.null.any() else self.column
        return self.dictionary.numeric(self.column)

    @cached_property
    def alike(self) -> bool:
        """Whether equal values are written alike, as strings are, but not 1 and 1.0."""
        return self.keys is self.column or bool((self.keys == self.column).all())

    @cached_property
    def order(self) -> Array:
        """Numbers in the order of the values."""
        if self.unit or self.plain is not None:
            return self.column if self.plain is None else self.plain
        numbers, _, hard = self.numbers
        if not hard.any():
            return numbers
        _, first, inverse = unique_first_inverse(self.keys)
        decode = self.dictionary.decode
        ordered = sorted(range(len(first)), key=lambda i: order_key(decode(int(self.column[first[i]]))))
        rank = np.empty(len(first), np.int64)
        rank[ordered] = np.arange(len(first))
        return rank[inverse]

    @cached_property
    def numbers(self) -> tuple[Array, Array, Array]:
        """The values as integers or floats; which of them are floats; and which are hard: no numbers, or extreme ones."""
        none = np.zeros(len(self), bool)
        if self.unit == "t":
            return self.column, none, ~none
        if self.plain is not None:
            x = self.plain
            if x.dtype.kind == "i":
                return x, none, none
            fits = _fits(x)
            return np.where(fits, x, 0.0), ~none, ~fits
        if self.unit:
            return self.column, none, none
        codes, dictionary = self.column, self.dictionary
        whole, odd = codes >> 2, (codes & 1).astype(bool)
        x = whole.astype(np.float64)
        hard = ~odd & (np.abs(whole) > _WHOLE)
        inside = np.flatnonzero(odd)
        float_ = dictionary.is_float(codes[inside] >> 1)
        hard[inside[~float_]] = True
        x[inside[float_]] = dictionary.numbers[codes[inside[float_]] >> 1]
        hard |= ~_fits(x)
        x[hard] = 0.0
        return x, odd | ((codes & 2) != 0), hard

    @cached_property
    def truths(self) -> tuple[Array, Array]:
        """1 where a value is true, else 0; and which values are neither true nor false."""
        if self.unit:
            return np.zeros(len(self), np.int64), ~self.null
        no, yes = self.dictionary.encode_all((False, True)).tolist()
        true = self.column == yes
        return true.astype(np.int64), ~true & (self.column != no)

    def sums(self, measure: str, starts: Array, counts: Array) -> tuple[Numbers, Array]:
        """Sums of the members of groups, by "value", "square" or "true"; and which of the values are hard."""
        if measure == "true":
            true, hard = self.truths
            return GroupSums.of(true, 1, starts, counts), hard
        x, _, hard = self.numbers
        if measure == "value":
            return GroupSums.of(x, 1, starts, counts), hard
        if x.dtype.kind == "i":
            hard = hard | (np.abs(x) > _WHOLE)
            x = np.where(hard, 0, x)
        return GroupSums.of(x, 2, starts, counts), hard


def _fits(x: Array) -> Array:
    size = np.abs(x)
    fits: Array = (size < _LARGE) & ((size > _SMALL) | (x == 0.0))
    return fits
