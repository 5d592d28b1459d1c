"""Queries in words: what each reads, how its sequence is matched, what it answers with and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from augury.algebra.graph_queries import (
    Both,
    Construct,
    EventCount,
    GraphAlternative,
    GraphQuery,
    Operand,
    SelectForm,
    SequenceStep,
    Sliding,
    StepSequence,
    Tumbling,
    Use,
    bound_before,
    may_bind,
    readings,
    step_variables,
    uses,
)
from augury.algebra.nodes import SkipTo
from augury.core.clock import Timestamp, show_duration
from augury.explain.tree import Tree

_SEPARATORS = {",": "directly after", ";": "next", ":": "at any later time"}


def query_text(query: GraphQuery) -> str:
    """A query as lines."""
    lines = [f"query {query.name}"]
    lines += _labelled("reads", [f"{stream.name} <{stream.iri}>" for stream in query.streams])
    lines += _labelled(
        "graphs", [f"GRAPH of {gpm.name} reads {_graphs(gpm.graphs)}" for gpm in query.gpms if gpm.graphs]
    )
    lines += _labelled("window", [_window(query)])
    lines += _labelled(
        "divided",
        [f"by {_variables(query.partition)}: contiguity sees the events of one value"] if query.partition else [],
    )
    lines += _labelled("taken", _taken(query))
    lines += _labelled("given", [_given(query)])
    for reading in readings(query.items):
        lines += _labelled("sequence", query_tree(query, reading).lines())
    return "\n".join(lines)


def query_json(query: GraphQuery) -> dict[str, Any]:
    return {
        "name": query.name,
        "reads": {stream.name: stream.iri for stream in query.streams},
        "window": _window(query),
        "partition": list(query.partition),
        "taken": list(_taken(query)),
        "given": _given(query),
        "gpms": {gpm.name: {"pattern": gpm.pattern, "on_join": [f.shown for f in gpm.filters]} for gpm in query.gpms},
        "sequences": [query_tree(query, reading).as_json() for reading in readings(query.items)],
    }


def _labelled(label: str, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"  {label if not number else '':<9} {line}"


def _graphs(names: tuple[str | None, ...]) -> str:
    return ", ".join("any graph" if name is None else f"<{name}>" for name in names)


def _variables(names: Iterable[str]) -> str:
    return ", ".join(f"?{name}" for name in names)


def _window(query: GraphQuery) -> str:
    match query.window:
        case None:
            return "none: every event is remembered"
        case Sliding():
            return f"{show_duration(query.window.length)} from the first event to the last"
        case Tumbling():
            origin = query.window.origin
            since = "the epoch" if origin is None else f"@'{origin}'" if isinstance(origin, Timestamp) else str(origin)
            return f"one of those of {show_duration(query.window.length)} that follow one another from {since} on"
        case EventCount():
            return f"at most {query.window.count} events from the first to the last, on all its streams"
        case _:
            assert_never(query.window)


def _taken(query: GraphQuery) -> Iterator[str]:
    """Which matches are taken, where not all are."""
    choice = query.choice
    if choice.which != "ALL":
        yield f"the {choice.which.lower()} matches of each first event"
    if choice.skip is not None:
        where = "after its end"
        if isinstance(choice.skip, SkipTo):
            where = f"from its {choice.skip.which.lower()} {_names(query.items[choice.skip.part].operand)} on"
        yield f"in order; after one that is taken the next begins {where}"


def _names(operand: Operand) -> str:
    return " or ".join(use.name for use in uses(operand))


def _given(query: GraphQuery) -> str:
    if query.choice.which != "ALL":
        return "with its last event, and taken back where another match takes its place"
    if not query.answers_late:
        return "with its last event"
    late = (
        "its window has passed" if isinstance(query.window, Tumbling) else "the window after its first event has passed"
    )
    return f"once {late}, where something must be absent after its last event; else with that"


def query_tree(query: GraphQuery, reading: StepSequence) -> Tree:
    """A reading of a query: its answer, and below it the steps in order."""
    children = [_step(query, reading, number, step) for number, step in enumerate(reading.steps)]
    for item in reading.absent:
        children.append(Tree(f"absent afterwards: {_operand(item.operand, query)}", kind="absent"))
    return Tree(_answer(query), tuple(children), "derived")


def _answer(query: GraphQuery) -> str:
    match query.answer:
        case SelectForm():
            return f"{query.name}({', '.join(column.name for column in query.answer.columns)})"
        case Construct():
            return f"a graph on <{query.answer.stream}>"
        case _:
            assert_never(query.answer)


def _step(query: GraphQuery, reading: StepSequence, number: int, step: SequenceStep) -> Tree:
    before = bound_before(reading, number, query)
    words = [
        f"{_SEPARATORS[step.item.separator]}: {_operand(step.item.operand, query)}"
        if number
        else _operand(step.item.operand, query)
    ]
    joined = [v for v in may_bind(step.item.operand, query) if v in before.may]
    if joined:
        words.append(f"joined on {_variables(joined)}")
    filters = [condition.shown for use in uses(step.item.operand) for condition in query.gpm(use.name).filters]
    if filters:
        words.append(f"where {' and '.join(filters)}")
    if step.repeats:
        between = "each directly after the one before" if step.between == "," else "each the next after the one before"
        words.append(f"once or more, {between}")
        mine = [v for v in may_bind(step.item.operand, query) if v in step_variables(reading, number, query).may]
        if mine:
            words.append(f"with {_variables(mine)} of its own")
    absent = tuple(Tree(f"absent between: {_operand(item.operand, query)}", kind="absent") for item in step.absent)
    return Tree(", ".join(words), absent)


def _operand(operand: Operand, query: GraphQuery) -> str:
    match operand:
        case Use():
            names = {stream.iri: stream.name for stream in reversed(query.streams)}
            return f"{operand.name} on {', '.join(names[iri] for iri in query.gpm(operand.name).streams)}"
        case Both():
            return f"({_operand(operand.left, query)} and at that time {_operand(operand.right, query)})"
        case GraphAlternative():
            return f"({_operand(operand.left, query)} or {_operand(operand.right, query)})"
        case _:
            assert_never(operand)
