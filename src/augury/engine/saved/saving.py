"""Saved state as a file: it is whole, or it is the one that was there before."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from augury.core.errors import DataError


def write_file(path: str | Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Writes aside in the same folder, syncs, and renames. Whatever happens meanwhile, the old file stays as it is.

    What a process leaves behind that is killed at it is written over by the next one.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise DataError("is a directory", str(path))
    aside = target.with_name(f".{target.name}.saving")
    try:
        handle = _alone(aside, str(path))
        try:
            os.ftruncate(handle, 0)
            if target.exists():  # who may read it stays as it is
                os.fchmod(handle, target.stat().st_mode & 0o777)
            with open(handle, "wb", closefd=False) as file:
                file.writelines(pieces)
            os.fsync(handle)
            os.replace(aside, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(aside)
            raise
        finally:
            os.close(handle)
        sync_names(target.parent)
    except FileNotFoundError:
        raise DataError("cannot be written: there is no such folder", str(path)) from None
    except OSError as error:
        hint = "the file that was there before is as it was" if target.exists() else ""
        raise DataError(f"cannot be written: {error.strerror or error}", str(path), hint) from None


def _alone(aside: Path, path: str) -> int:
    """The file to write to, which is ours until it is closed."""
    while True:
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.stat(aside)
        except BlockingIOError:
            os.close(handle)
            raise DataError("is being written by another process", path, "save to another file") from None
        except FileNotFoundError:  # another one has just renamed it
            os.close(handle)
            continue
        except BaseException:
            os.close(handle)
            raise
        if os.path.samestat(status, os.fstat(handle)):
            return handle
        os.close(handle)


def sync_names(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_file(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError("no such file", str(path)) from None
    except IsADirectoryError:
        raise DataError("is a directory, not a file", str(path)) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", str(path)) from None
