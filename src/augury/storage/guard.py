"""Checks the rows, bytes and time of a step against the limits of the session and the available memory."""

from __future__ import annotations

import sys
from time import monotonic

from augury.core.bounds import TIME_LIMIT
from augury.core.limits import MATCHES, Limits, memory_left

_LARGE = 1 << 26  # bytes that are worth a look at how much memory there is


class Exceeded(Exception):
    """A step went beyond a limit. It is undone, and reported as an error that names the rule."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what, self.hint = what, hint


class Stopped(Exception):
    """Another thread has asked the step to end."""


class Guard:
    """The limits of a session, and what a step has used of them."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits = limits or Limits()
        self.rows = sys.maxsize if limits.rows is None else limits.rows
        self.bytes = limits.bytes
        self.timed = limits.time is not None
        self._most_pairs = sys.maxsize if limits.pairs is None else limits.pairs
        self._most_matches = MATCHES if limits.matches is None else limits.matches
        self.pairs, self._until = 0, float("inf")
        self.watching = False  # during a step; its undo has no limits
        self._stopped = False

    def begin(self) -> None:
        """The time of a step begins."""
        if self.limits.time is not None:
            self._until = monotonic() + self.limits.time / 1e6

    def stop(self) -> None:
        """Asks a step in another thread to end: it does once an operator is done."""
        self._stopped = self.timed = True

    def paired(self, count: int) -> None:
        """So many pairs of rows are looked at."""
        self.pairs += count
        if self.pairs > self._most_pairs and self.watching:
            raise _exceeded("pairs", f"looks at more than {self._most_pairs:,} pairs of events in one step")
        if self.timed:
            self.timely()

    @property
    def most_matches(self) -> int:
        """How many partial matches a run may make in a step, where ties multiply them."""
        return self._most_matches if self.watching else TIME_LIMIT

    def too_many_matches(self) -> Exceeded:
        return Exceeded(
            f"makes more than {self._most_matches:,} partial matches in one step, most of them from the same first event to "
            "the same last one",
            "simultaneous events are alternatives, and SEQ has a match for every choice: give the run a shorter window or "
            "SKIP, ask less of its iterations, or set a higher limit: limits={'matches': …}, --limit matches=…",
        )

    def timely(self) -> None:
        if self._stopped and self.watching:
            raise Stopped
        if self.limits.time is not None and self.watching and monotonic() > self._until:
            raise _exceeded("time", f"takes longer than {self.limits.time / 1e6:g} s for one step")

    def too_many_rows(self) -> Exceeded:
        return _exceeded("rows", f"brings the state to more than {self.rows:,} rows")

    def held(self, size: int) -> None:
        """The state has so many bytes."""
        if self.bytes is not None and size > self.bytes:
            raise too_many_bytes(self.bytes)

    def answered(self, count: int) -> None:
        """The step gives so many answers."""
        if self.limits.answers is not None and count > self.limits.answers:
            raise _exceeded("answers", f"brings the answers of one step to more than {self.limits.answers:,}")


def _exceeded(limit: str, what: str) -> Exceeded:
    return Exceeded(what, f"give it a window or a key, or a higher limit: limits={{'{limit}': …}}, --limit {limit}=…")


def too_many_bytes(limit: int) -> Exceeded:
    return _exceeded("bytes", f"brings the state to more than {limit:,} bytes")


def foresee(size: int, share: float) -> None:
    """Gives up early where a share of the work has made so much that all of it would be far beyond what there is."""
    if size < _LARGE or share >= 1:
        return
    left = memory_left()
    if left is not None and size > left / 8 and size / share > 2 * (left + size):
        raise MemoryError(f"about {size / share / 1e9:,.0f} GB, and there are {left / 1e9:,.1f}")


def check_memory(size: int) -> None:
    """Whether there is memory for so many bytes more: the system gives out more than it has, and kills the process that uses it."""
    if size < _LARGE:
        return
    left = memory_left()
    if left is not None and size > left:
        raise MemoryError(f"{size / 1e9:,.1f} GB, and there are {left / 1e9:,.1f}")
