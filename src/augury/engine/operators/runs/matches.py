"""The matches of a run: partial matches that are complete, and of these the longest, the shortest, or what SKIP leaves."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from augury.algebra.nodes import PAST_END, NoneInside, Run, RunResult, SkipTo, gap_before, part_after
from augury.algebra.run_terms import in_turn, outer_variables, run_variables
from augury.core.arrays import Array, RowIds
from augury.engine.operators.base import Part
from augury.engine.operators.choose import Chooser, Occurrence
from augury.engine.operators.map import EachRow
from augury.engine.operators.runs import kernels as k
from augury.engine.operators.runs.following import MomentEdges
from augury.engine.operators.runs.ongoing import Matter
from augury.engine.operators.runs.partials import Partials
from augury.engine.operators.runs.sight import Compute, without_open
from augury.planner.run_moves import Move, left_out
from augury.planner.run_questions import Turn, has_earlier
from augury.planner.specs import CompleteSpec, LongestSpec
from augury.storage.dictionary import NULL, OPEN
from augury.storage.frame import Frame
from augury.storage.table import END, LEFT, RANK, RIGHT, START
from augury.storage.unique import unique

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import Runtime


_NEVER = -(2**61)


class CompletionCheck:
    """The bindings of a complete match, and whether it meets the conditions on the whole."""

    def __init__(self, runtime: Runtime, run: Run, edges: MomentEdges) -> None:
        self.runtime, self.run, self.edges, self.sight = runtime, run, edges, edges.sight
        self.bound, self.moments = edges.bound, edges.moments
        self.unbound = sorted(run_variables(run))
        self.where = tuple(c for c in run.where if not isinstance(c, NoneInside))
        turns = edges.turns
        again, last = turns.bound_before(len(run.parts)), len(run.parts)
        every = [(number, turn) for number in range(last) for turn in turns.turns_of(number)]
        asked = [(number, turn) for number, turn in every if turn in again or turn[0] in run.parts[number].after]
        self.asked = list({turn[0]: (number, turn) for number, turn in asked[::-1]}.values())[::-1]
        waiting = [(part, turns.deferred(part, set())) for part in range(last)] if turns.ending else []
        self.deferred = [(part, conditions) for part, conditions in waiting if conditions]
        # A result may be computed of those of earlier parts.
        self.results = sorted(run.results, key=lambda result: result.part)
        absences = [part_after(c.window) for c in run.where if isinstance(c, NoneInside)]
        self.gaps = sorted({part for part in absences if part is not None})
        self.with_outer = [r for r in self.results if outer_variables(r, run)]

    def frame(self, moments: dict[int, Array], matches: Array, rows: RowIds) -> Frame:
        """Matches that meet what is asked, given the last moment of each part and their numbers.

        `rows` has their start, end and rank; `left` of the frame are their numbers.
        """

        def compute(result: RunResult, seen: Frame, numbers: Array) -> tuple[Array, Array]:
            return self._result(result, {part: last[numbers] for part, last in moments.items()}, matches[numbers], seen)

        seen, _ = self.sight.frame(moments, rows[1])
        kept = np.arange(rows.shape[1])
        for result in self.results:
            if result not in self.with_outer:
                seen, kept = _computed(result, seen, kept, compute)
        for number, turn in self.asked:
            seen, kept = self._ask(turn, seen, kept, moments, number, compute)
        seen.start, seen.end, seen.rank = rows[0, kept], rows[1, kept], rows[2, kept]
        for condition in in_turn(self.where, self.run, set(seen.vars) | self.bound):
            seen, kept = self._ask((condition, ()), seen, kept, moments, None, compute)
        for part, conditions in self.deferred:
            assert isinstance(self.edges, Partials)
            held = self.edges.met_by_all(conditions, part, matches[kept], seen)
            seen, kept = seen.take(held), kept[held]
        for result in self.with_outer:
            closed = without_open(seen, outer_variables(result, self.run))
            seen, kept = _computed(result, closed, kept, compute)
        seen.start, seen.end, seen.rank = rows[0, kept], rows[1, kept], rows[2, kept]
        for part in self.gaps:
            seen.labels[gap_before(part)] = self._gap(part, moments, matches, kept)
        seen.left, seen.right = kept, np.full(len(kept), -1, np.int64)
        for v in self.unbound:
            column = seen.vars.get(v)
            seen.vars[v] = np.full(len(kept), NULL) if column is None else np.where(column == OPEN, NULL, column)
        return seen

    def _gap(self, part: int, moments: dict[int, Array], matches: Array, kept: Array) -> tuple[Array, Array]:
        """From when to when something lies between the first iteration of a part and the event before it."""
        times, first = self.moments.out.table.data, moments[part][kept]
        if self.run.parts[part].most != 1:
            assert isinstance(self.edges, Partials)
            members = self.edges.members(matches[kept], part)
            first = members.moments[members.groups.starts]
        return times[END, moments[part - 1][kept]] + 1, times[START, first] - 1

    def _result(self, result: RunResult, moments: dict[int, Array], matches: Array, seen: Frame) -> tuple[Array, Array]:
        """An aggregate over a whole repetition; of its last iteration, where that is all it needs."""
        aggregate, part = result.aggregate, result.part
        last, ok = moments[part], np.ones(len(matches), bool)
        if aggregate.function != "last" or aggregate.distinct or has_earlier(aggregate):
            return self.edges.aggregate(aggregate, part, matches, seen)
        codes = np.full(len(last), NULL, np.int64)
        some = np.flatnonzero(last >= 0)
        if len(some):
            codes[some], ok[some] = self.sight.values(aggregate.args[0], part, last[some], seen.take(some))
        return codes, ok

    def _ask(
        self, turn: Turn, seen: Frame, kept: Array, by_part: dict[int, Array], number: int | None, compute: Compute
    ) -> tuple[Frame, Array]:
        """One condition, with facts as they are when it is asked; of a part that was left out, what it binds is not."""
        moments, count = self.moments.out.table.data, len(kept)
        if number is not None:  # what has happened so far
            latest = np.full(count, _NEVER, np.int64)
            for part in range(number + 1):
                mine = by_part[part][kept]
                latest = np.where(mine >= 0, np.maximum(latest, moments[END, np.maximum(mine, 0)]), latest)
            seen.start = seen.end = np.where(latest == _NEVER, 0, latest)
        has = {
            label: last[kept] >= 0
            for part, last in by_part.items()
            if (label := self.run.parts[part].label) is not None and not self.run.parts[part].repeats
        }
        has |= {label: np.ones(count, bool) for label in seen.labels if label not in has}
        has |= {left_out(part): last[kept] >= 0 for part, last in by_part.items()}
        seen, _, kept = self.sight.in_turn([turn], seen, has, kept, self.bound, compute)
        return seen, kept


def _computed(result: RunResult, seen: Frame, kept: Array, compute: Compute) -> tuple[Frame, Array]:
    """The frame with a result; rows of which it cannot be computed are left out."""
    seen.vars[result.name], ok = compute(result, seen, kept)
    if ok.all():
        return seen, kept
    rows = np.flatnonzero(ok)
    return seen.take(rows), kept[rows]


class CompleteMatches(EachRow):
    """Partial matches whose last parts may be left out, with their results, that meet what is asked of the whole."""

    def __init__(self, runtime: Runtime, spec: CompleteSpec) -> None:
        super().__init__(runtime, spec)
        self.partials, self.run = runtime.operator(spec.partials, Partials), spec.partials.run
        self.whole = CompletionCheck(runtime, self.run, self.partials)
        self.may_end = np.array(may_end(self.run), bool)
        self.least = np.array([part.least for part in self.run.parts], np.int64)
        runtime.asks(self, (*self.whole.where, *(c for part in self.run.parts for c in (*part.where, *part.after))))

    def mapped(self, frame: Frame) -> Frame:
        table, count, rows = self.inputs[0].table, len(self.run.parts), frame.left
        part = table.data[k.PART, rows]
        ending = self.may_end[part]
        rows, part = rows[ending], part[ending]
        times = table.data[k.STATE + count : k.STATE + 2 * count]
        rows = rows[times[part, rows] >= self.least[part]]
        moments = {i: table.data[k.STATE + i, rows] for i in range(count)}
        row_times = table.data[[START, END, RANK], :][:, rows]
        frame_of = self.whole.frame(moments, rows, row_times)
        frame_of.left = rows[frame_of.left]
        return frame_of


def may_end(run: Run) -> list[bool]:
    """For each part whether a match may end with it."""
    return [all(part.optional for part in run.parts[i + 1 :]) for i in range(len(run.parts))]


class _Start(Occurrence):
    """The matches with one first event: rows by number of iterations."""

    def __init__(self, runtime: Runtime, start: int, end: int, event: Part, key: tuple[int, ...]) -> None:
        super().__init__(runtime, start, end, (event,))
        self.key, self.moment = key, -1
        self.rows: dict[int, tuple[int, ...]] = {}
        self.best: tuple[int, ...] = ()
        self.taken: tuple[int, ...] = ()  # rows that are shown
        self.bound = 0  # where the next one may start, once one of these is taken


class LongestMatches(Chooser):
    """Of the matches with the same first event those with the most iterations, or the fewest; then what SKIP leaves.

    A change decides anew from its first event on, until a decision is met that was made before in the same place.
    """

    def __init__(self, runtime: Runtime, spec: LongestSpec) -> None:
        super().__init__(runtime, spec)
        self.partials, self.run = runtime.operator(spec.partials, Partials), spec.partials.run
        self.quantified = [i for i, part in enumerate(self.run.parts) if part.quantified]
        self._clear()

    def _clear(self) -> None:
        self.starts: dict[tuple[int, ...], _Start] = {}
        self.groups: dict[tuple[int, ...], list[_Start]] = {}  # by key, in the order of events
        self.first_of: dict[int, tuple[int, ...]] = {}

    # What a row is a match of

    def _partial(self, row: int) -> int:
        return self.origin(row, self.partials.out.table)

    def step(self) -> None:
        lost, new = self.losses(0), self.gains(0)
        touched: dict[tuple[int, ...], None] = {}
        for row in lost.tolist():
            first = self.first_of.pop(row, None)
            if first is not None:
                del self.starts[first].rows[row]
                touched[first] = None
        for row in new.tolist():
            touched[self._enter(row)] = None
        if touched:
            self._decide(touched)

    def _enter(self, row: int) -> tuple[int, ...]:
        p, data, moments = self._partial(row), self.partials.out.table.data, self.partials.moments.out.table.data
        moment, count = int(data[k.FIRST, p]), len(self.run.parts)
        first = self._event(moment)
        start = self.starts.get(first)
        if start is None:
            (event,) = self.partials.moments.parts(moment)
            times = int(moments[START, moment]), int(moments[END, moment])
            start = self.starts[first] = _Start(self.runtime, *times, event, first)
            if self.run.skip is not None:
                insort(self.groups.setdefault(self._key(moment), []), start)
        start.moment = moment
        start.rows[row] = tuple(int(data[k.STATE + count + i, p]) for i in self.quantified)
        self.first_of[row] = first
        return first

    def _event(self, moment: int) -> tuple[int, int]:
        """The event of a moment. It has several moments where facts bind a variable of a part in several ways."""
        moments = self.partials.moments.out.table.data
        return int(moments[LEFT, moment]), int(moments[RIGHT, moment])

    def _key(self, moment: int) -> tuple[int, ...]:
        table = self.partials.moments.out.table
        codes = table.data[list(self.partials.moments.key_fields), moment]
        return tuple(self.runtime.tables.dictionary.canonical(codes).tolist())

    def _decide(self, touched: Iterable[tuple[int, ...]]) -> None:
        taken: set[int] = set()
        left: set[int] = set()
        groups: dict[tuple[int, ...], list[_Start]] = {}
        for first in touched:
            start = self.starts[first]
            if start.rows:
                start.best = (max if self.run.which == "LONGEST" else min)(start.rows.values())
            if self.run.skip is None:
                now = tuple(row for row, counts in start.rows.items() if counts == start.best)
                left |= set(start.taken) - set(now)
                taken |= set(now) - set(start.taken)
                start.taken = now
                if not start.rows:
                    del self.starts[first]
            else:
                groups.setdefault(self._key(start.moment), []).append(start)
        for key, changed in groups.items():
            self._skip(key, changed, taken, left)
        self.show(taken, left)

    def _skip(self, key: tuple[int, ...], changed: list[_Start], taken: set[int], left: set[int]) -> None:
        starts = self.groups[key]
        first, last_changed = bisect_left(starts, min(changed)), bisect_left(starts, max(changed))
        last = next((starts[i] for i in range(first - 1, -1, -1) if starts[i].taken), None)
        # The match taken before, as it is and as it was: the next one depends on which it is and where it lets others begin.
        now_after = was_after = None if last is None else (last, last.bound)
        for i in range(first, len(starts)):
            start = starts[i]
            was = set(start.taken)
            if was:
                was_after = (start, start.bound)
            self.touched += 1
            now: set[int] = set()
            if start.rows and (last is None or self._late_enough(start, last)):
                now = self._first(start)
            left |= was - now
            taken |= now - was
            start.taken = tuple(sorted(now))
            if now:
                start.bound = self._bound(next(iter(now)))
                last, now_after = start, (start, start.bound)
            if i >= last_changed and now_after == was_after and was == now:
                break
        for start in changed:
            if not start.rows:
                starts.remove(start)
                del self.starts[start.key]
        if not starts:
            del self.groups[key]

    def _first(self, start: _Start) -> set[int]:
        """Of the matches with one first event those that come first in the order of their events."""
        rows = [row for row, counts in start.rows.items() if counts == start.best]
        if len(rows) == 1:
            return set(rows)
        events = {row: self.partials.parts(self._partial(row)) for row in rows}
        if len(set(events.values())) == 1:
            return set(rows)
        orders = {made: tuple(self.runtime.event(part).order for part in made) for made in set(events.values())}
        first = min(orders, key=lambda made: orders[made])
        return {row for row in rows if events[row] == first}

    def _bound(self, row: int) -> int:
        """The end of a match; or the start of the event that SKIP goes to."""
        p, data = self._partial(row), self.partials.out.table.data
        if self.run.skip == PAST_END:
            return int(data[END, p])
        skip, starts = self.run.skip, self.partials.moments.out.table.data[START]
        assert isinstance(skip, SkipTo)
        if skip.which == "LAST":
            return int(starts[data[k.STATE + skip.part, p]])
        return int(starts[self.partials.members(np.array([p]), skip.part).moments[0]])

    def _late_enough(self, start: _Start, last: _Start) -> bool:
        if self.run.skip == PAST_END:
            return start.start > last.bound
        return start.start >= last.bound and last < start

    def _may_begin(self, begins: int, last: _Start | None) -> bool:
        """Whether a match that begins at a time may be taken after another."""
        return last is None or begins > last.bound or (self.run.skip != PAST_END and begins == last.bound)

    def rebuild(self) -> None:
        super().rebuild()
        self._clear()
        table, out = self.inputs[0].table, self.out.table
        shown = set(out.data[LEFT, : out.n][out.stands()].tolist())
        for row in table.standing().tolist():
            self._enter(row)
        for start in self.starts.values():
            start.best = (max if self.run.which == "LONGEST" else min)(start.rows.values())
            start.taken = tuple(sorted(row for row in start.rows if row in shown))
            if start.taken and self.run.skip is not None:
                start.bound = self._bound(start.taken[0])

    # How long it keeps what

    def _matter(self) -> Matter:
        """Which partial matches can become as good as the best one with their first event, or better, by a move."""
        parts, longest = self.run.parts, self.run.which == "LONGEST"
        data, count = self.partials.out.table.data, len(self.run.parts)
        best = np.full(
            (len(self.quantified), self.partials.moments.out.table.n), -1 if longest else k.FOREVER, np.int64
        )
        for moment in unique(data[k.FIRST, self.partials.out.table.standing()]).tolist():
            start = self.starts.get(self._event(moment))
            if start is not None and start.rows:
                best[:, moment] = start.best

        def matter(move: Move, rows: RowIds) -> Array:
            good, tied = np.zeros(len(rows), bool), np.ones(len(rows), bool)
            for row, part in enumerate(self.quantified):
                times, most = data[k.STATE + count + part, rows], parts[part].most  # those left out came not at all
                if part >= move.target and longest:
                    times = np.full(len(rows), k.FOREVER if most is None else most)
                elif part >= move.target:
                    times = np.maximum(times + (part == move.target), parts[part].least)
                held = best[row, data[k.FIRST, rows]]
                good |= tied & ((times > held) if longest else (times < held))
                tied &= times == held
            return good | tied

        return matter

    def _changing(
        self, since: Mapping[int, int], begins: int | None, whole: bool = False
    ) -> tuple[list[int], list[int]]:
        """The matches of which it may still change whether they are chosen; and those that decide where they may begin.

        `whole`: all matches with one first event, or none of them; and as long as any partial match with it may go on, for
        what becomes of that is compared with them.
        """
        partials = self.partials
        moments, ends = partials.moments.out.table, self.inputs[0].table.data[END]
        rows_from = since[id(self.inputs[0].table)]
        least = min(since[id(moments)], rows_from)  # what must be absent may come, or go, when the moments are certain
        going = partials.ongoing.of(least, begins, None if whole else self._matter()).open
        firsts = unique(partials.out.table.data[k.FIRST, : partials.out.table.n][going]).tolist()

        def chosen_yet(start: _Start) -> list[int]:
            """The matches that may be chosen: none that is worse than another one that nothing can take away."""
            certain = [counts for row, counts in start.rows.items() if ends[row] < rows_from]
            if whole or not certain:
                return list(start.rows)
            best = (max if self.run.which == "LONGEST" else min)(certain)
            return [row for row, counts in start.rows.items() if ends[row] >= rows_from or counts == best]

        def is_open(start: _Start) -> bool:
            counted = start.rows if whole else [row for row, counts in start.rows.items() if counts == start.best]
            return start.end >= least or any(ends[row] >= rows_from for row in counted)

        if self.run.skip is None:
            still = set(map(self._event, firsts))
            open_starts = [s for s in self.starts.values() if s.key in still or is_open(s)]
            return [row for start in open_starts for row in chosen_yet(start)], []
        # From the first one on that may change, all may: also from one that has no match yet. But one that begins too soon
        # after a match that is settled is never taken.
        waiting: dict[tuple[int, ...], list[Occurrence]] = {}
        for first in firsts:
            times = int(moments.data[START, first]), int(moments.data[END, first])
            event = Occurrence(self.runtime, *times, partials.moments.parts(first))
            waiting.setdefault(self._key(first), []).append(event)
        rows_of: list[int] = []
        anchors: list[int] = []
        for key, starts in self.groups.items():
            opens, settled, anchor = sorted(waiting.get(key, ()), reverse=True), True, None
            for start in starts:
                early: list[Occurrence] = [start] if is_open(start) else []
                while opens and opens[-1].before(start):
                    early.append(opens.pop())
                settled = settled and not any(whole or self._may_begin(event.start, anchor) for event in early)
                if not settled:
                    rows_of += chosen_yet(start)
                elif start.taken:
                    anchor = start
            if anchor is not None and (not settled or key in waiting or begins is None or anchor.bound >= begins):
                anchors += anchor.taken
        return rows_of, anchors

    def unsettled(self, since: Mapping[int, int], frontier: int) -> int:
        begins = self.partials.begins_from(since[id(self.partials.moments.out.table)], self.runtime)
        rows, _ = self._changing(since, begins)
        return int(min([super().unsettled(since, frontier), *self.inputs[0].table.data[END, rows].tolist()]))

    def may_change(self, horizon: Horizon) -> tuple[Array, int] | None:
        since = horizon.since[id(self.partials.moments.out.table)]
        wanted = np.zeros(self.inputs[0].table.n + 1, bool)
        wanted[self._changing(horizon.since, self.partials.begins_from(since, horizon))[0]] = True
        since = min(since, horizon.since[id(self.inputs[0].table)])
        return wanted[self.out.table.data[LEFT, : self.out.table.n]], since

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        """The matches that may still be chosen, or no longer; with SKIP also the last match before these."""
        wanted = np.zeros(self.inputs[0].table.n, bool)
        since = horizon.since[id(self.partials.moments.out.table)]
        changing, anchors = self._changing(horizon.since, self.partials.begins_from(since, horizon), whole=True)
        wanted[changing + anchors] = True
        return wanted

    def retain(self, keep: dict[int, Array], frontier: int | None, since: Mapping[int, int]) -> None:
        """Of the matches that are kept it stays known which were taken."""
        table = self.out.table
        taken = keep[id(self.inputs[0].table)][table.data[LEFT, : table.n]]
        keep[id(table)] |= table.stands() & taken
