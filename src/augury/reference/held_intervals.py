"""`holding p(X)`: the maximal intervals in which facts hold (SEMANTICS 12)."""

from __future__ import annotations

from collections.abc import Iterable

from augury.algebra.nodes import Holds
from augury.algebra.plan import Predicate
from augury.algebra.terms import Var
from augury.core.model import Fact, OrderKey, Value, order_key
from augury.knowledge.fact_table import ALWAYS, EVER
from augury.semantics.occurrences import HeldInterval
from augury.semantics.static_calls import Static


def held_intervals(static: Static, facts: Iterable[Fact], predicate: Predicate) -> list[HeldInterval]:
    """For each fact the maximal intervals in which it holds: between two times at which any fact changes nothing does.

    A fact that holds in neighbouring slices of time goes on; one at the edge of all time has no beginning, or no end.
    """
    changes = sorted({change for fact in facts for change in (fact.since, fact.until) if change is not None})
    atom = Holds(predicate[0], tuple(Var(f"X{i}") for i in range(predicate[1])))
    open_: dict[OrderKey, HeldInterval] = {}
    ended: list[HeldInterval] = []
    for since in [ALWAYS, *changes]:
        time = min(changes, default=0) - 1 if since == ALWAYS else since
        now: dict[OrderKey, tuple[Value, ...]] = {}
        for binding, _ in static.solve(atom, {}, time):
            args = tuple(binding[f"X{i}"] for i in range(predicate[1]))
            now.setdefault(tuple(map(order_key, args)), args)
        for key in [key for key in open_ if key not in now]:
            ended.append(open_.pop(key)._replace(until=since))
        for key, args in now.items():
            open_.setdefault(key, HeldInterval(args, since, EVER))
    return [*ended, *open_.values()]
