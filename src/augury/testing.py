"""Test your own rules: a spec file is a program, events and the expected answer, in TOML.

    program = '''
    fire_alarm(L) <- smoke(L) SEQ heat(L).
    '''

    [[case]]
    name = "smoke, then heat"
    events = ["smoke('l1') @ 1", "heat('l1') @ 3"]
    expected = ["fire_alarm('l1') @ [1, 3]"]

A case may have a `program` of its own, `queries` in SPAseQ by name, or one `query`, which is called `q`, `clock`, `policy`, `until`, `as_of`, `retention`, `facts` (rows by name), and
`changes`: lines `+ event` and `- event`, in order, while the events are pushed one by one (with `emit` and `lateness`).
`expected` is the whole answer: every output event, in any order.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.graph_queries import stream_of
from augury.algebra.scalar import Function
from augury.core.clock import SECOND, Clock
from augury.core.errors import DataError, Source, misspelt
from augury.core.model import Event, HistoryItem, OrderKey
from augury.engine import batch
from augury.knowledge.facts import Facts, facts_from
from augury.knowledge.graphs import Graphs
from augury.knowledge.rdf import RdfTriples
from augury.knowledge.rdf_files import read_rdf
from augury.notation import read_event, show_event
from augury.program import Program
from augury.reference import evaluate, replay, static_graphs, triple_lines
from augury.settings import length
from augury.sources import Skipped, item_from

_KEYS = {
    "name", "about", "program", "query", "queries", "events", "expected", "changes", "clock", "policy", "until",
    "as_of", "retention", "facts", "rdf", "emit", "lateness",
}  # fmt: skip

Functions: TypeAlias = tuple[Function | AggregateFunction, ...]


@dataclass(frozen=True)
class Case:
    """One case of a spec file."""

    name: str
    program: str
    events: tuple[str, ...]
    expected: tuple[str, ...] | None
    settings: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""
    _programs: dict[Functions, Program] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def queries(self) -> Mapping[str, str]:
        """The queries of the case, by name."""
        alone = {"q": self.settings["query"]} if "query" in self.settings else {}
        return {**self.settings.get("queries", {}), **alone}

    def compiled(self, functions: Iterable[Function | AggregateFunction] = ()) -> Program:
        """The program; executors that are compared share it."""
        registered = tuple(functions)
        if registered not in self._programs:
            self._programs[registered] = self._compiled(registered)
        return self._programs[registered]

    def _compiled(self, functions: Functions) -> Program:
        facts = self.settings.get("facts", {})
        rules = [Source(self.path or "<program>", self.program)] if self.program or not self.queries else []
        sources = [Source(f"{name}.spaseq", text, "spaseq") for name, text in self.queries.items()]
        return Program.of([*rules, *sources], functions, facts, self.settings.get("policy"))

    def prefixes(self, program: Program) -> Mapping[str, str]:
        """The prefixes of the program and its queries."""
        result = dict(program.plan.prefixes)
        for text in self.queries.values():
            result.update(re.findall(r"PREFIX\s+([\w-]*):\s*<([^>]*)>", text, re.IGNORECASE))
        return result

    def read(self, line: str, program: Program, clock: Clock) -> HistoryItem:
        """An event of the case; a graph event may name its stream as a query does."""
        streams = {stream.name: stream.iri for query in program.plan.graph_queries for stream in query.streams}
        return item_from(read_event(line, clock, self.prefixes(program), streams), program.plan, clock)

    def clock(self, program: Program) -> Clock:
        return Clock(self.settings.get("clock", "logical"), program.plan.tick or SECOND)

    def facts(self, program: Program, clock: Clock, engine: str = "embedded") -> Facts:
        """The facts of the case, with those of its graph."""
        facts = facts_from(list(self.settings.get("facts", {}).items()), program.plan, clock)
        graphs = self.graphs
        return facts + (graphs.facts(program.plan, facts) if engine == "embedded" else graphs.closed(program.plan))

    @cached_property
    def graphs(self) -> Graphs:
        return Graphs.of(_trig(self.settings["rdf"])) if "rdf" in self.settings else Graphs(())

    def check(self, functions: Iterable[Function | AggregateFunction] = (), engine: str = "embedded") -> None:
        """Runs the case on an executor; raises AssertionError with both answers where they differ."""
        program = self.compiled(functions)
        clock, settings = self.clock(program), self.settings
        prefixes = self.prefixes(program)
        history = [self.read(line, program, clock) for line in self.events]
        _check_types(history, program)
        facts = self.facts(program, clock, engine)
        until, as_of = (None if (t := settings.get(k)) is None else clock.read(t) for k in ("until", "as_of"))
        retention = length(settings.get("retention"), program.plan.tick)
        if self.expected is not None:
            settings_given = (history, clock, facts, until, as_of, retention)
            model = (
                batch.evaluate(program, *settings_given)
                if engine == "embedded"
                else evaluate(program.plan, *settings_given, static_graphs(self.graphs, program.plan))
            )
            compare_answers(self.expected, model.events, clock, prefixes)
        if "changes" in settings:
            late = length(settings.get("lateness"), program.plan.tick)
            replay_settings = (history, clock, facts, until, retention, settings.get("emit", "early"))
            bound = None if late is None else clock.length(late)
            replayed = (
                batch.replay(program, *replay_settings, bound)
                if engine == "embedded"
                else replay(program.plan, *replay_settings, bound, static_graphs(self.graphs, program.plan))
            )
            shown_changes = [
                ("+ " if c.op == "insert" else "- ") + show_event(c.event, clock) for c in replayed.changes
            ]
            wanted = [line[:2] + show_event(_answer(line[2:], clock, prefixes), clock) for line in settings["changes"]]
            assert shown_changes == wanted, _difference("changes", wanted, shown_changes)


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


def _answer(line: str, clock: Clock, prefixes: Mapping[str, str] | None) -> Event:
    event = read_event(line, clock, prefixes)
    assert isinstance(event, Event), f"not an answer: {line}"
    return event


def compare_answers(
    expected: Iterable[str], answers: Iterable[Event], clock: Clock, prefixes: Mapping[str, str] | None = None
) -> None:
    """Raises AssertionError where two answers differ, with what is missing and what is too much."""
    wanted: dict[OrderKey, Event] = {(e := _plain(_answer(line, clock, prefixes))).content: e for line in expected}
    answer_lines = {(plain := _plain(e)).content: plain for e in answers}
    if wanted.keys() != answer_lines.keys():
        lines = [f"  missing: {show_event(e, clock)}" for k, e in wanted.items() if k not in answer_lines]
        lines += [f"  too much: {show_event(e, clock)}" for k, e in answer_lines.items() if k not in wanted]
        raise AssertionError("the answer differs\n" + "\n".join(lines))


def _plain(event: Event) -> Event:
    """A graph event with its triples in one form, so that it is compared by them; any other event as it is."""
    if not event.type.startswith("<") or not isinstance(event.args[0], str):
        return event
    return replace(event, args=("\n".join(triple_lines(event.args[0])),))


def _difference(what: str, wanted: list[str], actual: list[str]) -> str:
    return (
        f"the {what} differ\n  expected:\n"
        + "".join(f"    {x}\n" for x in wanted)
        + "  found:\n"
        + "".join(f"    {x}\n" for x in actual)
    )


def read_spec(path: str | Path) -> list[Case]:
    """The cases of a spec file."""
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"malformed TOML: {error}", str(path)) from None
    shared = {k: v for k, v in data.items() if k != "case"}
    cases = data.get("case", [])
    if not cases:
        raise DataError("has no [[case]]", str(path))
    result: list[Case] = []
    for number, case in enumerate(cases, 1):
        merged = {**shared, **case}
        unknown = set(merged) - _KEYS
        if unknown:
            raise DataError(f"unknown key `{sorted(unknown)[0]}` in case {number}", str(path))
        if not merged.keys() & {"program", "query", "queries"} or (
            "expected" not in merged and "changes" not in merged
        ):
            raise DataError(f"case {number} needs `program` (or `query`) and `expected` (or `changes`)", str(path))
        settings = {k: v for k, v in merged.items() if k not in ("name", "about", "program", "events", "expected")}
        result.append(
            Case(
                str(case.get("name", f"case {number}")),
                merged.get("program", ""),
                tuple(merged.get("events", ())),
                tuple(merged["expected"]) if "expected" in merged else None,
                settings,
                str(path),
            )
        )
    return result


def read_specs(folder: str | Path) -> Iterator[Case]:
    """The cases of all spec files below a folder."""
    for path in sorted(Path(folder).rglob("*.toml")):
        yield from read_spec(path)
