"""Selection and consumption: which candidate pairs of a binary operator are taken (SEMANTICS 5).

A policy chooses among occurrences, not among the ways in which conditions bind further variables: an occurrence is the
events it is made of, and all its rows are taken or left together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from augury.algebra.nodes import Policy
from augury.core.model import OrderKey, order_key
from augury.semantics.occurrences import Row

Side = Literal["left", "right"]


@dataclass
class PolicyOccurrence:
    """The rows that are made of the same events."""

    number: int
    rows: list[Row] = field(default_factory=list)

    @property
    def start(self) -> int:
        return self.rows[0].start

    @property
    def end(self) -> int:
        return self.rows[0].end

    @cached_property
    def order(self) -> OrderKey:
        return self.rows[0].order

    def greatest(self, name: str | None) -> OrderKey:
        """The greatest value of an attribute."""
        return max(order_key(row.binding.get(name or "")) for row in self.rows)


def occurrences(rows: Iterable[Row]) -> list[PolicyOccurrence]:
    result: dict[OrderKey, PolicyOccurrence] = {}
    for row in rows:
        key = (row.start, row.end, tuple(p.id for p in row.parts))
        result.setdefault(key, PolicyOccurrence(len(result))).rows.append(row)
    return list(result.values())


@dataclass(frozen=True)
class Pair:
    """A left and a right occurrence, by number; `later` is the side that comes later in the order of events."""

    left: int
    right: int
    later: Side

    @property
    def earlier(self) -> Side:
        return "left" if self.later == "right" else "right"

    def number(self, side: Side) -> int:
        return self.left if side == "left" else self.right


def pair_of(left: PolicyOccurrence, right: PolicyOccurrence) -> Pair | None:
    """The pair, unless it pairs an occurrence with itself."""
    if left.rows[0].parts and left.rows[0].parts == right.rows[0].parts:
        return None
    return Pair(left.number, right.number, "right" if left.order <= right.order else "left")


def per_values(policy: Policy, row: Row) -> OrderKey:
    """The values of `per (…)` in a row: for `recent` of the earlier part, for `chronological` of the pair."""
    return tuple(order_key(row.binding[v]) if v in row.binding else () for v in policy.per)


class PairChooser:
    """Chooses pairs of the occurrences of two sides."""

    def __init__(self, policy: Policy, left: list[PolicyOccurrence], right: list[PolicyOccurrence]) -> None:
        self.policy = policy
        self.sides: dict[Side, list[PolicyOccurrence]] = {"left": left, "right": right}

    def _earlier(self, pair: Pair) -> PolicyOccurrence:
        return self.sides[pair.earlier][pair.number(pair.earlier)]

    def _tie(self, occurrence: PolicyOccurrence, longest: int) -> OrderKey:
        match self.policy.ties:
            case "longest":
                return (longest,)
            case "shortest":
                return (-longest,)
            case "by":
                return occurrence.greatest(self.policy.by)

    def best(
        self, meetings: Iterable[tuple[Pair, OrderKey]], rank: Callable[[int, int], int]
    ) -> set[tuple[Pair, OrderKey]]:
        """For each later part, and each value of `per`, the earlier part that ranks highest."""

        def order(pair: Pair) -> OrderKey:
            earlier = self._earlier(pair)
            return (rank(earlier.start, earlier.end), self._tie(earlier, -earlier.start), earlier.order)

        best: dict[OrderKey, Pair] = {}
        for pair, per in meetings:
            group = (pair.later, pair.number(pair.later), per)
            if group not in best or order(pair) > order(best[group]):
                best[group] = pair
        return {(pair, group[2]) for group, pair in best.items()}

    def chronological(self, candidates: set[Pair]) -> set[Pair]:
        """Later parts in the order of events; each takes the first candidate that is left, and both are used up."""
        taken: set[Pair] = set()
        used: set[tuple[Side, int]] = set()
        later: dict[tuple[Side, int], list[Pair]] = {}
        for pair in candidates:
            later.setdefault((pair.later, pair.number(pair.later)), []).append(pair)
        for side, number in sorted(later, key=lambda k: (self.sides[k[0]][k[1]].order, k[0])):
            free = [p for p in later[side, number] if (p.earlier, p.number(p.earlier)) not in used]
            if free and (side, number) not in used:
                first = self._first(free)
                taken.add(first)
                used |= {("left", first.left), ("right", first.right)}
        return taken

    def _first(self, pairs: list[Pair]) -> Pair:
        """By start; ties on the start by the policy's rule, then in the order of events."""
        start = min(self._earlier(p).start for p in pairs)
        level = [p for p in pairs if self._earlier(p).start == start]
        greatest = max(self._tie(self._earlier(p), self._earlier(p).end) for p in level)
        best = [p for p in level if self._tie(self._earlier(p), self._earlier(p).end) == greatest]
        return min(best, key=lambda p: self._earlier(p).order)
