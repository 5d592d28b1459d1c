"""A lock on a checkpoint: one run at a time."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from augury.core.errors import DataError, RunError
from augury.spark.failures import writing_to
from augury.spark.starting import Log

_PATIENCE = 60.0  # seconds that the JVM of a run that was killed may take to end


@contextmanager
def held(checkpoint: Path, patience: float = _PATIENCE) -> Iterator[Log]:
    """The checkpoint, for us alone.

    Two locks, which the system takes from a process that ends, however it ends. That on `lock` is ours: where it is
    taken, another run is alive. That on the log, which is the JVM's standard error, is held until the JVM has ended: the
    one of a run that was killed may still be at the checkpoint for a moment.
    """
    with writing_to(checkpoint):
        checkpoint.mkdir(parents=True, exist_ok=True)
        lock = os.open(checkpoint / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _taken(lock, checkpoint):
            raise RunError(
                f"another run uses the checkpoint {checkpoint}{_holder(lock)}", "stop it, or use another directory"
            )
        log = _open_log(checkpoint, lock)
        try:
            until = time.monotonic() + patience
            while not _taken(log, checkpoint):
                if time.monotonic() > until:
                    raise RunError(
                        f"the Java process of another run still uses the checkpoint {checkpoint}",
                        "stop it, or use another directory",
                    )
                time.sleep(0.2)
            yield Log(checkpoint / "spark.log", log)
        finally:
            os.close(log)
    finally:
        os.close(lock)


def _open_log(checkpoint: Path, lock: int) -> int:
    """The log; the lock says from now on who we are."""
    with writing_to(checkpoint):
        os.ftruncate(lock, 0)
        os.pwrite(lock, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode(), 0)
        return os.open(checkpoint / "spark.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def _taken(file: int, checkpoint: Path) -> bool:
    """Whether the lock is ours now."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise DataError(
            f"cannot be locked: {error.strerror}", str(checkpoint), "use a directory of a local disk"
        ) from None
    return True


def _holder(lock: int) -> str:
    """The process that holds the lock, if the file names it."""
    try:
        result = json.loads(os.pread(lock, 1000, 0))
        return f": process {result['pid']} on {result['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
