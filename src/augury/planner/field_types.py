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


def field_types(specs: Iterable[s.Spec], plan: Plan, clock: Clock) -> dict[s.Spec, Types]:
    """The types of the variables of each operator; of events, of their arguments by number."""
    inference, ordered = _Inference(plan, clock), list(specs)
    while inference.changed:
        inference.changed = False
        for spec in ordered:
            inference.visit(spec)
    return inference.types


def either_type(first: str, second: str) -> str:
    """The type of what is of one type or of another."""
    if first == second or not second:
        return first
    if not first:
        return second
    return "number" if {first, second} <= _NUMBERS else "any"


class _Inference:
    def __init__(self, plan: Plan, clock: Clock) -> None:
        self.plan, self.clock = plan, clock
        self.types: dict[s.Spec, Types] = {}
        self.changed = True

    def visit(self, spec: s.Spec) -> None:
        match spec:
            case s.InputSpec():
                declared = _declared(self.plan.declared, (spec.type, spec.arity))
                self._store(spec, {str(i): type for i, type in enumerate(declared)})
            case s.SetSpec():
                self.types.setdefault(spec, {str(i): _NOTHING for i in range(spec.arity)})
            case s.DeriveSpec() if spec.rule or spec.events.type in self.plan.declared:
                env = self._read(spec.inputs)
                now = self.types.setdefault(spec.events, {})
                new = {
                    str(i): either_type(now.get(str(i), _NOTHING), self._of(arg, env))
                    for i, arg in enumerate(spec.args)
                }
                self._store(spec.events, new)
            case s.DeriveSpec():
                pass
            case _:
                env = self._environment(spec)
                self._store(spec, {name: env.get(name, "any") for name in spec.out.vars})

    def _store(self, spec: s.Spec, types: Types) -> None:
        if self.types.get(spec) != types:
            self.types[spec], self.changed = types, True

    def _read(self, inputs: Iterable[s.Reading]) -> Types:
        """The types of variables that inputs have."""
        env: Types = {}
        for rows in inputs:
            types, columns = self.types.get(rows.source, {}), rows.source.out.vars
            for name, field in rows.vars.items():
                number = field - FIELDS
                key = columns[number] if columns else str(number)
                env[name] = either_type(env.get(name, _NOTHING), types.get(key, _NOTHING))
        return env

    def _environment(self, spec: s.Spec) -> Types:
        """The types of what an operator has in hand when it makes a row."""
        env = self._read(spec.inputs)
        match spec:
            case s.ScanSpec():
                types = self.types.get(spec.inputs[0].source, {})
                env |= {arg.name: types.get(str(i), _NOTHING) for i, arg in spec.args if isinstance(arg, Var)}
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
                for arg, type in zip(fact.args, _declared(self.plan.static, fact.predicate), strict=True):
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


def _declared(declared: Mapping[str, tuple[Attribute, ...]], predicate: Predicate) -> list[str]:
    attributes = declared.get(predicate[0], ())
    return [a.type for a in attributes] if len(attributes) == predicate[1] else ["any"] * predicate[1]
