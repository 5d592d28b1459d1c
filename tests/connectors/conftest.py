"""Servers that tests of connectors share, one of each kind; where one is not installed, or does not start, its tests are skipped."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support import servers
from tests.support.servers import NotInstalled, Server


def _started(running: AbstractContextManager[Server]) -> Iterator[Server]:
    try:
        server = running.__enter__()
    except NotInstalled as reason:
        pytest.skip(str(reason))
    except (OSError, KeyError, subprocess.CalledProcessError) as error:  # no such user, no memory, no room
        pytest.skip(f"the server cannot be started here: {error!r}")
    try:
        yield server
    finally:
        running.__exit__(None, None, None)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not os.environ.get("AUGURY_LONG"):
        pytest.skip("starts a virtual machine: AUGURY_LONG=1")
    yield from _started(servers.kafka(tmp_path_factory.mktemp("servers") / "kafka"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    with TemporaryDirectory(prefix="augury-servers-") as folder:  # not pytest's own, which is for one user alone
        Path(folder).chmod(0o755)
        yield from _started(servers.postgres(Path(folder) / "postgres"))


@pytest.fixture(scope="session")
def mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from _started(servers.mosquitto(tmp_path_factory.mktemp("servers") / "mosquitto"))


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from _started(servers.redis(tmp_path_factory.mktemp("servers") / "redis"))


@pytest.fixture(scope="session")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from _started(servers.nats(tmp_path_factory.mktemp("servers") / "nats"))
