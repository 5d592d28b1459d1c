"""Exact sums of numbers: whole numbers of 2^e, 2^(e-40), 2^(e-80), …, which are added without loss and rounded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from augury.core.arrays import Array
from augury.storage.grouping import expand_ranges
from augury.storage.kernels.group_sums import add_groups
from augury.storage.rounding import Approximation, Ratio, two_product, two_sum

BITS = 40
MANY = 1 << 20  # numbers of which sums of limbs surely fit
_MASK, _SHIFT = (1 << BITS) - 1, float(1 << BITS)
_MOST_LIMBS = 48
_WHOLE = 2**53  # integers up to it are floats
_FEW = 24  # numbers for which ratios are faster than columns
_MAX = 2**63


@dataclass(frozen=True)
class ExactSums:
    """Numbers, one a column: the sum of `limbs[i]` · 2^(`exponent` - 40 i)."""

    limbs: Array
    exponent: int = 0

    def __len__(self) -> int:
        return self.limbs.shape[1]  # type: ignore[no-any-return]

    def take(self, rows: Array) -> ExactSums:
        return ExactSums(self.limbs[:, rows], self.exponent)

    @property
    def plain(self) -> bool:
        """Whether they are integers as they stand."""
        return len(self.limbs) == 1 and self.exponent == 0

    def ratios(self) -> list[Ratio]:
        numbers: list[int] = self.limbs[0].tolist()
        for limb in self.limbs[1:]:
            numbers = [(x << BITS) + y for x, y in zip(numbers, limb.tolist(), strict=True)]
        scale = self.exponent - BITS * (len(self.limbs) - 1)
        if scale >= 0:
            return [Ratio(x << scale) for x in numbers]
        return [Ratio(x, 1 << -scale) for x in numbers]

    def approximation(self) -> Approximation:
        if self.plain and not (np.abs(self.limbs[0]) > _WHOLE).any():
            return Approximation(self.limbs[0].astype(np.float64))
        high, low, error = np.zeros(len(self)), np.zeros(len(self)), np.zeros(len(self))
        for number, limb in enumerate(self.limbs):
            unit = 2.0 ** (self.exponent - BITS * number)
            upper = limb.astype(np.float64)
            lower = (limb - upper.astype(np.int64)).astype(np.float64)
            for part in (upper, lower) if lower.any() else (upper,):
                high, rest = two_sum(high, part * unit)
                low, lost = two_sum(low, rest)
                error = error + abs(lost)
        return Approximation.made(*two_sum(high, low), error)

    def grouped(self, starts: Array, counts: Array) -> ExactSums:
        """The sums of groups, none of them empty, which stand one after the other."""
        limbs = self.limbs
        if int(counts.max()) > MANY:
            pieces = [np.arange(s, s + c, MANY) for s, c in zip(starts.tolist(), counts.tolist(), strict=True)]
            limbs = _carried(np.add.reduceat(limbs, np.concatenate(pieces), axis=1))
            sizes = np.array([len(piece) for piece in pieces])
            starts = np.cumsum(sizes) - sizes
        return ExactSums(np.add.reduceat(limbs, starts, axis=1), self.exponent)


def _carried(limbs: Array) -> Array:
    """The same numbers with limbs of 40 bits, except for the first."""
    limbs = limbs.copy()
    for number in range(len(limbs) - 1, 0, -1):
        limbs[number - 1] += limbs[number] >> BITS
        limbs[number] &= _MASK
    return limbs


def cut(parts: Sequence[Array], exponent: int, most: int) -> tuple[Array, Array]:
    """Sums of floats as so many limbs at most, fewer where nothing is left; and which of the sums are complete."""
    limbs, left = list[Array](), [part * 2.0**-exponent for part in parts]
    while len(limbs) < most and (not limbs or any(part.any() for part in left)):
        whole = [np.trunc(part) for part in left]
        limbs.append(np.add.reduce([part.astype(np.int64) for part in whole]))
        left = [(part - ones) * _SHIFT for part, ones in zip(left, whole, strict=True)]
    return np.stack(limbs), np.logical_and.reduce([part == 0.0 for part in left])


def squared(x: Array) -> tuple[Array, Array]:
    """The squares of numbers that are floats without loss, in two parts."""
    x = x.astype(np.float64)
    return two_product(x, x)


def values_at(x: Array, power: int, exponent: int, count: int) -> tuple[Array, Array]:
    """Numbers, or their squares, as limbs of a fixed size, and which of them fit so that a million of them can be added."""
    limbs, fits = np.zeros((count, len(x)), np.int64), np.abs(x) < 2.0 ** ((41 + exponent) / power)
    if x.dtype.kind == "i" and exponent == 0:
        limbs[0] = x
        return limbs, fits
    x = np.where(fits, x, 0)
    parts, complete = cut(squared(x) if power == 2 else (x.astype(np.float64),), exponent, count)
    limbs[: len(parts)] = parts
    return limbs, fits & complete


def exact_values(x: Array, power: int = 1, most: int = 1) -> ExactSums:
    """Numbers, or the squares of numbers, with as many limbs as it takes for so `most` of them to be added."""
    if x.dtype.kind == "i" and power == 1:
        return ExactSums(x[None]) if _adds_plainly(x, most) else ExactSums(np.stack([x >> BITS, x & _MASK]), BITS)
    parts = squared(x) if power == 2 else (x.astype(np.float64),)
    size = int(np.frexp(np.abs(parts[0]).max())[1])
    exponent = size - (60 - most.bit_length())
    return ExactSums(cut(parts, exponent, _MOST_LIMBS)[0], exponent)


def _adds_plainly(x: Array, most: int) -> bool:
    return max(abs(int(x.min())), abs(int(x.max()))) * most < 2**61


@dataclass(frozen=True)
class GroupSums:
    """Sums of numbers, or of their squares, over groups that stand one after the other, none of them empty.

    They are approximated; members are added exactly only where that is not enough.
    """

    x: Array
    power: int
    starts: Array
    counts: Array

    @staticmethod
    def of(x: Array, power: int, starts: Array, counts: Array) -> GroupSums | ExactSums:
        if x.dtype.kind == "i" and power == 1 and _adds_plainly(x, int(counts.max())):
            return ExactSums(np.add.reduceat(x, starts)[None])
        return GroupSums(x, power, starts, counts)

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, rows: Array) -> GroupSums:
        return GroupSums(self.x, self.power, self.starts[rows], self.counts[rows])

    def exact(self) -> ExactSums:
        members = expand_ranges(self.starts, self.counts)
        starts = np.cumsum(self.counts) - self.counts
        return exact_values(self.x[members], self.power, int(self.counts.max())).grouped(starts, self.counts)

    def ratios(self) -> list[Ratio]:
        return self.exact().ratios() if len(self) else []

    def approximation(self) -> Approximation:
        if self.x.dtype.kind == "i" and self.power == 1:
            return self.exact().approximation()
        parts = np.empty((3, len(self)))
        add_groups(self.x.astype(np.float64), self.power, self.starts, self.counts, parts)
        return Approximation.made(*parts)


Numbers: TypeAlias = ExactSums | GroupSums
Formula = Callable[..., object]


def _ratios_of(formula: Formula | None, inputs: Sequence[Numbers]) -> list[Ratio]:
    numbers = zip(*(each.ratios() for each in inputs), strict=True)
    return [each[-1] if formula is None else formula(*each) for each in numbers]  # type: ignore[misc]


def _approximation_of(formula: Formula | None, inputs: Sequence[Numbers]) -> Approximation:
    if formula is None:
        return inputs[-1].approximation()
    with np.errstate(all="ignore"):
        return formula(*(each.approximation() for each in inputs))  # type: ignore[return-value]


def as_floats(formula: Formula | None, inputs: Sequence[Numbers]) -> tuple[Array, Array]:
    """The results of a formula over exact numbers, rounded once to floats, and which of them are finite."""
    count = len(inputs[0])
    results, sure = np.zeros(count), np.zeros(count, bool)
    if count > _FEW:
        results, sure = _approximation_of(formula, inputs).floats()
        sure &= np.isfinite(results)
    rest = np.flatnonzero(~sure)
    fits = np.ones(count, bool)
    for row, ratio in zip(rest.tolist(), _ratios_of(formula, [each.take(rest) for each in inputs]), strict=True):
        try:
            results[row] = float(ratio)
        except (OverflowError, ZeroDivisionError):
            fits[row] = False
    return results, fits


def as_integers(formula: Formula | None, inputs: Sequence[Numbers]) -> tuple[Array, Array]:
    """The results of a formula over exact numbers, rounded to integers, halves to even; and which of them fit."""
    count = len(inputs[0])
    last = inputs[-1]
    if formula is None and isinstance(last, ExactSums) and last.plain:
        return last.limbs[0], np.ones(count, bool)
    results, sure = np.zeros(count, np.int64), np.zeros(count, bool)
    if count > _FEW:
        results, sure = _approximation_of(formula, inputs).integers()
    rest = np.flatnonzero(~sure)
    fits = np.ones(count, bool)
    for row, ratio in zip(rest.tolist(), _ratios_of(formula, [each.take(rest) for each in inputs]), strict=True):
        number = round(ratio) if ratio.denominator else _MAX
        fits[row] = -_MAX <= number < _MAX
        results[row] = number if fits[row] else 0
    return results, fits


def order_keys(x: Array) -> tuple[Array, Array]:
    """Integer keys in the order of numbers, and whether they distinguish each number: large integers they do not."""
    fits = np.abs(x) <= _WHOLE if x.dtype.kind == "i" else np.isfinite(x)
    bits = (x.astype(np.float64) + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits), fits


def numbers_of_keys(keys: Array) -> Array:
    """The floats of order keys."""
    return np.where(keys < 0, keys ^ np.int64(2**63 - 1), keys).view(np.float64)
