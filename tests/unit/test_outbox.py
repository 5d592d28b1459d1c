"""A batch appears once and whole, wherever the run that writes it is killed: at every step that it takes on the disk."""

from __future__ import annotations

import errno
import inspect
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from augury.core.errors import DataError, RunError
from augury.spark.lock import held
from augury.spark.outbox import Outbox, Write

_attempts = count()
_STEPS = ("rename", "replace", "fsync", "mkdir", "unlink", "rmdir", "ftruncate")


class Killed(BaseException):
    """What a kill is in these tests."""


@contextmanager
def before_each_step(hook: Callable[[str, tuple[Any, ...]], None]) -> Iterator[None]:
    """Calls the hook before all that changes a file system."""
    kept: list[tuple[Any, str, Any]] = [(os, name, getattr(os, name)) for name in _STEPS]
    kept.append((shutil, "copyfile", shutil.copyfile))

    def hooked(name: str, real: Any) -> Any:
        def step(*args: Any, **named: Any) -> Any:
            hook(name, args)
            return None if name == "fsync" else real(*args, **named)  # processes die here, disks do not

        return step

    try:
        for where, name, real in kept:
            setattr(where, name, hooked(name, real))
        yield
    finally:
        for where, name, real in kept:
            setattr(where, name, real)


def writer(*rows: str) -> Write:
    """Writes as Spark does: names that are others each time, checksums, and in any order."""

    def write(url: str) -> None:
        folder = Path(url.removeprefix("file://"))
        folder.mkdir(parents=True)
        attempt = next(_attempts)
        turned = rows if attempt % 2 else tuple(reversed(rows))
        for n, row in enumerate(turned):
            (folder / f"part-{n:05d}-{attempt}-c000.json").write_text(row + "\n")
            (folder / f".part-{n:05d}-{attempt}-c000.json.crc").write_text("crc")
        (folder / "_SUCCESS").write_text("")

    return write


@dataclass
class Follower:
    """Reads each file once, as soon as it is there; a greedy one takes it away."""

    folder: Path
    greedy: bool
    seen: dict[str, str] = field(default_factory=dict)
    rows: list[str] = field(default_factory=list)

    def look(self) -> None:
        for path in self.folder.rglob("*.json"):
            text, name = path.read_text(), str(path)
            if name in self.seen and not self.greedy:
                assert self.seen[name] == text, f"{name} has changed"
                continue
            self.seen[name] = text
            self.rows += text.splitlines()
            if self.greedy:
                path.unlink()


BATCHES: dict[int, dict[str, tuple[str, ...]]] = {
    3: {"output": ("a", "b"), "late": ("x",)},
    4: {"output": ("c",)},
    6: {"late": ("y",)},
}
WANTED = ["a", "b", "c", "x", "y"]
FILES = {
    "out/batch=3/part-00000.json", "out/batch=3/part-00001.json", "out/batch=4/part-00000.json",
    "late/batch=3/part-00000.json", "late/batch=6/part-00000.json",
}  # fmt: skip


@dataclass
class Run:
    """A run that is killed once, `left` steps from now; its follower looks before each step."""

    home: Path
    follower: Follower
    elsewhere: bool
    left: int
    looking: bool = False

    def step(self, name: str, args: tuple[Any, ...]) -> None:
        if self.looking:  # a greedy follower changes the file system, too
            return
        self.looking = True
        self.follower.look()
        self.looking = False
        if self.elsewhere and name == "rename" and Path(args[0]).is_dir():
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        self.left -= 1
        if self.left == -1:
            raise Killed

    def go(self) -> None:
        """From the first batch that is not committed."""
        committed = self.home / "committed"
        done = int(committed.read_text()) if committed.exists() else -1
        places = {name: str(self.home / "to" / folder) for name, folder in (("output", "out"), ("late", "late"))}
        box = Outbox(self.home / "cp" / "output", places)
        with before_each_step(self.step):
            box.recover()
            for number, parts in BATCHES.items():
                if number > done:
                    box.deliver(number, {name: writer(*rows) for name, rows in parts.items()})
                    self.step("commit", ())
                    committed.write_text(str(number))


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_killed_at_every_step(tmp_path: Path, elsewhere: bool, greedy: bool) -> None:
    """Killed once at each step in turn, and started again: whoever follows sees each row once."""
    for step in count():
        home = tmp_path / str(step)
        follower = Follower(home / "to", greedy)
        run = Run(home, follower, elsewhere, step)
        try:
            run.go()
        except Killed:
            run.go()
        follower.look()
        assert sorted(follower.rows) == WANTED, f"killed at step {step}"
        names = {str(p.relative_to(home / "to")) for p in (home / "to").rglob("*") if p.is_file()}
        assert names == (set() if greedy else FILES)
        assert [p.name for p in (home / "cp" / "output").iterdir()] == ["ready.json"]
        if run.left >= 0:
            assert step > 30
            break


def test_outbox_on_another_file_system(tmp_path: Path) -> None:
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one file system only")
    place = shm / f"augury-{os.getpid()}"
    try:
        box = Outbox(tmp_path / "cp", {"output": str(place)})
        box.recover()
        box.deliver(0, {"output": writer("a", "b")})
        assert sorted(p.name for p in (place / "batch=0").iterdir()) == ["part-00000.json", "part-00001.json"]
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_an_attempt_that_failed_is_written_again(tmp_path: Path) -> None:
    """As where a task failed: nothing was seen of it."""
    box = Outbox(tmp_path / "cp", {"output": str(tmp_path / "out")})
    box.recover()

    def broken(url: str) -> None:
        writer("half")(url)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        box.deliver(0, {"output": broken})
    assert not (tmp_path / "out").exists()
    box.deliver(0, {"output": writer("whole")})
    assert (tmp_path / "out/batch=0/part-00000.json").read_text() == "whole\n"


def test_a_place_elsewhere_is_written_once_it_is_noted(tmp_path: Path) -> None:
    """On object stores there is no moving: what is written is told, and not told again."""
    told: list[str] = []
    for _ in range(2):
        box = Outbox(tmp_path / "cp", {"output": "s3a://shop/out/"})
        box.recover()
        box.deliver(7, {"output": told.append})
    assert told == ["s3a://shop/out/batch=7"]


def test_the_output_may_be_moved(tmp_path: Path) -> None:
    """A batch that could not be moved goes to the place that the next run has."""
    (tmp_path / "file").write_text("")
    box = Outbox(tmp_path / "cp", {"output": str(tmp_path / "file" / "out")})
    box.recover()
    with pytest.raises(DataError, match="file/out: cannot be written: Not a directory"):
        box.deliver(0, {"output": writer("a")})
    box = Outbox(tmp_path / "cp", {"output": str(tmp_path / "out")})
    box.recover()
    box.deliver(0, {"output": writer("a")})
    assert (tmp_path / "out/batch=0/part-00000.json").read_text() == "a\n"


@dataclass
class Full:
    """A disk that is full once, `left` steps from now; what Spark does on it does not count."""

    left: int
    told: bool = False

    def step(self, name: str, args: tuple[Any, ...]) -> None:
        if any(frame.function == "write" for frame in inspect.stack(0)):
            return
        self.left -= 1
        if self.left == -1:
            self.told = True
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_full_disk_is_reported(tmp_path: Path) -> None:
    """Whatever step the disk is full at, the error says so and where; once there is room, the batch appears once."""
    for step in count():
        home, disk = tmp_path / str(step), Full(step)
        said = ""
        try:
            with before_each_step(disk.step):
                deliver_one(home)
        except DataError as error:
            said = str(error)
        assert disk.told == said.startswith(f"{home}/") == ("cannot be written: No space left on device" in said)
        if not disk.told:
            assert step > 8
            break
        deliver_one(home)
        assert (home / "out/batch=0/part-00000.json").read_text() == "a\n"


def deliver_one(home: Path) -> None:
    box = Outbox(home / "cp", {"output": str(home / "out")})
    box.recover()
    box.deliver(0, {"output": writer("a")})


def test_a_note_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "ready.json").write_text("{")
    with pytest.raises(RunError, match=r"ready\.json is not JSON"):
        Outbox(tmp_path, {}).recover()


# The lock


def test_a_checkpoint_is_for_one_run(tmp_path: Path) -> None:
    with held(tmp_path / "cp") as log:
        assert log.path == tmp_path / "cp" / "spark.log"
        with pytest.raises(RunError, match=f"another run uses the checkpoint .*cp: process {os.getpid()} on "), held(tmp_path / "cp"):  # fmt: skip
            pass
    (tmp_path / "cp" / "lock").write_text('{"pid": 1, "host": "here"}')  # of a process that has ended
    with held(tmp_path / "cp"):
        pass


def test_the_jvm_of_a_dead_run_is_waited_for(tmp_path: Path) -> None:
    import fcntl

    with (tmp_path / "spark.log").open("w") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        with pytest.raises(RunError, match="the Java process of another run still uses"), held(tmp_path, patience=0):
            pass
    with held(tmp_path, patience=0):
        pass


@pytest.mark.parametrize("place", ["file/cp", "/proc/augury"])
def test_a_checkpoint_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written: "), held(tmp_path / place):
        pass
