"""Questions that many passes ask of nodes and conditions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard, TypeVar

from augury.algebra.nodes import (
    UNRESTRICTED,
    Compare,
    Condition,
    Holds,
    Join,
    Node,
    NoneInside,
    Relative,
    Repeat,
    Run,
    Unless,
    walk_condition,
)

N = TypeVar("N", bound=Node)


def of_kind(nodes: Iterable[Node], kind: type[N]) -> list[N]:
    """The nodes of one class: `of_kind(walk(body), Run)` are the runs of a body."""
    return [node for node in nodes if isinstance(node, kind)]


def chooses(node: Node) -> TypeGuard[Join | Repeat]:
    """Whether a policy chooses among the occurrences of a node."""
    return isinstance(node, Join | Repeat) and node.policy != UNRESTRICTED


def keeps_some_matches(node: Node) -> TypeGuard[Run]:
    """Whether a run keeps the longest or the shortest of its matches, and not all of them."""
    return isinstance(node, Run) and node.which != "ALL"


def atoms_in(condition: Condition) -> list[Holds | Unless]:
    """The static atoms of a condition, those inside `or` included."""
    return [part for part in walk_condition(condition) if isinstance(part, Holds | Unless)]


def positive_atoms(where: Iterable[Condition]) -> list[Holds]:
    """The static atoms that must hold, without those inside `or`."""
    return [condition for condition in where if isinstance(condition, Holds)]


def inner_absences(where: Iterable[Condition]) -> list[NoneInside]:
    """The conditions that ask for an absence inside a window."""
    return [condition for condition in where if isinstance(condition, NoneInside)]


def relative_labels(where: Iterable[Condition]) -> set[str]:
    """The labels of the intervals that conditions define relative to others."""
    return {condition.label for condition in where if isinstance(condition, Relative)}


def is_equation(condition: Condition) -> TypeGuard[Compare]:
    return isinstance(condition, Compare) and condition.op == "="


def may_bind(condition: Condition) -> bool:
    """Whether a condition can bind variables: a static atom, or an equation."""
    return isinstance(condition, Holds) or is_equation(condition)
