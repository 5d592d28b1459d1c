"""The table of selection policies: which of several candidates pair (SEMANTICS 5).

`a SEQ[recent] b` takes, for each `b`, the `a` that ended last. A policy that takes the best candidate of each later part is
one row: the reference evaluator and the engine rank candidates by it. A faster join for it is a row in `planner/policies.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class SelectionPolicy:
    """A policy by its name. With `rank`, each later part takes the candidate whose start and end rank highest; ties are
    broken as the policy says, then by the order of events."""

    name: str
    rank: Callable[[int, int], int] | None = None


POLICIES = {
    policy.name: policy
    for policy in (
        SelectionPolicy("recent", lambda start, end: end),
        SelectionPolicy("chronological"),  # first in, first out; both parts are consumed
        SelectionPolicy("unrestricted"),  # takes all candidates
    )
}
