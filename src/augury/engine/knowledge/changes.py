"""Facts that change while a program runs: what is said of them, and what events make of them (V 2.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from augury.algebra.program import Predicate
from augury.engine.knowledge.relation import Interval, Relation, Said, difference
from augury.knowledge.table import ALWAYS, EVER
from augury.knowledge.timeline import Statement
from augury.model import Value

if TYPE_CHECKING:
    from augury.engine.knowledge import Knowledge

Spans = dict[Predicate, list[Interval]]  # over which times facts of a predicate have changed
Before = tuple[Relation, int, list[Interval], list[Said] | None, tuple[Counter[int], Counter[int]] | None]


class Changing:
    """Changes of facts. Those of a step are undone where the step fails."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.journal: list[Before] = []

    def say(self, statements: Iterable[Statement]) -> Spans:
        """Takes in what is said of facts; over which times that changes what holds."""
        spans: Spans = {}
        encode = self.knowledge.words.encode
        for one in statements:
            fact = one.fact
            relation = self.knowledge.relation(fact.name, len(fact.args))
            row = self._remember(relation, [encode(a) for a in fact.args])
            since = ALWAYS if fact.since is None else fact.since
            if row not in relation.said:
                made = row in relation.made
                relation.said[row] = [] if made else [(a, b, False) for a, b in relation.intervals(row)]
            relation.said[row].append((since, EVER if fact.until is None else fact.until, one.retract))
            self._settle(relation, row, spans)
        return self._told(spans)

    def make(self, predicate: Predicate, events: Iterable[tuple[list[int], int, bool, int]]) -> Spans:
        """Events that make facts, or end them: the arguments, when, whether it ends, and whether one comes or goes."""
        spans: Spans = {}
        relation = self.knowledge.relation(*predicate)
        for codes, time, ends, count in events:
            row = self._remember(relation, codes)
            if row not in relation.made:
                if row not in relation.said and relation.rows.alive[row]:
                    relation.said[row] = [(a, b, False) for a, b in relation.intervals(row)]
                relation.made[row] = (Counter(), Counter())
            counts = relation.made[row][ends]
            counts[time] += count
            if not counts[time]:
                del counts[time]
            self._settle(relation, row, spans)
        return self._told(spans)

    def _remember(self, relation: Relation, codes: list[int]) -> int:
        row = relation.place(codes)
        said, made = relation.said.get(row), relation.made.get(row)
        kept = None if made is None else (Counter(made[0]), Counter(made[1]))
        self.journal.append((relation, row, relation.intervals(row), None if said is None else list(said), kept))
        return row

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
            self.knowledge.edge((relation.name, relation.arity), relation.rows.data[:, row], now)

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
                made, ended = relation.made.pop(row, (Counter[int](), Counter[int]()))
                said = [*((t, t, True) for t in ended), *((t, EVER, False) for t in made), *relation.said.get(row, ())]
                relation.said[row] = _lasting(said, settled)
            relation.prune(settled)
        self.knowledge.forget()
        self.knowledge.near.clear()

    # State

    def state(self) -> list[tuple[str, int, list[tuple[tuple[Value, ...], list[Said], tuple[list[int], list[int]]]]]]:
        """All that was said of facts, and made of them, beside what was given."""
        decode, found = self.knowledge.words.decode, []
        for relation in self.knowledge.relations.values():
            rows = []
            for row in sorted({*relation.said, *relation.made}):
                args = tuple(decode(c) for c in relation.rows.data[:, row].tolist())
                made, ended = relation.made.get(row, (Counter[int](), Counter[int]()))
                rows.append((args, relation.said.get(row, []), (list(made.elements()), list(ended.elements()))))
            found.append((relation.name, relation.arity, rows))
        return found

    def fill(self, state: Iterable[Any]) -> None:
        """As it was when the state was taken."""
        encode = self.knowledge.words.encode
        for name, arity, rows in state:
            relation = self.knowledge.relation(name, arity)
            for args, said, (made, ended) in rows:
                row = relation.place([encode(a) for a in args])
                relation.said[row] = list(said)
                if made or ended:
                    relation.made[row] = (Counter(made), Counter(ended))
                relation.hold(row, relation.follows(row))
        self.knowledge.forget()
        self.knowledge.version += 1

    def settle(self) -> None:
        """The step is over."""
        self.journal.clear()

    def undo(self) -> None:
        """All facts as they were when the step began."""
        spans: Spans = {}
        for relation, row, intervals, said, made in reversed(self.journal):
            before = relation.intervals(row)
            for table, old in ((relation.said, said), (relation.made, made)):
                if old is None:
                    table.pop(row, None)
                else:
                    table[row] = old  # type: ignore[assignment]
            relation.hold(row, intervals)
            self._follow(relation, row, before, intervals)
            spans[relation.name, relation.arity] = []
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
