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

from augury.algebra.answering import divided, is_plain, reads_of
from augury.algebra.matching import Scalars
from augury.algebra.nodes import Clause, Compare, Condition
from augury.algebra.plan import Predicate
from augury.algebra.strata import below, components
from augury.core.arrays import Array
from augury.core.bounds import TIME_LIMIT
from augury.core.jit import count_work
from augury.core.model import Fact
from augury.knowledge.fact_table import FactTable, tables_of
from augury.knowledge.facts import Facts
from augury.knowledge.near import PointIndex
from augury.knowledge.nearby import near_by
from augury.knowledge.solving.changing import ChangingFacts
from augury.knowledge.solving.closures import Closures
from augury.knowledge.solving.expand import expanded
from augury.knowledge.solving.materialise import Materialised
from augury.knowledge.solving.relation import FactRelation
from augury.knowledge.solving.solve import Mode, Solver, untouched
from augury.knowledge.timeline import StatementTable
from augury.storage.conditions import Context, Report
from augury.storage.dictionary import Dictionary
from augury.storage.frame import Frame
from augury.storage.table import NONE
from augury.storage.unique import unique

_TABLED = 4_000_000  # rows of tabled answers, after which all are forgotten
_FOREIGN = 1_000_000  # values in the dictionary beside those of facts, after which they are forgotten


class Knowledge:
    """The facts and static rules of a run."""

    def __init__(self, clauses: Iterable[Clause], facts: Iterable[Fact], scalars: Scalars, report: Report) -> None:
        self.words = Dictionary()
        self.context = Context(scalars, self, self.words, report)
        self.relations: dict[Predicate, FactRelation] = {}
        self.clauses, table_rules = divided(clauses)
        self.reads = reads_of(self.clauses.values())
        self.component = {p: number for number, group in enumerate(components(self.clauses, self.reads)) for p in group}
        for predicate, listed in self.clauses.items():
            group = {p for p, number in self.component.items() if number == self.component[predicate]}
            self.clauses[predicate] = [item for clause in listed for item in expanded(clause, group)]
        self.solver = Solver(self)
        self.closures = Closures(self)
        self.materialised = Materialised(self)
        self.changes = ChangingFacts(self)
        self.near: dict[tuple[str, int, int, int], tuple[int, PointIndex | None]] = {}  # facts by places on the sphere
        self._bounds: dict[Predicate, Array] = {}
        self._below: dict[Predicate, set[Predicate]] = {}
        self.version = 0  # how often facts have changed
        self._kept_words = 0
        self._recoding: tuple[Dictionary, list[tuple[FactRelation, Array]]] | None = None
        for table in tables_of(table_rules):
            self.load(table)
        for statements in Facts.of(facts).statement_tables:
            self.load(statements)
        self._kept_words = self.words.n
        for relation in self.relations.values():
            relation.began_with = relation.rows.n

    def load(self, table: FactTable | StatementTable) -> None:
        """A table of facts, or of statements about them, that is there before anything is asked."""
        if isinstance(table, FactTable):
            count_work(len(table))
            self.relation(table.name, table.arity).load(table)
        elif table.retract is None:
            self.load(table.facts)
        else:
            self.changes.apply(table)
            self.changes.commit()

    def relation(self, name: str, arity: int) -> FactRelation:
        result = self.relations.get((name, arity))
        if result is None:
            result = self.relations[name, arity] = FactRelation(name, arity, self.words)
        return result

    # Questions

    def solve(
        self, predicate: Predicate, mode: Mode, asked: Sequence[Array], times: Array
    ) -> tuple[Array, list[Array]]:
        """Pairs of a question and an answer, as its columns: codes of the dictionary of knowledge.

        `asked` has a column for each argument that is bound. A question with null in it has no answer.
        """
        try:
            return self._solve(predicate, mode, asked, times)
        except BaseException:
            self.solver.forget()
            raise

    def _solve(
        self, predicate: Predicate, mode: Mode, asked: Sequence[Array], times: Array
    ) -> tuple[Array, list[Array]]:
        count, places = len(times), tuple(i for i, bound in enumerate(mode) if bound)
        if predicate not in self.clauses:
            facts = self.relations.get(predicate)
            if facts is None:
                return NONE, [NONE] * predicate[1]
            return facts.find(places, asked, count, times)
        times = self._epochs(predicate, times)
        if count and self.closures.answers(predicate, int(times.min())):
            return self.closures.solve(predicate, mode, asked, count)
        answers = self.materialised.answers(predicate, count)
        if answers is not None:
            which, rows = answers.find(tuple(i + 1 for i in places), list(asked), count)
            return which, [answers.data[i + 1, rows] for i in range(predicate[1])]
        return self.solver.solve(predicate, mode, asked, times)

    def near_by(self, context: Context, where: Sequence[Condition], frame: Frame) -> tuple[Compare, Frame] | None:
        return near_by(self, context, where, frame, lambda codes: codes)

    # Times: between two changes of the facts below a predicate its answers are the same

    def bounds(self, predicate: Predicate) -> Array:
        """The times at which answers of a predicate may change, in order."""
        result = self._bounds.get(predicate)
        if result is None:
            parts = [r.bounds for p in self.below(predicate) if (r := self.relations.get(p)) is not None]
            parts = [bounds for bounds in parts if len(bounds)]
            result = parts[0] if len(parts) == 1 else unique(np.concatenate(parts)) if parts else NONE
            self._bounds[predicate] = result
        return result

    def _epochs(self, predicate: Predicate, times: Array) -> Array:
        bounds = self.bounds(predicate)
        if not len(bounds):
            return np.full(len(times), -TIME_LIMIT, np.int64)
        position = np.searchsorted(bounds, times, side="right") - 1
        return np.where(position < 0, -TIME_LIMIT, bounds[position])

    def last_bound(self, predicate: Predicate) -> int:
        """The time from which on answers of a predicate no longer change."""
        bounds = self.bounds(predicate)
        return int(bounds[-1]) if len(bounds) else -TIME_LIMIT

    # What predicates rest on

    def below(self, predicate: Predicate) -> set[Predicate]:
        """The predicates that a predicate rests on, itself included."""
        result = self._below.get(predicate)
        if result is None:
            result = self._below[predicate] = below(predicate, self.reads)
        return result

    def facts_below(self, predicate: Predicate) -> int:
        return sum(len(self.relations[p]) for p in self.below(predicate) if p in self.relations)

    def is_plain(self, predicate: Predicate) -> bool:
        """Whether a predicate and all below it just join facts: nothing that may fail, commit or need an argument."""
        return all(is_plain(clause) for p in self.below(predicate) for clause in self.clauses.get(p, ()))

    # Housekeeping

    def tidy(self, foreign: int | None = None) -> None:
        """Between questions: what has grown too large is forgotten, such as values beyond so many that no fact has."""
        self._recode()
        if self.solver.size > _TABLED:
            self.solver.forget()
        if self.words.n > 2 * self._kept_words + (_FOREIGN if foreign is None else foreign):
            self._forget_values()

    def _forget_values(self) -> None:
        """Forgets the values that no fact has: they came with calls."""
        self.forget()
        self.near.clear()
        facts = list(self.relations.values())
        smaller, moved = self.words.without([fact.rows.data[:, : fact.rows.n].ravel() for fact in facts])
        recoded = []
        for fact in facts:
            codes = fact.rows.data.copy()
            codes[:, fact.rows.n :] = 0
            odd = (codes & 1).astype(bool)
            codes[odd] = moved[codes[odd] >> 1]
            recoded.append((fact, codes))
        self._recoding = (smaller, recoded)
        self._recode()

    def _recode(self) -> None:
        """Goes over to another dictionary, once all is made anew. It may be broken off and called again."""
        if self._recoding is None:
            return
        smaller, recoded = self._recoding
        for relation, codes in recoded:
            relation.recode(smaller, codes)
        self.words = self.context.dictionary = smaller
        self._kept_words = smaller.n
        self._recoding = None

    def undo(self, words: Dictionary, mark: tuple[int, int]) -> None:
        """Restores the facts of the beginning of a step, and forgets the values that came since then."""
        self._recode()
        self.changes.undo()
        if self.words is words and words.n > mark[0]:
            self.solver.forget(None)  # answers may have values that are forgotten now
            self.materialised.forget(None)
            self.closures.forget(None)
            words.cut(mark)

    @property
    def learned(self) -> int:
        """How many facts there are beyond those that were there when the run began."""
        return sum(max(0, len(relation) - relation.began_with) for relation in self.relations.values())

    @property
    def bytes(self) -> int:
        """Bytes of facts, of their values, and of what is derived from them."""
        return self.words.bytes + sum(relation.bytes for relation in self.relations.values()) + self.solver.bytes

    def forget(self, changed: Iterable[Predicate] | None = None) -> None:
        """Forgets what was found out, or what rests on facts that have changed."""
        names = None if changed is None else set(changed)
        touched = None if names is None else {p for p in self.clauses if self.below(p) & names}
        self._bounds = untouched(self._bounds, touched)
        for part in (self.solver, self.closures, self.materialised):
            part.forget(touched)
