"""Whether the files of a checkpoint are whole, before Spark reads them.

Spark reads the log of its batches (`offsets`, `commits`), the log of the files that each source has seen (`sources`) and
the state of each operator (`state`). It says little about a damaged file, and a missing one may pass unnoticed: without
the log of a source, all its files would be read again. Beside most files stands a hidden one with checksums, as Hadoop
writes it. Only what a restart reads is checked: a run that was killed may leave half a file of a batch that did not end.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from augury.core.errors import RunError, SnapshotError

_HINT = "restore the checkpoint from a copy, or start with a new checkpoint and a new output"
_STATE_FILE = re.compile(r"([0-9]+)(?:_[^.]+)?\.(changelog|zip)")
_CHUNK = 1 << 20
_SUM = "checksum"


def damaged(path: Path, why: str) -> SnapshotError:
    return SnapshotError(f"the checkpoint is damaged: {path} {why}", _HINT, "S101")


def spark_home(checkpoint: Path, saved: Mapping[str, Any]) -> tuple[Path, int]:
    """The folder of Spark's own files, and the number of its first batch among all of the stream.

    State that was computed anew has a folder of its own, in which Spark counts from 0 again.
    """
    return checkpoint / str(saved.get("spark", "spark")), int(saved.get("first", 0))


def check_files(checkpoint: Path, saved: Mapping[str, object]) -> None:
    """Raises SnapshotError where a file that a restart needs is missing, or is not what was written."""
    note, (spark, first) = checkpoint / "output" / "ready.json", spark_home(checkpoint, saved)
    delivered = _delivered(note)
    began = _numbers(spark / "offsets") | _numbers(spark / "commits")
    # Each run leaves a note of the last batch that it wrote; earlier versions did not.
    if "format" in saved and began and not note.exists():
        raise damaged(note, "is missing")
    check_spark_files(spark, delivered - first)


def check_spark_files(spark: Path, delivered: int = -1) -> None:
    """The same of the files that Spark itself writes to a checkpoint; `delivered` is the last batch known to be written."""
    batches, commits = _numbers(spark / "offsets"), _numbers(spark / "commits")
    if not batches and not commits and delivered < 0:
        return
    _json(spark / "metadata", {"id"})
    last, done = max(batches, default=-1), max(commits, default=-1)
    for number in range(max(done, delivered, last) + 1)[-2:]:
        if number not in batches:
            raise damaged(spark / "offsets" / str(number), "is missing")
    if done < last - 1:
        raise damaged(spark / "commits" / str(last - 1), "is missing")
    for number in sorted(commits):
        _log(spark / "commits" / str(number))
    for number in sorted(batches):
        _log(spark / "offsets" / str(number))
    _check_sources(spark, last)
    if done >= 0:
        for operator in sorted((spark / "state").glob("[0-9]*")):
            _check_state(operator, done + 1)


def last_batches(spark: Path) -> tuple[int | None, int | None]:
    """The last batch that has begun, and the last one that was committed."""
    return max(_numbers(spark / "offsets"), default=None), max(_numbers(spark / "commits"), default=None)


def files_read(spark: Path) -> set[str]:
    """The files that the sources of a stream have read, as Spark writes their paths."""
    result: set[str] = set()
    for folder in (spark / "sources").glob("[0-9]*"):
        for path in folder.iterdir():
            if re.fullmatch(r"[0-9]+(\.compact)?", path.name):
                entries = [json.loads(line) for line in _log(path) if line.startswith("{")]
                result |= {entry["path"] for entry in entries if "path" in entry}
    return result


def check_complete(checkpoint: Path, saved: Mapping[str, object]) -> None:
    """Raises RunError where the answers of a batch are written that Spark has not completed: it is for the program that
    wrote them to repeat it."""
    spark, first = spark_home(checkpoint, saved)
    batch, (_, ended) = _delivered(checkpoint / "output" / "ready.json"), last_batches(spark)
    if batch > first + (-1 if ended is None else ended):
        raise RunError(
            f"the answers of batch {batch} are written, but the batch was broken off before its end",
            "start the stream once more with the earlier program and --trigger once, then change it",
        )


def shuffle_partitions(spark: Path) -> int | None:
    """Into how many partitions the state is cut, which Spark keeps from its first batch on."""
    batches = _numbers(spark / "offsets")
    if not batches:
        return None
    said = json.loads(_log(spark / "offsets" / str(max(batches)))[0])
    partitions = said.get("conf", {}).get("spark.sql.shuffle.partitions") if isinstance(said, dict) else None
    return int(partitions) if partitions is not None else None


def last_watermark(spark: Path) -> int | None:
    """The watermark behind the last batch that was committed, in milliseconds; None before the first event."""
    commits = _numbers(spark / "commits")
    if not commits:
        return None
    entry = json.loads(_log(spark / "commits" / str(max(commits)))[0])
    watermark = entry.get("nextBatchWatermarkMs") if isinstance(entry, dict) else None
    return watermark if isinstance(watermark, int) and watermark > 0 else None


def _numbers(folder: Path) -> set[int]:
    """The batches of a log."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return {int(name) for name in names if name.isdecimal()}


def _delivered(path: Path) -> int:
    """The last batch that our own note says was written."""
    batch = unsealed(path, {"batch", "parts"})["batch"] if path.exists() else -1
    if not isinstance(batch, int):
        raise damaged(path, "names no batch")
    return batch


# Files


def sealed(said: Mapping[str, object]) -> bytes:
    """What a file of ours says, as JSON with a checksum."""
    return json.dumps({**said, _SUM: _sum(said)}, indent=2, ensure_ascii=False).encode() + b"\n"


def unsealed(path: Path, keys: set[str]) -> dict[str, Any]:
    """What a file of ours says, which has these `keys` at least; where it has no others, it may be without a checksum, as
    earlier versions wrote it."""
    said = _json(path, keys)
    written = said.pop(_SUM, None)
    if written != _sum(said) and not (written is None and said.keys() == keys):
        raise damaged(path, "does not have the checksum that was written with it")
    return said


def _sum(said: Mapping[str, object]) -> str:
    return f"{zlib.crc32(json.dumps(said, sort_keys=True).encode()):08x}"


def _bytes(path: Path) -> bytes:
    _check_sums(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise damaged(path, f"cannot be read: {error.strerror}") from None


def _json(path: Path, keys: set[str]) -> dict[str, Any]:
    """A file that is one object of JSON."""
    try:
        result = json.loads(_bytes(path))
    except ValueError:
        raise damaged(path, "is not JSON") from None
    if not isinstance(result, dict) or not keys <= result.keys():
        raise damaged(path, f"has no {' and no '.join(sorted(keys))}")
    return result


def _log(path: Path) -> list[str]:
    """The lines of an entry of a log, after its version."""
    try:
        version, *lines = _bytes(path).decode().splitlines()
        for line in lines:
            if not line.isdecimal() and line != "-":  # of a source that counts, or has nothing
                json.loads(line)
    except ValueError:  # also of what is no text, or has no lines
        raise damaged(path, "is not an entry of Spark's log") from None
    if not re.fullmatch(r"v[0-9]+", version) or not lines:
        raise damaged(path, "is not an entry of Spark's log")
    return lines


def _check_sums(path: Path) -> None:
    """Compares a file with its checksums, where it has some: `crc\\0`, the bytes of each part, a CRC32 for each."""
    sums = path.with_name(f".{path.name}.crc")
    if not path.is_file():
        raise damaged(path, "is not a file" if path.exists() else "is missing")
    if not sums.is_file():
        return
    head = sums.read_bytes()
    size = int.from_bytes(head[4:8], "big")
    if head[:4] != b"crc\0" or not size or len(head) % 4:
        raise damaged(sums, "is not a file of checksums")
    expected, offset = head[8:], 0
    with path.open("rb") as file:
        while data := file.read(_CHUNK // size * size or size):
            for start in range(0, len(data), size):
                checksum = zlib.crc32(data[start : start + size]).to_bytes(4, "big")
                if checksum != expected[offset : offset + 4]:
                    raise damaged(path, "does not have the checksum that was written with it")
                offset += 4
    if offset != len(expected):
        raise damaged(path, "does not have the checksum that was written with it")


# What a restart reads


def _check_sources(spark: Path, last: int) -> None:
    """The log of each source that lists its files is there from its last summary up to the last batch."""
    offsets = _log(spark / "offsets" / str(last))[1:] if last >= 0 else []
    for source, line in enumerate(offsets):
        offset = json.loads(line) if line.startswith("{") else {}
        until = offset.get("logOffset")
        if not isinstance(until, int) or until < 0:
            continue
        folder = spark / "sources" / str(source)
        for number in range(until, -1, -1):
            summary, entry = folder / f"{number}.compact", folder / str(number)
            if summary.exists():
                _log(summary)
                break
            _log(entry)


def _check_state(operator: Path, version: int) -> None:
    """The state of an operator at a version: in each partition a snapshot, and all changes since."""
    about = sorted(path for path in operator.glob("_metadata/v2/*") if path.name.isdecimal())
    if not about and (operator / "_metadata" / "v2").exists():
        raise damaged(operator / "_metadata" / "v2" / "0", "is missing")
    for path in {operator / "_stateSchema" / s for item in about for s in _schemas(item)}:
        _bytes(path)
    partitions = {int(path.name) for path in operator.iterdir() if path.name.isdecimal()}
    for partition in range(max([*partitions, *(n - 1 for n in map(_partitions, about))], default=-1) + 1):
        _check_partition(operator / str(partition), version)


def _stores(path: Path) -> list[dict[str, Any]]:
    """What Spark says of the state of an operator."""
    loads = json.loads(_log(path)[0])
    stores = loads.get("stateStoreInfo", []) if isinstance(loads, dict) else None
    if not isinstance(stores, list) or not all(isinstance(store, dict) for store in stores):
        raise damaged(path, "does not say what state there is")
    return stores


def _partitions(path: Path) -> int:
    numbers = [store.get("numPartitions", 0) for store in _stores(path)]
    return max((n for n in numbers if isinstance(n, int)), default=0)


def _schemas(path: Path) -> Iterator[str]:
    """The files with the schemas of the state, below their folder; a checkpoint may have been moved."""
    for store in _stores(path):
        for schema in store.get("stateSchemaFilePaths") or ():
            yield "/".join(str(schema).rsplit("/", 2)[1:])


def _check_partition(folder: Path, version: int) -> None:
    if not folder.is_dir():
        raise damaged(folder, "is missing")
    snapshots: dict[int, Path] = {}
    changes: dict[int, Path] = {}
    for path in folder.iterdir():
        if match := _STATE_FILE.fullmatch(path.name):
            (snapshots if match[2] == "zip" else changes)[int(match[1])] = path
    if not snapshots and not changes:
        raise damaged(folder, "has no state")
    for number in count(version, -1):
        if number in snapshots:
            _check_snapshot(snapshots[number])
            return
        if number == 0:
            return
        if number not in changes:
            raise damaged(folder, f"has neither {number}.changelog nor {number}.zip")
        _check_sums(changes[number])


def _check_snapshot(path: Path) -> None:
    """A snapshot of RocksDB: a zip whose `metadata` names the tables beside it."""
    _check_sums(path)
    try:
        with zipfile.ZipFile(path) as packed:
            wrong = packed.testzip()
            text = packed.read("metadata").decode()
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, zlib.error):
        raise damaged(path, "is not a snapshot of state") from None
    if wrong is not None:
        raise damaged(path, f"is not a snapshot of state: {wrong} in it is not what was written")
    for table, size in _tables(path, text):
        if table.is_file() and table.stat().st_size != size:
            raise damaged(table, f"has {table.stat().st_size:,} bytes, and {size:,} were written")
        _check_sums(table)


def _tables(path: Path, text: str) -> Iterator[tuple[Path, int]]:
    try:
        for entry in json.loads(text.split("\n", 1)[1])["sstFiles"]:
            yield path.parent / "SSTs" / entry["dfsSstFileName"], entry["sizeBytes"]
    except (ValueError, KeyError, TypeError, IndexError):
        raise damaged(path, "is not a snapshot of state: it does not say of which tables it is") from None
