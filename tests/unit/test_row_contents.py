"""Contents of rows are compared by columns as they would be one by one."""

from __future__ import annotations

import numpy as np
import pytest

from augury.engine.operators.row_contents import RowContents, same_contents

Content = tuple[tuple[int, ...], tuple[int, ...]]


def contents_of(rows: list[Content], width: int) -> RowContents:
    fields = np.array([row for row, _ in rows], np.int64).reshape(len(rows), width).T
    members = [member for _, some in rows for member in some]
    return RowContents(
        np.ascontiguousarray(fields), np.array([len(some) for _, some in rows], np.int64), np.array(members, np.int64)
    )


def random_rows(rng: np.random.Generator, count: int, width: int, most: int) -> list[Content]:
    rows = [
        (tuple(rng.integers(-1, 2, width).tolist()), tuple(rng.integers(0, 3, rng.integers(0, most + 1)).tolist()))
        for _ in range(count)
    ]
    return list(dict.fromkeys(rows))


@pytest.mark.parametrize("most", [0, 1, 3])
@pytest.mark.parametrize("width", [1, 3])
def test_rows_with_equal_contents_are_told(width: int, most: int) -> None:
    rng = np.random.default_rng(10 * width + most)
    equal = 0
    for _ in range(60):
        old = random_rows(rng, int(rng.integers(0, 9)), width, most)
        new = random_rows(rng, int(rng.integers(1, 9)), width, most)
        expected = [old.index(row) if row in old else -1 for row in new]
        assert same_contents(contents_of(old, width), contents_of(new, width)).tolist() == expected
        equal += sum(row >= 0 for row in expected)
    assert equal > 5


def test_an_old_row_stands_for_one_new_row() -> None:
    row: Content = ((7,), (1, 2))
    assert same_contents(contents_of([row], 1), contents_of([row, row], 1)).tolist() == [0, -1]
