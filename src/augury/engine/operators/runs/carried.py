"""Aggregates over the iterations of a run, kept along it: a match that is one event longer adds one value.

Sums are exact until they are rounded, once. A sum is three numbers, of ones, of 2^-62 and of 2^-124, each less than 2^62, so
that floats add up without loss; values that do not fit, or are no numbers, are `HARD`, and then the iterations are gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from augury.algebra.nodes import Run
from augury.algebra.terms import Aggregate, labels, variables
from augury.core.arrays import Array, RowData, RowIds
from augury.engine.operators.runs import kernels as k
from augury.engine.operators.runs.kernels import sums
from augury.engine.operators.runs.kernels.sums import carry
from augury.engine.operators.runs.sight import Sight
from augury.planner.run_questions import has_earlier
from augury.storage.dictionary import NULL
from augury.storage.table import END, LEFT, RIGHT, grown

FIELDS = 5  # of each aggregate: see `kernels.carry`
_KEPT = {"count", "sum", "avg", "min", "max"}
_SHIFT, _FITS = float(1 << 62), float(1 << 53)


@dataclass(frozen=True)
class Kept:
    """An aggregate that is kept along the run, and over the iterations of which part."""

    part: int
    aggregate: Aggregate


def kept_along(run: Run, asked: Sequence[tuple[int, Aggregate]], sight: Sight) -> tuple[Kept, ...]:
    """The aggregates that one more iteration just adds to: those of values that the iteration alone has."""
    found: dict[Kept, None] = {}
    functions = sight.runtime.context.scalars.aggregates
    for part, aggregate in asked:
        names = set(sight.views[part].vars) | {name for name in (run.parts[part].label,) if name is not None}
        alone = all(variables(arg) | labels(arg) <= names for arg in aggregate.args)
        plain = aggregate.args and not aggregate.distinct and not has_earlier(aggregate)
        if plain and alone and aggregate.function in _KEPT and not functions[aggregate.function].registered:
            found[Kept(part, aggregate)] = None
    return tuple(found)


class Carried:
    """The aggregates of many matches, by number of the match."""

    def __init__(self, sight: Sight, kept: tuple[Kept, ...]) -> None:
        self.sight, self.kept = sight, kept
        self.clear()

    def clear(self) -> None:
        self.count, self.state = 0, np.empty((len(self.kept) * FIELDS, 16), np.int64)

    def of(self, part: int, aggregate: Aggregate) -> int | None:
        """The number of an aggregate among those that are kept."""
        one = Kept(part, aggregate)
        return self.kept.index(one) if one in self.kept else None

    def follow(self, data: RowData, n: int) -> None:
        """Takes in the partial matches that there are more: what their parents have, and one more iteration."""
        lo = self.count
        if not self.kept or n <= lo:
            return
        if self.state.shape[1] < n:
            self.state = grown(self.state, max(n, 2 * lo), lo)
        rows = np.arange(lo, n)
        for number, one in enumerate(self.kept):
            mine = data[k.PART, lo:n] == one.part
            values = self._values(one, data[RIGHT, lo:n][mine])
            slots = np.where(mine, np.cumsum(mine) - 1, -1)
            carry(rows, data[LEFT, lo:n], slots, self._sign(one), *values, self._mine(number))
        self.count = n

    def start(self, rows: RowIds, size: int, sources: Array | None = None) -> None:
        """Matches without any iteration, or as those that they go on from."""
        if not self.kept:
            return
        if self.state.shape[1] < size:
            self.state = grown(self.state, size, self.state.shape[1])
        self.state[:, rows] = 0 if sources is None else self.state[:, sources]

    def add(self, number: int, rows: RowIds, moments: Array) -> None:
        """Adds iterations to matches, one after the other."""
        one = self.kept[number]
        values, slots = self._values(one, moments), np.arange(len(rows))
        carry(rows, np.full(len(rows), sums.ITSELF), slots, self._sign(one), *values, self._mine(number))

    def with_one_more(self, number: int, rows: RowIds, moments: Array) -> tuple[Array, Array]:
        """The results that matches would have with one more iteration; those of row -1 have none yet."""
        one, count = self.kept[number], len(rows)
        state = np.zeros((FIELDS, count), np.int64)
        there = rows >= 0
        state[:, there] = self._mine(number)[:, rows[there]]
        own = np.arange(count)
        carry(own, np.full(count, sums.ITSELF), own, self._sign(one), *self._values(one, moments), state)
        return self._codes(one, state)

    def results(self, number: int, rows: RowIds) -> tuple[Array, Array]:
        """The codes of an aggregate, and for which matches it has to be gathered."""
        return self._codes(self.kept[number], self._mine(number)[:, rows])

    def _mine(self, number: int) -> Array:
        return self.state[number * FIELDS : (number + 1) * FIELDS]

    def _sign(self, one: Kept) -> int:
        return {"min": -1, "max": 1}.get(one.aggregate.function, 0)

    def _values(self, one: Kept, moments: Array) -> tuple[Array, Array, Array]:
        """Of iterations what they add: of which kind it is, its code, and its number as it is kept."""
        sight, count = self.sight, len(moments)
        kinds, codes, limbs = np.full(count, sums.HARD), np.full(count, NULL), np.zeros((3, count), np.int64)
        argument = one.aggregate.args[0]
        names, ends = variables(argument) | labels(argument), sight.moments.out.table.data[END, moments]
        frame, _ = sight.frame({one.part: moments}, ends, one.part, names)
        found = sight.runtime.context.codes(argument, frame) if count else None
        if found is None:
            return kinds, codes, limbs
        null = sight.runtime.tables.dictionary.is_null(found)
        kinds[null] = sums.NULL
        if one.aggregate.function == "count":
            kinds[~null] = sums.INTEGER
            return kinds, found, limbs
        given = sight.runtime.tables.dictionary.numeric(found[~null])
        if given is not None:
            fits, kept = _in_order(given) if self._sign(one) else _in_limbs(given)
            kinds[~null] = np.where(fits, sums.INTEGER if given.dtype.kind == "i" else sums.FLOAT, sums.HARD)
            limbs[:, ~null] = kept
        return kinds, found, limbs

    def _codes(self, one: Kept, state: Array) -> tuple[Array, Array]:
        """The results that states stand for, and which of them are too hard."""
        words, flags, counts = self.sight.runtime.tables.dictionary, state[sums.A_FLAGS], state[sums.A_COUNT]
        hard = (flags & sums.HARD) != 0
        codes = np.full(state.shape[1], NULL, np.int64)
        function = one.aggregate.function
        if function == "count":
            return words.encode_column(counts), hard
        some = np.flatnonzero(~hard & (counts > 0))
        if not len(some):
            return codes, hard
        if function in ("min", "max"):
            codes[some] = state[sums.A_CODE, some]
            return codes, hard
        whole = (flags[some] & sums.FLOAT) == 0 if function == "sum" else np.zeros(len(some), bool)
        if whole.any():
            codes[some[whole]] = words.encode_column(state[sums.A_ONES, some[whole]])
        rest = some[~whole]
        if len(rest):
            ones, middle, least, times = (
                state[f, rest].tolist() for f in (sums.A_ONES, sums.A_MIDDLE, sums.A_LEAST, sums.A_COUNT)
            )
            if function == "sum":
                times = [1] * len(rest)
            exact = [
                ((a << 124) + (b << 62) + c) / (n << 124) for a, b, c, n in zip(ones, middle, least, times, strict=True)
            ]
            codes[rest] = words.encode_column(np.array(exact))
        return codes, hard


def _in_limbs(given: Array) -> tuple[Array, Array]:
    """Numbers as ones, 2^-62 and 2^-124, and for which that is all there is of them."""
    parts, left = [], given.astype(np.float64)
    fits = np.abs(left) < _FITS
    for _ in range(3):
        parts.append(np.trunc(left))
        left = (left - parts[-1]) * _SHIFT
    fits &= left == 0
    return fits, np.where(fits, np.stack(parts), 0).astype(np.int64)


def _in_order(given: Array) -> tuple[Array, Array]:
    """Integers that order as numbers do, in the second of three places, and for which they can be told apart."""
    numbers = given.astype(np.float64) + 0.0
    bits = numbers.view(np.int64)
    kept = np.zeros((3, len(given)), np.int64)
    kept[1] = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    return np.abs(numbers) < _FITS if given.dtype.kind == "i" else np.isfinite(numbers), kept
