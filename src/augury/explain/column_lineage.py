"""On which columns of events and facts an output depends, through rules and static predicates.

A column is *made of* others where their values become its value, as they are, computed or aggregated. An answer is
*decided by* columns that conditions, joins and absences look at. A derived event is followed to what it is derived of,
round and round where rules are recursive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeAlias, assert_never

from augury.algebra.graph_queries import Construct, GraphQuery, SelectForm
from augury.algebra.nodes import (
    AnyOf,
    Compare,
    Condition,
    Holds,
    NoneInside,
    Relates,
    Relative,
    Rule,
    Run,
    Scan,
    Spans,
    Unless,
    absences,
    conditions,
    scans,
    walk,
    walk_condition,
)
from augury.algebra.plan import Plan
from augury.algebra.terms import Aggregate, Apply, Expr, Var, Wild, variables
from augury.algebra.terms import walk as walk_terms
from augury.explain.tree import Flowchart
from augury.language.rules.show import Printer
from augury.sinks.names import attribute_names, numbered

Kind: TypeAlias = Literal["event", "facts", "graphs"]
How: TypeAlias = Literal["IDENTITY", "TRANSFORMATION", "AGGREGATION"]
Why: TypeAlias = Literal["FILTER", "JOIN", "GROUP_BY", "SORT"]
TIME = -1
_ORDER: tuple[How, ...] = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")


@dataclass(frozen=True, order=True)
class LineageColumn:
    """A column of events, facts or graphs of a stream, by its position; `TIME` is when an event happens."""

    kind: Kind
    name: str
    arity: int
    position: int


@dataclass
class LineageStep:
    """What one predicate, of events or of facts, is derived of: of its columns, and of what decides."""

    direct: dict[int, dict[LineageColumn, How]] = field(default_factory=dict)
    indirect: dict[LineageColumn, Why] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class OutputLineage:
    """An output with its columns: what each is made of; what decides whether there is an answer; the rules between."""

    name: str
    columns: Mapping[str, Mapping[LineageColumn, How]]
    decided: Mapping[LineageColumn, Why]
    rules: tuple[str, ...]


class Lineage:
    """The lineage of the outputs of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.printer = Printer()
        self.printer.prefixes |= plan.prefixes
        self._steps: dict[tuple[Kind, str, int], LineageStep] = {}
        for rule in plan.rules:
            self._add_rule(rule)
        for clause in plan.clauses:
            if clause.body:
                step = self._step("facts", clause.name, len(clause.args))
                self._add(step, clause.args, *_sources((), clause.body), f"{clause.name}/{len(clause.args)}")
        for query in plan.graph_queries:
            self._add_query(query)

    def _step(self, kind: Kind, name: str, arity: int) -> LineageStep:
        return self._steps.setdefault((kind, name, arity), LineageStep())

    def _add_rule(self, rule: Rule) -> None:
        kind: Kind = "facts" if rule.makes else "event"
        step = self._step(kind, rule.makes or rule.type, len(rule.args))
        positive = [scan for pattern in rule.patterns for scan in scans(pattern)]
        where = [c for pattern in rule.patterns for node in walk(pattern) for c in conditions(node)]
        where += [c for c in rule.conditions if c not in where]
        sources, decided = _sources(positive, where)
        times = {LineageColumn("event", scan.type, len(scan.args), TIME) for scan in positive if scan.held is None}
        step.direct.setdefault(TIME, {}).update(dict.fromkeys(times, "TRANSFORMATION"))
        totals = dict(rule.totals)
        for pattern in rule.patterns:
            for node in walk(pattern):
                if isinstance(node, Run):
                    totals |= {result.name: result.aggregate for result in node.results}
                for absent in absences(node):
                    for scan in scans(absent):
                        decided |= dict.fromkeys(_used_columns(scan), "FILTER")
        for name, aggregate in totals.items():
            made = sources.setdefault(name, {})
            if not variables(aggregate):  # it counts
                made |= dict.fromkeys(times, "AGGREGATION")
            for variable in variables(aggregate):
                made |= dict.fromkeys(sources.get(variable, ()), "AGGREGATION")
        if rule.top is not None:
            ranked = {c: how for v in variables(rule.top.by) for c, how in sources.get(v, {}).items()}
            decided |= dict.fromkeys(ranked, "SORT")
            if rule.top.place is not None:
                sources[rule.top.place] = {c: _greater("TRANSFORMATION", how) for c, how in ranked.items()}
        decided |= {c: "GROUP_BY" for v in rule.per for c in sources.get(v, ()) if c not in decided}
        self._add(step, rule.args, sources, decided, rule.label)

    def _add(
        self,
        step: LineageStep,
        args: Iterable[Expr],
        sources: Mapping[str, Mapping[LineageColumn, How]],
        decided: Mapping[LineageColumn, Why],
        rule: str,
    ) -> None:
        for position, arg in enumerate(args):
            made = step.direct.setdefault(position, {})
            how = _how(arg)
            for variable in variables(arg):
                for column, earlier in sources.get(variable, {}).items():
                    made[column] = _greater(made.get(column, "IDENTITY"), _greater(how, earlier))
        step.indirect |= decided
        step.rules.append(rule)

    def _add_query(self, query: GraphQuery) -> None:
        """A column of a query is made of the graphs of the streams whose patterns bind its variables."""
        name, arity = query.predicate
        step = self._step("event", name, arity)
        step.rules.append(query.name)
        graphs = {
            gpm.name: [LineageColumn("event", f"<{iri}>", 1, 0) for iri in gpm.streams]
            + [LineageColumn("graphs", iri or "any graph", 1, 0) for iri in gpm.graphs]
            for gpm in query.gpms
        }
        for columns in graphs.values():
            step.indirect |= dict.fromkeys(columns, "FILTER")
        if isinstance(query.answer, Construct):
            step.direct[0] = {column: "TRANSFORMATION" for columns in graphs.values() for column in columns}
            return
        assert isinstance(query.answer, SelectForm)
        aggregated = {aggregate.name: aggregate.of for aggregate in query.aggregates}
        for position, column in enumerate(query.answer.columns):
            names = {column.name} if column.expression is None else set(column.expression.variables)
            inside = [of for name in names if (of := aggregated.get(name)) is not None]
            names |= {variable for expression in inside for variable in expression.variables}
            how: How = "AGGREGATION" if inside else "TRANSFORMATION"
            makers = [gpm for gpm in query.gpms if names & set(gpm.variables)]
            step.direct[position] = {source: how for gpm in makers for source in graphs[gpm.name]}

    # What follows

    def outputs(self) -> list[OutputLineage]:
        """The lineage of each output, in the order of the program."""
        return [self.of(name, arity) for name in self.plan.outputs for n, arity in self.plan.derived if n == name]

    def of(self, name: str, arity: int) -> OutputLineage:
        columns = attribute_names(self.plan, (name, arity))
        made = {
            column: self._leaves(LineageColumn("event", name, arity, position))
            for position, column in enumerate(columns)
        }
        decided: dict[LineageColumn, Why] = {}
        rules: dict[str, None] = {}
        for step in self._reached("event", name, arity):
            rules |= dict.fromkeys(step.rules)
            for column, why in step.indirect.items():
                for leaf in self._leaves(column):
                    decided.setdefault(leaf, why)
        return OutputLineage(name, made, decided, tuple(rules))

    def _leaves(self, column: LineageColumn) -> dict[LineageColumn, How]:
        """The columns of inputs that a column is made of; itself where nothing derives it."""
        best: dict[LineageColumn, How] = {column: "IDENTITY"}
        left = [column]
        leaves: dict[LineageColumn, How] = {}
        while left:
            current = left.pop()
            step = self._steps.get((current.kind, current.name, current.arity))
            if step is None:
                leaves[current] = _greater(leaves.get(current, "IDENTITY"), best[current])
                continue
            for source, how in step.direct.get(current.position, {}).items():
                combined = _greater(how, best[current])
                if source not in best or _ORDER.index(combined) > _ORDER.index(best[source]):
                    best[source] = combined
                    left.append(source)
        return leaves

    def _reached(self, kind: Kind, name: str, arity: int) -> Iterator[LineageStep]:
        """The predicate, and all that it is derived of."""
        left, seen = [(kind, name, arity)], set()
        while left:
            key = left.pop(0)
            step = self._steps.get(key)
            if step is None or key in seen:
                continue
            seen.add(key)
            yield step
            used = [*(c for made in step.direct.values() for c in made), *step.indirect]
            left += [(c.kind, c.name, c.arity) for c in used]

    def column_name(self, column: LineageColumn) -> str:
        """A column as people call it: as declared, else by its number."""
        if column.position == TIME:
            return "time"
        declared = self.plan.declared if column.kind == "event" else self.plan.static
        attributes = declared.get(column.name, ())
        if len(attributes) == column.arity:
            return attributes[column.position].name
        return "graph" if column.kind == "graphs" or column.name.startswith("<") else numbered(column.position)


def _sources(
    positive: Iterable[Scan], where: Iterable[Condition]
) -> tuple[dict[str, dict[LineageColumn, How]], dict[LineageColumn, Why]]:
    """The columns that each variable of a body gets its value from, and those that decide."""
    sources: dict[str, dict[LineageColumn, How]] = {}
    decided: dict[LineageColumn, Why] = {}
    bound: list[tuple[str, LineageColumn]] = []
    for scan in positive:
        held = scan.held
        kind: Kind = "event" if held is None else "facts"
        name = scan.type if held is None else held[0]
        for position, arg in enumerate(scan.args):
            column = LineageColumn(kind, name, len(scan.args), position)
            bound += [(variable, column) for variable in variables(arg)]
            if not variables(arg) and not _is_wild(arg):
                decided[column] = "FILTER"
    every = [part for condition in where for part in walk_condition(condition)]
    for part in every:
        if isinstance(part, Holds):
            bound += [(v, LineageColumn("facts", part.name, len(part.args), position))
                for position, arg in enumerate(part.args) for v in variables(arg)]  # fmt: skip
    for variable, column in bound:
        sources.setdefault(variable, {})[column] = "IDENTITY"
    for columns in sources.values():
        if len(columns) > 1:
            decided |= dict.fromkeys(columns, "JOIN")
    for part in every:
        if isinstance(part, Compare) and part.op == "=":
            for target, value in ((part.left, part.right), (part.right, part.left)):
                if isinstance(target, Var) and target.name not in sources:
                    how = _how(value)
                    sources[target.name] = {
                        c: _greater(how, e) for v in variables(value) for c, e in sources.get(v, {}).items()
                    }
    for part in every:
        for column in _deciding(part, sources):
            decided.setdefault(column, "FILTER")
    return sources, decided


def _deciding(part: Condition, sources: Mapping[str, Mapping[LineageColumn, How]]) -> Iterator[LineageColumn]:
    """The columns that a condition looks at."""
    match part:
        case Compare():
            for variable in variables(part.left, part.right):
                yield from sources.get(variable, ())
        case Holds() | Unless():
            for position, arg in enumerate(part.args):
                if not _is_wild(arg):
                    yield LineageColumn("facts", part.name, len(part.args), position)
                for variable in variables(arg):
                    yield from sources.get(variable, ())
        case NoneInside():
            for scan in scans(part.pattern):
                yield from _used_columns(scan)
        case AnyOf() | Relates() | Spans() | Relative():
            pass
        case _:
            assert_never(part)


def _used_columns(scan: Scan) -> Iterator[LineageColumn]:
    """The columns of what must be absent that are not left open, and when it happens."""
    used = [position for position, arg in enumerate(scan.args) if not _is_wild(arg)]
    for position in (*used, TIME):
        yield LineageColumn("event", scan.type, len(scan.args), position)


def _is_wild(arg: Expr) -> bool:
    return isinstance(arg, Wild)


def _how(value: Expr) -> How:
    parts = list(walk_terms(value))
    if any(isinstance(part, Aggregate) for part in parts):
        return "AGGREGATION"
    return "TRANSFORMATION" if any(isinstance(part, Apply) for part in parts) else "IDENTITY"


def _greater(first: How, second: How) -> How:
    return max(first, second, key=_ORDER.index)


# How it is shown


def lineage_text(lineage: Lineage) -> str:
    return "\n\n".join("\n".join(_lines(lineage, output)) for output in lineage.outputs()) or "no outputs"


_WORDS = {"IDENTITY": "", "TRANSFORMATION": " (computed)", "AGGREGATION": " (aggregated)"}


def _lines(lineage: Lineage, output: OutputLineage) -> Iterator[str]:
    yield f"{output.name}({', '.join(output.columns)})"
    width = max([len("decided by"), *map(len, output.columns)])
    for column, made in output.columns.items():
        sources = [f"{_shown(lineage, source)}{_WORDS[how]}" for source, how in sorted(made.items())]
        yield f"  {column:<{width}}  {', '.join(sources) or 'a constant'}"
    if output.decided:
        yield f"  {'decided by':<{width}}  {', '.join(_shown(lineage, c) for c in sorted(output.decided))}"
    yield f"  {'through':<{width}}  {', '.join(output.rules)}"


def _shown(lineage: Lineage, column: LineageColumn) -> str:
    kind = {"event": "", "facts": "facts ", "graphs": "graph "}[column.kind]
    name = column.name if column.kind == "graphs" or column.name.startswith("<") else lineage.printer.name(column.name)
    return f"{kind}{name}.{lineage.column_name(column)}"


def lineage_mermaid(lineage: Lineage) -> str:
    """Inputs on the left, outputs on the right; what only decides has a dotted arrow."""
    chart = Flowchart("LR")
    for output in lineage.outputs():
        for column, made in output.columns.items():
            target, _ = chart.box(f"{output.name}.{column}", ("([", "])"), key=("output", output.name, column))
            for source, how in sorted(made.items()):
                box, _ = chart.box(_shown(lineage, source), _shape(source), key=source)
                chart.arrow(box, target, _WORDS[how].strip(" ()"))
        whole, _ = chart.box(output.name, ("[[", "]]"), key=("output", output.name))
        for source in sorted(output.decided):
            box, _ = chart.box(_shown(lineage, source), _shape(source), key=source)
            chart.arrow(box, whole, "decides", dotted=True)
    return str(chart)


def _shape(column: LineageColumn) -> tuple[str, str]:
    return ("[(", ")]") if column.kind != "event" else ("[", "]")


_SCHEMA = "https://openlineage.io/spec"
_PRODUCER = "https://pypi.org/project/augury"


def open_lineage(lineage: Lineage, namespace: str, job: str) -> dict[str, object]:
    """A job event of OpenLineage: inputs and outputs with their schemas, and the column lineage facet of each output."""
    outputs = lineage.outputs()
    columns = {c for o in outputs for made in (*o.columns.values(), o.decided) for c in made}
    inputs: dict[tuple[Kind, str], set[LineageColumn]] = {}
    for column in columns:
        inputs.setdefault((column.kind, column.name), set()).add(column)
    return {
        "eventTime": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "producer": _PRODUCER,
        "schemaURL": f"{_SCHEMA}/2-0-2/OpenLineage.json#/$defs/JobEvent",
        "job": {"namespace": namespace, "name": job, "facets": {}},
        "inputs": [
            {
                "namespace": namespace,
                "name": _dataset(kind, name),
                "facets": {"schema": _schema([lineage.column_name(c) for c in sorted(used)])},
            }
            for (kind, name), used in sorted(inputs.items())
        ],
        "outputs": [
            {
                "namespace": namespace,
                "name": output.name,
                "facets": {
                    "schema": _schema(list(output.columns)),
                    "columnLineage": _facet("1-2-0/ColumnLineageDatasetFacet")
                    | {
                        "fields": {
                            column: {"inputFields": [
                                _field(lineage, namespace, source, "DIRECT", how) for source, how in sorted(made.items())
                            ]}
                            for column, made in output.columns.items()
                        },
                        "dataset": [
                            _field(lineage, namespace, source, "INDIRECT", why)
                            for source, why in sorted(output.decided.items())
                        ],
                    },
                },
            }
            for output in outputs
        ],
    }  # fmt: skip


def _dataset(kind: Kind, name: str) -> str:
    return name.strip("<>") if kind == "event" else f"{kind}.{name}"


def _facet(name: str) -> dict[str, object]:
    return {"_producer": _PRODUCER, "_schemaURL": f"{_SCHEMA}/facets/{name}.json"}


def _schema(names: Iterable[str]) -> dict[str, object]:
    return _facet("1-1-1/SchemaDatasetFacet") | {"fields": [{"name": name} for name in names]}


def _field(lineage: Lineage, namespace: str, column: LineageColumn, type: str, subtype: str) -> dict[str, object]:
    return {
        "namespace": namespace,
        "name": _dataset(column.kind, column.name),
        "field": lineage.column_name(column),
        "transformations": [{"type": type, "subtype": subtype, "description": "", "masking": False}],
    }
