"""The output of a format, part by part: a sheet has rows under a header, `Items` are objects, one per line.

Both know where each row was found, so that what is wrong with one can be named, and which lines are no rows at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from augury.algebra.plan import Attribute
from augury.core.clock import Clock
from augury.core.errors import DataError
from augury.core.model import Value
from augury.sources.cells import Cells
from augury.sources.lines import ObjectColumns
from augury.sources.problems import Problem
from augury.sources.text_cells import TextCells, kind_of_text
from augury.sources.types import Prefixes


def _numbered(row: int) -> int:
    return row + 1


@dataclass
class Sheet:
    """Rows under a header. `line` is the number of the line, or of the row, at which a row was found."""

    names: tuple[str, ...]
    cells: list[Cells]
    length: int
    location: str = ""
    line: Callable[[int], int] = field(default=_numbered, repr=False)
    top: str = ""  # where the header is
    problems: list[Problem] = field(default_factory=list)  # of lines that are no rows

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, name: str) -> Cells:
        return self.cells[self.names.index(name)]

    def location_of(self, row: int) -> str:
        return f"{self.location}:{self.line(row)}"

    def cell(self, name: str, row: int, clock: Clock | None = None) -> Any:
        """A cell as it was read; with a clock, one that says a time."""
        try:
            return self[name].cell(row) if clock is None else self[name].time_cell(row, clock)
        except DataError as error:
            raise error.of(name) from None

    def value(self, name: str, row: int, attribute: Attribute | None, prefixes: Prefixes) -> Value:
        """The value of a cell; what is wrong with it names the column."""
        try:
            return self[name].value(row, attribute, prefixes)
        except DataError as error:
            raise error.of(name) from None

    def like(self, names: tuple[str, ...]) -> Sheet:
        """The sheet with its columns in the order that others have; what they do not have comes last."""
        if self.names == names or len(set(self.names)) < len(self.names):
            return self
        order = [n for n in names if n in self.names] + [n for n in self.names if n not in names]
        return replace(self, names=tuple(order), cells=[self[n] for n in order])


@dataclass
class Items:
    """Objects in the JSON form, or of Python; `columns` are their values, where they were found without objects."""

    objects: Sequence[Any]
    location: str = ""
    line: Callable[[int], int] = field(default=_numbered, repr=False)
    problems: list[Problem] = field(default_factory=list)
    columns: ObjectColumns | None = None

    def __len__(self) -> int:
        return len(self.objects)

    def location_of(self, row: int) -> str:
        return f"{self.location}:{self.line(row)}" if self.location else ""


def with_kinds(sheets: list[Sheet]) -> list[Sheet]:
    """Sheets of text with the kinds of their columns: what all cells of a name are."""
    names = dict.fromkeys(name for sheet in sheets for name in sheet.names)
    arrays = {
        n: [c.array for s in sheets if n in s.names and isinstance(c := s[n], TextCells) and len(c)] for n in names
    }
    kinds = {name: kind_of_text(parts) for name, parts in arrays.items()}
    return [
        replace(
            s,
            cells=[
                TextCells(c.array, kinds[n]) if isinstance(c, TextCells) else c
                for n, c in zip(s.names, s.cells, strict=True)
            ],
        )
        for s in sheets
    ]
