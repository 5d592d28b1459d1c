"""Values as integers. Every value has one code; equal values have equal codes once made canonical.

    ...00   an integer, of up to 62 bits        ....10   a float that is whole, such as 1.0
    .....1  anything else: its number in the dictionary

The dictionary belongs to a circuit and is part of its state. Its numbers do not order: values are compared by what they
stand for. Null is one of them (`NULL`), and so is what a row leaves open (`OPEN`: a variable of the other side of an OR).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from augury.core.arrays import Array, Codes, Floats, Hashes, Integers, Mask, Times
from augury.core.clock import Duration, Timestamp
from augury.core.jit import Kernel
from augury.core.model import (
    FLOAT_SEED,
    GOLDEN,
    INT_SEED,
    MIX_1,
    MIX_2,
    Iri,
    Term,
    Value,
    content_seed,
    has_null,
    order_key,
    value_hash,
)
from augury.storage.guard import too_many_bytes
from augury.storage.kernels.floats import intern_floats, refill_floats
from augury.storage.kernels.hashing import EMPTY, mix
from augury.storage.unique import unique_inverse
from augury.storage.value_hashes import hashes_of

NULL, OPEN = 1, 3
_WHOLE = 2**61
# The kinds of values in the dictionary. A float, a time (in microseconds) and a duration also have a number of 64 bits.
OTHER, FLOAT, TEXT, IRI, TIME, DURATION, NOTHING = range(7)
INTEGER = 7  # of codes that are no number of the dictionary
_PLAIN = {str: TEXT, Iri: IRI, Timestamp: TIME, Duration: DURATION}
_MANY = 16  # values that are worth encoding at once
_VALUE = 170  # bytes of the entries that find a value, and that a value is found by


class Dictionary:
    """Values by number, and numbers by value."""

    def __init__(self) -> None:
        self.n = 0
        self.canon = np.zeros(64, np.int64)  # the code that all equal values share
        self.nullish = np.zeros(64, np.uint8)  # null, or has null inside: equals nothing
        self.kind = np.zeros(64, np.uint8)
        self.payload = np.zeros(64, np.int64)  # of floats their bits, of times and durations microseconds
        self.numbers = self.payload.view(np.float64)
        self.values: dict[int, Value] = {}  # the others
        self._texts: dict[str, int] = {}
        self._iris: dict[str, int] = {}
        self._timestamps: dict[int, int] = {}
        self._durations: dict[int, int] = {}
        self._ids: dict[Any, int] = {}
        self._equals: dict[Any, int] = {}
        self._floats: dict[float, int] = {}
        self._in_bulk = False  # whether floats have come in bulk
        self._buckets: Array | None = None  # then, floats by their bits
        self._hashes = np.zeros((2, 0), np.uint64)  # hash and spelling of the values, once asked for
        self._hashed = 0
        self.held = 0  # bytes of the values that are not floats, about
        self.most = sys.maxsize  # of these bytes; a step that would go beyond is refused
        self.terms: Any = None  # the RDF terms among the values, once somebody asks: see `queries/coded_terms.py`
        for value in (None, None):
            self._new(value, (value, self.n))
        self.kind[:2] = NOTHING

    def _room(self, more: int) -> None:
        if self.n + more > len(self.canon):
            size = 2 * (self.n + more)
            arrays: list[Array] = [self.nullish, self.kind, self.payload, self.canon]
            larger: list[Array] = [np.zeros(size, old.dtype) for old in arrays]
            for old, new in zip(arrays, larger, strict=True):
                new[: self.n] = old[: self.n]
            # All of them are there before one is used; the one that says how much room there is comes last.
            self.nullish, self.kind, self.payload, self.canon = larger
            self.numbers = self.payload.view(np.float64)

    def _plain(self, value: Value, places: dict[Any, int], key: Any) -> int:
        """A new string, IRI or time: it equals nothing that is written differently."""
        if self.n == len(self.canon):
            self._room(1)
        n = self.n
        self.held += _VALUE + key.__sizeof__()
        if self.held > self.most:
            raise too_many_bytes(self.most)
        kind = _PLAIN[type(value)]
        if kind in (TIME, DURATION):
            self.payload[n] = key
        elif not (key.isascii() or _is_unicode(key)):
            kind = OTHER
        self.values[n], self.canon[n], self.kind[n] = value, 2 * n + 1, kind
        self.n += 1
        places[key] = n  # last: a value that is found has a number of its own
        return n

    def _new(self, value: Value, key: object) -> int:
        self._room(1)
        n = self.n
        self.held += _VALUE + 2 * size_of(value)  # its key has how it is written
        if self.held > self.most:
            raise too_many_bytes(self.most)
        self.values[n] = value
        self.nullish[n] = (value is None and n == 0) or (value is not None and has_null(value))
        code = 2 * n + 1
        self.n += 1
        self.canon[n] = self._equals.setdefault(order_key(value), code) if n > 1 else code
        self._ids[key] = n
        return n

    def _float(self, value: float) -> int:
        result = self._floats.get(value)
        if result is None:
            if self._in_bulk:
                return int(self._bulk(np.array([value]))[0]) >> 1
            result = self.n
            if result == len(self.canon):
                self._room(1)
            self.kind[result], self.canon[result], self.numbers[result] = FLOAT, 2 * result + 1, value
            self.n += 1
            self._floats[value] = result
        return result

    def _as_float(self, lo: int, hi: int) -> None:
        self.kind[lo:hi] = FLOAT
        self.canon[lo:hi] = np.arange(lo, hi, dtype=np.int64) * 2 + 1

    def encode(self, value: Value) -> int:
        """The code of a value."""
        kind = type(value)
        if kind is int:
            if -_WHOLE < value < _WHOLE:  # type: ignore[operator]
                return value << 2  # type: ignore[operator]
        elif kind is float:
            if value == value // 1 and -_WHOLE < value < _WHOLE:  # type: ignore[operator]
                return int(value) << 2 | 2
            if abs(value) < _WHOLE:  # type: ignore[arg-type]
                return 2 * self._float(value) + 1  # type: ignore[arg-type]
        elif kind is str:
            result = self._texts.get(value)  # type: ignore[arg-type]
            return 2 * (result if result is not None else self._plain(value, self._texts, value)) + 1
        elif kind is Iri:
            text: str = value.text  # type: ignore[union-attr]
            result = self._iris.get(text)
            return 2 * (result if result is not None else self._plain(value, self._iris, text)) + 1
        elif kind is Timestamp or kind is Duration:
            places, us = (self._timestamps if kind is Timestamp else self._durations), value.us  # type: ignore[union-attr]
            result = places.get(us)
            return 2 * (result if result is not None else self._plain(value, places, us)) + 1
        elif value is None:
            return NULL
        key = (kind, value, repr(value))
        result = self._ids.get(key)
        return 2 * (result if result is not None else self._new(value, key)) + 1

    def decode(self, code: int) -> Value:
        if code & 1:
            n = code >> 1
            return float(self.numbers[n]) if self.kind[n] == FLOAT else self.values[n]
        return float(code >> 2) if code & 2 else int(code >> 2)

    def encode_all(self, values: Iterable[Value]) -> Codes:
        """The codes of values; many texts, or many times, are encoded at once."""
        listed: list[Any] = values if isinstance(values, list) else list(values)
        kinds = set(map(type, listed)) if len(listed) > _MANY else set()
        if len(kinds) == 1:
            kind = _PLAIN.get(kinds.pop())
            if kind == TEXT:
                return self._encode_texts(listed, self._texts, TEXT)
            if kind == IRI:
                return self._encode_texts([iri.text for iri in listed], self._iris, IRI)
            if kind is not None:
                times = np.fromiter((value.us for value in listed), np.int64, len(listed))
                return self.encode_times(times, "t" if kind == TIME else "d")
        encode = self.encode
        return np.array([encode(v) for v in listed], np.int64)

    def _encode_texts(self, texts: Sequence[str], places: dict[str, int], kind: int) -> Codes:
        """The codes of many strings or IRIs: those that are new get their numbers in one go."""
        new = [text for text in dict.fromkeys(texts) if text not in places]
        if new:
            lo, hi = self.n, self.n + len(new)
            self._room(len(new))
            self.held += _VALUE * len(new) + sum(map(str.__sizeof__, new))
            if self.held > self.most:
                raise too_many_bytes(self.most)
            self.canon[lo:hi], self.kind[lo:hi] = np.arange(lo, hi) * 2 + 1, kind
            for number, text in enumerate(new, lo):
                if not (text.isascii() or _is_unicode(text)):
                    self.kind[number] = OTHER
            self.values.update(zip(range(lo, hi), new if kind == TEXT else map(Iri, new), strict=True))
            self.n = hi
            places.update(zip(new, range(lo, hi), strict=True))  # last: a text that is found has a number of its own
        return 2 * np.fromiter(map(places.__getitem__, texts), np.int64, len(texts)) + 1

    def encode_times(self, times: Times, unit: str) -> Codes:
        """The codes of points ("t") or lengths ("d") of time in microseconds."""
        make, places = (Timestamp, self._timestamps) if unit == "t" else (Duration, self._durations)
        different, inverse = unique_inverse(times)
        numbered = map(places.get, different.tolist())
        numbers = [
            n if n is not None else self._plain(make(us), places, us)
            for us, n in zip(different.tolist(), numbered, strict=True)
        ]
        return (2 * np.array(numbers, np.int64) + 1)[inverse]

    def times(self, codes: Codes) -> tuple[str, Array] | None:
        """Codes as points ("t") or lengths ("d") of time in microseconds, where all are of one kind; else None."""
        if not len(codes) or not (codes & 1).all():
            return None
        kinds = self.kind[codes >> 1]
        if kinds[0] not in (TIME, DURATION) or not (kinds == kinds[0]).all():
            return None
        return ("t" if kinds[0] == TIME else "d"), self.payload[codes >> 1]

    def kinds(self, codes: Codes) -> Array:
        """The kind of each value: INTEGER, FLOAT, TEXT, IRI, TIME, DURATION, NOTHING (null and open), or OTHER."""
        odd = (codes & 1).astype(bool)
        kinds: Array = np.where(codes & 2, FLOAT, INTEGER)
        kinds[odd] = self.kind[codes[odd] >> 1]
        return kinds

    def texts(self, codes: Codes) -> Any:
        """Codes of texts or IRIs as an array of Arrow."""
        import pyarrow as pa

        values = map(self.values.__getitem__, (codes >> 1).tolist())
        return pa.array([value if type(value) is str else value.text for value in values], pa.large_string())  # type: ignore[union-attr]

    def encode_texts(self, texts: Any) -> Codes:
        """The codes of an array of texts of Arrow, or of text and null."""
        if not texts.null_count:
            return self._encode_texts(texts.to_pylist(), self._texts, TEXT)
        codes = np.full(len(texts), NULL)
        valid = texts.is_valid().to_numpy(zero_copy_only=False)
        codes[valid] = self._encode_texts(texts.drop_null().to_pylist(), self._texts, TEXT)
        return codes

    def find_texts(self, values: Sequence[Value]) -> Array | None:
        """The codes of texts, 0 of those that are not there; None where some value is no text."""
        if set(map(type, values)) - {str}:
            return None
        result = np.fromiter(map(self._texts.get, values, repeat(-1)), np.int64, len(values))  # type: ignore[arg-type]
        return np.where(result < 0, 0, 2 * result + 1)

    def encode_column(self, column: Array) -> Codes:
        """The codes of a column: an array of integers, floats (NaN is null) or objects."""
        kind = column.dtype.kind
        if kind in "iu" and len(column) and int(column.min()) > -_WHOLE and int(column.max()) < _WHOLE:
            return column.astype(np.int64) << 2
        if kind == "f":
            return self._floats_in(column.astype(np.float64))
        if kind == "b":
            codes = self.encode_all((False, True))
            return codes[column.astype(np.int64)]
        return self.encode_all(column.tolist())

    def _floats_in(self, column: Array) -> Array:
        codes = np.full(len(column), NULL, np.int64)
        whole = (column == np.floor(column)) & (np.abs(column) < _WHOLE)
        codes[whole] = column[whole].astype(np.int64) << 2 | 2
        remaining = ~whole & ~np.isnan(column)
        if remaining.any():
            big = remaining & (np.abs(column) >= _WHOLE)
            if big.any():
                codes[big] = self.encode_all(column[big].tolist())
                remaining &= ~big
            codes[remaining] = self._bulk(column[remaining])
        return codes

    def _bulk(self, column: Array) -> Array:
        """Many floats at once; from then on floats are found by their bits."""
        self._room(len(column))
        most = self.n + len(column)
        ids = np.empty(len(column), np.int64)
        buckets, self._buckets = self._buckets, None  # where this is broken off, they are made anew
        if buckets is None or 3 * most > 2 * len(buckets):
            buckets = np.full(1 << (2 * most + 1024).bit_length(), EMPTY, np.int64)
            floats = np.flatnonzero(self.kind[: self.n] == FLOAT)
            refill_floats(floats, self.numbers[floats].view(np.int64), buckets)
            self._in_bulk = True
            self._floats = {}
        n = intern_floats(column, column.view(np.int64), self.numbers, self.n, buckets, ids)
        self._as_float(self.n, n)
        self.n, self._buckets = n, buckets
        return ids * 2 + 1

    def agree(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Where values of a variable that two sides may bind agree, and what it is then: null agrees with nothing."""
        same = (self.canonical(x) == self.canonical(y)) & ~self.is_null(x) & ~self.is_null(y)
        return (x == OPEN) | (y == OPEN) | same, np.where(x == OPEN, y, x)

    # What vectorised expressions need

    def numeric(self, codes: Codes) -> Array | None:
        """Codes as numbers, of int64 or float64, where all are of one kind; else None."""
        odd = codes & 1
        if not odd.any():
            kinds = codes & 2
            if not kinds.any():
                return codes >> 2
            return (codes >> 2).astype(np.float64) if kinds.all() and exact(codes >> 2) else None
        ids = codes >> 1
        inside = odd.astype(bool)
        if not (self.kind[ids[inside]] == FLOAT).all():
            return None
        if inside.all():
            numbers: Floats = self.numbers[ids]
            return numbers
        remaining = codes[~inside]
        if not (remaining & 2).all() or not exact(remaining >> 2):
            return None
        values = np.empty(len(codes), np.float64)
        values[inside], values[~inside] = self.numbers[ids[inside]], remaining >> 2
        return values

    def canonical(self, codes: Codes) -> Codes:
        odd = (codes & 1).astype(bool)
        if not odd.any():
            return codes & -3
        result = codes & -3
        result[odd] = self.canon[codes[odd] >> 1]
        return result

    def is_float(self, numbers: Integers) -> Mask:
        """Which of the values of these numbers are floats that are not whole."""
        is_float: Array = self.kind[numbers] == FLOAT
        return is_float

    def is_null(self, codes: Codes) -> Mask:
        """Whether each is null or has null inside."""
        odd = (codes & 1).astype(bool)
        result = np.zeros(len(codes), bool)
        if odd.any():
            result[odd] = self.nullish[codes[odd] >> 1].astype(bool)
        return result

    # What ids are made of

    def hashes(self, codes: Codes) -> Hashes:
        """`value_hash` of the values behind codes."""
        result = mix_hashes(np.uint64(INT_SEED), (codes >> 2).view(np.uint64))
        odd = np.flatnonzero(codes & 1)
        if len(odd):
            numbers = codes[odd] >> 1
            floats = self.kind[numbers] == FLOAT
            if floats.all():
                result[odd] = mix_hashes(np.uint64(FLOAT_SEED), self.numbers[numbers].view(np.uint64))
            else:
                result[odd] = self._value_hashes(0, numbers)
                result[odd[floats]] = mix_hashes(np.uint64(FLOAT_SEED), self.numbers[numbers[floats]].view(np.uint64))
        return result

    def spellings(self, codes: Codes) -> Array:
        """`spelling` of the values behind codes."""
        result = ((codes >> 1) & 1).view(np.uint64)
        odd = np.flatnonzero(codes & 1)
        if len(odd):
            numbers = codes[odd] >> 1
            # Floats in the dictionary are not whole, so they have one spelling.
            result[odd] = 0 if (self.kind[numbers] == FLOAT).all() else self._value_hashes(1, numbers)
        return result

    def _value_hashes(self, what: int, numbers: Integers) -> Hashes:
        """Hashes or spellings of values of the dictionary, floats aside."""
        lo, hi = self._hashed, self.n
        if lo < hi:
            if hi > self._hashes.shape[1]:
                larger = np.zeros((2, len(self.canon)), np.uint64)
                larger[:, :lo] = self._hashes[:, :lo]
                self._hashes = larger
            new = np.flatnonzero(self.kind[lo:hi] != FLOAT) + lo
            self._hashes[:, new] = hashes_of([self.values[n] for n in new.tolist()])
            self._hashed = hi
        hashes: Hashes = self._hashes[what, numbers]
        return hashes

    @property
    def bytes(self) -> int:
        """Bytes of its state: texts and other values, their index, and the floats."""
        arrays = (self.canon, self.nullish, self.kind, self.payload, self._hashes)
        buckets = 0 if self._buckets is None else int(self._buckets.nbytes)
        return self.held + sum(int(a.nbytes) for a in arrays) + buckets + 100 * len(self._floats)

    # State

    def mark(self) -> tuple[int, int]:
        """How far it has come, for `cut`."""
        return self.n, self.held

    def cut(self, mark: tuple[int, int]) -> None:
        """Forgets the values that came after a mark, with a step that failed. It may be broken off and called again."""
        n, held = mark
        self.most = sys.maxsize
        self.terms = None
        self._hashed = min(self._hashed, n)
        while (number := next(reversed(self.values))) >= n:
            value = self.values[number]
            if type(value) is str:
                self._remove(self._texts, value, number)
            elif type(value) is Iri:
                self._remove(self._iris, value.text, number)
            elif type(value) is Timestamp or type(value) is Duration:
                self._remove(self._timestamps if type(value) is Timestamp else self._durations, value.us, number)
            else:
                self._remove(self._ids, (type(value), value, repr(value)), number)
                self._remove(self._equals, order_key(value), 2 * number + 1)
            del self.values[number]
        for decimal in [decimal for decimal, number in self._floats.items() if number >= n]:
            del self._floats[decimal]
        self._buckets = None
        self.kind[n:] = 0
        self.nullish[n:] = 0
        self.n, self.held = n, held

    @staticmethod
    def _remove(numbers: dict[Any, int], key: object, number: int) -> None:
        if numbers.get(key) == number:
            del numbers[key]

    def saved(self) -> dict[str, Any]:
        """The state for a snapshot: where floats stand, these, and all other values in the order of their numbers."""
        kinds = (self.kind[: self.n] == FLOAT).astype(np.uint8)
        others = [self.values[n] for n in np.flatnonzero(kinds != FLOAT).tolist()]
        return {"kind": kinds, "floats": self.numbers[: self.n][kinds == FLOAT], "values": others}

    @staticmethod
    def restored(state: dict[str, Any]) -> Dictionary | None:
        """The dictionary of such a state; None where there can be none."""
        kinds, floats, others = state["kind"], state["floats"], state["values"]
        if kinds.dtype != np.uint8 or floats.dtype != np.float64 or floats.ndim != 1:
            return None
        places = np.flatnonzero(kinds != FLOAT)
        if kinds.ndim != 1 or int(kinds.max(initial=0)) > FLOAT or len(kinds) - len(places) != len(floats):
            return None
        if len(places) != len(others) or places[:2].tolist() != [0, 1] or others[:2] != [None, None]:
            return None
        if not (np.isfinite(floats) & (floats != np.floor(floats))).all():  # the others are not in the dictionary
            return None
        numbers = np.zeros(len(kinds), np.float64)
        numbers[kinds == FLOAT] = floats
        values = dict(zip(places.tolist(), others, strict=True))
        result = Dictionary.of(kinds, numbers, values)
        return result if result.values.keys() == values.keys() else None  # each has a number of its own

    @staticmethod
    def of(kinds: Array, numbers: Floats, values: dict[int, Value]) -> Dictionary:
        """A dictionary whose values have these numbers: where floats stand, these, and all other values."""
        new = Dictionary()
        new._room(len(kinds))
        floats = np.flatnonzero(kinds == FLOAT)
        for n in sorted(values):
            if n > 1:
                new.n = n
                new.encode(values[n])
        new.n = len(kinds)
        new.numbers[floats] = numbers[floats]
        new.kind[floats] = FLOAT
        new.canon[floats] = floats * 2 + 1
        new._floats = dict(zip(numbers[floats].tolist(), floats.tolist(), strict=True)) if len(floats) < 10_000 else {}
        if len(floats) >= 10_000:
            new._bulk(np.zeros(0))
        return new

    def without(self, used: Sequence[Array]) -> tuple[Dictionary, Array]:
        """A dictionary of just the values whose codes are used, and the new code of each old number."""
        keep = np.zeros(self.n, bool)
        keep[:2] = True
        for codes in used:
            keep[codes[(codes & 1).astype(bool)] >> 1] = True
        keep[self.canon[: self.n][keep & ((self.canon[: self.n] & 1) == 1)] >> 1] = True
        numbers = np.flatnonzero(keep)
        moved = np.zeros(self.n, np.int64)
        moved[numbers] = np.arange(len(numbers)) * 2 + 1
        position = {int(n): k for k, n in enumerate(numbers)}
        values = {position[n]: v for n, v in self.values.items() if n in position}
        return Dictionary.of(self.kind[numbers], self.numbers[numbers], values), moved


def _is_unicode(text: str) -> bool:
    """Whether a text has no halves of characters, which Arrow does not take."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def size_of(value: Value) -> int:
    """How many bytes a value takes, about."""
    match value:
        case Term():
            return 64 + sum(map(size_of, value.args))
        case tuple():
            return 48 + sum(map(size_of, value))
        case Iri():
            return 48 + value.text.__sizeof__()
    return value.__sizeof__()


def exact(values: Array) -> bool:
    """Whether integers are floats without loss."""
    return len(values) == 0 or bool(np.abs(values).max() <= 2**53)


# Hashes of columns, the same as those of single values in `model`


_CONSTANTS = np.array([GOLDEN, MIX_1, MIX_2, 30, 27, 31], np.uint64)


def mix_hashes(h: Array | np.uint64, more: Array) -> Array:
    """`model.mix` of columns."""
    if Kernel.compiled:
        result: Array = np.full(len(more), h) if h.ndim == 0 else np.copy(h)
        mix(result, more, _CONSTANTS)
        return result
    hashes: Hashes = (h ^ more) + np.uint64(GOLDEN)
    hashes ^= hashes >> np.uint64(30)
    hashes *= np.uint64(MIX_1)
    hashes ^= hashes >> np.uint64(27)
    hashes *= np.uint64(MIX_2)
    hashes ^= hashes >> np.uint64(31)
    return hashes


def content_hashes(type: str, args: Sequence[Array], start: Times, end: Times) -> Hashes:
    """The ids of events as numbers: of contents whose arguments have these hashes."""
    h = np.full(len(start), content_seed(type, len(args)), np.uint64)
    for item in (*args, start.astype(np.int64).view(np.uint64), end.astype(np.int64).view(np.uint64)):
        h = mix_hashes(h, item)
    return h


def spellings_of(masks: Sequence[Array], count: int) -> Array:
    """`spelling_of` of rows whose arguments have these spellings."""
    h, plain = np.zeros(count, np.uint64), np.ones(count, bool)
    if not any(item.any() for item in masks):
        return h
    for item in masks:
        h = mix_hashes(h, item)
        plain &= item == 0
    h[plain] = 0
    return h


def numbers_hashed(column: Array) -> tuple[Array, Array]:
    """Hashes and spellings of an array of integers, floats (NaN is null) or booleans."""
    spelt = np.zeros(len(column), np.uint64)
    if column.dtype.kind in "iu":
        return mix_hashes(np.uint64(INT_SEED), column.astype(np.int64).view(np.uint64)), spelt
    if column.dtype.kind == "b":
        return np.array([value_hash(False), value_hash(True)], np.uint64)[column.astype(np.int64)], spelt
    column = column.astype(np.float64)
    hashes = mix_hashes(np.uint64(FLOAT_SEED), column.view(np.uint64))
    whole = (column == np.floor(column)) & np.isfinite(column)
    spelt[whole] = 1
    small = whole & (np.abs(column) < 2.0**63)
    hashes[small] = mix_hashes(np.uint64(INT_SEED), column[small].astype(np.int64).view(np.uint64))
    hashes[np.isnan(column)] = value_hash(None)
    for i in np.flatnonzero(whole & ~small).tolist():
        hashes[i] = value_hash(float(column[i]))
    return hashes, spelt
