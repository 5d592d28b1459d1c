"""Standard input and output: JSON lines, or CSV with a header, as they come.

What was read is gone, so standard input is not replayable: it is on disk before it counts, and a restart goes on with
what comes then.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Sequence

from augury.connectors.addresses import Address
from augury.connectors.delivery import Delivery
from augury.connectors.rendering import RenderedChanges
from augury.connectors.sink import AnswerSink
from augury.connectors.source import EventSource
from augury.core.errors import RunError

_READ = 1 << 20


class StandardInput(EventSource):
    def __init__(self, address: Address) -> None:
        self._held = b""
        self._lines = 0
        self._header = b""
        self._ended = False

    @property
    def finished(self) -> bool:
        return self._ended

    def fetch(self, most: int, seconds: float) -> list[Delivery]:
        descriptor = sys.stdin.fileno()
        if self._ended or not select.select([descriptor], [], [], seconds)[0]:
            return []
        data = os.read(descriptor, _READ)
        if not data:
            self._ended, data = True, b"\n" if self._held else b""
        data = self._held + data
        cut = data.rfind(b"\n") + 1
        data, self._held = data[:cut], data[cut:]
        if not self._lines and data.strip() and not data.lstrip().startswith((b"{", b"[")):
            self._header, _, data = data.partition(b"\n")
            self._header, self._lines = self._header + b"\n", 1
        if not data:
            return []
        first, self._lines = self._lines + 1, self._lines + data.count(b"\n")
        form = "csv" if self._header else "jsonl"
        return [Delivery(data, {"lines": self._lines}, "standard input", form, self._header, first)]


class StandardOutput(AnswerSink):
    """JSON lines; a table of them is for `augury run`."""

    def __init__(self, address: Address) -> None:
        return

    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        try:
            for step in steps:
                sys.stdout.buffer.write(b"".join(line + b"\n" for line in step.lines))
            sys.stdout.buffer.flush()
        except OSError as error:  # nobody reads it any more
            raise RunError(f"standard output cannot be written: {error.strerror}") from None
        return []

    def check(self) -> str:
        return "writable"


def source(address: Address) -> EventSource:
    return StandardInput(address)


def sink(address: Address) -> AnswerSink:
    return StandardOutput(address)
