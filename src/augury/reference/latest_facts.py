"""`fact latest p(K, V) PER (K)`: what events say of facts with one value a key (SEMANTICS 12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from augury.algebra.nodes import ANY_VALUE
from augury.core.model import Event, Fact, OrderKey, Value, order_key
from augury.knowledge.timeline import Statement

Args = tuple[Value, ...]


def latest_statements(
    name: str, key: tuple[int, ...], making: Sequence[Event], ending: Sequence[Event], said: Iterable[Args]
) -> Iterator[Statement]:
    """Each winner ends every other fact of its key and asserts its own; `said` are facts from elsewhere, which may hold, too.

    Retractions come first: at one time, that a fact holds stands against that it ends.
    """
    facts = {_order(args): args for args in [*(e.args for e in making), *said]}
    winners = _winners(key, making)
    for winner in winners:
        others = [
            f for f in facts.values() if _key(key, f) == _key(key, winner.args) and _order(f) != _order(winner.args)
        ]
        yield from (Statement(Fact(name, args, winner.end), retract=True) for args in others)
    for event in ending:
        for args in (f for f in facts.values() if _matches(event.args, f)):
            yield Statement(Fact(name, args, event.end), retract=True)
    yield from (Statement(Fact(name, winner.args, winner.end)) for winner in winners)


def _winners(key: tuple[int, ...], making: Sequence[Event]) -> list[Event]:
    """Of the events with one key and one end, the last in the order of end, start and arguments."""
    winners: dict[tuple[OrderKey, int], Event] = {}
    for event in sorted(making, key=lambda e: (e.end, e.start, _order(e.args))):
        winners[_key(key, event.args), event.end] = event
    return list(winners.values())


def _key(key: tuple[int, ...], args: Args) -> OrderKey:
    return tuple(order_key(args[i]) for i in key)


def _order(args: Args) -> OrderKey:
    return tuple(order_key(a) for a in args)


def _matches(pattern: Args, args: Args) -> bool:
    return all(p == ANY_VALUE or order_key(p) == order_key(a) for p, a in zip(pattern, args, strict=True))
