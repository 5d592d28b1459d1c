"""CSV in its usual variants: `,`, `;` or tab between cells, quotes, line breaks inside them, with or without a header."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from augury.core.errors import DataError
from augury.sources.blocks import Block, ByteStream, blocks, text_lines
from augury.sources.cells import Cells
from augury.sources.problems import Problem
from augury.sources.sheet import Sheet
from augury.sources.text_cells import TextCells

Header = Callable[[Sequence[str], str], Sequence[str] | None]  # the names of the columns, where the cells are not these
_SEPARATORS = (",", ";", "\t")
_LINE_END = re.compile(rb"\r\n?|\n")


def read(
    stream: ByteStream, location: str, nulls: Iterable[str] = (), unnamed: Header | None = None
) -> Iterator[Sheet]:
    """The rows of a file, block by block. `nulls` are spellings of null beside the empty cell.

    `unnamed` is asked of the first row: where it is one of data, it says what the columns are called.
    """
    spellings = pa.array([*nulls], pa.string())
    names: tuple[str, ...] | None = None
    separator = ","
    for block in blocks(stream, quoted=True):
        if block.too_long:
            if names is None:  # without its header, nothing of a file can be read
                raise block.problem(location)
            yield Sheet(
                names,
                [TextCells(pa.array([], pa.string()))] * len(names),
                0,
                location,
                top=f"{location}:1",
                problems=[(block.first, block.problem(location))],
            )
            continue
        if names is None:
            separator = separator_of(block.data)
            first = next(
                (
                    record
                    for record in _records(_begin(block), separator, location)
                    if any(c.strip() for c in record[2])
                ),
                None,
            )
            if first is None:
                continue
            _, line, cells = first
            names = tuple(cell.strip() for cell in cells)
            header = unnamed(names, location) if unnamed is not None else None
            if header is None:
                block = _after(block, line)
            else:
                names = tuple(header)
        yield _sheet(block, names, separator, location, spellings)


def separator_of(data: bytes) -> str:
    """The separator: of the candidates, the one that makes most cells of the first line, and as many of the next."""
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
    """The rest of a block after a line."""
    ends = islice(_LINE_END.finditer(block.data), line - block.first, None)
    end = next(ends, None)
    return Block(b"" if end is None else block.data[end.end() :], line + 1)


def _records(block: Block, separator: str, location: str) -> Iterator[tuple[int, int, list[str]]]:
    """The rows of a block, each with the numbers of its first and its last line."""
    wrong: list[DataError] = []

    def lines() -> Iterator[str]:
        for _, line in text_lines(block, location, ends=True):
            if isinstance(line, DataError):
                wrong.append(line)
                yield "\n"
            else:
                yield line

    csv.field_size_limit(max(csv.field_size_limit(), len(block.data)))
    reader = csv.reader(lines(), delimiter=separator)
    begun = 0
    for row in reader:
        if wrong:
            raise wrong[0]
        if row:
            yield block.first + begun, block.first + reader.line_num - 1, row
        begun = reader.line_num


def _sheet(block: Block, names: tuple[str, ...], separator: str, location: str, nulls: object) -> Sheet:
    """The rows of a block: all at once where they are well formed, else one by one."""
    top = f"{location}:1"
    if block.data.count(b'"') % 2:  # a quoted field may not end
        return _one_by_one(block, names, separator, location, nulls)
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(block.data),
            pyarrow.csv.ReadOptions(
                column_names=[str(i) for i in range(len(names))], use_threads=False, block_size=max(len(block.data), 1)
            ),
            pyarrow.csv.ParseOptions(delimiter=separator, newlines_in_values=b'"' in block.data),
            pyarrow.csv.ConvertOptions(
                column_types={str(i): pa.string() for i in range(len(names))}, strings_can_be_null=False
            ),
        )
    except pa.ArrowException:
        return _one_by_one(block, names, separator, location, nulls)
    cells: list[Cells] = [TextCells(_without(column.combine_chunks(), nulls)) for column in table.columns]
    return Sheet(names, cells, table.num_rows, location, _Lines(block, separator, location), top)


def _without(texts: Any, nulls: Any) -> Any:
    """Texts with null for the empty ones, and for those that are spellings of null."""
    if not len(nulls) and pc.min(pc.binary_length(texts)).as_py() != 0:
        return texts
    blank = pc.equal(texts, "")
    if len(nulls):
        blank = pc.or_(blank, pc.is_in(texts, nulls))
    return pc.if_else(blank, pa.scalar(None, pa.string()), texts) if pc.any(blank).as_py() else texts


class _Lines:
    """The line of each row of a block; they are counted on demand."""

    def __init__(self, block: Block, separator: str, location: str) -> None:
        self.first = block.first
        data = block.data
        odd = b'"' in data or data[:1] in (b"\n", b"\r") or any(gap in data for gap in (b"\n\n", b"\n\r", b"\r\r"))
        self.kept = (block, separator, location) if odd else None

    @cached_property
    def numbers(self) -> list[int]:
        assert self.kept is not None
        return [first for first, _, _ in _records(*self.kept)]

    def __call__(self, row: int) -> int:
        return self.first + row if self.kept is None else self.numbers[row]


def _one_by_one(block: Block, names: tuple[str, ...], separator: str, location: str, nulls: object) -> Sheet:
    rows: list[list[str]] = []
    lines: list[int] = []
    problems: list[Problem] = []
    left: Block | None
    left, odd = _valid(block, location)
    while left is not None:
        part, left = left, None
        end = part.first + len(part.data.splitlines()) - 1
        for first, line, row in _records(part, separator, location):
            if line == end and _unclosed(part, first, separator):
                # A quote that does not end is a mistake of its own line: those after it are read anew.
                error = DataError("malformed CSV: a quoted field does not end", f"{location}:{first}")
                problems.append((first, odd.get(first, error)))
                left = _after(part, first)
                break
            number = next((n for n in range(first, line + 1) if n in odd), first) if odd else first
            if number in odd:
                problems.append((number, odd[number]))
            elif len(row) != len(names):
                wrong = f"{len(row)} fields where the header has {len(names)}"
                problems.append((first, DataError(wrong, f"{location}:{first}")))
            else:
                rows.append(row)
                lines.append(first)
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    cells: list[Cells] = [TextCells(_without(pa.array(column, pa.string()), nulls)) for column in columns]
    return Sheet(names, cells, len(rows), location, lines.__getitem__, f"{location}:1", problems)


def _unclosed(block: Block, first: int, separator: str) -> bool:
    """Whether the row that begins at a line has a quoted field without an end."""
    if block.data.count(b'"') % 2 == 0:
        return False
    remaining = block if first == block.first else _after(block, first - 1)
    lines = [line for _, line in text_lines(remaining, "", ends=True) if isinstance(line, str)]
    reader = csv.reader([*lines, "more"], delimiter=separator)  # which belongs to the row where a quote is open
    next(reader)
    return reader.line_num > len(lines)


def _valid(block: Block, location: str) -> tuple[Block, dict[int, DataError]]:
    """A block whose lines are all UTF-8, and what is wrong with those that were not: quotes are where they were."""
    try:
        block.data.decode()
    except UnicodeDecodeError:
        odd = {number: line for number, line in text_lines(block, location) if isinstance(line, DataError)}
        return Block(block.data.decode("utf-8", "replace").encode(), block.first), odd
    return block, {}
