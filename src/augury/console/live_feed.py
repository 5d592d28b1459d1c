"""Tells a watched session what comes from live sources. It only looks: it commits no position of a source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from augury.connectors import DeliveryReader, EventSource, UnavailableError, open_source, opened
from augury.connectors.addresses import Address
from augury.console.follower import Follower
from augury.console.input_log import Setup
from augury.console.program_text import ProgramText
from augury.console.watched import WatchedSession
from augury.core.clock import Clock
from augury.core.errors import AuguryError, counted
from augury.job import check_registered
from augury.knowledge.graphs import read_facts
from augury.settings import Task
from augury.sources import ColumnNames, Skipped

_MOST, _SECONDS = 5000, 0.2  # events of a step, and how long a source is waited for
_PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)  # before a source that is unavailable is asked again


def is_live(address: str) -> bool:
    """Whether an address is live by itself: standard input, or a scheme that is no file."""
    return Address.parse(address).scheme != "file"


class LiveFeed(Follower):
    """Polls sources in turn, in a thread of its own."""

    def __init__(self, task: Task, text: ProgramText, addresses: Sequence[str], names: ColumnNames) -> None:
        super().__init__()
        check_registered(task.plan)
        self.task, self.text = task, text
        self.sources = [open_source(address) for address in addresses]
        self.watched = WatchedSession(self._setup(task.settings.clock_of(task.program, None)))
        self.watched.live = True
        self.reader = DeliveryReader(
            task.plan, self._clock, names, strict=task.settings.strict, limits=task.settings.limits
        )

    def _setup(self, clock: Clock) -> Setup:
        task = self.task
        skipped = Skipped(task.settings.on_error, limits=task.settings.limits)
        facts, graphs = read_facts(task.facts, task.graphs, task.plan, clock, skipped)
        return Setup(self.text, clock, tuple(facts + graphs.facts(task.plan, facts)), task.settings)

    def _clock(self, first: object) -> Clock:
        """The clock of the first event: the session begins with it."""
        clock = self.task.settings.clock_of(self.task.program, first)
        if clock != self.watched.setup.clock:
            self.watched.begin(self._setup(clock))
        return clock

    def _run(self) -> None:
        with ExitStack() as stack:
            waiting = list(self.sources)
            while waiting and not self.stopping.is_set():
                waiting = [source for source in waiting if not self._attempt(partial(self._open, source, stack))]
            self._poll()

    def _open(self, source: EventSource, stack: ExitStack) -> None:
        stack.enter_context(opened(source))

    def _poll(self) -> None:
        while not self.stopping.is_set():
            for source in self.sources:
                self._attempt(partial(self._tell, source))
            if all(source.finished for source in self.sources):
                self.watched.live = False
                return

    def _attempt(self, action: Callable[[], None]) -> bool:
        """Does something with a source, again and again while that is unavailable; whether it was done."""
        for pause in (*_PAUSES, *[_PAUSES[-1]] * 1000):
            try:
                action()
            except UnavailableError as error:
                self.watched.problem = f"{error}; trying again"
                if self.stopping.wait(pause):
                    return False
                continue
            except AuguryError as error:
                self.watched.problem = str(error)
                self.stopping.set()
                self.watched.live = False
                return False
            if self.watched.problem.endswith("trying again"):
                self.watched.problem = ""
            return True
        return False

    def _tell(self, source: EventSource) -> None:
        """One poll of a source, and a step with what came."""
        if source.finished:
            return
        for delivery in source.poll(_MOST, _SECONDS / len(self.sources)):
            self.reader.check(delivery)
            history = self.reader.read(delivery)
            items = list(history.items())
            if items:
                self.watched.push(items)
        if self.reader.poison:
            lines = self.reader.poison
            self.watched.problem = f"{counted(len(lines), 'line')} could not be read; the latest: {lines[-1].reason}"
