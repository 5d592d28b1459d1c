"""Rows: the occurrences of patterns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from augury.algebra.matching import Binding, Named, Proof, agree
from augury.algebra.nodes import Holds, Unless
from augury.algebra.plan import Predicate
from augury.core.model import Event, OrderKey, Value, content_id, order_key


class HeldInterval(NamedTuple):
    """From `since` to before `until` a fact holds without a break; ALWAYS and EVER where it has no beginning, or no end."""

    args: tuple[Value, ...]
    since: int
    until: int

    def event(self, type: str, start: int, end: int) -> Event:
        """It, or a part of it, as an occurrence."""
        return Event(type, self.args, start, end, content_id(type, self.args, start, end))


@dataclass(frozen=True)
class Row:
    """One occurrence of a pattern."""

    start: int
    end: int
    binding: Binding = field(default_factory=dict)
    labels: Mapping[str, Named] = field(default_factory=dict)
    parts: tuple[Event, ...] = ()
    proofs: tuple[Proof, ...] = ()
    collected: tuple[Event, ...] = ()  # beside its parts, by the collects of its rule

    @property
    def order(self) -> OrderKey:
        """The order of events, carried over to occurrences of patterns."""
        return (self.end, self.start, tuple(p.order for p in self.parts), self.bound)

    @property
    def bound(self) -> OrderKey:
        return tuple((name, order_key(self.binding[name])) for name in sorted(self.binding))

    def asked_at(self, condition: Holds | Unless) -> int:
        """The time at which the row sees the facts of a condition."""
        return (self.end if condition.at is None else self.labels[condition.at].end) - condition.was

    def joined(self, other: Row) -> Row | None:
        """Both rows as one, over their cover, where they agree on the variables they share."""
        binding = agree(self.binding, other.binding)
        if binding is None:
            return None
        return Row(
            min(self.start, other.start),
            max(self.end, other.end),
            binding,
            {**self.labels, **other.labels},
            self.parts + other.parts,
            self.proofs + other.proofs,
        )

    def bind(self, binding: Binding, proof: Proof | None = None) -> Row:
        return replace(self, binding=binding, proofs=self.proofs + ((proof,) if proof else ()))


def by_type(events: Iterable[Event]) -> dict[Predicate, list[Event]]:
    result: dict[Predicate, list[Event]] = {}
    for event in events:
        result.setdefault((event.type, len(event.args)), []).append(event)
    return result


def distinct(rows: Iterator[Row]) -> list[Row]:
    """The rows in the order of events, each once."""
    seen: dict[OrderKey, Row] = {}
    for row in rows:
        key = (row.start, row.end, row.bound, tuple(p.id for p in row.parts), tuple(sorted(row.labels.items())))
        seen.setdefault(key, row)
    return sorted(seen.values(), key=lambda r: r.order)
