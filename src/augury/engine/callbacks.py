"""Functions that are called with changes of the answer, and with partial matches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from augury.core.errors import CallbackErrors
from augury.core.model import Change, HistoryItem
from augury.engine.changes import Changes
from augury.engine.circuit import Circuit
from augury.engine.goals import Goal, goals


class Callbacks:
    """By event type for changes; by rule, from a completeness on, for partial matches."""

    def __init__(self) -> None:
        self.of_type: dict[str, list[Callable[[Change], None]]] = {}
        self.of_goal: dict[str, list[tuple[float, Callable[[Goal], None]]]] = {}

    def goals(self, circuit: Circuit, now: int | None) -> list[Goal]:
        """The new partial matches that callbacks wait for."""
        return [goal for rule in self.of_goal if rule in circuit.rules for goal in goals(circuit, rule, now, new=True)]

    def call(
        self, changes: Changes, goals: list[Goal], late: Callable[[HistoryItem], None] | None, items: list[HistoryItem]
    ) -> None:
        """Calls every function with everything that concerns it; then raises what they raised, as one group.

        Each late item is taken out of `items` before the function is called with it: those that are left where
        an interrupt comes are not lost.
        """
        errors: list[Exception] = []

        def call(function: Callable[[Any], None], argument: object) -> None:
            try:
                function(argument)
            except Exception as error:
                errors.append(error)

        for goal in goals:
            for threshold, callback in self.of_goal[goal.rule]:
                if goal.complete >= threshold:
                    call(callback, goal)
        if self.of_type and len(changes):
            for change in changes:
                for callback_of_type in self.of_type.get(change.event.type, ()):
                    call(callback_of_type, change)
        while late is not None and items:
            call(late, items.pop(0))
        if errors:
            raise CallbackErrors.of(errors, changes)
