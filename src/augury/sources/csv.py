"""CSV as people have it: `,`, `;` or tab between cells, quotes, line breaks inside them, with or without a header."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from augury.errors import DataError
from augury.sources.blocks import Block, Stream, blocks, text_lines
from augury.sources.cells import Cells, TextCells
from augury.sources.problems import Skipped
from augury.sources.sheet import Sheet

Header = Callable[[Sequence[str], str], Sequence[str] | None]  # the names of the columns, where the cells are not these
_SEPARATORS = (",", ";", "\t")


def read(
    stream: Stream, place: str, skipped: Skipped, nulls: Iterable[str] = (), unnamed: Header | None = None
) -> Iterator[Sheet]:
    """The rows of a file, block by block. `nulls` are spellings of null beside the empty cell.

    `unnamed` is asked of the first row: where it is one of data, it says what the columns are called.
    """
    spellings = pa.array([*nulls], pa.string())
    names: tuple[str, ...] | None = None
    separator = ","
    for block in blocks(stream, quoted=True):
        if names is None:
            separator = separator_of(block.data)
            first = next(
                (one for one in _records(_begin(block), separator, place) if any(c.strip() for c in one[1])), None
            )
            if first is None:
                continue
            line, cells = first
            names = tuple(cell.strip() for cell in cells)
            known = unnamed(names, place) if unnamed is not None else None
            if known is None:
                block = _after(block, line)
            else:
                names = tuple(known)
        yield _sheet(block, names, separator, place, spellings, skipped)


def separator_of(data: bytes) -> str:
    """What stands between cells: of the candidates, the one that makes most cells of the first line, and as many of the next."""
    lines = [line for line in io.StringIO(data[: 1 << 16].decode("utf-8", "replace"), newline=None) if line.strip()][:2]
    widths = {s: [len(row) for row in csv.reader(lines, delimiter=s)] for s in _SEPARATORS}
    return (
        max(_SEPARATORS, key=lambda s: (len(set(widths[s])) == 1 and widths[s][0] > 1, widths[s][:1], s == ","))
        if lines
        else ","
    )


def _begin(block: Block) -> Block:
    """Some of the first lines of a block, with the end of what is quoted there."""
    end = block.data.find(b"\n", 1 << 12) + 1
    return Block(block.data[:end], block.first) if end and block.data.count(b'"', 0, end) % 2 == 0 else block


def _after(block: Block, line: int) -> Block:
    """What comes after a line of a block."""
    at = 0
    newline = b"\n" if b"\n" in block.data else b"\r"
    for _ in range(line - block.first + 1):
        at = block.data.find(newline, at) + 1
        if not at:
            return Block(b"", line + 1)
    return Block(block.data[at:], line + 1)


def _records(block: Block, separator: str, place: str, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """The rows of a block, each with the number of its last line; `strict` refuses a quoted field that does not end."""
    wrong: list[DataError] = []

    def lines() -> Iterator[str]:
        for _, line in text_lines(block, place):
            if isinstance(line, DataError):
                wrong.append(line)
                yield "\n"
            else:
                yield line + "\n"

    reader = csv.reader(lines(), delimiter=separator, strict=strict)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"malformed CSV: {error}", f"{place}:{block.first + reader.line_num - 1}") from None
        if wrong:
            raise wrong[0]
        if row:
            yield block.first + reader.line_num - 1, row


def _sheet(block: Block, names: tuple[str, ...], separator: str, place: str, nulls: Any, skipped: Skipped) -> Sheet:
    """The rows of a block: all at once where they are well formed, else one by one."""
    top = f"{place}:1"
    if block.data.count(b'"') % 2:  # a quoted field does not end
        return _one_by_one(block, names, separator, place, nulls, skipped)
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(block.data),
            pyarrow.csv.ReadOptions(column_names=[str(i) for i in range(len(names))], use_threads=False, block_size=max(len(block.data), 1)),
            pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=b'"' in block.data),
            pyarrow.csv.ConvertOptions(column_types={str(i): pa.string() for i in range(len(names))}, strings_can_be_null=False),
        )  # fmt: skip
    except pa.ArrowException:
        return _one_by_one(block, names, separator, place, nulls, skipped)
    cells: list[Cells] = [TextCells(_without(column.combine_chunks(), nulls)) for column in table.columns]
    return Sheet(names, cells, table.num_rows, place, _Lines(block, separator, place), top)


def _without(texts: Any, nulls: Any) -> Any:
    """Texts with null for the empty ones, and for those that are spellings of null."""
    blank = pc.equal(texts, "")
    if len(nulls):
        blank = pc.or_(blank, pc.is_in(texts, nulls))
    return pc.if_else(blank, pa.scalar(None, pa.string()), texts) if pc.any(blank).as_py() else texts


class _Lines:
    """The line of each row of a block; they are counted when somebody asks."""

    def __init__(self, block: Block, separator: str, place: str) -> None:
        self.first = block.first
        data = block.data
        odd = b'"' in data or data[:1] in (b"\n", b"\r") or any(gap in data for gap in (b"\n\n", b"\n\r", b"\r\r"))
        self.kept = (block, separator, place) if odd else None

    @cached_property
    def numbers(self) -> list[int]:
        assert self.kept is not None
        return [line for line, _ in _records(*self.kept)]

    def __call__(self, row: int) -> int:
        return self.first + row if self.kept is None else self.numbers[row]


def _one_by_one(
    block: Block, names: tuple[str, ...], separator: str, place: str, nulls: Any, skipped: Skipped
) -> Sheet:
    rows: list[list[str]] = []
    lines: list[int] = []
    given = _valid(block, place, skipped)
    try:
        for line, row in _records(given, separator, place, strict=given.data.count(b'"') % 2 == 1):
            if len(row) != len(names):
                skipped.handle(DataError(f"{len(row)} fields where the header has {len(names)}", f"{place}:{line}"))
            else:
                rows.append(row)
                lines.append(line)
    except DataError as error:  # nothing can be said of what follows in the block
        skipped.handle(error)
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    cells: list[Cells] = [TextCells(_without(pa.array(column, pa.string()), nulls)) for column in columns]
    return Sheet(names, cells, len(rows), place, lines.__getitem__, f"{place}:1")


def _valid(block: Block, place: str, skipped: Skipped) -> Block:
    """A block whose lines are all UTF-8: the others are empty lines."""
    try:
        block.data.decode()
    except UnicodeDecodeError:
        kept: list[bytes] = []
        for _, line in text_lines(block, place):
            if isinstance(line, DataError):
                skipped.handle(line)
                kept.append(b"")
            else:
                kept.append(line.encode())
        return Block(b"\n".join(kept), block.first)
    return block
