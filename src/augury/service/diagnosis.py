"""`augury doctor`: what a service needs, looked at one by one; what is wrong, and how to mend it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from augury.connectors import Address, AnswerSink, DeliveryReader, EventSource, open_sink, open_source, opened, redacted
from augury.core.errors import AuguryError
from augury.program import Program

Verdict = Literal["ok", "warning", "error"]
_ROOM = 1 << 30  # bytes of a disk below which there is a warning
_PATIENCE = 5.0  # seconds that a sample may take to come
_SAMPLE = 100  # events


@dataclass(frozen=True)
class CheckResult:
    """What was looked at, what was seen, and what to do about it."""

    what: str
    verdict: Verdict
    seen: str
    remedy: str = ""


def diagnosis(
    program: Program | None, sources: Sequence[str], sinks: Sequence[str], facts: dict[str, str], state: Path | None
) -> Iterator[CheckResult]:
    """All checks, in an order in which a later one rests on earlier ones."""
    yield _python()
    yield _java()
    yield _spark()
    yield _kernels()
    yield _disk(state)
    yield _clock()
    for text in sources:
        yield from _end(text, open_source, program)
    for name, text in facts.items():
        yield from _end(text, open_source, None, f"facts {name}: ")
    for text in sinks:
        yield from _end(text, open_sink, None)


def _python() -> CheckResult:
    seen = f"{sys.version.split()[0]}, {os.cpu_count()} processors"
    return CheckResult("Python", "ok", seen)


def _java() -> CheckResult:
    java = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin{os.pathsep}{os.environ.get('PATH', '')}")
    if java is None:
        return CheckResult("Java", "warning", "not installed", "install Java 17 to run on Spark; a service needs none")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return CheckResult("Java", "warning", f"{java} does not answer: {type(error).__name__}", "reinstall Java 17")
    version = said.partition('"')[2].partition('"')[0]
    if version.partition(".")[0] not in ("17", "21"):
        return CheckResult("Java", "warning", version, "Spark 4 needs Java 17 or 21")
    return CheckResult("Java", "ok", version)


def _spark() -> CheckResult:
    if importlib.util.find_spec("pyspark") is None:
        return CheckResult("Spark", "warning", "not installed", "pip install 'augury[spark]' to run on Spark")
    from importlib.metadata import version

    return CheckResult("Spark", "ok", version("pyspark"))


def _kernels() -> CheckResult:
    """Whether compiled loops are found again at the next start."""
    from numba import njit

    began = time.perf_counter()
    njit(lambda x: x + 1)(1)
    seconds = time.perf_counter() - began
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return CheckResult("kernels", "warning", "compilation is off", "unset NUMBA_DISABLE_JIT: large steps are slow")
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parents[1] / "storage")
    if not os.access(folder, os.W_OK):
        remedy = "set NUMBA_CACHE_DIR to a folder that can be written, so that loops are compiled once"
        return CheckResult("kernels", "warning", f"{folder} cannot be written", remedy)
    return CheckResult("kernels", "ok", f"compile in {seconds:.1f} s, kept in {folder}")


def _disk(state: Path | None) -> CheckResult:
    folder = state or Path()
    while not folder.exists():
        folder = folder.absolute().parent
    free = shutil.disk_usage(folder).free
    if not os.access(folder, os.W_OK):
        return CheckResult("disk", "error", f"{folder} cannot be written", "give the user of the service this folder")
    probe = folder / ".augury-doctor"
    began = time.perf_counter()
    with probe.open("wb") as file:
        file.write(b"x")
        file.flush()
        os.fsync(file.fileno())
    seconds = time.perf_counter() - began
    probe.unlink()
    seen = f"{free / 1e9:.1f} GB free, a sync takes {seconds * 1000:.1f} ms"
    if free < _ROOM:
        return CheckResult("disk", "error", seen, "free some space: snapshots and journal need room")
    if seconds > 0.1:
        return CheckResult("disk", "warning", seen, "each step waits for a sync: use a faster disk, or --sync never")
    return CheckResult("disk", "ok", seen)


def _clock() -> CheckResult:
    if time.time() < 1_700_000_000:
        return CheckResult("clock", "error", time.ctime(), "set the clock: --wall-clock and times of arrival need it")
    try:
        synchronised = subprocess.run(
            ["timedatectl", "show", "-p", "NTPSynchronized", "--value"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        synchronised = ""
    if synchronised == "no":
        return CheckResult("clock", "warning", "not synchronised", "run an NTP client: --wall-clock relies on it")
    return CheckResult("clock", "ok", time.strftime("%Y-%m-%d %H:%M:%S %Z"))


def _end(
    text: str, opening: Callable[[str], EventSource | AnswerSink], program: Program | None, ahead: str = ""
) -> Iterator[CheckResult]:
    """A source or a sink: whether it can be reached and used, and whether what it has fits the program."""
    what = f"{ahead}{redacted(text)}"
    try:
        what = f"{ahead}{Address.parse(text)}"
        end = opening(text)
        yield CheckResult(what, "ok", end.check())
    except AuguryError as error:
        yield CheckResult(
            what,
            "error",
            *_said(error),
        )
        return
    if program is not None and isinstance(end, EventSource) and end.sampled:
        yield CheckResult(f"{what}: sample", *_sample(end, program))


def _said(error: AuguryError) -> tuple[str, str]:
    """What is wrong, and what to do."""
    message, _, hint = redacted(error).partition("\n  hint: ")
    return message, hint or "check the address, and that the server runs"


def _sample(source: EventSource, program: Program) -> tuple[Verdict, str, str]:
    """Whether some events of a source fit the program; nothing of it is acknowledged."""
    session = program.session()
    reader = DeliveryReader(session.program.plan, session.reading_clock)
    number = 0
    try:
        with opened(source), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            until = time.monotonic() + _PATIENCE
            while number < _SAMPLE and time.monotonic() < until and not source.finished:
                deliveries = source.poll(_SAMPLE, 0.5)
                for delivery in deliveries:
                    history = reader.read(delivery)
                    number += len(history) + sum(history.unknown.values())
                if not deliveries and number:
                    break
    except AuguryError as error:
        return "error", *_said(error)
    problems = reader.poison
    if problems:
        return (
            "error",
            f"{len(problems)} of {number} messages are no events: {problems[0].reason}",
            "declare the attributes as they are sent, or change the sender",
        )
    if not number:
        return "warning", f"no event came in {_PATIENCE:.0f} s", "look whether anybody writes there"
    return "ok", f"{number} events fit the program", ""
