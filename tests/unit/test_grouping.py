"""Orders by groups and by time are those of lexsort, however rows come."""

from __future__ import annotations

import numpy as np
import pytest

from augury.core.arrays import Array
from augury.storage.grouping import by_group


def in_order(rng: np.random.Generator, size: int, most: int) -> Array:
    return np.sort(rng.integers(-most, most, size))


def in_two_runs(rng: np.random.Generator, size: int, most: int) -> Array:
    return np.concatenate([in_order(rng, size // 2, most), in_order(rng, size - size // 2, most)])


def in_disorder(rng: np.random.Generator, size: int, most: int) -> Array:
    return rng.integers(-most, most, size)


@pytest.mark.parametrize("times_of", [in_order, in_two_runs, in_disorder])
@pytest.mark.parametrize("size", [0, 1, 60, 5_000])
@pytest.mark.parametrize("most", [3, 2**61])
def test_rows_stand_by_group_and_by_time(times_of: object, size: int, most: int) -> None:
    rng = np.random.default_rng(size)
    assert callable(times_of)
    for groups in (rng.integers(0, 5, size), rng.integers(0, 100_000, size), np.sort(rng.integers(0, 40, size))):
        times = times_of(rng, size, most)
        assert by_group(groups, times).tolist() == np.lexsort((times, groups)).tolist()
