"""Every temporal relation as difference bounds `x - y <= c` (or `<`), in one table; and what follows from them.

The join condition, the optimiser's inferences, how long state is kept and when an absence is certain are all read off
this table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

from augury.errors import NOWHERE, Span

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
RELATIVE: dict[str, tuple[tuple[Literal["start", "end"], int], tuple[Literal["start", "end"], int]]] = {
    "extend": (("start", 0), ("end", 1)),
    "extend_backward": (("start", -1), ("end", 0)),
    "shorten": (("start", 0), ("end", -1)),
    "shift_forward": (("start", 1), ("end", 1)),
    "shift_backward": (("start", -1), ("end", -1)),
    "from_end": (("end", 0), ("end", 1)),
    "from_start": (("start", 0), ("start", 1)),
}


def holds(bounds: Iterable[Bound], left: tuple[int, int], right: tuple[int, int]) -> bool:
    """Whether two intervals stand in a relation.

    >>> holds(ALLEN["before"], (1, 2), (3, 4))
    True
    """
    at = {"a": left[0], "b": left[1], "c": right[0], "d": right[1]}
    return all(_within(at[b.x] - at[b.y], b.limit) for b in bounds)


def _within(difference: int, limit: Limit) -> bool:
    return difference < limit.value if limit.strict else difference <= limit.value


@dataclass(frozen=True)
class Reason:
    """Why a bound holds: the words and the place of what was written."""

    text: str
    span: Span = field(default=NOWHERE, compare=False)


class Contradiction(Exception):
    """A set of bounds that no times meet; `reasons` are those of a shortest contradictory cycle."""

    def __init__(self, reasons: tuple[Reason, ...]) -> None:
        self.reasons = reasons
        super().__init__(" and ".join(r.text for r in reasons))


class Bounds(Generic[P]):
    """A set of difference bounds between time points, and its closure.

    >>> table = Bounds[str]()
    >>> table.add("s.e", "o.s", Limit(12)); table.add("d.e", "s.e", Limit(36)); table.close()
    >>> table.limit("d.e", "o.s")
    Limit(value=48, strict=False)
    """

    def __init__(self, tick: int | None = None) -> None:
        self.tick = tick
        self._limits: dict[tuple[P, P], tuple[Limit, tuple[Reason, ...]]] = {}
        self.points: dict[P, None] = {}

    def add(self, x: P, y: P, limit: Limit, reason: Reason | None = None) -> None:
        """Says that `x - y` is at most `limit`. Where the tick is known, a strict bound is the next smaller whole one."""
        if self.tick is not None and limit.strict:
            limit = Limit((limit.value - 1) // self.tick * self.tick)
        self.points[x] = self.points[y] = None
        self._tighten(x, y, limit, (reason,) if reason else ())

    def _tighten(self, x: P, y: P, limit: Limit, reasons: tuple[Reason, ...]) -> None:
        known = self._limits.get((x, y))
        if known is None or limit.tighter(known[0]):
            self._limits[x, y] = (limit, reasons)

    def close(self) -> None:
        """All implied bounds (shortest paths). Raises Contradiction where a point would come before itself."""
        for point in self.points:
            self._tighten(point, point, Limit(0), ())
            self._check(point)
        for via in self.points:
            for x in self.points:
                first = self._limits.get((x, via))
                if first is None:
                    continue
                for y in self.points:
                    second = self._limits.get((via, y))
                    if second is not None:
                        self._tighten(x, y, first[0].plus(second[0]), _joined(first[1], second[1]))
                self._check(x)

    def _check(self, point: P) -> None:
        limit, reasons = self._limits[point, point]
        if limit.impossible:
            raise Contradiction(reasons)

    def limit(self, x: P, y: P) -> Limit | None:
        """The tightest known bound on `x - y`; None where there is none."""
        found = self._limits.get((x, y))
        return found[0] if found else None

    def surely_before(self, x: P, y: P) -> bool:
        """Whether `x < y` in every case."""
        limit = self.limit(x, y)
        return limit is not None and limit.impossible


def _joined(first: tuple[Reason, ...], second: tuple[Reason, ...]) -> tuple[Reason, ...]:
    return first + tuple(r for r in second if r not in first)
