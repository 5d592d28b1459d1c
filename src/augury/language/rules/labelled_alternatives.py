"""Labelled alternatives in a run: `(u: a(I, X) OR v: b(I, Y))+` (SEMANTICS 12).

Each alternative says which one it is, and its times, in variables that no program can write; what it does not have is null:

    u: a(I, X)   →   a(I, X) WHERE <alternative> = 0, <start(u)> = start(u), <end(u)> = end(u), Y = null, <start(v)> = null, …

A condition with a variable of some alternatives holds wherever another one is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from augury.algebra import nodes as n
from augury.algebra.aggregates import AggregateFunction, where
from augury.algebra.terms import Aggregate, Apply, Const, Expr, Moment, Prev, Var, mapped_term, parts, variables, walk
from augury.core.errors import Span
from augury.language.rules import syntax as s

Reported = Callable[[str, str, Span, str], None]


def alternatives(node: s.Node) -> list[s.Node]:
    """The operands of OR; a label in front of several is that of the first one where others have labels, too."""
    if isinstance(node, s.Labelled) and isinstance(node.body, s.Binary) and node.body.op == "OR":
        first, *others = alternatives(node.body)
        if not node.body.parens and any(isinstance(other, s.Labelled) for other in others):
            return [s.Labelled(node.label, first, node.span), *others]
        return [node]
    if isinstance(node, s.Binary) and node.op == "OR":
        return [part for operand in s.joined(node) for part in alternatives(operand)]
    return [node]


def labelled_alternatives(node: s.Node) -> list[s.Node] | None:
    """The alternatives of a part some of which have labels; None where none has."""
    result = alternatives(node)
    return result if len(result) > 1 and any(isinstance(part, s.Labelled) for part in result) else None


@dataclass
class Alternative:
    """One alternative: its events, and the conditions on it alone that bind something."""

    label: str
    node: n.Node
    span: Span
    binding: list[n.Condition] = field(default_factory=list)

    @property
    def times(self) -> dict[str, str]:
        """The variables that hold its times."""
        return {which: f"{which}({self.label})" for which in ("start", "end")}

    @property
    def vars(self) -> set[str]:
        """The variables that it has, with its times."""
        bound = n.bound_vars(self.node)
        return bound.union(self.times.values(), *(n.condition_vars(c) for c in self.binding))


@dataclass
class Alternatives:
    """The labelled alternatives of the part with a number."""

    number: int
    members: list[Alternative]
    span: Span
    aggregates: Mapping[str, AggregateFunction]
    label: str | None = None  # of the part as a whole
    renamed: dict[str, str] = field(default_factory=dict)  # variables that other parts have, too

    @property
    def which(self) -> str:
        """The variable that says which alternative is taken."""
        return f"alternative of part {self.number + 1}"

    @property
    def partial(self) -> set[str]:
        """The variables that only some alternatives have."""
        have = [member.vars for member in self.members]
        return set[str]().union(*have) - have[0].intersection(*have)

    def node(self) -> n.Node:
        """The alternatives as a pattern whose rows have all variables."""
        whole, *others = map(self._branch, range(len(self.members)))
        for other in others:
            whole = n.Either(whole, other, self.span)
        return whole if self.label is None else n.Label(self.label, whole, self.span)

    def _branch(self, index: int) -> n.Node:
        member = self.members[index]
        says = [_equals(self.which, Const(index), self.span)]
        moments = {"start": Moment("start", member.label), "end": Moment("end", member.label)}
        says += [_equals(member.times[which], moment, self.span) for which, moment in moments.items()]
        lacks = sorted(self.partial - member.vars)
        says += [_equals(self.renamed.get(name, name), Const(None), self.span) for name in lacks]
        node = n.Label(
            member.label, n.mapped_terms(member.node, lambda term: _renamed_term(term, self.renamed)), member.span
        )
        binding = tuple(_renamed_condition(c, self.renamed) for c in member.binding)
        return n.Select(node, (*says, *binding), self.span)

    def guarded(self, condition: n.Condition, report: Reported) -> n.Condition:
        """A condition that is asked where the alternatives are taken that have its variables."""
        names = (_asked_variables(condition) & self.partial) - self.renamed.keys()
        if not names:
            return condition
        apart = [i for i, member in enumerate(self.members) if not names <= member.vars]
        if len(apart) == len(self.members):
            shown = " and ".join(f"`{name}`" for name in sorted(names))
            hint = "an event is one alternative; compare with earlier events by `prev` or an aggregate: `last(X)`"
            report("E243", f"no alternative of {self.span.quoted} has {shown}", condition.span, hint)
            return condition
        if isinstance(condition, n.AnyOf):
            return n.AnyOf((*condition.options, *self._taken(apart, condition.span)), condition.span)
        return n.AnyOf(((condition,), *self._taken(apart, condition.span)), condition.span)

    def _taken(self, indices: Collection[int], span: Span) -> list[tuple[n.Condition, ...]]:
        return [(_equals(self.which, Const(index), span),) for index in indices]

    def rename(self, name: str, span: Span) -> n.Condition:
        """Gives a variable that another part has, too, its own name: they are equal where both are there."""
        self.renamed[name] = f"{name} of part {self.number + 1}"
        apart = [i for i, member in enumerate(self.members) if name not in member.vars]
        same = _equals(name, Var(self.renamed[name]), span)
        return n.AnyOf(((same,), *self._taken(apart, span)), span)

    def take_binding(self, condition: n.Condition, new: set[str], report: Reported) -> bool:
        """Takes a condition that gives `new` variables a value, from those of some alternatives."""
        names = n.condition_vars(condition)
        if not names & self.partial or not new:
            return False
        takers = [member for member in self.members if names - new <= member.vars]
        alone = not any(isinstance(p, Prev | Aggregate) for t in n.condition_terms(condition) for p in _walk(t))
        if not takers or not alone or n.condition_labels(condition):
            shown = ", ".join(f"`{name}`" for name in sorted(new))
            hint = "put the condition into the alternative: `(u: (a(I, X) WHERE D = X * 2) OR v: b(I, Y))`"
            message = f"{shown} gets a value from a variable that only some alternatives of {self.span.quoted} have"
            report("E243", message, condition.span, hint)
            return True
        for member in takers:
            member.binding.append(condition)
        return True

    def with_times(self, expr: Expr) -> Expr:
        """An expression with variables for the times of alternatives; aggregates of them range over their iterations."""
        if isinstance(expr, Aggregate) and expr.function != "count":
            labels = {p.label for a in expr.args for p in walk(a) if isinstance(p, Moment)}
            taken = [i for i, member in enumerate(self.members) if member.label in labels]
            if len(taken) == 1:
                which = Apply("=", (Var(self.which), Const(taken[0])), expr.span)
                inside = mapped_term(expr, self.with_times)
                assert isinstance(inside, Aggregate)
                return where(inside, which, self.aggregates)
        if isinstance(expr, Moment):
            times = next((member.times for member in self.members if member.label == expr.label), None)
            if times is None:
                return expr
            start, end = (Var(times[which], expr.span) for which in ("start", "end"))
            match expr.which:
                case "start":
                    return start
                case "end":
                    return end
                case "duration":
                    return Apply("-", (end, start), expr.span)
                case "length":
                    return expr
        return mapped_term(expr, self.with_times)

    @property
    def labels(self) -> set[str]:
        return {member.label for member in self.members}


def _equals(name: str, value: Expr, span: Span) -> n.Compare:
    return n.Compare("=", Var(name), value, span)


def _renamed_term(expr: Expr, renamed: dict[str, str]) -> Expr:
    if isinstance(expr, Var):
        return Var(renamed.get(expr.name, expr.name), expr.span)
    return mapped_term(expr, lambda part: _renamed_term(part, renamed))


def _renamed_condition(condition: n.Condition, renamed: dict[str, str]) -> n.Condition:
    return n.mapped_condition(condition, lambda term: _renamed_term(term, renamed)) if renamed else condition


def _asked_variables(condition: n.Condition) -> set[str]:
    """The variables of an iteration itself: those of `prev` and of aggregates are of others, too."""
    result: set[str] = set()
    for term in n.condition_terms(condition):
        for part in _walk(term):
            if isinstance(part, Var):
                result.add(part.name)
    if isinstance(condition, n.NoneInside):
        result |= n.condition_vars(condition)
    return result


def _walk(expr: Expr) -> Iterator[Expr]:
    """An expression and its parts, outside `prev` and aggregates."""
    yield expr
    if not isinstance(expr, Prev | Aggregate):
        for part in parts(expr):
            yield from _walk(part)


def arguments_of(nodes: Collection[n.Node]) -> set[str]:
    """The variables that stand in arguments of events."""
    return {name for node in nodes for scan in n.scans(node) for name in variables(*scan.args)}


def branches(node: n.Node) -> tuple[n.Node, ...]:
    """What OR joins."""
    return branches(node.left) + branches(node.right) if isinstance(node, n.Either) else (node,)
