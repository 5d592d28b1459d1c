"""Messages for a failed condition, with its values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self, assert_never

from augury.algebra import nodes as n
from augury.algebra.matching import Binding, Scalars
from augury.algebra.plan import Plan
from augury.algebra.scalar import RowError, compare
from augury.algebra.terms import Build, Const, Expr, Var, show, variables
from augury.core.clock import Clock, show_duration
from augury.core.errors import Span, counted
from augury.core.model import Event, equal, show_value
from augury.explain.why_not.asked import Asked, admits
from augury.explain.why_not.candidates import Nearby
from augury.explain.wording import show_condition
from augury.notation import show_event
from augury.semantics.groups import GroupEvaluator
from augury.semantics.occurrences import Row

UNTOLD = "nothing: with these events it is detected, so not all that was detected was given"
_APART = {
    "SEQ": "{right} does not start after {left} ends",
    "PAR": "{left} and {right} do not overlap",
    "EQUALS": "{left} and {right} are not at the same times",
    "MEETS": "{right} does not start where {left} ends",
    "DURING": "{left} is not strictly inside {right}",
    "STARTS": "{left} does not start with {right} and end before it",
    "FINISHES": "{left} does not end with {right} and start after it",
}


class FailedCondition(str):
    """What failed, in words, with where the condition is written and the events that blocked it."""

    span: Span | None
    events: tuple[Event, ...]

    def __new__(cls, text: str, span: Span | None = None, events: tuple[Event, ...] = ()) -> Self:
        result = super().__new__(cls, text)
        result.span, result.events = span, events
        return result


@dataclass(frozen=True)
class MissWording:
    """What failed, with its values, as the rule language writes them."""

    plan: Plan
    clock: Clock
    scalars: Scalars

    def interval(self, start: int, end: int) -> str:
        return f"[{self.clock.show(start)}, {self.clock.show(end)}]" if start < end else str(self.clock.show(start))

    def stretch(self, start: int, end: int) -> str:
        return f"from {self.clock.show(start)} to {self.clock.show(end)}"

    def too_long(self, what: str, start: int, end: int) -> str:
        length = show_duration(end - start) if self.clock.kind == "timestamp" else end - start
        return f"`{what}`: {self.stretch(start, end)} is {length}"

    def events(self, parts: tuple[Event, ...]) -> str:
        return ", ".join(show_event(p, self.clock) for p in parts)

    def row(self, row: Row) -> str:
        return self.events(row.parts) or self.interval(*interval_of(row))

    def atom(self, name: str, args: tuple[Expr, ...], binding: Binding) -> str:
        return f"{name}({', '.join(show(_filled(a, binding)) for a in args)})" if args else name

    def pattern(self, node: n.Node, binding: Binding) -> str:
        scan = _scan(node)
        return f"event {self.atom(scan.type, scan.args, binding)}" if scan else node.span.quoted

    def missing(self, node: n.Scan | n.Instant | n.Every, world: Nearby) -> str:
        asked = f" {self.stretch(*world.interval)}" if world.interval else ""
        match node:
            case n.Instant():
                return f"the time {show(node.time)} is not{asked}"
            case n.Every():
                return f"no window of `{node.windows.text}` has ended{asked}"
            case n.Scan():
                type = node.predicate
            case _:
                assert_never(node)
        there = world.events.get(type)
        detected = " was detected" if type in self.plan.derived else ""
        if there or detected:
            latest = f"; the latest of its type is {show_event(there[-1], self.clock)}" if there else ""
            if (held := n.held_by(type)) is not None:
                fact = self.atom(held[0], node.args, world.wanted)
                return f"no interval in which `{fact}` holds has begun and ended{asked}{latest}"
            return f"no {self.pattern(node, world.wanted)}{detected}{asked}{latest}"
        others = any(name == node.type for name, _ in world.events)
        return f"no event of type {node.type}" + (f" with {counted(len(node.args), 'argument')}" if others else "")

    def windows(self, windows: tuple[int, ...], row: Row) -> list[str]:
        broken = [w for w in windows if row.end - row.start > self.clock.length(w)]
        return [self.too_long(f"window {show_duration(min(broken))}", row.start, row.end)] if broken else []

    def blocked(self, blocker: Row) -> str:
        text = f"blocked by {self.row(blocker)} [{', '.join(p.id for p in blocker.parts)}]"
        return FailedCondition(text, None, blocker.parts)

    def keys(self, left: Row, right: Row, kept: Row) -> list[str]:
        """The shared variables on which two rows differ, said of the one that is not kept."""
        odd, even = (left, right) if kept is right else (right, left)
        shared = [(v, odd.binding[v], even.binding[v]) for v in sorted(odd.binding.keys() & even.binding.keys())]
        differ = [(v, show_value(x), show_value(y)) for v, x, y in shared if not equal(x, y)]
        return [f"{self.row(odd)}: {v} is {item}, but the others have {other}" for v, item, other in differ]

    def relation(self, node: n.Join, left: Row, right: Row, kept_left: bool) -> str:
        """Where one event is to come after or before what there is, that there is none; else how the two lie."""
        side, kept, odd = (node.right, left, right) if kept_left else (node.left, right, left)
        if node.op != "SEQ" or _scan(side) is None:
            return f"`{node.op}`: " + _APART[node.op].format(left=self.row(left), right=self.row(right))
        when = f"after {self.clock.show(left.end)}" if kept_left else f"before {self.clock.show(right.start)}"
        near = f"; the nearest is {self.row(odd)}" if not set(odd.parts) & set(kept.parts) else ""
        return f"no {self.pattern(side, kept.binding)} {when}{near}"

    def policy(self, node: n.Join, left: Row, right: Row, taken: list[Row], world: Nearby) -> str:
        name, both, later = f"policy {node.policy.name}", (left.parts, right.parts), int(left.order <= right.order)
        if left.parts == right.parts:
            return f"{name} pairs no event with itself"
        if node.policy.before_join:
            return f"{name} per ({', '.join(node.policy.per)}) took {self.row(world.most_recent(node, left, right))} instead"
        pairs = [(row.parts[: len(left.parts)], row.parts[len(left.parts) :]) for row in reversed(taken)]
        instead = next((pair[1 - later] for pair in pairs if pair[later] == both[later]), ())
        used = next((pair[later] for pair in pairs if pair[1 - later] == both[1 - later]), ())
        if instead or not used:
            return f"{name} took {self.events(instead) or 'other events'} instead"
        return f"{name} used up {self.events(both[1 - later])} with {self.events(used)}"

    def condition(self, condition: n.Condition, row: Row, world: Nearby) -> FailedCondition:
        """A condition that failed, with its values."""
        if isinstance(condition, n.NoneInside):
            blocker = world.within(condition, row)
            window = self.stretch(*row.labels[condition.window][:2])
            excluded = n.part_after(condition.window) is not None
            text = f"{self.blocked(blocker)}, {'which NOT excludes' if excluded else f'inside {condition.window} {window}'}"
            return FailedCondition(text, condition.span, blocker.parts)
        return FailedCondition(self._failed(condition, row, world), condition.span)

    def _failed(self, condition: n.Condition, row: Row, world: Nearby) -> str:
        when = ""
        match condition:
            case n.Spans():
                named = [row.labels[label] for label in condition.labels]
                return self.too_long(show_condition(condition), min(i.start for i in named), max(i.end for i in named))
            case n.Holds() | n.Unless():
                if world.static.timed:
                    time = self.clock.show(row.asked_at(condition) + condition.was)
                    when = f" {'just before' if condition.was else 'at'} {time}"
            case n.Compare() | n.AnyOf() | n.Relates() | n.Relative() | n.NoneInside():
                pass
            case _:
                assert_never(condition)
        return f"`{show_condition(condition)}`: {self.values(condition, row)}{when}"

    def values(self, condition: n.Condition, row: Row) -> str:
        """What a condition was asked of, and did not hold."""
        match condition:
            case n.Compare():
                return self._comparison(condition, row)
            case n.Holds():
                return f"there is no {self.atom(condition.name, condition.args, row.binding)}"
            case n.Unless():
                return f"{self.atom(condition.name, condition.args, row.binding)} holds"
            case n.AnyOf():
                names = sorted(n.condition_vars(condition) & row.binding.keys())
                return ", ".join(["none of them holds", *(f"{v} is {show_value(row.binding[v])}" for v in names)])
            case n.Relates():
                sides = [(label, row.labels[label][:2]) for label in (condition.left, condition.right)]
                return ", ".join(f"{label} is {self.interval(*named)}" for label, named in sides)
            case n.Relative():
                return "it would end before it starts"
            case n.Spans() | n.NoneInside():
                return "it does not hold"
            case _:
                assert_never(condition)

    def _comparison(self, condition: n.Compare, row: Row) -> str:
        sides = (condition.left, condition.right)
        left, right = (show(_filled(side, row.binding)) for side in sides)
        if variables(*sides) <= row.binding.keys():
            try:
                values = tuple(self.scalars.evaluate(side, row.binding, row.labels) for side in sides)
                compare(condition.op, *self.scalars.on_clock(values))
            except RowError as error:
                return str(error)
            left, right = (show_value(value) for value in values)
        return f"{left} {condition.op} {right} does not hold"

    def outside(self, collect: n.Collect, row: Row, first: int | None, last: int, nearest: Row | None) -> str:
        inside = f"inside {collect.window} {self.stretch(first, last)}" if first is not None else ""
        other = f"; the nearest is {self.row(nearest)}" if nearest is not None else ""
        return f"no {self.pattern(collect.pattern, row.binding)} {inside or f'that ends by {self.clock.show(last)}'}{other}"

    def head(self, rule: n.Rule, event: Event, asked: Asked, now: int) -> list[str]:
        """How an event that the rule would derive differs from what is asked."""
        args = zip(rule.args, asked.args if asked.args is not None else rule.args, event.args, strict=True)
        lines = [f"`{show(e)}` is {show_value(v)}, not {show(a)}" for e, a, v in args if not admits(a, v)]
        if asked.interval is not None and asked.interval != (event.start, event.end):
            lines.append(f"it is {self.interval(event.start, event.end)}, not {self.interval(*asked.interval)}")
        if event.end > now:
            lines.append(f"not yet: the clock is at {self.clock.show(now)}, it ends at {self.clock.show(event.end)}")
        return lines or [UNTOLD]

    def rank_text(self, top: n.Top, row: Row, position: int | None) -> str:
        """That a row is not among the first."""
        per = f" PER ({', '.join(top.per)})" if top.per else ""
        order = (" ASC" if top.ascending else "") + (" WITH TIES" if top.ties else "")
        text = f"TOP {'ALL' if top.count is None else top.count} BY {show(top.by)}{order}{per}"
        try:
            value = show_value(self.scalars.evaluate(top.by, row.binding, row.labels))
        except RowError as error:
            return f"`{text}`: {error}"
        return f"`{text}`: it is {value}" + (f", in place {position}" if position is not None else "")

    def throttled(self, at_most: n.AtMost, before: list[Event]) -> str:
        """That enough events were given before."""
        listed = ", ".join(show_event(event, self.clock) for event in before)
        return f"`{at_most.text}`: {listed} {'was' if len(before) == 1 else 'were'} given before"

    def uncomputed(self, groups: GroupEvaluator, row: Row) -> list[str]:
        """Why a row gives no event."""
        for arg in groups.rule.args:
            try:
                self.scalars.evaluate(arg, row.binding, row.labels)
            except RowError as error:
                return [f"`{show(arg)}`: {error}"]
        try:
            groups.start(row)
        except RowError as error:
            return [str(error)]
        return []


def _filled(expr: Expr, binding: Binding) -> Expr:
    """The expression with the values of the variables that are bound."""
    match expr:
        case Var() if expr.name in binding:
            return Const(binding[expr.name])
        case Build():
            return replace(expr, args=tuple(_filled(a, binding) for a in expr.args))
    return expr


def _scan(node: n.Node) -> n.Scan | None:
    """The one event that a pattern is, if it is one."""
    while isinstance(node, n.Label | n.Select | n.Within):
        node = node.input
    return node if isinstance(node, n.Scan) else None


def interval_of(row: Row) -> tuple[int, int]:
    return row.start, row.end
