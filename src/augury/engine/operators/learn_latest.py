"""Facts with one value a key, which the last event makes: `fact latest mode(M, S) PER (M) <- change(M, S).`"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.nodes import ANY_VALUE
from augury.core.arrays import Array, RowIds, Times
from augury.core.model import order_key
from augury.engine.operators.learn import Learn
from augury.knowledge.fact_table import ALWAYS
from augury.knowledge.timeline import Statement
from augury.planner.specs import LatestSpec
from augury.storage.kernels import entries
from augury.storage.kernels import latest_rows as k
from augury.storage.rows import Distinct
from augury.storage.segments import Segments
from augury.storage.table import END, START

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

_FIELDS, _ORDER = 6, 4  # of an entry, and how many of them order entries
_NO_ENTRIES = np.empty(0, np.int64), np.empty((_FIELDS, 0), np.int64)
Entries = tuple[Array, Array]  # groups, and entries as columns


class LearnLatest(Learn):
    """Each event asserts its fact and ends the others of its key: of several at one time, the last in the order of events.

    An event makes a fact, and ends what was asserted since the last time at which all facts of its key ended; `fact not
    p(K, _)` ends what matches. So a change looks no further than to the next time at which all end: what follows from the
    entries of a key over these times is taken back, and what follows after the change is learned.

    All state follows from the tables and from the facts, which `rebuild` reads. A prune keeps the last settled event that
    ended all of its key: what comes next ends its fact.
    """

    kind = "latest facts"

    def __init__(self, runtime: Runtime, spec: LatestSpec) -> None:
        self.key = spec.key_arguments
        super().__init__(runtime, spec)
        self._clear()

    def _clear(self) -> None:
        dictionary = self.runtime.tables.dictionary
        self.entries = Segments(len(self.key), _FIELDS, _ORDER, dictionary)  # of each key
        self.facts = Distinct(self.predicate[1], dictionary)  # what entries name, facts and patterns
        self.anything = dictionary.encode(ANY_VALUE)
        self.said_of: list[tuple[list[Array], Times]] = []  # asserted from outside since the last step
        self._read_said()

    def step(self) -> None:
        direct: list[tuple[list[Array], Times, bool]] = []  # events that end one fact
        gone, come = (
            [self._take(port, rows, stands, direct) for port, rows in enumerate(changed) if len(rows)]
            for stands, changed in (
                (False, [self.losses(port) for port in range(len(self.ends))]),
                (True, [self.gains(port) for port in range(len(self.ends))]),
            )
        )
        come += [self._said(columns, times) for columns, times in self.said_of]
        self.said_of = []
        self._learn([*self._revised(_joined(gone), _joined(come)), *self._direct(direct)])

    def said(self, statements: Iterable[Statement]) -> None:
        """Facts were asserted from outside: the next event of their key ends them, too."""
        encode = self.runtime.tables.dictionary.encode_all
        for statement in statements:
            fact = statement.fact
            if not statement.retract and (fact.name, len(fact.args)) == self.predicate:
                time = ALWAYS if fact.since is None else fact.since
                self.said_of.append((list(encode(fact.args).reshape(-1, 1)), np.array([time], np.int64)))
                self.wake()

    # What has come and gone

    def _take(self, port: int, rows: RowIds, come: bool, direct: list[tuple[list[Array], Times, bool]]) -> Entries:
        """Events as entries, but for those that end one fact, whatever else is said of its key."""
        table = self.inputs[port].table
        columns, times = [table.data[field, rows] for field in table.codes], table.data[END, rows]
        self.touched += len(rows)
        kind = np.full(len(rows), k.MADE)
        if self.ends[port]:
            open = [column == self.anything for column in columns]
            some = np.logical_or.reduce(open) if open else np.zeros(len(rows), bool)
            if not some.all():
                direct.append(([column[~some] for column in columns], times[~some], come))
                columns, rows, times = [column[some] for column in columns], rows[some], times[some]
                open = [column[some] for column in open]
            values = [i for i in range(self.predicate[1]) if i not in self.key]
            kind = np.where(np.logical_and.reduce([open[i] for i in values]), k.END_ALL, k.END_SOME)
        return self._entries(columns, times, kind, table.data[START, rows], rows * len(self.ends) + port)

    def _said(self, columns: list[Array], times: Times) -> Entries:
        same = np.zeros(len(times), np.int64)
        return self._entries(columns, times, same + k.SAID, same, same)

    def _entries(self, columns: list[Array], times: Times, kind: Array, start: Array, rows: Array) -> Entries:
        groups = self.entries.number([columns[i] for i in self.key], len(times))
        facts = self.facts.admit(columns, len(times))
        return groups, np.stack([times, kind, start, rows, facts, np.zeros(len(times), np.int64)])

    # What follows

    def _revised(self, gone: Entries, come: Entries) -> list[tuple[list[Array], Times, Array, bool]]:
        """Takes entries in; the facts that no longer follow, and those that follow now."""
        changed = self.entries.grouped(np.concatenate([gone[0], come[0]]), np.hstack([gone[1][:1], come[1][:1]]))
        groups, times = np.repeat(changed.groups, np.diff(changed.begins)), changed.rows[0]
        new = np.ones(len(groups), bool)
        new[1:] = (groups[1:] != groups[:-1]) | (times[1:] != times[:-1])
        groups, times = groups[new], times[new]
        before = self._consequences(groups, times, False)
        if len(gone[0]):
            self.touched += self.entries.remove(self.entries.grouped(*gone))
        if len(come[0]):
            self.touched += self.entries.enter(self.entries.grouped(*come))[0]
        self._choose(groups, times)
        return [*before, *self._consequences(groups, times, True)]

    def _consequences(self, groups: Array, times: Times, come: bool) -> list[tuple[list[Array], Times, Array, bool]]:
        result: list[tuple[list[Array], Times, Array, bool]] = []
        state, size, done = np.zeros(4, np.int64), 3 * len(groups) + 16, not len(groups)
        lines, canon = self.entries, self.runtime.tables.dictionary.canon
        while not done:
            out = np.empty((3, size), np.int64)
            facts = self.facts.data, self.anything, canon
            done = k.consequences(groups, times, lines.spans, lines.pool, *facts, state, out)
            fact, time, ends = out[:, : state[k.FOUND]]
            result.append(([column[fact] for column in self.facts.data], time, ends.astype(bool), come))
            size *= 2
        self.touched += int(state[k.TOUCHED])
        return result

    def _choose(self, groups: Array, times: Times) -> None:
        """Of facts that are made at one time by events that begin at once, the last by its arguments is chosen."""
        ranges = np.empty((2, len(groups)), np.int64)
        pool, decode = self.entries.pool, self.runtime.tables.dictionary.decode
        count = k.contests(groups, times, self.entries.spans, pool, ranges)
        for lo, hi in ranges[:, :count].T.tolist():
            facts = pool[k.FACT, lo : hi + 1]
            order = {
                f: tuple(order_key(decode(c)) for c in self.facts.data[:, f].tolist()) for f in set(facts.tolist())
            }
            pool[k.CHOSEN, lo : hi + 1] = facts == max(order, key=order.__getitem__)

    def _direct(
        self, direct: Sequence[tuple[list[Array], Times, bool]]
    ) -> list[tuple[list[Array], Times, Array, bool]]:
        return [(columns, times, np.ones(len(times), bool), come) for columns, times, come in direct]

    def _learn(self, changes: Sequence[tuple[list[Array], Times, Array, bool]]) -> None:
        times = np.concatenate([change[1] for change in changes]) if changes else ()
        if not len(times):
            return
        ends = np.concatenate([change[2] for change in changes])
        come = np.repeat([change[3] for change in changes], [len(change[1]) for change in changes])
        order = np.argsort(ends, kind="stable")  # what is made first: a fact is kept as its event has it
        columns = [np.concatenate([change[0][i] for change in changes])[order] for i in range(self.predicate[1])]
        translated = [self.runtime.bridge.translated(column) for column in columns]
        facts = self.runtime.knowledge.changes
        self.runtime.learned(facts.make(self.predicate, translated, times[order], ends[order], come[order]))

    # What it keeps

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        """Of each key the last settled events that end all others, and what comes after them."""
        table, lines = self.inputs[port].table, self.entries
        since = min(horizon.since[id(view.table)] for view in self.inputs)
        mask: Array = table.data[END, : table.n] >= since
        entries = np.empty(len(lines), np.int64)
        entries = entries[: k.last_settled(lines.keys.n, lines.spans, lines.pool, since, entries)]
        mask[entries[entries % len(self.ends) == port] // len(self.ends)] = True
        return mask

    def rebuild(self) -> None:
        super().rebuild()
        self._clear()
        come = [self._take(port, view.table.standing(), True, []) for port, view in enumerate(self.inputs)]
        self._revised(_NO_ENTRIES, _joined([*come, *(self._said(*said) for said in self.said_of)]))
        self.said_of = []

    def _read_said(self) -> None:
        """The facts that were asserted from outside, as knowledge has them."""
        relation = self.runtime.knowledge.relations.get(self.predicate)
        if relation is None or not relation.rows.n:
            return
        rows = np.arange(relation.rows.n)
        timed = relation.timelines.has(rows)
        plain = rows[~timed & relation.rows.alive[: len(rows)].astype(bool)]
        times = np.full(len(plain), ALWAYS) if relation.since is None else relation.since[plain]
        state = relation.timelines.state(rows[timed])
        said = state["entries"][entries.SAID]
        asserted = (said == entries.ASSERTED) | (said == entries.ASSERTED_ANEW)
        facts = np.concatenate([plain, np.repeat(rows[timed], state["counts"])[asserted]])
        times = np.concatenate([times, state["entries"][entries.TIME][asserted]])
        if len(facts):
            columns = [self.runtime.bridge.back(relation.rows.data[i, facts]) for i in range(self.predicate[1])]
            self.said_of.append((columns, times))


def _joined(parts: Sequence[Entries]) -> Entries:
    if not parts:
        return _NO_ENTRIES
    return np.concatenate([groups for groups, _ in parts]), np.hstack([rows for _, rows in parts])
