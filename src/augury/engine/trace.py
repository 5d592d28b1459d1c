"""Where an answer comes from: the input events of one derivation, and the derivations themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from augury.engine.events import Events
from augury.engine.operators.base import Part
from augury.engine.operators.derive import Derive, Derived
from augury.engine.table import END, Links
from augury.meaning.model import Derivation, derive_from
from augury.model import Event

if TYPE_CHECKING:
    from augury.engine.circuit import Circuit


def support_of(circuit: Circuit, events: Derived, row: int) -> tuple[Derive, int] | None:
    """One derivation of an event: one that stands and rests on lower ranks; of an event that is gone, the last one."""
    fallback: tuple[Derive, int] | None = None
    for links in events.supports:
        for child in all_of(links, row):
            maker = circuit.maker(links.child)
            assert isinstance(maker, Derive)
            found = (maker, child)
            if links.child.alive[child] and links.child.data[4, child] < events.out.table.data[4, row]:
                return found
            fallback = fallback or found
    return fallback


def all_of(links: Links, row: int) -> list[int]:
    """The derivations of an event, the first one first, also those that are gone."""
    links.extend()
    found, child = [], int(links.heads[row])
    while child >= 0:
        found.append(child)
        child = int(links.after[child])
    return found[::-1]


def trace_of(circuit: Circuit, events: Derived, row: int) -> tuple[str, ...]:
    """The ids of the input events of one derivation."""
    return tuple(dict.fromkeys(circuit.makers[id(table)].id(at) for table, at in inputs_of(circuit, events, row)))  # type: ignore[attr-defined]


def inputs_of(circuit: Circuit, events: Derived, row: int) -> tuple[Part, ...]:
    """The input events of one derivation."""
    found: list[Part] = []
    open_parts: list[Part] = [(events.out.table, row)]
    seen: set[tuple[int, int]] = set()
    while open_parts:
        table, at = open_parts.pop()
        if (id(table), at) in seen:
            continue
        seen.add((id(table), at))
        maker = circuit.makers[id(table)]
        if isinstance(maker, Events):
            found.append((table, at))
            continue
        assert isinstance(maker, Derived)
        kept = maker.kept_inputs.get(at)
        if kept is not None:
            found.extend(kept)
            continue
        support = support_of(circuit, maker, at)
        if support is not None:
            open_parts.extend(reversed(support[0].parts(support[1])))
    return tuple(found)


def derivations_of(circuit: Circuit, events: Derived, row: int) -> list[Derivation]:
    """Every derivation of an event that stands, with the facts it rests on."""
    found: dict[object, Derivation] = {}
    event = circuit.event((events.out.table, row))
    for links in events.supports:
        maker = circuit.maker(links.child)
        for child in links.of(row)[::-1]:
            assert isinstance(maker, Derive)
            parts = tuple(circuit.event(part) for part in maker.parts(child))
            for one in _with_facts(circuit, maker.rule, event, parts):
                found.setdefault(one.key, one)
    return sorted(found.values(), key=lambda way: tuple(part.order for part in way.parts))


def _with_facts(circuit: Circuit, rule: str, event: Event, parts: tuple[Event, ...]) -> list[Derivation]:
    if not rule:
        return [Derivation("", parts)]
    context = circuit.context
    derived = derive_from(circuit.rules[rule], parts, context.scalars, context.static)
    ways = [way for one, way in derived if one.content == event.content and set(way.parts) == set(parts)]
    return [way for way in ways if way.proofs] or [Derivation(rule, parts)]


class Derivations(Mapping[str, list[Derivation]]):
    """The derivations of all events, by id; found when asked for."""

    def __init__(self, circuit: Circuit, until: int | None) -> None:
        self.circuit, self.until = circuit, until

    @cached_property
    def parts(self) -> dict[str, tuple[Derived, int]]:
        """The rows of all events that stand, by id."""
        found: dict[str, tuple[Derived, int]] = {}
        for events in self.circuit.derived.values():
            table = events.out.table
            for row in np.flatnonzero(table.alive[: table.n]).tolist():
                if self.until is None or table.data[END, row] <= self.until:
                    found[self.circuit.event((table, row)).id] = (events, row)
        return found

    def __getitem__(self, id: str) -> list[Derivation]:
        return derivations_of(self.circuit, *self.parts[id])

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)
