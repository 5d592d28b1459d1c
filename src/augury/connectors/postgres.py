"""PostgreSQL: the changes of a table in, through logical decoding; answers out as rows of a table.

    postgres://user:password@host:5432/database/table?time=measured_at&slot=…&publication=…
    postgres://user:password@host:5432/database/answers?notify=alerts

In: a copy of the table first, then its inserts, updates and deletes from a replication slot (pgoutput, PostgreSQL 10 or newer),
which advances once they are on disk here. As events, the id of a row is its primary key and its version the position in the log;
an update replaces the event, a delete revokes it. As facts, a row is a fact, and an update ends the one that was. Time is the
column that `time` names, or the moment of the commit.

Out: a row for each answer, written by id and deleted where the answer is retracted, in one transaction with the number of the
step; the columns are those of the table that have the names of attributes, or `id`, `type`, `start`, `end`, `args`, `trace`.
"""

from __future__ import annotations

import select
import struct
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import psycopg
from psycopg import pq, sql

from augury.connectors.addresses import Address, redacted
from augury.connectors.delivery import Delivery
from augury.connectors.rendering import RenderedChanges
from augury.connectors.sink import AnswerSink
from augury.connectors.source import EventSource, Position, UnavailableError
from augury.core.errors import RunError

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_FEEDBACK = 5.0  # seconds between two reports of how far we are
_MOST = 8 << 20  # bytes of changes in a delivery, but for those of one transaction
_NOTIFIED = 7900  # bytes of a notification
_WHOLE, _FLOAT, _BOOL, _JSON = {20, 21, 23, 26}, {700, 701}, {16}, {114, 3802}
_NUMERIC = 1700


@dataclass(frozen=True)
class TableSourceOptions:
    """`columns` are those that are read, in this order; `copy` is whether rows are read that are there already."""

    time: str = ""
    columns: str = ""
    slot: str = ""
    publication: str = ""
    copy: bool = True
    sslmode: str = ""


@dataclass(frozen=True)
class TableSinkOptions:
    """`notify` is a channel that is told of each change; `create` makes the table where there is none."""

    notify: str = ""
    create: bool = True
    sslmode: str = ""


@dataclass(frozen=True)
class TableAddress:
    """A database, and a table in it."""

    connection: str
    schema: str
    table: str

    @staticmethod
    def of(address: Address, sslmode: str) -> TableAddress:
        database, _, name = address.path.strip("/").partition("/")
        schema, _, table = name.rpartition(".")
        if not database or not table or "/" in table:
            raise RunError(f"{address} names no table", hint="write it as postgres://user@host:5432/database/table")
        host, _, port = address.host.rpartition(":") if ":" in address.host else (address.host, "", "5432")
        parts = {"host": host, "port": port, "dbname": database, "user": address.user, "password": address.password}
        parts |= {"sslmode": sslmode, "connect_timeout": "5", "application_name": "augury"}
        text = psycopg.conninfo.make_conninfo(**{name: value for name, value in parts.items() if value})
        return TableAddress(text, schema or "public", table)

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.table)


def _raised(address: Address, error: psycopg.Error) -> RunError | UnavailableError:
    """What an error of the database means here."""
    message = redacted(
        f"{address}: {str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}"
    )
    state = error.sqlstate or ""
    said = ("authentication failed", "no password supplied", "does not exist", "no pg_hba.conf entry")
    refused = any(text in message for text in said)
    if refused or (state and state[:2] not in ("08", "57", "53", "40", "55", "XX", "58", "25")):
        return RunError(message, hint="check user, password, database, table and permissions")
    return UnavailableError(message)


@dataclass
class Column:
    name: str
    type: int
    key: bool

    def value(self, text: str | None) -> Any:
        """The value of a column from its text."""
        if text is None:
            return None
        if self.type in _WHOLE:
            return int(text)
        if self.type in _FLOAT or self.type == _NUMERIC:
            number = float(text)
            return int(text) if self.type == _NUMERIC and "." not in text and number == number else number
        if self.type in _BOOL:
            return text == "t" or text == "true"
        return orjson.loads(text) if self.type in _JSON else text


Row = list[str | None]


@dataclass
class RowWriter:
    """Makes lines of rows: facts or events of a table."""

    address: Address
    options: TableSourceOptions
    facts: str
    columns: list[Column] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    size: int = 0

    def _values(self, row: Row) -> dict[str, Any]:
        return {column.name: column.value(text) for column, text in zip(self.columns, row, strict=True)}

    def _id(self, row: Row) -> str:
        keys = [text or "" for column, text in zip(self.columns, row, strict=True) if column.key]
        return f"{self.address.path.rpartition('/')[2]}/{','.join(keys)}"

    def _add(self, line: dict[str, Any]) -> None:
        self.lines.append(orjson.dumps(line, default=str) + b"\n")
        self.size += len(self.lines[-1])

    def _fact(self, op: str, row: Row) -> None:
        values = self._values(row)
        names = self.options.columns.split(",") if self.options.columns else list(values)
        self._add({"op": op, "args": [values[name] for name in names]})

    def _event(self, op: str, row: Row, version: int, moment: str) -> None:
        values = self._values(row)
        names = self.options.columns.split(",") if self.options.columns else list(values)
        line = {name: values[name] for name in names if values[name] is not None}
        line["time"] = values[self.options.time] if self.options.time else line.get("time", moment)
        self._add({"op": op, "id": self._id(row), "version": version} | line)

    def insert(self, row: Row, version: int, moment: str) -> None:
        if self.facts:
            self._fact("assert", row)
        else:
            self._event("replace", row, version, moment)

    def update(self, old: Row | None, row: Row, version: int, moment: str) -> None:
        if self.facts:
            if old is not None:
                self._fact("retract", old)
            self._fact("assert", row)
            return
        if old is not None and self._id(old) != self._id(row):
            self._add({"op": "revoke", "id": self._id(old), "version": version})
        self._event("replace", row, version, moment)

    def delete(self, old: Row, version: int) -> None:
        if self.facts:
            self._fact("retract", old)
        else:
            self._add({"op": "revoke", "id": self._id(old), "version": version})

    def taken(self) -> bytes:
        data = b"".join(self.lines)
        self.lines, self.size = [], 0
        return data


class TableSource(EventSource):
    def __init__(self, address: Address) -> None:
        self.address, self.options = address, address.read(TableSourceOptions)
        self.where = TableAddress.of(address, self.options.sslmode)
        plain = "".join(c if c.isalnum() else "_" for c in f"{self.where.schema}_{self.where.table}".lower())
        self.slot = self.options.slot or f"augury_{plain}"
        self.publication = self.options.publication or f"augury_{plain}"
        self._line: psycopg.Connection[Any] | None = None
        self._copied: Delivery | None = None
        self._read = self._safe = 0
        self._reported = 0.0
        self._end = 0
        self._oid = 0

    # Opening

    def open(self, position: Position | None) -> None:
        self.close()
        try:
            with psycopg.connect(self.where.connection, autocommit=True) as admin:
                columns = self._prepare(admin)
                self.writer = RowWriter(self.address, self.options, self.facts, columns)
                self._line = psycopg.connect(f"{self.where.connection} replication=database", autocommit=True)
                if position is None:
                    self._begin(admin)
                else:
                    self._read = self._safe = position["lsn"]
                    self._check_slot(admin)
                self._stream()
        except psycopg.Error as error:
            self.close()
            raise _raised(self.address, error) from None

    def _prepare(self, admin: psycopg.Connection[Any]) -> list[Column]:
        """The columns of the table; makes its publication, and has whole rows written to the log where facts need them."""
        columns = _columns_of(admin, self.where, self.address)
        names = {column.name for column in columns}
        asked = [*(self.options.columns.split(",") if self.options.columns else ()), *filter(None, [self.options.time])]
        for name in asked:
            if name not in names:
                raise RunError(
                    f"{self.address}: the table has no column `{name}`", hint=f"it has {', '.join(sorted(names))}"
                )
        if not self.facts and not any(column.key for column in columns):
            raise RunError(f"{self.address}: the table has no primary key, which names its events")
        table = self.where.identifier
        query = "SELECT relreplident, oid::int8 FROM pg_class WHERE oid = %s::regclass"
        identity, self._oid = admin.execute(query, [table.as_string(admin)]).fetchone() or ("", 0)
        if identity not in ("f", b"f"):
            admin.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(table))
        if admin.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", [self.publication]).fetchone() is None:
            admin.execute(sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(sql.Identifier(self.publication), table))
        return columns

    def _begin(self, admin: psycopg.Connection[Any]) -> None:
        """A new slot, and the rows that were there when it was made."""
        query = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s"
        old = admin.execute(query, [self.slot]).fetchone()
        if old is not None and old[0] is not None:
            raise UnavailableError(f"{self.address}: another service reads the slot {self.slot}")
        if old is not None:
            admin.execute("SELECT pg_drop_replication_slot(%s)", [self.slot])
        result = self._command(f"CREATE_REPLICATION_SLOT \"{self.slot}\" LOGICAL pgoutput (SNAPSHOT 'export')")
        self._read = self._safe = _lsn((result.get_value(0, 1) or b"").decode())
        snapshot = (result.get_value(0, 2) or b"").decode()
        if self.options.copy:
            moment = datetime.now(UTC).isoformat()
            with psycopg.connect(self.where.connection) as reader:
                reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                reader.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
                texts = sql.SQL(", ").join(
                    sql.SQL("{}::text").format(sql.Identifier(c.name)) for c in self.writer.columns
                )
                for row in reader.execute(sql.SQL("SELECT {} FROM {}").format(texts, self.where.identifier)):
                    self.writer.insert(list(row), self._read, moment)
        self._copied = Delivery(self.writer.taken(), {"lsn": self._read}, self.where.table)

    def _check_slot(self, admin: psycopg.Connection[Any]) -> None:
        query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s"
        slot = admin.execute(query, [self.slot]).fetchone()
        if slot is None:
            raise RunError(
                f"{self.address}: the replication slot {self.slot} is gone, and changes with it",
                hint="begin with another --state directory, which copies the table again",
            )

    def _command(self, text: str) -> Any:
        assert self._line is not None
        result = self._line.pgconn.exec_(text.encode())
        if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK, pq.ExecStatus.COPY_BOTH):
            raise psycopg.errors.error_from_result(result)
        return result

    def _stream(self) -> None:
        start = f"{self._safe >> 32:X}/{self._safe & 0xFFFFFFFF:X}"
        options = f"proto_version '1', publication_names '\"{self.publication}\"'"
        self._command(f'START_REPLICATION SLOT "{self.slot}" LOGICAL {start} ({options})')
        self._end = self._read
        self._pending: list[tuple[str, Any, Any]] = []
        self._report()

    # Reading

    def fetch(self, most: int, seconds: float) -> list[Delivery]:
        if self._copied is not None:
            copied, self._copied = self._copied, None
            return [copied]
        try:
            until = time.monotonic() + seconds
            while True:
                self._take(most)
                if self.writer.lines or time.monotonic() >= until:
                    break
                assert self._line is not None
                if select.select([self._line.pgconn.socket], [], [], max(0.0, until - time.monotonic()))[0]:
                    self._line.pgconn.consume_input()
            if time.monotonic() - self._reported > _FEEDBACK:
                self._report()
        except psycopg.Error as error:
            raise _raised(self.address, error) from None
        data = self.writer.taken()
        return [Delivery(data, {"lsn": self._read}, self.where.table)] if data else []

    def _take(self, most: int) -> None:
        """The transactions that are there already."""
        assert self._line is not None
        connection = self._line.pgconn
        while len(self.writer.lines) < most and self.writer.size < _MOST:
            size, data = connection.get_copy_data(1)
            if size == 0:
                return
            if size < 0:
                raise psycopg.OperationalError("the server has ended the replication")
            message = bytes(data)
            if message[:1] == b"w":
                self._message(message[25:])
            elif message[:1] == b"k":
                (self._end,) = struct.unpack_from(">Q", message, 1)
                if message[17]:
                    self._report()

    def _message(self, data: bytes) -> None:
        kind, body = data[:1], data[1:]
        if kind == b"B":
            _, stamp, _ = struct.unpack_from(">QqI", body)
            self._moment = (_EPOCH + timedelta(microseconds=stamp)).isoformat()
            self._pending = []
        elif kind == b"R":
            self._relation(body)
        elif kind in b"IUD" and struct.unpack_from(">I", body)[0] == self._oid:
            self._pending.append(_tuples(kind.decode(), body[4:], len(self.writer.columns)))
        elif kind == b"T":
            oids = struct.unpack_from(f">{struct.unpack_from('>I', body)[0]}I", body, 5)
            if self._oid in oids:
                raise RunError(
                    f"{self.address}: the table was truncated, which names no rows to take back",
                    hint="use DELETE, or begin with another --state directory",
                )
        elif kind == b"C":
            _, _, end, _ = struct.unpack_from(">BQQq", body)
            if end > self._read:
                self._commit_of(end)

    def _relation(self, body: bytes) -> None:
        """The columns of the table as they are from now on."""
        (oid,) = struct.unpack_from(">I", body)
        if oid != self._oid:
            return
        _, _, rest = body[4:].split(b"\0", 2)
        keys = {column.name for column in self.writer.columns if column.key}
        columns: list[Column] = []
        (number,) = struct.unpack_from(">H", rest, 1)
        offset = 3
        for _ in range(number):
            end = rest.index(b"\0", offset + 1)
            name = rest[offset + 1 : end].decode()
            columns.append(Column(name, struct.unpack_from(">I", rest, end + 1)[0], name in keys))
            offset = end + 9
        self.writer.columns = columns

    def _commit_of(self, end: int) -> None:
        """A transaction that is complete; the version of a row is where its transaction ends, with its number in it."""
        self._read = self._end = end
        for number, (kind, old, new) in enumerate(self._pending):
            version = (end << 12) + min(number, 4095)
            if kind == "I":
                self.writer.insert(new, version, self._moment)
            elif kind == "U":
                self.writer.update(old, new, version, self._moment)
            else:
                self.writer.delete(old, version)
        self._pending = []

    # Where we are

    def commit(self, position: Position) -> None:
        self._safe = max(self._safe, position["lsn"])
        # What the slot has sent and is none of this table's needs not to be kept for us.

    def _report(self) -> None:
        """Tells the server up to where nothing need be sent again."""
        assert self._line is not None
        safe = max(self._safe, self._end) if self._safe >= self._read and not self._pending else self._safe
        now = (datetime.now(UTC) - _EPOCH) // timedelta(microseconds=1)
        self._line.pgconn.put_copy_data(struct.pack(">cQQQqB", b"r", safe, safe, safe, now, 0))
        self._line.pgconn.flush()
        self._reported = time.monotonic()

    def check(self) -> str:
        try:
            with psycopg.connect(self.where.connection, autocommit=True) as admin:
                columns = _columns_of(admin, self.where, self.address)
                level = (admin.execute("SHOW wal_level").fetchone() or ("",))[0]
                role = admin.execute(
                    "SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user"
                ).fetchone()
        except psycopg.Error as error:
            raise _raised(self.address, error) from None
        if level != "logical":
            raise RunError(
                f"{self.address}: wal_level is {level}", hint="set wal_level = logical, and restart the server"
            )
        if not role or not role[0]:
            raise RunError(f"{self.address}: the user may not replicate", hint="ALTER ROLE … REPLICATION")
        return f"{len(columns)} columns, logical decoding"

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None


def _columns_of(admin: psycopg.Connection[Any], where: TableAddress, address: Address) -> list[Column]:
    query = """
        SELECT a.attname, a.atttypid::int8, coalesce(a.attnum = ANY (i.indkey), false)
        FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
        WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
    """
    columns = [Column(*row) for row in admin.execute(query, [where.identifier.as_string(admin)])]
    if not columns:
        raise RunError(f"{address}: there is no table {where.schema}.{where.table}")
    return columns


def _lsn(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def _tuples(kind: str, body: bytes, width: int) -> tuple[str, Row | None, Row | None]:
    """The old and the new row of a change. A large value that did not change is taken from the old row."""
    old: Row | None = None
    new: Row | None = None
    offset = 0
    while offset < len(body):
        mark = body[offset : offset + 1]
        row, offset = _row(body, offset + 1, old)
        if mark == b"N":
            new = row
        else:
            old = row
    return kind, old, new


def _row(body: bytes, offset: int, old: Row | None) -> tuple[Row, int]:
    (number,) = struct.unpack_from(">H", body, offset)
    offset += 2
    row: Row = []
    for index in range(number):
        mark, offset = body[offset : offset + 1], offset + 1
        if mark == b"t":
            (size,) = struct.unpack_from(">I", body, offset)
            row.append(body[offset + 4 : offset + 4 + size].decode())
            offset += 4 + size
        else:
            row.append(old[index] if mark == b"u" and old is not None else None)
    return row, offset


# Out


class TableSink(AnswerSink):
    def __init__(self, address: Address) -> None:
        self.address, self.options = address, address.read(TableSinkOptions)
        self.where = TableAddress.of(address, self.options.sslmode)
        self._connection: psycopg.Connection[Any] | None = None
        self._columns: list[str] = []
        self._run = ""
        self._last: int | None = None

    def open(self, position: Position | None) -> int | None:
        self._run = (position or {}).get("run") or uuid.uuid4().hex
        self._connect()
        return self._last

    def position(self) -> Position | None:
        return {"run": self._run}

    def _connect(self) -> psycopg.Connection[Any]:
        self.close()
        try:
            connection = psycopg.connect(self.where.connection)
            with connection.transaction():
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS augury_steps (sink text, run text, step bigint NOT NULL, PRIMARY KEY (sink, run))"
                )
                query = "SELECT step FROM augury_steps WHERE sink = %s AND run = %s"
                held = connection.execute(query, [self._name, self._run]).fetchone()
        except psycopg.Error as error:
            raise _raised(self.address, error) from None
        self._last = held[0] if held else None
        self._connection = connection
        return connection

    @property
    def _name(self) -> str:
        return f"{self.where.schema}.{self.where.table}"

    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        connection = self._connection or self._connect()
        remaining = [step for step in steps if self._last is None or step.step > self._last]
        if not remaining:
            return []
        try:
            try:
                with connection.transaction():
                    self._apply(connection, remaining, each=False)
                refused: list[tuple[str, bytes]] = []
            except (psycopg.DataError, psycopg.IntegrityError):
                with connection.transaction():
                    refused = self._apply(connection, remaining, each=True)
        except psycopg.Error as error:
            self.close()
            raise _raised(self.address, error) from None
        self._last = remaining[-1].step
        return refused

    def _apply(
        self, connection: psycopg.Connection[Any], steps: Sequence[RenderedChanges], each: bool
    ) -> list[tuple[str, bytes]]:
        """All changes of some steps, of which the last one of an id counts; with `each` one by one."""
        last: dict[str, tuple[str, bytes]] = {}
        for step in steps:
            for op, id, line in zip(step.ops, step.ids, step.lines, strict=True):
                last.pop(id, None)
                last[id] = (op, line)
        if not self._columns:
            self._columns = self._table_columns(connection, next(iter(last.values()))[1])
        refused: list[tuple[str, bytes]] = []
        if each:
            for id, (op, line) in last.items():
                try:
                    with connection.transaction():
                        self._change(connection, {id: (op, line)})
                except (psycopg.DataError, psycopg.IntegrityError) as error:
                    refused.append((str(error).splitlines()[0], line))
        else:
            self._change(connection, last)
        connection.execute(
            "INSERT INTO augury_steps VALUES (%s, %s, %s) ON CONFLICT (sink, run) DO UPDATE SET step = excluded.step",
            [self._name, self._run, steps[-1].step],
        )
        if self.options.notify:
            for step in steps:
                for text in _notifications(step):
                    connection.execute("SELECT pg_notify(%s, %s)", [self.options.notify, text])
        return refused

    def _change(self, connection: psycopg.Connection[Any], changes: dict[str, tuple[str, bytes]]) -> None:
        table = self.where.identifier
        gone = [id for id, (op, _) in changes.items() if op != "insert"]
        if gone:
            connection.execute(sql.SQL("DELETE FROM {} WHERE id = ANY (%s)").format(table), [gone])
        lines = [line for op, line in changes.values() if op == "insert"]
        if lines:
            names = sql.SQL(", ").join(map(sql.Identifier, self._columns))
            updates = sql.SQL(", ").join(
                sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in self._columns if name != "id"
            )
            query = sql.SQL(
                "INSERT INTO {0} ({1}) SELECT {1} FROM jsonb_populate_recordset(NULL::{0}, %s::jsonb) "
                "ON CONFLICT (id) DO UPDATE SET {2}"
            ).format(table, names, updates)
            connection.execute(query, [(b"[" + b",".join(lines) + b"]").decode()])

    def _table_columns(self, connection: psycopg.Connection[Any], line: bytes) -> list[str]:
        """The columns that are written: those of the table that answers have a value for."""
        try:
            columns = _columns_of(connection, self.where, self.address)
        except RunError:
            if not self.options.create:
                raise
            moment = "timestamptz" if isinstance(orjson.loads(line).get("start"), str) else "bigint"
            connection.execute(
                sql.SQL(
                    f'CREATE TABLE {{}} (id text PRIMARY KEY, type text, args jsonb, start {moment}, "end" {moment}, trace jsonb)'
                ).format(self.where.identifier)
            )
            columns = _columns_of(connection, self.where, self.address)
        if not any(column.name == "id" for column in columns):
            raise RunError(f"{self.address}: the table has no column `id`, by which answers are written")
        return [column.name for column in columns]

    def check(self) -> str:
        self._connect()
        self.close()
        return "reachable"

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _notifications(step: RenderedChanges) -> Iterator[str]:
    for op, type, id, line in zip(step.ops, step.types, step.ids, step.lines, strict=True):
        yield line.decode() if len(line) < _NOTIFIED else orjson.dumps({"op": op, "type": type, "id": id}).decode()


def source(address: Address) -> EventSource:
    return TableSource(address)


def sink(address: Address) -> AnswerSink:
    return TableSink(address)
