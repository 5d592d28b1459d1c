"""Conditions between two events of a run that just compare numbers: as arrays, so that a kernel can ask them.

That a value is no number, or more than a float can hold, is found out as it comes; then the conditions are asked as all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from augury.algebra.nodes import Compare, RunResult
from augury.algebra.sparql_algebra import Constant, Literal, SparqlCall, Variable
from augury.algebra.sparql_algebra import Expression as TermExpression
from augury.algebra.terms import Apply, Const, Expr, Prev, Var
from augury.core.arrays import Array
from augury.engine.operators.runs import kernels as k
from augury.engine.operators.runs.sight import MatchBindings
from augury.graphs import lexical as lex
from augury.graphs.classify import NUMBER
from augury.planner.run_moves import Move, may_be_left_out
from augury.planner.run_questions import Question
from augury.queries.coded_terms import coded_terms
from augury.queries.term_functions import Meets, expression_of
from augury.storage.column_expressions import COMPARE
from augury.storage.dictionary import OPEN
from augury.storage.table import grown

_OPERATORS = tuple(COMPARE)  # as `kernels.compared` numbers them
_EXACT = float(1 << 53)
BLOCK = 32  # moments of which it is known together whether one of them can be what a search looks for


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


class MomentNumbers:
    """The operands of a run's tests, for each moment: numbers, and codes that have to be equal.

    Each is kept once, for all tests that look at it. Moments come in blocks; of each block the least and the greatest numbers
    are known, and whether its moments follow one another in their chain just as they are numbered.
    """

    def __init__(self, sight: MatchBindings) -> None:
        self.sight = sight
        self.operands: list[Operand] = []
        self.fields: list[tuple[int, int]] = []  # of codes: part and field
        self.clear()

    def row(self, operand: Operand) -> int:
        """The row of an operand among the numbers."""
        part = operand.part if operand.part < 0 else self.sight.moments.alike[operand.part]
        return _place(self.operands, Operand(operand.value, part, operand.field, term=operand.term))

    def code_row(self, part: int, name: str) -> int:
        """The row of a variable of a part among the codes."""
        return _place(self.fields, (self.sight.moments.alike[part], self.sight.views[part].vars[name]))

    def clear(self) -> None:
        self.numbers, self.codes = np.empty((len(self.operands), 16)), np.empty((len(self.fields), 16), np.int64)
        self.low, self.high = np.empty((len(self.operands), 1)), np.empty((len(self.operands), 1))
        self.whole: Array = np.zeros(1, np.bool_)
        self.filled, self.blocks = 0, 0
        self.unfit: set[int] = set()  # operands of which some value is no number
        self.open: set[int] = set()  # codes of which some are open

    def follow(self) -> None:
        """Takes in the moments that there are more."""
        table, lo = self.sight.moments.out.table, self.filled
        if lo == table.n:
            return
        if self.numbers.shape[1] < table.n:
            size = len(table.alive)
            self.numbers, self.codes = grown(self.numbers, size, lo), grown(self.codes, size, lo)
        for row, operand in enumerate(self.operands):
            column = None if row in self.unfit else numbers_of(self.sight, operand, lo, table.n)
            if column is None:
                self.unfit.add(row)
            else:
                self.numbers[row, lo : table.n] = column
        for row, (part, field) in enumerate(self.fields):
            codes = None if row in self.open else self._codes(part, field, lo, table.n)
            if codes is None:
                self.open.add(row)
            else:
                self.codes[row, lo : table.n] = codes
        self.filled = table.n

    def _codes(self, part: int, field: int, lo: int, hi: int) -> Array | None:
        """The canonical codes of a variable, k.NO_CODE for null; None where some value is open."""
        rows, there = rows_of(self.sight, part, lo, hi)
        codes, dictionary = self.sight.views[part].table.data[field, rows], self.sight.runtime.tables.dictionary
        if (codes == OPEN).any():
            return None
        codes_of = np.full(hi - lo, k.NO_CODE, np.int64)
        codes_of[there] = np.where(dictionary.is_null(codes), k.NO_CODE, dictionary.canonical(codes))
        return codes_of

    def summarise(self) -> None:
        """Says of the blocks that are full by now what is known of blocks."""
        lo, hi = self.blocks, self.filled // BLOCK
        if lo == hi:
            return
        if self.low.shape[1] < hi:
            size = len(self.sight.moments.out.table.alive) // BLOCK + 1
            self.low, self.high = grown(self.low, size, lo), grown(self.high, size, lo)
            self.whole = grown(self.whole, size, lo)
        some = self.numbers[:, lo * BLOCK : hi * BLOCK].reshape(len(self.operands), hi - lo, BLOCK)
        self.low[:, lo:hi], self.high[:, lo:hi] = np.fmin.reduce(some, axis=2), np.fmax.reduce(some, axis=2)
        after = self.sight.moments.index.after[lo * BLOCK : hi * BLOCK].reshape(hi - lo, BLOCK)
        following = np.arange(lo * BLOCK + 1, hi * BLOCK + 1).reshape(hi - lo, BLOCK)
        stands = self.sight.moments.out.table.alive[lo * BLOCK : hi * BLOCK].reshape(hi - lo, BLOCK).astype(bool)
        self.whole[lo:hi] = (after == following)[:, :-1].all(axis=1) & stands.all(axis=1)
        self.blocks = hi

    def break_up(self, changed: Array) -> None:
        """Some moments are gone, or came between others."""
        before = self.sight.moments.index.prev[changed]
        blocks = np.concatenate([changed, before[before >= 0]]) // BLOCK
        self.whole[blocks[blocks < self.blocks]] = False


T = TypeVar("T")


def _place(listed: list[T], item: T) -> int:
    """The place of something in a list, to which it is added where it is not there."""
    if item not in listed:
        listed.append(item)
    return listed.index(item)


class NumberTests:
    """The tests of a move, over the numbers of moments."""

    def __init__(self, move: Move, numbers: MomentNumbers, tests: list[Test]) -> None:
        self.of = numbers
        # As kernels read them: comparison, row of the numbers, whether it is that of the second moment; and the other one.
        self.tests: Array = np.array(
            [(_OPERATORS.index(op), numbers.row(a), a.second, numbers.row(b), b.second) for op, a, b in tests], np.int64
        ).reshape(-1, 5)
        agree = [(numbers.code_row(move.source, v), numbers.code_row(move.target, v)) for v in move.agree]
        self.agree: Array = np.array(agree, np.int64).reshape(-1, 2)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for tests that hold for the same pairs of moments."""
        return tuple(map(tuple, self.tests.tolist())), tuple(map(tuple, self.agree.tolist()))

    def follow(self) -> bool:
        """Takes in the moments that there are more; whether numbers still decide."""
        numbers = self.of
        numbers.follow()
        if not numbers.unfit and not numbers.open:
            return True
        used = {*self.tests[:, 1].tolist(), *self.tests[:, 3].tolist()}
        return numbers.unfit.isdisjoint(used) and numbers.open.isdisjoint(self.agree.ravel().tolist())

    def hold(self, sources: Array, targets: Array) -> Array:
        """For which pairs of moments they hold."""
        mask = np.ones(len(sources), bool)
        for source, target in self.agree.tolist():
            codes = self.of.codes[source, sources]
            mask &= (codes == self.of.codes[target, targets]) & (codes != k.NO_CODE)
        for op, a, a_second, b, b_second in self.tests.tolist():
            x = self.of.numbers[a, targets if a_second else sources]
            mask &= COMPARE[_OPERATORS[op]](x, self.of.numbers[b, targets if b_second else sources])
        return mask


def rows_of(sight: MatchBindings, part: int, lo: int, hi: int) -> tuple[Array, Array]:
    """The rows of a part that moments are, and which moments are any."""
    rows = sight.moments.out.table.data[sight.moments.row_fields[part], lo:hi]
    return rows[rows >= 0], rows >= 0


def numbers_of(sight: MatchBindings, operand: Operand, lo: int, hi: int) -> Array | None:
    """The numbers of moments; None where some value is none that a float can hold."""
    column = np.full(hi - lo, operand.value)
    if operand.part < 0:
        return column
    rows, there = rows_of(sight, operand.part, lo, hi)
    codes = sight.views[operand.part].table.data[operand.field, rows]
    dictionary = sight.runtime.tables.dictionary
    if operand.term:
        if len(codes) and not (codes & 1).all():
            return None
        coded = coded_terms(dictionary)
        numbers = coded.numbers(codes)
        worth = coded.terms.worth
        if (numbers < 0).any() or (worth.family[numbers] != NUMBER).any() or not worth.exact[numbers].all():
            return None
        column[there] = worth.number[numbers]
        return column
    numeric = dictionary.numeric(codes)
    if numeric is None or (numeric.dtype.kind == "i" and len(numeric) and np.abs(numeric).max() >= _EXACT):
        return None
    column[there] = numeric
    return column


class LaterTests:
    """Moves whose conditions compare numbers of the new event with those of any earlier part of the match."""

    def __init__(self, moves: Sequence[Move], numbers: MomentNumbers) -> None:
        self.of = numbers
        asked = [(number, move) for number, move in enumerate(moves) if _may_be_tested(move)]
        by_number = {number: _all_tests(move.later, move, numbers.sight) for number, move in asked}
        kept = {number: tests for number, tests in by_number.items() if tests}
        self.moves = sum(1 << number for number in kept)
        rows = [
            (number, _OPERATORS.index(op), numbers.row(a), _moment(a), numbers.row(b), _moment(b))
            for number, tests in kept.items()
            for op, a, b in tests
        ]
        self.tests: Array = np.array(rows, np.int64).reshape(-1, 6)
        self.none: Array = self.tests[:0]

    def follow(self) -> bool:
        """Takes in the moments that there are more; whether numbers still decide."""
        if not self.moves:
            return False
        self.of.follow()
        return self.of.unfit.isdisjoint([*self.tests[:, 2].tolist(), *self.tests[:, 4].tolist()])


def _may_be_tested(move: Move) -> bool:
    """Whether a move is taken by all events that meet its conditions, and these are asked of the match so far."""
    return move.link != "THEN" and bool(move.later) and not move.agree_later and not move.deferred


def _moment(operand: Operand) -> int:
    """Which moment of a partial match has a number: the last one of a part, or -1 for the new one."""
    return -1 if operand.second or operand.part < 0 else operand.part


def _all_tests(questions: Iterable[Question], move: Move, sight: MatchBindings) -> list[Test] | None:
    """Conditions of a move as comparisons of numbers; None where one is something else."""
    tests: list[Test] = []
    for asked in questions:
        part_tests = _tests(asked, move, sight)
        if not part_tests:
            return None
        tests += part_tests
    return tests


def number_tests(move: Move, numbers: MomentNumbers) -> NumberTests | None:
    """The tests of a move; None where a condition is something else than a comparison of numbers."""
    tests = _all_tests(move.questions, move, numbers.sight)
    return None if tests is None else NumberTests(move, numbers, tests)


def _tests(asked: Question, move: Move, sight: MatchBindings) -> list[Test] | None:
    condition = asked.condition
    if not isinstance(condition, Compare) or may_be_left_out(asked, move, sight.run, sight.views):
        return None
    left, right = condition.left, condition.right
    if isinstance(left, Apply) and condition.op == "=" and right == Const(True):
        return _of_filters(left, asked, move, sight)
    a, b = (operand_of(term, asked, move, sight) for term in (left, right))
    return None if a is None or b is None else [(condition.op, a, b)]


def _of_filters(call: Apply, asked: Question, move: Move, sight: MatchBindings) -> list[Test] | None:
    """The filters of a graph pattern that compare two variables, or one with a number."""
    function = sight.runtime.plan.functions.get(call.function)
    meets = None if function is None else function.call
    if not isinstance(meets, Meets) or len(meets.branches) != 1 or len(set(meets.names)) < len(meets.names):
        return None
    values, tests = dict(zip(meets.names, call.args, strict=True)), list[Test]()
    for text in meets.branches[0]:
        expression = expression_of(text)
        if not isinstance(expression, SparqlCall) or expression.function not in _OPERATORS or len(expression.args) != 2:
            return None
        a, b = (_term_operand(arg, values, asked, move, sight) for arg in expression.args)
        if a is None or b is None:
            return None
        tests.append((expression.function, a, b))
    return tests


def _term_operand(
    arg: TermExpression, values: dict[str, Expr], asked: Question, move: Move, sight: MatchBindings
) -> Operand | None:
    if isinstance(arg, Constant) and isinstance(arg.term, Literal):
        name, value = lex.family(arg.term)
        number = float(value) if name == "number" else None  # type: ignore[arg-type]
        return None if number is None or number != value else Operand(number)
    if not isinstance(arg, Variable) or arg.name not in values:
        return None
    operand = operand_of(values[arg.name], asked, move, sight)
    return (
        None
        if operand is None or operand.part < 0
        else Operand(0.0, operand.part, operand.field, operand.second, term=True)
    )


def _last_of(result: RunResult | None) -> Expr | None:
    """The expression of which a result is the last value."""
    if result is None or result.aggregate.function != "last" or result.aggregate.distinct:
        return None
    return result.aggregate.args[0]


def operand_of(term: Expr, asked: Question, move: Move, sight: MatchBindings) -> Operand | None:
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
        of = earlier.of if isinstance(earlier, Prev) else _last_of(result)
        if not isinstance(of, Var):
            return None
        second, part, name = False, move.target if earlier is not None else result.part, of.name  # type: ignore[union-attr]
    elif name not in sight.views[part].vars:
        earlier_parts = [
            i for i in range(move.target) if name in sight.views[i].vars and name not in sight.run.parts[i].own
        ]
        if not earlier_parts or any(sight.run.parts[i].optional for i in earlier_parts):
            return None
        second, part = False, move.source if move.source in earlier_parts else earlier_parts[-1]
    view = sight.views[part]
    return Operand(0.0, part, view.vars[name], second) if name in view.vars else None
