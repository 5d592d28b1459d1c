"""Expressions on whole columns, with the errors of SPARQL: true, false and error for conditions, a term or error for values.

Comparison and arithmetic of numbers, booleans and times are done on the columns of `Terms.worth`; where two values are so near that
floats cannot tell them apart, and for all other functions, each different combination of arguments is looked at once, by
`functions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from augury.algebra import sparql_algebra as p
from augury.algebra.sparql_algebra import Expression
from augury.core.arrays import Array, Integers, RowIds
from augury.graphs import classify as t
from augury.graphs.functions import FUNCTIONS, ExpressionError
from augury.graphs.lexical import FALSE, RANKED, TRUE, show_double
from augury.graphs.rdf_terms import UNBOUND, Terms, TermValues, key_of
from augury.graphs.solutions import SolutionTable
from augury.storage.unique import unique, unique_first_inverse, unique_inverse

_TRUTH_RANK = 4  # beyond those of numbers
_PENDING = -2  # a number or a boolean that has not become a term yet
_WHOLE = 2.0**53  # up to which all integers are floats
_MOST = 1 << 18  # answers that are remembered
_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
}
_ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}


@dataclass(frozen=True)
class Truth:
    """For each row true, false, or an error; `true` is false where there is an error. One row may stand for all."""

    true: Array
    error: Array


@dataclass(frozen=True)
class TermColumn:
    """Terms by number, UNBOUND where there is an error; _PENDING where the worth alone is known. One row may stand for all."""

    numbers: Integers
    worth: TermValues


class TermExpressions:
    """Expressions over the terms of a circuit. `exists` answers EXISTS for the rows of a table."""

    def __init__(self, terms: Terms, exists: Callable[[p.Exists, SolutionTable], Array]) -> None:
        self.terms, self.exists = terms, exists

    def holds(self, condition: Expression, table: SolutionTable) -> Array:
        """The rows for which a condition is true."""
        return np.broadcast_to(self.truth(condition, table).true, table.size)

    def terms_of(self, expression: Expression, table: SolutionTable) -> Array:
        """The terms that an expression is in each row, UNBOUND where it is an error."""
        return np.broadcast_to(self._numbers(self.column(expression, table)), table.size).copy()

    # Conditions

    def truth(self, expression: Expression, table: SolutionTable) -> Truth:
        match expression:
            case p.Exists():
                result = self.exists(expression, table)
                return Truth(result, np.zeros(1, bool))
            case p.SparqlCall("&&"):
                return _both(*(self.truth(arg, table) for arg in expression.args))
            case p.SparqlCall("||"):
                return _negated(_both(*(_negated(self.truth(arg, table)) for arg in expression.args)))
            case p.SparqlCall("!"):
                return _negated(self.truth(expression.args[0], table))
            case p.SparqlCall("BOUND", (p.Variable(name),)):
                return _certain(table.columns[name] != UNBOUND if name in table.columns else np.zeros(1, bool))
            case p.SparqlCall("IN", (first, *listed)):
                return self._in(first, listed, table)
            case p.SparqlCall("NOT IN", (first, *listed)):
                return _negated(self._in(first, listed, table))
            case p.SparqlCall("sameTerm"):
                a, b = (self._numbers(self.column(arg, table)) for arg in expression.args)
                return _checked(a == b, (a == UNBOUND) | (b == UNBOUND))
            case p.SparqlCall(name, (left, right)) if name in _COMPARISONS:
                return self._compare(name, self.column(left, table), self.column(right, table))
        return self._effective(self.column(expression, table))

    def _in(self, first: Expression, listed: Sequence[Expression], table: SolutionTable) -> Truth:
        left = self.column(first, table)
        if not listed:
            return _checked(np.zeros(1, bool), left.numbers == UNBOUND)
        tests = [_negated(self._compare("=", left, self.column(item, table))) for item in listed]
        return _negated(reduce(_both, tests))

    def _effective(self, column: TermColumn) -> Truth:
        """The effective boolean value."""
        worth, numbers = column.worth, column.numbers
        measured = (worth.family == t.NUMBER) | (worth.family == t.TRUTH)
        true = measured & (worth.number != 0) & ~np.isnan(worth.number)
        error = numbers == UNBOUND
        remaining = ~measured & ~error
        if remaining.any():
            true, error = np.array(true), np.array(error)
            answers = self._once("truth", [numbers[remaining]])
            true[remaining], error[remaining] = answers == self._true, answers == UNBOUND
        return Truth(true & ~error, error)

    def _compare(self, operator: str, a: TermColumn, b: TermColumn) -> Truth:
        """By floats where families are the same and floats decide; else each different pair is looked at."""
        x, y = a.worth, b.worth
        error = (a.numbers == UNBOUND) | (b.numbers == UNBOUND)
        with np.errstate(invalid="ignore"):
            true = _COMPARISONS[operator](x.number, y.number)
            unsure = (x.family != y.family) | (x.family > t.MEASURED)
            unsure = unsure | ((x.number == y.number) & ~(x.exact & y.exact))
        unsure &= ~error
        if unsure.any():
            unsure, true, error = np.broadcast_arrays(unsure, true, error)
            true, error = true.copy(), error.copy()
            self._compare_slowly(operator, a, b, np.flatnonzero(unsure), true, error)
        return Truth(true & ~error, error)

    def _compare_slowly(
        self, operator: str, a: TermColumn, b: TermColumn, rows: RowIds, true: Array, error: Array
    ) -> None:
        x, y = (_rows(self._numbers(column), rows) for column in (a, b))
        if operator in ("=", "!="):  # the same term is equal to itself, but for NaN, which floats decide
            same = (x == y) & (_rows(a.worth.family, rows) != t.NUMBER)
            true[rows[same]] = operator == "="
            rows, x, y = rows[~same], x[~same], y[~same]
        answers = self._once(operator, [x, y])
        true[rows], error[rows] = answers == self._true, answers == UNBOUND

    # Values

    def column(self, expression: Expression, table: SolutionTable) -> TermColumn:
        match expression:
            case p.Variable():
                result = table.columns.get(expression.name)
                return self._column(np.full(1, UNBOUND) if result is None else result)
            case p.Constant():
                return self._column(np.array([self.terms.number(expression.term)]))
            case p.Exists() | p.SparqlCall("&&" | "||" | "!" | "BOUND" | "IN" | "NOT IN" | "sameTerm"):
                return _of_truth(self.truth(expression, table))
            case p.SparqlCall("IF", (condition, first, second)):
                return self._if(self.truth(condition, table), self.column(first, table), self.column(second, table))
            case p.SparqlCall("COALESCE"):
                return self._coalesce([self.column(arg, table) for arg in expression.args])
            case p.SparqlCall(name):
                if name in _COMPARISONS:
                    return _of_truth(self.truth(expression, table))
                args = [self.column(arg, table) for arg in expression.args]
                if name in _ARITHMETIC:
                    return self._compute(name, *args)
                return self._column(self._once(name, [self._numbers(arg) for arg in args]))
        raise TypeError(f"not an expression: {expression!r}")

    def _column(self, numbers: Integers) -> TermColumn:
        """Terms, with what they stand for; where there is none it does not matter what."""
        worth = self.terms.worth
        if not len(worth):
            return TermColumn(numbers, TermValues(*(np.zeros(len(numbers), column.dtype) for column in worth.columns)))
        return TermColumn(numbers, worth.of(numbers))

    def _if(self, test: Truth, first: TermColumn, second: TermColumn) -> TermColumn:
        chosen = np.where(test.true, self._numbers(first), self._numbers(second))
        return self._column(np.where(test.error, UNBOUND, chosen))

    def _coalesce(self, columns: Sequence[TermColumn]) -> TermColumn:
        result = np.full(1, UNBOUND)
        for column in columns:
            result = np.where(result == UNBOUND, self._numbers(column), result)
        return self._column(result)

    def _compute(self, operator: str, a: TermColumn, b: TermColumn) -> TermColumn:
        """Doubles are computed as such, and integers, while they are small enough; all else each different pair once."""
        x, y = a.worth, b.worth
        error = (a.numbers == UNBOUND) | (b.numbers == UNBOUND)
        rank = np.maximum(x.rank, y.rank)
        with np.errstate(all="ignore"):
            number = _ARITHMETIC[operator](x.number, y.number)
        plain = (x.family == t.NUMBER) & (y.family == t.NUMBER)
        whole = (rank == 0) & x.exact & y.exact & (np.abs(number) <= _WHOLE) & (operator != "/")
        sure = plain & ((rank >= 2) | whole) | error
        error, number, rank, sure = np.broadcast_arrays(error, number, rank, sure)
        numbers = np.where(error, UNBOUND, _PENDING)
        family = np.full(len(numbers), t.NUMBER, np.uint8)
        result = TermColumn(numbers, TermValues(family, number, np.ones(len(numbers), bool), rank))
        if sure.all():
            return result
        rows = np.flatnonzero(~sure)
        numbers = np.array(self._numbers(TermColumn(np.where(sure, numbers, UNBOUND), result.worth)))
        numbers[rows] = self._once(operator, [_rows(self._numbers(column), rows) for column in (a, b)])
        return self._column(numbers)

    # Terms

    @property
    def _true(self) -> int:
        return self.terms.number(TRUE)

    def _numbers(self, column: TermColumn) -> Array:
        """The terms of a column; what is only a number or a boolean so far becomes one."""
        pending = column.numbers == _PENDING
        if not pending.any():
            return column.numbers
        rows = np.flatnonzero(pending)
        family, number, _, rank = (np.broadcast_to(part, len(pending))[rows] for part in column.worth.columns)
        kinds = np.where(family == t.TRUTH, _TRUTH_RANK, rank)
        result = column.numbers.copy()
        for kind in unique(kinds).tolist():
            mine = kinds == kind
            # By their bits: 0.0 and -0.0 are equal, but written differently.
            different, places = unique_inverse(number[mine].view(np.int64))
            result[rows[mine]] = self.terms.keys.add(_keys(kind, different.view(np.float64).tolist()))[places]
        return result

    def _once(self, name: str, args: Sequence[Array]) -> Array:
        """A function for each different combination of arguments, UNBOUND where it is an error."""
        if not args:
            return self._answers(name, [()])
        args = np.broadcast_arrays(*args)
        if not len(args[0]):
            return np.empty(0, np.int64)
        if len(args) == 1:
            different, places = unique_inverse(args[0])
            rows = [(item,) for item in different.tolist()]
        else:
            codes = reduce(_paired, args)
            _, first, places = unique_first_inverse(codes)
            rows = list(zip(*(arg[first].tolist() for arg in args), strict=True))
        return self._answers(name, rows)[places.reshape(-1)]

    def _answers(self, name: str, rows: Sequence[tuple[int, ...]]) -> Array:
        answers = self.terms.answers
        if len(answers) > _MOST:
            answers.clear()
        result = np.empty(len(rows), np.int64)
        for i, row in enumerate(rows):
            answer = answers.get((name, row))
            if answer is None:
                answer = answers[name, row] = self._answer(name, row)
            result[i] = answer
        return result

    def _answer(self, name: str, row: tuple[int, ...]) -> int:
        if UNBOUND in row:
            return UNBOUND
        args = [self.terms.term(number) for number in row]
        try:
            return self.terms.number(FUNCTIONS[name](*args))
        except ExpressionError:
            return UNBOUND


def _keys(rank: int, values: Sequence[float]) -> list[bytes]:
    """The keys of numbers of one type, or of booleans."""
    if rank == _TRUTH_RANK:
        return [key_of(TRUE if value else FALSE) for value in values]
    ending = f'"^^<{RANKED[rank]}>'
    if rank == 0:
        return [f'"{int(value)}{ending}'.encode() for value in values]
    return [f'"{show_double(value)}{ending}'.encode() for value in values]


def _paired(a: Array, b: Array) -> Array:
    dense = unique_inverse(a)[1].reshape(-1).astype(np.int64)
    return dense * (int(b.max(initial=0)) + 2) + b + 1


def _rows(column: Array, rows: RowIds) -> Array:
    return column[rows] if len(column) > 1 else np.broadcast_to(column, len(rows))


def _certain(true: Array) -> Truth:
    return Truth(true, np.zeros(1, bool))


def _checked(true: Array, error: Array) -> Truth:
    return Truth(true & ~error, error)


def _negated(truth: Truth) -> Truth:
    return Truth(~truth.true & ~truth.error, truth.error)


def _both(a: Truth, b: Truth) -> Truth:
    """`&&`: false where one side is, whatever the other; an error where the other is true, or one, too."""
    false = (~a.true & ~a.error) | (~b.true & ~b.error)
    true = a.true & b.true
    return Truth(true, ~true & ~false)


def _of_truth(truth: Truth) -> TermColumn:
    true, error = np.broadcast_arrays(truth.true, truth.error)
    size = len(true)
    worth = TermValues(
        np.full(size, t.TRUTH, np.uint8), true.astype(float), np.ones(size, bool), np.zeros(size, np.uint8)
    )
    return TermColumn(np.where(error, UNBOUND, _PENDING), worth)
