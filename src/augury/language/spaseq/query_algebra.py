"""Syntax tree to algebra: resolves names and IRIs, reads graph patterns, and places filters where they are evaluated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from augury.algebra.graph_queries import (
    Both,
    Construct,
    DatasetClause,
    EventCount,
    Gpm,
    GraphAlternative,
    GraphQuery,
    Item,
    Operand,
    ProjectedColumn,
    SelectForm,
    Sliding,
    StreamClause,
    Tumbling,
    Use,
    Window,
    uses,
)
from augury.core.bounds import MAX_TIME
from augury.core.clock import UNITS, Timestamp, read_timestamp
from augury.core.errors import Findings, Note, Span, nearest
from augury.language.spaseq import query_tree as t
from augury.language.spaseq.graph_patterns import Pattern, join_filters, read_pattern, report
from augury.language.spaseq.match_choices import read_choice
from augury.language.spaseq.query_checks import check_sequence, warn_of
from augury.language.spaseq.query_rows import QueryExpressions, read_keys, read_rows
from augury.language.spaseq.sparql_mistakes import NotSparql, template_triples
from augury.language.spaseq.sparql_text import Prologue, normal
from augury.language.spaseq.tokens import pieces_of

_UNITS = {"SECOND": "SECONDS", "MINUTE": "MINUTES", "HOUR": "HOURS", "DAY": "DAYS", "EVENT": "EVENTS"}


def query_of(tree: t.QueryTree, name: str, findings: Findings) -> GraphQuery | None:
    """The query that a tree stands for; None where something is wrong, which is reported."""
    before = len(findings.errors)
    query = _Query(tree, name, findings).translate()
    if query is not None and len(findings.errors) == before:
        warn_of(query, findings)
    return query if len(findings.errors) == before else None


@dataclass
class _Query:
    tree: t.QueryTree
    name: str
    findings: Findings

    def translate(self) -> GraphQuery | None:
        self.prologue = self._prologue()
        streams = self._streams()
        patterns = self._patterns(streams)
        items = self._items(patterns)
        window, partition, datasets = self._window(), self._partition(), self._datasets()
        names = {define.name.text for define in self.tree.defines}
        if items is None or not streams or len(patterns) < len(self.tree.defines) or len(names) < len(patterns):
            return None
        used = {use.name for item in items for use in uses(item.operand)}
        gpms = join_filters([p for p in patterns if p.name in used], self.prologue)
        if gpms is None:
            return None
        before = len(self.findings.errors)
        shape = GraphQuery(
            self.name,
            streams,
            items,
            gpms,
            SelectForm(()),
            window,
            partition,
            datasets,
            choice=read_choice(self.tree.sequences[0].choice, items, window, self.findings),
            span=self.tree.span,
        )
        check_sequence(shape, self.tree, self.findings)
        return self._answered(shape) if len(self.findings.errors) == before else None

    def _prologue(self) -> Prologue:
        prologue = Prologue(self.findings)
        for entry in self.tree.prologue:
            iri = prologue.iri(f"<{entry.iri}>", entry.span)
            match entry:
                case t.Base():
                    prologue.base = iri
                case t.QueryPrefix():
                    if not entry.name.endswith(":"):
                        self.findings.add("E101", f"a prefix ends with a colon, not `{entry.name}`", entry.span)
                    prologue.prefixes[entry.name.partition(":")[0]] = iri or ""
        return prologue

    def _iri(self, text: t.IriText) -> str | None:
        return self.prologue.iri(text.text, text.span)

    def _once(self, kind: type, word: str, hint: str) -> None:
        """Reports a clause that occurs twice."""
        clauses = [c for c in (*self.tree.clauses, *self.tree.modifiers) if isinstance(c, kind)]
        for again in clauses[1:]:
            self._again("E258", f"{word} occurs twice", again.span, clauses[0].span, hint)

    def _again(self, code: str, message: str, span: Span, other: Span, hint: str | None = None) -> None:
        self.findings.add(code, message, span, Note("the other one", other), hint=hint)

    def _streams(self) -> tuple[StreamClause, ...]:
        result: dict[str, StreamClause] = {}
        declared = [c for c in self.tree.clauses if isinstance(c, t.FromStream)]
        for clause in declared:
            iri = self._iri(clause.iri)
            if clause.name.text in result:
                name = clause.name
                self._again("E203", f"two streams are called `{name.text}`", name.span, result[name.text].span)
            elif iri is not None:
                result[clause.name.text] = StreamClause(clause.name.text, iri, clause.name.span)
        if not declared:
            hint = "declare one: FROM STREAM S1 <http://…>"
            self.findings.add("E258", "the query reads no stream", t.first_word(self.tree.span), hint=hint)
        return tuple(result.values())

    def _datasets(self) -> tuple[DatasetClause, ...]:
        clauses = [c for c in self.tree.clauses if isinstance(c, t.FromGraph)]
        return tuple(DatasetClause(iri, c.named, c.span) for c in clauses if (iri := self._iri(c.iri)) is not None)

    # The window

    def _window(self) -> Window | None:
        self._once(t.WithinClause, "WITHIN", "a query has one window")
        within = next((c for c in self.tree.clauses if isinstance(c, t.WithinClause)), None)
        if within is None:
            return None
        unit = _UNITS.get(within.unit.text.upper(), within.unit.text.upper())
        count = int(within.count.text) if within.count.text.isdigit() else None
        if unit not in _UNITS.values():
            close = nearest(unit, _UNITS.values())
            hint = f"did you mean {close}?" if close else "there are SECONDS, MINUTES, HOURS, DAYS and EVENTS"
            self.findings.add("E253", f"`{within.unit.text}` is not a unit of a window", within.unit.span, hint=hint)
            return None
        if count is None:
            message = f"a window has a whole number of {unit}, not {within.count.text}"
            smaller = "write it in a smaller unit" if "." in within.count.text else None
            self.findings.add("E253", message, within.count.span, hint=smaller)
            return None
        if unit == "EVENTS":
            return self._events(within, count)
        length = count * UNITS[unit.lower()]
        if length > MAX_TIME:
            self.findings.add("E105", "a window of more than 64 bits", within.count.span)
            return None
        if not within.tumbling:
            return Sliding(length, within.span)
        if count == 0:
            self.findings.add("E253", "a tumbling window has a length", within.count.span)
            return None
        return Tumbling(length, self._origin(within.origin), within.span)

    def _events(self, within: t.WithinClause, count: int) -> Window | None:
        if within.tumbling:
            hint = "let it slide: leave TUMBLING away; or give it a length of time, such as 1 HOURS"
            self.findings.add("E253", "a window of EVENTS does not tumble", within.span, hint=hint)
            return None
        if count == 0:
            self.findings.add(
                "E253", "a match has at least one event", within.count.span, hint="write 1 EVENTS or more"
            )
            return None
        return EventCount(count, within.span)

    def _origin(self, origin: t.QueryName | None) -> Timestamp | int | None:
        if origin is None:
            return None
        if origin.text[0] not in "\"'":
            try:
                return int(origin.text)
            except ValueError:
                self.findings.add(
                    "E106", f"a time is a whole number, or text in quotes, not {origin.text}", origin.span
                )
                return None
        text = origin.text.partition("^^")[0].strip().strip("\"'")
        try:
            return Timestamp(read_timestamp(text))
        except (ValueError, OverflowError) as error:
            self.findings.add("E106", str(error).partition(";")[0], origin.span, hint='such as "2026-01-31T10:00:00Z"')
            return None

    def _partition(self) -> tuple[str, ...]:
        self._once(t.Partition, "PARTITION BY", "list all variables in one")
        clause = next((c for c in self.tree.clauses if isinstance(c, t.Partition)), None)
        return tuple(dict.fromkeys(v.text for v in clause.variables)) if clause else ()

    # The sequence and its GPMs

    def _items(self, patterns: list[Pattern]) -> tuple[Item, ...] | None:
        if len(self.tree.sequences) != 1:
            if not self.tree.sequences:
                hint = "say in which order the GPMs match: SEQ(A, B; C)"
                self.findings.add("E258", "the query has no SEQ", t.first_word(self.tree.span), hint=hint)
            for again in self.tree.sequences[1:]:
                self._again("E258", "SEQ occurs twice", again.span, self.tree.sequences[0].span)
            return None
        defined = {define.name.text for define in self.tree.defines}
        sound = True
        for item in self.tree.sequences[0].items:
            for name in _names(item.operand):
                if name.text not in defined:
                    sound = False
                    self._unknown("GPM", name, defined, f"define it: DEFINE GPM {name.text} ON … {{ … }}")
        if not sound:
            return None
        self._unused()
        return tuple(
            Item(_operand(item.operand), item.quantifier, item.separator, item.span)
            for item in self.tree.sequences[0].items
        )

    def _unused(self) -> None:
        used = {name.text for item in self.tree.sequences[0].items for name in _names(item.operand)}
        for define in self.tree.defines:
            if define.name.text not in used and len({d.name.text for d in self.tree.defines}) == len(self.tree.defines):
                self.findings.add(
                    "W320",
                    f"the GPM `{define.name.text}` is not in the sequence",
                    define.name.span,
                    hint=f"write {define.name.text} in SEQ(…), or remove its definition",
                )

    def _unknown(self, what: str, name: t.QueryName, names: Iterable[str], hint: str) -> None:
        close = nearest(name.text, names) or next((k for k in names if k.lower() == name.text.lower()), None)
        self.findings.add(
            "E201", f"unknown {what} `{name.text}`", name.span, hint=f"did you mean `{close}`?" if close else hint
        )

    def _patterns(self, streams: tuple[StreamClause, ...]) -> list[Pattern]:
        """The graph patterns that can be read, in the order of their definition."""
        patterns: list[Pattern] = []
        iris = {stream.name: stream.iri for stream in streams}
        declared = {c.name.text for c in self.tree.clauses if isinstance(c, t.FromStream)}
        seen: dict[str, Span] = {}
        for define in self.tree.defines:
            if define.name.text in seen:
                duplicate = define.name
                self._again("E203", f"two GPMs are called `{duplicate.text}`", duplicate.span, seen[duplicate.text])
            seen.setdefault(define.name.text, define.name.span)
            for name in define.streams:
                if declared and name.text not in declared:
                    self._unknown("stream", name, declared, f"declare it: FROM STREAM {name.text} <http://…>")
            on = tuple(dict.fromkeys(iris[n.text] for n in define.streams if n.text in iris))
            pattern = read_pattern(define.name.text, define.pattern.span, on, self.prologue)
            if pattern is not None:
                patterns.append(pattern)
        return patterns

    # What is answered

    def _answered(self, shape: GraphQuery) -> GraphQuery | None:
        for kind, word in (
            (t.GroupBy, "GROUP BY"),
            (t.Having, "HAVING"),
            (t.OrderBy, "ORDER BY"),
            (t.LimitClause, "LIMIT"),
        ):
            self._once(kind, word, "write it once")
        expressions = QueryExpressions(shape, self.prologue)
        keys = read_keys(self.tree.modifiers, expressions)
        if keys is None:
            return None
        answer: SelectForm | Construct | None
        match self.tree.answer:
            case t.SelectClause():
                answer = self._select(self.tree.answer, shape, expressions)
            case t.ConstructClause():
                answer = self._construct(self.tree.answer, expressions)
        rows = read_rows(self.tree.modifiers, keys, expressions)
        if answer is None or rows is None:
            return None
        rows, aggregates = expressions.grouped(rows)
        return replace(shape, answer=answer, rows=rows, aggregates=aggregates)

    def _select(self, clause: t.SelectClause, shape: GraphQuery, expressions: QueryExpressions) -> SelectForm | None:
        if not clause.columns:
            names = [v for gpm in shape.gpms if self._matched(gpm, shape) for v in gpm.variables]
            return SelectForm(tuple(ProjectedColumn(v) for v in dict.fromkeys(names)), bool(clause.distinct))
        result: dict[str, ProjectedColumn] = {}
        for part in clause.columns:
            column = expressions.column(part, "SELECT")
            if column is None:
                return None
            if column.name in result:
                self._again("E203", f"two columns are called `?{column.name}`", part.span, result[column.name].span)
            result[column.name] = column
        return SelectForm(tuple(result.values()), bool(clause.distinct))

    def _matched(self, gpm: Gpm, shape: GraphQuery) -> bool:
        return any(use.name == gpm.name for item in shape.items if item.quantifier != "!" for use in uses(item.operand))

    def _construct(self, clause: t.ConstructClause, expressions: QueryExpressions) -> Construct | None:
        span = clause.template.span
        words = pieces_of(span)
        template = normal(words, self.prologue)
        stream = f"urn:augury:{self.name}" if clause.into is None else self._iri(clause.into)
        if template is None or stream is None:
            return None
        try:
            triples = template_triples(template)
        except NotSparql as error:
            report(error, span, self.findings)
            return None
        if not triples:
            self.findings.add(
                "E250", "the template constructs nothing", span, hint="write a triple: { ?s a <http://…> }"
            )
            return None
        for piece in words:
            if piece.kind == "var":
                expressions.sees(piece.text[1:], piece.span)
        return Construct(tuple(triples), stream)


def _names(operand: t.OperandText) -> Iterable[t.QueryName]:
    match operand:
        case t.QueryName():
            yield operand
        case t.Joined():
            for part in operand.operands:
                yield from _names(part)


def _operand(operand: t.OperandText) -> Operand:
    """`A & B | C` associates to the left."""
    match operand:
        case t.QueryName():
            return Use(operand.text, operand.span)
        case t.Joined():
            result = _operand(operand.operands[0])
            for joiner, part in zip(operand.joiners, operand.operands[1:], strict=True):
                result = Both(result, _operand(part)) if joiner == "&" else GraphAlternative(result, _operand(part))
            return result
