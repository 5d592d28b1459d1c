"""Static rules over facts that are DataFrames, bottom up: every round joins what the last one found, until nothing is new.

    reach(X, Y) :- linked(X, Y).
    reach(X, Z) :- reach(X, Y), linked(Y, Z).

Rules that just join facts are answered this way: conditions on plain variables and constants, `not`, `or`, comparisons. A
transitive closure takes as many rounds as its longest path has binary digits; one that starts from what events ask for goes
step by step, and in longer and longer steps where edges are few.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import assert_never

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from augury.algebra.nodes import AnyOf, Clause, Compare, Holds, NoneInside, Relates, Relative, Spans, Unless
from augury.algebra.place import binds, is_ready
from augury.algebra.plan import Plan, Predicate
from augury.algebra.strata import components, static_reads
from augury.algebra.terms import Const, Var, Wild, variables
from augury.errors import RunError
from augury.knowledge.fact_table import FactTable
from augury.knowledge.facts import Facts
from augury.knowledge.graphs import entailing
from augury.knowledge.solving.expand import expanded
from augury.model import Fact
from augury.spark.bodies import Body, calls, kinds_of, places
from augury.spark.demand import Demand, Reach, below, demand, in_order, reads_of, recurs
from augury.spark.relation import (
    NotJoined,
    Relation,
    empty,
    of_facts,
    of_frame,
    same,
    united,
)

_FEW = 10_000  # rows that may go through the driver from one round to the next
_PARTS = 8  # rounds after which what is known is put together
_STRIDE = 8  # rounds after which steps become longer
_MOST = 1_000_000_000  # answers of a rule that recurs
_WIDEST = 2  # times as many rows as there are edges that a longer step may have


@dataclass(frozen=True)
class Seeds:
    """The values with which a predicate is asked: those of its arguments at `places`, in this order."""

    places: tuple[int, ...]
    values: Relation


class StaticRules:
    """The static rules of a program, and facts: those of DataFrames, and those that the driver has."""

    def __init__(
        self,
        plan: Plan,
        frames: Mapping[Predicate, DataFrame | Relation],
        small: Facts | None = None,
        varying: Collection[str] = (),
    ) -> None:
        small = small or Facts()
        self.plan = plan
        self.varying = {*varying, *small.timed, *(name for name, _ in plan.made)}
        self.clauses, own = _split([*plan.clauses, *entailing(small.predicates)])
        self.frames = dict(frames)
        self.small: dict[Predicate, list[FactTable]] = {}
        for table in [*Facts.of(own).tables, *small.tables]:
            self.small.setdefault((table.name, table.arity), []).append(table)
        self._given: dict[Predicate, Relation] = {}
        self.rounds: list[tuple[Predicate, list[int]]] = []  # of the last evaluation: how many rows each round found

    @property
    def spark(self) -> SparkSession:
        frames = (f.frame if isinstance(f, Relation) else f for f in self.frames.values())
        return next((f.sparkSession for f in frames), None) or SparkSession.active()

    def reads(self, predicate: Predicate) -> set[Predicate]:
        """The predicates that a predicate rests on, itself included."""
        return below(self.clauses, predicate)

    def check(self, predicate: Predicate) -> tuple[str, ...]:
        """The kinds of a predicate's arguments; raises NotJoined where joins cannot answer it."""
        return self._evaluation(self._demand(predicate, None), None).kinds[predicate]

    def answers(self, predicate: Predicate, seeds: Seeds | None = None) -> Relation:
        """All answers of a predicate; with `seeds`, those at least that they ask for."""
        wanted = self._demand(predicate, seeds)
        try:
            evaluation = self._evaluation(wanted, seeds)
        except NotJoined:
            if seeds is None:
                raise
            return self.answers(predicate)  # what is asked with may be of types that rules cannot compare
        found = evaluation.answers(wanted.goal)
        self.rounds = evaluation.rounds
        return found

    def opaque(self, predicate: Predicate) -> frozenset[int]:
        """The arguments of facts that cannot be compared."""
        found = self._relation(predicate)
        return frozenset() if found is None else found.opaque

    def _demand(self, predicate: Predicate, seeds: Seeds | None) -> Demand:
        rests_on = self.reads(predicate)
        changing = sorted({name for name, _ in rests_on} & self.varying)
        if changing:
            raise NotJoined(f"the facts `{changing[0]}` change in time")
        for one in rests_on:
            if one[1] == 0:
                raise NotJoined(f"`{one[0]}` has no arguments")
            for clause in self.clauses.get(one, ()):
                _check(clause)
        return demand(self.clauses, {*self.frames, *self.small}, predicate, seeds.places if seeds else ())

    def _evaluation(self, wanted: Demand, seeds: Seeds | None) -> _Evaluation:
        called = {call for listed in wanted.clauses.values() for c in listed for call in calls(c)}
        known = [(p, wanted.facts.get(p, p)) for p in {wanted.goal, *wanted.clauses, *called}]
        given = {p: found for p, name in known if (found := self._relation(name)) is not None}
        if wanted.clauses and any(relation.opaque for relation in given.values()):
            raise NotJoined("rules read nested terms or lists, which Spark cannot compare")
        if wanted.asked is not None and seeds is not None:
            given[wanted.asked] = _arranged(seeds, wanted.places)
        return _Evaluation(self.spark, wanted, given)

    def _relation(self, predicate: Predicate) -> Relation | None:
        """The facts of a predicate."""
        if predicate in self._given:
            return self._given[predicate]
        parts: list[Relation] = []
        if predicate in self.frames:
            frame = self.frames[predicate]
            declared = self.plan.static.get(predicate[0])
            parts.append(
                frame if isinstance(frame, Relation) else of_frame(predicate[0], frame, declared, self.plan.prefixes)
            )
        if predicate in self.small:
            parts.append(of_facts(self.spark, self.small[predicate], predicate[1]))
        if not parts:
            return None
        self._given[predicate] = united(parts)
        return self._given[predicate]


def _split(clauses: Iterable[Clause]) -> tuple[dict[Predicate, list[Clause]], list[Fact]]:
    """The rules by predicate, `or` as several of them, and the facts of the program."""
    rules: dict[Predicate, list[Clause]] = {}
    facts: list[Fact] = []
    listed = list(clauses)
    called = set[Predicate]().union(*static_reads(listed).values())
    ordered = {(c.name, len(c.args)) for c in listed if c.cut}
    for clause in listed:
        predicate = (clause.name, len(clause.args))
        if not clause.body and predicate not in ordered and all(isinstance(a, Const) for a in clause.args):
            facts.append(Fact(clause.name, tuple(a.value for a in clause.args if isinstance(a, Const))))
        else:
            rules.setdefault(predicate, []).extend(expanded(clause, called))
    return rules, facts


def _check(clause: Clause) -> None:
    """Whether a clause just joins facts, so that it needs no argument of a call and cannot fail."""
    if clause.cut:
        raise NotJoined(f"a clause of `{clause.name}` ends in a cut")
    known: set[str] = set()
    for i in in_order(clause.body, known):
        condition = clause.body[i]
        match condition:
            case Compare():
                simple = all(isinstance(side, Var | Const) for side in (condition.left, condition.right))
            case Holds() | Unless():
                simple = all(isinstance(a, Var | Const | Wild) for a in condition.args)
            case AnyOf() | Relates() | Spans() | Relative() | NoneInside():
                simple = False
            case _:
                assert_never(condition)
        if not simple or not (isinstance(condition, Holds) or is_ready(condition, known)):
            raise NotJoined(f"a clause of `{clause.name}` does more than join facts")
        known |= binds(condition, known)
    if not variables(*clause.args) <= known or not all(isinstance(a, Var | Const) for a in clause.args):
        raise NotJoined(f"a clause of `{clause.name}` does more than join facts")


def _arranged(seeds: Seeds, places: Sequence[int]) -> Relation:
    """The values of some arguments, in their order; what has null in it asks for nothing."""
    order = [seeds.places.index(i) for i in places]
    frame = seeds.values.frame.select(*(F.col(f"c{i}").alias(f"c{n}") for n, i in enumerate(order)))
    return Relation(frame.dropna().distinct(), tuple(seeds.values.kinds[i] for i in order))


# Evaluation


@dataclass
class _Growing:
    """What is known of a predicate while it grows, what the last round found, and how much each did."""

    kinds: tuple[str, ...]
    parts: list[DataFrame]
    last: DataFrame
    counts: list[int]

    @property
    def known(self) -> Relation:
        return Relation(reduce(DataFrame.union, self.parts), self.kinds)

    @property
    def delta(self) -> Relation:
        return Relation(self.last, self.kinds)

    @property
    def grows(self) -> bool:
        return bool(self.counts[-1])

    def new(self, frame: DataFrame) -> tuple[DataFrame, int]:
        """Those rows that are not known yet."""
        return _settled(frame.subtract(self.known.frame), few=self.counts[-1] <= _FEW)

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
            self.parts = [_settled(frame if few else frame.hint("rebalance"), few)[0]]


@dataclass
class _Evaluation:
    """Predicates in the order in which they depend on one another, those that depend on themselves round by round."""

    spark: SparkSession
    wanted: Demand
    given: dict[Predicate, Relation]
    done: dict[Predicate, Relation] = field(default_factory=dict)
    kinds: dict[Predicate, tuple[str, ...]] = field(default_factory=dict)
    rounds: list[tuple[Predicate, list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kinds = kinds_of(self.wanted.clauses, self.given, self.wanted.goal)
        for listed in self.wanted.clauses.values():
            for clause in listed:
                self._body(clause).check()

    def _body(self, clause: Clause) -> Body:
        return Body(clause, self.kinds, self.spark)

    def answers(self, goal: Predicate) -> Relation:
        reads = reads_of(self.wanted.clauses)
        groups = components({goal, *self.wanted.clauses}, reads)
        rounds = [group for group in groups if recurs(group, reads)]
        shared = {p for group in rounds for head in group for p in reads.get(head, set()) - set(group)}
        kept: list[DataFrame] = []
        try:
            for group in groups:
                if group in rounds:
                    self._recursive(group)
                    continue
                found = self._plain(group[0])
                if group[0] in shared:  # every round reads it
                    found = Relation(found.frame.persist(), found.kinds)
                    kept.append(found.frame)
                self.done[group[0]] = found
        finally:
            for frame in kept:
                frame.unpersist()
        return self.done[goal]

    def relation(self, predicate: Predicate) -> Relation:
        """The facts of a predicate that is complete."""
        found = self.done.get(predicate) or self.given.get(predicate)
        return found or empty(self.spark, self.kinds[predicate])

    def _plain(self, predicate: Predicate) -> Relation:
        """All answers of a predicate that does not depend on itself."""
        own = self.wanted.clauses.get(predicate)
        if not own:
            return self.relation(predicate)
        return Relation(self._exits(predicate, own).distinct(), self.kinds[predicate])

    def _exits(self, predicate: Predicate, clauses: Iterable[Clause]) -> DataFrame:
        """What is given of a predicate, and follows by clauses from what is complete."""
        found = [self._body(c).answers(lambda _, call: self.relation(call)) for c in clauses]
        if predicate in self.given:
            found.append(self.given[predicate].cast(self.kinds[predicate]))
        return self._union(predicate, found)

    def _union(self, predicate: Predicate, parts: Sequence[DataFrame]) -> DataFrame:
        return reduce(DataFrame.union, parts) if parts else empty(self.spark, self.kinds[predicate]).frame

    # Recursion

    def _recursive(self, group: Sequence[Predicate]) -> None:
        reach = self.wanted.closures.get(group[0]) if len(group) == 1 else None
        if reach is None:
            grown = self._fixpoint(group)
        else:
            grown = {group[0]: (self._closed if reach.asked is None else self._reached)(group[0], reach)}
        for predicate, one in grown.items():
            self.done[predicate] = one.known
            self.rounds.append((predicate, one.counts))

    def _start(self, predicate: Predicate, frame: DataFrame, few: bool = True) -> _Growing:
        first, count = _settled(frame.distinct(), few)
        return _Growing(self.kinds[predicate], [first], first, [count])

    def _fixpoint(self, group: Sequence[Predicate]) -> dict[Predicate, _Growing]:
        """Semi-naive: in each round, every call within the group is once what the last round found."""
        grown: dict[Predicate, _Growing] = {}
        steps: dict[Predicate, list[tuple[Clause, int, Predicate]]] = {}
        for predicate in group:
            own = [(c, at, call) for c in self.wanted.clauses[predicate] for at, call in places(c) if call in group]
            inner = {id(clause) for clause, _, _ in own}
            exits = [c for c in self.wanted.clauses[predicate] if id(c) not in inner]
            steps[predicate] = own
            grown[predicate] = self._start(predicate, self._exits(predicate, exits))
        while any(one.grows for one in grown.values()):
            fresh: dict[Predicate, tuple[DataFrame, int]] = {}
            for predicate in group:
                parts = [
                    self._body(clause).answers(self._reading(grown, at), at)
                    for clause, at, call in steps[predicate]
                    if grown[call].grows
                ]
                found = self._union(predicate, parts)
                fresh[predicate] = grown[predicate].new(found) if parts else (found, 0)
            for predicate, (frame, count) in fresh.items():
                grown[predicate].add(frame, count)
        return grown

    def _reading(self, grown: Mapping[Predicate, _Growing], at: int) -> Callable[[int, Predicate], Relation]:
        def read(place: int, call: Predicate) -> Relation:
            if call not in grown:
                return self.relation(call)
            return grown[call].delta if place == at else grown[call].known

        return read

    def _closed(self, predicate: Predicate, reach: Reach) -> _Growing:
        """A whole closure. What is new after round k has a shortest path of more than 2^(k-1) and at most 2^k steps,

        so that the next round's begin with it: it is joined with all that is known.
        """
        grown = self._start(predicate, self.relation(reach.edge).cast(self.kinds[predicate]), few=False)
        while grown.grows:
            grown.add(*grown.new(_composed(grown.delta, grown.known)))
        return grown

    def _reached(self, predicate: Predicate, reach: Reach) -> _Growing:
        """What is reached from the values asked for. After some rounds there are steps of 2, 4, … edges at once as well."""
        assert reach.asked is not None
        edge, asked, end = self.relation(reach.edge), self.relation(reach.asked), 0 if reach.forwards else 1
        first = asked.frame.select(F.col("c0").alias("a0"))
        begins = same(F.col(f"c{end}"), edge.kinds[end], F.col("a0"), asked.kinds[0])
        starts = Relation(edge.frame.join(first, begins, "left_semi"), edge.kinds)
        grown = self._start(predicate, starts.cast(self.kinds[predicate]))
        steps: list[Relation] = [edge]
        longer: Relation | None = edge
        while grown.grows:
            if len(grown.counts) % _STRIDE == 0 and longer is not None:
                longer = _longer(longer)
                steps += [longer] if longer is not None else []
            delta = grown.delta
            found = [_composed(delta, e) if reach.forwards else _composed(e, delta) for e in steps]
            grown.add(*grown.new(reduce(DataFrame.union, found)))
        return grown


def _composed(left: Relation, right: Relation) -> DataFrame:
    """The pairs that go from the left over what both have between."""
    one = left.frame.select(F.col("c0").alias("x"), F.col("c1").alias("y"))
    other = right.frame.select(F.col("c0").alias("z"), F.col("c1").alias("w"))
    where = same(F.col("y"), left.kinds[1], F.col("z"), right.kinds[0])
    return one.join(other, where).select(F.col("x").alias("c0"), F.col("w").alias("c1"))


def _longer(edges: Relation) -> Relation | None:
    """Steps of twice the length; None where they would be many more."""
    total = edges.frame.count()
    ins = edges.frame.groupBy(F.col("c1").alias("y")).agg(F.count("*").alias("ins"))
    outs = edges.frame.groupBy(F.col("c0").alias("z")).agg(F.count("*").alias("outs"))
    pairs = ins.join(outs, same(F.col("y"), edges.kinds[1], F.col("z"), edges.kinds[0]))
    size = pairs.agg(F.sum(F.col("ins") * F.col("outs"))).collect()[0][0] or 0
    if not 0 < size <= _WIDEST * total:
        return None
    return Relation(_settled(_composed(edges, edges).distinct(), total <= _FEW)[0], edges.kinds)


def _settled(frame: DataFrame, few: bool = False) -> tuple[DataFrame, int]:
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
