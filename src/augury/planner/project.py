"""Projection: an operator keeps just the columns that operators above it read.

    m(X) <- a(X, Y) SEQ b(X, Z).   →   the join keeps X; Y and Z are columns of no operator

The rows of an operator are as many as before, so nothing else changes. What a pattern needs to have is known when its
operator is chosen, from the top of a rule down.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import assert_never

from augury.algebra.kinds import may_bind, relative_labels
from augury.algebra.nodes import (
    Condition,
    Either,
    Every,
    Graph,
    Instant,
    Join,
    Label,
    Node,
    NoneInside,
    Repeat,
    Run,
    Scan,
    Select,
    SessionWindow,
    Unfold,
    Within,
    bound_vars,
    condition_labels,
    condition_vars,
    conditions,
    inputs,
)
from augury.algebra.run_terms import run_labels, run_variables


@dataclass(frozen=True)
class Needs:
    """The variables and labels that operators above a pattern read."""

    vars: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()

    def more(self, vars: Iterable[str] = (), labels: Iterable[str] = ()) -> Needs:
        return Needs(self.vars | set(vars), self.labels | set(labels))

    def of(self, where: Iterable[Condition]) -> Needs:
        """Also what conditions read."""
        needs = self
        for condition in where:
            needs = needs.more(condition_vars(condition), condition_labels(condition))
            if isinstance(condition, NoneInside):
                needs = needs.more(labels={name for c in condition.where for name in condition_labels(c)})
        return needs


def project(node: Node, needs: Needs) -> Needs:
    """The columns that a pattern keeps: those of its rows that are read above it."""
    return Needs(needs.vars & possible_vars(node), needs.labels & possible_labels(node))


def possible_vars(node: Node) -> set[str]:
    """The variables that some row of the pattern binds."""
    below = {v for part in inputs(node) for v in possible_vars(part)}
    match node:
        case Scan() | Graph():
            return bound_vars(node)
        case Run():
            return run_variables(node)
        case Unfold():
            return below | set(node.binds)
        case Instant() | Every() | Label() | Select() | Within() | Join() | Either() | Repeat() | SessionWindow():
            return below.union(*(condition_vars(c) for c in conditions(node) if may_bind(c)))
        case _:
            assert_never(node)


def possible_labels(node: Node) -> set[str]:
    """The labels that some row of the pattern has."""
    relative = relative_labels(conditions(node))
    match node:
        case Run():
            return relative | run_labels(node)
        case Label():
            return relative | {node.label} | possible_labels(node.input)
        case Scan() | Graph() | Unfold() | Instant() | Every() | SessionWindow():
            return relative.union(*(possible_labels(part) for part in inputs(node)))
        case Select() | Within() | Join() | Either() | Repeat():
            return relative.union(*(possible_labels(part) for part in inputs(node)))
        case _:
            assert_never(node)
