"""Queries of SPAseQ as rules over runs: what each operand of the sequence makes is a type of events, the sequence is a run.

    SELECT ?c … SEQ(A ; B+ , C)  →  `q·A`(c, p) <- graph { … }           one for each operand that is matched
                                    q(value(c), …) <- `q·A`(c, p) THEN `q·B`(c, p2)+ NEXT `q·C`(c)

Values of these events are RDF terms as their keys, so that joins go by term; filters are functions of terms. A variable that
both the match so far and an operand surely bind joins by its name; where either may leave it open, or it is that of the last
iteration of a `+`, a function compares. Contiguity sees all events of the declared streams: they are events of the run.
Each `?` is read both ways, and each reading is a rule. An absence is looked for between the times of the steps around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, assert_never

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.graph_queries import (
    Both,
    Construct,
    EventCount,
    Expression,
    Gpm,
    GraphAlternative,
    GraphQuery,
    Item,
    Operand,
    PreviousValue,
    SelectForm,
    SequenceStep,
    Sliding,
    StepSequence,
    Tumbling,
    Use,
    may_bind,
    readings,
    step_variables,
    surely_binds,
)
from augury.algebra.nodes import (
    Collect,
    Compare,
    Condition,
    Either,
    Graph,
    Join,
    Label,
    Link,
    Node,
    NoneInside,
    Rule,
    Run,
    RunPart,
    RunResult,
    Scan,
    SkipTo,
    Total,
    Unfold,
    gap_before,
)
from augury.algebra.nodes import Select as Where
from augury.algebra.plan import Attribute, Plan
from augury.algebra.scalar import Function
from augury.algebra.terms import Aggregate, Apply, Const, Expr, Moment, Prev, Var, Wild
from augury.core.clock import SECOND, Timestamp
from augury.queries.match_rows import MatchRows
from augury.queries.term_aggregates import TermAggregate
from augury.queries.term_functions import (
    AsTerm,
    AsValue,
    Computed,
    Constructed,
    FirstBound,
    Meets,
    SameWindow,
    TermCondition,
    WindowEnd,
)

LINKS: dict[str, Link] = {",": "NEXT", ";": "THEN", ":": "SEQ"}
_TRUE = Const(True)
_NOTHING = "#nothing"  # the null that a function without variables is passed: a column says how many rows there are
# Of the text of a pattern: literals and IRIs, which stay as they are, and variables.
_TOKENS = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|<[^<>\s]*>|[?$]\w+""")


def lower_queries(plan: Plan) -> Plan:
    """The plan with rules for its queries."""
    rules, functions, declared = list(plan.rules), dict(plan.functions), dict(plan.declared)
    aggregates = dict(plan.aggregates)
    for query in plan.graph_queries:
        lowering = _Lowering(query, plan.tick or SECOND)
        rules += lowering.rules()
        functions |= lowering.functions
        aggregates |= lowering.aggregates
        declared.update({stream.type: (Attribute("graph", "string"),) for stream in query.streams})
    return replace(
        plan,
        rules=tuple(rules),
        functions=functions,
        aggregates=aggregates,
        declared=declared,
        graph_queries=(),
    )


@dataclass(frozen=True)
class _Known:
    """The bindings of a match so far: for each variable its value, and which have one for sure."""

    values: Mapping[str, Expr] = field(default_factory=dict)
    surely: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Gaps:
    """The absences of a query: before the steps of these numbers, and after the last one; the bindings there; the times of steps."""

    between: list[tuple[int, Item, _Known]]
    after: tuple[Item, ...]
    known: _Known
    times: list[Expr]


class _Lowering:
    """The rules of one query."""

    def __init__(self, query: GraphQuery, tick: int) -> None:
        self.query, self.tick = query, tick
        self.functions: dict[str, Function] = {}
        self.aggregates: dict[str, AggregateFunction] = {}
        self.operands: dict[object, str] = {}
        self.made: list[Rule] = []
        self.timed = isinstance(query.window, Tumbling) or any(
            item.quantifier in "!?" for item in query.items if item.quantifier
        )
        self.visible = tuple(d.iri for d in query.datasets) if any(d.named for d in query.datasets) else None

    def rules(self) -> list[Rule]:
        query = self.query
        for number, reading in enumerate(readings(query.items)):
            self._reading(number, reading)
        return self.made

    def _name(self, what: str) -> str:
        return f"{self.query.name}·{what}"

    # Functions

    def _call(self, function: Any, args: Iterable[Expr], result: str = "any") -> Apply:
        operands = tuple(args)
        coded = getattr(function, "coded", None)
        alike = next((name for name, f in self.functions.items() if f.call == function), None)
        name = alike or self._name(f"{type(function).__name__} {len(self.functions)}")
        self.functions[name] = Function(name, ("any",) * len(operands), result, function, registered=True, coded=coded)
        return Apply(name, operands)

    def _true(self, function: object, args: Iterable[Expr]) -> Compare:
        return Compare("=", self._call(function, args, "bool"), _TRUE)

    def _first_bound(self, *values: Expr) -> Expr:
        return values[0] if len(values) == 1 else self._call(FirstBound(("term",) * len(values)), values)

    def _expression(self, expression: Expression, values: Mapping[str, Expr]) -> Expr:
        names = tuple(v for v in dict.fromkeys(expression.variables) if v in values)
        if len(names) == 1 and expression.text == f"?{names[0]}":
            return values[names[0]]
        names, args = _arguments(names, values)
        return self._call(Computed(names, expression.text), args)

    # Operands

    def operand(self, operand: Operand) -> str:
        """The type of the events that an operand makes, with an argument for each variable, and more: see `_arguments`."""
        alike: object = self._form(operand) if isinstance(operand, Use) else operand
        if alike in self.operands:
            return self.operands[alike]
        name = operand.name if isinstance(operand, Use) else str(len(self.operands))
        type = self.operands[alike] = self._name(name)
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

    def _graph(self, gpm: Gpm, text: str, binds: tuple[tuple[str, str], ...], event: str | None = None) -> Node:
        """The solutions of a GPM in the events of its streams."""
        scans = [Scan(f"<{iri}>", (Var(text),), gpm.span) for iri in gpm.streams]
        return _either(
            [Graph(s, text, gpm.pattern, binds, self.visible, event, bool(gpm.graphs), gpm.span) for s in scans]
        )

    def _form(self, use: Use) -> object:
        """The type of a GPM's rows, whatever its variables are called: equal ones are one type."""
        gpm, names = self.query.gpm(use.name), dict[str, str]()
        if '"""' in gpm.pattern or "'''" in gpm.pattern:
            return use

        def renamed(match: re.Match[str]) -> str:
            token = match[0]
            return names.setdefault(token[1:], f"?{len(names)}") if token[0] in "?$" else token

        pattern = _TOKENS.sub(renamed, gpm.pattern)
        return pattern, tuple(names[v] for v in gpm.variables), gpm.streams

    def _branch(self, branch: tuple[str, ...]) -> tuple[dict[str, Expr], Node]:
        """The join of GPMs at one time, and the value of each variable."""
        query, values, surely = self.query, dict[str, Expr](), frozenset[str]()
        body: Node | None = None
        for number, name in enumerate(branch):
            gpm, where = query.gpm(name), tuple[Condition, ...]()
            names = {
                v: v if v not in values or (v in surely and v in gpm.certain) else f"{v}#{number}"
                for v in gpm.variables
            }
            text = f"#text {number}"
            binds = tuple((v, names[v]) for v in gpm.variables)
            here: Node = Label(f"at {number}", self._graph(gpm, text, binds), gpm.span)
            open_ones = [v for v in gpm.variables if v in values and names[v] != v]
            if open_ones:
                operands = [*(values[v] for v in open_ones), *(Var(names[v]) for v in open_ones)]
                where = (self._true(Meets((*open_ones, *open_ones), len(open_ones), ((),)), operands),)
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

    def _meets(
        self, operand: Operand, bindings: _Known, names: Mapping[str, str], number: str
    ) -> tuple[Condition, ...]:
        """The conditions on an operand, beside the agreement of variables of one name."""
        branches = _branches(operand)
        apart = {v for v, name in names.items() if v in bindings.values and bindings.values[v] != Var(name)}
        filters = [f for branch in branches for g in branch for f in self.query.gpm(g).filters]
        plain = [f for f in filters if not f.previous]
        conditions = [self._all_hold(operand, plain, apart, bindings, names, number)] if plain or apart else []
        # A condition with a PREV that has no default is not asked of the first iteration, so that others stand apart.
        for without_default in (False, True):
            group = [f for f in filters if f.previous and any(p.default is None for p in f.previous) == without_default]
            conditions += [self._all_hold(operand, group, set(), bindings, names, number)] if group else []
        return tuple(conditions)

    def _all_hold(
        self,
        operand: Operand,
        filters: Sequence[Expression],
        apart: set[str],
        bindings: _Known,
        names: Mapping[str, str],
        number: str,
    ) -> Condition:
        """That an operand agrees with the match in some variables, and meets these of its filters."""
        branches = _branches(operand)
        texts = tuple(
            tuple(f.text for g in branch for f in self.query.gpm(g).filters if f in filters) for branch in branches
        )
        asked = {v for f in filters for v in f.variables} | apart
        earlier = {value.name: value for f in filters for value in f.previous}
        before = [v for v in bindings.values if v in asked]
        mine = [v for v in names if v in asked and bindings.values.get(v) != Var(names[v])]
        args = [
            *(bindings.values[v] for v in before),
            *(Var(names[v]) for v in mine),
            *(self._earlier(value, bindings, names) for value in earlier.values()),
        ]
        if not args:
            args, before = [Const(None)], [_NOTHING]
        if len(branches) > 1:
            args.append(Var(f"#way {number}"))
        return self._true(Meets((*before, *mine, *earlier), len(before), texts), args)

    def _earlier(self, value: PreviousValue, bindings: _Known, names: Mapping[str, str]) -> Prev:
        """The value of a variable one iteration earlier."""
        if value.default is None:
            return Prev(Var(names[value.of]))
        values = dict(bindings.values)
        for v, name in names.items():
            if v not in bindings.surely:
                values[v] = self._first_bound(*([values[v]] if v in values else []), Var(name))
        return Prev(Var(names[value.of]), self._expression(value.default, values))

    # Sequences

    def _reading(self, number: int, reading: StepSequence) -> None:
        query = self.query
        parts: list[RunPart] = []
        results: list[RunResult] = []
        bindings = _Known({v: Var(v) for v in query.partition}, frozenset(query.partition))
        times: list[Expr] = []
        gaps: list[tuple[int, Item, _Known]] = []
        aggregates: dict[int, tuple[int, Mapping[str, Expr]]] = {}
        for step_number, step in enumerate(reading.steps):
            gaps += [(step_number, item, bindings) for item in step.absent]
            before = bindings
            part, bindings, each = self._step(step_number, step, bindings, results, times)
            parts.append(part)
            if step.repeats:
                aggregates[step.number] = (step_number, {**before.values, **each})
        if query.rows.group_by:
            values = dict(bindings.values)
            values |= self._all_iterations(reading, aggregates, results)
        else:
            values = self._aggregated(bindings.values, aggregates, results)
        where = list(self._windowed(times))
        if query.choice.which != "ALL":  # which compares matches without what must be absent
            where += [self._gap(f"!{i}", *gap) for i, gap in enumerate(gaps)]
            gaps = []
        run = Run(
            tuple(parts),
            query.partition,
            self._among(reading),
            tuple(results),
            () if query.window is None or isinstance(query.window, EventCount) else (query.window.length,),
            query.choice.which,
            self._skip(reading),
            tuple(where),
            span=query.span,
        )
        self._answer(number, run, values, _Gaps(gaps, reading.absent, bindings, times))

    def _skip(self, reading: StepSequence) -> Literal["PAST END"] | SkipTo | None:
        """Where the next match begins, by the number of a part."""
        skip = self.query.choice.skip
        if not isinstance(skip, SkipTo):
            return skip
        return replace(skip, part=next(n for n, step in enumerate(reading.steps) if step.number == skip.part))

    def _gap(self, number: str, step: int, item: Item, bindings: _Known) -> NoneInside:
        """What must be absent in a run before the step of a number."""
        names = self._names(item.operand, bindings, number)
        scan = Scan(self.operand(item.operand), self._arguments(item.operand, names, number), item.span)
        where = self._meets(item.operand, bindings, names, number)
        return NoneInside(gap_before(step), scan, where, item.span)

    def _names(self, operand: Operand, bindings: _Known, number: str) -> dict[str, str]:
        """The variables of a scan of an operand: that of the match so far, where both surely bind it, joins by its name."""
        sure, names = surely_binds(operand, self.query), dict[str, str]()
        for v in may_bind(operand, self.query):
            value = bindings.values.get(v)
            joins = v in bindings.surely and v in sure and isinstance(value, Var) and not value.name.startswith("#")
            names[v] = value.name if joins and isinstance(value, Var) else f"{v}#{number}"
        return names

    def _step(
        self, number: int, step: SequenceStep, bindings: _Known, results: list[RunResult], times: list[Expr]
    ) -> tuple[RunPart, _Known, Mapping[str, Expr]]:
        """A step as a part of a run, what is known after it, and in an iteration of it."""
        operand, query = step.item.operand, self.query
        sure, names = surely_binds(operand, query), self._names(operand, bindings, str(number))
        scan = Scan(self.operand(operand), self._arguments(operand, names, str(number)), step.item.span)
        where = self._meets(operand, bindings, names, str(number))
        each_own = tuple(sorted(name for v, name in names.items() if bindings.values.get(v) != Var(name)))
        extra = tuple(a.name for a in scan.args[len(names) :] if isinstance(a, Var))
        part = RunPart(
            Label(f"step {number}", scan, scan.span),
            LINKS[step.item.separator],
            LINKS[step.between],
            1,
            None if step.repeats else 1,
            tuple(sorted((*each_own, *extra))) if step.repeats else (),
            where,
            span=step.item.span,
        )
        values = dict(bindings.values)
        each = {v: values[v] if v in bindings.surely else Var(name) for v, name in names.items()}

        def last(name: str) -> Expr:
            if not step.repeats:
                return Var(name)
            results.append(RunResult(f"#last {name}", number, Aggregate("last", (Var(name),))))
            return Var(f"#last {name}")

        for v, name in names.items():
            if v in bindings.surely:
                continue
            values[v] = self._first_bound(*([values[v]] if v in values else []), last(name))
            if v in bindings.values:
                each[v] = self._first_bound(bindings.values[v], Var(name))
        if self.timed:
            times.append(last(f"#time {number}"))
            if step.repeats:
                results.append(RunResult(f"#begin {number}", number, Aggregate("first", (Var(f"#time {number}"),))))
        return part, _Known(values, bindings.surely | sure), each

    def _among(self, reading: StepSequence) -> tuple[Scan, ...]:
        """The events of the run: those of its parts, and where something is contiguous all of the declared streams."""
        query, scans = self.query, dict[Scan, None]()
        for step in reading.steps:
            arity = len(self._arguments(step.item.operand, dict.fromkeys(may_bind(step.item.operand, query), ""), ""))
            names = may_bind(step.item.operand, query)
            keyed = [Var(v) if v in query.partition else Wild() for v in names]
            scans[Scan(self.operand(step.item.operand), (*keyed, *(Wild() for _ in range(arity - len(names)))))] = None
        links = [s.item.separator for s in reading.steps[1:]] + [s.between for s in reading.steps if s.repeats]
        if "," in links:
            if query.partition:
                scans[Scan(self._members(), tuple(map(Var, query.partition)))] = None
            else:
                scans.update({Scan(stream.type, (Wild(),)): None for stream in query.streams})
        return tuple(scans)

    def _members(self) -> str:
        """The type of the events that say which values of the partition the events of the streams belong to."""
        query, type = self.query, self._name("member")
        if not any(rule.type == type for rule in self.made):
            made: dict[Scan, str] = {}  # what equal GPMs make is one type, and is asked once
            for gpm in query.gpms:
                if set(query.partition) <= set(gpm.variables):
                    use, names = Use(gpm.name), {v: v if v in query.partition else "_" for v in gpm.variables}
                    args = (Wild() if a == Var("_") else a for a in self._arguments(use, names, "member"))
                    made.setdefault(Scan(self.operand(use), tuple(args)), gpm.name)
            for scan, name in made.items():
                self.made.append(Rule(f"{type} {name}", type, tuple(map(Var, query.partition)), scan, span=query.span))
        return type

    def _windowed(self, times: list[Expr]) -> Iterable[Condition]:
        window = self.query.window
        match window:
            case None | Sliding() | EventCount():
                return
            case Tumbling():
                origin = window.origin.us if isinstance(window.origin, Timestamp) else window.origin
                yield self._true(SameWindow(window.length, self.tick, origin), (self._first_time(times), times[-1]))
            case _:
                assert_never(window)

    # Answers

    def _aggregated(
        self,
        values: Mapping[str, Expr],
        iterations: Mapping[int, tuple[int, Mapping[str, Expr]]],
        results: list[RunResult],
    ) -> dict[str, Expr]:
        """The values of a match with those of its aggregates."""
        computed = dict(values)
        for aggregate in self.query.aggregates:
            assert aggregate.of is not None, "COUNT(*) stands beside GROUP BY"
            function = TermAggregate(aggregate.function, aggregate.distinct, aggregate.separator)
            if aggregate.item is None:
                computed[aggregate.name] = self._call(function, [self._expression(aggregate.of, values)])
                continue
            number, each = iterations[aggregate.item]
            value = self._expression(aggregate.of, {**values, **each})
            if aggregate.function == "COUNT" and not aggregate.distinct:  # which runs keep along with their matches
                name = self._name(f"count {len(results)}")
                results.append(RunResult(f"#{name}", number, Aggregate("count", (value,))))
                computed[aggregate.name] = self._call(AsTerm(), (Var(f"#{name}"),))
                continue
            name = self._name(f"aggregate {len(self.aggregates)}")
            self.aggregates[name] = AggregateFunction(name, "any", "any", function, registered=True)
            results.append(RunResult(f"#{name}", number, Aggregate(name, (value,))))
            computed[aggregate.name] = Var(f"#{name}")
        return computed

    def _all_iterations(
        self, reading: StepSequence, iterations: Mapping[int, tuple[int, Mapping[str, Expr]]], results: list[RunResult]
    ) -> dict[str, Expr]:
        """The values of each variable that is an iteration's own, over the iterations of the repetition that is grouped."""
        item, computed = self.query.rows.item, dict[str, Expr]()
        if item is not None:
            number, each = iterations[item]
            for v in sorted(step_variables(reading, number, self.query).may):
                results.append(RunResult(f"#all {v}", number, Aggregate("list", (each[v],))))
                computed[f"#all {v}"] = Var(f"#all {v}")
        return computed

    def _grouped(self, number: int, body: Node, values: Mapping[str, Expr], step: int) -> None:
        """The rule of a query with GROUP BY: a match has many rows, or one graph of them."""
        query, rows = self.query, self.query.rows
        lists = [v for v in values if v.startswith("#all ")]
        names = [v for v in values if v not in lists]
        columns = query.answer.columns if isinstance(query.answer, SelectForm) else ()
        function = MatchRows(
            (*names, *(v.removeprefix("#all ") for v in lists)),
            len(lists),
            tuple((c.name, _text(c.expression)) for c in rows.group_by),
            tuple((a.name, TermAggregate(a.function, a.distinct, a.separator), _text(a.of)) for a in query.aggregates),
            tuple((c.name, _text(c.expression)) for c in columns),
            tuple(h.text for h in rows.having),
            tuple((o.key.text, o.descending) for o in rows.order_by),
            rows.limit,
            query.answer.template if isinstance(query.answer, Construct) else (),
        )
        binds = tuple(f"#row {c.name}" for c in columns) or ("#graph",)
        unfolded = Unfold(body, self._call(function, [values[v] for v in (*names, *lists)]), binds, query.span)
        label = self._name(f"reading {number}")
        if isinstance(query.answer, Construct):
            rule = Rule(label, query.predicate[0], (Var("#graph"),), unfolded, span=query.span, since="END")
        else:
            args = tuple(self._call(AsValue(), (Var(v),)) for v in binds)
            rule = Rule(label, query.name, args, unfolded, span=query.span)
        self._add(rule, step)

    def _add(self, rule: Rule, step: int = 0) -> None:
        """A rule that answers; with the number of events inside its match, where the window counts them, and when it has
        waited for what must be absent, as long as its match."""
        window = self.query.window
        if step:
            assert isinstance(window, Sliding | Tumbling)
            rule = replace(rule, until=Var(f"#after {step}"), delay=window.length)
        if isinstance(window, EventCount):
            few = Compare("<=", Var("#events"), Const(window.count))
            rule = replace(rule, collects=self._counted(), having=(few,))
        self.made.append(rule)

    def _answer(self, number: int, run: Run, values: dict[str, Expr], gaps: _Gaps) -> None:
        """The rule that gives the answer; where something must be absent, by way of a type for matches without that."""
        query, label = self.query, self._name(f"reading {number}")
        body: Node = run
        chosen = query.choice.which != "ALL"  # before HAVING
        if gaps.between or gaps.after or chosen or isinstance(query.window, EventCount):
            body, values = self._without(number, run, values, gaps)
        last_step = len(gaps.times) if gaps.after else 0
        if query.rows.group_by:
            self._grouped(number, body, values, last_step)
            return
        computed, where = dict(values), list[Condition]()
        for column in query.answer.columns if isinstance(query.answer, SelectForm) else ():
            if column.expression is not None:
                computed[column.name] = self._expression(column.expression, computed)
        for having in query.rows.having:
            names, operands = _arguments([v for v in having.variables if v in computed], computed)
            where.append(self._true(TermCondition(names, having.text), operands))
        if query.rows.limit == 0:
            where.append(Compare("=", Const(1), Const(2)))
        match query.answer:
            case SelectForm():
                args = tuple(self._call(AsValue(), (computed.get(c.name, Const(None)),)) for c in query.answer.columns)
                body = Where(body, tuple(where), query.span) if where else body
                rule = Rule(label, query.name, args, body, span=query.span)
            case Construct():
                names = tuple(dict.fromkeys(t[1:] for line in query.answer.template for t in line if t.startswith("?")))
                graph = Constructed(tuple(n for n in names if n in computed), query.answer.template)
                text = self._call(graph, [computed[n] for n in graph.names] or [Const(None)])
                where.append(Compare("!=", text, Const("")))
                body = Where(body, tuple(where), query.span)
                rule = Rule(label, query.predicate[0], (text,), body, span=query.span, since="END")
            case _:
                assert_never(query.answer)
        self._add(rule, last_step)

    def _counted(self) -> tuple[Collect, ...]:
        """How many events of the declared streams lie inside a match, where its window says so."""
        query = self.query
        if not isinstance(query.window, EventCount):
            return ()
        if not query.partition:
            pattern = _either([Scan(stream.type, (Wild(),)) for stream in query.streams])
            return (Collect(pattern, "#match", totals=(Total("#events", Aggregate("count", ())),)),)
        patterns: list[Node] = []
        for gpm in query.gpms:
            if set(query.partition) <= set(gpm.variables):
                patterns.append(self._graph(gpm, "#text", tuple((v, v) for v in query.partition), "#event"))
        total = Total("#events", Aggregate("count", (Var("#event"),), distinct=True))
        return (Collect(_either(patterns), "#match", totals=(total,)),)

    def _without(self, number: int, run: Run, values: dict[str, Expr], gaps: _Gaps) -> tuple[Node, dict[str, Expr]]:
        """Matches of a run as events with all conditions on them, except for absences."""
        type, columns = self._name(f"match {number}"), dict[str, Expr]()
        for v, value in values.items():
            columns[f"{v}"] = value
        times, absences, span = gaps.times, list[Condition](), self.query.span
        for step_number, item, bindings in gaps.between:
            columns[f"#after {step_number}"], columns[f"#before {step_number}"] = (
                times[step_number - 1],
                self._begins(step_number, times),
            )
            columns |= {f"{v}@{step_number}": value for v, value in bindings.values.items()}
            absences.append(self._absence(f"!{len(absences)}", step_number, item, bindings))
        if gaps.after:
            step_number = len(times)
            columns["#first"], columns[f"#after {step_number}"] = self._first_time(times), times[-1]
            columns |= {f"{v}@{step_number}": value for v, value in gaps.known.values.items()}
            absences += [
                self._absence(f"!end {i}", step_number, item, gaps.known, last=True)
                for i, item in enumerate(gaps.after)
            ]
        self.made.append(Rule(type, type, tuple(columns.values()), run, span=span))
        names = tuple(map(Var, columns))
        if gaps.after:  # it waits until nothing can come any more
            waits = self._name(f"wait {number}")
            bound = self._call(self._bound(), (Var("#first"),))
            self.made.append(Rule(waits, waits, names, Scan(type, names, span), span=span, until=bound))
            type = waits
        body: Node = Label("#match", Scan(type, names, span), span)
        return Where(body, tuple(absences), span) if absences else body, {v: Var(v) for v in values}

    def _bound(self) -> WindowEnd:
        """Up to when something must be absent after a match, by its first time."""
        window = self.query.window
        assert isinstance(window, Sliding | Tumbling), "an absence at the end has a window of time"
        origin = None
        if isinstance(window, Tumbling):
            origin = window.origin.us if isinstance(window.origin, Timestamp) else window.origin or 0
        return WindowEnd(window.length, self.tick, origin)

    def _first_time(self, times: list[Expr]) -> Expr:
        return self._begins(0, times)

    def _begins(self, number: int, times: list[Expr]) -> Expr:
        """The time of the first event of a step."""
        return times[number] if times[number] == Var(f"#time {number}") else Var(f"#begin {number}")

    def _absence(self, number: str, step: int, item: Item, bindings: _Known, last: bool = False) -> Condition:
        operand, names = item.operand, dict[str, str]()
        sure = surely_binds(operand, self.query)
        seen = _Known({v: Var(f"{v}@{step}") for v in bindings.values}, bindings.surely)
        for v in may_bind(operand, self.query):
            names[v] = f"{v}@{step}" if v in bindings.surely and v in sure else f"{v}#{number}"
        scan = Scan(self.operand(operand), self._arguments(operand, names, number), item.span)
        time = Var(f"#time {number}")
        where = (
            Compare(">", time, Var(f"#after {step}")),
            *(() if last else (Compare("<", time, Var(f"#before {step}")),)),
            *self._meets(operand, seen, names, number),
        )
        return NoneInside("#match", Where(scan, where, item.span), (), item.span)


def _arguments(names: Sequence[str], values: Mapping[str, Expr]) -> tuple[tuple[str, ...], list[Expr]]:
    """The arguments of a function of some variables; where there are none, a null."""
    return (tuple(names), [values[v] for v in names]) if names else ((_NOTHING,), [Const(None)])


def _text(expression: Expression | None) -> str | None:
    return None if expression is None else expression.text


def _either(nodes: Sequence[Node]) -> Node:
    either = nodes[0]
    for node in nodes[1:]:
        either = Either(either, node, node.span)
    return either


def _branches(operand: Operand) -> list[tuple[str, ...]]:
    """The ways in which an operand is made: of each the GPMs that are matched together, from left to right."""
    match operand:
        case Use():
            return [(operand.name,)]
        case Both():
            return [(*left, *right) for left in _branches(operand.left) for right in _branches(operand.right)]
        case GraphAlternative():
            return [*_branches(operand.left), *_branches(operand.right)]
        case _:
            assert_never(operand)
