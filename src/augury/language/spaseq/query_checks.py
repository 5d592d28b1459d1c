"""Checks of a query as a value: the sequence, what its filters see, its partition, its template."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from augury.algebra.graph_queries import (
    Both,
    GraphAlternative,
    GraphQuery,
    Item,
    Operand,
    Sliding,
    Tumbling,
    Use,
    may_bind,
    readings,
    step_variables,
    surely_binds,
    uses,
)
from augury.core.clock import Kind, Timestamp
from augury.core.errors import Findings, Note, Span, nearest
from augury.language.spaseq import query_tree as t
from augury.language.spaseq.query_tree import first_word
from augury.language.spaseq.tokens import pieces_of


def check_sequence(query: GraphQuery, tree: t.QueryTree, findings: Findings) -> None:
    """What does not need the answer: it would only give errors that follow from these."""
    _check_ends(query, findings)
    _check_filters(query, findings)
    _check_previous(query, findings)
    _check_partition(query, tree, findings)


def _check_ends(query: GraphQuery, findings: Findings) -> None:
    optional = list(takewhile(lambda item: item.quantifier == "?", query.items))
    first = query.items[len(optional)] if len(optional) < len(query.items) else None
    if first is not None and first.quantifier == "!":
        hint = "begin with what is there for sure: nothing says since when to look"
        notes = [Note("without this the absence comes first", item.span) for item in optional[:1]]
        findings.add("E251", "a sequence does not begin with an absence", first.span, *notes, hint=hint)
        return
    for reading in readings(query.items):
        for item in reading.absent[-1:]:
            if not isinstance(query.window, Sliding | Tumbling):
                hint = "give the query a window of time: WITHIN 30 MINUTES"
                findings.add("E252", f"nothing says how long {item.span.quoted} must be absent", item.span, hint=hint)


def _check_filters(query: GraphQuery, findings: Findings) -> None:
    """A filter that looks at another GPM looks at one that comes before it, wherever its own GPM stands."""
    before: set[str] = set()
    for item in query.items:
        for use, seen in _before(item.operand, frozenset(before), query):
            gpm = query.gpm(use.name)
            for condition in gpm.filters:
                for name in condition.needs:
                    if name in seen or name in gpm.variables:
                        continue
                    if name in _absent(query):
                        hint = "it is of a GPM with `!`, which is not there in a match"
                        findings.add("E301", f"nothing binds `?{name}`", _variable(condition.span, name), hint=hint)
                    else:
                        findings.add(
                            "E254",
                            f"`?{name}` has no value yet when `{gpm.name}` is matched",
                            _variable(condition.span, name),
                            Note("matched here", use.span),
                            hint="a FILTER sees the GPMs that come before its own in SEQ; write it in the later one",
                        )
        if item.quantifier != "!":
            before.update(may_bind(item.operand, query))


def _check_previous(query: GraphQuery, findings: Findings) -> None:
    """PREV asks for a variable that each iteration of a `+` has of its own, wherever its GPM stands."""
    for number, item in enumerate(query.items):
        filters = [condition for use in uses(item.operand) for condition in query.gpm(use.name).filters]
        for value in (value for condition in filters for value in condition.previous):
            mistake = _not_own(value.of, number, query)
            if mistake is not None:
                hint = "PREV takes a variable that is first bound in an item with `+`"
                message = f"{value.span.quoted} asks for the iteration before, and {mistake}"
                findings.add("E237", message, value.span, Note("matched here", item.span), hint=hint)


def _not_own(name: str, number: int, query: GraphQuery) -> str | None:
    """Why the iterations of an item do not have a variable of their own; None where they do."""
    item = query.items[number]
    if item.quantifier != "+":
        return f"{item.span.quoted} does not repeat"
    if name not in may_bind(item.operand, query):
        return f"{item.span.quoted} does not bind `?{name}`"
    steps = [(r, n) for r in readings(query.items) for n, step in enumerate(r.steps) if step.number == number]
    if any(name not in step_variables(reading, n, query).surely for reading, n in steps):
        return f"`?{name}` has its value before {item.span.quoted}"
    return None


def _absent(query: GraphQuery) -> set[str]:
    """The variables of GPMs with `!` alone."""
    result = {v for item in query.items if item.quantifier == "!" for v in may_bind(item.operand, query)}
    return result - {v for item in query.items if item.quantifier != "!" for v in may_bind(item.operand, query)}


def _before(operand: Operand, seen: frozenset[str], query: GraphQuery) -> Iterator[tuple[Use, frozenset[str]]]:
    """The GPMs of an operand, each with what a match may have bound before it."""
    match operand:
        case Use():
            yield operand, seen
        case Both():
            yield from _before(operand.left, seen, query)
            yield from _before(operand.right, seen | frozenset(may_bind(operand.left, query)), query)
        case GraphAlternative():
            yield from _before(operand.left, seen, query)
            yield from _before(operand.right, seen, query)


def _variable(span: Span, name: str) -> Span:
    return next((p.span for p in pieces_of(span) if p.kind == "var" and p.text[1:] == name), span)


def _check_partition(query: GraphQuery, tree: t.QueryTree, findings: Findings) -> None:
    clause = next((c for c in tree.clauses if isinstance(c, t.Partition)), None)
    bound = {v for item in query.items for v in may_bind(item.operand, query)}
    for variable in clause.variables if clause else ():
        if variable.text not in bound:
            close = nearest(variable.text, bound)
            hint = f"did you mean `?{close}`?" if close else "a GPM of the sequence must have it"
            findings.add("E301", f"nothing binds `?{variable.text}`", variable.span, hint=hint)
            continue
        for item in query.items:
            if item.quantifier != "!" and variable.text not in surely_binds(item.operand, query):
                findings.add(
                    "E255",
                    f"`?{variable.text}` partitions the streams, but {item.span.quoted} does not always bind it",
                    variable.span,
                    Note("matched here", item.span),
                    hint="every GPM that is matched must have it, and not only in an OPTIONAL or one side of a UNION or `|`",
                )


def check_origin(query: GraphQuery, clock: Kind, findings: Findings) -> None:
    """Windows that tumble from a time begin at one of the clock."""
    window = query.window
    if not isinstance(window, Tumbling) or window.origin is None:
        return
    if clock == "timestamp" and isinstance(window.origin, int):
        hint = 'write a time: FROM "2026-01-31T10:00:00Z"'
        findings.add("E601", f"the windows begin at {window.origin}, but times are timestamps", window.span, hint=hint)
    elif clock == "logical" and isinstance(window.origin, Timestamp):
        findings.add(
            "E601",
            f"the windows begin at {window.origin}, but times are those of a logical clock",
            window.span,
            hint="write a time point: FROM 5",
        )


def warn_of(query: GraphQuery, findings: Findings) -> None:
    """What is allowed, and hardly meant."""
    if query.window is None and len(query.items) > 1:
        findings.add(
            "W304",
            "the query has no WITHIN, so it remembers every event",
            first_word(query.span),
            hint="give it a window: WITHIN 30 MINUTES",
        )
    _warn_of_endless(query, findings)
    for item, after in zip(query.items, query.items[1:], strict=False):
        if item.quantifier == "!" and _directly(item, after) and not query.partition:
            findings.add(
                "W321",
                f"{item.span.quoted} is always absent: nothing lies between events that are contiguous",
                item.span,
                hint="let the item after it stand behind `;` or `:`",
            )


def _warn_of_endless(query: GraphQuery, findings: Findings) -> None:
    """Under LONGEST, a repetition that begins the sequence skips what is no iteration, so nothing ends it but the window."""
    first, *others = (item for item in query.items if item.quantifier != "!")
    if query.choice.which != "LONGEST" or first.quantifier != "+":
        return
    if others:
        message = f"LONGEST lets {first.span.quoted} go on past {others[0].span.quoted}: it skips what lies between"
        hint = "begin with another item, after which iterations are contiguous, or say SHORTEST"
        findings.add("W315", message, first.span, Note("what it goes past", others[0].span), hint=hint)
    elif query.window is None:
        message = f"nothing can end {first.span.quoted}, so the longest match is never final"
        findings.add("W312", message, first.span, hint="give the query a window: WITHIN 30 MINUTES")


def _directly(item: Item, after: Item) -> bool:
    return after.separator == "," and after.quantifier in ("", "+")
