"""Why an event was derived: the tree of rules, events, facts and absences behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Protocol, TypeVar

from augury.algebra.matching import Proof
from augury.algebra.nodes import held_by
from augury.core.clock import Clock
from augury.core.errors import counted
from augury.core.model import Event, OrderKey, Value, order_key, show_value, to_json
from augury.entailment import Derivation
from augury.explain.tree import Flowchart, Tree
from augury.language.rules.show import Printer
from augury.notation import show_event

T = TypeVar("T")
Namer = Callable[[str], str]
_LONG, _DEEP = 12, 50  # how many facts side by side, and how many below one another, are shown


class DerivedEvents(Protocol):
    """What a derivation tree is made from: a model of the reference evaluator, or a circuit."""

    @property
    def derivations(self) -> Mapping[str, list[Derivation]]: ...
    @property
    def all_events(self) -> list[Event]: ...
    @property
    def makers(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class ExplainedEvent:
    """An event and its derivations; an input has none."""

    event: Event
    ways: tuple[tuple[Derivation, tuple[ExplainedEvent, ...]], ...] = ()
    more: int = 0
    made: Mapping[OrderKey, ExplainedEvent] = field(default_factory=dict)  # by fact, at the root of a tree


def derivation_tree(model: DerivedEvents, event: Event, all: bool = False) -> ExplainedEvent:
    """The derivation of an event down to the inputs; with `all`, every derivation."""
    tree = _because(model, event, all, ()) or ExplainedEvent(event)
    return replace(tree, made=_made(model, tree, all))


def _made(model: DerivedEvents, tree: ExplainedEvent, all: bool) -> dict[OrderKey, ExplainedEvent]:
    """The events that made the facts of a tree, each the latest that had by then."""
    events: dict[OrderKey, list[Event]] = {}
    for event in model.all_events:
        if event.type in model.makers:
            events.setdefault(_key(model.makers[event.type], event.args), []).append(event)
    result: dict[OrderKey, ExplainedEvent] = {}
    open_trees = [tree] if events else []
    while open_trees:
        open_tree = open_trees.pop()
        for derivation, parts in open_tree.ways:
            open_trees += parts
            proofs = list(derivation.proofs)
            while proofs:
                proof = proofs.pop()
                proofs += (below._replace(was=proof.was) for below in proof.children)
                last = open_tree.event.end - proof.was
                made = [e for e in events.get(_key(proof.name, proof.args), ()) if e.end <= last]
                if made and _key_of(proof) not in result:
                    because = _because(model, made[-1], all, ()) or ExplainedEvent(made[-1])
                    result[_key_of(proof)] = because
                    open_trees.append(because)
    return result


def _key(name: str, args: tuple[Value, ...]) -> OrderKey:
    return (name, *(order_key(a) for a in args))


def _key_of(proof: Proof) -> OrderKey:
    return (proof.was, *_key(proof.name, proof.args))


def _because(model: DerivedEvents, event: Event, all: bool, above: tuple[str, ...]) -> ExplainedEvent | None:
    """The tree below an event; None where every derivation leads back to one that it is to explain."""
    if event.id not in model.derivations:
        return ExplainedEvent(event)
    if event.id in above:
        return None
    result: list[tuple[Derivation, tuple[ExplainedEvent, ...]]] = []
    more = 0
    for way in model.derivations[event.id]:
        if result and not all:
            more += 1
            continue
        parts = [
            _because(model, p, all, (*above, event.id)) if p.id != event.id or way.rule else ExplainedEvent(p)
            for p in way.parts
        ]
        if None not in parts:
            result.append((way, tuple(p for p in parts if p is not None)))
    return ExplainedEvent(event, tuple(result), more) if result else None


def show_tree(tree: ExplainedEvent, clock: Clock, prefixes: Mapping[str, str] | None = None) -> str:
    return str(_Shown(clock, _namer(prefixes), tree.made).event(tree))


def _namer(prefixes: Mapping[str, str] | None) -> Namer:
    """The names of static predicates, those that are IRIs by their prefixes."""
    printer = Printer()
    printer.prefixes |= prefixes or {}
    return lambda name: " ".join(printer.name(word) for word in name.split(" "))


@dataclass(frozen=True)
class _Shown:
    """Events and facts as lines, with those behind them below."""

    clock: Clock
    name: Namer
    made: Mapping[OrderKey, ExplainedEvent]

    def event(self, tree: ExplainedEvent) -> Tree:
        if held_by((tree.event.type, len(tree.event.args))) is not None:
            facts = tuple(self.fact(proof) for way, _ in tree.ways for proof in way.proofs)
            return Tree(show_event(tree.event, self.clock), facts)
        derived = [way for way in tree.ways if way[0].rule]
        source = "" if derived else f"  (input {tree.ways[0][0].parts[0].id if tree.ways else tree.event.id})"
        rules = [
            Tree(f"by rule {way.rule}", (*self.parts(parts), *map(self.fact, way.proofs))) for way, parts in derived
        ]
        if tree.more:
            rules.append(Tree(f"and {counted(tree.more, 'more derivation')} (--all shows them)"))
        return Tree(f"{show_event(tree.event, self.clock)}{source}", tuple(rules))

    def parts(self, parts: tuple[ExplainedEvent, ...]) -> list[Tree]:
        """The events of a derivation; of many of one type in a row, as a run has them, the first ones and the last."""
        rows = [list(same) for _, same in groupby(parts, key=lambda part: part.event.type)]
        return [tree for row in rows for tree in _some(row, self.event)]

    def fact(self, proof: Proof, depth: int = 0) -> Tree:
        name = f"{'was ' if proof.was and depth == 0 else ''}{self.name(proof.name)}"
        text = f"{name}({', '.join(show_value(a) for a in proof.args)})"
        made = self.made.get(_key_of(proof))
        if (proof.children or made) and depth == _DEEP:
            return Tree(text, (Tree("…"),))
        below = tuple(child._replace(was=proof.was) for child in proof.children)
        facts = _some(below, lambda proof: self.fact(proof, depth + 1))
        return Tree(text, (self.event(made),) if made is not None else tuple(facts))


def _some(row: Sequence[T], show: Callable[[T], Tree]) -> list[Tree]:
    """What stands side by side; of many, the first ones and the last."""
    if len(row) <= _LONG:
        return [show(item) for item in row]
    first = [show(item) for item in row[: _LONG - 2]]
    return [*first, Tree(f"… {len(row) - len(first) - 1:,} more"), show(row[-1])]


def tree_as_json(tree: ExplainedEvent, clock: Clock) -> dict[str, object]:
    event = tree.event
    shown: dict[str, Any] = {
        "type": event.type,
        "args": [to_json(a) for a in event.args],
        "start": clock.show(event.start),
        "end": clock.show(event.end),
        "id": event.id,
    }
    ways = [
        {
            "rule": d.rule,
            "parts": [tree_as_json(p, clock) for p in parts],
            "facts": [_proof_as_json(p) for p in d.proofs],
        }
        for d, parts in tree.ways
        if d.rule
    ]
    return {**shown, "derivations": ways} if ways else shown


def _proof_as_json(proof: Proof) -> dict[str, object]:
    below = {"because": [_proof_as_json(c) for c in proof.children]} if proof.children else {}
    was = {"was": True} if proof.was else {}
    return {"name": proof.name, "args": [to_json(a) for a in proof.args], **was, **below}


def tree_as_mermaid(tree: ExplainedEvent, clock: Clock, prefixes: Mapping[str, str] | None = None) -> str:
    """A derivation as a Mermaid diagram: events as boxes, rules on the arrows."""
    shown, chart = _Shown(clock, _namer(prefixes), {}), Flowchart("BT")

    def visit(because: ExplainedEvent) -> str:
        name, _ = chart.box(show_event(because.event, clock), ("[", "]") if because.ways else ("(", ")"))
        for derivation, parts in because.ways:
            if not derivation.rule:
                continue
            for part in parts:
                chart.arrow(visit(part), name, derivation.rule)
            for proof in derivation.proofs:
                chart.arrow(chart.box(shown.fact(proof).text, ("[/", "/]"))[0], name, derivation.rule)
        return name

    visit(tree)
    return f"{chart}\n"
