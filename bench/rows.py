"""What a benchmark finds: rows of figures, each with its check."""

from __future__ import annotations

from dataclasses import dataclass

from bench.measure import Timing
from bench.workload import Workload

THROUGHPUT = "K events/CPU s"
_RATES = ("/", "M/s")


def is_rate(unit: str) -> bool:
    """Whether more of a unit is better."""
    return any(sign in unit for sign in _RATES)


@dataclass(frozen=True)
class Row:
    """One figure. Rows of one `figure` belong together in a table and a chart; `series` are the bars of one `case`.

    `base` is what the figure stands beside; `target` is what their ratio, or the figure alone, should not exceed, `least`
    what it should reach.
    """

    figure: str
    case: str
    series: str
    value: float
    unit: str
    events: int = 0
    answers: int | None = None
    expected: int | None = None
    warm: float | None = None
    note: str = ""
    base: float | None = None
    target: float | None = None
    least: float | None = None

    @property
    def ratio(self) -> float | None:
        return None if self.base is None else self.value / max(self.base, 1e-9)

    @property
    def met(self) -> bool | None:
        """Whether the target is met, where there is one."""
        reached = self.value if self.ratio is None else self.ratio
        if self.target is None:
            return None if self.least is None else reached >= self.least
        return reached <= self.target

    @property
    def right(self) -> bool:
        """A row that checks nothing is right."""
        return self.answers == self.expected


def throughput(figure: str, case: str, series: str, workload: Workload, timing: Timing, note: str = "") -> Row:
    """Thousands of events a CPU second."""
    rate = workload.events / max(timing.cpu, 1e-9) / 1000
    return Row(
        figure, case, series, rate, THROUGHPUT, workload.events, timing.answers, workload.expected, timing.warm, note
    )
