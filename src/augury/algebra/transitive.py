"""Which predicates are the transitive closure of another one.

    supplies(X, Y) :- linked(X, Y).
    supplies(X, Z) :- linked(X, Y), supplies(Y, Z).

The recursive clause may stand on the left (`supplies(X, Y), linked(Y, Z)`) or on both sides (`supplies(X, Y),
supplies(Y, Z)`), in any order of clauses and literals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from augury.algebra.kinds import positive_atoms
from augury.algebra.nodes import Clause, Holds
from augury.algebra.plan import Predicate
from augury.algebra.terms import Var


def closure_of(predicate: Predicate, clauses: Sequence[Clause]) -> str | None:
    """The predicate of which these clauses are the transitive closure; None where they are something else."""
    if predicate[1] != 2 or len(clauses) != 2 or any(c.cut for c in clauses):
        return None
    base = next((c for c in clauses if len(c.body) == 1), None)
    step = next((c for c in clauses if len(c.body) == 2), None)
    if base is None or step is None:
        return None
    edge = base.body[0]
    ends = _variables(base.args)
    if not isinstance(edge, Holds) or edge.name == predicate[0] or len(edge.args) != 2:
        return None
    if ends is None or ends[0] == ends[1] or _variables(edge.args) != ends:
        return None
    return edge.name if _steps(step, {edge.name, predicate[0]}, predicate[0]) else None


def _steps(clause: Clause, names: set[str], closure: str) -> bool:
    """Whether a clause goes from its first argument to its second over one variable between."""
    ends = _variables(clause.args)
    calls = [c for c in positive_atoms(clause.body) if c.name in names and len(c.args) == 2]
    ways = [_variables(c.args) for c in calls]
    if len(calls) != 2 or ends is None or ends[0] == ends[1] or not any(c.name == closure for c in calls):
        return False
    for first, second in (ways, ways[::-1]):
        if first is not None and second is not None and first[0] == ends[0] and second[1] == ends[1]:
            return first[1] == second[0] and first[1] not in ends
    return False


def _variables(args: Sequence[object]) -> tuple[str, ...] | None:
    names = tuple(a.name for a in args if isinstance(a, Var))
    return names if len(names) == len(args) else None


def transitive(clauses: Mapping[Predicate, Sequence[Clause]]) -> dict[Predicate, Predicate]:
    """For each predicate that is a transitive closure, of which one."""
    result: dict[Predicate, Predicate] = {}
    for predicate, own_clauses in clauses.items():
        edge = closure_of(predicate, own_clauses)
        if edge is not None:
            result[predicate] = (edge, 2)
    return result
