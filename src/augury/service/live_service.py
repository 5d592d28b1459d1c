"""The service: sources, a session, sinks, and state on disk, until it is stopped."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from augury.connectors import (
    Address,
    AnswerSink,
    Delivery,
    EventSource,
    UnavailableError,
    open_sink,
    open_source,
    redacted,
)
from augury.core.errors import AuguryError, RunError, Source
from augury.program import Program, ProgramSession
from augury.service.journal import Step, SyncPolicy
from augury.service.rule_switch import check_switch, rule_switch
from augury.service.saved_state import ServiceSnapshot, StateDirectory, locked
from augury.service.service_metrics import ServiceMetrics
from augury.service.sink_writer import SinkWriter, unwritten
from augury.service.source_feed import Arrivals, SourceFeed
from augury.service.stepping import ServiceCounts, Stepper
from augury.service.watermarks import Watermarks
from augury.settings import Settings

_TICK = 0.05  # seconds that the service waits for events
_QUEUED = 64  # deliveries that wait between sources and session
_DRAIN = 30.0  # seconds that sinks have to write what waits
_BYTES = 8 << 20  # of a step
Log: TypeAlias = Callable[[str, str], None]  # level and message


@dataclass(frozen=True)
class NamedSource:
    name: str
    source: EventSource
    facts: str = ""  # the predicate whose facts it delivers

    @staticmethod
    def of(address: str | EventSource, facts: str = "") -> NamedSource:
        if isinstance(address, EventSource):
            return NamedSource(type(address).__name__, address, facts)
        parsed = Address.parse(address)
        source = open_source(parsed)
        source.facts = facts
        return NamedSource(f"{facts}={parsed.name}" if facts else parsed.name, source, facts)


@dataclass(frozen=True)
class NamedSink:
    name: str
    sink: AnswerSink
    type: str | None = None

    @staticmethod
    def of(address: str | AnswerSink) -> NamedSink:
        if isinstance(address, AnswerSink):
            return NamedSink(type(address).__name__, address)
        parsed = Address.parse(address)
        return NamedSink(parsed.name, open_sink(parsed), parsed.type)


@dataclass(frozen=True)
class ServiceOptions:
    """How a service runs. Lengths of the clock are in microseconds, others in seconds."""

    state: Path
    lateness: int = 0
    idle: float = 10.0  # after so long without events, a part of a source holds back nothing any more
    snapshot_every: float = 30.0
    sync: SyncPolicy = "step"
    trace: bool = True
    wall_clock: bool = False  # whether time passes without events
    most: int = 20_000  # events of a step
    dead: str = ""  # the address of messages that cannot be taken in
    watch: bool = True  # whether a program that changes is taken over


@dataclass
class LiveService:
    """A program that runs over sources and sinks. One thread runs it; others may look, stop it and reload the program."""

    compile: Callable[[Sequence[Source] | None], Program]  # from saved sources, or anew from the files
    sources: Sequence[NamedSource]
    sinks: Sequence[NamedSink]
    options: ServiceOptions
    settings: Settings = field(default_factory=Settings)
    facts: Mapping[str, Any] = field(default_factory=dict)
    rdf: Any = ()
    log: Log = lambda level, message: None

    def __post_init__(self) -> None:
        for what, names in (("source", [s.name for s in self.sources]), ("sink", [s.name for s in self.sinks])):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise RunError(f"the {what} {twice} is named twice")
        self.program = self.compile(None)
        self._modified = self._seen = self._stamps()
        self.state = StateDirectory(self.options.state, self.options.sync)
        self.metrics = ServiceMetrics(self)
        self.number = 0  # of the last step
        self.ready = False
        self._stop, self._reload = threading.Event(), threading.Event()
        self._arrivals: Arrivals = queue.Queue(_QUEUED)
        changing = self.settings.changing | {source.facts for source in self.sources if source.facts}
        self.settings = replace(self.settings, lateness=None, changing=frozenset(changing))
        self.feeds = [
            SourceFeed(named.name, named.source, self._arrivals, self.options.most, self.log) for named in self.sources
        ]
        dead = NamedSink.of(self.options.dead or str(self.options.state / "dead.jsonl"))
        self.dead = SinkWriter(f"dead letters {dead.name}", dead.sink, self.log, self._refused)
        self.writers = [
            SinkWriter(n.name, n.sink, self.log, self._refused, n.type, latencies=self.metrics.observe_latency)
            for n in self.sinks
        ]
        self.stepper: Stepper | None = None

    @property
    def ends(self) -> list[SourceFeed | SinkWriter]:
        """All sources and sinks."""
        return [*self.feeds, *self.writers, self.dead]

    # Running

    def run(self) -> None:
        """Runs until it is stopped, or until no source has anything more."""
        with locked(self.options.state):
            try:
                self._resume()
                self._begin()
                self._loop()
                self._end()
            except UnavailableError:
                if not self._stop.is_set():
                    raise
            finally:
                self.ready = False
                for feed in self.feeds:
                    feed.stop()
                for feed in self.feeds:
                    feed.join()
                for writer in (*self.writers, self.dead):
                    writer.close()
                self.state.journal.close()

    async def serve(self) -> None:
        """The same for asyncio: a task that is cancelled stops the service."""
        running = asyncio.create_task(asyncio.to_thread(self.run))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            self.stop()
            await running
            raise

    @contextmanager
    def running(self) -> Iterator[LiveService]:
        """Runs in a thread for as long as the block does; raises what ended it."""
        errors: list[BaseException] = []

        def run() -> None:
            try:
                self.run()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run, name="augury live", daemon=True)
        thread.start()
        try:
            while not self.ready and thread.is_alive():
                time.sleep(0.005)
            yield self
        finally:
            self.stop()
            thread.join()
        if errors:
            raise errors[0]

    def stop(self) -> None:
        """Ends the service after the step that is under way; it resumes where it stopped."""
        self._stop.set()
        for writer in (*self.writers, self.dead):
            if writer._thread is None:  # it waits for its sink
                writer.stop()

    def reload(self) -> None:
        """Takes over the program as it is on disk now; a wrong one is refused, and the old one keeps running."""
        self._reload.set()

    # Beginning

    def _resume(self) -> None:
        snapshot = self.state.load()
        self.stepper = stepper = self._stepper(snapshot)
        for writer in (*self.writers, self.dead):
            writer.start(snapshot.sinks.get(writer.name), snapshot.step)
        self.number = snapshot.step
        if not snapshot.program:
            self._save()  # with the positions at which the sinks begin
        replayed = 0
        for step in self.state.journal.steps(snapshot.step):
            self._take(step)
            replayed += 1
        if replayed:
            self.log("info", f"resumed after step {snapshot.step:,}, and repeated {replayed:,} steps")
        if not stepper.opened:  # no event yet: the program may be any other
            self.stepper = self._stepper(replace(self._snapshot(), program=()))
            return
        switch = rule_switch(stepper.session.program, self.program)
        if switch is not None:
            check_switch(stepper.session, switch, self._opened)
            self._commit(Step(self.number + 1, rules=switch))
            self.log("info", "the program has changed since the last run; its new rules run")

    def _stepper(self, snapshot: ServiceSnapshot) -> Stepper:
        watermarks = Watermarks()
        stepper: Stepper  # which the session calls
        self._opened = self._saved_program(snapshot) if snapshot.program else self.program
        if snapshot.session:
            session = self._opened.restore(
                snapshot.session, limits=self.settings.limits, late=lambda item: stepper.keep_late(item)
            )
            self._check_settings(session)
        else:
            session = ProgramSession(
                self._opened, self.settings, facts=self.facts, rdf=self.rdf, late=lambda item: stepper.keep_late(item)
            )
        stepper = Stepper(session, watermarks, self.options.lateness, self.options.trace)
        stepper.parted = {named.name for named in self.sources if named.source.parted}
        stepper.positions, stepper.waiting_facts = dict(snapshot.positions), dict(snapshot.facts)
        if snapshot.watermarks:
            watermarks.resume(snapshot.watermarks)
        if snapshot.counts:
            stepper.counts = ServiceCounts.of(snapshot.counts)
        names = {source.name for source in self.sources}
        for part in [part for part in watermarks.ends if part.partition("\t")[0] not in names]:
            del watermarks.ends[part]
        return stepper

    def _saved_program(self, snapshot: ServiceSnapshot) -> Program:
        """The program that the session was opened with, also where the files have changed since."""
        if snapshot.program == sources_of(self.program):
            return self.program
        return self.compile(snapshot.program)

    def _check_settings(self, session: ProgramSession) -> None:
        saved, asked = session.settings, self.settings
        for name in ("emit", "retention", "longest", "strict"):
            if getattr(saved, name) != getattr(asked, name):
                raise RunError(
                    f"the state in {self.options.state} was begun with another --{name}",
                    hint="use the same settings, or begin with another --state directory",
                )
        if new := asked.changing - session.settings.changing:
            raise RunError(
                f"the facts of {', '.join(sorted(new))} did not change when the state in {self.options.state} was begun",
                hint="begin with another --state directory",
            )

    def _begin(self) -> None:
        stepper = self._running
        self._saved_at = self._looked = time.monotonic()
        facts = [feed for feed in self.feeds if feed.source.facts]
        for feed in facts:
            feed.start(stepper.positions.get(feed.name))
        while not self._stop.is_set() and any(feed.name not in stepper.positions for feed in facts):
            deliveries = self._gather()  # facts that are there already hold before the first event
            if deliveries:
                self._commit(Step(self.number + 1, tuple((feed.name, delivery) for feed, delivery in deliveries)))
            self._check()
        for feed in self.feeds:
            if feed not in facts:
                feed.start(stepper.positions.get(feed.name))
        self.ready = True

    @property
    def _running(self) -> Stepper:
        assert self.stepper is not None
        return self.stepper

    # The loop

    def _loop(self) -> None:
        while not self._stop.is_set():
            deliveries = self._gather()
            ended = not deliveries and all(feed.ended for feed in self.feeds) and self._arrivals.empty()
            step = self._step_of(deliveries, ended)
            if step is not None:
                self._commit(step)
            self._check()
            if ended:
                return
            now = time.monotonic()
            if now - self._saved_at >= self.options.snapshot_every:
                self._save()
            if self._reload.is_set() or (now - self._looked >= 1.0 and self._has_changed(now)):
                self._switch()

    def _gather(self) -> list[tuple[SourceFeed, Delivery]]:
        """What has come, up to the size of a step; waits a moment for the first."""
        try:
            result = [self._arrivals.get(timeout=_TICK)]
        except queue.Empty:
            return []
        events, size = len(result[0][1]), len(result[0][1].data)
        while events < self.options.most and size < _BYTES:
            try:
                result.append(self._arrivals.get_nowait())
            except queue.Empty:
                break
            events, size = events + len(result[-1][1]), size + len(result[-1][1].data)
        for feed, delivery in result:
            feed.take(delivery)
        return result

    def _step_of(self, deliveries: list[tuple[SourceFeed, Delivery]], ended: bool) -> Step | None:
        """The next step; None where nothing has come and nothing is idle that was not."""
        stepper = self._running
        listed = tuple((feed.name, delivery) for feed, delivery in deliveries)
        awaited = {part: feed for feed in self.feeds for part in feed.parts}
        ends = stepper.watermarks.ends
        parts = tuple(part for part in awaited if part not in ends)
        idle = {part for part in ends if part not in awaited or awaited[part].is_idle(part, self.options.idle)}
        promise = self._promise() if not deliveries else None
        news = None if frozenset(idle) == stepper.watermarks.idle else tuple(sorted(idle))
        if not deliveries and news is None and promise is None and not parts and not ended:
            return None
        return Step(self.number + 1, listed, parts, news, promise, over=ended)

    def _promise(self) -> int | None:
        """What the wall clock promises while nothing comes, once a second."""
        stepper = self._running
        if not self.options.wall_clock or stepper.session.now is None or stepper.session.clock.kind != "timestamp":
            return None
        promise = int(time.time() * 1e6) - stepper.session.clock.length(self.options.lateness) - 1
        before = stepper.watermarks.frontier
        return promise if before is None or promise - before >= 1_000_000 else None

    def _commit(self, step: Step) -> None:
        """Writes a step to the journal, acknowledges its input, and takes it."""
        born = time.monotonic()
        self.metrics.journal_bytes += self.state.journal.append(step)
        positions = {name: delivery.position for name, delivery in step.deliveries}
        for feed in self.feeds:
            if feed.name in positions:
                feed.commit(positions[feed.name])
        self._take(step, born)

    def _take(self, step: Step, born: float | None = None) -> None:
        result = self._running.take(step)
        self.number = step.number
        self.metrics.observe_step(result.seconds, sum(len(delivery) for _, delivery in step.deliveries))
        moment = time.monotonic() if born is None else born
        for writer in self.writers:
            writer.offer(result.changes, moment)
        self.dead.offer(result.dead, moment)

    def _check(self) -> None:
        """Raises what has ended a source or a sink."""
        for end in self.ends:
            if end.error is not None:
                raise end.error

    def _refused(self, name: str, rows: list[tuple[str, bytes]]) -> None:
        """Answers that a sink refuses for good: they are logged, and written with the dead letters."""
        import orjson

        path = self.options.state / "refused.jsonl"
        with path.open("ab") as file:
            for reason, line in rows:
                file.write(
                    orjson.dumps({"sink": name, "reason": redacted(reason), "payload": line.decode("utf-8", "replace")})
                    + b"\n"
                )
        self.metrics.refused += len(rows)
        self.log("warning", f"{name} refuses {len(rows):,} answers, which are in {path}: {redacted(rows[0][0])}")

    # Snapshots

    def _save(self) -> bool:
        """A snapshot of now, once all answers are written. Whether there is one: a sink that cannot be reached delays it."""
        self._saved_at = time.monotonic()
        if not all(writer.drain(1.0) for writer in (*self.writers, self.dead)):
            return False
        snapshot = self._snapshot()
        self.state.save(snapshot)
        self.metrics.snapshot_seconds = time.monotonic() - self._saved_at
        return True

    def _snapshot(self) -> ServiceSnapshot:
        stepper = self._running
        sinks = {w.name: position for w in (*self.writers, self.dead) if (position := w.sink.position()) is not None}
        return ServiceSnapshot(
            self.number, sources_of(self._opened), stepper.session.snapshot() if stepper.opened else b"",
            stepper.positions, sinks, stepper.watermarks.state(), stepper.counts.state(), stepper.waiting_facts,
        )  # fmt: skip

    def _end(self) -> None:
        """Writes all answers that are there, and a snapshot."""
        for feed in self.feeds:
            feed.stop()
        drained = [writer.drain(_DRAIN) for writer in (*self.writers, self.dead)]
        self._check()
        if not all(drained):
            raise unwritten(self.writers)
        self._save()

    # The program

    def _stamps(self) -> dict[str, tuple[int, int]]:
        names = [source.name for source in sources_of(self.program)]
        result: dict[str, tuple[int, int]] = {}
        for name in names:
            with suppress(OSError):
                stat = os.stat(name)
                result[name] = (stat.st_mtime_ns, stat.st_size)
        return result

    def _has_changed(self, now: float) -> bool:
        """Whether the program is another one than that which runs, and the same as at the last look: it may be half written."""
        self._looked, before, self._seen = now, self._seen, self._stamps()
        return self.options.watch and self._seen != self._modified and self._seen == before

    def _switch(self) -> None:
        """Takes over the program of now, where it can be."""
        self._reload.clear()
        self._modified = self._stamps()
        session = self._running.session
        try:
            program = self.compile(None)
            switch = rule_switch(session.program, program)
            if switch is not None and self._running.opened:
                check_switch(session, switch, self._opened)
        except AuguryError as error:
            self.metrics.reloads_refused += 1
            self.log("error", f"the changed program is refused, and the old one keeps running: {error}")
            return
        if switch is None:
            self.log("info", "the program has the same rules as before")
            return
        self.program = program
        self._modified = self._stamps()
        if self._running.opened:
            self._commit(Step(self.number + 1, rules=switch))
        else:
            self.stepper = self._stepper(replace(self._snapshot(), program=()))
            self._save()
        self.metrics.reloads += 1
        self.log("info", f"the changed program runs: {len(switch.removed)} rules left, others came")


def sources_of(program: Program) -> tuple[Source, ...]:
    """The texts that a program was compiled from."""
    modules = [module.span.source for module in program.modules]
    queries = [query.span.source for query in program.plan.graph_queries if not query.inside]
    return tuple(dict.fromkeys([*modules, *queries]))
