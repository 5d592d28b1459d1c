"""SPAseQ queries as values of the algebra: sequences of graph patterns over streams of RDF graphs (SEMANTICS 8).

An executor reads nothing but these. Graph patterns and expressions are SPARQL text of a normal form: no comments, one
blank between two words, every IRI written in full, so that no prologue is needed and equal patterns are equal text.
Variables are named without their question mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, assert_never

from augury.algebra.nodes import SkipTo
from augury.core.clock import Timestamp
from augury.core.errors import NOWHERE, Span

_SPAN = field(default=NOWHERE, compare=False, repr=False)

Separator: TypeAlias = Literal[",", ";", ":"]
Quantifier: TypeAlias = Literal["", "+", "?", "!"]
AggregateName: TypeAlias = Literal["COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"]


def stream_type(iri: str) -> str:
    """The type of the graph events of a stream: its IRI in angle brackets. Their only argument is the graph's text."""
    return f"<{iri}>"


def stream_of(type: str) -> str | None:
    """The stream whose graph events are of a type; None where they are others."""
    return type[1:-1] if type.startswith("<") else None


# What is read


@dataclass(frozen=True)
class StreamClause:
    """`FROM STREAM S1 <iri>`: the events of type `<iri>` under the name `S1`. Contiguity is over all that are declared."""

    name: str
    iri: str
    span: Span = _SPAN

    @property
    def type(self) -> str:
        return stream_type(self.iri)


@dataclass(frozen=True)
class DatasetClause:
    """`FROM <iri>` or, `named`, `FROM NAMED <iri>`: a graph of the static dataset, which GRAPH reads.

    Where a query has a `FROM NAMED`, GRAPH sees the graphs that are listed and no other; else all that are given.
    """

    iri: str
    named: bool
    span: Span = _SPAN


@dataclass(frozen=True)
class Sliding:
    """`WITHIN 30 MINUTES`: last time - first time of a match is at most `length`, in microseconds."""

    length: int
    span: Span = _SPAN


@dataclass(frozen=True)
class Tumbling:
    """`WITHIN 1 HOURS TUMBLING FROM t`: all of a match lies in one window `[o + k·length, o + (k + 1)·length)`.

    `o` is `origin`: a point of calendar time, or of a logical clock where it is an integer, and then k >= 0; without one
    it is 0, and k of either sign. `length` is in microseconds.
    """

    length: int
    origin: Timestamp | int | None = None
    span: Span = _SPAN


@dataclass(frozen=True)
class EventCount:
    """`WITHIN 10 EVENTS`: at most so many events of the declared streams have a time from the first to the last of a match.

    All at these two times count as well. Under PARTITION BY, those of the match's partition count.
    """

    count: int
    span: Span = _SPAN


Window: TypeAlias = Sliding | Tumbling | EventCount


# Graph patterns


@dataclass(frozen=True)
class Expression:
    """An expression of SPARQL without aggregates: `?p2 > ?p1 * 2`. It is evaluated on the mapping of a match.

    variables   all that it uses, in the order of the text. One that the mapping does not bind is an error of SPARQL,
                except inside BOUND and COALESCE: a filter fails, a column is null.
    previous    the values that it has of the iteration before; only filters of GPMs that repeat have some.
    """

    text: str
    variables: tuple[str, ...]
    span: Span = _SPAN
    previous: tuple[PreviousValue, ...] = ()

    @property
    def shown(self) -> str:
        """The text with each PREV as it is written."""
        text = self.text
        for value in reversed(self.previous):
            text = text.replace(f"?{value.name}", value.shown)
        return text

    @property
    def needs(self) -> tuple[str, ...]:
        """The variables that it uses of the iteration that it is asked of, those of defaults among them."""
        defaults = (v for value in self.previous if value.default for v in value.default.variables)
        return tuple(dict.fromkeys((*self.variables, *defaults)))


@dataclass(frozen=True)
class PreviousValue:
    """`PREV(?v, default)` in a filter: what `?v` was one iteration of a `+` earlier, as a variable of the filter's text.

    name      of that variable: none that is written has such a name.
    of        a variable that is each iteration's own. Unbound where the iteration before has not bound it.
    default   what it is in the first iteration, by the mapping there. Without one the filter is not asked of the first.
    """

    name: str
    of: str
    default: Expression | None = None
    span: Span = _SPAN

    @property
    def shown(self) -> str:
        return f"PREV(?{self.of}{f', {self.default.text}' if self.default else ''})"


@dataclass(frozen=True)
class Gpm:
    """`DEFINE GPM A ON S1, S2 { … }`: a graph pattern that is matched with single events.

    streams     IRIs: an event matches if it comes from one of them and the pattern has a solution on its graph.
    pattern     a group of SPARQL, braces included: `{ ?c <http://e/price> ?p . FILTER ( ?p > 20 ) }`. Asked of the event's
                graph as default graph; GRAPH inside reads the static dataset. Its solutions are a *set* of mappings.
    variables   those that a solution may bind, in the order of the text.
    certain     those that every solution binds: not only in an OPTIONAL, one side of a UNION, or by BIND.
    filters     filters of the outermost group that use PREV, or a variable which the pattern does not certainly bind and
                some other GPM may: they are no part of `pattern`. They are asked of the join of the match so far with a
                solution, at every place of the GPM in the sequence, also when `;` decides what is next and `!` what is absent.
                (Where nothing came before, the join is the solution alone.)
    graphs      the names of the static graphs that GRAPH reads, None among them for `GRAPH ?g`; empty where there is no GRAPH.
    """

    name: str
    streams: tuple[str, ...]
    pattern: str
    variables: tuple[str, ...]
    certain: tuple[str, ...]
    filters: tuple[Expression, ...] = ()
    graphs: tuple[str | None, ...] = ()
    span: Span = _SPAN


# The sequence


@dataclass(frozen=True)
class Use:
    """A GPM by its name. At time t, for each event at t and each of its solutions that is compatible with the mapping of
    the match so far and whose join meets the GPM's filters: the join."""

    name: str
    span: Span = _SPAN


@dataclass(frozen=True)
class Both:
    """`left & right`, at one time: what `right` makes of each mapping that `left` makes. It may use one event twice."""

    left: Operand
    right: Operand


@dataclass(frozen=True)
class GraphAlternative:
    """`left | right`: what either makes; variables of the other stay unbound."""

    left: Operand
    right: Operand


Operand: TypeAlias = Use | Both | GraphAlternative


@dataclass(frozen=True)
class Item:
    """A place in the sequence.

    separator   to its left; that of the first item is never used. With m the mapping of the match so far and t its last
                time: `:` any later time at which the operand makes something of m; `;` such a time with no other such
                time between t and it; `,` the next time after t at which there is any event on a declared stream (of the
                match's partition, under PARTITION BY). Mappings are joined, and blocked, one by one.
    quantifier  `+`: at one or more times. Every iteration joins with m as it was before the first, so what m has not
                bound is each iteration's own; the match continues with the mapping of the last. The separator is to the
                left of the first iteration; between two stands `,`, or `;` where the item begins the match.
                `!`: at no time strictly between the items around it does the operand make anything of m; the
                separator of the next item relates that to the one before. Several in a row are asked with the same m.
                `?`: once, or `!`; where it begins the sequence, once, or the sequence begins after it. See `readings`.
    """

    operand: Operand
    quantifier: Quantifier = ""
    separator: Separator = ","
    span: Span = _SPAN


@dataclass(frozen=True)
class SequenceStep:
    """An item that is matched, and those before it that must not be: the items of one `!` after the other.

    leads   whether it is the first step of its sequence.
    """

    number: int
    item: Item
    absent: tuple[Item, ...] = ()
    leads: bool = False

    @property
    def repeats(self) -> bool:
        return self.item.quantifier == "+"

    @property
    def between(self) -> Separator:
        """The separator of two iterations."""
        return ";" if self.leads else ","


@dataclass(frozen=True)
class StepSequence:
    """A sequence without `?`: steps, and what must be absent after the last one.

    `absent` is looked for at times t with last time < t <= first time + length of the window, or before the end of the
    tumbling window, whatever the separators. A match of a reading with it ends at its last matched event as all do, but
    is given only once the clock has reached that bound.
    """

    steps: tuple[SequenceStep, ...]
    absent: tuple[Item, ...] = ()


def readings(items: tuple[Item, ...]) -> tuple[StepSequence, ...]:
    """The sequences without `?` that a sequence stands for: each `?` is there once, or is a `!`.

    One that begins the sequence is there once, or the sequence begins after it: no event says since when it would have to
    be absent. A match of the sequence is a match of one of them, and has at least one event.

        A; B?; C   →   A; B; C    A; B!; C
        B?; C      →   B; C       C
    """
    step_sequences: list[StepSequence] = [StepSequence(())]
    for number, item in enumerate(items):
        step_sequences = [further for reading in step_sequences for further in _with(reading, number, item)]
    return tuple(reading for reading in step_sequences if reading.steps)


def _with(reading: StepSequence, number: int, item: Item) -> Iterator[StepSequence]:
    if item.quantifier != "!":
        yield StepSequence((*reading.steps, SequenceStep(number, item, reading.absent, leads=not reading.steps)))
    if item.quantifier in ("!", "?"):
        yield StepSequence(reading.steps, (*reading.absent, item) if reading.steps else ())


@dataclass(frozen=True)
class MatchChoice:
    """`LONGEST SKIP TO LAST B`, behind a sequence: which of its matches are taken. Its separators are `,` and `;`.

    A match is compared by the times of its iterations, and what the operand makes at each by itself: its solutions, with
    its variables in the order of the text as terms in the order of their text, what is unbound first.

    which   LONGEST: of the matches with the same first iteration (and the same values of the partition), those with the
            most iterations in the first `+` in which they differ; all ties stand. SHORTEST: the fewest. ALL has no skip.
            Windows and absences are part of what a match is, GROUP BY and HAVING come after.
    skip    for each value of the partition, matches are taken in the order of their first iterations, then their second,
            and so on. PAST END: the next one begins after the last time of the one before. SkipTo an item, by its number:
            no earlier than its first, or last, time, and with a later first iteration. Matches with the same iterations
            are taken together.
    """

    which: Literal["ALL", "LONGEST", "SHORTEST"] = "ALL"
    skip: Literal["PAST END"] | SkipTo | None = None
    span: Span = _SPAN


# What is answered


@dataclass(frozen=True)
class GraphAggregate:
    """An aggregate of SPARQL, as a variable: expressions use that instead. No variable of a query has such a name.

    of          None for `COUNT(*)`, which stands in queries with GROUP BY only.
    item        the number of the `+` whose iterations it ranges over, in their order; None: over the match as one row.
    separator   of GROUP_CONCAT.

    Of nothing: COUNT, SUM and AVG are 0, GROUP_CONCAT is the empty string, the others are unbound. A value that is an
    error or unbound is left out by COUNT, MIN, MAX, SAMPLE and GROUP_CONCAT; it makes SUM and AVG unbound. SAMPLE is the
    first. A sum of doubles is the correctly rounded one. MIN and MAX go by the order of ORDER BY.
    """

    name: str
    function: AggregateName
    of: Expression | None
    distinct: bool = False
    item: int | None = None
    separator: str = " "
    span: Span = _SPAN


@dataclass(frozen=True)
class ProjectedColumn:
    """`?v`, or `(expression AS ?v)`. An expression may use the variables of columns before it. Of GROUP BY, a key."""

    name: str
    expression: Expression | None = None
    span: Span = _SPAN


@dataclass(frozen=True)
class SelectForm:
    """A row becomes an event of the query's name, its arguments the columns in order, from the first to the last time.

    Rows are a set over (first time, last time, values), so DISTINCT changes nothing; it is kept to be shown.
    """

    columns: tuple[ProjectedColumn, ...]
    distinct: bool = False


@dataclass(frozen=True)
class Construct:
    """The graph of a match, of all its rows together, becomes an event on `stream` at the match's last time.

    template    triples of terms: `?v`, `_:b`, or a term of N-Triples. A triple with an unbound variable, or that RDF does
                not allow, is left out; `_:b` is a new blank node for each row. A match whose graph is empty is no event.
    """

    template: tuple[tuple[str, str, str], ...]
    stream: str


@dataclass(frozen=True)
class Order:
    """A key of ORDER BY."""

    key: Expression
    descending: bool = False


@dataclass(frozen=True)
class RowModifiers:
    """The clauses on the rows of a match: GROUP BY, HAVING, ORDER BY, LIMIT. All of it is within one match.

    Without `group_by` a match has one row: its mapping, which has the values of the last iteration of each `+`. With it,
    its rows are the groups of the iterations of `item` (of the match as one row, where that is None) by the values of
    the keys: a key's variable has its value, what is the same in all iterations stays, and the rest is unbound.
    Unbound is a value of a key like any other. Groups come in the order of their first iterations.

    having      rows for which all hold.
    order_by    as in SPARQL; rows that are equal by it stay in their order.
    limit       the first rows, at most so many; None: all.
    """

    group_by: tuple[ProjectedColumn, ...] = ()
    item: int | None = None
    having: tuple[Expression, ...] = ()
    order_by: tuple[Order, ...] = ()
    limit: int | None = None


@dataclass(frozen=True)
class GraphQuery:
    """A query of SPAseQ.

    name        of the query, and of its events where it is a SELECT.
    streams     at least one, in the order of the text.
    datasets    graphs of the static dataset that it lists.
    window      None: a match may take any time.
    partition   variables that every item which is matched certainly binds. A match has one value for each; an event belongs to the
                values that a solution of any GPM on its stream has (its pattern, without `filters`). `,`, the iterations
                of `+` and `WITHIN n EVENTS` see the events of the match's values only: the match begins with the mapping that
                binds the partition variables to them.
    items       the sequence. It does not begin with `!`, nor with `!` after items with `?` that may be left out.
    gpms        those that the sequence uses, in the order of their definition.
    answer      what a row becomes.
    aggregates  all that the answer and `rows` use, each once.
    rows        what is said of the rows of a match.
    inside      whether a rule has it inside, as GRAPH: no other rule reads its answers.
    choice      which of the matches are taken. One that is not ALL comes with no `?`, with no `!` at the end, and with no
                window of events.

    A match of a reading: a mapping and a time for each step (for `+`, for each iteration), times strictly increasing. Values
    join by RDF term; comparisons in expressions go by value. Blank nodes are those of their event. Events are those that
    stand, of a stream that queries construct those that they make as well.
    """

    name: str
    streams: tuple[StreamClause, ...]
    items: tuple[Item, ...]
    gpms: tuple[Gpm, ...]
    answer: SelectForm | Construct
    window: Window | None = None
    partition: tuple[str, ...] = ()
    datasets: tuple[DatasetClause, ...] = ()
    aggregates: tuple[GraphAggregate, ...] = ()
    rows: RowModifiers = RowModifiers()
    inside: bool = False
    choice: MatchChoice = MatchChoice()
    span: Span = _SPAN

    @property
    def predicate(self) -> tuple[str, int]:
        """The type of the events that it derives."""
        match self.answer:
            case SelectForm():
                return (self.name, len(self.answer.columns))
            case Construct():
                return (stream_type(self.answer.stream), 1)
            case _:
                assert_never(self.answer)

    @property
    def reads(self) -> tuple[tuple[str, int], ...]:
        """The types of the events that it reads: those of all declared streams, since contiguity sees them all."""
        return tuple(dict.fromkeys((stream.type, 1) for stream in self.streams))

    @property
    def answers_late(self) -> bool:
        """Whether an answer may be given only after its end: something must be absent after the last matched event."""
        return any(reading.absent for reading in readings(self.items))

    def gpm(self, name: str) -> Gpm:
        return next(gpm for gpm in self.gpms if gpm.name == name)


# What follows from the shape


def uses(operand: Operand) -> Iterator[Use]:
    """The GPMs of an operand, from left to right."""
    match operand:
        case Use():
            yield operand
        case Both() | GraphAlternative():
            yield from uses(operand.left)
            yield from uses(operand.right)
        case _:
            assert_never(operand)


def may_bind(operand: Operand, query: GraphQuery) -> tuple[str, ...]:
    """The variables that an operand may bind, in the order of the text."""
    return tuple(dict.fromkeys(v for use in uses(operand) for v in query.gpm(use.name).variables))


def surely_binds(operand: Operand, query: GraphQuery) -> frozenset[str]:
    """The variables that an operand binds wherever it makes something."""
    match operand:
        case Use():
            return frozenset(query.gpm(operand.name).certain)
        case Both():
            return surely_binds(operand.left, query) | surely_binds(operand.right, query)
        case GraphAlternative():
            return surely_binds(operand.left, query) & surely_binds(operand.right, query)
        case _:
            assert_never(operand)


@dataclass(frozen=True)
class BoundVariables:
    """The variables that a match may have bound at some place, and those that it has bound there for sure."""

    may: frozenset[str]
    surely: frozenset[str]


def bound_before(reading: StepSequence, number: int, query: GraphQuery) -> BoundVariables:
    """The variables that a match has bound before its step of this number; the number of steps: at its end."""
    may, surely = set(query.partition), set(query.partition)
    for step in reading.steps[:number]:
        may.update(may_bind(step.item.operand, query))
        surely |= surely_binds(step.item.operand, query)
    return BoundVariables(frozenset(may), frozenset(surely))


def step_variables(reading: StepSequence, number: int, query: GraphQuery) -> BoundVariables:
    """The variables of a repeated step that may be each iteration's own, and those that are for sure.

    They differ only where something before may have bound one: an OPTIONAL, one side of `|`.
    """
    operand, before = reading.steps[number].item.operand, bound_before(reading, number, query)
    there = frozenset(may_bind(operand, query))
    return BoundVariables(there - before.surely, there - before.may)
