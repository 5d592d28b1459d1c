"""What a history entails: the events that hold, how each of them was derived, and how that changes while it is pushed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from augury.algebra.matching import Proof
from augury.core.model import Change, Event, HistoryItem, OrderKey, order_key


@dataclass(frozen=True)
class Derivation:
    """One way to derive an event: the rule, the occurrences it was made of, and the static atoms it rests on."""

    rule: str
    parts: tuple[Event, ...]
    proofs: tuple[Proof, ...] = ()

    @property
    def key(self) -> OrderKey:
        """What makes two derivations one."""
        atoms = tuple((p.name, tuple(order_key(a) for a in p.args)) for p in self.proofs)
        return (self.rule, tuple(p.id for p in self.parts), atoms)


@dataclass
class Model:
    """What a history entails up to the clock."""

    events: list[Event]
    clock: int
    inputs: dict[str, Event] = field(default_factory=dict)
    rejected: list[tuple[Event, str]] = field(default_factory=list)
    errors: dict[tuple[str, str], int] = field(default_factory=dict)
    all_events: list[Event] = field(default_factory=list)
    makers: Mapping[str, str] = field(default_factory=dict)  # types of events that make facts, and of which predicate


@dataclass
class ExplainedModel(Model):
    """A model with every derivation of its events, by id."""

    derivations: dict[str, list[Derivation]] = field(default_factory=dict)


class Replay(NamedTuple):
    """The changes in order, what came too late to count, and the model in the end."""

    changes: list[Change]
    late: list[HistoryItem]
    model: Model
