"""Partial states of aggregates as columns of integers: sums that add up, and keys of which the greatest stays.

A value enters a state as one column of `Accumulator.enter`. Two states combine by adding their sums and keeping the greater
keys; where only sums are kept, one is taken away from another by subtracting. `Accumulator.read` gives the aggregates of
states. Everything is exact until a result is rounded, once. Values for which that does not hold are *hard*, and the
aggregates of a state with one are not sure: whoever reads it computes them from the members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from augury.algebra.aggregates import StateForm, arguments
from augury.algebra.partial_sums import total_kind, total_text
from augury.algebra.terms import Aggregate, Expr
from augury.core.arrays import Array
from augury.storage.conditions import Context
from augury.storage.dictionary import NULL
from augury.storage.exact_sums import (
    MANY,
    ExactSums,
    Numbers,
    as_floats,
    as_integers,
    exact_values,
    numbers_of_keys,
    order_keys,
    values_at,
)
from augury.storage.member_values import MemberValues

_BITS = 21  # of each of three counts in one flag: nulls, floats and hard values
_MASK = (1 << _BITS) - 1
HARD = 1 << 2 * _BITS
NO_KEY = -(2**63)  # less than all keys
RANKED = "ranked"
# The exponent of the first limb of what is added up, and how many limbs there are: of integers, and of fractions.
_SCALES = {"value": (0, (1, 3)), "square": (40, (2, 5)), "true": (0, (1, 1))}


class Picks(Protocol):
    """Finds the members that states have picked."""

    def __call__(self, pick: str, value: Expr, by: Expr, states: Array, /) -> tuple[Array, Array]:
        """The codes of `value` in the members that some states picked, and which of these codes are sure."""
        ...


class Accumulator:
    """The columns of the states of some aggregates.

    For each argument there is one of flags, then those of its sums; the keys of each pick stand behind all sums, and those
    of `ranked` arguments, whose nulls come first, behind all picks.
    """

    def __init__(
        self, context: Context, parts: Iterable[Aggregate], fraction: bool, ranked: Iterable[Expr] = ()
    ) -> None:
        """Values with a `fraction` need more columns."""
        self.context, self.fraction = context, fraction
        self.flags: dict[Expr, int] = {}
        self.sums: dict[tuple[Expr, str], slice] = {}
        self.orders: dict[tuple[Expr, str], int] = {}
        self.width = 0
        self.kinds: dict[Expr, set[tuple[str, bool]]] = {}  # the units of values so far, and whether they are floats
        for part in parts:
            self._lay_out(part)
        self.picks = len(self.orders)
        for expr in ranked:
            self._flag(expr)
            self.orders[expr, RANKED] = len(self.orders)

    def form(self, part: Aggregate) -> StateForm:
        form = self.context.scalars.aggregates[part.function].form
        assert form is not None
        return form

    def _lay_out(self, part: Aggregate) -> None:
        if not part.args:
            return
        form, (value, by) = self.form(part), arguments(part)
        for expr in (value, by):
            self._flag(expr)
        for measure in form.adds:
            if (by, measure) not in self.sums:
                limbs = _SCALES[measure][1][self.fraction]
                self.sums[by, measure] = slice(self.width, self.width + limbs)
                self.width += limbs
        for pick in form.picks:
            if pick in ("least", "greatest"):
                self.orders.setdefault((by, pick), len(self.orders))

    def _flag(self, expr: Expr) -> None:
        if expr not in self.flags:
            self.flags[expr], self.kinds[expr] = self.width, set()
            self.width += 1

    # Values of members

    def enter(self, count: int, values_of: Callable[[Expr], MemberValues | None]) -> Array | None:
        """The columns of so many members; None where values have a fraction, for which there are too few columns."""
        states = np.zeros((self.width + len(self.orders), count), np.int64)
        for expr in self.flags:
            values = values_of(expr)
            if values is None:
                states[self.flags[expr]] = HARD
            elif not self._enter(expr, values, states):
                return None
        return states

    def _enter(self, expr: Expr, values: MemberValues, states: Array) -> bool:
        null, hard = values.null, np.zeros(len(values), bool)
        floats = np.zeros(len(values), bool)
        sums = [(measure, row) for (of, measure), row in self.sums.items() if of == expr]
        orders = [(pick, number) for (of, pick), number in self.orders.items() if of == expr]
        if orders or any(measure != "true" for measure, _ in sums):
            _, floats, _ = values.numbers
        for measure, row in sums:
            if measure == "true":
                states[row], unfit = values.truths
            else:
                x, _, unfit = values.numbers
                x = np.where(unfit | null, 0, x)
                if not self.fraction and x.dtype.kind == "f" and bool((x != np.trunc(x)).any()):
                    return False
                exponent, limbs = _SCALES[measure][0], row.stop - row.start
                states[row], fits = values_at(x, 2 if measure == "square" else 1, exponent, limbs)
                unfit = unfit | ~fits
            hard |= unfit
        for pick, number in orders:
            timed = values.unit and pick != RANKED
            x, _, unfit = (values.column, floats, np.zeros_like(null)) if timed else values.numbers
            keys, fits = order_keys(np.where(null | unfit, 0, x))
            hard |= ~fits | unfit
            states[self.width + number] = np.where(null, NO_KEY, ~keys if pick == "least" else keys)
        hard &= ~null
        states[self.flags[expr]] = null + (floats & ~null).astype(np.int64) * (1 << _BITS) + hard * HARD
        for _, row in sums:
            states[row, null | hard] = 0
        if not null.all():
            unit = values.unit
            self.kinds[expr] |= {(unit, bool(f)) for f in (True, False) if (floats[~null] == f).any()}
        return True

    # Results of states

    def read(self, part: Aggregate, counts: Array, sums: Array, picks: Picks) -> tuple[Array, Array]:
        """The codes of an aggregate of states with so many members, and which of them are sure."""
        form, sure = self.form(part), counts < MANY
        if not part.args:
            return self.context.dictionary.encode_column(counts), sure
        value, by = arguments(part)
        codes = np.full(len(counts), NULL, np.int64)
        flags = sums[self.flags[by]]
        there, floats = self.numbers_of(by, counts, sums)
        sure &= (flags < HARD) & (sums[self.flags[value]] < HARD)
        units = {unit for unit, _ in self.kinds[by]}
        if (len(units) > 1 and not form.ordered) or (units - {""} and not form.durations):
            sure[:] = False
        some = np.flatnonzero(sure & ((counts if form.ordered else there) >= form.least))
        if not len(some):
            return codes, sure
        if form.picks and form.result is None:
            codes[some], fine = picks(form.picks[0], value, by, some)
        else:
            inputs: list[Numbers] = [ExactSums(there[some][None])]
            for measure in form.adds:
                inputs.append(ExactSums(sums[self.sums[by, measure]][:, some], _SCALES[measure][0]))
            fine = np.ones(len(some), bool)
            for pick in form.picks:
                picked, certain = picks(pick, value, by, some)
                x, _, hard = MemberValues.of(self.context, picked).numbers
                inputs.append(exact_values(x))
                fine &= certain & ~hard
            results, fits = result_codes(self.context, form, "".join(units), floats[some] > 0, inputs)
            codes[some] = results
            fine &= fits
        sure[some] &= fine
        return codes, sure

    def numbers_of(self, by: Expr, counts: Array, sums: Array) -> tuple[Array, Array]:
        """How many members of states have a value that is not null, and how many of these are floats."""
        flags = sums[self.flags[by]]
        return counts - (flags & _MASK), (flags >> _BITS) & _MASK

    def of_keys(self, pick: str, by: Expr, keys: Array, floats: Array) -> Array:
        """The codes of the values of keys, given which of them are floats."""
        numbers = numbers_of_keys(keys if pick == "greatest" else ~keys)
        ((unit, _), *_) = self.kinds[by]
        if unit:
            return self.context.encode_times(numbers.astype(np.int64), unit)
        codes, encode = np.empty(len(keys), np.int64), self.context.dictionary.encode_column
        codes[floats], codes[~floats] = encode(numbers[floats]), encode(numbers[~floats].astype(np.int64))
        return codes


def result_codes(
    context: Context, form: StateForm, unit: str, floats: Array, inputs: Sequence[Numbers]
) -> tuple[Array, Array]:
    """The results of a form as codes, and which of them there are; `floats` says which states have a float."""
    count = len(floats)
    if form.text:
        texts = [
            total_text(total_kind(unit, some), number.numerator, total.numerator, total.denominator)
            for some, number, total in zip(floats.tolist(), *(each.ratios() for each in inputs), strict=True)
        ]
        return context.dictionary.encode_all(texts), np.ones(count, bool)
    if form.kind == "bool":
        assert form.result is not None
        truth = form.result(*(as_integers(None, (each,))[0] for each in inputs))
        return context.dictionary.encode_column(truth), np.ones(count, bool)
    whole = ~floats if form.kind == "same" else np.full(count, form.kind == "int")
    if unit and form.kind != "int":
        whole[:] = True
    codes, fits = np.full(count, NULL, np.int64), np.ones(count, bool)
    for rows, integers in ((np.flatnonzero(whole), True), (np.flatnonzero(~whole), False)):
        if not len(rows):
            continue
        some = inputs if len(rows) == count else [each.take(rows) for each in inputs]
        if integers and not form.root:
            results, fine = as_integers(form.result, some)
        else:
            results, fine = as_floats(form.result, some)
            results = np.sqrt(results) if form.root else results
            results = np.rint(results).astype(np.int64) if integers else results
        timed = unit and form.kind != "int"
        encoded = context.encode_times(results, unit) if timed else context.dictionary.encode_column(results)
        codes[rows], fits[rows] = encoded, fine
    return codes, fits
