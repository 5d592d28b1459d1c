"""The nodes of the algebra: patterns, conditions, rules. One algebra for both styles of rules.

A pattern denotes rows: a binding of variables, an interval, the intervals of labelled parts, and the occurrences it was
made of. A body in the style of event queries (`o: order(N), s: shipped(N), o before s`) is a chain of AND joins whose
conditions sit at the lowest join that binds what they need, so it is the same algebra as `order(N) SEQ shipped(N)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, assert_never

from augury.algebra.terms import Const, Expr, labels, variables
from augury.errors import NOWHERE, Span

_SPAN = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Policy:
    """Which candidates pair (SEMANTICS 5)."""

    name: Literal["unrestricted", "recent", "chronological"] = "unrestricted"
    ties: Literal["longest", "shortest", "by"] = "longest"
    by: str | None = None
    per: tuple[str, ...] = ()


UNRESTRICTED = Policy()


# Conditions


@dataclass(frozen=True)
class Compare:
    """`left op right`; `=` binds a variable that nothing else binds."""

    op: Literal["=", "!=", "<", "<=", ">", ">="]
    left: Expr
    right: Expr
    span: Span = _SPAN


@dataclass(frozen=True)
class Holds:
    """A static predicate holds; binds what it leaves open."""

    name: str
    args: tuple[Expr, ...]
    span: Span = _SPAN


@dataclass(frozen=True)
class Unless:
    """No answer of a static predicate."""

    name: str
    args: tuple[Expr, ...]
    span: Span = _SPAN


@dataclass(frozen=True)
class AnyOf:
    """One of several conjunctions holds; binds nothing."""

    options: tuple[tuple[Condition, ...], ...]
    span: Span = _SPAN


@dataclass(frozen=True)
class Relates:
    """A relation of Allen between two labelled occurrences."""

    left: str
    relation: str
    right: str
    span: Span = _SPAN


@dataclass(frozen=True)
class Spans:
    """`{i, j} within D`: greatest end - least start <= D, in microseconds."""

    labels: tuple[str, ...]
    length: int
    span: Span = _SPAN


@dataclass(frozen=True)
class Relative:
    """A relative temporal event: `label` is an interval counted from `anchor`."""

    label: str
    kind: str
    anchor: str
    length: int
    span: Span = _SPAN


@dataclass(frozen=True)
class NoneInside:
    """`while w: not q`: no occurrence of q inside w, closed. `where` are the conditions of q that use outer variables."""

    window: str
    pattern: Node
    where: tuple[Condition, ...] = ()
    span: Span = _SPAN


Condition: TypeAlias = Compare | Holds | Unless | AnyOf | Relates | Spans | Relative | NoneInside


# Patterns


@dataclass(frozen=True)
class Scan:
    """Occurrences of a type whose arguments match."""

    type: str
    args: tuple[Expr, ...]
    span: Span = _SPAN


@dataclass(frozen=True)
class Instant:
    """The time point `[q, q]`."""

    time: Const
    span: Span = _SPAN


@dataclass(frozen=True)
class Label:
    """Names the occurrences of a pattern."""

    label: str
    input: Node
    span: Span = _SPAN


@dataclass(frozen=True)
class Select:
    """Rows for which the conditions hold."""

    input: Node
    where: tuple[Condition, ...]
    span: Span = _SPAN


@dataclass(frozen=True)
class Within:
    """Rows no longer than a window, in microseconds."""

    input: Node
    length: int
    span: Span = _SPAN


@dataclass(frozen=True)
class Join:
    """Pairs of rows in a temporal relation that agree on shared variables.

    `where`, `windows` and `absent` are part of candidacy: a policy chooses among the pairs that meet them. `absent` is
    NOT: no row of it starts after the left part ends and ends before the right part starts; `absent_where` are the
    conditions on it that use variables of the two parts.
    """

    op: str
    left: Node
    right: Node
    where: tuple[Condition, ...] = ()
    windows: tuple[int, ...] = ()
    absent: Node | None = None
    absent_where: tuple[Condition, ...] = ()
    policy: Policy = UNRESTRICTED
    span: Span = _SPAN


@dataclass(frozen=True)
class Either:
    """The union."""

    left: Node
    right: Node
    span: Span = _SPAN


@dataclass(frozen=True)
class Repeat:
    """The pattern `count` times in sequence; consecutive: with no other occurrence of it between."""

    input: Node
    count: int
    consecutive: bool = False
    windows: tuple[int, ...] = ()
    policy: Policy = UNRESTRICTED
    span: Span = _SPAN


Skip: TypeAlias = Literal["contiguous", "next", "any"]


@dataclass(frozen=True)
class Follow:
    """SPAseQ's sequence: `then` after `first`, with what may be skipped between.

    any: like SEQ. next: the first compatible row after. contiguous: at the next time point of the named streams, or of
    all where none is named. `absent` is `B!`: no compatible row of it strictly between.
    """

    first: Node
    then: Node
    skip: Skip
    streams: tuple[str, ...] = ()
    absent: Node | None = None
    span: Span = _SPAN


@dataclass(frozen=True)
class Kleene:
    """SPAseQ's `B+`: one or more rows of `input`, one after the other; those in `local` are each iteration's own."""

    input: Node
    skip: Skip
    streams: tuple[str, ...] = ()
    local: tuple[str, ...] = ()
    span: Span = _SPAN


Node: TypeAlias = Scan | Instant | Label | Select | Within | Join | Either | Repeat | Follow | Kleene


# Rules


@dataclass(frozen=True)
class Collect:
    """What the aggregates of a head range over: rows inside a window, or the last n."""

    pattern: Node
    window: str | None = None
    last: int | None = None
    exactly: bool = False
    where: tuple[Condition, ...] = ()
    span: Span = _SPAN


@dataclass(frozen=True)
class Rule:
    """`head <- body`: an event for every row, over the cover of the row and the rule's windows.

    `makes` is the static predicate whose facts the events make, or end: they are events of a type that nobody else reads.
    """

    label: str
    type: str
    args: tuple[Expr, ...]
    body: Node
    covers: tuple[str, ...] = ()
    collect: Collect | None = None
    span: Span = _SPAN
    makes: str = ""

    @property
    def predicate(self) -> tuple[str, int]:
        return (self.type, len(self.args))


def made_type(name: str, makes: str) -> str:
    """The type of the events that make facts of a predicate (`fact`), or end them (`no fact`)."""
    return f"{makes} {name}"


@dataclass(frozen=True)
class Clause:
    """A static rule; a fact has no body. `cut` commits to the clause, for that call, once its body holds."""

    name: str
    args: tuple[Expr, ...]
    body: tuple[Condition, ...] = ()
    cut: bool = False
    span: Span = _SPAN


def inputs(node: Node) -> tuple[Node, ...]:
    """The patterns directly below, absences aside."""
    match node:
        case Scan() | Instant():
            return ()
        case Label() | Select() | Within() | Repeat() | Kleene():
            return (node.input,)
        case Join() | Either():
            return (node.left, node.right)
        case Follow():
            return (node.first, node.then)
        case _:
            assert_never(node)


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with each of its inputs changed, absences aside."""
    match node:
        case Scan() | Instant():
            return node
        case Label() | Select() | Within() | Repeat() | Kleene():
            return replace(node, input=change(node.input))
        case Join() | Either():
            return replace(node, left=change(node.left), right=change(node.right))
        case Follow():
            return replace(node, first=change(node.first), then=change(node.then))
        case _:
            assert_never(node)


def conditions(node: Node) -> tuple[Condition, ...]:
    return node.where if isinstance(node, Select | Join) else ()


def absences(node: Node) -> tuple[Node, ...]:
    """The patterns whose absence this node asks for."""
    inside = tuple(c.pattern for c in conditions(node) if isinstance(c, NoneInside))
    return inside + ((node.absent,) if isinstance(node, Join | Follow) and node.absent is not None else ())


def walk(node: Node) -> Iterator[Node]:
    """The pattern and all its parts, absences aside."""
    yield node
    for part in inputs(node):
        yield from walk(part)


def walk_all(node: Node) -> Iterator[Node]:
    """The pattern and all its parts, absences included."""
    for part in walk(node):
        yield part
        for absent in absences(part):
            yield from walk_all(absent)


def condition_vars(condition: Condition) -> set[str]:
    match condition:
        case Compare():
            return variables(condition.left, condition.right)
        case Holds() | Unless():
            return variables(*condition.args)
        case AnyOf():
            return {v for option in condition.options for c in option for v in condition_vars(c)}
        case Relates() | Spans() | Relative():
            return set()
        case NoneInside():
            return bound_vars(condition.pattern).union(*(condition_vars(c) for c in condition.where))
        case _:
            assert_never(condition)


def condition_labels(condition: Condition) -> set[str]:
    match condition:
        case Compare():
            return labels(condition.left, condition.right)
        case Holds() | Unless():
            return labels(*condition.args)
        case AnyOf():
            return {v for option in condition.options for c in option for v in condition_labels(c)}
        case Relates():
            return {condition.left, condition.right}
        case Spans():
            return set(condition.labels)
        case Relative():
            return {condition.anchor}
        case NoneInside():
            return {condition.window}
        case _:
            assert_never(condition)


def bound_vars(node: Node) -> set[str]:
    """The variables that every row of the pattern binds, those that conditions bind included."""
    match node:
        case Scan():
            return variables(*node.args)
        case Instant():
            return set()
        case Either():
            return bound_vars(node.left) & bound_vars(node.right)
        case Kleene():
            return bound_vars(node.input)
        case _:
            found = {v for part in inputs(node) for v in bound_vars(part)}
            for condition in conditions(node):
                if isinstance(condition, Holds) or (isinstance(condition, Compare) and condition.op == "="):
                    found |= condition_vars(condition)
            return found


def bound_labels(node: Node) -> set[str]:
    """The labels whose intervals every row has."""
    found = {node.label} if isinstance(node, Label) else set()
    found |= {c.label for c in conditions(node) if isinstance(c, Relative)}
    return found.union(*(bound_labels(part) for part in inputs(node)))


def event_types(node: Node) -> set[tuple[str, int]]:
    """The types that the pattern reads, absences included."""
    return {(n.type, len(n.args)) for n in walk_all(node) if isinstance(n, Scan)}
