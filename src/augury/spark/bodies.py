"""The body of a static rule as joins: each condition joins, filters or removes rows; each variable is a column."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from augury.algebra.kinds import atoms_in, is_equation
from augury.algebra.nodes import Clause, Compare, Holds, Unless, condition_vars
from augury.algebra.plan import Predicate
from augury.algebra.terms import Const, Expr, Var, variables
from augury.spark.casts import canonical
from augury.spark.demand import in_order
from augury.spark.layout import NUMBERS, common_kind, sql_type
from augury.spark.relation_frames import FactFrame, NotJoined, all_of, columns, comparable, constant, differ, same

_ORDER: dict[str, Callable[[Column, Column], Column]] = {
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
    clauses: Mapping[Predicate, Sequence[Clause]], base: Mapping[Predicate, FactFrame], goal: Predicate
) -> dict[Predicate, tuple[str, ...]]:
    """The kinds of all arguments: of facts those of their columns, of answers what clauses put into their heads."""
    listed = list(chain.from_iterable(clauses.values()))
    everything = {goal, *clauses, *base, *(call for c in listed for call in calls(c))}
    result: dict[Predicate, list[str | None]] = {
        p: list(base[p].kinds) if p in base else [None] * p[1] for p in everything
    }
    changed = True
    while changed:
        changed = False
        for clause in listed:
            variable_kinds, head = _variable_kinds(clause, result), (clause.name, len(clause.args))
            wider = [
                common_kind(kind, _kind(arg, variable_kinds))
                for kind, arg in zip(result[head], clause.args, strict=True)
            ]
            changed, result[head] = changed or wider != result[head], wider
    return {p: tuple(kind or "json" for kind in kinds) for p, kinds in result.items()}


def _variable_kinds(clause: Clause, kinds: Mapping[Predicate, Sequence[str | None]]) -> dict[str, str | None]:
    """The kinds that the variables of a clause may have."""
    result: dict[str, str | None] = {}
    for condition in clause.body:
        if isinstance(condition, Holds):
            for arg, kind in zip(condition.args, kinds[condition.name, len(condition.args)], strict=True):
                if isinstance(arg, Var):
                    result[arg.name] = common_kind(result.get(arg.name), kind)
    for _ in clause.body:  # as often as one variable may be bound by another
        for condition in clause.body:
            if is_equation(condition):
                for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
                    if isinstance(side, Var):
                        result[side.name] = common_kind(result.get(side.name), _kind(other, result))
    return result


def _kind(expr: Expr, kinds: Mapping[str, str | None]) -> str | None:
    if isinstance(expr, Var):
        return kinds.get(expr.name)
    return constant(expr.value)[1] if isinstance(expr, Const) and expr.value is not None else None


# Bodies


@dataclass
class _Rows:
    """The rows of a body so far: a column and its kind for each variable that is still needed."""

    frame: DataFrame
    values: dict[str, tuple[Column, str]]

    def value(self, expr: Expr) -> tuple[Column, str]:
        if isinstance(expr, Var):
            return self.values[expr.name]
        assert isinstance(expr, Const)
        return constant(expr.value)


class ClauseJoins:
    """A clause as joins."""

    def __init__(self, clause: Clause, kinds: Mapping[Predicate, tuple[str, ...]], spark: SparkSession) -> None:
        self.clause, self.kinds, self.spark = clause, kinds, spark
        self.fresh = 0

    def check(self) -> None:
        """Comparisons of an order are of values that have one."""
        variable_kinds = _variable_kinds(self.clause, self.kinds)
        for condition in self.clause.body:
            if isinstance(condition, Compare):
                left, right = (_kind(side, variable_kinds) or "json" for side in (condition.left, condition.right))
                if "duration" in (left, right) and ({left, right} & (NUMBERS | {"json"})):
                    raise NotJoined("a rule compares a duration with a number")
                if condition.op in _ORDER:
                    comparable(F.lit(0), left, F.lit(0), right)
        for atom in (atom for condition in self.clause.body for atom in atoms_in(condition)):
            for arg in atom.args:
                _kind(arg, variable_kinds)

    def answers(self, read: Callable[[int, Predicate], FactFrame], first: int | None = None) -> DataFrame:
        """The answers; `read` gives the facts for the condition at a place, the one at `first` begins."""
        clause, rows = self.clause, None
        order = in_order(clause.body, set(), first)
        for n, position in enumerate(order):
            condition = clause.body[position]
            if isinstance(condition, Holds | Unless):
                later = variables(*clause.args).union(*(condition_vars(clause.body[i]) for i in order[n + 1 :]))
                rows = self._join(rows, condition, read(position, (condition.name, len(condition.args))), later)
            else:
                assert isinstance(condition, Compare)  # a clause with others is not plain
                rows = self._compare(rows or self._one_row(), condition)
        head = self.kinds[clause.name, len(clause.args)]
        assert rows is not None
        values = [rows.value(arg) for arg in clause.args]
        made = [canonical(v, k, target).cast(sql_type(target)) for (v, k), target in zip(values, head, strict=True)]
        return rows.frame.select(*(m.alias(c) for m, c in zip(made, columns(len(head)), strict=True)))

    def _one_row(self) -> _Rows:
        return _Rows(self.spark.range(1).select(F.lit(1).alias("one")), {})

    def _join(self, rows: _Rows | None, atom: Holds | Unless, relation: FactFrame, later: set[str]) -> _Rows:
        """The rows with what the facts of an atom add, or those of which it has none."""
        bound = set(rows.values) if rows is not None else set()
        asked = variables(*atom.args)
        new = (asked & later) - bound
        self.fresh += 1
        facts = _Rows(*relation.asked(atom.args, (asked & bound) | new, f"a{self.fresh}_"))
        if rows is None and isinstance(atom, Holds):
            return facts
        rows = rows or self._one_row()
        meet = all_of(same(*rows.values[v], *value) for v, value in facts.values.items() if v in bound)
        how = "left_anti" if isinstance(atom, Unless) else "inner" if new else "left_semi"
        kept = {v: value for v, value in {**facts.values, **rows.values}.items() if v in later}
        picked = [column for column, _ in kept.values()] or [F.lit(1).alias("one")]
        return _Rows(rows.frame.join(facts.frame, meet, how).select(*picked), kept)

    def _compare(self, rows: _Rows, condition: Compare) -> _Rows:
        if condition.op == "=":
            for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
                if isinstance(side, Var) and side.name not in rows.values:
                    self.fresh += 1
                    value, kind = rows.value(other)
                    name = f"a{self.fresh}"
                    bound = {side.name: (F.col(name), kind)}
                    return _Rows(rows.frame.withColumn(name, value), rows.values | bound)
        left, right = rows.value(condition.left), rows.value(condition.right)
        if condition.op in ("=", "!="):
            holds = (same if condition.op == "=" else differ)(*left, *right)
        else:
            holds = _ORDER[condition.op](*comparable(*left, *right))
        return _Rows(rows.frame.where(holds), rows.values)
