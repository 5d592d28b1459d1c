"""Translates exceptions of Spark into errors with a hint for the user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.errors import PySparkException

from augury.core.errors import AuguryError, DataError, RunError
from augury.spark.checkpoint_files import damaged
from augury.spark.places import Places

FULL = "No space left on device"
# What a file system says, as Java passes it on: with the path ahead, or without one.
_REFUSED = re.compile(
    rf"{FULL}|Disk quota exceeded|Read-only file system|Permission denied|File too large|Not a directory"
    r"|Input/output error|Too many open files|Stale file handle"
)
_NO_FOLDER = re.compile(
    r"(?:Mkdirs failed to create|Failed to create directory|mkdir of|Parent path is not a directory:"
    r"|Unable to create directory) (?:file:)?(/\S+)"
)
_NO_LONGER = re.compile(r"(?:file:)?(/\S+) is not a directory")
# A file of a checkpoint, and what Spark, Hadoop and RocksDB say where they cannot read one.
_DAMAGED = re.compile(r"(?:file:)?(/[^\s,;:'\"()\[\]]*/(?:offsets|commits|sources|state)/[^\s,;:'\"()\[\]]+)")
_UNREADABLE = re.compile(
    r"ChecksumException|FileNotFoundException|EOFException|ZipException|Corruption|CANNOT_LOAD_STATE_STORE"
    r"|Incomplete log file|Log file was malformed|UnsupportedLogVersion|[Ll]og version|does not exist|MalformedInput"
)
_STOPPED = re.compile(
    r"Connection refused|Py4JNetworkError|SparkContext was shut down|stopped SparkContext|Answer from Java side is empty"
)


@contextmanager
def user_errors(places: Places | None = None) -> Iterator[None]:
    """Exceptions of Spark as errors that name the cause a user can remove."""
    try:
        yield
    except AuguryError:
        raise
    except Exception as error:
        raise user_error(error, places) from None


@contextmanager
def writing_to(path: str | Path) -> Iterator[None]:
    """A disk that is full, or may not be written to, is an error that names the place."""
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", str(path)) from None


def user_error(error: BaseException, places: Places | None) -> AuguryError:
    """The error behind one of Spark's.

    A worker that raises ends its traceback with `augury.core.errors.RunError: …`; a wrong row of a DataFrame is
    `[USER_RAISED_EXCEPTION] a malformed row: …`, that of a file `a malformed row of file:///…: … in …`.
    """
    if isinstance(error, AuguryError):
        return error
    text = _causes(error)
    ours = re.search(r"^augury\.core\.errors\.\w+: (.*(?:\n {2}\S.*)*)", text, re.MULTILINE)
    if ours is not None:
        return RunError(ours[1])
    of_file = re.search(r"a malformed row of (\S+): (.*?) in (.*)", text)
    if of_file is not None and places is not None:
        return places.error(of_file[1], of_file[2], re.sub(r" SQLSTATE: \w+$", "", of_file[3].strip()))
    wrong = re.search(r"(a malformed row: .*)", text)
    if wrong is not None:
        return DataError(re.sub(r" SQLSTATE: \w+$", "", wrong[1].strip()))
    if _STOPPED.search(text):
        hint = "its Java process ended; was there enough memory? --conf spark.driver.memory=4g"
        return RunError("Spark has stopped", hint)
    refused = _refused(text)
    if refused is not None:
        return refused
    missing = re.search(r"Path does not exist: (\S+)", text)
    if missing is not None:
        return DataError("no such file", missing[1])
    raised = re.findall(r"^(\w+(?:\.\w+)*(?:Error|Exception)): (.*)$", text, re.MULTILINE)
    if (file := _DAMAGED.search(text)) is not None and _UNREADABLE.search(text):
        return damaged(Path(file[1]), f"could not be read by Spark: {first_line(error)}")
    if isinstance(error, PySparkException) or "py4j" in type(error).__module__:
        said = f"{raised[-1][0].split('.')[-1]}: {raised[-1][1]}" if raised else first_line(error)
        return RunError(f"Spark could not finish: {said}")
    return RunError(f"{type(error).__name__}: {first_line(error)}")


def _causes(error: BaseException) -> str:
    """What an error says, and what the Java exceptions behind it say."""
    said = [str(error)]
    cause = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    with suppress(Exception):  # the JVM may have ended meanwhile
        while cause is not None and len(said) < 20:
            said.append(str(cause.toString()))
            cause = cause.getCause()
    return "\n".join(said)


def _refused(text: str) -> AuguryError | None:
    """What a file system refused to do, and where."""
    match = _REFUSED.search(text)
    if match is None:
        if (folder := _NO_FOLDER.search(text)) is not None:
            return DataError("cannot be written: no folder can be made there", folder[1])
        file = _NO_LONGER.search(text)
        return None if file is None else DataError("is not a directory", file[1])
    where = re.search(rf"(?:file:)?(/[^\s:()]+)(?: \(|: (?:error=\d+, )?){re.escape(match[0])}", text)
    return RunError(match[0]) if where is None else DataError(match[0], where[1])


def first_line(error: BaseException) -> str:
    """What an error says, in a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return re.sub(r"^\[[A-Z_.0-9]+\] ", "", lines[0]) if lines else type(error).__name__
