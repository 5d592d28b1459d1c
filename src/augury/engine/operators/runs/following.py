"""Which events of a run may follow each other: edges from moment to moment, never all pairs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.nodes import RunResult, condition_labels
from augury.algebra.run_bounds import start_bounds
from augury.algebra.terms import Aggregate, Prev
from augury.core.arrays import Array, RowIds, Times
from augury.core.errors import RunError
from augury.core.jit import Kernel
from augury.engine.operators.base import Operator, Part, PartialMatch
from augury.engine.operators.runs import kernels as k
from augury.engine.operators.runs.kernels.moment_edges import before, behind, lies_before, relink, rewire
from augury.engine.operators.runs.kernels.records import MomentLinks
from augury.engine.operators.runs.kernels.then_searches import chains_of
from augury.engine.operators.runs.moments import Moments
from augury.engine.operators.runs.number_tests import MomentNumbers, number_tests
from augury.engine.operators.runs.running_aggregates import RunningAggregates, kept_along
from augury.engine.operators.runs.seeking import Seeking
from augury.engine.operators.runs.sight import MatchBindings, Members, once
from augury.planner.run_moves import Move, left_out
from augury.planner.run_questions import Question
from augury.planner.specs import RunSpec
from augury.storage.dictionary import NULL
from augury.storage.frame import Frame, View
from augury.storage.grouping import Slices
from augury.storage.table import END, NONE, START, grown
from augury.storage.unique import unique

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime

PORTION = 1 << 16
_MOST = 60  # moves are bits of a number


class MomentEdges(Operator):
    """The events that may follow each other in a run, as edges from moment to moment.

    An edge leads from a moment to one that may follow it by some moves: to neighbours by NEXT, to the soonest of a part by
    THEN, to all later ones by SEQ. When a moment comes or goes, the edges of those behind it are looked at again.
    """

    linked = ()

    def __init__(self, runtime: Runtime, spec: RunSpec) -> None:
        super().__init__(runtime, spec)
        run, rule, moves = spec.run, spec.rule, spec.moves
        self.run, self.moments = run, runtime.operator(spec.moments, Moments)
        self.sight = MatchBindings(runtime, run, self.moments, tuple(map(runtime.view, spec.parts)), rule)
        self.bound, self.moves, self.starts, self.turns = moves.bound, moves.all, moves.starts, moves
        self.choosy, self.chosen, self.next, self.leads = moves.choosy, moves.chosen, moves.next, moves.leads
        if len(self.moves) > _MOST or len(run.parts) > _MOST:
            raise RunError(f"the run of rule `{rule}` has too many parts", hint="divide it into several rules")
        self.ends = np.array([[m.source for m in self.moves], [m.target for m in self.moves]], np.int64).reshape(2, -1)
        self.least = np.array([part.least for part in run.parts], np.int64)
        self.most = np.array([-1 if part.most is None else part.most for part in run.parts], np.int64)
        length = runtime.clock.length
        self.longest = min((length(window) for window in run.windows), default=k.EVER)
        tick = runtime.clock.tick if runtime.clock.kind == "logical" else 1
        # For each move, how much later than the start or end of the last event of a part an event may start that goes on.
        self.start_bounds = [
            [(bound.part, START if bound.which == "s" else END, length(bound.length)) for bound in bounds]
            for bounds in (start_bounds(run, move.source, move.target, tick) for move in self.moves)
        ]
        self.fields = np.array(self.moments.row_fields, np.int64)
        for condition in (c for part in run.parts for c in (*part.where, *part.after)):
            runtime.asks(self, (condition,))
        asked = [(result.part, result.aggregate) for result in run.results]
        asked += [(m.target, a) for m in self.moves for q in m.later for _, a in q.hidden if isinstance(a, Aggregate)]
        self.aggregates = RunningAggregates(self.sight, kept_along(run, asked, self.sight))
        self.numbers = MomentNumbers(self.sight)
        self.tests = [number_tests(move, self.numbers) for move in self.moves]
        self.seeking = self._searches(sorted(moves.sought))
        self.sought = sum(seeking.bits for seeking in self.seeking)
        self.closed: Array = (
            NONE  # moments that nothing more follows, though some row has them: what shut them is forgotten
        )
        self._clear()

    def asks_again(self) -> tuple[View, ...]:
        return self.inputs  # edges between moments that are held are made anew after a compaction

    def _searches(self, sought: list[int]) -> list[Seeking]:
        """The searches for the soonest event, one for all moves that ask the same of the same events."""
        alike, groups = self.moments.alike, dict[object, list[int]]()
        for i in sought:
            move, tests = self.moves[i], self.tests[i]
            asks: object = i if tests is None else (alike[move.source], alike[move.target], tests.key)
            groups.setdefault(asks, []).append(i)
        every = [(self.moves[group[0]], sum(1 << i for i in group), self.tests[group[0]]) for group in groups.values()]
        return [Seeking(move, bits, self.moments, self.longest, self._met, tests) for move, bits, tests in every]

    def edge_lists(self) -> MomentLinks:
        return MomentLinks(self.edges, self.into, self.out_of)

    # Steps

    def _clear(self) -> None:
        self.edges, self.count = np.empty((5, 16), np.int64), 0
        self.into, self.out_of = np.full(16, -1, np.int64), np.full(16, -1, np.int64)
        self.lasts = 0  # of moments how long the longest lasts
        self.room = np.empty((3, 1024), np.int64)
        self.latest = np.empty(len(self.run.parts) + 1, np.int64)
        self.aggregates.clear()
        self.chain_of, self.chained, self.chain_count = np.full(16, -1, np.int64), 0, 0
        self.numbers.clear()
        for seeking in self.seeking:
            seeking.clear()

    def relink(self, lost: Array, stale: Array, new: Array) -> tuple[Array, Array, Array]:
        """Takes in moments that are gone, that facts have changed for, and that are new. Moves of edges that are new, and
        moves that are no more; and the moments to which edges lead that may be others."""
        behind = [self._behind(lost)[1]] if len(lost) else []
        self.moments.index.extend()
        data = self.moments.out.table.data
        self._edge_room()
        targets, follow, late = new, np.empty((2, 0), np.int64), NONE
        if len(new):
            self.lasts = max(self.lasts, int((data[END, new] - data[START, new]).max()))
            late = new[self._late(new)]
            if len(late):
                follow, near = self._behind(late)
                behind.append(near)
        if behind or len(stale):
            targets = unique(np.concatenate([new, *behind, stale]))
            targets = targets[self.moments.out.table.alive[targets].astype(bool)]
        queue, cut = np.empty((2, 0), np.int64), np.empty((2, 0), np.int64)
        if len(targets) or follow.shape[1]:
            search = len(targets) > len(new) or follow.shape[1] > 0
            queue, cut = self._relink(targets, follow, search)
        if self.seeking:
            queue, cut, sought = self._seek(lost, stale, new, late, queue, cut)
            if len(sought):
                targets = unique(np.concatenate([targets, sought]))
        return queue, cut, targets

    def _seek(
        self, lost: Array, stale: Array, new: Array, late: Array, queue: Array, cut: Array
    ) -> tuple[Array, Array, Array]:
        """Runs the searches for soonest events: `queue` and `cut` with the edges that change, and the ends of these."""
        data = self.moments.out.table.data
        self._chain(new)
        lasting = new[data[END, new] > data[START, new]]
        changed = unique(np.concatenate([lost, stale, late, lasting]))
        ends = [NONE]
        for seeking in self.seeking:
            seeking.room(self.chain_count)
            fresh, pairs = seeking.search(new, changed, self.chain_of, self.lasts)
            pairs = self._from_open(pairs)
            self.touched, seeking.touched = self.touched + seeking.touched, 0
            if not (len(changed) or pairs.shape[1]):
                continue
            size = self.count + pairs.shape[1]
            if size > self.edges.shape[1]:
                self.edges = grown(self.edges, 2 * size, self.count)
            columns = np.concatenate([pairs, np.zeros((1, pairs.shape[1]), np.int64)])
            again = fresh if len(changed) else NONE
            room = self.count + 1 if len(again) else 1
            more, fewer = np.empty((2, pairs.shape[1] + 1), np.int64), np.empty((2, room), np.int64)
            self.count, added, gone = rewire(again, seeking.bits, columns, self.edge_lists(), self.count, more, fewer)
            queue = np.concatenate([queue, more[:, :added]], axis=1)
            cut = np.concatenate([cut, fewer[:, :gone]], axis=1)
            if len(changed):
                ends += [self.edges[k.TO, more[0, :added]], self.edges[k.TO, fewer[0, :gone]]]
        reached = np.concatenate(ends)
        alive = self.moments.out.table.alive
        return np.ascontiguousarray(queue), np.ascontiguousarray(cut), reached[alive[reached].astype(bool)]

    @abstractmethod
    def _make_room(self) -> None:
        """Room for what is known of moments and matches."""

    def _relink_all(self, alive: RowIds) -> None:
        """Finds all edges, where none is known."""
        data = self.moments.out.table.data
        self.lasts = int((data[END, alive] - data[START, alive]).max())
        self._relink(alive, np.empty((2, 0), np.int64), False)
        if self.seeking:
            nothing = np.empty((2, 0), np.int64)
            self._seek(NONE, NONE, alive, NONE, nothing, nothing)

    def _chain(self, new: Array) -> None:
        """Numbers the chains of new moments."""
        n = self.moments.out.table.n
        if len(self.chain_of) < n:
            self.chain_of = grown(self.chain_of, len(self.moments.out.table.alive), self.chained)
        self.chain_of[self.chained : n] = -1
        self.chained = n
        index = self.moments.index
        self.chain_count = chains_of(new, index.prev, index.after, self.chain_of, self.chain_count)

    def _edge_room(self) -> None:
        if len(self.into) < self.moments.out.table.n:
            size = len(self.moments.out.table.alive)
            self.into, self.out_of = (grown(a, size, len(a), -1) for a in (self.into, self.out_of))

    def _late(self, new: Array) -> Array:
        """Which new moments lie before some that were there."""
        first, n = int(new[0]), self.moments.out.table.n
        late = np.zeros(n - first, np.uint8)
        lies_before(first, n, self.moments.index.after, late)
        flags: Array = late[new - first].astype(bool)
        return flags

    # Edges

    def _behind(self, changed: Array) -> tuple[Array, Array]:
        """Pairs of a changed moment and a later one that it leads to by SEQ; and those whose edges are to be looked at."""
        table, index = self.moments.out.table, self.moments.index
        index.extend()
        arrays = table.data, table.alive, index.after, self.fields, self.leads, self.lasts, self.latest
        pairs = self._pairs(behind, changed, *arrays)
        near = unique(pairs[1][pairs[2] > 0])
        far = pairs[2] == 0
        return pairs[:2, far], near

    def _relink(self, targets: Array, follow: Array, search: bool) -> tuple[Array, Array]:
        """Computes the edges into moments again: added moves, and removed ones."""
        table, index = self.moments.out.table, self.moments.index
        wanted = self.fields, self.leads, self.next, self.longest, self.latest
        pairs = self._pairs(before, targets, table.data, table.alive, index.prev, *wanted)
        if follow.shape[1]:
            kinds = np.zeros(follow.shape[1], np.int64)
            for part, link in enumerate(self.leads.tolist()):
                if link == 2:
                    kinds |= (table.data[self.fields[part], follow[1]] >= 0).astype(np.int64) * (2 << part)
            fits = table.data[END, follow[1]] - table.data[START, follow[0]] <= self.longest
            pairs = np.concatenate([pairs, np.stack([follow[0], follow[1], kinds])[:, fits]], axis=1)
        pairs = self._from_open(pairs)
        columns = np.stack([pairs[0], pairs[1], self._bits(pairs)])
        columns = np.ascontiguousarray(columns[:, columns[2] != 0])
        size = self.count + columns.shape[1]
        if size > self.edges.shape[1]:
            self.edges = grown(self.edges, 2 * size, self.count)
        room = self.count + 1 if search else 1
        queue, cut = np.empty((2, columns.shape[1] + room), np.int64), np.empty((2, room), np.int64)
        links, targets = self.edge_lists(), targets if search else NONE
        self.count, added, lost = relink(targets, columns, search, self.sought, links, self.count, queue, cut)
        return np.ascontiguousarray(queue[:, :added]), np.ascontiguousarray(cut[:, :lost])

    def _from_open(self, pairs: Array) -> Array:
        """Without the pairs whose first moment is closed."""
        if not len(self.closed):
            return pairs
        closed = np.zeros(self.moments.out.table.n, bool)
        closed[self.closed] = True
        return np.ascontiguousarray(pairs[:, ~closed[pairs[0]]])

    def _pairs(self, search: Kernel, moments: Array, *arrays: object) -> Array:
        """The pairs that a kernel finds, in as many calls as it takes to have room for them."""
        position, portions = 0, [np.empty((3, 0), np.int64)]
        while position < len(moments):
            came, count, touched = search(moments, position, *arrays, self.room)
            self.touched += touched
            self.runtime.tables.guard.paired(count)
            portions.append(self.room[:, :count].copy())
            if came < len(moments) and (count == 0 or self.room.shape[1] < PORTION):
                self.room = np.empty((3, 4 * self.room.shape[1]), np.int64)
            position = came
        return np.concatenate(portions, axis=1)

    def _bits(self, pairs: Array) -> Array:
        """The moves of each edge that the conditions on its two moments allow."""
        bits = np.zeros(pairs.shape[1], np.int64)
        data = self.moments.out.table.data
        alike = self.moments.alike
        fields = {alike[part]: field for part, field in enumerate(self.fields.tolist())}
        there = {part_of: (data[field, pairs[0]] >= 0, data[field, pairs[1]] >= 0) for part_of, field in fields.items()}
        answers: dict[object, Array] = {}  # by what tests ask: other moves may ask the same
        for number, move in enumerate(self.moves):
            if self.sought & (1 << number):
                continue
            kind = k.NEIGHBOUR if move.link == "NEXT" else 2 << move.target
            fits = ((pairs[2] & kind) != 0) & there[alike[move.source]][0] & there[alike[move.target]][1]
            tests = self.tests[number]
            if tests is not None and tests.follow():
                if tests.key not in answers:
                    answers[tests.key] = tests.hold(pairs[0], pairs[1])
                bits |= (fits & answers[tests.key]).astype(np.int64) << number
                continue
            rows = np.flatnonzero(fits)
            rows = rows[self._met(move, pairs[0, rows], pairs[1, rows])] if len(rows) else rows
            bits[rows] |= 1 << number
        return bits

    def _met(self, move: Move, sources: Array, targets: Array) -> Array:
        """Which pairs of iterations meet the conditions of a move that they alone decide."""
        if not (move.questions or move.agree):
            return np.arange(len(targets))
        sight, i, j = self.sight, move.source, move.target
        end = self.moments.out.table.data[END, targets]
        moments = {j: targets} if i == j else {j: targets, i: sources}
        named = {name for q in move.questions for name in q.needs | condition_labels(q.condition)}
        frame, has = sight.frame(moments, end, j, named)
        words, mask = self.runtime.tables.dictionary, np.ones(len(targets), bool)
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
        bound = self.bound | {name for q in move.questions for name, _ in q.hidden}
        return sight.met([(q.condition, ()) for q in move.questions], frame, has, mask, bound)

    def _begun(self, new: Array) -> tuple[Array, Array]:
        """The moments that may be the first of a match, and as which part."""
        begun, numbers = [], []
        data = self.moments.out.table.data
        new = new[data[END, new] - data[START, new] <= self.longest]
        for part, asked in self.starts:
            moments = new[data[self.fields[part], new] >= 0]
            if len(moments) and asked:
                moments = moments[self._may_begin(asked, part, moments)]
            begun.append(moments)
            numbers.append(np.full(len(moments), part, np.int64))
        return np.concatenate(begun), np.concatenate(numbers)

    # Aggregates of matches, which are numbered

    @abstractmethod
    def times(self, part: int, matches: Array) -> Times:
        """How often a part was repeated."""

    @abstractmethod
    def members(self, matches: Array, part: int, more: Array | None = None) -> Members:
        """The iterations of a part, and one more each."""

    def follow(self) -> None:
        """Takes in what is new into the aggregates that are kept along the run."""

    def aggregate(
        self, aggregate: Aggregate, part: int, matches: Array, seen: Frame, more: Array | None = None
    ) -> tuple[Array, Array]:
        """The codes of an aggregate over the iterations of a part, and one more each; for which it could be computed."""
        if not aggregate.args:
            times = self.times(part, matches) + (more is not None)
            return self.runtime.tables.dictionary.encode_column(times), np.ones(len(matches), bool)
        if not self.aggregates.keeps(part, aggregate):
            return self.sight.aggregate(aggregate, part, self.members(matches, part, more), seen)
        self.follow()
        codes, unsure = self.aggregates.results(part, aggregate, matches, more)
        ok, rows = np.ones(len(matches), bool), np.flatnonzero(unsure)
        if len(rows):
            members = self.members(matches[rows], part, None if more is None else more[rows])
            codes[rows], ok[rows] = self.sight.aggregate(aggregate, part, members, seen.take(rows))
        return codes, ok

    def key_of(self, moment: int) -> dict[str, int]:
        """The key of a run, as codes."""
        data = self.moments.out.table.data
        return {v: int(data[f, moment]) for v, f in zip(self.run.key, self.moments.key_fields, strict=True)}

    def _may_begin(self, asked: tuple[Question, ...], part: int, moments: Array) -> Array:
        """Which moments meet what is asked of a first iteration that nothing comes before."""
        sight, end = self.sight, self.moments.out.table.data[END, moments]
        frame, has = sight.frame({part: moments}, end, part)
        mask, bound = np.ones(len(moments), bool), set(self.bound)
        single = Members(moments, Slices(np.ones(len(moments), np.int64)))
        for question in asked:
            for name, term in question.hidden:
                assert isinstance(term, Aggregate)
                frame.vars[name], ok = sight.aggregate(term, part, single)
                bound.add(name)
                mask &= ok
        has |= {left_out(m): np.zeros(len(moments), bool) for m in range(part)}
        turns = [*self.turns.bound_before(part), *((question.condition, question.present) for question in asked)]
        kept = np.flatnonzero(mask)
        seen = {name: column[kept] for name, column in has.items()}
        _, _, kept = sight.in_turn(turns, frame.take(kept), seen, kept, bound, self._of_nothing)
        return once(kept)

    def _of_nothing(self, result: RunResult, frame: Frame, rows: RowIds) -> tuple[Array, Array]:
        """An aggregate over a part that is left out."""
        code = self.runtime.context.encode(0) if result.aggregate.function == "count" else NULL
        return np.full(len(rows), code, np.int64), np.ones(len(rows), bool)

    def awaited(
        self, done: tuple[Part, ...], part: int, start: int, moment: int, now: int | None
    ) -> Iterator[PartialMatch]:
        """The events that a match from `start` on awaits at a part, where they may still come."""
        awaits = next((move.target for move in self.moves if move.source == part and move.target > part), part)
        until = None if self.longest >= k.EVER else start + self.longest
        if now is None or until is None or until >= now:
            yield PartialMatch(done, self.run.parts[awaits].input, until, self.key_of(moment))

    def rebuild(self) -> None:
        super().rebuild()
        self._clear()
        moments = self.moments.out.table
        self.moments.index.extend()
        self._edge_room()
        self._make_room()
        alive = moments.standing()
        if len(alive):
            self._relink_all(alive)

    # How long it keeps what

    def begins_from(self, since: int, source: Horizon | Runtime) -> int | None:
        """From when on events of the run begin that are still to come, where they end from `since` on; None where nothing
        says how long they last."""
        lasts = source.longest_of((scan.type, len(scan.args)) for scan in self.run.among)
        return None if lasts is None else since - lasts

    def remembers(self, horizon: Horizon) -> bool:
        """Whether an event may be followed by another however much later: no window and no condition bounds that."""
        if self.longest < k.EVER or not self.moves:
            return False
        return not all(self.start_bounds) or self.begins_from(0, horizon) is None
