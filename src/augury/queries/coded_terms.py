"""RDF terms as values of a circuit: each is its key, a text, and has a number among the terms of the circuit's dictionary."""

from __future__ import annotations

import numpy as np

from augury.core.arrays import Array, Codes, Integers
from augury.core.errors import RunError
from augury.graphs.graph_texts import EventTriples
from augury.graphs.rdf_terms import UNBOUND, Terms
from augury.storage.dictionary import NULL, OPEN, Dictionary
from augury.storage.table import grown
from augury.storage.unique import unique

_UNKNOWN = -2


class CodedTerms:
    """The terms among the values of a dictionary: from codes to numbers of terms, and back. Null is UNBOUND."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._find, self._encode, self.terms = dictionary.decode, dictionary.encode, Terms()
        self._numbers = np.full(64, _UNKNOWN, np.int64)  # by number of the value
        self._numbers[[NULL >> 1, OPEN >> 1]] = UNBOUND
        self._codes = np.full(64, _UNKNOWN, np.int64)  # by number of the term
        self._values = np.full(64, _UNKNOWN, np.int64)  # by number of the term: the code of what it stands for
        self._others: tuple[Terms, Array] | None = None  # terms of another owner, and the numbers that they have here

    def renumbered(self, triples: EventTriples, terms: Terms) -> EventTriples:
        """Triples of terms that another owner has numbered."""
        others = self._others[1] if self._others is not None and self._others[0] is terms else np.empty(0, np.int64)
        if len(others) < len(terms):
            others = np.concatenate([others, self.terms.keys.add_all(terms.keys, len(others))])
            self._others = (terms, others)
        return triples.renumbered(others)

    def numbers(self, codes: Codes) -> Array:
        """The numbers of the terms of codes."""
        if len(codes) and not (codes & 1).all():
            raise RunError("a value is not an RDF term")
        places = codes >> 1
        self._numbers = _room(self._numbers, int(places.max(initial=0)) + 1)
        result: Array = self._numbers[places]
        new = unique(places[result == _UNKNOWN])
        if len(new):
            keys = [str(self._find(int(number) * 2 + 1)).encode("utf-8", "surrogatepass") for number in new]
            self._numbers[new] = self.terms.keys.add(keys)
            result = self._numbers[places]
        return result

    def codes(self, numbers: Integers) -> Codes:
        """The codes of terms."""
        self._codes = _room(self._codes, len(self.terms))
        new = unique(numbers[(numbers != UNBOUND) & (self._codes[numbers] == _UNKNOWN)])
        if len(new):
            keys = self.terms.keys
            coded = [self._encode(keys.key(int(n)).decode("utf-8", "surrogatepass")) for n in new]
            self._codes[new] = coded
            places = np.array(coded, np.int64) >> 1
            self._numbers = _room(self._numbers, int(places.max()) + 1)
            self._numbers[places] = new
        return np.where(numbers == UNBOUND, NULL, self._codes[numbers])

    def values(self, numbers: Integers) -> Array:
        """The codes of the values of terms."""
        self._values = _room(self._values, len(self.terms))
        new = unique(numbers[(numbers != UNBOUND) & (self._values[numbers] == _UNKNOWN)])
        self._values[new] = [self._encode(self.terms.value(int(n))) for n in new]
        return np.where(numbers == UNBOUND, NULL, self._values[numbers])


def _room(array: Array, size: int) -> Array:
    return array if len(array) >= size else grown(array, 2 * size, len(array), _UNKNOWN)


def coded_terms(dictionary: Dictionary) -> CodedTerms:
    """The terms of a dictionary; made when they are first asked for, and gone with it."""
    if dictionary.terms is None:
        dictionary.terms = CodedTerms(dictionary)
    result: CodedTerms = dictionary.terms
    return result
