"""The inputs of a stream, kept for longer than its rules remember them, so that old answers can be explained: `--keep 7d`.

A copy of each file that a batch has read is packed below the checkpoint. A file is removed once all its events end earlier
than is to be kept. What a kill has prevented is done with the next batch: Spark's log says which files were read.
"""

from __future__ import annotations

import fnmatch
import gzip
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from augury.core.errors import RunError
from augury.engine.saved import write_file
from augury.sources import SourceFile
from augury.spark.checkpoint import source_as_written, written_source
from augury.spark.checkpoint_files import files_read, sealed, unsealed
from augury.spark.failures import writing_to
from augury.spark.heartbeats import BEATS

KEPT = "kept"  # the folder, below the checkpoint
_LIST = "files.json"
_PACKED = (".gz", ".bz2", ".zst", ".parquet", ".arrow", ".feather")  # what packing makes no smaller


@dataclass
class KeptInputs:
    """The files below a folder: by the path that each had, its name here, its source, and when its last event may end."""

    folder: Path
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    sources: list[dict[str, Any]] = field(default_factory=list)  # as a checkpoint writes them

    @classmethod
    def of(cls, checkpoint: Path) -> KeptInputs:
        """Those of a checkpoint; none where none were kept."""
        folder = checkpoint / KEPT
        if not (folder / _LIST).exists():
            return cls(folder)
        said = unsealed(folder / _LIST, {"files", "sources"})
        return cls(folder, said["files"], said["sources"])

    def update(self, spark: Path, sources: Sequence[SourceFile], end: int, keep: int) -> None:
        """Keeps what batches have read since, whose events end by `end`, and removes what ended more than `keep` before it."""
        read = [path for path in sorted(files_read(spark)) if f"/{BEATS}/" not in path and path not in self.files]
        for path in read:
            source = next((source for source in sources if _is_of(local_path(path), source)), None)
            name = (
                None if source is None or not keep else self._copy(path, json.loads(json.dumps(written_source(source))))
            )
            self.files[path] = {"name": name, "end": end}
        named = [path for path, said in self.files.items() if said["name"] is not None]
        old = [path for path in named if not keep or self.files[path]["end"] < end - keep]
        for path in old:
            (self.folder / self.files[path]["name"]).unlink(missing_ok=True)
            self.files[path] = {"name": None, "end": self.files[path]["end"]}  # so that it is not copied again
        if read or old:
            with writing_to(self.folder):
                self.folder.mkdir(exist_ok=True)
                write_file(self.folder / _LIST, [sealed({"files": self.files, "sources": self.sources})])

    def _copy(self, path: str, written: dict[str, Any]) -> str | None:
        """Copies a file; its name, or none where it is gone."""
        original = local_path(path)
        if written not in self.sources:
            self.sources.append(written)
        home = self.folder / str(self.sources.index(written))
        packed = original.name.endswith(_PACKED)
        target = home / f"{len(self.files):08d}-{original.name}{'' if packed else '.gz'}"
        with writing_to(home):
            home.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f".{target.name}.part")
            try:
                with original.open("rb") as source, part.open("wb") if packed else gzip.open(part, "wb") as copy:
                    shutil.copyfileobj(source, copy)
            except FileNotFoundError:
                part.unlink(missing_ok=True)
                return None
            os.replace(part, target)
        return str(target.relative_to(self.folder))

    def events(self) -> tuple[SourceFile, ...]:
        """What is kept, as sources of events."""
        names = {said["name"].partition("/")[0] for said in self.files.values() if said["name"] is not None}
        numbered = [(str(number), written) for number, written in enumerate(self.sources)]
        return tuple(
            replace(source_as_written(written), path=str(self.folder / number), shown="")
            for number, written in numbered
            if number in names
        )


def check_keeping(sources: Sequence[SourceFile]) -> None:
    """Refuses to keep what is not in files of this machine."""
    for source in sources:
        if source.remote:
            raise RunError(
                f"--keep copies files of this machine, and {source.location} is elsewhere", "keep its events there"
            )


def local_path(path: str) -> Path:
    """A path as Spark writes it, on this machine."""
    return Path(unquote(urlsplit(path).path) if path.startswith("file:") else path)


def _is_of(path: Path, source: SourceFile) -> bool:
    """Whether a file belongs to a source: a folder, a pattern or a file."""
    home = os.path.abspath(source.path)
    return str(path) == home or str(path).startswith(f"{home}/") or fnmatch.fnmatch(str(path), home)
