"""`GRAPH <stream> { … }` in rules: the solutions of a graph pattern on the events of a stream, as events.

It is an anonymous query of one GPM: its variables are variables of the rule, `?speed` is `Speed`, and the rule
reads its answers as it reads any event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b

from augury.algebra.graph_queries import GraphQuery, Item, ProjectedColumn, SelectForm, StreamClause, Use
from augury.algebra.terms import Var
from augury.core.errors import Findings, Note, Span
from augury.language.rules import syntax as s
from augury.language.spaseq.graph_patterns import join_filters, read_pattern
from augury.language.spaseq.previous_values import refuse_previous
from augury.language.spaseq.sparql_text import Prologue
from augury.language.spaseq.tokens import SparqlToken, pieces_of


def read_graph_atom(span: Span, prefixes: Mapping[str, str], findings: Findings) -> s.GraphCall | None:
    """The atom that a span holds; None where it is wrong, which is reported."""
    words = pieces_of(span)
    group = Span(span.source, words[2].start, span.end)
    prologue = Prologue(findings, prefixes=dict(prefixes))
    iri = prologue.iri(words[1].text, words[1].span)
    refuse_previous(words, findings)
    read = read_pattern("A", group, (iri or "",), prologue)
    gpms = None if read is None else join_filters([read], prologue)
    if iri is None or gpms is None:
        return None
    args = _arguments(gpms[0].variables, words, findings)
    if args is None:
        return None
    digest = blake2b(f"{iri} {gpms[0].pattern}".encode(), digest_size=4).hexdigest()
    query = GraphQuery(
        f"graph <{iri}> {digest}",
        (StreamClause("S", iri, span),),
        (Item(Use("A", span), span=span),),
        gpms,
        SelectForm(tuple(ProjectedColumn(v) for v in gpms[0].variables)),
        inside=True,
        span=span,
    )
    return s.GraphCall(query.name, args, span=span, query=query, text=_text(words))


def _arguments(names: Iterable[str], words: list[SparqlToken], findings: Findings) -> tuple[Var, ...] | None:
    """The variables of the rule that the variables of a pattern are: their names begin with a capital."""
    places = {piece.text[1:]: piece.span for piece in reversed(words) if piece.kind == "var"}
    result: dict[str, str] = {}
    for name in names:
        variable = name[0].upper() + name[1:]
        if not variable[0].isupper():
            findings.add(
                "E250",
                f"`?{name}` cannot be a variable of a rule",
                places[name],
                hint="let its name begin with a letter",
            )
            return None
        if variable in result:
            findings.add(
                "E203",
                f"`?{name}` and `?{result[variable]}` are both `{variable}` in the rule",
                places[name],
                Note("the other one", places[result[variable]]),
            )
            return None
        result[variable] = name
    return tuple(Var(variable, places[name]) for variable, name in result.items())


def _text(words: list[SparqlToken]) -> str:
    """The atom on one line."""
    shown = [f"GRAPH {words[1].text}"]
    for piece in words[2:]:
        glued = piece.lines is None and piece.text not in ("{", "}")
        shown.append(("" if glued else " ") + piece.written)
    return "".join(shown)


def graph_atoms(modules: Iterable[s.Module]) -> tuple[GraphQuery, ...]:
    """The queries behind the GRAPH atoms of some rules, each once."""
    return tuple(dict.fromkeys(_queries(modules)))


def _queries(modules: Iterable[s.Module]) -> Iterator[GraphQuery]:
    for module in modules:
        for statement in module.statements:
            if isinstance(statement, s.RuleStatement):
                for literal in statement.body:
                    yield from (node.query for node in s.walk(literal) if isinstance(node, s.GraphCall))
