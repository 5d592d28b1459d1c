"""What `augury run` and `augury why` work on: a program, its history, its facts and its clock."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.plan import Plan
from augury.algebra.scalar import Function
from augury.algebra.stages import needed
from augury.clock import Clock
from augury.compiled import check_clock
from augury.engine import batch
from augury.engine.changes import Changes
from augury.engine.session import Session
from augury.entailment import Model, Replay
from augury.errors import DataError, RunError, counted
from augury.knowledge.facts import Facts, without_facts
from augury.knowledge.graphs import Graph, Graphs, read_facts
from augury.language.show import Printer
from augury.language.symbols import unregistered
from augury.meaning import evaluate, replay
from augury.model import Event, HistoryItem
from augury.notation import show_event
from augury.program import Program
from augury.settings import Settings
from augury.sources import History, Reader, Skipped, SourceFile
from augury.standing import admitted
from augury.terminal import tell, working


def load_functions(paths: Iterable[str]) -> list[Function | AggregateFunction]:
    """The functions and aggregates that Python files make with `augury.function` and `augury.aggregate`."""
    found: list[Function | AggregateFunction] = []
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
        found += new
    return found


def check_registered(plan: Plan) -> None:
    """All functions that the program declares have a Python function."""
    missing = [f.name for f in plan.functions.values() if f.call is unregistered]
    if missing:
        raise RunError(
            f"the function `{missing[0]}` is declared, but not registered", "give its Python file with --functions"
        )


class Job:
    """What `run` and `why` need: the program, the history, the facts and the clock."""

    def __init__(
        self,
        program: Program,
        events: Iterable[SourceFile],
        facts: Iterable[tuple[str, str]] = (),
        rdf: Iterable[Graph] = (),
        settings: Settings | None = None,
        in_order: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """`in_order` is whether the order of arrival matters, as it does where something can be late."""
        self.program, self.settings = program, settings or Settings()
        plan, self.skipped = self.program.plan, Skipped(self.settings.on_error)
        check_registered(plan)
        clock = partial(self.settings.clock_of, program)
        reader = Reader(plan, clock, self.skipped, self.settings.strict, progress)
        self.history = reader.sources(events, in_order)
        self.clock: Clock = reader.clock
        check_clock(self.program, self.clock.kind)
        self.late: list[HistoryItem] = []
        self.facts, self.graphs = read_facts(facts, rdf, plan, self.clock, self.skipped)

    def time(self, option: str, text: str | None) -> int | None:
        """The time that an option names."""
        try:
            return None if text is None else self.clock.read(text)
        except DataError as error:
            raise DataError(error.message, option, error.hint) from None

    def evaluate(self, until: str | None = None, as_of: str | None = None, engine: str = "reference") -> Model:
        history: History | list[HistoryItem] = self.history
        if self.settings.lateness is not None:
            history, late = admitted(self.history.items(), self.clock.length(self.settings.lateness))
            self.late += late
        with working(f"evaluating {len(self.history):,} events"):
            times = self.time("--until", until), self.time("--as-of", as_of)
            given = (self.clock, self.known(engine), *times, self.settings.retention)
            if engine == "embedded":
                return batch.evaluate(self.program, history, *given, limits=self.settings.limits)
            return evaluate(self._asked, history.items() if isinstance(history, History) else history, *given)

    def replay(self, until: str | None, engine: str = "reference") -> Replay:
        settings = self.settings
        with working(f"replaying {len(self.history):,} events"):
            late = None if settings.lateness is None else self.clock.length(settings.lateness)
            given = (
                self.clock,
                self.known(engine),
                self.time("--until", until),
                settings.retention,
                settings.emit,
                late,
            )
            if engine == "embedded":
                found = batch.replay(self.program, self.history, *given, limits=settings.limits)
            else:
                found = replay(self._asked, self.history.items(), *given)
        self.late += found.late
        return found

    @property
    def _asked(self) -> Plan:
        """What the outputs rest on."""
        return needed(self.program.plan, self.program.plan.outputs)

    def known(self, engine: str) -> Facts:
        """The facts, with those of the graphs; the reference has them by the plainest way."""
        plan = self.program.plan
        more = self.graphs.facts(plan, self.facts) if engine == "embedded" else self.graphs.closed(plan)
        return self.facts + more

    def missing(self) -> list[str]:
        """The input types that rules read and of which there was no event."""
        plan = self.program.plan
        return sorted({name for name, _ in plan.event_types} - {name for name, _ in plan.derived} - self.history.types)

    def report(self, model: Model) -> None:
        """What was left out, on standard error: nothing is dropped in silence."""
        rejected = [why for _, why in model.rejected]
        report(
            self.program.plan,
            self.skipped,
            self.facts,
            self.graphs,
            rejected,
            model.errors,
            unknown=self.history.unknown,
        )
        tell("late", [show_event(i, self.clock) if isinstance(i, Event) else f"revoke {i.id}" for i in self.late])


class Follower:
    """A session that is fed by standard input while its events come."""

    def __init__(
        self, program: Program, facts: Iterable[tuple[str, str]], rdf: Iterable[Graph], settings: Settings
    ) -> None:
        check_registered(program.plan)
        self.program, self.settings, self.skipped = program, settings, Skipped(settings.on_error)
        self._given = list(facts), list(rdf)
        self._session: Session | None = None

    @property
    def clock(self) -> Clock:
        return self.session.clock

    @property
    def session(self) -> Session:
        return self._session or self._open(None)

    def _open(self, first: object) -> Session:
        clock = self.settings.clock_of(self.program, first)
        check_clock(self.program, clock.kind)
        self.facts, self.graphs = read_facts(*self._given, self.program.plan, clock, self.skipped)
        known = self.facts + self.graphs.facts(self.program.plan, self.facts)
        self._session = Session(self.program, self.settings, clock=clock, facts=known)
        return self._session

    def changes(self, source: SourceFile, until: str | None) -> Iterator[Changes]:
        """The changes of the answer, event by event, as soon as its line is there."""
        reader = Reader(self.program.plan, lambda first: self._open(first).clock, self.skipped, self.settings.strict)
        for part in reader.parts(replace(source, live=True)):
            for item in part.items():
                yield self.session.push(item)
        if until is not None:
            yield self.session.advance(until)
        if self.settings.emit == "final":
            yield self.session.finish()

    def report(self) -> None:
        """What was left out, on standard error."""
        session = self.session
        rejected = [why for _, why in session.rejected]
        report(
            self.program.plan, self.skipped, self.facts, self.graphs, rejected, session.errors, unknown=session.unknown
        )
        tell("late", [show_event(i, self.clock) if isinstance(i, Event) else f"revoke {i.id}" for i in session.late])


def report(
    plan: Plan, skipped: Skipped, facts: Facts, graphs: Graphs, rejected: list[str], errors: Mapping[tuple[str, str], int],
    count: int | None = None, unknown: Mapping[str, int] | None = None,
) -> None:  # fmt: skip
    """What a run has left out, on standard error; `count` says how much was skipped where not all of it is at hand.

    `unknown` are events of types that the program does not know.
    """
    tell("skipped", skipped.problems, count=count)
    other = [f"`{name}`: {counted(n, 'event')}" for name, n in sorted((unknown or {}).items())]
    tell("events of types that the program does not know, passed over", other, count=sum((unknown or {}).values()))
    empty = [n for n in without_facts(facts, plan) if n not in graphs.predicates and n not in plan.queries]
    meant = graphs.misspelt(empty)
    printer = Printer()
    printer.prefixes |= plan.prefixes
    shown = printer.name
    tell("static predicates without facts", [
        f"`{shown(name)}`: did you mean `{shown(meant[name])}`?" if name in meant
        else f"`{shown(name)}`: give its graph with --rdf FILE" if ":" in name
        else f"`{name}`: give them with --facts {name}=FILE"
        for name in empty
    ])  # fmt: skip
    tell("rejected", rejected)
    problems = [f"rule `{rule}`: {why} ({counted(n, 'time')})" for (rule, why), n in errors.items()]
    tell("rows that could not be computed", problems)
