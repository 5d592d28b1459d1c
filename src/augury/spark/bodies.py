"""The body of a static rule as joins: each condition joins, filters or removes rows, and a column is what a variable is."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, assert_never

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from augury.algebra.nodes import (
    AnyOf,
    Clause,
    Compare,
    Condition,
    Holds,
    NoneInside,
    Relates,
    Relative,
    Spans,
    Unless,
    condition_vars,
)
from augury.algebra.plan import Predicate
from augury.algebra.terms import Aggregate, Apply, Build, Const, Expr, Moment, Prev, Var, Wild, variables
from augury.spark.casts import canonical
from augury.spark.demand import in_order
from augury.spark.layout import NUMBERS, common_kind, sql_type
from augury.spark.relation import NotJoined, Relation, columns, comparable, constant, differ, same

_ORDER: dict[str, Callable[[Any, Any], Column]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def calls(clause: Clause) -> list[Predicate]:
    return [(c.name, len(c.args)) for c in clause.body if isinstance(c, Holds | Unless)]


def places(clause: Clause) -> list[tuple[int, Predicate]]:
    """The conditions of a body that join, with what they ask for."""
    return [(i, (c.name, len(c.args))) for i, c in enumerate(clause.body) if isinstance(c, Holds)]


# Kinds


def kinds_of(
    clauses: Mapping[Predicate, Sequence[Clause]], given: Mapping[Predicate, Relation], goal: Predicate
) -> dict[Predicate, tuple[str, ...]]:
    """The kinds of all arguments: of facts as given, of answers what clauses put into their heads."""
    listed = [c for own in clauses.values() for c in own]
    everything = {goal, *clauses, *given, *(call for c in listed for call in calls(c))}
    found: dict[Predicate, list[str | None]] = {
        p: list(given[p].kinds) if p in given else [None] * p[1] for p in everything
    }
    changed = True
    while changed:
        changed = False
        for clause in listed:
            own = _variable_kinds(clause, found)
            mine = found[clause.name, len(clause.args)]
            for i, arg in enumerate(clause.args):
                new = common_kind(mine[i], _kind(arg, own))
                if new != mine[i]:
                    mine[i], changed = new, True
    return {p: tuple(kind or "json" for kind in kinds) for p, kinds in found.items()}


def _variable_kinds(clause: Clause, known: Mapping[Predicate, Sequence[str | None]]) -> dict[str, str | None]:
    """The kinds that the variables of a clause may have."""
    found: dict[str, str | None] = {}
    for condition in clause.body:
        if isinstance(condition, Holds):
            for arg, kind in zip(condition.args, known[condition.name, len(condition.args)], strict=True):
                if isinstance(arg, Var):
                    found[arg.name] = common_kind(found.get(arg.name), kind)
    for _ in clause.body:  # as often as one variable may be bound by another
        for condition in clause.body:
            if isinstance(condition, Compare) and condition.op == "=":
                for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
                    if isinstance(side, Var):
                        found[side.name] = common_kind(found.get(side.name), _kind(other, found))
    return found


def _kind(expr: Expr, known: Mapping[str, str | None]) -> str | None:
    match expr:
        case Var():
            return known.get(expr.name)
        case Const():
            return None if expr.value is None else constant(expr.value)[1]
        case Wild() | Build() | Apply() | Moment() | Aggregate() | Prev():
            return None
        case _:
            assert_never(expr)


# Bodies


@dataclass
class _Rows:
    """The rows of a body so far: a column and a kind for each variable that is still needed."""

    frame: DataFrame
    names: dict[str, str]
    kinds: dict[str, str]

    def value(self, expr: Expr) -> tuple[Column, str]:
        if isinstance(expr, Var):
            return F.col(self.names[expr.name]), self.kinds[expr.name]
        assert isinstance(expr, Const)
        return constant(expr.value)


class Body:
    """A clause as joins."""

    def __init__(self, clause: Clause, kinds: Mapping[Predicate, tuple[str, ...]], spark: SparkSession) -> None:
        self.clause, self.kinds, self.spark = clause, kinds, spark
        self.fresh = 0

    def check(self) -> None:
        """Comparisons of an order are of values that have one."""
        own = _variable_kinds(self.clause, self.kinds)
        for condition in self.clause.body:
            if isinstance(condition, Compare):
                one, other = (_kind(side, own) or "json" for side in (condition.left, condition.right))
                if "duration" in (one, other) and ({one, other} & (NUMBERS | {"json"})):
                    raise NotJoined("a rule compares a duration with a number")
                if condition.op in _ORDER:
                    comparable(F.lit(0), one, F.lit(0), other)
            elif isinstance(condition, Holds | Unless):
                for arg in condition.args:
                    _kind(arg, own)

    def answers(self, read: Callable[[int, Predicate], Relation], first: int | None = None) -> DataFrame:
        """The answers; `read` gives the facts for the condition at a place, the one at `first` begins."""
        clause, rows = self.clause, None
        order = in_order(clause.body, set(), first)
        for n, at in enumerate(order):
            later = variables(*clause.args).union(*(condition_vars(clause.body[i]) for i in order[n + 1 :]))
            rows = self._step(rows, clause.body[at], at, read, later)
        head = self.kinds[clause.name, len(clause.args)]
        assert rows is not None
        values = [rows.value(arg) for arg in clause.args]
        made = [canonical(v, k, target).cast(sql_type(target)) for (v, k), target in zip(values, head, strict=True)]
        return rows.frame.select(*(m.alias(c) for m, c in zip(made, columns(len(head)), strict=True)))

    def _step(
        self,
        rows: _Rows | None,
        condition: Condition,
        at: int,
        read: Callable[[int, Predicate], Relation],
        later: set[str],
    ) -> _Rows:
        match condition:
            case Holds():
                relation = read(at, (condition.name, len(condition.args)))
                return self._holds(rows, condition.args, relation, later)
            case Unless():
                relation = read(at, (condition.name, len(condition.args)))
                rows = rows or self._one_row()
                facts, names, own = self._facts(condition.args, relation, condition_vars(condition))
                where = [same(*rows.value(Var(v)), F.col(names[v]), own[v]) for v in names]
                return _Rows(rows.frame.join(facts, _all(where), "left_anti"), rows.names, rows.kinds)
            case Compare():
                return self._compare(rows or self._one_row(), condition)
            case AnyOf() | Relates() | Spans() | Relative() | NoneInside():
                raise AssertionError(condition)  # such clauses are not joined
            case _:
                assert_never(condition)

    def _one_row(self) -> _Rows:
        return _Rows(self.spark.range(1).select(F.lit(1).alias("one")), {}, {})

    def _holds(self, rows: _Rows | None, args: Sequence[Expr], relation: Relation, later: set[str]) -> _Rows:
        known = rows.names.keys() if rows is not None else set()
        shared = [v for v in variables(*args) if v in known]
        new = [v for v in sorted(variables(*args)) if v not in known and v in later]
        facts, names, own = self._facts(args, relation, {*shared, *new})
        if rows is None:
            return _Rows(facts, names, own)
        where = _all([same(*rows.value(Var(v)), F.col(names[v]), own[v]) for v in shared])
        frame = rows.frame.join(facts, where, "inner" if new else "left_semi")
        kept = {v: c for v, c in rows.names.items() if v in later} | {v: names[v] for v in new}
        kinds = {v: rows.kinds[v] if v in rows.kinds else own[v] for v in kept}
        return _Rows(frame.select(*(kept.values() or [F.lit(1).alias("one")])), kept, kinds)

    def _facts(
        self, args: Sequence[Expr], relation: Relation, wanted: set[str]
    ) -> tuple[DataFrame, dict[str, str], dict[str, str]]:
        """The facts that an atom asks for, with new names for the columns of those of its variables that are wanted."""
        self.fresh += 1
        where, places = list[Column](), dict[str, int]()
        for i, arg in enumerate(args):
            column, kind = F.col(f"c{i}"), relation.kinds[i]
            if isinstance(arg, Const):
                where.append(same(column, kind, *constant(arg.value)) if arg.value is not None else F.lit(False))
            elif isinstance(arg, Var) and arg.name in places:
                first = places[arg.name]
                where.append(same(column, kind, F.col(f"c{first}"), relation.kinds[first]))
            elif isinstance(arg, Var):
                places[arg.name] = i
        frame = relation.frame.where(_all(where)) if where else relation.frame
        names = {v: f"a{self.fresh}_{i}" for v, i in places.items() if v in wanted}
        picked = [F.col(f"c{places[v]}").alias(name) for v, name in names.items()]
        return (
            frame.select(*(picked or [F.lit(1).alias(f"a{self.fresh}")])),
            names,
            {v: relation.kinds[places[v]] for v in names},
        )

    def _compare(self, rows: _Rows, condition: Compare) -> _Rows:
        if condition.op == "=":
            for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
                if isinstance(side, Var) and side.name not in rows.names:
                    self.fresh += 1
                    value, kind = rows.value(other)
                    name = f"a{self.fresh}"
                    frame = rows.frame.withColumn(name, value)
                    return _Rows(frame, rows.names | {side.name: name}, rows.kinds | {side.name: kind})
        left, right = rows.value(condition.left), rows.value(condition.right)
        if condition.op in ("=", "!="):
            holds = (same if condition.op == "=" else differ)(*left, *right)
        else:
            holds = _ORDER[condition.op](*comparable(*left, *right))
        return _Rows(rows.frame.where(holds), rows.names, rows.kinds)


def _all(conditions: Sequence[Column]) -> Column:
    return reduce(operator.and_, conditions) if conditions else F.lit(True)
