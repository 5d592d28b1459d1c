"""One run over a whole history: what `augury.run` and `augury run` do."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from augury import reference, sinks
from augury.algebra.plan import Plan
from augury.algebra.stages import needed
from augury.compiled import Compiled, check_clock
from augury.core.clock import Clock, Kind
from augury.core.errors import RunError, counted, too_deep
from augury.core.model import Event, Fact, HistoryItem, Revocation, on_calendar
from augury.core.parallel import available_cores
from augury.core.time_units import TimeUnit
from augury.engine import batch
from augury.entailment import ExplainedModel, Model, Replay
from augury.explain.derivations import explained
from augury.explain.why import derivation_tree, show_tree
from augury.knowledge.facts import Facts, check_facts, facts_from, facts_listed
from augury.knowledge.graphs import Graphs
from augury.pictures import (
    Picture,
    Places,
    Scene,
    TimelineOptions,
    draw_map,
    lanes_of,
    located,
    timeline,
)
from augury.pictures.scenes import scene_of
from augury.program import Program, compile
from augury.reference import static_graphs
from augury.settings import Settings
from augury.sinks.markup import Explanation
from augury.sinks.names import attribute_names
from augury.sources import History, Reader, Skipped, SourceFile, read_history

EventsIn = Iterable[Event | Revocation | Mapping[str, Any]] | Mapping[str, Any] | SourceFile
FactsIn = Mapping[str, Iterable[Any]] | Iterable[Fact]
ENGINES = ("embedded", "reference")


class Result(sinks.Answers[Event]):
    """The answer of a run: the derived events in the order of events, which are made when looked at.

    `result["alarm"]` are the answers of one type. A result is an Arrow stream, as each of these is.
    """

    def __init__(
        self, program: Compiled, model: Model, clock: Clock, revoked: Callable[[], Iterable[Event]] = tuple
    ) -> None:
        """`revoked` are the revoked inputs, which nothing else holds."""
        in_circuit = isinstance(model, batch.SessionModel)
        answers = model.detected if in_circuit else sinks.answers_of(model.events, program.plan, clock)  # type: ignore[attr-defined]
        super().__init__(program.plan, clock, answers.parts, None if in_circuit else answers.which)
        self.program, self.model, self.revoked = program, model, revoked

    def __repr__(self) -> str:
        return f"<Result of {counted(len(self), 'event')}>"

    @property
    def events(self) -> list[Event]:
        return self.model.events

    @property
    def rejected(self) -> list[tuple[Event, str]]:
        """Inputs whose id names another event already."""
        return self.model.rejected

    @property
    def errors(self) -> dict[tuple[str, str], int]:
        """Rows that could not be computed: how often, by rule and message."""
        return self.model.errors

    def why(self, event: Event, all: bool = False) -> Explanation:
        """The derivation of an event as a tree; with `all`, every derivation."""
        derived = {e.content: e for e in self.model.all_events} if isinstance(event, Event) else {}
        if not derived or event.content not in derived:
            raise RunError(
                f"{event} was not detected", hint=self._not_computed(event) or "give an event of this result"
            )
        tree = derivation_tree(explained(self.model), derived[event.content], all)
        return Explanation(show_tree(tree, self.clock, self.program.plan.prefixes))

    def timeline(self, taken_back: Iterable[Event] = (), **options: Unpack[TimelineOptions]) -> Picture:
        """A picture of events and detections as intervals on lanes, one a type, with revoked events and retracted
        answers.

        `select` are the events whose derivations are drawn as arrows: an event, the name of a type, or several of them; by
        default all detections, where they are few. `types` are the lanes to draw, by name; `since` and `until` are the time
        that is shown; `lanes="rule"` draws a lane of each rule; `width` is in pixels, `title` stands above. A lane with
        more events than fit is drawn as bins. `taken_back` are answers that were given once; those that do not stand are
        drawn as such.
        """
        stands = {event.content for event in self} if taken_back else set()
        return timeline(self._scene([event for event in taken_back if event.content not in stands]), **options)

    def map(self, places: Places | None = None, types: Iterable[str] | None = None, title: str = "") -> Picture:
        """A map of the events and detections that have a place; needs matplotlib, the extra `pictures`.

        An event has one where two of its attributes are called longitude and latitude, or lon and lat, or where an argument
        is the name of a place in `places`: `{"s1": (13.4, 52.5)}`, longitude first. `types` are those to draw.
        """
        plan = self.program.plan
        result = []
        for lane in self._scene([]).only(types, None, None).lanes:
            events = [lane.event(row) for row in range(len(lane)) if not lane.gone[row]]
            arity = len(events[0].args) if events else 0
            names = [name.lower() for name in attribute_names(plan, (lane.name, arity))]
            result.append(located(lane.name, lane.kind, events, names, places or {}))
        return draw_map(result, title)

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}{self.timeline()._repr_html_()}"

    def _scene(self, taken_back: list[Event]) -> Scene:
        """What a timeline shows."""
        model, plan = self.model, self.program.plan
        if isinstance(model, batch.SessionModel):
            scene = scene_of(model.session.circuit, plan, self.clock, self, taken_back, model.clock)
        else:
            assert isinstance(model, ExplainedModel)
            scene = _scene_of(model, plan, self.clock, taken_back)
        stand = (lane.some(np.flatnonzero(~lane.gone)) if lane.kind == "event" else lane for lane in scene.lanes)
        return replace(scene, lanes=(*stand, *lanes_of("event", self.revoked(), gone=True)))

    def _not_computed(self, event: Event) -> str:
        """What to say of an event that no output rests on: it was not looked for."""
        plan = self.program.plan
        type = event.type if isinstance(event, Event) else ""
        derived = {rule.type for rule in plan.rules} - {rule.type for rule in needed(plan, plan.outputs).rules}
        return f"no output rests on `{type}`, so it was not computed: say `output {type}.`" if type in derived else ""


def _scene_of(model: ExplainedModel, plan: Plan, clock: Clock, gone: list[Event]) -> Scene:
    """What a timeline shows of a model that has all its events."""
    types = {rule.type for rule in plan.rules}
    inputs = lanes_of("event", (e for e in model.inputs.values() if e.type not in types))
    between = lanes_of("derived", (e for e in model.all_events if e.type in types - set(plan.outputs)))

    def parts(event: Event) -> list[Event]:
        if event.id in model.derivations:
            return [part for part in model.derivations[event.id][0].parts if part.id != event.id]
        return [model.inputs[id] for id in event.trace if id in model.inputs]

    def rule(event: Event) -> str:
        ways = model.derivations.get(event.id)
        return ways[0].rule or event.type if ways else event.type

    lanes = (*inputs, *between, *lanes_of("detected", model.events), *lanes_of("detected", gone, gone=True))
    return Scene(lanes, clock, parts, rule)


def run(
    program: Program | str | Path,
    events: EventsIn,
    *,
    clock: Kind | None = None,
    time_unit: TimeUnit | None = None,
    zone: str | None = None,
    policy: str | None = None,
    facts: FactsIn = (),
    rdf: object = (),
    until: object = None,
    as_of: object = None,
    retention: str | None = None,
    strict: bool = False,
    limits: Mapping[str, object] | None = None,
    threads: int | None = None,
    engine: str = "embedded",
) -> Result:
    """Runs a program over all events at once; what is wrong with the arguments is an AuguryError.

    Events are `Event` objects or dicts in the JSON form, tables by type or with a column `type`, or what `augury.read` has
    found; facts are `Fact` objects or, by name, tuples, dicts, tables, paths or queries; `rdf` are graphs: paths, or
    `augury.rdf(…)`. Events of types that the program does not know are ignored with a warning, or refused where
    `strict`. `limits` are what the run may use, see `session`; `threads` is how many threads, by default one for each core. `time_unit` is that of times that are numbers ("s",
    "ms", "us" or "ns" since 1970), `zone` that of times without one, such as "Europe/Berlin"; both ask for the
    timestamp clock. `engine` is "embedded", or "reference" for the slow one that says what a program means.
    """
    if engine not in ENGINES:
        raise RunError(f"unknown engine `{engine}`", hint=f"there is {', '.join(ENGINES)}")
    given_facts: Any = facts if isinstance(facts, Mapping | Facts) else facts_listed(facts)
    if not isinstance(program, Program):
        names = {f if isinstance(f, str) else f.name if isinstance(f, Fact) else f[0] for f in given_facts}
        program = compile(program, policy=policy, facts=names)
    elif policy is not None:
        program = program.with_policy(policy)
    settings = Settings.of(
        program,
        clock=clock,
        time_unit=time_unit,
        zone=zone,
        retention=retention,
        strict=strict,
        limits=limits,
        threads=available_cores() if threads is None else threads,
    )
    skipped = Skipped(limits=settings.limits)
    reader = Reader(program.plan, lambda first: settings.clock_of(program, first), skipped, strict)
    history = read_history(reader, events)
    if history.unknown:
        listed = ", ".join(f"`{name}` ({n:,})" for name, n in sorted(history.unknown.items()))
        warnings.warn(f"events of types that the program does not know were ignored: {listed}", stacklevel=2)
    chosen = reader.clock
    if chosen.guess:
        warnings.warn(chosen.guess, stacklevel=2)
    check_clock(program, chosen.kind)
    facts_read = facts_from(given_facts, program.plan, chosen, skipped)
    check_facts(facts_read, program.plan)
    time = {name: None if t is None else chosen.read(t) for name, t in (("until", until), ("as_of", as_of))}
    graphs = Graphs.of(rdf)
    execution = EngineChoice(engine, program, chosen, facts_read, graphs, settings)
    try:
        model = execution.evaluate(history, time["until"], time["as_of"])
    except RecursionError:
        raise too_deep() from None
    if engine != "embedded" and chosen.kind == "timestamp":
        model.events[:] = map(on_calendar, model.events)
    return Result(program, model, chosen, history.taken_back if history.revoked else tuple)


@dataclass(frozen=True)
class EngineChoice:
    """A program with its facts and the engine that runs it: the embedded one, or the reference evaluator."""

    engine: str
    program: Compiled
    clock: Clock
    own_facts: Facts
    graphs: Graphs
    settings: Settings

    def evaluate(self, history: History | Sequence[HistoryItem], until: int | None, as_of: int | None) -> Model:
        """All derived events that the history entails."""
        options = (self.clock, self.facts, until, as_of, self.settings.retention)
        if self.engine == "embedded":
            settings = self.settings
            return batch.evaluate(self.program, history, *options, limits=settings.limits, threads=settings.threads)
        return reference.evaluate(
            self._needed, _items(history), *options, static_graphs(self.graphs, self.program.plan)
        )

    def replay(self, history: History, until: int | None) -> Replay:
        """The changes of the answer while the history is pushed item by item."""
        settings = self.settings
        lateness = None if settings.lateness is None else self.clock.length(settings.lateness)
        options = (self.clock, self.facts, until, settings.retention, settings.emit, lateness)
        if self.engine == "embedded":
            return batch.replay(self.program, history, *options, limits=settings.limits)
        return reference.replay(self._needed, history.items(), *options, static_graphs(self.graphs, self.program.plan))

    @property
    def facts(self) -> Facts:
        """The facts, with those of the graphs: entailed ones for the reference are computed in the plainest way."""
        plan, graphs = self.program.plan, self.graphs
        return self.own_facts + (
            graphs.facts(plan, self.own_facts) if self.engine == "embedded" else graphs.closed(plan)
        )

    @property
    def _needed(self) -> Plan:
        """The part of the plan that the outputs rest on."""
        return needed(self.program.plan, self.program.plan.outputs)


def _items(history: History | Sequence[HistoryItem]) -> Iterable[HistoryItem]:
    return history.items() if isinstance(history, History) else history
