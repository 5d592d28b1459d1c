"""Runs a session and a changed copy of it, and says which detections appear and disappear, and why."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from augury.console.derivation_graph import DerivationGraph
from augury.console.edits import EditedSession, HypothesisRequest
from augury.console.input_log import play
from augury.console.near_misses import near_misses
from augury.console.recording import Recording
from augury.core.errors import RunError
from augury.core.model import Event, HistoryItem, Revocation, show_value
from augury.explain.derivations import ExplainedCircuit
from augury.explain.why import derivation_tree
from augury.notation import show_event
from augury.program import ProgramSession
from augury.tools.minimal_case import MinimalCase, smallest

LISTED = 500  # detections that are listed
EXPLAINED = 20  # of which so many say why
_CASE_EVENTS = 20_000
_SMALLER_EVENTS, _SMALLER_SECONDS = 3000, 4.0


@dataclass(frozen=True)
class Hypothesis:
    """A session as it is and as it would be."""

    recording: Recording
    edited: EditedSession

    @staticmethod
    def of(recording: Recording, request: HypothesisRequest) -> Hypothesis:
        return Hypothesis(recording, EditedSession.of(recording, request))

    @cached_property
    def before(self) -> ProgramSession:
        session = self.recording.opened()
        play(session, self.recording.inputs)
        return session

    @cached_property
    def after(self) -> ProgramSession:
        return self.play(self.edited.changed)

    def play(self, changed: Recording) -> ProgramSession:
        """The changed copy, with the clock where the session has it."""
        session = changed.opened()
        play(session, changed.inputs)
        self.edited.finish(session)
        now = self.before.now
        if now is not None and self.recording.setup.settings.emit == "early":
            session.advance(session.clock.moment(max(now, session.now or now)))
        return session

    @property
    def kinds(self) -> dict[str, str]:
        """What each type is that either program derives."""
        plans = [self.recording.setup.program.plan, self.edited.changed.setup.program.plan]
        rules = dict.fromkeys((rule.type for plan in plans for rule in plan.rules), "derived")
        return rules | dict.fromkeys((type for plan in plans for type in plan.outputs), "detected")

    def result(self) -> dict[str, Any]:
        """What appears and disappears, why, what was refused, and a case of it all."""
        start = time.perf_counter()
        before, after = _standing(self.before), _standing(self.after)
        gained = sorted((after[key] for key in after.keys() - before.keys()), key=lambda e: e.order)
        lost = sorted((before[key] for key in before.keys() - after.keys()), key=lambda e: e.order)
        refused = [item for item in self.after.late if isinstance(item, Event)]
        refused = [event for event in refused if event not in self.before.late]
        return {
            "gained": self._listed(gained, self.after, None),
            "lost": self._listed(lost, self.before, self.after),
            "counts": {"gained": len(gained), "lost": len(lost), "same": len(before.keys() & after.keys())},
            "refused": [show_event(event, self.clock) for event in refused[:10]],
            "seconds": time.perf_counter() - start,
            **self._case(gained, lost),
        }

    @property
    def clock(self) -> Any:
        return self.recording.setup.clock

    def _listed(
        self, events: Iterable[Event], session: ProgramSession, other: ProgramSession | None
    ) -> list[dict[str, Any]]:
        kinds = self.kinds
        ordered = sorted(events, key=lambda event: (kinds.get(event.type) != "detected", event.order))[:LISTED]
        return [
            {
                "type": event.type, "id": event.id, "kind": kinds.get(event.type, "derived"), "start": event.start, "end": event.end,
                "args": [show_value(arg) for arg in event.args], "text": show_event(event, self.clock),
                "graph": self._graph(event, session) if number < EXPLAINED else None,
                "misses": self._misses(event, other) if other is not None and number < EXPLAINED else None,
            }
            for number, event in enumerate(ordered)
        ]  # fmt: skip

    def _graph(self, event: Event, session: ProgramSession) -> dict[str, Any] | None:
        tree = derivation_tree(ExplainedCircuit(session.circuit, None), event, False)
        if not tree.ways:
            return None
        graph = DerivationGraph(self.clock, self.kinds)
        graph.derivation(tree)
        return graph.as_json()

    def _misses(self, event: Event, session: ProgramSession) -> list[dict[str, Any]] | None:
        """Why an event is missing."""
        try:
            return near_misses(session, show_event(event, self.clock))
        except RunError:
            return None  # no rule derives it any more

    # A test case

    def _case(self, gained: list[Event], lost: list[Event]) -> dict[str, Any]:
        """The changed copy as a test case, with as few events as show the same; why there is none."""
        recording, changed = self.recording, self.edited.changed
        if recording.base:
            return {"case": "", "noCase": "the beginning of the session is forgotten"}
        if changed.setup.program.plan.graph_queries:
            return {"case": "", "noCase": "queries over graph streams have no cases yet"}
        if any(fact.since is not None or fact.until is not None for fact in changed.setup.facts):
            return {"case": "", "noCase": "cases have no facts that hold for a time"}
        refused = {item.id for item in self.after.late} | {event.id for event, _ in self.after.rejected}
        events: list[HistoryItem] = [
            item
            for item in changed.inputs
            if isinstance(item, Revocation) or (isinstance(item, Event) and item.id not in refused)
        ]
        if len(events) <= _SMALLER_EVENTS and (gained or lost):
            events = self._smaller(changed, events, {e.id for e in gained}, {e.id for e in lost})
        if len(events) > _CASE_EVENTS:
            return {"case": "", "noCase": f"{len(events):,} events are too many for a case; `augury case` finds fewer"}
        return {"case": self._toml(changed, events, gained, lost), "noCase": ""}

    def _smaller(
        self, changed: Recording, events: list[HistoryItem], gained: set[str], lost: set[str]
    ) -> list[HistoryItem]:
        """A part of the events with which the same appears and disappears."""
        deadline = time.monotonic() + _SMALLER_SECONDS
        played = [item for item in self.recording.inputs if isinstance(item, Event | Revocation)]
        originals = {item.id for item in played}
        left_out = originals - {item.id for item in events}

        def shows(part: list[HistoryItem]) -> bool:
            if time.monotonic() > deadline:
                return False
            after = _standing(self.play(replace(changed, inputs=tuple(part), counts=(len(part),)))).keys()
            if not gained <= after or lost & after:
                return False
            kept = left_out | {item.id for item in part}
            session = self.recording.setup.open()
            play(session, [item for item in played if item.id in kept])
            if self.before.now is not None and self.recording.setup.settings.emit == "early":
                session.advance(session.clock.moment(self.before.now))
            before = _standing(session).keys()
            return lost <= before and not gained & before

        return smallest(events, shows) if shows(events) else events

    def _toml(self, changed: Recording, events: list[HistoryItem], gained: list[Event], lost: list[Event]) -> str:
        session = self.play(replace(changed, inputs=tuple(events), counts=(len(events),)))
        outputs = changed.setup.program.plan.outputs
        answers = tuple(sorted((e for e in _standing(session).values() if e.type in outputs), key=lambda e: e.order))
        name = ", ".join(
            text
            for word, events_of in (("appears", gained), ("disappears", lost))
            if events_of and (text := f"{min(events_of, key=lambda e: e.type not in outputs).type} {word}")
        )
        retention = changed.setup.settings.retention
        case = MinimalCase(
            name or "what if", tuple(events), changed.setup.facts, answers, self.clock, session.now, None if retention is None else f"{retention}us",
        )  # fmt: skip
        text = "\n".join(source.text.strip("\n") for source in changed.setup.text.sources)
        program = f"program = '''\n{text}\n'''" if "'''" not in text else f"program = {_basic(text)}"
        return case.toml(program)


def _basic(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"""\n' + escaped + '\n"""'


def _standing(session: ProgramSession) -> Mapping[str, Event]:
    return {event.id: event for event in session.events()}
