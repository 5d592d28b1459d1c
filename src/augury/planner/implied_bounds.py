"""All temporal conditions of a join as difference bounds, and how far from a row its partners can be.

(a SEQ b).10   →   a.end < b.start, b.end - a.start <= 10;   for a new b, an a that ended in [b.end - 10, b.start - 1]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from augury.algebra import nodes as n
from augury.algebra.relations import OPERATORS, RELATIONS, Bound, Bounds, Contradiction, Limit
from augury.algebra.timing import Lengths, Timing
from augury.core.arrays import Array
from augury.core.bounds import FAR
from augury.core.clock import Clock
from augury.core.fields import END, START

Fields = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class JoinBounds:
    """For each side as the one that looks for partners: `bounds` on a pair, and the `reach` of partners' ends.

    A bound is (side of x, field of x, side of y, field of y, limit), for `x - y <= limit`; side 0 looks, side 1 is found.
    `reach` is the least end from the looking row's start and from its end, and the greatest.
    """

    bounds: tuple[Array, Array]
    reach: tuple[Array, Array]


def implied_bounds(
    node: n.Join, clock: Clock, left: Fields, right: Fields, lengths: Lengths | None = None
) -> tuple[JoinBounds, tuple[n.Condition, ...]]:
    """The relation of a join, and the conditions that are left.

    `left` and `right` are the fields of labels; `lengths` says how long events can be, where that is known.
    """
    bounds: list[_Row] = []
    ends = {"a": (0, START), "b": (0, END), "c": (1, START), "d": (1, END)}

    def add(relation: tuple[Bound, ...], fields: Mapping[str, tuple[int, int]]) -> None:
        for x, y, limit in relation:
            bounds.append((*fields[x], *fields[y], limit.value - limit.strict))

    add(OPERATORS[node.op], ends)
    for window in node.windows:
        longest = clock.length(window)
        bounds.extend((*ends[x], *ends[y], longest) for x in "bd" for y in "ac")
    rest: list[n.Condition] = []
    for condition in node.where:
        match condition:
            case n.Relates():
                i, j = (_label(name, left, right) for name in (condition.left, condition.right))
                add(RELATIONS[condition.relation], {"a": i[0], "b": i[1], "c": j[0], "d": j[1]})
            case n.Spans():
                times = [_label(name, left, right) for name in condition.labels]
                longest = clock.length(condition.length)
                bounds.extend((*i[1], *j[0], longest) for i in times for j in times)
            case n.Compare() | n.Holds() | n.Unless() | n.AnyOf() | n.Relative() | n.NoneInside():
                rest.append(condition)
            case _:
                assert_never(condition)
    looking = np.array(_needed(bounds), np.int64).reshape(-1, 5)
    mirrored = looking.copy()
    mirrored[:, 0], mirrored[:, 2] = 1 - looking[:, 0], 1 - looking[:, 2]
    return JoinBounds((looking, mirrored), _reach(node, clock, lengths)), tuple(rest)


_Row = tuple[int, int, int, int, int]


def _needed(bounds: list[_Row]) -> list[_Row]:
    """Without the bounds that follow from the others: (a SEQ b).10 needs two, not five."""
    kept = list(dict.fromkeys(bounds))
    for bound in list(kept):
        table: Bounds[tuple[int, int]] = Bounds(1)
        for x_side, x, y_side, y, limit in kept:
            if (x_side, x, y_side, y, limit) != bound:
                table.add((x_side, x), (y_side, y), Limit(limit))
        for side in (0, 1):
            table.add((side, START), (side, END), Limit(0))
        try:
            table.close()
        except Contradiction:
            return kept
        implied = table.limit(bound[:2], bound[2:4])
        if implied is not None and implied.value <= bound[4]:
            kept.remove(bound)
    return kept


def _label(name: str, left: Fields, right: Fields) -> tuple[tuple[int, int], tuple[int, int]]:
    side, (start, end) = (0, left[name]) if name in left else (1, right[name])
    return (side, start), (side, end)


def _reach(node: n.Join, clock: Clock, lengths: Lengths | None) -> tuple[Array, Array]:
    """From the closure of the join's own bounds; those of operators above it would change what a policy chooses from."""
    timing = Timing(clock.tick if clock.kind == "logical" else 1, lengths)
    timing.add(node)
    try:
        timing.close()
    except Contradiction:
        none = np.array([FAR, FAR, -FAR, -FAR], np.int64)  # it has no occurrence
        return none, none
    names = timing.interval(node.left), timing.interval(node.right)

    def limit(x: str, x_end: str, y: str, y_end: str) -> int:
        bound = timing.table.limit((x, x_end), (y, y_end))
        return FAR if bound is None else min(clock.length(bound.value - bound.strict), FAR)

    def reach(mine: str, other: str) -> Array:
        low = [-limit(mine, "s", other, "e"), -limit(mine, "e", other, "e")]
        return np.array([*low, limit(other, "e", mine, "s"), limit(other, "e", mine, "e")], np.int64)

    return reach(names[0], names[1]), reach(names[1], names[0])


def implied_back(
    node: n.Node, window: str | None, clock: Clock, lengths: Lengths | None = None, point: str = "s"
) -> int:
    """How far before the end of a row the window begins in which something must be absent or is collected.

    None is the window between the two parts of a join. With `point` "e", how far before it the window ends.
    """
    timing, whole = _closed(node, clock, lengths)
    if timing is None:
        return FAR
    begins = (window, point) if window is not None else (timing.interval(node.left), "e")  # type: ignore[union-attr]
    limit = timing.table.limit((whole, "e"), begins)
    return FAR if limit is None else min(clock.length(limit.value) + 1, FAR)


def implied_ahead(node: n.Node, window: str | None, clock: Clock, lengths: Lengths | None = None) -> int:
    """How long after the end of a row the window ends, so that the row waits."""
    timing, whole = _closed(node, clock, lengths)
    if timing is None or window is None:
        return 0
    limit = timing.table.limit((window, "e"), (whole, "e"))
    return FAR if limit is None else max(0, min(clock.length(limit.value), FAR))


def implied_length(node: n.Node, clock: Clock, lengths: Lengths | None = None) -> int:
    """How long a row of a pattern lasts at most, in time points."""
    timing, whole = _closed(node, clock, lengths)
    limit = None if timing is None else timing.table.limit((whole, "e"), (whole, "s"))
    return FAR if limit is None else min(clock.length(limit.value), FAR)


def _closed(node: n.Node, clock: Clock, lengths: Lengths | None) -> tuple[Timing | None, str]:
    """The bounds on the times of a pattern, and its interval; nothing where it has no occurrence."""
    timing = Timing(clock.tick if clock.kind == "logical" else 1, lengths)
    whole = timing.add(node)
    try:
        timing.close()
    except Contradiction:
        return None, whole
    return timing, whole
