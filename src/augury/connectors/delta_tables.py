"""Delta tables: rows in from the history of a table, answers out, each commit with the number of its step.

    delta:///data/readings?start=12                  a path, or s3://… behind delta+, as in delta+s3://bucket/readings
    delta:///data/alerts?mode=merge

In: the rows of each version since `start`, in order; with the change data feed (`delta.enableChangeDataFeed`) the id of a row is
the column `id`, its version that of the table: an update replaces, a delete revokes. Out: `append` writes each
change with its `op`; `merge` keeps one row for each answer that stands. Both store the step with the commit: each is there once.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from augury.connectors.addresses import Address, redacted
from augury.connectors.delivery import Delivery
from augury.connectors.rendering import RenderedChanges
from augury.connectors.sink import AnswerSink
from augury.connectors.source import EventSource, Position, UnavailableError
from augury.core.errors import RunError

_LOOK = 0.5  # seconds between two looks for a new version
_FIELDS = pa.schema(
    [(name, pa.string()) for name in ("id", "op", "type", "start", "end", "args", "trace")] + [("step", pa.int64())]
)


@dataclass(frozen=True)
class TableInOptions:
    """`start` is the first version that is read; `follow` is whether more will come."""

    start: int = 0
    follow: bool = True


@dataclass(frozen=True)
class TableOutOptions:
    mode: str = "append"


def _path(address: Address) -> str:
    store = address.scheme.partition("+")[2]
    path = f"{store}://{address.host}{address.path}" if store else address.rest
    if not path.strip("/"):
        raise RunError(f"{address} names no table", hint="write it as delta:///folder/table")
    return path


class DeltaSource(EventSource):
    sampled: ClassVar[bool] = True

    def __init__(self, address: Address) -> None:
        self.address, self.options, self.path = address, address.read(TableInOptions), _path(address)
        self._version = self.options.start - 1
        self._latest = -1
        self._finished = False
        self._looked = 0.0

    def open(self, position: Position | None) -> None:
        self._version = position["version"] if position else self.options.start - 1
        self._looked = 0.0

    @property
    def finished(self) -> bool:
        return self._finished

    def fetch(self, most: int, seconds: float) -> list[Delivery]:
        wait = self._looked + _LOOK - time.monotonic()
        if self._version >= self._latest and wait > 0:
            time.sleep(min(wait, seconds))
            return []
        try:
            table = DeltaTable(self.path)
            self._latest, self._looked = table.version(), time.monotonic()
            if self._version >= self._latest:
                self._finished = not self.options.follow
                return []
            self._version += 1
            lines = self._changes(table, self._version)
        except TableNotFoundError:
            raise UnavailableError(f"{self.address}: there is no table yet") from None
        except (DeltaError, OSError) as error:
            raise UnavailableError(redacted(f"{self.address}: {error}")) from None
        return [Delivery(b"".join(lines), {"version": self._version}, f"version {self._version}")]

    def _changes(self, table: DeltaTable, version: int) -> list[bytes]:
        """The changes of a version; without a feed of changes the rows of the files that it has added."""
        if table.metadata().configuration.get("delta.enableChangeDataFeed") == "true":
            rows = pa.table(table.load_cdf(starting_version=version, ending_version=version)).to_pylist()
            order = {"delete": 0, "update_preimage": 0, "insert": 1, "update_postimage": 1}
            lines: list[bytes] = []
            number = {"version": version + 1}  # an input without a version has version 0
            for row in sorted(rows, key=lambda row: order[row["_change_type"]]):
                kind = row.pop("_change_type")
                if kind == "update_preimage":
                    continue
                row = {
                    name: value for name, value in row.items() if not name.startswith("_commit") and value is not None
                }
                if kind == "delete":
                    if "id" not in row:
                        raise RunError(
                            f"{self.address}: rows that change have no column `id`, by which they are revoked"
                        )
                    lines.append(_line({"op": "revoke", "id": f"{row['id']}", **number}))
                elif "id" in row:
                    lines.append(_line({**row, "op": "replace", "id": f"{row['id']}", **number}))
                else:
                    lines.append(_line(row))
            return lines
        added = _added(DeltaTable(self.path, version=version))
        before = _added(DeltaTable(self.path, version=version - 1)) if version else set()
        if before - added:
            raise RunError(
                f"{self.address}: version {version} removes rows, and the table has no feed of changes",
                hint="ALTER TABLE … SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
            )
        new = added - before
        dataset = DeltaTable(self.path, version=version).to_pyarrow_dataset()
        chosen = [piece for piece in dataset.get_fragments() if piece.path.rpartition("/")[2] in new]
        listed = [row for piece in chosen for row in piece.to_table(dataset.schema).to_pylist()]
        return [_line({name: value for name, value in row.items() if value is not None}) for row in listed]

    def lag(self) -> int | None:
        return max(0, self._latest - self._version)

    def check(self) -> str:
        return f"version {DeltaTable(self.path).version()}"


def _added(table: DeltaTable) -> set[str]:
    return {uri.rpartition("/")[2] for uri in table.file_uris()}


def _line(row: dict[str, Any]) -> bytes:
    return orjson.dumps(row, default=str) + b"\n"


class DeltaSink(AnswerSink):
    def __init__(self, address: Address) -> None:
        self.address, self.options, self.path = address, address.read(TableOutOptions), _path(address)
        if self.options.mode not in ("append", "merge"):
            raise RunError(f"{address}: the mode is append or merge, not {self.options.mode}")
        self._run = ""

    def open(self, position: Position | None) -> int | None:
        self._run = (position or {}).get("run") or uuid.uuid4().hex
        return self._held()

    def _held(self) -> int | None:
        try:
            return DeltaTable(self.path).transaction_version(f"augury-{self._run}")
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise UnavailableError(redacted(f"{self.address}: {error}")) from None

    def position(self) -> Position | None:
        return {"run": self._run}

    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        last = self._held()
        remaining = [step for step in steps if last is None or step.step > last]
        if not remaining:
            return []
        rows = [_row(step.step, op, line) for step in remaining for op, line in zip(step.ops, step.lines, strict=True)]
        done = CommitProperties(app_transactions=[Transaction(f"augury-{self._run}", remaining[-1].step)])
        try:
            if self.options.mode == "append":
                write_deltalake(self.path, pa.Table.from_pylist(rows, _FIELDS), mode="append", commit_properties=done)
            else:
                self._merge(rows, done)
        except (CommitFailedError, DeltaError, OSError) as error:
            raise UnavailableError(redacted(f"{self.address}: {error}")) from None
        return []

    def _merge(self, rows: list[dict[str, Any]], done: CommitProperties) -> None:
        """One row for each answer that stands: the last change of an id counts."""
        last = pa.Table.from_pylist(list({row["id"]: row for row in rows}.values()), _FIELDS)
        if not DeltaTable.is_deltatable(self.path):
            write_deltalake(self.path, last.slice(0, 0), mode="append")
        merge = DeltaTable(self.path).merge(
            last, "target.id = source.id", source_alias="source", target_alias="target", commit_properties=done
        )
        merge = merge.when_matched_delete("source.op = 'retract'").when_matched_update_all("source.op = 'insert'")
        merge.when_not_matched_insert_all("source.op = 'insert'").execute()

    def check(self) -> str:
        exists = DeltaTable.is_deltatable(self.path)
        return "there" if exists else "reachable; the table does not exist yet"


def _row(step: int, op: str, line: bytes) -> dict[str, object]:
    change = orjson.loads(line)
    texts = {name: orjson.dumps(change.get(name, [])).decode() for name in ("args", "trace")}
    times = {name: str(change[name]) for name in ("start", "end") if name in change}
    return {"id": change["id"], "op": op, "type": change.get("type", ""), **times, **texts, "step": step}


def source(address: Address) -> EventSource:
    return DeltaSource(address)


def sink(address: Address) -> AnswerSink:
    return DeltaSink(address)
