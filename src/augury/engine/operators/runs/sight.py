"""What the conditions of a run see: the variables, labels, earlier values and aggregates of many matches, column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

import numpy as np

from augury.algebra.aggregates import aggregate_of
from augury.algebra.nodes import (
    AnyOf,
    Compare,
    Condition,
    Holds,
    NoneInside,
    Relates,
    Relative,
    Run,
    Spans,
    Unless,
    condition_labels,
    condition_vars,
)
from augury.algebra.ready import binds
from augury.algebra.run_terms import asked_of
from augury.algebra.scalar import RowError
from augury.algebra.terms import Aggregate, Apply, Build, Expr, Prev, Var, show, variables, walk
from augury.algebra.terms import labels as labels_of
from augury.columns.dictionary import NULL, OPEN
from augury.columns.frame import Frame, View
from augury.columns.table import END, NONE, START
from augury.engine.operators.runs.moments import Moments
from augury.errors import RunError
from augury.jit import Array

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit


@dataclass(frozen=True)
class Question:
    """A condition with variables in the place of earlier values and aggregates: `hidden` says what these are."""

    condition: Condition
    hidden: tuple[tuple[str, Prev | Aggregate], ...] = ()
    of_first: bool = True  # whether it is asked of the first iteration
    present: frozenset[str] = frozenset()  # what must be there for it to be asked: all that it is written with

    @property
    def needs(self) -> set[str]:
        """The variables that must have a value for it to be asked."""
        return condition_vars(self.condition) - {name for name, _ in self.hidden}


def question(condition: Condition, first: bool) -> Question:
    """What is asked of an iteration: of the first one, an earlier value is its default."""
    present = frozenset(condition_vars(condition) | condition_labels(condition))
    if first:
        if any(isinstance(p, Prev) and p.default is None for p in asked_of(condition)):
            return Question(condition, of_first=False)
        condition = changed(condition, lambda e: e.default if isinstance(e, Prev) and e.default is not None else None)
    hidden = {p: f"#{show(p)}" for p in dict.fromkeys(asked_of(condition))}
    plain = changed(condition, lambda e: Var(hidden[e]) if isinstance(e, Prev | Aggregate) else None)
    return Question(plain, tuple((name, p) for p, name in hidden.items()), present=present)


def changed(condition: Condition, change: Callable[[Expr], Expr | None]) -> Condition:
    """A condition with other terms in the place of some."""

    def term(expr: Expr) -> Expr:
        return _term(expr, change)

    match condition:
        case Compare():
            return replace(condition, left=term(condition.left), right=term(condition.right))
        case Holds() | Unless():
            return replace(condition, args=tuple(map(term, condition.args)))
        case AnyOf():
            options = tuple(tuple(changed(c, change) for c in option) for option in condition.options)
            return replace(condition, options=options)
        case NoneInside() | Relates() | Relative() | Spans():
            pass
        case _:
            assert_never(condition)
    return condition


def _term(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    new = change(expr)
    if new is not None:
        return _term(new, change) if isinstance(expr, Prev) and not isinstance(new, Var) else new
    match expr:
        case Apply() | Build():
            return replace(expr, args=tuple(_term(arg, change) for arg in expr.args))
        case Prev():
            default = None if expr.default is None else _term(expr.default, change)
            return replace(expr, of=_term(expr.of, change), default=default)
    return expr


@dataclass
class Members:
    """The iterations of a part in many matches: those of match `i` are from `first[i]` up to `first[i + 1]`."""

    moments: Array
    first: Array

    def __len__(self) -> int:
        return len(self.first) - 1


class Sight:
    """The names of a run."""

    def __init__(self, circuit: Circuit, run: Run, moments: Moments, views: tuple[View, ...], rule: str) -> None:
        self.circuit, self.run, self.moments, self.views, self.rule = circuit, run, moments, views, rule
        self.results = {result.name: result for result in run.results}

    def rows(self, part: int, moments: Array) -> Array:
        """The rows of a part that moments are."""
        return self.moments.out.table.data[self.moments.row_fields[part], moments]

    def frame(
        self, at: Mapping[int, Array], end: Array, own: int | None = None, only: set[str] | None = None
    ) -> tuple[Frame, dict[str, Array]]:
        """Matches as rows, given the last moment of each part, -1 where there is none; and which ones have each label.

        Of a part that repeats, its own variables are seen where it is `own`. `only` are the names that somebody looks at.
        """
        times, count = self.moments.out.table.data, len(end)
        vars: dict[str, Array] = {}
        labels: dict[str, tuple[Array, Array]] = {}
        has: dict[str, Array] = {}
        for number, moments in at.items():
            part, view = self.run.parts[number], self.views[number]
            there = moments >= 0
            all_there = bool(there.all())
            safe = moments if all_there else np.where(there, moments, 0)
            rows = self.rows(number, safe)
            if not all_there:
                rows = np.where(there, rows, 0)
            for v, field in view.vars.items():
                if (v in part.own and number != own) or (only is not None and v not in only):
                    continue
                if not view.table.n:
                    codes = np.full(count, OPEN, np.int64)
                else:
                    codes = view.table.data[field, rows]
                    if not all_there:
                        codes = np.where(there, codes, OPEN)
                vars[v] = np.where(vars[v] == OPEN, codes, vars[v]) if v in vars else codes
            wanted = only is None or part.label in only
            if part.label is not None and wanted and (number == own or not part.repeats):
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
        return self.circuit.context.values(expr, frame, self.rule)

    def aggregate(
        self, aggregate: Aggregate, part: int, members: Members, more: Frame | None = None
    ) -> tuple[Array, Array]:
        """The codes of an aggregate over the iterations of a part in each match, and for which it could be computed."""
        count, context = len(members), self.circuit.context
        lengths = np.diff(members.first)
        ok = np.ones(count, bool)
        if not aggregate.args:
            return context.dictionary.encode_column(lengths), ok
        function = aggregate.function
        earlier = has_earlier(aggregate)
        if function in ("last", "first") and not aggregate.distinct and not earlier:
            chosen = (
                members.moments[
                    np.minimum(
                        members.first[1:] - 1 if function == "last" else members.first[:-1],
                        max(0, len(members.moments) - 1),
                    )
                ]
                if len(members.moments)
                else NONE
            )
            codes = np.full(count, NULL, np.int64)
            some = np.flatnonzero(lengths > 0)
            if len(some):
                codes[some], ok[some] = self.values(
                    aggregate.args[0], part, chosen[some], None if more is None else more.take(some)
                )
            return codes, ok
        owners = np.repeat(np.arange(count), lengths)
        known = None if more is None else more.take(owners)
        if earlier:
            given, fine = self._with_earlier(aggregate.args[0], part, members, owners, known)
        else:
            given, fine = self.values(aggregate.args[0], part, members.moments, known)
        if not fine.all():
            ok[owners[~fine]] = False
        found = self._numbers(aggregate, given, members.first, lengths) if ok.all() else None
        if found is not None:
            return found, ok
        codes = np.full(count, NULL, np.int64)
        decode, table = context.dictionary.decode, context.scalars.aggregates[function]
        values = list(map(decode, given.tolist()))
        for i in np.flatnonzero(ok).tolist():
            own = values[members.first[i] : members.first[i + 1]]
            if not own and function != "count":
                continue
            try:
                codes[i] = context.encode(aggregate_of(table, own, aggregate.distinct))
            except RowError as error:
                context.report(self.rule, str(error), {})
                ok[i] = False
            except RunError:
                raise
            except Exception as error:
                raise RunError(f"the aggregate `{function}` raised {type(error).__name__}: {error}\n  in rule `{self.rule}`") from error  # fmt: skip
        return codes, ok

    def _with_earlier(
        self, expr: Expr, part: int, members: Members, owners: Array, more: Frame | None
    ) -> tuple[Array, Array]:
        """The values of an expression with earlier values in it, one an iteration."""
        moments = members.moments
        ok, first = np.ones(len(moments), bool), np.r_[True, owners[1:] != owners[:-1]][: len(moments)]
        hidden: dict[str, Array] = {}
        for term in {t for t in walk(expr) if isinstance(t, Prev)}:
            codes = np.full(len(moments), NULL, np.int64)
            later, begins = np.flatnonzero(~first), np.flatnonzero(first)
            codes[later], ok[later] = self.values(
                term.of, part, moments[later - 1], None if more is None else more.take(later)
            )
            if term.default is not None:
                codes[begins], ok[begins] = self.values(
                    term.default, part, moments[begins], None if more is None else more.take(begins)
                )
            hidden[f"#{show(term)}"] = codes
        plain = _term(expr, lambda e: Var(f"#{show(e)}") if isinstance(e, Prev) else None)
        frame, _ = self.frame({part: moments}, self.moments.out.table.data[END, moments], part)
        frame.vars = {**(more.vars if more is not None else {}), **frame.vars, **hidden}
        codes, fine = self.circuit.context.values(plain, frame, self.rule)
        return codes, ok & fine

    def _numbers(self, aggregate: Aggregate, given: Array, first: Array, lengths: Array) -> Array | None:
        """The same for numbers of one kind, all at once."""
        words = self.circuit.context.dictionary
        if aggregate.distinct or not len(given) or (lengths == 0).any():
            return None
        if aggregate.function == "count":
            return None if words.is_null(given).any() else words.encode_column(lengths)
        numbers = words.numeric(given)
        if numbers is None:
            return None
        whole = numbers.dtype.kind == "i"
        match aggregate.function:
            case "min":
                return words.encode_column(np.minimum.reduceat(numbers, first[:-1]))
            case "max":
                return words.encode_column(np.maximum.reduceat(numbers, first[:-1]))
            case "sum" if whole and int(np.abs(numbers).max()) * int(lengths.max()) < 2**53:
                return words.encode_column(np.add.reduceat(numbers, first[:-1]))
            case "avg" if whole and int(np.abs(numbers).max()) * int(lengths.max()) < 2**53:
                return words.encode_column(np.add.reduceat(numbers, first[:-1]) / lengths + 0.0)
        return None

    def ask(
        self, asked: Iterable[Condition], frame: Frame, has: Mapping[str, Array], kept: Array, bound: set[str],
        present: Iterable[str] = (),
    ) -> tuple[Frame, Array]:  # fmt: skip
        """Rows that meet conditions, each asked where all that it needs is there; what they bind is in the frame then.

        `kept` are the numbers of the rows, which are given back for those that are left.
        """
        context = self.circuit.context
        for condition in asked:
            if not len(frame):
                break
            needs = condition_vars(condition) - (binds(condition, set(frame.vars)) - bound)
            possible = needs <= set(frame.vars) and condition_labels(condition) <= set(has)
            if not possible:
                continue
            ready = np.ones(len(frame), bool)
            for v in needs:
                ready &= frame.vars[v] != OPEN
            for name in condition_labels(condition):
                ready &= has[name]
            for name in present:
                if name in has:
                    ready &= has[name]
                elif name in frame.vars:
                    ready &= frame.vars[name] != OPEN
            rows = np.flatnonzero(ready)
            part = frame if len(rows) == len(frame) else frame.take(rows)
            part = replace(part, left=np.arange(len(part)), right=np.arange(len(part)))
            held = context.select((condition,), part, self.rule)
            if len(rows) == len(frame):
                order = held.left
                frame = replace(held, left=frame.left[order], right=frame.right[order])
                kept, has = kept[order], {n: c[order] for n, c in has.items()}
                continue
            others = np.flatnonzero(~ready)
            order = np.concatenate([others, rows[held.left]])
            unbound = {v: np.full(len(others), OPEN, np.int64) for v in held.vars if v not in frame.vars}
            vars = {v: np.concatenate([frame.vars[v][others] if v in frame.vars else unbound[v], c]) for v, c in held.vars.items()}  # fmt: skip
            both = frame.take(order)
            frame = replace(both, vars=vars)
            kept, has = kept[order], {n: c[order] for n, c in has.items()}
        return frame, kept


def bound_in_parts(run: Run, views: Sequence[View]) -> set[str]:
    """The variables that parts bind, and the results."""
    return {v for view in views for v in view.vars} | {result.name for result in run.results}


def once(numbers: Array) -> Array:
    """Numbers in ascending order, each once."""
    if not len(numbers) or bool((numbers[1:] > numbers[:-1]).all()):
        return numbers
    return np.unique(numbers)


def has_earlier(aggregate: Aggregate) -> bool:
    """Whether an aggregate asks for earlier values."""
    return any(isinstance(term, Prev) for arg in aggregate.args for term in walk(arg))
