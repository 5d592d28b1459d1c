"""Text cells; the type of a column is its declared one, or the one that all of its cells have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from augury.algebra.plan import Attribute
from augury.core.arrays import RowIds, Times
from augury.core.clock import Clock
from augury.core.model import Value
from augury.sources.arrow_cells import (
    ArrayCells,
    all_match,
    arrow_column,
    as_array,
    encoded,
    text_column_of,
    text_times,
    whole_numbers,
)
from augury.sources.cells import time_points
from augury.sources.types import (
    KINDS,
    PLAIN_FLOAT,
    Prefixes,
    fits,
    from_text,
    read_as,
)
from augury.storage.column import Column, column_by_index, values_of


class TextCells(ArrayCells):
    """A column of a table of text, such as CSV; the `nulls` are what an empty cell is written as. `kind` is that of the
    column where no type is declared, found by all of its cells, also those in other parts of the table."""

    def __init__(self, array: object, kind: str | None = None) -> None:
        self.array, self.kind = array, kind

    def some(self, rows: RowIds) -> TextCells:
        return TextCells(self.array.take(pa.array(rows)), self.kind)

    def cell(self, row: int) -> Any:
        return self.array[row].as_py()

    def value(self, row: int, attribute: Attribute | None, prefixes: Prefixes) -> Value:
        text = self.cell(row) or ""
        return read_as(self.kind or "string")(text) if attribute is None else from_text(text, attribute, prefixes)

    def plain(self) -> Column:
        return text_column(self.array, self.kind or "string")

    def column(self, attribute: Attribute | None, prefixes: Prefixes) -> Column:
        if attribute is None:
            return self.plain()
        if attribute.type in ("string", "any"):
            return self.written()
        result = _as_numbers(self.array, attribute.type)
        if result is not None:
            return result
        texts, index = encoded(self.array)
        return column_by_index(index, [from_text(text, attribute, prefixes) for text in texts])

    def times(self, clock: Clock) -> Times:
        result = text_times(self.array, clock)
        return time_points(self.written(), clock) if result is None else result

    def texts(self) -> list[str | None]:
        return self.array.to_pylist()  # type: ignore[no-any-return]

    def written(self) -> Column:
        return text_column_of(self.array)

    def arrow(self) -> Any:
        types = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
        return pa.array(list(values_of(self.plain())), types[self.kind]) if self.kind in types else self.array


def text_column(cells: object, kind: str) -> Column:
    """A column of text of a kind that all cells are of; null where a cell is."""
    if kind in ("int", "float"):
        result = _as_numbers(cells, kind)
        if result is not None:
            return result
    if kind == "string":
        return text_column_of(cells)
    texts, index = encoded(cells)
    return column_by_index(index, list(map(read_as(kind), texts)))


def kind_of_text(arrays: Sequence[object]) -> str:
    """The kind of a column of text, given in parts: the first one that all its cells are of."""
    return kinds_of_text(arrays)[0]


def kinds_of_text(arrays: Sequence[Any], among: Iterable[str] = KINDS) -> list[str]:
    """Of some kinds, those that all cells of a column of text are of, given in parts."""
    left = list(among)
    for array in arrays:
        if left == ["string"]:
            break
        if array.null_count == len(array):
            continue
        if left[0] == "int" and whole_numbers(array) is not None:
            left = [kind for kind in left if kind != "bool"]
            continue
        if (
            left[0] in ("int", "float")
            and all_match(array, f"^{PLAIN_FLOAT}$")
            and not pc.any(pc.equal(array, "-")).as_py()
            and not _has_bare(array)
        ):
            whole = all_match(array, r"^-?(0|[1-9][0-9]*)$")
            left = [kind for kind in left if kind != "bool" and (kind != "int" or whole)]
            continue
        distinct = (
            pc.unique(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array).drop_null().to_pylist()
        )
        left = [kind for kind in left if all(fits(cell, kind) for cell in distinct)]
    return left


def _has_bare(array: object) -> bool:
    """Whether a cell has no digit before its exponent, which the pattern of floats lets through."""
    return bool(pc.any(pc.match_substring_regex(array, r"^-?([eE]|$)")).as_py())


def _as_numbers(cells: Any, type: str) -> Column | None:
    """A column of plain numbers; None where it has anything else, be it a number too."""
    if type not in ("int", "float", "number") or cells.null_count == len(cells):
        return None
    if type != "float":
        whole = whole_numbers(cells)
        if whole is not None:
            return arrow_column(whole)
    if type == "int" or (type == "number" and not all_match(cells, "[.eE]")):
        return None
    try:
        result = as_array(cells.cast(pa.float64()), np.float64) + 0.0
    except pa.ArrowInvalid:
        return None
    usual = np.isfinite(result)
    return result if usual.all() or int((~usual).sum()) == cells.null_count else None
