"""A session that is watched: its inputs and its answers, each with the step at which it came and went."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from augury.console.input_log import ClockAdvance, Input, InputLog, Setup
from augury.console.lane_items import LATE, REFUSED, STANDING, LaneItems
from augury.core.errors import RunError
from augury.core.model import Event, HistoryItem, Revocation
from augury.engine.changes import Changes
from augury.pictures.lanes import Kind
from augury.program import ProgramSession

STEPS = 2000  # steps in which a history is told
SAMPLES = 300  # figures over time
_MOST_ITEMS = 1_000_000  # items of a lane; of more the oldest are forgotten
_NO_FRONTIER = -(2**62)


@dataclass
class StepTimes:
    """The clock and the frontier after each step, and when it was taken."""

    clock: array[int] = field(default_factory=lambda: array("q"))
    frontier: array[int] = field(default_factory=lambda: array("q"))
    wall: array[float] = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        return len(self.clock)

    def add(self, session: ProgramSession) -> None:
        now, frontier = session.now, session.frontier
        self.clock.append(now if now is not None else _NO_FRONTIER)
        self.frontier.append(frontier if frontier is not None else _NO_FRONTIER)
        self.wall.append(time.time())

    def step_at(self, moment: int | None) -> int:
        """The last step whose clock is not after a moment; steps count from one."""
        return len(self) if moment is None else bisect_right(self.clock, moment)

    def times(self, step: int) -> dict[str, int | None]:
        """The clock and the frontier after a step."""
        if not step:
            return {"clock": None, "frontier": None}
        clock, frontier = self.clock[step - 1], self.frontier[step - 1]
        return {
            "clock": None if clock == _NO_FRONTIER else clock,
            "frontier": None if frontier == _NO_FRONTIER else frontier,
        }


class WatchedSession:
    """A session with the log of what it was told and what it answered. One thread tells it; others look."""

    def __init__(self, setup: Setup, log: InputLog | None = None) -> None:
        self.setup, self.session = setup, setup.open()
        self.log = log or InputLog()
        self.lanes: dict[tuple[Kind, str, int], LaneItems] = {}
        self.steps, self.samples = StepTimes(), list[dict[str, Any]]()
        self.lock = RLock()
        self.live = False
        self.problem = ""
        self._latest = None  # type: int | None
        self._as_of: tuple[int, ProgramSession] | None = None
        self._sampled = 0.0
        self.every = 1.0  # seconds between two figures; 0 is after each step
        self._kinds: dict[str, Kind] = dict.fromkeys((rule.type for rule in setup.program.plan.rules), "derived")
        self._kinds |= dict.fromkeys(setup.program.plan.outputs, "detected")

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

    def push(self, items: Sequence[HistoryItem]) -> None:
        """One step with events and revocations."""
        with self.lock:
            named = self.log.named(items)
            late_before, refused_before = len(self.session.late), len(self.session.rejected)
            before = self._latest
            changes = self.session.push(named)
            refused = {item.id for item in self.session.late[late_before:] if isinstance(item, Event)}
            refused |= {item.id for item, _ in self.session.rejected[refused_before:]}
            self._add_inputs(named, before, refused)
            self._took(changes, named)

    def advance(self, moment: int) -> None:
        """One step without events: nothing more ends at or before a time."""
        with self.lock:
            self._took(self.session.advance(self.setup.clock.moment(moment)), [ClockAdvance(moment)])

    def add_rules(self, text: str) -> None:
        """Adds rules, which run on the state that is held."""
        with self.lock:
            changes = self.session.add_rules(text)
            self.setup = Setup(self.setup.program.with_rules(text), *self._rest_of_setup)
            for rule in self.setup.program.plan.rules:
                self._kinds.setdefault(rule.type, "detected")
            self._took(changes, [])

    @property
    def _rest_of_setup(self) -> tuple[Any, ...]:
        return self.setup.clock, self.setup.facts, self.setup.settings

    def _add_inputs(self, items: Iterable[HistoryItem], latest: int | None, refused: set[str]) -> None:
        step = len(self.steps) + 1
        for item in items:
            if isinstance(item, Revocation):
                for lane in self.lanes.values():
                    if lane.kind == "event" and lane.remove(item.id, step):
                        break
                continue
            arrived = item.end if latest is None else max(latest, item.end)
            if item.known is not None:
                arrived = item.known
            state = REFUSED if item.id in refused else LATE if arrived > item.end else STANDING
            if item.id not in refused:
                latest = item.end if latest is None else max(latest, item.end)
            self._lane("event", item.type, len(item.args)).add(item, step, arrived, state)
        self._latest = latest

    def _took(self, changes: Changes, inputs: Sequence[Input]) -> None:
        """Notes what a step has changed."""
        step, now = len(self.steps) + 1, self.session.now or 0
        for change in changes:
            event = change.event
            lane = self._lane(self._kinds[event.type], event.type, len(event.args))
            if change.op == "retract":
                lane.remove(event.id, step)
            else:
                lane.add(Event(event.type, event.args, event.start, event.end, event.id), step, now)
        self.steps.add(self.session)
        self.log.add(inputs, self.session)
        for lane in self.lanes.values():
            if len(lane) > _MOST_ITEMS:
                lane.forget(_MOST_ITEMS // 2)
        if self.live and time.time() - self._sampled >= self.every:
            self.sample()

    def _lane(self, kind: Kind, name: str, arity: int) -> LaneItems:
        lane = self.lanes.get((kind, name, arity))
        if lane is None:
            lane = self.lanes[kind, name, arity] = LaneItems(name, kind, arity)
        return lane

    # Looking

    @property
    def version(self) -> int:
        """Grows with each step."""
        return len(self.steps)

    def ordered_lanes(self) -> list[LaneItems]:
        """The lanes from top to bottom: events, what is derived on the way, detections."""
        order = ("event", "derived", "detected")
        return sorted(self.lanes.values(), key=lambda lane: order.index(lane.kind))

    def item(self, type: str, id: str) -> tuple[LaneItems, int]:
        """The lane and the row of an event."""
        for lane in self.lanes.values():
            if lane.name == type and (row := lane.rows.get(id)) is not None:
                return lane, row
        raise RunError(f"there is no `{type}` with the id {id}", hint="it may have been forgotten")

    def session_at(self, step: int) -> ProgramSession:
        """The session as it was after a step; the session itself after the last one."""
        with self.lock:
            if step >= len(self.steps):
                return self.session
            if self._as_of is None or self._as_of[0] != step:
                self._as_of = (step, self.log.session(self.setup, step))
            return self._as_of[1]

    def sample(self) -> None:
        """Notes the figures of now."""
        stats = self.session.stats()
        self._sampled = time.time()
        times = self.steps.times(len(self.steps))
        seconds = sum(row["seconds"] for row in stats["operators"])
        self.samples.append(
            {
                **times, "wall": self._sampled, "step": len(self.steps), "seconds": seconds,
                **{name: stats[name] for name in ("events", "matches", "late", "rows", "bytes", "steps")},
                "rules": stats["rules"],
            }
        )  # fmt: skip
        if len(self.samples) > 2 * SAMPLES:
            del self.samples[1:-1:2]
