"""The meaning of patterns, on what is near."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from augury.algebra import nodes as n
from augury.algebra.clock_windows import Line, refuse_clock
from augury.algebra.matching import Binding
from augury.core.model import order_key
from augury.semantics.occurrences import Row
from augury.semantics.pattern_rows import World
from augury.semantics.policy_choice import per_values

PAIRS = 4_000  # candidate pairs that an operator is evaluated on, and pairs of partial matches that it looks at
EACH = 40  # of those, pairs with one left part
WINDOWS = 10  # the latest windows by the clock that are looked at, beside those that hold something
WORK = 2_000_000  # tests of an absence


@dataclass
class Nearby(World):
    """Where an operator has too many pairs, its meaning is taken on its latest rows, those that fit first."""

    wanted: Binding = field(default_factory=dict)
    interval: tuple[int, int] | None = None
    capped: bool = False
    beside: tuple[n.Node, ...] = ()  # the events of the rule, and what it collects

    def fits(self, row: Row) -> bool:
        """Whether a row agrees with what is asked: on variables, and inside its interval, which covers every part."""
        if self.interval is not None and not (self.interval[0] <= row.start and row.end <= self.interval[1]):
            return False
        return self.agrees(row)

    def agrees(self, row: Row) -> bool:
        """Whether a row agrees with what is asked on variables."""
        return all(order_key(row.binding[v]) == order_key(x) for v, x in self.wanted.items() if v in row.binding)

    def fitting(self, node: n.Node) -> list[Row]:
        return [row for row in self.rows(node) if self.fits(row)]

    def latest(self, rows: list[Row], count: int) -> list[Row]:
        if len(rows) <= count:
            return rows
        self.capped = True
        kept = {id(row) for row in sorted(rows, key=self.fits)[-count:]}  # the sort is stable: the latest come last
        return [row for row in rows if id(row) in kept]

    def _most(self, node: n.Node) -> int:
        """How many rows or pairs are tested here: the fewer, the more there is that must be absent."""
        return max(100, min(PAIRS, WORK // (1 + sum(len(self.rows(absent)) for absent in n.absences(node)))))

    def _rows(self, node: n.Node) -> Iterator[Row]:
        if isinstance(node, n.Select) and n.absences(node):
            for row in self.latest(self.rows(node.input), self._most(node)):
                yield from self.select(node.where, row)
        else:
            yield from super()._rows(node)

    def _every(self, node: n.Every) -> Iterator[Row]:
        """The windows that have begun: those that hold something of the rule which fits, and the latest."""
        refuse_clock(node.windows, self.scalars.clock.kind, self.scalars.rule)
        if self.least is None or self.now is None:
            return
        line = Line(node.windows, self.scalars.clock)
        every = range(line.first_from(self.least), line.last_begun(self.now) + 1)
        if self.interval is not None:
            every = range(
                max(every.start, line.first_from(self.interval[0])), min(every.stop, line.last_by(self.interval[1]) + 1)
            )
        numbers = set(every[-WINDOWS:])
        for pattern in self.beside:
            for row in self.rows(pattern)[::-1]:
                if self.agrees(row) and len(numbers) < PAIRS:
                    numbers.update(number for number in line.holding(row.start, row.end) if number in every)
        for number in sorted(numbers):
            if line.begin(number) <= line.end(number):
                yield Row(line.begin(number), line.end(number))

    def join(self, node: n.Join, left: list[Row], right: list[Row]) -> Iterator[Row]:
        shared = sorted(n.bound_vars(node.left) & n.bound_vars(node.right)) if node.policy == n.UNRESTRICTED else []
        most = self._most(node)
        while _meetings(left, right, shared) > most:
            if len(left) > len(right):
                left = self.latest(left, len(left) // 2)
            else:
                right = self.latest(right, len(right) // 2)
        return super().join(node, left, right)

    def between(self, node: n.Join, left: Row, right: Row, row: Row) -> Row | None:
        """What NOT forbids, and is there."""
        near = (o for o in self.rows(node.absent) if left.end < o.start and o.end < right.start) if node.absent else ()
        return next((other for other in near if self._blocks(row, other, node.absent_where)), None)

    def within(self, condition: n.NoneInside, row: Row) -> Row:
        """What `while … not` forbids, and is there."""
        return next(other for other in self.rows(condition.pattern) if self._inside(condition, row, other))

    def most_recent(self, node: n.Join, left: Row, right: Row) -> Row:
        """What `recent per` takes for the later part, by the times alone."""
        if left.order <= right.order:
            per, timely = left, [o for o in self.rows(node.left) if self._timely(node, o, right)]
        else:
            per, timely = right, [o for o in self.rows(node.right) if self._timely(node, left, o)]
        same = (o for o in timely if per_values(node.policy, o) == per_values(node.policy, per))
        return max(same, key=lambda o: o.order, default=per)


def _meetings(left: list[Row], right: list[Row], shared: list[str]) -> int:
    sides = [Counter(tuple(order_key(row.binding[v]) for v in shared) for row in rows) for rows in (left, right)]
    return sum(count * sides[1][key] for key, count in sides[0].items())
