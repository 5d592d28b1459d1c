"""The protocol of sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

from augury.connectors.delivery import Delivery, typed
from augury.core.errors import AuguryError

Position: TypeAlias = dict[str, Any]  # plain JSON


class UnavailableError(AuguryError):
    """The other side cannot be reached, or not now: try again later."""


class EventSource(ABC):
    """Where events come from. One thread opens, polls and closes it; `commit` may come from another one.

    Of most sources `open(position)` delivers again whatever came behind a position. The others deliver what was not
    committed again, if anything: what they deliver is on disk before it is committed.
    """

    parted: ClassVar[bool] = False  # whether time passes in each part by itself
    sampled: ClassVar[bool] = False  # whether reading some events changes nothing on the other side
    blocking: ClassVar[bool] = False  # whether `fetch` may take longer than it was asked to
    type: str | None = None  # of events that name none
    facts: str = ""  # the predicate whose facts it delivers, instead of events

    def open(self, position: Position | None) -> None:
        """Begins behind a position; without one where the options of the address say. Raises UnavailableError, or
        RunError for what no second attempt mends."""
        return

    @abstractmethod
    def fetch(self, most: int, seconds: float) -> list[Delivery]:
        """What has come: about `most` events, after so many seconds at most, or nothing. Raises UnavailableError.

        This is what a connector defines; callers use `poll`.
        """

    def poll(self, most: int, seconds: float) -> list[Delivery]:
        """What has come; events that name no type have that of the address."""
        return typed(self.fetch(most, seconds), self.type, self.facts)

    def parts(self) -> tuple[str, ...]:
        """The parts from which something may come, where time passes in each by itself."""
        return ()

    def commit(self, position: Position) -> None:
        """All input up to a position is safe; the source need not deliver it again."""
        return

    @property
    def finished(self) -> bool:
        """Whether nothing more comes, as from a file that is not followed."""
        return False

    def lag(self) -> int | None:
        """How many events, or bytes, are still to be read; None where that is not known."""
        return None

    def check(self) -> str:
        """Raises where the address cannot be reached or may not be used; says what it has found. For `augury doctor`."""
        self.open(None)
        self.close()
        return "reachable"

    def close(self) -> None:
        return
