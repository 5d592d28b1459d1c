"""Partial matches: what has happened, what is awaited, and how complete it is (E 3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

from augury.algebra.nodes import (
    Either,
    Every,
    Graph,
    Instant,
    Join,
    Label,
    Node,
    NoneInside,
    Repeat,
    Rule,
    Run,
    Scan,
    Select,
    SessionWindow,
    Unfold,
    Within,
    conditions,
    inputs,
)
from augury.core.clock import Clock
from augury.core.model import Event, Value, equal, show_value
from augury.engine.operators.base import Operator, PartialMatch
from augury.notation import show_event
from augury.sinks.markup import readable, share_bar, table
from augury.storage.dictionary import OPEN
from augury.storage.table import END

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.operators.derive import Derived

_NO_CLOCK = Clock()


@dataclass(frozen=True)
class Goal:
    """A partial match of a rule, or a fact that events made and that holds: what has begun and has not ended.

    `until` is the last time at which what it awaits may end; None is without a bound. `since` is when it began; None where
    that is forgotten. `timed` says that it awaits the passing of time, and no event.
    """

    rule: str
    done: tuple[Event, ...]
    awaits: str
    total: int
    binding: dict[str, Any]
    until: int | None = None
    since: int | None = None
    clock: Clock = field(default=_NO_CLOCK, compare=False, repr=False)
    timed: bool = False

    def lasting(self, now: int) -> int | None:
        """For how many time points it has lasted."""
        return None if self.since is None else now - self.since

    @property
    def complete(self) -> float:
        """How much of it has happened, from 0 to 1."""
        return len(self.done) / self.total

    def show(self, clock: Clock, now: int | None = None) -> str:
        """One line; with `now`, also how long it has lasted."""
        done = ", ".join(show_event(e, clock) for e in self.done)
        bound = ", ".join(f"{name} = {show_value(value)}" for name, value in self.binding.items())
        until = "" if self.until is None else f" until {clock.show(self.until)}"
        lasting = self.lasting(now) if now is not None else None
        length = "" if lasting is None else f" for {clock.span(lasting)}{'' if clock.kind == 'timestamp' else ' ticks'}"
        since = "" if now is None or self.since is None else f" since {clock.show(self.since)}{length}"
        return f"{self.rule}:{since} {self.complete:.0%} [{done}] awaits {self.awaits}{until}{' where ' + bound if bound else ''}"

    def _repr_html_(self) -> str:
        return goals_table([self])


class Goals(list[Goal]):
    """Goals, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return goals_table(self)


def goals_table(listed: Sequence[Goal]) -> str:
    """Goals as HTML, how complete each is as a bar."""

    def row(goal: Goal) -> list[str]:
        done = ", ".join(f"{e.type}({', '.join(map(show_value, e.args))})" for e in goal.done)
        since, until = ("" if t is None else readable(t, goal.clock) for t in (goal.since, goal.until))
        return [goal.rule, share_bar(goal.complete), since, done, goal.awaits, until]

    return table(["rule", "complete", "since", "has happened", "awaits", "until"], map(row, listed))


def goals(circuit: Circuit, rule: str | None, now: int | None, new: bool = False) -> Iterator[Goal]:
    """The partial matches that can still be completed, rule by rule, the most complete first; or those of this step."""
    decode = circuit.tables.dictionary.decode
    for label in [rule] if rule is not None else list(circuit.rules):
        listed, total = [], size(circuit.rules[label].body)
        partials = (partial for operator in _operators(circuit, label) for partial in operator.waiting(now, new))
        for partial in (*partials, *_due(circuit, label, now, new)):
            done = tuple(map(circuit.event, partial.done))
            binding = {v: decode(code) for v, code in partial.binding.items() if code != OPEN}
            since = min((e.start for e in done), default=None)
            timed = isinstance(partial.awaits, str)
            listed.append(
                Goal(
                    label,
                    done,
                    partial.awaits if isinstance(partial.awaits, str) else written(partial.awaits),
                    max(total, len(done) + 1),
                    binding,
                    partial.until,
                    since,
                    circuit.clock,
                    timed,
                )
            )
        yield from listed if new else sorted(listed, key=lambda g: (-g.complete, g.done[-1].end if g.done else 0))


def _due(circuit: Circuit, label: str, now: int | None, new: bool) -> Iterator[PartialMatch]:
    """The events of a rule that are entailed so far, and that the clock has not reached: what must be absent may still come."""
    head, table = circuit.heads[label], circuit.heads[label].out.table
    if now is None:
        return
    rows = np.arange(table.mark if new else 0, table.n)
    rows = rows[table.alive[rows].astype(bool) & (table.data[END, rows] > now)]
    awaits = _awaited(circuit.rules[label])
    for row in rows.tolist():
        yield PartialMatch(tuple(head.parts(row)), awaits, int(table.data[END, row]), {})


def _awaited(rule: Rule) -> str:
    """What an event that is not over waits for: that something stays away, or the end of a window."""
    absent = [c for node in rule.nodes for c in conditions(node) if isinstance(c, NoneInside)]
    if absent:
        return " and ".join(f"no {written(c.pattern)}" for c in absent)
    return f"the end of {rule.covers[0]}" if rule.covers else "its end"


def states(circuit: Circuit, rule: str | None, now: int | None, forgotten: int | None) -> Iterator[Goal]:
    """The facts that events made and that hold now, the oldest first: `down('m1')` since 10:03 awaits its end."""
    listed: list[Goal] = []
    latest = circuit.plan.latest
    for (name, arity), (makes, ends) in circuit.plan.made.items():
        labels = [each.label for each in circuit.rules.values() if each.predicate == makes]
        if now is None or not labels or rule not in (None, *labels) or (name, arity) not in circuit.knowledge.relations:
            continue
        relation = circuit.knowledge.relations[name, arity]
        makers, decode = circuit.derived[makes], circuit.knowledge.words.decode
        for row, since in relation.begun(now):
            args = tuple(decode(int(relation.rows.data[i, row])) for i in range(arity))
            began = None if forgotten is not None and since <= forgotten else since
            text = f"{name}({', '.join(show_value(a) for a in args)})"
            ending = ends in circuit.derived or (name, arity) in latest
            awaits = f"the end of {text}" if ending else f"nothing: {text} has no end"
            done = () if began is None else _makers(circuit, makers, args, began)
            listed.append(Goal(labels[0], done, awaits, 2, {}, None, began, circuit.clock))
    yield from sorted(listed, key=lambda g: (g.since is not None, g.since or 0, g.awaits))


def _makers(circuit: Circuit, makers: Derived, args: tuple[Value, ...], time: int) -> tuple[Event, ...]:
    """The event that made a fact at a time."""
    for row in makers.out.table.ending(time, time + 1).tolist():
        event = makers.event(row)
        if all(equal(x, y) for x, y in zip(event.args, args, strict=True)):
            return (event,)
    return ()


def _operators(circuit: Circuit, label: str) -> Iterator[Operator]:
    """The operators of a rule."""
    open_operators: list[Operator] = [circuit.heads[label]]
    seen: set[int] = set()
    while open_operators:
        operator = open_operators.pop()
        if id(operator) not in seen and not operator.holds_events:
            seen.add(id(operator))
            yield operator
            open_operators += [circuit.maker(view.table) for view in operator.inputs]


def size(node: Node) -> int:
    """How many events a match of a pattern has at least."""
    match node:
        case Scan():
            return 1
        case Repeat():
            return node.count * size(node.input)
        case Run():
            return sum(part.least * size(part.input) for part in node.parts)
        case Join():
            return size(node.left) + size(node.right)
        case Either() | Every() | Graph() | Instant() | Label() | Select() | SessionWindow() | Unfold() | Within():
            pass
        case _:
            assert_never(node)
    return max(map(size, inputs(node)), default=0)


def written(node: Node) -> str:
    """A pattern as its rule writes it."""
    text = node.span.source.text[node.span.start : node.span.end]
    return " ".join(text.split()) or type(node).__name__
