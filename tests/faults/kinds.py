"""The kinds of faults, and how many of each."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import augury
from augury.core.errors import AuguryError, RunError
from augury.core.model import Event
from augury.spark.starting import problem as spark_problem
from tests.faults.injected import injected
from tests.faults.kills import kill_changes, kill_streams
from tests.generators import malformed
from tests.unit import test_malformed, test_snapshots, test_state, test_threads

Trials = Iterator[str | None]  # of each trial what went wrong


@dataclass(frozen=True)
class Fault:
    """`many` trials in `make faults`, `few` in the tests."""

    make: Callable[[int, int], Trials]
    many: int
    few: int


def flipped_bits(count: int, seed: int) -> Trials:
    """One bit of a snapshot is another: one clear error, and nothing is restored."""
    said = None
    try:
        for text in test_snapshots.bit_flips(count, seed):
            said = said or text
            yield None if text == said else f"another message: {text}"
    except BaseException as error:  # restored, or not our error
        yield f"{type(error).__name__}: {error}"


def flipped_bits_of_checkpoints(count: int, seed: int) -> Trials:
    """One bit of the checkpoint of a stream is another: one clear error."""
    try:
        for code in test_state.bit_flips(count, seed):
            yield None if code in ("S101", "S102") else f"another code: {code}"
    except BaseException as error:  # resumed, or not our error
        yield f"{type(error).__name__}: {error}"


def forged_snapshots(count: int, seed: int) -> Trials:
    """A snapshot with a right digest and a wrong state: refused, or it stays within its tables."""
    for held in test_snapshots.forgeries(count, seed):
        yield None if held else "a refusal without a code or a hint"


def killed_saves(count: int, seed: int) -> Trials:
    """A process is killed while it saves: the file is whole, and not older than what was reported."""
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(count):
            good = test_snapshots.killed_saves(Path(folder) / "state", 1)
            yield None if good else "a file that is not whole, or too old"


_PUSH = """
import sys, augury
from augury.core.model import Event
program = augury.compile("p(X) <- (a(X) SEQ b(X)).10.")
session = program.session(clock="logical")
session.push([Event("ab"[i % 2], (i % 7,), i) for i in range(200)])
session.save(sys.argv[1])
"""


def full_disks(count: int, seed: int) -> Trials:
    """There is room for some bytes only: an error, the exit code says so, and what was there before is still there."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "p.aug").write_text("p(X) <- (a(X) SEQ b(X)).10.")
        lines = "".join(f"{'ab'[i % 2]},{i % 7},{i}\n" for i in range(4000))
        (folder / "e.csv").write_text("type,x,time\n" + lines)
        for number in range(count):
            form = ("jsonl", "csv", "arrow", "save")[number % 4]
            target = folder / f"out.{form}"
            target.write_bytes(b"before")
            room = chance.randrange(0, 3000)
            if form == "save":
                command = [sys.executable, "-c", _PUSH, str(target)]
            else:
                where = ["--output", str(target)] if form != "jsonl" else []
                command = [sys.executable, "-m", "augury", "run", str(folder / "p.aug"), "--events", str(folder / "e.csv"), "--engine", "embedded", *where]  # fmt: skip
            with open(folder / "stdout", "wb") as out:
                done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False,
                                      preexec_fn=partial(_limit_files, room), env={**os.environ, "PYTHONUNBUFFERED": "1"})  # fmt: skip
            if done.returncode == 0:
                yield f"{form} with room for {room} bytes: it says that all went well"
            elif "Traceback" in done.stderr and form != "save":
                yield f"{form} with room for {room} bytes: {done.stderr[-300:]}"
            elif form == "save" and target.read_bytes() != b"before":
                yield f"a save with room for {room} bytes: the old file is gone"
            else:
                yield None


def _limit_files(room: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))


def poisoned_rows(count: int, seed: int) -> Trials:
    """A wrong row of every kind in every form: an error of its own line, and the rest goes on where it is skipped."""
    cases = [
        (fault, form) for fault in malformed.FAULTS for form in malformed.FORMS.values() if malformed.holds(form, fault)
    ]
    random.Random(seed).shuffle(cases)
    with tempfile.TemporaryDirectory() as name:
        for number in range(count):
            fault, form = cases[number % len(cases)]
            try:
                test_malformed.test_malformed_row_is_named(fault, form, Path(name))
                yield None
            except BaseException as error:
                yield f"{fault.name} in {form.name}: {type(error).__name__}: {error}"


def killed_streams(count: int, seed: int) -> Trials:
    """A stream is killed at any moment and started again: whoever follows its folder sees each answer once, and right."""
    if spark_problem() is not None:
        return
    tried, failed = kill_streams(count, seed)
    yield from (None if number >= failed else "an answer lost, doubled or wrong" for number in range(tried))


def killed_changes(count: int, seed: int) -> Trials:
    """A rescale, an upgrade or a backfill of a stream is killed at any moment: the state is the old one or the new one."""
    if spark_problem() is not None:
        return
    tried, failed = kill_changes(count, seed)
    yield from (None if number >= failed else "an answer lost, doubled or wrong" for number in range(tried))


def racing_threads(count: int, seed: int) -> Trials:
    """Others look at a session while one thread tells it: its answers are what they are alone."""
    chance, program = random.Random(seed), augury.compile(test_threads.PROGRAM)
    alone = {late: test_threads.told(program.session(clock="logical", lateness=late)) for late in (None, "8s")}
    usual = sys.getswitchinterval()
    for _ in range(count):
        late = chance.choice([None, "8s"])
        session, done = program.session(clock="logical", lateness=late), threading.Event()
        looks = [chance.choice(list(test_threads.LOOKS.values())) for _ in range(3)]

        def watch(look: Any, session: Any = session, done: threading.Event = done) -> None:
            while not done.is_set():
                with suppress(RunError):  # an event that was taken back since
                    look(session)
                time.sleep(1e-4)

        watchers = [threading.Thread(target=watch, args=(look,)) for look in looks]
        sys.setswitchinterval(chance.choice([1e-6, 1e-5, 1e-4]))
        for one in watchers:
            one.start()
        try:
            found = test_threads.told(session)
        finally:
            done.set()
            for one in watchers:
                one.join()
            sys.setswitchinterval(usual)
        yield None if found == alone[late] else "other answers than alone"


def exceeded_limits(count: int, seed: int) -> Trials:
    """Some steps go beyond a limit: they are undone, and the others have the answers that they have without them."""
    chance = random.Random(seed)
    program = augury.compile("p(X, Y) <- (a(X) AND b(Y)).20.\nq(X) <- o: a(X), w: extend(o, 5s), while w: not b(X).")
    for _ in range(count):
        limit = chance.choice(["pairs", "rows", "answers", "bytes"])
        most = chance.randrange(20, 400) * (200 if limit == "bytes" else 1)
        session, free = (program.session(clock="logical", limits=given) for given in ({limit: most}, None))
        refused, wrong = 0, None
        for number in range(25):
            size = chance.choice([1, 3, 40])
            step = [Event(chance.choice("ab"), (chance.randrange(4),), number * 3 + i // 8) for i in range(size)]
            try:
                found = [(c.op, c.event.content) for c in session.push(step)]
            except AuguryError as error:
                refused += 1
                wrong = wrong or (None if "undone" in str(error) else str(error))
                continue
            if found != [(c.op, c.event.content) for c in free.push(step)]:
                wrong = wrong or f"other changes with {limit}={most}"
        if [e.content for e in session.events()] != [e.content for e in free.events()]:
            wrong = wrong or f"other answers with {limit}={most}"
        yield wrong


def raising_callbacks(count: int, seed: int) -> Trials:
    """Functions of the user raise: all of them are called with everything, the caller gets the changes and what was raised."""
    chance = random.Random(seed)
    program = augury.compile("p(X) <- a(X).\nq(X) <- a(X) SEQ b(X).")
    for _ in range(count):
        heard: dict[str, list[Any]] = {"p": [], "p again": [], "q": [], "late": [], "goal": []}
        raised = [0]

        def hear(name: str, item: Any, heard: Any = heard, raised: Any = raised) -> None:
            heard[name].append(item)
            if chance.random() < 0.4:
                raised[0] += 1
                raise ValueError(name)

        session = program.session(clock="logical", lateness="3s", late=partial(hear, "late"))
        for name in ("p", "p again", "q"):
            session.on(name[0], partial(hear, name))
        session.on_goal("q", 0.5, partial(hear, "goal"))
        told: dict[str, list[Any]] = {"p": [], "q": []}
        caught, late = 0, 0
        for number in range(12):
            step = [
                Event(chance.choice("ab"), (chance.randrange(3),), 4 * number + chance.randint(-5, 3)) for _ in range(5)
            ]
            try:
                changes = session.push(step)
            except augury.CallbackErrors as error:
                changes = error.changes
                caught += len(error.exceptions)
            for change in changes:
                told[change.event.type].append(change)
            late = session.stats()["late"]
        same = heard["p"] == heard["p again"] == told["p"] and heard["q"] == told["q"]
        yield None if same and caught == raised[0] and len(heard["late"]) == late else "something was not delivered"


FAULTS = {
    "faults inside steps": Fault(injected, 3000, 40),
    "callbacks that raise": Fault(raising_callbacks, 300, 10),
    "flipped bits": Fault(flipped_bits, 2000, 40),
    "flipped bits of checkpoints": Fault(flipped_bits_of_checkpoints, 2000, 20),
    "forged snapshots": Fault(forged_snapshots, 2000, 5),
    "killed saves": Fault(killed_saves, 40, 1),
    "killed streams": Fault(killed_streams, 12, 0),
    "killed changes": Fault(killed_changes, 12, 0),
    "full disks": Fault(full_disks, 40, 2),
    "poisoned rows": Fault(poisoned_rows, 1000, 10),
    "racing threads": Fault(racing_threads, 60, 1),
    "exceeded limits": Fault(exceeded_limits, 200, 3),
}
