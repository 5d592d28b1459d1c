"""Facts that change while a program runs: by statements, and by events that make or end them (V 2.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.algebra.plan import Predicate
from augury.core.arrays import Array, RowIds, Times
from augury.core.model import Value
from augury.knowledge.fact_table import ALWAYS, EVER
from augury.knowledge.solving.relation import FactRelation, RelationMark, encoded
from augury.knowledge.solving.timelines import TimelineChange
from augury.knowledge.timeline import Statement, StatementTable, statement_tables
from augury.storage.kernels import entries as k

if TYPE_CHECKING:
    from augury.knowledge.knowledge_base import Knowledge

# Over which times facts of a predicate have changed: since, and up to when; and which facts.
Spans = dict[Predicate, tuple[Array, Array, RowIds]]


class ChangingFacts:
    """Changes of facts. Those of a step are undone where the step fails."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.marks: dict[
            Predicate, RelationMark | None
        ] = {}  # of the relations that the step has changed; None of new ones

    def apply(self, statements: Iterable[Statement] | StatementTable) -> Spans:
        """Asserts and retracts facts; over which times that changes what holds."""
        spans: Spans = {}
        for table in [statements] if isinstance(statements, StatementTable) else statement_tables(statements):
            facts, count = table.facts, len(table)
            relation = self._relation(table.predicate)
            rows = relation.places([encoded(c, relation.words) for c in facts.columns], count)
            retract = np.zeros(count, bool) if table.retract is None else table.retract
            since = np.full(count, ALWAYS) if facts.since is None else facts.since
            until = np.full(count, EVER) if facts.until is None else facts.until
            self._change(relation, spans, rows, since, np.where(retract, k.RETRACT, k.ASSERT), until)
        self._changed(spans)
        return spans

    def make(self, predicate: Predicate, columns: Sequence[Array], times: Times, ends: Times, come: Array) -> Spans:
        """Events that make facts, or end them: the arguments, when, whether each ends one, and whether it comes or goes."""
        spans: Spans = {}
        relation = self._relation(predicate)
        rows = relation.places(columns, len(times))
        acts = np.where(ends, k.END_IT, k.MAKE) + ~come
        self._change(relation, spans, rows, times, acts, np.full(len(times), EVER))
        self._changed(spans)
        return spans

    def _relation(self, predicate: Predicate) -> FactRelation:
        """A relation that is about to change."""
        if predicate not in self.marks:
            relation = self.knowledge.relations.get(predicate)
            self.marks[predicate] = None if relation is None else relation.mark()
        return self.knowledge.relation(*predicate)

    def _change(
        self, relation: FactRelation, spans: Spans, rows: RowIds, times: Times, acts: Array, untils: Array
    ) -> None:
        if not len(rows):
            return
        change = relation.change(rows, times, acts, untils)
        self._follow(relation, change)
        changed = change.lo < change.hi
        if changed.any():
            spans[relation.name, relation.arity] = (change.lo[changed], change.hi[changed], change.rows[changed])

    def _follow(self, relation: FactRelation, change: TimelineChange) -> None:
        """Takes a change over into the indexes of what holds last."""
        predicate = (relation.name, relation.arity)
        for rows, holds in ((change.rows[change.ended], False), (change.rows[change.began], True)):
            if len(rows):
                self.knowledge.closures.follow(predicate, relation.rows.data[:, rows], holds)

    def _changed(self, changed: Collection[Predicate]) -> None:
        if changed:
            self.knowledge.forget(changed)
            self.knowledge.version += 1

    def unmake(self) -> None:
        """Forgets what events made of facts: they come again."""
        for relation in self.knowledge.relations.values():
            relation.drop_history(ALWAYS, unmade=True)
        self.knowledge.forget()

    def prune(self, floors: dict[str, int], settled: int) -> None:
        """Forgets how it came that facts hold at a time before which nothing is asked any more: `floors`, or `settled`."""
        for relation in self.knowledge.relations.values():
            relation.drop_history(floors.get(relation.name, settled))
        self.knowledge.forget()
        self.knowledge.near.clear()

    # State

    def state(self) -> list[tuple[str, int, list[tuple[Value, ...]], dict[str, Any]]]:
        """All that was said of facts, and made of them, beside what was given."""
        decode, result = self.knowledge.words.decode, []
        for relation in self.knowledge.relations.values():
            state = relation.state()
            codes = relation.rows.data[:, state.pop("rows")]
            args = [tuple(decode(c) for c in row) for row in codes.T.tolist()]
            result.append((relation.name, relation.arity, args, state))
        return result

    def fill(self, state: Iterable[Any]) -> None:
        """As it was when the state was taken."""
        encode = self.knowledge.words.encode_all
        for name, arity, args, timelines in state:
            if args:
                columns = [encode(row[i] for row in args) for i in range(arity)]
                self.knowledge.relation(name, arity).fill(columns, len(args), timelines)
        self.knowledge.forget()
        self.knowledge.version += 1

    def commit(self) -> None:
        """The step is over. It may be broken off and called again."""
        for predicate in self.marks:
            self.knowledge.relations[predicate].journal = []
        self.marks = {}

    def undo(self) -> None:
        """Restores the facts of the beginning of the step. It may be broken off and called again."""
        if not self.marks:
            return
        for predicate, mark in self.marks.items():
            if mark is None:
                self.knowledge.relations.pop(predicate, None)
            else:
                self.knowledge.relations[predicate].undo(mark)
        self.knowledge.forget()  # also indexes, which follow facts change by change
        self.knowledge.near.clear()
        self.knowledge.version += 1
        self.marks = {}
