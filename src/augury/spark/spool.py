"""Standard input as files that a stream reads; a file appears when it is complete."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import IO

from augury.core.errors import AuguryError, DataError
from augury.core.limits import LINE

MAKE_ROOM = "make room, and start again: the run resumes from its checkpoint"
_LINES = 10_000  # that are a file at most
_SECONDS = 1.0  # that a line waits at most


class Spool(threading.Thread):
    """Writes the lines of standard input to files, on a thread of its own."""

    def __init__(self, folder: Path, lines: IO[str]) -> None:
        super().__init__(daemon=True)
        self.folder, self.lines = folder, lines
        self.number = max((int(p.stem) for p in folder.glob("*.jsonl") if p.stem.isdigit()), default=-1) + 1
        self.held: list[str] = []
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.failed: AuguryError | None = None  # why it ended before its input did

    def run(self) -> None:
        ticking = threading.Thread(target=self._tick, daemon=True)
        ticking.start()
        unreadable: AuguryError | None = None
        try:
            while line := self.lines.readline(LINE + 1):
                if len(line) > LINE:
                    raise ValueError(f"a line of more than {LINE:,} characters")
                with self.lock:
                    self.held.append(line)
                    if len(self.held) >= _LINES:
                        self._write()
                if self.failed is not None:
                    break
        except (OSError, ValueError) as error:
            unreadable = DataError(f"cannot be read: {error}", "standard input")
        finally:
            self.over.set()
            ticking.join()
            with self.lock:
                self._write()
            self.failed = self.failed or unreadable

    def _tick(self) -> None:
        """A line does not wait for many others."""
        while not self.over.wait(_SECONDS):
            with self.lock:
                self._write()

    def _write(self) -> None:
        """The lines that are held, as a file."""
        if not self.held or self.failed is not None:
            return
        try:
            self._spool()
        except OSError as error:
            self.failed = DataError(f"cannot be written: {error.strerror}", str(self.folder), MAKE_ROOM)
        except ValueError as error:  # half a character
            self.failed = DataError(f"cannot be read: {error}", "standard input")

    def _spool(self) -> None:
        text = "".join(self.held)
        part = self.folder / f".{self.number:010d}.part"
        part.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
        os.replace(part, self.folder / f"{self.number:010d}.jsonl")
        self.held, self.number = [], self.number + 1
