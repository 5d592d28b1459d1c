"""Every temporal relation as difference bounds `x - y <= c` (or `<`), in one table; and what follows from them.

The join condition, the optimiser's inferences, how long state is kept and when an absence is certain are all read off
this table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np

from augury.core.errors import NOWHERE, Span

P = TypeVar("P", bound=Hashable)
Endpoint = Literal["a", "b", "c", "d"]


class Limit(NamedTuple):
    """An upper bound on a difference: `<= value`, or `< value` when strict."""

    value: int
    strict: bool = False

    def plus(self, other: Limit) -> Limit:
        return Limit(self.value + other.value, self.strict or other.strict)

    def tighter(self, other: Limit) -> bool:
        return (self.value, not self.strict) < (other.value, not other.strict)

    @property
    def impossible(self) -> bool:
        """As a bound on `x - x`."""
        return self.value < 0 or (self.value == 0 and self.strict)


class Bound(NamedTuple):
    """`x - y` is at most `limit`."""

    x: Endpoint
    y: Endpoint
    limit: Limit


def _less(x: Endpoint, y: Endpoint) -> tuple[Bound, ...]:
    return (Bound(x, y, Limit(0, True)),)


def _same(x: Endpoint, y: Endpoint) -> tuple[Bound, ...]:
    return (Bound(x, y, Limit(0)), Bound(y, x, Limit(0)))


# For i = [a, b] and j = [c, d].
ALLEN: dict[str, tuple[Bound, ...]] = {
    "before": _less("b", "c"),
    "after": _less("d", "a"),
    "meets": _same("b", "c"),
    "met_by": _same("d", "a"),
    "overlaps": _less("a", "c") + _less("c", "b") + _less("b", "d"),
    "overlapped_by": _less("c", "a") + _less("a", "d") + _less("d", "b"),
    "starts": _same("a", "c") + _less("b", "d"),
    "started_by": _same("a", "c") + _less("d", "b"),
    "during": _less("c", "a") + _less("b", "d"),
    "contains": _less("a", "c") + _less("d", "b"),
    "finishes": _same("b", "d") + _less("c", "a"),
    "finished_by": _same("b", "d") + _less("a", "c"),
    "equals": _same("a", "c") + _same("b", "d"),
}

# What may stand between two labels: the relations of Allen, of which just one holds, and closed containment.
RELATIONS: dict[str, tuple[Bound, ...]] = {**ALLEN, "inside": (Bound("c", "a", Limit(0)), Bound("b", "d", Limit(0)))}

# The binary operators of patterns. Each yields the cover `[min(a, c), max(b, d)]`, which for SEQ and MEETS is `[a, d]`,
# for DURING, STARTS and FINISHES `[c, d]`, and for EQUALS `[a, b]`.
OPERATORS: dict[str, tuple[Bound, ...]] = {
    "SEQ": ALLEN["before"],
    "AND": (),
    "PAR": _less("a", "b") + _less("c", "d") + _less("a", "d") + _less("c", "b"),
    "EQUALS": ALLEN["equals"],
    "MEETS": ALLEN["meets"],
    "DURING": ALLEN["during"],
    "STARTS": ALLEN["starts"],
    "FINISHES": ALLEN["finishes"],
}

# Relative temporal events, from `[s, e]`: which endpoint each new one is counted from, and the sign of the duration.
# That of `until` is the time that is left, if any.
RELATIVE: dict[str, tuple[tuple[Literal["start", "end"], int], tuple[Literal["start", "end"], int]]] = {
    "extend": (("start", 0), ("end", 1)),
    "extend_backward": (("start", -1), ("end", 0)),
    "shorten": (("start", 0), ("end", -1)),
    "shift_forward": (("start", 1), ("end", 1)),
    "shift_backward": (("start", -1), ("end", -1)),
    "from_end": (("end", 0), ("end", 1)),
    "from_start": (("start", 0), ("start", 1)),
    "until": (("start", 0), ("end", 1)),
}


def holds(bounds: Iterable[Bound], left: tuple[int, int], right: tuple[int, int]) -> bool:
    """Whether two intervals stand in a relation.

    >>> holds(ALLEN["before"], (1, 2), (3, 4))
    True
    """
    times = {"a": left[0], "b": left[1], "c": right[0], "d": right[1]}
    return all(_within(times[b.x] - times[b.y], b.limit) for b in bounds)


def _within(difference: int, limit: Limit) -> bool:
    return difference < limit.value if limit.strict else difference <= limit.value


@dataclass(frozen=True)
class Reason:
    """Why a bound holds: the words and the place of what was written."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)


class Contradiction(Exception):
    """A set of bounds that no times meet; `reasons` are those of a contradictory cycle."""

    def __init__(self, reasons: tuple[Reason, ...]) -> None:
        self.reasons = reasons
        super().__init__(" and ".join(r.text for r in reasons))


# A limit as one number that adds up: the value, less a little for each strict bound on the way.
_STRICT = 1 << 20
_NONE = 1 << 120
_NO_PATH = 1 << 62
_MANY = 24  # points from which on a table is closed by columns


def _number(limit: Limit) -> int:
    return limit.value * _STRICT - limit.strict


def _limit(number: int) -> Limit:
    return Limit(-(-number // _STRICT), number % _STRICT != 0)


class Bounds(Generic[P]):
    """A set of difference bounds between time points, and its closure.

    >>> table = Bounds[str]()
    >>> table.add("s.e", "o.s", Limit(12)); table.add("d.e", "s.e", Limit(36)); table.close()
    >>> table.limit("d.e", "o.s")
    Limit(value=48, strict=False)
    """

    def __init__(self, tick: int | None = None) -> None:
        self.tick = tick
        self.points: dict[P, int] = {}
        self._count = 0
        self._direct: dict[tuple[int, int], tuple[int, Reason | None]] = {}
        self._closed: list[list[int]] = []

    def add(self, x: P, y: P, limit: Limit, reason: Reason | None = None) -> None:
        """Says that `x - y` is at most `limit`. Where the tick is known, a strict bound is the next smaller whole one."""
        if self.tick is not None and limit.strict:
            limit = Limit((limit.value - 1) // self.tick * self.tick)
        pair = (self._point(x), self._point(y))
        earlier = self._direct.get(pair)
        if earlier is None or _number(limit) < earlier[0]:
            self._direct[pair] = (_number(limit), reason)
            if self._closed:
                self._closed[pair[0]][pair[1]] = min(self._closed[pair[0]][pair[1]], _number(limit))

    def same(self, x: P, y: P) -> None:
        """Says that a new point `x` is the point `y`."""
        self.points[x] = self._point(y)

    def _point(self, name: P) -> int:
        if name not in self.points:
            self.points[name] = self._count
            self._count += 1
        return self.points[name]

    def close(self) -> None:
        """All implied bounds (shortest paths). Raises Contradiction where a point would come before itself."""
        count = self._count
        if count >= _MANY and (scale := self._scale()) is not None:
            self._closed = self._closed_by_columns(scale)
            return
        table = [[_NONE] * count for _ in range(count)]
        for point in range(count):
            table[point][point] = 0
        for (x, y), (number, _) in self._direct.items():
            table[x][y] = min(table[x][y], number)
        for via in range(count):
            through = table[via]
            for x in range(count):
                first = table[x][via]
                if first < _NONE and x != via:
                    table[x] = [d if d <= first + t else first + t for d, t in zip(table[x], through, strict=True)]
            if any(table[x][x] < 0 for x in range(count)):
                raise Contradiction(self._cycle())
        self._closed = table

    def _scale(self) -> int | None:
        """A value for `_STRICT` such that the sum of bounds on any path fits 64 bits; None where there is none."""
        scale = 1 << self._count.bit_length()
        longest = max((abs(number) // _STRICT + 1 for number, _ in self._direct.values()), default=0) * self._count
        return scale if longest * scale < _NO_PATH // 2 else None

    def _closed_by_columns(self, scale: int) -> list[list[int]]:
        """The closure of a large table: the same steps, a whole table at a time."""
        table = np.full((self._count, self._count), _NO_PATH, np.int64)
        np.fill_diagonal(table, 0)
        for (x, y), (number, _) in self._direct.items():
            limit = _limit(number)
            table[x, y] = min(int(table[x, y]), limit.value * scale - limit.strict)
        for via in range(self._count):
            rows, columns = (np.flatnonzero(part < _NO_PATH) for part in (table[:, via], table[via]))
            cells = np.ix_(rows, columns)
            table[cells] = np.minimum(table[cells], table[rows, via][:, None] + table[via, columns])
            if (table.diagonal() < 0).any():
                raise Contradiction(self._cycle())
        # Back to numbers that further bounds can be added to: the value, less one for each strict bound.
        return [
            [_NONE if n == _NO_PATH else (v := -(-n // scale)) * _STRICT - (v * scale - n) for n in row]
            for row in table.tolist()
        ]

    def _cycle(self) -> tuple[Reason, ...]:
        """The reasons on a cycle whose bounds add up to less than nothing (Bellman and Ford)."""
        distance = dict.fromkeys(range(self._count), 0)
        previous: dict[int, tuple[int, Reason | None]] = {}
        last = -1
        for _ in range(self._count + 1):
            last = -1
            for (x, y), (number, reason) in self._direct.items():
                if distance[y] + number < distance[x]:
                    distance[x] = distance[y] + number
                    previous[x] = (y, reason)
                    last = x
        for _ in self.points:  # back far enough to be on the cycle
            last = previous[last][0]
        reasons: dict[tuple[str, Span], Reason] = {}
        point = last
        while True:
            point, reason = previous[point]
            if reason is not None:
                reasons[reason.text, reason.span] = reason
            if point == last:
                return tuple(reasons.values())

    def limit(self, x: P, y: P) -> Limit | None:
        """The tightest implied bound on `x - y`, once closed; None where there is none."""
        if x not in self.points or y not in self.points:
            return None
        number = self._closed[self.points[x]][self.points[y]]
        # Sums of no bound and some bound stay far beyond any time.
        return _limit(number) if number < _NONE // 2 else None

    def surely_before(self, x: P, y: P) -> bool:
        """Whether `x < y` in every case."""
        limit = self.limit(x, y)
        return limit is not None and limit.impossible
