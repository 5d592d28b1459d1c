"""The texts of a dictionary as bytes, one after the other: none is an object of Python before somebody looks at it.

Used once kernels are compiled. Before, a dictionary has texts of Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from augury.core.arrays import Array, Integers
from augury.storage.kernels.hashing import AHEAD, EMPTY
from augury.storage.kernels.text_table import intern_texts, refill_texts

_LARGE = 1 << 28  # bytes


class TextPool:
    """Different texts and IRIs, each with a place, in the order of their numbers in the dictionary."""

    def __init__(self) -> None:
        self.count = self.numbered = 0
        self.letters = np.empty(1 << 12, np.uint8)
        self.ends = np.zeros(65, np.int64)  # where each text begins, and the last one ends
        self.hashes = np.empty(64, np.int32)
        self.numbers = np.empty(64, np.int64)  # in the dictionary
        self._buckets: Array | None = None

    @property
    def bytes(self) -> int:
        """What it takes, its letters aside."""
        return 20 * self.count + (0 if self._buckets is None else int(self._buckets.nbytes))

    def places(self, texts: Any, families: Array, add: bool = True) -> Integers:
        """The places of texts, an Arrow array of large strings without nulls. New ones are added, or have the place -1."""
        if self.numbered < self.count:  # what added them was broken off
            self._keep(self.numbered)
        places = np.empty(len(texts), np.int64)
        words, letters, offsets = _bytes_of(texts)
        if add:
            self._room(len(texts))
        buckets, self._buckets = self._with_buckets(len(texts)), None  # where this is broken off, they are made anew
        ahead, done = np.empty(AHEAD, np.int64), 0
        while True:
            self.count, done = intern_texts.call(
                words, letters, offsets, done, families, add, ahead, self.letters, self.ends, self.hashes, self.count,
                buckets, places,
            )  # fmt: skip
            if done == len(texts):
                break
            self._more_letters(int(offsets[done + 1] - offsets[done]))
        self._buckets = buckets
        return places

    def number(self, number: int) -> None:
        """The texts that have no number in the dictionary yet get this one, and those that follow."""
        first = self.numbered
        self.numbers[first : self.count] = np.arange(number, number + self.count - first)
        self.numbered = self.count

    def number_all(self, numbers: Integers) -> None:
        """The texts have these numbers in the dictionary."""
        self.numbers[: self.count] = numbers
        self.numbered = self.count

    def text(self, position: int) -> str:
        return self.letters[self.ends[position] : self.ends[position + 1]].tobytes().decode()

    def texts(self, places: Integers) -> Any:
        """Texts as an Arrow array of large strings of its own."""
        return self._whole().take(pa.array(places))

    def read_only(self, places: Integers) -> Any:
        """Texts as an Arrow array for now: those that lie one after the other are not copied."""
        if len(places) and bool((np.diff(places) == 1).all()):
            return self._whole().slice(int(places[0]), len(places))
        return self.texts(places)

    def _whole(self) -> Any:
        ends = self.ends[: self.count + 1]
        return pa.LargeStringArray.from_buffers(self.count, pa.py_buffer(ends), pa.py_buffer(self.letters))

    def cut(self, number: int) -> None:
        """Forgets the texts whose numbers in the dictionary are not below this one."""
        self._keep(int(np.searchsorted(self.numbers[: self.numbered], number)))

    def _keep(self, count: int) -> None:
        if count < self.count:
            self.count, self.numbered, self._buckets = count, min(count, self.numbered), None

    def _with_buckets(self, more: int) -> Array:
        """Buckets for so many more texts: at most two thirds of them will be full."""
        buckets, most = self._buckets, self.count + more
        if buckets is None or 3 * most > 2 * len(buckets):
            buckets = np.full(1 << (3 * most // 2 + 1024).bit_length(), EMPTY, np.int64)
            refill_texts.call(self.hashes, self.count, buckets)
        return buckets

    def _room(self, more: int) -> None:
        most = self.count + more
        if most > len(self.hashes):
            size = max(most, 2 * len(self.hashes))
            ends, hashes, numbers = np.empty(size + 1, np.int64), np.empty(size, np.int32), np.empty(size, np.int64)
            ends[: self.count + 1] = self.ends[: self.count + 1]
            hashes[: self.count], numbers[: self.count] = self.hashes[: self.count], self.numbers[: self.count]
            self.ends, self.hashes, self.numbers = ends, hashes, numbers

    def _more_letters(self, least: int) -> None:
        used = int(self.ends[self.count])
        # Memory that nothing is written to costs nothing, and what is written has to be copied when there is no more room.
        larger = np.empty((4 if used < _LARGE else 2) * len(self.letters) + least, np.uint8)
        larger[:used] = self.letters[:used]
        self.letters = larger


def _bytes_of(texts: Any) -> tuple[Array, ...]:
    """The bytes of texts eight at a time, with a word more, and one by one; and where each text begins and ends.

    They are those of the texts themselves, unless these do not lie at words or have no word more.
    """
    _, ends, data = texts.buffers()
    if not len(texts):
        return _fixed(np.zeros(2, np.uint64), np.zeros(16, np.uint8), np.zeros(1, np.int64))
    offsets = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    lo, hi = int(offsets[0]), int(offsets[-1])
    if data is not None and data.address % 8 == 0 and data.size >= hi // 8 * 8 + 16:
        return _fixed(np.frombuffer(data, np.uint64, data.size // 8), np.frombuffer(data, np.uint8), offsets)
    words = np.empty((hi - lo) // 8 + 3, np.uint64)
    letters = words.view(np.uint8)
    if hi > lo:
        letters[: hi - lo] = np.frombuffer(data, np.uint8)[lo:hi]
    return _fixed(words, letters, offsets - lo)


def _fixed(*arrays: Array) -> tuple[Array, ...]:
    """Arrays that cannot be written: there is one compiled form of a kernel for them."""
    for array in arrays:
        array.flags.writeable = False
    return arrays
