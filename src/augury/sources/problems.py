"""What is wrong with rows of input: it stops the run, or the rows are left out and counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from augury.errors import DataError

OnError = Literal["stop", "skip"]


@dataclass
class Skipped:
    """What was left out, and why."""

    on_error: OnError = "stop"
    problems: list[str] = field(default_factory=list)

    def handle(self, error: DataError) -> None:
        if self.on_error == "stop":
            raise error
        self.problems.append(str(error).splitlines()[0])
