"""Facts of static predicates. Few are fetched and go to every worker; many are joined with the events that ask for them.

    busy(S, R) <- order(S, _) SEQ order(S, _) WHERE store(S, R).

With a million stores, `store` is joined with `order` on its first column before anything else happens, and the rule reads
orders that have R as one more argument. That changes no answer where a pattern takes every pair. Static rules over such facts
are answered by joins as well (`rules.py`): those that recur start from the values that the events have.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from augury.algebra.kinds import chooses
from augury.algebra.nodes import (
    Either,
    Every,
    Graph,
    Holds,
    Instant,
    Join,
    Label,
    Node,
    Repeat,
    Rule,
    Run,
    Scan,
    Select,
    SessionWindow,
    Unfold,
    Within,
    bound_vars,
    conditions,
    inputs,
    mapped,
    walk,
    walk_all,
)
from augury.algebra.plan import Attribute, Plan, Predicate, static_calls
from augury.algebra.terms import Const, Var, Wild
from augury.core.clock import Clock, Timestamp
from augury.core.errors import RunError
from augury.core.model import Fact
from augury.knowledge.facts import Facts, check_facts, facts_from
from augury.knowledge.timeline import StatementTable
from augury.sources.heading import FactHeading
from augury.spark.casts import as_spark, canonical, cast
from augury.spark.conversions import from_column
from augury.spark.demand import recursive
from augury.spark.inputs import EventFrame, TypeColumns, is_frame
from augury.spark.layout import NUMBERS, common_kind, declared_kind, sql_type
from augury.spark.nested import functor_of
from augury.spark.relation_frames import FactFrame, NotJoined, all_of, constant, same, united
from augury.spark.rules import Seeds, StaticRules

BROADCAST = 100_000  # rows of a DataFrame of facts that are joined rather than sent to every worker
MOST = 5_000_000  # rows that can be sent at all


@dataclass(frozen=True)
class FactPlan:
    """The facts of a run, and the plan and sources with those joined that are many.

    `joined` names the DataFrames that were; `streams` are those that bring facts while the run lasts.
    """

    plan: Plan
    sources: list[EventFrame]
    facts: Facts
    joined: tuple[str, ...] = ()
    streams: dict[str, DataFrame] = field(default_factory=dict)


def plan_facts(
    facts_by_name: Mapping[str, Any] | Sequence[Any],
    plan: Plan,
    sources: list[EventFrame],
    clock: Clock,
    many: int,
    other_facts: Facts | None = None,
) -> FactPlan:
    """Facts from Python objects and DataFrames. Rules may also read the `other_facts` of the run."""
    if not isinstance(facts_by_name, Mapping):
        return FactPlan(plan, sources, facts_from(facts_by_name, plan, clock))
    facts, big, streams = Facts(), dict[str, DataFrame | FactFrame](), dict[str, DataFrame]()
    for name, rows in facts_by_name.items():
        if is_frame(rows) and rows.isStreaming:
            streams[name] = rows
        elif is_frame(rows) or isinstance(rows, FactFrame):
            frame = rows if isinstance(rows, FactFrame) else _named(name, rows, plan)
            few = _fetched(name, frame, plan, clock, many)
            if few is None:
                big[name] = frame
            else:
                facts += few
        else:
            facts += facts_from([(name, rows)], plan, clock)
    fact_plan = FactPlan(plan, sources, facts, streams=streams)
    return _ManyFacts(fact_plan, big, other_facts or Facts(), many).plan_of(clock) if big else fact_plan


def _named(name: str, rows: DataFrame, plan: Plan) -> DataFrame:
    """The columns of facts in the order of their attributes, and those that say when a fact holds."""
    if name not in plan.static:
        return rows
    heading = FactHeading(name, tuple(rows.columns), plan)
    heading.check()
    return rows.select(*(f"`{c}`" for c in heading.used))


def _aside(name: str, frame: DataFrame, plan: Plan) -> list[str]:
    """The columns that say when a fact holds."""
    heading = FactHeading(name, tuple(frame.columns), plan)
    return [c for c in frame.columns if c not in heading.data and heading.column_for(c)]


def _fetched(
    name: str, frame: DataFrame | FactFrame, plan: Plan, clock: Clock, many: int | None = None
) -> Facts | None:
    """The facts on the driver, None where they are more than `many`; times as the language has them, in any zone."""
    if isinstance(frame, FactFrame):
        table = (frame if many is None else replace(frame, frame=frame.frame.limit(many + 1))).table(name)
        return None if many is not None and len(table) > many else Facts([StatementTable(table)])
    times = [f.name for f in frame.schema.fields if isinstance(f.dataType, T.TimestampType)]
    plain = frame.select(*(F.unix_micros(f"`{c}`").alias(c) if c in times else F.col(f"`{c}`") for c in frame.columns))
    rows = [row.asDict() for row in (plain if many is None else plain.limit(many + 1)).collect()]
    if many is not None and len(rows) > many:
        return None
    for row in rows if times else ():
        row.update({c: Timestamp(row[c]) for c in times if row[c] is not None})
    return facts_from([(name, rows)], plan, clock)


# Which facts are joined


class _ManyFacts:
    """Facts that are many: joined where every condition that rests on them can be, else sent."""

    def __init__(
        self, fact_plan: FactPlan, big: Mapping[str, DataFrame | FactFrame], other_facts: Facts, many: int
    ) -> None:
        self.known, self.plan, self.big, self.many = fact_plan, fact_plan.plan, big, many
        self.sent: dict[str, str] = {}  # and why
        frames: dict[Predicate, DataFrame | FactFrame] = {}
        for name, frame in big.items():
            aside = [] if isinstance(frame, FactFrame) else _aside(name, frame, self.plan)
            if aside:
                self.sent[name] = f"they change in time, by `{aside[0]}`"
            arity = len(frame.kinds) if isinstance(frame, FactFrame) else len(frame.columns) - len(aside)
            check_facts([Fact(name, (None,) * arity)], self.plan)
            frames[name, arity] = frame
        self.rules = StaticRules(self.plan, frames, fact_plan.facts + other_facts, {*self.sent, *fact_plan.streams})

    def plan_of(self, clock: Clock) -> FactPlan:
        """The run with what can be joined joined, and the rest sent."""
        while True:
            try:
                plan, uses = self._rewritten()
                break
            except _Refused as refused:
                self.sent |= dict.fromkeys(self._below(refused.predicate) - self.sent.keys(), refused.reason)
        sources = self._enriched(uses)
        left = self._asked(plan)
        facts = self.known.facts
        for name in [n for n in self.big if n in {p[0] for p in left}]:
            facts += self._send(name, clock)
        if uses:
            plan, facts = _without_unasked(plan, facts, self._asked(self.plan), left)
        joined = tuple(
            n for n in self.big if any(n in self._below(use.predicate) for use in uses) and n not in self.sent
        )
        return FactPlan(plan, sources, facts, joined, self.known.streams)

    def _below(self, predicate: Predicate) -> set[str]:
        return {name for name, _ in self.rules.reads(predicate)} & self.big.keys()

    def _asked(self, plan: Plan) -> set[Predicate]:
        """What the conditions of rules rest on."""
        return set[Predicate]().union(*(self.rules.reads(call) for call in static_calls(replace(plan, clauses=()))))

    def _send(self, name: str, clock: Clock) -> Facts:
        frame, reason = self.big[name], self.sent.get(name, "")
        count = (frame.frame if isinstance(frame, FactFrame) else frame).count()
        if count > MOST:
            raise RunError(
                f"the facts `{name}` are {count:,} rows, too many to send to every worker, and cannot be joined: {reason}",
                hint="ask for them in a condition on one event, or keep those rows only that the program needs",
            )
        warnings.warn(
            f"the facts `{name}` are more than {self.many:,} rows, but their use cannot be joined ({reason}): all of them go to every worker",
            stacklevel=6,
        )
        return _fetched(name, frame, self.plan, clock) or Facts()

    def _rewritten(self) -> tuple[Plan, list[_FactUse]]:
        """The rules with joined events in place of conditions; one that cannot be joined is refused."""
        asked = sorted(static_calls(replace(self.plan, clauses=())))
        wanted = [p for p in asked if self._below(p) - self.sent.keys()]
        uses: list[_FactUse] = []
        kinds: dict[Predicate, tuple[str, ...]] = {}
        for predicate in wanted:
            try:
                kinds[predicate] = self.rules.check(predicate)
            except NotJoined as problem:
                raise _Refused(predicate, str(problem)) from None
        rules: list[Rule] = []
        aliases: dict[Predicate, Predicate] = dict(self.plan.aliases)
        for rule in self.plan.rules:
            while (use_of_facts := _first_use(rule, wanted, self._inputs)) is not None:
                condition, scan = use_of_facts[1], use_of_facts[2]
                event_type = aliases.get((scan.type, len(scan.args)), (scan.type, len(scan.args)))
                made = _rewritten(rule, *use_of_facts, f"{event_type[0]} with {condition.name} {len(uses) + 1}")
                if made is None:
                    raise _Refused(
                        (condition.name, len(condition.args)),
                        "a condition asks for a nested term, or twice for one variable",
                    )
                rule, use = made
                uses.append(use)
                aliases[use.alias] = event_type
            rules.append(rule)
        plan = replace(self.plan, rules=tuple(rules), aliases=aliases)
        for predicate in sorted(static_calls(replace(plan, clauses=())) & set(wanted)):
            raise _Refused(predicate, "not every condition that asks for them is one on a single event")
        self._check_kinds(uses, kinds)
        return plan, uses

    def _inputs(self, scan: Scan) -> bool:
        """Whether all events of a scan are those of a DataFrame."""
        type = (scan.type, len(scan.args))
        return type not in self.plan.derived and not any(
            s.facts_of and any(p.type == type for p in s.parts) for s in self.known.sources
        )

    def _check_kinds(self, uses: Sequence[_FactUse], kinds: Mapping[Predicate, tuple[str, ...]]) -> None:
        """Columns that are compared have values that can be."""
        parts = {p.type: p.kinds for s in self.known.sources for p in s.parts}
        for use in uses:
            event_kinds, asked = parts.get(use.type), kinds[use.predicate]
            if event_kinds is None:  # there are no events of the type
                continue
            if self.rules.opaque(use.predicate) & {i for i, _ in use.bound}:
                raise _Refused(use.predicate, "they have nested terms or lists there")
            for i, arg in use.bound:
                if isinstance(arg, Const):
                    try:
                        constant(arg.value)
                    except NotJoined as problem:
                        raise _Refused(use.predicate, str(problem)) from None
                    continue
                kind, nested = (
                    event_kinds[use.on[arg.name]],
                    event_kinds[use.on[arg.name]].startswith(("nested:", "json")),
                )
                if kind != asked[i] and not {kind, asked[i]} <= NUMBERS and (nested or asked[i] != "json"):
                    raise _Refused(use.predicate, f"they have {asked[i]} where the events have {kind}")
                if nested:
                    raise _Refused(use.predicate, "the events have nested terms or lists there")
            declared = self.plan.static.get(use.predicate[0], ())
            parts[use.alias] = (*event_kinds, *_joined_kinds(use, asked, declared).values())

    # Joins

    def _enriched(self, uses: Sequence[_FactUse]) -> list[EventFrame]:
        sources = list(self.known.sources)
        answers: dict[Predicate, FactFrame] = {}  # by the type of the events that have them
        for use in uses:
            source = _source_of(use, sources)
            if source is None:
                continue
            if use.alias not in answers:
                alike = [u for u in uses if u.predicate == use.predicate and u.places == use.places]
                asking = [(u, s) for u in alike if (s := _source_of(u, sources)) is not None and u.alias not in answers]
                answers |= dict.fromkeys([u.alias for u, _ in asking], self._answers(use, asking))
            sources.append(_joined(source, use, answers[use.alias], self.plan.static.get(use.predicate[0], ())))
        return sources

    def _answers(self, use: _FactUse, asking: Sequence[tuple[_FactUse, EventFrame]]) -> FactFrame:
        """The answers that some uses ask for: of a predicate that recurs, those for the values that events have."""
        deep = use.predicate in recursive(self.rules.clauses)
        if not deep or any(s.frame.isStreaming for _, s in asking):
            return self.rules.answers(use.predicate)
        return self.rules.answers(use.predicate, Seeds(use.places, united([_values(u, s) for u, s in asking])))


class _Refused(Exception):
    """A predicate that is not joined, and why."""

    def __init__(self, predicate: Predicate, reason: str) -> None:
        super().__init__(reason)
        self.predicate, self.reason = predicate, reason


def _source_of(use: _FactUse, sources: Sequence[EventFrame]) -> EventFrame | None:
    return next((s for s in sources if any(p.type == use.type for p in s.parts)), None)


def _without_unasked(plan: Plan, facts: Facts, before: set[Predicate], after: set[Predicate]) -> tuple[Plan, Facts]:
    """Without the clauses and facts that were there for conditions that are joined now."""
    gone = before - after
    clauses = tuple(c for c in plan.clauses if (c.name, len(c.args)) not in gone)
    return replace(plan, clauses=clauses), Facts(t for t in facts.statement_tables if t.predicate not in gone)


# Conditions that can be joined


@dataclass(frozen=True)
class _FactUse:
    """A condition that can be joined, and the type whose events ask: `on` says at which argument they bind a variable.

    `fresh` are the variables that facts bind, with their arguments of the predicate.
    """

    condition: Holds
    type: Predicate
    alias: Predicate
    on: Mapping[str, int]
    fresh: Mapping[str, int]

    @property
    def predicate(self) -> Predicate:
        return self.condition.name, len(self.condition.args)

    @property
    def bound(self) -> list[tuple[int, Var | Const]]:
        """The arguments that are bound: by events, or constants."""
        args = enumerate(self.condition.args)
        return [(i, a) for i, a in args if isinstance(a, Const) or (isinstance(a, Var) and a.name in self.on)]

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(i for i, _ in self.bound)


def _first_use(
    rule: Rule, wanted: Sequence[Predicate], usable: Callable[[Scan], bool]
) -> tuple[Select, Holds, Scan] | None:
    """A condition on a predicate, and a scan that every answer has and that binds what it asks with."""
    nodes = [n for p in rule.patterns for n in walk_all(p)]
    if rule.collects or any(chooses(n) for n in nodes):
        return None
    for node in walk(rule.body):
        for condition in conditions(node):
            if (
                isinstance(node, Select)
                and isinstance(condition, Holds)
                and (condition.name, len(condition.args)) in wanted
            ):
                remaining = replace(node, where=tuple(c for c in node.where if c is not condition))
                bound = bound_vars(_replaced(rule.body, node, remaining))
                asked = {a.name for a in condition.args if isinstance(a, Var)} & bound
                for scan in _sure(node.input):
                    if asked and usable(scan) and asked <= {a.name for a in scan.args if isinstance(a, Var)}:
                        return node, condition, scan
    return None


def _sure(node: Node) -> Iterator[Scan]:
    """The scans that every row of a pattern has."""
    match node:
        case Scan():
            yield from () if node.held is not None else (node,)
        case Label() | Select() | Within() | Join():
            for part in inputs(node):
                yield from _sure(part)
        case Instant() | Every() | Either() | Repeat() | Graph() | Unfold() | Run() | SessionWindow():
            pass
        case _:
            assert_never(node)


def _rewritten(rule: Rule, select: Select, condition: Holds, scan: Scan, alias: str) -> tuple[Rule, _FactUse] | None:
    places = {a.name: i for i, a in reversed(list(enumerate(scan.args))) if isinstance(a, Var)}
    on, fresh = dict[str, int](), dict[str, int]()
    for i, arg in enumerate(condition.args):
        match arg:
            case Var() if arg.name in places:
                on[arg.name] = places[arg.name]
            case Var() if arg.name not in fresh:
                fresh[arg.name] = i
            case Const() | Wild():
                pass
            case _:
                return None
    added = [condition.args[i] for i in fresh.values()]
    wider = replace(scan, type=alias, args=(*scan.args, *added))
    remaining = tuple(c for c in select.where if c is not condition)
    inner = _replaced(select.input, scan, wider)
    body = _replaced(rule.body, select, replace(select, input=inner, where=remaining) if remaining else inner)
    use = _FactUse(condition, (scan.type, len(scan.args)), (alias, len(wider.args)), on, fresh)
    return replace(rule, body=body), use


def _replaced(node: Node, old: Node, new: Node) -> Node:
    """A pattern with one of its parts replaced."""
    return new if node is old else mapped(node, lambda part: _replaced(part, old, new))


# Events with what facts say of them


def _events(source: EventFrame, type: Predicate) -> DataFrame:
    part = next(p for p in source.parts if p.type == type)
    return source.frame.where(F.col(f"`{source.names.type}`") == part.says) if source.mixed else source.frame


def _asks(source: EventFrame, use: _FactUse) -> dict[str, tuple[Column, str]]:
    """The variables that events bind: their columns, and the kinds of these."""
    part, bound = next(p for p in source.parts if p.type == use.type), dict[str, tuple[Column, str]]()
    for name, index in use.on.items():
        column, kind = part.columns[index], part.kinds[index]
        zone = source.zones.get(use.type[0], "")
        cell = from_column(kind, F.col(f"`{column}`"), source.fields[column], source.prefixes, zone, functor_of(column))
        bound[name] = (cell, kind)
    return bound


def _values(use: _FactUse, source: EventFrame) -> FactFrame:
    """The values with which events ask, and the constants beside them."""
    asks = _asks(source, use)
    bound = [constant(arg.value) if isinstance(arg, Const) else asks[arg.name] for _, arg in use.bound]
    made = [column.cast(sql_type(kind)).alias(f"c{n}") for n, (column, kind) in enumerate(bound)]
    return FactFrame(_events(source, use.type).select(*made).distinct(), tuple(kind for _, kind in bound))


def _joined(source: EventFrame, use: _FactUse, facts: FactFrame, declared: Sequence[Attribute]) -> EventFrame:
    """The events of a type with what the facts say of each, in columns of the same types as if they were not joined."""
    part = next(p for p in source.parts if p.type == use.type)
    kinds = _joined_kinds(use, facts.kinds, declared)
    names = {v: f"augury {use.alias[0]} {i}" for v, i in use.fresh.items()}
    asks, events = _asks(source, use), _events(source, use.type)
    table, answers = facts.asked(use.condition.args, {*asks, *names}, "augury fact ")
    made = [_as_event(*answers[v], kinds[v]).alias(name) for v, name in names.items()]
    frame = events.join(table, all_of(same(*asks[v], *answers[v]) for v in asks))
    frame = frame.select(*(f"`{c}`" for c in events.columns), *made)
    more = TypeColumns(use.alias, (*part.columns, *names.values()), (*part.kinds, *kinds.values()))
    return replace(source, frame=frame, parts=(more,), mixed=False)


def _joined_kinds(use: _FactUse, kinds: Sequence[str], declared: Sequence[Attribute]) -> dict[str, str]:
    """The kinds of columns that have what facts say: the declared ones where these hold their values."""
    targets = {v: declared_kind(declared[i].type) if declared else "json" for v, i in use.fresh.items()}
    return {v: t if common_kind(kinds[use.fresh[v]], t) == t else kinds[use.fresh[v]] for v, t in targets.items()}


def _as_event(column: Column, kind: str, target: str) -> Column:
    """What facts say, as a column of events."""
    return cast(column, kind, target) if target == "json" else as_spark(canonical(column, kind, target), target)
