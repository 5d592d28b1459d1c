"""The types of the columns of operators: int, float, number, string, … as far as declarations and results tell, else any.

    event a(x: int).  m(X, Y) <- a(X), Y = X / 2.   →   the head has X: int, Y: number

Types go from inputs up. A derived type has, for each argument, what all its rules give; a recursion is followed until
nothing changes. Events of a derived type that arrive from outside may have others, unless the type is declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from augury.algebra.kinds import positive_atoms
from augury.algebra.nodes import Collect, Compare, Condition
from augury.algebra.plan import Attribute, Plan, Predicate
from augury.algebra.terms import Aggregate, Apply, Const, Expr, Moment, Var
from augury.core.clock import Clock
from augury.core.fields import FIELDS
from augury.core.model import type_name
from augury.planner import specs as s

Types = dict[str, str]  # by variable
_NUMBERS = {"int", "float", "number"}
_NOTHING = ""  # no value yet, or null, which every type has


def infer_types(specs: Iterable[s.Spec], earlier: Iterable[s.Spec], plan: Plan, clock: Clock) -> None:
    """Gives new specs, each after its inputs, the types of their columns (`Spec.types`).

    Where a new rule derives other values of a type that `earlier` specs read, these get wider types.
    """
    new, earlier = list(specs), list(earlier)
    inference = _Inference(plan, clock, earlier)
    inference.visit(new)
    while inference.widened:
        inference.widened = False
        inference.visit([*earlier, *new])


def either_type(first: str, second: str) -> str:
    """The common type of values of two types."""
    if first == second or not second:
        return first
    if not first:
        return second
    return "number" if {first, second} <= _NUMBERS else "any"


class _Inference:
    def __init__(self, plan: Plan, clock: Clock, earlier: Iterable[s.Spec]) -> None:
        self.plan, self.clock = plan, clock
        self.read = {id(spec) for spec in earlier}  # whose types have been read
        self.widened = False  # whether derived events got other types after something had read theirs

    def visit(self, specs: Iterable[s.Spec]) -> None:
        for spec in specs:
            self._visit(spec)

    def _visit(self, spec: s.Spec) -> None:
        match spec:
            case s.InputSpec():
                spec.infer(declared_types(self.plan.declared, (spec.type, spec.arity)))
            case s.SetSpec():
                spec.infer(spec.types or [_NOTHING] * spec.arity)
            case s.DeriveSpec():
                if spec.rule or spec.events.type in self.plan.declared:
                    self._derive(spec)
            case _:
                env = self._environment(spec)
                spec.infer(env.get(name, "any") for name in spec.out.vars)

    def _derive(self, spec: s.DeriveSpec) -> None:
        env, events = self._read(spec.inputs), spec.events
        types = [either_type(old, self._of(arg, env)) for old, arg in zip(events.types, spec.args, strict=True)]
        if events.infer(types):
            self.widened = self.widened or id(events) in self.read

    def _read(self, inputs: Iterable[s.Reading]) -> Types:
        """The types of variables that inputs have."""
        env: Types = {}
        for rows in inputs:
            self.read.add(id(rows.source))
            types = rows.source.types
            for name, field in rows.vars.items():
                env[name] = either_type(env.get(name, _NOTHING), types[field - FIELDS] if types else _NOTHING)
        return env

    def _environment(self, spec: s.Spec) -> Types:
        """The types of the columns that an operator reads when it makes a row."""
        env = self._read(spec.inputs)
        match spec:
            case s.ScanSpec():
                types = spec.inputs[0].source.types
                env |= {arg.name: types[i] for i, arg in spec.args if isinstance(arg, Var)}
                return self._bound(spec.where, env)
            case s.SelectSpec() | s.JoinSpec() | s.AgreeSpec():
                return self._bound(spec.where, env)
            case s.CollectSpec() | s.PanesSpec():
                return self._collected(spec.collect, env)
            case s.RunSpec():
                return self._run(spec)
            case s.CompleteSpec():
                return self._run(spec.partials)
            case s.RankingSpec() if spec.head.top and spec.head.top.place:
                return env | {spec.head.top.place: "int"}
            case s.EventRowsSpec():
                return env | {name: self._of(arg, env) for name, arg in zip(spec.names, spec.args, strict=True)}
        return env

    def _run(self, spec: s.RunSpec) -> Types:
        env = self._read(spec.parts)
        conditions = [c for part in spec.run.parts for c in (*part.where, *part.after)]
        env = self._bound((*conditions, *spec.run.where), env)
        return env | {result.name: self._of(result.aggregate, env) for result in spec.run.results}

    def _collected(self, collect: Collect, env: Types) -> Types:
        env = self._bound(collect.where, env)
        return env | {total.name: self._of(total.aggregate, env) for total in collect.totals}

    def _bound(self, where: Iterable[Condition], env: Types) -> Types:
        """Also what conditions bind: equations, in evaluation order, and facts."""
        env = dict(env)
        for condition in where:
            if isinstance(condition, Compare) and condition.op == "=":
                for variable, value in ((condition.left, condition.right), (condition.right, condition.left)):
                    if isinstance(variable, Var) and variable.name not in env:
                        env[variable.name] = self._of(value, env)
            for fact in positive_atoms([condition]):
                for arg, type in zip(fact.args, declared_types(self.plan.static, fact.predicate), strict=True):
                    if isinstance(arg, Var):
                        env.setdefault(arg.name, type)
        return env

    def _of(self, expr: Expr, env: Types) -> str:
        match expr:
            case Const():
                return _NOTHING if expr.value is None else type_name(expr.value)
            case Var():
                return env.get(expr.name, "any")
            case Moment():
                if self.clock.kind == "logical":
                    return "int"
                return "duration" if expr.which in ("duration", "length") else "timestamp"
            case Aggregate():
                return self.plan.aggregates[expr.function].result
            case Apply(function="+" | "-" | "*"):
                kinds = {self._of(arg, env) for arg in expr.args}
                return "int" if kinds == {"int"} else "number" if kinds <= _NUMBERS else "any"
            case Apply():
                return self.plan.functions[expr.function].result
        return "any"


def declared_types(declared: Mapping[str, tuple[Attribute, ...]], predicate: Predicate) -> list[str]:
    """The types of the arguments of a type of events, or of facts."""
    attributes = declared.get(predicate[0], ())
    return [a.type for a in attributes] if len(attributes) == predicate[1] else ["any"] * predicate[1]
