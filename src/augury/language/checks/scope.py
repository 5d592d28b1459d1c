"""Every variable is bound before it is used: in heads, comparisons, negation and the branches of OR."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import assert_never

from augury.algebra import nodes as n
from augury.algebra.kinds import is_equation, of_kind
from augury.algebra.place import binds, is_ready, ready_order
from augury.algebra.plan import Plan
from augury.algebra.run_terms import part_variables
from augury.algebra.terms import Aggregate, Expr, Var, plain_variables, variables
from augury.algebra.terms import walk as walk_terms
from augury.core.errors import Findings, Note, Span, misspelt


def check_scope(plan: Plan, findings: Findings) -> None:
    for rule in plan.rules:
        _RuleScope(rule, findings).check()


def terms_of(condition: n.Condition) -> Iterator[Expr]:
    """The expressions that a condition is written with."""
    yield from n.condition_terms(condition)
    if isinstance(condition, n.NoneInside):
        yield from _terms_in(condition.pattern)


def _terms_in(pattern: n.Node) -> Iterator[Expr]:
    for node in n.written(pattern):
        for run in of_kind([node], n.Run):
            yield from (result.aggregate for result in run.results)
            yield from (Var(name) for name in run.key)  # PER (S) is a use of S
        for scan in of_kind([node], n.Scan):
            yield from scan.args
        for condition in n.conditions(node):  # the pattern of an absence is among the nodes
            yield from n.condition_terms(condition)


def occurrences(terms: list[Expr]) -> list[Var]:
    return [part for term in terms for part in walk_terms(term) if isinstance(part, Var)]


def singletons(terms: list[Expr], findings: Findings, reported: set[str] | None = None) -> None:
    variables = [
        v for v in occurrences(terms) if v.name.isidentifier()
    ]  # a result of a run is no variable of the program
    counts = Counter(v.name for v in variables)
    for variable in variables:
        in_graph = variable.span.text.startswith("?")  # where a variable may just hold a pattern together
        if counts[variable.name] == 1 and not (
            variable.name.startswith("_") or variable.name in (reported or ()) or in_graph
        ):
            hint = f"write `_` or `_{variable.name}` to match any value"
            findings.add("W303", f"`{variable.name}` occurs once", variable.span, hint=hint)


class _RuleScope:
    def __init__(self, rule: n.Rule, findings: Findings) -> None:
        self.rule, self.findings = rule, findings
        self.reported: set[str] = set()  # unbound variables, about which nothing more need be said
        self.terms = [
            *rule.values,
            *rule.totals.values(),
            *(t for pattern in rule.patterns for t in _terms_in(pattern)),
            *(t for c in rule.outer_conditions for t in terms_of(c)),
            *((Var(v, rule.top.span) for v in (*rule.top.per, *filter(None, [rule.top.place]))) if rule.top else ()),
            *((Var(v, rule.at_most.span) for v in rule.at_most.per) if rule.at_most else ()),
        ]

    def check(self) -> None:
        rule = self.rule
        sound = self.findings.sound(rule.span)
        self._pattern(rule.body)
        bound = n.bound_vars(rule.body)
        collected = set(bound)
        for collect in rule.collects:
            labels = {collect.label} if collect.label else set()
            labels |= {n.SEEN} if collect.clips else set()
            self._pattern(collect.pattern, None, n.bound_labels(rule.body) | labels)
            self._labels(collect.where, n.bound_labels(rule.body) | labels)
            within = self._conditions(collect.where, collected | n.bound_vars(collect.pattern))
            for total in collect.totals:
                self._head(total.aggregate, within)
            collected |= within | {total.name for total in collect.totals}
        collected |= self._conditions(rule.having, collected)
        if rule.top is not None and rule.top.place in collected:
            message = f"`{rule.top.place}` is bound already and cannot be the rank"
            hint = "give the rank a variable of its own: `AS R`"
            self.findings.add("E266", message, rule.top.span.part(r"\w+$"), hint=hint)
        collected |= {rule.top.place} if rule.top and rule.top.place else set()
        for arg in rule.values:
            self._head(arg, collected)
        for name in sorted(set(rule.top.per) - collected) if rule.top else ():
            self._unbound(name, "TOP", [Var(name, rule.top.span)])  # type: ignore[union-attr]
        for name in sorted(set(rule.at_most.per) - collected) if rule.at_most else ():
            self._unbound(name, "AT MOST", [Var(name, rule.at_most.span)])  # type: ignore[union-attr]
        self._not_locals()
        self._policies()
        if sound:
            singletons(self.terms, self.findings, self.reported)

    def _head(self, arg: Expr, bound: set[str]) -> None:
        inside = {v for p in walk_terms(arg) if isinstance(p, Aggregate) for v in variables(p)}
        for name in sorted(plain_variables(arg) | inside):
            if name not in bound:
                self._unbound(name, "the head", [arg])

    def _pattern(self, node: n.Node, outer: set[str] | None = None, labels: set[str] | None = None) -> None:
        """Checks the conditions of a pattern. Those of an absent one may use variables of what it is absent from."""
        for part in n.inputs(node):
            self._pattern(part)
        for absent in n.absences(node):
            around = (
                n.bound_vars(node)
                if isinstance(node, n.Select)
                else {v for p in n.inputs(node) for v in n.bound_vars(p)}
            )
            self._pattern(absent, around, n.bound_labels(node))
        for run in of_kind([node], n.Run):
            self._run(run)
        for select in of_kind([node], n.Select):
            self._conditions(select.where, n.bound_vars(select.input) | (outer or set()))
            self._labels(select.where, n.bound_labels(select) | (labels or set()))

    def _run(self, run: n.Run) -> None:
        """Each condition of a run finds its variables bound: by the parts, by what is the same in all, by one another."""
        bound = self._conditions(run.where, part_variables(run) - {v for part in run.parts for v in part.own})
        labels = {part.label for part in run.parts if part.label is not None}
        for part in run.parts:
            bound |= self._conditions(part.where, bound | n.bound_vars(part.input)) - set(part.own)
            bound |= self._conditions(part.after, bound)
        for result in run.results:
            self._result(result, bound | set(run.parts[result.part].own))
        for condition in n.conditions(run):
            self._labels((condition,), labels | n.bound_labels(run))

    def _result(self, result: n.RunResult, bound: set[str]) -> None:
        """An aggregate over iterations has variables of the run and of its conditions."""
        for name in sorted(variables(*result.aggregate.args) - bound):
            if name in n.bound_vars(self.rule.body):
                message = f"`{name}` is a variable of another event, which an aggregate over iterations cannot use"
                hint = "give the run a rule of its own, and use its event here"
                self.findings.add("E236", message, result.aggregate.span, hint=hint)
            else:
                self._unbound(name, "an aggregate", [result.aggregate])

    def _labels(self, where: tuple[n.Condition, ...], visible: set[str]) -> None:
        """A condition inside a pattern knows the labels of that pattern only."""
        for condition in where:
            for label in sorted(n.condition_labels(condition) - visible):
                message = f"the label `{label}` is not visible inside this pattern"
                hint = "make the condition a literal of its own, after a comma"
                self.findings.add("E227", message, condition.span, hint=hint)

    def _conditions(self, where: tuple[n.Condition, ...], bound: set[str]) -> set[str]:
        """Reports what is not bound when its turn comes; the variables bound in the end."""
        bound_so_far = set(bound)
        for condition in ready_order(where, bound_so_far):
            if not is_ready(condition, bound_so_far) and not isinstance(condition, n.Holds):
                position = "a negation" if isinstance(condition, n.Unless) else "a comparison"
                if is_equation(condition):
                    missing = self._missing_of_equation(condition, bound_so_far)
                else:
                    missing = n.condition_vars(condition) - bound_so_far
                for name in sorted(missing):
                    self._unbound(name, position, list(terms_of(condition)))
            match condition:
                case n.Holds():
                    bound_so_far |= binds(condition, bound_so_far)
                case n.Compare() | n.Unless() | n.AnyOf() | n.Relates() | n.Spans() | n.Relative():
                    bound_so_far |= n.condition_vars(condition)
                case n.NoneInside():
                    pass
                case _:
                    assert_never(condition)
        return bound_so_far

    def _missing_of_equation(self, condition: n.Compare, bound: set[str]) -> set[str]:
        """Of an equation that cannot bind, the variables of the side that computes."""
        sides = [variables(condition.left) - bound, variables(condition.right) - bound]
        return min((m for m in sides if m), key=len) if not all(sides) else sides[0] | sides[1]

    def _unbound(self, name: str, context: str, terms: list[Expr]) -> None:
        if name in self.reported:
            return
        where = next((v.span for v in occurrences(terms) if v.name == name), self.rule.span)
        self.reported.add(name)
        branch = self._branch(name)
        if branch is not None:
            message = f"`{name}` is bound in one branch of OR only, but used in {context}"
            hint = "bind it in both branches, or use it inside the branch"
            self.findings.add("E303", message, where, Note("this OR", branch), hint=hint)
            return
        if any(name in n.bound_vars(j.absent) for j in self._negations() if j.absent is not None):
            return  # the mistake is that it is used outside NOT; reported there
        negated = self._inside_negation(name)
        notes = (Note("it occurs only under negation", negated),) if negated else ()
        hint = self._how_to_bind(name, context, negated is not None)
        self.findings.add("E301", f"`{name}` is not bound in {context}", where, *notes, hint=hint)

    def _how_to_bind(self, name: str, context: str, negated: bool) -> str:
        if negated:
            stands = "a condition on it stands with it, `while w: not (q(X) WHERE X > 3)`"
            return f"an absent event has no values to use; {stands}"
        close = misspelt(name, self._once() - {name})
        if close:
            return f"did you mean `{close}`?"
        if context == "a negation":
            return "bind it first, or write `_` to match any value"
        if context != "the head" and any(name in variables(*scan.args) for scan in n.scans(self.rule.body)):
            return "the condition is attached to a part of the pattern; put the WHERE around all of it"
        return "an event, a static predicate or `=` must give it a value"

    def _once(self) -> set[str]:
        """The bound variables that nothing else uses: one of them may be meant by a misspelling."""
        counts = Counter(v.name for v in occurrences(self.terms))
        return {name for name in n.bound_vars(self.rule.body) if counts[name] == 1}

    def _branch(self, name: str) -> Span | None:
        for node in n.walk(self.rule.body):
            if isinstance(node, n.Either) and (name in n.bound_vars(node.left)) != (name in n.bound_vars(node.right)):
                return node.span
        return None

    def _inside_negation(self, name: str) -> Span | None:
        for node in n.walk(self.rule.body):
            for condition in n.conditions(node):
                if isinstance(condition, n.NoneInside) and name in n.bound_vars(condition.pattern):
                    return condition.span
        return None

    def _negations(self) -> list[n.Join]:
        return [node for node in self.rule.nodes if isinstance(node, n.Join) and node.absent is not None]

    def _not_locals(self) -> None:
        """A variable that only the negated part of a NOT has is local to it."""
        for node in self._negations():
            assert node.absent is not None
            left, right = n.inputs(node)
            local = n.bound_vars(node.absent) - n.bound_vars(left) - n.bound_vars(right)
            inside = Counter(v.name for v in occurrences(list(_terms_in(node.absent))))
            total = Counter(v.name for v in occurrences(self.terms))
            for name in sorted(local):
                if total[name] > inside[name]:
                    span = next(v.span for v in occurrences(list(_terms_in(node.absent))) if v.name == name)
                    message = f"`{name}` is in the negated part of NOT and elsewhere, but in neither bound of it"
                    hint = "a variable of the negated part is local, unless one of the two bounds has it too"
                    self.findings.add("E302", message, span, Note("this NOT", node.span), hint=hint)

    def _policies(self) -> None:
        joins = [node for node in self.rule.nodes if isinstance(node, n.Join | n.Repeat)]
        for node in joins:
            policy = node.policy
            if policy.per and policy.name == "unrestricted":
                message = "`per` belongs to `recent` and `chronological`: `unrestricted` takes every pair"
                self.findings.add("E229", message, self._of_policy(node, "per"))
            for name in (*((policy.by,) if policy.by else ()), *policy.per):
                if not any(name in n.bound_vars(other) for other in joins):
                    message = f"`{name}` is not bound in the policy"
                    hint = "name a variable of the pattern that the policy is about"
                    self.findings.add("E301", message, self._of_policy(node, name), hint=hint)

    def _of_policy(self, node: n.Join | n.Repeat, word: str) -> Span:
        """The place of a word of a policy: in the operator's brackets, after POLICY, or else the operator."""
        inside = node.span.part(rf"\[[^]]*?(?P<it>\b{word}\b)")
        if inside != node.span:
            return inside
        after = self.rule.span.part(rf"\bpolicy\b.*?(?P<it>\b{word}\b)")
        return after if after != self.rule.span else node.span
