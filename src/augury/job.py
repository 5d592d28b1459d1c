"""What `augury run` and `augury why` work on: a task with its history, its facts and its clock."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.plan import Plan
from augury.algebra.scalar import Function
from augury.compiled import check_clock
from augury.core.clock import Clock
from augury.core.errors import DataError, RunError, counted
from augury.core.model import Event, HistoryItem
from augury.core.standing import InputCounts, accepted_and_repeated, in_time_and_late
from augury.engine import batch
from augury.engine.changes import Changes
from augury.engine.session import Session
from augury.entailment import Model, Replay
from augury.knowledge.facts import Facts, without_facts
from augury.knowledge.graphs import Graphs, read_facts
from augury.language.rules.show import Printer
from augury.language.rules.symbols import unregistered
from augury.notation import show_event
from augury.run import EngineChoice
from augury.settings import Task
from augury.sources import History, Reader, Skipped
from augury.terminal import say, warn, working


def load_functions(paths: Iterable[str]) -> list[Function | AggregateFunction]:
    """The functions and aggregates that Python files make with `augury.function` and `augury.aggregate`."""
    result: list[Function | AggregateFunction] = []
    for path in paths:
        if not Path(path).is_file():
            raise DataError("no such file", path)
        spec = importlib.util.spec_from_file_location(Path(path).stem, path)
        if spec is None or spec.loader is None:
            raise DataError("is not a Python file", path)
        module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            raise DataError(f"raised {type(error).__name__}: {error}", path) from error
        new = [v for v in vars(module).values() if isinstance(v, Function | AggregateFunction)]
        if not new:
            raise DataError("registers nothing", path, "decorate a function with @augury.function or @augury.aggregate")
        result += new
    return result


def check_registered(plan: Plan) -> None:
    """All functions that the program declares have a Python function."""
    missing = [f.name for f in plan.functions.values() if f.call is unregistered]
    if missing:
        raise RunError(
            f"the function `{missing[0]}` is declared, but not registered", "give its Python file with --functions"
        )


class Job:
    """A task whose history is read: what `run` and `why` work on."""

    def __init__(self, task: Task, in_order: bool = False, progress: Callable[[int], None] | None = None) -> None:
        """`in_order` is whether the order of arrival matters, as it does where something can be late."""
        self.task, self.plan, self.settings = task, task.plan, task.settings
        self.skipped = Skipped(self.settings.on_error, limits=self.settings.limits)
        check_registered(self.plan)
        clock = partial(self.settings.clock_of, task.program)
        reader = Reader(self.plan, clock, self.skipped, self.settings.strict, progress)
        self.history = reader.sources(task.events, in_order)
        self.malformed = len(self.skipped.problems)  # before facts are read
        self.clock: Clock = reader.clock
        report_guess(self.clock)
        check_clock(task.program, self.clock.kind)
        self.late: list[HistoryItem] = []
        self.facts, self.graphs = read_facts(task.facts, task.graphs, self.plan, self.clock, self.skipped)

    def time(self, option: str, text: str | None) -> int | None:
        """The time that an option names."""
        try:
            return None if text is None else self.clock.read(text)
        except DataError as error:
            raise error.at(option) from None

    def evaluate(self, until: str | None = None, as_of: str | None = None, engine: str = "reference") -> Model:
        settings, history = self.settings, self.history
        items: History | list[HistoryItem] = history
        if settings.lateness is not None:
            items, late = in_time_and_late(history.items(), self.clock.length(settings.lateness))
            self.late += late
        with working(f"evaluating {len(history):,} events"):
            return self.execution(engine).evaluate(items, self.time("--until", until), self.time("--as-of", as_of))

    def replay(self, until: str | None, engine: str = "reference") -> Replay:
        with working(f"replaying {len(self.history):,} events"):
            result = self.execution(engine).replay(self.history, self.time("--until", until))
        self.late += result.late
        return result

    def execution(self, engine: str) -> EngineChoice:
        return EngineChoice(engine, self.task.program, self.clock, self.facts, self.graphs, self.settings)

    def missing(self) -> list[str]:
        """The input types that rules read and of which there was no event."""
        return unread(self.plan, self.history.types)

    def counts(self, model: Model) -> InputCounts:
        """What became of all that was read; what an answer as of a time does not know is not among it."""
        history = self.history
        received = sum(map(len, history.batches.values())) + len(history.revoked) + self.malformed
        if isinstance(model, batch.SessionModel):
            accepted, repeated = model.accepted, model.repeated
        else:
            late, items = self.settings.lateness, history.items()
            in_time = items if late is None else in_time_and_late(items, self.clock.length(late))[0]
            accepted, repeated = accepted_and_repeated(in_time)
        return InputCounts(received, accepted, repeated, len(self.late), len(model.rejected), self.malformed)

    def report(self, model: Model, as_of: str | None = None) -> None:
        """What was left out, on standard error: nothing is dropped in silence."""
        left_out = LeftOut(self.plan, self.skipped, self.facts, self.graphs)
        left_out.report(model.errors, [why for _, why in model.rejected], self.history.unknown)
        report_late(self.late, self.clock)
        counts = self.counts(model)
        if as_of is None and counts.left_out:
            say(str(counts))


class InputFollower:
    """A session that is fed by standard input while its events come."""

    def __init__(self, task: Task) -> None:
        check_registered(task.plan)
        self.task, self.plan, self.settings = task, task.plan, task.settings
        self.skipped = Skipped(self.settings.on_error, limits=self.settings.limits)
        self._session: Session | None = None
        self._wrong_facts = 0  # rows of facts that were skipped
        self.events = 0  # how many events and revocations came

    @property
    def clock(self) -> Clock:
        return self.session.clock

    @property
    def session(self) -> Session:
        return self._session or self._open(None)

    def _open(self, first: object) -> Session:
        task = self.task
        clock = self.settings.clock_of(task.program, first)
        report_guess(clock)
        check_clock(task.program, clock.kind)
        before = len(self.skipped.problems)
        self.facts, self.graphs = read_facts(task.facts, task.graphs, self.plan, clock, self.skipped)
        self._wrong_facts = len(self.skipped.problems) - before
        facts = self.facts + self.graphs.facts(self.plan, self.facts)
        self._session = Session(task.program, self.settings, clock=clock, facts=facts)
        return self._session

    def changes(self, until: str | None) -> Iterator[Changes]:
        """The changes of the answer, event by event, as soon as its line is there."""
        reader = Reader(self.plan, lambda first: self._open(first).clock, self.skipped, self.settings.strict)
        for part in reader.parts(replace(self.task.events[0], live=True)):
            for item in part.items():
                self.events += 1
                yield self.session.push(item)
        if until is not None:
            yield self.session.advance(until)
        if self.settings.emit == "final":
            yield self.session.finish()

    def report(self) -> None:
        """What was left out, on standard error."""
        session = self.session
        left_out = LeftOut(self.plan, self.skipped, self.facts, self.graphs)
        left_out.report(session.errors, [why for _, why in session.rejected], session.unknown)
        report_late(session.late, self.clock)
        if self.counts.left_out:
            say(str(self.counts))

    @property
    def counts(self) -> InputCounts:
        """What became of all that came."""
        session, malformed = self.session, len(self.skipped.problems) - self._wrong_facts
        remaining = (session.repeated, session.late_count, len(session.rejected))
        return InputCounts(self.events + malformed, session.accepted, *remaining, malformed)


def unread(plan: Plan, types: Collection[str]) -> list[str]:
    """The input types that rules read and that are not among some types."""
    return sorted({name for name, _ in plan.event_types} - {name for name, _ in plan.derived} - set(types))


def report_guess(clock: Clock) -> None:
    """Says which unit of times was guessed, on standard error."""
    if clock.guess:
        say(f"note: {clock.guess}")


def report_late(items: Iterable[HistoryItem], clock: Clock) -> None:
    warn("late", [show_event(i, clock) if isinstance(i, Event) else f"revoke {i.id}" for i in items])


@dataclass(frozen=True)
class LeftOut:
    """What a run was given, and what it has skipped."""

    plan: Plan
    skipped: Skipped
    facts: Facts
    graphs: Graphs

    def report(
        self,
        errors: Mapping[tuple[str, str], int],
        rejected: Sequence[str] = (),
        unknown: Mapping[str, int] | None = None,
        count: int | None = None,
    ) -> None:
        """Reports on standard error what a run has left out; `count` is the number of skipped rows, where not all
        are listed.

        `unknown` are events of types that the program does not know.
        """
        warn("skipped", self.skipped.problems, count=count)
        warn_unknown(
            [f"`{name}`: {counted(n, 'event')}" for name, n in sorted((unknown or {}).items())],
            sum((unknown or {}).values()),
        )
        warn("static predicates without facts", self._without_facts())
        warn("rejected", rejected)
        problems = [f"rule `{rule}`: {why} ({counted(n, 'time')})" for (rule, why), n in errors.items()]
        warn("rows that could not be computed", problems)

    def _without_facts(self) -> list[str]:
        plan, graphs = self.plan, self.graphs
        empty = [n for n in without_facts(self.facts, plan) if n not in graphs.predicates and n not in plan.queries]
        meant = graphs.misspelt(empty)
        printer = Printer()
        printer.prefixes |= plan.prefixes

        def advice(name: str) -> str:
            if name in meant:
                return f"did you mean `{printer.name(meant[name])}`?"
            return "give its graph with --rdf FILE" if ":" in name else f"give them with --facts {name}=FILE"

        return [f"`{printer.name(name)}`: {advice(name)}" for name in empty]


def warn_unknown(types: Sequence[str], count: int) -> None:
    """A warning of the events of types that the program does not know."""
    warn("events of types that the program does not know were ignored", types, count=count)
