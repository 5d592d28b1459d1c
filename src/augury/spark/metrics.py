"""What a stream has done: measured in each step of a bucket, by stage and rule, and added up from the progress of its query.

The figures have the names of `Session.stats()`. A worker sends those of a step along with its answers, as JSON; Spark gathers
them in the observed metrics of a batch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pyspark.sql.streaming.listener import StreamingQueryListener

from augury.engine.session import Session
from augury.planner.cut_rules import rule_of_part

METRICS, OBSERVED = "augury", "augury_observed_"  # the names under which a query observes its batches, and its sources
STAGES = "stages"  # the metric that has what each step has measured

_HELD = ("rows", "bytes", "lag")  # what a bucket holds; the rest is what it has done


@dataclass
class StepMeter:
    """Measures a step of a session from here on."""

    session: Session
    received: int = 0
    rules: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    began: float = 0.0

    @classmethod
    def start(cls, session: Session) -> Self:
        return cls(session, session.received, _rules(session), time.perf_counter())

    def figures(self, **counts: int) -> dict[str, Any]:
        """What the step has done, and what the session holds now."""
        session, rules = self.session, dict[str, dict[str, float]]()
        circuit = session.circuit
        for part, (matches, touched, seconds) in _rules(session).items():
            before = self.rules.get(part, (0, 0, 0.0))
            figures = rules.setdefault(
                rule_of_part(part), {"matches": 0, "touched": 0, "seconds": 0.0, "rows": 0, "bytes": 0}
            )
            figures["matches"] += matches - before[0]
            figures["touched"] += touched - before[1]
            figures["seconds"] += seconds - before[2]
        for operator in circuit.operators:
            if (label := operator.rule) and (figures := rules.get(rule_of_part(label), {})):
                figures["rows"] += operator.out.table.live
                figures["bytes"] += operator.bytes
        now, frontier = session.now, session.frontier
        return {
            "events": session.received - self.received,
            **counts,
            "rows": sum(operator.out.table.live for operator in circuit.operators),
            "bytes": circuit.bytes,
            "lag": 0 if now is None or frontier is None else max(0, now - frontier),
            "seconds": time.perf_counter() - self.began,
            "rules": rules,
        }


def _rules(session: Session) -> dict[str, tuple[int, int, float]]:
    """By rule: what its head has derived, how many rows its operators have looked at, and how long that took."""
    circuit = session.circuit
    result = {label: (head.out.table.written, 0, 0.0) for label, head in circuit.heads.items()}
    for operator in circuit.operators:
        if operator.rule in result:
            matches, touched, seconds = result[operator.rule]
            result[operator.rule] = matches, touched + operator.touched, seconds + operator.seconds
    return result


class StreamMetrics(StreamingQueryListener):
    """The figures of a query, as `stats()` has them: `spark.streams.addListener(metrics)`, or `metrics.add(progress)`.

    What was done is added up over all batches; what is held (`rows`, `bytes`, `lag`) is that of the last step of each bucket.
    """

    def __init__(self, name: str | None = None) -> None:
        """`name` is that of the query which is listened to; without one, there is just one."""
        self.name = name
        self._batches: dict[str, int] = {}  # the last one of each run
        self._totals: dict[str, float] = {}
        self._stages: dict[int, dict[str, Any]] = {}
        self._held: dict[tuple[int, int], dict[str, Any]] = {}  # by stage and bucket

    def add(self, progress: Any) -> None:
        """Takes the progress of a query, `query.lastProgress` or one of `query.recentProgress`, once."""
        run, batch = str(progress["runId"]), progress["batchId"]
        if batch <= self._batches.get(run, -1):
            return
        self._batches[run] = batch
        observed: Mapping[str, Any] = progress["observedMetrics"] or {}
        for row in by_source(observed).values():
            for name, figure in (("received", row["rows"]), ("malformed", row["count"]), ("unknown", row["unknown"])):
                self._count(self._totals, name, figure)
        if METRICS not in observed:
            return
        row = observed[METRICS]
        for name in ("matches", "retracted", "late", "ahead", "rejected", "repeated", "errors"):
            self._count(self._totals, name, row[name])
        for step in json.loads(f"[{row[STAGES] or ''}]"):
            self._add_step(step)

    def _add_step(self, step: dict[str, Any]) -> None:
        number, rules = step.pop("stage"), step.pop("rules")
        key = number, step.pop("bucket")
        held = self._held[key] = {name: step.pop(name) for name in _HELD}
        held["rules"] = {label: {name: figures.pop(name) for name in _HELD[:2]} for label, figures in rules.items()}
        stage = self._stages.setdefault(number, {"rules": {}})
        for name, figure in step.items():
            self._count(stage, name, figure)
        for label, figures in rules.items():
            for name, figure in figures.items():
                self._count(stage["rules"].setdefault(label, {}), name, figure)

    @staticmethod
    def _count(figures: dict[str, Any], name: str, figure: float) -> None:
        figures[name] = figures.get(name, 0) + (figure or 0)

    def stats(self) -> dict[str, Any]:
        """All figures: of the stream, of each stage, and of each rule of a stage."""
        stages: dict[int, dict[str, Any]] = {}
        for number, done in sorted(self._stages.items()):
            rules = {label: {**figures, "rows": 0, "bytes": 0} for label, figures in done["rules"].items()}
            stages[number] = {**done, "rows": 0, "bytes": 0, "lag": 0, "rules": rules}
        for (number, _), held in self._held.items():
            stage = stages[number]
            stage["lag"] = max(stage["lag"], held["lag"])
            for name in _HELD[:2]:
                stage[name] += held[name]
                for label, figures in held["rules"].items():
                    stage["rules"][label][name] += figures[name]
        held_in_all = {name: sum(stage[name] for stage in stages.values()) for name in _HELD[:2]}
        return {**self._totals, **held_in_all, "stages": stages}

    # What Spark calls

    def onQueryProgress(self, event: Any) -> None:
        progress = event.progress
        if self.name is None or progress.name == self.name:
            observed = {name: row.asDict() for name, row in progress.observedMetrics.items()}
            self.add({"runId": progress.runId, "batchId": progress.batchId, "observedMetrics": observed})

    def onQueryStarted(self, event: Any) -> None:
        """Nothing has been done yet."""

    def onQueryIdle(self, event: Any) -> None:
        """Nothing has been done since."""

    def onQueryTerminated(self, event: Any) -> None:
        """What was done stays."""


def by_source(observed: Mapping[str, Any]) -> dict[str, Any]:
    """What a batch has observed of each source: once, however many stages read it."""
    rows = {name.removeprefix(OBSERVED): row for name, row in observed.items() if name.startswith(OBSERVED)}
    return {name.partition("_")[0]: row for name, row in rows.items()}
