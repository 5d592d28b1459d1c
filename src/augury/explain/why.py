"""Why an event was derived: the tree of rules, events, facts and absences behind it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from augury.algebra.matching import Proof
from augury.clock import Clock
from augury.language.show import Printer
from augury.meaning import Model
from augury.meaning.model import Derivation
from augury.model import Event, OrderKey, Value, order_key, show_value, to_json
from augury.notation import show_event

Namer = Callable[[str], str]
_LONG, _DEEP = 12, 50  # how many facts side by side, and how many below one another, are shown


@dataclass(frozen=True)
class Because:
    """An event and its derivations; an input has none."""

    event: Event
    ways: tuple[tuple[Derivation, tuple[Because, ...]], ...] = ()
    more: int = 0
    made: Mapping[OrderKey, Because] = field(default_factory=dict)  # by fact, at the root of a tree


def derivation_tree(model: Model, event: Event, all: bool = False) -> Because:
    """The derivation of an event down to the inputs; with `all`, every derivation."""
    tree = _because(model, event, all, ()) or Because(event)
    return replace(tree, made=_made(model, tree, all))


def _made(model: Model, tree: Because, all: bool) -> dict[OrderKey, Because]:
    """The events that made the facts of a tree, each the latest that had by then."""
    events: dict[OrderKey, list[Event]] = {}
    for event in model.all_events:
        if event.type.startswith("fact "):
            events.setdefault(_key(event.type[5:], event.args), []).append(event)
    found: dict[OrderKey, Because] = {}
    open_trees = [tree] if events else []
    while open_trees:
        one = open_trees.pop()
        for derivation, parts in one.ways:
            open_trees += parts
            proofs = list(derivation.proofs)
            while proofs:
                proof = proofs.pop()
                proofs += proof.children
                made = [e for e in events.get(_key(proof.name, proof.args), ()) if e.end <= one.event.end]
                if made and _key(proof.name, proof.args) not in found:
                    because = _because(model, made[-1], all, ()) or Because(made[-1])
                    found[_key(proof.name, proof.args)] = because
                    open_trees.append(because)
    return found


def _key(name: str, args: tuple[Value, ...]) -> OrderKey:
    return (name, *(order_key(a) for a in args))


def _because(model: Model, event: Event, all: bool, above: tuple[str, ...]) -> Because | None:
    """The tree below an event; None where every derivation leads back to one that it is to explain."""
    if event.id not in model.derivations:
        return Because(event)
    if event.id in above:
        return None
    found: list[tuple[Derivation, tuple[Because, ...]]] = []
    more = 0
    for way in model.derivations[event.id]:
        if found and not all:
            more += 1
            continue
        parts = [
            _because(model, p, all, (*above, event.id)) if p.id != event.id or way.rule else Because(p)
            for p in way.parts
        ]
        if None not in parts:
            found.append((way, tuple(p for p in parts if p is not None)))
    return Because(event, tuple(found), more) if found else None


def show_tree(tree: Because, clock: Clock, prefixes: Mapping[str, str] | None = None) -> str:
    return "\n".join(_Lines(clock, _namer(prefixes), tree.made).event(tree, "", ""))


def _namer(prefixes: Mapping[str, str] | None) -> Namer:
    """The names of static predicates, those that are IRIs by their prefixes."""
    printer = Printer()
    printer.prefixes |= prefixes or {}
    return lambda name: " ".join(printer.name(word) for word in name.split(" "))


@dataclass(frozen=True)
class _Lines:
    """A tree, line by line."""

    clock: Clock
    name: Namer
    made: Mapping[OrderKey, Because]

    def event(self, tree: Because, first: str, rest: str) -> Iterator[str]:
        given = [way for way in tree.ways if way[0].rule]
        source = f"  (input {tree.event.id})" if not tree.ways else ""
        if tree.ways and not given:
            source = f"  (input {tree.ways[0][0].parts[0].id})"
        yield f"{first}{show_event(tree.event, self.clock)}{source}"
        for number, (derivation, parts) in enumerate(given):
            last_way = number == len(given) - 1 and not tree.more
            yield f"{rest}{'└─' if last_way else '├─'} by rule {derivation.rule}"
            inner = rest + ("   " if last_way else "│  ")
            below: list[Because | Proof] = [*parts, *derivation.proofs]
            for k, item in enumerate(below):
                lead, follow = _branch(inner, k == len(below) - 1)
                yield from (
                    self.event(item, lead, follow) if isinstance(item, Because) else self.fact(item, lead, follow)
                )
        if tree.more:
            yield f"{rest}└─ and {tree.more} more derivation{'s' if tree.more > 1 else ''} (--all shows them)"

    def fact(self, proof: Proof, first: str, rest: str, depth: int = 0) -> Iterator[str]:
        yield f"{first}{self.name(proof.name)}({', '.join(show_value(a) for a in proof.args)})"
        made = self.made.get(_key(proof.name, proof.args))
        if (proof.children or made) and depth == _DEEP:
            yield f"{rest}└─ …"
        elif made is not None:
            yield from self.event(made, *_branch(rest, True))
        else:
            yield from self.facts(proof.children, rest, depth + 1)

    def facts(self, proofs: tuple[Proof, ...], rest: str, depth: int) -> Iterator[str]:
        """Facts side by side; of many, the first ones and the last."""
        shown = proofs if len(proofs) <= _LONG else proofs[: _LONG - 2]
        for k, proof in enumerate(shown):
            yield from self.fact(proof, *_branch(rest, k == len(proofs) - 1), depth)
        if len(shown) < len(proofs):
            yield f"{rest}├─ … {len(proofs) - len(shown) - 1:,} more"
            yield from self.fact(proofs[-1], *_branch(rest, True), depth)


def _branch(rest: str, last: bool) -> tuple[str, str]:
    return (rest + "└─ ", rest + "   ") if last else (rest + "├─ ", rest + "│  ")


def tree_as_json(tree: Because, clock: Clock) -> dict[str, Any]:
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


def _proof_as_json(proof: Proof) -> dict[str, Any]:
    below = {"because": [_proof_as_json(c) for c in proof.children]} if proof.children else {}
    return {"name": proof.name, "args": [to_json(a) for a in proof.args], **below}


def tree_as_mermaid(tree: Because, clock: Clock, prefixes: Mapping[str, str] | None = None) -> str:
    """A derivation as a Mermaid diagram: events as boxes, rules on the arrows."""
    shown_facts = _Lines(clock, _namer(prefixes), {})
    lines, numbers = ["flowchart BT"], itertools.count()

    def quoted(text: str) -> str:
        return '"' + text.replace('"', "#quot;") + '"'

    def visit(because: Because) -> str:
        name = f"e{next(numbers)}"
        shown = quoted(show_event(because.event, clock))
        lines.append(f"  {name}[{shown}]" if because.ways else f"  {name}({shown})")
        for derivation, parts in because.ways:
            if not derivation.rule:
                continue
            arrow = f"-->|{quoted(derivation.rule)}|"
            for part in parts:
                lines.append(f"  {visit(part)} {arrow} {name}")
            for proof in derivation.proofs:
                fact = f"f{next(numbers)}"
                lines.append(f"  {fact}[/{quoted(next(shown_facts.fact(proof, '', '')))}/]")
                lines.append(f"  {fact} {arrow} {name}")
        return name

    visit(tree)
    return "\n".join(lines) + "\n"
