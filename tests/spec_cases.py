"""The spec cases."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from augury.algebra.nodes import Every, Run, walk
from augury.algebra.plan import Plan
from augury.errors import RunError
from augury.testing import Case, read_specs

FOLDER = Path(__file__).parent / "specs"


QUERIES_EVERYWHERE = True


def all_cases() -> list[Case]:
    """The cases that all executors answer."""
    return [case for case in reference_cases() if QUERIES_EVERYWHERE or not has_queries(case.program, case.queries)]


def has_queries(program: str, queries: Iterable[str]) -> bool:
    """Whether a program has queries: in SPAseQ, or as GRAPH in its rules."""
    return bool(list(queries)) or "GRAPH" in program


@cache
def reference_cases() -> tuple[Case, ...]:
    """All cases: the same ones for all tests, so that each is read and compiled once."""
    return tuple(read_specs(FOLDER))


def chooses(plan: Plan) -> bool:
    """Whether a run is chosen in a program: its answers are final once something has ended it, and maybe never."""
    return any(isinstance(n, Run) and n.which != "ALL" for rule in plan.rules for n in walk(rule.body))


def has_clock_windows(plan: Plan) -> bool:
    """Whether a program has windows by the clock: up to an event that is far away, the reference lists all of them."""
    return any(isinstance(n, Every) for rule in plan.rules for n in walk(rule.body))


def refused_on_spark(plan: Plan) -> bool:
    """Whether Spark refuses a program: it makes no windows by the clock in which nothing is collected."""
    from augury.spark.pipeline import refuse_windows

    try:
        refuse_windows(plan)
    except RunError:
        return True
    return False
