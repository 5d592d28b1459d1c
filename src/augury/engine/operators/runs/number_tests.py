"""Conditions between two events of a run that just compare numbers: as arrays, so that a kernel can ask them.

That a value is no number, or more than a float can hold, is found out as it comes; then the conditions are asked as all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from augury.algebra.nodes import Compare
from augury.algebra.terms import Apply, Const, Expr, Prev, Var
from augury.columns.dictionary import OPEN
from augury.columns.table import grown
from augury.engine.operators.runs.moves import Move
from augury.engine.operators.runs.sight import Question, Sight
from augury.graphs import lexical as lex
from augury.graphs.classify import NUMBER
from augury.graphs.patterns import Call, Constant, Literal, Variable
from augury.graphs.patterns import Expression as TermExpression
from augury.jit import Array
from augury.queries.coded_terms import coded_terms
from augury.queries.term_functions import Meets, expression_of

_OPERATORS = ("<", "<=", ">", ">=", "=", "!=")
_EXACT = float(1 << 53)


@dataclass(frozen=True)
class Operand:
    """A number: a constant, or that of a variable of a part, at the second event of a pair or at the first one.

    `term` says that the value is an RDF term, whose number it is.
    """

    value: float = 0.0
    part: int = -1
    field: int = -1
    second: bool = False
    term: bool = False


Test = tuple[str, Operand, Operand]


class NumberTests:
    """The tests of a move, and the numbers that they look at, one for each moment."""

    def __init__(self, move: Move, sight: Sight, tests: list[Test]) -> None:
        self.move, self.sight = move, sight
        self.operands = list(dict.fromkeys(o for _, *two in tests for o in two))
        place = self.operands.index
        self.tests: Array = np.array(
            [(_OPERATORS.index(op), place(a), a.second, place(b), b.second) for op, a, b in tests], np.int64
        ).reshape(-1, 5)
        self.agree: Array = np.array([(2 * i, 2 * i + 1) for i in range(len(move.agree))], np.int64).reshape(-1, 2)
        self.clear()

    def clear(self) -> None:
        self.numbers = np.empty((len(self.operands), 16))
        self.codes = np.empty((2 * len(self.move.agree), 16), np.int64)
        self.known, self.fits = 0, True

    def follow(self) -> bool:
        """Takes in the moments that there are more; whether numbers still decide."""
        table, lo = self.sight.moments.out.table, self.known
        if not self.fits or lo == table.n:
            return self.fits
        if self.numbers.shape[1] < table.n:
            size = len(table.alive)
            self.numbers, self.codes = grown(self.numbers, size, lo), grown(self.codes, size, lo)
        for place, operand in enumerate(self.operands):
            found = self._numbers(operand, lo, table.n)
            if found is None:
                self.fits = False
                return False
            self.numbers[place, lo : table.n] = found
        for place, name in enumerate(self.move.agree):
            for second, part in enumerate((self.move.source, self.move.target)):
                codes = self._codes(part, self.sight.views[part].vars[name], lo, table.n, -1 - second)
                if codes is None:
                    self.fits = False
                    return False
                self.codes[2 * place + second, lo : table.n] = codes
        self.known = table.n
        return True

    def _rows(self, part: int, lo: int, hi: int) -> tuple[Array, Array]:
        """The rows of a part that moments are, and which moments are any."""
        rows = self.sight.moments.out.table.data[self.sight.moments.row_fields[part], lo:hi]
        return rows[rows >= 0], rows >= 0

    def _numbers(self, operand: Operand, lo: int, hi: int) -> Array | None:
        found = np.full(hi - lo, operand.value)
        if operand.part < 0:
            return found
        rows, there = self._rows(operand.part, lo, hi)
        codes = self.sight.views[operand.part].table.data[operand.field, rows]
        dictionary = self.sight.circuit.tables.dictionary
        if operand.term:
            if len(codes) and not (codes & 1).all():
                return None
            coded = coded_terms(dictionary)
            numbers = coded.numbers(codes)
            worth = coded.terms.worth
            if (numbers < 0).any() or (worth.family[numbers] != NUMBER).any() or not worth.exact[numbers].all():
                return None
            found[there] = worth.number[numbers]
            return found
        given = dictionary.numeric(codes)
        if given is None or (given.dtype.kind == "i" and len(given) and np.abs(given).max() >= _EXACT):
            return None
        found[there] = given
        return found

    def _codes(self, part: int, field: int, lo: int, hi: int, null: int) -> Array | None:
        """The canonical codes of a variable; null is a code that equals no other."""
        rows, there = self._rows(part, lo, hi)
        codes, dictionary = self.sight.views[part].table.data[field, rows], self.sight.circuit.tables.dictionary
        if (codes == OPEN).any():
            return None
        found = np.full(hi - lo, null, np.int64)
        found[there] = np.where(dictionary.is_null(codes), null, dictionary.canonical(codes))
        return found


def number_tests(move: Move, sight: Sight) -> NumberTests | None:
    """The conditions of a move as comparisons of numbers; None where one is something else."""
    tests: list[Test] = []
    for asked in move.questions:
        found = list(_tests(asked, move, sight))
        if not found or None in found:
            return None
        tests += [test for test in found if test is not None]
    return NumberTests(move, sight, tests)


def _tests(asked: Question, move: Move, sight: Sight) -> Iterator[Test | None]:
    condition = asked.condition
    if not isinstance(condition, Compare):
        yield None
        return
    left, right = condition.left, condition.right
    if isinstance(left, Apply) and condition.op == "=" and right == Const(True):
        yield from _of_filters(left, asked, move, sight)
        return
    operands = [operand_of(term, asked, move, sight) for term in (left, right)]
    a, b = operands
    yield None if a is None or b is None else (condition.op, a, b)


def _of_filters(call: Apply, asked: Question, move: Move, sight: Sight) -> Iterator[Test | None]:
    """The filters of a graph pattern that compare two variables, or one with a number."""
    function = sight.circuit.plan.functions.get(call.function)
    meets = None if function is None else function.call
    if not isinstance(meets, Meets) or len(meets.branches) != 1 or len(set(meets.names)) < len(meets.names):
        yield None
        return
    values = dict(zip(meets.names, call.args, strict=True))
    for text in meets.branches[0]:
        expression = expression_of(text)
        if not isinstance(expression, Call) or expression.function not in _OPERATORS or len(expression.args) != 2:
            yield None
            return
        operands = [_term_operand(arg, values, asked, move, sight) for arg in expression.args]
        a, b = operands
        yield None if a is None or b is None else (expression.function, a, b)


def _term_operand(
    arg: TermExpression, values: dict[str, Expr], asked: Question, move: Move, sight: Sight
) -> Operand | None:
    if isinstance(arg, Constant) and isinstance(arg.term, Literal):
        name, value = lex.family(arg.term)
        number = float(value) if name == "number" else None  # type: ignore[arg-type]
        return None if number is None or number != value else Operand(number)
    if not isinstance(arg, Variable) or arg.name not in values:
        return None
    found = operand_of(values[arg.name], asked, move, sight)
    return None if found is None or found.part < 0 else Operand(0.0, found.part, found.field, found.second, term=True)


def operand_of(term: Expr, asked: Question, move: Move, sight: Sight) -> Operand | None:
    """The number that a variable is: at the second event, or as an earlier value at the first one."""
    if isinstance(term, Const):
        value = term.value
        plain = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _EXACT
        return Operand(float(value)) if plain else None  # type: ignore[arg-type]
    if not isinstance(term, Var):
        return None
    earlier, result = dict(asked.hidden).get(term.name), sight.results.get(term.name)
    second, part, name = True, move.target, term.name
    if earlier is not None or result is not None:
        of = earlier.of if isinstance(earlier, Prev) else result.aggregate.args[0] if result is not None else None
        if not isinstance(of, Var):
            return None
        second, part, name = False, move.target if earlier is not None else move.source, of.name
    elif name not in sight.views[part].vars:
        second, part = False, move.source
    view = sight.views[part]
    return Operand(0.0, part, view.vars[name], second) if name in view.vars else None
