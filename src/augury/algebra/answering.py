"""How calls of static predicates are answered, as far as the program decides it; the number of facts decides the remainder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import assert_never

from augury.algebra.nodes import AnyOf, Clause, Compare, Holds, NoneInside, Relates, Relative, Spans, Unless
from augury.algebra.place import binds, is_ready, reading, ready_order
from augury.algebra.plan import Plan, Predicate
from augury.algebra.strata import components, recurs, static_reads
from augury.algebra.terms import Const, Var, Wild, variables
from augury.algebra.transitive import transitive
from augury.core.model import Fact

Mode = tuple[bool, ...]


@dataclass(frozen=True)
class Answering:
    """A static predicate, which of its arguments calls bind, and how it is answered."""

    predicate: Predicate
    modes: tuple[Mode, ...]
    how: str


def is_plain(clause: Clause, orders: bool = False) -> bool:
    """Whether a clause just joins facts: nothing that may fail, commit, or need an argument of a call.

    To compare by order may fail, so it is plain only where the caller looks at the types, `orders`.
    """
    if clause.cut or not all(isinstance(a, Var | Const) for a in clause.args):
        return False
    bound: set[str] = set()
    for condition in ready_order(clause.body, bound):
        match condition:
            case Compare() if orders or condition.op in ("=", "!="):
                if not all(isinstance(side, Var | Const) for side in (condition.left, condition.right)):
                    return False
            case Holds() | Unless():
                if not all(isinstance(a, Var | Const | Wild) for a in condition.args):
                    return False
            case AnyOf() | Compare() | NoneInside() | Relates() | Relative() | Spans():
                return False
            case _:
                assert_never(condition)
        if not is_ready(condition, bound) and not isinstance(condition, Holds):
            return False
        bound |= binds(condition, bound)
    return variables(*clause.args) <= bound


def divided(clauses: Iterable[Clause]) -> tuple[dict[Predicate, list[Clause]], list[Fact]]:
    """The rules by predicate, and the ground facts, but for those of predicates whose clauses are in order."""
    clauses = list(clauses)
    ordered = {(c.name, len(c.args)) for c in clauses if c.cut}
    rules: dict[Predicate, list[Clause]] = {}
    facts: list[Fact] = []
    for clause in clauses:
        predicate = (clause.name, len(clause.args))
        values = tuple(a.value for a in clause.args if isinstance(a, Const))
        if clause.body or predicate in ordered or len(values) < len(clause.args):
            rules.setdefault(predicate, []).append(clause)
        else:
            facts.append(Fact(clause.name, values))
    return rules, facts


def reads_of(clauses: Iterable[Iterable[Clause]]) -> dict[Predicate, set[Predicate]]:
    """The predicates that clauses ask for, given predicate by predicate."""
    return {head: set(reads) for head, reads in static_reads(chain.from_iterable(clauses)).items()}


def answering(plan: Plan, modes: Mapping[Predicate, Sequence[Mode]]) -> list[Answering]:
    """How each static predicate that the program asks for is answered."""
    clauses, _ = divided(plan.clauses)
    reads = reads_of(clauses.values())
    recursive = {p for group in components(clauses, reads) if recurs(group, reads) for p in group}
    closures = transitive(clauses)
    changing = reading(plan, {name for name, _ in plan.made})
    answerings: list[Answering] = []
    for predicate, asked in sorted(modes.items()):
        if predicate[0] in plan.queries:
            how = "a query, asked once; then looked up"
        elif predicate not in clauses:
            how = "facts, looked up" + _places(asked)
        elif predicate in closures and all(is_plain(c) for c in clauses.get(closures[predicate], ())):
            how = f"transitive: an index of reachability over `{closures[predicate][0]}`, from its last change on"
        elif predicate in recursive:
            how = "recursive: goal by goal, tabled"
        else:
            how = "rules: goal by goal, tabled"
        if predicate in clauses and predicate not in closures and all(is_plain(c) for c in clauses[predicate]):
            how += "; all at once where its facts are few, or its calls many"
        if predicate[0] in changing:
            how += "; changes with events"
        answerings.append(Answering(predicate, tuple(sorted(asked, reverse=True)), how))
    return answerings


def _places(modes: Sequence[Mode]) -> str:
    wanted = sorted({tuple(i + 1 for i, bound in enumerate(mode) if bound) for mode in modes})
    shown = [" and ".join(map(str, places)) for places in wanted if places]
    whole = [] if all(wanted) else ["whole"]
    return " " + ", ".join([*([f"by argument {', or by '.join(shown)}"] if shown else []), *whole])
