"""Classifies RDF terms with a kernel over their keys: IRIs, texts, booleans, times, and numbers that are not too long.

A float is the one nearest to what is written: digits up to 2^53 and a power of ten up to 10^22 are floats themselves, so that
their product, or quotient, is rounded once. All else is left to `lexical.py`.
"""

from __future__ import annotations

import numpy as np

from augury.algebra.sparql_algebra import BOOLEAN
from augury.core.arrays import Array, Times
from augury.core.bounds import FAR
from augury.core.jit import Kernel, helper
from augury.graphs.keys import same_bytes
from augury.graphs.lexical import DATE_TIME as XSD_DATE_TIME
from augury.graphs.lexical import INTEGERS, RANKS

MAKES_NO_ARRAYS = True
# Families: terms of one can be compared with one another. Those up to MEASURED have a number.
NUMBER, TRUTH, DATE_TIME, DATE, TIME, DURATION, MONTHS, TEXT, LANG, OTHER, IRI, BLANK, TRIPLE = range(13)
MEASURED = MONTHS
UNSURE = 255
_LT, _GT, _QUOTE, _UNDERSCORE, _MINUS, _PLUS, _POINT, _ZERO, _NINE, _T, _F, _Z, _COLON, _ONE = b'<>"_-+.09TfZ:1'
_LARGEST = 1 << 53
_DIGITS, _POWER = 18, 22
_MILLION = 1_000_000

_KNOWN = [*RANKS, BOOLEAN, XSD_DATE_TIME]
_LIMITS = [INTEGERS.get(name, (None, None)) for name in _KNOWN]
_DATATYPES = np.frombuffer("".join(_KNOWN).encode(), np.uint8)
_DATATYPE_ENDS = np.cumsum([0, *(len(name) for name in _KNOWN)])
_RANK_OF = np.array([RANKS.get(name, 4 + (name != BOOLEAN)) for name in _KNOWN])
_LOW = np.array([-FAR if low is None else max(-FAR, low) for low, _ in _LIMITS])
_HIGH = np.array([FAR if high is None else min(FAR, high) for _, high in _LIMITS])
_TENS = 10.0 ** np.arange(_POWER + 1)
_FIVES = 5 ** np.arange(_POWER + 1, dtype=np.int64)


@helper
def _datatype(keys: Array, begin: int, end: int) -> int:
    """The number of a datatype; -1 where it is not known."""
    for i in range(len(_DATATYPE_ENDS) - 1):
        first = _DATATYPE_ENDS[i]
        if _DATATYPE_ENDS[i + 1] - first == end - begin and same_bytes(keys, begin, _DATATYPES, first, end - begin):
            return i
    return -1


@helper
def _digits(keys: Array, begin: int, count: int) -> int:
    """A number of so many digits; -1 where it is none."""
    result = 0
    for i in range(begin, begin + count):
        if keys[i] < _ZERO or keys[i] > _NINE:
            return -1
        result = result * 10 + int(keys[i]) - _ZERO
    return result


@helper
def _days(year: int, month: int, day: int) -> int:
    """Days since the epoch; far away where there is no such day."""
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    length = 31
    if month == 2:
        length = 29 if leap else 28
    elif month == 4 or month == 6 or month == 9 or month == 11:
        length = 30
    if year < 1 or month < 1 or month > 12 or day < 1 or day > length:
        return -FAR
    if month <= 2:  # the year begins in March
        year, month = year - 1, month + 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day - 719469


@helper
def _moment(keys: Array, begin: int, end: int) -> int:
    """Microseconds since the epoch of `2026-01-31T10:00:00.5+01:00`; far away where it is not of this shape."""
    size = end - begin
    if size < 19 or keys[begin + 4] != _MINUS or keys[begin + 7] != _MINUS or keys[begin + 10] != _T:
        return -FAR
    if keys[begin + 13] != _COLON or keys[begin + 16] != _COLON:
        return -FAR
    days = _days(_digits(keys, begin, 4), _digits(keys, begin + 5, 2), _digits(keys, begin + 8, 2))
    hour, minute, second = _digits(keys, begin + 11, 2), _digits(keys, begin + 14, 2), _digits(keys, begin + 17, 2)
    if days == -FAR or hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return -FAR
    result = (((days * 24 + hour) * 60 + minute) * 60 + second) * _MILLION
    pos = begin + 19
    if pos < end and keys[pos] == _POINT:
        pos += 1
        unit, first = _MILLION // 10, pos
        while pos < end and _ZERO <= keys[pos] <= _NINE:
            result += unit * (int(keys[pos]) - _ZERO)
            unit //= 10
            pos += 1
        if pos == first or pos - first > 6:
            return -FAR
    if pos == end or (pos + 1 == end and keys[pos] == _Z):
        return result  # type: ignore[no-any-return]
    if pos + 6 != end or keys[pos + 3] != _COLON or (keys[pos] != _PLUS and keys[pos] != _MINUS):
        return -FAR
    hours, minutes = _digits(keys, pos + 1, 2), _digits(keys, pos + 4, 2)
    if hours < 0 or minutes < 0 or minutes > 59 or hours * 60 + minutes > 14 * 60:
        return -FAR
    shift = (hours * 60 + minutes) * 60 * _MILLION
    return result - shift if keys[pos] == _PLUS else result + shift  # type: ignore[no-any-return]


@Kernel
def classify(
    keys: Array, ends: Times, lo: int, hi: int, family: Array, number: Array, exact: Array, rank: Array
) -> None:
    """Classifies the terms `lo` up to `hi`; the family is UNSURE where the kernel cannot decide."""
    for i in range(lo, hi):
        begin, end, row = ends[i], ends[i + 1], i - lo
        number[row], exact[row], rank[row], family[row] = 0.0, True, 0, UNSURE
        if keys[begin] == _LT:
            family[row] = TRIPLE if keys[begin + 1] == _LT else IRI
            continue
        if keys[begin] == _UNDERSCORE:
            family[row] = BLANK
            continue
        if keys[end - 1] == _QUOTE:
            family[row] = TEXT
            continue
        if keys[end - 1] != _GT:
            family[row] = LANG
            continue
        stop = end - 2
        while keys[stop] != _QUOTE:
            stop -= 1
        datatype = _datatype(keys, stop + 4, end - 1)
        pos = begin + 1
        if datatype < 0 or pos == stop:
            continue
        kind = _RANK_OF[datatype]
        if kind == 5:
            amount = _moment(keys, pos, stop)
            if abs(amount) <= _LARGEST:
                family[row], number[row], exact[row] = DATE_TIME, amount / 1e6, amount % _FIVES[6] == 0
            continue
        if kind == 4:
            if stop - pos == 1 and _ZERO <= keys[pos] <= _ONE:
                family[row], number[row] = TRUTH, float(int(keys[pos]) - _ZERO)
            elif (
                stop - pos == 4
                and keys[pos] == 116
                and keys[pos + 1] == 114
                and keys[pos + 2] == 117
                and keys[pos + 3] == 101
            ):
                family[row], number[row] = TRUTH, 1.0
            continue
        minus = keys[pos] == _MINUS
        if minus or keys[pos] == _PLUS:
            pos += 1
        digits, first, power = 0, pos, 0
        while pos < stop and pos - first <= _DIGITS and _ZERO <= keys[pos] <= _NINE:
            digits = digits * 10 + int(keys[pos]) - _ZERO
            pos += 1
        count = pos - first
        if pos < stop and keys[pos] == _POINT and kind > 0:
            pos += 1
            first = pos
            while pos < stop and count + pos - first <= _DIGITS and _ZERO <= keys[pos] <= _NINE:
                digits = digits * 10 + int(keys[pos]) - _ZERO
                pos += 1
            power = first - pos
            count -= power
        if count == 0 or count > _DIGITS:
            continue
        if pos < stop and keys[pos] | 32 == 101 and kind > 1:  # e or E
            pos += 1
            less = pos < stop and keys[pos] == _MINUS
            if pos < stop and (less or keys[pos] == _PLUS):
                pos += 1
            if stop - pos > 3 or pos == stop:
                continue
            shift = _digits(keys, pos, stop - pos)
            if shift < 0:
                continue
            power += -shift if less else shift
            pos = stop
        if pos != stop or digits > _LARGEST or abs(power) > _POWER:
            continue
        amount = -digits if minus else digits
        if kind == 0 and (amount < _LOW[datatype] or amount > _HIGH[datatype]):
            continue
        family[row], rank[row] = NUMBER, kind
        number[row] = amount * _TENS[power] if power >= 0 else amount / _TENS[-power]
        if minus and digits == 0 and kind < 2:
            number[row] = 0.0
        elif minus and digits == 0:
            number[row] = -0.0
        if power < 0 and kind == 1:
            exact[row] = digits % _FIVES[-power] == 0
