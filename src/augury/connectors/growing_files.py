"""Files and folders that grow, here or in an object store (fsspec); and files of answers, `object_stores.py` those of stores.

A source remembers for each file how far it has read. Only whole lines are read; the last one of a file that is not
followed may lack its end. A sink is one file of JSON lines, which is cut back to its last position after a crash; with
`rotate` a new file is begun after so many bytes, and has its name once it is complete.

    events.jsonl   incoming/   incoming/*.csv?follow=false   s3://bucket/folder?type=.jsonl
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from augury.connectors.addresses import Address
from augury.connectors.delivery import Delivery, Poison
from augury.connectors.object_stores import ObjectSink, store_of
from augury.connectors.rendering import RenderedChanges
from augury.connectors.sink import AnswerSink
from augury.connectors.source import EventSource, Position, UnavailableError
from augury.core.errors import DataError, RunError
from augury.sources import ENDINGS, SourceFile
from augury.sources.files import is_data

_READ = 4 << 20  # bytes that are read of a file at a time
_PAUSE = 0.05  # seconds between two looks at files that have not grown
_LINES = ("jsonl", "csv")


@dataclass(frozen=True)
class FileOptions:
    """`follow` is whether files and folders grow."""

    follow: bool = True


@dataclass(frozen=True)
class FileSinkOptions:
    """`rotate` is how many bytes a file has before the next one begins; 0 is never."""

    rotate: int = 0


class LocalFiles:
    """The files of a path, a folder or a pattern."""

    def __init__(self, path: str) -> None:
        self.path = path

    def sizes(self) -> dict[str, tuple[int, int]]:
        """Size and identity of each file, in the order of their names."""
        if os.path.isdir(self.path):
            names = [
                str(p) for p in sorted(Path(self.path).rglob("*")) if p.is_file() and is_data(p) and not _hidden(p)
            ]
        elif any(c in self.path for c in "*?["):
            names = [name for name in sorted(glob.glob(self.path, recursive=True)) if os.path.isfile(name)]
        else:
            names = [self.path] if os.path.exists(self.path) else []
        stats = {name: os.stat(name) for name in names}
        return {name: (stat.st_size, stat.st_ino) for name, stat in stats.items()}

    def read(self, name: str, start: int, size: int) -> bytes:
        with open(name, "rb") as file:
            file.seek(start)
            return file.read(size)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Those of a file that is no text, or packed."""
        return list(SourceFile(name).to_arrow().to_pylist())


class RemoteFiles:
    """The objects of a store. They are complete when they are there, and do not change."""

    def __init__(self, address: Address) -> None:
        self.files = store_of(address)
        self.path = address.rest

    def sizes(self) -> dict[str, tuple[int, int]]:
        self.files.invalidate_cache()
        pattern = self.path if any(c in self.path for c in "*?[") else f"{self.path.rstrip('/')}/**"
        listed = self.files.glob(pattern, detail=True) or self.files.glob(self.path, detail=True)
        files = {name: info for name, info in sorted(listed.items()) if info["type"] == "file"}
        data = {name for name in files if is_data(Path(name)) and not _hidden(Path(name))}
        return {name: (info["size"], 0) for name, info in files.items() if name in data or len(files) == 1}

    def read(self, name: str, start: int, size: int) -> bytes:
        with self.files.open(name, "rb") as file:
            file.seek(start)
            return bytes(file.read(size))

    def rows(self, name: str) -> list[dict[str, Any]]:
        with TemporaryDirectory(prefix="augury-") as folder:
            local = str(Path(folder, Path(name).name))
            self.files.get_file(name, local)
            return list(SourceFile(local, shown=name).to_arrow().to_pylist())


def _hidden(path: Path) -> bool:
    return path.name.startswith((".", "_"))


class GrowingFiles(EventSource):
    """Lines of files, as they are added."""

    sampled: ClassVar[bool] = True

    def __init__(self, address: Address) -> None:
        self.address, self.options = address, address.read(FileOptions)
        self.files = LocalFiles(address.path) if address.scheme == "file" else RemoteFiles(address)
        self._ends: dict[str, list[Any]] = {}  # of each file: bytes and lines read, identity
        self._headers: dict[str, bytes] = {}
        self._behind = 0
        self._finished = False

    def open(self, position: Position | None) -> None:
        self._ends = {name: list(end) for name, end in (position or {}).items()}
        self._headers.clear()
        self._finished = False
        if isinstance(self.files, LocalFiles) and not self._sizes() and not self.options.follow:
            raise RunError(f"{self.address}: no such file")

    def _sizes(self) -> dict[str, tuple[int, int]]:
        try:
            return self.files.sizes()
        except OSError as error:
            raise UnavailableError(f"{self.address}: {error}") from None

    @property
    def finished(self) -> bool:
        return self._finished

    def fetch(self, most: int, seconds: float) -> list[Delivery]:
        until = time.monotonic() + seconds
        while True:
            deliveries: list[Delivery] = []
            self._behind = 0
            for name, (size, identity) in self._sizes().items():
                end = self._ends.setdefault(name, [0, 0, identity])
                if end[2] != identity or size < end[0]:  # another file of that name, or one that was emptied
                    end[:] = [0, 0, identity]
                    self._headers.pop(name, None)
                if size > end[0] and sum(map(len, deliveries)) < most:
                    deliveries += self._more(name, end, size)
                self._behind += size - end[0]
            if deliveries:
                return deliveries
            if not self.options.follow:
                self._finished = True
                return []
            if time.monotonic() >= until:
                return []
            time.sleep(min(_PAUSE, seconds))

    def _more(self, name: str, end: list[Any], size: int) -> list[Delivery]:
        form = SourceFile(name).form()
        try:
            if form not in _LINES or SourceFile(name).compression:
                return self._table(name, end, size)
            if form == "csv" and name not in self._headers:
                beginning = self.files.read(name, 0, 1 << 16)
                if b"\n" not in beginning:
                    return []
                self._headers[name] = beginning[: beginning.index(b"\n") + 1]
                if not end[0]:
                    end[:2] = [len(self._headers[name]), 1]
            data = self.files.read(name, end[0], _READ)
        except OSError as error:
            raise UnavailableError(f"{name}: {error.strerror or error}") from None
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) == _READ:
            raise RunError(f"{name}: a line of more than {_READ:,} bytes at byte {end[0]:,}")
        if not self.options.follow and end[0] + len(data) >= size and cut < len(data):
            data, cut = data + b"\n", len(data) + 1
        if not cut:
            return []
        data, first = data[:cut], end[1] + 1
        end[0], end[1] = min(end[0] + cut, size), end[1] + data.count(b"\n")
        return [Delivery(data, self._position(), name, form, self._headers.get(name, b""), first)]

    def _table(self, name: str, end: list[Any], size: int) -> list[Delivery]:
        """A file that is complete when it is there: Parquet, Arrow, or packed lines."""
        import orjson

        try:
            rows = self.files.rows(name)
        except DataError as error:  # damaged, or not whole yet: it is read again when it has grown
            end[0] = size
            return [Delivery(b"", self._position(), name, poison=(Poison(str(error.message), name.encode()),))]
        end[0], end[1] = size, len(rows)
        data = b"".join(orjson.dumps({k: v for k, v in row.items() if v is not None}) + b"\n" for row in rows)
        return [Delivery(data, self._position(), name)] if rows else []

    def _position(self) -> Position:
        return {name: list(end) for name, end in self._ends.items()}

    def lag(self) -> int | None:
        return self._behind

    def check(self) -> str:
        sizes = self._sizes()
        if not sizes and not os.path.isdir(os.path.dirname(os.path.abspath(self.address.path))):
            raise RunError(f"{self.address}: no such folder")
        return f"{len(sizes):,} files, {sum(size for size, _ in sizes.values()):,} bytes"


class FileSink(AnswerSink):
    """JSON lines in a file; what a crash left behind the last position is cut off before the steps are repeated."""

    def __init__(self, address: Address) -> None:
        self.path, self.options = Path(address.path), address.read(FileSinkOptions)
        self.number = 0
        self._file: Any = None
        if ENDINGS.get(self.path.suffix) != "jsonl":
            raise RunError(f"{address}: a file of answers has JSON lines", hint="name it with .jsonl")

    @property
    def _current(self) -> Path:
        """The file that is written to; one that is rotated has its own name when it is complete."""
        if not self.options.rotate:
            return self.path
        return self.path.with_name(f".{self.path.stem}-{self.number:06}{self.path.suffix}.part")

    def open(self, position: Position | None) -> int | None:
        self.close()
        self.number, size = (position or {}).get("number", 0), (position or {}).get("size")
        if self.options.rotate:  # files behind the position come again
            self._forget_later()
        try:
            self._file = open(self._current, "ab")  # noqa: SIM115
            if size is not None:
                if os.path.getsize(self._current) < size:
                    raise RunError(f"{self._current} is shorter than what was written to it")
                self._file.truncate(size)
                self._file.seek(size)
        except OSError as error:
            raise RunError(f"{self._current} cannot be written: {error.strerror}") from None
        return None

    def _forget_later(self) -> None:
        stem, suffix, folder = self.path.stem, self.path.suffix, self.path.parent
        for path in [*folder.glob(f"{stem}-*{suffix}"), *folder.glob(f".{stem}-*{suffix}.part")]:
            number = int(path.name.removesuffix(".part").removesuffix(suffix).rpartition("-")[2])
            if number > self.number:
                path.unlink()
            elif number == self.number and path != self._current:
                os.replace(path, self._current)

    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        try:
            for step in steps:
                self._file.write(b"".join(line + b"\n" for line in step.lines))
                if self.options.rotate and self._file.tell() >= self.options.rotate:
                    self._rotate()
            self._file.flush()
        except OSError as error:
            raise UnavailableError(f"{self.path} cannot be written: {error.strerror}") from None
        return []

    def _rotate(self) -> None:
        self._sync()
        self._file.close()
        complete = self.path.with_name(f"{self.path.stem}-{self.number:06}{self.path.suffix}")
        os.replace(self._current, complete)
        self.number += 1
        self._file = open(self._current, "ab")  # noqa: SIM115

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def position(self) -> Position | None:
        self._sync()
        return {"number": self.number, "size": self._file.tell()}

    def check(self) -> str:
        folder = self.path.absolute().parent
        if not os.access(folder, os.W_OK):
            raise RunError(f"{self.path}: the folder {folder} cannot be written to")
        return "writable"

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def source(address: Address) -> EventSource:
    return GrowingFiles(address)


def sink(address: Address) -> AnswerSink:
    return FileSink(address) if address.scheme == "file" else ObjectSink(address)
