"""Puts every condition and window where it belongs: at the lowest operator that binds what it needs.

This is part of the meaning, not an optimisation: under `recent` and `chronological` a policy chooses among the
candidates that meet every condition decidable at that operator (SEMANTICS 5).

    (a(X) SEQ b(Y) SEQ c(Z)).10 WHERE X < Y   →   SEQ[10](SEQ[10, X < Y](a(X), b(Y)), c(Z))
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from augury.algebra import nodes as n
from augury.algebra.place_runs import place_run, sink_into_run
from augury.algebra.plan import Plan
from augury.algebra.ready import binds as binds
from augury.algebra.ready import is_ready as is_ready
from augury.algebra.ready import ready_order as ready_order
from augury.algebra.strata import static_reads
from augury.algebra.terms import is_pure
from augury.core.model import Fact


def place(node: n.Node, varying: Collection[str] = ()) -> n.Node:
    """The pattern with its conditions and windows placed.

    Conditions on facts in `varying`, and those with a function that is not pure, stay where they are written.
    """
    match node:
        case n.Select():
            result = place(node.input, varying)
            for condition in ready_order(node.where, n.bound_vars(result)):
                if isinstance(condition, n.NoneInside):
                    pattern, where = _correlated(condition.pattern, n.bound_vars(result), varying)
                    condition = replace(condition, pattern=pattern, where=where)
                stays = _varies(condition, varying) or not _is_pure(condition)
                result = _attach(condition, result) if stays else _sink(condition, result)
            return result
        case n.Within():
            inner = place(node.input, varying)
            pushed = _push_window(inner, node.length)
            return pushed if isinstance(inner, n.Join | n.Repeat | n.Run) else replace(node, input=pushed)
        case n.Run():
            return place_run(node, lambda condition: _varies(condition, varying) or not _is_pure(condition))
        case (
            n.Either()
            | n.Every()
            | n.Graph()
            | n.Instant()
            | n.Join()
            | n.Label()
            | n.Repeat()
            | n.Scan()
            | n.SessionWindow()
            | n.Unfold()
        ):
            pass
        case _:
            assert_never(node)
    below = n.mapped(node, lambda part: place(part, varying))
    if isinstance(below, n.Join) and below.absent is not None:
        absent, where = _correlated(below.absent, n.bound_vars(below.left) | n.bound_vars(below.right), varying)
        return replace(below, absent=absent, absent_where=where)
    return below


def varying(plan: Plan, facts: Iterable[Fact]) -> set[str]:
    """The static predicates whose answers change in time: those of facts with a validity, and all that read them."""
    timed = {f.name for f in facts if f.since is not None or f.until is not None}
    return reading(plan, timed | {name for name, _ in plan.made})


def reading(plan: Plan, names: Iterable[str]) -> set[str]:
    """These static predicates, and all that read them."""
    reads, readers = static_reads(plan.clauses), set(names)
    while more := {head[0] for head, calls in reads.items() if any(c[0] in readers for c in calls)} - readers:
        readers |= more
    return readers


def placed(
    rule: n.Rule, varying: Collection[str], retention: int | None = None, unbounded: Collection[str] = ()
) -> n.Rule:
    """The rule with its conditions placed; a retention is a window on the rules that have no bound of their own."""
    body = rule.body
    if retention is not None and rule.label in unbounded:
        body = n.Within(_retained(body, retention), retention)
    body = place(body, varying)
    return replace(rule, body=body, collects=tuple(_placed_collects(rule, varying)))


def _retained(node: n.Node, retention: int) -> n.Node:
    """The pattern, with a bound on those windows whose length is data and that have none."""
    below = n.mapped(node, lambda part: _retained(part, retention))
    if not isinstance(below, n.Select):
        return below
    return replace(below, where=tuple(_bounded(c, retention) for c in below.where))


def _bounded(condition: n.Condition, retention: int) -> n.Condition:
    if not isinstance(condition, n.Relative) or isinstance(condition.length, int) or condition.bound is not None:
        return condition
    return replace(condition, most=retention, bound=retention)


def _placed_collects(rule: n.Rule, varying: Collection[str]) -> Iterator[n.Collect]:
    """Conditions that only concern what is collected are tested, and bind, once for each, not once for each row.

    while w: collect a(X, T), X > 3, D = format_time(T)   →   collect (a(X, T) WHERE X > 3, D = format_time(T))
    """
    outer = {v for node in n.walk(rule.body) for v in n.bound_vars(node)}
    outer |= {v for node in n.walk(rule.body) for c in n.conditions(node) for v in n.condition_vars(c)}
    for collect in rule.collects:
        bound, first = n.bound_vars(collect.pattern), list[n.Condition]()
        for condition in ready_order(collect.where, bound):
            new = binds(condition, bound) - outer if isinstance(condition, n.Compare) else set()
            if n.condition_vars(condition) <= bound | new and not n.condition_labels(condition):
                first.append(condition)
                bound |= new
        pattern = n.Select(collect.pattern, tuple(first), collect.span) if first else collect.pattern
        rest = tuple(c for c in collect.where if c not in first)
        yield replace(collect, pattern=place(pattern, varying), where=rest)
        outer |= {*collect.by, *n.bound_vars(collect.pattern)}


def _correlated(absent: n.Node, outer: set[str], varying: Collection[str]) -> tuple[n.Node, tuple[n.Condition, ...]]:
    """An absent pattern, and those of its conditions that use variables of what it is absent from.

    NOT(c(Z) WHERE Z > X).[a(X), b]   →   absent c(Z), where Z > X
    """
    if not isinstance(absent, n.Select):
        return place(absent, varying), ()
    bound = n.bound_vars(absent.input)
    kept: list[n.Condition] = []
    free: list[n.Condition] = []
    for condition in ready_order(absent.where, bound | outer):
        foreign = n.condition_vars(condition) & outer - bound or n.condition_labels(condition)
        (free if foreign or _binds_any(free, condition) else kept).append(condition)
    inner = place(replace(absent, where=tuple(kept)), varying) if kept else place(absent.input, varying)
    return inner, tuple(free)


def _binds_any(earlier: list[n.Condition], condition: n.Condition) -> bool:
    """Whether an earlier condition binds a variable of this one."""
    return any(binds(e, set()) & n.condition_vars(condition) for e in earlier)


def _varies(condition: n.Condition, varying: Collection[str]) -> bool:
    return any(part.name in varying for part in n.walk_condition(condition) if isinstance(part, n.Holds | n.Unless))


def _is_pure(condition: n.Condition) -> bool:
    """Whether a condition calls no function that may give something else the next time."""
    absent = [part.pattern for part in n.walk_condition(condition) if isinstance(part, n.NoneInside)]
    return is_pure(*n.condition_terms(condition)) and all(_is_pure(c) for node in absent for c in _inside(node))


def _inside(pattern: n.Node) -> Iterator[n.Condition]:
    """The conditions of a pattern, absences included."""
    for node in n.walk_all(pattern):
        yield from n.conditions(node)
        if isinstance(node, n.Join):
            yield from node.absent_where


def _attach(condition: n.Condition, node: n.Node) -> n.Node:
    """At the operator that the condition was written at: facts are seen at the end of its occurrences."""
    if isinstance(node, n.Label):
        return replace(node, input=_attach(condition, node.input))
    return _add(condition, node)


def _sink(condition: n.Condition, node: n.Node) -> n.Node:
    match condition:
        case n.Spans():
            return _sink_span(condition, node)
        case n.Holds() | n.Compare(op="=") if new := binds(condition, n.bound_vars(node)):
            return _sink_into(
                condition, node, n.condition_vars(condition) - new, n.condition_labels(condition), once=True
            )
        case n.Relative():
            return _sink_into(condition, node, n.condition_vars(condition), n.condition_labels(condition), once=True)
        case n.NoneInside():
            shared = n.condition_vars(condition) & n.bound_vars(node)
            return _sink_into(condition, node, shared, {condition.window} | not_looked_for(condition, node))
        case n.AnyOf() | n.Compare() | n.Holds() | n.Relates() | n.Unless():
            pass
        case _:
            assert_never(condition)
    return _sink_into(condition, node, n.condition_vars(condition), n.condition_labels(condition))


def not_looked_for(condition: n.NoneInside, node: n.Node) -> set[str]:
    """The labels whose occurrences the absence may meet: it is decidable only where all of them are known."""
    types = n.event_types(condition.pattern)
    labels = (part for part in n.walk(node) if isinstance(part, n.Label) and not part.interval)
    return {part.label for part in labels if n.event_types(part.input) & types}


def _sink_into(condition: n.Condition, node: n.Node, needs: set[str], labels: set[str], once: bool = False) -> n.Node:
    """Into every lowest operator that binds what the condition needs: it is decidable at each of them.

    With `once` into one of them, the left one first: what the condition binds is bound once.
    """
    below = [part for part in n.inputs(node) if needs <= n.bound_vars(part) and labels <= n.bound_labels(part)]
    match node:
        case n.Run():
            return sink_into_run(condition, node)
        case n.Join():
            below = below[:1] if once else below
        case n.Either():
            below = below if len(below) == 2 and not once else []
        case n.Repeat():
            below = [] if once else below
        case n.Select():
            below = [] if isinstance(node.input, n.Scan | n.Instant | n.Every | n.SessionWindow | n.Label) else below
        case n.Graph() | n.SessionWindow() | n.Unfold():
            below = []
        case n.Every() | n.Instant() | n.Label() | n.Scan() | n.Within():
            pass
        case _:
            assert_never(node)

    def sunk(part: n.Node) -> n.Node:
        chosen = any(part is target for target in below)
        return _sink_into(condition, part, needs, labels, once) if chosen else part

    return n.mapped(node, sunk) if below else _add(condition, node)


def _add(condition: n.Condition, node: n.Node) -> n.Node:
    """The rows of an operator for which one more condition holds."""
    if isinstance(node, n.Join | n.Run | n.Select):
        return replace(node, where=(*node.where, condition))
    return n.Select(node, (condition,), condition.span)


def _sink_span(condition: n.Spans, node: n.Node) -> n.Node:
    """A window over labels holds, for those of them it has, at every operator below."""
    here = tuple(label for label in condition.labels if label in n.bound_labels(node))
    if len(here) < 2 and not (len(condition.labels) == len(here) == 1):
        return node
    part = replace(condition, labels=here)
    match node:
        case n.Join():
            left, right = _sink_span(condition, node.left), _sink_span(condition, node.right)
            whole = any(set(here) <= n.bound_labels(side) for side in (node.left, node.right))
            return replace(node, left=left, right=right, where=node.where if whole else (*node.where, part))
        case n.Within() | n.Select() if set(here) <= n.bound_labels(node.input):
            return replace(node, input=_sink_span(condition, node.input))
        case n.Run():
            return sink_into_run(part, node)
        case n.Within() | n.Select() | n.Scan() | n.Instant() | n.Every() | n.Label() | n.Either() | n.Repeat():
            return _add(part, node)
        case n.Graph() | n.Unfold() | n.SessionWindow():
            return _add(part, node)
        case _:
            assert_never(node)


def _push_window(node: n.Node, length: int) -> n.Node:
    """A window holds at every operator below it, because intervals only grow."""
    below = n.mapped(node, lambda part: _push_window(part, length))
    return replace(below, windows=(*below.windows, length)) if isinstance(below, n.Join | n.Repeat | n.Run) else below
