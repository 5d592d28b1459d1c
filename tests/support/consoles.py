"""Consoles that tests open: a program with some events, a client of its server, and a browser."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from augury.console.input_log import Setup
from augury.console.program_text import ProgramText
from augury.console.serving import ConsoleServer
from augury.console.watched import WatchedSession
from augury.console.watched_lanes import WatchedLanes
from augury.core.clock import Clock
from augury.core.model import Event, HistoryItem
from augury.notation import read_event
from augury.program import compile
from augury.settings import Settings

CHROMIUM = "/usr/bin/chromium"
_OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
FIRES = Path(__file__).parents[1] / "fires"


def watched(
    program: str, events: list[str] | list[HistoryItem], until: int | None = None, **settings: Any
) -> WatchedSession:
    """A session on the logical clock that was told some events, each in a step of its own."""
    compiled = compile(program)
    clock = Clock("logical")
    setup = Setup(ProgramText.of(compiled), clock, (), Settings.of(compiled, clock="logical", **settings))
    session = WatchedSession(setup)
    session.tell_history([read_event(e, clock) if isinstance(e, str) else e for e in events], until)
    return session


@contextmanager
def served(session: WatchedLanes) -> Iterator[tuple[str, httpx.Client]]:
    """The address of a console, and a client that has its token."""
    server = ConsoleServer(session)
    with server.running() as address, httpx.Client(base_url=address, timeout=60) as client:
        yield address, client


def ask(client: httpx.Client, question: str, **body: object) -> Any:
    """The answer to a question, which is expected to have one."""
    response = client.post(f"ask/{question}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def _installed() -> bool:
    """Installs Debian's browser where that can be done quickly; whether it is there then."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    quick = ("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10", "-o", "DPkg::Lock::Timeout=30")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["install", "-y", "-qq", "--no-install-recommends", "chromium"]
    for seconds, words in ((30, ["update", "-qq"]), (90, install)):
        try:
            subprocess.run(
                ["apt-get", *quick, *words], env=environment, capture_output=True, timeout=seconds, check=True
            )
        except (subprocess.SubprocessError, OSError):
            return False
    return os.path.exists(CHROMIUM)


@contextmanager
def browser() -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not os.path.exists(CHROMIUM) and not _installed():
        pytest.skip(f"there is no browser: apt-get install chromium puts it at {CHROMIUM}")
    with sync_api.sync_playwright() as playwright:
        try:
            chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_OPTIONS), timeout=120_000)
        except sync_api.Error as error:
            pytest.skip(f"the browser does not start: {str(error).splitlines()[0]}")
        yield chromium
        chromium.close()


def many_events(count: int) -> list[HistoryItem]:
    """Readings of ten sensors, one a tick."""
    return [Event("reading", (f"s{i % 10}", i * 37 % 1000), i, i, f"e{i}") for i in range(count)]
