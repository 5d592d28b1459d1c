"""Distinct numbers and sets of numbers, by sorting.

`numpy.unique` without options hashes since NumPy 2.3, and so do the set functions that call it (`isin`, `setdiff1d`,
`union1d`). On a million large integers hashing takes twenty times as long as sorting. No other module calls them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from augury.core.arrays import Array, Mask

_DENSE = 16  # a table of flags is used where the range of numbers is at most so many times their count


def unique(values: Array | Sequence[int]) -> Array:
    """The distinct numbers in ascending order."""
    array = np.sort(np.asarray(values), axis=None)
    if len(array) < 2:
        return array
    new = np.empty(len(array), bool)
    new[0] = True
    np.not_equal(array[1:], array[:-1], out=new[1:])
    return array[new]


def unique_inverse(values: Array) -> tuple[Array, Array]:
    """The distinct values in ascending order, and for each value its position among them."""
    distinct, inverse = np.unique(values, return_inverse=True)
    return distinct, inverse.reshape(-1)


def unique_first(values: Array) -> tuple[Array, Array]:
    """The distinct values in ascending order, and where each occurs first."""
    distinct, first = np.unique(values, return_index=True)
    return distinct, first


def unique_first_inverse(values: Array) -> tuple[Array, Array, Array]:
    """The distinct values, where each occurs first, and for each value its position among them."""
    distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    return distinct, first, inverse.reshape(-1)


def unique_counts(values: Array) -> tuple[Array, Array]:
    """The distinct values in ascending order, and how often each occurs."""
    distinct, counts = np.unique(values, return_counts=True)
    return distinct, counts


def is_in(values: Array, among: Array | Sequence[int]) -> Mask:
    """Which of some integers occur among others."""
    values, among = np.asarray(values), np.asarray(among)
    if not len(values) or not len(among):
        return np.zeros(len(values), bool)
    low, high = int(among.min()), int(among.max())
    if high - low < _DENSE * (len(values) + len(among)):
        flags = np.zeros(high - low + 1, bool)
        flags[among - low] = True
        inside = (values >= low) & (values <= high)
        flagged: Array = inside & flags[np.where(inside, values, low) - low]
        return flagged
    sorted_numbers = np.sort(among)
    position = np.minimum(np.searchsorted(sorted_numbers, values), len(sorted_numbers) - 1)
    mask: Mask = sorted_numbers[position] == values
    return mask


def difference(values: Array, without: Array | Sequence[int]) -> Array:
    """The distinct integers that do not occur among others, in ascending order."""
    distinct = unique(values)
    return distinct[~is_in(distinct, without)]
