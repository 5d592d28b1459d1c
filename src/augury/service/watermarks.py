"""Up to when nothing more comes: the least progress of all parts of all sources, those that are idle left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from augury.sources import History


def greatest_end(history: History) -> int | None:
    """The greatest end of the events of a history."""
    return max((int(np.max(batch.end)) for batch in history.batches.values() if len(batch)), default=None)


@dataclass
class Watermarks:
    """The greatest end in each part; a part that has none yet holds back the others until it is idle."""

    lateness: int = 0
    ends: dict[str, int | None] = field(default_factory=dict)
    idle: frozenset[str] = frozenset()
    promised: int | None = None

    def observe(self, part: str, end: int | None) -> None:
        before = self.ends.get(part)
        if end is not None and (before is None or end > before):
            self.ends[part] = end

    def expect(self, parts: Iterable[str]) -> None:
        """Parts from which something will come."""
        for part in parts:
            self.ends.setdefault(part, None)

    @property
    def frontier(self) -> int | None:
        """Nothing more ends at or before it. Where all parts are idle, none holds back the one that is furthest ahead."""
        ends = [end for end in self.ends.values() if end is not None]
        awaited = [end for part, end in self.ends.items() if part not in self.idle]
        bounds = [end for end in awaited if end is not None]
        furthest = min(bounds, default=None) if awaited else max(ends, default=None)
        least = None if furthest is None or len(bounds) < len(awaited) else furthest - self.lateness - 1
        if least is None or (self.promised is not None and self.promised > least):
            return self.promised
        return least

    def state(self) -> dict[str, Any]:
        return {"ends": self.ends, "idle": sorted(self.idle), "promised": self.promised}

    def resume(self, state: dict[str, Any]) -> None:
        self.ends, self.idle, self.promised = dict(state["ends"]), frozenset(state["idle"]), state["promised"]
