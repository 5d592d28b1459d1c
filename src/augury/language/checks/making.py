"""Which values the body of a rule creates: by computing, by building terms, or through a predicate that does.

A cycle may pass values on and take them apart; one that makes new ones never ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import assert_never

from augury.algebra import nodes as n
from augury.algebra.place import binds, ready_order
from augury.algebra.plan import Predicate
from augury.algebra.terms import Build, Expr, Var, computes, variables
from augury.core.errors import Note


class MadePositions:
    """The argument positions of static predicates at which a made value may come out."""

    def __init__(self, clauses: Iterable[n.Clause]) -> None:
        self.clauses = list(clauses)
        # Ground facts hand out what they hold, whatever they are asked with.
        self.rules = {c.predicate for c in self.clauses if c.body or variables(*c.args)}
        self.positions: dict[Predicate, set[int]] = {}
        changed = True
        while changed:
            changed = False
            for clause in self.clauses:
                for i, arg in enumerate(clause.args):
                    making_positions = self.positions.setdefault(clause.predicate, set())
                    if i not in making_positions and self._makes(clause, i, arg):
                        making_positions.add(i)
                        changed = True

    def _makes(self, clause: n.Clause, i: int, arg: Expr) -> bool:
        """Whether a clause makes the value of one argument when it is given all the others."""
        others = variables(*(a for j, a in enumerate(clause.args) if j != i))
        if isinstance(arg, Build) and variables(arg):
            return True
        return bool((variables(arg) - others) & self.made(clause.body, others))

    def made(self, where: Iterable[n.Condition], bound: set[str], but: Collection[Predicate] = ()) -> set[str]:
        """The variables that conditions bind to made values; what comes out of the predicates in `but` does not count."""
        result: set[str] = set()
        for condition, bound_so_far, made in self.steps(where, bound, but):
            result = made | self._new(condition, bound_so_far, made, but)
        return result

    def steps(
        self, where: Iterable[n.Condition], bound: set[str], but: Collection[Predicate] = ()
    ) -> Iterator[tuple[n.Condition, set[str], set[str]]]:
        """The conditions in their order, each with what is bound, and what of that is made, when its turn comes."""
        bound_so_far = set(bound)
        made: set[str] = set()
        for condition in ready_order(tuple(where), bound_so_far):
            yield condition, set(bound_so_far), set(made)
            made |= self._new(condition, bound_so_far, made, but)
            bound_so_far |= binds(condition, bound_so_far)

    def _new(self, condition: n.Condition, bound: set[str], made: set[str], but: Collection[Predicate]) -> set[str]:
        new = binds(condition, bound)
        match condition:
            case n.Compare(op="="):
                result: set[str] = set()
                for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
                    builds = computes(other) or (isinstance(other, Build) and bool(variables(other)))
                    if variables(side) & new and (variables(other) & made or (isinstance(side, Var) and builds)):
                        result |= variables(side) & new
                return result
            case n.Holds():
                predicate = condition.predicate
                if predicate in self.rules and variables(*condition.args) & made:
                    return new
                places = set() if predicate in but else self.positions.get(predicate, set())
                return {v for i in places for v in variables(condition.args[i])} & new
            case n.AnyOf() | n.Compare() | n.NoneInside() | n.Relates() | n.Relative() | n.Spans() | n.Unless():
                return set()
            case _:
                assert_never(condition)


def way_round(way: Iterable[Predicate]) -> Note:
    return Note("the cycle: " + " → ".join(name for name, _ in way))


def calls_in(condition: n.Condition) -> list[n.Holds]:
    """The static calls of a condition, those inside `or` included."""
    return [part for part in n.walk_condition(condition) if isinstance(part, n.Holds)]
