"""Starts a Spark session for the command line: checks Java first, and sends the output of the JVM to a log."""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from augury.algebra.plan import Plan
from augury.algebra.stages import stages
from augury.core.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
_INSTALL = "apt-get install openjdk-17-jre-headless (or set JAVA_HOME); --engine embedded needs no Java"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True)
class Log:
    """A file that is open for the JVM to write to."""

    path: Path
    fd: int


def problem() -> RunError | None:
    """Why Spark cannot be started here, if so."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return RunError("Spark is not installed", "pip install pyspark; --engine embedded needs no Spark")
    try:
        check_java()
    except RunError as error:
        return error
    return None


def check_java() -> None:
    """Java is there, and new enough."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        raise RunError("Spark needs Java, but none was found", _INSTALL)
    try:
        version = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        where = f"JAVA_HOME is {home}, where there is no bin/java that runs" if home else f"{java} does not run"
        raise RunError(f"Spark needs Java, but {where}", _INSTALL) from None
    match = re.search(r'version "(?:1\.)?(\d+)', version.stderr + version.stdout)
    if match is None:
        raise RunError(f"Spark needs Java, but `{java} -version` does not say a version", _INSTALL)
    if int(match[1]) < OLDEST_JAVA:
        raise RunError(f"Spark needs Java {OLDEST_JAVA} or newer, but {java} is Java {match[1]}", _INSTALL)


def settings(conf: Iterable[str]) -> dict[str, str]:
    """`--conf K=V` as a table."""
    result: dict[str, str] = {}
    for text in conf:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise RunError(f"--conf {text}: write it as NAME=VALUE")
        result[name.strip()] = value.strip()
    return result


def open_session(
    master: str = "local[*]",
    conf: Iterable[str] = (),
    *,
    streaming_buckets: int | None = None,
    log: Log | None = None,
) -> SparkSession:
    """A session: the active one where there is one, else a new one. `streaming_buckets` says into how many partitions
    streams shuffle; `log` is where the JVM writes what it has to say.
    """
    from pyspark.sql import SparkSession

    cores = cores_of(master)
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(streaming_buckets or cores or 200),
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Java does not compile longer methods. Checking and converting the cells of a row in one takes four times as long.
        "spark.sql.codegen.hugeMethodLimit": "8000",
        **settings(conf),
    }
    if cores is not None:
        chosen.setdefault("spark.driver.bindAddress", "127.0.0.1")
        chosen.setdefault("spark.driver.host", "127.0.0.1")
    if SparkSession.getActiveSession() is None:
        failed = problem()
        if failed is not None:
            raise failed
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger().addHandler(logging.NullHandler())  # Py4J tells of every call that Ctrl-C breaks off
    builder = SparkSession.builder.master(master).appName("augury")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    log, ours = log or _temporary_log(), log is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with _redirected(log.fd):
                session = builder.getOrCreate()
        except Exception as error:  # whatever it is, the JVM has said more about it than Python knows
            raise RunError(
                f"Spark did not start: {_reason(log.path, error)}", f"the full log is in {log.path}"
            ) from None
    if ours:
        os.close(log.fd)
        atexit.register(shutil.rmtree, log.path.parent, ignore_errors=True)
    return session


def usual_buckets(plan: Plan, master: str, partitions: int) -> int:
    """The default number of buckets of a stream: two for each partition.

    A program of several stages has one on a single machine. Each stage costs more in every batch than it gains there, and
    where there is one bucket all rules are one stage.
    """
    several = len(stages(plan, everywhere=True).stages) > 1
    return 1 if several and cores_of(master) is not None else 2 * partitions


def _temporary_log() -> Log:
    path = Path(tempfile.mkdtemp(prefix="augury-")) / "spark.log"
    return Log(path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))


def cores_of(master: str) -> int | None:
    """The cores of a local master; None for a cluster."""
    asked = re.fullmatch(r"local(?:\[(\*|\d+)(?:,\d+)?\])?", master)
    if asked is None:
        return None
    return (os.cpu_count() or 1) if asked[1] == "*" else int(asked[1] or 1)


@contextmanager
def _redirected(target: int) -> Iterator[None]:
    """Processes that start meanwhile write to the log, not to our standard output and error."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    kept = {fd: os.dup(fd) for fd in (1, 2) if _is_open(fd)}
    try:
        for fd in (1, 2):
            os.dup2(target, fd)
        yield
    finally:
        for fd in (1, 2):
            if fd in kept:
                os.dup2(kept[fd], fd)
                os.close(kept[fd])
            else:
                os.close(fd)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _reason(log: Path, error: Exception) -> str:
    """What went wrong, in a line."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    raised = [line for line in lines if "Exception" in line or "Error" in line]
    text = raised[-1] if raised else str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return re.sub(r"^(Caused by: |Exception in thread \"\w+\" )?([\w.$]+\.)*(\w+(Exception|Error)): ", "", text.strip())
