"""Static knowledge in columns: facts, and rules over them, asked with a batch of bindings at a time.

How a call is answered depends on its predicate:

    facts         looked up by the columns that are bound
    transitive    by an index of reachability over its edges
    materialised  all answers once, bottom up, where there are few; then looked up
    tabled        goal by goal, each call once

Knowledge has a dictionary of its own, so that what comes and goes with events need not touch the codes of facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from augury.algebra.answering import by_predicate, is_plain
from augury.algebra.matching import Scalars
from augury.algebra.nodes import Clause, Compare, Condition, Holds
from augury.algebra.plan import Predicate
from augury.algebra.strata import components, static_reads
from augury.algebra.terms import Var
from augury.algebra.transitive import transitive
from augury.columns.conditions import Context, Report
from augury.columns.dictionary import Dictionary
from augury.columns.frame import Frame
from augury.columns.rows import Distinct
from augury.columns.table import NONE
from augury.jit import Array, count_work
from augury.knowledge.fact_table import FactTable, tables_of
from augury.knowledge.facts import Facts
from augury.knowledge.near import Near
from augury.knowledge.nearby import near_by
from augury.knowledge.reachability import Reach
from augury.knowledge.solving.changing import Changing
from augury.knowledge.solving.expand import expanded
from augury.knowledge.solving.relation import Relation
from augury.knowledge.solving.solve import Mode, Solver, TooMany
from augury.knowledge.timeline import StatementTable
from augury.model import Fact

FAR = -(2**60)  # before every time
FEW = 10_000  # facts below a rule whose answers are worth an attempt to have them all at once
_MOST = 100_000  # rows that such an attempt may make
_MANY = 2_000_000  # answers that are not worth having all
_WORTH = 10  # how many answers may be made for a call that has come
_TABLED = 4_000_000  # rows of tabled answers, after which all are forgotten
_FOREIGN = 1_000_000  # values in the dictionary beside those of facts, after which they are forgotten


class Knowledge:
    """The facts and static rules of a run."""

    def __init__(self, clauses: Iterable[Clause], facts: Iterable[Fact], scalars: Scalars, report: Report) -> None:
        self.words = Dictionary()
        self.context = Context(scalars, self, self.words, report)
        self.relations: dict[Predicate, Relation] = {}
        clauses = list(clauses)
        self.clauses = by_predicate(clauses)
        rules = {id(clause) for listed in self.clauses.values() for clause in listed}
        self.reads = {
            head: set(found) for head, found in static_reads(c for cs in self.clauses.values() for c in cs).items()
        }
        self.component = {p: number for number, group in enumerate(components(self.clauses, self.reads)) for p in group}
        for predicate, listed in self.clauses.items():
            group = {p for p, number in self.component.items() if number == self.component[predicate]}
            self.clauses[predicate] = [one for clause in listed for one in expanded(clause, group)]
        self.closures = transitive(self.clauses)
        self.solver = Solver(self)
        self.changes = Changing(self)
        self._reach: dict[Predicate, Reach] = {}
        self._whole: dict[Predicate, Distinct | None] = {}
        self.near: dict[tuple[str, int, int, int], tuple[int, Near | None]] = {}  # facts by places on the sphere
        self._bounds: dict[Predicate, Array] = {}
        self._asked: dict[Predicate, int] = {}
        self._edges: dict[Predicate, tuple[Array, Array] | None] = {}
        self._sizes: dict[Predicate, int | None] = {}
        self._below: dict[Predicate, set[Predicate]] = {}
        self.version = 0  # how often facts have changed
        self._kept_words = 0
        own = [Fact(c.name, tuple(a.value for a in c.args)) for c in clauses if id(c) not in rules]  # type: ignore[union-attr]
        for table in tables_of(own):
            self.take(table)
        for told in Facts.of(facts).told:
            self.take(told)
        self._kept_words = self.words.n
        for relation in self.relations.values():
            relation.given = relation.rows.n

    def take(self, table: FactTable | StatementTable) -> None:
        """Takes in a table of facts, or of statements about them, before anything is asked."""
        if isinstance(table, FactTable):
            count_work(len(table))
            self.relation(table.name, table.arity).take(table)
        elif table.retract is None:
            self.take(table.facts)
        else:
            self.changes.say(table)
            self.changes.settle()

    def relation(self, name: str, arity: int) -> Relation:
        found = self.relations.get((name, arity))
        if found is None:
            found = self.relations[name, arity] = Relation(name, arity, self.words)
        return found

    # Questions

    def solve(self, predicate: Predicate, mode: Mode, asked: Sequence[Array], at: Array) -> tuple[Array, list[Array]]:
        """Pairs of a question and an answer, as its columns: codes of the dictionary of knowledge.

        `asked` has a column for each argument that is bound. A question with null in it has no answer.
        """
        try:
            return self._solve(predicate, mode, asked, at)
        except BaseException:
            self.solver.forget()
            raise

    def _solve(self, predicate: Predicate, mode: Mode, asked: Sequence[Array], at: Array) -> tuple[Array, list[Array]]:
        count, places = len(at), tuple(i for i, bound in enumerate(mode) if bound)
        if predicate not in self.clauses:
            facts = self.relations.get(predicate)
            if facts is None:
                return NONE, [NONE] * predicate[1]
            return facts.find(places, asked, count, at)
        at = self._epochs(predicate, at)
        if count and self.indexed(predicate, int(at.min())):
            return self._reached(predicate, mode, asked, count)
        whole = self._all_of(predicate, count)
        if whole is not None:
            which, rows = whole.find(tuple(i + 1 for i in places), list(asked), count)
            return which, [whole.data[i + 1, rows] for i in range(predicate[1])]
        return self.solver.solve(predicate, mode, asked, at)

    def near_by(self, context: Context, where: Sequence[Condition], frame: Frame) -> tuple[Compare, Frame] | None:
        return near_by(self, context, where, frame, lambda codes: codes)

    # Times: between two changes of the facts below a predicate its answers are the same

    def below(self, predicate: Predicate) -> set[Predicate]:
        """The predicates that a predicate rests on, itself included."""
        found = self._below.get(predicate)
        if found is None:
            found, open_ = {predicate}, [predicate]
            while open_:
                for target in self.reads.get(open_.pop(), ()):
                    if target not in found:
                        found.add(target)
                        open_.append(target)
            self._below[predicate] = found
        return found

    def bounds(self, predicate: Predicate) -> Array:
        """The times at which answers of a predicate may change, in order."""
        found = self._bounds.get(predicate)
        if found is None:
            parts = [r.bounds for p in self.below(predicate) if (r := self.relations.get(p)) is not None]
            parts = [bounds for bounds in parts if len(bounds)]
            found = parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts)) if parts else NONE
            self._bounds[predicate] = found
        return found

    def _epochs(self, predicate: Predicate, at: Array) -> Array:
        bounds = self.bounds(predicate)
        if not len(bounds):
            return np.full(len(at), FAR, np.int64)
        place = np.searchsorted(bounds, at, side="right") - 1
        return np.where(place < 0, FAR, bounds[place])

    def _tip(self, predicate: Predicate) -> int:
        bounds = self.bounds(predicate)
        return int(bounds[-1]) if len(bounds) else FAR

    # Transitive closures

    def indexed(self, predicate: Predicate, at: int) -> bool:
        """Whether there is an index of reachability that says what holds from a time on."""
        edge = self.closures.get(predicate)
        return edge is not None and at >= self._tip(predicate) and not self._odd(edge, predicate)

    def _odd(self, edge: Predicate, predicate: Predicate) -> bool:
        """Whether an index would not say exactly what the rules say: null joins with nothing, and 1.0 is written so."""
        if (
            edge in self.clauses
            and predicate not in self.relations
            and self.is_plain(edge)
            and not len(self.bounds(edge))
        ):
            return self._plain_edges(edge) is None
        facts = self.relations.get(edge)
        return (
            predicate in self.relations
            or edge in self.clauses
            or (facts is not None and (facts.nulls or facts.whole_floats))
        )

    def _reached(
        self, predicate: Predicate, mode: Mode, asked: Sequence[Array], count: int
    ) -> tuple[Array, list[Array]]:
        reach = self.reach(predicate)
        canonical = [self.words.canonical(c) for c in asked]
        match mode:
            case (True, True):
                which = np.flatnonzero(reach.reaches(canonical[0], canonical[1]))
                return which, [asked[0][which], asked[1][which]]
            case (True, False):
                which, nodes = reach.targets(canonical[0])
                return which, [asked[0][which], nodes]
            case (False, True):
                which, nodes = reach.sources(canonical[0])
                return which, [nodes, asked[0][which]]
        source, target = reach.everything()
        which = np.repeat(np.arange(count), len(source))
        return which, [np.tile(source, count), np.tile(target, count)]

    def reach(self, predicate: Predicate) -> Reach:
        """The index of a transitive predicate over the facts that hold last."""
        found = self._reach.get(predicate)
        if found is None:
            edge = self.closures[predicate]
            facts = self.relations.get(edge)
            if edge in self.clauses:
                source, target = self._plain_edges(edge) or (NONE, NONE)
            else:
                source, target = facts.standing(self._tip(predicate)) if facts is not None else (NONE, NONE)
            count_work(len(source))
            found = self._reach[predicate] = Reach(source, target)
        return found

    def _plain_edges(self, edge: Predicate) -> tuple[Array, Array] | None:
        """All answers of rules that are the edges of a closure; None where they are too many, or some is odd."""
        if edge not in self._edges:
            found = self._materialised(edge, _MANY) if self._facts_below(edge) <= _MANY else None
            codes = None if found is None else found.data[1:3, : found.n]
            odd = codes is None or bool(self.words.is_null(codes.ravel()).any() or ((codes & 3) == 2).any())
            self._edges[edge] = None if odd or codes is None else (codes[0], codes[1])
        return self._edges[edge]

    def edge(self, predicate: Predicate, codes: Array, holds: bool) -> None:
        """Facts have come to hold, or hold no longer, from some time on without end."""
        for closure, edge in self.closures.items():
            if edge == predicate and closure in self._reach and codes.shape[1]:
                source, target = codes[0].copy(), codes[1].copy()
                (self._reach[closure].add if holds else self._reach[closure].remove)(source, target)

    # All answers at once

    def _all_of(self, predicate: Predicate, count: int) -> Distinct | None:
        """All answers of a predicate, where they can be had without a call and are no more than the calls are worth."""
        if predicate in self._whole:
            return self._whole[predicate]
        if not self.is_plain(predicate) or len(self.bounds(predicate)):
            self._whole[predicate] = None
            return None
        if self._facts_below(predicate) <= FEW:
            self._whole[predicate] = self._materialised(predicate, _MOST)
            return self._whole[predicate]
        self._asked[predicate] = self._asked.get(predicate, 0) + count
        size = self._size(predicate) if self._asked[predicate] * _WORTH >= FEW else None
        if size is not None and size <= min(_MANY, self._asked[predicate] * _WORTH):
            self._whole[predicate] = self._materialised(predicate, None)
            return self._whole[predicate]
        return None

    def _materialised(self, predicate: Predicate, most: int | None) -> Distinct | None:
        """All answers; None where the attempt comes to more than `most` rows."""
        self.solver.most = most
        try:
            self.solver.solve(predicate, (False,) * predicate[1], [], np.array([FAR], np.int64))
            found = self.solver.tables.pop((predicate, (False,) * predicate[1])).answers
            found.shrink()
            return found
        except TooMany:
            self.solver.forget()
            return None
        finally:
            self.solver.most = None

    def _size(self, predicate: Predicate) -> int | None:
        """How many answers a predicate has at most, where it is facts, or joins two of them; None where that is open."""
        if predicate not in self._sizes:
            known = self.relations.get(predicate)
            sizes = [0 if known is None else len(known), *map(self._joined_size, self.clauses[predicate])]
            self._sizes[predicate] = None if None in sizes else sum(s for s in sizes if s is not None)
        return self._sizes[predicate]

    def _joined_size(self, clause: Clause) -> int | None:
        calls = [c for c in clause.body if isinstance(c, Holds)]
        if not calls or len(calls) > 2 or any((c.name, len(c.args)) in self.clauses for c in calls):
            return None
        tables = [r for c in calls if (r := self.relations.get((c.name, len(c.args)))) is not None]
        if len(tables) < len(calls):
            return 0
        if len(calls) == 1:
            return len(tables[0])
        shared = [a.name for a in calls[0].args if isinstance(a, Var) and a in calls[1].args]
        if not shared:
            return len(tables[0]) * len(tables[1])
        counts = []
        for call, table in zip(calls, tables, strict=True):
            place = next(i for i, a in enumerate(call.args) if isinstance(a, Var) and a.name == shared[0])
            codes: Array = self.words.canonical(table.rows.data[place, : table.rows.n])
            counts.append(np.unique(codes, return_counts=True))
        _, left, right = np.intersect1d(counts[0][0], counts[1][0], assume_unique=True, return_indices=True)
        return int((counts[0][1][left] * counts[1][1][right]).sum())

    def _facts_below(self, predicate: Predicate) -> int:
        return sum(len(self.relations[p]) for p in self.below(predicate) if p in self.relations)

    def is_plain(self, predicate: Predicate) -> bool:
        """Whether a predicate and all below it just join facts: nothing that may fail, commit or need an argument."""
        return all(is_plain(clause) for p in self.below(predicate) for clause in self.clauses.get(p, ()))

    # Housekeeping

    def tidy(self) -> None:
        """Between questions: what has grown too large is forgotten."""
        if self.solver.size > _TABLED:
            self.solver.forget()
        if self.words.n > 2 * self._kept_words + _FOREIGN:
            self._forget_values()

    def _forget_values(self) -> None:
        """Forgets the values that no fact has: they came with calls."""
        self.forget()
        self.near.clear()
        tables = [facts.rows for facts in self.relations.values()]
        smaller, moved = self.words.without([rows.data[:, : rows.n].ravel() for rows in tables])
        for rows in tables:
            codes = rows.data[:, : rows.n]
            odd = (codes & 1).astype(bool)
            codes[odd] = moved[codes[odd] >> 1]
            rows.data[:, : rows.n] = codes
        self.words = self.context.dictionary = smaller
        for facts in self.relations.values():
            facts.rehash(smaller)
        self._kept_words = smaller.n

    def forget(self, changed: Iterable[Predicate] | None = None) -> None:
        """Forgets what was found out, or what rests on facts that have changed."""
        if changed is None:
            touched = None
        else:
            names = set(changed)
            touched = {p for p in self.clauses if self.below(p) & names}
        self.solver.forget(touched)
        for closure in list(self._reach):
            if touched is None or self.closures[closure] in touched:  # edges that are facts follow by themselves
                del self._reach[closure]
        for found in (self._whole, self._bounds, self._asked, self._sizes, self._edges):
            for predicate in list(found) if touched is None else [p for p in found if p in touched]:
                del found[predicate]
