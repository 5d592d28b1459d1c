"""`AT MOST n PER (V) EVERY d` (SEMANTICS 12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from augury.algebra.nodes import AtMost
from augury.core.clock import Clock
from augury.core.model import Event, OrderKey
from augury.entailment import Derivation

Made = tuple[Event, Derivation, OrderKey]  # the event that a row makes, its derivation, and its key


def throttled(at_most: AtMost, made: list[Made], clock: Clock) -> Iterator[tuple[Event, Derivation]]:
    """In the order of events, a row is given unless n rows given before it with its key end later than its end - d."""
    derivations: dict[OrderKey, list[tuple[Event, Derivation]]] = {}
    for event, derivation, _ in made:
        derivations.setdefault(event.content, []).append((event, derivation))
    for event, before in decided(at_most, ((event, key) for event, _, key in made), clock):
        if len(before) < at_most.count:
            yield from derivations[event.content]


def decided(
    at_most: AtMost, made: Iterable[tuple[Event, OrderKey]], clock: Clock
) -> Iterator[tuple[Event, list[Event]]]:
    """Events in their order, each with those given before it that count; equal ones are one, with the least key."""
    keys: dict[OrderKey, OrderKey] = {}
    events: dict[OrderKey, Event] = {}
    for event, key in made:
        keys[event.content] = min(key, keys.get(event.content, key))
        events.setdefault(event.content, event)
    kept: dict[OrderKey, list[Event]] = {}
    for event in sorted(events.values(), key=lambda event: event.order):
        earlier = kept.setdefault(keys[event.content], [])
        before = [other for other in earlier if _counts(other, event, at_most, clock)]
        yield event, before
        if len(before) < at_most.count:
            earlier.append(event)


def _counts(earlier: Event, event: Event, at_most: AtMost, clock: Clock) -> bool:
    """Whether an event that was given before still counts."""
    point = clock.tick if clock.kind == "logical" else 1
    return at_most.every is None or (event.end - earlier.end) * point < at_most.every
