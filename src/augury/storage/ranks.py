"""Order-preserving integers for values, and an order that is refined key by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow.compute as pc

from augury.core.arrays import Array, Codes, Mask, RowIds
from augury.core.jit import Kernel
from augury.core.model import Value, order_key
from augury.storage.dictionary import TEXT, Dictionary, exact
from augury.storage.kernels.group_sort import order_ties
from augury.storage.unique import unique_inverse

_SHORT = 32  # rows of a tie that is broken by inserting them one by one


class Ordering:
    """Rows in ascending order. Each key is computed only for rows that are equal by all keys before it.

    `Ordering([3, 1, 3])` orders rows 1, 0, 2 and leaves a tie between rows 0 and 2, for `refine` to break.
    """

    def __init__(self, first: Array) -> None:
        self.rows: RowIds = np.argsort(first, kind="stable")
        values = first[self.rows]
        self._new = np.ones(len(first), bool)  # whether a row differs from the one before it
        self._new[1:] = values[1:] != values[:-1]

    def refine(self, keys: Iterable[Callable[[Array], Array]]) -> Ordering:
        """Breaks ties by one key after the other, until none is left. A key maps rows to integers."""
        for key in keys:
            tied = np.flatnonzero(~self._new)
            if not len(tied):
                break
            inside = ~self._new
            inside[tied - 1] = True  # with the first row of each tie
            positions = np.flatnonzero(inside)
            first, rows = self._new[positions], self.rows[positions]
            values = key(rows)
            order = _order_of_ties(values, first)
            self.rows[positions] = rows[order]
            values = values[order]
            self._new[positions[1:]] = (values[1:] != values[:-1]) | first[1:]
        return self

    def ranks(self) -> Array:
        """A number for each row in this order; rows that are equal by all keys have the same number."""
        ranks = np.empty(len(self.rows), np.int64)
        ranks[self.rows] = np.cumsum(self._new) - 1
        return ranks


def _order_of_ties(values: Array, first: Mask) -> RowIds:
    """The order of rows by their values within each tie; `first` says with which rows ties begin."""
    if Kernel.compiled and values.dtype == np.int64:
        starts, order = np.flatnonzero(first), np.arange(len(values))
        if int(np.diff(starts, append=len(values)).max(initial=0)) <= _SHORT:
            order_ties.call(np.ascontiguousarray(values), starts, order)
            return order
    return np.lexsort((values, np.cumsum(first)))


def code_ranks(dictionary: Dictionary, codes: Codes) -> Array:
    """Integers that order as the values behind codes do in the order of terms; equal values have equal ones.

    Whole numbers are their own rank, floats keep their order as bits; other values are compared once each.
    """
    codes = dictionary.canonical(codes)
    odd = (codes & 1).astype(bool)
    if not odd.any():
        return codes >> 2
    numbers = codes >> 1
    if dictionary.is_float(numbers[odd]).all() and exact(codes[~odd] >> 2):
        floats = np.where(odd, 0.0, codes >> 2)
        floats[odd] = dictionary.numbers[numbers[odd]]
        return float_ranks(floats)
    distinct, inverse = unique_inverse(codes)
    if odd.all() and (dictionary.kinds(distinct) == TEXT).all():
        ranks = pc.rank(
            dictionary.texts(distinct), "ascending", tiebreaker="dense"
        )  # UTF-8 orders as its characters do
        places: Array = ranks.to_numpy().astype(np.int64)
        return places[inverse]
    return value_ranks(dictionary.decode_all(distinct))[inverse]


def float_ranks(floats: Array) -> Array:
    """Integers that order as floats do; none of them is NaN."""
    bits = (floats + 0.0).view(np.int64)
    ranks: Array = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return ranks


def value_ranks(values: Sequence[Value]) -> Array:
    """The rank of each value in the order of terms; equal values have the same rank."""
    if set(map(type, values)) == {str}:
        rank_of = {value: rank for rank, value in enumerate(sorted(set(values)))}  # type: ignore[type-var]
        return np.fromiter(map(rank_of.__getitem__, values), np.int64, len(values))
    keys = [order_key(value) for value in values]
    rank_of = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return np.fromiter(map(rank_of.__getitem__, keys), np.int64, len(keys))
