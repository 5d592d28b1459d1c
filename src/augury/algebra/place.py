"""Puts every condition and window where it belongs: at the lowest operator that binds what it needs.

This is part of the meaning, not an optimisation: under `recent` and `chronological` a policy chooses among the
candidates that meet every condition decidable at that operator (SEMANTICS 5).

    (a(X) SEQ b(Y) SEQ c(Z)).10 WHERE X < Y   →   SEQ[10](SEQ[10, X < Y](a(X), b(Y)), c(Z))
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from augury.algebra.nodes import (
    AnyOf,
    Collect,
    Compare,
    Condition,
    Either,
    Every,
    Graph,
    Holds,
    Instant,
    Join,
    Label,
    Node,
    NoneInside,
    Relates,
    Relative,
    Repeat,
    Rule,
    Run,
    Scan,
    Select,
    Spans,
    Unfold,
    Unless,
    Within,
    bound_labels,
    bound_vars,
    condition_labels,
    condition_terms,
    condition_vars,
    conditions,
    event_types,
    inputs,
    mapped,
    walk,
    walk_all,
    walk_condition,
)
from augury.algebra.place_runs import place_run, sink_into_run
from augury.algebra.plan import Plan
from augury.algebra.ready import binds as binds
from augury.algebra.ready import is_ready as is_ready
from augury.algebra.ready import ready_order as ready_order
from augury.algebra.strata import static_reads
from augury.algebra.terms import is_pure
from augury.model import Fact


def place(node: Node, varying: Collection[str] = ()) -> Node:
    """The pattern with its conditions and windows placed.

    Conditions on facts in `varying`, and those with a function that is not pure, stay where they are written.
    """
    match node:
        case Select():
            result = place(node.input, varying)
            for condition in ready_order(node.where, bound_vars(result)):
                if isinstance(condition, NoneInside):
                    pattern, where = _correlated(condition.pattern, bound_vars(result), varying)
                    condition = replace(condition, pattern=pattern, where=where)
                stays = _varies(condition, varying) or not _is_pure(condition)
                result = _attach(condition, result) if stays else _sink(condition, result)
            return result
        case Within():
            inner = place(node.input, varying)
            pushed = _push_window(inner, node.length)
            return pushed if isinstance(inner, Join | Repeat | Run) else replace(node, input=pushed)
        case Run():
            return place_run(node, lambda condition: _varies(condition, varying) or not _is_pure(condition))
        case Either() | Every() | Graph() | Instant() | Join() | Label() | Repeat() | Scan() | Unfold():
            pass
        case _:
            assert_never(node)
    below = mapped(node, lambda part: place(part, varying))
    if isinstance(below, Join) and below.absent is not None:
        absent, where = _correlated(below.absent, bound_vars(below.left) | bound_vars(below.right), varying)
        return replace(below, absent=absent, absent_where=where)
    return below


def varying(plan: Plan, facts: Iterable[Fact]) -> set[str]:
    """The static predicates whose answers change in time: those of facts with a validity, and all that read them."""
    timed = {f.name for f in facts if f.since is not None or f.until is not None}
    return reading(plan, timed | {name for name, _ in plan.made})


def reading(plan: Plan, names: Iterable[str]) -> set[str]:
    """These static predicates, and all that read them."""
    reads, found = static_reads(plan.clauses), set(names)
    while more := {head[0] for head, calls in reads.items() if any(c[0] in found for c in calls)} - found:
        found |= more
    return found


def placed(rule: Rule, varying: Collection[str], retention: int | None = None, unbounded: Collection[str] = ()) -> Rule:
    """The rule with its conditions placed; a retention is a window on the rules that have no bound of their own."""
    kept = retention is not None and rule.label in unbounded
    body = place(Within(rule.body, retention) if kept and retention is not None else rule.body, varying)
    return replace(rule, body=body, collects=tuple(_placed_collect(c, varying) for c in rule.collects))


def _placed_collect(collect: Collect, varying: Collection[str]) -> Collect:
    """Conditions that only concern what is collected are tested once for each, not once for each row."""
    own = bound_vars(collect.pattern)
    first = tuple(c for c in collect.where if condition_vars(c) <= own and not condition_labels(c))
    pattern = Select(collect.pattern, first, collect.span) if first else collect.pattern
    rest = tuple(c for c in collect.where if c not in first)
    return replace(collect, pattern=place(pattern, varying), where=rest)


def _correlated(absent: Node, outer: set[str], varying: Collection[str]) -> tuple[Node, tuple[Condition, ...]]:
    """An absent pattern, and those of its conditions that use variables of what it is absent from.

    NOT(c(Z) WHERE Z > X).[a(X), b]   →   absent c(Z), where Z > X
    """
    if not isinstance(absent, Select):
        return place(absent, varying), ()
    own = bound_vars(absent.input)
    kept: list[Condition] = []
    free: list[Condition] = []
    for condition in ready_order(absent.where, own | outer):
        foreign = condition_vars(condition) & outer - own or condition_labels(condition)
        (free if foreign or _binds_any(free, condition) else kept).append(condition)
    inner = place(replace(absent, where=tuple(kept)), varying) if kept else place(absent.input, varying)
    return inner, tuple(free)


def _binds_any(earlier: list[Condition], condition: Condition) -> bool:
    """Whether an earlier condition binds a variable of this one."""
    return any(binds(e, set()) & condition_vars(condition) for e in earlier)


def _varies(condition: Condition, varying: Collection[str]) -> bool:
    return any(part.name in varying for part in walk_condition(condition) if isinstance(part, Holds | Unless))


def _is_pure(condition: Condition) -> bool:
    """Whether a condition calls no function that may give something else the next time."""
    absent = [part.pattern for part in walk_condition(condition) if isinstance(part, NoneInside)]
    return is_pure(*condition_terms(condition)) and all(_is_pure(c) for node in absent for c in _inside(node))


def _inside(pattern: Node) -> Iterator[Condition]:
    """The conditions of a pattern, absences included."""
    for node in walk_all(pattern):
        yield from conditions(node)
        if isinstance(node, Join):
            yield from node.absent_where


def _attach(condition: Condition, node: Node) -> Node:
    """At the operator that the condition was written at: facts are seen at the end of its occurrences."""
    if isinstance(node, Label):
        return replace(node, input=_attach(condition, node.input))
    return _add(condition, node)


def _sink(condition: Condition, node: Node) -> Node:
    match condition:
        case Spans():
            return _sink_span(condition, node)
        case Holds() | Compare(op="=") if new := binds(condition, bound_vars(node)):
            return _sink_into(condition, node, condition_vars(condition) - new, condition_labels(condition), once=True)
        case Relative():
            return _sink_into(condition, node, set(), {condition.anchor}, once=True)
        case NoneInside():
            shared = condition_vars(condition) & bound_vars(node)
            return _sink_into(condition, node, shared, {condition.window} | not_looked_for(condition, node))
        case AnyOf() | Compare() | Holds() | Relates() | Unless():
            pass
        case _:
            assert_never(condition)
    return _sink_into(condition, node, condition_vars(condition), condition_labels(condition))


def not_looked_for(condition: NoneInside, node: Node) -> set[str]:
    """The labels whose occurrences the absence may meet: it is decidable only where all of them are known."""
    types = event_types(condition.pattern)
    return {n.label for n in walk(node) if isinstance(n, Label) and event_types(n.input) & types}


def _sink_into(condition: Condition, node: Node, needs: set[str], labels: set[str], once: bool = False) -> Node:
    """Into every lowest operator that binds what the condition needs: it is decidable at each of them.

    With `once` into one of them, the left one first: what the condition binds is bound once.
    """
    if isinstance(node, Run):
        return sink_into_run(condition, node)
    below = [part for part in inputs(node) if needs <= bound_vars(part) and labels <= bound_labels(part)]
    match node:
        case Join():
            below = below[:1] if once else below
        case Either():
            below = below if len(below) == 2 and not once else []
        case Repeat():
            below = [] if once else below
        case Select():
            below = [] if isinstance(node.input, Scan | Instant | Every | Label) else below
        case Graph() | Unfold():
            below = []
        case Every() | Instant() | Label() | Scan() | Within():
            pass
        case _:
            assert_never(node)

    def sunk(part: Node) -> Node:
        chosen = any(part is one for one in below)
        return _sink_into(condition, part, needs, labels, once) if chosen else part

    return mapped(node, sunk) if below else _add(condition, node)


def _add(condition: Condition, node: Node) -> Node:
    """The rows of an operator for which one more condition holds."""
    if isinstance(node, Join | Run | Select):
        return replace(node, where=(*node.where, condition))
    return Select(node, (condition,), condition.span)


def _sink_span(condition: Spans, node: Node) -> Node:
    """A window over labels holds, for those of them it has, at every operator below."""
    here = tuple(label for label in condition.labels if label in bound_labels(node))
    if len(here) < 2 and not (len(condition.labels) == len(here) == 1):
        return node
    part = replace(condition, labels=here)
    match node:
        case Join():
            left, right = _sink_span(condition, node.left), _sink_span(condition, node.right)
            whole = any(set(here) <= bound_labels(side) for side in (node.left, node.right))
            return replace(node, left=left, right=right, where=node.where if whole else (*node.where, part))
        case Within() | Select() if set(here) <= bound_labels(node.input):
            return replace(node, input=_sink_span(condition, node.input))
        case Run():
            return sink_into_run(part, node)
        case Either() | Every() | Graph() | Instant() | Label() | Repeat() | Scan() | Select() | Unfold() | Within():
            return _add(part, node)
        case _:
            assert_never(node)


def _push_window(node: Node, length: int) -> Node:
    """A window holds at every operator below it, because intervals only grow."""
    below = mapped(node, lambda part: _push_window(part, length))
    return replace(below, windows=(*below.windows, length)) if isinstance(below, Join | Repeat | Run) else below
