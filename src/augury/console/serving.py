"""Opens a watched session for a task, and serves it."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from augury.console.input_log import Setup
from augury.console.program_text import ProgramText
from augury.console.recording import Recording
from augury.console.trial_views import TrialViews
from augury.console.watched import WatchedSession
from augury.console.watched_lanes import WatchedLanes
from augury.console.web_app import application, listening
from augury.job import Job
from augury.settings import Task


def watched_history(task: Task, text: ProgramText, until: str | None = None) -> WatchedSession:
    """A watched session that has been told a whole history."""
    job = Job(task, in_order=True)
    facts = tuple(job.facts + job.graphs.facts(job.plan, job.facts))
    watched = WatchedSession(Setup(text, job.clock, facts, task.settings))
    watched.tell_history(job.history.items(), job.time("--until", until))
    return watched


def watched_recording(recording: Recording) -> WatchedSession:
    """A watched session that has been told a recording."""
    watched = WatchedSession(recording.setup, recording.opened(), recording.base)
    watched.tell_recording(recording)
    return watched


def _is_no_end(record: logging.LogRecord) -> bool:
    """Whether a record is of more than of questions that the end of the server has cut off."""
    cut_off = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not cut_off and "graceful shutdown" not in record.getMessage()


class ConsoleServer:
    """The console on a free port, or on one that is asked for."""

    def __init__(self, watched: WatchedLanes, port: int = 0, token: str = "") -> None:
        import uvicorn

        logging.getLogger("uvicorn.error").addFilter(_is_no_end)

        self.token = token or secrets.token_urlsafe(24)
        self.trials = TrialViews(watched)
        self._socket = listening(port)
        self.port = self._socket.getsockname()[1]
        config = uvicorn.Config(
            application(watched, self.trials, self.token, lambda: self.server.should_exit), log_level="warning", access_log=False, lifespan="off",
            timeout_graceful_shutdown=1, server_header=False, h11_max_incomplete_event_size=65_536,
        )  # fmt: skip
        self.server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def run(self) -> None:
        """Serves until it is stopped."""
        try:
            self.server.run(sockets=[self._socket])
        finally:
            self.trials.close()

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serves in a thread of its own, for as long as the block runs; its address."""
        thread = threading.Thread(target=lambda: asyncio.run(self.server.serve(sockets=[self._socket])), daemon=True)
        thread.start()
        try:
            yield self.address
        finally:
            self.server.should_exit = True
            thread.join(10)
            self._socket.close()
            self.trials.close()
