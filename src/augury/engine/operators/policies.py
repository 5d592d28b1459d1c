"""Consumption policies: the operators that choose for each of them (SEMANTICS 5).

A policy has a `Choose`, which is given all candidates, and a `ChoosingJoin`, which finds its choice itself where the pair
alone says whether it is a candidate.
"""

from __future__ import annotations

from dataclasses import dataclass

from augury.engine.operators.choose import Choose, ChoosingJoin
from augury.engine.operators.chronological import ChooseChronological, Chronological
from augury.engine.operators.recent import ChooseRecent, Recent


@dataclass(frozen=True)
class Selection:
    """The operator for listed candidates, and the one for pairs that need not be listed, where there is one."""

    listed: type[Choose]
    join: type[ChoosingJoin] | None = None


POLICIES: dict[str, Selection | None] = {
    "unrestricted": None,  # all candidates are taken
    "recent": Selection(ChooseRecent, Recent),
    "chronological": Selection(ChooseChronological, Chronological),
}
