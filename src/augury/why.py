"""Why an event was derived: the tree of rules, events, facts and absences behind it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from augury.clock import Clock
from augury.meaning import Model
from augury.meaning.model import Derivation
from augury.meaning.rows import Proof
from augury.model import Event, show_value, to_json
from augury.notation import show_event


@dataclass(frozen=True)
class Because:
    """An event and its derivations; an input has none."""

    event: Event
    ways: tuple[tuple[Derivation, tuple[Because, ...]], ...] = ()
    more: int = 0


def derivation_tree(model: Model, event: Event, all: bool = False) -> Because:
    """The derivation of an event down to the inputs; with `all`, every derivation."""
    return _because(model, event, all, ()) or Because(event)


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


def show_tree(tree: Because, clock: Clock) -> str:
    return "\n".join(_lines(tree, clock, "", ""))


def _lines(tree: Because, clock: Clock, first: str, rest: str) -> Iterator[str]:
    given = [way for way in tree.ways if way[0].rule]
    source = f"  (input {tree.event.id})" if not tree.ways else ""
    if tree.ways and not given:
        source = f"  (input {tree.ways[0][0].parts[0].id})"
    yield f"{first}{show_event(tree.event, clock)}{source}"
    for number, (derivation, parts) in enumerate(given):
        last_way = number == len(given) - 1 and not tree.more
        yield f"{rest}{'└─' if last_way else '├─'} by rule {derivation.rule}"
        inner = rest + ("   " if last_way else "│  ")
        below: list[Because | Proof] = [*parts, *derivation.proofs]
        for k, item in enumerate(below):
            end = k == len(below) - 1
            lead, follow = inner + ("└─ " if end else "├─ "), inner + ("   " if end else "│  ")
            yield from _lines(item, clock, lead, follow) if isinstance(item, Because) else _proof(item, lead, follow)
    if tree.more:
        yield f"{rest}└─ and {tree.more} more derivation{'s' if tree.more > 1 else ''} (--all shows them)"


def _proof(proof: Proof, first: str, rest: str) -> Iterator[str]:
    yield f"{first}{proof.name}({', '.join(show_value(a) for a in proof.args)})"
    for k, child in enumerate(proof.children):
        end = k == len(proof.children) - 1
        yield from _proof(child, rest + ("└─ " if end else "├─ "), rest + ("   " if end else "│  "))


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


def tree_as_mermaid(tree: Because, clock: Clock) -> str:
    """A derivation as a Mermaid diagram: events as boxes, rules on the arrows."""
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
                lines.append(f"  {fact}[/{quoted(next(_proof(proof, '', '')))}/]")
                lines.append(f"  {fact} {arrow} {name}")
        return name

    visit(tree)
    return "\n".join(lines) + "\n"
