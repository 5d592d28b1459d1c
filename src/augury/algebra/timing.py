"""Translates every temporal condition of a pattern into one table of difference bounds.

o: order(N), s: shipped(N), o before s, {o, s} within 12h   →   o.e < s.s, s.e - o.s <= 12h, …
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from augury.algebra import nodes as n
from augury.algebra.clock_windows import Windows
from augury.algebra.kinds import inner_absences, relative_labels
from augury.algebra.plan import Predicate
from augury.algebra.relations import OPERATORS, RELATIONS, RELATIVE, Bound, Bounds, Contradiction, Limit, Reason
from augury.algebra.terms import Apply, Const, Expr, Moment, mapped_term, show
from augury.core.clock import SECOND, Duration, Timestamp, show_duration
from augury.core.errors import Span

Point = tuple[str, str]  # the name of an interval, and which end of it: "s" or "e"
Lengths = Mapping[Predicate, int | None]
_ORIGIN: Point = ("", "origin")
# Which part an operator's cover starts with, and which it ends with, where that is always the same one.
_COVERED_BY = {
    "SEQ": ("left", "right"),
    "MEETS": ("left", "right"),
    "DURING": ("right", "right"),
    "STARTS": ("right", "right"),
    "FINISHES": ("right", "right"),
    "EQUALS": ("left", "left"),
}


class Timing:
    """Says every temporal condition of a pattern in one table of bounds."""

    def __init__(
        self, tick: int | None, lengths: Lengths | None = None, shortest: Mapping[Predicate, int] | None = None
    ) -> None:
        """With `lengths`, scans are as long as their types say, inputs being points; without, of any length.

        `shortest` says how long the events of a type last at least.
        """
        self.tick, self.lengths, self.shortest = tick, lengths, shortest or {}
        self.table: Bounds[Point] = Bounds(tick)
        self.names: dict[int, str] = {}  # the interval of each node, by identity
        self.branches: list[tuple[Reason, ...]] = []
        self.covers: list[tuple[str, str, str]] = []

    def close(self) -> None:
        """The closure. A cover ends with one of its parts and starts with one, which bounds it from the other side."""
        self.table.close()
        while sum(self._bound_cover(*cover) for cover in self.covers):
            self.table.close()

    def _bound_cover(self, name: str, left: str, right: str) -> bool:
        """The cover is no later than the later part and no earlier than the earlier one; whether that was news."""
        news = False
        for point in list(self.table.points):
            ends = (self.table.limit((left, "e"), point), self.table.limit((right, "e"), point))
            starts = (self.table.limit(point, (left, "s")), self.table.limit(point, (right, "s")))
            news = self._looser((name, "e"), point, *ends) or news
            news = self._looser(point, (name, "s"), *starts) or news
        return news

    def _looser(self, x: Point, y: Point, first: Limit | None, second: Limit | None) -> bool:
        if first is None or second is None:
            return False
        looser, limit = second if first.tighter(second) else first, self.table.limit(x, y)
        if limit is not None and not looser.tighter(limit):
            return False
        self.table.add(x, y, looser)
        return True

    def interval(self, node: n.Node) -> str:
        return self.names[id(node)]

    def add(self, node: n.Node) -> str:
        """Adds a pattern; the name of its interval."""
        name = self._add(node)
        self.names[id(node)] = name
        return name

    def _name(self, kind: str) -> str:
        name = f"{kind}#{len(self.names)}"
        while (name, "s") in self.table.points:
            name += "'"
        return name

    def _new(self, kind: str) -> str:
        name = self._name(kind)
        self._at_most(name, "s", name, "e", Limit(0))
        return name

    def _is(self, name: str, start: Point, end: Point) -> None:
        """A name for an interval whose ends are there already."""
        self.table.same((name, "s"), start)
        self.table.same((name, "e"), end)

    def _at_most(self, x: str, x_end: str, y: str, y_end: str, limit: Limit, reason: Reason | None = None) -> None:
        self.table.add((x, x_end), (y, y_end), limit, reason)

    def _equal(self, x: Point, y: Point, difference: int = 0, reason: Reason | None = None) -> None:
        self.table.add(x, y, Limit(difference), reason)
        self.table.add(y, x, Limit(-difference), reason)

    def _relation(self, bounds: Iterable[Bound], left: str, right: str, reason: Reason) -> None:
        points: dict[str, Point] = {"a": (left, "s"), "b": (left, "e"), "c": (right, "s"), "d": (right, "e")}
        for bound in bounds:
            self.table.add(points[bound.x], points[bound.y], bound.limit, reason)

    def _window(self, name: str, length: int, span: Span) -> None:
        self._at_most(name, "e", name, "s", Limit(length), Reason(f"the window of {show_duration(length)}", span))

    def _add(self, node: n.Node) -> str:
        match node:
            case n.Scan():
                name = self._new(node.type)
                lengths = self.lengths if node.held is None else None  # a fact may hold for any time
                longest = None if lengths is None else lengths.get(node.predicate, 0)
                if longest is not None:
                    text = f"the length of `{node.type}`, {show_duration(longest)} at most"
                    self._at_most(name, "e", name, "s", Limit(longest), Reason(text, node.span))
                if node.held is None and (shortest := self.shortest.get(node.predicate)):
                    text = f"the length of `{node.type}`, {show_duration(shortest)} at least"
                    self._at_most(name, "s", name, "e", Limit(-shortest), Reason(text, node.span))
                return name
            case n.Instant():
                name = self._new("point")
                time = node.time.value
                assert isinstance(time, Timestamp | int), "a time point is a time or a tick"
                us = time.us if isinstance(time, Timestamp) else time * (self.tick or SECOND)
                reason = Reason("the time points", node.span)
                self._equal((name, "s"), _ORIGIN, us, reason)
                self._equal((name, "e"), (name, "s"), 0, reason)
                return name
            case n.Every():
                name = self._new("every")
                reason = Reason(f"the windows `{node.windows.text}`", node.span)
                self._at_most(name, "e", name, "s", Limit(node.windows.longest), reason)
                return name
            case n.SessionWindow():
                inner, name = self.add(node.input), self._new("session")
                self._at_most(name, "s", inner, "s", Limit(0))
                self._at_most(inner, "e", name, "e", Limit(-node.gap))
                if node.most is not None:
                    self._window(name, node.most, node.span)
                return name
            case n.Label():
                inner = self.add(node.input)
                self._is(node.label, (inner, "s"), (inner, "e"))
                return node.label
            case n.Select():
                inner = self.add(node.input)
                self.add_where(node.where)
                return inner
            case n.Graph() | n.Unfold():
                return self.add(node.input)
            case n.Within():
                inner = self.add(node.input)
                self._window(inner, node.length, node.span)
                return inner
            case n.Join():
                return self._join(node)
            case n.Either():
                return self._either(node)
            case n.Repeat():
                return self._repeat(node)
            case n.Run():
                return self._run(node)
            case _:
                assert_never(node)

    def _join(self, node: n.Join) -> str:
        left, right = self.add(node.left), self.add(node.right)
        name = self._covering(node.op, left, right, node.span)
        for length in node.windows:
            self._window(name, length, node.span)
        self.add_where(node.where)
        return name

    def _covering(self, op: str, left: str, right: str, span: Span) -> str:
        """The cover of two parts in a relation: it starts with one of them and ends with one."""
        self._relation(OPERATORS[op], left, right, Reason(f"{op} of its two parts", span))
        starts, ends = _COVERED_BY.get(op, (None, None))
        if starts is not None and ends is not None:
            sides = {"left": left, "right": right}
            name = self._name(op.lower())
            self._is(name, (sides[starts], "s"), (sides[ends], "e"))
            return name
        name = self._new(op.lower())
        for side in (left, right):
            self._at_most(name, "s", side, "s", Limit(0))
            self._at_most(side, "e", name, "e", Limit(0))
        self.covers.append((name, left, right))
        return name

    def _either(self, node: n.Either) -> str:
        """Each branch by itself; together only what both promise: their greatest length."""
        name, lengths = self._new("or"), []
        for side in (node.left, node.right):
            inner = self._alone(side)
            if inner is not None:
                branch = inner.interval(side)
                self.branches.extend(inner.branches)
                lengths.append(inner.table.limit((branch, "e"), (branch, "s")))
        if len(lengths) == 2 and all(limit is not None for limit in lengths):
            longest = max(limit.value for limit in lengths if limit is not None)
            self._at_most(name, "e", name, "s", Limit(longest))
        return name

    def _run(self, node: n.Run) -> str:
        """From its first part to its last. Parts that are there once, always, are related; the others stand alone."""
        name, before, firm = self._new("run"), "", set[str]()
        for part in node.parts:
            if part.repeats or part.optional:
                self._alone(part.input, needed=not part.optional)
                continue
            inner = self.add(part.input)
            firm |= {part.label} if part.label else set()
            self._at_most(name, "s", inner, "s", Limit(0))
            self._at_most(inner, "e", name, "e", Limit(0))
            if before:
                self._relation(OPERATORS["SEQ"], before, inner, Reason(f"{part.link} of its two parts", node.span))
            if part is node.parts[0]:
                self._at_most(inner, "s", name, "s", Limit(0))
            if part is node.parts[-1]:
                self._at_most(name, "e", inner, "e", Limit(0))
            before = inner
        for length in node.windows:
            self._window(name, length, node.span)
        for gap in (c.window for c in inner_absences(node.where) if n.part_after(c.window) is not None):
            self._at_most(name, "s", gap, "s", Limit(0))
            self._at_most(gap, "e", name, "e", Limit(0))
        where = n.conditions(node)
        firm |= relative_labels(where)
        self.add_where(c for c in where if n.condition_labels(c) <= firm)
        return name

    def _alone(self, node: n.Node, needed: bool = True) -> Timing | None:
        """A pattern in a table of its own; none where it contradicts itself, which is reported where it is `needed`."""
        inner = Timing(self.tick, self.lengths, self.shortest)
        inner.add(node)
        self.names.update({key: f"{value}@{id(node)}" for key, value in inner.names.items()})
        try:
            inner.close()
        except Contradiction as found:
            self.branches += [found.reasons] if needed else []
            return None
        return inner

    def _repeat(self, node: n.Repeat) -> str:
        inner, name = self._alone(node.input), self._new("repeat")
        if inner is None:
            return name
        reason = Reason(f"{node.count} occurrences in sequence", node.span)
        at_least = (node.count - 1) * (self.tick or 0)
        self._at_most(name, "s", name, "e", Limit(-at_least, strict=self.tick is None), reason)
        for length in node.windows:
            self._window(name, length, node.span)
        return name

    def add_where(self, where: Iterable[n.Condition]) -> None:
        for condition in where:
            match condition:
                case n.Relates():
                    reason = Reason(f"`{condition.left} {condition.relation} {condition.right}`", condition.span)
                    self._relation(RELATIONS[condition.relation], condition.left, condition.right, reason)
                case n.Spans():
                    reason = Reason(f"the window of {show_duration(condition.length)}", condition.span)
                    for x in condition.labels:
                        for y in condition.labels:
                            self._at_most(x, "e", y, "s", Limit(condition.length), reason)
                case n.Relative():
                    self._relative(condition)
                case n.Compare():
                    self._compare(condition)
                case n.AnyOf() | n.Holds() | n.NoneInside() | n.Unless():
                    pass
                case _:
                    assert_never(condition)

    def _previous(self, condition: n.Relative, windows: Windows) -> None:
        """It begins before the window that it precedes, no farther than windows lie apart, and ends before that does."""
        label, anchor = condition.label, condition.anchor
        reason = Reason(f"`{label}: previous({anchor})`", condition.span)
        self._at_most(anchor, "s", label, "s", Limit(windows.farthest), reason)
        self._at_most(label, "s", anchor, "s", Limit(0), reason)
        self._at_most(label, "e", anchor, "e", Limit(0), reason)
        self._at_most(label, "e", label, "s", Limit(windows.longest), reason)
        self._at_most(label, "s", label, "e", Limit(0))

    def _relative(self, condition: n.Relative) -> None:
        if condition.windows is not None:
            self._previous(condition, condition.windows)
            return
        length, label, anchor = condition.length, condition.label, condition.anchor
        text = show_duration(length) if isinstance(length, int) else show(length)
        reason = Reason(f"`{label}: {condition.kind}({anchor}, {text})`", condition.span)
        for point, (origin, sign) in zip("se", RELATIVE[condition.kind], strict=True):
            if isinstance(length, int) or sign == 0:
                shift = sign * length if isinstance(length, int) else 0
                self._equal((label, point), (anchor, origin[0]), shift, reason)
                continue
            # It lies beyond the origin, by the bound at most.
            ends = (label, point), (anchor, origin[0])
            far, near = ends if sign > 0 else ends[::-1]
            self.table.add(near, far, Limit(0), reason)
            if condition.bound is not None:
                self.table.add(far, near, Limit(condition.bound), reason)
        self._at_most(label, "s", label, "e", Limit(0))

    def _compare(self, condition: n.Compare) -> None:
        """A comparison that is a bound on the difference of two labelled times, whichever way it is written."""
        both = _without_absolute(condition)
        if both is not None:
            for one_sided in both:
                self._compare(one_sided)
            return
        linear = _difference(condition.left, condition.right, self.tick or SECOND)
        if linear is None or condition.op == "!=":
            return
        x, y, constant = linear  # left - right is x - y + constant
        reason = Reason("the comparison of times", condition.span)
        match condition.op:
            case "<" | "<=":
                self.table.add(x, y, Limit(-constant, condition.op == "<"), reason)
            case ">" | ">=":
                self.table.add(y, x, Limit(constant, condition.op == ">"), reason)
            case "=":
                self._equal(x, y, -constant, reason)


def _without_absolute(condition: n.Compare) -> tuple[n.Compare, n.Compare] | None:
    """The two inequalities that an upper bound on an absolute difference implies; None where there is no such bound.

    `abs(end(a) - end(b)) < 30`   →   `end(a) - end(b) < 30`, `0 - (end(a) - end(b)) < 30`
    """
    for side, sign in ((condition.left, 1), (condition.right, -1)):
        absolute = _absolute(side, sign)
        if absolute is None:
            continue
        value, sign = absolute
        op = condition.op
        if op == "=":
            op = "<=" if sign > 0 else ">="
        if op not in (("<", "<=") if sign > 0 else (">", ">=")):
            return None
        (inner,) = value.args
        opposite = Apply("-", (Const(0), inner))
        left, right = condition.left, condition.right
        first, second = (
            replace(condition, op=op, left=_replaced(left, value, new), right=_replaced(right, value, new))
            for new in (inner, opposite)
        )
        return first, second
    return None


def _replaced(expr: Expr, old: Expr, new: Expr) -> Expr:
    return new if expr is old else mapped_term(expr, lambda part: _replaced(part, old, new))


def _absolute(expr: Expr, sign: int) -> tuple[Apply, int] | None:
    """The first absolute value that a sum or difference adds (sign 1) or subtracts (sign -1)."""
    match expr:
        case Apply(function="abs"):
            return expr, sign
        case Apply(function="+" | "-", args=(first, second)):
            return _absolute(first, sign) or _absolute(second, sign if expr.function == "+" else -sign)
    return None


def linear_point(expr: Expr) -> tuple[Point, int] | None:
    """A time as that of a label and a length, in microseconds: `start(r) + 5min`; None where it is not written so."""
    match expr:
        case Moment(which="start" | "end"):
            return (expr.label, expr.which[0]), 0
        case Apply(function="+" | "-", args=(first, Const(value=Duration() as length))):
            result = linear_point(first)
            sign = 1 if expr.function == "+" else -1
            return None if result is None else (result[0], result[1] + sign * length.us)
    return None


def _difference(left: Expr, right: Expr, second: int) -> tuple[Point, Point, int] | None:
    """`left - right` as the difference of two time points and a constant, where it is one."""
    points: dict[Point, int] = {}
    constants: list[int] = []

    def visit(expr: Expr, sign: int) -> bool:
        match expr:
            case Moment(which="duration"):
                points[expr.label, "e"] = points.get((expr.label, "e"), 0) + sign
                points[expr.label, "s"] = points.get((expr.label, "s"), 0) - sign
            case Moment(which="length"):
                return False
            case Moment():
                point = (expr.label, expr.which[0])
                points[point] = points.get(point, 0) + sign
            case Const(value=Duration() as duration):
                constants.append(sign * duration.us)
            case Const(value=int() as number) if not isinstance(number, bool):
                constants.append(sign * number * second)
            case Apply(function="+" | "-", args=(first, other)):
                return visit(first, sign) and visit(other, sign if expr.function == "+" else -sign)
            case _:
                return False
        return True

    if not (visit(left, 1) and visit(right, -1)):
        return None
    plus = [p for p, count in points.items() if count == 1]
    minus = [p for p, count in points.items() if count == -1]
    if len(plus) == len(minus) == 1 and all(count in (-1, 0, 1) for count in points.values()):
        return plus[0], minus[0], sum(constants)
    return None
