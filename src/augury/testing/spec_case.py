"""One case: its program, its inputs, and how it is run on an executor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.graph_queries import stream_of
from augury.algebra.scalar import Function
from augury.core.clock import SECOND, Clock, Kind
from augury.core.errors import AuguryError, DataError, ProgramError, RunError, Source, misspelt
from augury.core.model import Event, HistoryItem
from augury.engine import batch
from augury.engine.session import Session
from augury.entailment import Model
from augury.explain.why_not import read_asked
from augury.job import load_functions
from augury.knowledge.facts import Facts, facts_from
from augury.knowledge.graphs import Graphs
from augury.knowledge.rdf import RdfTriples
from augury.knowledge.rdf_files import read_rdf
from augury.notation import read_event, show_event
from augury.program import Program
from augury.reference import evaluate, replay, static_graphs
from augury.settings import Settings, length
from augury.sources import Reader, Skipped, SourceFile, item_from
from augury.testing.case_steps import take_step
from augury.testing.outcomes import Mismatch, Outcome, change_line, difference_of_answers, read_answer

Functions: TypeAlias = tuple[Function | AggregateFunction, ...]
_FILE = re.compile(
    r"[^\n{}()]+\.(aug|spaseq|csv|tsv|jsonl|json|ndjson|parquet|arrow|ttl|nt|nq|trig|rdf|jsonld)(\.\w+)?"
)
_CALENDAR = re.compile(r"@\s*\[?\s*['\"]")  # a time between quotes


@dataclass(frozen=True)
class Case:
    """One case of a spec file."""

    name: str
    program: str
    events: tuple[str, ...]
    expected: tuple[str, ...] | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""
    tags: tuple[str, ...] = ()
    position: int = 0  # which case of its file it is, from 0
    _programs: dict[Any, Program] = field(default_factory=dict, repr=False, compare=False)

    @property
    def queries(self) -> Mapping[str, str]:
        """The queries of the case, by name."""
        alone = {"q": self.settings["query"]} if "query" in self.settings else {}
        return {**self.settings.get("queries", {}), **alone}

    # The program

    def compiled(self, functions: Iterable[Function | AggregateFunction] = ()) -> Program:
        """The program; cases that have the same one share it."""
        registered = (*functions, *self._own_functions)
        sources = self.sources
        key = (
            tuple((source.name, source.text) for source in sources),
            registered,
            tuple(sorted(self.settings.get("facts", {}))),
            self.settings.get("policy"),
        )
        if key not in self._programs:
            facts = self.settings.get("facts", {})
            self._programs[key] = Program.of(sources, registered, facts, self.settings.get("policy"))
        return self._programs[key]

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """The program and the queries as they are written; a program may be the name of a file beside the case."""
        sources: list[Source] = []
        if _FILE.fullmatch(self.program):
            path = self._beside(self.program)
            if not path.is_file():
                raise DataError(f"there is no program `{self.program}`", self.path, f"it was looked for at {path}")
            language = "spaseq" if path.suffix == ".spaseq" else "rules"
            sources.append(Source(str(path), path.read_text(encoding="utf-8"), language))
        elif self.program or not self.queries:
            sources.append(Source(self.path or "<program>", self.program))
        sources += [Source(f"{name}.spaseq", text, "spaseq") for name, text in self.queries.items()]
        return tuple(sources)

    def _beside(self, name: str) -> Path:
        """A file that the case names lies beside its own."""
        return Path(self.path).parent / name

    @cached_property
    def _own_functions(self) -> Functions:
        if "functions" not in self.settings:
            return ()
        named = self.settings["functions"]
        files = [named] if isinstance(named, str) else named
        return tuple(load_functions(str(self._beside(name)) for name in files))

    def prefixes(self, program: Program) -> Mapping[str, str]:
        """The prefixes of the program and its queries."""
        result = dict(program.plan.prefixes)
        for text in self.queries.values():
            result.update(re.findall(r"PREFIX\s+([\w-]*):\s*<([^>]*)>", text, re.IGNORECASE))
        return result

    # The inputs

    def read(self, line: str, program: Program, clock: Clock) -> HistoryItem:
        """An event of the case; a graph event may name its stream as a query does."""
        streams = {stream.name: stream.iri for query in program.plan.graph_queries for stream in query.streams}
        return item_from(read_event(line, clock, self.prefixes(program), streams), program.plan, clock)

    def clock(self, program: Program) -> Clock:
        """The clock of the case: as it says; else that of its events, which is logical unless a time is a calendar time."""
        kind: Kind | None = self.settings.get("clock")
        if kind is None:
            lines = [*self.events, *(line for step in self._steps for line in _pushed(step))]
            calendar = any(isinstance(line, str) and _CALENDAR.search(line) for line in lines)
            if not lines and self._files_and_tables:
                reader = Reader(program.plan, lambda first: Settings().clock_of(program, first), Skipped())
                self._read_files(reader)
                return reader.clock
            kind = "timestamp" if calendar and program.plan.tick is None else "logical"
        return Clock(kind, program.plan.tick or SECOND)

    def history(self, program: Program, clock: Clock) -> list[HistoryItem]:
        """All events of the case: its lines, its tables and its files."""
        items = [self.read(line, program, clock) for line in self.events]
        if self._files_and_tables:
            items += self._read_files(Reader(program.plan, lambda first: clock, Skipped()))
        _check_types(items, program)
        return items

    @property
    def _files_and_tables(self) -> Mapping[str, Any]:
        """Rows, or the name of a file, by type; a file with a column `type` has no name."""
        events = self.settings.get("events")
        return {**self.settings.get("tables", {}), **({"": events} if isinstance(events, str) else {})}

    def _read_files(self, reader: Reader) -> list[HistoryItem]:
        items: list[HistoryItem] = []
        for name, rows in self._files_and_tables.items():
            if isinstance(rows, str):
                path = str(self._beside(rows))
                items += reader.sources([SourceFile.parse(f"{name}={path}" if name else path)]).items()
                continue
            items += reader.listed([{"type": name, **row} for row in rows]).items()
        return items

    def facts(self, program: Program, clock: Clock, engine: str = "embedded") -> Facts:
        """The facts of the case, with those of its graph."""
        listed = self.settings.get("facts", {})
        rows = {name: str(self._beside(rows)) if isinstance(rows, str) else rows for name, rows in listed.items()}
        facts = facts_from(list(rows.items()), program.plan, clock)
        graphs = self.graphs
        return facts + (graphs.facts(program.plan, facts) if engine == "embedded" else graphs.closed(program.plan))

    @cached_property
    def graphs(self) -> Graphs:
        text = self.settings.get("rdf")
        if text is None:
            return Graphs(())
        if _FILE.fullmatch(text):
            return Graphs.of(read_rdf(str(self._beside(text)), Skipped()))
        return Graphs.of(_trig(text))

    # Running

    def check(self, functions: Iterable[Function | AggregateFunction] = (), engine: str = "embedded") -> None:
        """Runs the case on an executor; raises AssertionError with both answers where they differ."""
        outcome = self.run(functions, engine)
        if outcome.mismatches:
            raise AssertionError(str(outcome.mismatches[0]))

    def run(
        self,
        functions: Iterable[Function | AggregateFunction] = (),
        engine: str = "embedded",
        program: Program | None = None,
    ) -> Outcome:
        """Runs the case on an executor, also for another version of its program; how its answers differ."""
        wanted = self.settings.get("expect_error")
        if wanted is None:
            return self._outcome(program or self.compiled(functions), engine)
        try:
            outcome = self._outcome(program or self.compiled(functions), engine)
        except AuguryError as error:
            codes = [d.code for d in error.diagnostics] if isinstance(error, ProgramError) else []
            if wanted in codes or wanted in str(error):
                return Outcome()
            return Outcome((Mismatch("errors", (wanted,), tuple(codes) or (str(error),)),))
        return replace(outcome, mismatches=(Mismatch("errors", (wanted,), ("no error",)), *outcome.mismatches))

    def _outcome(self, program: Program, engine: str) -> Outcome:
        clock = self.clock(program)
        if self._steps:
            if engine != "embedded":
                raise RunError("steps run on the embedded engine", hint="leave --engine out")
            return self._in_steps(program, clock)
        settings, prefixes = self.settings, self.prefixes(program)
        history, facts = self.history(program, clock), self.facts(program, clock, engine)
        until, as_of = (None if (t := settings.get(k)) is None else clock.read(t) for k in ("until", "as_of"))
        retention = length(settings.get("retention"), program.plan.tick)
        outcome = Outcome(program=program, clock=clock)
        if self.expected is not None or "expect_none" in settings:
            options = (history, clock, facts, until, as_of, retention)
            model = (
                batch.evaluate(program, *options)
                if engine == "embedded"
                else evaluate(program.plan, *options, static_graphs(self.graphs, program.plan))
            )
            outcome = self._answered(outcome, model, prefixes)
        if "changes" in settings:
            late = length(settings.get("lateness"), program.plan.tick)
            replay_options = (history, clock, facts, until, retention, settings.get("emit", "early"))
            bound = None if late is None else clock.length(late)
            replayed = (
                batch.replay(program, *replay_options, bound)
                if engine == "embedded"
                else replay(program.plan, *replay_options, bound, static_graphs(self.graphs, program.plan))
            )
            lines = tuple(change_line(change, clock) for change in replayed.changes)
            wanted = _change_lines(settings["changes"], clock, prefixes)
            differ = () if lines == wanted else (Mismatch("changes", wanted, lines),)
            outcome = replace(
                outcome,
                mismatches=(*outcome.mismatches, *differ),
                changes=lines,
                session=outcome.session or _session_of(replayed.model),
                steps=(tuple(replayed.changes),),
            )
        return outcome

    def _answered(self, outcome: Outcome, model: Model, prefixes: Mapping[str, str]) -> Outcome:
        """The outcome with how a whole answer differs from the expected one, and with answers that may not be."""
        clock, events = outcome.clock, model.events
        mismatches = list(outcome.mismatches)
        if self.expected is not None and (differ := difference_of_answers(self.expected, events, clock, prefixes)):
            mismatches.append(differ)
        none = self.settings.get("expect_none", [])
        asked = [] if isinstance(none, bool) else [read_asked(atom, clock, prefixes) for atom in none]
        refused = [e for e in events if none is True or any(question.is_met(e) for question in asked)]
        if refused:
            lines = tuple(show_event(event, clock) for event in refused)
            mismatches.append(Mismatch("answers that may not be", (), lines, (), tuple(refused)))
        return replace(
            outcome,
            mismatches=tuple(mismatches),
            session=_session_of(model),
            answer=tuple(show_event(event, clock) for event in events),
        )

    # Steps

    @property
    def _steps(self) -> Sequence[Mapping[str, Any]]:
        steps: Sequence[Mapping[str, Any]] = self.settings.get("steps", ())
        return steps

    def _in_steps(self, program: Program, clock: Clock) -> Outcome:
        """Takes the steps in a session, after all events that stand beside them; then compares what stands at the end."""
        settings, prefixes = self.settings, self.prefixes(program)
        written = {k: settings[k] for k in ("emit", "lateness", "retention") if k in settings}
        session = Session(program, Settings.of(program, **written), clock=clock, facts=self.facts(program, clock))
        session.push(self.history(program, clock))
        mismatches: list[Mismatch] = []
        emitted: list[tuple[str, ...]] = []
        steps: list[Any] = []
        for number, step in enumerate(self._steps, 1):
            changes = take_step(session, step, lambda line: self.read(line, program, clock), prefixes)
            steps.append(tuple(changes))
            emitted.append(tuple(change_line(change, clock) for change in changes))
            wanted = _change_lines(step.get("emits", ()), clock, prefixes)
            if "emits" in step and sorted(wanted) != sorted(emitted[-1]):
                mismatches.append(Mismatch(f"changes of step {number}", wanted, emitted[-1]))
        until = settings.get("until")
        if until is not None:
            session.advance(until)
        outcome = Outcome(tuple(mismatches), program, session, clock, (), (), tuple(emitted), tuple(steps))
        model = batch.answer_of(session, None if until is None else clock.read(until))
        return self._answered(outcome, model, prefixes)


def _session_of(model: Model) -> Session | None:
    return model.session if isinstance(model, batch.SessionModel) else None


def _pushed(step: Mapping[str, Any]) -> Sequence[Any]:
    pushed = step.get("push", ())
    return [pushed] if isinstance(pushed, str | dict) else pushed


def _change_lines(lines: Iterable[str], clock: Clock, prefixes: Mapping[str, str]) -> tuple[str, ...]:
    """The expected changes as they are shown: `+ alarm('l1') @ 3`."""
    for line in lines:
        if line[:2] not in ("+ ", "- "):
            raise DataError(f"not a change: {line!r}", hint="write it as `+ alarm('l1') @ 3` or `- alarm('l1') @ 3`")
    return tuple(line[:2] + show_event(read_answer(line[2:], clock, prefixes), clock) for line in lines)


def _trig(text: str) -> RdfTriples:
    """The graphs of a case: TriG, as Turtle is, too."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "case.trig"
        path.write_text(text, encoding="utf-8")
        return read_rdf(str(path), Skipped())


def _check_types(history: Iterable[HistoryItem], program: Program) -> None:
    """A type that is a slip away from one that the program knows is a mistake of the test."""
    types = {name for name, _ in program.plan.event_types}
    for item in history:
        if (
            isinstance(item, Event)
            and item.type not in types
            and stream_of(item.type) is None
            and (close := misspelt(item.type, sorted(types)))
        ):
            raise DataError(f"unknown event type `{item.type}`", hint=f"did you mean `{close}`?")
