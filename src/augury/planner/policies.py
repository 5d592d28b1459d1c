"""Consumption policies: the specs of each (SEMANTICS 5).

A policy has a spec that chooses among listed candidates, and may have a join that finds its choice by itself where the
pair alone decides whether it is a candidate.
"""

from __future__ import annotations

from dataclasses import dataclass

from augury.algebra.nodes import Policy
from augury.planner.specs import (
    ChoiceSpec,
    ChoosingJoinSpec,
    ChronologicalChoiceSpec,
    ChronologicalSpec,
    RankedChoiceSpec,
    RecentSpec,
)


@dataclass(frozen=True)
class Selection:
    """The spec for listed candidates, and the join that need not list them, for which operators (None: for all)."""

    listed: type[ChoiceSpec]
    join: type[ChoosingJoinSpec] | None = None
    operators: frozenset[str] | None = None

    def joins(self, op: str) -> bool:
        """Whether its join can choose for a binary operator."""
        return self.join is not None and (self.operators is None or op in self.operators)


_RANKED = Selection(RankedChoiceSpec)
POLICY_SPECS: dict[str, Selection | None] = {
    "unrestricted": None,  # takes all candidates
    "recent": Selection(RankedChoiceSpec, RecentSpec),
    # The right part of SEQ is always the later one.
    "chronological": Selection(ChronologicalChoiceSpec, ChronologicalSpec, frozenset({"SEQ"})),
}


def selection_of(policy: Policy) -> Selection | None:
    """The specs of a policy; one that ranks needs no row of its own. None where it takes all candidates."""
    return POLICY_SPECS.get(policy.name, _RANKED)
