"""The nodes of the algebra: patterns, conditions, rules. One algebra for both styles of rules.

A pattern denotes rows: a binding of variables, an interval, the intervals of labelled parts, and the occurrences it was
made of. A body in the style of event queries (`o: order(N), s: shipped(N), o before s`) is a chain of AND joins whose
conditions sit at the lowest join that binds what they need, so it is the same algebra as `order(N) SEQ shipped(N)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, assert_never

from augury.algebra.clock_windows import Windows
from augury.algebra.selection import POLICIES
from augury.algebra.terms import Aggregate, Const, Expr, labels, variables
from augury.core.clock import show_duration
from augury.core.errors import NOWHERE, Span
from augury.core.model import Term

_SPAN = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Policy:
    """Which candidates pair (SEMANTICS 5)."""

    name: str = "unrestricted"  # a row of `POLICIES`
    ties: Literal["longest", "shortest", "by"] = "longest"
    by: str | None = None
    per: tuple[str, ...] = ()

    @property
    def before_join(self) -> bool:
        """Whether it chooses before the parts have to agree, as `recent per (…)` does."""
        return POLICIES[self.name].rank is not None and bool(self.per)


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
class _Asked:
    """A static predicate that is asked for. `was`: as it was one time point before the occurrence ended.

    With `at`, the facts are those valid at the end of that label, and not at the end of the occurrence.
    """

    name: str
    args: tuple[Expr, ...]
    span: Span = _SPAN
    was: bool = False
    at: str | None = None

    @property
    def predicate(self) -> tuple[str, int]:
        return (self.name, len(self.args))


class Holds(_Asked):
    """A static predicate holds; binds what it leaves open."""


class Unless(_Asked):
    """A static predicate has no answer."""


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
    """A relative temporal event: `label` is an interval counted from `anchor`.

    `length` is a constant, or an expression of each row; of `until` it is the time at which the interval ends, if the
    anchor does not end later. A length beyond `most` is an error of its row. `bound` is the greatest length that `most`
    and the conditions of the rule allow, None where nothing bounds it.
    `previous` is the window before a window by the clock: it is counted in `windows`, and has no length.
    """

    label: str
    kind: str
    anchor: str
    length: int | Expr
    span: Span = _SPAN
    windows: Windows | None = None
    most: int | None = None
    bound: int | None = None


@dataclass(frozen=True)
class NoneInside:
    """`while w: not q`: no occurrence of q inside w, closed. `where` are the conditions of q that use outer variables."""

    window: str
    pattern: Node
    where: tuple[Condition, ...] = ()
    span: Span = _SPAN


Condition: TypeAlias = Compare | Holds | Unless | AnyOf | Relates | Spans | Relative | NoneInside


# Patterns


HOLDING = "holding "


@dataclass(frozen=True)
class Scan:
    """Occurrences of a type whose arguments match.

    The maximal intervals in which facts of a static predicate `p` hold are occurrences of the type `holding p`.
    """

    type: str
    args: tuple[Expr, ...]
    span: Span = _SPAN

    @property
    def predicate(self) -> tuple[str, int]:
        return (self.type, len(self.args))

    @property
    def held(self) -> tuple[str, int] | None:
        """The static predicate, where the occurrences are intervals in which its facts hold."""
        return held_by(self.predicate)


def held_by(type: tuple[str, int]) -> tuple[str, int] | None:
    """The static predicate whose facts hold in the intervals of a type; None where its events are no such intervals."""
    return (type[0].removeprefix(HOLDING), type[1]) if type[0].startswith(HOLDING) else None


@dataclass(frozen=True)
class Instant:
    """The time point `[q, q]`."""

    time: Const
    span: Span = _SPAN


@dataclass(frozen=True)
class Every:
    """Windows by the clock: all that end at or after the least end of a standing input event, and by the clock."""

    windows: Windows
    span: Span = _SPAN


@dataclass(frozen=True)
class SessionWindow:
    """Session windows: of the occurrences of `input` with one key, the maximal groups without a pause longer than `gap`.

    Sorted by start, one belongs to the group of those before it if it starts no later than `gap` after their greatest end.
    A row is an interval, from the least start to the greatest end plus `gap`, and the key: all variables of `input`. Null is
    no key. Windows longer than `most` are not given. Lengths are in microseconds.
    """

    input: Scan
    gap: int
    most: int | None = None
    span: Span = _SPAN

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(sorted(variables(*self.input.args)))

    @property
    def text(self) -> str:
        """As it is written."""
        return " ".join(self.span.text.split())


@dataclass(frozen=True)
class Label:
    """Names the occurrences of a pattern. With `interval` it names their intervals alone: no absence excepts their events."""

    label: str
    input: Node
    span: Span = _SPAN
    interval: bool = False


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


@dataclass(frozen=True)
class Graph:
    """The solutions of a graph pattern in graph events: a row for each, with the times of its event.

    input     a Scan of a stream, or an Either of several; the variable `text` is the graph; no other node sees it.
    pattern   a group of SPARQL in its normal form, see `graph_queries.py`. GRAPH inside reads the static dataset: of the
              graphs in `visible`, or of all where that is None.
    binds     each variable of the pattern that is looked at, and the variable of the row that it becomes: null where a
              solution leaves it open, the term as its key (see `graphs/rdf_terms.py`) otherwise, by which terms are
              distinguished.
    event     a variable for the id of the event, if the query uses it.
    static    whether the pattern reads the static dataset.
    """

    input: Node
    text: str
    pattern: str
    binds: tuple[tuple[str, str], ...]
    visible: tuple[str, ...] | None = None
    event: str | None = None
    static: bool = False
    span: Span = _SPAN


@dataclass(frozen=True)
class Unfold:
    """A row for each item of a list: `of` is a list of lists, whose values become those of the variables in `binds`."""

    input: Node
    of: Expr
    binds: tuple[str, ...]
    span: Span = _SPAN


Link: TypeAlias = Literal["NEXT", "THEN", "SEQ"]
PAST_END: Literal["PAST END"] = "PAST END"


@dataclass(frozen=True)
class SkipTo:
    """The event of a match from which on the next one may start: the first or the last of a part, by its number."""

    which: Literal["FIRST", "LAST"]
    part: int


@dataclass(frozen=True)
class RunPart:
    """A part of a run: `input`, `least` to `most` times (`most` is None where there is no limit).

    input     a Scan, or an Either of Scans; a Label around it where the part has a label, and a Select around that for
              conditions on one row alone. A row of it is one iteration: one event, with its variables and its label.
    link      the operator to its left: it relates the first iteration to the last event before it, that of whichever
              part that is, since parts may be left out. That of the first part is never used.
    between   the operator between two iterations.
    own       the variables that are each iteration's own, in the order of their names: those first bound in this part,
              where it repeats. Every other variable has one value in a run, and joins: a part that has it must agree.
    where     conditions asked of every iteration, as soon as it is there. They see the iteration's own variables and
              label, `Prev` and `Aggregate` over them (an aggregate ranges over the iterations up to and with this
              one; without arguments it counts them), the variables of parts before it and its own, and the results of
              parts before it. One with a `Prev` without default is not asked of the first iteration. `=` and static
              predicates may bind: own variables, or in a part that does not repeat variables of the run.
    iterates  whether the part is a repetition although it comes once: `{1}`.
    after     conditions asked once, when the repetition is complete, before the next part: of the variables bound so
              far, and the results of this part and those before it. They are asked of an empty repetition, too.

    A condition of `where` or `after` with a variable or a label that only parts left out by this match have is not
    asked; what it would have bound stays unbound. Facts are seen at the end of the iteration (`where`), or at the end
    of the last event so far (`after`). `where` counts for what THEN takes as next, `after` does not.

        tick(S, Q)+ WHERE Q > prev(Q, last(P)), count(Q) >= 2
        →  Part(tick(S, Q), …, 1, None, own=(Q,), where=(Q > prev(Q, <last(P)>),), after=(<count(Q)> >= 2,))
    """

    input: Node
    link: Link = "NEXT"
    between: Link = "NEXT"
    least: int = 1
    most: int | None = 1
    own: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    after: tuple[Condition, ...] = ()
    iterates: bool = False
    span: Span = _SPAN

    @property
    def repeats(self) -> bool:
        """Whether the part has iterations, with variables of their own: `{1}` has one, and `?` is no repetition."""
        return self.iterates or self.most is None or self.most > 1

    @property
    def optional(self) -> bool:
        """Whether a match may leave the part out."""
        return self.least == 0

    @property
    def quantified(self) -> bool:
        """Whether the number of iterations is a choice, so that LONGEST and SHORTEST look at it."""
        return self.least != self.most

    @property
    def label(self) -> str | None:
        node = self.input
        while isinstance(node, Select):
            node = node.input
        return node.label if isinstance(node, Label) else None


GAP = "#gap"  # the label of what lies between two parts: after the earlier one ends, before the later one starts


def gap_before(part: int) -> str:
    """The label of the gap between the first iteration of a part of a run, by its number, and the event before it."""
    return f"{GAP} {part}"


def part_after(window: str) -> int | None:
    """The number of the part of a run that a gap lies before; None of other windows."""
    return int(window.removeprefix(GAP)) if window.startswith(f"{GAP} ") else None


@dataclass(frozen=True)
class RunResult:
    """An aggregate over all iterations of a part of a run, as a variable: no variable of a program has such a name.

    Of no iteration, `count` is 0, and every other aggregate is null. An aggregate without arguments counts the iterations.
    """

    name: str
    part: int
    aggregate: Aggregate


@dataclass(frozen=True)
class Run:
    """A run (SEMANTICS 10): the parts one after the other, each as often as it may, related by their links.

    parts     in the order of the text. A match has at least one event.
    key       variables that every Scan of every part has as an argument of its own. A key variable has one value in a
              run, and never null.
    among     the events of the run: a Scan for each different atom of the parts, with `_` for all but the key, without
              constants, conditions and other variables. Its rows are found for the key of the match.
    results   the aggregates over whole repetitions that the head, or a condition elsewhere, uses.
    windows   in microseconds: last end - first start of a match is at most each of them. Part of what a match is, so
              LONGEST chooses within them; not part of what THEN takes as next.
    which     ALL: every match. LONGEST: of the matches with the same key and the same first event, those whose numbers
              of iterations, one for each quantified part, are greatest, compared as a list; all ties stand. SHORTEST:
              least. These two are for NEXT and THEN only.
    skip      with LONGEST or SHORTEST: for each key, matches are taken in the order of their first events, then their
              second, and so on. PAST_END: the next one taken starts after the last event of the one before has ended.
              SkipTo: it starts no earlier than the first, or last, event of that part starts, and its first event is
              later in the order of events. Matches made of the same events are taken together.
    where     conditions that are asked of the complete match only: those on facts that change in time, as written at
              the whole run (facts are seen at the end of the match), intervals counted from a part, and absences in
              them; `A THEN NOT(b) THEN B` is one in the gap before B. Like `where` of a part, they are not asked where a part that they need is left out. A match is one
              that meets them: LONGEST and SKIP choose among those that do.

    Links, for an event A of the match and the row B that comes after it: B follows A if A ends before B starts, and X
    lies between if it starts after A ends and ends before B starts.
        SEQ    B follows A.
        NEXT   B follows A, and no row of `among` with the key of the match lies between.
        THEN   B follows A, and no row of B's part lies between that joins with the match so far and meets B's `where`.

    A row binds the key, all variables that are no iteration's own (null where all parts that have them are left out) and
    the results. It has the intervals of the labels of parts that do not repeat, and are not left out. Its interval is
    from the start of the first event to the end of the last; it is made of the events of all iterations, in order.
    """

    parts: tuple[RunPart, ...]
    key: tuple[str, ...] = ()
    among: tuple[Scan, ...] = ()
    results: tuple[RunResult, ...] = ()
    windows: tuple[int, ...] = ()
    which: Literal["ALL", "LONGEST", "SHORTEST"] = "ALL"
    skip: Literal["PAST END"] | SkipTo | None = None
    where: tuple[Condition, ...] = ()
    span: Span = _SPAN


Node: TypeAlias = (
    Scan | Instant | Every | SessionWindow | Label | Select | Within | Join | Either | Repeat | Graph | Unfold | Run
)


# Rules


@dataclass(frozen=True)
class Total:
    """An aggregate over what a rule collects, as a variable: no variable of a program has such a name."""

    name: str
    aggregate: Aggregate


SEEN = "#seen"  # the label at whose end the facts in filters of collected intervals are seen
ALL_COLLECTED = 1 << 60  # as `last` of a collect: `all: collect q`


@dataclass(frozen=True)
class Collect:
    """The collected rows of aggregates: rows of `pattern` inside a window, or the last n, that agree with the rule's row.

    where     conditions on what is collected, which may use the variables and labels of the row.
    by        variables that only the collected rows bind, and that make groups: a row has a group for each value.
    totals    the aggregates that range over a group, as variables of the row that it gives.
    label     the name of the collected part, whose times conditions in `where` and aggregates may use.
    none      `or none`: where nothing is collected there is a group, too; count is 0, other aggregates are null.
    """

    pattern: Node
    window: str | None = None
    last: int | None = None
    exactly: bool = False
    where: tuple[Condition, ...] = ()
    span: Span = _SPAN
    by: tuple[str, ...] = ()
    totals: tuple[Total, ...] = ()
    label: str | None = None
    none: bool = False

    @property
    def clips(self) -> bool:
        """Whether it collects intervals in which facts hold: the part of each inside the window."""
        return any(isinstance(node, Scan) and node.held is not None for node in walk(self.pattern))


@dataclass(frozen=True)
class Top:
    """`TOP n BY e PER (V) AS R`: of rows with one cover and one value of `per`, the n greatest (`ascending`: least).

    Without `count` all have a place. `place` is the variable that is bound to it, from 1. With `ties`, rows whose value
    equals that of the n-th follow, in the places after it; null equals nothing.
    """

    count: int | None
    by: Expr
    ascending: bool = False
    ties: bool = False
    per: tuple[str, ...] = ()
    place: str | None = None
    span: Span = _SPAN


@dataclass(frozen=True)
class AtMost:
    """`AT MOST n PER (V) EVERY d`: of the rows with one value of `per`, in the order of the events that they make, those
    before which fewer than n rows that end within `every` (microseconds; None: at any time) were given.
    """

    count: int
    per: tuple[str, ...] = ()
    every: int | None = None
    span: Span = _SPAN

    @property
    def text(self) -> str:
        """The clause as it is written."""
        per = f" PER ({', '.join(self.per)})" if self.per else ""
        return f"AT MOST {self.count}{per}{'' if self.every is None else f' EVERY {show_duration(self.every)}'}"


@dataclass(frozen=True)
class Rule:
    """`head <- body`: an event for every row, over the cover of the row and the rule's windows.

    The rows are those of the body; `collects` adds groups and their totals to them, one after the other; `having` are
    conditions on these; `top` chooses among them, and `at_most` among the events that they make. `since` is where the event starts, if not with its cover: a time, or
    END for its end. `until` is where the event ends, if not with its cover: what a query waits for ends later than its matches.
    An event that ends at most `delay` microseconds before its cover is given when that has ended. `makes` is the
    static predicate whose facts the events make, or end: they are events of a type that no other rule reads. With
    `latest`, the places of a key among the arguments, a fact ends all others with the same key.
    """

    label: str
    type: str
    args: tuple[Expr, ...]
    body: Node
    covers: tuple[str, ...] = ()
    collects: tuple[Collect, ...] = ()
    span: Span = _SPAN
    makes: str = ""
    having: tuple[Condition, ...] = ()
    top: Top | None = None
    at_most: AtMost | None = None
    since: Expr | Literal["END"] | None = None
    until: Expr | None = None
    delay: int = 0
    latest: tuple[int, ...] | None = None

    @property
    def ends_facts(self) -> bool:
        """Whether its events end facts of `makes`."""
        return self.type == made_type(self.makes, "no fact")

    @property
    def predicate(self) -> tuple[str, int]:
        return (self.type, len(self.args))

    @property
    def patterns(self) -> tuple[Node, ...]:
        """The patterns that the rule reads: its body, and what it collects."""
        return (self.body, *(collect.pattern for collect in self.collects))

    @property
    def nodes(self) -> Iterator[Node]:
        """All parts of its patterns, absences included."""
        return (node for pattern in self.patterns for node in walk_all(pattern))

    @property
    def conditions(self) -> Iterator[Condition]:
        """All conditions: those in its patterns, then those beside."""
        yield from (condition for node in self.nodes for condition in conditions(node))
        yield from self.outer_conditions

    @property
    def outer_conditions(self) -> tuple[Condition, ...]:
        """The conditions outside of its patterns: on what is collected, and on groups."""
        return (*(c for collect in self.collects for c in collect.where), *self.having)

    @property
    def held(self) -> set[tuple[str, int]]:
        """The static predicates over whose intervals it ranges."""
        return {held for node in self.nodes if isinstance(node, Scan) and (held := node.held) is not None}

    @property
    def values(self) -> tuple[Expr, ...]:
        """The expressions of the head: its arguments, the start of the event, the key of a ranking."""
        start = () if self.since is None or self.since == "END" else (self.since,)
        end = () if self.until is None else (self.until,)
        return (*self.args, *start, *end, *((self.top.by,) if self.top else ()))

    @property
    def per(self) -> frozenset[str]:
        """The variables for whose values TOP and AT MOST choose."""
        return frozenset((*(self.top.per if self.top else ()), *(self.at_most.per if self.at_most else ())))

    @property
    def totals(self) -> dict[str, Aggregate]:
        """The aggregates over collected rows, by the variables that hold them."""
        return {total.name: total.aggregate for collect in self.collects for total in collect.totals}


ANY_VALUE = Term("any value", ())  # `_` in the head of `fact not`: whatever holds; no program can write this term


def made_type(name: str, makes: str) -> str:
    """The type of the events that make facts of a predicate (`fact` and `latest`), or end them (`no fact`)."""
    return f"{'fact' if makes == 'latest' else makes} {name}"


@dataclass(frozen=True)
class Clause:
    """A static rule; a fact has no body. `cut` commits to the clause, for that call, once its body holds."""

    name: str
    args: tuple[Expr, ...]
    body: tuple[Condition, ...] = ()
    cut: bool = False
    span: Span = _SPAN

    @property
    def predicate(self) -> tuple[str, int]:
        return (self.name, len(self.args))


def inputs(node: Node) -> tuple[Node, ...]:
    """The patterns directly below, without absences."""
    match node:
        case Scan() | Instant() | Every():
            return ()
        case Label() | Select() | SessionWindow() | Within() | Repeat() | Graph() | Unfold():
            return (node.input,)
        case Join() | Either():
            return (node.left, node.right)
        case Run():
            return tuple(part.input for part in node.parts)
        case _:
            assert_never(node)


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with each of its inputs changed; absences stay."""
    match node:
        case Scan() | Instant() | Every():
            return node
        case SessionWindow():
            below = change(node.input)
            assert isinstance(below, Scan), "a session is of the occurrences of an atom"
            return replace(node, input=below)
        case Label() | Select() | Within() | Repeat() | Graph() | Unfold():
            return replace(node, input=change(node.input))
        case Join() | Either():
            return replace(node, left=change(node.left), right=change(node.right))
        case Run():
            return replace(node, parts=tuple(replace(part, input=change(part.input)) for part in node.parts))
        case _:
            assert_never(node)


def mapped_all(node: Node, change: Callable[[Node], Node]) -> Node:
    """The node with each of its inputs, and each pattern that must be absent, changed."""
    below = mapped(node, change)
    if isinstance(below, Select | Join | Run) and any(isinstance(c, NoneInside) for c in below.where):
        where = (replace(c, pattern=change(c.pattern)) if isinstance(c, NoneInside) else c for c in below.where)
        below = replace(below, where=tuple(where))
    if not isinstance(below, Join) or below.absent is None:
        return below
    return replace(below, absent=change(below.absent))


def mapped_terms(node: Node, change: Callable[[Expr], Expr]) -> Node:
    """The pattern with the arguments of its events, and the expressions in its conditions, changed."""
    below = mapped(node, lambda inner: mapped_terms(inner, change))
    if isinstance(below, Scan):
        return replace(below, args=tuple(map(change, below.args)))
    if isinstance(below, Select):
        return replace(below, where=tuple(mapped_condition(c, change) for c in below.where))
    return below


def conditions(node: Node) -> tuple[Condition, ...]:
    """The conditions of a node; of a run, those of its parts as well."""
    if isinstance(node, Run):
        return (*(c for part in node.parts for c in (*part.where, *part.after)), *node.where)
    return node.where if isinstance(node, Select | Join) else ()


def absences(node: Node) -> tuple[Node, ...]:
    """The patterns whose absence this node asks for. What must be absent after THEN is one of the inputs as well."""
    inside = tuple(c.pattern for c in conditions(node) if isinstance(c, NoneInside))
    if isinstance(node, Run):
        return (*inside, *(node.among if any(link == "NEXT" for _, link in links(node)) else ()))
    return inside + ((node.absent,) if isinstance(node, Join) and node.absent is not None else ())


def links(run: Run) -> Iterator[tuple[RunPart, Link]]:
    """The links of a run, each with the part to its right."""
    for number, part in enumerate(run.parts):
        if number:
            yield part, part.link
        if part.repeats:
            yield part, part.between


def walk(node: Node) -> Iterator[Node]:
    """The pattern and all its parts, without absences."""
    yield node
    for part in inputs(node):
        yield from walk(part)


def scans(node: Node) -> list[Scan]:
    """The scans of a pattern, without those of absences."""
    return [part for part in walk(node) if isinstance(part, Scan)]


def walk_all(node: Node) -> Iterator[Node]:
    """The pattern and all its parts, absences included."""
    for part in walk(node):
        yield part
        for absent in absences(part):
            yield from walk_all(absent)


def written(node: Node) -> Iterator[Node]:
    """The pattern and all its parts as the program has them: without the events of runs, which are made of these."""
    for part in walk(node):
        yield part
        for absent in absences(part):
            if not (isinstance(part, Run) and absent in part.among):
                yield from written(absent)


def walk_condition(condition: Condition) -> Iterator[Condition]:
    """The condition, and those inside where it joins several by `or`."""
    yield condition
    if isinstance(condition, AnyOf):
        for option in condition.options:
            for inner in option:
                yield from walk_condition(inner)


def condition_terms(condition: Condition) -> Iterator[Expr]:
    """The expressions of a condition, without those of absent patterns."""
    for part in walk_condition(condition):
        if isinstance(part, Compare):
            yield part.left
            yield part.right
        elif isinstance(part, Holds | Unless):
            yield from part.args
        elif isinstance(part, Relative) and not isinstance(part.length, int):
            yield part.length
        elif isinstance(part, NoneInside):
            for inner in part.where:
                yield from condition_terms(inner)


def mapped_condition(condition: Condition, change: Callable[[Expr], Expr]) -> Condition:
    """The condition with each of its expressions changed; absences stay as they are."""
    match condition:
        case Compare():
            return replace(condition, left=change(condition.left), right=change(condition.right))
        case Holds() | Unless():
            return replace(condition, args=tuple(map(change, condition.args)))
        case AnyOf():
            options = tuple(tuple(mapped_condition(c, change) for c in option) for option in condition.options)
            return replace(condition, options=options)
        case Relative() if not isinstance(condition.length, int):
            return replace(condition, length=change(condition.length))
        case NoneInside() | Relates() | Relative() | Spans():
            return condition
        case _:
            assert_never(condition)


def asked_at(condition: Condition, label: str) -> Condition:
    """The condition with its facts as they are at the end of a label; absences stay as they are."""
    match condition:
        case Holds() | Unless():
            return replace(condition, at=label)
        case AnyOf():
            options = tuple(tuple(asked_at(c, label) for c in option) for option in condition.options)
            return replace(condition, options=options)
        case Compare() | NoneInside() | Relates() | Relative() | Spans():
            return condition
        case _:
            assert_never(condition)


def condition_vars(condition: Condition) -> set[str]:
    match condition:
        case Compare():
            return variables(condition.left, condition.right)
        case Holds() | Unless():
            return variables(*condition.args)
        case AnyOf():
            return {v for option in condition.options for c in option for v in condition_vars(c)}
        case Relative() if not isinstance(condition.length, int):
            return variables(condition.length)
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
            return labels(*condition.args) | ({condition.at} if condition.at else set())
        case AnyOf():
            return {v for option in condition.options for c in option for v in condition_labels(c)}
        case Relates():
            return {condition.left, condition.right}
        case Spans():
            return set(condition.labels)
        case Relative():
            return {condition.anchor} | (set() if isinstance(condition.length, int) else labels(condition.length))
        case NoneInside():
            return {condition.window}
        case _:
            assert_never(condition)


def bound_vars(node: Node) -> set[str]:
    """The variables that every row of the pattern binds, those that conditions bind included."""
    match node:
        case Scan():
            return variables(*node.args)
        case Instant() | Every():
            return set()
        case Either():
            return bound_vars(node.left) & bound_vars(node.right)
        case Unfold():
            return bound_vars(node.input) | set(node.binds)
        case Graph():
            added = {variable for _, variable in node.binds} | ({node.event} if node.event else set())
            return bound_vars(node.input) - {node.text} | added
        case Run():
            local = {v for part in node.parts for v in part.own}
            bound = {v for part in node.parts for v in bound_vars(part.input)} | _bound_by(conditions(node))
            return bound - local | {result.name for result in node.results}
        case Join() | Label() | Repeat() | Select() | SessionWindow() | Within():
            return {v for part in inputs(node) for v in bound_vars(part)} | _bound_by(conditions(node))
        case _:
            assert_never(node)


def _bound_by(where: tuple[Condition, ...]) -> set[str]:
    """The variables of conditions that may bind."""
    binding = (c for c in where if isinstance(c, Holds) or (isinstance(c, Compare) and c.op == "="))
    return {v for condition in binding for v in condition_vars(condition)}


def bound_labels(node: Node) -> set[str]:
    """The labels whose intervals every row has."""
    result = {node.label} if isinstance(node, Label) else set()
    result |= {c.label for c in conditions(node) if isinstance(c, Relative)}
    if isinstance(node, Run):
        result |= {c.window for c in node.where if isinstance(c, NoneInside) and part_after(c.window) is not None}
        return result.union(*(bound_labels(part.input) for part in node.parts if not (part.repeats or part.optional)))
    return result.union(*(bound_labels(part) for part in inputs(node)))


def event_types(node: Node) -> set[tuple[str, int]]:
    """The types that the pattern reads, absences included."""
    return {n.predicate for n in walk_all(node) if isinstance(n, Scan)}
