"""What follows from the shape of a run: its variables and labels, and what its conditions ask for."""

from __future__ import annotations

from augury.algebra.nodes import Condition, Run, Scan, bound_vars, condition_terms, conditions, scans
from augury.algebra.ready import binds
from augury.algebra.terms import Aggregate, Prev, Var, Wild
from augury.algebra.terms import walk as walk_terms


def asked_of(condition: Condition) -> list[Prev | Aggregate]:
    """The earlier values and the aggregates that a condition asks for."""
    return [p for term in condition_terms(condition) for p in walk_terms(term) if isinstance(p, Prev | Aggregate)]


def part_variables(run: Run) -> set[str]:
    """The variables that the parts of a run bind, those of iterations among them, and its results."""
    return {v for part in run.parts for v in bound_vars(part.input)} | {result.name for result in run.results}


def run_variables(run: Run) -> set[str]:
    """The variables with one value in a run: those of its parts, of its conditions and its results."""
    own, found = {v for part in run.parts for v in part.own}, part_variables(run)
    for condition in conditions(run):
        found |= binds(condition, found | own)
    return found - own


def run_labels(run: Run) -> set[str]:
    """The labels of parts that do not repeat, those that may be left out included."""
    return {part.label for part in run.parts if part.label is not None and not part.repeats}


def events_of(run: Run) -> tuple[Scan, ...]:
    """The events of a run: each atom of its parts with nothing but the key."""
    found: dict[Scan, None] = {}
    for scan in (scan for part in run.parts for scan in scans(part.input)):
        args = (Var(a.name) if isinstance(a, Var) and a.name in run.key else Wild() for a in scan.args)
        found[Scan(scan.type, tuple(args))] = None
    return tuple(found)
