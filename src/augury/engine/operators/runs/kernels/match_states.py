"""Partial states of aggregates along a run: a match has the state of the match that it extends, and one value more."""

from __future__ import annotations

from augury.core.arrays import Array
from augury.core.jit import Kernel

MAKES_NO_ARRAYS = True
ITSELF = -2  # as a source: a match extends its own state
NO_KEY = -(2**63)


@Kernel
def extend_states(
    rows: Array, sources: Array, slots: Array, sums: Array, keys: Array, codes: Array, state: Array
) -> None:  # fmt: skip
    """Sets the states of matches from those that they extend, -1 for none, and adds the value in a slot, where there is one.

    A state has its sums, then its keys, then the codes that belong to these. Of equal keys the first stays.
    """
    width, picks = sums.shape[0], keys.shape[0]
    for i in range(len(rows)):
        row, source, slot = rows[i], sources[i], slots[i]
        if source == -1:
            for f in range(width):
                state[f, row] = 0
            for f in range(picks):
                state[width + f, row] = NO_KEY
        elif source >= 0:
            for f in range(state.shape[0]):
                state[f, row] = state[f, source]
        if slot < 0:
            continue
        for f in range(width):
            state[f, row] += sums[f, slot]
        for f in range(picks):
            if keys[f, slot] > state[width + f, row]:
                state[width + f, row] = keys[f, slot]
                state[width + picks + f, row] = codes[f, slot]
