"""Aggregates of groups whose members are listed, for all groups at once.

Groups that columns cannot decide are *unsure*: they are computed one by one, as the reference does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from augury.algebra.aggregates import StateForm, aggregate_of, arguments, percentage
from augury.algebra.scalar import RowError
from augury.algebra.terms import FILTERED, Aggregate, Apply, Const, Expr
from augury.core.arrays import Array
from augury.core.errors import RunError
from augury.core.model import Value
from augury.storage.accumulator import result_codes
from augury.storage.conditions import Context
from augury.storage.dictionary import NULL
from augury.storage.exact_sums import ExactSums, Numbers, as_floats, as_integers, exact_values
from augury.storage.grouping import Slices, in_groups
from augury.storage.kernels.group_sort import sort_groups
from augury.storage.member_values import MemberValues
from augury.storage.unique import unique_inverse

Codes = tuple[Array, Array | None]  # a code for each group, and which groups are unsure; None where none is
Listed = Callable[[MemberValues, Slices, Aggregate], "Codes | None"]


def group_aggregates(
    context: Context, part: Aggregate, groups: Slices, columns: Mapping[Expr, MemberValues | None]
) -> Codes:
    """An aggregate of all groups, from the values of its arguments in the order of events."""
    function = context.scalars.aggregates[part.function]
    unsure: Codes = np.full(len(groups), NULL, np.int64), np.ones(len(groups), bool)
    compute = LISTED.get(part.function)
    if function.registered or (function.form is None and compute is None):
        return unsure
    if not part.args:
        return context.dictionary.encode_column(groups.counts), None
    arg, more = arguments(part)
    values = columns.get(arg)
    by = values if function.form is None and not function.filters else columns.get(more)
    if values is None or by is None:
        return unsure
    keeps_null = function.keeps_null or part.function == "nth"
    if part.distinct and (keeps_null or by is not values):
        return unsure
    if not keeps_null:
        values, by, groups = _not_null(values, by, groups)
    if part.distinct and len(values):
        order, first = in_groups([groups.owner, values.keys])
        keep = np.zeros(len(values), bool)
        keep[order[first]] = True
        values, groups = values.take(np.flatnonzero(keep)), groups.where(keep)
        by = values
    if compute is not None:
        return compute(values, groups, part) or unsure
    assert function.form is not None
    if values.unit and not function.form.durations:
        return unsure
    return _of_form(context, function.form, values, by, groups)


def _not_null(values: MemberValues, by: MemberValues, groups: Slices) -> tuple[MemberValues, MemberValues, Slices]:
    """Members whose value, or second argument, is not null."""
    keep = ~by.null
    if keep.all():
        return values, by, groups
    members = np.flatnonzero(keep)
    some = values.take(members)
    return some, some if by is values else by.take(members), groups.where(keep)


def code_of(context: Context, part: Aggregate, values: Iterable[Value], rule: str) -> int | None:
    """An aggregate of one group, as the reference computes it; None where it fails, which is reported."""
    try:
        value = aggregate_of(context.scalars.aggregates[part.function], list(values), part.distinct)
        return context.encode(value)
    except RowError as error:
        context.report(rule, str(error), {})
        return None
    except RunError:
        raise
    except Exception as error:
        raised = f"the aggregate `{part.function}` raised {type(error).__name__}: {error}"
        raise RunError(f"{raised}\n  in rule `{rule}`") from error


# Aggregates that follow from a partial state


def _of_form(context: Context, form: StateForm, values: MemberValues, by: MemberValues, groups: Slices) -> Codes:
    """The state of each group is made at once, and read."""
    codes, some = np.full(len(groups), NULL, np.int64), groups.some
    if form.kind == "int" and form.result is None:
        return context.dictionary.encode_column(groups.counts), None
    if form.picks and form.result is None:
        members, there = _picked(form.picks[0], by, groups)
        codes[there] = values.codes(members)
        return codes, None
    unsure = np.zeros(len(groups), bool)
    if not len(some):
        return codes, unsure
    starts, counts = groups.starts[some], groups.counts[some]
    inputs: list[Numbers] = [ExactSums(counts[None])]
    hard = np.zeros(len(values), bool)
    for measure in form.adds:
        sums, unfit = values.sums(measure, starts, counts)
        inputs.append(sums)
        hard |= unfit
    floats = np.zeros(len(some), bool)
    if form.kind != "bool":
        x, is_float, unfit = values.numbers
        hard |= unfit
        floats = np.logical_or.reduceat(is_float, starts)
        for pick in form.picks:
            inputs.append(exact_values(x[_picked(pick, values, groups)[0]]))
    unsure[some] = np.logical_or.reduceat(hard, starts)
    ready = np.flatnonzero(~unsure[some] & (counts >= form.least))
    if len(ready):
        inputs = [each.take(ready) for each in inputs]
        results, fits = result_codes(context, form, values.unit, floats[ready], inputs)
        codes[some[ready]], unsure[some[ready]] = results, ~fits
    return codes, unsure


def _picked(pick: str, by: MemberValues, groups: Slices) -> tuple[Array, Array]:
    """The member that each group picks, the first of several, and the groups that have one."""
    some = groups.some
    starts, counts = groups.starts[some], groups.counts[some]
    if pick in ("first", "last") or not len(some):
        return (starts + counts - 1 if pick == "last" else starts), some
    reduce = np.maximum if pick == "greatest" else np.minimum
    order = by.order
    best = np.zeros(len(groups), order.dtype)
    best[some] = reduce.reduceat(order, starts)
    hits = np.flatnonzero(order == best[groups.owner])
    owner = groups.owner[hits]
    first = np.r_[True, owner[1:] != owner[:-1]]
    return hits[first], owner[first]


# Aggregates that need all members


def _nth(values: MemberValues, groups: Slices, part: Aggregate) -> Codes | None:
    more = arguments(part)[1]
    if isinstance(more, Apply) and more.function == "if":  # `nth(V, 2 where c)`
        more = more.args[1]
    if not (isinstance(more, Const) and type(more.value) is int and more.value >= 1):
        return None
    codes = np.full(len(groups), NULL, np.int64)
    there = np.flatnonzero(groups.counts >= more.value)
    codes[there] = values.codes(groups.starts[there] + more.value - 1)
    return codes, None


def _last(values: MemberValues, groups: Slices, part: Aggregate) -> Codes:
    codes, some = np.full(len(groups), NULL, np.int64), groups.some
    codes[some] = values.codes(groups.starts[some] + groups.counts[some] - 1)
    return codes, None


def _list(values: MemberValues, groups: Slices, part: Aggregate) -> Codes:
    """All values of each group as one; null of a group without any."""
    listed = values.dictionary.decode_all(values.codes(np.arange(len(values))))
    encode = values.context.encode
    codes = [
        encode(tuple(listed[first : first + count])) if count else NULL
        for first, count in zip(groups.starts.tolist(), groups.counts.tolist(), strict=True)
    ]
    return np.array(codes, np.int64), None


def _mode(values: MemberValues, groups: Slices, part: Aggregate) -> Codes:
    """The most frequent value of each group; of several, the least."""
    codes = np.full(len(groups), NULL, np.int64)
    if not len(values):
        return codes, None
    order, first = in_groups([groups.owner, values.keys])
    sizes = np.diff(np.r_[first, len(order)])
    owner = groups.owner[order[first]]
    new = np.r_[True, owner[1:] != owner[:-1]]
    most = np.maximum.reduceat(sizes, np.flatnonzero(new))[np.cumsum(new) - 1]
    chosen = np.flatnonzero(sizes == most)
    candidates = values.take(order[first[chosen]])
    members, there = _picked("least", candidates, Slices(np.bincount(owner[chosen], minlength=len(groups))))
    codes[there] = candidates.codes(members)
    return codes, None


def _between(values: MemberValues, groups: Slices, part: Aggregate) -> Codes | None:
    """The value at a percentage of each group."""
    percent = percentage(part)
    if percent is None:
        return None
    codes, unsure, some = np.full(len(groups), NULL, np.int64), np.zeros(len(groups), bool), groups.some
    if not len(some):
        return codes, unsure
    x, _, hard = values.numbers
    starts, counts = groups.starts[some], groups.counts[some]
    x = x.copy()
    sort_groups(x, starts, counts)
    percentile = Percentile.of(counts, percent)
    results, fits = percentile.between(x[starts + percentile.low], x[starts + percentile.high], bool(values.unit))
    codes[some] = values.encode(results)
    unsure[some] = np.logical_or.reduceat(hard, starts) | ~fits
    return codes, unsure


@dataclass(frozen=True)
class Percentile:
    """Where a percentage lies among so many sorted values: between two of them, so much behind the first."""

    low: Array
    high: Array
    shares: list[Fraction] | None  # by the number of values; None where it is the middle
    which: Array

    @staticmethod
    def of(counts: Array, percent: Fraction) -> Percentile:
        if percent == 50:
            return Percentile((counts - 1) // 2, counts // 2, None, counts)
        sizes, which = unique_inverse(counts)
        ranks = [percent / 100 * (size - 1) for size in sizes.tolist()]
        low = np.array([int(rank) for rank in ranks], np.int64)[which]
        return Percentile(low, np.minimum(low + 1, counts - 1), [rank - int(rank) for rank in ranks], which)

    def between(self, low: Array, high: Array, timed: bool) -> tuple[Array, Array]:
        """The numbers there, in proportion, rounded once, and which of them there are; `timed` ones are integers."""
        if self.shares is None:
            twice = low + high
            return (_halves(twice) if timed else twice / 2 + 0.0), np.ones(len(low), bool)
        if any(share.denominator >= 2**62 for share in self.shares):
            return np.zeros(len(low), low.dtype), np.zeros(len(low), bool)
        parts = (np.array([getattr(s, name) for s in self.shares])[self.which] for name in ("numerator", "denominator"))
        inputs = [exact_values(low), exact_values(high), *(ExactSums(p[None]) for p in parts)]
        return (as_integers if timed else as_floats)(_interpolated, inputs)


def _halves(twice: Array) -> Array:
    """Halves of integers, rounded to even."""
    low: Array = twice >> 1
    rounded: Array = low + (twice & low & 1)
    return rounded


def _interpolated(low: Any, high: Any, numerator: Any, denominator: Any) -> object:
    return low + (high - low) * numerator / denominator


LISTED: dict[str, Listed] = {
    "nth": _nth,
    "nth where": _nth,
    "last where": _last,
    "list": _list,
    f"list{FILTERED}": _list,
    "mode": _mode,
    "median": _between,
    "percentile": _between,
}
