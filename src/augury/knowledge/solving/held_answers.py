"""When facts hold, as maximal intervals, and which answers of static rules a change of facts may concern."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from augury.algebra.kinds import atoms_in
from augury.algebra.plan import Predicate
from augury.algebra.terms import Var
from augury.core.arrays import Array, RowIds, Times
from augury.knowledge.fact_table import ALWAYS, EVER
from augury.knowledge.solving.relation import FactRelation
from augury.storage.grouping import by_group, expand_ranges
from augury.storage.kernels import entries as k
from augury.storage.rows import firsts
from augury.storage.unique import unique

if TYPE_CHECKING:
    from augury.knowledge.knowledge_base import Knowledge
    from augury.storage.dictionary import Dictionary

_PORTION = 1 << 17  # questions that are asked together
Places = frozenset[tuple[int, int]]  # an argument of a fact, and the argument of the predicate that has its value


class Intervals(NamedTuple):
    """Intervals `[start, end)`, each of one of several facts, or questions."""

    owner: RowIds
    start: Times
    end: Times


class Regions(NamedTuple):
    """Where answers may have changed: those with values (`columns`) at some arguments (`places`), from `lo` to before `hi`."""

    places: tuple[int, ...]
    columns: list[Array]
    lo: Times
    hi: Times


def merged(owner: RowIds, start: Times, end: Times) -> Intervals:
    """The maximal intervals that intervals of each owner make; those of one owner lie side by side, or apart."""
    order = by_group(owner, start)
    owner, start, end = owner[order], start[order], end[order]
    new = np.ones(len(owner), bool)
    new[1:] = (owner[1:] != owner[:-1]) | (start[1:] > end[:-1])
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(owner)) - 1
    return Intervals(owner[first], start[first], end[last] if len(owner) else end)


def fact_intervals(relation: FactRelation, rows: RowIds, lo: Times | int = ALWAYS, hi: Times | int = EVER) -> Intervals:
    """When facts hold from `lo` to before `hi`."""
    lo, hi = (np.broadcast_to(np.asarray(x, np.int64), len(rows)) for x in (lo, hi))
    lines = relation.timelines
    has_timeline = lines.has(rows) if relation.timed else np.zeros(len(rows), bool)
    plain = np.flatnonzero(~has_timeline & relation.rows.alive[rows].astype(bool))
    since, until = (np.full(len(plain), x, np.int64) for x in (ALWAYS, EVER))
    if relation.since is not None and relation.until is not None:
        since, until = relation.since[rows[plain]], relation.until[rows[plain]]
    lined = np.flatnonzero(has_timeline)
    first, count, _ = lines.places[:, rows[lined]]
    times = lines.entries[k.TIME]
    begin = np.maximum(bisect(times, first, first + count, lo[lined], right=True) - 1, first)
    end = bisect(times, first, first + count, hi[lined])
    sizes = np.maximum(end - begin, 0)
    entry, owner = expand_ranges(begin, sizes), np.repeat(lined, sizes)
    after = np.where(entry + 1 < np.repeat(first + count, sizes), entry + 1, entry)
    following = np.where(after > entry, times[after], EVER)
    owner = np.concatenate([plain, owner])
    start = np.concatenate([since, times[entry]])
    end = np.concatenate([until, np.minimum(lines.entries[k.REACH, entry], following)])
    start, end = np.maximum(start, lo[owner]), np.minimum(end, hi[owner])
    held = start < end
    return merged(owner[held], start[held], end[held])


def bisect(values: Array, first: Array, last: Array, wanted: Array, right: bool = False) -> Array:
    """As `np.searchsorted`, each in a slice of its own."""
    lo, hi = first.copy(), last.copy()
    while (open_ := lo < hi).any():
        middle = (lo + hi) // 2
        middles = values[np.where(open_, middle, 0)]
        below = open_ & ((middles <= wanted) if right else (middles < wanted))
        lo, hi = np.where(below, middle + 1, lo), np.where(open_ & ~below, middle, hi)
    return lo


class HeldAnswers:
    """When answers of static rules hold: asked again just where, and for which values, facts below them have changed.

    A changed fact gives values to those arguments of the predicate that its own are passed on from:

        both(X) :- on(X), loud(X).      a change of on('a') concerns both('a'), between the times at which on('a')
                                        or loud('a') change
    """

    def __init__(self, knowledge: Knowledge, predicate: Predicate) -> None:
        self.knowledge, self.predicate = knowledge, predicate
        self.reads: dict[Predicate, list[Places]] = {}
        for read, places in self._reads():
            self.reads.setdefault(read, []).append(places)

    def _reads(self) -> Iterable[tuple[Predicate, Places]]:
        """The predicates below this one, and which arguments are passed on."""
        whole = self.predicate, frozenset((i, i) for i in range(self.predicate[1]))
        reached, open_ = {whole}, [whole]
        while open_:
            predicate, places = open_.pop()
            for clause in self.knowledge.clauses.get(predicate, ()):
                passed: dict[str, set[int]] = {}
                for mine, its in places:
                    arg = clause.args[mine]
                    if isinstance(arg, Var):
                        passed.setdefault(arg.name, set()).add(its)
                for atom in (atom for condition in clause.body for atom in atoms_in(condition)):
                    args = [(i, arg.name) for i, arg in enumerate(atom.args) if isinstance(arg, Var)]
                    below = atom.predicate, frozenset((i, its) for i, name in args for its in passed.get(name, ()))
                    if below not in reached:
                        reached.add(below)
                        open_.append(below)
        return reached

    def everywhere(self) -> list[Regions]:
        """Regions that have all answers: those of each fact, and those that rest on no fact."""
        answers = self._at((), [], np.zeros(1, np.int64), np.array([ALWAYS]))
        count = len(answers[0])
        always = Regions(tuple(range(self.predicate[1])), answers[1], np.full(count, ALWAYS), np.full(count, EVER))
        regions = [always] if count else []
        for predicate in self.reads:
            relation = self.knowledge.relations.get(predicate)
            if relation is not None and relation.rows.n:
                rows = np.arange(relation.rows.n)
                regions += self.regions(predicate, rows, np.full(len(rows), ALWAYS), np.full(len(rows), EVER))
        return regions

    def regions(self, predicate: Predicate, rows: RowIds, lo: Times, hi: Times) -> list[Regions]:
        """Where answers may have changed, because facts have."""
        data, regions = self.knowledge.relations[predicate].rows.data, list[Regions]()
        for places in _least(self.reads.get(predicate, ())):
            of = {its: mine for mine, its in sorted(places, reverse=True)}
            columns = [data[of[its], rows] for its in sorted(of)]
            null = np.zeros(len(rows), bool)  # a question with null has no answer: those are asked without
            for column in columns:
                null |= self.knowledge.words.is_null(column)
            some = np.flatnonzero(~null)
            regions.append(Regions(tuple(sorted(of)), [c[some] for c in columns], lo[some], hi[some]))
            if null.any():
                regions.append(Regions((), [], lo[null], hi[null]))
        return regions

    def ask(self, regions: Regions) -> tuple[Intervals, list[Array]]:
        """The answers in regions: pieces of time in which they hold, each of a region, with their columns."""
        region, times = self._times(regions)
        until = regions.hi[region]
        same = np.flatnonzero(region[1:] == region[:-1])
        until[same] = times[same + 1]
        which, columns = self._at(regions.places, regions.columns, region, times)
        return Intervals(region[which], times[which], until[which]), columns

    def _at(
        self, places: tuple[int, ...], columns: list[Array], region: RowIds, times: Times
    ) -> tuple[Array, list[Array]]:
        """The answers at times, each as the number of its question, and their columns."""
        mode = tuple(i in places for i in range(self.predicate[1]))
        owners, pieces_of = [np.empty(0, np.int64)], [[np.empty(0, np.int64)] for _ in mode]
        for first in range(0, len(times), _PORTION):
            some = region[first : first + _PORTION]
            which, answers = self.knowledge.solve(
                self.predicate, mode, [column[some] for column in columns], times[first : first + _PORTION]
            )
            owners.append(which + first)
            for pieces, answer in zip(pieces_of, answers, strict=True):
                pieces.append(answer)
        return np.concatenate(owners), [np.concatenate(pieces) for pieces in pieces_of]

    def _times(self, regions: Regions) -> tuple[Array, Array]:
        """The times at which to ask in each region: its beginning, and where facts below change in it."""
        every = np.arange(len(regions.lo))
        region, times = [every], [regions.lo]
        column_of = dict(zip(regions.places, regions.columns, strict=True))
        for predicate, reads in self.reads.items():
            relation = self.knowledge.relations.get(predicate)
            if relation is None or not relation.timed:
                continue
            bound = [frozenset((mine, its) for mine, its in places if its in column_of) for places in reads]
            for places in _least(bound):
                of = dict(sorted(places))
                if not of:
                    changes = _changes(relation)
                    first, last = np.searchsorted(changes, regions.lo), np.searchsorted(changes, regions.hi)
                    region.append(np.repeat(every, last - first))
                    times.append(changes[expand_ranges(first, last - first)])
                    continue
                which, rows = relation.rows.find(tuple(of), [column_of[its] for its in of.values()], len(every))
                held = fact_intervals(relation, rows, regions.lo[which], regions.hi[which])
                region += [which[held.owner]] * 2
                times += [held.start, held.end]
        owner, region_times = np.concatenate(region), np.concatenate(times)
        inside = (region_times >= regions.lo[owner]) & (region_times < regions.hi[owner])
        owner, region_times = owner[inside], region_times[inside]
        order = by_group(owner, region_times)
        owner, region_times = owner[order], region_times[order]
        new = np.ones(len(region_times), bool)
        new[1:] = (owner[1:] != owner[:-1]) | (region_times[1:] != region_times[:-1])
        return owner[new], region_times[new]


def _least(reads: Iterable[Places]) -> list[Places]:
    """Those that no other one is a part of: with fewer values a fact concerns more."""
    different = set(reads)
    return [places for places in different if not any(other < places for other in different)]


def _changes(relation: FactRelation) -> Times:
    """The times at which some fact begins or ends to hold."""
    held = fact_intervals(relation, np.arange(relation.rows.n))
    return unique(np.concatenate([held.start, held.end]))


def joined_regions(regions: Iterable[Regions], words: Dictionary) -> list[Regions]:
    """Regions by the arguments that they have values of; those with equal values are one, from first to last."""
    by_places: dict[tuple[int, ...], list[Regions]] = {}
    for region in regions:
        by_places.setdefault(region.places, []).append(region)
    result: list[Regions] = []
    for places, same in by_places.items():
        lo, hi = np.concatenate([region.lo for region in same]), np.concatenate([region.hi for region in same])
        columns = [np.concatenate([region.columns[i] for region in same]) for i in range(len(places))]
        if not len(lo):
            continue
        first, group = firsts(columns, len(lo), words)
        least, most = lo[first], hi[first]
        np.minimum.at(least, group, lo)
        np.maximum.at(most, group, hi)
        result.append(Regions(places, [column[first] for column in columns], least, most))
    return result
