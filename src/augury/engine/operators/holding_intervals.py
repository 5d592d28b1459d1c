"""`holding p(X)`: the maximal intervals in which facts hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.plan import Predicate
from augury.core.arrays import Array, RowIds, Times
from augury.core.bounds import MAX_TIME, MIN_TIME
from augury.engine.operators.base import Operator
from augury.engine.operators.map import EachRow
from augury.engine.operators.row_chains import RowChains
from augury.knowledge.fact_table import ALWAYS, EVER
from augury.knowledge.solving.held_answers import (
    HeldAnswers,
    Intervals,
    Regions,
    fact_intervals,
    joined_regions,
    merged,
)
from augury.planner.specs import HoldingSpec
from augury.storage.frame import Frame
from augury.storage.grouping import by_group
from augury.storage.table import END, FIELDS, START, Table
from augury.storage.unique import unique_first

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime


class HoldingIntervals(Operator):
    """For each fact of a predicate a row for each maximal interval in which it holds, from its first time point to the
    first at which it does not hold. Of one without a beginning the row starts at MIN_TIME, of one without an end it ends at MAX_TIME.

    Its inputs are the events that make facts, so that it runs after them; what it takes in are the changes of knowledge.
    A change concerns the fact, and the times between which it holds now and did not, or the reverse: what lies before and
    behind is in the table, also where knowledge has forgotten it.
    """

    linked = ()
    spec: HoldingSpec

    def __init__(self, runtime: Runtime, spec: HoldingSpec) -> None:
        super().__init__(runtime, spec)
        self.predicate, knowledge = spec.predicate, runtime.knowledge
        self.filled = False
        self.changed: list[tuple[Predicate, RowIds, Times, Times]] = []
        self.answers = HeldAnswers(knowledge, self.predicate) if self.predicate in knowledge.clauses else None
        self.below = {self.predicate} if self.answers is None else set(self.answers.reads)
        self.arguments = list(range(FIELDS, FIELDS + self.predicate[1]))
        self._chain()
        runtime.holding.append(self)

    def _chain(self) -> None:
        table = self.out.table
        self.chains = RowChains(table, self.predicate[1], self.runtime.tables.dictionary)
        rows = table.standing()
        self.chains.add(rows, self.chains.group([table.data[field, rows] for field in self.arguments], len(rows)))

    def change(self, predicate: Predicate, rows: RowIds, lo: Times, hi: Times) -> None:
        """Facts have changed between these times."""
        if predicate in self.below:
            self.changed.append((predicate, rows, lo, hi))
            self.wake()

    def step(self) -> None:
        for port in range(len(self.inputs)):
            self.losses(port)
            self.gains(port)
        changed, self.changed = self.changed, []
        relations = self.runtime.knowledge.relations
        if self.answers is not None:
            answers = self.answers
            regions = (
                [region for change in changed for region in answers.regions(*change)]
                if self.filled
                else answers.everywhere()
            )
            for region in joined_regions(regions, self.runtime.knowledge.words):
                self._ask_again(answers, region)
        elif not self.filled:
            relation = relations.get(self.predicate)
            rows = np.arange(0 if relation is None else relation.rows.n)
            self._facts(rows, np.full(len(rows), ALWAYS), np.full(len(rows), EVER))
        else:
            for _, rows, lo, hi in changed:
                self._facts(rows, lo, hi)
        self.filled = True

    def _facts(self, rows: RowIds, lo: Times, hi: Times) -> None:
        """Facts have changed, each once."""
        if not len(rows):
            return
        relation = self.runtime.knowledge.relations[self.predicate]
        columns = [self.runtime.bridge.back(relation.rows.data[i, rows]) for i in range(self.predicate[1])]
        facts = self.chains.group(columns, len(rows))
        held = fact_intervals(relation, rows, lo, hi)
        self._replace(facts, lo, hi, held, columns)

    def _ask_again(self, answers: HeldAnswers, regions: Regions) -> None:
        """Answers may have changed: those that there were in these regions, and those that there are now."""
        held, bindings = answers.ask(regions)
        columns = [self.runtime.bridge.back(column) for column in bindings]
        facts = self.chains.group(columns, len(held.owner))
        asked = [self.runtime.bridge.back(column) for column in regions.columns]
        which, before = self.chains.groups.find(regions.places, asked, len(regions.lo), strict=False)
        fact, first = unique_first(np.concatenate([facts, before]))
        region = np.concatenate([held.owner, which])[first]
        position = np.searchsorted(fact, facts)
        columns = [self.chains.groups.data[i, fact] for i in range(self.predicate[1])]
        held = merged(position, held.start, held.end)
        self._replace(fact, regions.lo[region], regions.hi[region], held, columns)

    def _replace(self, facts: Array, lo: Times, hi: Times, held: Intervals, columns: Sequence[Array]) -> None:
        """From `lo` to before `hi` each of some facts holds in these intervals, and in no others: rows that touch them change.

        `held` and `columns` are by the place of a fact.
        """
        table = self.out.table
        lo, hi = np.maximum(lo, MIN_TIME), np.minimum(hi, MAX_TIME)
        of, rows = self.chains.touching(facts, lo, hi)
        self.touched += len(facts) + len(rows)
        start, end = table.data[START, rows], table.data[END, rows]
        left, right = start < lo[of], end > hi[of]
        new = merged(
            np.concatenate([of[left], held.owner, of[right]]),
            np.concatenate([start[left], np.maximum(held.start, MIN_TIME), np.maximum(start, hi[of])[right]]),
            np.concatenate([np.minimum(end, lo[of])[left], np.minimum(held.end, MAX_TIME), end[right]]),
        )
        kept, same = _in_both(Intervals(of, start, end), new)
        if not kept.all():
            table.kill(np.sort(rows[~kept]))
        fresh = ~same
        if not fresh.any():
            return
        owner, begins, ends = (x[fresh] for x in new)
        fresh_rows = np.zeros((table.width, len(owner)), np.int64)
        fresh_rows[START], fresh_rows[END], fresh_rows[2:4] = begins, ends, -1
        for field, column in zip(self.arguments, columns, strict=True):
            fresh_rows[field] = column[owner]
        first = table.n
        table.append(fresh_rows)
        self.chains.add(np.arange(first, table.n), facts[owner])

    def rebuild(self) -> None:
        super().rebuild()
        self.changed = []
        self._chain()

    def parents(self) -> list[tuple[int, Table]]:
        return []

    @property
    def bytes(self) -> int:
        return super().bytes + self.chains.bytes


def _in_both(first: Intervals, second: Intervals) -> tuple[Array, Array]:
    """Which intervals of both are in the other, too; those of an owner lie apart, so that no two have one start."""
    owner, start, end = (np.concatenate(columns) for columns in zip(first, second, strict=True))
    order = by_group(owner, start)
    next_, last = order[1:], order[:-1]
    same = (owner[next_] == owner[last]) & (start[next_] == start[last]) & (end[next_] == end[last])
    both = np.zeros(len(owner), bool)
    both[next_[same]] = both[last[same]] = True
    return both[: len(first.owner)], both[len(first.owner) :]


class EndedIntervals(EachRow):
    """Of intervals in which facts hold those with a beginning and an end."""

    def mapped(self, frame: Frame) -> Frame:
        return frame.where((frame.start > MIN_TIME) & (frame.end < MAX_TIME))
