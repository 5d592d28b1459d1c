"""Rows of each key in the order of time, with running totals: a total over a window is the difference of two of them.

The rows of a group lie in one segment of a pool, sorted by end and start. The room of a segment is a power of two, and its
offset is a multiple of that, so that the nodes of all trees over positions can be numbered by shifts: node `p >> level`.
"""

from __future__ import annotations

from typing import NamedTuple

from augury.core.arrays import Array, Codes, Flags, Integers, RowData, RowIds, Times
from augury.core.fields import END, START
from augury.core.jit import Kernel, helper
from augury.storage.kernels.hashing import group_of

MAKES_NO_ARRAYS = True
# Of a segment: its offset in the pool, how many rows it has, for how many it has room, and how many of its first rows
# have not changed since ranks were made of them (`rank_blocks.py`).
FIRST, SIZE, ROOM, SAFE = 0, 1, 2, 3


class TotalsPool(NamedTuple):
    """Segments with running totals, and trees over the values of which the greatest is wanted."""

    spans: Array  # the segment of each group
    slots: Array  # the row at each position
    ends: Times
    values: Array  # by row: those to add up, then those of which the greatest is wanted
    running: Array  # the sums up to each position of its segment
    tree: Array


class WindowSums(NamedTuple):
    """Totals of the rows inside windows, see `totals_within`."""

    counts: Integers
    reach: Array  # the positions of those that end there
    edges: Array  # the positions of the first and the last, -1 without any
    cut: Flags  # whether the row before the first has its times
    totals: Array
    best: Array  # positions


@Kernel
def groups_of(
    rows: RowIds, data: RowData, keys: Array, others: Array, okeys: Array, buckets: Integers, groups: Array, canon: Codes,
    nullish: Array, numbers: Array,
) -> None:  # fmt: skip
    """The group of each row in an index; -1 where there is none."""
    for i in range(len(rows)):
        numbers[i] = group_of(data, rows[i], keys, others, okeys, buckets, groups, canon, nullish)


@helper
def node(tree: Array, order: int, level: int, number: int) -> int:
    """The position of the best row below a node of a tree. The nodes of a level stand behind those of the level below."""
    size = tree.shape[1]
    return tree[order, size - (size >> (level - 1)) + number]  # type: ignore[no-any-return]


@helper
def set_node(tree: Array, order: int, level: int, number: int, position: int) -> None:
    size = tree.shape[1]
    tree[order, size - (size >> (level - 1)) + number] = position


@helper
def better(first: int, other: int, order: int, pool: TotalsPool) -> int:
    """Of two positions, the one with the greater value; of equal ones the earlier. -1 is no position."""
    if first < 0 or other < 0:
        return max(first, other)
    column = pool.running.shape[0] + order
    x, y = pool.values[column, pool.slots[first]], pool.values[column, pool.slots[other]]
    if x == y:
        return min(first, other)
    return first if x > y else other


@helper
def total(position: int, first: int, pool: TotalsPool) -> None:
    """Sets the running totals at a position from those before it."""
    running = pool.running
    for c in range(running.shape[0]):
        before = running[c, position - 1] if position > first else 0
        running[c, position] = before + pool.values[c, pool.slots[position]]


@helper
def climb(position: int, room: int, pool: TotalsPool) -> None:
    """Puts the last row of a segment into the nodes above it."""
    tree = pool.tree
    for m in range(tree.shape[0]):
        level = 1
        while room >> level:
            here = position >> level
            best = -1 if position & ((1 << level) - 1) == 0 else node(tree, m, level, here)
            set_node(tree, m, level, here, better(best, position, m, pool))
            level += 1


@Kernel
def append_rows(rows: RowIds, group: Array, data: RowData, pool: TotalsPool, late: Array) -> int:
    """Appends rows, in the order of time, to their segments. Rows that belong further ahead are listed in `late`; how many."""
    spans, slots, ends, count = pool.spans, pool.slots, pool.ends, 0
    for i in range(len(rows)):
        row, g = rows[i], group[i]
        if g < 0:
            continue
        first, position = spans[g, FIRST], spans[g, FIRST] + spans[g, SIZE]
        end = data[END, row]
        if position > first and (
            ends[position - 1] > end
            or (ends[position - 1] == end and data[START, slots[position - 1]] > data[START, row])
        ):
            late[count] = i
            count += 1
            continue
        slots[position], ends[position] = row, end
        spans[g, SIZE] += 1
        total(position, first, pool)
        climb(position, spans[g, ROOM], pool)
    return count


@helper
def retotal(g: int, position: int, pool: TotalsPool) -> int:
    """Rebuilds running totals and trees of a segment from a position on; returns the number of rows."""
    spans, tree = pool.spans, pool.tree
    first, last = spans[g, FIRST], spans[g, FIRST] + spans[g, SIZE]
    spans[g, SAFE] = min(spans[g, SAFE], position - first)
    for p in range(position, last):
        total(p, first, pool)
    if last == first:
        return 0
    changed = max(last - position, 0)
    position = min(position, last - 1)  # nodes above the last row may have known rows behind it
    for m in range(tree.shape[0]):
        level = 1
        while spans[g, ROOM] >> level:
            for number in range(position >> level, ((last - 1) >> level) + 1):
                left, right = 2 * number, 2 * number + 1
                if level > 1:
                    inside = (right << (level - 1)) < last
                    left = node(tree, m, level - 1, left)
                    right = node(tree, m, level - 1, right) if inside else -1
                elif right >= last:
                    right = -1
                set_node(tree, m, level, number, better(left, right, m, pool))
            level += 1
    return changed  # type: ignore[no-any-return]


@Kernel
def merge_rows(rows: RowIds, group: Array, data: RowData, pool: TotalsPool) -> int:
    """Puts late rows, sorted by group, end and start, into their segments; how many rows it has looked at."""
    spans, slots, ends = pool.spans, pool.slots, pool.ends
    touched, i = 0, 0
    while i < len(rows):
        g, j = group[i], i
        while j < len(rows) and group[j] == g:
            j += 1
        first = spans[g, FIRST]
        here, to = first + spans[g, SIZE] - 1, first + spans[g, SIZE] + (j - i) - 1
        spans[g, SIZE] += j - i
        for k in range(j - 1, i - 1, -1):
            row = rows[k]
            while here >= first and (
                ends[here] > data[END, row]
                or (ends[here] == data[END, row] and data[START, slots[here]] > data[START, row])
            ):
                slots[to], ends[to] = slots[here], ends[here]
                here, to = here - 1, to - 1
            slots[to], ends[to] = row, data[END, row]
            to -= 1
        touched += retotal(g, to + 1, pool)
        i = j
    return touched


@helper
def less_in(values: Array, first: int, last: int, limit: int) -> int:
    """The first position of a sorted part whose value is not less than a limit."""
    while first < last:
        middle = (first + last) // 2
        if values[middle] < limit:
            first = middle + 1
        else:
            last = middle
    return first


@Kernel
def remove_rows(rows: RowIds, group: Array, data: RowData, alive: Flags, pool: TotalsPool) -> int:
    """Takes dead rows, sorted by group and end, out of their segments; how many rows it has looked at."""
    spans, slots, ends = pool.spans, pool.slots, pool.ends
    touched, i = 0, 0
    while i < len(rows):
        g, j = group[i], i
        while j < len(rows) and group[j] == g:
            j += 1
        if g >= 0:
            first, last = spans[g, FIRST], spans[g, FIRST] + spans[g, SIZE]
            to = less_in(ends, first, last, data[END, rows[i]])
            low = -1
            for here in range(to, last):
                if alive[slots[here]]:
                    slots[to], ends[to] = slots[here], ends[here]
                    to += 1
                elif low < 0:
                    low = here
            spans[g, SIZE] = to - first
            if low >= 0:
                touched += (last - low) + retotal(g, low, pool)
        i = j
    return touched


@Kernel
def move_segments(groups: Array, target: Array, rooms: Array, pool: TotalsPool) -> None:
    """Moves segments to where they have more room."""
    spans, slots, ends, running = pool.spans, pool.slots, pool.ends, pool.running
    for i in range(len(groups)):
        g, to = groups[i], target[i]
        first = spans[g, FIRST]
        for p in range(spans[g, SIZE]):
            slots[to + p], ends[to + p] = slots[first + p], ends[first + p]
            for c in range(running.shape[0]):
                running[c, to + p] = running[c, first + p]
        spans[g, FIRST], spans[g, ROOM] = to, rooms[i]
        if pool.tree.shape[0]:
            retotal(g, to, pool)


@helper
def best_between(first: int, last: int, order: int, best: int, pool: TotalsPool) -> tuple[int, int]:
    """The best of a position and those from `first` up to `last`, and how many nodes it has looked at."""
    tree, level, nodes = pool.tree, 0, 0
    while first < last:
        if first & 1:
            here = first if level == 0 else node(tree, order, level, first)
            best = better(best, here, order, pool)
            first, nodes = first + 1, nodes + 1
        if last & 1:
            last -= 1
            here = last if level == 0 else node(tree, order, level, last)
            best = better(best, here, order, pool)
            nodes += 1
        first, last, level = first >> 1, last >> 1, level + 1
    return best, nodes


@Kernel
def totals_within(
    group: Array, lows: Times, highs: Times, most: int, others: Array, longest: int, pool: TotalsPool, result: WindowSums
) -> int:  # fmt: skip
    """For each window from a low to a high time the totals of the rows of a group that lie inside.

    With `most`, of so many at most, the latest up to the high time, wherever they start. No row lasts longer than
    `longest`: of those that end so soon after the low time each is looked at. Returns how many rows and nodes it has looked
    at.
    """
    spans, slots, ends, running, tree = pool.spans, pool.slots, pool.ends, pool.running, pool.tree
    counts, reach, edges, cut = result.counts, result.reach, result.edges, result.cut
    totals, best, touched, sums = result.totals, result.best, 0, running.shape[0]
    for i in range(len(group)):
        counts[i], edges[0, i], edges[1, i], cut[i] = 0, -1, -1, 0
        reach[0, i], reach[1, i] = 0, 0
        for c in range(sums):
            totals[c, i] = 0
        for m in range(tree.shape[0]):
            best[m, i] = -1
        g, begin = group[i], lows[i]
        touched += 1
        if g < 0:
            continue
        first = start = spans[g, FIRST]
        if most == 0:
            first = less_in(ends, start, start + spans[g, SIZE], begin)
        last = less_in(ends, first, start + spans[g, SIZE], highs[i] + 1)
        if most > 0 and last - first > most:
            first = last - most
            same_end = ends[first - 1] == ends[first]
            cut[i] = same_end and others[START, slots[first - 1]] == others[START, slots[first]]
        reach[0, i], reach[1, i] = first, last
        if first == last:
            continue
        for c in range(sums):
            totals[c, i] = running[c, last - 1] - (running[c, first - 1] if first > start else 0)
        inside, here = last - first, first
        while most == 0 and longest > 0 and here < last and ends[here] <= begin + longest:
            touched += 1
            other = slots[here]
            if others[START, other] < begin:
                inside -= 1
                for c in range(sums):
                    totals[c, i] -= pool.values[c, other]
            else:
                if edges[0, i] < 0:
                    edges[0, i] = here
                edges[1, i] = here
                for m in range(tree.shape[0]):
                    best[m, i] = better(best[m, i], here, m, pool)
            here += 1
        counts[i] = inside
        if here < last:
            edges[1, i] = last - 1
            if edges[0, i] < 0:
                edges[0, i] = here
            for m in range(tree.shape[0]):
                best[m, i], nodes = best_between(here, last, m, best[m, i], pool)
                touched += nodes
    return touched


@Kernel
def mark_within(group: Array, lows: Times, highs: Times, most: int, spans: Array, ends: Times, steps: Array) -> None:
    """Counts in `steps` where windows begin and end in the pool: 1 where one begins, -1 behind its last row."""
    for i in range(len(group)):
        g = group[i]
        if g >= 0:
            first = spans[g, FIRST]
            last = less_in(ends, first, first + spans[g, SIZE], highs[i] + 1)
            first = max(first, last - most) if most > 0 else less_in(ends, first, last, lows[i])
            steps[first] += 1
            steps[last] -= 1
