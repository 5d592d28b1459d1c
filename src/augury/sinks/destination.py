"""Output destinations: a plain file appears when it is complete; a device, a pipe or standard output is written directly."""

from __future__ import annotations

import errno
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from augury.core.errors import DataError


@contextmanager
def opened(destination: str, out: TextIO) -> Iterator[BinaryIO]:
    """A file of bytes to write to; `-` is the stream. A plain file is replaced only if all goes well."""
    if destination == "-":
        out.flush()
        buffer = getattr(out, "buffer", None)
        held = io.BytesIO() if buffer is None else None  # a stream of text alone
        yield cast(BinaryIO, buffer or held)
        if held is not None:
            out.write(held.getvalue().decode())
        out.flush()
        return
    path = Path(destination).resolve()
    if path.is_dir():
        raise DataError("is a directory", destination)
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
        else:
            with _replacing(path) as file:
                yield file
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", destination) from None


def write_text(text: str, destination: str, out: TextIO) -> None:
    """Writes a text."""
    with opened(destination, out) as file:
        file.write(text.encode())


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
