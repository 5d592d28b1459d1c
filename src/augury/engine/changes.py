"""Output changes of a step: retracted and inserted answers."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from augury import sinks
from augury.core.arrays import Array
from augury.core.model import Change, Event


class Changes(sinks.Answers[Change]):
    """The changes of a step: answers that it retracts, then answers that it inserts, each in the order of events.

    `retracted` and `inserted` are the answers; `changes["alarm"]` are the changes of one type. As a table they have a
    column `op`.
    """

    nothing = "nothing has changed"
    changes = True  # of the parts, those that are retracted come first

    def __repr__(self) -> str:
        return f"<Changes: {len(self)}>"

    @cached_property
    def retracted(self) -> sinks.Answers[Event]:
        return self._with("retract")

    @cached_property
    def inserted(self) -> sinks.Answers[Event]:
        return self._with("insert")

    def _with(self, op: sinks.Op) -> sinks.Answers[Event]:
        return sinks.Answers(self.plan, self.clock, [part for part in self.parts if part.op == op])

    def of(self, type: str) -> Changes:
        """The changes of one type."""
        answers = super().of(type)
        return self.__class__(answers.plan, self.clock, answers.parts)

    @cached_property
    def which(self) -> Array:
        return np.concatenate([self.retracted.which, self.inserted.which + len(self.retracted.parts)])
