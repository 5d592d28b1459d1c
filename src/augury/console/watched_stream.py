"""A stream on Spark that is watched through its checkpoint: what its state holds, and the answers that it has written.

The stream runs in another process, which notices nothing of it: its files are read, and none is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from augury.algebra.plan import Plan
from augury.console.derivation_graph import without_extra
from augury.console.follower import Follower
from augury.console.input_log import Setup
from augury.console.lane_items import LATE, STANDING
from augury.console.watched_lanes import HeldSession, WatchedLanes
from augury.core.errors import AuguryError
from augury.core.model import Event, HistoryItem, Revocation
from augury.explain.sessions import held_events
from augury.settings import Task
from augury.sources import Reader, Skipped, SourceFile

_BATCHES = 2000  # the latest ones whose answers are read when a console opens
_SECONDS = 1.0  # between two looks at the checkpoint


class WrittenAnswers:
    """The answers that a stream has written to folders on this machine, batch by batch."""

    def __init__(self, task: Task, setup: Setup, folders: Mapping[str, str], format_: str) -> None:
        self.setup, self.folders, self.parquet = setup, folders, format_ == "parquet"
        self.skipped = Skipped("skip")
        self.reader = Reader(task.plan, lambda first: setup.clock, self.skipped, False)
        self.next = 0  # the first batch that was not read

    def until(self, batch: int) -> Iterator[HistoryItem]:
        """The answers of the batches that were not read, up to one; a batch that a reader has taken away is not there."""
        for number in range(max(self.next, batch + 1 - _BATCHES), batch + 1):
            for name, folder in self.folders.items():
                path = Path(folder.removeprefix("file://")) / f"batch={number}"
                if path.is_dir() and any(file.name.startswith("part-") for file in path.iterdir()):
                    yield from self.reader.sources([SourceFile(str(path), self._type(name))], in_order=True).items()
        self.next = batch + 1

    def _type(self, name: str) -> str | None:
        """The type of the answers in a part; none where a column says it."""
        if not self.parquet:
            return None
        outputs = self.setup.program.plan.outputs
        return name.partition(".")[2] or (outputs[0] if len(outputs) == 1 else None)


class WatchedStream(WatchedLanes):
    """A stream as of its last complete batch. A step is a look at it: a batch, or some, since the last one.

    What its state forgets stays in the lanes for as long as the console runs.
    """

    looks_only = True

    def __init__(
        self,
        setup: Setup,
        last_batch: Callable[[], int | None],
        state: Callable[[], Iterable[HeldSession]],
        written: WrittenAnswers,
    ) -> None:
        super().__init__(setup)
        self.last_batch, self.state, self.written = last_batch, state, written
        self.live = True
        self.title = "no batch yet"
        self._batch: int | None = None
        self._held: list[HeldSession] = []

    def look(self) -> bool:
        """Looks at the last batch; whether there was another one."""
        batch = self.last_batch()
        if batch is None or batch == self._batch:
            return False
        held = list(self.state())
        answers = list(self.written.until(batch))
        with self.lock:
            self._held, self._batch, self.title = held, batch, f"stream, batch {batch:,}"
            self._add_answers(answers)
            self._add_held()
            frontiers = [item.session.frontier for item in held if item.session.frontier is not None]
            self.steps.add(self._now, max(frontiers, default=None))
            self.sample()
        return True

    @property
    def _now(self) -> int | None:
        return max((item.session.now for item in self._held if item.session.now is not None), default=None)

    def _add_answers(self, answers: Iterable[HistoryItem]) -> None:
        step, now = len(self.steps) + 1, self._now or 0
        for item in answers:
            if isinstance(item, Revocation):
                for lane in self.lanes.values():
                    if lane.kind == "detected" and lane.remove(item.id, step):
                        break
            else:
                self._lane(self.kind_of(item.type), item.type, len(item.args)).add(item, step, max(now, item.end))

    def _add_held(self) -> None:
        """The inputs and the derived events that the state holds; answers that were not written to a folder."""
        step, before = len(self.steps) + 1, self.steps.times(len(self.steps))["clock"]
        types = self.setup.program.plan.event_types
        for held in self._held:
            answers = {event.id for event in held.session.events()}
            for raw in held_events(held.session):
                event = without_extra(raw, held.extra)
                kind = self.kind_of(event.type)
                if (event.type, len(event.args)) not in types or (kind == "detected" and event.id not in answers):
                    continue  # made on the way by rules that were cut, or not final
                lane = self._lane(kind, event.type, len(event.args))
                if event.id in lane.rows:
                    continue
                late = kind == "event" and before is not None and event.end < before
                arrived = max(event.end, (self._now if late else None) or event.end)
                lane.add(
                    Event(event.type, event.args, event.start, event.end, event.id),
                    step,
                    arrived,
                    LATE if late else STANDING,
                )

    # What the page asks

    @property
    def plan(self) -> Plan:
        return self.setup.program.plan

    @property
    def counted(self) -> int:
        """The events that its state has held since the console looks."""
        return sum(len(lane) for lane in self.lanes.values() if lane.kind == "event")

    @property
    def late_count(self) -> int:
        return sum(held.session.late_count for held in self._held if held.stage == 1)

    def sessions_at(self, step: int) -> list[HeldSession]:
        return self._held

    def stats(self) -> dict[str, Any]:
        """The figures of all buckets together."""
        total: dict[str, Any] = {"rows": 0, "bytes": 0, "rules": {}}
        for held in self._held:
            stats = held.session.stats()
            total["rows"] += stats["rows"]
            total["bytes"] += stats["bytes"]
            for label, figures in stats["rules"].items():
                rule = total["rules"].setdefault(label, dict.fromkeys(figures, 0))
                for name, figure in figures.items():
                    rule[name] += figure
        return total | {"events": self.counted, "late": self.late_count, "steps": len(self.steps)}


class StreamWatcher(Follower):
    """Looks at a stream again and again, in a thread of its own."""

    def __init__(self, watched: WatchedStream) -> None:
        super().__init__()
        self.watched = watched

    def _run(self) -> None:
        while not self.stopping.wait(_SECONDS):
            try:
                self.watched.look()
            except AuguryError as error:
                self.watched.problem = f"{error}; trying again"
            else:
                self.watched.problem = ""
