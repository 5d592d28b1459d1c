"""RDFS entailment by the rules rdfs2, 3, 5, 7, 9 and 11: domain, range, subproperty and subclass.

| rule   | from                       | and                      | follows                 |
| rdfs2  | `p rdfs:domain C`          | `x p y`                  | `x rdf:type C`          |
| rdfs3  | `p rdfs:range C`           | `x p y`                  | `y rdf:type C`          |
| rdfs5  | `p rdfs:subPropertyOf q`   | `q rdfs:subPropertyOf r` | `p rdfs:subPropertyOf r`|
| rdfs7  | `p rdfs:subPropertyOf q`   | `x p y`                  | `x q y`                 |
| rdfs9  | `C rdfs:subClassOf D`      | `x rdf:type C`           | `x rdf:type D`          |
| rdfs11 | `C rdfs:subClassOf D`      | `D rdfs:subClassOf E`    | `C rdfs:subClassOf E`   |

`closure` applies them one triple at a time; `Schema` finds the same with arrays. What follows is a triple of RDF: rdfs3
says nothing about a literal, and a property that is a blank node has no triples in the answer, though others may follow
from them. No axiomatic triples, no `rdfs:Resource`, nothing about datatypes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from augury.core.arrays import Array
from augury.core.model import Iri, Value
from augury.knowledge.fact_table import FactTable
from augury.knowledge.rdf import Pairs, RdfTriples, distinct, split, tables_of_pairs

Triple = tuple[Value, Value, Value]

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
TYPE = Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
SUBCLASS, SUBPROPERTY = Iri(RDFS + "subClassOf"), Iri(RDFS + "subPropertyOf")
DIRECT = f"direct {TYPE.text}"  # what is said of an instance, or follows from the properties it has
ABOVE = f"entailed {SUBCLASS.text}"
DOMAIN, RANGE = Iri(RDFS + "domain"), Iri(RDFS + "range")
VOCABULARY = (TYPE, SUBCLASS, SUBPROPERTY, DOMAIN, RANGE)


def closure(triples: Iterable[Triple]) -> set[Triple]:
    """All that follows from triples, by the rules applied until nothing new comes."""
    result = set(triples)
    while True:
        new = _step(result) - result
        if not new:
            return {(s, p, o) for s, p, o in result if isinstance(p, Iri) and not p.text.startswith("_:")}
        result |= new


def _is_resource(value: Value) -> bool:
    """Whether a value can be the subject of a triple."""
    return type(value) is Iri


def _step(triples: set[Triple]) -> set[Triple]:
    """The consequences of one use of one rule."""
    new: set[Triple] = set()
    for a, property, b in triples:
        for x, p, y in triples:
            if property == DOMAIN and p == a:
                new.add((x, TYPE, b))  # rdfs2
            if property == RANGE and p == a and _is_resource(y):
                new.add((y, TYPE, b))  # rdfs3
            if property == SUBPROPERTY and p == SUBPROPERTY and x == b:
                new.add((a, SUBPROPERTY, y))  # rdfs5
            if property == SUBPROPERTY and p == a and _is_resource(b):
                new.add((x, b, y))  # rdfs7
            if property == SUBCLASS and p == TYPE and y == a:
                new.add((x, TYPE, b))  # rdfs9
            if property == SUBCLASS and p == SUBCLASS and x == b:
                new.add((a, SUBCLASS, y))  # rdfs11
    return new


class Schema:
    """The consequences of triples, with `rdf:type` left at the classes that are said or follow from domains and ranges.

    All of `rdf:type` is `types`, and `(x, D)` for each `(x, C)` in it and `(C, D)` in `supers`. Numbers are those of
    `terms`: the terms of the triples, and the words of the vocabulary that are not among them.
    """

    def __init__(self, triples: RdfTriples) -> None:
        self.terms = list(triples.terms)
        names = {word.text: word for word in VOCABULARY}
        words = {term.text: i for i, term in enumerate(self.terms) if type(term) is Iri and term.text in names}
        for word in VOCABULARY:
            if word.text not in words:
                words[word.text] = len(self.terms)
                self.terms.append(word)
        self.type, self._subclass, self._subproperty, self._domain, self._range = (words[name] for name in names)
        self._resource = np.array([type(term) is Iri for term in self.terms], bool)
        self._stated = triples.pairs
        self._closed = {
            k: self._stated.get(k, NONE) for k in (self._subclass, self._subproperty, self._domain, self._range)
        }
        self.types: Pairs = self._stated.get(self.type, NONE)
        self.subproperties: dict[int, list[int]] = {}
        self._close()

    @property
    def supers(self) -> Pairs:
        """Classes and their superclasses, all the way up; a class is its own only in a cycle."""
        return self._closed[self._subclass]

    def instances(self, p: int) -> Pairs:
        """The pairs of a property and of its subproperties; of `rdf:type`, all types."""
        if p in self._closed:
            return self._closed[p]
        if p == self.type:
            return self.types_expanded()
        below = self.subproperties.get(p)
        return self._union(map(self._own, [p, *below])) if below else self._own(p)

    def entailed(self) -> RdfTriples:
        """All that follows, as triples."""
        pairs = {**self.pairs(), self.type: self.types_expanded()}
        empty = np.empty(0, np.int32)
        subject, object = (np.concatenate([empty, *(rows[i] for rows in pairs.values())]) for i in (0, 1))
        predicate = np.repeat(np.array(list(pairs), np.int32), [len(rows[0]) for rows in pairs.values()])
        return RdfTriples(self.terms, subject, predicate, object, np.full(len(subject), -1, np.int32))

    def pairs(self) -> dict[int, Pairs]:
        """The pairs of every property that has any, `rdf:type` with `types` alone."""
        result = {p: self.instances(p) for p in {*self._stated, *self.subproperties} - {self.type} if self._named(p)}
        return {p: rows for p, rows in {**result, **self._closed, self.type: self.types}.items() if len(rows[0])}

    def _named(self, p: int) -> bool:
        """Whether a triple can have this predicate: a blank node or a literal cannot be one."""
        name = self.terms[p]
        return isinstance(name, Iri) and not name.text.startswith("_:")

    def tables(self, only: Collection[str] | None = None) -> list[FactTable]:
        """A table for each property, named by its IRI; of those in `only`, where it is given."""
        return tables_of_pairs(self.terms, self.pairs(), only)

    def types_expanded(self) -> Pairs:
        """All of `rdf:type`: instances with their classes and the superclasses of these."""
        return self._union([self.types, self._ups()])

    # The fixpoint

    def _close(self) -> None:
        """Hierarchy first, then types; again only where types say something about the hierarchy (`rdf:type ⊑ …`)."""
        while True:
            before = self._size()
            self._close_hierarchy()
            self._find_types()
            if self._size() == before or not any(self._feeds(self.type, k) for k in self._closed):
                return

    def _size(self) -> int:
        return len(self.types[0]) + sum(len(rows[0]) for rows in self._closed.values())

    def _close_hierarchy(self) -> None:
        """rdfs5, 11 and 7 on the vocabulary itself: a property may be a subproperty of `rdfs:subClassOf`."""
        size = -1
        while size != self._size():
            size = self._size()
            self._closed[self._subproperty] = self._transitive(self._closed[self._subproperty])
            self.subproperties = _below(self._closed[self._subproperty])
            for k in self._closed:
                below = self.subproperties.get(k)
                if below:
                    self._closed[k] = self._union([self._closed[k], *map(self._own, below)])
            self._closed[self._subclass] = self._transitive(self._closed[self._subclass])

    def _find_types(self) -> None:
        """rdfs2, 3 and 7 into `rdf:type`; again only where types have a domain or range themselves."""
        typed = [self._closed[k][0] for k in (self._domain, self._range)]
        recursive = any(self._feeds(self.type, p) for p in distinct(np.concatenate(typed)).tolist())
        size = -1
        while size != len(self.types[0]):
            size = len(self.types[0])
            parts = [self.types, *map(self._own, self.subproperties.get(self.type, []))]
            for p, c in _rows(self._closed[self._domain]):
                parts.append(_all_with(self._ends(p, 0), c))
            for p, c in _rows(self._closed[self._range]):
                objects = self._ends(p, 1)
                parts.append(_all_with(objects[self._resource[objects]], c))
            self.types = self._union(parts)
            if not recursive:
                return

    def _feeds(self, p: int, q: int) -> bool:
        return p == q or p in self.subproperties.get(q, ())

    def _own(self, p: int) -> Pairs:
        """The pairs of a property without those of its subproperties, the vocabulary apart."""
        if p in self._closed:
            return self._closed[p]
        return self.types_expanded() if p == self.type else self._stated.get(p, NONE)

    def _ends(self, p: int, side: int) -> Array:
        """The different subjects, or objects, of a property and its subproperties."""
        marked = np.zeros(len(self.terms), bool)
        below = (p, *self.subproperties.get(p, ()))
        for q in below:
            marked[(self.types if q == self.type else self._own(q))[side]] = True
        if side == 1 and self.type in below:
            classes = np.zeros(len(self.terms), bool)
            classes[self.types[1]] = True
            marked[self.supers[1][classes[self.supers[0]]]] = True
        return np.flatnonzero(marked)

    # Arrays

    def _union(self, parts: Iterable[Pairs]) -> Pairs:
        """The pairs that are in one of several lists, each once."""
        n = len(self.terms)
        result = [s.astype(np.int64) * n + o for s, o in parts if len(s)]
        return split(distinct(np.concatenate(result)), n) if result else NONE

    def _transitive(self, pairs: Pairs) -> Pairs:
        """The transitive closure: what is reached from each subject."""
        above: dict[int, list[int]] = {}
        for a, b in _rows(pairs):
            above.setdefault(a, []).append(b)
        firsts: list[int] = []
        seconds: list[int] = []
        for a, nearest in above.items():
            seen: set[int] = set()
            todo = list(nearest)
            while todo:
                b = todo.pop()
                if b not in seen:
                    seen.add(b)
                    todo.extend(above.get(b, ()))
            firsts.extend([a] * len(seen))
            seconds.extend(seen)
        return self._union([(np.array(firsts, np.int32), np.array(seconds, np.int32))])

    def _ups_of_each(self) -> Pairs:
        """Where the superclasses of the class of each row of `types` begin among `supers`, and how many they are."""
        classes = self.supers[0]  # in order: the pairs are sorted
        start = np.searchsorted(classes, self.types[1], "left")
        return start, np.searchsorted(classes, self.types[1], "right") - start

    def _ups(self) -> Pairs:
        """rdfs9: the instances with the superclasses of their classes."""
        start, count = self._ups_of_each()
        before = np.cumsum(count) - count
        positions = np.arange(int(count.sum())) + np.repeat(start - before, count)
        return np.repeat(self.types[0], count), self.supers[1][positions]


NONE: Pairs = (np.empty(0, np.int32), np.empty(0, np.int32))


def _rows(pairs: Pairs) -> Iterable[tuple[int, int]]:
    return zip(pairs[0].tolist(), pairs[1].tolist(), strict=True)


def _all_with(firsts: Array, second: int) -> Pairs:
    return firsts.astype(np.int32), np.full(len(firsts), second, np.int32)


def _below(pairs: Pairs) -> dict[int, list[int]]:
    """The subproperties of each property, itself aside."""
    result: dict[int, list[int]] = {}
    for q, p in _rows(pairs):
        if q != p:
            result.setdefault(p, []).append(q)
    return result
