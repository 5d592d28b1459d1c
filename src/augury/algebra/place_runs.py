"""Puts the conditions of a run where they are decidable: at a part, behind its repetition, or at the end.

a(I) NEXT b(I, X)+ NEXT c(I, Y) WHERE Y > 3, count(X) < Y, count(X) > 1
→   b: after count(X) > 1;  c: Y > 3 at its scan, where count(X) < Y

Conditions that need nothing of the parts, `limit(K)` or `K = 2`, bind K before the first event where another condition has K:
every part then has K as a variable that all of them share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from augury.algebra import nodes as n
from augury.algebra.ready import binds, ready_order
from augury.algebra.run_terms import asked_of, in_turn, outer_variables, part_variables, run_labels, run_variables

Slot = tuple[int, int]  # a part, and whether the place is its `where` (0) or its `after` (1)


def place_run(run: n.Run, stays: Callable[[n.Condition], bool]) -> n.Run:
    """The run with its conditions placed. Those that stay are asked where they are written."""
    where, run = run.where, replace(run, where=())
    opening = _opening(where, run, stays)
    parts = tuple(replace(part, input=_select(part.input, opening)) for part in run.parts)
    parts = tuple(replace(part, input=_selected(part, stays), where=_kept(part, stays)) for part in parts)
    run = replace(run, parts=parts)
    rest = tuple(c for c in where if c not in opening)
    for condition in in_turn(rest, run, run_variables(run)):
        run = replace(run, where=(*run.where, condition)) if stays(condition) else sink_into_run(condition, run)
    return run


def _opening(
    where: tuple[n.Condition, ...], run: n.Run, stays: Callable[[n.Condition], bool]
) -> tuple[n.Condition, ...]:
    """The conditions that need nothing of the parts, if another condition has a variable that they bind."""
    later = part_variables(run).union(*(part.own for part in run.parts))
    opening: list[n.Condition] = []
    for condition in ready_order(where, later):
        names = n.condition_vars(condition)
        plain = isinstance(condition, n.Compare | n.Holds | n.Unless | n.AnyOf)
        if not plain or stays(condition) or n.condition_labels(condition) or names & later:
            later |= names
        else:
            opening.append(condition)
    bound = {v for c in opening for v in n.condition_vars(c)}
    others = [c for c in (*where, *n.conditions(run)) if c not in opening]
    return tuple(opening) if any(n.condition_vars(c) & bound for c in others) else ()


def sink_into_run(condition: n.Condition, run: n.Run) -> n.Run:
    """The run with one more condition, at every place where it may become decidable first.

    There are several such places where a variable is bound by whichever of some parts is not left out. What a part
    cannot decide, because another one was left out, is not asked there.
    """
    slots = [] if isinstance(condition, n.Relative | n.NoneInside) else _slots(condition, run)
    for number, late in slots:
        part = run.parts[number]
        if late:
            part = replace(part, after=(*part.after, condition))
        elif _alone(condition, part) and not binds(condition, n.bound_vars(part.input)):
            part = replace(part, input=_select(part.input, (condition,)))
        else:
            part = replace(part, where=(*part.where, condition))
        run = replace(run, parts=(*run.parts[:number], part, *run.parts[number + 1 :]))
    return run if slots else replace(run, where=(*run.where, condition))


def _slots(condition: n.Condition, run: n.Run) -> list[Slot]:
    """Where a condition may become decidable first; nowhere, where only the end will do."""
    bound = run_variables(run)
    needs = n.condition_vars(condition) - binds(condition, bound)
    for result in run.results:
        needs |= outer_variables(result, run) if result.name in needs else set()
    labels = n.condition_labels(condition)
    if not needs <= bound or not labels <= run_labels(run):
        return []
    binders = [_binders(name, run) for name in sorted(needs)]
    binders += [[(number, 0)] for number, part in enumerate(run.parts) if part.label in labels]
    if not binders or not all(binders):
        return []
    first = max(min(slots) for slots in binders)
    return sorted({slot for slots in binders for slot in slots if slot >= first})


def _binders(name: str, run: n.Run) -> list[Slot]:
    """The places where a variable may get its value, up to the first that no match leaves out."""
    for result in run.results:
        if result.name == name:
            return [(result.part, 1)]
    slots: list[Slot] = []
    for number, part in enumerate(run.parts):
        if name in n.bound_vars(part.input) and name not in part.own:
            slots.append((number, 0))
            if not part.optional:
                return slots
    for number, part in enumerate(run.parts):
        for late, where in enumerate((part.where, part.after)):
            if any(name in binds(c, run_variables(run) - {name}) for c in where):
                slots.append((number, late))
    return slots


def _alone(condition: n.Condition, part: n.RunPart) -> bool:
    """Whether a condition concerns one row of a part and nothing else."""
    return (
        not asked_of(condition)
        and n.condition_vars(condition) <= n.bound_vars(part.input)
        and n.condition_labels(condition) <= n.bound_labels(part.input)
    )


def _selected(part: n.RunPart, stays: Callable[[n.Condition], bool]) -> n.Node:
    """The part's pattern with the conditions on one row of it, as far as they may be moved."""
    return _select(part.input, tuple(c for c in part.where if _alone(c, part) and not stays(c)))


def _kept(part: n.RunPart, stays: Callable[[n.Condition], bool]) -> tuple[n.Condition, ...]:
    return tuple(c for c in part.where if stays(c) or not _alone(c, part))


def _select(node: n.Node, where: tuple[n.Condition, ...]) -> n.Node:
    if not where:
        return node
    if isinstance(node, n.Select):
        return replace(node, where=(*node.where, *where))
    return n.Select(node, where, where[0].span)
