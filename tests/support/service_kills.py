"""Kills a service again and again, in processes that are forked from this one, and compares what it has written with a run."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from augury.service import LiveService

PATIENCE = 180.0  # seconds after which a service that does not get on has failed; a machine may be slow


def forked(make: Callable[[], LiveService]) -> int:
    """A process that runs a service."""
    process = os.fork()
    if process:
        return process
    try:
        make().run()
        os._exit(0)
    except BaseException as error:  # the parent sees the exit code
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)


def kill_runs(
    make: Callable[[], LiveService], kills: int, feed: Callable[[int], object], seed: int = 1, most: float = 0.5
) -> None:
    """Runs and kills a service; `feed` brings more input before each run."""
    chance = random.Random(seed)
    for number in range(kills):
        feed(number)
        process = forked(make)
        time.sleep(chance.uniform(0.02, most))
        try:
            ended, status = os.waitpid(process, os.WNOHANG)
            assert not ended or os.waitstatus_to_exitcode(status) == 0, "the service has failed"
            if not ended:
                os.kill(process, signal.SIGKILL)
        finally:
            if not ended:
                os.waitpid(process, 0)


def run_until(make: Callable[[], LiveService], done: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Runs a service until something is so, and stops it; fails where that takes too long."""
    with make().running() as service:
        wait_for(done, seconds)
        assert service.ready
    return


def wait_for(done: Callable[[], bool], seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.01)


def standing(lines: Iterable[bytes]) -> dict[str, list[Any]]:
    """The answers that stand after some changes, by id; fails where one is inserted or retracted twice."""
    result: dict[str, list[Any]] = {}
    for line in lines:
        change = orjson.loads(line)
        if change["op"] == "insert":
            assert change["id"] not in result, f"inserted twice: {change}"
            result[change["id"]] = change["args"]
        else:
            assert result.pop(change["id"], None) is not None, f"retracted without an insertion: {change}"
    return result


def expected(program: str, events: Sequence[Any], **options: Any) -> dict[str, list[Any]]:
    """What a run detects, by id."""
    import augury

    return {event.id: list(event.args) for event in augury.run(program, list(events), **options)}
