"""When an answer is final (SEMANTICS 12): no event that may still come can be in a match that takes its place.

Events that are still to come end after the frontier, and begin no earlier than their greatest length before it. An answer
of a run that chooses is open while such an event could extend a match of the same first event, or with SKIP of an
earlier one, and make it as good or better: nothing has ended the repetition before the event could start, and the window
and the conditions on times still allow it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from augury.algebra import nodes as n
from augury.algebra.kinds import inner_absences, keeps_some_matches
from augury.algebra.matching import agree
from augury.algebra.plan import Plan, Predicate
from augury.algebra.properties import event_lengths
from augury.algebra.run_bounds import start_bounds
from augury.algebra.run_terms import with_counts_in_quantifiers
from augury.algebra.strata import Stratum, edges, fact_edges
from augury.core.bounds import FAR
from augury.core.clock import Clock
from augury.core.model import Event, OrderKey
from augury.entailment import ExplainedModel
from augury.semantics.pattern_rows import World
from augury.semantics.run_matches import RunEvaluator, RunMatch


@dataclass
class Finality:
    """What can no longer change where nothing more ends at or before the frontier, and no input is longer than `longest`.

    It looks at the world stratum by stratum (`observe`); `since` is for each derived type from which end on its events may
    still appear or vanish, `limits` up to which end an event that is not open is final, and `open` the matches of each rule
    that may still be replaced, by the ids of their events.
    """

    plan: Plan
    clock: Clock
    frontier: int
    longest: int  # in time points
    by_ends: bool = True  # whether a window is also closed for what could start inside it, but not end there
    since: dict[Predicate, int] = field(default_factory=dict)
    limits: dict[Predicate, int] = field(default_factory=dict)
    open: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)

    def observe(self, world: World, stratum: Stratum) -> None:
        """Takes in the rules of a stratum, whose events are in the world by now."""
        reads: dict[Predicate, set[Predicate]] = {}
        for edge in [e for rule in stratum.rules for e in edges(rule)] + fact_edges(self.plan):
            reads.setdefault(edge.head, set()).add(edge.reads)
        for type in stratum.types:
            read = [self.since.get(t, self.frontier + 1) for t in reads.get(type, ()) if t not in stratum.types]
            since = limit = min(read, default=self.frontier + 1)
            for rule in stratum.rules:
                if rule.predicate == type:
                    since = limit = min([limit, *self._sessions_open(rule)])
                runs = [x for x in n.walk(rule.body) if keeps_some_matches(x)]
                if rule.predicate == type and runs:
                    matches = list(self._open_matches(world, with_counts_in_quantifiers(runs[0])))
                    self.open[rule.label] = {tuple(e.id for e in match.events) for match in matches}
                    since = min([since, *(match.end for match in matches)])
                    limit = limit if rule.top is None and rule.at_most is None else min(limit, since)
            self.since[type] = min(self.since.get(type, since), since)
            self.limits[type] = min(self.limits.get(type, limit), limit)

    def _sessions_open(self, rule: n.Rule) -> Iterator[int]:
        """From which end on each session window of a rule may change: an occurrence that comes may have begun long before."""
        lengths = event_lengths(self.plan, self.longest * (self.clock.tick if self.clock.kind == "logical" else 1))
        for node in rule.nodes:
            if isinstance(node, n.SessionWindow):
                type = node.input.predicate
                longest = lengths.get(type, 0)
                since = self.since.get(type, self.frontier + 1)
                yield -FAR if longest is None else since - self.clock.length(longest)

    def is_final(self, event: Event, model: ExplainedModel) -> bool:
        if event.end >= self.limits.get((event.type, len(event.args)), self.frontier + 1):
            return False
        return not any(
            tuple(part.id for part in derivation.parts) in self.open.get(derivation.rule, ())
            for derivation in model.derivations[event.id]
        )

    def _open_matches(self, world: World, run: n.Run) -> Iterator[RunMatch]:
        """The complete matches that may still be chosen, or no longer."""
        lengths = event_lengths(self.plan, self.longest * (self.clock.tick if self.clock.kind == "logical" else 1))
        types = [scan.predicate for scan in run.among]
        absent = {type for absence in inner_absences(run.where) for type in n.event_types(absence.pattern)}
        since = min(self.since.get(type, self.frontier + 1) for type in (*types, *absent))
        longest = [lengths.get(type) for type in types]
        runs = RunEvaluator(world, run)
        complete = [m for begun in runs.extended(RunMatch({}, {})) for m in runs.whole(begun)]
        # Where nothing says how long the events of a type last, one that comes may have begun at any time.
        lasting = [self.clock.length(length) for length in longest if length is not None]
        begins = since - max(lasting) if len(lasting) == len(longest) else 1 - FAR
        best = _best(runs, complete)
        # A match that is worse than another one with the same first event, which nothing can take away, is never chosen.
        certain = _best(runs, [match for match in complete if match.end < since])
        complete = [m for m in complete if m.end >= since or certain[runs.group(m)] == runs.counts(m)]
        firsts = {runs.group(m): m.events[0] for m in self._going(runs, since, begins, best)}
        firsts |= {g: m.events[0] for m in complete if m.end >= since and best[g := runs.group(m)] == runs.counts(m)}
        if run.skip is None:
            yield from (match for match in complete if runs.group(match) in firsts)
            return
        for key in {runs.group(match)[0] for match in complete}:
            mine = [match for match in complete if runs.group(match)[0] == key]
            yield from self._after_open(runs, mine, [e for group, e in firsts.items() if group[0] == key])

    def _after_open(self, runs: RunEvaluator, matches: list[RunMatch], firsts: list[Event]) -> Iterator[RunMatch]:
        """With SKIP, the matches from the first event on that is open, unless it begins too soon after a settled match."""
        taken = sorted(runs.skipped(runs.chosen(matches)), key=lambda m: m.events[0].order)
        opens: list[Event] = []
        for event in sorted(firsts, key=lambda e: e.order):
            earlier = [m for m in taken if m.events[0].order < event.order]
            before = earlier[-1] if earlier else None
            if before is None or runs.may_begin(event.start, before):
                opens.append(event)
                break
        for match in matches:
            if any(event.order <= match.events[0].order for event in opens):
                yield match

    def _going(
        self, runs: RunEvaluator, since: int, begins: int, best: dict[OrderKey, tuple[int, ...]]
    ) -> Iterator[RunMatch]:
        """The partial matches that an event which ends `since` then may extend, so that they become no worse than the best."""
        parts, begun = runs.run.parts, [RunMatch({}, {})]
        while begun:
            match = begun.pop()
            if len(match.counts) == len(parts):
                continue
            number, count = len(match.counts), len(match.iterations)
            part = parts[number]
            if part.most is None or count < part.most:
                begun += runs.following(match, part, part.between if count else part.link)
                best_counts = best.get(runs.group(match)) if match.events else None
                if (
                    match.events
                    and self._latest_end(runs, match) >= since
                    and self._latest_start(runs, match) >= begins
                    and _matters(runs.run, match, best_counts)
                ):
                    yield match
            if count >= part.least:
                begun += runs.completed(match, replace(part, after=()))

    def _latest_end(self, runs: RunEvaluator, match: RunMatch) -> int:
        """When the windows of a run close that a match has begun."""
        if not self.by_ends:
            return FAR
        return min((match.start + self.clock.length(window) for window in runs.run.windows), default=FAR)

    def _latest_start(self, runs: RunEvaluator, match: RunMatch) -> int:
        """The latest start of an event that may be the next iteration of the part that a match has come to."""
        number, count, run = len(match.counts), len(match.iterations), runs.run
        part = run.parts[number]
        link = part.between if count else part.link
        if link == "THEN":
            ends = [longer.end for longer in runs.following(match, part, link)]
        else:
            rows = (row for scan in run.among for row in runs.world.rows(scan) if row.start > match.end)
            ends = [row.end for row in rows if agree(match.binding, row.binding) is not None]
        lasts = [*match.lasts, match.iterations[-1].parts[-1] if count else None]
        source = max(i for i, last in enumerate(lasts) if last is not None)
        latest = [*ends, *(match.start + self.clock.length(window) for window in run.windows)]
        tick = self.clock.tick if self.clock.kind == "logical" else 1
        for bound in start_bounds(run, source, number, tick):
            last = lasts[bound.part]
            if last is not None:
                latest.append((last.start if bound.which == "s" else last.end) + self.clock.length(bound.length))
        result = min(latest, default=FAR)
        return result if result > match.end else -FAR  # what follows starts after the end of the match


def _best(runs: RunEvaluator, matches: list[RunMatch]) -> dict[OrderKey, tuple[int, ...]]:
    """The counts of the longest, or shortest, of the matches with each first event."""
    best: dict[OrderKey, tuple[int, ...]] = {}
    for match in matches:
        group, counts = runs.group(match), runs.counts(match)
        best[group] = (max if runs.run.which == "LONGEST" else min)(best.get(group, counts), counts)
    return best


def _matters(run: n.Run, match: RunMatch, best: tuple[int, ...] | None) -> bool:
    """Whether a match with one more iteration of its part can become as good as the best, or better."""
    if best is None:
        return True
    longest, number = run.which == "LONGEST", len(match.counts)
    counts = list(match.counts)
    for i, part in enumerate(run.parts[number:], number):
        least = max(part.least, len(match.iterations) + 1 if i == number else 0)
        counts.append((FAR if part.most is None else part.most) if longest else least)
    chosen = tuple(count for count, part in zip(counts, run.parts, strict=True) if part.quantified)
    return chosen >= best if longest else chosen <= best
