"""The conditions of a run as questions: earlier values and aggregates in them are variables of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from augury.algebra.nodes import Condition, Run, condition_labels, condition_vars, mapped_condition
from augury.algebra.run_terms import asked_of
from augury.algebra.terms import Aggregate, Expr, Prev, Var, mapped_term, show, walk


class PartRows(Protocol):
    """The rows of a part: by their variables."""

    @property
    def vars(self) -> Mapping[str, int]: ...


@dataclass(frozen=True)
class Question:
    """A condition with variables in the place of earlier values and aggregates: `hidden` says what these are."""

    condition: Condition
    hidden: tuple[tuple[str, Prev | Aggregate], ...] = ()
    of_first: bool = True  # whether it is asked of the first iteration
    present: frozenset[str] = frozenset()  # what must be there for it to be asked: all that it is written with

    @property
    def needs(self) -> set[str]:
        """The variables that must have a value for it to be asked."""
        return condition_vars(self.condition) - {name for name, _ in self.hidden}


def question(condition: Condition, first: bool) -> Question:
    """The conditions on an iteration: for the first one, an earlier value is its default."""
    present = frozenset(condition_vars(condition) | condition_labels(condition))
    if first:
        if any(isinstance(p, Prev) and p.default is None for p in asked_of(condition)):
            return Question(condition, of_first=False)
        condition = changed(condition, lambda e: e.default if isinstance(e, Prev) and e.default is not None else None)
    hidden = {p: f"#{show(p)}" for p in dict.fromkeys(asked_of(condition))}
    plain = changed(condition, lambda e: Var(hidden[e]) if isinstance(e, Prev | Aggregate) else None)
    return Question(plain, tuple((name, p) for p, name in hidden.items()), present=present)


def changed(condition: Condition, change: Callable[[Expr], Expr | None]) -> Condition:
    """A condition with other terms in the place of some."""
    return mapped_condition(condition, lambda expr: with_terms(expr, change))


def with_terms(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """An expression with other terms in the place of some; what an aggregate ranges over is its own matter."""
    new = change(expr)
    if new is not None:
        return with_terms(new, change) if isinstance(expr, Prev) and not isinstance(new, Var) else new
    return expr if isinstance(expr, Aggregate) else mapped_term(expr, lambda part: with_terms(part, change))


Turn = tuple[Condition, Iterable[str]]  # a condition, and what must be present for it to be asked


def bound_in_parts(run: Run, parts: Sequence[PartRows]) -> set[str]:
    """The variables that parts bind, and the results."""
    return {v for part in parts for v in part.vars} | {result.name for result in run.results}


def has_earlier(aggregate: Aggregate) -> bool:
    """Whether an aggregate asks for earlier values."""
    return any(map(has_prev, aggregate.args))


def has_prev(expr: Expr) -> bool:
    return any(isinstance(term, Prev) for term in walk(expr))


def outermost_prevs(expr: Expr) -> list[Prev]:
    """The earlier values in an expression that stand in no other one."""
    prevs: dict[Prev, None] = {}

    def visit(term: Expr) -> Expr:
        if isinstance(term, Prev):
            prevs[term] = None
            return term
        return mapped_term(term, visit)

    visit(expr)
    return list(prevs)
