"""Errors in rows of input: they stop the run, or the rows are skipped and counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from augury.core.errors import DataError
from augury.core.limits import NO_LIMITS, Limits

OnError = Literal["stop", "skip"]
Problem = tuple[int, DataError]  # the number of a line, and what is wrong with it


@dataclass
class Skipped:
    """Rows that reading has left out, and why; `limits` are those of reading."""

    on_error: OnError = "stop"
    problems: list[str] = field(default_factory=list)
    limits: Limits = NO_LIMITS

    def handle(self, error: DataError) -> None:
        if self.on_error == "stop":
            raise error
        self.problems.append(str(error).split("\n", 1)[0])

    def handle_all(self, problems: Iterable[Problem]) -> None:
        """Handles the problems of a part, in the order of its lines."""
        for _, error in sorted(problems, key=lambda problem: problem[0]):
            self.handle(error)
