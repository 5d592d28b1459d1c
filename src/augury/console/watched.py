"""A session that is watched: its inputs and its answers, each with the step at which it came and went."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any

from augury.algebra.plan import Plan
from augury.console.input_log import ClockAdvance, Input, InputLog, RuleChange, Setup, opened_at
from augury.console.lane_items import LATE, REFUSED, STANDING
from augury.console.program_text import ProgramText, WrittenProgram, derived_types, outputs_of
from augury.console.recording import Recording
from augury.console.watched_lanes import SAMPLES, HeldSession, WatchedLanes
from augury.core.model import Event, HistoryItem, Revocation
from augury.engine.changes import Changes
from augury.program import ProgramSession

STEPS = 2000  # steps in which a history is told
_MOST_ITEMS = 1_000_000  # items of a lane; of more the oldest are forgotten


class WatchedSession(WatchedLanes):
    """A session with the log of what it was told and what it answered. One thread tells it; others look."""

    def __init__(self, setup: Setup, session: ProgramSession | None = None, base: bytes = b"") -> None:
        super().__init__(setup)
        self.session = session or setup.open()
        self.log = InputLog(base=base)
        self._latest: int | None = None
        self._as_of: tuple[int, ProgramSession] | None = None
        self._replaying = Lock()
        self._sampled = 0.0
        self.every = 1.0  # seconds between two figures; 0 is after each step
        self._wall: float | None = None  # when a step was taken that is told again

    def begin(self, setup: Setup) -> None:
        """Begins anew, before anything was told: with another clock."""
        with self.lock:
            assert not self.steps
            self.setup, self.text, self.session = setup, setup.text, setup.open()
            self.revision += 1

    # Inputs

    def tell_history(self, items: Sequence[HistoryItem], until: int | None = None) -> None:
        """Tells the session a whole history, in steps that are small enough to look back at."""
        size = max(1, len(items) // STEPS)
        steps = -(-len(items) // size)
        for number in range(steps):
            self.push(items[number * size : (number + 1) * size])
            if number % max(1, steps // SAMPLES) == 0 or number == steps - 1:
                self.sample()
        if until is not None:
            self.advance(until)
            self.sample()

    def tell_recording(self, recording: Recording) -> None:
        """Tells the session all steps of a recording, each with the time at which it was taken."""
        steps = recording.steps()
        for number, (wall, inputs) in enumerate(steps):
            self._wall = wall
            self._take(inputs)
            if number % max(1, len(steps) // SAMPLES) == 0 or number == len(steps) - 1:
                self.sample()
        self._wall = None

    def _take(self, inputs: Sequence[Input]) -> None:
        """One step of a recording."""
        for item in inputs:
            if isinstance(item, ClockAdvance):
                self.advance(item.time)
            elif isinstance(item, RuleChange):
                self._change_rule(item)
        items = [item for item in inputs if isinstance(item, Event | Revocation)]
        if items:
            self.push(items)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """One step at a time, whose length is noted."""
        with self.lock:
            start = time.perf_counter()
            yield
            self.busy += time.perf_counter() - start

    def push(self, items: Sequence[HistoryItem]) -> None:
        """One step with events and revocations."""
        with self._working():
            named = self.log.named(items)
            late_before, refused_before = len(self.session.late), len(self.session.rejected)
            before = self._latest
            changes = self.session.push(named)
            late = self.session.late[late_before:]
            refused = {item.id for item in late if isinstance(item, Event)}
            refused |= {item.id for item, _ in self.session.rejected[refused_before:]}
            self._add_inputs(
                [item for item in named if not (isinstance(item, Revocation) and item in late)], before, refused
            )
            self._took(changes, named)

    def advance(self, moment: int) -> None:
        """One step without events: nothing more ends at or before a time."""
        with self._working():
            self._took(self.session.advance(self.setup.clock.moment(moment)), [ClockAdvance(moment)])

    def change_rules(self, text: ProgramText) -> dict[str, int]:
        """Goes over to other rules, which run on the state that is held: how many were added and removed."""
        with self.lock:
            program = text.compile()
            difference = WrittenProgram(program).difference(WrittenProgram(self.session.program))
            plan = program.plan
            for rule in plan.rules:
                self.kinds.setdefault(rule.type, "derived")
            self.kinds |= dict.fromkeys(plan.outputs, "detected")
            if difference.added:
                types = derived_types(plan)
                self._change_rule(
                    RuleChange("".join(f"{text}.\n" for text in difference.added) + outputs_of(types, plan.prefixes))
                )
            for label in difference.removed:
                self._change_rule(RuleChange(removed=label))
            self.text = text
            self.revision += 1
            return {"added": len(difference.added), "removed": len(difference.removed)}

    def _change_rule(self, change: RuleChange) -> None:
        with self._working():
            changes = change.apply(self.session)
            for rule in self.session.program.plan.rules:
                self.kinds.setdefault(rule.type, "detected")
            self._took(changes, [change])

    def _add_inputs(self, items: Iterable[HistoryItem], latest: int | None, refused: set[str]) -> None:
        step = len(self.steps) + 1
        for item in items:
            versions = self.session.input_ids.versions.get(item.id)
            stands = None if versions is None else versions.standing
            if isinstance(item, Revocation) and stands is None:
                self._remove_input(item.id, step)
            if isinstance(item, Revocation) or (versions is not None and stands != item):
                continue  # nothing changes, or another version stands
            if versions is not None:
                self._remove_input(item.id, step)
            arrived = item.end if latest is None else max(latest, item.end)
            if item.known is not None:
                arrived = item.known
            if item.version and item.id not in refused:
                self._lane("event", item.type, len(item.args)).remove(item.id, step)  # the version before
            state = REFUSED if item.id in refused else LATE if arrived > item.end else STANDING
            if item.id not in refused:
                latest = item.end if latest is None else max(latest, item.end)
            self._lane("event", item.type, len(item.args)).add(item, step, arrived, state)
        self._latest = latest

    def _remove_input(self, id: str, step: int) -> None:
        """An input no longer stands."""
        for lane in self.lanes.values():
            if lane.kind == "event" and lane.remove(id, step):
                break

    def _took(self, changes: Changes, inputs: Sequence[Input]) -> None:
        """Notes what a step has changed."""
        step, now = len(self.steps) + 1, self.session.now or 0
        for change in changes:
            event = change.event
            lane = self._lane(self.kind_of(event.type), event.type, len(event.args))
            if change.op == "retract":
                lane.remove(event.id, step)
            else:
                lane.add(Event(event.type, event.args, event.start, event.end, event.id), step, now)
        self.steps.add(self.session.now, self.session.frontier, self._wall)
        self.log.add(inputs, self.session)
        for lane in self.lanes.values():
            if len(lane) > _MOST_ITEMS:
                lane.forget(_MOST_ITEMS // 2)
        if self.live and time.time() - self._sampled >= self.every:
            self.sample()

    # Looking

    @property
    def plan(self) -> Plan:
        return self.session.program.plan

    @property
    def counted(self) -> int:
        return self.session.counted

    @property
    def late_count(self) -> int:
        return self.session.late_count

    def stats(self) -> dict[str, Any]:
        return self.session.stats()

    def sessions_at(self, step: int) -> list[HeldSession]:
        return [HeldSession(self.session_at(step))]

    def session_at(self, step: int) -> ProgramSession:
        """The session as it was after a step; the session itself after the last one. Steps go on while it is made."""
        with self.lock:
            if step >= len(self.steps):
                return self.session
            base, inputs = self.log.base, self.log.until(step)
        with self._replaying:
            if self._as_of is None or self._as_of[0] != step:
                self._as_of = (step, opened_at(self.setup, base, inputs))
            return self._as_of[1]

    def recording(self, step: int | None = None) -> Recording:
        """The session up to a step, as far as it is held."""
        with self.lock:
            log, last = self.log, len(self.steps) if step is None else step
            counts = tuple(log.counts[: max(0, last - log.base_step)])
            walls = tuple(self.steps.wall[log.base_step : log.base_step + len(counts)])
            return Recording(self.setup, tuple(log.inputs[: counts[-1] if counts else 0]), counts, walls, log.base)

    def trial(self, step: int | None = None) -> Recording:
        """What is tried out: the session with the rules that run now."""
        recording = self.recording(step)
        if recording.base:
            return recording
        kept = [(number, item) for number, item in enumerate(recording.inputs, 1) if not isinstance(item, RuleChange)]
        numbers = [number for number, _ in kept]
        counts = tuple(bisect_right(numbers, count) for count in recording.counts)
        setup = replace(self.setup, text=self.text)
        return Recording(setup, tuple(item for _, item in kept), counts, recording.wall)

    def sample(self) -> None:
        super().sample()
        self._sampled = time.time()
