"""Aggregates column by column, where what is collected are numbers of one kind."""

from __future__ import annotations

import math

import numpy as np

from augury.algebra.nodes import Collect as CollectNode
from augury.algebra.nodes import Holds, Rule
from augury.algebra.terms import Aggregate, Const, Var
from augury.columns.frame import View
from augury.jit import Array

_LARGE = 1e290  # sums of floats below it do not overflow


def is_plain(rule: Rule, collect: CollectNode, rows: View, collected: View) -> bool:
    """Whether a head can be computed column by column: plain variables of the row, and simple aggregates of variables."""
    if collect.last is not None or any(isinstance(c, Holds) for c in collect.where):
        return False
    for arg in rule.args:
        match arg:
            case Const() | Aggregate(args=(), distinct=False, function="count"):
                continue
            case Var() if arg.name in rows.vars:
                continue
            case Aggregate(args=(Var(name=name),), distinct=False) if name in collected.vars and name not in rows.vars:
                if arg.function in ("count", "sum", "avg", "min", "max"):
                    continue
        return False
    return True


def numbers_of(aggregates: tuple[Aggregate, ...], view: View, q: Array, first: Array) -> dict[Aggregate, Array] | None:
    """The aggregates of groups of occurrences that begin at `first`; None where they are not numbers of one kind."""
    counts = np.diff(np.r_[first, len(q)])
    dictionary = view.table.dictionary
    found: dict[Aggregate, Array] = {}
    for part in aggregates:
        if not part.args:
            found[part] = counts
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
                found[part] = counts
            case "min":
                found[part] = np.minimum.reduceat(numbers, first)
            case "max":
                found[part] = np.maximum.reduceat(numbers, first)
            case "sum" if safe:
                found[part] = np.add.reduceat(numbers, first)
            case "sum" if not whole and np.abs(numbers).max() < _LARGE:  # rounded once, however many there are
                found[part] = np.array([math.fsum(some) for some in np.split(numbers, first[1:])]) + 0.0
            case "avg" if safe:
                found[part] = np.add.reduceat(numbers, first) / counts + 0.0
            case _:
                return None
        if not np.isfinite(found[part]).all():
            return None
    return found
