"""The syntax tree of the rule language: the program as written, with a span on every node.

Patterns, conditions and values share one expression grammar, as in the papers, where `o during w` may relate two labels or
two patterns; which it is depends on the rule, so the tree keeps the shape and `translate` decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, get_args

from augury.algebra.graph_queries import GraphQuery
from augury.algebra.terms import Const, Var, Wild
from augury.core.errors import NOWHERE, Span

_SPAN = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class BareName:
    """A bare lower-case name: an event without arguments, a label, or a string, as its place says."""

    text: str
    span: Span = _SPAN


@dataclass(frozen=True)
class CallTerm:
    """`name(args)`: an event, a static predicate, a function, an aggregate or a nested term."""

    name: str
    args: tuple[Node, ...]
    distinct: bool = False
    span: Span = _SPAN


@dataclass(frozen=True)
class GraphCall(CallTerm):
    """`GRAPH <stream> { … }`: the answers of a query as events, with its variables as arguments; `text` is what was written."""

    query: GraphQuery = field(kw_only=True, compare=False, repr=False)
    text: str = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True)
class Arith:
    """Arithmetic: one or two operands."""

    op: str
    args: tuple[Node, ...]
    span: Span = _SPAN


@dataclass(frozen=True)
class Chain:
    """`a < b <= c`: comparisons that share their operands."""

    operands: tuple[Node, ...]
    ops: tuple[str, ...]
    span: Span = _SPAN


@dataclass(frozen=True)
class Among:
    """`X in (1, 2)` and `X not in (1, 2)`."""

    value: Node
    options: tuple[Node, ...]
    negated: bool = False
    span: Span = _SPAN


@dataclass(frozen=True)
class Between:
    """`X between 1 and 5`."""

    value: Node
    low: Node
    high: Node
    span: Span = _SPAN


@dataclass(frozen=True)
class PolicyClause:
    """`recent shortest per (Car)`, `chronological`, `unrestricted`; `by` names the attribute that breaks ties."""

    name: str
    ties: str = "longest"
    by: str | None = None
    per: tuple[str, ...] = ()
    span: Span = _SPAN


@dataclass(frozen=True)
class Binary:
    """A binary operator of patterns, a relation of Allen, or `and`/`or` of conditions."""

    op: str
    left: Node
    right: Node
    policy: PolicyClause | None = None
    parens: bool = field(default=False, compare=False, repr=False)
    span: Span = _SPAN


@dataclass(frozen=True)
class Where:
    """`P WHERE c`."""

    pattern: Node
    condition: Node
    span: Span = _SPAN


@dataclass(frozen=True)
class Filtered:
    """`where c` in an aggregate without a value: `count(where c)`. With a value, `sum(V where c)`, it is `Where`."""

    condition: Node
    span: Span = _SPAN


@dataclass(frozen=True)
class Window:
    """`(P).q`."""

    pattern: Node
    length: Const
    span: Span = _SPAN


@dataclass(frozen=True)
class Power:
    """`P ^ n` and `P ^ n CONSECUTIVE`."""

    pattern: Node
    count: int
    consecutive: bool
    span: Span = _SPAN


@dataclass(frozen=True)
class Quantified:
    """`P+`, `P*`, `P?`, `P{2}`, `P{2,5}` and `P{2,}`: a part of a run, `least` to `most` times.

    `by` is the operator between iterations if it is written: `(P+ BY NEXT)`.
    """

    pattern: Node
    least: int
    most: int | None
    by: str | None = None
    span: Span = _SPAN


@dataclass(frozen=True)
class Not:
    """`NOT x`; with `between`, the pattern `NOT(x).[first, second]`."""

    negated: Node
    between: tuple[Node, Node] | None = None
    policy: PolicyClause | None = None
    span: Span = _SPAN


@dataclass(frozen=True)
class Was:
    """`was p(X)`: a static predicate as it was just before."""

    atom: Node
    span: Span = _SPAN


@dataclass(frozen=True)
class Holding:
    """`holding p(X)`: the maximal intervals in which a static predicate holds."""

    atom: Node
    span: Span = _SPAN


@dataclass(frozen=True)
class Group:
    """`(c1, c2)` or `{c1, c2}`: several conditions, or a set of labels. One element in parentheses is that element."""

    items: tuple[Node, ...]
    span: Span = _SPAN


@dataclass(frozen=True)
class WithinSet:
    """`{o, s} within 12h`."""

    labels: Node
    length: Const
    span: Span = _SPAN


@dataclass(frozen=True)
class Labelled:
    """`o: pattern`."""

    label: str
    body: Node
    span: Span = _SPAN


@dataclass(frozen=True)
class While:
    """`while w: not q`, `while w: collect q` and `while w: collect p: q or none`."""

    window: str
    collect: bool
    body: Node
    label: str | None = None
    none: bool = False
    span: Span = _SPAN


@dataclass(frozen=True)
class Last:
    """`last 5: collect q`, `exactly 5: collect q`; of `all: collect q` the count is `ALL_COLLECTED`."""

    count: int
    exactly: bool
    body: Node
    label: str | None = None
    none: bool = False
    span: Span = _SPAN


@dataclass(frozen=True)
class Cut:
    """`!` at the end of a static rule's body."""

    span: Span = _SPAN


Node: TypeAlias = (
    Var
    | Wild
    | Const
    | BareName
    | CallTerm
    | Arith
    | Chain
    | Among
    | Between
    | Binary
    | Where
    | Filtered
    | Window
    | Power
    | Quantified
    | Not
    | Was
    | Holding
    | Group
    | WithinSet
    | Labelled
    | While
    | Last
    | Cut
)


@dataclass(frozen=True)
class Comments:
    """What the writer said beside a statement."""

    before: tuple[str, ...] = ()
    after: str = ""
    blank: bool = False


@dataclass(frozen=True, kw_only=True)
class _Statement:
    comments: Comments = Comments()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Include(_Statement):
    path: str


@dataclass(frozen=True)
class PrefixDecl(_Statement):
    name: str
    iri: str


@dataclass(frozen=True)
class AttributeDecl:
    """`card: string from "card.id"`: a name, a type, and of an event the column that holds it, where that is called otherwise."""

    name: str
    type: str
    span: Span = _SPAN
    type_span: Span = field(default=NOWHERE, compare=False, repr=False)
    column: str = ""


@dataclass(frozen=True)
class EventDecl(_Statement):
    """`event wind(loc: string, speed: float).`"""

    name: str
    attributes: tuple[AttributeDecl, ...]


@dataclass(frozen=True)
class StaticDecl(_Statement):
    """`static store(id: string, region: string).`: a static predicate whose facts come from outside."""

    name: str
    attributes: tuple[AttributeDecl, ...]


@dataclass(frozen=True)
class FunctionDecl(_Statement):
    """`function index(t: float, h: float): float.`: a name that Python registers."""

    name: str
    attributes: tuple[AttributeDecl, ...]
    result: str


@dataclass(frozen=True)
class PolicyDecl(_Statement):
    policy: PolicyClause


@dataclass(frozen=True)
class TickDecl(_Statement):
    length: Const


@dataclass(frozen=True)
class OutputDecl(_Statement):
    names: tuple[BareName, ...]


Makes: TypeAlias = Literal["event", "fact", "latest", "no fact"]


@dataclass(frozen=True)
class Skip:
    """`SKIP PAST END`, `SKIP TO FIRST u` or `SKIP TO LAST u`; `label` is None for the end."""

    to: Literal["PAST END", "TO FIRST", "TO LAST"]
    label: str | None = None


@dataclass(frozen=True)
class Choice:
    """What ends a rule with a run: `PER (S)`, `LONGEST` or `SHORTEST`, `SKIP PAST END`. `per` is None where it is not said."""

    per: tuple[Var, ...] | None = None
    which: str | None = None
    skip: Skip | None = None
    span: Span = _SPAN


@dataclass(frozen=True)
class TopClause:
    """`TOP 10 BY sum(A) ASC WITH TIES PER (V) AS R`; `count` is None for ALL."""

    count: int | None
    by: Node
    ascending: bool = False
    ties: bool = False
    per: tuple[Var, ...] = ()
    place: Var | None = None
    span: Span = _SPAN


@dataclass(frozen=True)
class AtMostClause:
    """`AT MOST 3 PER (V) EVERY 10min`; `ONCE` is `AT MOST 1`. Without `every`, at most 3 ever."""

    count: int
    per: tuple[Var, ...] = ()
    every: Const | None = None
    span: Span = _SPAN


@dataclass(frozen=True)
class RuleStatement(_Statement):
    """`rule label: head SINCE t <- literal, literal POLICY p TOP 3 BY e AT MOST 1.`; `SINCE END` is END.

    `fact head <- …` makes facts, `fact not head <- …` ends them. `fact latest head PER (K) <- …` makes a fact and ends the
    others with the same `key`, which is None where PER is missing.
    """

    head: Node
    body: tuple[Node, ...]
    label: str | None = None
    policy: PolicyClause | None = None
    makes: Makes = "event"
    choice: Choice | None = None
    since: Node | Literal["END"] | None = None
    top: TopClause | None = None
    at_most: AtMostClause | None = None
    key: tuple[Var, ...] | None = None


@dataclass(frozen=True)
class StaticRule(_Statement):
    """`head :- literal, literal.`; a fact has no body."""

    head: Node
    body: tuple[Node, ...]
    label: str | None = None


Statement: TypeAlias = (
    Include
    | PrefixDecl
    | EventDecl
    | StaticDecl
    | FunctionDecl
    | PolicyDecl
    | TickDecl
    | OutputDecl
    | RuleStatement
    | StaticRule
)


@dataclass(frozen=True)
class Module:
    """One source text: its statements, and the comments after the last one."""

    statements: tuple[Statement, ...]
    trailing: tuple[str, ...] = ()
    span: Span = _SPAN


# The fields of each kind of nodes that hold nodes.
_INNER = {kind: tuple(f.name for f in fields(kind) if "Node" in str(f.type)) for kind in (*get_args(Node), GraphCall)}


def with_child_changed(node: Node, change: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """The nodes that differ in one part: `change` has the replacements of a part, each of which gives a node."""
    for name in _INNER[type(node)]:
        inside = getattr(node, name)
        if isinstance(inside, tuple):
            for index, part in enumerate(inside):
                yield from (_with(node, name, (*inside[:index], new, *inside[index + 1 :])) for new in change(part))
        elif inside is not None:
            yield from (_with(node, name, new) for new in change(inside))


def with_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with each of its parts changed."""
    for name in _INNER[type(node)]:
        inside = getattr(node, name)
        if isinstance(inside, tuple):
            node = _with(node, name, tuple(change(part) for part in inside))
        elif inside is not None:
            node = _with(node, name, change(inside))
    return node


def _with(node: Node, name: str, inside: object) -> Node:
    changed: dict[str, Any] = {name: inside}
    return replace(node, **changed)


def children(node: Node) -> Iterator[Node]:
    """The parts of a node, from left to right."""
    for name in _INNER[type(node)]:
        inside = getattr(node, name)
        if isinstance(inside, tuple):
            yield from inside
        elif inside is not None:
            yield inside


def is_holding(node: Node) -> bool:
    """Whether a literal ranges over intervals in which facts hold; WHERE may follow."""
    return isinstance(node, Holding) or (isinstance(node, Where) and is_holding(node.pattern))


def walk(node: Node) -> Iterator[Node]:
    """A node and all that is inside, from left to right; however long a chain is."""
    left = [node]
    while left:
        node = left.pop()
        yield node
        left.extend(reversed(list(children(node))))


def variable_counts(statement: RuleStatement) -> Counter[str]:
    """How often a rule names each variable."""
    since = () if statement.since is None or statement.since == "END" else (statement.since,)
    top = () if statement.top is None else (statement.top.by, *statement.top.per)
    per = () if statement.at_most is None else statement.at_most.per
    nodes = (statement.head, *statement.body, *since, *top, *per)
    return Counter(part.name for node in nodes for part in walk(node) if isinstance(part, Var))


def joined(node: Binary) -> list[Node]:
    """The operands of a chain of one operator: `a or b or c` has three."""
    operands: list[Node] = []
    part: Node = node
    while isinstance(part, Binary) and part.op == node.op:
        operands.append(part.right)
        part = part.left
    return [part, *reversed(operands)]


RUN_OPS = ("NEXT", "THEN", "SEQ")


def run_operators(node: Node) -> list[Binary]:
    """The operators of a chain of NEXT, THEN and SEQ without parentheses, from left to right."""
    binaries: list[Binary] = []
    while isinstance(node, Binary) and node.op in RUN_OPS and not (binaries and node.parens):
        binaries.append(node)
        node = node.left
    return binaries[::-1]


def run_operands(node: Node) -> list[Node]:
    """The parts of such a chain; anything else is one part."""
    operators = run_operators(node)
    return [operators[0].left, *(operator.right for operator in operators)] if operators else [node]


def has_label(operand: Node) -> bool:
    """Whether a part has a label: `(u: b(I))`, `(u: b(I) WHERE c)`."""
    while isinstance(operand, Where):
        operand = operand.pattern
    if isinstance(operand, Binary) and operand.op == "OR":
        return any(has_label(part) for part in joined(operand))
    return isinstance(operand, Labelled)


def is_absent(operand: Node) -> bool:
    """Whether an operand of a chain says what must be absent: `NOT(b(I))`, with or without a quantifier by mistake."""
    return isinstance(operand, Not) and operand.between is None


def is_run(node: Node) -> bool:
    """Whether a pattern is a run: a chain of NEXT, THEN and SEQ that has a NEXT, a THEN, a NOT, a quantifier or a label."""
    operands = run_operands(node)
    if any(isinstance(operand, Quantified) for operand in operands):
        return True
    if len(operands) > 1 and any(has_label(operand) or is_absent(operand) for operand in operands):
        return True
    while isinstance(node, Binary) and node.op in RUN_OPS:
        if node.op != "SEQ":
            return True
        node = node.left
    return False
