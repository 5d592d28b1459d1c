"""Totals of groups of numbers, rounded once: a number is kept as two floats that do not overlap, and what that leaves out is bounded.

A group is a slice: where it starts, and how many it has. A total that cannot be told from its neighbour is left to exact
fractions. Numbers are finite, and neither so large nor so small that a product of two leaves the range of floats.
"""

from __future__ import annotations

from augury.core.arrays import Array, Integers
from augury.core.jit import Kernel, helper

_SPLIT = 134217729.0  # 2^27 + 1: a float times it, and back, is its upper half
_FEW = 24  # numbers that are sorted by insertion
_SECOND = 2.0**-50  # how much of the second part of a number rounding may have cost
_WHOLE = 2.0**-98  # the same of both parts together


@helper
def two_sum(a: float, b: float) -> tuple[float, float]:
    """A sum as it is rounded, and what rounding has left out."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@helper
def two_product(a: float, b: float) -> tuple[float, float]:
    """A product as it is rounded, and what rounding has left out."""
    p = a * b
    c = _SPLIT * a
    ah = c - (c - a)
    al = a - ah
    c = _SPLIT * b
    bh = c - (c - b)
    bl = b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


@helper
def rounded(high: float, low: float, error: float) -> tuple[float, bool]:
    """A number in two parts as one float, and whether it is surely the right one."""
    if error == 0.0:
        return high + low + 0.0, True
    error = 2.0 * error + abs(low) * _SECOND
    below, above = high + (low - error), high + (low + error)
    return below + 0.0, below == above


@helper
def divided(high: float, low: float, error: float, by: float) -> tuple[float, float, float]:
    """A quotient in two parts, and by how much their sum may be wrong: not at all where nothing was rounded."""
    q = high / by
    p, e = two_product(q, by)
    r, left = two_sum((high - p) - e, low)
    more = r / by
    p, e = two_product(more, by)
    if error == 0.0 and left == 0.0 and p == r and e == 0.0:
        return q, more, 0.0
    return q, more, abs(more) * _SECOND + error / by


@helper
def added(x: Array, start: int, count: int) -> tuple[float, float, float]:
    """The sum of a group in two parts, and by how much it may be wrong."""
    high, low, error = 0.0, 0.0, 0.0
    for i in range(start, start + count):
        high, e = two_sum(high, x[i])
        low, e = two_sum(low, e)
        error += abs(e)
    high, low = two_sum(high, low)
    return high, low, error


@Kernel
def sums(x: Array, starts: Integers, counts: Integers, out: Array, sure: Array) -> None:
    """The sum of each group, and whether it is surely the exact one, rounded once."""
    for g in range(len(starts)):
        high, low, error = added(x, starts[g], counts[g])
        out[g], sure[g] = rounded(high, low, error)


@Kernel
def means(x: Array, starts: Integers, counts: Integers, out: Array, sure: Array) -> None:
    """The mean of each group that has something, in the same way."""
    for g in range(len(starts)):
        high, low, error = added(x, starts[g], counts[g])
        high, low, error = divided(high, low, error, float(counts[g]))
        out[g], sure[g] = rounded(high, low, error)


@Kernel
def variances(x: Array, starts: Integers, counts: Integers, out: Array, sure: Array) -> None:
    """The sample variance of each group that has two numbers or more, in the same way."""
    for g in range(len(starts)):
        start, count = starts[g], counts[g]
        least = greatest = x[start]
        for i in range(start, start + count):
            least, greatest = min(least, x[i]), max(greatest, x[i])
        out[g], sure[g] = 0.0, True
        if least == greatest:
            continue
        high, low, error = added(x, start, count)
        mean, rest, unsure = divided(high, low, error, float(count))
        mean, rest = two_sum(mean, rest)
        unsure += abs(mean) * _WHOLE
        high, low, error = 0.0, 0.0, count * unsure * unsure
        for i in range(start, start + count):
            d, e = two_sum(x[i], -mean)
            d, e = two_sum(d, e - rest)
            p, pe = two_product(d, d)
            high, he = two_sum(high, p)
            low += he + (pe + 2.0 * d * e)
            error += abs(d) * (abs(d) + abs(mean)) * _WHOLE
        error += high * count * count * _WHOLE
        high, low = two_sum(high, low)
        high, low, error = divided(high, low, error, float(count - 1))
        out[g], sure[g] = rounded(high, low, error)


@Kernel
def interpolated(a: Array, b: Array, share: Array, rest: Array, exact: Array, out: Array, sure: Array) -> None:
    """What lies between two numbers, by a share in two parts, which is `exact` or nearly so, in the same way."""
    for g in range(len(a)):
        d, de = two_sum(b[g], -a[g])
        p, pe = two_product(d, share[g])
        more = pe + de * share[g] + d * rest[g]
        high, low = two_sum(a[g], p)
        low, left = two_sum(low, more)
        error = abs(left)
        if not (exact[g] and de == 0.0 and rest[g] == 0.0):
            error += (abs(a[g]) + abs(p)) * _WHOLE
        out[g], sure[g] = rounded(high, low, error)


@Kernel
def sort_groups(x: Array, starts: Integers, counts: Integers) -> None:
    """Puts each group in order, in place."""
    for g in range(len(starts)):
        lo, hi = starts[g], starts[g] + counts[g]
        if counts[g] > _FEW:
            x[lo:hi].sort()
            continue
        for i in range(lo + 1, hi):
            value, at = x[i], i
            while at > lo and x[at - 1] > value:
                x[at] = x[at - 1]
                at -= 1
            x[at] = value
