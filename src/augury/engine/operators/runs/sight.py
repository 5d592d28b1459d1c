"""The context of a run's conditions: variables, labels, earlier values and aggregates of many matches, by columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from augury.algebra.nodes import (
    Condition,
    Run,
    RunResult,
    condition_labels,
    condition_vars,
)
from augury.algebra.ready import binds
from augury.algebra.run_terms import outer_variables
from augury.algebra.terms import Aggregate, Expr, Prev, Var, show, variables
from augury.algebra.terms import labels as labels_of
from augury.core.arrays import Array, Integers, Mask, RowIds, Times
from augury.engine.operators.group_aggregates import code_of, group_aggregates
from augury.engine.operators.runs.moments import Moments
from augury.planner.run_questions import Turn, has_earlier, outermost_prevs, with_terms
from augury.storage.dictionary import NULL, OPEN
from augury.storage.frame import Frame, View, joined_frames
from augury.storage.grouping import Slices
from augury.storage.member_values import MemberValues
from augury.storage.table import END, START
from augury.storage.unique import unique

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime


Compute = Callable[
    [RunResult, Frame, Array], tuple[Array, Array]
]  # a result for rows with these numbers: codes, and which are fine


class Members(NamedTuple):
    """The iterations of a part in many matches, a group for each match."""

    moments: Array
    groups: Slices


class MatchBindings:
    """The names of a run."""

    def __init__(self, runtime: Runtime, run: Run, moments: Moments, views: tuple[View, ...], rule: str) -> None:
        self.runtime, self.run, self.moments, self.views, self.rule = runtime, run, moments, views, rule
        self.results = {result.name: result for result in run.results}

    def rows(self, part: int, moments: Array) -> Array:
        """The rows of a part that moments are."""
        values: Array = self.moments.out.table.data[self.moments.row_fields[part], moments]
        return values

    def frame(
        self, moments_of: Mapping[int, Array], end: Times, own_part: int | None = None, only: set[str] | None = None
    ) -> tuple[Frame, dict[str, Array]]:
        """Matches as rows, given the last moment of each part, -1 where there is none; and which ones have each label.

        Of a part that repeats, its own variables are seen where it is `own_part`. `only` are the names that are read.
        """
        times, count = self.moments.out.table.data, len(end)
        vars: dict[str, Array] = {}
        labels: dict[str, tuple[Array, Array]] = {}
        has: dict[str, Array] = {}
        for number, moments in moments_of.items():
            part, view = self.run.parts[number], self.views[number]
            there = moments >= 0
            all_there = bool(there.all())
            safe = moments if all_there else np.where(there, moments, 0)
            rows = self.rows(number, safe)
            if not all_there:
                rows = np.where(there, rows, 0)
            for v, field in view.vars.items():
                if (v in part.own and number != own_part) or (only is not None and v not in only):
                    continue
                if not view.table.n:
                    codes = np.full(count, OPEN, np.int64)
                else:
                    codes = view.table.data[field, rows]
                    if not all_there:
                        codes = np.where(there, codes, OPEN)
                vars[v] = np.where(vars[v] == OPEN, codes, vars[v]) if v in vars else codes
            wanted = only is None or part.label in only
            if part.label is not None and wanted and (number == own_part or not part.repeats):
                labels[part.label] = (times[START, safe], times[END, safe])
                has[part.label] = there
        zeros = np.arange(count, dtype=np.int64)
        return Frame(end, end, zeros, zeros, np.zeros(count, np.int64), vars, labels), has

    def values(self, expr: Expr, part: int, moments: Array, more: Frame | None = None) -> tuple[Array, Array]:
        """The codes of an expression over single iterations of a part, and for which it could be computed."""
        only = variables(expr) | labels_of(expr)
        frame, _ = self.frame({part: moments}, self.moments.out.table.data[END, moments], part, only)
        if more is not None:
            frame.vars = {**more.vars, **frame.vars}
            frame.labels = {**more.labels, **frame.labels}
        return self.runtime.context.values(expr, frame, self.rule)

    def aggregate(
        self, aggregate: Aggregate, part: int, members: Members, more: Frame | None = None
    ) -> tuple[Array, Array]:
        """The codes of an aggregate over the iterations of a part in each match, and for which it could be computed."""
        moments, groups = members
        context, ok = self.runtime.context, np.ones(len(groups), bool)
        if not aggregate.args:
            return context.dictionary.encode_column(groups.counts), ok
        argument, function, earlier = aggregate.args[0], aggregate.function, has_earlier(aggregate)
        if function in ("last", "first") and not aggregate.distinct and not earlier:
            codes, some = np.full(len(groups), NULL, np.int64), groups.some
            position = groups.starts[some] + (groups.counts[some] - 1 if function == "last" else 0)
            if len(some):
                codes[some], ok[some] = self.values(argument, part, moments[position], _taken(more, some))
            return codes, ok
        bound = _taken(more, groups.owner)
        if earlier:
            codes_of, fine = self._with_earlier(argument, part, members, bound)
        else:
            codes_of, fine = self.values(argument, part, moments, bound)
        ok[groups.owner[~fine]] = False
        codes, unsure = group_aggregates(context, aggregate, groups, {argument: MemberValues.of(context, codes_of)})
        for g in [] if unsure is None else np.flatnonzero(unsure & ok).tolist():
            values = codes_of[groups.starts[g] : groups.starts[g] + groups.counts[g]].tolist()
            if values or function == "count":
                code = code_of(context, aggregate, map(context.dictionary.decode, values), self.rule)
                codes[g], ok[g] = (NULL, False) if code is None else (code, True)
        return codes, ok

    def _with_earlier(self, expr: Expr, part: int, members: Members, more: Frame | None) -> tuple[Array, Array]:
        """The values of an expression with earlier values in it, one an iteration."""
        moments, groups = members
        ok, first = np.ones(len(moments), bool), np.zeros(len(moments), bool)
        first[groups.starts[groups.some]] = True
        hidden: dict[str, Array] = {}
        for term in outermost_prevs(expr):
            codes = np.full(len(moments), NULL, np.int64)
            later, begins = np.flatnonzero(~first), np.flatnonzero(first)
            values, fine = self._with_earlier(term.of, part, members, more)
            codes[later], ok[later] = values[later - 1], ok[later] & fine[later - 1]
            if term.default is not None:
                values, fine = self.values(term.default, part, moments[begins], _taken(more, begins))
                codes[begins], ok[begins] = values, ok[begins] & fine
            hidden[f"#{show(term)}"] = codes
        plain = with_terms(expr, lambda e: Var(f"#{show(e)}") if isinstance(e, Prev) else None)
        frame, _ = self.frame({part: moments}, self.moments.out.table.data[END, moments], part)
        frame.vars = {**(more.vars if more is not None else {}), **frame.vars, **hidden}
        frame.labels = {**(more.labels if more is not None else {}), **frame.labels}
        codes, fine = self.runtime.context.values(plain, frame, self.rule)
        return codes, ok & fine

    def in_turn(
        self,
        asked: Iterable[Turn],
        frame: Frame,
        has: Mapping[str, Array],
        kept: Array,
        bound: set[str],
        compute: Compute,
    ) -> tuple[Frame, Mapping[str, Array], Array]:
        """Asks conditions one after the other. A result is computed when the first condition that has it is asked.

        `kept` are the numbers of the rows of the frame. The rows that are left, with what the conditions bind.
        """
        self.runtime.context.name_events = None
        for condition, present in asked:
            frame, has, kept = self._with_results(condition, frame, has, kept, compute)
            frame, order = self.ask(condition, frame, has, bound, present)
            kept, has = kept[order], {name: column[order] for name, column in has.items()}
        return frame, has, kept

    def _results_in(self, names: set[str]) -> list[RunResult]:
        """The results among variables, after those that they are computed of."""
        reached: set[str] = set()
        while new := (names & self.results.keys()) - reached:
            reached |= new
            names = names.union(*(variables(*self.results[name].aggregate.args) for name in new))
        return sorted((self.results[name] for name in reached), key=lambda result: (result.part, result.name))

    def _with_results(
        self, condition: Condition, frame: Frame, has: Mapping[str, Array], kept: Array, compute: Compute
    ) -> tuple[Frame, Mapping[str, Array], Array]:
        """The frame with the results that a condition has, open where a variable in them is."""
        for result in self._results_in(condition_vars(condition)):
            name, outer = result.name, outer_variables(result, self.run)
            if name in frame.vars or not outer <= frame.vars.keys():
                continue
            is_open = np.zeros(len(frame), bool)
            for v in outer:
                is_open |= frame.vars[v] == OPEN
            codes, ok = compute(result, without_open(frame, outer), kept)
            frame.vars[name] = np.where(is_open, OPEN, codes)
            if not (ok | is_open).all():
                rows = np.flatnonzero(ok | is_open)
                frame, kept, has = frame.take(rows), kept[rows], {label: column[rows] for label, column in has.items()}
        return frame, has, kept

    def met(
        self,
        asked: Iterable[tuple[Condition, Iterable[str]]],
        frame: Frame,
        has: Mapping[str, Array],
        mask: Mask,
        bound: set[str],
    ) -> Array:
        """Which rows of those in a mask meet conditions, each asked where all that must be present is."""
        kept = np.flatnonzero(mask)
        if len(kept) < len(mask):
            frame, has = frame.take(kept), {name: column[kept] for name, column in has.items()}
        self.runtime.context.name_events = None
        for condition, present in asked:
            frame, order = self.ask(condition, frame, has, bound, present)
            kept, has = kept[order], {name: column[order] for name, column in has.items()}
        return once(kept)

    def ask(
        self, condition: Condition, frame: Frame, has: Mapping[str, Array], bound: set[str], present: Iterable[str] = ()
    ) -> tuple[Frame, Array]:
        """The rows that meet a condition, which is asked where all that it needs is there; what it binds is in the frame
        then. Also which of the rows these are, in this order."""
        every = np.arange(len(frame))
        needs = condition_vars(condition) - (binds(condition, set(frame.vars)) - bound)
        labels = condition_labels(condition)
        if not (len(frame) and needs <= set(frame.vars) and labels <= set(has)):
            return frame, every
        ready = np.ones(len(frame), bool)
        for name in (*needs, *labels, *present):
            if name in has:
                ready &= has[name]
            elif name in frame.vars:
                ready &= frame.vars[name] != OPEN
        rows, others = np.flatnonzero(ready), np.flatnonzero(~ready)
        part = frame.take(rows) if len(others) else frame
        numbers = np.arange(len(rows))
        selected = self.runtime.context.select((condition,), replace(part, left=numbers, right=numbers), self.rule)
        order = rows[selected.left]
        if len(others):
            order, rest = np.concatenate([others, order]), frame.take(others)
            rest.vars |= {v: np.full(len(others), OPEN, np.int64) for v in selected.vars if v not in rest.vars}
            selected = joined_frames([rest, selected])
        return replace(selected, left=frame.left[order], right=frame.right[order]), order


def without_open(frame: Frame, names: Iterable[str]) -> Frame:
    """The frame with null for variables of parts that are left out."""
    open_ = np.full(len(frame), OPEN, np.int64)
    columns = {v: frame.vars.get(v, open_) for v in names}
    return replace(frame, vars={**frame.vars, **{v: np.where(c == OPEN, NULL, c) for v, c in columns.items()}})


def _taken(frame: Frame | None, rows: RowIds) -> Frame | None:
    return None if frame is None else frame.take(rows)


def once(numbers: Integers) -> Array:
    """Numbers in ascending order, each once."""
    if not len(numbers) or bool((numbers[1:] > numbers[:-1]).all()):
        return numbers
    return unique(numbers)
