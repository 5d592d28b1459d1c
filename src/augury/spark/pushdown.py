"""Conditions on one event as a filter that Catalyst runs, so that rows which cannot matter never reach a shuffle.

    high(L) <- wind(L, S) WHERE S > 20 AND rain(L)   →   wind: S > 20 OR S IS NULL

It is read off the physical plan: what the operators ask of one event. The filter keeps every row that the engine could use, and every row of which it would report an error, as far as conditions
on facts do not come in: what cannot be said in Spark is left out, and what comes out as null is kept.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TypeAlias, assert_never

from pyspark.sql import Column
from pyspark.sql import functions as F

from augury.algebra.nodes import (
    AnyOf,
    Compare,
    Condition,
    Holds,
    NoneInside,
    Relates,
    Relative,
    Spans,
    Unless,
    condition_vars,
    links,
)
from augury.algebra.plan import Predicate
from augury.algebra.scalar import FUNCTIONS, Function
from augury.algebra.terms import Aggregate, Apply, Build, Const, Expr, Moment, Prev, Var, Wild, computes, variables
from augury.core.clock import Clock, Duration
from augury.core.fields import END, FIELDS, START
from augury.core.model import Value
from augury.planner.specs import InputSpec, MomentsSpec, Reading, RunSpec, ScanSpec, SelectSpec, Spec
from augury.spark.relation_frames import NotJoined, constant

Truth: TypeAlias = Column | bool

_EXACT = 2**53 - 1  # integers up to here are doubles without loss
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = ((t.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1) for t in (datetime.min, datetime.max))
_MOST_OPTIONS = 200  # of an `or`: Catalyst follows the nesting of what it is given
_NUMBERS = ("int", "number")
_TIMELY = ("+", "-", "min", "max")  # functions in which a time point may meet a duration
_AS_DOUBLES = ("/", "//", "floor", "ceil")
_TIMES: dict[tuple[str, tuple[str, ...]], str] = {
    ("+", ("timestamp", "duration")): "timestamp",
    ("+", ("duration", "timestamp")): "timestamp",
    ("+", ("duration", "duration")): "duration",
    ("-", ("timestamp", "timestamp")): "duration",
    ("-", ("timestamp", "duration")): "timestamp",
    ("-", ("duration", "duration")): "duration",
    ("*", ("duration", "int")): "duration",
    ("*", ("int", "duration")): "duration",
    ("/", ("duration", "duration")): "number",
    ("//", ("duration", "duration")): "int",
    ("abs", ("duration",)): "duration",
}
_COMPARE: dict[str, Callable[[Column, Column], Column]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def keep(
    specs: Iterable[Spec],
    type: Predicate,
    columns: Sequence[tuple[Column, str]],
    start: Column,
    end: Column,
    clock: Clock,
    functions: Mapping[str, Function] = FUNCTIONS,
) -> Column | None:
    """The rows of an event type that some operator of a physical plan could use; None where that may be all.

    `columns` are the columns of the type's arguments, each with its kind: int, timestamp and duration are bigint, bool is
    0 or 1, float and number are double, string and iri (written in full) are string; json is left out. `functions` are
    those of the plan, since a registered one may have the name of one of the table.
    """
    readers = _readers(specs)
    of_type = [s for s in readers if isinstance(s, InputSpec) and (s.type, s.arity) == type]
    ways = [way for source in of_type for way in readers[source]]
    scans = [(spec, rows) for spec, rows in ways if isinstance(spec, SelectSpec)]
    if not ways or len(scans) < len(ways):
        return None
    tests = [_ScanScope(start, end, clock, functions).scan(spec, rows, columns, readers) for spec, rows in scans]
    kept = _any_of(*(test.keeps for test in tests))
    return None if kept is True else F.lit(False) if kept is False else kept


_Readers: TypeAlias = Mapping[Spec, list[tuple[Spec, Reading]]]


def _readers(specs: Iterable[Spec]) -> _Readers:
    """The operators that read each operator, and how they name its columns.

    Of the events of a run those that are of no part matter only where NEXT says that none may lie between.
    """
    specs = tuple(specs)
    runs = [spec for spec in specs if isinstance(spec, RunSpec)]
    adjacent = {spec.moments for spec in runs if any(link == "NEXT" for _, link in links(spec.run))}
    readers: dict[Spec, list[tuple[Spec, Reading]]] = {}
    for spec in specs:
        first = spec.among if isinstance(spec, MomentsSpec) and spec not in adjacent else 0
        for rows in spec.inputs[first:]:
            readers.setdefault(rows.source, []).append((spec, rows))
    return readers


@dataclass(frozen=True)
class _Test:
    """A condition: the rows that it `keeps`, and those of which it has an error to report, whatever comes after it."""

    keeps: Truth = True
    errs: Truth = False


@dataclass(frozen=True)
class _Value:
    """A column of values of one kind, where floats are numbers, too.

    It is right where it is not null and all of `sure` holds; `const` is what it is where it is a constant.
    """

    column: Column
    kind: str
    const: Value = None
    sure: tuple[Column, ...] = ()

    @property
    def fails(self) -> Truth:
        """Where it is null or not sure: the engine decides, and reports what cannot be computed."""
        return _any_of(self.const is None and self.column.isNull(), *(~s for s in self.sure))


@dataclass
class _ScanScope:
    """What is known at a scan: the values of its variables, None where they cannot be derived, and its labels.

    `foreign` are the variables that facts bind.
    """

    start: Column
    end: Column
    clock: Clock
    functions: Mapping[str, Function]
    values: dict[str, _Value | None] = field(default_factory=dict)
    foreign: set[str] = field(default_factory=set)
    labels: set[str] = field(default_factory=set)

    # Conditions

    def scan(self, spec: SelectSpec, rows: Reading, columns: Sequence[tuple[Column, str]], readers: _Readers) -> _Test:
        """What an operator asks of an event that it reads, and then those that read its rows."""
        self.values |= {name: _attribute(*columns[number - FIELDS]) for name, number in rows.vars.items()}
        args = spec.args if isinstance(spec, ScanSpec) else ()
        tests = [self.argument(expr, _attribute(*columns[position])) for position, expr in args]
        self.labels |= rows.labels.keys()
        return _in_order([*tests, self.select(spec, readers)])

    def select(self, spec: SelectSpec, readers: _Readers) -> _Test:
        """What an operator asks of rows of one event: their length, its conditions, and what stands above it."""
        self.labels |= set(spec.labels)
        tests = [] if spec.longest is None else [self.lasts(spec.longest)]
        tests += [self.condition(c) for c in spec.where]
        ways = readers.get(spec, [])
        selects = [(reader, read) for reader, read in ways if isinstance(reader, SelectSpec)]
        if ways and len(selects) == len(ways):
            each = [self.above(spec, read).select(reader, readers) for reader, read in selects]
            tests.append(_Test(_any_of(*(t.keeps for t in each)), _any_of(*(t.errs for t in each))))
        return _in_order(tests)

    def above(self, spec: SelectSpec, rows: Reading) -> _ScanScope:
        """The scope of an operator that reads the rows of this one, whose columns may have other names there."""
        out = spec.out
        names = {
            name: var for name, number in rows.vars.items() for var, field in out.var_fields.items() if field == number
        }
        times = {(START, END), *(out.label_fields[label] for label in self.labels & set(out.labels))}
        return replace(
            self,
            values={name: self.values.get(var) for name, var in names.items() if var not in self.foreign},
            foreign={name for name, var in names.items() if var in self.foreign},
            labels={name for name, fields in rows.labels.items() if fields in times},
        )

    def argument(self, arg: Expr, value: _Value | None) -> _Test:
        match arg:
            case Var() if arg.name not in self.values:
                self.values[arg.name] = value
                return _Test()
            case Var():
                return _Test(_same(self.values[arg.name], value))
            case Const():
                literal = _literal(arg.value)
                nested = literal is None and not isinstance(arg.value, int)
                return _Test(not (nested and value is not None) and _same(value, literal))
            case Build():
                self.values |= dict.fromkeys(variables(arg) - self.values.keys())
                return _Test(value is None)
            case Wild() | Apply() | Moment() | Aggregate() | Prev():
                return _Test()
            case _:
                assert_never(arg)

    def lasts(self, points: int) -> _Test:
        """At most so many time points."""
        longest = _literal(points)
        lasted = _Value(F.try_subtract(self.end, self.start), "int")
        holds = _holds("<=", lasted, longest) if longest is not None else None
        return _Test(True if holds is None else holds)

    def condition(self, condition: Condition) -> _Test:
        """What a condition keeps; those on facts, on other events and on windows are left out."""
        match condition:
            case Compare():
                return self.compare(condition)
            case AnyOf() if len(condition.options) <= _MOST_OPTIONS:
                inner = (replace(self, values=dict(self.values), foreign=set(self.foreign)) for _ in condition.options)
                tests = [
                    _in_order(map(scope.condition, option))
                    for scope, option in zip(inner, condition.options, strict=True)
                ]
                return _Test(_any_of(*(t.keeps for t in tests)), _any_of(*(t.errs for t in tests)))
            case Spans() if set(condition.labels) <= self.labels:
                return self.lasts(self.clock.length(condition.length))
            case Holds():
                self.foreign |= condition_vars(condition) - self.values.keys()
            case AnyOf() | Spans() | Unless() | Relates() | Relative() | NoneInside():
                pass
            case _:
                assert_never(condition)
        return _Test()

    def compare(self, condition: Compare) -> _Test:
        sides = (condition.left, condition.right)
        if condition.op == "=":
            for pattern, value in (sides, sides[::-1]):
                new = variables(pattern) - self.values.keys() - self.foreign
                if isinstance(pattern, Var | Build) and new:
                    return self.bind(pattern, value, new)
        if condition_vars(condition) & self.foreign:
            return _Test()
        values = self.on_clock(sides)
        if values is None or (holds := _holds(condition.op, *values)) is None:
            return _Test(errs=condition.op not in ("=", "!=") or any(map(computes, sides)))
        errs = _any_of(*(v.fails for side, v in zip(sides, values, strict=True) if computes(side)))
        return _Test(_any_of(holds, errs) if isinstance(holds, bool) else holds, errs)

    def bind(self, pattern: Expr, expr: Expr, new: set[str]) -> _Test:
        """`Y = X + 1` gives Y its value; only what cannot be computed fails."""
        if variables(expr) & self.foreign:
            self.foreign |= new
            return _Test()
        value = self.value(expr)
        self.values |= dict.fromkeys(new, value if isinstance(pattern, Var) else None)
        return _Test(errs=computes(expr) and (value is None or value.fails))

    # Expressions

    def value(self, expr: Expr) -> _Value | None:
        match expr:
            case Const():
                return _literal(expr.value)
            case Var():
                return self.values.get(expr.name)
            case Moment() if expr.label in self.labels:
                on_calendar = self.clock.kind == "timestamp"
                if expr.which == "length":
                    return None  # it is asked where the events are
                if expr.which == "duration":
                    return _Value(F.try_subtract(self.end, self.start), "duration" if on_calendar else "int")
                return _Value(self.start if expr.which == "start" else self.end, "timestamp" if on_calendar else "int")
            case Apply():
                return self.apply(expr)
            case Moment() | Wild() | Build() | Aggregate() | Prev():
                return None
            case _:
                assert_never(expr)

    def apply(self, expr: Apply) -> _Value | None:
        row = self.functions.get(expr.function)
        if row is None or row.spark is None or not (row.pure and expr.pure):
            return None
        if "{" in row.spark and expr.args and f"{{{len(expr.args) - 1}}}" not in row.spark:
            return None  # with a time zone, for instance
        args = self.on_clock(expr.args) if expr.function in _TIMELY else self.all_values(expr.args)
        if args is None:
            return None
        if row.name == "-" and len(args) == 1:
            args = [_Value(_big(0), args[0].kind), *args]
        kind = _result(row, tuple(a.kind for a in args))
        return _call(row, row.spark, kind, args) if kind is not None else None

    def all_values(self, exprs: Iterable[Expr]) -> list[_Value] | None:
        result = [self.value(e) for e in exprs]
        return [v for v in result if v is not None] if None not in result else None

    def on_clock(self, exprs: Iterable[Expr]) -> list[_Value] | None:
        """The values, where on the logical clock a duration beside a number is a number of ticks."""
        values = self.all_values(exprs)
        if values is None or self.clock.kind == "timestamp" or not any(v.kind in _NUMBERS for v in values):
            return values
        result = [self.ticks(v) if v.kind == "duration" else v for v in values]
        return [v for v in result if v is not None] if None not in result else None

    def ticks(self, value: _Value) -> _Value | None:
        if not isinstance(value.const, Duration):
            return None
        whole, rest = divmod(value.const.us, self.clock.tick)
        return _literal(whole if rest == 0 else value.const.us / self.clock.tick)


# Truth


def _any_of(*parts: Truth) -> Truth:
    return _combined(parts, True, operator.or_)


def _all_of(*parts: Truth) -> Truth:
    return _combined(parts, False, operator.and_)


def _combined(parts: Iterable[Truth], decides: bool, combine: Callable[[Column, Column], Column]) -> Truth:
    """All parts as one; one that `decides` is the whole, the opposite of it is left out."""
    columns: list[Column] = []
    for part in parts:
        if not isinstance(part, bool):
            columns.append(part)
        elif part == decides:
            return decides
    return reduce(combine, columns) if columns else not decides


def _in_order(tests: Iterable[_Test]) -> _Test:
    """One condition after the other: where one has an error to report, those after it are not asked."""
    keeps: Truth = True
    errs: Truth = False
    for test in reversed(list(tests)):
        keeps = _all_of(test.keeps, _any_of(test.errs, keeps))
        errs = _any_of(test.errs, errs)
    return _Test(keeps, errs)


def _same(left: _Value | None, right: _Value | None) -> Truth:
    holds = _holds("=", left, right) if left is not None and right is not None else None
    return holds if holds is not None else True


def _holds(op: str, left: _Value, right: _Value) -> Truth | None:
    """Where a comparison may hold; None where values of these kinds have no order.

    `S > 20` is `S > 20 OR S IS NULL`, which a Parquet reader understands.
    """
    if left.kind != right.kind and not (left.kind in _NUMBERS and right.kind in _NUMBERS):
        return {"=": False, "!=": True}.get(op)
    left, right = _whole_beside(right, left), _whole_beside(left, right)
    if left.kind != right.kind:
        left, right = (v if v.kind == "number" else _as_double(v) for v in (left, right))
    return _any_of(_COMPARE[op](left.column, right.column), left.fails, right.fails)


def _whole_beside(other: _Value, value: _Value) -> _Value:
    """1.0 beside integers is 1, which keeps their comparison one of integers."""
    if other.kind == "int" and isinstance(value.const, float) and value.const.is_integer():
        return _literal(int(value.const)) or value
    return value


# Values


def _attribute(column: Column, kind: str) -> _Value | None:
    return None if kind == "json" else _Value(column, "number" if kind == "float" else kind)


def _big(value: int) -> Column:
    return F.lit(value).cast("bigint")


def _literal(value: Value) -> _Value | None:
    """A constant; None of those that no column but a json one holds."""
    try:
        column, kind = constant(value)
    except NotJoined:
        return None
    return _Value(column, "number" if kind == "float" else kind, value) if kind != "json" else None


def _small(column: Column) -> Column:
    return column.between(F.lit(-_EXACT), F.lit(_EXACT))


def _as_double(value: _Value) -> _Value:
    """A number as a double; sure where that is exact, since elsewhere integers and floats would differ."""
    sure = () if isinstance(value.const, int) and abs(value.const) <= _EXACT else (_small(value.column),)
    return _Value(value.column.cast("double"), "number", value.const, (*value.sure, *sure))


def _result(row: Function, kinds: tuple[str, ...]) -> str | None:
    """The kind of a function's result for arguments of these kinds; None where it fails, or Spark's would differ."""
    if (row.name, kinds) in _TIMES:
        return _TIMES[row.name, kinds]
    if row.name in ("min", "max") and len(set(kinds)) == 1:
        return kinds[0]
    if row.name == "concat":
        return "string" if set(kinds) == {"string"} else None
    types = row.types + row.types[-1:] * (len(kinds) - len(row.types))
    if len(kinds) != len(types) or not all(_accepts(t, k) for t, k in zip(types, kinds, strict=True)):
        return None
    if row.result in ("string", "bool", "int"):
        return row.result
    if row.result != "float" and row.name != "/" and set(kinds) <= {"int"}:
        return "int"
    # The remainder of floats is rounded otherwise.
    return None if row.name == "mod" else "number"


def _accepts(type: str, kind: str) -> bool:
    return type == kind or (type in ("number", "any") and kind in _NUMBERS)


def _call(row: Function, form: str, kind: str, args: Sequence[_Value]) -> _Value:
    """A function of the table on arguments of Spark."""
    doubles = "number" in [a.kind for a in args] or row.name in _AS_DOUBLES
    args = [_as_double(a) for a in args] if doubles else args
    columns = [a.column for a in args]
    result = _written(form, columns)
    sure = [s for a in args for s in a.sure]
    if row.types == ("timestamp",):
        sure += [c.between(F.lit(_FIRST), F.lit(_LAST)) for c in columns]
    if "least" in form or "greatest" in form:  # which skip nulls
        sure += [c.isNotNull() for c in columns]
    if doubles or kind == "number":
        sure.append(_small(result))
    elif row.name in ("+", "*"):  # which Catalyst reorders: what overflowed on the way would not be seen at the end
        sure.append(result.isNotNull())
    return _Value(result.cast("bigint") if row.result in ("int", "bool") else result, kind, sure=tuple(sure))


def _written(form: str, args: Sequence[Column]) -> Column:
    """The column of the Spark form of a function: a name, or nested calls."""
    if "(" not in form:
        return F.call_function(form, *args)
    names = [f"_{i}" for i in range(len(args))]

    def column(node: ast.expr) -> Column:
        match node:
            case ast.Call(func=ast.Name(id=name)):
                return F.call_function(name, *(column(a) for a in node.args))
            case ast.Name(id="null"):
                return F.lit(None)
            case ast.Name(id=name):
                return args[names.index(name)]
        return F.lit(ast.literal_eval(node))

    return column(ast.parse(form.format(*names), mode="eval").body)
