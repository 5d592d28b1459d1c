"""Aggregates of groups, column by column; what columns do not tell is computed group by group, as the reference does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cached_property

import numpy as np

from augury.algebra.aggregates import aggregate_of
from augury.algebra.scalar import RowError
from augury.algebra.terms import Aggregate, Build, Const, Expr, is_pair
from augury.core.arrays import Array, Codes, Integers, Times
from augury.core.errors import RunError
from augury.core.model import Value, order_key
from augury.storage.conditions import Context
from augury.storage.dictionary import NULL, exact
from augury.storage.grouping import Slices, in_groups
from augury.storage.kernels.totals import interpolated, means, sort_groups, sums, variances
from augury.storage.unique import unique_first_inverse, unique_inverse

_LARGE, _SMALL = 1e100, 1e-100  # floats between them are multiplied without loss
_WHOLE = 2**53  # integers up to it are floats
_SAFE = 2**61  # two integers up to it can be added

Found = tuple[Array, Array | None]  # for each group a code; and which are to be computed one by one, None where none is


class MemberValues:
    """What an aggregate is given of each member: values as codes, or times that nobody has made codes of."""

    def __init__(self, context: Context, column: Array, unit: str = "") -> None:
        """With a `unit`, "t" or "d", the column has points or lengths of time in microseconds."""
        self.context, self.dictionary, self.column, self.unit = context, context.dictionary, column, unit

    def __len__(self) -> int:
        return len(self.column)

    def take(self, members: Array) -> MemberValues:
        return MemberValues(self.context, self.column[members], self.unit)

    def codes(self, members: Array) -> Codes:
        """The codes of some."""
        if not self.unit:
            return self.column[members]
        return self.context.encode_times(self.column[members], self.unit)

    @cached_property
    def null(self) -> Array:
        return np.zeros(len(self), bool) if self.unit else self.column == NULL

    @cached_property
    def keys(self) -> Array:
        """Numbers that are equal where values are."""
        return self.column if self.unit else self.dictionary.canonical(self.column)

    @cached_property
    def plain(self) -> Array | None:
        """The values as numbers of one kind, which do not depend on how they are written; None where they are not."""
        return self.column if self.unit else self.dictionary.numeric(self.column)

    @cached_property
    def order(self) -> Array:
        """Numbers in the order of the values."""
        if self.plain is not None:
            return self.plain
        numbers, _, hard = self.numbers
        if not hard.any():
            return numbers
        _, first, place = unique_first_inverse(self.keys)
        decode = self.dictionary.decode
        ordered = sorted(range(len(first)), key=lambda i: order_key(decode(int(self.column[first[i]]))))
        rank = np.empty(len(first), np.int64)
        rank[ordered] = np.arange(len(first))
        return rank[place]

    @cached_property
    def numbers(self) -> tuple[Array, Array, Array]:
        """The values as integers or floats, which of them are floats, and which are no numbers, or none that fit."""
        none = np.zeros(len(self), bool)
        if self.unit == "t":
            return self.column, none, ~none
        if self.plain is not None:
            x = self.plain
            return (x, none, none) if x.dtype.kind == "i" else (x, ~none, ~_fits(x))
        codes, dictionary = self.column, self.dictionary
        whole, odd = codes >> 2, (codes & 1).astype(bool)
        x = whole.astype(np.float64)
        hard = ~odd & (np.abs(whole) > _WHOLE)
        inside = np.flatnonzero(odd)
        float_ = dictionary.is_float(codes[inside] >> 1)
        hard[inside[~float_]] = True
        x[inside[float_]] = dictionary.numbers[codes[inside[float_]] >> 1]
        x[hard] = 0.0
        return x, odd | ((codes & 2) != 0), hard | ~_fits(x)


def _fits(x: Array) -> Array:
    size = np.abs(x)
    fits: Array = (size < _LARGE) & ((size > _SMALL) | (x == 0.0))
    return fits


def aggregated(context: Context, part: Aggregate, groups: Slices, given: Mapping[Expr, MemberValues | None]) -> Found:
    """An aggregate of all groups, given the values of its arguments by columns."""
    dictionary = context.dictionary
    hard = np.full(len(groups), NULL, np.int64), np.ones(len(groups), bool)
    function = context.scalars.aggregates[part.function]
    if function.registered or part.function == "list":
        return hard
    if not part.args:
        return dictionary.encode_column(groups.counts), None
    arg, more = part.args[0], None
    if isinstance(arg, Build) and is_pair(arg):
        arg, more = arg.args
    values = given.get(arg)
    if values is None:
        return hard
    if part.function in ("first", "last", "nth"):
        found = None if part.distinct else at_place(part.function, more, values, groups)
        return hard if found is None else (found, None)
    if part.function in ("arg_max", "arg_min"):
        by = None if part.distinct or more is None else given[more]
        return hard if by is None else (best(values, by, groups, part.function == "arg_max"), None)
    keep = ~values.null
    if not keep.all():
        values, groups = values.take(np.flatnonzero(keep)), groups.where(keep)
    if part.distinct and len(values):
        keep = np.zeros(len(values), bool)
        order, first = in_groups([groups.owner, values.keys])
        keep[order[first]] = True
        values, groups = values.take(np.flatnonzero(keep)), groups.where(keep)
    if part.function == "count":
        return dictionary.encode_column(groups.counts), None
    if not len(values):
        return np.full(len(groups), NULL, np.int64), None
    match part.function:
        case "min" | "max":
            return extreme(values, values, groups, part.function == "max"), None
        case "mode":
            return mode(values, groups), None
        case "any" | "all":
            return tested(values, groups, part.function == "any")
        case "percentile":
            percent = _percent(more)
            return hard if percent is None else _computed(context, "percentile", values, groups, percent)
        case "sum" | "avg" | "median" | "variance" | "stddev":
            return _computed(context, part.function, values, groups, Fraction(50))
    return hard


def at_place(function: str, more: Expr | None, values: MemberValues, groups: Slices) -> Array | None:
    """Of the first, the last or the n-th in the order of events."""
    at = groups.counts - 1 if function == "last" else np.zeros(len(groups), np.int64)
    if function == "nth":
        if not (isinstance(more, Const) and type(more.value) is int and more.value >= 1):
            return None
        at[:] = min(more.value - 1, len(values))
    codes = np.full(len(groups), NULL, np.int64)
    there = np.flatnonzero((at >= 0) & (at < groups.counts))
    codes[there] = values.codes(groups.starts[there] + at[there])
    return codes


def _computed(context: Context, function: str, values: MemberValues, groups: Slices, percent: Fraction) -> Found:
    """An aggregate of numbers, rounded once."""
    x, floats, hard = values.numbers
    codes, some = np.full(len(groups), NULL, np.int64), groups.some
    unsure = np.zeros(len(groups), bool)
    unsure[some] = np.logical_or.reduceat(hard, groups.starts[some])
    if function in ("stddev", "variance"):
        some = some[groups.counts[some] > 1]
    some = some[~unsure[some]]
    if not len(some):
        return codes, unsure
    starts, counts = groups.starts[some], groups.counts[some]
    compute: dict[str, Callable[[], tuple[Array, Array]]] = {
        "sum": lambda: _sums(x, floats, starts, counts),
        "avg": lambda: _means(x, starts, counts, values.unit),
        "median": lambda: _medians(x, starts, counts, values.unit),
        "percentile": lambda: _percentiles(x, starts, counts, percent),
        "variance": lambda: _variances(x, starts, counts),
        "stddev": lambda: _variances(x, starts, counts),
    }
    if values.unit and function not in ("sum", "avg", "median"):
        unsure[some] = True
        return codes, unsure
    found, sure = compute[function]()
    unsure[some] = ~sure
    result = found[sure]
    dictionary = context.dictionary
    if values.unit:
        codes[some[sure]] = context.encode_times(result, values.unit)
    elif function == "sum" and result.dtype.kind == "f" and not floats.all():
        inexact = np.logical_or.reduceat(floats, groups.starts[groups.some])[np.searchsorted(groups.some, some[sure])]
        codes[some[sure][inexact]] = dictionary.encode_column(result[inexact])
        codes[some[sure][~inexact]] = dictionary.encode_column(result[~inexact].astype(np.int64))
    else:
        codes[some[sure]] = dictionary.encode_column(np.sqrt(result) if function == "stddev" else result)
    return codes, unsure


def code_of(context: Context, part: Aggregate, given: Iterable[Value], rule: str) -> int | None:
    """An aggregate of the values of one group, as the reference computes it; None where there is none, which is reported."""
    try:
        found = aggregate_of(context.scalars.aggregates[part.function], list(given), part.distinct)
        return context.encode(found)
    except RowError as error:
        context.report(rule, str(error), {})
        return None
    except RunError:
        raise
    except Exception as error:
        raised = f"the aggregate `{part.function}` raised {type(error).__name__}: {error}"
        raise RunError(f"{raised}\n  in rule `{rule}`") from error


def _percent(expr: Expr | None) -> Fraction | None:
    if isinstance(expr, Const) and type(expr.value) in (int, float) and 0 <= expr.value <= 100:  # type: ignore[operator]
        return Fraction(expr.value)  # type: ignore[arg-type]
    return None


# Of all values


def extreme(values: MemberValues, by: MemberValues, groups: Slices, greatest: bool) -> Array:
    """Of each group the value of the first member with the greatest or least of another value."""
    codes, some = np.full(len(groups), NULL, np.int64), groups.some
    reduce = np.maximum if greatest else np.minimum
    order = by.order
    best = np.zeros(len(groups), order.dtype)
    best[some] = reduce.reduceat(order, groups.starts[some])
    hits = np.flatnonzero(order == best[groups.owner])
    owner = groups.owner[hits]
    first = np.r_[True, owner[1:] != owner[:-1]]
    codes[owner[first]] = values.codes(hits[first])
    return codes


def best(values: MemberValues, by: MemberValues, groups: Slices, greatest: bool) -> Array:
    """The same among members whose other value is not null."""
    keep = np.flatnonzero(~by.null)
    if not len(keep):
        return np.full(len(groups), NULL, np.int64)
    return extreme(values.take(keep), by.take(keep), groups.where(~by.null), greatest)


def mode(values: MemberValues, groups: Slices) -> Array:
    """The most frequent value of each group; of several, the least."""
    order, first = in_groups([groups.owner, values.keys])
    sizes = np.diff(np.r_[first, len(order)])
    owner = groups.owner[order[first]]
    begins = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    most = np.maximum.reduceat(sizes, begins)[np.cumsum(np.r_[True, owner[1:] != owner[:-1]]) - 1]
    chosen = np.flatnonzero(sizes == most)
    few = Slices(np.bincount(owner[chosen], minlength=len(groups)))
    candidates = values.take(order[first[chosen]])
    return extreme(candidates, candidates, few, greatest=False)


def tested(values: MemberValues, groups: Slices, any_: bool) -> Found:
    """Whether one member, or each, is true; groups with something else are unsure."""
    no, yes = values.dictionary.encode_all((False, True)).tolist()
    codes, unsure = np.full(len(groups), NULL, np.int64), np.zeros(len(groups), bool)
    some, starts = groups.some, groups.starts[groups.some]
    if values.unit:
        unsure[some] = True
        return codes, unsure
    true = values.column == yes
    unsure[some] = np.logical_or.reduceat(~true & (values.column != no), starts)
    reduce = np.logical_or if any_ else np.logical_and
    codes[some] = np.where(reduce.reduceat(true, starts), yes, no)
    return codes, unsure


# Of numbers. Each gives what groups come to, and for which of them it is sure.


def _sums(x: Array, floats: Array, starts: Integers, counts: Integers) -> tuple[Array, Array]:
    if x.dtype.kind == "i":
        found = _added(x, starts, counts)
        return (np.zeros(len(starts)), np.zeros(len(starts), bool)) if found is None else (found, _all(starts))
    found, sure = _empty(starts)
    sums(x, starts, counts, found, sure)
    if not floats.all():
        sure &= np.abs(found) <= _WHOLE  # of integers, which are told exactly so far
    return found, sure


def _means(x: Array, starts: Integers, counts: Integers, unit: str) -> tuple[Array, Array]:
    if x.dtype.kind != "i":
        found, sure = _empty(starts)
        means(x, starts, counts, found, sure)
        return found, sure
    added = _added(x, starts, counts)
    if added is None:
        return np.zeros(len(starts)), np.zeros(len(starts), bool)
    if unit:
        return to_even(added, counts), _all(starts)
    return added / counts, np.abs(added) <= _WHOLE


def _added(x: Array, starts: Integers, counts: Integers) -> Array | None:
    """Sums of integers; None where some may not fit."""
    if int(np.abs(x).max()) * int(counts.max()) >= _SAFE:
        return None
    ends = np.r_[0, np.cumsum(x)] if int(np.abs(x).max()) * len(x) < _SAFE else None
    if ends is not None:
        sums: Array = ends[starts + counts] - ends[starts]
        return sums
    return np.array([int(x[s : s + c].sum()) for s, c in zip(starts.tolist(), counts.tolist(), strict=True)])


def to_even(added: Array, counts: Integers) -> Array:
    """Quotients of integers, rounded; halves to what is even."""
    low, rest = added // counts, added % counts
    rounded: Array = low + ((2 * rest > counts) | ((2 * rest == counts) & (low % 2 == 1)))
    return rounded


def _medians(x: Array, starts: Integers, counts: Integers, unit: str) -> tuple[Array, Array]:
    x = x.copy()
    sort_groups(x, starts, counts)
    both = x[starts + (counts - 1) // 2] + x[starts + counts // 2]
    if unit:
        return to_even(both, np.full(len(both), 2)), _all(starts)
    return both / 2 + 0.0, _all(starts)


def _percentiles(x: Array, starts: Integers, counts: Integers, percent: Fraction) -> tuple[Array, Array]:
    fits = _floats(x)
    x = x.astype(np.float64)
    sort_groups(x, starts, counts)
    sizes, place = unique_inverse(counts)
    at = [percent / 100 * (size - 1) for size in sizes.tolist()]
    shares = [a - int(a) for a in at]
    share = np.array([float(s) for s in shares])
    rest = np.array([float(s - Fraction(float(s))) for s in shares])
    exact = np.array([Fraction(float(s)) == s for s in shares])
    low = starts + np.array([int(a) for a in at])[place]
    high = np.minimum(low + 1, starts + counts - 1)
    found, sure = _empty(starts)
    interpolated(x[low], x[high], share[place], rest[place], exact[place], found, sure)
    return found, sure & fits


def _variances(x: Array, starts: Integers, counts: Integers) -> tuple[Array, Array]:
    found, sure = _empty(starts)
    variances(x.astype(np.float64), starts, counts, found, sure)
    return found, sure & _floats(x)


def _floats(x: Array) -> bool:
    """Whether numbers are floats without loss."""
    return x.dtype.kind == "f" or exact(x)


def _empty(starts: Times) -> tuple[Array, Array]:
    return np.empty(len(starts), np.float64), np.empty(len(starts), bool)


def _all(starts: Times) -> Array:
    return np.ones(len(starts), bool)
