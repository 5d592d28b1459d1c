"""A history cut into slices of time, each of which a circuit of its own can take in, in a thread of its own.

Where answers have a bounded length and rest on nothing but what lies inside them, those that end in a slice rest on its
events and on those that ended so long before it. Slices are consecutive: their answers, one slice after the other, are all
answers in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from augury.algebra.plan import Plan, Predicate
from augury.algebra.stages import can_slice, one_stage
from augury.core.arrays import Array
from augury.core.bounds import FAR
from augury.core.clock import Clock
from augury.core.limits import Limits
from augury.sources import Batch
from augury.storage.unique import unique

LEAST = 1 << 16  # events of a slice: with fewer, a thread is not worth its circuit
_APART = 64  # one event in so many is looked at to find where slices end
COPIES = 8  # at most one event in so many may be in two slices


@dataclass(frozen=True)
class TimeSlice:
    """The answers that end after `after` and no later than `last`, and where the events begin that they rest on."""

    after: int
    last: int
    since: int

    def of(self, batches: Mapping[Predicate, Batch]) -> dict[Predicate, Batch]:
        """The events on which its answers rest, in their order."""
        parts = {type: self._part(batch) for type, batch in batches.items()}
        return {type: batch for type, batch in parts.items() if len(batch)}

    def _part(self, batch: Batch) -> Batch:
        ends = batch.end
        if (ends[1:] >= ends[:-1]).all():
            lo, hi = np.searchsorted(ends, [self.since, self.last + 1]).tolist()
            return batch.part(lo, hi)
        return batch.some(np.flatnonzero((ends >= self.since) & (ends <= self.last)))

    def has(self, ends: Array) -> Array:
        """Which of some answers are its own."""
        mask: Array = (ends > self.after) & (ends <= self.last)
        return mask


def allow_slices(limits: Limits) -> bool:
    """Whether limits are those of a step in any thread; others count what is done by all of them."""
    counted = (limits.rows, limits.bytes, limits.pairs, limits.answers, limits.matches)
    return all(limit is None for limit in counted)


def answer_length(plan: Plan, clock: Clock, batches: Mapping[Predicate, Batch]) -> int | None:
    """How long answers of a program are at most, in time points, where they rest on what lies inside them; else None."""
    registered = [f for table in (plan.functions, plan.aggregates) for f in table.values() if f.registered]
    if plan.graph_queries or registered:  # functions that users wrote may mind threads
        return None
    lengths = [int((b.end - b.start).max(initial=0)) for b in batches.values() if b.end is not b.start]
    longest = max(lengths, default=0) * (clock.tick if clock.kind == "logical" else 1)
    staged = one_stage(plan, longest)
    length = can_slice(staged, staged.stages[0], longest)
    return None if length is None else clock.length(length)


def time_slices(batches: Mapping[Predicate, Batch], length: int, most: int) -> list[TimeSlice]:
    """At most so many slices, of about as many events each; one where more are not worth it."""
    number = min(most, sum(map(len, batches.values())) // LEAST)
    if number < 2:
        return [TimeSlice(-FAR, FAR, -FAR)]
    ends = np.sort(np.concatenate([batch.end[:: min(_APART, LEAST)] for batch in batches.values()]))
    cuts = unique(ends[[len(ends) * i // number for i in range(1, number)]] - 1)
    slices = list(_between(cuts.tolist(), length))
    copied = sum(np.searchsorted(ends, s.after + 1) - np.searchsorted(ends, s.since) for s in slices[1:])
    return slices if copied * COPIES <= len(ends) else [TimeSlice(-FAR, FAR, -FAR)]


def _between(cuts: list[int], length: int) -> Iterator[TimeSlice]:
    for after, last in zip([-FAR, *cuts], [*cuts, FAR], strict=True):
        yield TimeSlice(after, last, -FAR if after == -FAR else after + 1 - length)
