"""The spec cases."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from augury.algebra.clock_windows import Windows
from augury.algebra.nodes import Every, Run, walk
from augury.algebra.plan import Plan
from augury.testing import Case, read_specs

FOLDER = Path(__file__).parents[1] / "specs"


@cache
def all_cases() -> tuple[Case, ...]:
    """All cases: the same ones for all tests, so that each is read and compiled once."""
    return tuple(read_specs(FOLDER))


def chooses(plan: Plan) -> bool:
    """Whether a run is chosen in a program, or a match of a query: its answers are final once something has ended it, and maybe never."""
    runs = any(isinstance(n, Run) and n.which != "ALL" for rule in plan.rules for n in walk(rule.body))
    return runs or any(query.choice.which != "ALL" for query in plan.graph_queries)


def clock_windows(plan: Plan) -> list[Windows]:
    """The windows by the clock of a program: up to the last event, the reference lists all of them."""
    return [n.windows for rule in plan.rules for n in walk(rule.body) if isinstance(n, Every)]
