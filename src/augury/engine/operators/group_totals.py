"""The totals of groups of rows, many windows at once: column by column where that can be, else group by group."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.aggregates import ORDER_FREE, aggregate_of
from augury.algebra.matching import Named
from augury.algebra.nodes import Collect, Holds, Rule, Total
from augury.algebra.scalar import RowError
from augury.algebra.terms import Aggregate, Var, variables
from augury.columns.frame import Frame, View, frame_of
from augury.columns.table import RANK
from augury.engine.operators.collect import Member
from augury.errors import RunError
from augury.jit import Array
from augury.model import OrderKey, Value, order_key

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit

_LARGE = 1e290  # sums of floats below it do not overflow
_SIMPLE = ("count", "sum", "avg", "min", "max")
_NONE = np.zeros(0, np.int64)


class Groups:
    """Groups of rows: the window of each, its values, and where its members begin among all, if they are listed."""

    def __init__(
        self, window: Array, columns: dict[str, Array], rank: Array, offsets: Array | None, members: Array
    ) -> None:
        self.window, self.columns, self.rank, self.offsets, self.members = window, columns, rank, offsets, members

    def __len__(self) -> int:
        return len(self.window)

    def held(self, i: int) -> Array:
        assert self.offsets is not None
        return self.members[self.offsets[i] : self.offsets[i + 1]]


class GroupTotals:
    """Computes what a collect over windows by the clock gives."""

    def __init__(self, circuit: Circuit, collected: View, collect: Collect, rule: Rule, several: bool) -> None:
        self.circuit, self.view, self.collect, self.rule = circuit, collected, collect, rule.label
        self.window = collect.window or ""
        self.seen = sorted({v for total in collect.totals for v in variables(total.aggregate)})
        self.several = several or any(isinstance(c, Holds) for c in collect.where)
        self.simple = not self.several and all(map(self._is_simple, collect.totals))

    def _is_simple(self, total: Total) -> bool:
        match total.aggregate:
            case Aggregate(function="count", args=(), distinct=False):
                return True
            case Aggregate(function=function, args=(Var(),), distinct=False) if function in _SIMPLE:
                return True
        return False

    def of(self, rows: Array, window: Array, bounds: Callable[[Array], tuple[Array, Array]]) -> Groups:
        """The groups of rows in windows: a row stands once for each window that it lies in."""
        if self.simple and not self.collect.where and len(rows):
            groups = self.at_once(rows, window)
            if groups is not None:
                return groups
        frame = frame_of(self.view, rows).numbered()
        if len(rows):
            begin, end = bounds(window)
            frame.labels[self.window] = (begin, end)
            if self.collect.label is not None:
                frame.labels[self.collect.label] = (frame.start, frame.end)
            self.circuit.context.name_events = None
            frame = self.circuit.context.select(self.collect.where, frame, self.rule)
        if not len(frame):
            return Groups(_NONE, dict.fromkeys(self.names, _NONE), _NONE, np.zeros(1, np.int64), _NONE)
        window = window[frame.right]
        order, first = self.grouped(frame, window)
        frame, window = frame.take(order), window[order]
        simple = self.columns(frame.vars, first, len(frame)) if self.simple else None
        if simple is None:
            return self.one_by_one(frame, window, first)
        offsets = np.r_[first, len(frame)]
        by = {v: frame.vars[v][first] for v in self.collect.by}
        return Groups(window[first], {**by, **simple}, np.maximum.reduceat(frame.rank, first), offsets, frame.left)

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.collect.by, *(total.name for total in self.collect.totals))

    def at_once(self, rows: Array, window: Array) -> Groups | None:
        """The same without conditions, where aggregates are simple: just the columns that are asked for are looked at."""
        data, view = self.view.table.data, self.view
        canonical = self.circuit.tables.dictionary.canonical
        order, first = in_groups([window, *(canonical(data[view.vars[v], rows]) for v in self.collect.by)])
        rows, window = rows[order], window[order]
        asked = {a.name for t in self.collect.totals for a in t.aggregate.args if isinstance(a, Var)}
        totals = self.columns({v: data[view.vars[v], rows] for v in asked & view.vars.keys()}, first, len(rows))
        if totals is None:
            return None
        by = {v: data[view.vars[v], rows[first]] for v in self.collect.by}
        rank = np.maximum.reduceat(data[RANK, rows], first)
        return Groups(window[first], {**by, **totals}, rank, np.r_[first, len(rows)], rows)

    def grouped(self, frame: Frame, window: Array) -> tuple[Array, Array]:
        """An order in which groups stand together, and where each begins in it."""
        canonical = self.circuit.tables.dictionary.canonical
        return in_groups([window, *(canonical(frame.vars[v]) for v in self.collect.by)])

    # Column by column

    def columns(self, vars: Mapping[str, Array], first: Array, size: int) -> dict[str, Array] | None:
        """Simple aggregates of numbers of one kind; None where they are not."""
        dictionary = self.circuit.tables.dictionary
        counts = np.diff(np.r_[first, size])
        found: dict[str, Array] = {}
        for total in self.collect.totals:
            part = total.aggregate
            if not part.args:
                found[total.name] = dictionary.encode_column(counts)
                continue
            arg = part.args[0]
            assert isinstance(arg, Var)
            codes = vars.get(arg.name)
            numbers = None if codes is None else dictionary.numeric(codes)
            values = None if numbers is None else _reduced(part.function, numbers, first, counts)
            if values is None:
                return None
            found[total.name] = dictionary.encode_column(values)
        return found

    # Group by group

    def one_by_one(self, frame: Frame, window: Array, first: Array) -> Groups:
        """Any aggregates: each group by itself."""
        context = self.circuit.context
        context.scalars.rule = self.rule
        kept: list[int] = []
        found: dict[str, list[int]] = {name: [] for name in self.names}
        rank: list[int] = []
        members: list[list[int]] = []
        for lo, hi in zip(first.tolist(), [*first[1:].tolist(), len(frame)], strict=True):
            chosen = self.members(frame, lo, hi)
            totals = self.totals(frame, lo, chosen)
            if totals is None:
                continue
            kept.append(int(window[lo]))
            for name in self.collect.by:
                found[name].append(int(frame.vars[name][lo]))
            for name, code in totals.items():
                found[name].append(code)
            rank.append(int(frame.rank[lo:hi].max()))
            members.append(list(dict.fromkeys(m.row for m in chosen)))
        offsets = np.cumsum([0, *(len(m) for m in members)])
        columns = {name: np.array(codes, np.int64) for name, codes in found.items()}
        flat = np.array([row for some in members for row in some], np.int64)
        return Groups(np.array(kept, np.int64), columns, np.array(rank, np.int64), offsets, flat)

    def members(self, frame: Frame, lo: int, hi: int) -> list[Member]:
        """What a group has collected: each occurrence once for each value that aggregates see, in the order of events."""
        context, circuit = self.circuit.context, self.circuit
        chosen: dict[OrderKey, Member] = {}
        for i in range(lo, hi):
            row = int(frame.left[i])
            bound = {v: x for v, x in context.binding(frame, i).items() if v in self.seen}
            parts = circuit.parts(self.view.table, row)
            values = tuple(order_key(bound[v]) if v in bound else () for v in self.seen)
            member = Member(circuit, int(frame.end[i]), int(frame.start[i]), row, parts, bound)
            chosen.setdefault((parts, values), member)
        free = all(total.aggregate.function in ORDER_FREE for total in self.collect.totals)
        return list(chosen.values()) if free else sorted(chosen.values())

    def totals(self, frame: Frame, at: int, chosen: list[Member]) -> dict[str, int] | None:
        context = self.circuit.context
        begin, end = frame.labels[self.window]
        window = Named(int(begin[at]), int(end[at]))
        found: dict[str, int] = {}
        try:
            for total in self.collect.totals:
                part = total.aggregate
                given = [self.given(part, window, m) if part.args else True for m in chosen]
                value = aggregate_of(context.scalars.aggregates[part.function], given, part.distinct)
                found[total.name] = context.encode(value)
        except RowError as error:
            context.report(self.rule, str(error), {})
            return None
        except RunError:
            raise
        except Exception as error:
            raise RunError(
                f"the aggregate `{part.function}` raised {type(error).__name__}: {error}\n  in rule `{self.rule}`"
            ) from error
        return found

    def given(self, part: Aggregate, window: Named, member: Member) -> Value:
        labels = {self.window: window}
        if self.collect.label is not None:
            labels[self.collect.label] = Named(member.start, member.end)
        return self.circuit.context.scalars.evaluate(part.args[0], member.bound, labels)


def in_groups(keys: list[Array]) -> tuple[Array, Array]:
    """An order in which equal keys stand together, the first one in order, and where each group begins in it."""
    whole = keys[0] - keys[0].min()
    for key in keys[1:]:
        low = int(key.min())
        width = int(key.max()) - low + 1
        if int(whole.max() + 1) * width >= 2**62:
            order = np.lexsort(keys[::-1])
            break
        whole = whole * width + (key - low)
    else:
        order = np.argsort(whole, kind="stable")
    begins = np.zeros(len(order), bool)
    begins[0] = True
    for key in keys:
        inside = key[order]
        begins[1:] |= inside[1:] != inside[:-1]
    return order, np.flatnonzero(begins)


def _reduced(function: str, numbers: Array, first: Array, counts: Array) -> Array | None:
    """A simple aggregate of each group of numbers; None where it has to be done one by one."""
    whole = numbers.dtype.kind == "i"
    match function:
        case "count":
            return counts
        case "min":
            return np.minimum.reduceat(numbers, first)
        case "max":
            return np.maximum.reduceat(numbers, first)
    largest = float(np.abs(numbers).max())
    if whole:
        if largest * int(counts.max()) >= 2**53:
            return None
        sums = np.add.reduceat(numbers, first)
        return sums if function == "sum" else sums / counts + 0.0
    if function != "sum" or not largest < _LARGE:
        return None
    return float_sums(numbers, first, counts)


def float_sums(numbers: Array, first: Array, counts: Array) -> Array:
    """The correctly rounded sums of groups: as long doubles, where their error cannot change the result; else exactly."""
    wide = numbers.astype(np.longdouble)
    sums = np.add.reduceat(wide, first)
    error = np.add.reduceat(np.abs(wide), first) * counts * np.finfo(np.longdouble).eps
    low, high = (sums - error).astype(np.float64), (sums + error).astype(np.float64)
    found = sums.astype(np.float64)
    for i in np.flatnonzero(low != high).tolist():
        lo = int(first[i])
        found[i] = math.fsum(numbers[lo : lo + int(counts[i])])
    return found + 0.0
