"""Facts from queries: of database files, and of connections that a user has opened."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from augury.errors import DataError, RunError, nearest
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
        found = _FILE.fullmatch(text)
        return None if found is None else Database(found["path"], (found["query"] or "").strip() or None)

    def sheet(self, name: str) -> Sheet:
        """The rows of the query."""
        query = self.query or f'SELECT * FROM "{name}"'
        with self._opened() as connection:
            if not isinstance(connection, sqlite3.Connection):  # which takes one statement only
                _check_select(query, self.path)
            return query_sheet(connection, query, self.path)

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """The database, to be read only."""
        file = Path(self.path)
        if not file.is_file():
            raise DataError("is a directory, not a file" if file.is_dir() else "no such file", self.path)
        with file.open("rb") as opened:
            magic = opened.read(16)
        if magic[8:12] == b"DUCK":
            connection: Any = _open_duckdb(self.path)
        elif magic.startswith(b"SQLite format 3"):
            connection = sqlite3.connect(f"file:{quote(str(file.resolve()))}?mode=ro", uri=True)
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
}


def _may(action: int, *about: str | None) -> int:
    """What SQLite lets a query do: read, and compute with what it has read."""
    loads = action == sqlite3.SQLITE_FUNCTION and "load_extension" in about
    return sqlite3.SQLITE_OK if action in _READING and not loads else sqlite3.SQLITE_DENY


def _open_duckdb(path: str) -> Any:
    try:
        import duckdb
    except ImportError:
        raise RunError("the database is read with DuckDB, which is not installed", "pip install duckdb") from None
    try:
        return duckdb.connect(path, read_only=True, config=_ALONE)
    except duckdb.Error as error:
        raise DataError(f"cannot be opened: {_first_line(error)}", path) from None


def _check_select(query: str, place: str) -> None:
    """Refuses all that DuckDB would run beside one SELECT, or instead of it."""
    import duckdb

    try:
        found = duckdb.extract_statements(query)
    except duckdb.Error:
        return  # the database says what is wrong with it
    if len(found) != 1 or found[0].type != duckdb.StatementType.SELECT:
        raise _no_reading(query, place)


def _no_reading(query: str, place: str) -> DataError:
    return DataError("a database is read only, by one SELECT", place, f"not by {query.strip()[:60]!r}")


def query_sheet(connection: Any, query: str, place: str) -> Sheet:
    """The rows that a query gives, on any connection of the Python database API."""
    if type(connection).__module__.split(".")[0] in ("duckdb", "_duckdb"):
        return _duckdb_sheet(connection, query, place)

    def fetch() -> Sheet:
        with closing(connection.cursor()) as cursor:
            cursor.execute(query)
            if cursor.description is None:
                raise _no_query(query, place)
            names, rows = [d[0] for d in cursor.description], cursor.fetchall()
        cells: list[Cells] = (
            [PlainCells(_plain(c)) for c in zip(*rows, strict=True)] if rows else [PlainCells(()) for _ in names]
        )
        return Sheet(tuple(names), cells, len(rows), place, top=place)

    kind = "sqlite" if isinstance(connection, sqlite3.Connection) else ""
    return _asked(fetch, query, place, lambda: _tables(connection.cursor(), kind))


def _duckdb_sheet(connection: Any, query: str, place: str) -> Sheet:
    def fetch() -> Sheet:
        relation = connection.sql(query)
        if relation is None:
            raise _no_query(query, place)
        return sheet_of(_fetched(relation), place)

    return _asked(fetch, query, place, lambda: _tables(connection, "duckdb"))


def relation_sheet(relation: Any, place: str) -> Sheet:
    """The rows of a relation of DuckDB."""
    return _asked(lambda: sheet_of(_fetched(relation), place), "", place, list)


def _fetched(relation: Any) -> Any:
    return relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.arrow()


def _plain(cells: Sequence[Any]) -> Sequence[Any]:
    """A column of a database as Python objects that a fact can hold; a date is its midnight."""
    if date not in set(map(type, cells)):
        return cells
    return [datetime.combine(v, time()) if type(v) is date else v for v in cells]


def _asked(fetch: Callable[[], Sheet], query: str, place: str, tables: Callable[[], list[str]]) -> Sheet:
    """The answer of a database; whatever it raises is an error of the query."""
    try:
        return fetch()
    except DataError:
        raise
    except Exception as error:  # every driver has exceptions of its own
        if str(error).startswith("not authorized"):
            raise _no_reading(query, place) from None
        raise DataError(f"the query fails: {_first_line(error)}", place, _hint(str(error), query, tables)) from None


def _no_query(query: str, place: str) -> DataError:
    return DataError("the query gives no rows", place, f"it is to be a SELECT, not {query.strip()[:60]!r}")


def _hint(message: str, query: str, tables: Callable[[], list[str]]) -> str:
    """The table that was probably meant, else the query."""
    absent = _ABSENT.search(message)
    if absent is None:
        return f"it is {query.strip()}" if query else ""
    known = tables()
    close = nearest(next(name for name in absent.groups() if name), known)
    return (
        f"there is `{close}`"
        if close
        else f"the tables are {', '.join(sorted(known))}"
        if known
        else "it has no tables"
    )


def _tables(connection: Any, kind: str) -> list[str]:
    return [row[0] for row in connection.execute(_TABLES[kind]).fetchall()] if kind in _TABLES else []


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
