"""The run that came furthest: the most events, then the most parts, and what kept it from going on."""

from __future__ import annotations

from augury.algebra import nodes as n
from augury.algebra.matching import agree
from augury.core.model import Value, order_key, show_value
from augury.explain.why_not.candidates import Nearby
from augury.explain.why_not.words import MissWording
from augury.explain.wording import show_condition
from augury.semantics.occurrences import Row
from augury.semantics.run_matches import RunEvaluator, RunMatch

MOST = 2_000  # partial runs that are looked at
_NONE = RunMatch({}, {})


class NearestRun:
    """Looks for the partial match of a run that came furthest."""

    def __init__(self, world: Nearby, words: MissWording, run: n.Run) -> None:
        self.world, self.words, self.run = world, words, run
        self.runs = RunEvaluator(world, run)
        self.results = {result.name for result in run.results}

    def nearest(self) -> tuple[RunMatch, int, tuple[str, ...]]:
        """The match, how many events it needs, and what failed; nothing failed where it is what is asked for."""
        level, seen = [_NONE], [_NONE]
        while level and len(seen) < MOST:
            steps = [further for match in level for further in self._further(match)]
            seen += steps
            level = steps
        self.world.capped |= bool(level)
        best = max(enumerate(seen), key=lambda item: (*self._reach(item[1]), item[0]))[1]
        failed = self._whole(best) if self._is_complete(best) else self._stopped(best)
        return best, len(best.events) + (0 if self._is_complete(best) else self._lacking(best)), tuple(failed)

    def _reach(self, match: RunMatch) -> tuple[int, int, int]:
        """How far a match came. Of complete ones, one that is asked for is the best."""
        return len(match.events), len(match.counts), -len(self._whole(match)) if self._is_complete(match) else 0

    def _further(self, match: RunMatch) -> list[RunMatch]:
        if self._is_complete(match):
            return []
        return [further for further in self.runs.steps(match) if self._is_asked_for(further)]

    def _is_complete(self, match: RunMatch) -> bool:
        return len(match.counts) == len(self.run.parts) and bool(match.events)

    def _is_asked_for(self, match: RunMatch) -> bool:
        """Whether it agrees with what is asked, results aside: those are shown with their values."""
        if len(match.counts) == len(self.run.parts) and not match.events:
            return False
        interval = self.world.interval
        if match.events and interval and not (interval[0] <= match.start and match.end <= interval[1]):
            return False
        asked = {v: x for v, x in self.world.wanted.items() if v in match.binding and v not in self.results}
        return all(order_key(match.binding[v]) == order_key(x) for v, x in asked.items())

    def _lacking(self, match: RunMatch) -> int:
        """How many more events it needs at least."""
        number = len(match.counts)
        here = self.run.parts[number].least - len(match.iterations) if number < len(self.run.parts) else 0
        return max(1, max(0, here) + sum(part.least for part in self.run.parts[number + 1 :]))

    def _whole(self, match: RunMatch) -> list[str]:
        """What keeps a complete match from being an answer."""
        row = self.runs.row(match)
        failed = self.words.windows(self.run.windows, row)
        values = self.runs.results(match)
        for condition in self.run.where:
            if not list(self.world.select((condition,), row)):
                failed.append(self.words.condition(condition, row, self.world))
                break
        for name, value in self.world.wanted.items():
            if name in values and order_key(values[name]) != order_key(value):
                failed.append(f"`{name}` is {show_value(values[name])}, not {show_value(value)}")
        if not failed and not any(row.parts == match.events for row in self.world.rows(self.run)):
            failed.append(self._not_chosen(match))
        return failed

    def _not_chosen(self, match: RunMatch) -> str:
        first = match.events[0].id
        other = next((row for row in self.world.rows(self.run) if row.parts[0].id == first), None)
        if other is not None:
            return f"{self.run.which} took {self.words.row(other)} instead"
        return "SKIP passed over it: it starts before it may, after the one that was taken"

    def _stopped(self, match: RunMatch) -> list[str]:
        """Why a partial match did not go on."""
        part = self.run.parts[len(match.counts)]
        count = len(match.iterations)
        failed: list[str] = []
        if count < part.least and part.least > 1 and count:
            failed.append(f"{part.span.quoted}: {count} of {part.least} times")
        if count >= part.least:
            failed += self._after(match, part)
        parts = [part] if count < part.least else [part, *self.run.parts[len(match.counts) + 1 :]][:2]
        return (
            failed or [self._no_next(match, parts[-1])]
            if count >= part.least
            else [*failed, self._no_next(match, part)]
        )

    def _after(self, match: RunMatch, part: n.RunPart) -> list[str]:
        """The conditions on the whole repetition that fail."""
        return [f"`{show_condition(c)}`: {self.words.values(c, row)}" for c, row in self.runs.failed_after(match, part)]

    def _no_next(self, match: RunMatch, part: n.RunPart) -> str:
        after = f" after {self.words.clock.show(match.end)}" if match.events else ""
        later = [r for r in self.world.rows(part.input) if not match.events or match.end < r.start]
        joining = [r for r in later if agree(match.binding, _shared(r, part)) is not None and self.world.fits(r)]
        for row in sorted(joining, key=lambda r: (r.start, r.order)):
            failure = self.runs.failure(match, part, row)
            if failure is not None:
                written, filled, there = failure
                return f"{self.words.row(row)}: `{show_condition(written)}`: {self.words.values(filled, there)}"
            blocker = self.runs.interruption(match, match.end, row.start) if match.events else None
            if blocker is not None:
                return f"{self.words.row(row)} is not next: {self.words.blocked(blocker)}"
        return f"no {self.words.pattern(part.input, {**self.world.wanted, **match.binding})}{after}"


def _shared(row: Row, part: n.RunPart) -> dict[str, Value]:
    return {v: x for v, x in row.binding.items() if v not in part.own}
