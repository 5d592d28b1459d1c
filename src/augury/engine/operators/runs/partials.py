"""Partial matches of a run: from an event to those that may follow it, never all pairs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.nodes import Compare, Condition, Link, Run, condition_labels
from augury.algebra.ready import ready_order
from augury.algebra.terms import Aggregate, Const, Expr, Prev, Var
from augury.columns.dictionary import NULL
from augury.columns.frame import View
from augury.columns.table import END, LEFT, NONE, RIGHT, START, Links, Table, grown
from augury.engine.operators.base import NOT_THERE, Operator, Part, Waiting, Ways
from augury.engine.operators.runs import kernels as k
from augury.engine.operators.runs.moments import Moments
from augury.engine.operators.runs.sight import Members, Question, Sight, bound_in_parts, has_earlier, once, question
from augury.engine.saved import check_numbers, require
from augury.jit import Array

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit
    from augury.engine.horizon import Horizon

_PORTION = 1 << 16
_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_EVER = 1 << 61  # longer than all times are apart


@dataclass(frozen=True)
class Move:
    """From an iteration of a part to the next one, of the same part or of a later one."""

    source: int
    target: int
    link: Link
    questions: tuple[Question, ...]  # that the two iterations alone can answer
    later: tuple[Question, ...]  # that depend on more of the match
    agree: tuple[str, ...]  # variables that both iterations have, and that must be equal
    agree_later: tuple[str, ...]  # variables that an earlier part has


class Moves:
    """The moves of a run, and how each is found: along edges that the two events alone decide, or by asking."""

    def __init__(self, run: Run, views: tuple[View, ...]) -> None:
        self.run, self.bound = run, bound_in_parts(run, views)
        self.results = {result.name: result for result in run.results}
        self.all = tuple(self._all(views))
        count = len(run.parts)
        asks = [bool(m.questions or m.later or m.agree or m.agree_later) for m in self.all]
        seq = {m.target for m in self.all if m.link == "SEQ"}
        asking = {m.target for m, asked in zip(self.all, asks, strict=True) if m.link == "THEN" and asked} | seq
        choosy = [m.link == "THEN" and m.target in asking for m in self.all]
        self.choosy = sum(1 << i for i, one in enumerate(choosy) if one)  # moves to the soonest that an answer leaves
        self.chosen = self.choosy | sum(1 << i for i, m in enumerate(self.all) if m.later or m.agree_later)
        self.next = any(m.link == "NEXT" for m in self.all)
        # What leads to a part by moves that are no NEXT: 1 what no other moment of it lies behind, 2 all.
        self.leads = np.zeros(count, np.int64)
        for move, all_lead in zip(self.all, choosy, strict=True):
            if move.link != "NEXT":
                kind = 2 if all_lead or move.link == "SEQ" else 1
                self.leads[move.target] = max(int(self.leads[move.target]), kind)
        self.starts = tuple(
            (j, tuple(q for c in self.where(j) if (q := question(c, True)).of_first))
            for j in range(count)
            if all(part.optional for part in run.parts[:j])
        )

    def where(self, part: int) -> list[Condition]:
        return ready_order(self.run.parts[part].where, self.bound)

    def _all(self, views: tuple[View, ...]) -> Iterator[Move]:
        parts = self.run.parts
        for i, source in enumerate(parts):
            for j in range(i, len(parts)):
                if (j == i and not source.repeats) or not all(part.optional for part in parts[i + 1 : j]):
                    continue
                target = parts[j]
                asked = [q for c in self.where(j) if (q := question(c, j != i)).of_first or j == i]
                alone = [q for q in asked if self._alone(q, i, j, views)]
                shared = {v for v in views[j].vars if v not in target.own and v not in self.run.key}
                shared &= {v for m in range(j) for v in views[m].vars if v not in parts[m].own} | set(
                    shared if i == j else ()
                )
                agree = {v for v in shared if v in views[i].vars and v not in source.own}
                yield Move(
                    i, j, target.between if i == j else target.link, tuple(alone),
                    tuple(q for q in asked if q not in alone), tuple(sorted(agree)), tuple(sorted(shared - agree)),
                )  # fmt: skip

    def _alone(self, asked: Question, i: int, j: int, views: tuple[View, ...]) -> bool:
        """Whether two iterations are all that a condition needs."""
        parts = self.run.parts
        seen = set(views[j].vars) | {v for v in views[i].vars if v not in parts[i].own}
        labels = {parts[j].label} | ({parts[i].label} if not parts[i].repeats else set())
        bound_here = {v for c in parts[j].where for v in condition_vars_bound(c, self.bound)}
        needs = asked.needs - {r.name for r in self.run.results if self._is_last(r.name, i)}
        if any(isinstance(p, Aggregate) for _, p in asked.hidden) or not needs <= seen | bound_here:
            return False
        for m, part in enumerate(parts):  # whether a part was left out that it is written with
            names = {v for v in views[m].vars if v not in part.own} | {part.label}
            if m not in (i, j) and part.optional and asked.present & (names - seen - labels):
                return False
        for _, p in asked.hidden:
            assert isinstance(p, Prev)
            from augury.algebra.terms import labels as labels_in
            from augury.algebra.terms import variables

            if not variables(p.of) <= set(views[j].vars) or not labels_in(p.of) <= {parts[j].label}:
                return False
        return condition_labels(asked.condition) <= labels

    def _is_last(self, name: str, part: int) -> bool:
        found = self.results.get(name)
        return (
            found is not None
            and found.part == part
            and found.aggregate.function == "last"
            and not found.aggregate.distinct
            and not has_earlier(found.aggregate)
        )


class Edges(Operator):
    """The events that may follow each other in a run, as edges from moment to moment.

    An edge leads from a moment to one that may follow it by some moves: to neighbours by NEXT, to the soonest of a part by
    THEN, to all later ones by SEQ. When a moment comes or goes, the edges of those behind it are looked at again.
    """

    def __init__(
        self, circuit: Circuit, run: Run, moments: Moments, views: tuple[View, ...], out: View, rule: str
    ) -> None:
        self.run, self.moments, self.sight = run, moments, Sight(circuit, run, moments, views, rule)
        count = len(run.parts)
        super().__init__(circuit, (moments.out,), out, rule)
        moves = Moves(run, views)
        self.bound, self.where, self.moves = moves.bound, moves.where, moves.all
        self.choosy, self.chosen, self.next, self.leads, self.starts = (
            moves.choosy,
            moves.chosen,
            moves.next,
            moves.leads,
            moves.starts,
        )
        require_few(self.moves, count, rule)
        self.ends = np.array([[m.source for m in self.moves], [m.target for m in self.moves]], np.int64).reshape(2, -1)
        self.least = np.array([part.least for part in run.parts], np.int64)
        self.most = np.array([-1 if part.most is None else part.most for part in run.parts], np.int64)
        length = circuit.clock.length
        self.longest = min((length(window) for window in run.windows), default=_EVER)
        self.fields = np.array(moments.row_fields, np.int64)
        for condition in (c for part in run.parts for c in (*part.where, *part.after)):
            circuit.asks(self, (condition,))
        self._clear()

    def make_links(self) -> list[Links | None]:
        return []

    # Steps

    def _clear(self) -> None:
        self.edges, self.count = np.empty((5, 16), np.int64), 0
        self.into, self.out_of = np.full(16, -1, np.int64), np.full(16, -1, np.int64)
        self.lasts = 0  # of moments how long the longest lasts
        self.room = np.empty((3, 1024), np.int64)
        self.latest = np.empty(len(self.run.parts) + 1, np.int64)

    def relink(self, lost: Array, stale: Array, new: Array) -> tuple[Array, Array, Array]:
        """Takes in moments that are gone, that facts have changed for, and that are new. Moves of edges that are new, and
        moves that are no more; and the moments to which edges lead that may be others."""
        behind = [self._behind(lost)[1]] if len(lost) else []
        self.moments.index.extend()
        data = self.moments.out.table.data
        self._edge_room()
        targets, follow = new, np.empty((2, 0), np.int64)
        if len(new):
            self.lasts = max(self.lasts, int((data[END, new] - data[START, new]).max()))
            late = new[self._late(new)]
            if len(late):
                follow, near = self._behind(late)
                behind.append(near)
        if behind or len(stale):
            targets = np.unique(np.concatenate([new, *behind, stale]))
            targets = targets[self.moments.out.table.alive[targets].astype(bool)]
        if not len(targets) and not follow.shape[1]:
            return np.empty((2, 0), np.int64), np.empty((2, 0), np.int64), targets
        search = len(targets) > len(new) or follow.shape[1] > 0
        return (*self._relink(targets, follow, search), targets)

    def _edge_room(self) -> None:
        if len(self.into) < self.moments.out.table.n:
            size = len(self.moments.out.table.alive)
            self.into, self.out_of = (grown(a, size, len(a), -1) for a in (self.into, self.out_of))

    def _late(self, new: Array) -> Array:
        """Which new moments lie before some that were there."""
        first, n = int(new[0]), self.moments.out.table.n
        late = np.zeros(n - first, np.uint8)
        k.lies_before(first, n, self.moments.index.after, late)
        return late[new - first].astype(bool)

    # Edges

    def _behind(self, changed: Array) -> tuple[Array, Array]:
        """Pairs of a changed moment and a later one that it leads to by SEQ; and those whose edges are to be looked at."""
        table, index = self.moments.out.table, self.moments.index
        index.extend()
        at, found = 0, []
        while at < len(changed):
            came, count, touched = k.behind(
                changed, at, table.data, table.alive, index.after, self.fields, self.leads, self.lasts, self.latest, self.room
            )  # fmt: skip
            self.touched += touched
            found.append(self.room[:, :count].copy())
            if came < len(changed) and (count == 0 or self.room.shape[1] < _PORTION):
                self.room = np.empty((3, 4 * self.room.shape[1]), np.int64)
            at = came
        pairs = np.concatenate(found, axis=1)
        near = np.unique(pairs[1][pairs[2] > 0])
        far = pairs[2] == 0
        return pairs[:2, far], near

    def _relink(self, targets: Array, follow: Array, search: bool) -> tuple[Array, Array]:
        """Finds the edges into moments anew; moves that are new, and moves that are no more."""
        table, index = self.moments.out.table, self.moments.index
        at, found = 0, []
        while at < len(targets):
            came, count, touched = k.before(
                targets, at, table.data, table.alive, index.prev, self.fields, self.leads, self.next, self.longest,
                self.latest, self.room,
            )  # fmt: skip
            self.touched += touched
            self.circuit.tables.guard.paired(count)
            found.append(self.room[:, :count].copy())
            if came < len(targets) and (count == 0 or self.room.shape[1] < _PORTION):
                self.room = np.empty((3, 4 * self.room.shape[1]), np.int64)
            at = came
        pairs = np.concatenate([np.empty((3, 0), np.int64), *found], axis=1)
        if follow.shape[1]:
            kinds = np.zeros(follow.shape[1], np.int64)
            for part, link in enumerate(self.leads.tolist()):
                if link == 2:
                    kinds |= (table.data[self.fields[part], follow[1]] >= 0).astype(np.int64) * (2 << part)
            fits = table.data[END, follow[1]] - table.data[START, follow[0]] <= self.longest
            pairs = np.concatenate([pairs, np.stack([follow[0], follow[1], kinds])[:, fits]], axis=1)
        given = np.stack([pairs[0], pairs[1], self._bits(pairs)])
        given = np.ascontiguousarray(given[:, given[2] != 0])
        size = self.count + given.shape[1]
        if size > self.edges.shape[1]:
            self.edges = grown(self.edges, 2 * size, self.count)
        known = self.count + 1 if search else 1
        queue, cut = np.empty((2, given.shape[1] + known), np.int64), np.empty((2, known), np.int64)
        self.count, added, lost = k.relink(
            targets if search else NONE, given, search, self.edges, self.count, self.into, self.out_of, queue, cut
        )
        return np.ascontiguousarray(queue[:, :added]), np.ascontiguousarray(cut[:, :lost])

    def _bits(self, pairs: Array) -> Array:
        """By which moves each edge may be taken, as far as its two moments alone can tell."""
        bits = np.zeros(pairs.shape[1], np.int64)
        data = self.moments.out.table.data
        there = [(data[f, pairs[0]] >= 0, data[f, pairs[1]] >= 0) for f in self.fields.tolist()]
        cache: dict[tuple[int, int, str], Array | None] = {}
        for number, move in enumerate(self.moves):
            kind = k.NEIGHBOUR if move.link == "NEXT" else 2 << move.target
            fits = ((pairs[2] & kind) != 0) & there[move.source][0] & there[move.target][1]
            compared = self._compared(move, pairs, cache)
            if compared is not None:
                bits |= (fits & compared).astype(np.int64) << number
                continue
            rows = np.flatnonzero(fits)
            rows = rows[self._met(move, pairs[0, rows], pairs[1, rows])] if len(rows) else rows
            bits[rows] |= 1 << number
        return bits

    def _compared(self, move: Move, pairs: Array, cache: dict[tuple[int, int, str], Array | None]) -> Array | None:
        """Which edges meet a move's conditions, where these just compare numbers of its two moments; else None."""
        if move.agree or not move.questions:
            return None
        mask = np.ones(pairs.shape[1], bool)
        for asked in move.questions:
            condition = asked.condition
            if not isinstance(condition, Compare):
                return None
            left, right = (self._number(term, asked, move, pairs, cache) for term in (condition.left, condition.right))
            if left is None or right is None:
                return None
            mask &= _COMPARE[condition.op](left, right)
        return mask

    def _number(
        self, term: Expr, asked: Question, move: Move, pairs: Array, cache: dict[tuple[int, int, str], Array | None]
    ) -> Array | None:
        """The numbers that a variable has, one an edge: at its second moment, or as an earlier value at the first one."""
        if isinstance(term, Const):
            value = term.value
            return (
                value
                if isinstance(value, int | float) and abs(value) < 2**53 and value is not True and value is not False
                else None
            )
        if not isinstance(term, Var):
            return None
        earlier = dict(asked.hidden).get(term.name)
        found = self.sight.results.get(term.name)
        side, part, name = 1, move.target, term.name
        if earlier is not None or found is not None:
            of = earlier.of if isinstance(earlier, Prev) else found.aggregate.args[0] if found is not None else None
            if not isinstance(of, Var):
                return None
            side, part, name = 0, move.target if earlier is not None else move.source, of.name
        elif name not in self.sight.views[part].vars:
            side, part = 0, move.source
        view = self.sight.views[part]
        if name not in view.vars:
            return None
        if (side, part, name) not in cache:
            rows = self.moments.out.table.data[self.fields[part], pairs[side]]
            codes = view.table.data[view.vars[name], np.maximum(rows, 0)] if view.table.n else None
            numbers = None if codes is None else self.circuit.tables.dictionary.numeric(codes)
            exact = (
                numbers is None or numbers.dtype.kind == "f" or not len(numbers) or int(np.abs(numbers).max()) < 2**53
            )
            cache[side, part, name] = numbers if exact else None
        return cache[side, part, name]

    def _met(self, move: Move, sources: Array, targets: Array) -> Array:
        """Which pairs of iterations meet the conditions of a move that they alone decide."""
        kept = np.arange(len(targets))
        if not (move.questions or move.agree):
            return kept
        sight, i, j = self.sight, move.source, move.target
        end = self.moments.out.table.data[END, targets]
        at = {j: targets} if i == j else {j: targets, i: sources}
        named = {name for q in move.questions for name in q.needs | condition_labels(q.condition)}
        frame, has = sight.frame(at, end, j, named)
        words, mask = self.circuit.tables.dictionary, np.ones(len(targets), bool)
        if move.agree:
            before, _ = sight.frame({i: sources}, end, i, set(move.agree))
            now, _ = sight.frame({j: targets}, end, j, set(move.agree))
            for v in move.agree:
                agreed, _ = words.agree(before.vars[v], now.vars[v])
                mask &= agreed
        for asked in move.questions:
            for name, term in asked.hidden:
                assert isinstance(term, Prev)
                frame.vars[name], ok = sight.values(term.of, j, sources)
                mask &= ok
        for name in {r.name for q in move.questions for r in self.run.results if r.name in q.needs}:
            frame.vars[name], ok = sight.values(sight.results[name].aggregate.args[0], i, sources)
            mask &= ok
        if not mask.all():
            kept = np.flatnonzero(mask)
            frame, has = frame.take(kept), {n: c[kept] for n, c in has.items()}
        self.circuit.context.name_events = None
        for asked in move.questions:
            frame, kept = sight.ask((asked.condition,), frame, has, kept, self.bound | set(_hidden(asked)))
            has = {n: np.ones(len(kept), bool) for n in has}
        return once(kept)

    def _begun(self, new: Array) -> tuple[Array, Array]:
        """The moments that may be the first of a match, and as which part."""
        found, numbers = [], []
        data = self.moments.out.table.data
        for part, asked in self.starts:
            moments = new[data[self.fields[part], new] >= 0]
            if len(moments) and asked:
                moments = moments[self._may_begin(asked, part, moments)]
            found.append(moments)
            numbers.append(np.full(len(moments), part, np.int64))
        return np.concatenate(found), np.concatenate(numbers)

    def key_of(self, moment: int) -> dict[str, int]:
        """The key of a run, as codes."""
        data = self.moments.out.table.data
        return {v: int(data[f, moment]) for v, f in zip(self.run.key, self.moments.key_fields, strict=True)}

    def _may_begin(self, asked: tuple[Question, ...], part: int, moments: Array) -> Array:
        """Which moments meet what is asked of a first iteration that nothing comes before."""
        sight, end = self.sight, self.moments.out.table.data[END, moments]
        frame, has = sight.frame({part: moments}, end, part)
        kept, mask, bound = np.arange(len(moments)), np.ones(len(moments), bool), set(self.bound)
        single = Members(moments, np.arange(len(moments) + 1))
        for one in asked:
            for name, term in one.hidden:
                assert isinstance(term, Aggregate)
                frame.vars[name], ok = sight.aggregate(term, part, single)
                bound.add(name)
                mask &= ok
        for name in {
            name for one in asked for name in one.needs if name in sight.results
        }:  # of parts that are left out
            count = sight.results[name].aggregate.function == "count"
            frame.vars[name] = np.full(len(moments), self.circuit.context.encode(0) if count else NULL, np.int64)
        kept = kept[mask]
        frame, has = frame.take(kept), {n: c[kept] for n, c in has.items()}
        self.circuit.context.name_events = None
        for one in asked:
            frame, kept = sight.ask((one.condition,), frame, has, kept, bound)
            has = {n: np.ones(len(kept), bool) for n in has}
        return once(kept)

    # How long it keeps what

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        """Moments behind which something may still come or go that concerns them."""
        lasts = horizon.longest_of((s.type, len(s.args)) for s in self.run.among)
        return self.may_go_on(horizon.since[id(self.moments.out.table)], lasts)

    def may_go_on(self, since: int, lasts: int | None) -> Array:
        """The moments that what comes or goes from `since` on may follow; no event lasts longer than `lasts`."""
        table, index = self.moments.out.table, self.moments.index
        wanted = np.ones(table.n, bool)
        if self.longest < _EVER:
            wanted = table.data[START, : table.n] >= since - self.longest
        if not self.leads.any() and lasts is not None:  # a neighbour that is settled shuts out what comes behind it
            index.extend()
            shut = np.zeros(table.n, np.uint8)
            k.shut_behind(table.data, table.alive, table.n, index.after, since - lasts, shut)
            wanted &= ~shut.astype(bool)
        return wanted

    def remembers(self, horizon: Horizon) -> bool:
        if self.longest < _EVER or not self.moves:
            return False
        return bool(self.leads.any()) or horizon.longest_of((s.type, len(s.args)) for s in self.run.among) is None


class Partials(Edges):
    """ΔP = P ⋈ ΔE + ΔP ⋈ E: partial matches go on along new edges, and new ones along all edges.

    An edge leads from a moment to one that may follow it by some moves: to neighbours by NEXT, to the soonest of a part by
    THEN, to all later ones by SEQ. When a moment comes or goes, the edges of those behind it are looked at again; what
    went along an edge that is no more falls with all that was made of it.
    """

    kind = "partial runs"

    def __init__(self, circuit: Circuit, run: Run, moments: Moments, views: tuple[View, ...], rule: str) -> None:
        out = View(Table(0, circuit.tables, 2 + 2 * len(run.parts)))
        super().__init__(circuit, run, moments, views, out, rule)

    def _clear(self) -> None:
        super()._clear()
        self.heads, self.chain = np.full(16, -1, np.int64), np.full(16, -1, np.int64)
        self.kids = np.full((2, 16), -1, np.int64)

    def step(self) -> None:
        lost, stale, new = self.losses(0), self.stale(0), self.gains(0)
        gone = [self._fall(k.fall_at, lost)] if len(lost) else []
        again = self._parents_of(gone)
        queue, cut, _ = self.relink(lost, stale, new)
        self._make_room()
        if cut.shape[1]:
            gone.append(self._fall(k.fall_along, cut))
            again = np.concatenate([again, self._parents_of(gone[-1:])])
        if gone:
            self.out.table.gone(np.concatenate(gone))
        self._grow(queue, new, again)

    def _make_room(self) -> None:
        """Room for lists by moment and by partial match."""
        moments, table = self.moments.out.table, self.out.table
        if len(self.heads) < moments.n:
            self.heads = grown(self.heads, len(moments.alive), len(self.heads), -1)
        if len(self.chain) < len(table.alive):
            size = len(table.alive)
            self.chain, self.kids = grown(self.chain, size, len(self.chain)), grown(self.kids, size, len(self.chain))

    def _fall(self, kernel: object, what: Array) -> Array:
        table = self.out.table
        gone = np.empty(table.n, np.int64)
        if kernel is k.fall_at:
            count = k.fall_at(what, self.edges, self.into, table.alive, self.heads, self.chain, self.kids, gone)
        else:
            count = k.fall_along(what, self.edges, table.data, table.alive, self.heads, self.chain, self.kids, self.ends, gone)  # fmt: skip
        self.touched += count + what.shape[-1]
        return gone[:count].copy()

    def _parents_of(self, gone: list[Array]) -> Array:
        """Of partial matches that fell those that they were made of, where these may choose again."""
        if not gone or not self.choosy:
            return NONE
        table = self.out.table
        parents = np.unique(table.data[LEFT, np.concatenate(gone)])
        parents = parents[parents >= 0]
        return parents[table.alive[parents].astype(bool)]

    # Growing

    def _grow(self, queue: Array, new: Array, again: Array) -> None:
        table, moments = self.out.table, self.moments.out.table
        old = table.n
        starts, parts_of = self._begun(new)
        if len(starts):
            self._more_room(len(starts))
            n = k.begin(starts, parts_of, table.data, table.n, table.alive, moments.data, len(self.run.parts), self.heads, self.chain, self.kids)  # fmt: skip
            self._added(n)
        cursor = np.array([0, -1, old, -1, old], np.int64)
        asked = np.empty((3, 1024 if self.chosen else len(self.moves) + 1), np.int64)
        waiting = [self._chances(again)] if len(again) else []
        while True:
            n, questions = k.grow(
                queue, cursor, table.data, table.n, table.alive, moments.data, self.edges, self.out_of, self.heads,
                self.chain, self.kids, self.ends, self.chosen, self.least, self.most, len(self.run.parts), self.longest,
                asked,
            )  # fmt: skip
            self._added(n)
            if questions:
                waiting.append(asked[:, :questions].copy())
            if cursor[0] < queue.shape[1] or cursor[2] < table.n:
                self._more_room(max(64, table.n - old))
                if questions and asked.shape[1] < _PORTION:
                    asked = np.empty((3, 4 * asked.shape[1]), np.int64)
                continue
            if not waiting:
                break
            given = np.concatenate(waiting, axis=1)
            waiting = []
            self._plant(self._answered(given))
        self.touched += table.n - old

    def _more_room(self, count: int) -> None:
        self.out.table.room(count + len(self.moves))
        self._make_room()

    def _added(self, n: int) -> None:
        table = self.out.table
        lo, table.n = table.n, n
        if n > lo:
            table.grew(lo)

    def _chances(self, partials: Array) -> Array:
        """What partial matches may choose again: all that follows them by moves that choose."""
        found = []
        for p in partials.tolist():
            e = int(self.out_of[self.out.table.data[RIGHT, p]])
            while e >= 0:
                bits, x = int(self.edges[k.BITS, e]), int(self.edges[k.TO, e])
                fits = self.moments.out.table.data[END, x] - self.out.table.data[START, p] <= self.longest
                for m in range(len(self.moves)):
                    if fits and bits & self.choosy & (1 << m) and k.may_move(self.out.table.data, p, m, self.ends, self.least, self.most, len(self.run.parts)):  # fmt: skip
                        found.append((p, e, m))
                e = int(self.edges[k.OUT, e])
        return np.array(found, np.int64).reshape(-1, 3).T

    def _answered(self, given: Array) -> Array:
        """Of questions (partial match, edge, move) those that are answered with yes, in the order of time."""
        held = [NONE]
        for number, move in enumerate(self.moves):
            rows = np.flatnonzero(given[2] == number)
            if len(rows) and (move.later or move.agree_later):
                targets = self.edges[k.TO, given[1, rows]]
                rows = rows[self._answer(move.later, move.agree_later, move.target, given[0, rows], targets)]
            held.append(rows)
        rows = np.concatenate(held)
        ends = self.moments.out.table.data[END, self.edges[k.TO, given[1, rows]]]
        return np.ascontiguousarray(given[:, rows[np.argsort(ends, kind="stable")]])

    def _answer(
        self, asked: tuple[Question, ...], agree: tuple[str, ...], part: int, partials: Array, targets: Array
    ) -> Array:
        """Which partial matches may go on with a moment as an iteration of a part."""
        sight, table = self.sight, self.out.table
        end = self.moments.out.table.data[END, targets]
        at = {m: self._at(m, partials) for m in range(part)}
        earlier, _ = sight.frame(at, end)
        frame, has = sight.frame({**at, part: targets}, end, part)
        words, mask = self.circuit.tables.dictionary, np.ones(len(targets), bool)
        if agree:
            now, _ = sight.frame({part: targets}, end, part)
            for v in agree:
                if v in earlier.vars:
                    agreed, _ = words.agree(earlier.vars[v], now.vars[v])
                    mask &= agreed
        bound = set(self.bound)
        for one in asked:
            for name, term in one.hidden:
                bound.add(name)
                if isinstance(term, Prev):
                    sources = table.data[RIGHT, partials]
                    frame.vars[name], ok = sight.values(term.of, part, sources, earlier)
                else:
                    members = self.members(partials, part, targets)
                    frame.vars[name], ok = sight.aggregate(term, part, members, earlier)
                mask &= ok
        for name in {r.name for q in asked for r in self.run.results if r.name in q.needs}:
            result = sight.results[name]
            frame.vars[name], ok = sight.aggregate(
                result.aggregate, result.part, self.members(partials, result.part), earlier
            )
            mask &= ok
        binding = [
            (c, frozenset[str]()) for m in range(part) for c in self.where(m) if condition_vars_bound(c, self.bound)
        ]
        rows = np.flatnonzero(mask)
        frame, kept = frame.take(rows), rows
        has = {n: c[rows] for n, c in has.items()}
        self.circuit.context.name_events = None
        for condition, present in (*binding, *((q.condition, q.present) for q in asked)):
            before = kept
            frame, kept = sight.ask((condition,), frame, has, kept, bound, present)
            if len(kept) != len(before) or (kept != before).any():
                place = np.searchsorted(rows, kept)
                has = {n: c_full[rows][place] for n, c_full in self._has(at, part, targets).items()}
        return once(kept)

    def _has(self, at: dict[int, Array], part: int, targets: Array) -> dict[str, Array]:
        found = {}
        for number, moments in {**at, part: targets}.items():
            label = self.run.parts[number].label
            if label is not None and (number == part or not self.run.parts[number].repeats):
                found[label] = moments >= 0
        return found

    def _at(self, part: int, partials: Array) -> Array:
        """The last moment of a part in partial matches; -1 where there is none, and where there is no match yet."""
        found = (
            self.out.table.data[k.STATE + part, np.maximum(partials, 0)]
            if self.out.table.n
            else np.full(len(partials), -1)
        )
        return np.where(partials >= 0, found, -1)

    def members(self, partials: Array, part: int, more: Array | None = None) -> Members:
        """The iterations of a part in partial matches, and one more each."""
        rows, first = self.chains(partials)
        data = self.out.table.data
        owners = np.repeat(np.arange(len(partials)), np.diff(first))
        mine = data[k.PART, rows] == part if len(rows) else np.zeros(0, bool)
        moments, owners = data[RIGHT, rows[mine]], owners[mine]
        if more is not None:
            moments = np.concatenate([moments, more])
            owners = np.concatenate([owners, np.arange(len(partials))])
            order = np.argsort(owners, kind="stable")
            moments, owners = moments[order], owners[order]
        return Members(moments, np.r_[0, np.cumsum(np.bincount(owners, minlength=len(partials)))])

    def chains(self, partials: Array) -> tuple[Array, Array]:
        """The partial matches on the way to each, the first one first; those of `i` are from first[i] up to first[i + 1]."""
        lengths, found = np.zeros(len(partials), np.int64), np.empty(max(64, 4 * len(partials)), np.int64)
        count = k.chains(partials, self.out.table.data, found, lengths)
        if count > len(found):
            found = np.empty(count, np.int64)
            k.chains(partials, self.out.table.data, found, lengths)
        return found[:count], np.r_[0, np.cumsum(lengths)]

    def _plant(self, given: Array) -> None:
        table, at = self.out.table, 0
        while at < given.shape[1]:
            self._more_room(given.shape[1] - at)
            gone = np.empty(table.n + given.shape[1], np.int64)
            at, n, fallen = k.plant(
                given, at, table.data, table.n, table.alive, self.moments.out.table.data, self.edges, self.heads,
                self.chain, self.kids, self.ends, self.choosy, len(self.run.parts), gone,
            )  # fmt: skip
            self._added(n)
            if fallen:
                table.gone(gone[:fallen].copy())

    def rebuild(self) -> None:
        super().rebuild()
        self._clear()
        table, moments = self.out.table, self.moments.out.table
        self.moments.index.extend()
        self._edge_room()
        self._make_room()
        alive = np.flatnonzero(moments.alive[: moments.n])
        if len(alive):
            self.lasts = int((moments.data[END, alive] - moments.data[START, alive]).max())
            self._relink(alive, np.empty((2, 0), np.int64), False)
        k.thread(table.data, 0, table.n, table.alive, self.heads, self.chain, self.kids)

    # What a row is made of

    def parents(self) -> list[tuple[int, Table]]:
        return [(RIGHT, self.moments.out.table), (LEFT, self.out.table)]

    def parts(self, row: int) -> tuple[Part, ...]:
        rows, _ = self.chains(np.array([row]))
        return tuple(p for m in self.out.table.data[RIGHT, rows].tolist() for p in self.moments.parts(m))

    def part_rows(self, rows: Array) -> tuple[Table, Array] | None:
        return None

    def sources(self, rows: Array) -> Ways:
        chains, first = self.chains(rows)
        owners = np.repeat(np.arange(len(rows)), np.diff(first))
        return [(np.arange(len(rows)), [(self.moments.out.table, self.out.table.data[RIGHT, chains], owners)])]

    def keep_parents(self, keep: dict[int, Array]) -> None:
        table, own = self.out.table, keep[id(self.out.table)]
        rows = np.flatnonzero(own)
        while len(rows):
            rows = np.unique(table.data[LEFT, rows])
            rows = rows[rows >= 0]
            rows = rows[~own[rows]]
            own[rows] = True
        moments = keep[id(self.moments.out.table)]
        for field in (RIGHT, k.FIRST, *range(k.STATE, k.STATE + len(self.run.parts))):
            named = table.data[field, : table.n][own]
            moments[named[named >= 0]] = True

    def moved(self, places: object) -> None:
        table = self.out.table
        own, moments = places[id(table)], places[id(self.moments.out.table)]  # type: ignore[index]
        table.data[LEFT, : table.n] = own[table.data[LEFT, : table.n]]
        for field in (RIGHT, k.FIRST, *range(k.STATE, k.STATE + len(self.run.parts))):
            table.data[field, : table.n] = moments[table.data[field, : table.n]]

    def check(self) -> None:
        table, count = self.out.table, len(self.run.parts)
        data, n, moments = table.data, table.n, self.moments.out.table.n
        check_numbers(data[LEFT, :n], -1, n, NOT_THERE)
        require(bool((data[LEFT, :n] < np.arange(n)).all()), "a row made of itself")
        check_numbers(data[RIGHT, :n], 0, moments, NOT_THERE)
        check_numbers(data[k.FIRST, :n], 0, moments, NOT_THERE)
        check_numbers(data[k.PART, :n], 0, count, "a part that is not there")
        for part in range(count):
            check_numbers(data[k.STATE + part, :n], -1, moments, NOT_THERE)
            check_numbers(data[k.STATE + count + part, :n], 0, n + 1, "an impossible count")

    def goes_on(self, wanted: Array) -> Array:
        """The partial matches that may still become longer ones, where these moments may still be followed."""
        table, count = self.out.table, len(self.run.parts)
        data, n = table.data, table.n
        mask = table.alive[:n].astype(bool) & wanted[data[RIGHT, :n]]
        free = np.zeros(n, bool)
        for move in self.moves:
            here = data[k.PART, :n] == move.source
            most = self.run.parts[move.source].most
            if move.source == move.target and most is not None:
                here &= data[k.STATE + count + move.source, :n] < most
            free |= here
        return mask & free

    def waiting(self, now: int | None, new: bool) -> Iterator[Waiting]:
        """How far runs have come: of each the last events so far, and what may follow."""
        table, moments = self.out.table, self.moments.out.table
        going = self.goes_on(self.may_go_on(now, 0) if now is not None else np.ones(moments.n, bool))
        rows = np.flatnonzero(going)
        parents = table.data[LEFT, rows[table.data[LEFT, rows] >= 0]] if not self.choosy else NONE
        rows = np.setdiff1d(rows[rows >= table.mark] if new else rows, parents)
        for row in rows.tolist():
            part = int(table.data[k.PART, row])
            following = next(move.target for move in reversed(self.moves) if move.source == part)
            soonest = next(
                (move.target for move in self.moves if move.source == part and move.target > part), following
            )
            until = None if self.longest >= _EVER else int(table.data[START, row]) + self.longest
            if now is None or until is None or until >= now:
                yield Waiting(
                    self.parts(row), self.run.parts[soonest].input, until, self.key_of(int(table.data[RIGHT, row]))
                )

    def retain(self, keep: dict[int, Array], frontier: int | None, since: Mapping[int, int]) -> None:
        keep[id(self.out.table)] |= self.goes_on(keep[id(self.moments.out.table)])


def _hidden(question: Question) -> list[str]:
    return [name for name, _ in question.hidden]


def condition_vars_bound(condition: Condition, bound: set[str]) -> set[str]:
    """What a condition binds beside what parts have."""
    from augury.algebra.ready import binds

    return binds(condition, bound)


def require_few(moves: tuple[Move, ...], parts: int, rule: str) -> None:
    from augury.errors import RunError

    if len(moves) > 60 or parts > 60:
        raise RunError(f"the run of rule `{rule}` has too many parts", hint="divide it into several rules")
