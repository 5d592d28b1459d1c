"""What a format gives, part by part: a sheet has rows under a header, `Items` are objects, one a line.

Both know where each row was found, so that what is wrong with one can be named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from augury.sources.cells import Cells


def _numbered(row: int) -> int:
    return row + 1


@dataclass
class Sheet:
    """Rows under a header. `line` is the number of the line, or of the row, at which a row was found."""

    names: tuple[str, ...]
    cells: list[Cells]
    length: int
    place: str = ""
    line: Callable[[int], int] = field(default=_numbered, repr=False)
    top: str = ""  # where the header is

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, name: str) -> Cells:
        return self.cells[self.names.index(name)]

    def at(self, row: int) -> str:
        return f"{self.place}:{self.line(row)}"


@dataclass
class Items:
    """Objects in the JSON form, or of Python."""

    objects: Sequence[Any]
    place: str = ""
    line: Callable[[int], int] = field(default=_numbered, repr=False)

    def __len__(self) -> int:
        return len(self.objects)

    def at(self, row: int) -> str:
        return f"{self.place}:{self.line(row)}" if self.place else ""
