"""Functions that are called with changes of the answer, and with partial matches."""

from __future__ import annotations

from collections.abc import Callable

from augury.engine.changes import Changes
from augury.engine.circuit import Circuit
from augury.engine.goals import Goal, goals
from augury.model import Change


class Callbacks:
    """By event type for changes; by rule, from a completeness on, for partial matches."""

    def __init__(self) -> None:
        self.of_type: dict[str, list[Callable[[Change], None]]] = {}
        self.of_goal: dict[str, list[tuple[float, Callable[[Goal], None]]]] = {}

    def goals(self, circuit: Circuit, now: int | None) -> list[Goal]:
        """The new partial matches that somebody wants to hear of."""
        return [goal for rule in self.of_goal if rule in circuit.rules for goal in goals(circuit, rule, now, new=True)]

    def call(self, changes: Changes, goals: list[Goal]) -> None:
        for goal in goals:
            for threshold, callback in self.of_goal[goal.rule]:
                if goal.complete >= threshold:
                    callback(goal)
        if self.of_type and len(changes):
            for change in changes:
                for heard in self.of_type.get(change.event.type, ()):
                    heard(change)
