"""Translates value codes between the dictionary of a circuit and the dictionary of its knowledge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.matching import Scalars
from augury.algebra.nodes import Compare, Condition
from augury.algebra.plan import Predicate
from augury.core.arrays import Array, Codes, Mask
from augury.knowledge.nearby import near_by
from augury.storage.conditions import Context, Report
from augury.storage.dictionary import NULL, OPEN, Dictionary
from augury.storage.frame import Frame
from augury.storage.table import Tables, grown
from augury.storage.unique import is_in, unique

if TYPE_CHECKING:
    from augury.knowledge.knowledge_base import Knowledge


class Bridge:
    """Asks knowledge in the codes of another dictionary. Numbers that are whole have the same code in both."""

    def __init__(self, knowledge: Knowledge, tables: Tables, scalars: Scalars, report: Report) -> None:
        self.knowledge, self.tables, self.scalars, self.report = knowledge, tables, scalars, report
        self._dictionaries: tuple[Dictionary, Dictionary] | None = None
        self._into, self._back = _no_codes(), _no_codes()

    def reset(self) -> None:
        """Forgets what was translated: values are forgotten."""
        self._dictionaries = None

    def solve(
        self, predicate: Predicate, mode: tuple[bool, ...], asked: Sequence[Array], times: Array
    ) -> tuple[Array, list[Array]]:
        """As `Knowledge.solve`, in the codes of the other dictionary."""
        self.knowledge.tidy()
        context = self.knowledge.context
        context.scalars, context.report = self.scalars, self.report
        default = None if predicate in self.knowledge.clauses else OPEN  # what no fact has is found by nothing
        translated = [self.translated(c, default) for c in asked]
        which, answers = self.knowledge.solve(predicate, mode, translated, times)
        bound = iter(asked)
        return which, [
            next(bound)[which] if translated else self.back(c) for translated, c in zip(mode, answers, strict=True)
        ]

    def near_by(self, context: Context, where: Sequence[Condition], frame: Frame) -> tuple[Compare, Frame] | None:
        return near_by(self.knowledge, context, where, frame, self.back)

    def translated(self, codes: Codes, unknown: int | None = None) -> Array:
        """Codes of the circuit as codes of knowledge; texts that it does not know as `unknown`, where that is given."""
        both = self._between()
        self._into, result = _translated(codes, self._into, *both, unknown)
        return result

    def among(self, codes: Codes, facts: Codes) -> Mask:
        """Which codes of the circuit are equal to one of some codes of knowledge."""
        canonical = self.knowledge.words.canonical
        return is_in(canonical(self.translated(codes, OPEN)), canonical(facts))

    def back(self, codes: Codes) -> Array:
        """Codes of knowledge as codes of the circuit."""
        both = self._between()
        self._back, result = _translated(codes, self._back, *both[::-1])
        return result

    def _between(self) -> tuple[Dictionary, Dictionary]:
        """The two dictionaries; what was translated before is forgotten where one of them is another now."""
        words, facts_words = self.tables.dictionary, self.knowledge.words
        if self._dictionaries is None or self._dictionaries[0] is not words or self._dictionaries[1] is not facts_words:
            self._dictionaries = (words, facts_words)
            self._into, self._back = _no_codes(), _no_codes()
        return self._dictionaries


def _no_codes() -> Array:
    return np.array([NULL, OPEN], np.int64)


def _translated(
    codes: Codes, places: Array, source: Dictionary, target: Dictionary, unknown: int | None = None
) -> tuple[Array, Array]:
    """Codes of one dictionary in another; `places` has those of the values that were translated before."""
    odd = (codes & 1).astype(bool)
    if not odd.any():
        return places, codes
    numbers = codes[odd] >> 1
    if len(places) < source.n:
        places = grown(places, 2 * source.n, len(places), 0)
    missing = unique(numbers[places[numbers] == 0])
    if len(missing):
        floats = source.is_float(missing)
        places[missing[floats]] = target.encode_column(source.numbers[missing[floats]])
        others = missing[~floats]
        values = source.decode_all(others * 2 + 1)
        text_numbers = target.find_texts(values) if unknown is not None else None
        if text_numbers is None:
            places[others] = target.encode_all(values)
        else:
            places[others] = text_numbers
    result = codes.copy()
    translated = places[numbers]
    if unknown is not None:
        translated[translated == 0] = unknown
    result[odd] = translated
    return places, result
