"""The queries of a program: one a file, named by it, each after those whose graphs it reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from augury.algebra.graph_queries import Construct, GraphQuery, SelectForm, stream_type
from augury.algebra.plan import Attribute
from augury.core.errors import Findings, Note, Source
from augury.language.spaseq.query_algebra import query_of
from augury.language.spaseq.query_reader import read_query
from augury.language.spaseq.query_tree import first_word

SPASEQ = "spaseq"


def query_name(source: Source) -> str:
    """The name of the query in a source: that of its file, made a name of the rule language.

    >>> query_name(Source("rules/big-after-small.spaseq", ""))
    'big_after_small'
    """
    stem = PurePath(source.name).name.removesuffix(".spaseq")
    name = re.sub(r"\W+", "_", stem).strip("_")
    return name if name and not name[0].isdigit() else f"query_{name}".rstrip("_")


def read_queries(sources: Iterable[Source], findings: Findings) -> tuple[GraphQuery, ...]:
    """The queries of some sources. What is wrong goes to `findings`."""
    result: dict[str, GraphQuery] = {}
    for source in sources:
        name = query_name(source)
        tree = read_query(source, findings)
        query = query_of(tree, name, findings) if tree is not None else None
        if query is None:
            findings.unread.add(name)
        elif name in result:
            findings.add(
                "E203",
                f"two queries are called `{name}`",
                first_word(query.span),
                Note("the other one", first_word(result[name].span)),
                hint="a query is called as its file",
            )
        else:
            result[name] = query
    return tuple(result.values())


def ordered(queries: Iterable[GraphQuery], findings: Findings) -> tuple[GraphQuery, ...]:
    """Queries in an order in which each comes after those whose graphs it reads. A way round is reported."""
    left, result = list(queries), list[GraphQuery]()
    while left:
        made = {query.predicate for query in left}
        free = [query for query in left if not made & set(query.reads)]
        if not free:
            _report_cycle(left, findings)
            return (*result, *left)
        result += free
        left = [query for query in left if query not in free]
    return tuple(result)


def _report_cycle(queries: list[GraphQuery], findings: Findings) -> None:
    way = [queries[0]]
    while True:
        before = next(q for q in queries if q.predicate in way[-1].reads)
        if before in way:
            way = way[way.index(before) :]
            break
        way.append(before)
    shown = [f"{q.name} reads {q_before.predicate[0]}" for q, q_before in zip(way, [*way[1:], way[0]], strict=True)]
    findings.add(
        "E257",
        "the query reads what it constructs" if len(way) == 1 else "queries read what they construct, in a circle",
        first_word(way[0].span),
        Note("the way round: " + ", ".join(shown)),
        hint="construct into a stream of its own",
    )


def declared_by(queries: Iterable[GraphQuery]) -> Mapping[str, tuple[Attribute, ...]]:
    """What queries say of event types: their columns, and that a stream has graphs."""
    result: dict[str, tuple[Attribute, ...]] = {}
    for query in queries:
        for stream in query.streams:
            result[stream.type] = (Attribute("graph", "string"),)
        match query.answer:
            case SelectForm():
                result[query.name] = tuple(Attribute(column.name) for column in query.answer.columns)
            case Construct():
                result[stream_type(query.answer.stream)] = (Attribute("graph", "string"),)
    return result
