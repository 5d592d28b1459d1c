"""Derivations, and what an event led to, as graphs: events with their times, facts beside what they were asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from augury.algebra.matching import Proof
from augury.core.clock import Clock
from augury.core.model import Event, order_key, show_value
from augury.entailment import Derivation
from augury.explain.leads_to import ForwardTrace
from augury.explain.why import ExplainedEvent
from augury.notation import show_event

Way = tuple[Derivation, tuple[ExplainedEvent, ...]]

NODES = 150  # of a graph; a derivation may have thousands of parts
_DEEP = 12  # facts below one another


def with_extra(event: Event, extra: int) -> Event:
    """An event as a bucket has it, whose events have more arguments than the user's."""
    return replace(event, args=(*event.args, *[None] * extra)) if extra else event


def without_extra(event: Event, extra: int) -> Event:
    """An event without the arguments at its end that are not the user's."""
    return replace(event, args=event.args[:-extra]) if extra else event


@dataclass
class DerivationGraph:
    """Nodes from what was derived down to inputs and facts, and edges from a part to the whole."""

    clock: Clock
    kinds: Mapping[str, str]  # of derived types
    extra: int = 0  # arguments at the end of events that are not the user's
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: list[dict[str, Any]] = field(default_factory=list)
    left_out: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"nodes": list(self.nodes.values()), "edges": self.edges, "leftOut": self.left_out}

    def event(self, event: Event, depth: int, rule: str = "") -> str:
        """The node of an event; its key."""
        key = f"{event.type}·{event.id}"
        if key not in self.nodes:
            event = without_extra(event, self.extra)
            self.nodes[key] = {
                "key": key, "kind": self.kinds.get(event.type, "event"), "type": event.type, "id": event.id,
                "args": [show_value(arg) for arg in event.args], "start": event.start, "end": event.end,
                "text": show_event(event, self.clock), "rule": rule, "depth": depth,
            }  # fmt: skip
        return key

    def edge(self, part: str, whole: str, rule: str = "") -> None:
        edge = {"from": part, "to": whole, "rule": rule}
        if edge not in self.edges:
            self.edges.append(edge)

    def derivation(self, tree: ExplainedEvent, way: int = 0) -> None:
        """One of the derivations of an event, down to the inputs."""
        self._because(tree, 0, way)
        for made in tree.made.values():
            self._because(made, 1, 0)

    def _because(self, tree: ExplainedEvent, depth: int, way: int) -> str:
        ways = [item for item in tree.ways if item[0].rule]
        chosen = ways[way] if way < len(ways) else ways[0] if ways else None
        fresh = f"{tree.event.type}·{tree.event.id}" not in self.nodes
        key = self.event(tree.event, depth, chosen[0].rule if chosen else "")
        if chosen is None or not fresh:
            return key
        self._parts(key, chosen, tree.event.end, depth)
        return key

    def _parts(self, key: str, way: Way, end: int, depth: int) -> None:
        derivation, parts = way
        for part in parts:
            if len(self.nodes) >= NODES:
                self.left_out += 1
                continue
            self.edge(self._because(part, depth + 1, 0), key, derivation.rule)
        for proof in derivation.proofs:
            self._fact(proof, key, end, depth + 1, derivation.rule)

    def unexplained(self) -> list[dict[str, Any]]:
        """Derived events whose parts are not in the graph: another session has made them."""
        explained = {edge["to"] for edge in self.edges}
        return [node for key, node in self.nodes.items() if node["type"] in self.kinds and key not in explained]

    def explain(self, tree: ExplainedEvent, extra: int) -> None:
        """Adds the parts of an event that is in the graph, as a session has made it."""
        node = self.nodes[f"{tree.event.type}·{tree.event.id}"]
        way = next((item for item in tree.ways if item[0].rule), None)
        if way is not None:
            self.extra, node["rule"] = extra, way[0].rule
            self._parts(node["key"], way, tree.event.end, node["depth"])

    def _fact(self, proof: Proof, whole: str, time: int, depth: int, rule: str = "") -> None:
        """The node of a fact, with what it follows from by static rules."""
        if len(self.nodes) >= NODES:
            self.left_out += 1
            return
        text = f"{proof.name}({', '.join(show_value(arg) for arg in proof.args)})"
        key = f"{whole}·{proof.was}{proof.name}{[order_key(arg) for arg in proof.args]}"
        self.nodes[key] = {
            "key": key, "kind": "fact", "type": proof.name, "id": "", "args": [show_value(arg) for arg in proof.args],
            "start": time - proof.was, "end": time - proof.was, "text": f"{'was ' if proof.was else ''}{text}",
            "rule": "static rule" if proof.children else "", "depth": depth,
        }  # fmt: skip
        self.edge(key, whole, rule)
        for child in proof.children if depth < _DEEP else ():
            self._fact(child._replace(was=proof.was), key, time, depth + 1)

    def forward(self, event: Event, trace: ForwardTrace) -> None:
        """What an event led to."""
        depths = {(event.type, event.id): 0}
        self.event(event, 0)
        for part, whole in trace.edges:
            depth = depths.get((part.type, part.id), 0) + 1
            depths.setdefault((whole.type, whole.id), depth)
        for part, whole in trace.edges:
            if len(self.nodes) >= NODES:
                self.left_out += 1
                continue
            keys = [self.event(item, depths[item.type, item.id]) for item in (part, whole)]
            self.edge(*keys)
