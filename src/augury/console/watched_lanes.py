"""What a console shows of whatever it watches: lanes of events, each with the step at which it came and went."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any

from augury.algebra.plan import Plan
from augury.console.input_log import Setup
from augury.console.lane_items import LaneItems
from augury.console.recording import Recording
from augury.core.errors import RunError
from augury.engine.session import Session
from augury.pictures.lanes import Kind

SAMPLES = 300  # figures over time
_NO_FRONTIER = -(2**62)


@dataclass
class StepTimes:
    """The clock and the frontier after each step, and when it was taken."""

    clock: array[int] = field(default_factory=lambda: array("q"))
    frontier: array[int] = field(default_factory=lambda: array("q"))
    wall: array[float] = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        return len(self.clock)

    def add(self, now: int | None, frontier: int | None, wall: float | None = None) -> None:
        self.clock.append(now if now is not None else _NO_FRONTIER)
        self.frontier.append(frontier if frontier is not None else _NO_FRONTIER)
        self.wall.append(time.time() if wall is None else wall)

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


@dataclass(frozen=True, eq=False)
class HeldSession:
    """A session that holds state, or a bucket of a stage of a stream; `extra` arguments of its events are not the user's."""

    session: Session
    stage: int = 1
    extra: int = 0


class WatchedLanes:
    """Lanes of events, the steps that were taken, and figures over time. One thread writes; others look."""

    live = False
    looks_only = False  # whether nothing can be tried out on a copy
    title = ""  # what is watched, where that is no history and no live source

    def __init__(self, setup: Setup) -> None:
        self.setup, self.text = setup, setup.text  # the text as it runs now: rules may have changed since
        self.lanes: dict[tuple[Kind, str, int], LaneItems] = {}
        self.steps, self.samples = StepTimes(), list[dict[str, Any]]()
        self.lock = RLock()
        self.problem = ""
        self.revision = 0  # grows where the program changes, or its clock
        self.busy = 0.0  # seconds that steps took
        plan = setup.program.plan
        self.kinds: dict[str, Kind] = dict.fromkeys((rule.type for rule in plan.rules), "derived")
        self.kinds |= dict.fromkeys(plan.outputs, "detected")

    # What differs

    @property
    def plan(self) -> Plan:
        """The plan of the program that runs now."""
        raise NotImplementedError

    @property
    def counted(self) -> int:
        """How many events came."""
        raise NotImplementedError

    @property
    def late_count(self) -> int:
        """How many came too late."""
        raise NotImplementedError

    def sessions_at(self, step: int) -> Sequence[HeldSession]:
        """What holds the state after a step."""
        raise NotImplementedError

    def stats(self) -> dict[str, Any]:
        """The figures of now."""
        raise NotImplementedError

    # Lanes

    def kind_of(self, type: str) -> Kind:
        return self.kinds.get(type, "event")

    def _lane(self, kind: Kind, name: str, arity: int) -> LaneItems:
        lane = self.lanes.get((kind, name, arity))
        if lane is None:
            lane = self.lanes[kind, name, arity] = LaneItems(name, kind, arity)
        return lane

    @property
    def version(self) -> int:
        """Grows with each step."""
        return len(self.steps)

    @property
    def detections(self) -> int:
        """How many there were; those that were retracted are among them."""
        return sum(len(lane) for lane in self.lanes.values() if lane.kind == "detected")

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

    def draft(self) -> Recording:
        """The program with its facts, without any input."""
        return Recording(replace(self.setup, text=self.text), (), (), ())

    def sample(self) -> None:
        """Notes the figures of now."""
        stats = self.stats()
        times = self.steps.times(len(self.steps))
        self.samples.append(
            {
                **times, "wall": self.steps.wall[-1] if self.steps else time.time(), "step": len(self.steps), "seconds": self.busy,
                **{name: stats[name] for name in ("events", "late", "rows", "bytes", "steps")}, "detections": self.detections,
                "rules": stats["rules"],
            }
        )  # fmt: skip
        if len(self.samples) > 2 * SAMPLES:
            del self.samples[1:-1:2]
