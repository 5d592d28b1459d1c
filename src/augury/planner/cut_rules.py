"""Cuts rules where the key changes between two of their operators, so that each part has a key of its own.

    delivered(N) <- ((order(N, T) SEQ packed(T, P)).2d SEQ arrived(P)).7d

    #part delivered 1(N, P) <- (order(N, T) SEQ packed(T, P)).2d          by T
    delivered(N)            <- (#part delivered 1(N, P) SEQ arrived(P)).7d    by P

The events of a part are the rows of an operator: they hold the variables that the rest of the rule uses, and the times of
the labels that it uses. No program can write their type, and no output shows them. Answers do not change.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, assert_never

from augury.algebra import nodes as n
from augury.algebra.kinds import chooses, inner_absences, keeps_some_matches, of_kind, relative_labels
from augury.algebra.plan import Plan, Predicate
from augury.algebra.properties import all_properties, correlation_key, finality_delays
from augury.algebra.relations import RELATIONS, Contradiction
from augury.algebra.rule_terms import head_labels, makes_windows
from augury.algebra.stages import PART
from augury.algebra.strata import strata
from augury.algebra.terms import Apply, Const, Expr, Moment, Var, mapped_term, variables
from augury.algebra.terms import walk as walk_terms
from augury.algebra.timing import Timing
from augury.core.clock import Clock, Duration
from augury.planner.place_conditions import place_conditions
from augury.planner.planning import Setting

Side = Literal["left", "right"]
End = Literal["start", "end"]
_ENDS: tuple[End, End] = ("start", "end")
# The end points of two intervals as bounds name them: of which interval, and which end.
_POINTS: dict[str, tuple[int, End]] = {"a": (0, "start"), "b": (0, "end"), "c": (1, "start"), "d": (1, "end")}
_NO_PARTS = (n.Every, n.Graph, n.Instant, n.SessionWindow, n.Unfold)


def is_part(type: Predicate) -> bool:
    """Whether the events of a type are rows of a part of a rule."""
    return type[0].startswith(PART)


def rule_of_part(label: str) -> str:
    """The rule that a part was cut from: `delivered` of `delivered, part 1`."""
    return label.partition(", part ")[0]


def cut_rules(plan: Plan, setting: Setting) -> Plan:
    """The plan with its rules cut; one that has a key already, or none however it is cut, stays as it is."""
    if not any(_may_be_cut(rule) for rule in plan.rules):
        return plan
    recursive = {rule.label for stratum in strata(plan) if stratum.recursive for rule in stratum.rules}
    late = {type for type, delay in finality_delays(plan).items() if delay != 0}
    horizons = {label: properties.horizon for label, properties in all_properties(plan).items()}
    unbounded = {label for label, horizon in horizons.items() if horizon is None}
    rules: list[n.Rule] = []
    for rule in plan.rules:
        if not _may_be_cut(rule) or rule.label in recursive or rule.predicate in late:
            rules.append(rule)
            continue
        (placed,) = place_conditions((rule,), plan, setting)
        parts = _Cutting(rule.label, plan, setting.clock).cut(placed)
        bounded = rule.label in unbounded or all(_is_bounded(plan, part, parts) for part in parts)
        rules += parts if len(parts) > 1 and bounded else [rule]
    return replace(plan, rules=tuple(rules))


def _may_be_cut(rule: n.Rule) -> bool:
    """Whether a rule has no key, and its rows say no more than what it does with them."""
    if rule.makes or rule.collects or rule.held or rule.top is not None or rule.at_most is not None:
        return False
    if rule.since is not None or rule.until is not None or makes_windows(rule) or correlation_key(rule):
        return False
    join = _join(rule)
    return join is not None and not chooses(join)


def _is_bounded(plan: Plan, part: n.Rule, parts: Iterable[n.Rule]) -> bool:
    """Whether a stream may forget the events of a part at some time."""
    rules = tuple(rule for rule in plan.rules if rule.label != rule_of_part(part.label))
    return all_properties(replace(plan, rules=(*rules, *parts)))[part.label].horizon is not None


def _spine(node: n.Node) -> Iterator[n.Node]:
    """A pattern, and what is below it as long as there is one way down."""
    yield node
    if isinstance(node, n.Label | n.Select | n.Within):
        yield from _spine(node.input)


@dataclass
class _Cutting:
    """Cuts one rule; `made` are the parts so far, each after those that it reads."""

    label: str
    plan: Plan
    clock: Clock
    made: list[n.Rule] = field(default_factory=list)
    count: int = 0

    def cut(self, rule: n.Rule) -> list[n.Rule]:
        """The rule as parts, those that others read first, and what is left of it last; or the rule alone."""
        rest = self._cut(rule)
        return [*self.made, rest]

    def _cut(self, rule: n.Rule) -> n.Rule:
        """The remainder of a rule once parts of it are cut off, where that gives it a key."""
        join = _join(rule)
        if correlation_key(rule) or join is None or chooses(join):
            return rule
        sides: list[Side] = [side for side in ("right", "left") if _is_part(getattr(join, side))]
        for cut_off in [*([side] for side in sides), sides]:
            parts = list[n.Rule]()
            rest: n.Rule | None = rule
            for side in cut_off:
                rest = None if rest is None else self._without(rest, side, parts)
            if rest is not None and correlation_key(rest):
                for part in parts:
                    self.made.append(self._cut(part))
                return rest
        return rule

    def _without(self, rule: n.Rule, side: Side, parts: list[n.Rule]) -> n.Rule | None:
        """The rule with a part of its own in place of one side of its join; None where it needs more of that than an
        event has."""
        self.count += 1
        join = _join(rule)
        assert join is not None
        part: n.Node = getattr(join, side)
        marker = n.Scan(f"{PART}{self.label} {self.count}", ())
        rest = replace(rule, body=_with_side(rule.body, side, marker))
        if any(set(n.event_types(c.pattern)) & n.event_types(part) for c in inner_absences(rest.conditions)):
            return None  # an absence does not see the events of a label, and these are not distinguished here
        used = _labels_used(rest) & n.bound_labels(part)
        times = _Times(used, self.clock)
        if used & set(rest.covers) or not (times.sees_values(rest.values) and all(map(times.sees, rest.conditions))):
            return None
        names = sorted(n.bound_vars(part) & _variables_used(rest))
        scan = replace(marker, args=tuple(Var(name) for name in (*names, *times.names)))
        rest = times.in_rule(replace(rest, body=_with_side(rest.body, side, scan)))
        length = self._length(rule, part)
        body = part if length is None else n.Within(part, length)
        args = (*map(Var, names), *times.values)
        parts.append(n.Rule(f"{self.label}, part {self.count}", scan.type, args, body, span=rule.span))
        return self._within(rest, rule)

    def _within(self, rest: n.Rule, rule: n.Rule) -> n.Rule:
        """With the window that the conditions of the rule imply, which those on times as values do not say."""
        length = self._length(rule, rule.body)
        return rest if length is None else replace(rest, body=n.Within(rest.body, length))

    def _length(self, rule: n.Rule, part: n.Node) -> int | None:
        """How long the rows of a part can be, in microseconds."""
        timing = Timing(self.plan.tick)
        timing.add(rule.body)
        try:
            timing.close()
        except Contradiction:
            return None
        name = timing.interval(part)
        limit = timing.table.limit((name, "e"), (name, "s"))
        return None if limit is None or limit.value < 0 else limit.value


def _is_part(node: n.Node) -> bool:
    """Whether the rows of a pattern can be events: of several events, and known as soon as they end."""
    nodes = list(n.walk_all(node))
    if len(of_kind(n.walk(node), n.Scan)) < 2 and not any(isinstance(item, n.Repeat | n.Run) for item in nodes):
        return False
    return not any(isinstance(item, _NO_PARTS) or keeps_some_matches(item) for item in nodes)


def _join(rule: n.Rule) -> n.Join | None:
    """The uppermost join of a rule."""
    return next((node for node in _spine(rule.body) if isinstance(node, n.Join)), None)


def _with_side(node: n.Node, side: Side, pattern: n.Node) -> n.Node:
    """A pattern whose uppermost join has another side."""
    if isinstance(node, n.Join):
        return replace(node, left=pattern) if side == "left" else replace(node, right=pattern)
    return n.mapped(node, lambda below: _with_side(below, side, pattern))


def _labels_used(rule: n.Rule) -> set[str]:
    """The labels that the conditions and the head of a rule use."""
    return head_labels(rule).union(*(n.condition_labels(c) for c in rule.conditions))


def _variables_used(rule: n.Rule) -> set[str]:
    """The variables that a rule uses anywhere."""
    used = variables(*rule.values).union(*(n.condition_vars(c) for c in rule.conditions))
    return used.union(*(n.bound_vars(node) for node in rule.nodes))


class _Times:
    """The times of labels of a part as arguments of its events, and conditions on these in place of the labels."""

    def __init__(self, labels: Collection[str], clock: Clock) -> None:
        self.labels, self.clock = sorted(labels), clock

    @property
    def names(self) -> list[str]:
        return [_time(label, which) for label in self.labels for which in _ENDS]

    @property
    def values(self) -> list[Expr]:
        return [Moment(which, label) for label in self.labels for which in _ENDS]

    def sees(self, condition: n.Condition) -> bool:
        """Whether a condition can be asked of times that are arguments."""
        if not n.condition_labels(condition) & set(self.labels):
            return True
        if not isinstance(condition, n.Compare | n.Relates | n.Spans) or relative_labels((condition,)):
            return False
        return self.sees_values(n.condition_terms(condition))

    def sees_values(self, values: Iterable[Expr]) -> bool:
        return not any(
            isinstance(part, Moment) and part.which == "length" and part.label in self.labels
            for value in values
            for part in walk_terms(value)
        )

    def in_rule(self, rule: n.Rule) -> n.Rule:
        return replace(rule, args=tuple(map(self._value, rule.args)), body=self._in(rule.body)) if self.labels else rule

    def _in(self, node: n.Node) -> n.Node:
        below = n.mapped(node, self._in)
        if isinstance(below, n.Select | n.Join):
            below = replace(below, where=tuple(c for condition in below.where for c in self._conditions(condition)))
        return below

    def _conditions(self, condition: n.Condition) -> Iterator[n.Condition]:
        if not n.condition_labels(condition) & set(self.labels):
            yield condition
            return
        match condition:
            case n.Relates():
                sides = (condition.left, condition.right)
                for bound in RELATIONS[condition.relation]:
                    (first, which), (second, other) = _POINTS[bound.x], _POINTS[bound.y]
                    left, right = self._moment(which, sides[first]), self._moment(other, sides[second])
                    yield n.Compare("<" if bound.limit.strict else "<=", left, right, condition.span)
            case n.Spans():
                ticks = self.clock.length(condition.length)
                length = Const(Duration(condition.length) if self.clock.kind == "timestamp" else ticks)
                for last, begin in itertools.product(condition.labels, repeat=2):
                    lasts = Apply("-", (self._moment("end", last), self._moment("start", begin)))
                    yield n.Compare("<=", lasts, length, condition.span)
            case n.Compare() | n.Holds() | n.Unless() | n.AnyOf() | n.Relative() | n.NoneInside():
                yield n.mapped_condition(condition, self._value)
            case _:
                assert_never(condition)

    def _moment(self, which: End, label: str) -> Expr:
        return Var(_time(label, which)) if label in self.labels else Moment(which, label)

    def _value(self, expr: Expr) -> Expr:
        if isinstance(expr, Moment) and expr.label in self.labels:
            if expr.which == "start" or expr.which == "end":
                return self._moment(expr.which, expr.label)
            return Apply("-", (self._moment("end", expr.label), self._moment("start", expr.label)), expr.span)
        return mapped_term(expr, self._value)


def _time(label: str, which: End) -> str:
    """The variable for a time of a label, which no program can write."""
    return f"#{which} {label}"
