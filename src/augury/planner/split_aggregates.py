"""Splits aggregates over windows by the clock into partial ones, which every bucket computes, and one that combines them.

    total(sum(V)) <- w: every(1h), while w: collect sale(_, V).

    #part any total(T, #bucket) <- w: every(1h), while w: collect sale(_, V), T = #total(V)     in each bucket
    total(#sum(T))              <- w: every(1h), while w: collect #part any total(T, _)          of all of them

Where what is collected has a key, as for `count(distinct V)`, for a ranking of groups or beside `or none`, the part has one
event for each window and key. An absence in such windows needs to know just whether there was anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from augury.algebra import nodes as n
from augury.algebra.clock_windows import Windows
from augury.algebra.kinds import atoms_in, of_kind
from augury.algebra.partial_sums import COMBINED, PARTIAL
from augury.algebra.plan import Plan
from augury.algebra.properties import correlation_key, finality_delays
from augury.algebra.rule_terms import just_windows, makes_windows, windows_by_key
from augury.algebra.stages import ANYWHERE, PART
from augury.algebra.terms import Aggregate, Apply, Const, Expr, Moment, Var, Wild, variables, walk

_EVENTS = (n.Scan, n.Instant, n.SessionWindow, n.Run, n.Graph)


def split_aggregates(plan: Plan) -> Plan:
    """The plan with such rules split; those that have a key, or whose aggregates need all values, stay as they are."""
    late = {type for type, delay in finality_delays(plan).items() if delay != 0}
    rules: list[n.Rule] = []
    for rule in plan.rules:
        rules += [rule] if rule.predicate in late else _Splitting(rule).split()
    if len(rules) == len(plan.rules):
        return plan
    return replace(plan, rules=tuple(rules), aggregates={**plan.aggregates, **PARTIAL})


@dataclass
class _Splitting:
    """Splits one rule; `made` are its parts."""

    rule: n.Rule
    made: list[n.Rule] = field(default_factory=list)

    def split(self) -> list[n.Rule]:
        """The parts of the rule, and what is left of it; or the rule alone."""
        rule = self.rule
        plain = not (rule.makes or rule.held or rule.at_most or rule.delay or rule.latest is not None)
        if not plain or rule.since is not None or rule.until is not None or not of_kind(n.walk(rule.body), n.Every):
            return [rule]
        if just_windows(rule) is None:
            rest = self._beside_windows(rule)
        elif correlation_key(rule) or rule.covers or len(rule.collects) > 1:
            return [rule]
        elif rule.top is not None:
            rest = self._ranked(rule)
        else:
            rest = self._collected(rule, rule.collects[0])
        return [*self.made, rest]

    def _part(self, values: Iterable[str], keyed: bool, like: n.Rule) -> n.Scan:
        """Makes a rule for a part, with variables as arguments; what reads its events."""
        names = list(values)
        count, where = len(self.made) + 1, PART if keyed else ANYWHERE
        args = tuple(map(Var, names)) + (() if keyed else (Const(0),))
        type = f"{where}{self.rule.label} {count}"
        self.made.append(
            replace(like, label=f"{self.rule.label}, part {count}", type=type, args=args, span=self.rule.span)
        )
        return n.Scan(type, tuple(map(Var, names)) + (() if keyed else (Wild(),)))

    # A ranking of groups that have a key

    def _ranked(self, rule: n.Rule) -> n.Rule:
        """The groups are made by key, and ranked together."""
        groups = replace(rule, top=None)
        if rule.top is None or not correlation_key(groups) or any(map(_asks_facts, rule.having)) or _asks_length(rule):
            return rule
        used = variables(*rule.values).union(rule.per, *(collect.by for collect in rule.collects))
        scan = self._part(sorted(used - {rule.top.place}), True, groups)
        assert isinstance(rule.body, n.Label)
        return replace(rule, body=n.Label(rule.body.label, scan), collects=(), having=())

    # Aggregates over all that a window has

    def _collected(self, rule: n.Rule, collect: n.Collect, shared: frozenset[str] = frozenset()) -> n.Rule:
        """With parts in the place of what is collected; `shared` are its variables that the rule has elsewhere."""
        distinct = {part.args[0] for part in (total.aggregate for total in collect.totals) if part.distinct}
        if not all(map(_combines, collect.totals)) or len(distinct) > 1:
            return rule
        values = {value.name for value in distinct if isinstance(value, Var)}
        by = tuple(dict.fromkeys((*collect.by, *sorted(shared | values))))
        parts, combined = list[n.Total](), list[n.Total]()
        for total in collect.totals:
            if total.aggregate.distinct:
                combined.append(replace(total, aggregate=replace(total.aggregate, distinct=False)))
                continue
            part, whole = COMBINED[total.aggregate.function]
            name = f"#{total.name}"
            parts.append(n.Total(name, replace(total.aggregate, function=part)))
            combined.append(n.Total(total.name, Aggregate(whole, (Var(name),))))
        windows = self._windows(rule)[collect.window or ""]
        inner = n.Rule("", "", (), n.Label(collect.window or "", n.Every(windows)))
        inner = replace(inner, collects=(replace(collect, by=by, totals=tuple(parts), none=False),))
        scan = self._part((*by, *(part.name for part in parts)), bool(correlation_key(inner)), inner)
        where = _same(windows, collect.window or "")
        label = _LABEL if where else None
        rest = replace(collect, pattern=scan, where=where, totals=tuple(combined), label=label)
        return replace(rule, collects=tuple(rest if other is collect else other for other in rule.collects))

    # Windows with or without anything in them

    def _beside_windows(self, rule: n.Rule) -> n.Rule:
        """With parts in the place of what is collected, or absent, in windows that are there in any case."""
        nodes = list(n.walk(rule.body))
        if not makes_windows(rule) or any(isinstance(node, _EVENTS) for node in nodes) or _asks_length(rule):
            return rule
        if correlation_key(rule) and windows_by_key(rule):
            return rule
        rest = rule
        for collect in rule.collects:
            if self._is_apart(rule, collect.window, collect.pattern, collect.where, collect.label):
                rest = self._collected(rest, collect, self._shared(rule, collect.pattern, collect.where))
        return replace(rest, body=self._absences(rest.body))

    def _absences(self, node: n.Node) -> n.Node:
        below = n.mapped(node, self._absences)
        if isinstance(below, n.Select):
            below = replace(below, where=tuple(map(self._absence, below.where)))
        return below

    def _absence(self, condition: n.Condition) -> n.Condition:
        if not isinstance(condition, n.NoneInside) or condition.where:
            return condition
        if not self._is_apart(self.rule, condition.window, condition.pattern, (), None):
            return condition
        windows = self._windows(self.rule)[condition.window]
        if windows.unit != "us":
            return condition
        by = tuple(sorted(n.bound_vars(condition.pattern) & n.bound_vars(self.rule.body)))
        inner = n.Rule("", "", (), n.Label(condition.window, n.Every(windows)))
        inner = replace(inner, collects=(n.Collect(condition.pattern, condition.window, by=by),))
        return replace(condition, pattern=self._part(by, bool(correlation_key(inner)), inner))

    def _windows(self, rule: n.Rule) -> dict[str, Windows]:
        """The windows by the clock of a rule, by their labels."""
        result = dict[str, Windows]()
        for node in n.walk(rule.body):
            if isinstance(node, n.Label) and isinstance(node.input, n.Every):
                result[node.label] = node.input.windows
            previous = (c for c in n.conditions(node) if isinstance(c, n.Relative) and c.windows is not None)
            result |= {c.label: c.windows for c in previous if c.windows is not None}
        return result

    def _is_apart(
        self, rule: n.Rule, window: str | None, pattern: n.Node, where: tuple[n.Condition, ...], label: str | None
    ) -> bool:
        """Whether what a window has is told by the events in it alone."""
        scan = pattern.input if isinstance(pattern, n.Select) else pattern
        if window not in self._windows(rule) or not isinstance(scan, n.Scan):
            return False
        asked = [*where, *(pattern.where if isinstance(pattern, n.Select) else ())]
        seen = n.bound_vars(pattern).union(*(n.bound_vars(n.Select(pattern, (c,))) for c in where))
        return all(n.condition_vars(c) <= seen and n.condition_labels(c) <= {window, label} for c in asked)

    def _shared(self, rule: n.Rule, pattern: n.Node, where: Iterable[n.Condition] = ()) -> frozenset[str]:
        """The variables of what is collected that the rule has in its rows."""
        rows = n.bound_vars(rule.body).union(*(collect.by for collect in rule.collects))
        return frozenset(n.bound_vars(pattern).union(*map(n.condition_vars, where)) & rows)


_LABEL = "#part"


def _combines(total: n.Total) -> bool:
    """Whether an aggregate follows from those of parts."""
    part = total.aggregate
    if part.distinct:
        return part.function == "count" and len(part.args) == 1 and isinstance(part.args[0], Var)
    return part.function in COMBINED and not any(map(_may_fail, part.args))


def _may_fail(arg: Expr) -> bool:
    """Whether an argument may be an error, which would take a part away and not the whole; `sum(V where c)` has none."""
    match arg:
        case Apply("if", (_, Var() | Const(), Const())) | Var():
            return False
    return True


def _same(windows: Windows, window: str) -> tuple[n.Condition, ...]:
    """That a part is one of this very window: those of the calendar may lie in one another."""
    if windows.unit == "us":
        return ()
    return tuple(n.Compare("=", Moment(which, _LABEL), Moment(which, window)) for which in ("start", "end"))


def _asks_facts(condition: n.Condition) -> bool:
    return bool(atoms_in(condition))


def _asks_length(rule: n.Rule) -> bool:
    """Whether a rule asks for the length of a window, which no other label has."""
    terms = [*rule.values, *(term for condition in rule.conditions for term in n.condition_terms(condition))]
    return any(isinstance(part, Moment) and part.which == "length" for term in terms for part in walk(term))
