"""Real brokers and databases for tests and for `make services`: on loopback, on free ports, with their data in a folder.

Debian has PostgreSQL 15, Mosquitto, Redis and NATS; Kafka is jars of Maven, which `scripts/services` fetches into a cache.
A server that is not installed raises `NotInstalled`, with the reason.
"""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

KAFKA = Path(os.environ.get("AUGURY_KAFKA", Path.home() / ".cache" / "augury" / "kafka-3.9.1"))
_POSTGRES = "/usr/lib/postgresql/15/bin"
_PATIENCE = 120.0
_PORTS = range(20_000, 32_000)  # which no outgoing connection is given: a server that restarts finds its own free


class NotInstalled(Exception):
    """Why there is no such server here, or why it does not start."""


@dataclass
class Server:
    """A server that runs. `restart` kills it, and starts it again with its data, at the same port."""

    command: Sequence[str]
    port: int
    folder: Path
    user: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    ready: Callable[[int], bool] | None = None
    secure_port: int = 0  # where one has to log in, where there is a port for that alone
    wire: Wire | None = None  # through which the server says that it is reached
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> Server:
        options = {"user": self.user, "group": self.user} if self.user and os.getuid() == 0 else {}
        with (self.folder / "log.txt").open("ab") as log:
            self._process = subprocess.Popen(
                self.command, cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env={**os.environ, **self.environment}, start_new_session=True, **options,
            )  # type: ignore[call-overload]  # fmt: skip
        until = time.monotonic() + _PATIENCE
        while not (self.ready or listens)(self.port):
            if self._process.poll() is not None or time.monotonic() > until:
                self.stop()
                said = (self.folder / "log.txt").read_text(errors="replace")[-2000:]
                raise NotInstalled(f"{self.command[0]} does not start:\n{said}")
            time.sleep(0.02)
        return self

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def restart(self, number: int = signal.SIGKILL) -> None:
        self.stop(number)
        self.start()


def listens(port: int) -> bool:
    with socket.socket() as line:
        line.settimeout(1)
        return line.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    while True:
        port = random.SystemRandom().choice(_PORTS)
        with socket.socket() as line, suppress(OSError):
            line.bind(("127.0.0.1", port))
            return port


@contextmanager
def _running(server: Server, number: int = signal.SIGTERM) -> Iterator[Server]:
    try:
        yield server.start()
    finally:
        server.stop(number)


def _program(name: str, *paths: str) -> str:
    path = next((p for p in (shutil.which(name), *paths) if p and os.access(p, os.X_OK)), None)
    if path is None:
        raise NotInstalled(f"{name} is not installed (make services)")
    return path


@contextmanager
def kafka(folder: Path, port: int = 0) -> Iterator[Server]:
    """One broker, which is its own controller. At `secure_port` it takes the user `augury` with the password `secret`; who
    comes through `wire` is sent there for everything."""
    java = _program("java")
    if not any(KAFKA.glob("kafka_2.13-*.jar")):
        raise NotInstalled(f"there are no jars of Kafka in {KAFKA} (make services)")
    port, controller, secure, behind = port or free_port(), free_port(), free_port(), free_port()
    wire = Wire(behind)
    local = "127.0.0.1"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "process.roles": "broker,controller", "node.id": 1, "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://{local}:{port},CONTROLLER://{local}:{controller},SASL://{local}:{secure},WIRE://{local}:{behind}",
        "advertised.listeners": f"PLAINTEXT://{local}:{port},SASL://{local}:{secure},WIRE://{local}:{wire.port}",
        "controller.listener.names": "CONTROLLER", "log.dirs": folder / "data", "sasl.enabled.mechanisms": "PLAIN",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,WIRE:PLAINTEXT",
        "listener.name.sasl.plain.sasl.jaas.config": f'{module} required user_augury="secret";',
        "offsets.topic.replication.factor": 1, "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1, "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1, "group.initial.rebalance.delay.ms": 0,
        "auto.create.topics.enable": "true", "num.partitions": 2,
    }  # fmt: skip
    (folder / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    options = [java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{KAFKA}/*"]
    if not (folder / "data" / "meta.properties").exists():
        subprocess.run(
            [*options, "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", "server.properties"],
            cwd=folder, check=True, capture_output=True,
        )  # fmt: skip
    command = [*options, "kafka.Kafka", "server.properties"]
    try:
        with _running(Server(command, port, folder, secure_port=secure, wire=wire)) as server:
            yield server
    finally:
        wire.close()


@contextmanager
def postgres(folder: Path, port: int = 0) -> Iterator[Server]:
    """PostgreSQL with logical decoding; the superuser is `augury`, with the password `secret`."""
    initdb, binary = _program("initdb", f"{_POSTGRES}/initdb"), _program("postgres", f"{_POSTGRES}/postgres")
    port = port or free_port()
    user = "postgres" if os.getuid() == 0 else None
    folder.mkdir(parents=True, exist_ok=True)
    options: dict[str, str] = {}
    if user is not None:
        account = pwd.getpwnam(user)
        os.chown(folder, account.pw_uid, account.pw_gid)
        options = {"user": user, "group": user}
    if not (folder / "data").exists():
        (folder / "password").write_text("secret")
        (folder / "password").chmod(0o644)
        subprocess.run(
            [initdb, "-D", "data", "-U", "augury", "--auth=scram-sha-256", "--pwfile=password", "-E", "UTF8", "--no-sync"],
            cwd=folder, check=True, capture_output=True, **options,
        )  # type: ignore[call-overload]  # fmt: skip
    settings = {
        "port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": folder, "wal_level": "logical",
        "max_wal_senders": 8, "max_replication_slots": 8, "fsync": "off", "shared_buffers": "16MB",
    }  # fmt: skip
    command = [binary, "-D", "data", *(part for name, value in settings.items() for part in ("-c", f"{name}={value}"))]
    ready = _postgres_answers
    with _running(Server(command, port, folder, user, ready=ready), signal.SIGINT) as server:
        yield server


def _postgres_answers(port: int) -> bool:
    import psycopg

    try:
        psycopg.connect(
            f"host=127.0.0.1 port={port} user=augury password=secret dbname=postgres connect_timeout=2"
        ).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def mosquitto(folder: Path, port: int = 0) -> Iterator[Server]:
    """An MQTT broker that keeps sessions; it takes the user `augury` with the password `secret`, and nobody else."""
    binary = _program("mosquitto", "/usr/sbin/mosquitto")
    port = port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [_program("mosquitto_passwd"), "-b", "-c", "passwords", "augury", "secret"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    (folder / "passwords").chmod(0o644)
    (folder / "mosquitto.conf").write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous false\npassword_file passwords\npersistence true\n"
        f"persistence_location {folder}/\nautosave_interval 1\nmax_queued_messages 0\n"
        f"user {pwd.getpwuid(os.getuid()).pw_name}\n"
    )
    with _running(Server([binary, "-c", "mosquitto.conf"], port, folder)) as server:
        yield server


@contextmanager
def redis(folder: Path, port: int = 0) -> Iterator[Server]:
    """Redis, whose password is `secret` and which has every write on disk."""
    port = port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        _program("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--appendonly", "yes",
        "--appendfsync", "always", "--save", "", "--requirepass", "secret",
    ]  # fmt: skip
    with _running(Server(command, port, folder)) as server:
        yield server


@contextmanager
def nats(folder: Path, port: int = 0) -> Iterator[Server]:
    """NATS with JetStream; the user is `augury`, with the password `secret`."""
    port = port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        _program("nats-server", "/usr/sbin/nats-server"), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder),
        "--user", "augury", "--pass", "secret",
    ]  # fmt: skip
    with _running(Server(command, port, folder)) as server:
        yield server


class Wire:
    """A proxy on loopback that can be cut: connections end, and nobody is let through until it is mended."""

    def __init__(self, target: int) -> None:
        import threading

        self.target, self._cut, self._ended = target, False, False
        self._lines: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._cut = True
        for line in self._lines:
            _shut(line)
        self._lines.clear()

    def mend(self) -> None:
        self._cut = False

    def close(self) -> None:
        self._ended = True
        self.cut()
        self._server.close()

    def _accept(self) -> None:
        import threading

        while not self._ended:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            try:
                far = None if self._cut else socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                far = None
            if far is None:
                _shut(near)
                continue
            self._lines += [near, far]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=_copy, args=pair, daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    _shut(source)
    _shut(target)


def _shut(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    line.close()
