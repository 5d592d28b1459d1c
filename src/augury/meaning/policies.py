"""Selection and consumption: which candidate pairs of a binary operator are taken (SEMANTICS 5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from augury.algebra.nodes import Policy
from augury.meaning.rows import Row
from augury.model import OrderKey, order_key

Side = Literal["left", "right"]


@dataclass(frozen=True)
class Pair:
    """A left and a right occurrence, by their numbers; `later` is the side that comes later in the order of events."""

    left: int
    right: int
    later: Side

    @property
    def earlier(self) -> Side:
        return "left" if self.later == "right" else "right"

    def number(self, side: Side) -> int:
        return self.left if side == "left" else self.right


def pair_of(left: list[Row], right: list[Row], i: int, j: int) -> Pair | None:
    """The pair, unless it pairs an occurrence with itself."""
    if left[i].parts and left[i].parts == right[j].parts:
        return None
    return Pair(i, j, "right" if left[i].order <= right[j].order else "left")


def choose(
    policy: Policy, left: list[Row], right: list[Row], timely: Iterable[Pair], candidates: set[Pair]
) -> set[Pair]:
    """The pairs that the policy takes. `timely` are the pairs that meet the temporal conditions alone."""
    rows = {"left": left, "right": right}

    def earlier(pair: Pair) -> Row:
        return rows[pair.earlier][pair.number(pair.earlier)]

    def tie(row: Row, longest: int) -> OrderKey:
        match policy.ties:
            case "longest":
                return (longest,)
            case "shortest":
                return (-longest,)
            case "by":
                return order_key(row.binding.get(policy.by or ""))

    def recency(pair: Pair) -> OrderKey:
        row = earlier(pair)
        return (row.end, tie(row, -row.start), row.order)

    if policy.name == "recent":
        best: dict[OrderKey, Pair] = {}
        for pair in timely if policy.per else candidates:
            values = earlier(pair).binding
            per = tuple(order_key(values[v]) if v in values else () for v in policy.per)
            group = (pair.later, pair.number(pair.later), per)
            if group not in best or recency(pair) > recency(best[group]):
                best[group] = pair
        return set(best.values()) & candidates

    # Chronological: later parts in the order of events, each takes the first candidate that is left.
    taken: set[Pair] = set()
    used: set[tuple[Side, int]] = set()
    later_parts = sorted(
        {(p.later, p.number(p.later)) for p in candidates}, key=lambda k: (rows[k[0]][k[1]].order, k[0])
    )
    for side, number in later_parts:
        if (side, number) in used:
            continue
        free = [
            p for p in candidates
            if (p.later, p.number(p.later)) == (side, number) and (p.earlier, p.number(p.earlier)) not in used
        ]  # fmt: skip
        if free:
            first_start = min(earlier(p).start for p in free)
            level = [p for p in free if earlier(p).start == first_start]
            greatest = max(tie(earlier(p), earlier(p).end) for p in level)
            first = min(
                (p for p in level if tie(earlier(p), earlier(p).end) == greatest), key=lambda p: earlier(p).order
            )
            taken.add(first)
            used |= {("left", first.left), ("right", first.right)}
    return taken
