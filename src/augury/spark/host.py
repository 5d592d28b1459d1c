"""Runs the circuit of a stage in a Spark worker: Arrow tables in, Arrow tables out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from augury.algebra.plan import Plan, Predicate
from augury.algebra.stages import in_buckets, live_slice, sliced
from augury.compiled import Compiled
from augury.core.bounds import TIME_LIMIT
from augury.core.clock import Clock
from augury.core.model import Event
from augury.engine.changes import Changes
from augury.engine.decoding import as_lists, decoded, hex_ids
from augury.engine.found import AnswerRows
from augury.engine.session import Session
from augury.engine.snapshot import fingerprint, restored
from augury.engine.trace import StepCache, Traces
from augury.planner.cut_rules import rule_of_part
from augury.settings import Settings
from augury.spark.layout import FAMILY, JOINT, Layout, batches
from augury.spark.shipped import Shipped


def _ignore(item: object) -> None:
    """Nothing is late in a history."""


FAR = TIME_LIMIT - 1
ERROR = -1  # the code of rows that tell what could not be computed: the rule, how often, and why
_CHUNK = 1 << 16  # rows that are taken in at a time
_COLUMNS = {"type": pa.int32(), "op": pa.int8(), "start": pa.int64(), "end": pa.int64(), "id": pa.string()}
Notice = tuple[int, int | None, str | None, str]  # its code, how often, which rule, and what happened


@dataclass(frozen=True)
class Work:
    """What a worker needs to know of a stage. `slice` is the length of a slice of time, in time points: rows say it.

    `earlier` is what the stage was in earlier versions of a program, the oldest first: a stream goes on from their state,
    and rules that are new in this one see what starts after `since`.
    """

    plan: Plan
    clock: Clock
    layout: Layout
    facts: Shipped
    settings: Settings
    trace: bool = True
    slice: int | None = None
    buckets: bool = False  # whether rows say their bucket, which is part of what is made of them
    forward: frozenset[int] = frozenset()  # the codes of answers of earlier stages that are passed on
    earlier: tuple[Work, ...] = ()
    since: int | None = None

    @cached_property
    def asking(self) -> Plan:
        """The plan with the rules of earlier versions, too: all that sessions may ask facts for."""
        rules = dict.fromkeys(rule for work in (*self.earlier, self) for rule in work.plan.rules)
        return replace(self.plan, rules=tuple(rules))

    def session(self, late: Callable[[Any], None] | None = None, plan: Plan | None = None) -> Session:
        """A new session, or one of the plan of an earlier version."""
        session = Session(
            Compiled(plan or self.plan),
            self.settings,
            clock=self.clock,
            facts=self.facts.asked(self.asking),
            knowledge=self.facts.knowledge(self.asking, self.clock),
            late=late or _ignore,
        )
        session.programs = self.programs
        session.circuit.learns = False  # a stream does not end at an event that is longer than all before it
        return session

    @property
    def programs(self) -> dict[str, Compiled]:
        """The programs of all versions, as snapshots name them."""
        plans = [work.plan for work in (*self.earlier, self)] if self.earlier else []
        return {fingerprint(plan, self.clock): Compiled(plan) for plan in plans}

    def restored(self, data: bytes, late: Callable[[Any], None]) -> Session:
        """The session of a snapshot; what its worker knows already is not in it."""
        knowledge = self.facts.knowledge(self.asking, self.clock)
        options: dict[str, Any] = {"late": late, "limits": self.settings.limits, "programs": self.programs}
        if knowledge is not None:
            options |= {"knowledge": knowledge, "facts": self.facts.asked(self.asking)}
        session = restored(Compiled(self.plan), data, Session, **options)
        session.circuit.learns = False
        return session

    def in_slices(self, longest: int) -> Work:
        """The same in slices of time of a stream, for answers that last so long at most."""
        length = live_slice(longest)
        return replace(self, plan=replace(sliced(self.plan), slice=length), slice=length)

    def in_buckets(self) -> Work:
        """The same where each event may be in any bucket."""
        return replace(self, plan=in_buckets(self.plan), buckets=True)

    def own_copy(self, event: Event) -> bool:
        """Whether an event that may be in several slices is in that of its end."""
        return self.slice is None or event.end // self.slice == event.args[-1]

    def own_type(self, event: Event) -> Predicate:
        return event.type, len(event.args) - len(self.extra)

    @property
    def extra(self) -> tuple[str, ...]:
        """The columns that are arguments of every event beside its own."""
        return ("slice",) if self.slice is not None or self.buckets else ()

    @property
    def taken(self) -> list[int]:
        """The codes of the types that the stage reads; its own types that earlier stages have made are just passed on."""
        more, plan = len(self.extra), self.plan
        types = [(code, (name, arity + more)) for code, (name, arity) in enumerate(self.layout.types)]
        return [c for c, t in types if t in plan.event_types and (c not in self.forward or t in plan.given)]

    @property
    def schema(self) -> pa.Schema:
        """The columns of answers."""
        layout = self.layout
        return pa.schema(
            [
                *_COLUMNS.items(),
                *((c, layout.arrow(c)) for c in layout.columns),
                ("trace", pa.string()),
            ]
        )

    def record(self, columns: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
        """Answers; a column that is not given is null."""
        schema = self.schema
        arrays = [columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def notices(self, rows: Sequence[Notice]) -> Iterator[pa.RecordBatch]:
        """Rows that report anything else than answers, if there are any."""
        if rows:
            codes, counts, rules, texts = zip(*rows, strict=True)
            columns = {
                "type": pa.array(codes, pa.int32()),
                "op": pa.array([1] * len(rows), pa.int8()),
                "start": pa.array(counts, pa.int64()),
                "end": pa.array([0] * len(rows), pa.int64()),
                "id": pa.array(rules, pa.string()),
                "trace": pa.array(texts, pa.string()),
            }
            yield self.record(columns, len(rows))


def run(work: Work, records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One partition of a history, in the order of ends: answers as soon as nothing can change them."""
    session: Session | None = None
    now: int | None = None  # where the clock stands, where somebody asks
    for table in chunks(records, _CHUNK):
        if session is None:
            session = work.session()
        if "now" in table.column_names:
            now = table.column("now")[0].as_py()
            table = table.drop_columns(["now"])
        if work.slice is not None:
            work = replace(work, slice=table.column("slice_length")[0].as_py())
            table = table.drop_columns(["slice_length"])
        if work.forward:
            passed, table = divided(table, work)
            yield from passed.select(work.schema.names).to_batches()
        if now is not None:
            table = table.filter(pc.less_equal(table.column("end"), now))
        if not len(table):
            continue
        last = int(table.column("end")[-1].as_py())
        events = batches(table, work.layout, work.extra)
        for type in work.plan.given.keys() & events.keys():
            events[type].ids = None  # equal ones are one
        yield from answers(work, session, session.push_batches(events, last - 1))
    if session is not None:
        yield from answers(work, session, session.push_batches({}, FAR if now is None else now))
        if now is not None:
            yield from answers(work, session, session.finish())
        yield from work.notices([(ERROR, n, rule_of_part(rule), why) for (rule, why), n in session.errors.items()])


def divided(table: pa.Table, work: Work) -> tuple[pa.Table, pa.Table]:
    """What is passed on, and what the stage takes in; some is both."""
    codes = table.column("type")
    passed = pc.is_in(codes, pa.array(sorted(work.forward), pa.int32()))
    if work.slice is not None:  # once, not in every slice that it belongs to
        passed = pc.and_(passed, in_own_slice(table, work.slice))
    return table.filter(passed), table.filter(pc.is_in(codes, pa.array(work.taken, pa.int32())))


def in_own_slice(table: pa.Table, length: int) -> pa.Array:
    """Which rows are in the slice of their end; what has no end is in one slice only."""
    same = pc.equal(table.column("slice"), pa.array(pc.fill_null(table.column("end"), 0).to_numpy() // length))
    return pc.or_(pc.fill_null(same, False), pc.is_null(table.column("end")))


def chunks(records: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """The batches that Spark gives, put together to tables of some size."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in records:
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
        if rows >= size:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)


def answers(work: Work, session: Session, changes: Changes) -> Iterator[pa.RecordBatch]:
    """The changes of a step, a record batch for each type."""
    if len(changes):
        cache, texts = StepCache[pa.Array](), dict[int, tuple[Traces, pa.Array]]()
        changes.parts[0].share(changes.parts)
        for rows in changes.parts:
            assert isinstance(rows, AnswerRows)
            trace = None
            if work.trace:
                traces = rows.traces(0, len(rows))
                if id(traces) not in texts:
                    texts[id(traces)] = traces, pc.binary_join(as_lists(traces), JOINT)
                _, trace = texts[id(traces)]
            yield from _record(work, rows, cache, trace)


def _record(
    work: Work, rows: AnswerRows, cache: StepCache[pa.Array], trace: pa.Array | None
) -> Iterator[pa.RecordBatch]:
    type: Predicate = (rows.type, rows.arity - len(work.extra))
    layout, keep = work.layout, None
    start, end, codes, dictionary = rows.read()
    if work.slice is not None:  # an answer belongs to the slice of its end
        keep = np.flatnonzero(end // work.slice == codes[-1] >> 2)
    codes = codes[: len(codes) - len(work.extra)]
    count = len(rows)
    made: dict[str, pa.Array] = {
        "type": pa.array(np.full(count, layout.codes[type], np.int32)),
        "op": pa.array(np.full(count, 1 if rows.op == "insert" else -1, np.int8)),
        "start": pa.array(start),
        "end": pa.array(end),
        "id": hex_ids(rows.ids()),
        "trace": pa.nulls(count, pa.string()) if trace is None else trace,
    }
    for slot, kind, code in zip(layout.slots[type], layout.kinds[type], codes, strict=True):
        made[slot] = cache.of((code,), partial(decoded, dictionary, code, FAMILY[kind]), kind)
    batch = work.record(made, count)
    batch = batch if keep is None or len(keep) == count else batch.take(pa.array(keep))
    if batch.num_rows:
        yield batch
