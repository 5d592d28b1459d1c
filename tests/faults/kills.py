"""Kills of `augury stream` at random moments, seen by one who follows its folder file by file; and of changes of its state.

python -m tests.faults.kills [streams|changes] [COUNT [SEED]]
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from augury.engine.saved.envelope import FORMAT
from augury.spark.checkpoint_files import sealed, unsealed

RULES = """\
event wind(place: string, speed: float).
event fire(place: string).
rise(P, W2 - W1) <- (wind(P, W1) SEQ wind(P, W2)).60s WHERE W2 > W1 + 3.
alarm(P, D) <- (rise(P, D) SEQ fire(P)).60s.
calm(P) <- w: wind(P, W), s: extend(w, 20s), while s: not fire(P).
output alarm, calm.
"""
Answer = tuple[Any, ...]
END = {"type": "fire", "place": "nowhere", "time": 10_000_000}  # all that was open is settled then
VICTIMS = ("run", "java", "worker", "all")  # who is killed: the run alone, what it needs, or everything
_LINES = 10  # of a file
_PATIENCE = 300.0  # seconds that a stream may take for its first batch


def kill_streams(count: int, seed: int) -> tuple[int, int]:
    """Kills a stream that often, each time starting it again; gives how many kills there were, and how many had a fault.

    A fault is an answer that the follower, who reads each file once as it appears, saw twice or saw wrong; answers that
    are missing in the end are one more.
    """
    with tempfile.TemporaryDirectory(prefix="augury-kills-", ignore_cleanup_errors=True) as folder:
        return _Trial(Path(folder), random.Random(seed)).run(count)


def kill_changes(count: int, seed: int) -> tuple[int, int]:
    """Kills rescales, upgrades and backfills that often; gives how many kills there were, and how many had a fault."""
    with tempfile.TemporaryDirectory(prefix="augury-kills-", ignore_cleanup_errors=True) as folder:
        return _Changes(Path(folder), random.Random(seed)).run(count)


@dataclass
class Follower(threading.Thread):
    """Reads each file of a folder once, as soon as it is there. It knows of no names but those that end as data does."""

    folder: Path
    names: set[str] = field(default_factory=set)
    answers: list[Answer] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        while not self.over.wait(0.005):
            self.look()

    def look(self) -> None:
        for home, _, files in os.walk(self.folder):
            for path in (os.path.join(home, name) for name in files if name.endswith(".json")):
                if path not in self.names:
                    self.names.add(path)
                    self._read(path)

    def _read(self, path: str) -> None:
        try:
            self.answers += [_content(json.loads(line)) for line in Path(path).read_text().splitlines()]
        except (OSError, ValueError, KeyError) as error:
            self.broken.append(f"{path}: {error}")

    @property
    def doubled(self) -> int:
        return len(self.answers) - len(set(self.answers))


@dataclass
class _Trial:
    """One stream with many lives."""

    home: Path
    chance: random.Random
    events: list[dict[str, object]] = field(default_factory=list)
    files: int = 0
    lives: int = 0
    hung: int = 0

    def run(self, count: int) -> tuple[int, int]:
        (self.home / "rules.aug").write_text(RULES)
        (self.home / "in").mkdir()
        follower = Follower(self.home / "out")
        follower.start()
        failed = 0
        for _ in range(count):
            before = follower.doubled + len(follower.broken) + self.hung
            self._live_and_die(follower)
            failed += follower.doubled + len(follower.broken) + self.hung > before
        before = follower.doubled + len(follower.broken)
        self._arrive(1)
        self.events.append(END)
        self._file([END])
        subprocess.run([*self._command(), "--trigger", "once"], cwd=self.home, check=True, stdout=subprocess.DEVNULL)
        follower.over.set()
        follower.join()
        follower.look()
        seen, wanted = Counter(follower.answers), Counter(self._expected())
        for what, found in (("lost", wanted - seen), ("doubled or wrong", seen - wanted)):
            if found:
                sys.stderr.write(f"{what}: {dict(found)}\n")
        for text in follower.broken:
            sys.stderr.write(f"broken: {text}\n")
        # What the last run brought to light is a fault of the last kill.
        failed += seen != wanted and (failed == 0 or follower.doubled + len(follower.broken) > before)
        return count, min(failed, count)

    def _live_and_die(self, follower: Follower) -> None:
        """Starts the stream, gives it something to do, and kills it at a moment of chance.

        Half of the time that is just after a file has appeared, before Spark can have committed its batch. It dies alone, or
        with its Java process; or only that dies, or only a Python worker: then it ends by itself, or goes on.
        """
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        with (self.home / "log").open("w") as log:
            run = subprocess.Popen(
                [*self._command(), "--trigger", "100ms"], cwd=self.home, stdout=log, stderr=log, env=environment,
                start_new_session=True,
            )  # fmt: skip
        at_once, victim = self.chance.random() < 0.5, VICTIMS[self.lives % len(VICTIMS)]
        self.lives += 1
        try:
            # A life after a kill begins with the batch that was broken off: at times it dies in that one.
            commits = self._commits() + self.chance.choice([0, 0, 1])
            self._wait(run, lambda: self._commits() > commits)
            seen = len(follower.names)
            if at_once:
                self._wait(run, lambda: len(follower.names) > seen)
            else:
                until = time.monotonic() + self.chance.uniform(0, 3)
                self._wait(run, lambda: time.monotonic() > until)
        finally:
            if run.poll() is not None:
                raise RuntimeError(f"the stream ended by itself: {(self.home / 'log').read_text()}")
            if victim in ("java", "worker"):
                self._lose(run, victim)
            if victim == "run":
                run.kill()
            else:
                with suppress(ProcessLookupError):
                    os.killpg(run.pid, signal.SIGKILL)  # the session is its own: its Java process and workers are in it
            run.wait()

    def _lose(self, run: subprocess.Popen[bytes], victim: str) -> None:
        """Kills a process that the stream needs. It has to end by itself, or to go on; to do neither is a fault."""
        for process in _processes(run.pid, victim)[:1]:
            os.kill(process, signal.SIGKILL)
        commits, until = self._commits(), time.monotonic() + _PATIENCE
        while run.poll() is None and self._commits() < commits + 2:
            if time.monotonic() > until:
                sys.stderr.write(f"the stream hangs without its {victim}: {(self.home / 'log').read_text()[-2000:]}\n")
                self.hung += 1
                return
            self._arrive(1)
            time.sleep(1)

    def _wait(self, run: subprocess.Popen[bytes], done: Callable[[], bool]) -> None:
        until, fed = time.monotonic() + _PATIENCE, -1
        while not done() and run.poll() is None:
            if time.monotonic() > until:
                raise RuntimeError(f"the stream does nothing: {(self.home / 'log').read_text()}")
            if self._commits() != fed:  # the next lines come once the last ones are done
                fed = self._commits()
                self._arrive(self.chance.randint(1, 3))
            time.sleep(0.005)

    def _commits(self) -> int:
        """How many batches are committed. Spark keeps the names of the last ones only, which are their numbers."""
        names = (self.home / "cp" / "spark" / "commits").glob("[0-9]*")
        return max((int(path.name) + 1 for path in names if path.name.isdigit()), default=0)

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "augury", "stream", "rules.aug", "--events", "in/*.jsonl", "--checkpoint", "cp",
                "--output", "out", "--lateness", "40s", "--buckets", "2", "--master", "local[2]"]  # fmt: skip

    def _arrive(self, files: int) -> None:
        """Some files of wind and fire, a second apart."""
        for _ in range(files):
            made: list[dict[str, object]] = []
            for n in range(len(self.events), len(self.events) + _LINES):
                place = f"l{self.chance.randrange(4)}"
                if self.chance.random() < 0.2:
                    made.append({"type": "fire", "place": place, "time": n})
                else:
                    made.append({"type": "wind", "place": place, "speed": self.chance.randrange(20) / 2, "time": n})
            self.events += made
            self._file(made)

    def _file(self, lines: list[dict[str, object]]) -> None:
        part = self.home / f"{self.files:06d}.part"
        part.write_text("".join(json.dumps(line) + "\n" for line in lines))
        part.rename(self.home / "in" / f"{self.files:06d}.jsonl")
        self.files += 1

    def _expected(self) -> list[Answer]:
        """The answer by the embedded engine."""
        path = self.home / "all.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in self.events))
        run = [sys.executable, "-m", "augury", "run", "rules.aug", "--events", str(path), "--engine", "embedded", "--format", "jsonl"]  # fmt: skip
        told = subprocess.run(run, cwd=self.home, check=True, capture_output=True, text=True).stdout
        return [_content(json.loads(line)) for line in told.splitlines()]


@dataclass
class _Changes(_Trial):
    """A stream that begins with a history, and whose state is changed again and again; each change is killed at some moment."""

    def run(self, count: int) -> tuple[int, int]:
        (self.home / "rules.aug").write_text(RULES)
        (self.home / "in").mkdir()
        self._arrive(4)
        (self.home / "in").rename(self.home / "history")
        (self.home / "in").mkdir()
        follower = Follower(self.home / "out")
        follower.start()
        tried = 0
        while tried < count:
            if self._die(self._change(tried)):
                tried += 1
            if self.chance.random() < 0.3:
                self._arrive(1)
        self.events.append(END)
        self._file([END])
        self._resume()
        self._finish(["checkpoint", "verify", "cp"])
        follower.over.set()
        follower.join()
        follower.look()
        seen, wanted = Counter(follower.answers), Counter(self._expected())
        for what, wrong in (("lost", wanted - seen), ("doubled or wrong", seen - wanted)):
            if wrong:
                sys.stderr.write(f"{what}: {dict(wrong)}\n")
        return tried, min(tried, sum((wanted - seen).values()) + sum((seen - wanted).values()) + len(follower.broken))

    def _change(self, number: int) -> list[str]:
        """What is to be killed: the backfill until it is over, then rescales and upgrades in turn."""
        saved = self.home / "cp" / "augury.json"
        if number < 3 or not saved.exists():
            return [*self._stream(), "--backfill", "history"]
        if number % 3 == 2:
            said = unsealed(saved, {"rules"})
            saved.write_bytes(sealed({**said, "state_format": 5}))
            return ["checkpoint", "upgrade", "cp", "--master", "local[2]"]
        buckets = self.chance.choice([n for n in (1, 2, 3) if n != unsealed(saved, {"rules"})["buckets"]])
        return ["checkpoint", "rescale", "cp", "--buckets", str(buckets), "--master", "local[2]"]

    def _stream(self) -> list[str]:
        return ["stream", "rules.aug", "--events", "in/*.jsonl", "--checkpoint", "cp", "--output", "out", "--lateness", "40s",
                "--trigger", "once", "--master", "local[2]"]  # fmt: skip

    def _die(self, command: list[str]) -> bool:
        """Kills a command, half of the time just after it has written something that counts; whether it could be killed."""
        with (self.home / "log").open("w") as log:
            run = subprocess.Popen(
                [sys.executable, "-m", "augury", *command],
                cwd=self.home,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        written, before = self._written(), self._written()
        changes, until = self.chance.randint(1, 6), time.monotonic() + _PATIENCE
        while run.poll() is None and changes and time.monotonic() < until:
            time.sleep(0.005)
            written, before = self._written(), written
            changes -= written != before
        until = time.monotonic() + self.chance.choice([0, 0, 0.05, 0.5])
        while run.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        killed = run.poll() is None
        if killed:
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
        code, said = run.wait(), (self.home / "log").read_text()
        if not killed and code:
            if "was broken off before its end" not in said:
                raise RuntimeError(f"the change failed: {said}")
            self._resume()
        return killed

    def _resume(self) -> None:
        """Runs the stream over all that is there, whose state is of this version, whatever was written into its checkpoint."""
        saved = self.home / "cp" / "augury.json"
        if saved.exists():
            saved.write_bytes(sealed({**unsealed(saved, {"rules"}), "state_format": FORMAT}))
        self._finish([*self._stream(), "--backfill", "history"])

    def _written(self) -> tuple[object, ...]:
        """What has been written that decides which state counts: what the checkpoint says, its logs, its states and answers."""
        folder, logs = self.home / "cp", list[str]()
        for name in ("spark*/offsets/[0-9]*", "spark*/commits/[0-9]*", "spark*/state/*", "output/*", "../out/*"):
            logs += [str(path) for path in folder.glob(name)]
        saved = folder / "augury.json"
        return saved.stat().st_mtime_ns if saved.exists() else 0, *sorted(logs)

    def _finish(self, command: list[str]) -> None:
        done = subprocess.run([sys.executable, "-m", "augury", *command], cwd=self.home, capture_output=True, text=True, check=False)  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed: {done.stderr}")


def _processes(session: int, kind: str) -> list[int]:
    """The Java process of a session, or its Python workers: those that their daemon has forked."""
    found: dict[int, tuple[int, str]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            fields = (path / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == session:
                found[int(path.name)] = (int(fields[1]), (path / "cmdline").read_text().replace("\0", " "))
    if kind == "java":
        return [number for number, (_, command) in found.items() if "java" in command.split(" ")[0]]
    daemons = {number for number, (_, command) in found.items() if "daemon" in command and "java" not in command}
    return [number for number, (parent, _) in found.items() if parent in daemons]


def _content(answer: dict[str, Any]) -> Answer:
    """An answer without its trace, which may be any of several; 4 and 4.0 are the same."""
    return (answer["type"], *answer["args"], answer["start"], answer["end"], answer["id"])


if __name__ == "__main__":
    names = [text for text in sys.argv[1:] if not text.isdecimal()]
    numbers = [int(text) for text in sys.argv[1:] if text.isdecimal()]
    kill = kill_changes if names == ["changes"] else kill_streams
    tried, failed = kill(numbers[0] if numbers else 10, numbers[1] if len(numbers) > 1 else 0)
    sys.stdout.write(f"kills of {names[0] if names else 'streams'}: {tried} tried, {failed} failed\n")
    sys.exit(failed > 0)
