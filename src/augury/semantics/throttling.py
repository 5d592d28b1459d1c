"""`AT MOST n PER (V) EVERY d` (SEMANTICS 12)."""

from __future__ import annotations

from collections.abc import Iterator

from augury.algebra.nodes import AtMost
from augury.core.clock import Clock
from augury.core.model import Event, OrderKey
from augury.entailment import Derivation

Made = tuple[Event, Derivation, OrderKey]  # the event that a row makes, its derivation, and its key


def throttled(at_most: AtMost, made: list[Made], clock: Clock) -> Iterator[tuple[Event, Derivation]]:
    """In the order of events, a row is given unless n rows given before it with its key end later than its end - d.

    Rows that make equal events are one, with the least of their keys.
    """
    rows: dict[OrderKey, list[Made]] = {}
    for row in made:
        rows.setdefault(row[0].content, []).append(row)
    given: dict[OrderKey, list[Event]] = {}
    for equal in sorted(rows.values(), key=lambda some: some[0][0].order):
        event = equal[0][0]
        before = given.setdefault(min(key for _, _, key in equal), [])
        if sum(_counts(earlier, event, at_most, clock) for earlier in before) < at_most.count:
            before.append(event)
            yield from ((row, derivation) for row, derivation, _ in equal)


def _counts(earlier: Event, event: Event, at_most: AtMost, clock: Clock) -> bool:
    """Whether an event that was given before still counts."""
    point = clock.tick if clock.kind == "logical" else 1
    return at_most.every is None or (event.end - earlier.end) * point < at_most.every
