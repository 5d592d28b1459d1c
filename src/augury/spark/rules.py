"""Static rules over facts that are DataFrames, bottom up: every round joins what the last one found, until nothing is new.

    reach(X, Y) :- linked(X, Y).
    reach(X, Z) :- reach(X, Y), linked(Y, Z).

Rules that just join facts are answered this way: conditions on plain variables and constants, `not`, `or`, comparisons. A
transitive closure takes as many rounds as its longest path has binary digits; one that starts from what events ask for goes
step by step, and in longer and longer steps where edges are few.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from augury.algebra.answering import divided, is_plain, reads_of
from augury.algebra.nodes import Clause, Holds
from augury.algebra.plan import Plan, Predicate
from augury.algebra.strata import below, components, recurs
from augury.algebra.terms import Var
from augury.core.errors import RunError
from augury.knowledge.fact_table import FactTable
from augury.knowledge.facts import Facts
from augury.knowledge.graphs import entailing
from augury.knowledge.solving.expand import expanded
from augury.spark.bodies import ClauseJoins, calls, kinds_of, places
from augury.spark.demand import Demand, demand
from augury.spark.relation_frames import FactFrame, NotJoined, empty, of_facts, of_frame, same, united

_FACTS = "facts of "  # before the name of a predicate that has rules as well: its facts
_FEW = 10_000  # rows that may go through the driver from one round to the next
_PARTS = 8  # rounds after which what is known is put together
_STRIDE = 8  # rounds after which steps become longer
_MOST = 1_000_000_000  # answers of a rule that recurs
_WIDEST = 2  # times as many rows as there are edges that a longer step may have


@dataclass(frozen=True)
class Seeds:
    """The values with which a predicate is asked: those of its arguments at `places`, in this order."""

    places: tuple[int, ...]
    values: FactFrame


class StaticRules:
    """The static rules of a program, and facts: those of DataFrames, and those that the driver has."""

    def __init__(
        self,
        plan: Plan,
        frames: Mapping[Predicate, DataFrame | FactFrame],
        small: Facts | None = None,
        varying: Collection[str] = (),
    ) -> None:
        small = small or Facts()
        self.plan, self.frames = plan, dict(frames)
        self.varying = {*varying, *small.timed, *(name for name, _ in plan.made)}
        clauses = [*plan.clauses, *entailing(small.predicates)]
        rules, ground = divided(clauses)
        self.small: dict[Predicate, list[FactTable]] = {}
        for table in [*Facts.of(ground).tables, *small.tables]:
            self.small.setdefault((table.name, table.arity), []).append(table)
        called = set[Predicate]().union(*reads_of([clauses]).values())
        self.clauses = {
            p: [option for clause in listed for option in expanded(clause, called)] for p, listed in rules.items()
        }
        for name, arity in self.clauses.keys() & {*self.frames, *self.small}:
            args = tuple(Var(f"X{i}") for i in range(arity))
            self.clauses[name, arity].append(Clause(name, args, (Holds(_FACTS + name, args),)))
        self._reads = reads_of(self.clauses.values())
        self._base: dict[Predicate, FactFrame | None] = {}
        self.rounds: list[tuple[Predicate, list[int]]] = []  # of the last evaluation: how many rows each round found

    @property
    def spark(self) -> SparkSession:
        frames = (f.frame if isinstance(f, FactFrame) else f for f in self.frames.values())
        return next((f.sparkSession for f in frames), None) or SparkSession.active()

    def reads(self, predicate: Predicate) -> set[Predicate]:
        """The predicates that a predicate rests on, itself included."""
        return below(predicate, self._reads)

    def check(self, predicate: Predicate) -> tuple[str, ...]:
        """The kinds of a predicate's arguments; raises NotJoined where joins cannot answer it."""
        return self._evaluation(self._demand(predicate, None), None).kinds[predicate]

    def answers(self, predicate: Predicate, seeds: Seeds | None = None) -> FactFrame:
        """All answers of a predicate; with `seeds`, those at least that they ask for."""
        wanted = self._demand(predicate, seeds)
        try:
            evaluation = self._evaluation(wanted, seeds)
        except NotJoined:
            if seeds is None:
                raise
            return self.answers(predicate)  # what is asked with may be of types that rules cannot compare
        result = evaluation.answers(wanted.goal)
        self.rounds = evaluation.rounds
        return result

    def opaque(self, predicate: Predicate) -> frozenset[int]:
        """The arguments of facts that cannot be compared."""
        result = self._facts(predicate)
        return frozenset() if result is None else result.opaque

    def _demand(self, predicate: Predicate, seeds: Seeds | None) -> Demand:
        rests_on = self.reads(predicate)
        changing = sorted({name for name, _ in rests_on} & self.varying)
        if changing:
            raise NotJoined(f"the facts `{changing[0]}` change in time")
        for name, arity in rests_on:
            if arity == 0:
                raise NotJoined(f"`{name}` has no arguments")
            for clause in self.clauses.get((name, arity), ()):
                if clause.cut:
                    raise NotJoined(f"a clause of `{name}` ends in a cut")
                if not is_plain(clause, orders=True):
                    raise NotJoined(f"a clause of `{name}` does more than join facts")
        return demand(self.clauses, predicate, seeds.places if seeds else ())

    def _evaluation(self, wanted: Demand, seeds: Seeds | None) -> _Evaluation:
        called = {call for listed in wanted.clauses.values() for c in listed for call in calls(c)}
        asked = {wanted.goal, *called} - wanted.clauses.keys()
        base = {p: facts for p in asked if (facts := self._facts(p)) is not None}
        if wanted.clauses and any(relation.opaque for relation in base.values()):
            raise NotJoined("rules read nested terms or lists, which Spark cannot compare")
        if wanted.seeds is not None and seeds is not None:
            base[wanted.seeds] = _arranged(seeds, wanted.places)
        return _Evaluation(self.spark, wanted, base)

    def _facts(self, predicate: Predicate) -> FactFrame | None:
        """The facts of a predicate."""
        predicate = (predicate[0].removeprefix(_FACTS), predicate[1])
        if predicate not in self._base:
            parts: list[FactFrame] = []
            if predicate in self.frames:
                frame, declared = self.frames[predicate], self.plan.static.get(predicate[0])
                if not isinstance(frame, FactFrame):
                    frame = of_frame(predicate[0], frame, declared, self.plan.prefixes)
                parts.append(frame)
            if predicate in self.small:
                parts.append(of_facts(self.spark, self.small[predicate], predicate[1]))
            self._base[predicate] = united(parts) if parts else None
        return self._base[predicate]


def _arranged(seeds: Seeds, places: Sequence[int]) -> FactFrame:
    """The values of some arguments, in their order; what has null in it asks for nothing."""
    order = [seeds.places.index(i) for i in places]
    frame = seeds.values.frame.select(*(F.col(f"c{i}").alias(f"c{n}") for n, i in enumerate(order)))
    return FactFrame(frame.dropna().distinct(), tuple(seeds.values.kinds[i] for i in order))


# Evaluation


@dataclass
class _Growing:
    """What is known of a predicate while it grows, what the last round found, and how much each did."""

    kinds: tuple[str, ...]
    parts: list[DataFrame]
    last: DataFrame
    counts: list[int]

    @property
    def known(self) -> FactFrame:
        return FactFrame(reduce(DataFrame.union, self.parts), self.kinds)

    @property
    def delta(self) -> FactFrame:
        return FactFrame(self.last, self.kinds)

    @property
    def grows(self) -> bool:
        return bool(self.counts[-1])

    def new(self, frame: DataFrame) -> tuple[DataFrame, int]:
        """Those rows that are not known yet."""
        return _materialised(frame.subtract(self.known.frame), few=self.counts[-1] <= _FEW)

    def add(self, frame: DataFrame, count: int) -> None:
        self.last = frame
        self.counts.append(count)
        if count:
            self.parts.append(frame)
        if sum(self.counts) > _MOST:
            raise RunError(
                f"a static rule has more than {_MOST:,} answers", hint="ask for it with an argument that events bind"
            )
        if len(self.parts) > _PARTS:
            few, frame = sum(self.counts) <= _FEW, self.known.frame
            self.parts = [_materialised(frame if few else frame.hint("rebalance"), few)[0]]


@dataclass
class _Evaluation:
    """Predicates in the order in which they depend on one another, those that depend on themselves round by round."""

    spark: SparkSession
    wanted: Demand
    base: dict[Predicate, FactFrame]  # facts, and what is asked for
    done: dict[Predicate, FactFrame] = field(default_factory=dict)
    kinds: dict[Predicate, tuple[str, ...]] = field(default_factory=dict)
    rounds: list[tuple[Predicate, list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kinds = kinds_of(self.wanted.clauses, self.base, self.wanted.goal)
        for listed in self.wanted.clauses.values():
            for clause in listed:
                self._body(clause).check()

    def _body(self, clause: Clause) -> ClauseJoins:
        return ClauseJoins(clause, self.kinds, self.spark)

    def answers(self, goal: Predicate) -> FactFrame:
        reads = reads_of(self.wanted.clauses.values())
        groups = components({goal, *self.wanted.clauses}, reads)
        rounds = [group for group in groups if recurs(group, reads)]
        shared = {p for group in rounds for head in group for p in reads.get(head, set()) - set(group)}
        kept: list[DataFrame] = []
        try:
            for group in groups:
                if group in rounds:
                    self._fixpoint(group)
                    continue
                facts = self._plain(group[0])
                if group[0] in shared:  # every round reads it
                    facts = FactFrame(facts.frame.persist(), facts.kinds)
                    kept.append(facts.frame)
                self.done[group[0]] = facts
        finally:
            for frame in kept:
                frame.unpersist()
        return self.done[goal]

    def relation(self, predicate: Predicate) -> FactFrame:
        """The facts of a predicate that is complete."""
        result = self.done.get(predicate) or self.base.get(predicate)
        return result or empty(self.spark, self.kinds[predicate])

    def _plain(self, predicate: Predicate) -> FactFrame:
        """All answers of a predicate that does not depend on itself."""
        clauses = self.wanted.clauses.get(predicate)
        if not clauses:
            return self.relation(predicate)
        return FactFrame(self._exits(predicate, clauses), self.kinds[predicate])

    def _exits(self, predicate: Predicate, clauses: Iterable[Clause]) -> DataFrame:
        """What follows by clauses from what is complete."""
        result = [self._body(c).answers(lambda _, call: self.relation(call)) for c in clauses]
        return self._union(predicate, result).distinct()

    def _union(self, predicate: Predicate, parts: Sequence[DataFrame]) -> DataFrame:
        return reduce(DataFrame.union, parts) if parts else empty(self.spark, self.kinds[predicate]).frame

    # Recursion

    def _fixpoint(self, group: Sequence[Predicate]) -> None:
        """Semi-naive: in each round, every call within the group is once what the last round found.

        What is new of a whole closure after round k has a shortest path of more than 2^(k-1) and at most 2^k steps. The
        paths that the next round finds begin with one of these, so that it is enough to extend these.
        """
        closures = self.wanted.closures if len(group) == 1 else {}
        edge = closures.get(group[0])
        strides = None if edge is None else _Strides(self.relation(edge), self.relation(edge))
        grown: dict[Predicate, _Growing] = {}
        steps: dict[Predicate, list[tuple[Clause, int, Predicate]]] = {}
        for predicate in group:
            clauses = self.wanted.clauses[predicate]
            inner_calls = [(c, position, call) for c in clauses for position, call in places(c) if call in group]
            inner = {id(clause) for clause, _, _ in inner_calls}
            steps[predicate] = inner_calls[:1] if predicate in closures else inner_calls
            first = self._exits(predicate, [c for c in clauses if id(c) not in inner])
            few = edge is not None or predicate not in closures
            frame, count = _materialised(first, few)
            grown[predicate] = _Growing(self.kinds[predicate], [frame], frame, [count])

        def read(position: int, call: Predicate, new: int) -> FactFrame:
            if call in grown:
                return grown[call].delta if position == new else grown[call].known
            return strides.all if strides is not None and call == edge else self.relation(call)

        while any(growing.grows for growing in grown.values()):
            if strides is not None and len(grown[group[0]].counts) % _STRIDE == 0:
                strides.lengthen()
            fresh: dict[Predicate, tuple[DataFrame, int]] = {}
            for predicate in group:
                parts = [
                    self._body(clause).answers(partial(read, new=position), position)
                    for clause, position, call in steps[predicate]
                    if grown[call].grows
                ]
                made = self._union(predicate, parts)
                fresh[predicate] = grown[predicate].new(made) if parts else (made, 0)
            for predicate, (frame, count) in fresh.items():
                grown[predicate].add(frame, count)
        for predicate, growing in grown.items():
            self.done[predicate] = growing.known
            self.rounds.append((predicate, growing.counts))


@dataclass
class _Strides:
    """The edges of a closure and, after some rounds, paths of 2, 4, … edges, so that one step goes further."""

    all: FactFrame
    longest: FactFrame | None  # None where twice the length would be many more

    def lengthen(self) -> None:
        """Adds paths of twice the length, unless they would be many more."""
        paths, self.longest = self.longest, None
        if paths is None:
            return
        total = paths.frame.count()
        left = paths.frame.select(F.col("c0").alias("x"), F.col("c1").alias("y"))
        right = paths.frame.select(F.col("c0").alias("z"), F.col("c1").alias("w"))
        meet = same(F.col("y"), paths.kinds[1], F.col("z"), paths.kinds[0])
        ins = left.groupBy("y").agg(F.count("*").alias("ins"))
        outs = right.groupBy("z").agg(F.count("*").alias("outs"))
        size = ins.join(outs, meet).agg(F.sum(F.col("ins") * F.col("outs"))).collect()[0][0] or 0
        if 0 < size <= _WIDEST * total:
            twice = left.join(right, meet).select(F.col("x").alias("c0"), F.col("w").alias("c1"))
            self.longest = FactFrame(_materialised(twice.distinct(), total <= _FEW)[0], paths.kinds)
            self.all = united([self.all, self.longest])


def _materialised(frame: DataFrame, few: bool = False) -> tuple[DataFrame, int]:
    """The rows of a frame, computed, and how many they are; a plan that is made from them does not grow with the rounds.

    Where they are expected to be `few`, and are, they go through the driver, which is one job. Else they are kept as a
    checkpoint: a reliable one where `spark.checkpoint.dir` is set, otherwise on the executors. It is made from what was
    cached, so that its statistics are those of the rows.
    """
    if few:
        rows = frame.limit(_FEW + 1).toArrow()
        if rows.num_rows <= _FEW:
            spark = frame.sparkSession
            local = spark.createDataFrame(rows) if rows.num_rows else spark.createDataFrame([], frame.schema)
            return local, rows.num_rows
    cached = frame.persist()
    try:
        count = cached.count()
        reliable = cached.sparkSession.conf.get("spark.checkpoint.dir", None)
        return (cached.checkpoint() if reliable else cached.localCheckpoint()), count
    finally:
        cached.unpersist()
