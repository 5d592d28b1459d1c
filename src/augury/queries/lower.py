"""Queries of SPAseQ as rules over runs: what each operand of the sequence makes is a type of events, the sequence is a run.

    SELECT ?c … SEQ(A ; B+ , C)     `q·A`(c, p) <- graph { … }           one for each operand that is matched
                                    q(value(c), …) <- `q·A`(c, p) THEN `q·B`(c, p2)+ NEXT `q·C`(c)

Values of these events are RDF terms as their keys, so that joins go by term; filters are functions of terms. A variable that
both the match so far and an operand surely bind joins by its name; where either may leave it open, or it is that of the last
iteration of a `+`, a function compares. Contiguity sees all events of the declared streams: they are events of the run.
Each `?` is read both ways, and each reading is a rule. An absence is looked for between the times of the steps around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.graph_queries import (
    Alternative,
    Both,
    Construct,
    EventCount,
    Expression,
    GraphQuery,
    Item,
    Operand,
    Reading,
    Select,
    Sliding,
    Step,
    Tumbling,
    Use,
    may_bind,
    readings,
    surely_binds,
)
from augury.algebra.nodes import (
    Compare,
    Condition,
    Either,
    Graph,
    Join,
    Label,
    Link,
    Node,
    NoneInside,
    Part,
    Result,
    Rule,
    Run,
    Scan,
)
from augury.algebra.nodes import Select as Where
from augury.algebra.plan import Attribute, Plan
from augury.algebra.scalar import Function
from augury.algebra.terms import Aggregate, Apply, Const, Expr, Moment, Var, Wild
from augury.clock import SECOND, Timestamp
from augury.queries.term_aggregates import TermAggregate
from augury.queries.term_functions import AsValue, Computed, FirstBound, Holds, Meets, SameWindow

LINKS: dict[str, Link] = {",": "NEXT", ";": "THEN", ":": "SEQ"}
_TRUE = Const(True)


class NotLowered(Exception):
    """A query that rules cannot say yet, and why."""


def lowered(plan: Plan) -> Plan:
    """The plan with rules for its queries; those that rules cannot say stay."""
    rules, functions, declared, left = list(plan.rules), dict(plan.functions), dict(plan.declared), []
    aggregates = dict(plan.aggregates)
    for query in plan.graph_queries:
        lowering = _Lowering(query, plan.tick or SECOND)
        try:
            made = lowering.rules()
        except NotLowered:
            left.append(query)
            continue
        rules += made
        functions |= lowering.functions
        aggregates |= lowering.aggregates
        declared.update({stream.type: (Attribute("graph", "string"),) for stream in query.streams})
    return replace(
        plan,
        rules=tuple(rules),
        functions=functions,
        aggregates=aggregates,
        declared=declared,
        graph_queries=tuple(left),
    )


def why_not_lowered(query: GraphQuery) -> str:
    """What of a query rules cannot say; empty where they say all of it."""
    try:
        _Lowering(query, SECOND).rules()
    except NotLowered as reason:
        return str(reason)
    return ""


@dataclass(frozen=True)
class _Known:
    """What a match has bound so far: for each variable the value that it has, and which have one for sure."""

    values: Mapping[str, Expr] = field(default_factory=dict)
    surely: frozenset[str] = frozenset()


class _Lowering:
    """The rules of one query."""

    def __init__(self, query: GraphQuery, tick: int) -> None:
        self.query, self.tick = query, tick
        self.functions: dict[str, Function] = {}
        self.aggregates: dict[str, AggregateFunction] = {}
        self.operands: dict[Operand, str] = {}
        self.made: list[Rule] = []
        self.timed = isinstance(query.window, Tumbling) or any(
            item.quantifier in "!?" for item in query.items if item.quantifier
        )
        self.visible = tuple(d.iri for d in query.datasets) if any(d.named for d in query.datasets) else None

    def rules(self) -> list[Rule]:
        query = self.query
        if isinstance(query.window, EventCount):
            raise NotLowered("WITHIN … EVENTS")
        if query.rows.group_by:
            raise NotLowered("GROUP BY")
        if isinstance(query.answer, Construct):
            raise NotLowered("CONSTRUCT")
        for number, reading in enumerate(readings(query.items)):
            self._reading(number, reading)
        return self.made

    def _name(self, what: str) -> str:
        return f"{self.query.name}·{what}"

    # Functions

    def _call(self, function: Any, args: Iterable[Expr], result: str = "any") -> Apply:
        given = tuple(args)
        coded = getattr(function, "coded", None)
        alike = next((name for name, f in self.functions.items() if f.call == function), None)
        name = alike or self._name(f"{type(function).__name__} {len(self.functions)}")
        self.functions[name] = Function(name, ("any",) * len(given), result, function, registered=True, coded=coded)
        return Apply(name, given)

    def _true(self, function: Any, args: Iterable[Expr]) -> Compare:
        return Compare("=", self._call(function, args, "bool"), _TRUE)

    def _first_bound(self, *values: Expr) -> Expr:
        return values[0] if len(values) == 1 else self._call(FirstBound(("term",) * len(values)), values)

    def _expression(self, expression: Expression, values: Mapping[str, Expr]) -> Expr:
        names = tuple(v for v in dict.fromkeys(expression.variables) if v in values)
        return self._call(Computed(names, expression.text), [values[v] for v in names] or [Const(None)])

    # Operands

    def operand(self, operand: Operand) -> str:
        """The type of the events that an operand makes, with an argument for each variable, and more: see `_arguments`."""
        if operand in self.operands:
            return self.operands[operand]
        name = operand.name if isinstance(operand, Use) else str(len(self.operands))
        type = self.operands[operand] = self._name(name)
        branches = _branches(operand)
        for number, branch in enumerate(branches):
            values, body = self._branch(branch)
            args: list[Expr] = [values.get(v, Const(None)) for v in may_bind(operand, self.query)]
            if len(branches) > 1:
                args.append(Const(number))
            if self.timed:
                args.append(Moment("start", "at 0"))
            self.made.append(
                Rule(f"{type} {number}" if number else type, type, tuple(args), body, span=self.query.span)
            )
        return type

    def _branch(self, branch: tuple[str, ...]) -> tuple[dict[str, Expr], Node]:
        """What GPMs make together at one time, and the value of each variable."""
        query, values, surely = self.query, dict[str, Expr](), frozenset[str]()
        body: Node | None = None
        for number, name in enumerate(branch):
            gpm, where = query.gpm(name), tuple[Condition, ...]()
            names = {
                v: v if v not in values or (v in surely and v in gpm.certain) else f"{v}#{number}"
                for v in gpm.variables
            }
            scans: list[Node] = [Scan(f"<{iri}>", (Var("#text"),), gpm.span) for iri in gpm.streams]
            source = scans[0]
            for scan in scans[1:]:
                source = Either(source, scan, gpm.span)
            binds = tuple((v, names[v]) for v in gpm.variables)
            here: Node = Label(
                f"at {number}", Graph(source, "#text", gpm.pattern, binds, self.visible, gpm.span), gpm.span
            )
            open_ones = [v for v in gpm.variables if v in values and names[v] != v]
            if open_ones:
                given = [*(values[v] for v in open_ones), *(Var(names[v]) for v in open_ones)]
                where = (self._true(Meets((*open_ones, *open_ones), len(open_ones), ((),)), given),)
            body = here if body is None else Join("EQUALS", body, here, where, span=gpm.span)
            for v in gpm.variables:
                if v not in values:
                    values[v] = Var(names[v])
                elif v in open_ones and v not in surely:
                    values[v] = self._first_bound(values[v], Var(names[v]))
            surely |= frozenset(gpm.certain)
        assert body is not None
        return values, body

    def _arguments(self, operand: Operand, names: Mapping[str, str], number: str) -> tuple[Expr, ...]:
        """The arguments of a scan of an operand's type."""
        args: list[Expr] = [Var(names[v]) for v in may_bind(operand, self.query)]
        if len(_branches(operand)) > 1:
            args.append(Var(f"#way {number}"))
        if self.timed:
            args.append(Var(f"#time {number}"))
        return tuple(args)

    def _meets(self, operand: Operand, known: _Known, names: Mapping[str, str], number: str) -> tuple[Condition, ...]:
        """What is asked of an operand beside that variables of one name agree."""
        branches = _branches(operand)
        filters = tuple(tuple(f.text for g in branch for f in self.query.gpm(g).filters) for branch in branches)
        asked = {v for branch in branches for g in branch for f in self.query.gpm(g).filters for v in f.variables}
        apart = {v for v, name in names.items() if v in known.values and known.values[v] != Var(name)}
        if not apart and not any(filters):
            return ()
        before = [v for v in known.values if v in asked | apart]
        own = [v for v in names if v in asked | apart and known.values.get(v) != Var(names[v])]
        args = [*(known.values[v] for v in before), *(Var(names[v]) for v in own)]
        if not args:
            args, before = [Const(None)], ["none"]
        if len(branches) > 1:
            args.append(Var(f"#way {number}"))
        return (self._true(Meets((*before, *own), len(before), filters), args),)

    # Sequences

    def _reading(self, number: int, reading: Reading) -> None:
        if reading.absent:
            raise NotLowered("an absence at the end")
        query = self.query
        parts: list[Part] = []
        results: list[Result] = []
        known = _Known({v: Var(v) for v in query.partition}, frozenset(query.partition))
        times: list[Expr] = []
        gaps: list[tuple[int, Item, _Known]] = []
        aggregates: dict[int, tuple[int, Mapping[str, Expr]]] = {}
        for place, step in enumerate(reading.steps):
            gaps += [(place, item, known) for item in step.absent]
            before = known
            part, known, own = self._step(place, step, known, results, times)
            parts.append(part)
            if step.repeats:
                aggregates[step.number] = (place, {**before.values, **own})
        values = self._aggregated(known.values, aggregates, results)
        run = Run(
            tuple(parts),
            query.partition,
            self._among(reading),
            tuple(results),
            () if query.window is None else (query.window.length,),  # type: ignore[union-attr]
            where=tuple(self._windowed(times)),
            span=query.span,
        )
        self._answer(number, run, values, gaps, times)

    def _step(
        self, place: int, step: Step, known: _Known, results: list[Result], times: list[Expr]
    ) -> tuple[Part, _Known, Mapping[str, Expr]]:
        """A step as a part of a run, what is known after it, and in an iteration of it."""
        operand, query = step.item.operand, self.query
        sure, names = surely_binds(operand, query), dict[str, str]()
        for v in may_bind(operand, query):
            value = known.values.get(v)
            joins = v in known.surely and v in sure and isinstance(value, Var) and not value.name.startswith("#")
            names[v] = value.name if joins and isinstance(value, Var) else f"{v}#{place}"
        scan = Scan(self.operand(operand), self._arguments(operand, names, str(place)), step.item.span)
        where = self._meets(operand, known, names, str(place))
        own = tuple(sorted(name for v, name in names.items() if known.values.get(v) != Var(name)))
        extra = tuple(a.name for a in scan.args[len(names) :] if isinstance(a, Var))
        part = Part(
            Label(f"step {place}", scan, scan.span),
            LINKS[step.item.separator],
            LINKS[step.between],
            1,
            None if step.repeats else 1,
            tuple(sorted((*own, *extra))) if step.repeats else (),
            where,
            span=step.item.span,
        )
        values = dict(known.values)
        each = {v: values[v] if v in known.surely else Var(name) for v, name in names.items()}

        def last(name: str) -> Expr:
            if not step.repeats:
                return Var(name)
            results.append(Result(f"#last {name}", place, Aggregate("last", (Var(name),))))
            return Var(f"#last {name}")

        for v, name in names.items():
            if v in known.surely:
                continue
            values[v] = self._first_bound(*([values[v]] if v in values else []), last(name))
            if v in known.values:
                each[v] = self._first_bound(known.values[v], Var(name))
        if self.timed:
            times.append(last(f"#time {place}"))
            if place == 0 and step.repeats:
                results.append(Result("#first time", 0, Aggregate("first", (Var("#time 0"),))))
        return part, _Known(values, known.surely | sure), each

    def _among(self, reading: Reading) -> tuple[Scan, ...]:
        """The events of the run: those of its parts, and where something is contiguous all of the declared streams."""
        query, found = self.query, dict[Scan, None]()
        for step in reading.steps:
            arity = len(self._arguments(step.item.operand, dict.fromkeys(may_bind(step.item.operand, query), ""), ""))
            names = may_bind(step.item.operand, query)
            keyed = [Var(v) if v in query.partition else Wild() for v in names]
            found[Scan(self.operand(step.item.operand), (*keyed, *(Wild() for _ in range(arity - len(names)))))] = None
        links = [s.item.separator for s in reading.steps[1:]] + [s.between for s in reading.steps if s.repeats]
        if "," in links:
            if query.partition:
                found[Scan(self._members(), tuple(map(Var, query.partition)))] = None
            else:
                found.update({Scan(stream.type, (Wild(),)): None for stream in query.streams})
        return tuple(found)

    def _members(self) -> str:
        """The type of the events that say which values of the partition the events of the streams belong to."""
        query, type = self.query, self._name("member")
        if not any(rule.type == type for rule in self.made):
            for gpm in query.gpms:
                if set(query.partition) <= set(gpm.variables):
                    values, body = self._branch((gpm.name,))
                    args = tuple(values[v] for v in query.partition)
                    self.made.append(Rule(f"{type} {gpm.name}", type, args, body, span=query.span))
        return type

    def _windowed(self, times: list[Expr]) -> Iterable[Condition]:
        window = self.query.window
        match window:
            case None | Sliding() | EventCount():
                return
            case Tumbling():
                origin = window.origin.us if isinstance(window.origin, Timestamp) else window.origin
                first = Var("#first time") if times[0] == Var("#last #time 0") else times[0]
                yield self._true(SameWindow(window.length, self.tick, origin), (first, times[-1]))
            case _:
                assert_never(window)

    # Answers

    def _aggregated(
        self,
        values: Mapping[str, Expr],
        iterations: Mapping[int, tuple[int, Mapping[str, Expr]]],
        results: list[Result],
    ) -> dict[str, Expr]:
        """The values of a match with those of its aggregates."""
        found = dict(values)
        for aggregate in self.query.aggregates:
            assert aggregate.of is not None, "COUNT(*) stands beside GROUP BY"
            function = TermAggregate(aggregate.function, aggregate.distinct, aggregate.separator)
            if aggregate.item is None:
                found[aggregate.name] = self._call(function, [self._expression(aggregate.of, values)])
                continue
            place, each = iterations[aggregate.item]
            name = self._name(f"aggregate {len(self.aggregates)}")
            self.aggregates[name] = AggregateFunction(name, "any", "any", function, registered=True)
            value = self._expression(aggregate.of, {**values, **each})
            results.append(Result(f"#{name}", place, Aggregate(name, (value,))))
            found[aggregate.name] = Var(f"#{name}")
        return found

    def _answer(
        self, number: int, run: Run, values: dict[str, Expr], gaps: list[tuple[int, Item, _Known]], times: list[Expr]
    ) -> None:
        """The rule that gives the answer; where something must be absent, by way of a type for matches without that."""
        query, label = self.query, self._name(f"reading {number}")
        body: Node = run
        if gaps:
            body, values = self._without(number, run, values, gaps, times)
        found, where = dict(values), list[Condition]()
        assert isinstance(query.answer, Select)
        for column in query.answer.columns:
            if column.expression is not None:
                found[column.name] = self._expression(column.expression, found)
        for having in query.rows.having:
            names = tuple(v for v in having.variables if v in found)
            where.append(self._true(Holds(names, having.text), [found[v] for v in names] or [Const(None)]))
        if query.rows.limit == 0:
            where.append(Compare("=", Const(1), Const(2)))
        args = tuple(self._call(AsValue(), (found.get(c.name, Const(None)),)) for c in query.answer.columns)
        body = Where(body, tuple(where), query.span) if where else body
        self.made.append(Rule(label, query.name, args, body, span=query.span))

    def _without(
        self, number: int, run: Run, values: dict[str, Expr], gaps: list[tuple[int, Item, _Known]], times: list[Expr]
    ) -> tuple[Node, dict[str, Expr]]:
        """Matches of a run as events with all that is asked of them, and nothing of what must be absent."""
        type, given = self._name(f"match {number}"), dict[str, Expr]()
        for v, value in values.items():
            given[f"{v}"] = value
        for place, _, known in gaps:
            given[f"#after {place}"], given[f"#before {place}"] = times[place - 1], self._begins(run, place, times)
            for v, value in known.values.items():
                given[f"{v}@{place}"] = value
        self.made.append(Rule(type, type, tuple(given.values()), run, span=self.query.span))
        body: Node = Label("#match", Scan(type, tuple(map(Var, given)), self.query.span), self.query.span)
        absences: list[Condition] = []
        for count, (place, item, known) in enumerate(gaps):
            absences.append(self._absence(f"!{count}", place, item, known))
        return Where(body, tuple(absences), self.query.span), {v: Var(v) for v in values}

    def _begins(self, run: Run, place: int, times: list[Expr]) -> Expr:
        """The time of the first event of a step."""
        if times[place] == Var(f"#time {place}"):
            return times[place]
        raise NotLowered("an absence before a repetition")

    def _absence(self, number: str, place: int, item: Item, known: _Known) -> Condition:
        operand, names = item.operand, dict[str, str]()
        sure = surely_binds(operand, self.query)
        seen = _Known({v: Var(f"{v}@{place}") for v in known.values}, known.surely)
        for v in may_bind(operand, self.query):
            names[v] = f"{v}@{place}" if v in known.surely and v in sure else f"{v}#{number}"
        scan = Scan(self.operand(operand), self._arguments(operand, names, number), item.span)
        time = Var(f"#time {number}")
        where = (
            Compare(">", time, Var(f"#after {place}")),
            Compare("<", time, Var(f"#before {place}")),
            *self._meets(operand, seen, names, number),
        )
        return NoneInside("#match", Where(scan, where, item.span), (), item.span)


def _branches(operand: Operand) -> list[tuple[str, ...]]:
    """The ways in which an operand is made: of each the GPMs that are matched together, from left to right."""
    match operand:
        case Use():
            return [(operand.name,)]
        case Both():
            return [(*left, *right) for left in _branches(operand.left) for right in _branches(operand.right)]
        case Alternative():
            return [*_branches(operand.left), *_branches(operand.right)]
        case _:
            assert_never(operand)
