"""A process of its own for what a user tries out: it has limits of time and memory, and ends when it goes beyond them.

The limit of time is one of CPU time, which the process sets itself, so that a busy machine changes no answer.
"""

from __future__ import annotations

import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from threading import Lock
from typing import Any

from augury.core.errors import RunError

HEAD = struct.Struct("<II")  # bytes of the question, and of the recording behind it
SIZE = struct.Struct("<I")  # bytes of an answer; none says that the process is ready
_SLOWEST = 20  # times as long as the limit of CPU time a question may take on a busy machine
_MOST_ANSWER = 256 << 20


class LimitExceeded(RunError):
    """What was tried out took too long, or too much memory."""


class Sandbox:
    """One process, started when it is first asked; a question that fails to be answered ends it, and the next one starts another."""

    def __init__(self, seconds: float = 20.0, megabytes: int = 2000) -> None:
        self.seconds, self.megabytes = seconds, megabytes
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def ask(self, question: str, body: dict[str, Any], recording: bytes = b"") -> dict[str, Any]:
        """The answer of the process; raises RunError with its message, and LimitExceeded."""
        if not self._lock.acquire(timeout=self.seconds):
            raise LimitExceeded("another trial is still running", hint="try again when it has ended")
        try:
            answer = self._asked(json.dumps({"question": question, "body": body}).encode(), recording)
        finally:
            self._lock.release()
        if "error" in answer:
            raise RunError(answer["error"], hint=answer.get("hint", ""))
        return answer

    def _asked(self, question: bytes, recording: bytes) -> dict[str, Any]:
        process = self._process
        if process is None or process.poll() is not None:
            process = self._process = self._started()
        deadline = time.monotonic() + _SLOWEST * self.seconds
        try:
            _write(process, HEAD.pack(len(question), len(recording)) + question + recording, deadline)
            (size,) = SIZE.unpack(_read(process, SIZE.size, deadline))
            answer: dict[str, Any] = json.loads(_read(process, min(size, _MOST_ANSWER), deadline))
            return answer
        except (OSError, EOFError):  # a TimeoutError is an OSError
            slow = self.close() in (-signal.SIGPROF, -signal.SIGKILL)
            what = f"it took more than {self.seconds:g} seconds" if slow else f"it took more than {self.megabytes:,} MB"
            raise LimitExceeded(what, hint="try it on less, or with a shorter window") from None

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "augury.console.sandbox_worker", str(self.seconds), str(self.megabytes)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, bufsize=0,
        )  # fmt: skip
        try:
            _read(process, SIZE.size, time.monotonic() + 120)
        except (OSError, EOFError):
            self._process = process
            self.close()
            raise RunError("the process for trials does not start") from None
        return process

    def close(self) -> int:
        """Ends the process; with what it has ended."""
        process, self._process = self._process, None
        if process is None:
            return 0
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()
        try:
            return process.wait(0.2)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def _write(process: subprocess.Popen[bytes], data: bytes, deadline: float) -> None:
    assert process.stdin is not None
    descriptor, view = process.stdin.fileno(), memoryview(data)
    os.set_blocking(descriptor, False)
    while view:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([], [descriptor], [], left)[1]:
            raise TimeoutError
        view = view[os.write(descriptor, view) :]


def _read(process: subprocess.Popen[bytes], size: int, deadline: float) -> bytes:
    assert process.stdout is not None
    descriptor, parts, got = process.stdout.fileno(), list[bytes](), 0
    while got < size:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            raise TimeoutError
        part = os.read(descriptor, min(size - got, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        got += len(part)
    return b"".join(parts)
