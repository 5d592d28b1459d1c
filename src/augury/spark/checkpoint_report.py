"""What there is to say about the checkpoint of a stream, from its files alone: no Spark, and no lock."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from augury.core.clock import Clock, show_timestamp
from augury.core.errors import DataError, counted
from augury.spark.checkpoint_files import (
    check_files,
    last_batches,
    last_watermark,
    shuffle_partitions,
    spark_home,
    unsealed,
)
from augury.spark.packages import SHIFT
from augury.spark.relocation import relocate

_SETTINGS = (
    "outputs",
    "emission",
    "lateness",
    "longest",
    "retention",
    "buckets",
    "format",
    "clock",
    "time_unit",
    "zone",
)
_NEVER_COPIED = ("lock", "spark.log")


def description(checkpoint: Path) -> dict[str, Any]:
    """What a checkpoint says of itself."""
    path = checkpoint / "augury.json"
    if not path.exists():
        raise DataError("is not the checkpoint of a stream: it has no augury.json", str(checkpoint))
    return unsealed(path, {"rules", "buckets"})


def verify(checkpoint: Path) -> None:
    """Raises an error where a file that a restart needs is damaged or missing."""
    check_files(checkpoint, description(checkpoint))


def copy(checkpoint: Path, target: Path) -> None:
    """Copies a checkpoint that is whole; the copy appears when it is whole, too."""
    if target.exists():
        raise DataError("exists already", str(target), "name a new folder")
    verify(checkpoint)
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        shutil.copytree(checkpoint, part, ignore=shutil.ignore_patterns(*_NEVER_COPIED))
        home = spark_home(part, description(part))[0]
        relocate(home, target.absolute() / home.name)
        verify(part)
        os.rename(part, target)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", str(target)) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def report(checkpoint: Path) -> Iterator[str]:
    """Its rules and since when they run, how far it is, its settings, and its size, a line each."""
    saved = description(checkpoint)
    clock = Clock(saved.get("clock") or "timestamp")
    spark, first = spark_home(checkpoint, saved)
    began, ended = last_batches(spark)
    versions = len(saved.get("versions", ()))
    yield f"version {versions + 1} of its program, {counted(len(saved['rules']), 'rule')}"
    for label, since in since_when(saved).items():
        yield f"  {label}   {'from the beginning' if since is None else f'what starts after {clock.show(since)}'}"
    if ended is None:
        yield "no batch has been completed"
    else:
        running = "" if began is None or began == ended else f", {began + first} has begun"
        yield f"batches 0 to {ended + first} are complete{running}"
    watermark = last_watermark(spark)
    if watermark is not None:
        shown = show_timestamp(watermark * 1000) if clock.kind == "timestamp" else str(watermark - SHIFT)
        yield f"watermark {shown}"
    yield "settings"
    for name in _SETTINGS:
        value = saved.get(name)
        if value is not None:
            yield f"  {name.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}"
    if (cut := shuffle_partitions(spark)) is not None:
        yield f"  partitions: {cut}"
    yield f"size {_megabytes(_size(checkpoint))}"
    for operator in sorted((spark / "state").glob("[0-9]*"), key=lambda path: int(path.name)):
        partitions = [path for path in operator.iterdir() if path.name.isdecimal()]
        yield f"  state of operator {operator.name}: {_megabytes(_size(operator))} in {counted(len(partitions), 'partition')}"


def since_when(saved: Mapping[str, Any]) -> dict[str, int | None]:
    """For each rule what it has seen: None is everything, else what started after a time."""
    result: dict[str, int | None] = {}
    before: Mapping[str, str] = {}
    for number, version in enumerate([*saved.get("versions", ()), saved]):
        rules: Mapping[str, str] = version.get("rules") or {}
        since = version.get("since") if number else None
        result = {label: result[label] if before.get(label) == text else since for label, text in rules.items()}
        before = rules
    return result


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} kB"
