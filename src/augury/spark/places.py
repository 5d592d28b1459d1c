"""Locates errors in files. Spark finds that a row is wrong; the local reader finds which row and words the message.

A file of this machine is read again by the driver, up to the row. Of one elsewhere, its path and the row are shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlparse

from augury.core.clock import Clock
from augury.core.errors import DataError
from augury.settings import Task
from augury.sources import Reader, Skipped, SourceFile

_LOGICAL = Clock()


@dataclass(frozen=True)
class Places:
    """The files of a task. The clock is that of the run, so that times are read as they are there."""

    task: Task
    clock: Clock = _LOGICAL

    def error(self, path: str, problem: str, row: str) -> DataError:
        """What is wrong with a file: the first thing that the reader finds."""
        file = self._file(path)
        if file is not None:
            try:
                self._read(file, Skipped("stop"))
            except DataError as error:
                return error
        return DataError(f"{problem} in {row}", path if file is None else file.location)

    def problems(self, path: str) -> list[str]:
        """All that is wrong with a file of this machine, in the order of its lines."""
        file, skipped = self._file(path), Skipped("skip")
        if file is not None:
            self._read(file, skipped)
        return skipped.problems

    def _read(self, file: SourceFile, skipped: Skipped) -> None:
        for _ in Reader(self.task.plan, self.clock, skipped, self.task.settings.strict).parts(file):
            pass

    def _file(self, path: str) -> SourceFile | None:
        """The file of a path as Spark has it; None where it is of another machine."""
        local = Path(unquote(urlparse(path).path)) if path.startswith("file:") else Path(path)
        return next((file for file in self._files() if Path(file.path).absolute() == local), None)

    def _files(self) -> Iterable[SourceFile]:
        for source in self.task.events:
            if source.remote:
                continue
            for file in source.files():
                # What was spooled is called as what it was.
                yield replace(file, shown=source.shown) if source.shown and source.pattern else file
