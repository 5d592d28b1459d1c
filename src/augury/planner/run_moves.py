"""The moves of a run: from an iteration of a part to the next one, and what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from augury.algebra.nodes import Condition, Holds, Link, Run, bound_vars, condition_labels, condition_vars
from augury.algebra.ready import binds
from augury.algebra.run_terms import bound_at_the_end, in_turn, outer_variables
from augury.algebra.terms import Aggregate, Prev, variables
from augury.algebra.terms import labels as labels_of
from augury.planner.run_questions import PartRows, Question, Turn, bound_in_parts, has_earlier, has_prev, question


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
    deferred: tuple[int, ...] = ()  # repeated parts whose iterations may have to wait for a variable of the target

    @property
    def asks_later(self) -> bool:
        """Whether more of the match than the two iterations decides."""
        return bool(self.later or self.agree_later or self.deferred)


def left_out(part: int) -> str:
    """The presence of a part, as an operand of conditions."""
    return f"#part {part}"


class Moves:
    """The moves of a run, and how each is found: along edges that the two events alone decide, or by asking."""

    def __init__(self, run: Run, views: tuple[PartRows, ...]) -> None:
        self.run, self.bound = run, bound_in_parts(run, views)
        self.results = {result.name: result for result in run.results}
        self.ending, self.several = bound_at_the_end(run), self._several()
        self.all = tuple(self._all(views))
        count = len(run.parts)
        asks = [bool(m.questions or m.agree or m.asks_later) for m in self.all]
        # Moves to the soonest that two events alone decide are looked for one by one; see `seeking.py`.
        alone = [m.link == "THEN" and not m.asks_later for m in self.all]
        self.sought = [i for i, m in enumerate(self.all) if alone[i] and (m.questions or m.agree)]
        rest = [i for i in range(len(self.all)) if i not in self.sought]
        seq = {self.all[i].target for i in rest if self.all[i].link == "SEQ"}
        asking = {self.all[i].target for i in rest if self.all[i].link == "THEN" and asks[i]} | seq
        choosy = [i in rest and m.link == "THEN" and m.target in asking for i, m in enumerate(self.all)]
        self.choosy = sum(
            1 << i for i, choose in enumerate(choosy) if choose
        )  # moves to the soonest that an answer leaves
        self.chosen = self.choosy | sum(1 << i for i, m in enumerate(self.all) if m.asks_later)
        self.next = any(m.link == "NEXT" for m in self.all)
        # What leads to a part by moves that are no NEXT: 1 what no other moment of it lies behind, 2 all.
        self.leads = np.zeros(count, np.int64)
        for number, (move, all_lead) in enumerate(zip(self.all, choosy, strict=True)):
            if move.link != "NEXT" and number in rest:
                kind = 2 if all_lead or move.link == "SEQ" else 1
                self.leads[move.target] = max(int(self.leads[move.target]), kind)
        self.starts = tuple(
            (j, tuple(q for c in self.where(j) if (q := self.question(c, True)).of_first))
            for j in range(count)
            if all(part.optional for part in run.parts[:j])
        )

    def where(self, part: int) -> list[Condition]:
        return in_turn(self.run.parts[part].where, self.run, self.bound)

    def after(self, part: int) -> list[Condition]:
        return in_turn(self.run.parts[part].after, self.run, self.bound)

    def _all(self, views: tuple[PartRows, ...]) -> Iterator[Move]:
        parts = self.run.parts
        for i, source in enumerate(parts):
            for j in range(i, len(parts)):
                if (j == i and source.most == 1) or not all(part.optional for part in parts[i + 1 : j]):
                    continue
                target = parts[j]
                asked = [q for c in self.where(j) if (q := self.question(c, j != i)).of_first or j == i]
                alone = self._all_alone(asked, i, j, views)
                shared = {v for v in views[j].vars if v not in target.own and v not in self.run.key}
                shared &= {v for m in range(j) for v in views[m].vars if v not in parts[m].own} | set(
                    shared if i == j else ()
                )
                agree = {v for v in shared if v in views[i].vars and v not in source.own}
                link, later = target.between if i == j else target.link, tuple(q for q in asked if q not in alone)
                deferred = tuple(m for m in range(j) if self.deferred(m, set(views[j].vars) - set(target.own)))
                yield Move(
                    i, j, link, tuple(alone), later, tuple(sorted(agree)), tuple(sorted(shared - agree)), deferred
                )

    def bound_before(self, part: int) -> list[Turn]:
        """The conditions of the parts before one that bind variables of the match, and those that depend on the choice."""
        turns = (turn for m in range(part) for turn in self.turns_of(m))
        return list({c: (c, p) for c, p in turns if binds(c, self.bound) or condition_vars(c) & self.several}.values())

    def turns_of(self, part: int) -> Iterator[Turn]:
        """The conditions on a part that are asked once in a match, with what must be present.

        A condition that may become decidable at several parts is asked wherever all that it has is there.
        """
        here = self.run.parts[part]
        for condition in () if here.repeats else self.where(part):
            elsewhere = any(condition in other.where for other in self.run.parts if other is not here)
            yield condition, () if elsewhere else (left_out(part),)
        yield from ((condition, ()) for condition in self.after(part))

    def _several(self) -> set[str]:
        """Variables of the match that facts bind in more than one way, and what is computed of them."""
        conditions: set[str] = set()
        for part in self.run.parts:
            for condition in (*(() if part.repeats else part.where), *part.after):
                new = binds(condition, self.bound)
                if isinstance(condition, Holds) or condition_vars(condition) & conditions:
                    conditions |= new
        return conditions

    def deferred(self, part: int, names: set[str]) -> list[Condition]:
        """The conditions on each iteration of a part with one of these variables, if that may be bound after the part.

        `b(X)? NEXT row(V)+ NEXT z(X) WHERE V > X`: where b is left out, z binds X.
        """
        parts = self.run.parts
        if not parts[part].repeats:
            return []
        sure = {v for p in parts[: part + 1] if not p.optional for v in bound_vars(p.input)} | set(parts[part].own)
        late = (names - sure) | self.ending
        return [c for c in parts[part].where if self._needs(c) & late]

    def question(self, condition: Condition, first: bool) -> Question:
        """The conditions on an iteration, where also everything that the results in it wait for is there."""
        asked = question(condition, first)
        return replace(asked, present=asked.present | self._needs(condition)) if asked.of_first else asked

    def _needs(self, condition: Condition) -> set[str]:
        """The variables of a condition, and those that the results in it wait for."""
        names = condition_vars(condition)
        return names.union(*(outer_variables(self.results[v], self.run) for v in names & self.results.keys()))

    def _all_alone(self, asked: list[Question], i: int, j: int, views: tuple[PartRows, ...]) -> list[Question]:
        """The questions that two iterations can answer; what one of them binds, the next ones may have."""
        alone: list[Question] = []
        bound: set[str] = set()
        for each in asked:
            if self._alone(each, i, j, views, bound):
                alone.append(each)
                bound |= binds(each.condition, self.bound | bound)
        return alone

    def _alone(self, asked: Question, i: int, j: int, views: tuple[PartRows, ...], bound: set[str]) -> bool:
        """Whether two iterations, and what is bound by them, are all that a condition needs."""
        parts = self.run.parts
        seen = set(views[j].vars) | {v for v in views[i].vars if v not in parts[i].own}
        labels = {parts[j].label} | ({parts[i].label} if not parts[i].repeats else set())
        binds_itself = binds(asked.condition, self.bound | bound)
        needs = asked.needs - {r.name for r in self.run.results if self._is_last(r.name, i)}
        if any(isinstance(p, Aggregate) for _, p in asked.hidden) or not needs <= seen | bound | binds_itself:
            return False
        if may_be_left_out(asked, Move(i, j, "NEXT", (), (), (), ()), self.run, views):
            return False
        for _, p in asked.hidden:
            assert isinstance(p, Prev)
            if has_prev(p.of) or not variables(p.of) <= set(views[j].vars) or not labels_of(p.of) <= {parts[j].label}:
                return False
        return condition_labels(asked.condition) <= labels

    def _is_last(self, name: str, part: int) -> bool:
        result = self.results.get(name)
        return (
            result is not None
            and result.part == part
            and result.aggregate.function == "last"
            and not result.aggregate.distinct
            and not has_earlier(result.aggregate)
            and not outer_variables(result, self.run)
        )


def may_be_left_out(asked: Question, move: Move, run: Run, views: tuple[PartRows, ...]) -> bool:
    """Whether a match may leave out a part, other than the two of a move, that a condition is written with."""
    i, j = move.source, move.target
    seen = set(views[j].vars) | {v for v in views[i].vars if v not in run.parts[i].own}
    labels = {run.parts[j].label} | ({run.parts[i].label} if not run.parts[i].repeats else set())
    for m, part in enumerate(run.parts):
        names = {v for v in views[m].vars if v not in part.own} | {part.label}
        if m not in (i, j) and part.optional and asked.present & (names - seen - labels):
            return True
    return False
