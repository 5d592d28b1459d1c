"""Arithmetic that rounds once: formulas over exact numbers, evaluated by columns with bounds on the error, or as ratios.

A formula is a function of `+ - * /`, such as `lambda n, total: total / n`. Over an `Approximation` it handles a whole column,
and its error bound shows which results are certain once they are rounded; a `Ratio` is exact, one number at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from augury.core.arrays import Array

Column: TypeAlias = "Array | Any"  # numbers, or 0.0 for all
_SPLIT = 134217729.0  # 2^27 + 1: a float times it, and back, is its upper half
_LOST = 2.0**-98  # the share of a number that one operation may lose; the true share is below 2^-100
_MODERATE, _SLACK = 2.0**44, 2.0**-7  # floats below the one are rounded by less than the other


def two_sum(a: Column, b: Column) -> tuple[Array, Array]:
    """A sum as floats round it, and the rest that rounding leaves out."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """A product as floats round it, and the rest that rounding leaves out."""
    p = a * b
    a_high, b_high = _upper_half(a), _upper_half(b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def _upper_half(x: Array) -> Array:
    c = _SPLIT * x
    return c - (c - x)


@dataclass(frozen=True, slots=True)
class Approximation:
    """Numbers in two parts, and how far the true numbers may be from their sums. `low` and `error` are 0.0 where all are zero."""

    high: Array
    low: Column = 0.0
    error: Column = 0.0

    @staticmethod
    def made(high: Array, low: Column, error: Column = 0.0) -> Approximation:
        """With 0.0 in the place of columns of zeros, for which arithmetic takes less."""
        return Approximation(high, low if np.any(low) else 0.0, error if np.any(error) else 0.0)

    def __add__(self, other: Operand) -> Approximation:
        other = _approximation(other)
        s, e = two_sum(self.high, other.high)
        error = self.error + other.error
        if isinstance(self.low, float) and isinstance(other.low, float):
            return Approximation.made(s, e, error)
        t, f = two_sum(self.low, other.low)
        e, g = two_sum(e, t)
        high, low = two_sum(s, e)
        low, lost = two_sum(low, f + g)
        high, low = two_sum(high, low)
        inexact = (lost != 0.0) | ((f != 0.0) & (g != 0.0))
        rounded = np.where(inexact, (abs(self.high) + abs(other.high)) * _LOST, 0.0)
        return Approximation.made(high, low, error + rounded)

    def __neg__(self) -> Approximation:
        return Approximation(-self.high, -self.low, self.error)

    def __sub__(self, other: Operand) -> Approximation:
        return self + -_approximation(other)

    def __rsub__(self, other: float) -> Approximation:
        return -self + other

    def __mul__(self, other: Operand) -> Approximation:
        other = _approximation(other)
        p, e = two_product(self.high, other.high)
        error = 2.0 * (abs(self.high) * other.error + (abs(other.high) + other.error) * self.error)
        if isinstance(self.low, float) and isinstance(other.low, float):
            return Approximation.made(p, e, error)
        high, low = two_sum(p, e + (self.high * other.low + self.low * other.high))
        return Approximation(high, low, error + abs(p) * _LOST)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Operand) -> Approximation:
        other = _approximation(other)
        by = other.high
        q = self.high / by
        if isinstance(other.low, float) and isinstance(other.error, float):  # by whole numbers, mostly
            p, e = two_product(q, by)
            rest, lost = two_sum((self.high - p) - e, self.low)
            more = rest / by
            p, e = two_product(more, by)
            rounded = np.where((p == rest) & (e == 0.0) & (lost == 0.0), 0.0, abs(more) * 2.0**-50)
            return Approximation(q, more, rounded + self.error / abs(by))
        left = self - other * Approximation(q)
        more = left.high / by
        left = left - other * Approximation(more)
        high, low = two_sum(q, more + left.high / by)
        error = 2.0 * (self.error + abs(q) * other.error + left.error) / abs(by) + abs(q) * _LOST
        exact = (left.high == 0.0) & (left.low == 0.0) & (left.error == 0.0)
        return Approximation.made(high, low, np.where(exact, 0.0, error))

    def floats(self) -> tuple[Array, Array]:
        """The numbers, rounded to floats, and which of them are certainly rounded right."""
        if isinstance(self.error, float):
            return self.high + self.low + 0.0, np.ones(len(self.high), bool)
        slack = 2.0 * self.error + abs(self.low) * np.where(self.error == 0.0, 0.0, 2.0**-50)
        below, above = self.high + (self.low - slack), self.high + (self.low + slack)
        return below + 0.0, below == above

    def integers(self) -> tuple[Array, Array]:
        """The numbers, rounded to integers, halves to even, and which of them are certainly rounded right."""
        number = self.high + self.low
        slack = np.where((self.low == 0.0) & (self.error == 0.0), 0.0, 2.0 * self.error + _SLACK)
        sure = (abs(number) < _MODERATE) & (np.rint(number - slack) == np.rint(number + slack))
        return np.rint(np.where(sure, number, 0.0)).astype(np.int64), sure


Operand: TypeAlias = "Approximation | float"


class Ratio:
    """An exact fraction, not reduced."""

    __slots__ = ("denominator", "numerator")

    def __init__(self, numerator: int, denominator: int = 1) -> None:
        self.numerator, self.denominator = numerator, denominator

    def __add__(self, other: Ratio | int) -> Ratio:
        other = _ratio(other)
        if self.denominator == other.denominator:
            return Ratio(self.numerator + other.numerator, self.denominator)
        numerator = self.numerator * other.denominator + other.numerator * self.denominator
        return Ratio(numerator, self.denominator * other.denominator)

    def __neg__(self) -> Ratio:
        return Ratio(-self.numerator, self.denominator)

    def __sub__(self, other: Ratio | int) -> Ratio:
        return self + -_ratio(other)

    def __rsub__(self, other: int) -> Ratio:
        return -self + other

    def __mul__(self, other: Ratio | int) -> Ratio:
        other = _ratio(other)
        return Ratio(self.numerator * other.numerator, self.denominator * other.denominator)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Ratio | int) -> Ratio:
        other = _ratio(other)
        return Ratio(self.numerator * other.denominator, self.denominator * other.numerator)

    def __float__(self) -> float:
        return self.numerator / self.denominator + 0.0

    def __round__(self) -> int:
        """The nearest integer; of two, the even one."""
        whole, rest = divmod(self.numerator, self.denominator)
        twice = 2 * abs(rest) - abs(self.denominator)
        return whole + (twice > 0 or (twice == 0 and whole % 2 == 1))


def _approximation(number: Operand) -> Approximation:
    return number if isinstance(number, Approximation) else Approximation(np.asarray(number, np.float64))


def _ratio(number: Ratio | int) -> Ratio:
    return number if isinstance(number, Ratio) else Ratio(number)
