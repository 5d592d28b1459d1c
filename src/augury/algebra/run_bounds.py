"""How long the next event of a run may keep waiting: the latest start that its conditions allow.

(c: click(U))+ WHERE start(c) - prev(end(c)) <= 30min   →   the next click starts at most 30min after the last one ended
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from augury.algebra.kinds import is_equation
from augury.algebra.nodes import Condition, Run, RunPart, bound_vars, condition_labels, mapped_condition
from augury.algebra.relations import Contradiction, Limit
from augury.algebra.run_terms import asked_of
from augury.algebra.terms import Expr, Moment, Prev, Var, mapped_term, variables
from augury.algebra.timing import Timing

_NEW, _LAST = "#new", "#last"  # the next event, and the one before it of the same part


@dataclass(frozen=True)
class StartBound:
    """The next event starts at most `length` after the start ("s") or the end ("e") of the last event of a part."""

    part: int
    which: Literal["s", "e"]
    length: int  # in microseconds


def start_bounds(run: Run, source: int, target: int, tick: int) -> tuple[StartBound, ...]:
    """The bounds on the start of an iteration of the target that follows one of the source; each holds by itself.

    They follow from the conditions asked of the iteration: those that are difference bounds on the times of its label, of
    `prev`, and of labels that no match leaves out. `tick` is the least difference of two times, in microseconds.
    """
    names = dict(_earlier(run, source, target))  # the labels of events that are there, and the parts they are of
    part = run.parts[target]
    timing, new = Timing(tick), part.label or _NEW
    before = [*names, new]
    for name in before:
        timing.table.add((name, "s"), (name, "e"), Limit(0))
    for first, second in pairwise(before):
        timing.table.add((first, "e"), (second, "s"), Limit(0, strict=True))
    timing.add_where(c for c in _asked(part, source == target) if condition_labels(c) <= {*before})
    try:
        timing.close()
    except Contradiction:  # nothing ever follows
        return (StartBound(source, "e", 0),)
    bounds: list[StartBound] = []
    for name, number in names.items():
        for which in ("s", "e"):
            limit = timing.table.limit((new, "s"), (name, which))
            if limit is not None:
                bounds.append(StartBound(number, "s" if which == "s" else "e", limit.value - limit.strict))
    return tuple(bounds)


def is_bounded(run: Run, source: int, target: int, tick: int) -> bool:
    """Whether the clock alone says that nothing more follows: by a window, or by conditions on times."""
    return bool(run.windows) or bool(start_bounds(run, source, target, tick))


def _earlier(run: Run, source: int, target: int) -> Iterator[tuple[str, int]]:
    """The events before an iteration that are surely there, in order: single ones by their labels, then the last one."""
    for number, part in enumerate(run.parts[:target]):
        if part.label is not None and not part.repeats and (number == source or not part.optional):
            yield part.label, number
    if source == target:
        yield _LAST, target


def _asked(part: RunPart, again: bool) -> Iterator[Condition]:
    """The conditions of an iteration, of its label and the one before; computed variables are written out."""
    computed = {}
    for condition in part.where:
        if is_equation(condition):
            for side, value in ((condition.left, condition.right), (condition.right, condition.left)):
                if isinstance(side, Var) and side.name not in bound_vars(part.input):
                    computed[side.name] = value

    def written(expr: Expr, earlier: bool = False) -> Expr:
        match expr:
            case Var(name) if name in computed and not variables(computed[name]) & computed.keys():
                return written(computed[name], earlier)
            case Moment() if earlier and expr.label == part.label:
                return Moment(expr.which, _LAST)
            case Prev(of=of) if again:
                return written(of, True)
            case Prev(default=default) if default is not None:
                return written(default)
        return mapped_term(expr, lambda inner: written(inner, earlier))

    for condition in part.where:
        if again or all(not isinstance(p, Prev) or p.default is not None for p in asked_of(condition)):
            yield mapped_condition(condition, written)
