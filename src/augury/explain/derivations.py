"""How the events that a circuit holds were derived: the parts from its tables, the facts from `Proofs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice, product

from augury.core.model import Event
from augury.engine.batch import SessionModel
from augury.engine.operators.derive import Derive, Derived
from augury.engine.runtime import Runtime
from augury.engine.trace import standing_rows
from augury.entailment import Derivation, ExplainedModel, Model
from augury.explain.held_parts import held_parts
from augury.explain.proofs import Proofs
from augury.explain.why import DerivedEvents

INNER = "·"  # in the names of the rules and events that a query is lowered to
_MOST = 1000  # derivations that one of such rules stands for


def inner_of(type: str) -> str:
    """The query that an event, or a rule, is a part of: `jam` of `jam·West`, and of `jam` itself."""
    return type.partition(INNER)[0]


class CircuitDerivations(Mapping[str, list[Derivation]]):
    """The derivations of all derived events that stand, by id; each is computed when it is read.

    Those of a query go down to its inputs, and with `inner` by way of what it is lowered to.
    """

    def __init__(self, circuit: Runtime, until: int | None, inner: bool = False, held: bool = False) -> None:
        self.circuit, self.until, self.inner = circuit, until, inner
        self._held: dict[str, Event] | None = {} if held else None  # intervals that windows have collected, by id
        self._proofs: Proofs | None = None

    @cached_property
    def rows(self) -> dict[str, tuple[Derived, int]]:
        return standing_rows(self.circuit, self.until)

    def of(self, events: Derived, row: int) -> list[Derivation]:
        """Every derivation of an event that stands, with the facts it rests on."""
        circuit = self.circuit
        event = circuit.event((events.out.table, row))
        derivations: dict[object, Derivation] = {}
        for links in events.supports:
            maker = circuit.maker(links.child)
            for child in links.of(row)[::-1]:
                assert isinstance(maker, Derive)
                parts = tuple(circuit.event(part) for part in maker.parts(child)) + self._collected(maker, child)
                for derivation in self.proofs.derivations(circuit.rules.get(maker.rule), event, parts):
                    for written in self._as_written(derivation):
                        derivations.setdefault(written.key, written)
        return sorted(derivations.values(), key=lambda derivation: tuple(part.order for part in derivation.parts))

    def _collected(self, maker: Derive, row: int) -> tuple[Event, ...]:
        """The intervals that a derivation has collected, where they are asked for."""
        rule = self.circuit.rules.get(maker.rule)
        if self._held is None or rule is None or not any(collect.clips for collect in rule.collects):
            return ()
        intervals = {event.id: event for event in held_parts(self.circuit, rule, maker.out.table, row)}
        self._held |= intervals
        return tuple(sorted(intervals.values(), key=lambda event: event.order))

    def _as_written(self, derivation: Derivation) -> Iterator[Derivation]:
        """The derivations that one stands for: what a query is lowered to is replaced by what that was made of."""
        if self.inner or not any(
            INNER in name for name in (derivation.rule, *(part.type for part in derivation.parts))
        ):
            yield derivation
            return
        choices: list[list[Derivation]] = []
        for part in derivation.parts:
            inner = self.get(part.id) if INNER in part.type else None
            choices.append(inner or [Derivation(derivation.rule, (part,))])
        for chosen in islice(product(*choices), _MOST):
            parts = tuple(part for choice in chosen for part in choice.parts)
            proofs = (*derivation.proofs, *(proof for choice in chosen for proof in choice.proofs))
            yield Derivation(inner_of(derivation.rule), parts, proofs)

    @property
    def proofs(self) -> Proofs:
        """Proofs over the facts that the circuit holds now."""
        if self._proofs is None or self._proofs.version != self.circuit.knowledge.version:
            self._proofs = Proofs(self.circuit.knowledge)
        return self._proofs

    def __getitem__(self, id: str) -> list[Derivation]:
        if self._held is not None and id in self._held:
            return self.proofs.derivations(None, self._held[id], (self._held[id],))
        return self.of(*self.rows[id])

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


class ExplainedCircuit:
    """What `derivation_tree` reads, of a circuit."""

    def __init__(self, circuit: Runtime, until: int | None, inner: bool = False) -> None:
        self.derivations, self.makers = CircuitDerivations(circuit, until, inner, held=True), circuit.plan.makers

    @property
    def all_events(self) -> list[Event]:
        """The events that made facts."""
        circuit = self.derivations.circuit
        rows = [(events, row) for events, row in self.derivations.rows.values() if events.type in self.makers]
        return sorted((circuit.event((events.out.table, row)) for events, row in rows), key=lambda e: e.order)


def explained(model: Model) -> DerivedEvents:
    """The answer of a run with its derivations: those of the reference evaluator, or those that the circuit holds."""
    if isinstance(model, SessionModel):
        return ExplainedCircuit(model.session.circuit, model.clock)
    assert isinstance(model, ExplainedModel)
    return model
