"""What file systems refuse, as a run says it: one line, with the cause and the place, whoever was told of it first."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the Spark executor is an extra")

from augury.core.errors import AuguryError, DataError
from augury.spark.failures import FULL, user_error
from augury.spark.spool import Spool


@pytest.mark.parametrize(
    ("java", "said"),
    [
        ("java.io.IOException: No space left on device\n\tat java.base/sun.nio.ch.FileDispatcherImpl.write0", FULL),
        ("terminated with exception: No space left on device SQLSTATE: XXKST", FULL),
        (
            "java.io.FileNotFoundException: /cp/spark/offsets/.1.tmp (No space left on device)",
            f"/cp/spark/offsets/.1.tmp: {FULL}",
        ),
        ("java.nio.file.FileSystemException: /cp/spark/state/0: Read-only file system", "/cp/spark/state/0: Read-only file system"),
        (
            "org.rocksdb.RocksDBException: While open a file for appending: /tmp/spark-1/000012.sst: No space left on device",
            f"/tmp/spark-1/000012.sst: {FULL}",
        ),
        ("java.io.FileNotFoundException: /cp/spark/metadata (Permission denied)", "/cp/spark/metadata: Permission denied"),
        ("java.io.IOException: Mkdirs failed to create file:/cp/spark/commits (exists=false)", "/cp/spark/commits: cannot be written: no folder can be made there"),
        (
            "org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/cp/spark/offsets",
            "/cp/spark/offsets: cannot be written: no folder can be made there",
        ),
        (
            "org.apache.hadoop.fs.FileAlreadyExistsException: /cp/spark/offsets is not a directory",
            "/cp/spark/offsets: is not a directory",
        ),
    ],
)  # fmt: skip
def test_what_java_was_told(java: str, said: str) -> None:
    error = user_error(RuntimeError(f"An error occurred while calling o42.awaitTermination.\n: {java}"), None)
    assert str(error) == said


class Java:
    """A Java exception, as Py4J shows one."""

    def __init__(self, text: str, cause: Java | None = None) -> None:
        self.toString, self.getCause = (lambda: text), (lambda: cause)


def test_the_cause_is_looked_for_behind_what_is_raised() -> None:
    error = RuntimeError("Query terminated")
    error.java_exception = Java("SparkException: Task failed", Java("java.io.IOException: No space left on device"))  # type: ignore[attr-defined]
    assert str(user_error(error, None)) == FULL


def spooled(folder: Path, lines: io.TextIOBase) -> AuguryError | None:
    spool = Spool(folder, lines)  # type: ignore[arg-type]
    spool.start()
    spool.join(60)
    assert not spool.is_alive()
    return spool.failed


def test_standard_input_that_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run must not end as if its input were over."""
    assert spooled(tmp_path, io.StringIO("{}\n")) is None
    error = spooled(tmp_path, io.TextIOWrapper(io.BytesIO(b'{"a": 1}\n' * 9999 + b'{"a": "\xff"}\n'), "utf-8"))
    assert str(error).startswith("standard input: cannot be read: 'utf-8' codec can't decode byte 0xff")
    assert "1}" in (tmp_path / "0000000001.jsonl").read_text()  # what came before

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    error = spooled(tmp_path, io.StringIO("{}\n" * 20_000))
    assert isinstance(error, DataError)
    assert str(error).startswith(f"{tmp_path}: cannot be written: {FULL}\n  hint: make room")
