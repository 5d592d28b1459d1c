"""The figures of a service: what it has taken in and written, how far its sources and sinks are, what it holds."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from augury.service.live_service import LiveService

_BOUNDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0)


@dataclass
class SecondsHistogram:
    """How often something took how long."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float, number: int = 1) -> None:
        self.counts[bisect_left(_BOUNDS, seconds)] += number
        self.total += seconds * number

    @property
    def number(self) -> int:
        return sum(self.counts)

    def quantile(self, part: float) -> float:
        """An upper bound of the time that a part of all took."""
        least, seen = part * self.number, 0
        for bound, count in zip((*_BOUNDS, float("inf")), self.counts, strict=True):
            seen += count
            if seen >= least and seen:
                return bound
        return 0.0


FIGURES = {
    "augury_start_time_seconds": "When the service started.",
    "augury_events_total": "Events and revocations that were read.",
    "augury_facts_total": "Changes of facts that were read.",
    "augury_answers_total": "Answers, by operation.",
    "augury_late_total": "Events that came too late.",
    "augury_rejected_total": "Events that were rejected.",
    "augury_malformed_total": "Messages that are no events.",
    "augury_refused_total": "Answers that a sink refused.",
    "augury_reloads_total": "Changed programs.",
    "augury_source_up": "Whether a source can be read.",
    "augury_source_lag": "Events or bytes that are still to be read.",
    "augury_sink_up": "Whether a sink can be written.",
    "augury_sink_waiting": "Answers that wait for a sink.",
    "augury_sink_written_total": "Answers written.",
    "augury_sink_seconds_total": "Time that writing took.",
    "augury_journal_bytes_total": "Bytes written to the journal.",
    "augury_snapshot_seconds": "How long the last snapshot took.",
    "augury_snapshot_bytes": "Size of the last snapshot.",
    "augury_frontier": "Nothing more ends at or before it, on the clock of events.",
    "augury_clock": "The greatest end of an event.",
    "augury_state_rows": "Rows of state.",
    "augury_state_bytes": "Bytes of state.",
    "augury_rule_rows": "Rows of state of a rule.",
    "augury_rule_bytes": "Bytes of state of a rule.",
    "augury_rule_seconds_total": "Time that a rule took.",
}


@dataclass(frozen=True)
class Figure:
    """A figure with its name as Prometheus has it, and labels."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def meaning(self) -> str:
        return FIGURES[self.name]

    @property
    def kind(self) -> Literal["counter", "gauge"]:
        return kind_of(self.name)


def kind_of(name: str) -> Literal["counter", "gauge"]:
    return "counter" if name.endswith("_total") else "gauge"


class ServiceMetrics:
    """Collects the metrics of a service on demand."""

    def __init__(self, service: LiveService) -> None:
        self.service = service
        self.began = time.time()
        self.steps, self.latency = SecondsHistogram(), SecondsHistogram()
        self.journal_bytes = self.refused = self.reloads = self.reloads_refused = 0
        self.snapshot_seconds = 0.0
        self.taken = 0  # events since the start

    def observe_step(self, seconds: float, events: int) -> None:
        self.steps.add(seconds)
        self.taken += events

    def observe_latency(self, seconds: float, rows: int) -> None:
        self.latency.add(seconds, rows)

    def figures(self) -> Iterator[Figure]:
        """All figures but the histograms."""
        yield Figure("augury_start_time_seconds", self.began)
        yield from self._counters()
        yield from self._sources()
        yield from self._sinks()
        yield from self._state()

    def _counters(self) -> Iterator[Figure]:
        stepper = self.service.stepper
        if stepper is None:
            return
        counts = stepper.counts
        yield Figure("augury_events_total", counts.events)
        yield Figure("augury_facts_total", counts.facts)
        for op, value in (("insert", counts.inserts), ("retract", counts.retracts)):
            yield Figure("augury_answers_total", value, (("op", op),))
        yield Figure("augury_late_total", counts.late)
        yield Figure("augury_rejected_total", counts.rejected)
        for reason, number in sorted(counts.malformed.items()):
            labels = (("reason", reason),)
            yield Figure("augury_malformed_total", number, labels)
        yield Figure("augury_refused_total", self.refused)
        for result, number in (("taken", self.reloads), ("refused", self.reloads_refused)):
            yield Figure("augury_reloads_total", number, (("result", result),))

    def _sources(self) -> Iterator[Figure]:
        for feed in self.service.feeds:
            labels = (("source", feed.name),)
            yield Figure("augury_source_up", not feed.problem, labels)
            lag = feed.lag()
            if lag is not None:
                yield Figure("augury_source_lag", lag, labels)

    def _sinks(self) -> Iterator[Figure]:
        for writer in (*self.service.writers, self.service.dead):
            labels = (("sink", writer.name),)
            yield Figure("augury_sink_up", not writer.problem, labels)
            yield Figure("augury_sink_waiting", writer.waiting, labels)
            yield Figure("augury_sink_written_total", writer.written, labels)
            yield Figure("augury_sink_seconds_total", writer.seconds, labels)

    def _state(self) -> Iterator[Figure]:
        service, stepper = self.service, self.service.stepper
        yield Figure("augury_journal_bytes_total", self.journal_bytes)
        yield Figure("augury_snapshot_seconds", self.snapshot_seconds)
        yield Figure("augury_snapshot_bytes", service.state.saved_bytes)
        if stepper is None or not stepper.opened:
            return
        session = stepper.session
        unit = 1e6 if session.clock.kind == "timestamp" else 1
        if session.frontier is not None:
            yield Figure("augury_frontier", session.frontier / unit)
        if session.now is not None:
            yield Figure("augury_clock", session.now / unit)
        stats = session.stats()
        yield Figure("augury_state_rows", stats["rows"])
        yield Figure("augury_state_bytes", stats["bytes"])
        for rule, costs in stats["rules"].items():
            labels = (("rule", rule),)
            yield Figure("augury_rule_rows", costs["rows"], labels)
            yield Figure("augury_rule_bytes", costs["bytes"], labels)
            yield Figure("augury_rule_seconds_total", costs["seconds"], labels)

    def as_prometheus(self) -> str:
        """The text format of Prometheus."""
        lines: list[str] = []
        described = set[str]()
        for figure in sorted(self.figures(), key=lambda figure: figure.name):
            if figure.name not in described:
                described.add(figure.name)
                lines += [f"# HELP {figure.name} {figure.meaning}", f"# TYPE {figure.name} {figure.kind}"]
            lines.append(f"{figure.name}{_labels(figure.labels)} {float(figure.value):.10g}")
        lines += _histogram("augury_step_seconds", "How long the engine took for a step.", self.steps)
        lines += _histogram(
            "augury_latency_seconds", "From the arrival of a step to its answers' being written.", self.latency
        )
        return "\n".join(lines) + "\n"

    def as_state(self) -> dict[str, object]:
        """What `/state` shows."""
        service, stepper = self.service, self.service.stepper
        sources = [
            {"name": feed.name, "problem": feed.problem, "lag": feed.lag(), "position": feed.position}
            for feed in service.feeds
        ]
        sinks = [
            {"name": w.name, "problem": w.problem, "waiting": w.waiting, "written": w.written} for w in service.writers
        ]
        result: dict[str, Any] = {"step": service.number, "ready": service.ready, "sources": sources, "sinks": sinks}
        if stepper is not None:
            result["counts"] = stepper.counts.state()
            result["idle"] = [part.replace("\t", " ") for part in sorted(stepper.watermarks.idle)]
            if stepper.opened:
                result["session"] = stepper.session.stats()
        return result

    def __str__(self) -> str:
        """One line for a terminal."""
        stepper = self.service.stepper
        if stepper is None:
            return "starting"
        counts = stepper.counts
        parts = [f"{counts.events:,} events", f"{counts.inserts:,} answers"]
        parts += [
            f"{number:,} {what}" for number, what in ((counts.retracts, "retracted"), (counts.late, "late")) if number
        ]
        malformed = counts.malformed.total()
        parts += [f"{malformed:,} malformed"] if malformed else []
        lag = sum(feed.lag() or 0 for feed in self.service.feeds)
        parts += [f"lag {lag:,}"] if lag else []
        if self.latency.number:
            parts.append(f"p99 {self.latency.quantile(0.99) * 1000:.0f} ms")
        if stepper.opened and stepper.session.now is not None:
            parts.append(f"at {stepper.session.clock.show(stepper.session.now)}")
        problems = [end.problem for end in self.service.ends if end.problem]
        return ", ".join([*parts, *problems])


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    escaped = ((name, value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")) for name, value in labels)
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped) + "}"


def _histogram(name: str, meaning: str, histogram: SecondsHistogram) -> list[str]:
    lines, total = [f"# HELP {name} {meaning}", f"# TYPE {name} histogram"], 0
    for bound, count in zip((*_BOUNDS, "+Inf"), histogram.counts, strict=True):
        total += count
        lines.append(f'{name}_bucket{{le="{bound}"}} {total}')
    return [*lines, f"{name}_sum {histogram.total:.10g}", f"{name}_count {total}"]
