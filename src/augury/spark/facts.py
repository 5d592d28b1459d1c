"""Facts of static predicates. Few are fetched and go to every worker; many are joined with the events that ask for them.

    busy(S, R) <- order(S, _) SEQ order(S, _) WHERE store(S, R).

With a million stores, `store` is joined with `order` on its first column before anything else happens, and the rule reads
orders that have R as one more argument. That changes no answer where a pattern takes every pair.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from augury.algebra.nodes import (
    UNRESTRICTED,
    Holds,
    Join,
    Label,
    Node,
    Repeat,
    Rule,
    Scan,
    Select,
    Within,
    bound_vars,
    conditions,
    inputs,
    walk,
    walk_all,
)
from augury.algebra.program import Attribute, Plan, Predicate, static_calls
from augury.algebra.terms import Const, Var, Wild
from augury.clock import Clock, Timestamp
from augury.errors import DataError, nearest
from augury.knowledge.facts import facts_from
from augury.model import Fact
from augury.spark.inputs import Part, Source, as_slot, is_frame, kind_of, retagged

MANY = 100_000  # rows of a DataFrame of facts that are joined rather than sent to every worker


@dataclass(frozen=True)
class Known:
    """The facts of a run, and the plan and sources with those joined that are many."""

    plan: Plan
    sources: list[Source]
    facts: list[Fact]
    joined: tuple[str, ...] = ()


def know(given: Mapping[str, Any] | list[Any], plan: Plan, sources: list[Source], clock: Clock, many: int) -> Known:
    """Facts from Python objects and DataFrames."""
    if not isinstance(given, Mapping):
        return Known(plan, sources, facts_from(given, plan, clock))
    known = Known(plan, sources, [])
    for name, rows in given.items():
        if not is_frame(rows):
            known = replace(known, facts=[*known.facts, *facts_from([(name, rows)], plan, clock)])
            continue
        frame = _named(name, rows, plan)
        fetched = _fetched(frame, many + 1)
        if len(fetched) > many:
            joined = _joined(known, name, frame)
            if joined is not None:
                known = joined
                continue
            warnings.warn(f"the facts `{name}` are more than {many:,} rows, but their use cannot be joined: all of them go to every worker", stacklevel=4)  # fmt: skip
            fetched = _fetched(frame, None)
        known = replace(known, facts=[*known.facts, *facts_from([(name, fetched)], plan, clock)])
    return known


def _named(name: str, rows: DataFrame, plan: Plan) -> DataFrame:
    """The columns of facts in the order of their attributes."""
    declared = plan.static.get(name)
    if declared is None:
        return rows
    missing = [a.name for a in declared if a.name not in rows.columns]
    if missing:
        close = nearest(missing[0], rows.columns)
        raise DataError(
            f"the facts `{name}` have no column `{missing[0]}`", hint=f"there is `{close}`" if close else ""
        )
    return rows.select(*(a.name for a in declared), *(c for c in ("valid_from", "valid_to") if c in rows.columns))


def _fetched(frame: DataFrame, limit: int | None) -> list[dict[str, Any]]:
    """The rows of facts; times as the language has them, whatever the zone of the driver."""
    times = [f.name for f in frame.schema.fields if isinstance(f.dataType, T.TimestampType)]
    plain = frame.select(*(F.unix_micros(f"`{c}`").alias(c) if c in times else F.col(f"`{c}`") for c in frame.columns))
    rows = [row.asDict() for row in (plain if limit is None else plain.limit(limit)).collect()]
    for row in rows if times else ():
        row.update({c: Timestamp(row[c]) for c in times if row[c] is not None})
    return rows


# Joining


@dataclass(frozen=True)
class _Use:
    """A condition that can be joined: the type whose events ask, and what is asked of which column of the facts."""

    type: Predicate
    alias: Predicate
    on: tuple[tuple[int, int], ...]
    fixed: tuple[tuple[int, Const], ...]
    fresh: tuple[int, ...]


def _joined(known: Known, name: str, frame: DataFrame) -> Known | None:
    """The facts joined with the events that ask for them; None where some use is not a condition on one event."""
    arity = len([c for c in frame.columns if c not in ("valid_from", "valid_to")])
    plan, uses = known.plan, list[_Use]()
    if arity < len(frame.columns) or any(c.name == name for c in plan.clauses):
        return None
    rules: list[Rule] = []
    for rule in plan.rules:
        while (found := _first_use(rule, name)) is not None:
            made = _rewritten(rule, *found, f"{found[2].type} with {name} {len(uses) + 1}")
            if made is None:
                return None
            rule, use = made
            uses.append(use)
        rules.append(rule)
    if not uses:
        return None
    aliases = dict(plan.aliases) | {use.alias: use.type for use in uses}
    plan = replace(plan, rules=tuple(rules), aliases=aliases)
    if any(call[0] == name for call in static_calls(plan)):
        return None
    sources = list(known.sources)
    for use in uses:
        source = next((s for s in sources if any(p.type == use.type for p in s.parts)), None)
        if source is not None:
            enriched = _enriched(source, use, name, frame, plan)
            if enriched is None:
                return None
            sources.append(enriched)
    return Known(plan, sources, known.facts, (*known.joined, name))


def _first_use(rule: Rule, name: str) -> tuple[Select, Holds, Scan] | None:
    """A condition on the facts, and a scan that every answer has and that binds what it asks with."""
    nodes = [n for p in (rule.body, *((rule.collect.pattern,) if rule.collect else ())) for n in walk_all(p)]
    if rule.collect is not None or any(isinstance(n, Join | Repeat) and n.policy != UNRESTRICTED for n in nodes):
        return None
    for node in walk(rule.body):
        for condition in conditions(node):
            if isinstance(node, Select) and isinstance(condition, Holds) and condition.name == name:
                rest = replace(node, where=tuple(c for c in node.where if c is not condition))
                bound = bound_vars(_replaced(rule.body, node, rest))
                asked = {a.name for a in condition.args if isinstance(a, Var)} & bound
                for scan in _sure(node.input):
                    if asked and asked <= {a.name for a in scan.args if isinstance(a, Var)}:
                        return node, condition, scan
    return None


def _sure(node: Node) -> Iterator[Scan]:
    """The scans that every row of a pattern has."""
    if isinstance(node, Scan):
        yield node
    elif isinstance(node, Label | Select | Within | Join):
        for part in inputs(node):
            yield from _sure(part)


def _rewritten(rule: Rule, select: Select, condition: Holds, scan: Scan, alias: str) -> tuple[Rule, _Use] | None:
    places = {a.name: i for i, a in reversed(list(enumerate(scan.args))) if isinstance(a, Var)}
    on, fixed, fresh, added = list[tuple[int, int]](), list[tuple[int, Const]](), list[int](), list[Var]()
    for i, arg in enumerate(condition.args):
        match arg:
            case Var() if arg.name in places:
                on.append((places[arg.name], i))
            case Var() if arg not in added:
                fresh.append(i)
                added.append(arg)
            case Const():
                fixed.append((i, arg))
            case Wild():
                pass
            case _:
                return None
    wider = replace(scan, type=alias, args=(*scan.args, *added))
    rest = tuple(c for c in select.where if c is not condition)
    inner = _replaced(select.input, scan, wider)
    body = _replaced(rule.body, select, replace(select, input=inner, where=rest) if rest else inner)
    use = _Use((scan.type, len(scan.args)), (alias, len(wider.args)), tuple(on), tuple(fixed), tuple(fresh))
    return replace(rule, body=body), use


def _replaced(node: Node, old: Node, new: Node) -> Node:
    """A pattern with one of its parts replaced."""
    if node is old:
        return new
    match node:
        case Label() | Select() | Within() | Repeat():
            return replace(node, input=_replaced(node.input, old, new))
        case Join():
            return replace(node, left=_replaced(node.left, old, new), right=_replaced(node.right, old, new))
    return node


def _enriched(source: Source, use: _Use, name: str, facts: DataFrame, plan: Plan) -> Source | None:
    """The events of a type with what the facts say of each; None where columns cannot be compared."""
    part = next(p for p in source.parts if p.type == use.type)
    declared = plan.static.get(name, tuple(Attribute(c) for c in facts.columns))
    types = [f.dataType for f in facts.schema.fields]
    kinds = [kind_of(name, a, t) for a, t in zip(declared, types, strict=True)]
    columns = [f"augury_{name}_{i}" for i in range(len(kinds))]
    table = facts.toDF(*columns)
    where: Column = F.lit(True)
    for at, i in use.on:
        pair = {part.kinds[at], kinds[i]}
        if len(pair) > 1 and not pair <= {"int", "float", "number"}:
            return None
        where &= source.frame[part.columns[at]] == table[columns[i]]
    for i, const in use.fixed:
        slot = retagged(as_slot(table[columns[i]], kinds[i], types[i]), kinds[i], kinds[i])
        if type(const.value) not in (int, float, str) or kinds[i] not in ("int", "float", "number", "string"):
            return None
        where &= slot == F.lit(const.value)
    frame = source.frame
    if source.mixed:
        frame = frame.where(F.col(f"`{source.names.type}`") == use.type[0])
    frame = frame.join(table, where).drop(*(columns[i] for i in range(len(columns)) if i not in use.fresh))
    fresh = tuple(columns[i] for i in use.fresh)
    wider = Part(use.alias, (*part.columns, *fresh), (*part.kinds, *(kinds[i] for i in use.fresh)))
    return Source(frame, (wider,), source.names)
