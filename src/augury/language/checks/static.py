"""Static rules: each call binds what its clauses need, negation is stratified, and recursion ends.

A clause may need arguments bound, as `shade(I, 'Caution') :- 80 <= I` does; so each call is followed with the arguments
that are bound when its turn comes.
"""

from __future__ import annotations

from typing import assert_never

from augury.algebra import nodes as n
from augury.algebra.nodes import absences
from augury.algebra.place import binds, is_ready, ready_order
from augury.algebra.plan import Plan, Predicate
from augury.algebra.strata import components, cycle, static_reads
from augury.algebra.terms import Build, Expr, Wild, variables, walk
from augury.core.errors import Findings, Note, Span
from augury.language.checks.making import MadePositions, calls_in, way_round
from augury.language.checks.scope import occurrences, singletons, terms_of

Mode = tuple[bool, ...]


def check_static(plan: Plan, findings: Findings) -> None:
    _check_negation(plan, findings)
    modes = _Modes(plan, findings)
    modes.follow()
    _check_building(plan, modes, findings)
    for clause in plan.clauses:
        if not clause.body:
            _check_fact(clause, findings)
        elif clause not in modes.unbound and findings.sound(clause.span):
            singletons([*clause.args, *(t for c in clause.body for t in terms_of(c))], findings)


def _check_fact(fact: n.Clause, findings: Findings) -> None:
    variables = occurrences(list(fact.args))
    for variable in variables:
        once = sum(v.name == variable.name for v in variables) == 1
        if once and not variable.name.startswith("_"):
            message = f"`{variable.name}` is a variable, so the fact holds for every value"
            hint = f"write `'{variable.name}'` for that name, or `_` to match any value"
            findings.add("W303", message, variable.span, hint=hint)


def _check_negation(plan: Plan, findings: Findings) -> None:
    reads = static_reads(plan.clauses)
    plain = {head: set(targets) for head, targets in reads.items()}
    absences = {c.span for clause in plan.clauses for c in clause.body if isinstance(c, n.Unless)}
    for group in components(plain, plain):
        wrong = [
            (span, head, target)
            for head in group
            for target, (negated, span) in reads.get(head, {}).items()
            if negated and target in group
        ]
        for span, head, target in sorted(wrong, key=lambda w: w[0].start)[:1]:
            way = [head, *cycle(target, head, plain, group)]
            how, what = (
                ("on its own absence", "negated") if span in absences else ("on itself before a cut", "before a cut")
            )
            message = f"`{head[0]}` depends {how}"
            hint = f"what is {what} must not depend on the rule that contains it"
            findings.add("E401", message, span, way_round(way), hint=hint)


def call_modes(plan: Plan) -> dict[Predicate, list[Mode]]:
    """Which arguments are bound in the calls of each static predicate that a program asks for."""
    modes = _Modes(plan, Findings())
    for rule in plan.rules:
        modes._from_rule(rule)
    modes._drain()
    result: dict[Predicate, list[Mode]] = {}
    for predicate, mode in modes.seen:
        result.setdefault(predicate, []).append(mode)
    return result


class _Modes:
    """Which arguments are bound in the calls of each static predicate."""

    def __init__(self, plan: Plan, findings: Findings) -> None:
        self.findings = findings
        self.unbound: list[n.Clause] = []
        self.clauses: dict[Predicate, list[n.Clause]] = {}
        for clause in plan.clauses:
            self.clauses.setdefault(clause.predicate, []).append(clause)
        self.plan = plan
        self.seen: dict[tuple[Predicate, Mode], Span | None] = {}
        self.queue: list[tuple[Predicate, Mode]] = []

    def follow(self) -> None:
        for rule in self.plan.rules:
            self._from_rule(rule)
        self._drain()
        for predicate in self.clauses:
            if not any(called == predicate for called, _ in self.seen):
                self._call(predicate, (True,) * predicate[1], None)
        self._drain()

    def _drain(self) -> None:
        while self.queue:
            predicate, mode = self.queue.pop()
            for clause in self.clauses.get(predicate, ()):
                self._clause(clause, mode, self.seen[predicate, mode])

    def _call(self, predicate: Predicate, mode: Mode, span: Span | None) -> None:
        if (predicate, mode) not in self.seen:
            self.seen[predicate, mode] = span
            self.queue.append((predicate, mode))

    def _from_rule(self, rule: n.Rule) -> None:
        for pattern in rule.patterns:
            absent = {id(a) for node in n.walk_all(pattern) for a in absences(node)}
            for node in n.walk_all(pattern):
                if isinstance(node, n.Select | n.Join) and n.conditions(node):
                    bound = {v for part in n.inputs(node) for v in n.bound_vars(part)}
                    # Conditions on what is absent see the variables of what it is absent from.
                    self._conjunction(
                        n.conditions(node), bound | n.bound_vars(rule.body) if id(node) in absent else bound
                    )
        bound_in_body = {v for pattern in rule.patterns for v in n.bound_vars(pattern)} | rule.totals.keys()
        self._conjunction(rule.outer_conditions, bound_in_body)

    def _conjunction(self, where: tuple[n.Condition, ...], bound: set[str]) -> set[str]:
        bound_so_far = set(bound)
        for condition in ready_order(where, bound_so_far):
            match condition:
                case n.Holds() | n.Unless():
                    self._call(condition.predicate, mode_of(condition.args, bound_so_far), condition.span)
                case n.AnyOf():
                    for option in condition.options:
                        self._conjunction(option, bound_so_far)
                case n.Compare() | n.NoneInside() | n.Relates() | n.Relative() | n.Spans():
                    pass
                case _:
                    assert_never(condition)
            bound_so_far |= binds(condition, bound_so_far)
        return bound_so_far

    def _clause(self, clause: n.Clause, mode: Mode, caller: Span | None) -> None:
        bound = variables(*(a for a, is_bound in zip(clause.args, mode, strict=True) if is_bound))
        bound_so_far = set(bound)
        for condition in ready_order(clause.body, bound_so_far):
            if not is_ready(condition, bound_so_far) and not isinstance(condition, n.Holds):
                position = "a negation" if isinstance(condition, n.Unless) else "a comparison"
                for name in sorted(n.condition_vars(condition) - bound_so_far):
                    self._unbound(clause, name, position, list(terms_of(condition)), caller)
                bound_so_far |= n.condition_vars(condition)
            bound_so_far |= binds(condition, bound_so_far)
        self._conjunction(clause.body, bound)
        for name in sorted(variables(*clause.args) - bound_so_far):
            self._unbound(clause, name, "the head", list(clause.args), caller)

    def _unbound(self, clause: n.Clause, name: str, context: str, terms: list[Expr], caller: Span | None) -> None:
        span = next((v.span for v in occurrences(terms) if v.name == name), clause.span)
        self.unbound.append(clause)
        if caller is not None and context != "the head" and name in variables(*clause.args):
            message = f"`{clause.name}` is called without a value for `{name}`, which it needs"
            hint = "an event or another condition must give it a value first"
            self.findings.add("E301", message, caller, Note("needed here", span), hint=hint)
            return
        hint = "a static predicate or `=` in the body must give it a value"
        if caller is None and name in variables(*clause.args):
            hint += ", or the call must"
        self.findings.add("E301", f"`{name}` is not bound in {context}", span, hint=hint)


def mode_of(args: tuple[Expr, ...], bound: set[str]) -> Mode:
    return tuple(variables(a) <= bound and not any(isinstance(p, Wild) for p in walk(a)) for a in args)


def _check_building(plan: Plan, modes: _Modes, findings: Findings) -> None:
    """A recursive clause may take values apart and pass them on, but not make new ones."""
    reads = static_reads(plan.clauses)
    plain = {head: set(targets) for head, targets in reads.items()}
    making = MadePositions(plan.clauses)
    for group in components(plain, plain):
        for clause in plan.clauses:
            recursive = any(call.predicate in group for c in clause.body for call in calls_in(c))
            if clause.predicate not in group or not recursive:
                continue
            for called, mode in list(modes.seen):
                arg = _endless_argument(clause, mode, making, group) if called == clause.predicate else None
                if arg is not None:
                    _endless(clause, arg, group, plain, findings)


def _endless_argument(clause: n.Clause, mode: Mode, making: MadePositions, group: list[Predicate]) -> Expr | None:
    """What a recursive clause makes and hands on: to a call of its own cycle, or to its caller."""
    bound = variables(*(a for a, is_bound in zip(clause.args, mode, strict=True) if is_bound))
    for condition, bound_so_far, made in making.steps(clause.body, bound, group):
        for call in calls_in(condition):
            for arg in call.args if call.predicate in group else ():
                if variables(arg) & made or (
                    isinstance(arg, Build) and variables(arg) and variables(arg) <= bound_so_far
                ):
                    return arg
    made = making.made(clause.body, bound, group)
    for arg, is_bound in zip(clause.args, mode, strict=True):
        if not is_bound and (variables(arg) & made or (isinstance(arg, Build) and variables(arg))):
            return arg
    return None


def _endless(
    clause: n.Clause, arg: Expr, group: list[Predicate], reads: dict[Predicate, set[Predicate]], findings: Findings
) -> None:
    head = clause.predicate
    start = next((t for t in sorted(reads[head]) if t in group), head)
    way = [head, *cycle(start, head, reads, group)]
    message = f"the recursive rule `{clause.name}` builds new values in every iteration, without end"
    hint = "compute outside the recursion; a recursive rule may only pass values on"
    findings.add("E402", message, arg.span, way_round(way), hint=hint)
