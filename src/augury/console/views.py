"""The answers to the questions of the page, as plain data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from augury.console.derivation_graph import DerivationGraph, with_extra
from augury.console.lane_items import LATE, NEVER, REFUSED
from augury.console.watched_lanes import HeldSession, WatchedLanes
from augury.core.arrays import Array
from augury.core.errors import RunError
from augury.core.model import show_value, to_json
from augury.editor.vocabulary import ALL_QUERY_WORDS, RULE_WORDS
from augury.explain.derivations import ExplainedCircuit
from augury.explain.leads_to import leads_to
from augury.explain.why import derivation_tree
from augury.notation import show_event
from augury.sinks.names import attribute_names

_MOST_EDGES = 5000
_MOST_WAYS = 50  # derivations of one event that are shown
_GAPS = 40  # idle times that may be collapsed


@dataclass(frozen=True)
class Nothing:
    """A request without fields."""


@dataclass(frozen=True)
class MomentRequest:
    """A request as of a moment; the latest where none is named."""

    moment: int | None = None


@dataclass(frozen=True)
class TimelineRequest:
    """What of the timeline is shown: the edges of its bins, as of a moment, of what has a text in its arguments."""

    edges: tuple[int, ...]
    moment: int | None = None
    filter: str = ""


@dataclass(frozen=True)
class ItemRequest:
    """An event, by its type and id, as of a moment; with `all`, all its derivations."""

    type: str
    id: str
    moment: int | None = None
    all: bool = False


class Views:
    """Looks at a watched session."""

    def __init__(self, watched: WatchedLanes) -> None:
        self.watched = watched
        self._range_after = (-1, 0, 1)  # after which step, the range of all times

    def about(self, request: Nothing) -> dict[str, Any]:
        """The program and what it is about."""
        watched = self.watched
        plan, clock = watched.plan, watched.setup.clock
        types = {
            name: {
                "arity": arity,
                "attributes": attribute_names(plan, (name, arity)),
                "kind": watched.kind_of(name),
            }
            for name, arity in sorted(plan.event_types)
        }
        return {
            "types": types, "clockKind": clock.kind, "live": watched.live, "looksOnly": watched.looks_only,
            "sources": [{"name": x.name, "text": x.text, "language": x.language} for x in watched.text.sources],
            "rules": [rule.label for rule in plan.rules], "words": {"rules": list(RULE_WORDS), "spaseq": list(ALL_QUERY_WORDS)},
            **self.state(),
        }  # fmt: skip

    def state(self) -> dict[str, Any]:
        """What changes with each step: what the page is told while it is open."""
        watched = self.watched
        with watched.lock:
            step = len(watched.steps)
            if self._range_after[0] != step:
                self._range_after = (step, *self._range())
            _, low, high = self._range_after
            return {
                "version": watched.version, "step": step, **watched.steps.times(step), "low": low, "high": high,
                "events": watched.counted, "late": watched.late_count,
                "detections": watched.detections, "title": watched.title,
                "problem": watched.problem, "live": watched.live, "revision": watched.revision,
            }  # fmt: skip

    def _range(self) -> tuple[int, int]:
        lanes = [lane for lane in self.watched.lanes.values() if len(lane)]
        low = min((np.array(lane.start, np.int64).min().item() for lane in lanes), default=0)
        high = max((np.array(lane.end, np.int64).max().item() for lane in lanes), default=1)
        clock = self.watched.steps.times(len(self.watched.steps))["clock"]
        return low, max(high, clock if clock is not None else high)

    def timeline(self, request: TimelineRequest) -> dict[str, Any]:
        """The lanes between the first and the last edge, as of a moment."""
        edges = _edges(request)
        watched = self.watched
        with watched.lock:
            step = watched.steps.step_at(request.moment)
            columns = [lane.columns(step, request.filter) for lane in watched.ordered_lanes()]
            shown = [lane.shown(edges) for lane in columns]
            return {"step": step, "version": watched.version, **watched.steps.times(step), "lanes": shown}

    def overview(self, request: TimelineRequest) -> dict[str, Any]:
        """How many events and detections there are in each bin of all time, and the longest idle times."""
        edges = _edges(request)
        watched = self.watched
        with watched.lock:
            counts = {kind: np.zeros(len(edges) - 1, np.int64) for kind in ("event", "derived", "detected")}
            for lane in watched.lanes.values():
                counts[lane.kind] += np.histogram(np.array(lane.end, np.int64), edges)[0]
            return {"counts": {kind: row.tolist() for kind, row in counts.items()}, "gaps": self._gaps()}

    def _gaps(self) -> list[tuple[int, int]]:
        """Times in which nothing is, longer than a hundredth of all time, from the longest on."""
        lanes = [lane for lane in self.watched.lanes.values() if len(lane)]
        if not lanes:
            return []
        start = np.concatenate([np.array(lane.start, np.int64) for lane in lanes])
        end = np.concatenate([np.array(lane.end, np.int64) for lane in lanes])
        order = np.argsort(start, kind="stable")
        start, end = start[order], np.maximum.accumulate(end[order])
        idle = start[1:] - end[:-1]
        longest = np.argsort(-idle)[:_GAPS]
        least = max(1, int(end[-1] - start[0]) // 100)
        gaps = [(int(end[row]), int(start[row + 1])) for row in longest.tolist() if idle[row] > least]
        return sorted(gaps)

    # One event

    def item(self, request: ItemRequest) -> dict[str, Any]:
        """An event with what is noted of it."""
        watched = self.watched
        with watched.lock:
            lane, row = watched.item(request.type, request.id)
            event, clock = lane.events[row], watched.setup.clock
            gone, state = lane.gone[row], lane.state[row]
            names = attribute_names(watched.plan, (event.type, len(event.args)))
            return {
                "type": event.type, "id": event.id, "kind": lane.kind, "start": event.start, "end": event.end,
                "text": show_event(event, clock), "arrived": lane.arrived[row], "step": lane.appeared[row],
                "late": state == LATE, "refused": state == REFUSED,
                "gone": None if gone == NEVER else watched.steps.times(gone)["clock"],
                "arguments": [{"name": name, "value": show_value(arg)} for name, arg in zip(names, event.args, strict=True)],
                "json": {"type": event.type, "args": [to_json(arg) for arg in event.args]},
            }  # fmt: skip

    def why(self, request: ItemRequest) -> dict[str, Any]:
        """The derivations of an event as graphs; of one that was retracted, as of just before."""
        watched = self.watched
        with watched.lock:
            lane, row = watched.item(request.type, request.id)
            event, step = lane.events[row], watched.steps.step_at(request.moment)
            retracted = lane.gone[row] <= step
            step = lane.gone[row] - 1 if retracted else max(step, lane.appeared[row])
        if lane.kind == "event":
            return {"derivations": [], "more": 0, "retracted": retracted}
        sessions = watched.sessions_at(step)
        for held in sessions:
            with held.session._lock:
                tree = derivation_tree(
                    ExplainedCircuit(held.session.circuit, None), with_extra(event, held.extra), request.all
                )
            if tree.ways:
                break
        else:
            raise RunError("the derivation is forgotten", hint="a session keeps what can still matter")
        ways = min(_MOST_WAYS, sum(bool(way[0].rule) for way in tree.ways))
        graphs = []
        for number in range(max(1, ways)):
            graph = DerivationGraph(watched.setup.clock, watched.kinds, held.extra)
            graph.derivation(tree, number)
            if len(sessions) > 1:
                _explain_across(graph, sessions)
            graphs.append(graph.as_json())
        return {"derivations": graphs, "more": tree.more, "retracted": retracted}

    def leads_to(self, request: ItemRequest) -> dict[str, Any]:
        """What an event led to, as a graph."""
        watched = self.watched
        with watched.lock:
            lane, row = watched.item(request.type, request.id)
            event = lane.events[row]
            step = max(lane.appeared[row], watched.steps.step_at(request.moment))
            step = lane.gone[row] - 1 if lane.gone[row] <= step else step
        sessions = watched.sessions_at(step)
        graph = DerivationGraph(watched.setup.clock, watched.kinds, max((held.extra for held in sessions), default=0))
        results, capped = set[tuple[str, str]](), False
        for held in sessions:
            with held.session._lock:
                trace = leads_to(held.session.circuit, event)
            graph.forward(with_extra(event, graph.extra), trace)
            results |= {(result.type, result.id) for result in trace.events}
            capped = capped or trace.capped
        return {"graph": graph.as_json(), "count": len(results), "capped": capped}


def _explain_across(graph: DerivationGraph, sessions: Sequence[HeldSession]) -> None:
    """Adds how the events of a graph were derived that other sessions have made."""
    seen: set[str] = set()
    while nodes := [node for node in graph.unexplained() if node["key"] not in seen]:
        for node in nodes:
            seen.add(node["key"])
            for held in sessions:
                with held.session._lock:
                    model = ExplainedCircuit(held.session.circuit, None)
                    if node["id"] not in model.derivations.rows:
                        continue
                    events, row = model.derivations.rows[node["id"]]
                    event = held.session.circuit.event((events.out.table, row))
                    tree = derivation_tree(model, event, False)
                if event.type == node["type"] and any(way[0].rule for way in tree.ways):
                    graph.explain(tree, held.extra)
                    break


def _edges(request: TimelineRequest) -> Array:
    edges = np.array(request.edges, np.int64)
    if not 2 <= len(edges) <= _MOST_EDGES or (np.diff(edges) <= 0).any():
        raise RunError(f"the edges of bins are 2 to {_MOST_EDGES} increasing times")
    return edges


def as_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
