"""Whether tables that come from outside can be what they are said to be.

Indexes, links and sets are made anew from the tables, so that what the tables themselves refer to is all that has to be
looked at: values by their codes, the rows that a row was made of, times. One pass over each column, before anything
follows what it says. What a snapshot says may be wrong in many ways; it cannot lead outside of what is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from augury.columns.frame import LONGEST
from augury.columns.table import END, FIELDS, LEFT, RANK, RIGHT, START, Table
from augury.engine.events import Events
from augury.engine.operators.chronological import Chronological
from augury.engine.operators.collect import Collect
from augury.engine.operators.derive import Derive, Derived, Rederive
from augury.engine.operators.join import Join
from augury.engine.operators.learn import Learn
from augury.engine.operators.map import Union
from augury.engine.saved import require
from augury.jit import Array
from augury.optimiser.implied_bounds import FAR

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.operators.base import Operator


def check_tables(circuit: Circuit) -> None:
    """All tables of a circuit whose rows have just been read."""
    size = circuit.words.dictionary.n
    for operator in circuit.operators:
        table = operator.out.table
        _check_values(table, size)
        _check_rows(operator, table)
    for operator in _turning(circuit):
        _check_order(operator)


def check_numbers(numbers: Array, least: int, limit: int, what: str) -> None:
    """Numbers from `least` up to, not including, `limit`."""
    if len(numbers):
        require(least <= int(numbers.min()) and int(numbers.max()) < limit, what)


def _check_values(table: Table, size: int) -> None:
    """Times within their bounds, and codes of values that there are."""
    data, n = table.data, table.n
    if n == 0:
        return
    for field in (START, END):
        check_numbers(data[field, :n], -LONGEST, LONGEST + 1, "a time too far from the origin")
    require(bool((data[START, :n] <= data[END, :n]).all()), "a row that ends before it starts")
    check_numbers(data[RANK, :n], 0, FAR, "an impossible rank")
    codes = set(table.codes)
    for field in range(FIELDS, table.width):
        column = data[field, :n]
        if field not in codes:
            check_numbers(column, -FAR, FAR + 1, "a time too far from the origin")
        elif not 0 <= int(column.min()) <= int(column.max()) < 2 * size:
            check_numbers(column[(column & 1) == 1] >> 1, 0, size, "a value that is not there")


def _check_rows(operator: Operator, table: Table) -> None:
    """What rows were made of is there."""
    n, sizes = table.n, [view.table.n for view in operator.inputs]
    left, right = table.data[LEFT, :n], table.data[RIGHT, :n]
    what = "a row made of one that is not there"
    match operator:
        case Events() | Derived():
            return
        case Learn() | Rederive():
            require(n == 0, "rows where there are none")
        case Derive():
            check_numbers(left, 0, sizes[0], what)
            check_numbers(right, 0, operator.events.out.table.n, what)
        case Union() | Chronological():
            check_numbers(left, -1, sizes[0], what)
            check_numbers(right, -1, sizes[1], what)
            require(bool(((left >= 0) | (right >= 0)).all()), what)
        case Join():
            check_numbers(left, 0, sizes[0], what)
            check_numbers(right, 0, sizes[1], what)
        case _ if operator.inputs:
            check_numbers(left, 0, sizes[0], what)
        case _:
            require(n <= 1, "rows where there is one")
    if isinstance(operator, Collect):
        require(_has_all(operator.members, table), "a row that has not collected anything")


def _has_all(members: dict[int, tuple[int, ...]], table: Table) -> bool:
    known = np.zeros(table.n, bool)
    known[np.fromiter(members, np.int64, len(members))] = True
    return not bool((table.alive[: table.n].astype(bool) & ~known).any())


def _turning(circuit: Circuit) -> list[Operator]:
    """Operators whose rows are made of rows that may be made of theirs: those of a repetition."""
    reads = {
        id(o): {id(maker) for view in o.inputs if not _ends(maker := circuit.maker(view.table))}
        for o in circuit.operators
    }
    reads = _without_first(_turned(_without_first(_turned(reads))))
    return [o for o in circuit.operators if id(o) in reads and id(o) in _reached(id(o), reads)]


def _without_first(reads: dict[int, set[int]]) -> dict[int, set[int]]:
    """Without those that read nothing, then without those that read nothing else, and so on."""
    readers, left = _turned(reads), {one: len(read) for one, read in reads.items()}
    waiting = [one for one, count in left.items() if count == 0]
    while waiting:
        one = waiting.pop()
        del left[one]
        for reader in readers[one]:
            left[reader] -= 1
            if left[reader] == 0:
                waiting.append(reader)
    return {one: reads[one] & left.keys() for one in left}


def _turned(reads: dict[int, set[int]]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {one: set() for one in reads}
    for one, read in reads.items():
        for other in read:
            found[other].add(one)
    return found


def _reached(one: int, reads: dict[int, set[int]]) -> set[int]:
    found, waiting = set[int](), list(reads[one])
    while waiting:
        other = waiting.pop()
        if other not in found:
            found.add(other)
            waiting += reads[other]
    return found


def _ends(operator: Operator) -> bool:
    """Whether rows are asked no further for what they were made of."""
    return isinstance(operator, Events | Derived)


def _check_order(operator: Operator) -> None:
    """In a repetition no row is made of itself: each join ends after what it goes on from, and nothing else ends before."""
    table = operator.out.table
    ends = table.data[END, : table.n]
    for field, view in zip((LEFT, RIGHT), operator.inputs, strict=False):
        rows = table.data[field, : table.n]
        made = rows >= 0 if field == LEFT or isinstance(operator, Union | Join) else np.zeros(len(rows), bool)
        before = view.table.data[END, rows[made]]
        least = ends[made] - 1 if isinstance(operator, Join) and field == LEFT else ends[made]
        require(bool((before <= least).all()), "a row made of itself")
