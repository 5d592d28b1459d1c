"""Throughput and state over time, of a session or of a stream."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Protocol

from augury.core.errors import RunError
from augury.pictures.picture import Picture
from augury.pictures.plots import PALETTE, figure, picture_of, style


@dataclass(frozen=True)
class Sample:
    """What was seen at a moment: seconds since the beginning, events so far, rows and bytes of state."""

    seconds: float
    events: int
    rows: int
    bytes: int


class WatchableSession(Protocol):
    """What has figures of itself, as a session does."""

    def stats(self) -> dict[str, Any]: ...


class Watch:
    """Looks at a session now and then: `watch.look()` after pushes, `watch.chart()` in the end."""

    def __init__(self, session: WatchableSession) -> None:
        self.session, self._began = session, time.monotonic()
        self.samples: list[Sample] = []
        self.look()

    def look(self) -> Sample:
        """Notes what the session has seen and holds."""
        stats = self.session.stats()
        result = Sample(time.monotonic() - self._began, stats["events"], stats["rows"], stats["bytes"])
        self.samples.append(result)
        return result

    def chart(self, title: str = "") -> Picture:
        """Throughput and state over time, as seen so far."""
        return chart_of(self.samples, title)


def stream_chart(progress: Iterable[Mapping[str, Any]], title: str = "") -> Picture:
    """Throughput and state over time of a stream of Spark: `stream_chart(query.recentProgress)`."""
    samples: list[Sample] = []
    events, began = 0, None
    for item in progress:
        if isinstance(item, str):
            raise RunError("not the progress of a query", "give query.recentProgress")
        moment = datetime.fromisoformat(item["timestamp"])
        began = began or moment
        events += int(item["numInputRows"])
        operators = item.get("stateOperators") or ()
        lasted = (item.get("durationMs") or {}).get("triggerExecution", 0) / 1000
        samples.append(
            Sample(
                (moment - began).total_seconds() + lasted,
                events,
                sum(o["numRowsTotal"] for o in operators),
                sum(o["memoryUsedBytes"] for o in operators),
            )
        )
    return chart_of([Sample(0.0, 0, 0, 0), *samples], title)


def chart_of(samples: Sequence[Sample], title: str = "") -> Picture:
    """Events a second between looks, and below it the rows and the megabytes that were held."""
    if len(samples) < 2:
        raise RunError("a chart over time needs at least two samples", "watch.look() after some pushes")
    seconds = [sample.seconds for sample in samples]
    pairs = list(pairwise(samples))
    rates = [(b.events - a.events) / max(b.seconds - a.seconds, 1e-6) for a, b in pairs]
    with style():
        drawn = figure(760, 520)
        rate, rows, size = drawn.subplots(3, 1, sharex=True)
        rate.stairs(rates, seconds, color=PALETTE[1], fill=True, alpha=0.35)
        rate.stairs(rates, seconds, color=PALETTE[1], linewidth=1.2)
        rows.plot(seconds, [sample.rows for sample in samples], color=PALETTE[0], linewidth=1.8)
        size.plot(seconds, [sample.bytes / 1e6 for sample in samples], color=PALETTE[2], linewidth=1.8)
        for axes, said in ((rate, "events a second"), (rows, "rows of state"), (size, "state in MB")):
            axes.set_title(said)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
        size.set_xlabel("seconds")
        if title:
            drawn.suptitle(title, x=0.01, ha="left", weight="bold")
        return picture_of(drawn, title or "Throughput and state")
