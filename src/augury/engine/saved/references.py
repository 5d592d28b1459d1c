"""References in saved state: numbers within their bounds, some numbers for each of some rows, events of inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.core.arrays import Array, Integers
from augury.engine.saved.corrupt import require
from augury.storage.unique import unique

if TYPE_CHECKING:
    from augury.engine.operators.base import Operator


def check_numbers(numbers: Integers, least: int, limit: int, what: str) -> None:
    """Numbers from `least` up to, not including, `limit`."""
    if len(numbers):
        require(least <= int(numbers.min()) and int(numbers.max()) < limit, what)


def is_array(array: object, dtype: object, length: int) -> bool:
    return isinstance(array, np.ndarray) and array.dtype == dtype and array.shape == (length,)


def ragged(items: Iterable[tuple[int, Sequence[int]]]) -> dict[str, Array]:
    """Some numbers for each of some rows, as columns."""
    pairs = list(items)
    return {
        "row": np.fromiter((row for row, _ in pairs), np.int64),
        "count": np.fromiter((len(some) for _, some in pairs), np.int64),
        "of": np.fromiter((number for _, some in pairs for number in some), np.int64),
    }


def unragged(saved: Any, n: int) -> list[tuple[int, int, int]]:
    """Rows of a table with so many, and from where up to where the numbers of each lie."""
    rows, counts, numbers = saved["row"], saved["count"], saved["of"]
    require(all(is_array(column, np.int64, len(column)) for column in (rows, counts, numbers)), "invalid rows")
    check_numbers(rows, 0, n, "a row that is not there")
    check_numbers(counts, 0, len(numbers) + 1, "an invalid count")
    require(len(rows) == len(counts) and len(unique(rows)) == len(rows), "rows that do not fit")
    ends = np.cumsum(counts)
    require(int(counts.sum()) == len(numbers), "counts that do not add up")
    return list(zip(rows.tolist(), (ends - counts).tolist(), ends.tolist(), strict=True))


def check_events(places: Any, rows: Any, operators: Sequence[Operator]) -> None:
    """Rows of inputs, each given by the number of its operator, that are there."""
    sizes = np.array([operator.out.table.n for operator in operators], np.int64)
    check_inputs(places, operators)
    require(is_array(rows, np.int64, len(places)), "invalid rows")
    require(bool(((rows >= 0) & (rows < sizes[places])).all()), "an event that is not there")


def check_inputs(places: Any, operators: Sequence[Operator]) -> None:
    """Numbers of operators that are inputs."""
    require(is_array(places, np.int64, len(places)), "invalid rows")
    check_numbers(places, 0, len(operators), "an input that is not there")
    inputs = np.array([operator.is_input for operator in operators], bool)
    require(bool(inputs[places].all()), "an invalid input")
