"""Links from a row to the rows derived from it, and deletion along provenance."""

from __future__ import annotations

from augury.core.arrays import Array, Flags, Integers, RowIds
from augury.core.jit import Kernel
from augury.storage.kernels.sets import SUPPORTS

MAKES_NO_ARRAYS = True


@Kernel
def link(parents: RowIds, lo: int, hi: int, heads: Integers, after: Integers) -> None:
    """Chains the rows from `lo` up to `hi` to the rows they were made of."""
    for row in range(lo, hi):
        p = parents[row]
        if p >= 0:
            after[row] = heads[p]
            heads[p] = row


@Kernel
def kill_children(dead: Array, heads: Integers, after: Integers, alive: Flags, children: Array) -> int:
    """Kills what was made of dead rows; how many there were."""
    n = 0
    for i in range(len(dead)):
        child = heads[dead[i]]
        while child >= 0:
            if alive[child]:
                alive[child] = 0
                children[n] = child
                n += 1
            child = after[child]
        heads[dead[i]] = -1
    return n


@Kernel
def standing_children(rows: RowIds, heads: Integers, after: Integers, alive: Flags, children: Array) -> int:
    """The live rows that were made of some rows; how many there are."""
    n = 0
    for i in range(len(rows)):
        child = heads[rows[i]]
        while child >= 0:
            if alive[child]:
                children[n] = child
                n += 1
            child = after[child]
    return n


@Kernel
def fall(
    events: Array, count: int, standing: Array, supports: Array,
    heads: Integers, after: Integers, alive: Flags, rows: RowIds,
    heads2: Array, after2: Array, alive2: Array, event: Array, derivations: Array, weakened: Array,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Events that fell, the rows made of them, the derivations that those were, and the events that stood on them alone.

    `events` holds those that fell at first; how many events, rows, derivations fell, and how many events lost one of
    several derivations.
    """
    n_rows, n_derivations, n_weak, i = 0, 0, 0, 0
    while i < count:
        row = heads[events[i]]
        while row >= 0:
            if alive[row]:
                alive[row] = 0
                rows[n_rows] = row
                n_rows += 1
                d = heads2[row]
                while d >= 0:
                    if alive2[d]:
                        alive2[d] = 0
                        derivations[n_derivations] = d
                        n_derivations += 1
                        e = event[d]
                        supports[SUPPORTS, e] -= 1
                        if supports[SUPPORTS, e] > 0:
                            weakened[n_weak] = e
                            n_weak += 1
                        elif standing[e]:
                            standing[e] = 0
                            events[count] = e
                            count += 1
                    d = after2[d]
            row = after[row]
        i += 1
    return count, n_rows, n_derivations, n_weak
