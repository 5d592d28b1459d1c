"""The envelope of saved state: its kind, its size, and a digest of all of it.

    8 bytes   magic
    4         version of the format
    8         length of everything
    8         length of the head
    …         the head: JSON that says of what this is the state, and which parts follow, and how they belong together
    …         the parts: plain arrays, one after the other
    32        BLAKE2b of all before

Magic, version and digest stay where they are in all versions, so that any of them can tell a damaged snapshot from one of
another version. The digest guards against accidents. It does not say who wrote the bytes: what they say is checked all the
same, sizes before anything is made of that size, types and indices before anything looks there.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from augury.core.arrays import Array
from augury.core.errors import RunError
from augury.engine.saved.corrupt import CorruptSnapshot, not_whole, other_version, require
from augury.engine.saved.reading import SnapshotReader
from augury.engine.saved.writing import DTYPES, Writer

MAGIC = b"\x89augury\n"
FORMAT = 6
_FRONT = struct.Struct("<8sIQQ")
_DIGEST = 32
_OLD = (
    b"augury session ",
    b"\x80\x04\x95",
    b"\x80\x05\x95",
)  # formats 1 to 4, which could run code where they were read


@dataclass(frozen=True)
class SnapshotHeader:
    """The owner of a state: its kind, the version of Augury that took it, and more by name."""

    kind: str
    augury: str
    about: Mapping[str, str]


@cache
def augury_version() -> str:
    """Asked once: to look it up takes milliseconds, as long as a small snapshot."""
    try:
        return version("augury")
    except PackageNotFoundError:
        return "unknown"


def pieces(kind: str, state: object, **about: str) -> list[bytes | memoryview]:
    """State as bytes in pieces, which need not be put together to be written."""
    writer = Writer()
    try:
        tree = writer.node(state)
        parts = [[DTYPES[part.dtype], len(part)] for part in writer.parts]
        described = {"kind": kind, "augury": augury_version(), "about": about, "parts": parts, "state": tree}
        head = json.dumps(described, separators=(",", ":")).encode("ascii")
    except RecursionError:
        raise RunError("a value is nested too deeply to be saved", hint="give the parts of it as arguments") from None
    data = [part.data.cast("B") for part in writer.parts if len(part)]
    length = _FRONT.size + len(head) + sum(part.nbytes for part in data) + _DIGEST
    written: list[bytes | memoryview] = [_FRONT.pack(MAGIC, FORMAT, length, len(head)), head, *data]
    digest = hashlib.blake2b(digest_size=_DIGEST)
    for piece in written:
        digest.update(piece)
    return [*written, digest.digest()]


def packed(kind: str, state: object, **about: str) -> bytes:
    return b"".join(pieces(kind, state, **about))


def unpacked(kind: str, data: object) -> tuple[SnapshotHeader, Any]:
    """The saved state; raises SnapshotError where anything about the bytes is wrong."""
    described, parts = _opened(kind, data)
    try:
        head = SnapshotHeader(kind, str(described["augury"]), dict(described["about"]))
        reader = SnapshotReader(parts)
        state = reader.value(described["state"])
        require(reader.done, "it has unused parts")
    except CorruptSnapshot as error:
        raise not_whole(str(error)) from None
    except MemoryError:
        raise
    except Exception as error:
        raise not_whole(f"its head is invalid ({type(error).__name__})") from None
    return head, state


def _opened(kind: str, data: object) -> tuple[dict[str, Any], list[Array]]:
    """The head, and the parts as they lie in the bytes."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise not_whole(f"it is not bytes but {type(data).__name__}")
    view = memoryview(data).cast("B") if isinstance(data, memoryview) else memoryview(data)
    if bytes(view[:16]).startswith(_OLD):
        raise other_version("it has a form that is no longer read")
    if len(view) < _FRONT.size + _DIGEST:
        raise not_whole("it is too short" if len(view) else "there is nothing")
    if hashlib.blake2b(view[:-_DIGEST], digest_size=_DIGEST).digest() != bytes(view[-_DIGEST:]):
        raise not_whole("its digest does not match")
    magic, format, length, size = _FRONT.unpack_from(view)
    if magic != MAGIC:
        raise not_whole("it does not begin like one")
    if format != FORMAT:
        raise other_version(f"its format is {format}, and this version of Augury reads {FORMAT}")
    body = view[_FRONT.size : -_DIGEST]
    try:
        require(length == len(view) and size <= len(body), "its length differs")
        described = json.loads(bytes(body[:size]))
        require(
            isinstance(described, dict) and described.keys() == {"kind", "augury", "about", "parts", "state"},
            "its head says something else",
        )
        require(described["kind"] == kind, f"it is a {str(described['kind'])[:40]}, not a {kind}")
        return described, _parts(described["parts"], body[size:])
    except CorruptSnapshot as error:
        raise not_whole(str(error)) from None
    except (ValueError, RecursionError, TypeError):
        raise not_whole("its head cannot be read") from None


def _parts(described: Any, data: memoryview) -> list[Array]:
    """The arrays, each where the head says that it lies. All sizes are known to fit before one is made."""
    require(isinstance(described, list), "its parts are not listed")
    dtypes, parts, offset = {name: dtype for dtype, name in DTYPES.items()}, [], 0
    for part in described:
        require(isinstance(part, list) and len(part) == 2, "a part is not described")
        name, length = part
        require(isinstance(name, str) and name in dtypes, "a part has an unknown type")
        require(type(length) is int and length >= 0, "a part has an impossible length")
        size = length * dtypes[name].itemsize
        require(size <= len(data) - offset, "a part is longer than the data")
        parts.append(np.frombuffer(data, dtypes[name], length, offset) if length else np.empty(0, dtypes[name]))
        offset += size
    require(offset == len(data), "bytes follow its parts")
    return parts
