"""What follows from the shape of a rule: bounds on its times, how long each operator must remember, when an absence is
certain, the key that correlates its events, and what it shares with other rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from augury.algebra.nodes import (
    Compare,
    Condition,
    Either,
    Follow,
    Instant,
    Join,
    Kleene,
    Label,
    Node,
    NoneInside,
    Relates,
    Relative,
    Repeat,
    Rule,
    Scan,
    Select,
    Spans,
    Within,
    bound_vars,
    conditions,
    walk,
    walk_all,
)
from augury.algebra.place import place
from augury.algebra.program import Plan, Predicate
from augury.algebra.relations import ALLEN, OPERATORS, RELATIVE, Bound, Bounds, Contradiction, Limit, Reason
from augury.algebra.strata import strata
from augury.algebra.terms import Apply, Build, Const, Expr, Moment, Var
from augury.clock import SECOND, Duration, Timestamp, show_duration
from augury.errors import Span

Point = tuple[str, str]  # the name of an interval, and which end of it
_ORIGIN: Point = ("", "origin")


@dataclass(frozen=True)
class Memory:
    """How long one side of an operator is kept, in microseconds; None is without a bound, negative is not at all."""

    operator: str
    side: str
    keep: int | None
    span: Span = field(compare=False, repr=False)

    @property
    def text(self) -> str:
        if self.keep is None:
            return "without bound"
        return "not stored" if self.keep < 0 else show_duration(self.keep)


@dataclass(frozen=True)
class Properties:
    """The properties of a rule: `contradiction` says why it can never be detected, `longest` bounds its events."""

    table: Bounds[Point]
    memory: tuple[Memory, ...]
    key: tuple[str, ...]
    settles: tuple[str, ...]
    longest: int | None = None
    contradiction: tuple[Reason, ...] = ()

    @property
    def horizon(self) -> int | None:
        """How long the rule must remember anything at all; None is without a bound."""
        if any(m.keep is None for m in self.memory):
            return None
        return max((m.keep for m in self.memory if m.keep is not None), default=0)


Lengths = Mapping[Predicate, int | None]


def all_properties(plan: Plan) -> dict[str, Properties]:
    """The properties of every rule, by label.

    How long state is kept is counted for inputs that are points; an input interval adds its own length. The length of a
    derived event is bounded by its rules; that of a recursive one by nothing but a window.
    """
    lengths: dict[Predicate, int | None] = {}
    found: dict[str, Properties] = {}
    for stratum in strata(plan):
        lengths.update(dict.fromkeys(stratum.types))
        for rule in stratum.rules:
            found[rule.label] = properties(rule, plan.tick, lengths)
        for type in stratum.types:
            bounds = [found[rule.label].longest for rule in stratum.rules if rule.predicate == type]
            lengths[type] = None if None in bounds else max((b for b in bounds if b is not None), default=None)
    return found


def properties(rule: Rule, tick: int | None = None, lengths: Lengths | None = None) -> Properties:
    """The properties of a rule as written. `lengths` bounds the events of derived types; other types are inputs."""
    body = place(rule.body)
    general = _Builder(tick)
    general.add(body)
    try:
        general.close()
    except Contradiction as found:
        return Properties(general.table, (), correlation_key(rule), (), None, found.reasons)
    for branch in general.branches:
        return Properties(general.table, (), correlation_key(rule), (), None, branch)
    builder = _Builder(tick, {} if lengths is None else lengths)
    whole = builder.add(body)
    try:
        builder.close()
    except Contradiction:  # the rule needs intervals, as PAR does
        builder = _Builder(tick)
        whole = builder.add(body)
        builder.close()
    memory = tuple(_memories(builder, body, rule, whole))
    return Properties(
        general.table, memory, correlation_key(rule), tuple(_settling(body)), _longest(builder, rule, whole)
    )


def _longest(builder: _Builder, rule: Rule, whole: str) -> int | None:
    """The greatest length of a derived event: the cover of the row and the windows."""
    if rule.collect is not None and rule.collect.last is not None:
        return None
    parts = [whole, *rule.covers]
    limits = [builder.table.limit((x, "e"), (y, "s")) for x in parts for y in parts]
    return None if None in limits else max(limit.value for limit in limits if limit is not None)


def interval_table(rule: Rule, tick: int | None = None) -> tuple[Bounds[Point], dict[int, str], str] | None:
    """The closed bounds of a rule, the interval of each scan by its place in the text, and that of the whole."""
    builder = _Builder(tick)
    body = place(rule.body)
    whole = builder.add(body)
    try:
        builder.close()
    except Contradiction:
        return None
    scans = {n.span.start: builder.interval(n) for n in walk(body) if isinstance(n, Scan)}
    return builder.table, scans, whole


class _Builder:
    """Says every temporal condition of a pattern in one table of bounds."""

    def __init__(self, tick: int | None, lengths: Lengths | None = None) -> None:
        """With `lengths`, scans are as long as their types say, inputs being points; without, of any length."""
        self.tick, self.lengths = tick, lengths
        self.table: Bounds[Point] = Bounds(tick)
        self.names: dict[int, str] = {}  # the interval of each node, by identity
        self.branches: list[tuple[Reason, ...]] = []
        self.covers: list[tuple[str, str, str]] = []

    def close(self) -> None:
        """The closure. A cover ends with one of its parts and starts with one, which bounds it from the other side."""
        self.table.close()
        for _ in self.covers:
            tighter = False
            for name, left, right in self.covers:
                for point in list(self.table.points):
                    for mine, sides, forward in (("e", "e", True), ("s", "s", False)):
                        pair = [
                            self.table.limit((side, sides), point)
                            if forward
                            else self.table.limit(point, (side, sides))
                            for side in (left, right)
                        ]
                        if pair[0] is None or pair[1] is None:
                            continue
                        looser = pair[0] if pair[1].tighter(pair[0]) else pair[1]
                        x, y = ((name, mine), point) if forward else (point, (name, mine))
                        known = self.table.limit(x, y)
                        if known is None or looser.tighter(known):
                            self.table.add(x, y, looser)
                            tighter = True
            if not tighter:
                return
            self.table.close()

    def interval(self, node: Node) -> str:
        return self.names[id(node)]

    def add(self, node: Node) -> str:
        """Adds a pattern; the name of its interval."""
        name = self._add(node)
        self.names[id(node)] = name
        return name

    def _new(self, kind: str) -> str:
        name = f"{kind}#{len(self.names)}"
        while (name, "s") in self.table.points:
            name += "'"
        self._at_most(name, "s", name, "e", Limit(0))
        return name

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

    def _add(self, node: Node) -> str:
        match node:
            case Scan():
                name = self._new(node.type)
                if self.lengths is not None:
                    longest = self.lengths.get((node.type, len(node.args)), 0)
                    if longest is not None:
                        self._at_most(name, "e", name, "s", Limit(longest))
                return name
            case Instant():
                name = self._new("point")
                time = node.time.value
                assert isinstance(time, Timestamp | int), "a time point is a time or a tick"
                us = time.us if isinstance(time, Timestamp) else time * (self.tick or SECOND)
                reason = Reason("the time points", node.span)
                self._equal((name, "s"), _ORIGIN, us, reason)
                self._equal((name, "e"), (name, "s"), 0, reason)
                return name
            case Label():
                inner = self.add(node.input)
                self._at_most(node.label, "s", node.label, "e", Limit(0))
                self._equal((node.label, "s"), (inner, "s"))
                self._equal((node.label, "e"), (inner, "e"))
                return node.label
            case Select():
                inner = self.add(node.input)
                self.add_where(node.where)
                return inner
            case Within():
                inner = self.add(node.input)
                self._window(inner, node.length, node.span)
                return inner
            case Join():
                return self._join(node)
            case Either():
                return self._either(node)
            case Repeat() | Kleene():
                return self._repeat(node)
            case Follow():
                left, right = self.add(node.first), self.add(node.then)
                return self._covering("SEQ", left, right, node.span)

    def _join(self, node: Join) -> str:
        left, right = self.add(node.left), self.add(node.right)
        name = self._covering(node.op, left, right, node.span)
        for length in node.windows:
            self._window(name, length, node.span)
        self.add_where(node.where)
        return name

    def _covering(self, op: str, left: str, right: str, span: Span) -> str:
        """The cover of two parts in a relation."""
        name = self._new(op.lower())
        self._relation(OPERATORS[op], left, right, Reason(f"{op} of its two parts", span))
        for side in (left, right):
            self._at_most(name, "s", side, "s", Limit(0))
            self._at_most(side, "e", name, "e", Limit(0))
        starts = {"SEQ": left, "MEETS": left, "DURING": right, "STARTS": right, "FINISHES": right, "EQUALS": left}
        ends = {"SEQ": right, "MEETS": right, "DURING": right, "STARTS": right, "FINISHES": right, "EQUALS": right}
        if op in starts:
            self._equal((name, "s"), (starts[op], "s"))
            self._equal((name, "e"), (ends[op], "e"))
        else:
            self.covers.append((name, left, right))
        return name

    def _either(self, node: Either) -> str:
        """Each branch by itself; together only what both promise: their greatest length."""
        name, lengths = self._new("or"), []
        for side in (node.left, node.right):
            inner = _Builder(self.tick, self.lengths)
            branch = inner.add(side)
            self.names.update({key: f"{value}@{id(side)}" for key, value in inner.names.items()})
            try:
                inner.close()
            except Contradiction as found:
                self.branches.append(found.reasons)
                continue
            self.branches.extend(inner.branches)
            lengths.append(inner.table.limit((branch, "e"), (branch, "s")))
        if len(lengths) == 2 and all(limit is not None for limit in lengths):
            longest = max(limit.value for limit in lengths if limit is not None)
            self._at_most(name, "e", name, "s", Limit(longest))
        return name

    def _repeat(self, node: Repeat | Kleene) -> str:
        inner = _Builder(self.tick, self.lengths)
        inner.add(node.input)
        self.names.update({key: f"{value}@{id(node)}" for key, value in inner.names.items()})
        name = self._new("repeat")
        try:
            inner.close()
        except Contradiction as found:
            self.branches.append(found.reasons)
            return name
        if isinstance(node, Repeat):
            reason = Reason(f"{node.count} occurrences in sequence", node.span)
            at_least = (node.count - 1) * (self.tick or 0)
            self._at_most(name, "s", name, "e", Limit(-at_least, strict=self.tick is None), reason)
            for length in node.windows:
                self._window(name, length, node.span)
        return name

    def add_where(self, where: Iterable[Condition]) -> None:
        for condition in where:
            match condition:
                case Relates():
                    reason = Reason(f"`{condition.left} {condition.relation} {condition.right}`", condition.span)
                    self._relation(ALLEN[condition.relation], condition.left, condition.right, reason)
                case Spans():
                    reason = Reason(f"the window of {show_duration(condition.length)}", condition.span)
                    for x in condition.labels:
                        for y in condition.labels:
                            self._at_most(x, "e", y, "s", Limit(condition.length), reason)
                case Relative():
                    self._relative(condition)
                case Compare():
                    self._compare(condition)

    def _relative(self, condition: Relative) -> None:
        (first, back), (second, forth) = RELATIVE[condition.kind]
        reason = Reason(
            f"`{condition.label}: {condition.kind}({condition.anchor}, {show_duration(condition.length)})`",
            condition.span,
        )
        self._equal((condition.label, "s"), (condition.anchor, first[0]), back * condition.length, reason)
        self._equal((condition.label, "e"), (condition.anchor, second[0]), forth * condition.length, reason)
        self._at_most(condition.label, "s", condition.label, "e", Limit(0))

    def _compare(self, condition: Compare) -> None:
        """A comparison that is a bound on the difference of two labelled times, whichever way it is written."""
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


def _difference(left: Expr, right: Expr, second: int) -> tuple[Point, Point, int] | None:
    """`left - right` as the difference of two time points and a constant, where it is one."""
    points: dict[Point, int] = {}
    constants: list[int] = []

    def visit(expr: Expr, sign: int) -> bool:
        match expr:
            case Moment(which="duration"):
                points[expr.label, "e"] = points.get((expr.label, "e"), 0) + sign
                points[expr.label, "s"] = points.get((expr.label, "s"), 0) - sign
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
    plus = [p for p, n in points.items() if n == 1]
    minus = [p for p, n in points.items() if n == -1]
    if len(plus) == len(minus) == 1 and all(n in (-1, 0, 1) for n in points.values()):
        return plus[0], minus[0], sum(constants)
    return None


def _memories(builder: _Builder, body: Node, rule: Rule, whole: str) -> Iterator[Memory]:
    table = builder.table

    def keep(x: Point, y: Point) -> int | None:
        limit = table.limit(x, y)
        return None if limit is None else -1 if limit.impossible else limit.value

    for node in walk(body):
        if isinstance(node, Join):
            left, right = builder.interval(node.left), builder.interval(node.right)
            if (left, "e") not in table.points or (right, "e") not in table.points:
                yield from _inner_memories(node, builder)
                continue
            yield Memory(node.op, "left", keep((right, "e"), (left, "e")), node.span)
            yield Memory(node.op, "right", keep((left, "e"), (right, "e")), node.span)
            if node.absent is not None:
                yield Memory("NOT", "absent", keep((right, "e"), (left, "e")), node.span)
        elif isinstance(node, Follow):
            yield Memory(
                "FOLLOW",
                "left",
                keep((builder.interval(node.then), "e"), (builder.interval(node.first), "e")),
                node.span,
            )
        elif isinstance(node, Repeat | Kleene):
            yield Memory(
                "REPEAT", "left", min(node.windows) if isinstance(node, Repeat) and node.windows else None, node.span
            )
        for condition in conditions(node):
            if isinstance(condition, NoneInside):
                row = builder.interval(node)
                yield Memory("WHILE NOT", "waiting", keep((condition.window, "e"), (row, "e")), condition.span)
                yield Memory("WHILE NOT", "absent", keep((row, "e"), (condition.window, "s")), condition.span)
    if rule.collect is not None and rule.collect.window is not None:
        window = rule.collect.window
        yield Memory("COLLECT", "waiting", keep((window, "e"), (whole, "e")), rule.collect.span)
        yield Memory("COLLECT", "collected", keep((whole, "e"), (window, "s")), rule.collect.span)


def _inner_memories(node: Join, outer: _Builder) -> Iterator[Memory]:
    """An operator inside a branch or a repetition is bounded by itself."""
    builder = _Builder(outer.tick, outer.lengths)
    builder.add(node)
    try:
        builder.close()
    except Contradiction:
        return
    left, right = builder.interval(node.left), builder.interval(node.right)
    for side, x, y in (("left", right, left), ("right", left, right)):
        limit = builder.table.limit((x, "e"), (y, "e"))
        yield Memory(node.op, side, None if limit is None else -1 if limit.impossible else limit.value, node.span)


def _settling(body: Node) -> Iterator[str]:
    """When each absence of a rule is certain."""
    for node in walk(body):
        if isinstance(node, Join) and node.absent is not None:
            yield "NOT: when the closing part starts"
        for condition in conditions(node):
            if isinstance(condition, NoneInside):
                yield f"while {condition.window}: at end({condition.window}) = {_end_of(body, condition.window)}"


def _end_of(body: Node, window: str) -> str:
    for node in walk(body):
        for condition in conditions(node):
            if isinstance(condition, Relative) and condition.label == window:
                which, sign = RELATIVE[condition.kind][1]
                if sign == 0:
                    return f"{which}({condition.anchor})"
                return f"{which}({condition.anchor}) {'+' if sign > 0 else '-'} {show_duration(condition.length)}"
    return f"end({window})"


def correlation_key(rule: Rule) -> tuple[str, ...]:
    """The variables that every event of the rule carries as an argument of its own, equal ones taken as one."""
    patterns = [rule.body, *([rule.collect.pattern] if rule.collect else [])]
    scans = [n for p in patterns for n in walk_all(p) if isinstance(n, Scan)]
    same = _equalities(patterns)
    common: set[str] | None = None
    for scan in scans:
        own = {same(a.name) for a in scan.args if isinstance(a, Var)}
        common = own if common is None else common & own
    return tuple(sorted(common or ()))


def _equalities(patterns: list[Node]) -> Callable[[str], str]:
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while parent.get(name, name) != name:
            name = parent[name]
        return name

    for pattern in patterns:
        for node in walk(pattern):
            for condition in conditions(node):
                match condition:
                    case Compare(op="=", left=Var(name=x), right=Var(name=y)):
                        low, high = sorted((find(x), find(y)))
                        parent[high] = low
    return find


def operator_key(node: Join) -> tuple[str, ...]:
    return tuple(sorted(bound_vars(node.left) & bound_vars(node.right)))


# What rules share


def canonical(node: object, names: dict[str, str] | None = None) -> str:
    """A pattern with its variables and labels renamed in the order in which they appear: equal for equal sub-plans."""
    names = {} if names is None else names
    match node:
        case Var():
            return names.setdefault(node.name, f"V{len(names)}")
        case str():
            return names.get(f"label {node}", node)
        case Const():
            return repr(node)
        case Build() | Apply() | Scan():
            head = node.functor if isinstance(node, Build) else node.function if isinstance(node, Apply) else node.type
            return f"{type(node).__name__} {head}({','.join(canonical(a, names) for a in node.args)})"
        case Label():
            names[f"label {node.label}"] = f"L{len(names)}"
            return canonical(node.input, names)
        case tuple():
            return f"({','.join(canonical(n, names) for n in node)})"
    fields = getattr(node, "__dataclass_fields__", None)
    if fields is None:
        return repr(node)
    values = [canonical(getattr(node, name), names) for name in fields if name != "span"]
    return f"{type(node).__name__}[{','.join(values)}]"


@dataclass(frozen=True)
class Shared:
    """A sub-plan that several rules have."""

    form: str
    node: Node
    rules: tuple[str, ...]


def sharing(plan: Plan) -> list[Shared]:
    """The largest sub-plans that several rules have; a scan alone is not worth a word."""
    found: dict[str, tuple[Node, list[str]]] = {}
    for rule in plan.rules:
        for node in walk(place(rule.body)):
            if not isinstance(node, Scan | Instant | Label):
                found.setdefault(canonical(node), (node, []))[1].append(rule.label)
    shared = [
        Shared(form, node, tuple(dict.fromkeys(rules))) for form, (node, rules) in found.items() if len(set(rules)) > 1
    ]
    inner = {canonical(part) for s in shared for part in walk(s.node) if part is not s.node}
    by_rules = {s.form: s.rules for s in shared}
    return [
        s
        for s in shared
        if not (
            s.form in inner
            and any(
                o is not s and s.form in {canonical(p) for p in walk(o.node)} and o.rules == by_rules[s.form]
                for o in shared
            )
        )
    ]
