"""Facts from queries: of database files, and of connections that a user has opened."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from pathlib import Path
from sys import getsizeof
from threading import Event, Timer
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from augury.core.clock import show_duration
from augury.core.errors import DataError, RunError, nearest
from augury.core.limits import NO_LIMITS, QUERY_TIME, Limits, memory_left
from augury.sources.bounded import ReadLimits
from augury.sources.cells import Cells
from augury.sources.parquet import sheet_of
from augury.sources.python_cells import PlainCells
from augury.sources.sheet import Sheet

_FILE = re.compile(r"(?P<path>.*?\.(duckdb|sqlite3?|db))(:(?P<query>.*))?", re.DOTALL | re.IGNORECASE)
_ABSENT = re.compile(
    r"no such table: (?:\w+\.)?(\w+)|Table with name (\w+) does not exist|relation \"(\w+)\" does not exist"
)
_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')",
    "duckdb": "SELECT table_name FROM information_schema.tables",
}


@dataclass(frozen=True)
class Database:
    """`shop.duckdb:SELECT id, region FROM stores`; without a query, the table of the predicate's name."""

    path: str
    query: str | None = None

    @staticmethod
    def parse(text: str) -> Database | None:
        match = _FILE.fullmatch(text)
        return None if match is None else Database(match["path"], (match["query"] or "").strip() or None)

    def sheet(self, name: str, limits: Limits = NO_LIMITS) -> Sheet:
        """The rows of the query, which may take as long as the limits say, or some minutes."""
        query = self.query or f'SELECT * FROM "{name}"'
        if limits.time is None:
            limits = replace(limits, time=QUERY_TIME)
        with self._opened(limits) as connection:
            if not isinstance(connection, sqlite3.Connection):  # which takes one statement only
                _check_select(query, self.path)
            return query_sheet(connection, query, self.path, limits)

    @contextmanager
    def _opened(self, limits: Limits) -> Iterator[Any]:
        """The database, to be read only."""
        file = Path(self.path)
        if not file.is_file():
            raise DataError("is a directory, not a file" if file.is_dir() else "no such file", self.path)
        with file.open("rb") as opened:
            magic = opened.read(16)
        if magic[8:12] == b"DUCK":
            connection: Any = _open_duckdb(self.path, limits)
        elif magic.startswith(b"SQLite format 3"):
            connection = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
            connection.set_authorizer(_may)
        else:
            raise DataError("is empty" if not magic else "is neither a DuckDB nor a SQLite database", self.path)
        with closing(connection):
            yield connection


_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
# A query sees the database and nothing else: no other file, no extension, no network, and no way to undo that.
_ALONE: Any = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
    "temp_directory": "",  # what does not fit into memory is an error, and fills no disk
}
_LONGEST_VALUE = 64 << 20  # bytes of a text that SQLite makes
_ROWS = 50_000  # that are fetched at a time


def _may(action: int, *about: str | None) -> int:
    """The actions that SQLite allows a query: to read, and to compute with what it has read."""
    loads = action == sqlite3.SQLITE_FUNCTION and "load_extension" in about
    return sqlite3.SQLITE_OK if action in _READING and not loads else sqlite3.SQLITE_DENY


def _open_duckdb(path: str, limits: Limits) -> Any:
    try:
        import duckdb
    except ImportError:
        raise RunError("the database is read with DuckDB, which is not installed", "pip install duckdb") from None
    try:
        left = memory_left()
        most = min(n for n in (limits.bytes, None if left is None else left // 2, 8 << 30) if n is not None)
        return duckdb.connect(path, read_only=True, config={**_ALONE, "memory_limit": f"{max(most, 32 << 20)}B"})
    except duckdb.Error as error:
        raise DataError(f"cannot be opened: {_first_line(error)}", path) from None


def _check_select(query: str, source: str) -> None:
    """Refuses all that DuckDB would run beside one SELECT, or instead of it."""
    import duckdb

    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error:
        return  # the database says what is wrong with it
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise _no_reading(query, source)


def _no_reading(query: str, source: str) -> DataError:
    return DataError("a database is read only, by one SELECT", source, f"not by {query.strip()[:60]!r}")


def query_sheet(connection: Any, query: str, source: str, limits: Limits = NO_LIMITS) -> Sheet:
    """The rows that a query gives, on any connection of the Python database API."""
    if type(connection).__module__.split(".")[0] in ("duckdb", "_duckdb"):
        return _duckdb_sheet(connection, query, source, limits)

    def fetch() -> Sheet:
        with closing(connection.cursor()) as cursor:
            cursor.execute(query)
            if cursor.description is None:
                raise _no_query(query, source)
            names, rows, size = [d[0] for d in cursor.description], list[Any](), 0
            while some := cursor.fetchmany(_ROWS):
                rows += some
                size += sum(getsizeof(cell) for row in some for cell in row)
                _check_size(size, source, limits)
        cells: list[Cells] = (
            [PlainCells(_plain(c)) for c in zip(*rows, strict=True)] if rows else [PlainCells(()) for _ in names]
        )
        return Sheet(tuple(names), cells, len(rows), source, top=source)

    kind = "sqlite" if isinstance(connection, sqlite3.Connection) else ""
    with _timed(connection, query, source, limits):
        return _asked(fetch, query, source, lambda: _tables(connection.cursor(), kind))


def _duckdb_sheet(connection: Any, query: str, source: str, limits: Limits) -> Sheet:
    def fetch() -> Sheet:
        relation = connection.sql(query)
        if relation is None:
            raise _no_query(query, source)
        return sheet_of(_fetched(relation, source, limits), source)

    with _timed(connection, query, source, limits):
        return _asked(fetch, query, source, lambda: _tables(connection, "duckdb"))


def relation_sheet(relation: object, source: str) -> Sheet:
    """The rows of a relation of DuckDB."""
    return _asked(lambda: sheet_of(_fetched(relation, source, NO_LIMITS), source), "", source, list)


def _fetched(relation: Any, source: str, limits: Limits) -> object:
    """The rows of a relation as a table, some at a time."""
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    reader, parts, size = read(_ROWS), list[Any](), 0
    for part in reader:
        parts.append(part)
        size += part.nbytes
        _check_size(size, source, limits)
    return pa.Table.from_batches(parts, reader.schema)


def _check_size(size: int, source: str, limits: Limits) -> None:
    """Refuses to fetch more rows than the limits or the memory allow."""
    if limits.bytes is not None and size > limits.bytes:
        raise DataError(f"the query gives more than {limits.bytes:,} bytes", source, "--limit bytes=…")
    ReadLimits(source).check()


@contextmanager
def _timed(connection: object, query: str, source: str, limits: Limits) -> Iterator[None]:
    """Interrupts a query that takes longer than the limits allow."""
    if limits.time is None or not hasattr(connection, "interrupt"):
        yield
        return
    over = Event()

    def interrupt() -> None:
        over.set()
        connection.interrupt()

    timer = Timer(limits.time / 1e6, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    except DataError as error:
        if not over.is_set():
            raise
        said = f"the query takes longer than {show_duration(limits.time)}"
        raise DataError(said, source, f"--limit time=… lets it take longer; it is {query.strip()[:200]}") from error
    finally:
        timer.cancel()
        timer.join()


def _plain(cells: Sequence[object]) -> Sequence[Any]:
    """A column of a database as Python objects that a fact can hold; a date is its midnight."""
    if date not in set(map(type, cells)):
        return cells
    return [datetime.combine(v, time()) if type(v) is date else v for v in cells]


def _asked(fetch: Callable[[], Sheet], query: str, source: str, tables: Callable[[], list[str]]) -> Sheet:
    """The answer of a database; whatever it raises is an error of the query."""
    try:
        return fetch()
    except DataError:
        raise
    except Exception as error:  # every driver has exceptions of its own
        if str(error).startswith("not authorized"):
            raise _no_reading(query, source) from None
        raise DataError(f"the query fails: {_first_line(error)}", source, _hint(str(error), query, tables)) from None


def _no_query(query: str, source: str) -> DataError:
    return DataError("the query gives no rows", source, f"it must be a SELECT statement, not {query.strip()[:60]!r}")


def _hint(message: str, query: str, tables: Callable[[], list[str]]) -> str:
    """The table that was probably meant, else the query."""
    absent = _ABSENT.search(message)
    if absent is None:
        return f"it is {query.strip()}" if query else ""
    names = tables()
    close = nearest(next(name for name in absent.groups() if name), names)
    return (
        f"there is `{close}`"
        if close
        else f"the tables are {', '.join(sorted(names))}"
        if names
        else "it has no tables"
    )


def _tables(connection: Any, kind: str) -> list[str]:
    return [row[0] for row in connection.execute(_TABLES[kind]).fetchall()] if kind in _TABLES else []


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
