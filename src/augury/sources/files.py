"""Files, folders, glob patterns and standard input; the name selects the format. A format is one row of `FORMATS`, at the end."""

from __future__ import annotations

import glob
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from augury.algebra.plan import Plan
from augury.core.errors import DataError
from augury.core.limits import NO_LIMITS, Limits
from augury.sources import csv, jsonl, named_graphs, parquet
from augury.sources.bounded import BoundedStream, ReadLimits, packed_size
from augury.sources.heading import NAMES, ColumnNames, with_columns
from augury.sources.problems import Skipped
from augury.sources.sheet import Items, Sheet, with_kinds

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


@dataclass(frozen=True)
class SourceFile:
    """`path` or `type=path`; `-` is standard input, whose form is guessed from its first character.

    The type of graph events is their stream, `<http://example.org/stock>=path`.

    A folder, or a pattern such as `logs/*.csv`, is all files of one form in it. `names` are the columns, or keys, that
    hold what is no attribute; `nulls` are spellings of null in CSV; `shown` is what the source is called where it is not
    its path.
    """

    path: str
    type: str | None = None
    names: ColumnNames = NAMES
    nulls: tuple[str, ...] = ()
    shown: str = ""
    live: bool = False  # standard input is read as it comes
    time_predicate: str = ""  # of triples that say when a graph event is

    @staticmethod
    def parse(
        text: str,
        time: str = "time",
        nulls: tuple[str, ...] = (),
        time_predicate: str = "",
        columns: Iterable[str] = (),
        plan: Plan | None = None,
    ) -> SourceFile:
        stream = re.match(r"(<[^<>]+>)=", text)
        if stream is not None:
            return SourceFile(
                text[stream.end() :], stream[1], ColumnNames(time=time), nulls, time_predicate=time_predicate
            )
        name, equals, path = text.partition("=")
        if equals and name.replace("_", "a").isalnum() and not Path(text).exists():
            return SourceFile(path, name, with_columns(ColumnNames(time=time), columns, name, plan), nulls)
        return SourceFile(text, None, with_columns(ColumnNames(time=time), columns, None, plan), nulls)

    @property
    def location(self) -> str:
        return self.shown or ("standard input" if self.path == "-" else self.path)

    @property
    def time(self) -> str:
        return self.names.time

    @property
    def remote(self) -> bool:
        return "://" in self.path

    @property
    def pattern(self) -> bool:
        return any(c in self.path for c in "*?[") and not Path(self.path).exists()

    @property
    def compression(self) -> str | None:
        return next((name for ending, name in COMPRESSED.items() if self.path.endswith(ending)), None)

    @property
    def packed(self) -> bool:
        """Whether its bytes are few for what they hold."""
        return bool(self.compression) or (self.path != "-" and FORMATS[self.files()[0].form()].binary)

    def form(self, start: bytes = b"") -> str:
        """The name of the format that the name says; of standard input, the one that its beginning looks like."""
        plain = self.path
        for ending in COMPRESSED:
            plain = plain.removesuffix(ending)
        for ending, form in ENDINGS.items():
            if plain.endswith(ending):
                return form
        if self.path == "-":
            begin = start.removeprefix(b"\xef\xbb\xbf").lstrip()
            return next((f.name for f in FORMATS.values() if begin.startswith(f.beginnings)), "csv")
        hint = f"name it {listed(usual_endings(), 'or')}; {listed(list(COMPRESSED), 'or')} may follow"
        raise DataError(f"is neither {listed(titles(), 'nor')} by its name", self.location, hint)

    def check(self) -> None:
        """Refuses a path where nothing is, or of which nothing can be said."""
        if not self.remote:
            self.files()[0].form()

    def files(self) -> list[SourceFile]:
        """The files of a source: itself, or those of a folder or a pattern in the order of their names."""
        if self.path == "-" or self.remote:
            return [self]
        path = Path(self.path)
        if self.pattern:
            paths = [Path(p) for p in sorted(glob.glob(self.path, recursive=True))]
            result = [p for p in paths if p.is_file()]
            if not result:
                raise DataError("no file has such a name", self.location)
            return self._of_one_form([replace(self, path=str(p), shown=str(p)) for p in result])
        if not path.exists():
            raise DataError("no such file", self.location)
        if not path.is_dir():
            return [self]
        inside = [p for p in sorted(path.rglob("*")) if p.is_file() and is_data(p) and not _hidden(p, path)]
        tables = [p for p in inside if not FORMATS[SourceFile(str(p)).form()].graphs]
        inside = tables or inside  # beside tables, RDF is knowledge
        if not inside:
            hint = f"it needs files named {listed(usual_endings(), 'or')}"
            raise DataError("is a directory without data", self.location, hint)
        return self._of_one_form(
            [replace(self, path=str(p), shown=f"{self.location.rstrip('/')}/{p.relative_to(path)}") for p in inside]
        )

    def _of_one_form(self, files: list[SourceFile]) -> list[SourceFile]:
        forms = sorted({file.form() for file in files})
        if len(forms) > 1:
            what = "matches" if self.pattern else "is a directory with"
            hint = f"name those that you mean: --events '{files[0].path}'"
            raise DataError(f"{what} files of several kinds: {', '.join(forms)}", self.location, hint)
        return files

    @property
    def size(self) -> int:
        """Bytes on disk; 0 where that is not known."""
        return 0 if self.path == "-" or self.remote else sum(Path(f.path).stat().st_size for f in self.files())

    def to_arrow(self) -> Any:
        """The rows as an Arrow table, whatever they are to be: undeclared columns of text as what all their cells are."""
        parts = list(self.parts())
        for part in parts:
            Skipped().handle_all(part.problems)
        try:
            tables = [_table_of(part) for part in parts if isinstance(part, Items)]
            for sheet in with_kinds([part for part in parts if isinstance(part, Sheet)]):
                tables.append(pa.table([cells.arrow() for cells in sheet.cells], list(sheet.names)))
            return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
        except pa.ArrowException as error:
            raise DataError(f"is no table: {str(error).splitlines()[0]}", self.location) from None

    def to_pandas(self) -> Any:
        """The rows as a DataFrame of pandas."""
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def parts(self, plan: Plan | None = None, limits: Limits = NO_LIMITS) -> Iterator[Sheet | Items]:
        """The contents of the files, part by part, in their order there."""
        for file in self.files():
            bounds = ReadLimits(file.location, limits)
            try:
                for part in file._read(plan, bounds):
                    yield part
                    if not file.live:
                        bounds.check()
            except (OSError, pa.ArrowException) as error:
                raise file._unreadable(error) from None

    def _read(self, plan: Plan | None, bounds: ReadLimits) -> Iterator[Sheet | Items]:
        with self._opened(bounds) as stream:
            form = FORMATS[self.form(stream.peek(8)) if self.path == "-" else self.form()]
            if form.binary and (self.path == "-" or self.compression):  # it wants to be looked at from both ends
                data = stream.read()
                if data:
                    yield from form.read(pa.BufferReader(data), self, plan)
            elif not form.binary or Path(self.path).stat().st_size:
                yield from form.read(stream, self, plan)

    def _unreadable(self, error: Exception) -> DataError:
        said = getattr(error, "strerror", None) or str(error).splitlines()[0]
        hint = f"is it {self.compression}, and whole?" if self.compression else ""
        return DataError(f"cannot be read: {said}", self.location, hint)

    def _opened(self, bounds: ReadLimits) -> Any:
        """The bytes of a file, unpacked."""
        if self.path == "-":
            return BoundedStream(_Input(self.live), bounds)
        try:
            if self.compression:
                stream = pa.input_stream(self.path, compression=self.compression, buffer_size=1 << 20)
                return BoundedStream(stream, bounds, packed_size(self.path, self.compression))
            if FORMATS[self.form()].binary:
                return pa.OSFile(self.path)
            return BoundedStream(open(self.path, "rb"), bounds)
        except FileNotFoundError:
            raise DataError("no such file", self.location) from None
        except OSError as error:
            raise self._unreadable(error) from None


def _table_of(items: Items) -> Any:
    """Objects as a table: its columns are all keys that one of them has."""
    wrong = next((row for row, item in enumerate(items.objects) if not isinstance(item, dict)), None)
    if wrong is not None:
        raise DataError("is not an object, so the file is not a table", items.location_of(wrong))
    keys = dict.fromkeys(key for item in items.objects for key in item)
    return pa.table({key: [item.get(key) for item in items.objects] for key in keys})


class _Input:
    """Standard input, as a file that is never closed."""

    def __init__(self, live: bool) -> None:
        self.live = live
        self.data: Any = sys.stdin.buffer if hasattr(sys.stdin, "buffer") else io.BytesIO(sys.stdin.read().encode())

    def peek(self, size: int) -> bytes:
        return bytes(self.data.peek(size)) if hasattr(self.data, "peek") else self.data.getvalue()[:size]

    def read(self, size: int = -1, /) -> bytes:
        if self.live and size > 0:
            return self.data.read1(size)  # type: ignore[no-any-return]
        return self.data.read(size)  # type: ignore[no-any-return]

    def __enter__(self) -> _Input:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def is_data(path: Path) -> bool:
    """Whether a file is one of data by its name."""
    suffixes = path.suffixes[-2:]
    return bool(suffixes) and (
        suffixes[-1] in ENDINGS or (suffixes[-1] in COMPRESSED and len(suffixes) == 2 and suffixes[0] in ENDINGS)
    )


def _hidden(path: Path, root: Path) -> bool:
    """Whether Spark would not see a file either: `_SUCCESS`, `.part-0.crc` and the like."""
    return any(part.startswith(("_", ".")) for part in path.relative_to(root).parts)


def headerless(cells: tuple[str, ...], source: SourceFile, plan: Plan) -> list[str] | None:
    """The names of the columns of a table without a header; None where its first row is a header.

    It is one where it has a name that is known. Without a header come the declared attributes, with the type ahead where
    the source has no type of its own, then the time, or start and end, then an id.
    """
    names = source.names
    types = [source.type] if source.type is not None else sorted(plan.declared)
    names_by_type = [[names.column(t, a) for a in plan.declared[t]] for t in types if t in plan.declared]
    if not names_by_type or {c.lower() for c in cells} & {
        c.lower() for c in (*names.all, *(n for type_names in names_by_type for n in type_names))
    }:
        return None
    if any(type_names != names_by_type[0] for type_names in names_by_type):
        hint = f"give it a first line with the names of its columns: {names.type},…,{names.time}"
        raise DataError("has no header, and its events do not have the same attributes", f"{source.location}:1", hint)
    head = [*([names.type] if source.type is None else []), *names_by_type[0]]
    for more in ([names.time], [names.start, names.end], [names.start, names.end, names.id]):
        if len(cells) == len(head) + len(more):
            return head + more
    order = ", ".join([*head, names.time])
    raise DataError(
        f"has no header, and {len(cells)} fields where `{types[0]}` has {len(head) + 1}",
        f"{source.location}:1",
        f"the order is {order}; or give it a first line with the names of its columns",
    )


def read(
    path: str | Path,
    *,
    type: str | None = None,
    time: str = "time",
    null: str | Iterable[str] = (),
    columns: Mapping[str, str] | None = None,
    time_predicate: str = "",
) -> SourceFile:
    """A file, a folder or a pattern with events or facts, as the command line reads it, for `run`, `push` and `facts`.

    `type` is that of all its events, `time` the column that holds their time, `null` how null is written in CSV; `columns`
    are attributes whose columns are called otherwise: `{"wind.speed": "v_kmh"}`. It is read
    when it is used; it is a stream of Arrow itself, so that `pandas` or Polars can look at it. `time_predicate` is that of
    the triples that say when the named graphs of N-Quads, TriG and JSON-LD are.
    """
    nulls = (null,) if isinstance(null, str) else tuple(null)
    renamed = [f"{attribute}={column}" for attribute, column in (columns or {}).items()]
    names = with_columns(ColumnNames(time=time), renamed, type)
    result = SourceFile(str(path), type, names, nulls, time_predicate=time_predicate)
    if not result.remote and result.path != "-":
        result.check()
    return result


# The formats


@dataclass(frozen=True)
class Format:
    """A row: what a format is called, how its files are named and begin, and how one is read.

    A `binary` one is a table that is packed itself, and is looked at from both ends.
    """

    name: str
    title: str
    endings: tuple[str, ...]
    read: Callable[[Any, SourceFile, Plan | None], Iterator[Sheet | Items]]
    beginnings: tuple[bytes, ...] = ()  # by which standard input is known
    binary: bool = False
    graphs: bool = False  # whether it is RDF, which holds graph events, and no rows


def _csv(stream: Any, source: SourceFile, plan: Plan | None) -> Iterator[Sheet]:
    unnamed = None if plan is None else lambda cells, location: headerless(cells, source, plan)
    return csv.read(stream, source.location, source.nulls, unnamed)


def _plain(read: Callable[[Any, str], Iterator[Any]]) -> Callable[[Any, SourceFile, Plan | None], Iterator[Any]]:
    """A format that needs to know nothing of the program."""
    return lambda stream, source, plan: read(stream, source.location)


def _graphs(stream: Any, source: SourceFile, plan: Plan | None) -> Iterator[Sheet]:
    form = FORMATS[source.form()].title
    if source.type is None:
        hint = f"name the stream of its events: --events '<http://example.org/stock>={source.path}'"
        raise DataError(f"is {form}, whose graphs are events, but no stream is named", source.location, hint)
    return named_graphs.read(stream, source.location, form, source.time_predicate)


FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format("csv", "CSV", (".csv", ".tsv"), _csv),
        Format("jsonl", "JSON lines", (".jsonl", ".ndjson", ".json"), _plain(jsonl.read), (b"{", b"[")),
        Format("parquet", "Parquet", (".parquet",), _plain(parquet.read), (b"PAR1",), binary=True),
        Format("arrow", "Arrow", (".arrow", ".feather", ".ipc"), _plain(parquet.read_arrow), (b"ARROW1",), binary=True),
        Format("nquads", "N-Quads", (".nq",), _graphs, graphs=True),
        Format("trig", "TriG", (".trig",), _graphs, graphs=True),
        Format("jsonld", "JSON-LD", (".jsonld",), _graphs, graphs=True),
    )
}
ENDINGS: dict[str, str] = {ending: row.name for row in FORMATS.values() for ending in row.endings}


def titles(graphs: bool = False) -> list[str]:
    """The titles of the formats of tables, or of graphs."""
    return [row.title for row in FORMATS.values() if row.graphs == graphs]


def usual_endings() -> list[str]:
    return [row.endings[0] for row in FORMATS.values() if not row.graphs]


def listed(words: Sequence[str], last: str) -> str:
    """`CSV, JSON lines or Parquet`."""
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
