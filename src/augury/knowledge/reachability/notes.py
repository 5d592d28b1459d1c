"""What an index is of, and where searches take notes."""

from __future__ import annotations

from typing import NamedTuple

from augury.jit import Array, helper

STAMP, STEPS = 0, 1  # of the count of searches


class Index(NamedTuple):
    """Of each node its component, -1 where it came later; of components the rest.

    `ends` are edges out (0) and in (1) from `start` on, `hubs` those reached and reaching, see `labels` for labels and spans.
    There are no two paths between two nodes where they are `unique`.
    """

    component: Array
    labels: Array
    spans: Array
    up: bool
    unique: bool
    start: Array
    ends: Array
    hubs: Array


class Changes(NamedTuple):
    """The extra edges, and the base edges that were removed.

    `links` has two tables for extra edges: what leads where, and what does so beyond doubt.
    """

    extras: Array
    links: Array
    removed: Array


class Scratch(NamedTuple):
    """Where searches note what they have seen, from the one end and from the other, and where they go on."""

    seen: Array
    queue: Array
    count: Array


@helper
def stamped(scratch: Scratch) -> int:
    """A number that nothing was marked with so far."""
    scratch.count[STAMP] += 1
    return scratch.count[STAMP]  # type: ignore[no-any-return]
