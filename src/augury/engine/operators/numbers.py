"""Aggregates column by column, where what is collected are numbers of one kind."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from augury.algebra.nodes import Collect as CollectNode
from augury.algebra.nodes import Holds, Total
from augury.algebra.terms import Aggregate, Var
from augury.columns.frame import View
from augury.jit import Array

_LARGE = 1e290  # sums of floats below it do not overflow


def is_plain(collect: CollectNode, others: Sequence[str], rows: View, collected: View) -> bool:
    """Whether totals can be computed column by column: one group a row, and simple aggregates of variables."""
    if collect.last is not None or collect.by or any(isinstance(c, Holds) for c in collect.where):
        return False
    if not all(v in rows.vars for v in others):
        return False
    for total in collect.totals:
        match arg := total.aggregate:
            case Aggregate(args=(), distinct=False, function="count"):
                continue
            case Aggregate(args=(Var(name=name),), distinct=False) if name in collected.vars and name not in rows.vars:
                if arg.function in ("count", "sum", "avg", "min", "max"):
                    continue
        return False
    return True


def numbers_of(totals: tuple[Total, ...], view: View, q: Array, first: Array) -> dict[str, Array] | None:
    """The aggregates of groups of occurrences that begin at `first`; None where they are not numbers of one kind."""
    counts = np.diff(np.r_[first, len(q)])
    dictionary = view.table.dictionary
    found: dict[str, Array] = {}
    for total in totals:
        part, name = total.aggregate, total.name
        if not part.args:
            found[name] = counts
            continue
        arg = part.args[0]
        assert isinstance(arg, Var)
        numbers = dictionary.numeric(view.table.data[view.vars[arg.name], q])
        if numbers is None:
            return None
        whole = numbers.dtype.kind == "i"
        safe = whole and int(np.abs(numbers).max()) * int(counts.max()) < 2**53
        match part.function:
            case "count":
                found[name] = counts
            case "min":
                found[name] = np.minimum.reduceat(numbers, first)
            case "max":
                found[name] = np.maximum.reduceat(numbers, first)
            case "sum" if safe:
                found[name] = np.add.reduceat(numbers, first)
            case "sum" if not whole and np.abs(numbers).max() < _LARGE:  # rounded once, however many there are
                found[name] = np.array([math.fsum(some) for some in np.split(numbers, first[1:])]) + 0.0
            case "avg" if safe:
                found[name] = np.add.reduceat(numbers, first) / counts + 0.0
            case _:
                return None
        if not np.isfinite(found[name]).all():
            return None
    return found
