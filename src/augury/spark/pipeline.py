"""The part that batch and streams share: DataFrames in the layout of the program, stages, answers by type."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from augury.algebra.place import reading
from augury.algebra.plan import Plan, Predicate
from augury.algebra.stages import Stage, Stages, needed, one_stage, stages
from augury.compiled import Compiled, check_clock
from augury.core.clock import Clock
from augury.core.errors import RunError
from augury.core.model import Fact
from augury.core.standing import InputCounts
from augury.knowledge.facts import Facts, check_facts
from augury.knowledge.graphs import Graphs
from augury.planner import physical_plan
from augury.planner.cut_rules import cut_rules
from augury.planner.planning import Setting
from augury.planner.specs import Spec
from augury.planner.split_aggregates import split_aggregates
from augury.settings import Emit, Settings
from augury.sinks import attribute_names, known_output
from augury.sources.heading import NAMES, ColumnNames
from augury.spark.casts import as_spark, cast, json_text
from augury.spark.conversions import shown_json
from augury.spark.fact_placement import BROADCAST, plan_facts
from augury.spark.fact_streams import with_streams
from augury.spark.host import ERROR, Work
from augury.spark.inputs import (
    EventFrame,
    InputReading,
    clock_of,
    is_frame,
    key_hash,
    layout_of,
    sources,
    unknown_types,
)
from augury.spark.layout import JOINT
from augury.spark.pushdown import keep
from augury.spark.shipped import Shipped
from augury.spark.starting import cores_of


def _divided(rdf: Any) -> tuple[list[DataFrame], list[Any]]:
    """The graphs that are DataFrames of triples, and the others."""
    listed = list(rdf) if isinstance(rdf, list | tuple) else [rdf]
    return [item for item in listed if is_frame(item)], [item for item in listed if not is_frame(item)]


def _with_triples(facts: Any, frames: list[DataFrame], plan: Plan) -> dict[str, Any]:
    """Facts with those of DataFrames of triples: subject, predicate and object as N-Triples has them."""
    from augury.spark.triples import rdf_facts, read_rdf

    if facts and not isinstance(facts, Mapping):
        raise RunError("beside a DataFrame of triples, facts are given by name", hint='facts={"store": …}')
    triples = reduce(DataFrame.unionByName, [read_rdf(frame.sparkSession, frame) for frame in frames])
    return {**dict(facts or {}), **rdf_facts(triples, plan)}


@dataclass(frozen=True)
class Execution:
    """How Spark runs a program, beside its settings."""

    names: ColumnNames = NAMES  # of the columns that say what is no attribute
    trace: bool = True  # whether answers have the ids of the events behind them
    exact: bool = False  # whether integers stay so where rules put floats beside them
    broadcast: int = BROADCAST  # rows of a DataFrame of facts that go to every worker; more are joined
    partitions: int | None = None  # of a stage in batch
    skew: bool = False  # whether keyed stages are cut into slices of time as well
    buckets: int | None = None  # of the state of a stream
    ahead: int | None = None  # microseconds by which an event of a stream may be ahead of the time of its batch


class Pipeline:
    """A program and its DataFrames."""

    def __init__(
        self,
        program: Compiled,
        events: Any,
        settings: Settings | None = None,
        execution: Execution | None = None,
        *,
        facts: Mapping[str, Any] | Iterable[Fact] = (),
        rdf: Any = (),
        clock: Clock | None = None,
    ) -> None:
        """`clock` is the one that reads inputs, where it is known already."""
        program = replace(program, plan=program.lowered)
        self.settings, self.execution = settings or Settings(), execution or Execution()
        self.names = self.execution.names
        given_facts: Any = (
            facts if isinstance(facts, Facts) else dict(facts) if isinstance(facts, Mapping) else list(facts)
        )
        ready = isinstance(events, list) and all(isinstance(e, EventFrame) for e in events)
        self.sources: list[EventFrame] = events if ready else sources(program, events, self.names)
        self.inputs_clock = clock or clock_of(program, self.sources, self.settings)
        if clock is None and self.inputs_clock.guess:
            warnings.warn(self.inputs_clock.guess, stacklevel=3)
        if self.inputs_clock.zone:
            zones = dict.fromkeys(program.plan.declared, self.inputs_clock.zone)
            self.sources = [replace(source, zones=zones) for source in self.sources]
        self.clock = self.inputs_clock.plain
        check_clock(program, self.clock.kind)
        frames, others = _divided(rdf)
        if frames:
            given_facts = _with_triples(given_facts, frames, program.plan)
        graphs = Graphs.of(others)
        entailed = graphs.facts(program.plan) if graphs.given else Facts()
        planned = plan_facts(
            given_facts, program.plan, self.sources, self.inputs_clock, self.execution.broadcast, entailed
        )
        check_facts(planned.facts, program.plan)
        self.facts = planned.facts + (entailed if graphs.given else graphs.facts(program.plan, planned.facts))
        self.sources, self.joined = planned.sources, planned.joined
        plan, streams = with_streams(planned.plan, planned.streams) if planned.streams else (planned.plan, [])
        self.sources = [*self.sources, *streams]
        self.program = program = replace(program, plan=plan)
        varying = reading(program.plan, self.facts.timed | {name for name, _ in program.plan.made})
        self.retention = self.settings.retention
        self.setting = Setting(self.clock, varying=varying, retention=self.retention)
        self.cut = split_aggregates(cut_rules(program.plan, self.setting))
        self.layout = layout_of(self.cut, self.sources, self.clock, self.execution.exact)
        self.points = all(s.points for s in self.sources)
        self.ids = any(s.has(self.names.id) for s in self.sources)
        self.ops = any(s.has(self.names.op) for s in self.sources)
        self.versions = any(s.has(self.names.version) for s in self.sources)
        asked = self.settings.longest
        self.longest = 0 if self.points and asked is None else asked
        self.shipped = Shipped(self.facts)
        self._specs: dict[int, tuple[Stage, tuple[Spec, ...]]] = {}  # by the number of a stage
        # What is wrong with the columns of a source is said now, not when the answers are asked for.
        self._checked = {id(source): source.events(self.reading) for source in self.sources}

    @property
    def spark(self) -> SparkSession:
        return self.sources[0].frame.sparkSession

    @property
    def plan(self) -> Plan:
        return self.program.plan

    def work(self, staged: Stages, stage: Stage, emit: Emit) -> Work:
        """What workers need to know of a stage."""
        return Work(
            staged.plan_of(stage),
            self.clock,
            self.layout,
            self.shipped,
            Settings(emit=emit, retention=self.retention, longest=self.longest, limits=self.settings.limits),
            self.execution.trace,
            forward=self.forwarded(staged, stage),
        )

    def staged(self, outputs: Iterable[str], *, alone: bool = False, live: bool = False, slices: bool = True) -> Stages:
        """The stages that some outputs need; `alone` is all in one bucket, whose rules need not be cut."""
        if alone:
            return one_stage(needed(self.plan, outputs), self.longest)
        return stages(needed(self.cut, outputs), self.longest, slices=slices, everywhere=live)

    # Events in

    @cached_property
    def reading(self) -> InputReading:
        return InputReading(
            self.layout,
            self.inputs_clock,
            self.ops,
            self.ids,
            self.points,
            self.settings.on_error,
            self.settings.strict,
            self.versions,
        )

    def raw(self, source: EventFrame) -> DataFrame:
        """The events of a source in the layout, with what is wrong with each."""
        return source.rows(self.reading)

    def checked(self, source: EventFrame) -> DataFrame:
        """The events of a source in the layout; a wrong row stops the run, or is left out.

        To build it takes a second, so it is built once; in a stream, where it counts its rows, once for each use.
        """
        result = self._checked.pop(id(source), None)
        if result is None:
            result = source.events(self.reading)
        if not source.frame.isStreaming:
            self._checked[id(source)] = result
        return result

    def events(self, staged: Stages, stage: Stage, types: Iterable[Predicate]) -> list[DataFrame]:
        """The input events of some types that a stage can use."""
        wanted = set(types)
        result = []
        for source in self.sources:
            used = [part.type for part in source.parts if part.type in wanted]
            if used or (self.ops and source.has(self.names.op)) or (source.idle and stage.number == 1):
                result.append(self._filtered(source, used, staged, stage))
        return result

    def _filtered(self, source: EventFrame, types: list[Predicate], staged: Stages, stage: Stage) -> DataFrame:
        where = self.usable(types, staged, stage) if source.mixed or not types else self.where(types[0], staged, stage)
        if where is not None and self.ops:
            where = where | F.col("revoke")
        return self.checked(source) if where is None else self.checked(source).where(where)

    def usable(self, types: Iterable[Predicate], staged: Stages, stage: Stage) -> Column:
        """The rows of some types that an operator of the stage can use."""
        result = F.col("type") == -1  # which Spark does not see through: rows that are wrong are still found
        for type in types:
            this, where = F.col("type") == self.layout.codes[type], self.where(type, staged, stage)
            result = result | (this if where is None else this & where)
        return result

    def where(self, type: Predicate, staged: Stages, stage: Stage) -> Column | None:
        """The rows of a type that some operator of the stage can use; None where that may be all."""
        if type in staged.plan.derived:
            return None
        kinds = self.layout.kinds[type]
        columns = [(F.col(slot), kind) for slot, kind in zip(self.layout.slots[type], kinds, strict=True)]
        start = F.col("end") if self.points else F.col("start")
        specs = self.specs(staged, stage)
        return keep(specs, type, columns, start, F.col("end"), self.clock, self.plan.functions)

    def specs(self, staged: Stages, stage: Stage) -> tuple[Spec, ...]:
        """The physical plan of a stage: the operators that its workers build."""
        of, specs = self._specs.get(stage.number, (None, ()))
        if of is not stage:
            specs = physical_plan(Compiled(staged.plan_of(stage)).optimised, self.setting).specs
            self._specs[stage.number] = stage, specs
        return specs

    def columns(self, stage: Stage) -> tuple[str, ...]:
        """The columns of arguments that a stage is given."""
        return tuple(sorted({slot for type in stage.reads for slot in self.layout.slots[type]}))

    def own_types(self, staged: Stages, stage: Stage) -> list[Predicate]:
        """The types whose input events come to a stage: those that it reads, and those of derived types to the first."""
        derived = staged.plan.derived
        first: dict[Predicate, int] = {}
        for item in reversed(staged.stages):
            first |= dict.fromkeys(item.gives, item.number)
        there = {part.type for source in self.sources for part in source.parts}
        return [t for t in stage.reads if t in there and (t not in derived or first[t] == stage.number)]

    def forwarded(self, staged: Stages, stage: Stage) -> frozenset[int]:
        """The codes of what earlier stages made and later ones, or the answer, still need."""
        earlier = {t for s in staged.stages[: stage.number - 1] for t in s.gives}
        later = {t for s in staged.stages[stage.number :] for t in s.reads}
        result = {t for t in earlier if t in later or t[0] in staged.plan.outputs}
        return frozenset(self.layout.codes[t] for t in result) | {ERROR} if earlier else frozenset()

    def like_answers(self, events: DataFrame, *more: Column) -> DataFrame:
        """Input events with the columns of answers, and some more."""
        has = set(events.columns)
        start = F.col("start") if "start" in has else F.col("end")
        id = F.col("id") if "id" in has else F.lit(None).cast("string")
        return events.select(
            "type",
            F.lit(1).cast("tinyint").alias("op"),
            start.alias("start"),
            "end",
            id.alias("id"),
            *self.layout.columns,
            F.lit(None).cast("string").alias("trace"),
            *more,
        )

    def any_key(self, frame: DataFrame) -> Column:
        """A hash that spreads events however they are alike: of their ids, and else of what they say."""
        content = F.xxhash64(*(c for c in ("type", "start", "end", *self.layout.columns) if c in frame.columns))
        return (
            F.when(F.col("id").isNotNull(), F.xxhash64("id")).otherwise(content) if "id" in frame.columns else content
        )

    def key(self, stage: Stage, columns: Iterable[str] = ()) -> Column:
        """The hash of the key of each event of a stage; what is just passed on goes anywhere."""
        columns_of_key = max(map(len, stage.reads.values()), default=0)
        hashes = [self._key_column(stage, number, columns) for number in range(columns_of_key)]
        return hashes[0] if len(hashes) == 1 else F.xxhash64(*hashes)

    def _key_column(self, stage: Stage, number: int, columns: Iterable[str]) -> Column:
        """The hash of one column of the key."""
        layout = self.layout
        keyed = [(type, position[number]) for type, position in stage.reads.items() if position]
        places = {type: (layout.slots[type][position], layout.kinds[type][position]) for type, position in keyed}
        kinds = {kind for _, kind in places.values()}
        if len(set(places.values())) == 1 and len(places) == len(stage.reads):
            slot, kind = next(iter(places.values()))
            return key_hash(F.col(slot), kind, kinds)
        result = F.xxhash64("id") if "id" in columns else F.lit(0).cast("bigint")
        for (slot, kind), types in _by_place(places).items():
            codes = [layout.codes[t] for t in types]
            result = F.when(F.col("type").isin(codes), key_hash(F.col(slot), kind, kinds)).otherwise(result)
        return result

    @cached_property
    def malformed(self) -> DataFrame:
        """The rows that are no events: their type, what is wrong, and the row as JSON."""
        return self.wrong.select(self._type_name, "problem", "row")

    @cached_property
    def wrong(self) -> DataFrame:
        """The rows that are no events, with what is wrong, and the path of the file that they are in."""
        rows = reduce(
            DataFrame.unionByName, [self.raw(s).select("type", "problem", "row", "path") for s in self.sources]
        )
        return rows.where(F.col("problem").isNotNull())

    @cached_property
    def counts(self) -> InputCounts:
        """What became of all rows of a history, which are read once more; of those with one id the first one counts."""
        blank = F.lit(None).cast("string")
        sources = [self.raw(source) for source in self.sources if source.tells_time]
        rows = reduce(DataFrame.unionByName, sources).select(
            F.col("problem").isNotNull().alias("wrong"),
            (F.col("id") if self.ids else blank).alias("id"),
            (F.col("revoke") if self.ops else F.lit(False)).alias("revoke"),
            (F.col("version") if self.versions else F.lit(None).cast("bigint")).alias("version"),
            F.xxhash64("type", *([] if self.points else ["start"]), "end", *self.layout.columns).alias("content"),
        )
        total = rows.agg(F.count(F.lit(1)).alias("rows"), F.count_if("wrong").alias("wrong")).first()
        assert total is not None, "a total is one row"
        repeated, rejected = self._again(rows.where(~F.col("wrong") & F.col("id").isNotNull())) if self.ids else (0, 0)
        accepted = total["rows"] - total["wrong"] - repeated - rejected
        return InputCounts(total["rows"], accepted, repeated, 0, rejected, total["wrong"])

    def _again(self, rows: DataFrame) -> tuple[int, int]:
        """How many rows with an id are like the first one with it, and how many are others."""
        content = F.when(~F.col("revoke"), F.col("content")).alias("content")
        version = F.when(F.col("revoke"), F.col("version")).otherwise(F.coalesce("version", F.lit(0))).alias("version")
        placed = rows.select("id", "revoke", version, content, F.monotonically_increasing_id().alias("place"))
        alike = placed.groupBy("id", "revoke", "version", "content").agg(
            F.count(F.lit(1)).alias("count"), F.min("place").alias("place")
        )
        each = alike.groupBy("id", "revoke", "version").agg(
            F.min_by("count", "place").alias("same"), F.sum("count").alias("all")
        )
        totals = each.agg(F.sum(F.col("same") - 1).alias("same"), F.sum(F.col("all") - F.col("same")).alias("others"))
        row = totals.first()
        assert row is not None, "a total is one row"
        return row["same"] or 0, row["others"] or 0

    @cached_property
    def unknown(self) -> DataFrame:
        """The events of types that the program does not know: the type, and how many."""
        result = [unknown_types(s, self.reading) for s in self.sources if s.mixed]
        if not result:
            return self.spark.createDataFrame([], "type string, count bigint")
        return reduce(DataFrame.unionByName, result).groupBy("type").count()

    # Answers out

    def schema(self) -> str:
        """The columns of answers in the layout, as Spark writes a schema."""
        slots = ", ".join(f"{c} {self.layout.sql(c)}" for c in self.layout.columns)
        return f"type int, op tinyint, start bigint, end bigint, id string{', ' + slots if slots else ''}, trace string"

    def answers(self, answers_frame: DataFrame, type: str, changes: bool) -> DataFrame:
        """The answers of one type, with its attributes by name."""
        predicates = [t for t in self.plan.derived if t[0] == type]
        parts = [self._answers(answers_frame, predicate, changes, len(predicates) > 1) for predicate in predicates]
        return reduce(lambda x, y: x.unionByName(y, allowMissingColumns=True), parts)

    def _answers(self, answers_frame: DataFrame, type: Predicate, changes: bool, several: bool) -> DataFrame:
        layout = self.layout
        names = attribute_names(self.plan, type) if not several else [f"arg{i + 1}" for i in range(type[1])]
        columns = [
            _shown(F.col(slot), kind).alias(name)
            for slot, kind, name in zip(layout.slots[type], layout.kinds[type], names, strict=True)
        ]
        return self._rows(answers_frame.where(F.col("type") == layout.codes[type]), columns, changes)

    def _rows(self, answers: DataFrame, attributes: Sequence[Column], changes: bool) -> DataFrame:
        """Answers as users see them: what was done, attributes, the interval, the id, and the trace."""
        op = F.when(F.col("op") > 0, F.lit("insert")).otherwise(F.lit("retract")).alias("op")
        times = [self._time(F.col(c)).alias(c) for c in ("start", "end")]
        trace = ["trace"] if self.execution.trace else []
        return answers.select(*([op] if changes else []), *attributes, *times, "id", *trace)

    def wide(self, answers_frame: DataFrame, changes: bool) -> DataFrame:
        """The answers of all types in one DataFrame, with a column for each attribute: null where a type has none.

        Attributes of one name share a column, unless their values are of different types: then it says which type has it.
        """
        places: dict[str, dict[tuple[str, str], list[Predicate]]] = {}
        for type in self.plan.derived:
            if type[0] in self.plan.outputs:
                names = attribute_names(self.plan, type)
                for name, slot, kind in zip(names, self.layout.slots[type], self.layout.kinds[type], strict=True):
                    places.setdefault(name, {}).setdefault((slot, kind), []).append(type)
        every = sum(type[0] in self.plan.outputs for type in self.plan.derived)
        columns: list[Column] = []
        for name, makers in places.items():
            if len({kind for _, kind in makers}) > 1:
                columns += [
                    self._of(s, k, [t], every).alias(f"{name}_{t[0]}")
                    for (s, k), types in makers.items()
                    for t in types
                ]
            else:
                columns.append(
                    F.coalesce(*(self._of(s, k, types, every) for (s, k), types in makers.items())).alias(name)
                )
        return self._rows(answers_frame.where(F.col("type") >= 0), [self._type_name, *columns], changes)

    def _of(self, slot: str, kind: str, types: list[Predicate], every: int) -> Column:
        """A column of the layout for some types, null for the others."""
        column = _shown(F.col(slot), kind)
        if len(types) == every:
            return column
        return F.when(F.col("type").isin([self.layout.codes[t] for t in types]), column)

    def _alike(self) -> dict[tuple[tuple[str, ...], tuple[str, ...]], list[int]]:
        """The codes of the derived types that keep their arguments in the same columns."""
        result: dict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = {}
        for type in self.plan.derived:
            if type[1]:
                position = (self.layout.slots[type], self.layout.kinds[type])
                result.setdefault(position, []).append(self.layout.codes[type])
        return result

    @property
    def _type_name(self) -> Column:
        names = F.array(*(F.lit(t[0]) for t in self.layout.types))
        return F.element_at(names, F.col("type") + 1).alias("type")

    def _time(self, column: Column) -> Column:
        return F.timestamp_micros(column) if self.clock.kind == "timestamp" else column

    def as_json(self, answers_frame: DataFrame, changes: bool, tagged: bool = True) -> DataFrame:
        """The answers of all types in one DataFrame, with their arguments as JSON; with tags it says what is no text."""
        args = F.lit("[]")
        for (slots, kinds), codes in self._alike().items():
            texts = [
                json_text(F.col(slot), kind)
                if tagged or kind not in ("json", "duration")
                else F.coalesce(shown_json(cast(F.col(slot), kind, "json")), F.lit("null"))
                for slot, kind in zip(slots, kinds, strict=True)
            ]
            array = F.concat(F.lit("["), F.concat_ws(", ", *texts), F.lit("]"))
            args = F.when(F.col("type").isin(codes), array).otherwise(args)
        return self._rows(answers_frame.where(F.col("type") >= 0), [self._type_name, args.alias("args")], changes)

    def errors(self, answers_frame: DataFrame) -> DataFrame:
        """What could not be computed: the rule, the reason and how often."""
        problem = F.array_join("trace", "").alias("problem")
        result = answers_frame.where(F.col("type") == ERROR).select(
            F.col("id").alias("rule"), problem, F.col("start").alias("times")
        )
        return (
            result
            if answers_frame.isStreaming
            else result.groupBy("rule", "problem").agg(F.sum("times").alias("times"))
        )


class Outputs(Mapping[str, DataFrame]):
    """A DataFrame for each output of a program."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    def __iter__(self) -> Iterator[str]:
        return iter(self.pipeline.plan.outputs)

    def __len__(self) -> int:
        return len(self.pipeline.plan.outputs)

    def __contains__(self, type: object) -> bool:
        return type in self.pipeline.plan.outputs

    def __repr__(self) -> str:
        return f"<{self.__class__.__name__} of {', '.join(self)}>"

    def get(self, type: str, default: object = None) -> Any:
        return self[type] if type in self else default  # noqa: SIM401

    def known(self, type: str) -> str:
        """The name of an output; another one is an error."""
        return known_output(type, self.pipeline.plan.outputs)

    @property
    def malformed(self) -> DataFrame:
        return self.pipeline.malformed

    @property
    def unknown(self) -> DataFrame:
        return self.pipeline.unknown


def _shown(column: Column, kind: str) -> Column:
    """A value of the layout as users see it."""
    return shown_json(column) if kind == "json" else as_spark(column, kind)


def listed() -> Column:
    """The trace as a list; that of an event without inputs is empty."""
    return F.when(F.col("trace") == "", F.array().cast("array<string>")).otherwise(F.split("trace", JOINT))


def _by_place(places: Mapping[Predicate, tuple[str, str]]) -> dict[tuple[str, str], list[Predicate]]:
    result: dict[tuple[str, str], list[Predicate]] = {}
    for type, location in places.items():
        result.setdefault(location, []).append(type)
    return result


def partitions_of(spark: SparkSession) -> int:
    """As many as there are cores on one machine; in a cluster what Spark shuffles into."""
    cores = cores_of(spark.conf.get("spark.master", "") or "")
    return cores or int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
