"""The stages that the Spark executors run, without Spark: rows are routed, packed and hosted as there, in this process.

    Local(program, history).batch(buckets=3)     the answers of `augury.spark.batch`
    Local(program, history).stream(batches, 4)   the changes of `augury.spark.stream`, batch by batch

What Catalyst does is done here in Python: the layout of rows, the hash of a key, slices, and the watermark.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Literal, cast
from zlib import crc32

import pyarrow as pa
from pyspark.sql import DataFrame

from augury.algebra.plan import INPUT, Predicate
from augury.algebra.stages import Stage, Stages, asks_the_clock, can_slice, slice_length, sliced
from augury.core.clock import Duration, Timestamp
from augury.core.model import Event, Fact, HistoryItem, Iri, OrderKey, Revocation, Value, order_key, type_name
from augury.core.standing import standing
from augury.engine.decoding import from_tagged, tagged
from augury.engine.snapshot import restored
from augury.program import Program
from augury.settings import Settings, length
from augury.spark import host, packages, state, stream
from augury.spark.batch import _ends_ahead
from augury.spark.host import Work
from augury.spark.inputs import EventFrame, TypeColumns
from augury.spark.layout import FAMILY, JOINT
from augury.spark.pipeline import Pipeline
from augury.spark.state import _head as state_head

Emit = Literal["early", "final"]
Row = dict[str, Any]
HEARTBEAT = "zz_heartbeat"  # a type that no program reads: its events tell the time


@dataclass(frozen=True)
class Listed(EventFrame):
    """Events of one type that are a list, not a DataFrame."""

    point: bool = True
    asides: frozenset[str] = frozenset()
    calendar: bool = False

    @property
    def points(self) -> bool:
        return self.point

    def has(self, name: str) -> bool:
        return name in self.asides

    def sample(self, of_rows: bool = False) -> object:
        return "1970-01-01" if self.calendar else 0

    def events(self, *_: object) -> DataFrame:
        return self.frame  # there are no columns that could be wrong


# Columns


def column_kind(values: Iterable[Value]) -> str:
    """The kind that a typed column of these values would have."""
    values = list(values)
    kinds = {type_name(v) for v in values} - {"null"}
    if kinds == {"int", "float"}:
        exact = all(not isinstance(v, int) or int(float(v)) == v for v in values)
        return "number" if exact else "json"  # a column of doubles does not hold every integer
    return kinds.pop() if len(kinds) == 1 and kinds <= FAMILY.keys() else "json"


def kinds_in(history: Iterable[HistoryItem], typed: bool) -> dict[Predicate, tuple[str, ...]]:
    """The kinds of the columns of every type in a history."""
    rows: dict[Predicate, list[tuple[Value, ...]]] = {}
    for item in history:
        if isinstance(item, Event):
            rows.setdefault((item.type, len(item.args)), []).append(item.args)
    return {
        type: tuple(column_kind(args[i] for args in found) if typed else "json" for i in range(type[1]))
        for type, found in rows.items()
    }


def as_kept(history: Iterable[HistoryItem], kinds: Mapping[Predicate, tuple[str, ...]]) -> list[HistoryItem]:
    """The history as columns of these kinds hold it: a column of numbers has no integers."""

    def kept(value: Value, kind: str) -> Value:
        return float(value) if kind == "number" and isinstance(value, int) else value

    return [
        replace(i, args=tuple(map(kept, i.args, kinds[i.type, len(i.args)]))) if isinstance(i, Event) else i
        for i in history
    ]


def cell(value: Value, kind: str) -> Any:
    """A value as the layout keeps it."""
    match value:
        case None:
            return None
        case _ if kind == "json":
            return tagged(value)
        case Timestamp() | Duration():
            return value.us
        case Iri():
            return value.text
        case bool():
            return int(value)
    return value


def value_of(cell: Any, kind: str) -> Value:
    """The value that a cell holds."""
    if cell is None:
        return None
    match kind:
        case "json":
            return from_tagged(cell)
        case "bool":
            return bool(cell)
        case "timestamp":
            return Timestamp(cell)
        case "duration":
            return Duration(cell)
        case "iri":
            return Iri(cell)
    return cast(Value, cell)


# A program and its history


@dataclass
class Change:
    """A row of an answer: the batch it came in, what it says and of which event."""

    batch: int
    op: int
    event: Event


@dataclass
class Streamed:
    """What a stream said, in order; `late` and `rejected` as text, `errors` by rule."""

    changes: list[Change] = field(default_factory=list)
    late: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    gone: list[tuple[Any, ...]] = field(default_factory=list)  # retracted, of types that are no more
    errors: dict[tuple[str, str], int] = field(default_factory=dict)
    frontiers: list[int | None] = field(default_factory=list)  # of each batch: nothing more ends at or before it
    snapshots: int = 0  # buckets that have written one

    def standing(self) -> dict[OrderKey, Event]:
        """The answer in the end; what is inserted was not there, and what is retracted was."""
        found: dict[OrderKey, Event] = {}
        for change in self.changes:
            content = change.event.content
            assert (content in found) == (change.op < 0), f"{change} of {list(map(str, found.values()))}"
            if change.op > 0:
                found[content] = change.event
            else:
                del found[content]
        return found


class Local:
    """A program and a history, ready to be run in stages."""

    def __init__(
        self, program: Program, history: Sequence[HistoryItem], *, facts: Iterable[Fact] = (), kind: Literal["logical", "timestamp"] = "logical",
        typed: bool = False, longest: bool = False, retention: str | None = None, seed: object = 0,
    ) -> None:  # fmt: skip
        self.chance = random.Random(f"local {seed}")
        self.kinds = kinds_in(history, typed)
        events = [i for i in history if isinstance(i, Event)]
        point = all(e.start == e.end for e in events)
        asides = frozenset({"id", "op"} if any(isinstance(i, Revocation) for i in history) else {"id"} if any(e.id for e in events) else set())  # fmt: skip
        none: Any = None
        sources = [
            Listed(
                none, (TypeColumns(type, tuple(f"a{i}" for i in range(type[1])), kinds),), none,
                point=point, asides=asides, calendar=kind == "timestamp",
            )
            for type, kinds in self.kinds.items()
        ]  # fmt: skip
        tick = 1 if kind == "timestamp" else program.plan.tick or 1_000_000
        most = max((e.end - e.start for e in events), default=0) * tick
        self.pipeline = Pipeline(
            program,
            sources,
            Settings(clock=kind, retention=length(retention), longest=most if longest else None),
            facts=facts,
        )
        self.layout = self.pipeline.layout
        self.rows_by_task: dict[
            int, Counter[int]
        ] = {}  # of each stage, how many rows each task, or bucket, has taken in
        self.history = as_kept(history, self.layout.kinds)

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.pipeline.plan.outputs

    # Rows

    def row(self, item: HistoryItem) -> Row:
        """An item in the layout; of a revocation just the id is known, and perhaps the type."""
        if isinstance(item, Revocation):
            return {"type": None, "start": None, "end": None, "id": item.id, "revoke": True}
        type = (item.type, len(item.args))
        cells = map(cell, item.args, self.layout.kinds[type])
        return {
            "type": self.layout.codes[type], "start": item.start, "end": item.end, "id": item.id or None, "revoke": False,
            **dict(zip(self.layout.slots[type], cells, strict=True)),
        }  # fmt: skip

    def _input(self, end: int | None, **more: Any) -> Row:
        """That an event came in."""
        return {"type": self.layout.codes[INPUT], "start": end, "end": end, "id": None, "revoke": False, **more}

    def event(self, row: Row) -> Event:
        type = self.layout.types[row["type"]]
        places = zip(self.layout.slots[type], self.layout.kinds[type], strict=True)
        args = tuple(value_of(row[slot], kind) for slot, kind in places)
        return Event(
            type[0],
            args,
            row["start"],
            row["end"],
            row["id"],
            tuple(row["trace"].split("\x1f") if row["trace"] else ()),
        )

    def key(self, stage: Stage, row: Row) -> int:
        """A hash that equal keys share; what is just passed on goes anywhere."""
        type = self.layout.types[row["type"]] if row["type"] is not None and row["type"] >= 0 else None
        places = () if type is None else stage.reads.get(type, ())
        if type is None or not places:
            return self.chance.randrange(1 << 20)
        slots, kinds = self.layout.slots[type], self.layout.kinds[type]
        return hash(tuple(order_key(value_of(row.get(slots[at]), kinds[at])) for at in places))

    # Batch

    def batch(
        self,
        buckets: int,
        *,
        slices: bool = True,
        skew: bool = False,
        until: int | None = None,
        chunk: int = 1 << 16,
        times: int = 1,
    ) -> tuple[list[Event], Stages]:
        """The answers of the batch executor; slices are `times` as long as they would be."""
        alone = buckets == 1 and self.chance.random() < 0.5  # in several stages it has to work, too
        spread = self.pipeline.staged(self.outputs, alone=alone, slices=slices)
        before: list[Row] | None = None
        old, host._CHUNK = host._CHUNK, chunk
        try:
            for stage in spread.stages:
                before = self._batch_stage(spread, stage, before, buckets, skew, until, times)
        finally:
            host._CHUNK = old
        outputs = set(spread.plan.outputs)
        wanted = {self.layout.codes[t] for t in spread.plan.derived if t[0] in outputs}
        found = [row for row in before or () if row["type"] in wanted]
        once = {self.layout.codes[t] for t in spread.spread}
        kept: list[Row] = []
        seen: set[tuple[int, str]] = set()
        for row in found:
            if row["type"] not in once or (row["type"], row["id"]) not in seen:
                kept.append(row)
                seen.add((row["type"], row["id"]))
        now = until
        if now is None and any(_ends_ahead(rule) for rule in spread.plan.rules):
            now = max((i.end for i in self.history if isinstance(i, Event)), default=None)
        assert all(row["op"] > 0 for row in kept), "a history takes nothing back"
        return [self.event(row) for row in kept if now is None or row["end"] <= now], spread

    def _batch_stage(self, spread: Stages, stage: Stage, before: list[Row] | None, buckets: int, skew: bool, until: int | None, times: int) -> list[Row]:  # fmt: skip
        pipeline, clock = self.pipeline, self.pipeline.clock
        own = {self.layout.codes[t] for t in pipeline.own_types(spread, stage)}
        stand = {(e.id, e.version) for e in standing(self.history).events}
        events = [
            self.row(i) for i in self.history if isinstance(i, Event) and (not i.id or (i.id, i.version) in stand)
        ]
        rows = [*(before or []), *(row for row in events if row["type"] in own)]
        if INPUT in stage.reads and events:
            rows.append(self._input(min(row["end"] for row in events)))
        work = pipeline.work(spread, stage, "final")
        length = stage.longest if stage.how == "slices" else None
        if stage.how == "key" and skew:
            length = can_slice(spread, stage, pipeline.longest)
        ends = [i.end for i in self.history if isinstance(i, Event)] or [0]
        size = (
            None
            if length is None
            else slice_length(clock.length(length), max(ends) - min(ends), max(1, buckets // times))
        )
        if asks_the_clock(stage):
            ends = [i.end for i in self.history if isinstance(i, Event)]
            rows = [{**row, "now": max(ends, default=None) if until is None else until} for row in rows]
        if size is not None:
            assert length is not None
            rows = [{**row, "slice_length": size} for row in _sliced(rows, size, clock.length(length))]
            work = replace(work, plan=sliced(work.plan), slice=1)
        if stage.how == "anywhere":
            work = work.in_buckets()
            rows = [{**row, "slice": anywhere(row, buckets)} for row in rows]
        parts: dict[int, list[Row]] = {}
        if stage.how == "key" and INPUT in stage.reads:  # what opens windows is in every bucket
            opening = [row for row in rows if row["type"] == self.layout.codes[INPUT]]
            rows = [row for row in rows if row["type"] != self.layout.codes[INPUT]]
            parts = {bucket: list(opening) for bucket in range(buckets)}
        for row in rows:
            key = (self.key(stage, row) if stage.how == "key" else 0, row.get("slice", 0))
            place = key[1] if stage.how in ("slices", "anywhere") else hash(key)
            parts.setdefault(0 if stage.how == "one" else place % buckets, []).append(row)
        fields = [("type", pa.int32()), ("start", pa.int64()), ("end", pa.int64()), ("id", pa.string())]
        if before is not None:
            fields = list(zip(work.schema.names, work.schema.types, strict=True))
        else:
            fields += [(c, self.layout.arrow(c)) for c in pipeline.columns(stage)]
            if pipeline.points:
                fields.remove(("start", pa.int64()))
            if not pipeline.ids:
                fields.remove(("id", pa.string()))
        fields += [("slice_length", pa.int64())] if size is not None else []
        fields += [("slice", pa.int64())] if size is not None or stage.how == "anywhere" else []
        fields += [("now", pa.int64())] if asks_the_clock(stage) else []
        found: list[Row] = []
        self.rows_by_task[stage.number] = Counter({task: len(part) for task, part in parts.items()})
        for part in parts.values():
            self.chance.shuffle(part)
            part.sort(key=lambda row: row["end"])
            for record in host.run(work, self._records(part, pa.schema(fields))):
                assert record.schema == work.schema
                found += record.to_pylist()
        return found

    def _records(self, rows: list[Row], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Rows in record batches of some size."""
        at = 0
        while at < len(rows):
            size = self.chance.choice([1, 3, 10, 1000])
            made = [{"op": 1, **row} for row in rows[at : at + size]]
            yield pa.RecordBatch.from_pylist(made, schema=schema)
            at += size

    # Streams

    def stream(
        self, batches: Sequence[Sequence[HistoryItem]], lateness: int, buckets: int, emit: Emit, worker: Literal["kept", "cold", "old"] = "kept",
        later: Mapping[int, Local] | None = None,
    ) -> Streamed:  # fmt: skip
        """The changes while batches are told, with the watermark that earlier ones have set; then one without events.

        Between batches the worker keeps its sessions, or loses some, or has some of an earlier step. `later` has the
        programs with which the stream goes on at some batches.
        """
        told = Streamed()
        alone = buckets == 1 and (bool(later) or self.chance.random() < 0.5)
        spread = self.pipeline.staged(self.outputs, alone=alone, live=True)
        hosted = self._hosted(spread, buckets, emit)
        greatest: int | None = None
        calendar = self.pipeline.clock.kind == "timestamp"
        state._CACHE.clear()
        remembered: dict[str, bytes] = {}
        running = self
        for number, batch in enumerate([*batches, [], []]):
            watermark = 0
            if later and number in later:
                running = later[number]
                spread = running.pipeline.staged(running.outputs, alone=alone, live=True)
                before, hosted = hosted, running._hosted(spread, buckets, emit)
                for (_, old, _), (_, new, _) in zip(before, hosted, strict=True):
                    new.take_over(old, greatest)
            if greatest is not None:
                watermark = greatest // 1000 - lateness // 1000 if calendar else greatest + packages.SHIFT - lateness
            told.frontiers.append(self.frontier(greatest, lateness))
            rows: list[Row] | None = None
            if later and self.chance.random() < 0.2:  # an attempt that is killed before it counts
                states = copy.deepcopy([operator.states for _, operator, _ in hosted])
                lost: list[Row] | None = None
                for stage, operator, own in hosted[: self.chance.randrange(1, len(hosted) + 1)]:
                    lost = operator.batch(running._stage_rows(own, batch, lost), stage, max(watermark, 0))
                for (_, operator, _), state_before in zip(hosted, states, strict=True):
                    operator.states = state_before
            for stage, operator, own in hosted:
                rows = operator.batch(running._stage_rows(own, batch, rows), stage, max(watermark, 0))
            running._hear(told, number, rows or [], spread)
            ends = [i.end for i in batch if isinstance(i, Event)]
            greatest = max([*ends, *([] if greatest is None else [greatest])], default=None)
            self._age(worker, remembered)
        told.snapshots = sum(state_head(bytes(s.values["head"][0])).pieces > 0 for _, o, _ in hosted for s in o.states.values() if "head" in s.values)  # fmt: skip
        state._CACHE.clear()
        return told

    def frontier(self, greatest: int | None, lateness: int) -> int | None:
        """What the watermark says, which Spark keeps in milliseconds, and from the epoch on; ticks are shifted."""
        if greatest is None:
            return None
        if self.pipeline.clock.kind == "timestamp":
            watermark = greatest // 1000 - lateness // 1000
            return watermark * 1000 - 1 if watermark > 0 else None
        return greatest - lateness - 1 if greatest - lateness + packages.SHIFT > 0 else None

    def in_time(self, batches: Sequence[Sequence[HistoryItem]], lateness: int) -> tuple[list[list[HistoryItem]], list[HistoryItem]]:  # fmt: skip
        """What of each batch is not late, and what is: behind the watermark that earlier batches have set."""
        kept: list[list[HistoryItem]] = []
        late: list[HistoryItem] = []
        known: dict[str, Event] = {}
        greatest: int | None = None
        for batch in batches:
            frontier = self.frontier(greatest, lateness)
            kept.append([])
            before = dict(known)
            for item in batch:
                event = before.get(item.id) if isinstance(item, Revocation) else item
                if frontier is not None and event is not None and event.end <= frontier:
                    late.append(item)
                else:
                    kept[-1].append(item)
                    known.update({item.id: item} if isinstance(item, Event) and item.id else {})
            ends = [i.end for i in batch if isinstance(i, Event)]
            greatest = max([*ends, *([] if greatest is None else [greatest])], default=None)
        return kept, late

    def _age(self, worker: str, remembered: dict[str, bytes]) -> None:
        """What happens to a worker between batches: it forgets some sessions, or has them as they were some steps ago."""
        for name, cached in list(state._CACHE.items()):
            if worker == "cold" and self.chance.random() < 0.5:
                del state._CACHE[name]
            elif worker == "old":
                if name in remembered and self.chance.random() < 0.4:
                    token, steps, data = pickle.loads(remembered[name])
                    late: list[Any] = []
                    shared = (
                        {"knowledge": cached.session.shared, "facts": cached.session.facts}
                        if cached.session.shared
                        else {}
                    )
                    session = restored(
                        Program(cached.session.program.plan), data, type(cached.session), late=late.append, **shared
                    )
                    state._CACHE[name] = state.CachedSession(session, token, steps, late, dict(session.errors), len(session.rejected), session.repeats.copy(), cached.fingerprint)  # fmt: skip
                elif self.chance.random() < 0.5:
                    remembered[name] = pickle.dumps((cached.token, cached.steps, cached.session.snapshot()))

    def _hosted(self, spread: Stages, buckets: int, emit: Emit) -> list[tuple[Stage, Operator, frozenset[int]]]:
        """The operators of the stages, and the one that merges what several buckets may make."""
        pipeline = self.pipeline
        found: list[tuple[Stage, Operator, frozenset[int]]] = []
        told: set[Predicate] = set()
        work: Work | None = None
        for stage in spread.stages:
            own = frozenset(self.layout.codes[t] for t in pipeline.own_types(spread, stage))
            own |= {self.layout.codes[INPUT]} if INPUT in stage.reads else set()
            work = pipeline.work(spread, stage, emit)
            hosted = work
            if stage.how == "anywhere":
                hosted = work.in_buckets()
            if stage.longest is not None:
                hosted = work.in_slices(pipeline.clock.length(stage.longest))
            found.append((stage, Operator(self, hosted, stage, frozenset(told), buckets), own))
            told |= set(stage.reads)
        wanted = [t for t in spread.plan.derived if t[0] in spread.plan.outputs]
        merged = [t for t in wanted if t in spread.spread]
        if merged:
            assert work is not None
            plan = replace(spread.plan, rules=(), outputs=tuple(sorted({t[0] for t in merged})), declared={},
                           given={t: spread.lengths.get(t) for t in merged})  # fmt: skip
            stage = Stage(len(spread.stages) + 1, (), "key", dict.fromkeys(merged, ()), ())
            others = {self.layout.codes[t] for t in spread.plan.derived if t not in merged} | {host.ERROR}
            work = replace(work, plan=plan, forward=frozenset(others))
            found.append((stage, Operator(self, work, stage, frozenset(), buckets, merging=True), frozenset()))
        return found

    def _stage_rows(self, own: frozenset[int], batch: Sequence[HistoryItem], before: list[Row] | None) -> list[Row]:
        rows = [{**row, "revoke": False} for row in before or ()]
        if own:
            types = {i.id: self.layout.codes[i.type, len(i.args)] for i in self.history if isinstance(i, Event) and i.id}  # fmt: skip
            for item in batch:
                row = {"op": 1, "origin": 0, "trace": None, **self.row(item)}
                if isinstance(item, Revocation) and self.chance.random() < 0.5:
                    row["type"] = types.get(item.id)  # it is in the DataFrame of its type
                if row["revoke"] or row["type"] in own:
                    rows.append(row)
                if self.layout.codes.get(INPUT) in own:
                    id = f"{JOINT}{row['id']}" if row["id"] and self.pipeline.ops else None
                    rows.append(self._input(row["end"], op=1, origin=0, trace=None, id=id, revoke=row["revoke"]))
        return rows

    def _hear(self, told: Streamed, number: int, rows: list[Row], spread: Stages) -> None:
        outputs = {self.layout.codes[t] for t in spread.plan.derived if t[0] in spread.plan.outputs}
        said: set[OrderKey] = set()
        for row in sorted(rows, key=lambda row: row["op"] or 0):  # what is taken back first
            if row["type"] in outputs:
                event = self.event(row)
                assert event.content not in said, f"said twice in one batch: {event}"
                said.add(event.content)
                told.changes.append(Change(number, row["op"], event))
            elif row["type"] == stream.LATE:
                told.late.append(json.loads(row["trace"]))
            elif row["type"] == stream.RETRACTED:
                item = json.loads(row["trace"])
                told.gone.append((item["type"], tuple(item["args"]), item["start"], item["end"]))
            elif row["type"] == stream.REJECTED:
                told.rejected.append(json.loads(row["trace"]))
            elif row["type"] == host.ERROR:
                key = (row["id"], row["trace"])
                told.errors[key] = told.errors.get(key, 0) + row["start"]


def anywhere(row: Row, buckets: int) -> int:
    """The bucket of an event that may be in any: what has one id goes to one, whatever it says."""
    return crc32(str(row["id"] or sorted((name, str(value)) for name, value in row.items())).encode()) % buckets


def _sliced(rows: Iterable[Row], size: int, length: int) -> Iterator[Row]:
    """Every event in all slices to whose answers it may belong."""
    for row in rows:
        first, last = row["end"] // size, (row["start"] + length) // size
        for number in range(first, max(first, last) + 1):
            yield {**row, "slice": number}


# What Spark gives to a stateful processor


@dataclass
class ValueState:
    values: dict[str, Any]
    name: str

    def exists(self) -> bool:
        return self.name in self.values

    def get(self) -> Any:
        return self.values.get(self.name)

    def update(self, value: Any) -> None:
        assert isinstance(value[0], bytes)
        self.values[self.name] = value


@dataclass
class MapState:
    entries: dict[int, Any]

    def getValue(self, key: Any) -> Any:
        return self.entries.get(key[0])

    def updateValue(self, key: Any, value: Any) -> None:
        assert isinstance(value[0], bytes)
        self.entries[key[0]] = value

    def removeKey(self, key: Any) -> None:
        del self.entries[key[0]]


@dataclass
class BucketState:
    """The state of one bucket, and its handle."""

    values: dict[str, Any] = field(default_factory=dict)
    entries: dict[int, Any] = field(default_factory=dict)
    timers: set[int] = field(default_factory=set)

    def getValueState(self, name: str, schema: str) -> ValueState:
        return ValueState(self.values, name)

    def getMapState(self, name: str, key_schema: str, value_schema: str) -> MapState:
        return MapState(self.entries)

    def registerTimer(self, time: int) -> None:
        assert time > 0
        self.timers.add(time)


class Operator:
    """A stage in a stream: packages by bucket, a processor, and its answers unpacked."""

    def __init__(
        self, local: Local, work: Work, stage: Stage, silent: frozenset[Predicate], buckets: int, merging: bool = False
    ) -> None:
        self.local, self.work, self.merging = local, work, merging
        self.keys = packages.bucket_keys(buckets)
        self.states: dict[int, BucketState] = {}
        fingerprint = {"rules": {}, "stage": stage.number, "buckets": buckets}
        self.made = (work, silent, fingerprint, stage.everywhere)
        self.programs: tuple[dict[str, Any], ...] = ()  # of earlier versions

    def take_over(self, old: Operator, since: int | None) -> None:
        """The state of an earlier version of the program; new rules see what starts after a time."""
        self.work = replace(self.work, earlier=(*old.work.earlier, old.work), since=since)
        self.programs = (*old.programs, old.made[2])
        self.made = (self.work, self.made[1], {**self.made[2], "version": len(self.programs)}, self.made[3])
        self.states = old.states

    def batch(self, rows: list[Row], stage: Stage, watermark: int) -> list[Row]:
        """One micro-batch: what comes in, then the timers that are due."""
        times: Any = SimpleNamespace(getCurrentWatermarkInMs=lambda: watermark)
        made: list[Any] = []
        given: dict[int, list[tuple[bytes, bool]]] = {}
        for bucket, payload, passed in self._packages(rows, stage):
            given.setdefault(bucket, []).append((payload, passed))
        for bucket, packed in given.items():
            made += self._processor(bucket).handleInputRows((bucket,), iter(self._frames(packed)), times)
        due = sorted((time, bucket) for bucket, s in self.states.items() for time in s.timers if time <= watermark)
        for time, bucket in due:
            fired: Any = SimpleNamespace(getExpiryTimeInMs=lambda time=time: time)
            made += self._processor(bucket).handleExpiredTimer((bucket,), times, fired)
            self.states[bucket].timers.discard(time)
        self.local.chance.shuffle(made)
        found: list[Row] = []
        for frame in made:
            record = pa.RecordBatch.from_pandas(frame)
            for rows_made in packages.unpack(iter([record]), stage.number, self.work.schema):
                found += rows_made.to_pylist()
        return found

    def _processor(self, bucket: int) -> stream.Processor:
        processor = stream.Processor(*self.made, self.programs)  # Spark makes one for each task
        handle: Any = self.states.setdefault(bucket, BucketState())
        head, program = (handle.getValueState(name, "data binary") for name in ("head", "program"))
        processor.take(handle, head, program, handle.getMapState("log", "n bigint", "data binary"))
        return processor

    def _packages(self, rows: list[Row], stage: Stage) -> Iterator[tuple[int, bytes, bool]]:
        """The packages of a few tasks."""
        chance, extra = self.local.chance, list(self.work.extra)
        names = [*self.work.schema.names, "origin", "revoke", "bucket", *extra]
        types = [*self.work.schema.types, pa.int32(), pa.bool_(), pa.int32(), *[pa.int64()] * len(extra)]
        rows = [copy for row in rows for copy in self._copies(row, stage)]
        tasks: list[list[Row]] = [[] for _ in range(chance.choice([1, 2, 3]))]
        for row in rows:
            key = hash(row["id"]) if self.merging else self.local.key(stage, row)
            key = row.get("slice") or 0 if self.work.extra else key
            bucket = 0 if stage.how == "one" else self.keys[key % len(self.keys)]
            type = self.local.layout.types[row["type"]] if row["type"] is not None and row["type"] >= 0 else None
            everywhere = type in stage.everywhere
            chance.choice(tasks).append({**row, "bucket": -1 if row["revoke"] or everywhere else bucket})
        for task in tasks:
            chance.shuffle(task)
            table = pa.Table.from_pylist(task, schema=pa.schema(list(zip(names, types, strict=True))))
            for record in packages.pack(iter(table.to_batches()), self.keys, self.work):
                packed = list(zip(*(record.column(i).to_pylist() for i in range(3)), strict=True))
                for bucket, payload, passed in packed if not self.merging else ():
                    rows_of = self.local.rows_by_task.setdefault(stage.number, Counter())
                    rows_of[bucket] += pa.ipc.open_stream(payload).read_all().num_rows if payload and not passed else 0
                yield from packed

    def _copies(self, row: Row, stage: Stage) -> Iterable[Row]:
        """An event in all slices to whose answers it may belong; what is no event in one."""
        if stage.how == "anywhere":
            return [{**row, "slice": anywhere(row, len(self.keys))}]
        if self.work.slice is None or stage.longest is None:
            return [row]
        if row["revoke"] or row["type"] < 0:
            return [{**row, "slice": None if row["end"] is None else row["end"] // self.work.slice}]
        return _sliced([row], self.work.slice, self.local.pipeline.clock.length(stage.longest))

    def _frames(self, packages: list[tuple[bytes, bool]]) -> list[Any]:
        import pandas as pd

        return [pd.DataFrame({"payload": [p for p, _ in packages], "passed": [p for _, p in packages]})]
