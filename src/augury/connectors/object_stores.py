"""Answers in an object store (fsspec): an object for each step, which is whole when it is there.

    s3://bucket/alerts       an object alerts/RUN-000000000012.jsonl for the step with this number

A step that is repeated after a crash has the same changes and the same name, so it takes the place of itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from augury.connectors.addresses import Address, redacted
from augury.connectors.rendering import RenderedChanges
from augury.connectors.sink import AnswerSink
from augury.connectors.source import Position, UnavailableError
from augury.core.errors import RunError


@dataclass(frozen=True)
class ObjectSinkOptions:
    """There are none: the packages of the stores find endpoints and credentials by themselves."""


def store_of(address: Address) -> Any:
    """The file system of fsspec for an address."""
    import fsspec

    try:
        return fsspec.filesystem(address.scheme)
    except ImportError as error:  # the message names the package
        raise RunError(f"{address}: {error}", hint="pip install s3fs, gcsfs or adlfs") from None


class ObjectSink(AnswerSink):
    def __init__(self, address: Address) -> None:
        address.read(ObjectSinkOptions)
        self.address, self.folder = address, address.rest.strip("/")
        if not self.folder:
            raise RunError(f"{address} names no folder", hint=f"write it as {address.scheme}://bucket/folder")
        self.store = store_of(address)
        self._run = ""

    def open(self, position: Position | None) -> int | None:
        self._run = (position or {}).get("run") or uuid.uuid4().hex
        return None

    def position(self) -> Position | None:
        return {"run": self._run}

    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        for step in steps:
            name = f"{self.folder}/{self._run}-{step.step:012}.jsonl"
            try:
                self.store.pipe_file(name, b"".join(line + b"\n" for line in step.lines))
            except (PermissionError, FileNotFoundError) as error:
                raise RunError(redacted(f"{self.address}: {error}"), hint="check bucket and credentials") from None
            except Exception as error:  # each store has its own
                raise UnavailableError(redacted(f"{self.address}: {error}")) from None
        return []

    def check(self) -> str:
        """Nothing is written for a look: whether the store may be written to shows with the first step."""
        bucket = self.folder.partition("/")[0]
        try:
            return "reachable" if self.store.exists(bucket) else f"reachable; {bucket} is empty, or does not exist"
        except Exception as error:  # each store has its own
            raise UnavailableError(redacted(f"{self.address}: {error}")) from None
