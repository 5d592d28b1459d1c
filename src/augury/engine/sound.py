"""Whether tables from outside are consistent.

Indexes, links and sets are made anew from the tables, so that what the tables themselves refer to is all that has to be
looked at: values by their codes, the rows that a row was made of, times. One pass over each column, before anything
follows what it says. What a snapshot says may be wrong in many ways; it cannot lead outside of what is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from augury.algebra.strata import components
from augury.core.bounds import FAR, TIME_LIMIT
from augury.engine.operators.join import JoinOperator
from augury.engine.saved import check_numbers, require
from augury.storage.table import END, FIELDS, RANK, START, Table

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.operators.base import Operator


def check_tables(circuit: Circuit) -> None:
    """All tables of a circuit whose rows have just been read."""
    size = circuit.tables.dictionary.n
    for operator in circuit.operators:
        _check_values(operator.out.table, size)
        operator.check()
    for operator in _turning(circuit):
        _check_order(operator)


def _check_values(table: Table, size: int) -> None:
    """Times within their bounds, and codes of values that there are."""
    data, n = table.data, table.n
    if n == 0:
        return
    for field in (START, END):
        check_numbers(data[field, :n], -TIME_LIMIT, TIME_LIMIT + 1, "a time too far from the origin")
    require(bool((data[START, :n] <= data[END, :n]).all()), "a row that ends before it starts")
    check_numbers(data[RANK, :n], 0, FAR, "an impossible rank")
    codes = set(table.codes)
    for field in range(FIELDS, table.width):
        column = data[field, :n]
        if field not in codes:
            check_numbers(column, -FAR, FAR + 1, "a time too far from the origin")
        elif not 0 <= int(column.min()) <= int(column.max()) < 2 * size:
            check_numbers(column[(column & 1) == 1] >> 1, 0, size, "a value that is not there")


def _turning(circuit: Circuit) -> list[Operator]:
    """Operators whose rows are made of rows that may be made of theirs: those of a repetition."""
    operators = circuit.operators
    names = {id(operator): (operator.kind, number) for number, operator in enumerate(operators)}
    reads: dict[tuple[str, int], set[tuple[str, int]]] = {}
    for operator in operators:
        makers = [circuit.maker(view.table) for view in operator.inputs]
        reads[names[id(operator)]] = {names[id(maker)] for maker in makers if not maker.holds_events}
    turning = [group for group in components(reads, reads) if len(group) > 1 or group[0] in reads[group[0]]]
    return [operators[number] for group in turning for _, number in group]


def _check_order(operator: Operator) -> None:
    """In a repetition no row is made of itself: each join ends after what it goes on from, and nothing else ends before."""
    table = operator.out.table
    ends = table.data[END, : table.n]
    for number, (field, parent) in enumerate(operator.parents()):
        rows = table.data[field, : table.n]
        made = rows >= 0
        least = ends[made] - 1 if isinstance(operator, JoinOperator) and number == 0 else ends[made]
        require(bool((parent.data[END, rows[made]] <= least).all()), "a row made of itself")
