"""Partial matches: what has happened, what is awaited, and how complete it is (E 3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.algebra.nodes import Join as JoinNode
from augury.algebra.nodes import Node, Repeat, Rule, Scan, inputs
from augury.clock import Clock
from augury.columns.table import END, START
from augury.engine.operators.base import Operator
from augury.engine.operators.join import Join
from augury.jit import Array
from augury.model import Event, show_value
from augury.notation import show_event
from augury.optimiser.implied_bounds import FAR

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit


@dataclass(frozen=True)
class Goal:
    """A partial match of a rule. `until` is the last time at which what it awaits may end; None is without a bound."""

    rule: str
    done: tuple[Event, ...]
    awaits: str
    total: int
    binding: dict[str, Any]
    until: int | None = None

    @property
    def complete(self) -> float:
        """How much of it has happened, from 0 to 1."""
        return len(self.done) / self.total

    def show(self, clock: Clock) -> str:
        done = ", ".join(show_event(e, clock) for e in self.done)
        bound = ", ".join(f"{name} = {show_value(value)}" for name, value in self.binding.items())
        until = "" if self.until is None else f" until {clock.show(self.until)}"
        return (
            f"{self.rule}: {self.complete:.0%} [{done}] awaits {self.awaits}{until}{' where ' + bound if bound else ''}"
        )


def goals(circuit: Circuit, rule: str | None, now: int | None) -> Iterator[Goal]:
    """The partial matches that can still be completed, rule by rule, the most complete first."""
    for label in [rule] if rule is not None else list(circuit.rules):
        found = [goal for join, side in joins(circuit, label) for goal in _of(circuit, label, join, side, now, None)]
        yield from sorted(found, key=lambda g: (-g.complete, g.done[-1].end if g.done else 0))


def joins(circuit: Circuit, label: str) -> list[tuple[Join, int]]:
    """The joins of a rule, each with the sides whose rows wait there for a partner."""
    found: list[tuple[Join, int]] = []
    open_operators: list[Operator] = [circuit.heads[label]]
    seen: set[int] = set()
    while open_operators:
        operator = open_operators.pop()
        if id(operator) in seen or operator.holds_events:
            continue
        seen.add(id(operator))
        if isinstance(operator, Join):
            found += [(operator, side) for side in operator.waits_at]
        open_operators += [circuit.maker(view.table) for view in operator.inputs]
    return found


def size(rule: Rule) -> int:
    """How many events a match of a rule has."""

    def count(node: Any) -> int:
        if isinstance(node, Scan):
            return 1
        below = [count(part) for part in inputs(node)]
        if isinstance(node, Repeat):
            return node.count * below[0]
        return sum(below) if isinstance(node, JoinNode) else max(below, default=0)

    return max(1, count(rule.body))


def written(node: Node) -> str:
    """A pattern as its rule writes it."""
    text = node.span.source.text[node.span.start : node.span.end]
    return " ".join(text.split()) or type(node).__name__


def new_goals(circuit: Circuit, label: str, now: int | None) -> Iterator[Goal]:
    """The partial matches that the step has added."""
    for join, side in joins(circuit, label):
        table = join.inputs[side].table
        if table.n > table.mark:
            yield from _of(circuit, label, join, side, now, np.arange(table.mark, table.n))


def _of(circuit: Circuit, label: str, join: Join, side: int, now: int | None, rows: Array | None) -> Iterator[Goal]:
    view, table = join.inputs[side], join.inputs[side].table
    rows = np.arange(table.n) if rows is None else rows
    rows = rows[table.alive[rows].astype(bool)]
    rows = rows[join.open_to_partners(rows, side)] if len(rows) else rows
    reach = join.relation.reach[side]
    last = np.minimum(
        table.data[START, rows] + reach[2] if reach[2] < FAR else np.full(len(rows), FAR),
        table.data[END, rows] + reach[3] if reach[3] < FAR else np.full(len(rows), FAR),
    )
    if now is not None:  # what it awaits may end now or later
        still = last >= now
        rows, last = rows[still], last[still]
    decode, total = circuit.tables.dictionary.decode, size(circuit.rules[label])
    awaited = written(join.nodes[1 - side])
    for row, until in zip(rows.tolist(), last.tolist(), strict=True):
        done = tuple(circuit.event(part) for part in circuit.parts(table, row))
        binding = {v: decode(int(table.data[f, row])) for v, f in view.vars.items() if table.data[f, row] != 3}
        yield Goal(label, done, awaited, max(total, len(done) + 1), binding, None if until >= FAR else until)
