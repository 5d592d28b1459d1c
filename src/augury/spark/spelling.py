"""Likely misspellings, detected in Catalyst: unknown event types whose name is close to a known one."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F


def looks_misspelt(name: Column, names: Iterable[str]) -> Column:
    """Whether a name is a slip or two away from a known one, as `errors.misspelt` has it.

    Of letters that are swapped with the next, it sees one pair: that is all that a short name may have.
    """
    small, size = F.lower(name), F.length(name)
    allowed = F.when(size < 3, 0).when(size < 6, 1).when(size < 10, 2).otherwise(3)
    close = [F.levenshtein(small, F.lit(k.lower())) <= allowed for k in sorted(names)]
    swapped = sorted({s for k in names for s in _swapped(k.lower())})
    if swapped:
        close.append((size >= 3) & small.isin(swapped))
    return reduce(lambda x, y: x | y, close, F.lit(False))


def _swapped(name: str) -> set[str]:
    return {name[:i] + name[i + 1] + name[i] + name[i + 2 :] for i in range(len(name) - 1)}
