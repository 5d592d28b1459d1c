"""The members of groups: each occurrence once for each value that aggregates see, in the order of events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from augury.core.arrays import Array, RowIds
from augury.engine.event_order import row_ranks, same_events
from augury.storage.dictionary import OPEN
from augury.storage.frame import Frame
from augury.storage.grouping import in_groups
from augury.storage.ranks import Ordering, code_ranks
from augury.storage.table import Table
from augury.storage.unique import unique, unique_inverse

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime


def occurrences(runtime: Runtime, table: Table, rows: RowIds) -> Array:
    """A number for each row: rows that are made of the same events have the same one; what lies of held intervals in a
    window is made of none."""
    return rows if runtime.maker(table).alone else same_events(runtime, table, rows)


def each_once(runtime: Runtime, frame: Frame, keys: list[Array], seen: Sequence[str]) -> Array:
    """Of members that are alike in their group, their occurrence and in what aggregates see, one."""
    canonical = runtime.tables.dictionary.canonical
    values = [canonical(frame.vars[v]) for v in seen if v in frame.vars]
    order, first = in_groups([*keys, *values])
    return np.sort(order[first])


def in_order_of_events(
    runtime: Runtime, table: Table, rows: RowIds, frame: Frame, owner: RowIds, seen: Sequence[str]
) -> Array | None:
    """The order of members of groups, which stand one after the other; None where it is as they stand.

    Their times tell it, mostly; of those that have the same, the events are looked at, each once.
    """
    start, end = frame.start, frame.end
    same = owner[1:] == owner[:-1]
    later = (end[1:] > end[:-1]) | ((end[1:] == end[:-1]) & (start[1:] > start[:-1]))
    if bool((later | ~same).all()):
        return None
    order = np.lexsort((start, end, owner))
    s, e, o = start[order], end[order], owner[order]
    tie = np.flatnonzero((s[1:] == s[:-1]) & (e[1:] == e[:-1]) & (o[1:] == o[:-1]))
    if not len(tie):
        return order
    tied = unique(order[np.r_[tie, tie + 1]])
    rank = np.zeros(len(rows), np.int64)
    ordering = Ordering(row_ranks(runtime, table, rows[tied]))
    columns = [frame.vars[v][tied] for v in seen if v in frame.vars]
    rank[tied] = ordering.refine(_value_keys(runtime, columns)).ranks()
    return np.lexsort((rank, start, end, owner))


def _value_keys(runtime: Runtime, columns: list[Array]) -> Iterator[Callable[[Array], Array]]:
    """Keys that order members of one occurrence by the values of variables, those that are left open aside.

    The bound variables of a member are a list of names and values. So one that leaves a variable open comes after the
    others if it binds a later variable, whose name is greater, and before them if its list ends there.
    """
    for i in range(len(columns)):

        def key(rows: RowIds, i: int = i) -> Array:
            codes = columns[i][rows]
            bound = codes != OPEN
            ranks = np.zeros(len(rows), np.int64)
            ranks[bound] = unique_inverse(code_ranks(runtime.tables.dictionary, codes[bound]))[1]
            more = np.zeros(len(rows), bool)
            for later in columns[i + 1 :]:
                more |= later[rows] != OPEN
            ranks[~bound] = np.where(more[~bound], len(rows), -1)
            return ranks

        yield key
