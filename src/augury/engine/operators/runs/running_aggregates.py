"""Aggregates over the iterations of a run, kept along it: a match that is one event longer adds one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from augury.algebra.aggregates import accumulates
from augury.algebra.nodes import Run
from augury.algebra.terms import Aggregate, Expr, labels, variables
from augury.core.arrays import Array
from augury.engine.operators.runs import kernels as k
from augury.engine.operators.runs.kernels.match_states import ITSELF, NO_KEY, extend_states
from augury.engine.operators.runs.sight import MatchBindings
from augury.planner.run_questions import has_earlier
from augury.storage.accumulator import Accumulator, Picks
from augury.storage.frame import Frame
from augury.storage.member_values import MemberValues
from augury.storage.table import END, LEFT, RIGHT, grown


@dataclass(frozen=True)
class RunningAggregate:
    """An aggregate that is kept along the run, and the part over whose iterations it ranges."""

    part: int
    aggregate: Aggregate


def kept_along(run: Run, asked: Sequence[tuple[int, Aggregate]], sight: MatchBindings) -> tuple[RunningAggregate, ...]:
    """The aggregates that one more iteration just adds to: those of values that the iteration alone has."""
    running: dict[RunningAggregate, None] = {}
    scalars = sight.runtime.context.scalars
    for part, aggregate in asked:
        names = set(sight.views[part].vars) | {name for name in (run.parts[part].label,) if name is not None}
        alone = all(variables(arg) | labels(arg) <= names for arg in aggregate.args)
        plain = aggregate.args and not has_earlier(aggregate)
        if plain and alone and accumulates(aggregate, scalars.functions, scalars.aggregates, ordered=False):
            running[RunningAggregate(part, aggregate)] = None
    return tuple(running)


class PartStates:
    """The states of the aggregates over one part, by number of the match."""

    def __init__(self, sight: MatchBindings, part: int, aggregates: Sequence[Aggregate]) -> None:
        self.sight, self.part = sight, part
        self.states = Accumulator(sight.runtime.context, aggregates, fraction=True)
        self.picks = len(self.states.orders)
        self.width = self.states.width + 1  # the first sum counts iterations
        self.clear()

    def clear(self) -> None:
        self.state = np.empty((self.width + 2 * self.picks, 16), np.int64)

    def room(self, size: int, used: int) -> None:
        if self.state.shape[1] < size:
            self.state = grown(self.state, size, used)

    def empty(self, rows: Array) -> None:
        self.state[: self.width, rows] = 0
        self.state[self.width : self.width + self.picks, rows] = NO_KEY

    def extend(self, rows: Array, sources: Array, slots: Array, moments: Array, state: Array | None = None) -> None:
        """Gives matches the states of their sources and the iterations in their slots."""
        extend_states(rows, sources, slots, *self._columns(moments), self.state if state is None else state)

    def with_one_more(self, rows: Array, moments: Array) -> Array:
        """The states that matches would have with one more iteration; those of row -1 have none yet."""
        count = len(rows)
        state = np.zeros((len(self.state), count), np.int64)
        state[self.width : self.width + self.picks] = NO_KEY
        there = rows >= 0
        state[:, there] = self.state[:, rows[there]]
        numbers = np.arange(count)
        self.extend(numbers, np.full(count, ITSELF), numbers, moments, state)
        return state

    def read(self, aggregate: Aggregate, state: Array) -> tuple[Array, Array]:
        """The codes of an aggregate, and which of them are unsure."""
        codes, sure = self.states.read(aggregate, state[0], state[1 : self.width], self._picked(state))
        return codes, ~sure

    def _picked(self, state: Array) -> Picks:
        def picked(pick: str, value: Expr, by: Expr, rows: Array) -> tuple[Array, Array]:
            field = self.width + self.picks + self.states.orders[by, pick]
            return state[field, rows], np.ones(len(rows), bool)

        return picked

    def _columns(self, moments: Array) -> tuple[Array, Array, Array]:
        """The increments of iterations: sums, keys, and the codes that belong to these."""
        sight, context = self.sight, self.sight.runtime.context
        frames: dict[Expr, Frame] = {}
        values: dict[Expr, MemberValues | None] = {}
        for expr in self.states.flags:
            names, ends = variables(expr) | labels(expr), sight.moments.out.table.data[END, moments]
            frames[expr], _ = sight.frame({self.part: moments}, ends, self.part, names)
            values[expr] = MemberValues.compute(context, expr, frames[expr]) if len(moments) else None
        columns = self.states.enter(len(moments), values.__getitem__)
        assert columns is not None
        codes = np.zeros((self.picks, len(moments)), np.int64)
        for (by, _), number in self.states.orders.items():
            column = values[by]
            if column is not None:
                codes[number] = column.codes(np.arange(len(moments)))
        sums = np.concatenate([np.ones((1, len(moments)), np.int64), columns[: self.states.width]])
        return sums, columns[self.states.width :], codes


class RunningAggregates:
    """The aggregates of many matches, by number of the match."""

    def __init__(self, sight: MatchBindings, kept: tuple[RunningAggregate, ...]) -> None:
        self.kept = kept
        self.parts = {
            part: PartStates(
                sight, part, [aggregate_kept.aggregate for aggregate_kept in kept if aggregate_kept.part == part]
            )
            for part in dict.fromkeys(aggregate_kept.part for aggregate_kept in kept)
        }
        self.count = 0

    def clear(self) -> None:
        self.count = 0
        for states in self.parts.values():
            states.clear()

    def keeps(self, part: int, aggregate: Aggregate) -> bool:
        return RunningAggregate(part, aggregate) in self.kept

    def follow(self, data: Array, n: int) -> None:
        """Takes in new partial matches: the states of their parents, and one more iteration."""
        lo = self.count
        if not self.parts or n <= lo:
            return
        rows = np.arange(lo, n)
        for part, states in self.parts.items():
            states.room(max(n, 2 * lo), lo)
            mine = data[k.PART, lo:n] == part
            slots = np.where(mine, np.cumsum(mine) - 1, -1)
            states.extend(rows, data[LEFT, lo:n], slots, data[RIGHT, lo:n][mine])
        self.count = n

    def start(self, rows: Array, size: int, sources: Array | None = None) -> None:
        """Matches without any iteration, or with the states of those that they extend."""
        for states in self.parts.values():
            states.room(size, states.state.shape[1])
            if sources is None:
                states.empty(rows)
            else:
                states.state[:, rows] = states.state[:, sources]

    def add(self, owners: Array, parts: Array, moments: Array) -> None:
        """Adds iterations of parts to matches, one after the other."""
        for part, states in self.parts.items():
            mine = parts == part
            rows = owners[mine]
            states.extend(rows, np.full(len(rows), ITSELF), np.arange(len(rows)), moments[mine])

    def keep(self, paths: Array) -> None:
        """Renumbers matches: those in `paths` stay, in this order."""
        for states in self.parts.values():
            states.state[:, : len(paths)] = states.state[:, paths]

    def results(self, part: int, aggregate: Aggregate, rows: Array, more: Array | None = None) -> tuple[Array, Array]:
        """The codes of an aggregate, with one `more` iteration each where there are some, and which of them are unsure."""
        states = self.parts[part]
        state = states.state[:, rows] if more is None else states.with_one_more(rows, more)
        return states.read(aggregate, state)
