"""Floats as sums of whole numbers of 2^40, 1, 2^-40, …, whose sums are exact, and what such sums come to, rounded once."""

from __future__ import annotations

import numpy as np

from augury.core.arrays import Array, Integers

BITS = 40
_SHIFT = float(1 << BITS)
_LARGEST = float(1 << 41)  # so that the sum of a million of them is less than 2^61
_SQUARED = float(1 << 31)  # the largest number that is squared: its square is less than 2^62
_SPLIT = 134217729.0  # 2^27 + 1: a float times it, and back, is its upper half
_WHOLE = 2**53  # integers up to it are floats


def in_limbs(x: Array, fraction: bool) -> tuple[Array, Array]:
    """Numbers as multiples of 1, and of 2^-40 and 2^-80 where there is a `fraction`; and for which that is all of them."""
    if x.dtype.kind == "i":
        ones = np.zeros((3 if fraction else 1, len(x)), np.int64)
        ones[0] = x
        return ones, np.abs(x) < int(_LARGEST)
    fits = np.abs(x) < _LARGEST
    limbs, left = _cut(np.where(fits, x, 0.0), 3 if fraction else 1)
    return limbs, fits & (left == 0)


def squares_in_limbs(x: Array, fraction: bool) -> tuple[Array, Array]:
    """Squares of numbers as multiples of 2^40, 1, and of 2^-40, 2^-80 and 2^-120 where there is a `fraction`."""
    fits = np.abs(x) < _SQUARED
    if x.dtype.kind == "i":
        square = np.where(fits, x, 0) ** 2
        limbs = np.zeros((5 if fraction else 2, len(x)), np.int64)
        limbs[0], limbs[1] = square >> BITS, square & ((1 << BITS) - 1)
        return limbs, fits
    y = np.where(fits, x, 0.0)
    product = y * y
    c = _SPLIT * y
    high = c - (c - y)
    low = y - high
    rest = ((high * high - product) + 2.0 * high * low) + low * low  # what rounding the product has left out
    count = 5 if fraction else 2
    (one, left), (other, more) = _cut(product / _SHIFT, count), _cut(rest / _SHIFT, count)
    return one + other, fits & (left == 0) & (more == 0)


def _cut(x: Array, count: int) -> tuple[Array, Array]:
    """Floats as so many whole numbers, each of 2^-40 of the one before, and what is left of them."""
    limbs, left = np.empty((count, len(x)), np.int64), x
    for number in range(count):
        whole = np.trunc(left)
        limbs[number] = whole
        left = (left - whole) * _SHIFT
    return limbs, left


def ordered(x: Array) -> tuple[Array, Array]:
    """Integers in the order of numbers, and for which numbers they tell all: large integers are not told apart."""
    fits = np.abs(x) <= _WHOLE if x.dtype.kind == "i" else np.isfinite(x)
    bits = (x.astype(np.float64) + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits), fits


def sum_of_limbs(limbs: Array, counts: Integers | None) -> Array:
    """Sums, or means of so many, as floats."""
    if len(limbs) == 1 and (counts is None or bool((np.abs(limbs[0]) <= _WHOLE).all())):
        means: Array = limbs[0].astype(np.float64) if counts is None else limbs[0] / counts
        return means
    by = [1] * limbs.shape[1] if counts is None else counts.tolist()
    shift = BITS * (len(limbs) - 1)
    return np.array([x / (n << shift) for x, n in zip(_whole(limbs), by, strict=True)], np.float64)


def sum_of_square_limbs(limbs: Array, squares: Array, counts: Integers) -> Array:
    """Sample variances of so many, from sums and sums of squares."""
    scale = BITS * (len(limbs) - 1)  # of a sum; that of squares is finer
    finer = 2 * scale - BITS * (len(squares) - 2)
    found = [
        (n * (y << finer) - x * x) / ((n * (n - 1)) << 2 * scale)
        for x, y, n in zip(_whole(limbs), _whole(squares), counts.tolist(), strict=True)
    ]
    return np.array(found, np.float64)


def _whole(limbs: Array) -> list[int]:
    """Sums of limbs as multiples of the last one."""
    found: list[int] = limbs[0].tolist()
    for limb in limbs[1:]:
        found = [(x << BITS) + y for x, y in zip(found, limb.tolist(), strict=True)]
    return found
