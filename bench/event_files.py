"""The stream of P1 as files of every form, drawn once and kept in the system's folder for temporary files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import numpy as np

from augury.core.errors import RunError
from bench.counts import sequences
from bench.streams import KINDS, SEED, Stream, abcd
from bench.workload import pa

PIECE = 1_000_000  # events that are drawn; a longer stream has them again, later and with other keys
KEPT = 1_000_000  # files of more events are removed after use

Tables: TypeAlias = Iterator[Any]


def write_parquet(pieces: Tables, path: Path) -> None:
    writer = None
    for piece in pieces:
        writer = writer or import_module("pyarrow.parquet").ParquetWriter(path, piece.schema)
        writer.write_table(piece)
    if writer is not None:
        writer.close()


def write_arrow(pieces: Tables, path: Path) -> None:
    writer = None
    for piece in pieces:
        writer = writer or pa.ipc.new_file(path, piece.schema)
        writer.write_table(piece, max_chunksize=65_536)
    if writer is not None:
        writer.close()


def write_csv(pieces: Tables, path: Path) -> None:
    """As most programs write it: a header, and quotes nowhere, since no value needs them."""
    csv = import_module("pyarrow.csv")
    plain = csv.WriteOptions(include_header=False, quoting_style="none")
    with path.open("wb") as file:
        file.write(b"type,key,x,y,time\n")
        for piece in pieces:
            csv.write_csv(piece, file, plain)


def write_json(*parts: str) -> Callable[[Tables, Path], None]:
    """Writes each event as these parts, where the name of a column stands for its value."""

    def write(pieces: Tables, path: Path) -> None:
        compute = import_module("pyarrow.compute")
        with path.open("wb") as file:
            for piece in pieces:
                text = {name: piece[name].combine_chunks().cast(pa.string()) for name in piece.column_names}
                lines = compute.binary_join_element_wise(*(text.get(part, part) for part in parts), "")
                file.write(lines.buffers()[2])  # the texts of a column lie one behind the other

    return write


named = write_json('{"type": "', "type", '", "key": ', "key", ', "x": ', "x", ', "y": ', "y", ', "time": ', "time", "}\n")  # fmt: skip
listed = write_json('{"type": "', "type", '", "args": [', "key", ", ", "x", ", ", "y", '], "time": ', "time", "}\n")


@dataclass(frozen=True)
class Form:
    """A form of files: who writes it, and the rows `kind, key, x, y, t` as DuckDB reads them from `PATH`."""

    file: str
    write: Callable[[Tables, Path], None]
    sql: str


_COLUMNS = "type AS kind, key, x, y, time AS t"
_TYPES = "type: 'VARCHAR', key: 'BIGINT', x: 'DOUBLE', y: 'DOUBLE', time: 'BIGINT'"
FORMS: Mapping[str, Form] = {
    "Parquet": Form("abcd.parquet", write_parquet, f"SELECT {_COLUMNS} FROM 'PATH'"),
    "CSV": Form("abcd.csv", write_csv, f"SELECT {_COLUMNS} FROM 'PATH'"),
    "JSON lines": Form("abcd.jsonl", named, f"SELECT {_COLUMNS} FROM read_json('PATH', columns = {{{_TYPES}}})"),
    "JSON lines, args": Form(
        "args.jsonl",
        listed,
        "SELECT type AS kind, args[1]::BIGINT AS key, args[2] AS x, args[3] AS y, time AS t FROM read_json('PATH',"
        " columns = {type: 'VARCHAR', args: 'DOUBLE[]', time: 'BIGINT'})",
    ),
    "Arrow": Form("abcd.arrow", write_arrow, f"SELECT {_COLUMNS} FROM arrow_file"),
}


def home() -> Path:
    """A folder for the files of this user; nobody else can have put files there."""
    user = os.getuid() if hasattr(os, "getuid") else ""
    folder = Path(tempfile.gettempdir()) / f"augury-bench-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or (user != "" and folder.stat().st_uid != user):
        raise RunError(f"{folder} belongs to somebody else", hint="set TMPDIR to another folder")
    return folder


@dataclass(frozen=True)
class EventFiles:
    """P1's stream of a size as files. Each is written when it is first asked for, and is there as a whole or not at all.

    As a context, files too large to be kept are removed at its end.
    """

    events: int

    def __enter__(self) -> EventFiles:
        return self

    def __exit__(self, *_: object) -> None:
        if len(self) > KEPT:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pieces(self) -> int:
        return max(1, round(self.events / PIECE))

    def __len__(self) -> int:
        return self.pieces * len(self.piece)

    @cached_property
    def folder(self) -> Path:
        folder = home() / f"{self.events}-{SEED}"
        folder.mkdir(exist_ok=True)
        return folder

    @cached_property
    def piece(self) -> Stream:
        """The first events. Those of an earlier run are read instead of drawn anew."""
        path = self._kept("piece.parquet", lambda path: write_parquet(iter([as_table(self._drawn())]), path))
        return as_stream(import_module("pyarrow.parquet").read_table(path))

    @cached_property
    def answers(self) -> int:
        """How many P1 has."""
        return self.pieces * sequences(self.piece)

    def path(self, form: str) -> Path:
        chosen = FORMS[form]
        return self._kept(chosen.file, lambda path: chosen.write(self._tables(), path))

    def _drawn(self) -> Stream:
        return abcd(4 * max(1, self.events // self.pieces // 4), Random(SEED))

    def _tables(self) -> Tables:
        size = len(self.piece)
        for again in range(self.pieces):
            yield as_table(replace(self.piece, key=self.piece.key + again * size, time=self.piece.time + again * size))

    def _kept(self, name: str, write: Callable[[Path], None]) -> Path:
        path = self.folder / name
        if not path.exists():
            part = path.with_name(f"{name}-{os.getpid()}.part")
            try:
                write(part)
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
        return path


def as_table(stream: Stream) -> Any:
    kinds = pa.DictionaryArray.from_arrays(pa.array(stream.kind.astype(np.int8)), pa.array(list(KINDS)))
    columns = {"key": stream.key, "x": stream.x, "y": stream.y, "time": stream.time}
    return pa.table({"type": kinds.cast(pa.string()), **columns})


def as_stream(table: Any) -> Stream:
    kinds = import_module("pyarrow.compute").index_in(table["type"], value_set=pa.array(list(KINDS)))
    return Stream(kinds.to_numpy().astype(np.int64), *(table[name].to_numpy() for name in ("key", "x", "y", "time")))
