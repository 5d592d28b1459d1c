"""The folders that a stream writes: a batch appears in them once and whole, under names that its number decides.

A batch is first written below the checkpoint. Once it is complete, a note records that, and only then it is moved
to its place. After a crash, a batch with a note is moved as far as it has not been, and is never written again; one
without a note has not been visible to any reader, and is deleted. Nothing depends on what is in the place: a reader
may take away what it has read.

On object stores nothing can be moved at once. There a batch is written in its place, and the note says that it is done.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from augury.core.errors import RunError
from augury.engine.saved import write_file
from augury.engine.saved.saving import sync_names
from augury.spark.checkpoint_files import damaged, sealed, unsealed
from augury.spark.failures import writing_to

Write = Callable[[str], None]  # writes a part of a batch to a folder, given as Spark takes it


@dataclass(frozen=True)
class BatchNote:
    """A batch that is whole, and where its parts belong."""

    batch: int
    parts: Mapping[str, str]


class Outbox:
    """`aside` is a folder of ours below the checkpoint; `places` are the folders of the parts of a batch, by name."""

    def __init__(self, aside: Path, places: Mapping[str, str]) -> None:
        self.aside, self.places = aside.absolute(), places

    @cached_property
    def note(self) -> BatchNote | None:
        """The last batch that was whole."""
        path = self.aside / "ready.json"
        if not path.exists():
            return None
        try:
            result = unsealed(path, {"batch", "parts"})
            return BatchNote(int(result["batch"]), dict(result["parts"]))
        except (ValueError, TypeError) as error:
            raise damaged(path, f"cannot be read: {error}") from None

    def recover(self) -> None:
        """After a crash: what is whole goes to its place, and what is not is thrown away."""
        with writing_to(self.aside):
            self.aside.mkdir(parents=True, exist_ok=True)
        if self.note is not None:
            self._move(self.note)
        else:
            with writing_to(self.aside):
                self._keep(BatchNote(-1, {}))  # so that a note that is lost is missed
        with writing_to(self.aside):
            for path in self.aside.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)

    def deliver(self, batch: int, parts: Mapping[str, Write]) -> None:
        """Writes the parts of a batch, unless that has been done before."""
        if self.note is not None and self.note.batch == batch:
            return
        home = self.aside / str(batch)
        with writing_to(self.aside):
            if home.exists():  # the last attempt at this batch failed
                shutil.rmtree(home)
            home.mkdir()
        for name, write in parts.items():
            position = self._local(name)
            if position is None:
                write(f"{self.places[name].rstrip('/')}/batch={batch}")
                continue
            write(f"file://{home / name}")
            with writing_to(home / name):
                _seal(home / name)
            with writing_to(position):
                if (position / f"batch={batch}").exists():  # of a checkpoint that was put back to an earlier day
                    shutil.rmtree(position / f"batch={batch}")
        note = BatchNote(batch, {name: self.places[name] for name in parts})
        self._keep(note)
        self._move(note)
        with writing_to(self.aside):
            shutil.rmtree(home)

    def _local(self, name: str) -> Path | None:
        """The place of a part on this machine's file systems, where files are moved at once."""
        position = self.places[name].removeprefix("file://")
        return None if "://" in position else Path(position)

    def _keep(self, note: BatchNote) -> None:
        write_file(self.aside / "ready.json", [sealed({"batch": note.batch, "parts": dict(note.parts)})])
        self.note = note

    def _move(self, note: BatchNote) -> None:
        """Moves every part that is not in its place yet: that of this run, or of the run that wrote it."""
        for name, noted in note.parts.items():
            written = self.aside / str(note.batch) / name
            if not written.exists():
                continue
            position = (self._local(name) if name in self.places else None) or Path(noted.removeprefix("file://"))
            with writing_to(position):
                position.mkdir(parents=True, exist_ok=True)
                move(written, position / f"batch={note.batch}")
                sync_names(position)


def move(folder: Path, target: Path) -> None:
    """A folder appears in its place at once; on another file system, each of its files does.

    May be called again after it was broken off: a file that has appeared once does not appear again.
    """
    try:
        os.rename(folder, target)
        return
    except OSError as error:
        if error.errno != errno.EXDEV and not target.is_dir():
            raise
    target.mkdir(exist_ok=True)
    for hidden in target.glob(".*.part"):
        name = hidden.name[1 : -len(".part")]
        if not (folder / name).exists():  # it was copied, and is not visible yet
            os.rename(hidden, target / name)
    for file in sorted(folder.iterdir()):
        hidden = target / f".{file.name}.part"
        shutil.copyfile(file, hidden)
        sync_names(hidden)
        file.unlink()
        os.rename(hidden, target / file.name)
    sync_names(target)
    folder.rmdir()


def _seal(folder: Path) -> None:
    """What Spark wrote, under names that are the same each time, and safe on the disk."""
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    data = [file for file in files if not file.name.startswith((".", "_"))]
    if not data:
        raise RunError(
            f"nothing was written to {folder}",
            "the checkpoint has to be on storage that all workers reach; name an output elsewhere with its scheme, "
            "such as hdfs://",
        )
    for file in set(files) - set(data):  # checksums, by names that are no more
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    for number, file in enumerate(data):
        named = folder / f"part-{number:05d}{''.join(file.suffixes)}"
        os.rename(file, named)
        sync_names(named)
    sync_names(folder)
