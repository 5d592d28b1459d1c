"""Runs `augury` in a process of its own, which need not import anything: one that has done so forks for each command.

    run(["check", "fire.aug"], folder)     the exit code, standard output and standard error

A command has its own folder, standard streams and exit, as if Python had been started for it; that takes a second more.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile

_WIDTH = {"COLUMNS": "100"}


@dataclass
class Done:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


def run(args: Sequence[str], folder: Path, stdin: str = "") -> Done:
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        streams = [stream.fileno() for stream in (given, out, err)]
        _, line = _server()
        socket.send_fds(line, [json.dumps([str(folder), *args]).encode()], streams)
        code = int(line.recv(100))
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode())
    return Done(code, *said)


def run_anew(args: Sequence[str], folder: Path, stdin: str = "") -> Done:
    """The same, by `python -m augury`."""
    done = subprocess.run(
        [sys.executable, "-m", "augury", *args], cwd=folder, input=stdin, capture_output=True, text=True, encoding="utf-8",
        check=False, env={**os.environ, **_WIDTH},
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


@cache
def _server() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The process that forks, and the line to it; it ends when this one does, and the line with it."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with its:
        process = subprocess.Popen(
            [sys.executable, __file__, str(its.fileno())], pass_fds=[its.fileno()], env={**os.environ, **_WIDTH},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    return process, mine


def _serve(line: socket.socket) -> None:
    """Returns once for each command, in a process that has its streams; here it goes on to the end of the line."""
    while True:
        asked, streams, _, _ = socket.recv_fds(line, 1 << 20, 3)
        if not asked:
            os._exit(0)
        child = os.fork()
        if child == 0:
            line.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            folder, *args = json.loads(asked)
            os.chdir(folder)
            sys.argv = ["augury", *args]
            return
        for stream in streams:
            os.close(stream)
        line.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


if __name__ == "__main__":
    sys.path[0] = ""  # as with `python -m`: the folder of the command
    import augury
    from augury.cli import main

    augury.compile("a(X) <- b(X).")
    gc.freeze()  # what is here stays: nobody looks at it again, and children need no copy of it
    _serve(socket.socket(fileno=int(sys.argv[1])))
    main()
