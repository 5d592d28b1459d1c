"""Values as integers. Every value has one code; equal values have equal codes once made canonical.

    ...00   an integer, of up to 62 bits        ....10   a float that is whole, such as 1.0
    .....1  anything else: its number in the dictionary

The dictionary belongs to a circuit and is part of its state. Its numbers do not order: values are compared by what they
stand for. Null is one of them (`NULL`), and so is what a row leaves open (`OPEN`: a variable of the other side of an OR).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from augury.core.arrays import Array, Codes, Floats, Hashes, Integers, Mask, Times
from augury.core.clock import Duration, Timestamp
from augury.core.jit import Kernel
from augury.core.model import FLOAT_SEED, INT_SEED, Iri, Term, Value, has_null, order_key
from augury.storage.guard import too_many_bytes
from augury.storage.number_table import NumberTable
from augury.storage.text_pool import TextPool
from augury.storage.unique import unique_inverse
from augury.storage.value_hashes import hashes_of, mix_hashes, text_hashes, time_hashes

NULL, OPEN = 1, 3
_WHOLE = 2**61
# The kinds of values in the dictionary. A float, a time (in microseconds) and a duration also have a number of 64 bits.
OTHER, FLOAT, TEXT, IRI, TIME, DURATION, NOTHING = range(7)
INTEGER = 7  # of codes that are no number of the dictionary
_PLAIN = {str: TEXT, Iri: IRI, Timestamp: TIME, Duration: DURATION}
_FAMILY = {TEXT: 0, IRI: 1}  # in a pool of texts
_MADE = (FLOAT, TEXT, IRI, TIME, DURATION)  # kinds of which many values are made at once
_MANY = 16  # values that are worth encoding at once
_DICTIONARIES = 16  # of Arrow that are remembered
_FEW = 10_000  # numbers that are found by value, rather than by their bits
_REMEMBERED = 1 << 16  # texts that were looked for one by one
_POOLED = 40  # bytes of the entries of a text in a pool, beside its letters
_VALUE = 170  # bytes of the entries that find a value, and that a value is found by


class Dictionary:
    """Values by number, and numbers by value."""

    def __init__(self) -> None:
        self.n = 0
        self.canon = np.zeros(64, np.int64)  # the code that all equal values share
        self.nullish = np.zeros(64, np.uint8)  # null, or has null inside: equals nothing
        self.kind = np.zeros(64, np.uint8)
        # Of floats their bits, of times microseconds, of pooled texts their place.
        self.payload = np.zeros(64, np.int64)
        self.numbers = self.payload.view(np.float64)
        self._tables = {kind: NumberTable(kind) for kind in (FLOAT, TIME, DURATION)}
        self._pool: TextPool | None = None  # all texts and IRIs, once they have come in bulk
        self.values: dict[int, Value] = {}  # the others
        self._texts: dict[str, int] = {}  # with a pool, some of those that were looked for
        self._iris: dict[str, int] = {}
        self._dictionaries: dict[tuple[int, ...], tuple[Any, Codes]] = {}  # of Arrow, with the codes of their texts
        self._ids: dict[Any, int] = {}
        self._equals: dict[Any, int] = {}
        self._hashes = np.zeros((2, 0), np.uint64)  # hash and spelling of the values, once asked for
        self._hashed = 0
        self.held = 0  # bytes of the values that are no numbers, about
        self.most = sys.maxsize  # of these bytes; a step that would go beyond is refused
        self.terms: Any = None  # the RDF terms among the values, on demand: see `queries/coded_terms.py`
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

    def _number(self, lo: int, hi: int, kind: int) -> None:
        """The numbers from one up to another are of values of a kind, none of which equals one of another kind."""
        self.kind[lo:hi] = kind
        self.canon[lo:hi] = np.arange(lo, hi, dtype=np.int64) * 2 + 1
        self.n = hi

    def _hold(self, size: int) -> None:
        self.held += size
        if self.held > self.most:
            raise too_many_bytes(self.most)

    def _text(self, value: str | Iri, text: str, places: dict[str, int]) -> int:
        """The number of a text or an IRI that `places` does not have."""
        if not (text.isascii() or _is_unicode(text)):
            return self._other(value)
        kind = _PLAIN[type(value)]
        if self._pool is None:
            self._hold(_VALUE + text.__sizeof__())
            number = self.n
            self._room(1)
            self.values[number] = value
            self._number(number, number + 1, kind)
        else:
            number = int(self._pooled(pa.array([text], pa.large_string()), kind)[0]) >> 1
            if len(places) >= _REMEMBERED:
                places.clear()
        places[text] = number  # last: a value that is found has a number of its own
        return number

    def _other(self, value: Value) -> int:
        key = (type(value), value, repr(value))
        number = self._ids.get(key)
        return self._new(value, key) if number is None else number

    def _new(self, value: Value, key: object) -> int:
        self._room(1)
        n = self.n
        self._hold(_VALUE + 2 * size_of(value))  # its key has how it is written
        self.values[n] = value
        self.nullish[n] = (value is None and n == 0) or (value is not None and has_null(value))
        code = 2 * n + 1
        self.n += 1
        self.canon[n] = self._equals.setdefault(order_key(value), code) if n > 1 else code
        self._ids[key] = n
        return n

    def _of_number(self, value: float, kind: int) -> int:
        """The number of a float that is not whole, or of microseconds."""
        table = self._tables[kind]
        result = table.by_value.get(value)
        if result is None:
            if table.in_bulk:
                return int(self._bulk(np.array([value]), kind)[0]) >> 1
            result = self.n
            if result == len(self.canon):
                self._room(1)
            (self.numbers if kind == FLOAT else self.payload)[result] = value
            self.kind[result], self.canon[result], self.n = kind, 2 * result + 1, result + 1
            table.by_value[value] = result
        return result

    def _bulk(self, column: Array, kind: int) -> Codes:
        """The codes of many floats that are not whole, or of microseconds; from then on they are found by their bits."""
        self._room(len(column))
        numbers, n = self._tables[kind].places(column, self.n, self.kind, self.payload)
        self._number(self.n, n, kind)
        return numbers * 2 + 1

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
                return 2 * self._of_number(value, FLOAT) + 1  # type: ignore[arg-type]
        elif kind is str:
            result = self._texts.get(value)  # type: ignore[arg-type]
            return 2 * (result if result is not None else self._text(value, value, self._texts)) + 1  # type: ignore[arg-type]
        elif kind is Iri:
            text: str = value.text  # type: ignore[union-attr]
            result = self._iris.get(text)
            return 2 * (result if result is not None else self._text(value, text, self._iris)) + 1  # type: ignore[arg-type]
        elif kind is Timestamp or kind is Duration:
            return 2 * self._of_number(value.us, _PLAIN[kind]) + 1  # type: ignore[union-attr]
        elif value is None:
            return NULL
        return 2 * self._other(value) + 1

    def decode(self, code: int) -> Value:
        if code & 1:
            n = code >> 1
            kind = self.kind.item(n)
            if kind == FLOAT:
                return float(self.numbers[n])
            if kind in (TIME, DURATION):
                return (Timestamp if kind == TIME else Duration)(int(self.payload[n]))
            if self._pool is not None and (kind in (TEXT, IRI)):
                text = self._pool.text(self.payload[n])
                return text if kind == TEXT else Iri(text)
            return self.values[n]
        return float(code >> 2) if code & 2 else int(code >> 2)

    def decode_all(self, codes: Codes) -> list[Value]:
        """The values of codes; many texts, or many times, are made at once."""
        if len(codes) > _MANY and (codes & 1).all():
            numbers = codes >> 1
            kind = self.kind[numbers[0]]
            if kind in _MADE and (self.kind[numbers] == kind).all():
                if kind in (TEXT, IRI):
                    texts: list[Value] = self.texts(codes).to_pylist()
                    return texts if kind == TEXT else list(map(Iri, texts))  # type: ignore[arg-type]
                column = (self.numbers if kind == FLOAT else self.payload)[numbers].tolist()
                return column if kind == FLOAT else list(map(Timestamp if kind == TIME else Duration, column))
        return list(map(self.decode, codes.tolist()))

    def encode_all(self, values: Iterable[Value]) -> Codes:
        """The codes of values; many texts, or many times, are encoded at once."""
        listed: list[Any] = values if isinstance(values, list) else list(values)
        kinds = set(map(type, listed)) if len(listed) > _MANY else set()
        if len(kinds) == 1:
            kind = _PLAIN.get(kinds.pop())
            if kind in (TEXT, IRI):
                return self._encode_texts(listed if kind == TEXT else [iri.text for iri in listed], kind)
            if kind is not None:
                times = np.fromiter((value.us for value in listed), np.int64, len(listed))
                return self.encode_times(times, "t" if kind == TIME else "d")
        encode = self.encode
        return np.array([encode(v) for v in listed], np.int64)

    def _encode_texts(self, texts: Sequence[str], kind: int) -> Codes:
        """The codes of many strings or IRIs: those that are new get their numbers in one go."""
        places = self._texts if kind == TEXT else self._iris
        if self._pool is not None or Kernel.compiled:
            with suppress(UnicodeEncodeError):
                return self._pooled(pa.array(texts, pa.large_string()), kind)
        make: Any = str if kind == TEXT else Iri
        new = [text for text in dict.fromkeys(texts) if text not in places]
        if self._pool is not None or not all(text.isascii() or _is_unicode(text) for text in new):
            return np.array([self.encode(make(text)) for text in texts], np.int64)
        if new:
            lo, hi = self.n, self.n + len(new)
            self._room(len(new))
            self._hold(_VALUE * len(new) + sum(map(str.__sizeof__, new)))
            self.values.update(zip(range(lo, hi), map(make, new), strict=True))
            self._number(lo, hi, kind)
            places.update(zip(new, range(lo, hi), strict=True))  # last: a text that is found has a number of its own
        return 2 * np.fromiter(map(places.__getitem__, texts), np.int64, len(texts)) + 1

    def _pooled(self, texts: Any, kind: int) -> Codes:
        """The codes of an array of large strings without nulls; from then on texts are found by their bytes."""
        pool = self._with_pool()
        places = pool.places(texts, np.array([_FAMILY[kind]], np.uint8))
        lo, first = self.n, pool.numbered
        if pool.count > first:
            hi = lo + pool.count - first
            self._room(hi - lo)
            self.payload[lo:hi] = np.arange(first, pool.count)
            pool.number(lo)
            self._number(lo, hi, kind)
            self._hold(_POOLED * (hi - lo) + int(pool.ends[pool.count] - pool.ends[first]))
        return 2 * pool.numbers[places] + 1

    def _with_pool(self) -> TextPool:
        if self._pool is None:
            numbers = np.flatnonzero((self.kind[: self.n] == TEXT) | (self.kind[: self.n] == IRI))
            self._fill_pool(numbers, pa.array(self._python_texts(numbers), pa.large_string()))
            for number in numbers.tolist():
                del self.values[number]
            self._texts, self._iris = {}, {}
        assert self._pool is not None
        return self._pool

    def _fill_pool(self, numbers: Integers, texts: Any) -> None:
        """Makes a pool of texts with these numbers, which are ascending."""
        pool = TextPool()
        pool.places(texts, (self.kind[numbers] == IRI).astype(np.uint8) if len(numbers) else np.zeros(1, np.uint8))
        pool.number_all(numbers)
        self.payload[numbers] = np.arange(len(numbers))
        self._pool = pool

    def _python_texts(self, numbers: Integers) -> list[str]:
        values: Iterable[Any] = map(self.values.__getitem__, numbers.tolist())
        return [value if type(value) is str else value.text for value in values]

    def encode_times(self, times: Times, unit: str) -> Codes:
        """The codes of points ("t") or lengths ("d") of time in microseconds."""
        kind = TIME if unit == "t" else DURATION
        if Kernel.compiled or self._tables[kind].in_bulk:
            return self._bulk(np.ascontiguousarray(times, np.int64), kind)
        different, inverse = unique_inverse(times)
        codes = [2 * self._of_number(us, kind) + 1 for us in different.tolist()]
        return np.array(codes, np.int64)[inverse]

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
        numbers = codes >> 1
        if self._pool is not None:
            return self._pool.texts(self.payload[numbers])
        return pa.array(self._python_texts(numbers), pa.large_string())

    def encode_texts(self, texts: Any) -> Codes:
        """The codes of an array of texts of Arrow, or of text and null; it may have a dictionary of its own."""
        if pa.types.is_dictionary(texts.type):
            different: Codes = np.append(self._of_dictionary(texts.dictionary), NULL)
            rows: Integers = texts.indices.cast(pa.int64()).fill_null(-1).to_numpy()
            return np.take(different, rows)
        if texts.null_count:
            codes = np.full(len(texts), NULL, np.int64)
            codes[texts.is_valid().to_numpy(zero_copy_only=False)] = self.encode_texts(texts.drop_null())
            return codes
        if len(texts) > _MANY and (self._pool is not None or Kernel.compiled):
            return self._pooled(texts.cast(pa.large_string()), TEXT)
        return self._encode_texts(texts.to_pylist(), TEXT)

    def encode_iris(self, texts: Any) -> Codes:
        """The codes of the IRIs that an array of texts of Arrow without nulls names."""
        return self._encode_texts(texts.to_pylist(), IRI)

    def _of_dictionary(self, texts: Any) -> Codes:
        """The codes of a dictionary of Arrow: once for all parts of a column."""
        key = (texts.buffers()[-1].address if len(texts) and texts.buffers()[-1] else 0, texts.offset, len(texts))
        if key not in self._dictionaries:
            if len(self._dictionaries) >= _DICTIONARIES:
                self._dictionaries.clear()
            self._dictionaries[key] = texts, self.encode_texts(texts)
        return self._dictionaries[key][1]

    def find_texts(self, values: Sequence[Value]) -> Array | None:
        """The codes of texts, 0 of those that are not there; None where some value is no text."""
        if set(map(type, values)) - {str}:
            return None
        if self._pool is not None:
            try:
                texts = pa.array(values, pa.large_string())
            except UnicodeEncodeError:
                return None
            places = self._pool.places(texts, np.zeros(1, np.uint8), add=False)
            numbers = np.where(places < 0, -1, self._pool.numbers[places])
        else:
            numbers = np.fromiter(map(self._texts.get, values, repeat(-1)), np.int64, len(values))  # type: ignore[arg-type]
        return np.where(numbers < 0, 0, 2 * numbers + 1)

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
            codes[remaining] = self._bulk(column[remaining], FLOAT)
        return codes

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
            self._hash(lo, hi)
            self._hashed = hi
        hashes: Hashes = self._hashes[what, numbers]
        return hashes

    def _hash(self, lo: int, hi: int) -> None:
        """Hashes the values of the numbers from one up to another."""
        kinds, hashes = self.kind[lo:hi], self._hashes
        rest = kinds != FLOAT
        if Kernel.compiled:
            for kind, make in ((TIME, Timestamp), (DURATION, Duration)):
                rows = np.flatnonzero(kinds == kind) + lo
                if len(rows):
                    hashes[0, rows] = time_hashes(pa.array(self.payload[rows]), make)
                    rest &= kinds != kind
            rows = np.flatnonzero(kinds == TEXT) + lo
            if self._pool is not None and len(rows):
                hashes[0, rows] = text_hashes(self._pool.read_only(self.payload[rows]))
                rest &= kinds != TEXT
        others = np.flatnonzero(rest) + lo
        hashes[:, others] = hashes_of(self.decode_all(others * 2 + 1))

    @property
    def bytes(self) -> int:
        """Bytes of its state: texts and other values, their index, and the floats."""
        arrays = (self.canon, self.nullish, self.kind, self.payload, self._hashes)
        pool = 0 if self._pool is None else self._pool.bytes
        tables = sum(table.bytes for table in self._tables.values())
        return self.held + sum(int(a.nbytes) for a in arrays) + pool + tables

    # State

    def mark(self) -> tuple[int, int]:
        """How far it has come, for `cut`."""
        return self.n, self.held

    def cut(self, mark: tuple[int, int]) -> None:
        """Forgets the values that came after a mark, with a step that failed. It may be broken off and called again."""
        n, held = mark
        self.most = sys.maxsize
        self.terms = None
        self._dictionaries = {}
        self._hashed = min(self._hashed, n)
        while (number := next(reversed(self.values))) >= n:
            value = self.values[number]
            self._remove(self._ids, (type(value), value, repr(value)), number)
            self._remove(self._equals, order_key(value), 2 * number + 1)
            del self.values[number]
        for texts in (self._texts, self._iris):
            for text in [text for text, number in texts.items() if number >= n]:
                del texts[text]
        for table in self._tables.values():
            table.cut(n)
        if self._pool is not None:
            self._pool.cut(n)
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
        others: list[Any] = np.flatnonzero(kinds != FLOAT).tolist()
        for group in (TEXT, IRI, TIME, DURATION, OTHER, NOTHING):
            places = np.flatnonzero(self.kind[: self.n][kinds != FLOAT] == group)
            codes = np.flatnonzero(self.kind[: self.n] == group) * 2 + 1
            for position, value in zip(places.tolist(), self.decode_all(codes), strict=True):
                others[position] = value
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
        payload = np.zeros(len(kinds), np.int64)
        payload.view(np.float64)[kinds == FLOAT] = floats
        return Dictionary.of(kinds, payload, dict(zip(places.tolist(), others, strict=True)))

    @staticmethod
    def of(kinds: Array, payload: Integers, values: Mapping[int, Value], texts: Any = None) -> Dictionary | None:
        """A dictionary whose values have these numbers: the texts of a pool, numbers, and all other values.

        None where one of these values is there twice, or has no number.
        """
        new = Dictionary()
        new._room(len(kinds))
        apart = True
        for number in sorted(values):
            if number > 1:
                new.n = number
                apart = apart and new.encode(values[number]) == 2 * number + 1
        new.n = len(kinds)
        pooled = np.flatnonzero((kinds == TEXT) | (kinds == IRI)) if texts is not None else np.zeros(0, np.int64)
        numeric = np.flatnonzero((kinds == FLOAT) | (kinds == TIME) | (kinds == DURATION))
        for numbers in (pooled, numeric):
            new.kind[numbers], new.canon[numbers] = kinds[numbers], numbers * 2 + 1
        new.payload[numeric] = payload[numeric]
        for kind, table in new._tables.items():
            mine = numeric[kinds[numeric] == kind]
            if len(mine) < _FEW:
                column = new.numbers[mine] if kind == FLOAT else new.payload[mine]
                table.by_value.update(zip(column.tolist(), mine.tolist(), strict=True))
            else:
                new._bulk(np.zeros(0, np.float64 if kind == FLOAT else np.int64), kind)
        if texts is not None:
            new._fill_pool(pooled, texts)
            new.held += _POOLED * len(pooled) + texts.nbytes
        return new if apart else None

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
        values = {int(moved[n]) >> 1: v for n, v in self.values.items() if keep[n]}
        kinds, texts = self.kind[numbers], None
        if self._pool is not None:
            texts = self._pool.texts(self.payload[numbers[(kinds == TEXT) | (kinds == IRI)]])
        new = Dictionary.of(kinds, self.payload[numbers], values, texts)
        assert new is not None
        return new, moved


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
