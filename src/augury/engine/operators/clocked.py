"""Windows by the clock, as rows: `w: every(1h)` beside facts, events, or groups of nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from augury.algebra.clock_windows import Line
from augury.algebra.plan import INPUT
from augury.core.arrays import Array
from augury.core.bounds import TIME_LIMIT
from augury.core.errors import RunError
from augury.engine.operators.base import Clocked, Operator
from augury.engine.saved import require
from augury.engine.saved.forms import is_time
from augury.planner.specs import ClockWindowsSpec
from augury.storage.frame import View
from augury.storage.table import END, START, Table

if TYPE_CHECKING:
    from augury.engine.runtime import Runtime

_MOST = 20_000_000  # windows that are made in one step


class ClockWindows(Clocked):
    """All windows that end at or after the least end of a standing input event, and by the clock.

    It reads all inputs, also those that no rule reads, to know the least end; the runtime gives it the time. Between steps
    all windows `numbers` have been made: they stand, unless a compaction has forgotten them. Both `least` and `numbers`
    follow from the tables and the clock, but for events that are forgotten: once the least end is settled, it is `fixed`.
    """

    carries = ("inputs", "least", "fixed", "numbers")
    linked = ()

    def __init__(self, runtime: Runtime, spec: ClockWindowsSpec) -> None:
        self.line = Line(spec.windows, runtime.clock)
        self.least: int | None = None
        self.fixed: int | None = None  # the least end, once no event can change it any more
        self.numbers: tuple[int, int] | None = None  # the first, and the one after the last
        super().__init__(runtime, spec)
        runtime.clocked.append(self)

    def reads(self) -> tuple[View, ...]:
        inputs = self.runtime.inputs  # a stage of a program on Spark has all its inputs in one type
        return tuple(View(inputs[type].out.table) for type in ([INPUT] if INPUT in inputs else inputs))

    def also(self, events: View) -> None:
        """Events of one more type come."""
        events.table.readers.append((self, len(self.inputs)))
        self.inputs += (events,)
        self.runtime.sources[id(self.out.table)] = self.inputs
        self.seen.append(0)
        self.lost.append([])

    def tick(self, now: int) -> None:
        self.wake()

    @property
    def due(self) -> int | None:
        """When the next window ends."""
        now = self.runtime.now
        return None if self.least is None or now is None else self.line.end(self.line.last_by(max(now, self.least)) + 1)

    def step(self) -> None:
        lost = False
        for port, view in enumerate(self.inputs):
            gained = self.gains(port)
            if len(gained):
                end = int(view.table.data[END, gained].min())
                self.least = end if self.least is None else min(self.least, end)
            ends = view.table.data[END, self.losses(port)]
            lost = lost or (len(ends) > 0 and int(ends.min()) == self.least)
        if lost:
            self.least = self.least_standing()
        self.follow()

    def least_standing(self) -> int | None:
        """The least end of the events that stand; forgotten events stand for ever."""
        tables = [view.table for view in self.inputs]
        ends = [t.earliest() for t in tables if t.live]
        return min(ends if self.fixed is None else [*ends, self.fixed], default=None)

    def current(self) -> tuple[int, int] | None:
        """The numbers of the windows that there are now: the first, and the one after the last."""
        now = self.runtime.now
        if self.least is None or now is None or self.least > now:
            return None
        first, last = self.line.first_from(self.least), self.line.last_by(min(now, TIME_LIMIT)) + 1
        return (first, last) if first < last else None

    def follow(self) -> None:
        """Makes the windows that there are now and were not before, and removes those that there are no longer."""
        before, table = self.numbers, self.out.table
        self.numbers = self.current()
        gone = table.standing()
        if self.numbers is not None and self.least is not None:
            gone = gone[table.data[END, gone] < self.least]
        if len(gone):
            table.kill(gone)
        if self.numbers is None:
            return
        first, last = self.numbers
        if last - first >= _MOST:
            raise RunError(
                f"rule `{self.rule}` has more than {_MOST:,} windows from the first event to now",
                hint="let windows be longer; a rule that only collects makes none where nothing happened",
            )
        made = before or (first, first)
        new = [*range(first, min(made[0], last)), *range(max(made[1], first), last)]
        times = [(self.line.begin(n), self.line.end(n)) for n in new]
        rows = np.array([(s, e, -1, -1, 0) for s, e in times if s <= e], np.int64).reshape(-1, 5).T
        if rows.shape[1]:
            table.append(np.ascontiguousarray(rows))

    def rebuild(self) -> None:
        super().rebuild()
        self.least = self.least_standing()
        self.numbers = self.current()

    def retain(self, keep: dict[int, Array], frontier: int | None, since: Mapping[int, int]) -> None:
        if frontier is not None and self.least is not None and self.least <= frontier:
            self.fixed = self.least

    def parents(self) -> list[tuple[int, Table]]:
        return []

    def unsettled(self, since: Mapping[int, int], frontier: int) -> int:
        return frontier + 1

    def state(self, number: Mapping[int, int]) -> Any:
        return {"fixed": self.fixed}

    def fill(self, state: Any, operators: Sequence[Operator]) -> None:
        require(isinstance(state, dict) and state.keys() == {"fixed"}, "invalid windows")
        require(is_time(state["fixed"]), "an invalid time")
        self.fixed = state["fixed"]

    def check(self) -> None:
        data = self.out.table.data[:, : self.out.table.n]
        require(bool((data[START] <= data[END]).all()), "a window that ends before it begins")
