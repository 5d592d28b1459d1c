"""Lines of text as events, in a worker of Spark: read as the other engines read them, into the columns of the layout."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa

from augury.algebra.program import Plan, Predicate
from augury.clock import Clock
from augury.engine.columns import tagged
from augury.errors import DataError, RunError
from augury.model import Event, Revocation, Value
from augury.sources import Header, Known, OnError, SourceFile, item_from, json_item, read_as, read_header, wrong_width
from augury.spark.layout import Layout

_ROWS = 10_000  # that a reader hands on at a time
_BLOCK = ("path", "start", "length", "size")
PEEK = 1 << 16  # bytes of a file that tell what it looks like


@dataclass(frozen=True)
class Block:
    """A part of a file: whole lines, of which the first begins at or after `start`."""

    path: str
    start: int
    length: int
    size: int


@dataclass(frozen=True)
class Reader:
    """How the lines of a source become rows of the layout. `root` is its path as Spark has it."""

    source: SourceFile
    root: str
    form: Literal["csv", "jsonl"]
    plan: Plan
    clock: Clock = field(default_factory=Clock)
    reads: Mapping[str, str] = field(default_factory=dict)
    types: frozenset[Predicate] = frozenset()
    on_error: OnError = "stop"

    def place(self, block: Block) -> str:
        """The name of a file as the user would write it."""
        path = local(block.path)
        return self.source.place + path.removeprefix(self.root) if path.startswith(self.root) else path

    def items(self, block: Block, lines: Iterable[str]) -> Iterator[tuple[int, Mapping[str, Any] | DataError]]:
        """What each line says, with its number in the block."""
        if self.form == "csv":
            yield from self._table(block, lines)
            return
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield number, json_item(line, self.source.type, self.source.time)
                except DataError as error:
                    yield number, error

    def _table(self, block: Block, lines: Iterable[str]) -> Iterator[tuple[int, Mapping[str, Any] | DataError]]:
        reads = {name: read_as(kind) for name, kind in self.reads.items()}
        for number, header, row in self.rows(block, lines):
            if isinstance(row, DataError):
                yield number, row
                continue
            try:
                yield number, header.item(row, reads, self.plan)
            except DataError as error:
                yield number, error

    def rows(self, block: Block, lines: Iterable[str]) -> Iterator[tuple[int, Header, list[str] | DataError]]:
        """The rows of a CSV file; those of a later block belong to the header that stands at its beginning."""
        over = False

        def given() -> Iterator[str]:
            nonlocal over
            for line in lines:
                yield line + "\n"
            over = True

        reader = csv.reader(given())
        place = self.place(block)
        try:
            cells = next(reader, None) if block.start == 0 else next(csv.reader(_first_line(block.path)))
            if cells is None:
                return
            header = Header(replace(self.source, shown=place), tuple(read_header(cells, place)))
            header.check()
            for row in reader:
                if over and block.start + block.length < block.size:
                    raise RunError(f"{place}: a quoted field goes over the end of a block",
                                   "--conf spark.sql.files.minPartitionNum=1 --conf spark.sql.files.maxPartitionBytes=1g")  # fmt: skip
                if len(row) not in (0, len(header.names)):
                    yield reader.line_num, header, DataError(wrong_width(row, header.names))
                elif row:
                    yield reader.line_num, header, row
        except csv.Error as error:
            raise DataError(f"malformed CSV: {error}", f"{place}:{self.line(block, reader.line_num)}") from None

    @staticmethod
    def line(block: Block, number: int) -> str:
        """The number of a line; of one in a later block that is known only to who has the file: see `exact`."""
        return str(number) if block.start == 0 else f"@{block.start}+{number}"


def local(path: str) -> str:
    """A path as Spark has it, without its scheme where it is a file of this machine."""
    return unquote(urlparse(path).path) if path.startswith("file:") else path


def _first_line(path: str) -> list[str]:
    """The header of a file of which a worker has a later block."""
    try:
        if path.startswith("file:"):
            with open(local(path), encoding="utf-8-sig", newline="") as file:
                return [file.readline()]
        from pyarrow import fs

        system, inside = fs.FileSystem.from_uri(path)
        with system.open_input_stream(inside) as stream:
            return [stream.read(PEEK).decode("utf-8-sig", "replace").splitlines()[0]]
    except (OSError, pa.ArrowException, IndexError) as error:
        raise RunError(f"{path}: its header cannot be read: {error}") from None


def blocks(given: Iterator[pa.RecordBatch]) -> Iterator[tuple[Block, Iterator[str]]]:
    """The lines that Spark gives, block by block."""

    def parts() -> Iterator[tuple[Block, list[bytes]]]:
        for batch in given:
            if not batch.num_rows:
                continue
            starts = batch.column("start").to_numpy()
            paths = batch.column("path").dictionary_encode()
            codes = paths.indices.to_numpy()
            edges = (np.flatnonzero((np.diff(starts) != 0) | (np.diff(codes) != 0)) + 1).tolist()
            lines = batch.column("value").to_pylist()
            for lo, hi in zip([0, *edges], [*edges, len(lines)], strict=True):
                yield Block(*(batch.column(name)[lo].as_py() for name in _BLOCK)), lines[lo:hi]

    for block, found in itertools.groupby(parts(), key=lambda part: part[0]):
        yield block, _decoded(block, itertools.chain.from_iterable(lines for _, lines in found))


def _decoded(block: Block, lines: Iterable[bytes]) -> Iterator[str]:
    """Lines as text; all ways to end a line are one."""
    first = block.start == 0
    for line in lines:
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise DataError(f"is not UTF-8 text (byte {error.start} of a line)", local(block.path)) from None
        if first:
            text, first = text.removeprefix("\ufeff"), False
        if "\r" in text:
            yield from text.removesuffix("\r").split("\r")
        else:
            yield text


_KEPT: dict[str, Any] = {
    "int": lambda v: v,
    "float": float,
    "number": float,
    "bool": int,
    "string": lambda v: v,
    "iri": lambda v: v.text,
    "timestamp": lambda v: v.us,
    "duration": lambda v: v.us,
    "json": tagged,
}


class Rows:
    """Events as columns of the layout, with `problem`: what is wrong with a line, and where."""

    def __init__(self, reader: Reader, layout: Layout, ops: bool, ids: bool, points: bool) -> None:
        self.reader, self.layout = reader, layout
        self.ops, self.ids, self.points = ops, ids, points
        self.known = Known(reader.plan)
        self.keeps = {type: [_KEPT[kind] for kind in kinds] for type, kinds in layout.kinds.items()}

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([
            ("type", pa.int32()), *([] if self.points else [("start", pa.int64())]), ("end", pa.int64()),
            *([("id", pa.string())] if self.ids else []), *([("revoke", pa.bool_())] if self.ops else []),
            *((c, self.layout.arrow(c)) for c in self.layout.columns), ("problem", pa.string()), ("row", pa.string()),
        ])  # fmt: skip

    @property
    def sql(self) -> str:
        names = {pa.int32(): "int", pa.int64(): "bigint", pa.float64(): "double", pa.string(): "string", pa.bool_(): "boolean"}  # fmt: skip
        return ", ".join(f"{f.name} {names[f.type]}" for f in self.schema)

    def read(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All lines of a task. A wrong one stops the run or is handed on with what is wrong."""
        rows: list[dict[str, Any]] = []
        for block, lines in blocks(given):
            place = self.reader.place(block)
            for number, item in self.reader.items(block, lines):
                try:
                    if isinstance(item, DataError):
                        raise item
                    rows.append(self.row(item))
                except DataError as error:
                    where = error.place or f"{place}:{self.reader.line(block, number)}"
                    if self.reader.on_error == "stop":
                        raise DataError(error.message, where, error.hint) from None
                    rows.append({"problem": f"{where}: {error.message}", "row": ""})
                if len(rows) >= _ROWS:
                    yield self.batch(rows)
                    rows = []
        if rows:
            yield self.batch(rows)

    def batch(self, rows: list[dict[str, Any]]) -> pa.RecordBatch:
        columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in self.schema]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def row(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """The row of an event or a revocation."""
        item = item_from(raw, self.reader.plan, self.reader.clock)
        if isinstance(item, Revocation):
            if not self.ops:
                raise DataError("a revocation, where none was expected")
            return {"id": item.id, "revoke": True}
        self.known.check(item)
        type = (item.type, len(item.args))
        if type not in self.reader.types:
            raise DataError(f"`{item.type}` is derived by the program, but the input has such events",
                            hint=f"declare `event {item.type}(…).`")  # fmt: skip
        if self.points and item.start != item.end:
            raise DataError("the event lasts for a time", hint="say how long events last at most: --longest 1h")
        kept = {"type": self.layout.codes[type], "start": item.start, "end": item.end, "id": item.id or None, "revoke": False}  # fmt: skip
        for slot, keep, value in zip(self.layout.slots[type], self.keeps[type], item.args, strict=True):
            kept[slot] = None if value is None else self._kept(keep, value, item)
        return kept

    @staticmethod
    def _kept(keep: Any, value: Value, event: Event) -> Any:
        try:
            return keep(value)
        except (TypeError, ValueError, AttributeError):
            raise DataError(f"`{event.type}` has values of several types in one place, such as {value!r}") from None
