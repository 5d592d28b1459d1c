"""Expressions of SELECT, GROUP BY, HAVING and ORDER BY: what each sees, and what aggregates range over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import get_args

from augury.algebra.graph_queries import (
    AggregateName,
    Expression,
    GraphAggregate,
    GraphQuery,
    Order,
    ProjectedColumn,
    RowModifiers,
    may_bind,
    readings,
    step_variables,
)
from augury.core.errors import Note, Span, nearest
from augury.language.spaseq import query_tree as t
from augury.language.spaseq.graph_patterns import AGGREGATES, refuse_changing, report
from augury.language.spaseq.previous_values import refuse_previous
from augury.language.spaseq.sparql_mistakes import NotSparql, expression_of
from augury.language.spaseq.sparql_text import MADE, Prologue, closing, normal, variables
from augury.language.spaseq.tokens import SparqlToken, pieces_of


@dataclass
class QueryExpressions:
    """The expressions of a query. `shape` is the query without them."""

    shape: GraphQuery
    prologue: Prologue
    aggregates: list[GraphAggregate] = field(default_factory=list)
    named: dict[str, Span] = field(default_factory=dict)  # columns and keys that expressions have named
    keys: set[str] = field(default_factory=set)
    used: list[tuple[str, Span]] = field(default_factory=list)  # variables outside aggregates

    def __post_init__(self) -> None:
        items = [item for item in self.shape.items if item.quantifier != "!"]
        self.bound = {v for item in items for v in may_bind(item.operand, self.shape)}
        self.iterated: dict[int, set[str]] = {}
        for reading in readings(self.shape.items):
            for number, step in enumerate(reading.steps):
                if step.repeats:
                    self.iterated.setdefault(step.number, set()).update(step_variables(reading, number, self.shape).may)

    # Reading

    def column(self, part: t.QueryName | t.Sparql, clause: str) -> ProjectedColumn | None:
        """`?v`, or `(expression AS ?v)`; a key of GROUP BY may go without a name."""
        if isinstance(part, t.QueryName):
            return ProjectedColumn(part.text, None, part.span) if self.sees(part.text, part.span) else None
        words = pieces_of(part.span)
        inner = words[1:-1] if words[0].text == "(" else words
        named = len(inner) > 2 and inner[-2].is_word("AS") and inner[-1].kind == "var"
        if not named and clause == "SELECT":
            self._report(
                "E101", "an expression of SELECT has a name", part.span, hint="write it as (expression AS ?name)"
            )
            return None
        expression = self.expression(inner[:-2] if named else inner, part.span, aggregates=clause == "SELECT")
        if expression is None:
            return None
        name = inner[-1].text[1:] if named else f"key{MADE}{len(self.named) + 1}"
        span = inner[-1].span if named else part.span
        if name in self.bound or name in self.named:
            self._report("E203", f"`?{name}` is bound already", span, hint="give the expression another name")
            return None
        self.named[name] = span
        return ProjectedColumn(name, expression, part.span)

    def condition(self, part: t.Sparql) -> Expression | None:
        words = pieces_of(part.span)
        return self.expression(
            words[1:-1] if words[0].text == "(" and closing(words, 0) == len(words) - 1 else words, part.span
        )

    def order(self, key: t.Key) -> Order | None:
        if isinstance(key.expression, t.QueryName):
            name = key.expression
            result = Expression(f"?{name.text}", (name.text,), name.span) if self.sees(name.text, name.span) else None
        else:
            result = self.condition(key.expression)
        return None if result is None else Order(result, key.direction == "DESC")

    def expression(self, words: Sequence[SparqlToken], span: Span, aggregates: bool = True) -> Expression | None:
        """An expression, its aggregates taken out; None where it is wrong, which is reported."""
        before = len(self.prologue.findings.errors)
        refuse_changing(words, self.prologue.findings)
        refuse_previous(words, self.prologue.findings)
        for piece in words:
            if piece.is_word("EXISTS"):
                self._report("E250", "EXISTS stands in a GPM, which has a graph to look at", piece.span)
        plain = self._without_aggregates(words, span, aggregates)
        text = normal(plain, self.prologue) if plain else None
        if text is None or len(self.prologue.findings.errors) > before:
            return None
        try:
            expression_of(text)
        except NotSparql as error:
            report(error, span, self.prologue.findings)
            return None
        for piece in plain:
            if piece.kind == "var" and MADE not in piece.text:
                self.sees(piece.text[1:], piece.span)
        if len(self.prologue.findings.errors) > before:
            return None
        return Expression(text.text, variables(plain), span)

    def _without_aggregates(self, words: Sequence[SparqlToken], span: Span, allowed: bool) -> list[SparqlToken]:
        """The words with a variable in place of each aggregate."""
        kept: list[SparqlToken] = []
        index = 0
        while index < len(words):
            piece = words[index]
            if piece.is_word(*AGGREGATES) and index + 1 < len(words) and words[index + 1].text == "(":
                end = closing(words, index + 1)
                name = self._aggregate(words[index : end + 1], span, allowed)
                kept.append(replace(piece, kind="var", text=f"?{name}"))
                index = end + 1
            else:
                kept.append(piece)
                index += 1
        return kept

    def _aggregate(self, words: Sequence[SparqlToken], span: Span, allowed: bool) -> str:
        """The variable that stands for an aggregate."""
        call = words[0].span.to(words[-1].span)
        function = words[0].text.upper()
        inner = list(words[2:-1])
        distinct = bool(inner) and inner[0].is_word("DISTINCT")
        inner = inner[1:] if distinct else inner
        separator, inner = self._separator(function, inner, call)
        if not allowed:
            self._report("E256", f"{function} stands in GROUP BY, which makes the groups that it ranges over", call)
        elif any(piece.is_word(*AGGREGATES) and after.text == "(" for piece, after in pairwise(inner)):
            self._report("E256", "an aggregate stands inside an aggregate", call)
        elif len(inner) == 1 and inner[0].text == "*":
            return self._added(GraphAggregate("", "COUNT", None, distinct, span=call))
        elif not inner:
            self._report("E250", f"{function} has no argument", call)
        else:
            uses = len(self.used)
            of = self.expression(inner, span)
            del self.used[uses:]  # inside an aggregate, every iteration's value is meant
            if of is not None:
                assert function in get_args(AggregateName)
                item = self._ranged_over(of, call)
                return self._added(GraphAggregate("", function, of, distinct, item, separator, call))  # type: ignore[arg-type]
        return f"aggregate{MADE}0"

    def _separator(self, function: str, inner: list[SparqlToken], span: Span) -> tuple[str, list[SparqlToken]]:
        for number, piece in enumerate(inner):
            if piece.text == ";" and function == "GROUP_CONCAT" and len(inner) == number + 4:
                quoted = inner[-1].text
                quotes = 3 if quoted[:3] in ('"""', "'''") else 1
                return quoted[quotes:-quotes].encode().decode("unicode_escape"), inner[:number]
        return " ", inner

    def _added(self, aggregate: GraphAggregate) -> str:
        for earlier in self.aggregates:
            if replace(earlier, name="") == aggregate:
                return earlier.name
        name = f"aggregate{MADE}{len(self.aggregates) + 1}"
        self.aggregates.append(replace(aggregate, name=name))
        return name

    def _ranged_over(self, of: Expression, span: Span) -> int | None:
        """The `+` whose iterations an aggregate ranges over."""
        items = [n for n, iterated in self.iterated.items() if iterated & set(of.variables)]
        if len(items) > 1:
            self._report(
                "E256",
                "an aggregate ranges over the iterations of one `+`, and this one has variables of two",
                span,
                *(Note("one of them", self.shape.items[n].span) for n in items),
            )
        elif not items and not self.keys:
            shown = ", ".join(f"`?{v}`" for v in of.variables) or "this"
            what = "have one value each" if len(of.variables) > 1 else "has one value"
            hint = "an aggregate ranges over the iterations of the `+` that binds its variables"
            self._report("W322", f"{shown} {what} in a match, so there is nothing to aggregate", span, hint=hint)
        return items[0] if items else None

    def sees(self, name: str, span: Span) -> bool:
        self.used.append((name, span))
        if name in self.bound or name in self.named:
            return True
        absent = {v for item in self.shape.items for v in may_bind(item.operand, self.shape)} - self.bound
        close = nearest(name, {*self.bound, *self.named})
        hint = f"did you mean `?{close}`?" if close else "a GPM of the sequence must have it"
        if name in absent:
            hint = "it is of a GPM with `!`, which is not there in a match"
        self._report("E301", f"nothing binds `?{name}`", span, hint=hint)
        return False

    def _report(self, code: str, message: str, span: Span, *notes: Note, hint: str | None = None) -> None:
        self.prologue.findings.add(code, message, span, *notes, hint=hint)

    # What follows for groups

    def grouped(self, rows: RowModifiers) -> tuple[RowModifiers, tuple[GraphAggregate, ...]]:
        """The rows with the `+` whose iterations are grouped, and the aggregates with it where they range over all."""
        stars = [a for a in self.aggregates if a.of is None]
        if not rows.group_by:
            for star in stars:
                hint = "count a variable that the `+` binds: COUNT(?x)"
                self._report("E256", "COUNT(*) does not say what it counts", star.span, hint=hint)
            return rows, tuple(self.aggregates)
        by_key = {v for key in rows.group_by for v in (key.expression.variables if key.expression else (key.name,))}
        items = {n for n, names in self.iterated.items() if names & by_key}
        items |= {a.item for a in self.aggregates if a.item is not None}
        if len(items) > 1:
            self._report(
                "E256",
                "GROUP BY groups the iterations of one `+`, and this query has variables of two there",
                rows.group_by[0].span,
            )
        item = min(items, default=None)
        self._check_grouped(rows, item)
        return replace(rows, item=item), tuple(replace(a, item=item) for a in self.aggregates)

    def _check_grouped(self, rows: RowModifiers, item: int | None) -> None:
        """Outside aggregates, a row of a group has its keys and what is the same in all iterations."""
        several = self.iterated.get(item, set()) if item is not None else set()
        for name, span in self.used:
            if name in several and name not in self.keys:
                hint = f"group by it, or aggregate it: MAX(?{name}), SAMPLE(?{name}) …"
                self._report("E256", f"`?{name}` has several values in a group", span, hint=hint)


def read_keys(modifiers: Sequence[t.Modifier], expressions: QueryExpressions) -> tuple[ProjectedColumn, ...] | None:
    """The keys of GROUP BY, which SELECT may name."""
    projected_columns: list[ProjectedColumn] = []
    for modifier in modifiers:
        for part in modifier.keys if isinstance(modifier, t.GroupBy) else ():
            key = expressions.column(part, "GROUP BY")
            if key is None:
                return None
            projected_columns.append(key)
    expressions.keys = {key.name for key in projected_columns}
    expressions.used.clear()
    return tuple(projected_columns)


def read_rows(
    modifiers: Sequence[t.Modifier], keys: tuple[ProjectedColumn, ...], expressions: QueryExpressions
) -> RowModifiers | None:
    """HAVING, ORDER BY and LIMIT; None where something is wrong, which is reported."""
    findings = expressions.prologue.findings
    before = len(findings.errors)
    having: list[Expression | None] = []
    order: list[Order | None] = []
    limit: int | None = None
    for modifier in modifiers:
        match modifier:
            case t.Having():
                having += [expressions.condition(c) for c in modifier.conditions]
            case t.OrderBy():
                order += [expressions.order(key) for key in modifier.keys]
            case t.LimitClause():
                limit = int(modifier.count.text) if modifier.count.text.isdigit() else None
                if limit is None:
                    findings.add("E101", f"LIMIT takes a whole number, not {modifier.count.text}", modifier.count.span)
            case t.Offset():
                hint = "LIMIT takes the first rows of each match, in the order of ORDER BY"
                findings.add("E258", "queries over streams have no OFFSET", modifier.span, hint=hint)
    if len(findings.errors) > before:
        return None
    return RowModifiers(keys, None, tuple(c for c in having if c), tuple(o for o in order if o), limit)
