"""Facts with one value a key, which the last event makes: `fact latest mode(M, S) PER (M) <- change(M, S).`"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.nodes import ANY_VALUE
from augury.core.arrays import Array, RowIds
from augury.core.model import order_key
from augury.engine.operators.learn import Learn
from augury.knowledge.fact_table import ALWAYS
from augury.knowledge.timeline import Statement
from augury.planner.specs import LatestSpec
from augury.storage.kernels import entries as k
from augury.storage.table import END, START

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

Codes = tuple[int, ...]
FactChange = tuple[Codes, int, bool, bool]  # a fact, when, whether it ends, and whether that is said or taken back


@dataclass(slots=True)
class KeyLine:
    """What is said of the facts of one key.

    An *ender* is a time at which facts end: an event makes another fact, or `fact not p(K, _)` ends whatever holds. It ends
    what was asserted since the last ender that ended everything; so a change looks no further than to the next such ender.
    """

    making: dict[int, list[tuple[int, int, Codes]]] = field(default_factory=dict)  # start, row, fact; by end
    ending: dict[int, list[Codes]] = field(default_factory=dict)  # patterns, by end
    enders: list[int] = field(default_factory=list)  # in order
    won: dict[int, Codes] = field(default_factory=dict)  # the fact that is made at a time
    ended: dict[int, set[Codes]] = field(default_factory=dict)  # the facts that end at a time
    said: list[tuple[int, Codes]] = field(default_factory=list)  # asserted from outside, in order


class LearnLatest(Learn):
    """Each event asserts its fact and ends the others of its key: of several at one time, the last in the order of events.

    All state follows from the tables and from the facts, which `rebuild` reads. A prune keeps the last settled event of
    each key: what comes next ends its fact.
    """

    kind = "latest facts"

    def __init__(self, runtime: Runtime, spec: LatestSpec) -> None:
        self.key = spec.key_arguments
        self.lines: dict[Codes, KeyLine] = {}
        self.changed: dict[Codes, set[int]] = {}  # times at which something is new, by key
        super().__init__(runtime, spec)
        self._read_said()

    def step(self) -> None:
        changes: list[FactChange] = []
        for port, ends in enumerate(self.ends):
            for rows, come in ((self.losses(port), False), (self.gains(port), True)):
                if len(rows):
                    changes += self._take_end(port, rows, come) if ends else self._take(port, rows, come)
        changed, self.changed = self.changed, {}
        for key, times in changed.items():
            changes += self._revised(self.lines[key], times)
        if changes:
            self._learn(changes)

    def said(self, statements: Iterable[Statement]) -> None:
        """Facts were asserted from outside: the next event of their key ends them, too."""
        encode = self.runtime.tables.dictionary.encode_all
        for one in statements:
            fact = one.fact
            if not one.retract and (fact.name, len(fact.args)) == self.predicate:
                codes = tuple(encode(fact.args).tolist())
                self._say(codes, ALWAYS if fact.since is None else fact.since)
                self.wake()

    # What has come and gone

    def _facts(self, port: int, rows: RowIds) -> Iterator[tuple[int, int, int, Codes]]:
        """The start, the end, the row and the fact of each event."""
        table = self.inputs[port].table
        starts, times = table.data[START, rows].tolist(), table.data[END, rows].tolist()
        fields = np.array(table.codes, np.int64)[:, None]
        facts = map(tuple, table.data[fields, rows].T.tolist()) if table.codes else [()] * len(rows)
        return zip(starts, times, rows.tolist(), facts, strict=True)

    def _take(self, port: int, rows: RowIds, come: bool) -> list[FactChange]:
        for start, time, row, fact in self._facts(port, rows):
            key = self._key(fact)
            line = self.lines.get(key) or self.lines.setdefault(key, KeyLine())
            if come:
                line.making.setdefault(time, []).append((start, row, fact))
            else:
                line.making[time].remove((start, row, fact))
            self.changed.setdefault(key, set()).add(time)
        self.touched += len(rows)
        return []

    def _take_end(self, port: int, rows: RowIds, come: bool) -> list[FactChange]:
        """Events that end facts: at once where they name one, and else with what holds for the key."""
        anything, found = self.runtime.tables.dictionary.encode(ANY_VALUE), list[FactChange]()
        for _, time, _, fact in self._facts(port, rows):
            if anything not in fact:
                found.append((fact, time, True, come))
                continue
            patterns = self._line(fact).ending.setdefault(time, [])
            if come:
                patterns.append(fact)
            else:
                patterns.remove(fact)
            self.changed.setdefault(self._key(fact), set()).add(time)
        self.touched += len(rows)
        return found

    def _key(self, fact: Codes) -> Codes:
        return tuple([self._canonical(fact[i]) for i in self.key])

    def _canonical(self, code: int) -> int:
        """One code for equal values."""
        return int(self.runtime.tables.dictionary.canon[code >> 1]) if code & 1 else code & -3

    def _line(self, fact: Codes) -> KeyLine:
        key = self._key(fact)
        line = self.lines.get(key)
        if line is None:
            line = self.lines[key] = KeyLine()
        return line

    def _say(self, fact: Codes, time: int) -> None:
        insort(self._line(fact).said, (time, fact))
        self.changed.setdefault(self._key(fact), set()).add(time)

    # What follows

    def _revised(self, line: KeyLine, times: set[int]) -> Iterator[FactChange]:
        """The changes of facts that follow from changes at some times."""
        for time in times:
            before, now = line.won.get(time), self._winner(line.making.get(time))
            if before != now:
                if before is not None:
                    yield before, time, False, False
                    del line.won[time]
                if now is not None:
                    yield now, time, False, True
                    line.won[time] = now
            _stand(line, time)
        for time in sorted({other for changed in times for other in self._affected(line, changed)}):
            before_ended, now_ended = line.ended.get(time, set()), self._ends_at(line, time)
            yield from ((fact, time, True, False) for fact in before_ended - now_ended)
            yield from ((fact, time, True, True) for fact in now_ended - before_ended)
            if now_ended:
                line.ended[time] = now_ended
            else:
                line.ended.pop(time, None)

    def _winner(self, events: list[tuple[int, int, Codes]] | None) -> Codes | None:
        """Of the events that end at one time, the fact of the last in the order of start and arguments."""
        if not events:
            return None
        if len(events) == 1:
            return events[0][2]
        decode = self.runtime.tables.dictionary.decode
        return max(events, key=lambda e: (e[0], tuple(order_key(decode(code)) for code in e[2])))[2]

    def _affected(self, line: KeyLine, time: int) -> Iterator[int]:
        """A time, and the enders after it up to the first that ends everything."""
        yield time
        for i in range(bisect_right(line.enders, time), len(line.enders)):
            yield line.enders[i]
            if self._ends_all(line, line.enders[i]):
                return

    def _ends_all(self, line: KeyLine, time: int) -> bool:
        if time in line.won:
            return True
        anything = self.runtime.tables.dictionary.encode(ANY_VALUE)
        values = [i for i in range(self.predicate[1]) if i not in self.key]
        return any(all(pattern[i] == anything for i in values) for pattern in line.ending.get(time, ()))

    def _ends_at(self, line: KeyLine, time: int) -> set[Codes]:
        """The facts that end at a time: of those asserted before, all but the one that is made then, or those that match."""
        if time not in line.won and not line.ending.get(time):
            return set()
        facts, since = list[Codes](), ALWAYS
        for i in range(bisect_left(line.enders, time) - 1, -1, -1):
            ender = line.enders[i]
            if ender in line.won:
                facts.append(line.won[ender])
            if self._ends_all(line, ender):
                since = ender
                break
        said = line.said[bisect_left(line.said, (since,)) : bisect_left(line.said, (time,))] if line.said else []
        facts += [fact for _, fact in said]
        won = line.won.get(time)
        if won is not None:
            return {fact for fact in facts if not self._same(fact, won)}
        return {fact for fact in facts if any(self._matches(pattern, fact) for pattern in line.ending[time])}

    def _same(self, first: Codes, second: Codes) -> bool:
        if first == second:
            return True
        return all(self._canonical(x) == self._canonical(y) for x, y in zip(first, second, strict=True))

    def _matches(self, pattern: Codes, fact: Codes) -> bool:
        anything = self.runtime.tables.dictionary.encode(ANY_VALUE)
        return all(p == anything or self._same((p,), (f,)) for p, f in zip(pattern, fact, strict=True))

    def _learn(self, changes: list[FactChange]) -> None:
        changes.sort(key=lambda change: change[2])  # what is made first: a fact is kept as its event has it
        arity = self.predicate[1]
        columns = np.array([fact for fact, _, _, _ in changes], np.int64).reshape(len(changes), arity).T
        translated = [self.runtime.bridge.translated(np.ascontiguousarray(column)) for column in columns]
        times = np.array([time for _, time, _, _ in changes], np.int64)
        ends, come = (np.array([change[i] for change in changes], bool) for i in (2, 3))
        self.runtime.learned(self.runtime.knowledge.changes.make(self.predicate, translated, times, ends, come))

    # What it keeps

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        """The last settled event of each key, whose fact the next one ends."""
        if self.ends[port]:
            return None
        table = self.inputs[port].table
        since, mask = horizon.since[id(table)], np.zeros(table.n, bool)
        for line in self.lines.values():
            i = bisect_left(line.enders, since) - 1
            while i >= 0 and line.enders[i] not in line.won:
                i -= 1
            if i >= 0:
                won = line.won[line.enders[i]]
                mask[[row for _, row, fact in line.making[line.enders[i]] if fact == won]] = True
        return mask

    def rebuild(self) -> None:
        super().rebuild()
        self.lines, self.changed = {}, {}
        self._read_said()
        for port, ends in enumerate(self.ends):
            rows = self.inputs[port].table.standing()
            if ends:
                self._take_end(port, rows, True)
            else:
                self._take(port, rows, True)
        for key, times in self.changed.items():
            for _ in self._revised(self.lines[key], times):
                pass  # the facts are as they follow from these events
        self.changed = {}

    def _read_said(self) -> None:
        """The facts that were asserted from outside, as knowledge has them."""
        relation = self.runtime.knowledge.relations.get(self.predicate)
        if relation is None or not relation.rows.n:
            return
        rows = np.arange(relation.rows.n)
        timed = relation.timelines.known(rows)
        plain = rows[~timed & relation.rows.alive[: len(rows)].astype(bool)]
        times = np.full(len(plain), ALWAYS) if relation.since is None else relation.since[plain]
        state = relation.timelines.state(rows[timed])
        said = state["entries"][k.SAID]
        asserted = (said == k.ASSERTED) | (said == k.ASSERTED_ANEW)
        some = np.repeat(rows[timed], state["counts"])[asserted]
        facts, times = np.concatenate([plain, some]), np.concatenate([times, state["entries"][k.TIME][asserted]])
        if not len(facts):
            return
        columns = [self.runtime.bridge.back(relation.rows.data[i, facts]) for i in range(self.predicate[1])]
        for time, *fact in zip(times.tolist(), *(column.tolist() for column in columns), strict=True):
            self._say(tuple(fact), time)
        self.changed = {}


def _stand(line: KeyLine, time: int) -> None:
    """Keeps the list of enders in order, and forgets what a time no longer has."""
    for table in (line.making, line.ending):
        if time in table and not table[time]:
            del table[time]
    ends, i = time in line.won or time in line.ending, bisect_left(line.enders, time)
    stands = i < len(line.enders) and line.enders[i] == time
    if ends and not stands:
        line.enders.insert(i, time)
    elif stands and not ends:
        del line.enders[i]
