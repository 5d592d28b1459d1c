"""The moves of a run: from an iteration of a part to the next one, and what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from augury.algebra.nodes import Condition, Link, Run, condition_labels
from augury.algebra.ready import binds, ready_order
from augury.algebra.terms import Aggregate, Prev, variables
from augury.algebra.terms import labels as labels_of
from augury.columns.frame import View
from augury.engine.operators.runs.sight import Question, bound_in_parts, has_earlier, question


@dataclass(frozen=True)
class Move:
    """From an iteration of a part to the next one, of the same part or of a later one."""

    source: int
    target: int
    link: Link
    questions: tuple[Question, ...]  # that the two iterations alone can answer
    later: tuple[Question, ...]  # that depend on more of the match
    agree: tuple[str, ...]  # variables that both iterations have, and that must be equal
    agree_later: tuple[str, ...]  # variables that an earlier part has


class Moves:
    """The moves of a run, and how each is found: along edges that the two events alone decide, or by asking."""

    def __init__(self, run: Run, views: tuple[View, ...]) -> None:
        self.run, self.bound = run, bound_in_parts(run, views)
        self.results = {result.name: result for result in run.results}
        self.all = tuple(self._all(views))
        count = len(run.parts)
        asks = [bool(m.questions or m.later or m.agree or m.agree_later) for m in self.all]
        # Moves to the soonest that two events alone decide are looked for one by one; see `seeking.py`.
        alone = [m.link == "THEN" and not (m.later or m.agree_later) for m in self.all]
        self.sought = [i for i, m in enumerate(self.all) if alone[i] and (m.questions or m.agree)]
        rest = [i for i in range(len(self.all)) if i not in self.sought]
        seq = {self.all[i].target for i in rest if self.all[i].link == "SEQ"}
        asking = {self.all[i].target for i in rest if self.all[i].link == "THEN" and asks[i]} | seq
        choosy = [i in rest and m.link == "THEN" and m.target in asking for i, m in enumerate(self.all)]
        self.choosy = sum(1 << i for i, one in enumerate(choosy) if one)  # moves to the soonest that an answer leaves
        self.chosen = self.choosy | sum(1 << i for i, m in enumerate(self.all) if m.later or m.agree_later)
        self.next = any(m.link == "NEXT" for m in self.all)
        # What leads to a part by moves that are no NEXT: 1 what no other moment of it lies behind, 2 all.
        self.leads = np.zeros(count, np.int64)
        for number, (move, all_lead) in enumerate(zip(self.all, choosy, strict=True)):
            if move.link != "NEXT" and number in rest:
                kind = 2 if all_lead or move.link == "SEQ" else 1
                self.leads[move.target] = max(int(self.leads[move.target]), kind)
        self.starts = tuple(
            (j, tuple(q for c in self.where(j) if (q := question(c, True)).of_first))
            for j in range(count)
            if all(part.optional for part in run.parts[:j])
        )

    def where(self, part: int) -> list[Condition]:
        return ready_order(self.run.parts[part].where, self.bound)

    def _all(self, views: tuple[View, ...]) -> Iterator[Move]:
        parts = self.run.parts
        for i, source in enumerate(parts):
            for j in range(i, len(parts)):
                if (j == i and not source.repeats) or not all(part.optional for part in parts[i + 1 : j]):
                    continue
                target = parts[j]
                asked = [q for c in self.where(j) if (q := question(c, j != i)).of_first or j == i]
                alone = [q for q in asked if self._alone(q, i, j, views)]
                shared = {v for v in views[j].vars if v not in target.own and v not in self.run.key}
                shared &= {v for m in range(j) for v in views[m].vars if v not in parts[m].own} | set(
                    shared if i == j else ()
                )
                agree = {v for v in shared if v in views[i].vars and v not in source.own}
                link, later = target.between if i == j else target.link, tuple(q for q in asked if q not in alone)
                yield Move(i, j, link, tuple(alone), later, tuple(sorted(agree)), tuple(sorted(shared - agree)))

    def _alone(self, asked: Question, i: int, j: int, views: tuple[View, ...]) -> bool:
        """Whether two iterations are all that a condition needs."""
        parts = self.run.parts
        seen = set(views[j].vars) | {v for v in views[i].vars if v not in parts[i].own}
        labels = {parts[j].label} | ({parts[i].label} if not parts[i].repeats else set())
        bound_here = {v for c in parts[j].where for v in binds(c, self.bound)}
        needs = asked.needs - {r.name for r in self.run.results if self._is_last(r.name, i)}
        if any(isinstance(p, Aggregate) for _, p in asked.hidden) or not needs <= seen | bound_here:
            return False
        for m, part in enumerate(parts):  # whether a part was left out that it is written with
            names = {v for v in views[m].vars if v not in part.own} | {part.label}
            if m not in (i, j) and part.optional and asked.present & (names - seen - labels):
                return False
        for _, p in asked.hidden:
            assert isinstance(p, Prev)
            if not variables(p.of) <= set(views[j].vars) or not labels_of(p.of) <= {parts[j].label}:
                return False
        return condition_labels(asked.condition) <= labels

    def _is_last(self, name: str, part: int) -> bool:
        found = self.results.get(name)
        return (
            found is not None
            and found.part == part
            and found.aggregate.function == "last"
            and not found.aggregate.distinct
            and not has_earlier(found.aggregate)
        )
