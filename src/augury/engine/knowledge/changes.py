"""Facts that change while a program runs: what is said of them, and what events make of them (V 2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.algebra.program import Predicate
from augury.engine.kernels import Array
from augury.engine.knowledge.relation import Interval, Relation, Said, difference
from augury.knowledge.table import ALWAYS, EVER
from augury.knowledge.timeline import Statement
from augury.model import Fact, Value

if TYPE_CHECKING:
    from augury.engine.knowledge import Knowledge

Spans = dict[Predicate, list[Interval]]  # over which times facts of a predicate have changed
Made = tuple[list[int], list[int]]


@dataclass(frozen=True)
class Before:
    """What a fact was before a step changed it."""

    relation: Relation
    row: int
    intervals: list[Interval]
    said: list[Said] | None
    made: Made | None


@dataclass(frozen=True)
class New:
    """Facts that a step has made, of which nothing was known before."""

    relation: Relation
    rows: Array


class Changing:
    """Changes of facts. Those of a step are undone where the step fails."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.journal: list[Before | New] = []

    def say(self, statements: Iterable[Statement]) -> Spans:
        """Takes in what is said of facts; over which times that changes what holds."""
        spans: Spans = {}
        groups: dict[Predicate, list[Statement]] = {}
        for one in statements:
            groups.setdefault((one.fact.name, len(one.fact.args)), []).append(one)
        for predicate, said in groups.items():
            columns = [self.knowledge.words.encode_all(one.fact.args[i] for one in said) for i in range(predicate[1])]
            times = [(_since(one.fact), _until(one.fact)) for one in said]
            plain = np.array([not one.retract for one in said], bool)
            relation, rows, new = self._placed(predicate, columns, np.array(times, np.int64).T, plain, spans)
            for i in np.flatnonzero(new).tolist():
                relation.said[int(rows[i])] = [(*times[i], False)]
            for i in np.flatnonzero(~new).tolist():
                row = int(rows[i])
                self._remember(relation, row)
                if row not in relation.said:
                    made = row in relation.made
                    relation.said[row] = [] if made else [(a, b, False) for a, b in relation.intervals(row)]
                relation.said[row].append((*times[i], said[i].retract))
                self._settle(relation, row, spans)
        return self._told(spans)

    def make(self, predicate: Predicate, columns: Sequence[Array], times: Array, ends: Array, come: Array) -> Spans:
        """Events that make facts, or end them: the arguments, when, whether each ends one, and whether it comes or goes."""
        spans: Spans = {}
        bounds = np.stack([times, np.full(len(times), EVER)])
        relation, rows, new = self._placed(predicate, columns, bounds, ~ends & come, spans)
        for row, time in zip(rows[new].tolist(), times[new].tolist(), strict=True):
            relation.made[row] = ([time], [])
        for i in np.flatnonzero(~new).tolist():
            row, time = int(rows[i]), int(times[i])
            self._remember(relation, row)
            if row not in relation.made:
                if row not in relation.said and relation.rows.alive[row]:
                    relation.said[row] = [(a, b, False) for a, b in relation.intervals(row)]
                relation.made[row] = ([], [])
            found = relation.made[row][int(ends[i])]
            if come[i]:
                found.append(time)
            else:
                found.remove(time)
            self._settle(relation, row, spans)
        return self._told(spans)

    def _placed(
        self, predicate: Predicate, columns: Sequence[Array], times: Array, plain: Array, spans: Spans
    ) -> tuple[Relation, Array, Array]:
        """The rows of facts, and which of them are new: those hold at once, where just one plain thing is said of each."""
        relation = self.knowledge.relation(*predicate)
        before = relation.rows.n
        rows = relation.places(columns, len(plain))
        new = plain & (rows >= before) & (times[0] < times[1])
        if new.any():
            counts = np.bincount(rows - before if before == 0 else np.maximum(rows - before + 1, 0))
            new &= counts[rows - before if before == 0 else np.maximum(rows - before + 1, 0)] == 1
        fresh = rows[new]
        if len(fresh):
            since, until = times[0][new], times[1][new]
            relation.begin(fresh, since, until)
            self.journal.append(New(relation, fresh))
            lasting = fresh[until == EVER]
            self.knowledge.edge(predicate, relation.rows.data[:, lasting], True)
            spans.setdefault(predicate, []).append((int(since.min()), int(until.max())))
        return relation, rows, new

    def _remember(self, relation: Relation, row: int) -> None:
        said, made = relation.said.get(row), relation.made.get(row)
        kept = None if made is None else (list(made[0]), list(made[1]))
        self.journal.append(Before(relation, row, relation.intervals(row), None if said is None else list(said), kept))

    def _settle(self, relation: Relation, row: int, spans: Spans) -> None:
        before = relation.intervals(row)
        after = relation.follows(row)
        changed = difference(before, after)
        if changed:
            relation.hold(row, after)
            self._follow(relation, row, before, after)
            spans.setdefault((relation.name, relation.arity), []).extend(changed)

    def _follow(self, relation: Relation, row: int, before: list[Interval], after: list[Interval]) -> None:
        """Takes a change over into the indexes of what holds last."""
        was, now = (any(until == EVER for _, until in found) for found in (before, after))
        if was != now:
            self.knowledge.edge((relation.name, relation.arity), relation.rows.data[:, row : row + 1], now)

    def _told(self, spans: Spans) -> Spans:
        if spans:
            self.knowledge.forget(spans)
            self.knowledge.version += 1
        return spans

    def unmake(self) -> None:
        """Forgets what events made of facts: they are told again."""
        for relation in self.knowledge.relations.values():
            rows, relation.made = list(relation.made), {}
            for row in rows:
                relation.hold(row, relation.follows(row))
        self.knowledge.forget()

    def prune(self, settled: int) -> None:
        """Forgets what was said of times that can no longer change, and facts that no longer hold."""
        for relation in self.knowledge.relations.values():
            for row in {*relation.said, *relation.made}:
                made, ended = relation.made.pop(row, ([], []))
                said = [*((t, t, True) for t in ended), *((t, EVER, False) for t in made), *relation.said.get(row, ())]
                relation.said[row] = _lasting(said, settled)
            relation.prune(settled)
        self.knowledge.forget()
        self.knowledge.near.clear()

    # State

    def state(self) -> list[tuple[str, int, list[tuple[tuple[Value, ...], list[Said], Made]]]]:
        """All that was said of facts, and made of them, beside what was given."""
        decode, found = self.knowledge.words.decode, []
        for relation in self.knowledge.relations.values():
            rows = []
            for row in sorted({*relation.said, *relation.made}):
                args = tuple(decode(c) for c in relation.rows.data[:, row].tolist())
                rows.append((args, relation.said.get(row, []), relation.made.get(row, ([], []))))
            found.append((relation.name, relation.arity, rows))
        return found

    def fill(self, state: Iterable[Any]) -> None:
        """As it was when the state was taken."""
        encode = self.knowledge.words.encode
        for name, arity, rows in state:
            relation = self.knowledge.relation(name, arity)
            for args, said, (made, ended) in rows:
                row = int(relation.places([np.array([encode(a)]) for a in args], 1)[0])
                relation.said[row] = list(said)
                if made or ended:
                    relation.made[row] = (list(made), list(ended))
                relation.hold(row, relation.follows(row))
        self.knowledge.forget()
        self.knowledge.version += 1

    def settle(self) -> None:
        """The step is over."""
        self.journal.clear()

    def undo(self) -> None:
        """All facts as they were when the step began."""
        spans: Spans = {}
        for one in reversed(self.journal):
            relation = one.relation
            spans[relation.name, relation.arity] = []
            if isinstance(one, New):
                lasting = one.rows[relation.until[one.rows] == EVER] if relation.until is not None else one.rows
                self.knowledge.edge((relation.name, relation.arity), relation.rows.data[:, lasting], False)
                relation.rows.kill(one.rows)
                for row in one.rows.tolist():
                    relation.made.pop(row, None)
                    relation.said.pop(row, None)
                continue
            before = relation.intervals(one.row)
            relation.said.pop(one.row, None)
            relation.made.pop(one.row, None)
            if one.said is not None:
                relation.said[one.row] = one.said
            if one.made is not None:
                relation.made[one.row] = one.made
            relation.hold(one.row, one.intervals)
            self._follow(relation, one.row, before, one.intervals)
        self.journal.clear()
        self._told(spans)


def _lasting(said: list[Said], settled: int) -> list[Said]:
    """What still matters of statements, where none comes any more for a time up to `settled`."""
    ends = [t for t, _, retract in said if retract and t <= settled]
    return [
        one
        for one in said
        if one[0] > settled or (not one[2] and one[1] > settled and not any(one[0] < t for t in ends))
    ]


def _since(fact: Fact) -> int:
    return ALWAYS if fact.since is None else fact.since


def _until(fact: Fact) -> int:
    return EVER if fact.until is None else fact.until
