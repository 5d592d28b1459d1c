"""Parquet: a folder, as Spark writes it; a folder inside for each type where there are several outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from augury.core.errors import DataError
from augury.sinks.answers import Answers

_WRITTEN = re.compile(r"\.?_SUCCESS(\.crc)?|\.?part-.*|\.?_(committed|started)_.*|_temporary")


def check_folder(destination: str, types: Iterable[str] = ()) -> None:
    """Refuses a folder that holds anything but what an earlier run has written: it is written anew."""
    path = Path(destination)
    if "://" in destination or not path.exists():
        return
    if not path.is_dir():
        raise DataError("is a file; Parquet is written to a folder", destination, "name another, or remove it")
    inside = set(types)
    for entry in sorted(path.iterdir()):
        if entry.is_dir() and entry.name in inside:
            check_folder(str(entry))
        elif not _WRITTEN.fullmatch(entry.name):
            raise DataError(
                f"has other files, such as {entry.name}, and would be overwritten", destination, "name a new folder"
            )


def make_folder(destination: str) -> str:
    """A folder to write to, by its whole path: a JVM may stand elsewhere."""
    if "://" in destination:
        return destination
    try:
        Path(destination).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", destination) from None
    return str(Path(destination).absolute())


def write(answers: Answers[Any], destination: str, trace: bool = True) -> None:
    """Answers as Parquet files with their attributes by name."""
    outputs = answers.plan.outputs
    for type in outputs:
        folder = Path(destination) if len(outputs) == 1 else Path(destination) / type
        schema, batches = answers.batches(type, trace)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for old in folder.glob("*part-*"):
                old.unlink()
            with pq.ParquetWriter(folder / "part-00000.parquet", schema) as file:
                for batch in batches:
                    file.write_batch(batch)
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror}", destination) from None
