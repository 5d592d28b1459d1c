"""Events of all types in one table: every argument in a column of its family, which types share.

    wind(loc: string, speed: float), fire(loc: string)   →   type | start | end | s0 | d0

The kind of an argument says how a value of the language is kept in a column, and how it is read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Literal, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from augury.algebra.kinds import of_kind
from augury.algebra.nodes import (
    AnyOf,
    Compare,
    Holds,
    NoneInside,
    Relates,
    Relative,
    Rule,
    Run,
    Scan,
    Spans,
    Unless,
    conditions,
    walk,
    walk_all,
)
from augury.algebra.partial_sums import TOTAL
from augury.algebra.plan import Plan, Predicate
from augury.algebra.terms import FILTERED, Aggregate, Apply, Build, Const, Expr, Moment, Prev, Var, Wild
from augury.core.clock import Clock, Duration, Timestamp
from augury.core.model import Iri, Value, type_name
from augury.engine.decoding import from_tagged
from augury.planner.cut_rules import is_part
from augury.sources import Batch, Coded
from augury.storage.unique import unique

Kind = Literal["int", "float", "number", "bool", "string", "iri", "timestamp", "duration", "json"]
Family = Literal["long", "double", "string", "json"]
JOINT = "\x1f"  # between the ids of a trace; lists are slow on their way into a worker
FAMILY: dict[str, Family] = {
    "int": "long", "bool": "long", "timestamp": "long", "duration": "long", "float": "double", "number": "double",
    "string": "string", "iri": "string", "json": "json",
}  # fmt: skip
_TOTAL_OF = "total of "  # before the kind of what is added up: such a sum is text
FAMILY |= {_TOTAL_OF + kind: "string" for kind in FAMILY}
_ARROW = {"l": pa.int64(), "d": pa.float64(), "s": pa.string()}
_SQL = {"l": "bigint", "d": "double", "s": "string"}
NUMBERS = frozenset({"int", "float", "number"})


@dataclass(frozen=True)
class Layout:
    """Where each argument of each type is."""

    kinds: Mapping[Predicate, tuple[str, ...]]

    @cached_property
    def types(self) -> tuple[Predicate, ...]:
        """The types; the place of one is its code."""
        return tuple(sorted(self.kinds))

    @cached_property
    def codes(self) -> dict[Predicate, int]:
        return {type: code for code, type in enumerate(self.types)}

    @cached_property
    def slots(self) -> dict[Predicate, tuple[str, ...]]:
        """The columns of the arguments of each type."""
        result: dict[Predicate, tuple[str, ...]] = {}
        for type, kinds in self.kinds.items():
            used = dict.fromkeys("lds", 0)
            names = []
            for kind in kinds:
                letter = _letter(kind)
                names.append(f"{letter}{used[letter]}")
                used[letter] += 1
            result[type] = tuple(names)
        return result

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """All columns of arguments."""
        return tuple(sorted({name for names in self.slots.values() for name in names}))

    def sql(self, column: str) -> str:
        """The Spark type of a column."""
        return _SQL[column[0]]

    def arrow(self, column: str) -> pa.DataType:
        return _ARROW[column[0]]


def _letter(kind: str) -> str:
    return {"long": "l", "double": "d"}.get(FAMILY[kind], "s")


def sql_type(kind: str) -> str:
    """The Spark type of a column that keeps values of a kind."""
    return _SQL[_letter(kind)]


# What kinds the arguments of derived events have


def kinds_of_all(
    plan: Plan, inputs: Mapping[Predicate, Sequence[str | None]], clock: Clock, exact: bool = False
) -> dict[Predicate, tuple[str, ...]]:
    """The kinds of all types: of inputs as given, of derived ones by what their rules put into their heads.

    Where a rule gives integers and floats in one place, `exact` keeps each as it is, as JSON, as the events of parts of
    rules always do; else they are all doubles.
    """
    result: dict[Predicate, list[str | None]] = {t: [None] * t[1] for t in plan.event_types}
    for type, kinds in inputs.items():
        result[type] = list(kinds)
    changed = True
    while changed:
        changed = False
        for rule in plan.rules:
            scope = _KindScope(rule, plan, result, clock)
            mine = result[rule.predicate]
            for i, arg in enumerate(rule.args):
                new = common_kind(mine[i], scope.kind(arg))
                if new != mine[i]:
                    mine[i], changed = new, True
    widened = {type for type in plan.derived if exact or is_part(type)}
    return {
        type: tuple(("json" if kind == "number" and type in widened else kind) or "json" for kind in kinds)
        for type, kinds in result.items()
    }


def common_kind(kind: str | None, other: str | None) -> str | None:
    """The kind of values of either kind."""
    if kind is None or other is None or kind == other:
        return kind or other
    return "number" if kind in NUMBERS and other in NUMBERS else "json"


class _KindScope:
    """The kinds of the variables of a rule."""

    def __init__(self, rule: Rule, plan: Plan, kinds: Mapping[Predicate, Sequence[str | None]], clock: Clock) -> None:
        self.plan, self.clock = plan, clock
        self.vars: dict[str, str | None] = {}
        self.bound: dict[str, list[Expr]] = {}
        patterns = rule.patterns
        everywhere = [n for p in patterns for n in walk_all(p)]
        for scan in (n for p in patterns for n in of_kind(walk(p), Scan)):
            for i, arg in enumerate(scan.args):
                kind = kinds[scan.predicate][i] if scan.held is None else self._kind_of_fact(scan.held[0], i)
                if isinstance(arg, Var):
                    self.vars[arg.name] = common_kind(self.vars.get(arg.name), kind)
                elif isinstance(arg, Build):
                    self._open(arg)
        for run in of_kind(everywhere, Run):
            self.bound |= {result.name: [result.aggregate] for result in run.results}
        self.bound |= {name: [aggregate] for name, aggregate in rule.totals.items()}
        if rule.top is not None and rule.top.place is not None:
            self.vars[rule.top.place] = "int"
        where = [c for n in everywhere for c in conditions(n)] + list(rule.outer_conditions)
        for condition in where:
            match condition:
                case Holds():
                    for i, arg in enumerate(condition.args):
                        if isinstance(arg, Var) and arg.name not in self.vars:
                            self.vars[arg.name] = self._kind_of_fact(condition.name, i)
                case Compare(op="="):
                    for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
                        if isinstance(side, Var):
                            self.bound.setdefault(side.name, []).append(other)
                        elif isinstance(side, Build):
                            self._open(side)
                case Compare() | Unless() | AnyOf() | Relates() | Spans() | Relative() | NoneInside():
                    pass
                case _:
                    assert_never(condition)

    def _kind_of_fact(self, predicate: str, argument: int) -> str:
        attributes = self.plan.static.get(predicate, ())
        return declared_kind(attributes[argument].type if argument < len(attributes) else "any")

    def _open(self, term: Build) -> None:
        """What stands inside a nested term may be anything."""
        for arg in term.args:
            if isinstance(arg, Var):
                self.vars[arg.name] = "json"
            elif isinstance(arg, Build):
                self._open(arg)

    def kind(self, expr: Expr) -> str | None:
        match expr:
            case Const():
                return None if expr.value is None else value_kind(expr.value)
            case Var():
                if expr.name not in self.vars and expr.name in self.bound:
                    others = self.bound.pop(expr.name)  # once: it may be bound by itself
                    self.vars[expr.name] = reduce(common_kind, map(self.kind, others), None)
                return self.vars.get(expr.name)
            case Moment():
                if self.clock.kind == "logical":
                    return "int"
                return "duration" if expr.which in ("duration", "length") else "timestamp"
            case Aggregate():
                if expr.function.removesuffix(FILTERED) in (
                    "min",
                    "max",
                    "first",
                    "last",
                    "sum",
                    "mode",
                    "nth",
                    "arg_max",
                    "arg_min",
                ):
                    arg = expr.args[0] if expr.args else None
                    if isinstance(arg, Build):
                        arg = arg.args[0]
                    return self.kind(arg) if arg is not None else None
                if expr.function == TOTAL:
                    kind = self.kind(expr.args[0])
                    return kind and _TOTAL_OF + kind
                if expr.function in ("#sum", "#avg"):
                    return self._of_total(expr)
                result = self.plan.aggregates[expr.function].result
                return "json" if expr.function == "avg" and self._times(expr.args) else declared_kind(result)
            case Apply():
                return self._apply(expr)
            case Wild() | Build() | Prev():
                return "json"
            case _:
                assert_never(expr)

    def _of_total(self, expr: Aggregate) -> str | None:
        """The kind of a sum, or a mean, of sums as text, which say what they are sums of."""
        kind = self.kind(expr.args[0])
        kind = None if kind is None else kind.removeprefix(_TOTAL_OF)
        return kind if kind is None or expr.function == "#sum" else "float" if kind in NUMBERS else "json"

    def _times(self, args: Iterable[Expr]) -> bool:
        return any(self.kind(a) not in NUMBERS | {None} for a in args)

    def _apply(self, expr: Apply) -> str | None:
        kinds = [self.kind(a) for a in expr.args]
        if expr.function == "if":
            return reduce(common_kind, kinds[1:], None)
        if expr.function in ("+", "-", "*", "mod"):
            if None in kinds:
                return None
            if all(k == "int" for k in kinds):
                return "int"
            if all(k in NUMBERS for k in kinds):
                return "number" if "number" in kinds else "float"
            return _time_kind(expr.function, kinds)
        if expr.function == "/":
            return None if None in kinds else "float" if all(k in NUMBERS for k in kinds) else "json"
        if expr.function in ("min", "max", "abs", "coalesce"):
            return reduce(common_kind, kinds, None)
        return declared_kind(self.plan.functions[expr.function].result)


def _time_kind(function: str, kinds: Sequence[str | None]) -> str:
    match function, sorted(str(k) for k in kinds):
        case (("+" | "-"), ["duration", "timestamp"]):
            return "timestamp"
        case ("-", ["timestamp", "timestamp"]) | (("+" | "-"), ["duration", "duration"]) | ("-", ["duration"]):
            return "duration"
        case "*", ["duration", other] if other in NUMBERS:
            return "duration"
    return "json"


def declared_kind(type: str) -> str:
    """The kind of a declared type."""
    return type if type in FAMILY else "json"


def value_kind(value: Value) -> str:
    return declared_kind(type_name(value))


# From Arrow to the engine


def _listed(trace: str | None) -> list[str] | None:
    """The ids of a trace; that of an event without inputs, such as a window in which nothing happened, has none."""
    if trace is None:
        return None
    return trace.split(JOINT) if trace else []


def batches(table: pa.Table, layout: Layout, extra: Sequence[str] = ()) -> dict[Predicate, Batch]:
    """The events of a table by type; columns in `extra` are further arguments of every event."""
    codes = table.column("type").to_numpy()
    result: dict[Predicate, Batch] = {}
    names = set(table.column_names)
    for code in unique(codes).tolist():
        rows = np.flatnonzero(codes == code)
        part = table if len(rows) == len(codes) else table.take(pa.array(rows))
        name, arity = layout.types[code]
        columns: list[Any] = []
        for slot, kind in zip(layout.slots[name, arity], layout.kinds[name, arity], strict=True):
            empty = pa.nulls(len(rows), layout.arrow(slot))
            columns.append(read_column(part.column(slot) if slot in names else pa.chunked_array([empty]), kind))
        columns += [part.column(column).to_numpy() for column in extra]
        end = part.column("end").to_numpy()
        start = part.column("start").to_numpy() if "start" in names else end
        ids = part.column("id").to_pylist() if "id" in names else None
        traces = [_listed(t) for t in part.column("trace").to_pylist()] if "trace" in names else None
        if ids is not None and not any(ids):
            ids = None
        if traces is not None and all(trace is None for trace in traces):
            traces = None
        result[name, arity + len(extra)] = Batch(start, end, columns, ids, traces=traces)
    return result


def read_column(column: pa.ChunkedArray, kind: str) -> Any:
    """A column as the engine takes it."""
    match kind:
        case "float" | "number":
            return column.to_numpy()
        case "int" if column.null_count == 0:
            return column.to_numpy()
        case "int":
            return column.to_pylist()
    encoded = column.combine_chunks().dictionary_encode()
    values: list[Any] = encoded.dictionary.to_pylist()
    index = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)
    make = _MAKERS.get(kind)
    return Coded([make(v) for v in values] if make is not None else values, index)


_MAKERS: dict[str, Callable[[Any], Value]] = {
    "bool": bool,
    "timestamp": Timestamp,
    "duration": Duration,
    "iri": Iri,
    "json": from_tagged,
}
