"""Which moments may follow each other: edges, and what they become when moments come and go."""

from __future__ import annotations

from augury.core.arrays import Array, Flags, Integers, RowData, RowIds
from augury.core.fields import END, START
from augury.core.jit import Kernel, helper
from augury.engine.operators.runs.kernels import BITS, FOREVER, FOUND, FROM, INTO, NEIGHBOUR, OUT, TO
from augury.engine.operators.runs.kernels.records import MomentLinks

MAKES_NO_ARRAYS = True


@helper
def is_some_part(data: RowData, moment: int, rows: RowIds) -> bool:
    """Whether a moment may be part of a match; else it just stands between others."""
    some = False
    for p in range(len(rows)):
        some = some or data[rows[p], moment] >= 0
    return some


@Kernel
def before(
    targets: Array, position: int, data: RowData, alive: Flags, prev: Integers, rows: RowIds, links: Array, neighbours: bool,
    longest: int, latest: Array, result: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Edges into moments, from the target `position` on: (from, to, kinds). How far it came, how many it found and looked at.

    `links` says for each part what leads to it: 0 neighbours, 1 what no other moment of that part lies behind, 2 all before.
    """
    n, room, touched, parts = 0, result.shape[1], 0, len(rows)
    for i in range(position, len(targets)):
        x = targets[i]
        if not alive[x] or not is_some_part(data, x, rows):
            continue
        began, start, least = n, data[START, x], data[END, x] - longest
        for p in range(parts + 1):
            latest[p] = -FOREVER
        here = prev[x]
        while here >= 0:
            touched += 1
            end = data[END, here]
            if not alive[here] or end >= start:
                here = prev[here]
                continue
            if end < least:
                break
            kinds = NEIGHBOUR if neighbours and latest[parts] <= end else 0
            for p in range(parts):
                if links[p] > 0 and data[rows[p], x] >= 0 and (links[p] == 2 or latest[p] <= end):
                    kinds |= 2 << p
            if kinds == 0:
                break
            if data[START, here] >= least and is_some_part(data, here, rows):
                if n == room:
                    return i, began, touched
                result[0, n] = here
                result[1, n] = x
                result[2, n] = kinds
                n += 1
            begins = data[START, here]
            latest[parts] = max(latest[parts], begins)
            for p in range(parts):
                if data[rows[p], here] >= 0:
                    latest[p] = max(latest[p], begins)
            here = prev[here]
    return len(targets), n, touched


@Kernel
def behind(
    changed: Array, position: int, data: RowData, alive: Flags, after: Integers, rows: RowIds, links: Array, lasts: int,
    soonest: Array, result: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """The moments whose edges may be others because some have come or gone: (changed, behind, whether all lead there).

    How far it came, how many it found, and how many it looked at. No moment lasts longer than `lasts`.
    """
    n, room, touched, parts = 0, result.shape[1], 0, len(rows)
    for i in range(position, len(changed)):
        x = changed[i]
        began, ends = n, data[END, x]
        waiting = 1
        for p in range(parts + 1):
            soonest[p] = FOREVER
        for p in range(parts):
            waiting += links[p] > 0
        here = after[x]
        while here >= 0 and waiting:
            touched += 1
            if not alive[here] or data[START, here] <= ends:
                here = after[here]
                continue
            start, end = data[START, here], data[END, here]
            near, follows, waiting = start <= soonest[parts], False, 0
            for p in range(parts):
                if links[p] > 0 and data[rows[p], here] >= 0:
                    if links[p] == 2:
                        follows = True
                    elif start <= soonest[p]:
                        near = True
            if near or follows:
                if n == room:
                    return i, began, touched
                result[0, n] = x
                result[1, n] = here
                result[2, n] = 1 if near else 0
                n += 1
            soonest[parts] = min(soonest[parts], end)
            waiting += end <= soonest[parts] + lasts
            for p in range(parts):
                if data[rows[p], here] >= 0:
                    soonest[p] = min(soonest[p], end)
                waiting += links[p] == 2 or (links[p] == 1 and (soonest[p] == FOREVER or end <= soonest[p] + lasts))
            here = after[here]
    return len(changed), n, touched


@Kernel
def lies_before(first: int, n: int, after: Integers, late: Array) -> None:
    """Marks the moments from `first` on behind which there is one that came before them. They come mostly in order."""
    for x in range(n - 1, first - 1, -1):
        here = after[x]
        if x < here < n:
            late[x - first] = late[here - first]
        elif here >= 0:
            late[x - first] = 1


@Kernel
def neighbours(data: RowData, alive: Flags, n: int, after: Integers, result: Array) -> None:
    """For each moment the first one to end of those that start after its end; -1 where there is none."""
    for x in range(n):
        here = after[x]
        while here >= 0 and (not alive[here] or data[START, here] <= data[END, x]):
            here = after[here]
        result[x] = here


@Kernel
def soonest(data: RowData, alive: Flags, n: int, links: MomentLinks, move: int, result: Array) -> None:
    """For each moment the first one to end of those that an edge leads to by a move; -1 where there is none."""
    edges = links.edges
    for x in range(n):
        result[x] = -1
        e = links.out[x]
        while e >= 0:
            y = edges[TO, e]
            if edges[BITS, e] & (1 << move) and alive[y] and (result[x] < 0 or data[END, y] < data[END, result[x]]):
                result[x] = y
            e = edges[OUT, e]


@helper
def add_edge(e: int, source: int, target: int, links: MomentLinks) -> None:
    """An edge between two moments, without moves so far."""
    edges, into, out = links.edges, links.into, links.out
    edges[FROM, e] = source
    edges[TO, e] = target
    edges[BITS, e] = 0
    edges[INTO, e] = into[target]
    edges[OUT, e] = out[source]
    into[target] = e
    out[source] = e


@Kernel
def relink(
    targets: Array, columns: Array, search: bool, sought: int, links: MomentLinks, n: int, queue: Array, cut: Array
) -> tuple[int, int, int]:
    """Puts edges (from, to, moves) among those there are; all that lead to the targets are given, other ones may be.
    Without `search` all are new. Moves in `sought` are left as they are.

    Returns how many edges there are, how many have moves that are new (`queue`: edge, moves) and how many lost some (`cut`).
    """
    edges, into = links.edges, links.into
    added = cuts = 0
    for i in range(len(targets)):
        e = into[targets[i]]
        while e >= 0:
            cut[0, cuts] = e
            cut[1, cuts] = edges[BITS, e] & ~sought
            cuts += 1
            edges[BITS, e] &= sought
            e = edges[INTO, e]
    first = n  # edges from here on are new
    for i in range(columns.shape[1]):
        a, x, bits = columns[0, i], columns[1, i], columns[2, i]
        if bits == 0:
            continue
        e = into[x] if search else -1
        while e >= 0 and edges[FROM, e] != a:
            e = edges[INTO, e]
        if e < 0:
            e = n
            n += 1
            add_edge(e, a, x, links)
        if e >= first:
            queue[0, added] = e
            queue[1, added] = bits & ~edges[BITS, e]
            added += queue[1, added] != 0
        edges[BITS, e] |= bits
    lost = 0
    for i in range(cuts):
        e, old = cut[0, i], cut[1, i]
        new = edges[BITS, e] & ~sought
        if new & ~old:
            queue[0, added] = e
            queue[1, added] = new & ~old
            added += 1
        if old & ~new:
            cut[0, lost] = e
            cut[1, lost] = old & ~new
            lost += 1
    return n, added, lost


@Kernel
def rewire(
    sources: Array, mask: int, columns: Array, links: MomentLinks, n: int, queue: Array, cut: Array
) -> tuple[int, int, int]:
    """Puts edges (from, to) that go by the move of a mask among those there are; of the sources, all of them are given.

    Returns how many edges there are, how many have moves that are new (`queue`) and how many lost some (`cut`).
    """
    edges, out = links.edges, links.out
    cuts = added = lost = 0
    for i in range(len(sources)):
        e = out[sources[i]]
        while e >= 0:
            if edges[BITS, e] & mask:
                cut[0, cuts] = e
                cuts += 1
            e = edges[OUT, e]
    for i in range(columns.shape[1]):
        a, x = columns[0, i], columns[1, i]
        e = out[a]
        while e >= 0 and edges[TO, e] != x:
            e = edges[OUT, e]
        if e < 0:
            e = n
            n += 1
            add_edge(e, a, x, links)
        if not edges[BITS, e] & mask:
            queue[0, added] = e
            queue[1, added] = mask
            added += 1
        edges[BITS, e] |= mask | FOUND
        columns[2, i] = e
    for i in range(cuts):
        e = cut[0, i]
        if not edges[BITS, e] & FOUND:
            edges[BITS, e] &= ~mask
            cut[0, lost] = e
            cut[1, lost] = mask
            lost += 1
    for i in range(columns.shape[1]):
        edges[BITS, columns[2, i]] &= ~FOUND
    return n, added, lost
