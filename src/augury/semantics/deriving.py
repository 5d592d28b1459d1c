"""The events that one rule derives, each with its derivation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from augury.algebra.matching import Scalars
from augury.algebra.nodes import Rule
from augury.algebra.scalar import RowError
from augury.core.model import Event, Value, content_id
from augury.entailment import Derivation
from augury.semantics.groups import GroupEvaluator
from augury.semantics.occurrences import by_type
from augury.semantics.pattern_rows import World
from augury.semantics.static_calls import Static
from augury.semantics.throttling import Made, throttled


def derived_event(type: str, args: tuple[Value, ...], start: int, end: int) -> Event:
    """A derived event; its content is its id."""
    return Event(type, args, start, end, content_id(type, args, start, end))


def derived_by(world: World, rule: Rule) -> Iterable[tuple[Event, Derivation]]:
    """What a placed rule derives from the events of a world."""
    made = _made(world, rule)
    if rule.at_most is None:
        return ((event, derivation) for event, derivation, _ in made)
    return throttled(rule.at_most, list(made), world.scalars.clock)


def _made(world: World, rule: Rule) -> Iterator[Made]:
    """The events that the rows of a rule make, with the derivation and the key of each row."""
    world.scalars.rule = rule.label
    groups = GroupEvaluator(world, rule)
    for row in groups.rows():
        try:
            args, start, end = groups.head(row)
        except RowError as error:
            world.report(rule.label, str(error), row.binding, row.parts)
            continue
        derivation = Derivation(rule.label, row.parts + row.collected, row.proofs)
        yield derived_event(rule.type, args, start, end), derivation, groups.key(row)


def derive_from(
    rule: Rule, parts: Iterable[Event], now: int, scalars: Scalars, static: Static
) -> list[tuple[Event, Derivation]]:
    """What a placed rule derives where there are just these events, by a time, before AT MOST chooses."""
    parts = tuple(parts)
    world = World(scalars, static, least=min([now, *(part.end for part in parts)]), now=now)
    for type, events in by_type(parts).items():
        world.publish(type, events)
    return list(derived_by(world, replace(rule, at_most=None)))
