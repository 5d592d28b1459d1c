"""The forms in which one history can be written: files of every format, tables of every library, objects of Python.

A `Written` is a history as a table would have it: columns by name, rows, and what is said of each event. `FORMS` writes it;
a form that cannot hold it says so with `Cannot`.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import augury
from augury.core.clock import Duration, Timestamp
from augury.core.model import Event, HistoryItem, Iri, Revocation, Term, to_json
from augury.sources.types import kind_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROLES = ("type", "time", "start", "end", "id", "op", "known", "version")


class Cannot(Exception):
    """The form has no way to write this."""


@dataclass(frozen=True)
class Written:
    """A history as a table, and the `items` that it means, one a row.

    `named` are the attributes of types that are declared, and `types` what their columns are declared as; the arguments of
    all others are the first columns of data, which are the `loose` ones. `style` is how times are written. What has no
    `names` is no table.
    """

    items: tuple[HistoryItem, ...]
    names: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    loose: frozenset[str] = frozenset()
    style: int = 0

    def column(self, name: str) -> list[Any]:
        at = self.names.index(name)
        return [row[at] for row in self.rows]

    def some(self, rows: Sequence[int]) -> Written:
        cells = tuple(self.rows[i] for i in rows) if self.names else ()
        return replace(self, items=tuple(self.items[i] for i in rows), rows=cells)

    def arranged(self, names: Sequence[str]) -> Written:
        """With some of its columns, in an order."""
        at = [self.names.index(n) for n in names]
        return replace(self, names=tuple(names), rows=tuple(tuple(row[i] for i in at) for row in self.rows))


# Cells


def kinds(values: Sequence[Any]) -> set[type]:
    return {type(v) for v in values if v is not None}


def as_text(value: Any, style: int = 0) -> str:
    """A cell of CSV."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value)
        case Iri():
            return value.text
        case Timestamp():
            return show_time(value, style)
        case Duration() if value.us < 0:
            raise Cannot("text has no negative durations")
        case Term() | tuple():
            raise Cannot("a cell is no term")
    return str(value)


ZONES = (UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-11)), timezone(timedelta(minutes=1)))


def show_time(value: Timestamp, style: int) -> str:
    """A time as text, in one of the ways to write it: in UTC, without a zone, in another zone, or each in its own."""
    moment = EPOCH + timedelta(microseconds=value.us)
    match style % 4:
        case 0:
            return str(value)
        case 1:
            return moment.replace(tzinfo=None).isoformat(" ")
    zone = ZONES[1 if style % 4 == 2 else value.us % len(ZONES)]
    try:
        moment = moment.astimezone(zone)
    except OverflowError:
        raise Cannot("a year that Python does not have") from None
    return moment.isoformat("T" if style % 4 == 2 or value.us % 2 else " ")


def checked_text(written: Written, name: str, nulls: Sequence[str] = ()) -> list[str]:
    """The cells of a column of CSV, where reading them gives the values again."""
    values = written.column(name)
    cells = [as_text(v, written.style) for v in values]
    if any(v is not None and (cell == "" or cell in nulls) for v, cell in zip(values, cells, strict=True)):
        raise Cannot("an empty text is null")
    declared = written.types.get(name)
    if name in ROLES and declared is None:
        return cells
    if name in written.loose:
        found = {int: "int", float: "float", bool: "bool", str: "string"}
        wanted = {found.get(kind) for kind in kinds(values)}
        if len(wanted) > 1 or (wanted and kind_of(cells) not in wanted):
            raise Cannot("a column of text is of one kind, and looks like it")
    if declared == "any" and kinds(values) - {str}:
        raise Cannot("what is declared as any stays text")
    return cells


def as_json(value: Any, style: int = 0) -> Any:
    """A value in JSON, which has numbers, text, lists and terms; what else there is, is read by its declared type."""
    if isinstance(value, Duration) and value.us < 0:
        raise Cannot("text has no negative durations")
    return show_time(value, style) if isinstance(value, Timestamp) else to_json(value)


def as_python(value: Any, style: int = 0) -> Any:
    """A value as other libraries have it."""
    match value:
        case Timestamp():
            try:
                moment = EPOCH + timedelta(microseconds=value.us)
            except OverflowError:
                raise Cannot("a time beyond those of Python") from None
            return moment.replace(tzinfo=None) if style % 4 == 1 else moment.astimezone(ZONES[style % 4])
        case Duration():
            return timedelta(microseconds=value.us)
        case Iri():
            return value.text
        case Term():
            return {"functor": value.functor, "args": [as_python(a) for a in value.args]}
        case tuple():
            return [as_python(a) for a in value]
    return value


_ARROW = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string(), Iri: pa.string(),
          Timestamp: pa.timestamp("us", "UTC"), Duration: pa.duration("us")}  # fmt: skip


_TIMES = (
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
    pa.timestamp("ns", "Europe/Berlin"),
    pa.timestamp("ms"),
    pa.timestamp("s"),
)


def arrow_array(written: Written, name: str) -> Any:
    """A column of Arrow, which is of one kind."""
    values = written.column(name)
    found = kinds(values)
    if found & {Iri} and (written.types.get(name) != "iri" or name in written.loose):
        raise Cannot("Arrow has no IRIs")
    if found <= {int, float} and len(found) == 2:
        raise Cannot("a column has one kind of numbers")
    if not found:
        return pa.nulls(len(values))
    if len(found) == 1 and (kind := _ARROW.get(next(iter(found)))) is not None:
        plain = [v.us if isinstance(v, Timestamp | Duration) else v.text if isinstance(v, Iri) else v for v in values]
        if found == {Timestamp}:
            kind = _TIMES[written.style % len(_TIMES)]
        base = pa.int64() if found <= {Timestamp, Duration} else kind
        unit = pa.timestamp("us") if found == {Timestamp} else kind
        try:
            return pa.array(plain, base).cast(unit).cast(kind)
        except pa.ArrowInvalid:
            return pa.array(plain, base).cast(unit)
    if found & set(_ARROW):
        raise Cannot("a column has one kind of values")
    try:
        return pa.array([as_python(v) for v in values])
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise Cannot("a column has one shape") from None


def arrow_table(written: Written) -> pa.Table:
    if not written.names:
        raise Cannot("no table")
    return pa.table({name: arrow_array(written, name) for name in written.names})


def _has_inner(values: Sequence[Any], inner: type | tuple[type, ...]) -> bool:
    return any(
        isinstance(v, inner)
        or (isinstance(v, Term) and _has_inner(v.args, inner))
        or (isinstance(v, tuple) and _has_inner(v, inner))
        for v in values
    )


# Files


def csv_text(
    written: Written, separator: str = ",", end: str = "\n", quote: int = csv.QUOTE_MINIMAL, null: str = "",
    header: bool = True,
) -> str:  # fmt: skip
    if not written.names:
        raise Cannot("no table")
    nulls = [null] if null else []
    columns = [[c or null for c in checked_text(written, n, nulls)] for n in written.names]
    rows = [*([written.names] if header else []), *zip(*columns, strict=True)]
    return "".join(_csv_row(row, separator, quote) + end for row in rows)


def _csv_row(row: Sequence[str], separator: str, quote: int) -> str:
    out = io.StringIO()  # a cell is quoted if a character of the end of rows is in it, so that one has both kinds
    csv.writer(out, delimiter=separator, lineterminator="\r\n", quoting=quote).writerow(row)  # type: ignore[arg-type]
    return out.getvalue().removesuffix("\r\n")


def objects(written: Written, by_name: bool, value: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """The items as objects, without what they do not say."""
    found = []
    for row, item in enumerate(written.items):
        one: dict[str, Any]
        cells = dict(zip(written.names, written.rows[row], strict=True)) if written.names else None
        if isinstance(item, Revocation):
            since = cells["known"] if cells and item.known is not None else item.known
            one = {"op": "revoke", "id": item.id} | ({} if since is None else {"known": value(since)})
            found.append(one if item.version is None else one | {"version": item.version})
            continue
        attributes = written.named.get(item.type)
        if cells is None:
            one = {
                "start": item.start,
                "end": item.end,
                "id": item.id or None,
                "known": item.known,
                "version": item.version or None,
            }
        else:
            one = {n: cells[n] for n in ROLES if n in cells and n != "type"}
        one = {"type": item.type} | {k: value(v) for k, v in one.items() if v is not None}
        if by_name and attributes is None and item.args:
            raise Cannot("what is not declared has no names")
        if by_name and attributes is not None:
            one |= {n: value(a) for n, a in zip(attributes, item.args, strict=True)}
        elif set(attributes or ()) & set(ROLES):
            raise Cannot("`args` and a role of the same name are two things")
        else:
            one["args"] = [value(a) for a in item.args]
        found.append(one)
    return found


def json_lines(written: Written, by_name: bool) -> str:
    for item in written.items:
        if not isinstance(item, Revocation):
            types = [written.types.get(n) for n in written.named.get(item.type, ())] or [None] * len(item.args)
            for arg, type in zip(item.args, types, strict=True):
                if _has_inner([arg], (Timestamp, Duration, Iri)) and (type is None or isinstance(arg, Term | tuple)):
                    raise Cannot("JSON has no such values")
    said = objects(written, by_name, lambda v: as_json(v, written.style))
    return "".join(json.dumps(o, ensure_ascii=bool(written.style % 2)) + "\n" for o in said)


def _put(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def _parquet(table: Any, path: Path) -> Path:
    pyarrow.parquet.write_table(table, path)
    return path


def _ipc(table: Any, path: Path, stream: bool) -> Path:
    with pa.OSFile(str(path), "wb") as sink:
        make = pa.ipc.new_stream if stream else pa.ipc.new_file
        with make(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    return path


def _zst(data: str) -> bytes:
    return pa.compress(data.encode(), codec="zstd", asbytes=True)  # type: ignore[no-any-return]


def _halves(written: Written) -> tuple[Written, Written]:
    n = len(written.items)
    return written.some(range(n // 2)), written.some(range(n // 2, n))


def _folder(written: Written, folder: Path, name: str, write: Callable[[Written, Path], Any]) -> Path:
    inside = folder / name
    inside.mkdir()
    ending = name.rpartition("-")[2]
    for i, half in enumerate(_halves(written)):
        write(half, inside / f"part-{i}.{ending}")
    return inside


def _two_csv(written: Written, path: Path) -> None:
    """The columns of the second file come in another order."""
    _put(path, csv_text(written.arranged(written.names[::-1]) if path.name.startswith("part-1") else written))


def _in_two(written: Written) -> Written:
    csv_text(written)  # what the columns of both files are together
    return written


def _headerless(written: Written) -> str:
    """Without a header come the type, the declared attributes, then the time, or start and end, then an id."""
    attributes = set(written.named.values())
    if len(attributes) != 1 or written.loose or not written.rows or set(written.column("type")) - set(written.named):
        raise Cannot("without a header there is one list of attributes")
    own = next(iter(attributes))
    said = [n for n in written.names if n in ROLES and n != "type"]
    order = ["type", *own, *said]
    if said not in (["time"], ["start", "end"], ["start", "end", "id"]) or set(own) & set(ROLES):
        raise Cannot("without a header there is one order")
    moved = written.arranged(order)
    if {as_text(c).strip().lower() for c in moved.rows[0]} & {*order, *ROLES}:
        raise Cannot("the first row looks like a header")
    return csv_text(moved, header=False)


def _pandas(written: Written) -> Any:
    """A frame: whole numbers with nulls are of the kind Int64, since floats cannot hold all of them."""
    table = arrow_table(written)
    frame = table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get)
    if any(pa.types.is_nested(f.type) for f in table.schema):
        raise Cannot("pandas has lists as arrays")
    return frame


def _polars(written: Written) -> Any:
    return pytest.importorskip("polars").from_arrow(arrow_table(written))


def _duckdb(written: Written) -> Any:
    table = arrow_table(written)
    if any(pa.types.is_nested(f.type) or pa.types.is_duration(f.type) for f in table.schema):
        raise Cannot("DuckDB has other types")
    connection = duckdb.connect()
    connection.register("given", table)
    return connection.sql("SELECT * FROM given")


def _in_chunks(table: Any) -> Any:
    n = len(table)
    return pa.concat_tables([table.slice(0, n // 2), table.slice(n // 2, 0), table.slice(n // 2)])


def _views(table: Any) -> Any:
    """Text as views, and as the words of a dictionary."""
    kinds_of = [pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.large_string()]
    columns, at = [], 0
    for column in table.columns:
        if column.type == pa.string():
            kind, at = kinds_of[at % 3], at + 1
            column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)
        columns.append(column)
    return pa.table(columns, names=table.column_names)


def _by_type(written: Written, make: Callable[[Written], Any]) -> dict[str, Any]:
    """A table for each type, with the columns that its events have. They are pushed in the order of time."""
    if not written.rows or any(isinstance(item, Revocation) or item.id for item in written.items):
        raise Cannot("the order of arrival is lost")
    found = {}
    for type in dict.fromkeys(written.column("type")):
        part = written.some([i for i, t in enumerate(written.column("type")) if t == type])
        own = written.named.get(type) or [n for n in written.names if n in written.loose][: len(part.items[0].args)]  # type: ignore[union-attr]
        found[type] = make(part.arranged([n for n in written.names if n in own or (n in ROLES and n != "type")]))
    return found


def dicts(written: Written, by_name: bool) -> list[dict[str, Any]]:
    """Dicts of Python: IRIs are objects, times and durations those of Python."""
    if any(_has_inner([a for a in item.args if isinstance(a, Term | tuple)], Iri) for item in written.items if isinstance(item, Event)):  # fmt: skip
        raise Cannot("an IRI inside")
    return objects(written, by_name, lambda v: v if isinstance(v, Iri) else as_python(v, written.style))


def _generator(found: list[Any]) -> Iterator[Any]:
    yield from found


Form = Callable[[Written, Path], Any]
read = augury.read

FORMS: dict[str, Form] = {
    "CSV": lambda w, d: read(_put(d / "plain.csv", csv_text(w))),
    "CSV with ;": lambda w, d: read(_put(d / "semicolon.csv", csv_text(w, ";"))),
    "CSV with tabs": lambda w, d: read(_put(d / "tab.tsv", csv_text(w, "\t"))),
    "CSV of Windows": lambda w, d: read(_put(d / "windows.csv", "\ufeff" + csv_text(w, end="\r\n"))),
    "CSV, all quoted": lambda w, d: read(_put(d / "quoted.csv", csv_text(w, quote=csv.QUOTE_ALL))),
    "CSV of old Macs": lambda w, d: read(_put(d / "mac.csv", csv_text(w, end="\r"))),
    "CSV with a word for null": lambda w, d: read(_put(d / "null.csv", csv_text(w, null="NULL")), null="NULL"),
    "CSV without a header": lambda w, d: read(_put(d / "bare.csv", _headerless(w))),
    "CSV in two files": lambda w, d: read(_folder(_in_two(w), d, "two-csv", _two_csv)),
    "JSON lines": lambda w, d: read(_put(d / "args.jsonl", json_lines(w, False))),
    "JSON lines by name": lambda w, d: read(_put(d / "names.jsonl", json_lines(w, True))),
    "Parquet": lambda w, d: read(_parquet(arrow_table(w), d / "plain.parquet")),
    "Parquet in a folder": lambda w, d: read(_folder(w, d, "many-parquet", lambda h, p: _parquet(arrow_table(h), p))),
    "an Arrow file": lambda w, d: read(_ipc(arrow_table(w), d / "file.arrow", False)),
    "an Arrow stream": lambda w, d: read(_ipc(arrow_table(w), d / "stream.arrow", True)),
    "gzip": lambda w, d: read(_put(d / "g.csv.gz", gzip.compress(csv_text(w).encode()))),
    "bzip2": lambda w, d: read(_put(d / "b.jsonl.bz2", bz2.compress(json_lines(w, False).encode()))),
    "zstd": lambda w, d: read(_put(d / "z.csv.zst", _zst(csv_text(w)))),
    "Parquet, packed": lambda w, d: read(_put(d / "p.parquet.gz", gzip.compress(_parquet(arrow_table(w), d / "p").read_bytes()))),
    "a pattern": lambda w, d: read(f"{_folder(w, d, 'globbed-jsonl', lambda h, p: _put(p, json_lines(h, False)))}/part-*.jsonl"),
    "a table": lambda w, d: arrow_table(w),
    "a table in chunks": lambda w, d: _in_chunks(arrow_table(w)),
    "a table of views": lambda w, d: _views(arrow_table(w)),
    "a record batch": lambda w, d: arrow_table(w).combine_chunks().to_batches()[0] if w.rows else arrow_table(w),
    "a reader of batches": lambda w, d: arrow_table(w).to_reader(max_chunksize=3),
    "pandas": lambda w, d: _pandas(w),
    "Polars": lambda w, d: _polars(w),
    "DuckDB": lambda w, d: _duckdb(w),
    "dicts": lambda w, d: dicts(w, False),
    "dicts by name": lambda w, d: dicts(w, True),
    "a generator": lambda w, d: _generator(dicts(w, False)),
    "events": lambda w, d: list(w.items),
    "tables by type": lambda w, d: _by_type(w, arrow_table),
    "frames by type": lambda w, d: _by_type(w, _pandas),
}  # fmt: skip
