"""Prepares runs: what a part binds by itself becomes a part of its rows, what it computes is written out.

    a(I) NEXT b(I, X)+  WHERE size(X, Z)             →   b(I, X) WHERE size(X, Z) is scanned: a row for every Z
    b(X)+ WHERE D = X - prev(X, X), sum(D) > 3       →   sum(X - prev(X, X)) > 3

The matches are the same. Algorithms of runs see rows of parts, and conditions on two iterations or on a match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from augury.algebra.kinds import of_kind
from augury.algebra.nodes import (
    Compare,
    Condition,
    Node,
    Rule,
    Run,
    RunPart,
    RunResult,
    Select,
    bound_labels,
    bound_vars,
    condition_labels,
    condition_vars,
    mapped_all,
)
from augury.algebra.plan import Plan
from augury.algebra.ready import binds
from augury.algebra.run_terms import asked_of, with_counts_in_quantifiers
from augury.algebra.terms import Expr, Var
from augury.planner.planning import Setting
from augury.planner.run_questions import changed, with_terms


def prepare_runs(rules: tuple[Rule, ...], plan: Plan, setting: Setting) -> tuple[Rule, ...]:
    """The rules with their runs prepared, wherever a run stands."""
    return tuple(_prepared_rule(rule) if of_kind(rule.nodes, Run) else rule for rule in rules)


def _prepared_rule(rule: Rule) -> Rule:
    collects = tuple(replace(collect, pattern=_prepared(collect.pattern)) for collect in rule.collects)
    return replace(rule, body=_prepared(rule.body), collects=collects)


def _prepared(node: Node) -> Node:
    below = mapped_all(node, _prepared)
    return _prepared_run(below) if isinstance(below, Run) else below


def _prepared_run(run: Run) -> Run:
    """The same run. `size(X, Z)` beside `b(I, X)+` is a condition of its scan, which has a row for every Z then.

    After `D = X - prev(X, X)` an own variable D is that difference wherever the part, or a result, has it.
    """
    run = with_counts_in_quantifiers(run)
    parts, results = [], list(run.results)
    # These have a value of their own, or none: an equation with one of them is a test.
    tested = {v for part in run.parts if part.optional for v in bound_vars(part.input)} | {r.name for r in results}
    for number, part in enumerate(run.parts):
        part = _with_own(part, tested)
        computed = _computed(part)
        for name, value in computed.items():
            part = replace(part, where=tuple(_written_out(c, name, value) for c in part.where))
            results = [_result(r, name, value) if r.part == number else r for r in results]
        parts.append(part)
    return replace(run, parts=tuple(parts), results=tuple(results))


def _with_own(part: RunPart, tested: set[str]) -> RunPart:
    """The part with conditions on one row of it that bind as conditions of its pattern."""
    for condition in part.where:
        bound = bound_vars(part.input)
        new = binds(condition, bound)
        alone = not asked_of(condition) and condition_labels(condition) <= bound_labels(part.input)
        if new and not new & tested and alone and condition_vars(condition) - new <= bound:
            rest = tuple(c for c in part.where if c is not condition)
            return _with_own(replace(part, input=Select(part.input, (condition,), condition.span), where=rest), tested)
    return part


def _computed(part: RunPart) -> dict[str, Expr]:
    """Own variables that a condition computes of this iteration and the one before."""
    computed: dict[str, Expr] = {}
    bound = bound_vars(part.input)
    for condition in part.where:
        if isinstance(condition, Compare) and condition.op == "=":
            for variable, value in ((condition.left, condition.right), (condition.right, condition.left)):
                if isinstance(variable, Var) and variable.name in part.own and variable.name not in bound:
                    computed.setdefault(variable.name, value)
    for _ in range(len(computed)):  # one may be computed of another, and that of a third
        computed = {name: _substituted(value, name, computed) for name, value in computed.items()}
    return computed


def _substituted(value: Expr, name: str, computed: Mapping[str, Expr]) -> Expr:
    """An expression with what the other variables in it are computed of."""
    return with_terms(value, lambda e: computed.get(e.name) if isinstance(e, Var) and e.name != name else None)


def _written_out(condition: Condition, name: str, value: Expr) -> Condition:
    if isinstance(condition, Compare) and Var(name) in (condition.left, condition.right) and condition.op == "=":
        return condition
    return changed(condition, lambda e: value if e == Var(name) else None)


def _result(result: RunResult, name: str, value: Expr) -> RunResult:
    args = (with_terms(arg, lambda e: value if e == Var(name) else None) for arg in result.aggregate.args)
    return replace(result, aggregate=replace(result.aggregate, args=tuple(args)))
