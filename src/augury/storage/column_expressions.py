"""ColumnExpressions over columns of rows.

An expression is computed for all rows at once: numbers, times and lengths of time by NumPy, texts and calendars by Arrow, and
any other pure function once for each distinct combination of its arguments. Rows for which that fails are `hard`: whoever asks
computes them one by one, with the code of the reference evaluator, which also says what is wrong with them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from augury.algebra.matching import TIMELY, Scalars
from augury.algebra.scalar import COMPARISONS, TESTS, Function, RowError, arrow_of
from augury.algebra.terms import Apply, Const, Expr, Moment, Var
from augury.core.arrays import Array, Codes, Mask, Times
from augury.core.clock import Duration
from augury.core.errors import DataError, RunError
from augury.core.model import Value, from_json
from augury.storage.column import distinct
from augury.storage.column_functions import (
    NUMBERS,
    PARTS,
    formatted,
    joined,
    of_texts,
    on_calendar,
    truncated,
    wall_times,
)
from augury.storage.dictionary import INTEGER, IRI, NULL, OPEN, TEXT, Dictionary, exact
from augury.storage.frame import Frame
from augury.storage.operands import ARITHMETIC, ColumnOperand, arithmetic, codes_of, either, negative, typed
from augury.storage.unique import unique_inverse

COMPARE: dict[str, Callable[[Array, Array | int], Array]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
Truth = tuple[Mask, Mask | None]  # where something holds, and which rows are hard


@dataclass
class ColumnExpressions:
    """The context of expressions: functions, the clock, the dictionary."""

    scalars: Scalars
    dictionary: Dictionary
    durations: bool = False  # whether there has been a length of time among the values

    def encode(self, value: Value) -> int:
        if isinstance(value, Duration):
            self.durations = True
        return self.dictionary.encode(value)

    def encode_all(self, values: Sequence[Value]) -> Codes:
        """The codes of values."""
        self.durations = self.durations or Duration in set(map(type, values))
        return self.dictionary.encode_all(values)

    def encode_times(self, times: Times, unit: str) -> Codes:
        """The codes of points ("t") or lengths ("d") of time in microseconds."""
        self.durations = self.durations or unit == "d"
        return self.dictionary.encode_times(times, unit)

    def codes(self, expr: Expr, frame: Frame) -> Codes | None:
        """The codes of an expression that is no time; None where some row is hard."""
        result = self.operand(expr, frame)
        if result is None or result.hard is not None or result.kind in ("t", "d"):
            return None
        return codes_of(result, self.dictionary)

    def vector(self, expr: Expr, frame: Frame) -> tuple[str, Array] | None:
        """Numbers ("n"), points ("t") or lengths ("d") of time in microseconds; None where some row has none of that kind."""
        result = self.operand(expr, frame)
        result = None if result is None else typed(result, self.dictionary)
        return None if result is None or not result.easy else (result.kind, result.data)

    def operand(self, expr: Expr, frame: Frame) -> ColumnOperand | None:
        """An expression as a column; None where it has to be computed row by row."""
        match expr:
            case Var():
                codes = frame.vars.get(expr.name)
                if codes is None:
                    return None
                left_open = codes == OPEN
                return ColumnOperand("c", codes, hard=left_open if left_open.any() else None)
            case Const():
                return ColumnOperand("c", np.full(len(frame), self.encode(expr.value), np.int64), constant=True)
            case Moment():
                start, end = frame.labels[expr.label]
                times = {"start": start, "end": end, "duration": end - start, "length": end - start + 1}[expr.which]
                if self.scalars.clock.kind != "timestamp":
                    return ColumnOperand("n", times)
                return ColumnOperand("d" if expr.which in ("duration", "length") else "t", times)
            case Apply(function="if"):
                return self._chosen(expr, frame)
            case Apply() if expr.function in TESTS:
                truth = self.truth(expr, frame)
                if truth is None:
                    return None
                compared = expr.args if expr.function in COMPARISONS else ()
                return ColumnOperand("b", truth[0], either(self._null(arg, frame) for arg in compared), truth[1])
            case Apply():
                function = self.scalars.functions.get(expr.function)
                return None if function is None or not function.pure else self._applied(function, expr, frame)
        return None

    def _null(self, expr: Expr, frame: Frame) -> Mask | None:
        """The rows in which an expression is null."""
        result = self.operand(expr, frame)
        assert result is not None
        null = result.data == NULL if result.kind == "c" else result.null
        return null if null is not None and null.any() else None

    # Truths

    def truth(self, expr: Expr, frame: Frame) -> Truth | None:
        """For which rows a condition as a value holds."""
        if isinstance(expr, Apply) and expr.function in COMPARISONS:
            return self.compared(expr.function, expr.args[0], expr.args[1], frame)
        if isinstance(expr, Apply) and expr.function in ("&", "|"):
            tests = [self.truth(arg, frame) for arg in expr.args]
            truths = [test for test in tests if test is not None]
            if len(truths) < len(tests):
                return None
            combine = np.logical_and if expr.function == "&" else np.logical_or
            return combine.reduce([t for t, _ in truths]), either(hard for _, hard in truths)
        result = self.operand(expr, frame)
        if result is None:
            return None
        if result.kind == "b":
            return (result.data if result.null is None else result.data & ~result.null), result.hard
        return codes_of(result, self.dictionary) == self.encode(True), result.hard

    def compared(self, op: str, left: Expr, right: Expr, frame: Frame) -> Truth | None:
        """For which rows a comparison holds."""
        x, y = self._stored(left, frame), self._stored(right, frame)
        if isinstance(x, np.ndarray) and y is not None and not ((x | y) & 3).any():
            # codes of integers order as the integers do
            return COMPARE[op](x, y), None
        first, other = self.operand(left, frame), self.operand(right, frame)
        if first is None or other is None:
            return None
        ticks = self.durations and self.scalars.clock.kind == "logical"
        if op in ("=", "!=") and not ticks and {first.kind, other.kind} <= {"b", "c"}:
            dictionary = self.dictionary
            x, y = codes_of(first, dictionary), codes_of(other, dictionary)
            same = dictionary.canonical(x) == dictionary.canonical(y)
            valid = ~dictionary.is_null(x) & ~dictionary.is_null(y)
            return (same if op == "=" else ~same) & valid, either((first.hard, other.hard))
        pair = self._alike(typed(first, self.dictionary), typed(other, self.dictionary))
        if pair is None:
            return None
        x, y = pair[0].data, pair[1].data
        null, hard = either((pair[0].null, pair[1].null)), either((pair[0].hard, pair[1].hard))
        if x.dtype != y.dtype:
            for column in (x, y):
                if column.dtype.kind == "i" and not exact(column):
                    hard = either((hard, np.abs(column) > 2**53))
        holds = COMPARE[op](x, y)
        return (holds if null is None else holds & ~null), hard

    def _stored(self, expr: Expr, frame: Frame) -> Codes | int | None:
        """The codes of a variable, or the code of a constant; None for what has to be computed."""
        match expr:
            case Var():
                return frame.vars.get(expr.name)
            case Const():
                return self.encode(expr.value)
            case _:
                return None

    def _alike(
        self, first: ColumnOperand | None, other: ColumnOperand | None
    ) -> tuple[ColumnOperand, ColumnOperand] | None:
        """Two operands of one kind. On the logical clock a duration beside a number is a number of ticks."""
        if first is None or other is None:
            return None
        if first.kind == other.kind:
            return first, other
        if self.scalars.clock.kind == "logical" and {first.kind, other.kind} == {"n", "d"}:
            return self._ticks(first), self._ticks(other)
        return None

    def _ticks(self, operand: ColumnOperand) -> ColumnOperand:
        if operand.kind != "d":
            return operand
        tick = self.scalars.clock.tick
        return replace(operand, kind="n", data=operand.data // tick).but(operand.data % tick != 0)

    def _chosen(self, expr: Apply, frame: Frame) -> ColumnOperand | None:
        """An `if`, each branch computed for the rows that take it."""
        condition, then, otherwise = expr.args
        truth = self.truth(condition, frame)
        if truth is None:
            return None
        mask, hard = truth
        parts: list[tuple[Array, ColumnOperand]] = []
        for rows, branch in ((np.flatnonzero(mask), then), (np.flatnonzero(~mask), otherwise)):
            if len(rows):
                chosen = self.operand(branch, frame.take(rows))
                if chosen is None:
                    return None
                parts.append((rows, chosen))
        kinds = {(part.kind, part.data.dtype) for _, part in parts}
        if len(kinds) > 1:
            parts = [(rows, replace(self.as_codes(part), hard=part.hard)) for rows, part in parts]
        if not parts:
            return ColumnOperand("n", np.zeros(0, np.int64))
        data = np.empty(len(frame), parts[0][1].data.dtype)
        masks: list[Mask | None] = []
        for rows, part in parts:
            data[rows] = part.data
        for which in ("null", "hard"):
            any_set = np.zeros(len(frame), bool)
            for rows, part in parts:
                part_mask = getattr(part, which)
                if part_mask is not None:
                    any_set[rows] = part_mask
            masks.append(any_set if any_set.any() else None)
        return ColumnOperand(parts[0][1].kind, data, masks[0], either((masks[1], hard)))

    def as_codes(self, operand: ColumnOperand) -> ColumnOperand:
        """A column as codes."""
        if operand.kind == "d":
            self.durations = True
        return ColumnOperand("c", codes_of(operand, self.dictionary), hard=operand.hard, constant=operand.constant)

    # Functions

    def _applied(self, function: Function, expr: Apply, frame: Frame) -> ColumnOperand | None:
        operands = [self.operand(arg, frame) for arg in expr.args]
        args = [arg for arg in operands if arg is not None]
        if len(args) < len(operands) or not len(frame):
            return None
        if function.coded is not None:
            return self._coded(function, args)
        if function.registered and function.vectorised:
            return self._vectorised(function, args)
        return self._of_numbers(function, args) or self._of_distinct(function, args, len(frame))

    def _coded(self, function: Function, args: Sequence[ColumnOperand]) -> ColumnOperand | None:
        """The result of a function of codes."""
        assert function.coded is not None
        if any(arg.hard is not None for arg in args):
            return None
        result = function.coded(self.dictionary, [self.as_codes(arg).data for arg in args])
        return ColumnOperand("b" if result.dtype.kind == "b" else "c", result)

    def _of_numbers(self, function: Function, args: Sequence[ColumnOperand]) -> ColumnOperand | None:
        """A function of numbers and times by NumPy."""
        name = function.name
        if name in ("is_null", "coalesce"):
            return self._of_nulls(name, args)
        if not (name in ARITHMETIC or name in NUMBERS or function.vector is not None) or not args:
            return None
        typed_args = [typed(arg, self.dictionary) for arg in args]
        numbers = [arg for arg in typed_args if arg is not None]
        if len(numbers) < len(typed_args):
            return None
        if name in TIMELY and len(numbers) == 2:
            pair = self._alike(*numbers)
            numbers = list(pair) if pair is not None else numbers
        if name in ARITHMETIC:
            result = negative(numbers[0]) if len(numbers) == 1 else arithmetic(name, numbers[0], numbers[1])
        elif name in NUMBERS:
            result = NUMBERS[name](*numbers)
        elif all(arg.kind == "n" for arg in numbers):
            assert function.vector is not None
            data = function.vector(*(arg.data for arg in numbers))
            result = ColumnOperand("n", data + 0.0).broadcast(*numbers).but(~np.isfinite(data))
        else:
            return None
        if result is not None and result.kind == "d":
            self.durations = True
        return result

    def _of_nulls(self, name: str, args: Sequence[ColumnOperand]) -> ColumnOperand:
        columns = [self.as_codes(arg) for arg in args]
        hard = either(column.hard for column in columns)
        if name == "is_null":
            return ColumnOperand("b", columns[0].data == NULL, hard=hard)
        data = columns[0].data
        for column in columns[1:]:
            data = np.where(data == NULL, column.data, data)
        return ColumnOperand("c", data, hard=hard)

    def _of_distinct(self, function: Function, args: Sequence[ColumnOperand], count: int) -> ColumnOperand:
        """A function of each distinct combination of arguments: by Arrow where it has a form there, else one by one."""
        hard = either(arg.hard for arg in args)
        times = self._of_times(function, args)
        if times is not None:
            return times
        columns = [self.as_codes(arg) for arg in args]
        rows, inverse = combinations([column.data for column in columns if not column.constant], count)
        few = [column.data[rows] for column in columns]
        if hard is not None:  # their codes mean nothing
            used = np.zeros(len(rows), bool)
            used[inverse[~hard]] = True
        else:
            used = np.ones(len(rows), bool)
        result = self._of_few_texts(function, columns, few, used)
        if result is None:
            result = self._one_by_one(function, few, used)
        codes, failed = result
        return ColumnOperand("c", codes[inverse], hard=either((hard, failed[inverse] if failed.any() else None)))

    def _of_times(self, function: Function, args: Sequence[ColumnOperand]) -> ColumnOperand | None:
        """A function of the calendar. The unit, the format and the zone are constants."""
        name = function.name
        if not args or name not in (*PARTS, "truncate", "format_time") or not all(arg.constant for arg in args[1:]):
            return None
        time = typed(args[0], self.dictionary)
        constants = [self.dictionary.decode(int(arg.data[0])) for arg in args[1:]]
        if time is None or time.kind != "t" or not all(isinstance(c, str) for c in constants):
            return None
        near = on_calendar(time.data)
        time, us = time.but(~near), np.where(near, time.data, 0)
        zone: Any = constants[-1] if len(constants) > (name not in PARTS) else None
        try:
            if name in PARTS:
                return replace(time, kind="n", data=PARTS[name](wall_times(us, zone)))
            if name == "truncate":
                begins = truncated(us, str(constants[0]), zone)
                return None if begins is None else replace(time, data=begins)
            texts = formatted(us, str(constants[0]), zone)
        except ValueError:  # there is no such zone or directive
            return None
        return None if texts is None else replace(time, kind="c", data=self._texts(texts, time.null), null=None)

    def _texts(self, texts: object, null: Mask | None = None) -> Codes:
        codes = self.dictionary.encode_texts(texts)
        return codes if null is None else np.where(null, NULL, codes)

    def _of_few_texts(
        self, function: Function, columns: Sequence[ColumnOperand], few: Sequence[Codes], used: Mask
    ) -> tuple[Codes, Mask] | None:
        """A function of distinct texts by Arrow, where its other arguments are constants."""
        if function.name == "concat":
            return self._joined(columns, few, used)
        if not columns or columns[0].constant or not all(column.constant for column in columns[1:]):
            return None
        kinds = self.dictionary.kinds(few[0])
        textual = used & ((kinds == TEXT) | ((kinds == IRI) & (function.name in ("matches", "to_string"))))
        rows = np.flatnonzero(textual)
        if not len(rows):
            return None
        constants = [self.dictionary.decode(int(column.data[0])) for column in columns[1:]]
        texts = self.dictionary.texts(few[0][rows])
        codes, failed = np.full(len(few[0]), NULL), np.zeros(len(few[0]), bool)
        if function.name == "iri":
            codes[rows] = self.dictionary.encode_iris(texts)
        else:
            result = of_texts(function.name, texts, constants)
            if result is None:
                return None
            codes[rows] = self._from_arrow(result)
        others = np.flatnonzero(~textual & used)
        if len(others):
            codes[others], failed[others] = self._one_by_one(
                function, [c[others] for c in few], np.ones(len(others), bool)
            )
        return codes, failed

    def _joined(self, columns: Sequence[ColumnOperand], few: Sequence[Codes], used: Mask) -> tuple[Codes, Mask] | None:
        """`concat` of texts and integers."""
        parts: list[Any] = []
        for column, codes in zip(columns, few, strict=True):
            if column.constant:
                value = self.dictionary.decode(int(column.data[0]))
                if type(value) is not str and type(value) is not int:
                    return None
                parts.append(str(value))
                continue
            kinds = self.dictionary.kinds(codes)
            if (kinds == TEXT).all():
                parts.append(self.dictionary.texts(codes))
            elif (kinds == INTEGER).all():
                parts.append(pa.array(codes >> 2))
            else:
                return None
        try:
            return self.dictionary.encode_texts(joined(parts, len(used))), np.zeros(len(used), bool)
        except UnicodeEncodeError:  # halves of characters
            return None

    def _from_arrow(self, array: Any) -> Codes:
        if pa.types.is_boolean(array.type) or pa.types.is_integer(array.type):
            return self.dictionary.encode_column(array.to_numpy(zero_copy_only=False))
        return self.dictionary.encode_texts(array)

    def _one_by_one(self, function: Function, few: Sequence[Codes], used: Mask) -> tuple[Codes, Mask]:
        """A function of some combinations of arguments, and for which of them it fails."""
        count = len(used)
        codes, failed = np.full(count, NULL), np.zeros(count, bool)
        decode, call = self.dictionary.decode, self.scalars.call
        listed = [column.tolist() for column in few]
        for i in np.flatnonzero(used).tolist():
            try:
                codes[i] = self.encode(call(function.name, tuple([decode(column[i]) for column in listed])))
            except (RowError, RunError):
                failed[i] = True
        return codes, failed

    def _vectorised(self, function: Function, args: Sequence[ColumnOperand]) -> ColumnOperand | None:
        """The result of a user's vectorised function for all rows; None where it fails: then row by row."""
        if not args or any(arg.hard is not None for arg in args):
            return None
        try:
            result = function.call(*((self._arrow if function.arrow else self._array)(arg) for arg in args))
            codes = self._codes_of_arrow(result) if isinstance(result, pa.Array | pa.ChunkedArray) else None
            result = codes if codes is not None else np.asarray(result)
        except Exception:
            return None
        if result.shape != (len(args[0]),):
            return None
        if codes is not None:
            return ColumnOperand("c", codes)
        if result.dtype.kind == "b":
            return ColumnOperand("b", result)
        if result.dtype.kind in "iuf" and np.isfinite(result).all():
            return ColumnOperand(
                "n", result.astype(np.float64) + 0.0 if result.dtype.kind == "f" else result.astype(np.int64)
            )
        try:
            return ColumnOperand("c", np.array([self.encode(from_json(v)) for v in result.tolist()], np.int64))
        except DataError:
            return None

    def _array(self, arg: ColumnOperand) -> Array:
        """A column as an array of NumPy: of numbers, else of objects."""
        numbers = typed(arg, self.dictionary)
        if numbers is not None and numbers.kind == "n" and numbers.easy:
            return numbers.data
        column = np.empty(len(arg), object)
        column[:] = [self.dictionary.decode(code) for code in self.as_codes(arg).data.tolist()]
        return column

    def _arrow(self, arg: ColumnOperand) -> Any:
        """A column as an array of Arrow."""
        numbers = typed(arg, self.dictionary)
        if numbers is not None and numbers.hard is None:
            array = pa.array(numbers.data, mask=numbers.null)
            if numbers.kind == "n":
                return array
            return array.cast(pa.timestamp("us", "UTC") if numbers.kind == "t" else pa.duration("us"))
        codes = self.as_codes(arg).data
        if len(codes) and (self.dictionary.kinds(codes) == TEXT).all():
            return self.dictionary.texts(codes)
        return arrow_of(self.dictionary.decode_all(codes))

    def _codes_of_arrow(self, array: Any) -> Codes:
        """An array of Arrow as codes; a number that is not finite is an error."""
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        kind = array.type
        if array.null_count:
            codes = np.full(len(array), NULL, np.int64)
            codes[array.is_valid().to_numpy(zero_copy_only=False)] = self._codes_of_arrow(array.drop_null())
            return codes
        if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
            column = array.to_numpy(zero_copy_only=False)
            if kind == pa.float64() or pa.types.is_boolean(kind) or pa.types.is_signed_integer(kind):
                if column.dtype.kind == "f" and not np.isfinite(column).all():
                    raise ValueError("not a finite number")
                return self.dictionary.encode_column(column.astype(np.int64) if column.dtype.kind == "i" else column)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return self.dictionary.encode_texts(array)
        return self.encode_all([from_json(value) for value in array.to_pylist()])


def combinations(columns: Sequence[Codes], count: int) -> tuple[Array, Array]:
    """A row of each distinct combination of codes, and for each row the number of its combination."""
    if not columns or not count:
        return np.zeros(min(count, 1), np.int64), np.zeros(count, np.int64)
    inverse, size = _places(columns[0])
    for column in columns[1:]:
        more, width = _places(column)
        numbers, inverse = distinct(inverse * width + more, size * width)
        size = len(numbers)
    first = np.empty(size, np.int64)
    first[inverse[::-1]] = np.arange(count - 1, -1, -1)
    return first, inverse


def _places(codes: Codes) -> tuple[Array, int]:
    numbers = codes >> 1 if (codes & 1).all() else codes
    low = int(numbers.min())
    span = int(numbers.max()) - low + 1
    if span <= 4 * len(numbers) + 64:
        values, inverse = distinct(numbers - low, span)
    else:
        values, inverse = unique_inverse(numbers)
    return inverse, len(values)
