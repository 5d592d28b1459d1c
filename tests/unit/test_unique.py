"""Distinct numbers and sets of numbers, by sorting: the same as NumPy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from augury.storage.unique import (
    difference,
    is_in,
    unique,
    unique_counts,
    unique_first,
    unique_first_inverse,
    unique_inverse,
)

_NUMBERS = st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), max_size=12)


@given(_NUMBERS, _NUMBERS)
def test_numbers_and_sets_of_numbers(left: list[int], right: list[int]) -> None:
    a, b = np.array(left, np.int64), np.array(right, np.int64)
    assert unique(a).tolist() == sorted(set(left))
    assert is_in(a, b).tolist() == [x in right for x in left]
    assert difference(a, b).tolist() == sorted(set(left) - set(right))
    values, first, inverse = unique_first_inverse(a)
    assert values[inverse].tolist() == left
    assert first.tolist() == [left.index(x) for x in sorted(set(left))]
    assert [x.tolist() for x in unique_inverse(a)] == [values.tolist(), inverse.tolist()]
    assert [x.tolist() for x in unique_first(a)] == [values.tolist(), first.tolist()]
    assert unique_counts(a)[1].tolist() == [left.count(x) for x in values.tolist()]


def test_tables_are_flattened_and_bytes_are_numbers() -> None:
    assert unique(np.array([[3, 1], [1, 2]])).tolist() == [1, 2, 3]
    assert is_in(np.frombuffer(b"({x})", np.uint8), list(b"()")).tolist() == [True, False, False, False, True]
