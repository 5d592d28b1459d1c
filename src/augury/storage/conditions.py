"""Evaluates conditions and expressions over columns of rows.

A condition is computed for all rows at once where its values allow it; else row by row, by the very code that says what
scalars mean. Both give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar, assert_never

import numpy as np

from augury.algebra.clock_windows import Line
from augury.algebra.matching import Binding, Named, Scalars, compare_or_bind, match
from augury.algebra.nodes import (
    AnyOf,
    Compare,
    Condition,
    Holds,
    NoneInside,
    Relates,
    Relative,
    Spans,
    Unless,
    condition_vars,
)
from augury.algebra.plan import Predicate
from augury.algebra.relations import RELATIONS, RELATIVE
from augury.algebra.scalar import RowError
from augury.algebra.terms import Apply, Const, Expr, Var, Wild, variables, walk
from augury.algebra.window_lengths import measure, time_points
from augury.core.arrays import Array, Codes, RowIds
from augury.core.bounds import TIME_LIMIT
from augury.core.errors import RunError
from augury.core.model import Value
from augury.storage.column_expressions import ColumnExpressions
from augury.storage.dictionary import OPEN, Dictionary
from augury.storage.frame import Frame, joined_frames
from augury.storage.rows import firsts
from augury.storage.unique import unique, unique_inverse

T = TypeVar("T")
Report = Callable[[str, str, Binding], None]


class StaticKnowledge(Protocol):
    """Facts and static rules, as conditions ask for them, in the codes of the context's dictionary."""

    def solve(
        self, predicate: Predicate, mode: tuple[bool, ...], asked: Sequence[Array], times: Array
    ) -> tuple[Array, list[Array]]:
        """Pairs of a question and an answer, as its columns; `asked` has a column for each argument that is bound."""
        ...

    def near_by(self, context: Context, where: Sequence[Condition], frame: Frame) -> tuple[Compare, Frame] | None:
        """Meets the first condition together with one on how near its facts are, and says which; None where it cannot."""
        ...


class Context(ColumnExpressions):
    """The context of conditions: static knowledge, beside the context of expressions."""

    def __init__(self, scalars: Scalars, knowledge: StaticKnowledge, dictionary: Dictionary, report: Report) -> None:
        super().__init__(scalars, dictionary)
        self.knowledge, self.report = knowledge, report
        # Names the events of a row, for what a user's function says when it fails.
        self.name_events: Callable[[Frame, int], str] | None = None

    def binding(self, frame: Frame, i: int) -> dict[str, Value]:
        decode = self.dictionary.decode
        return {v: decode(int(c[i])) for v, c in frame.vars.items() if c[i] != OPEN}

    # Conditions

    def select(self, where: Sequence[Condition], frame: Frame, rule: str) -> Frame:
        """The rows that meet all conditions, which are in evaluation order, in as many ways as conditions bind."""
        if not where or not len(frame):
            return frame
        self.scalars.rule = rule
        order = list(where)
        while order and len(frame):
            near = self.knowledge.near_by(self, order, frame) if len(order) > 1 else None
            if near is not None:
                order.remove(near[0])
            frame = self.meet(order[0], frame) if near is None else near[1]
            del order[0]
        return frame

    def meet(self, condition: Condition, frame: Frame) -> Frame:
        match condition:
            case Compare():
                return self._compare(condition, frame)
            case Relates():
                times = {0: frame.labels[condition.left], 1: frame.labels[condition.right]}
                points = {"a": times[0][0], "b": times[0][1], "c": times[1][0], "d": times[1][1]}
                mask = np.ones(len(frame), bool)
                for x, y, limit in RELATIONS[condition.relation]:
                    mask &= points[x] - points[y] <= limit.value - limit.strict
                return frame.where(mask)
            case Spans():
                ends = [frame.labels[name] for name in condition.labels]
                longest = self.scalars.clock.length(condition.length)
                first = np.minimum.reduce([s for s, _ in ends])
                return frame.where(np.maximum.reduce([e for _, e in ends]) - first <= longest)
            case Relative():
                return self._relative(condition, frame)
            case Holds():
                return self._holds(condition, frame)
            case Unless():
                mask = np.ones(len(frame), bool)
                mask[self._holds(condition, frame.numbered()).right] = False
                return frame.where(mask)
            case AnyOf():
                return self._any(condition, frame)
            case NoneInside():
                raise AssertionError("an absence is an operator of its own")
            case _:
                assert_never(condition)

    # Static knowledge

    def _holds(self, condition: Holds | Unless, frame: Frame) -> Frame:
        """The rows for which a static predicate holds, in as many ways as it binds variables."""
        asked = [v for v in sorted(condition_vars(condition)) if v in frame.vars]
        left_open = [v for v in asked if (frame.vars[v] == OPEN).any()]
        if not left_open:
            return self._solved(condition, frame)
        kinds = sum((frame.vars[v] == OPEN).astype(np.int64) << i for i, v in enumerate(left_open))
        parts: list[Frame] = []
        for kind in unique(kinds).tolist():
            part = frame.take(np.flatnonzero(kinds == kind))
            for i, v in enumerate(left_open):
                if kind >> i & 1:
                    del part.vars[v]
            parts.append(self._solved(condition, part))
        return joined_frames(parts)

    def _solved(self, condition: Holds | Unless, frame: Frame) -> Frame:
        try:
            return self._answered(condition, frame)
        except RunError:
            if self.name_events is None:
                raise
            for i in range(len(frame)):  # a function has failed: which row was it?
                self._blamed(frame, i, lambda i=i: self._answered(condition, frame.take(np.array([i]))))  # type: ignore[misc]
            raise

    def _answered(self, condition: Holds | Unless, frame: Frame) -> Frame:
        mode, columns = self.asked(condition.args, frame)
        null = self.null_asked(columns)
        numbers = np.arange(len(frame), dtype=np.int64)
        if null.any():
            numbers = np.flatnonzero(~null)
            columns = [c[numbers] for c in columns]
        predicate = (condition.name, len(condition.args))
        seen = frame.end if condition.at is None else frame.labels[condition.at][1]
        which, answers = self.knowledge.solve(predicate, mode, columns, seen[numbers] - condition.was)
        return self.answered(condition, frame, numbers[which], answers)

    def answered(self, condition: Holds | Unless, frame: Frame, which: Array, answers: list[Array]) -> Frame:
        """Rows with the answers of a static predicate to each: those that match, and what they bind."""
        if not len(which):
            return frame.take(which)
        before = set(frame.vars)
        result = self.matched(condition.args, answers, frame.numbered().take(which))
        if not all(isinstance(a, Var | Const) for a in condition.args):
            result = self._once(result, [v for v in result.vars if v not in before])
        result.right = frame.right[result.right]
        return result

    def asked(self, args: Sequence[Expr], frame: Frame) -> tuple[tuple[bool, ...], list[Array]]:
        """Which arguments of a call are bound, and their codes."""
        mode: list[bool] = []
        columns: list[Array] = []
        for arg in args:
            bound = variables(arg) <= frame.vars.keys() and not any(isinstance(p, Wild) for p in walk(arg))
            mode.append(bound)
            if bound:
                columns.append(self.values(arg, frame, self.scalars.rule)[0])
        return tuple(mode), columns

    def null_asked(self, columns: Sequence[Array]) -> Array:
        """Which calls have null in them: nothing answers them."""
        if not columns:
            return np.zeros(1, bool)
        null = self.dictionary.is_null(columns[0])
        for column in columns[1:]:
            null |= self.dictionary.is_null(column)
        return null

    def _once(self, frame: Frame, names: Sequence[str]) -> Frame:
        """Of rows that are alike in these variables one: where an argument is `_`, answers differ only in values that are not read."""
        first, _ = firsts([frame.right << 2, *(frame.vars[v] for v in names)], len(frame), self.dictionary)
        return frame if len(first) == len(frame) else frame.take(first)

    def _relative(self, condition: Relative, frame: Frame) -> Frame:
        if condition.windows is not None:
            return self._previous(condition, frame)
        start, end = frame.labels[condition.anchor]
        if isinstance(condition.length, int):
            length: Array | int = self.scalars.clock.exact_length(condition.length)
        else:
            length, computed = self._window_lengths(condition, condition.length, frame)
            if not computed.all():
                return self._relative(condition, frame.where(computed))
        points = {"start": start, "end": end}
        (first, back), (second, forth) = RELATIVE[condition.kind]
        new = (points[first] + back * length, points[second] + forth * length)
        near = (new[0] > -TIME_LIMIT) & (new[1] < TIME_LIMIT)
        for _ in range(int(np.count_nonzero(~near))):
            self.report(self.scalars.rule, "a time beyond 60 bits", {})
        frame = replace(frame, labels={**frame.labels, condition.label: new})
        return frame.where(near & (new[0] <= new[1]))

    def _window_lengths(self, window: Relative, length: Expr, frame: Frame) -> tuple[Array, Array]:
        """The length of the window of each row, in time points, and for which rows it could be computed."""
        clock, ends = self.scalars.clock, frame.labels[window.anchor][1]
        codes, ok = self.values(length, frame, self.scalars.rule)
        values, which = unique_inverse(codes)
        times = self.dictionary.times(values) if clock.kind == "timestamp" else None
        if times is not None and times[0] == ("t" if window.kind == "until" else "d"):
            lengths = np.clip(times[1], -2 * TIME_LIMIT, 2 * TIME_LIMIT)[which]
            fits = np.ones(len(lengths), bool)
        else:
            measures = [self._measure(window, int(code)) for code in values.tolist()]
            lengths = np.array([0 if m is None else m for m in measures], np.int64)[which]
            fits = np.array([m is not None for m in measures], bool)[which]
        if window.kind == "until":
            lengths = lengths - ends
        if window.most is not None:
            fits &= lengths <= clock.length(window.most)
        fits &= (lengths >= 0) | (window.kind == "until")
        for i in np.flatnonzero(ok & ~fits).tolist():
            try:
                time_points(window, self.dictionary.decode(int(codes[i])), int(ends[i]), clock)
            except RowError as error:
                self.report(self.scalars.rule, str(error), self.binding(frame, i))
        return np.clip(lengths, 0, 2 * TIME_LIMIT), ok & fits

    def _measure(self, window: Relative, code: int) -> int | None:
        """A length or time in time points; None where it is none, or farther than any window reaches."""
        try:
            points = measure(window, self.dictionary.decode(code), self.scalars.clock)
        except RowError:
            return None
        return min(max(points, -2 * TIME_LIMIT), 2 * TIME_LIMIT)

    def _previous(self, condition: Relative, frame: Frame) -> Frame:
        """The window before each window by the clock."""
        assert condition.windows is not None
        line = Line(condition.windows, self.scalars.clock)
        start, _ = frame.labels[condition.anchor]
        begins, inverse = unique_inverse(start)
        before = [line.last_begun(begin) - 1 for begin in begins.tolist()]
        new = tuple(
            np.array([bound_of(number) for number in before], np.int64)[inverse] for bound_of in (line.begin, line.end)
        )
        labels = {**frame.labels, condition.label: (new[0], new[1])}
        return replace(frame, labels=labels).where(new[0] <= new[1])

    def _any(self, condition: AnyOf, frame: Frame) -> Frame:
        numbered = frame.numbered()
        mask = np.zeros(len(frame), bool)
        for option in condition.options:
            mask[self.select(option, numbered, self.scalars.rule).right] = True
        return frame.where(mask)

    def _compare(self, condition: Compare, frame: Frame) -> Frame:
        left, right, op = condition.left, condition.right, condition.op
        if op == "=":
            for new, value in ((left, right), (right, left)):
                if isinstance(new, Var) and new.name not in frame.vars:
                    if not variables(value) <= frame.vars.keys():
                        return self._compare_rows(condition, frame)
                    codes, computed = self.values(value, frame, self.scalars.rule)
                    return replace(frame, vars={**frame.vars, new.name: codes}).where(computed)
        truth = None if len(frame) <= _FEW and _calls(left, right) else self.compared(op, left, right, frame)
        if truth is None:
            return self._compare_rows(condition, frame)
        mask, hard = truth
        if hard is not None:
            rows = np.flatnonzero(hard)
            mask = mask & ~hard
            mask[rows[self._compare_rows(condition, frame.take(rows).numbered()).right]] = True
        return frame.where(mask)

    def _compare_rows(self, condition: Compare, frame: Frame) -> Frame:
        def compared(binding: Binding, i: int) -> Iterable[Binding]:
            result = compare_or_bind(condition, binding, self.scalars, self.report, named(frame, i))
            return () if result is None else (result,)

        return self._by_row(frame, compared)

    def _by_row(self, frame: Frame, solutions: Callable[[Binding, int], Iterable[Binding]]) -> Frame:
        """Row by row; a row may be met in several ways, each with more variables bound."""
        rows: list[int] = []
        bound: list[Binding] = []
        names: dict[str, None] = {}
        for i in range(len(frame)):
            binding = self.binding(frame, i)
            before = len(binding)
            for new in self._blamed(frame, i, lambda b=binding, i=i: list(solutions(b, i))):  # type: ignore[misc]
                rows.append(i)
                if len(new) > before:
                    new = {v: x for v, x in new.items() if v not in binding}
                    names.update(dict.fromkeys(new))
                    bound.append(new)
                else:
                    bound.append({})
        result = frame.take(np.array(rows, np.int64))
        for name in names:
            column = result.vars.get(name)
            column = np.full(len(rows), OPEN, np.int64) if column is None else column.copy()
            for i, new in enumerate(bound):
                if name in new:
                    column[i] = self.encode(new[name])
            result.vars[name] = column
        return result

    def _blamed(self, frame: Frame, i: int, compute: Callable[[], T]) -> T:
        """Computes something for a row; where a user's function fails, the error names the events of the row."""
        try:
            return compute()
        except RunError as error:
            if self.name_events is None:
                raise
            raise RunError(f"{error.message}\n  on {self.name_events(frame, i)}", error.hint) from error

    def matched(self, args: tuple[Expr, ...], columns: list[Array], frame: Frame) -> Frame:
        """The rows whose arguments match: constants equal, variables that stand twice agree, nested terms open up."""
        dictionary = self.dictionary
        pending: list[tuple[Expr, Array]] = []
        mask = np.ones(len(frame), bool)
        for expr, codes in zip(args, columns, strict=True):
            match expr:
                case Wild():
                    pass
                case Const():
                    code = self.encode(expr.value)
                    wanted = dictionary.canon[code >> 1] if code & 1 else code & -3
                    mask &= (dictionary.canonical(codes) == wanted) & ~dictionary.is_null(codes)
                case Var() if expr.name in frame.vars:
                    other = frame.vars[expr.name]
                    mask &= (dictionary.canonical(codes) == dictionary.canonical(other)) & ~dictionary.is_null(codes)
                case Var():
                    frame.vars[expr.name] = codes
                case _:
                    pending.append((expr, codes))
        if not pending:
            return frame.where(mask)
        rows = np.flatnonzero(mask)
        frame, pending = frame.take(rows), [(e, c[rows]) for e, c in pending]
        decode = dictionary.decode

        def opened(binding: Binding, i: int) -> Iterable[Binding]:
            result: Binding | None = binding
            for expr, codes in pending:
                result = match(expr, decode(int(codes[i])), result)  # type: ignore[arg-type]
                if result is None:
                    return ()
            return (result,)  # type: ignore[return-value]

        return self._by_row(frame, opened)

    # ColumnExpressions

    def values(self, expr: Expr, frame: Frame, rule: str) -> tuple[Array, Array]:
        """The codes of an expression, and for which rows it could be computed."""
        by_row = len(frame) <= _FEW and not isinstance(expr, Var | Const)
        result = None if by_row else self.operand(expr, frame)
        if result is None:
            return self._values_of(expr, frame, np.arange(len(frame)), np.zeros(len(frame), np.int64), rule)
        codes = self.as_codes(result).data
        if result.hard is None:
            return codes, np.ones(len(frame), bool)
        return self._values_of(expr, frame, np.flatnonzero(result.hard), codes, rule)

    def _values_of(self, expr: Expr, frame: Frame, rows: RowIds, codes: Codes, rule: str) -> tuple[Array, Array]:
        """Computes an expression row by row for some rows of a frame."""
        self.scalars.rule = rule
        codes, ok = codes.copy(), np.ones(len(frame), bool)
        for i in rows.tolist():
            binding, moments = self.binding(frame, i), named(frame, i)
            try:
                value = self._blamed(frame, i, lambda b=binding, n=moments: self.scalars.evaluate(expr, b, n))  # type: ignore[misc]
                codes[i] = self.encode(value)
            except RowError as error:
                self.report(rule, str(error), binding)
                ok[i], codes[i] = False, 0
        return codes, ok


_FEW = 2  # rows for which an expression is computed row by row: that is cheaper than columns


def _calls(*exprs: Expr) -> bool:
    """Whether some expression calls a function for which columns are expensive."""
    return any(isinstance(part, Apply) and part.function not in _CHEAP for expr in exprs for part in walk(expr))


_CHEAP = ("+", "-", "*", "/")


def named(frame: Frame, i: int) -> dict[str, Named]:
    """The times of the labels of a row."""
    return {name: Named(int(s[i]), int(e[i])) for name, (s, e) in frame.labels.items()}
