"""Sums over groups of floats, each in two parts with a bound on the error."""

from __future__ import annotations

from augury.core.arrays import Array
from augury.core.jit import Kernel, helper

MAKES_NO_ARRAYS = True
_SPLIT = 134217729.0  # 2^27 + 1: a float times it, and back, is its upper half


@helper
def two_sum(a: float, b: float) -> tuple[float, float]:
    """A sum as floats round it, and the rest that rounding leaves out."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@helper
def squared(a: float) -> tuple[float, float]:
    """A square as floats round it, and the rest that rounding leaves out."""
    p = a * a
    c = _SPLIT * a
    high = c - (c - a)
    low = a - high
    return p, ((high * high - p) + 2.0 * high * low) + low * low


@Kernel
def add_groups(x: Array, power: int, starts: Array, counts: Array, parts: Array) -> None:
    """Adds the numbers of each group, or their squares: `parts` gets both parts of the sum, and the bound."""
    for g in range(len(starts)):
        high, low, error = 0.0, 0.0, 0.0
        for i in range(starts[g], starts[g] + counts[g]):
            value, rest = x[i], 0.0
            if power == 2:
                value, rest = squared(value)
            high, e = two_sum(high, value)
            low, e = two_sum(low, e)
            error += abs(e)
            if rest != 0.0:
                low, e = two_sum(low, rest)
                error += abs(e)
        parts[0, g], parts[1, g] = two_sum(high, low)
        parts[2, g] = error
