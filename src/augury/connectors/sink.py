"""The protocol of sinks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from augury.connectors.rendering import RenderedChanges
from augury.connectors.source import Position


class AnswerSink(ABC):
    """Where answers go to. One thread uses it.

    Steps are numbered, and a step that is repeated after a crash has the same changes as before. So a sink is exact where
    it stores the number of the last step with the changes, or cuts back to a position, and where a change is written by
    id. Elsewhere a step that was under way in a crash is written a second time.
    """

    def open(self, position: Position | None) -> int | None:
        """Begins behind a position that `position` returned. The last step that the sink holds, where it stores that.

        Raises UnavailableError, or RunError for what no second attempt mends.
        """
        return None

    @abstractmethod
    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        """Writes the changes of some steps, and returns once they are there; raises UnavailableError to be called again.

        Returns the changes that the other side refuses for good: reason and line.
        """

    def position(self) -> Position | None:
        """Where the sink is, once all that was written is safe."""
        return None

    def check(self) -> str:
        """Raises where the address cannot be reached or may not be used; says what it has found. For `augury doctor`."""
        self.open(None)
        self.close()
        return "reachable"

    def close(self) -> None:
        return
