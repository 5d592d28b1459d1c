"""The members of groups: each occurrence once for each value that aggregates see, in the order of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from augury.columns.dictionary import OPEN
from augury.columns.frame import Frame
from augury.columns.grouping import in_groups
from augury.columns.table import Table
from augury.columns.unique import unique, unique_inverse
from augury.jit import Array
from augury.model import OrderKey, order_key

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.operators.base import Part


def occurrences(circuit: Circuit, table: Table, rows: Array) -> Array:
    """A number for each row: rows that are made of the same events have the same one."""
    different, place = unique_inverse(rows)
    known: dict[tuple[Part, ...], int] = {}
    numbers = [known.setdefault(circuit.parts(table, row), len(known)) for row in different.tolist()]
    return np.array(numbers, np.int64)[place]


def each_once(circuit: Circuit, frame: Frame, keys: list[Array], seen: Sequence[str]) -> Array:
    """Of members that are alike in their group, their occurrence and in what aggregates see, one."""
    canonical = circuit.tables.dictionary.canonical
    values = [canonical(frame.vars[v]) for v in seen if v in frame.vars]
    order, first = in_groups([*keys, *values])
    return np.sort(order[first])


def in_order_of_events(
    circuit: Circuit, table: Table, rows: Array, frame: Frame, owner: Array, seen: Sequence[str]
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
    decode = circuit.tables.dictionary.decode
    of_event: dict[int, OrderKey] = {
        row: tuple(circuit.event(part).order for part in circuit.parts(table, row))
        for row in unique(rows[tied]).tolist()
    }
    columns = [(v, frame.vars[v]) for v in seen if v in frame.vars]

    def key(i: int) -> OrderKey:
        values = tuple((v, order_key(decode(int(c[i])))) for v, c in columns if c[i] != OPEN)
        return (of_event[int(rows[i])], values)

    rank = np.zeros(len(rows), np.int64)
    rank[sorted(tied.tolist(), key=key)] = np.arange(len(tied))
    return np.lexsort((rank, start, end, owner))
