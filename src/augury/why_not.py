"""Why an event was not detected: for each rule the nearest partial match, and what it fails at.

A partial match is what there is of a pattern, with words for what is not. Bottom-up, every pattern offers the best of
its partial matches; an operator pairs those of its two sides and says of each pair which of its demands failed. The
nearest one has the most events, then the fewest failures, then the latest end. Where there are too many pairs, only
the latest rows are looked at, and the answer says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, assert_never

from augury.algebra import nodes as n
from augury.algebra.place import binds, is_ready, ready_order
from augury.algebra.program import Plan, Predicate
from augury.algebra.relations import OPERATORS, holds
from augury.algebra.scalar import RowError, compare
from augury.algebra.terms import Aggregate, Build, Const, Expr, Var, show, variables, walk
from augury.clock import Clock, show_duration
from augury.errors import DataError, Findings, RunError, Source, counted, nearest
from augury.explain import show_condition
from augury.language.read import read
from augury.language.translate import translate
from augury.meaning.model import derive_from
from augury.meaning.patterns import World
from augury.meaning.policies import per_values
from augury.meaning.rows import Binding, Named, Row, Scalars, agree, distinct
from augury.meaning.static import Static
from augury.model import Event, OrderKey, Term, Value, equal, order_key, show_value
from augury.notation import read_event, show_event
from augury.why import Because, tree_as_json

PAIRS = 4_000  # candidate pairs that an operator is evaluated on, and pairs of partial matches that it looks at
EACH = 40  # of those, pairs with one left part
BEAM = 200  # partial matches that a pattern offers, and of those with one end
FEW = 4
WORK = 2_000_000  # tests of an absence
BRANCHES = 50  # ways in which conditions may bind
HEADS = 20  # complete rows that are looked at for what fails after the body
UNTOLD = "nothing: with these events it is detected, so not all that was detected was given"
CAPPED = "there were too many pairs: only the latest rows were looked at"


@dataclass(frozen=True)
class Miss:
    """How near a rule came: the events of its nearest partial match, how many it needs, and what failed."""

    rule: str
    parts: tuple[Event, ...]
    total: int
    failed: tuple[str, ...]


def why_not(
    plan: Plan,
    rules: Iterable[n.Rule],
    events: Iterable[Event],
    clock: Clock,
    static: Static,
    scalars: Scalars,
    atom: str,
    now: int | None = None,
) -> list[Miss]:
    """For each placed rule that could derive the atom, the nearest partial match among all events that stand.

    `(smoke(L) SEQ heat(L)).5` on smoke at 1 and heat at 9 → both events, "`window 5s`: from 1 to 9 is 8".
    """
    asked, standing = read_asked(atom, clock, plan.prefixes), sorted(events, key=lambda e: e.order)
    if now is None:
        now = max((e.end for e in standing), default=0)
    able = [r for r in rules if r.type == asked.type and (asked.args is None or len(asked.args) == len(r.args))]
    if not able:
        raise _underivable(plan, asked)
    seen = [e for e in standing if asked.is_met(e) and e.end <= now]
    if seen:
        hint = f"ask why of {show_event(seen[-1], clock)}; to ask about another one give its arguments or its times"
        raise RunError(f"{atom.strip()} was detected", hint)
    by_type: dict[Predicate, list[Event]] = {}
    for event in standing:
        by_type.setdefault((event.type, len(event.args)), []).append(event)
    words = _Words(plan, clock, scalars)
    return [_of_rule(rule, asked, _Nearby(scalars, static, by_type), words, now) for rule in able]


def show_misses(misses: Iterable[Miss], clock: Clock) -> str:
    """One tree for each rule: the events that there were, then what failed."""
    return "\n\n".join("\n".join(_lines(miss, clock)) for miss in misses)


def _lines(miss: Miss, clock: Clock) -> Iterator[str]:
    yield f"rule {miss.rule}: {len(miss.parts)} of {counted(miss.total, 'event')}"
    below = [show_event(p, clock) for p in miss.parts] + [f"failed: {line}" for line in miss.failed]
    for number, line in enumerate(below, 1):
        yield f"{'└─' if number == len(below) else '├─'} {line}"


def misses_as_json(misses: Iterable[Miss], clock: Clock) -> list[dict[str, Any]]:
    return [
        {
            "rule": miss.rule,
            "parts": [tree_as_json(Because(part), clock) for part in miss.parts],
            "total": miss.total,
            "failed": list(miss.failed),
        }
        for miss in misses
    ]


# What is asked


@dataclass(frozen=True)
class Asked:
    """An event that is asked about: its type, its arguments unless any will do, its interval where one is given."""

    type: str
    args: tuple[Expr, ...] | None
    interval: tuple[int, int] | None

    def is_met(self, event: Event) -> bool:
        return (
            event.type == self.type
            and (self.interval is None or self.interval == (event.start, event.end))
            and (self.args is None or _all_admit(self.args, event.args))
        )


_TIMED = re.compile(r"(?P<atom>.+?)\s*@\s*(?P<time>\[.*\]|'[^']*'|\"[^\"]*\"|-?\d+)", re.DOTALL)


def read_asked(text: str, clock: Clock, prefixes: Mapping[str, str]) -> Asked:
    """`alarm`, `alarm('l1', _)` or `alarm('l1', _) @ [1, 3]`; a variable is anything, like `_`."""
    timed = _TIMED.fullmatch(text.strip())
    atom, interval = (timed["atom"] if timed else text).strip(), None
    if timed:
        event = read_event(f"it @ {timed['time']}", clock)
        assert isinstance(event, Event)
        interval = (event.start, event.end)
    findings = Findings()
    declared = "".join(f"prefix {name}: <{iri}>. " for name, iri in prefixes.items())
    source = Source("", f"{declared}{atom}{'' if '(' in atom else '()'}.")
    found = translate(read(source, findings), findings).clauses
    if findings.errors or len(found) != 1 or found[0].body:
        detail = findings.errors[0].message if findings.errors else "write it as wind('l1', _)"
        raise DataError(f"not an event: {text!r}; {detail}")
    return Asked(found[0].name, found[0].args if "(" in atom else None, interval)


def _underivable(plan: Plan, asked: Asked) -> RunError:
    known = {rule.type for rule in plan.rules}
    if asked.type in known:
        has = " or ".join(str(k) for k in sorted({len(r.args) for r in plan.rules if r.type == asked.type}))
        given = counted(len(asked.args or ()), "argument")
        return RunError(f"no rule derives `{asked.type}` with {given}", f"it has {has}")
    close = nearest(asked.type, known)
    hint = f"did you mean `{close}`?" if close else f"the program derives {', '.join(sorted(known))}"
    return RunError(f"no rule derives `{asked.type}`", hint)


def _admits(asked: Expr, value: Value) -> bool:
    """Whether a value is what was asked for; null is null here."""
    match asked:
        case Const():
            return order_key(asked.value) == order_key(value)
        case Build():
            return isinstance(value, Term) and value.functor == asked.functor and _all_admit(asked.args, value.args)
    return True


def _all_admit(asked: tuple[Expr, ...], values: tuple[Value, ...]) -> bool:
    return len(asked) == len(values) and all(_admits(a, v) for a, v in zip(asked, values, strict=True))


def _bind(head: Expr, asked: Expr, scalars: Scalars, into: dict[str, Value]) -> bool:
    """Gives the head's variables what is asked for; whether the head can be that at all, computed values aside."""
    match head:
        case Var() if scalars.ground(asked, {}):
            value = scalars.evaluate(asked, {}, {})
            return order_key(into.setdefault(head.name, value)) == order_key(value)
        case Const():
            return _admits(asked, head.value)
        case Build() if isinstance(asked, Build):
            same = head.functor == asked.functor and len(head.args) == len(asked.args)
            return same and all(_bind(h, a, scalars, into) for h, a in zip(head.args, asked.args, strict=True))
        case Build():
            return not isinstance(asked, Const)
    return True


# The meaning, on what is near


@dataclass
class _Nearby(World):
    """Where an operator has too many pairs, its meaning is taken on its latest rows, those that fit first."""

    wanted: Binding = field(default_factory=dict)
    interval: tuple[int, int] | None = None
    capped: bool = False

    def fits(self, row: Row) -> bool:
        """Whether a row agrees with what is asked: on variables, and inside its interval, which covers every part."""
        if self.interval is not None and not (self.interval[0] <= row.start and row.end <= self.interval[1]):
            return False
        return all(order_key(row.binding[v]) == order_key(x) for v, x in self.wanted.items() if v in row.binding)

    def fitting(self, node: n.Node) -> list[Row]:
        return [row for row in self.rows(node) if self.fits(row)]

    def latest(self, rows: list[Row], count: int) -> list[Row]:
        if len(rows) <= count:
            return rows
        self.capped = True
        kept = {id(row) for row in sorted(rows, key=self.fits)[-count:]}  # the sort is stable: the latest come last
        return [row for row in rows if id(row) in kept]

    def _most(self, node: n.Node) -> int:
        """How many rows or pairs are tested here: the fewer, the more there is that must be absent."""
        return max(100, min(PAIRS, WORK // (1 + sum(len(self.rows(absent)) for absent in n.absences(node)))))

    def _rows(self, node: n.Node) -> Iterator[Row]:
        if isinstance(node, n.Select) and n.absences(node):
            for row in self.latest(self.rows(node.input), self._most(node)):
                yield from self.select(node.where, row)
        else:
            yield from super()._rows(node)

    def join(self, node: n.Join, left: list[Row], right: list[Row]) -> Iterator[Row]:
        shared = sorted(n.bound_vars(node.left) & n.bound_vars(node.right)) if node.policy == n.UNRESTRICTED else []
        most = self._most(node)
        while _meetings(left, right, shared) > most:
            if len(left) > len(right):
                left = self.latest(left, len(left) // 2)
            else:
                right = self.latest(right, len(right) // 2)
        return super().join(node, left, right)

    def between(self, node: n.Join, left: Row, right: Row, row: Row) -> Row | None:
        """What NOT forbids, and is there."""
        near = (o for o in self.rows(node.absent) if left.end < o.start and o.end < right.start) if node.absent else ()
        return next((other for other in near if self._blocks(row, other, node.absent_where)), None)

    def within(self, condition: n.NoneInside, row: Row) -> Row:
        """What `while … not` forbids, and is there."""
        return next(other for other in self.rows(condition.pattern) if self._inside(condition, row, other))

    def most_recent(self, node: n.Join, left: Row, right: Row) -> Row:
        """What `recent per` takes for the later part, by the times alone."""
        if left.order <= right.order:
            per, timely = left, [o for o in self.rows(node.left) if self._timely(node, o, right)]
        else:
            per, timely = right, [o for o in self.rows(node.right) if self._timely(node, left, o)]
        same = (o for o in timely if per_values(node.policy, o) == per_values(node.policy, per))
        return max(same, key=lambda o: o.order, default=per)


def _meetings(left: list[Row], right: list[Row], shared: list[str]) -> int:
    sides = [Counter(tuple(order_key(row.binding[v]) for v in shared) for row in rows) for rows in (left, right)]
    return sum(count * sides[1][key] for key, count in sides[0].items())


# The search


@dataclass(frozen=True)
class _Near:
    """A partial match: what there is of it, how many events it needs, and what failed."""

    row: Row
    needs: int
    failed: tuple[str, ...] = ()

    @property
    def rank(self) -> OrderKey:
        return (len(self.row.parts), -len(self.failed), self.row.order)

    @property
    def is_blank(self) -> bool:
        return not self.row.parts and self.needs > 0

    @property
    def is_full(self) -> bool:
        """Every event is there, so that its interval is known."""
        return len(self.row.parts) == self.needs

    def but(self, *failed: str) -> _Near:
        """With more failures. A condition that failed below, too, is told once, as it failed last."""
        told = {line.partition("`: ")[0] if line.startswith("`") else line: line for line in (*self.failed, *failed)}
        return replace(self, failed=tuple(told.values()))


def _rank(near: _Near) -> OrderKey:
    return near.rank


class _Search:
    """Finds the best partial matches of patterns, bottom-up."""

    def __init__(self, world: _Nearby, words: _Words) -> None:
        self.world, self.words = world, words
        self._known: dict[int, list[_Near]] = {}
        self._bound: dict[int, set[str]] = {}

    def best(self, node: n.Node) -> list[_Near]:
        """The partial matches that a pattern offers, the best one last; complete ones have no failures."""
        if id(node) not in self._known:
            self._known[id(node)] = self._ranked(self.world.fitting(node), self._partial(node))
        return self._known[id(node)]

    def _ranked(self, whole: Iterable[Row], partial: Iterable[_Near]) -> list[_Near]:
        """Each row once, the best last. Where there are too many, few for each end: what follows may need an earlier one."""
        seeded = [_Near(row.bind({**self.world.wanted, **row.binding}), len(row.parts)) for row in whole]
        ranked = sorted([*seeded, *partial], key=_rank, reverse=True)
        by_row: dict[OrderKey, _Near] = {}
        for near in ranked:
            by_row.setdefault((tuple(p.id for p in near.row.parts), near.row.bound), near)
        kept = list(by_row.values())
        if len(kept) > BEAM:
            self.world.capped = True
            by_end: dict[tuple[int, int], list[_Near]] = {}
            for near in kept:
                by_end.setdefault((near.row.end, len(near.row.parts)), []).append(near)
            kept = [near for level in by_end.values() for near in level[:FEW]]
        return kept[:BEAM][::-1]

    def _partial(self, node: n.Node) -> Iterable[_Near]:
        match node:
            case n.Scan() | n.Instant():
                blank = _Near(Row(0, 0), 1)
                return [] if self.world.fitting(node) else [blank.but(self.words.missing(node, self.world))]
            case n.Label():
                return [self._labelled(near, node.label) for near in self.best(node.input)]
            case n.Select():
                return [
                    near if near.is_blank else self._tested(near, node.where, node) for near in self.best(node.input)
                ]
            case n.Within():
                return [near.but(*self.words.windows((node.length,), near.row)) for near in self.best(node.input)]
            case n.Either():
                left, right = self.best(node.left), self.best(node.right)
                blank = left[-1].but(*right[-1].failed)
                return [blank] if left[-1].is_blank and right[-1].is_blank else [*left, *right]
            case n.Join():
                return self._pairs(node, self.best(node.left), self.best(node.right), self.world.rows(node))
            case n.Follow():
                join = n.Join("SEQ", node.first, node.then, absent=node.absent)
                return self._pairs(join, self.best(node.first), self.best(node.then), self.world.rows(node))
            case n.Repeat():
                return self._repeated(node)
            case n.Kleene():
                return self.best(node.input)
            case _:
                assert_never(node)

    def _labelled(self, near: _Near, label: str) -> _Near:
        named = {label: Named(near.row.start, near.row.end, near.row.parts)} if near.is_full else {}
        return replace(near, row=replace(near.row, labels={**near.row.labels, **named}))

    def _repeated(self, node: n.Repeat) -> Iterator[_Near]:
        """One more at each step, until no complete row is left."""
        step, rows = self.best(node.input)[-EACH:], self.world.rows(node.input)
        absent = node.input if node.consecutive else None
        join = n.Join("SEQ", node.input, node.input, windows=node.windows, absent=absent, policy=node.policy)
        level, one = step, max(near.needs for near in step)
        for _ in range(node.count - 1):
            rows = distinct(self.world.join(join, rows, self.world.rows(node.input)))
            level = self._ranked(filter(self.world.fits, rows), self._pairs(join, level, step, rows))[-EACH:]
            if all(near.failed for near in level):
                break
            level = [near for near in level if not near.failed]
        for near in level:
            times = len(near.row.parts) // max(one, 1)
            short = [f"`^ {node.count}`: {times} of {node.count} times"] if 0 < times < node.count else []
            yield replace(near.but(*short), needs=node.count * one) if near.failed else near

    def _pairs(self, node: n.Join, left: list[_Near], right: list[_Near], taken: list[Row]) -> list[_Near]:
        """The nearest pairs that agree on what they share; where none do, some that do not."""
        found: list[_Near] = []
        for one in reversed(left):
            partners = (p for p in reversed(right) if agree(one.row.binding, p.row.binding) is not None)
            pairs = [self._pair(node, one, other, taken) for other in islice(partners, EACH)]
            found += pairs
            self.world.capped |= len(pairs) == EACH or len(found) >= PAIRS
            if len(found) >= PAIRS:
                break
        return found or [self._pair(node, one, other, taken) for one in left[-10:] for other in right[-10:]]

    def _pair(self, node: n.Join, left: _Near, right: _Near, taken: list[Row]) -> _Near:
        """Two partial matches as one. Where they are apart in time or differ in a value, only the nearer one is kept."""
        words, kept = self.words, max(left, right, key=_rank)
        both = _Near(kept.row, left.needs + right.needs, left.failed).but(*right.failed)
        if left.is_blank or right.is_blank:
            return both
        full = left.is_full and right.is_full
        apart = words.keys(left.row, right.row, kept.row)
        if (node.op == "SEQ" or full) and not holds(OPERATORS[node.op], _interval(left.row), _interval(right.row)):
            apart.append(words.relation(node, left.row, right.row, kept is left))
        row = left.row.joined(right.row)
        if apart or row is None:
            return both.but(*apart)
        failed = words.windows(node.windows, row)
        if full and (blocker := self.world.between(node, left.row, right.row, row)):
            failed.append(words.blocked(blocker))
        result = self._tested(replace(both, row=row).but(*failed), node.where, node)
        chosen = node.policy == n.UNRESTRICTED or any(t.parts == row.parts for t in taken)
        if result.failed or not full or chosen:
            return result
        return result.but(words.policy(node, left.row, right.row, taken, self.world))

    def _tested(self, near: _Near, where: tuple[n.Condition, ...], node: n.Node | None = None) -> _Near:
        """Each condition by itself; one that needs what is not there, or failed to be bound, is left out."""
        rows, failed = [near.row], list[str]()
        lost = self._given(node) - near.row.binding.keys() if node is not None and where else set()
        for condition in ready_order(where, set(near.row.binding)):
            row, bound = rows[-1], set(rows[-1].binding)
            known = isinstance(condition, n.Holds) or is_ready(condition, bound)
            if not known or n.condition_vars(condition) & lost or n.condition_labels(condition) - row.labels.keys():
                continue
            passed = list(islice((p for r in rows for p in self.world.select((condition,), r)), BRANCHES))
            if not passed:
                failed.append(self.words.condition(condition, row, self.world))
                lost |= binds(condition, bound)
            rows = passed or rows
        return replace(near, row=rows[-1]).but(*failed)

    def _given(self, node: n.Node) -> set[str]:
        """The variables that complete inputs of an operator bind."""
        if id(node) not in self._bound:
            self._bound[id(node)] = {v for part in n.inputs(node) for v in n.bound_vars(part)}
        return self._bound[id(node)]

    # After the body

    def derived(self, rule: n.Rule, near: _Near, asked: Asked, now: int) -> _Near:
        """What fails after a complete row: nothing to collect, another value or interval, or it is not yet time."""
        given = near.row.parts
        if rule.collect is not None:
            near = self._collected(rule, rule.collect, near)
            if near.failed:
                return near
        ways = derive_from(rule, near.row.parts, self.world.scalars, self.world.static)
        lines = [self.words.head(rule, e, asked, now) for e, way in ways if way.parts[: len(given)] == given]
        return near.but(*min(lines, key=len, default=self.words.uncomputed(rule, near.row)))

    def _collected(self, rule: n.Rule, collect: n.Collect, near: _Near) -> _Near:
        """A row with what it collects."""
        row = near.row
        last = max([row.end, *(row.labels[label].end for label in rule.covers)])
        window = row.labels[collect.window][:2] if collect.window else (None, last)
        offers = [offer for offer in self.best(collect.pattern) if not offer.is_blank]
        timely = [o for o in offers if (window[0] is None or window[0] <= o.row.start) and o.row.end <= window[1]]
        tried = [self._gathered(collect, row, offer) for offer in timely]
        gathered = sorted((t.row for t in tried if not t.failed), key=lambda r: r.order)
        whole = list(dict.fromkeys(one.parts for one in gathered))[-(collect.last or 0) :]
        parts = tuple(dict.fromkeys((*row.parts, *(p for one in whole for p in one))))
        short = (collect.last or 0) - len(whole) if collect.exactly else 0 if whole else 1
        result = replace(near, row=replace(row, parts=parts), needs=len(parts) + short)
        if whole:
            return result.but(f"`exactly {collect.last}`: only {len(whole)} to collect") if short else result
        none = (self.words.outside(collect, row, *window),) if offers else self.best(collect.pattern)[-1].failed
        reasons = max(tried, key=lambda t: (-len(t.failed), t.rank)).failed if tried else none
        return result.but(*(f"nothing to collect: {reason}" for reason in reasons))

    def _gathered(self, collect: n.Collect, row: Row, offer: _Near) -> _Near:
        joined = row.joined(offer.row)
        if joined is None:
            return offer.but(*self.words.keys(row, offer.row, row))
        there = replace(offer.row, binding=joined.binding, labels=row.labels)
        return replace(self._tested(replace(offer, row=there), collect.where), row=offer.row)


def _interval(row: Row) -> tuple[int, int]:
    return row.start, row.end


def _of_rule(rule: n.Rule, asked: Asked, world: _Nearby, words: _Words, now: int) -> Miss:
    """The nearest partial match of one rule."""
    wanted: dict[str, Value] = {}
    world.scalars.rule = rule.label
    if asked.args and not all(_bind(h, a, world.scalars, wanted) for h, a in zip(rule.args, asked.args, strict=True)):
        total = sum(isinstance(node, n.Scan) for node in n.walk(rule.body))
        return Miss(rule.label, (), total, (f"its head is `{words.atom(rule.type, rule.args, {})}`",))
    world.wanted, world.interval = wanted, asked.interval
    search = _Search(world, words)
    offers = search.best(rule.body)
    world.interval = None  # what is collected may lie outside: the derived event then has another interval
    ends = [search.derived(rule, near, asked, now) for near in offers if not near.failed][-HEADS:]
    best = max(ends or offers, key=_rank)
    needs = best.needs + (rule.collect is not None and not ends)
    parts = tuple(sorted(best.row.parts, key=lambda e: e.order))
    return Miss(rule.label, parts, needs, (*best.failed, *([CAPPED] if world.capped else [])))


# Words

_APART = {
    "SEQ": "{right} does not start after {left} ends",
    "PAR": "{left} and {right} do not overlap",
    "EQUALS": "{left} and {right} are not at the same times",
    "MEETS": "{right} does not start where {left} ends",
    "DURING": "{left} is not strictly inside {right}",
    "STARTS": "{left} does not start with {right} and end before it",
    "FINISHES": "{left} does not end with {right} and start after it",
}


@dataclass(frozen=True)
class _Words:
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
        return self.events(row.parts) or self.interval(*_interval(row))

    def atom(self, name: str, args: tuple[Expr, ...], binding: Binding) -> str:
        return f"{name}({', '.join(show(_filled(a, binding)) for a in args)})" if args else name

    def pattern(self, node: n.Node, binding: Binding) -> str:
        scan = _scan(node)
        return f"event {self.atom(scan.type, scan.args, binding)}" if scan else node.span.quoted

    def missing(self, node: n.Scan | n.Instant, world: _Nearby) -> str:
        asked = f" {self.stretch(*world.interval)}" if world.interval else ""
        if isinstance(node, n.Instant):
            return f"the time {show(node.time)} is not{asked}"
        type = (node.type, len(node.args))
        there = world.events.get(type)
        detected = " was detected" if type in self.plan.derived else ""
        if there or detected:
            latest = f"; the latest of its type is {show_event(there[-1], self.clock)}" if there else ""
            return f"no {self.pattern(node, world.wanted)}{detected}{asked}{latest}"
        others = any(name == node.type for name, _ in world.events)
        return f"no event of type {node.type}" + (f" with {counted(len(node.args), 'argument')}" if others else "")

    def windows(self, windows: tuple[int, ...], row: Row) -> list[str]:
        broken = [w for w in windows if row.end - row.start > self.clock.length(w)]
        return [self.too_long(f"window {show_duration(min(broken))}", row.start, row.end)] if broken else []

    def blocked(self, blocker: Row) -> str:
        return f"blocked by {self.row(blocker)} [{', '.join(p.id for p in blocker.parts)}]"

    def keys(self, left: Row, right: Row, kept: Row) -> list[str]:
        """The shared variables on which two rows differ, said of the one that is not kept."""
        odd, even = (left, right) if kept is right else (right, left)
        shared = [(v, odd.binding[v], even.binding[v]) for v in sorted(odd.binding.keys() & even.binding.keys())]
        differ = [(v, show_value(x), show_value(y)) for v, x, y in shared if not equal(x, y)]
        return [f"{self.row(odd)}: {v} is {one}, but the others have {other}" for v, one, other in differ]

    def relation(self, node: n.Join, left: Row, right: Row, kept_left: bool) -> str:
        """Where one event is to come after or before what there is, that there is none; else how the two lie."""
        side, kept, odd = (node.right, left, right) if kept_left else (node.left, right, left)
        if node.op != "SEQ" or _scan(side) is None:
            return f"`{node.op}`: " + _APART[node.op].format(left=self.row(left), right=self.row(right))
        when = f"after {self.clock.show(left.end)}" if kept_left else f"before {self.clock.show(right.start)}"
        near = f"; the nearest is {self.row(odd)}" if not set(odd.parts) & set(kept.parts) else ""
        return f"no {self.pattern(side, kept.binding)} {when}{near}"

    def policy(self, node: n.Join, left: Row, right: Row, taken: list[Row], world: _Nearby) -> str:
        name, both, later = f"policy {node.policy.name}", (left.parts, right.parts), int(left.order <= right.order)
        if left.parts == right.parts:
            return f"{name} pairs no event with itself"
        if node.policy.per:
            return f"{name} per ({', '.join(node.policy.per)}) took {self.row(world.most_recent(node, left, right))} instead"
        pairs = [(row.parts[: len(left.parts)], row.parts[len(left.parts) :]) for row in reversed(taken)]
        instead = next((pair[1 - later] for pair in pairs if pair[later] == both[later]), ())
        used = next((pair[later] for pair in pairs if pair[1 - later] == both[1 - later]), ())
        if instead or not used:
            return f"{name} took {self.events(instead) or 'other events'} instead"
        return f"{name} used up {self.events(both[1 - later])} with {self.events(used)}"

    def condition(self, condition: n.Condition, row: Row, world: _Nearby) -> str:
        if isinstance(condition, n.NoneInside):
            window = self.stretch(*row.labels[condition.window][:2])
            return f"{self.blocked(world.within(condition, row))}, inside {condition.window} {window}"
        if isinstance(condition, n.Spans):
            named = [row.labels[label] for label in condition.labels]
            return self.too_long(show_condition(condition), min(i.start for i in named), max(i.end for i in named))
        at = (
            f" at {self.clock.show(row.end)}"
            if world.static.timed and isinstance(condition, n.Holds | n.Unless)
            else ""
        )
        return f"`{show_condition(condition)}`: {self._values(condition, row)}{at}"

    def _values(self, condition: n.Compare | n.Holds | n.Unless | n.AnyOf | n.Relates | n.Relative, row: Row) -> str:
        match condition:
            case n.Compare():
                return self._comparison(condition, row)
            case n.Holds():
                return f"there is no {self.atom(condition.name, condition.args, row.binding)}"
            case n.Unless():
                return f"{self.atom(condition.name, condition.args, row.binding)} holds"
            case n.AnyOf():
                known = sorted(n.condition_vars(condition) & row.binding.keys())
                return ", ".join(["none of them holds", *(f"{v} is {show_value(row.binding[v])}" for v in known)])
            case n.Relates():
                sides = [(label, row.labels[label][:2]) for label in (condition.left, condition.right)]
                return ", ".join(f"{label} is {self.interval(*named)}" for label, named in sides)
            case n.Relative():
                return "it would end before it starts"
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

    def outside(self, collect: n.Collect, row: Row, first: int | None, last: int) -> str:
        inside = f"inside {collect.window} {self.stretch(first, last)}" if first is not None else ""
        return f"no {self.pattern(collect.pattern, row.binding)} {inside or f'that ends by {self.clock.show(last)}'}"

    def head(self, rule: n.Rule, event: Event, asked: Asked, now: int) -> list[str]:
        """How an event that the rule would derive differs from what is asked."""
        args = zip(rule.args, asked.args if asked.args is not None else rule.args, event.args, strict=True)
        lines = [f"`{show(e)}` is {show_value(v)}, not {show(a)}" for e, a, v in args if not _admits(a, v)]
        if asked.interval is not None and asked.interval != (event.start, event.end):
            lines.append(f"it is {self.interval(event.start, event.end)}, not {self.interval(*asked.interval)}")
        if event.end > now:
            lines.append(f"not yet: the clock is at {self.clock.show(now)}, it ends at {self.clock.show(event.end)}")
        return lines or [UNTOLD]

    def uncomputed(self, rule: n.Rule, row: Row) -> list[str]:
        for arg in (a for a in rule.args if not any(isinstance(part, Aggregate) for part in walk(a))):
            try:
                self.scalars.evaluate(arg, row.binding, row.labels)
            except RowError as error:
                return [f"`{show(arg)}`: {error}"]
        return [f"its head `{self.atom(rule.type, rule.args, {})}` cannot be computed"]


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
