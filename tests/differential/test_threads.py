"""Runs in several threads against the same runs in one: the same answers, ids, traces and errors, in the same order."""

from __future__ import annotations

import itertools
import os
import random
import re
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import augury
from augury.core.clock import Clock
from augury.core.errors import RunError
from augury.core.model import Event, HistoryItem
from augury.core.parallel import in_threads
from augury.engine import batch, found, time_slices
from augury.engine.batch import SlicedModel
from augury.entailment import Model
from augury.program import Program
from augury.sources import History
from augury.storage.guard import Stopped
from tests.differential.test_differential import asked, compiled, once
from tests.generators.programs import STRATEGIES, example, flat

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))
CHAIN = "output found. found(K, X, Y) <- (a(K, X) SEQ b(K, Y)).1s."


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of single events, whatever lies in several."""
    monkeypatch.setattr(time_slices, "LEAST", 1)
    monkeypatch.setattr(time_slices, "COPIES", 0)
    monkeypatch.setattr(batch, "FACTS_APART", 0)
    monkeypatch.setattr(found, "MANY_IDS", 1)


def shown(model: Model) -> tuple[object, ...]:
    """All that a model says of its answers, in order."""
    answers = [(repr(event), event.id, event.trace) for event in model.events]
    return answers, model.errors, [(repr(event), why) for event, why in model.rejected]


def agree(
    program: Program, history: list[HistoryItem], clock: Clock, facts: Any = (), until: int | None = None
) -> bool:
    """Runs in one thread and in several agree, where several are used; whether they are."""
    model = batch.evaluate(program, History.of(history), clock, facts, until, threads=4)
    if not isinstance(model, SlicedModel):
        return False
    expected = shown(batch.evaluate(program, History.of(history), clock, facts, until))
    assert shown(model) == expected
    assert shown(batch.evaluate(program, History.of(history), clock, facts, until, threads=2)) == expected
    return True


def by_output(text: str) -> Iterator[Program]:
    """The programs with one output each: fewer rules have to allow slices."""
    program = compiled(text)
    for output in () if program is None else program.plan.outputs:
        alone = compiled(f"output {output}.\n" + re.sub(r"^output .*$", "", text, flags=re.MULTILINE))
        if alone is not None:
            yield alone


@pytest.mark.usefixtures("tiny")
def test_random_programs() -> None:
    sliced = 0
    for kind, seed in itertools.product(STRATEGIES, range(1500 if FUZZ else 3)):
        text, steps, said = example(kind, f"threads {seed}")
        history = flat(once(steps))
        for program in by_output(text) if any(isinstance(item, Event) for item in history) else ():
            clock = Clock("logical", program.plan.tick or 1_000_000)
            sliced += agree(program, history, clock, asked(program.plan, said))
    assert sliced > 5


# What allows slices, over more events, many of them at the same times.
SLICED = (
    "f(X, Y) <- (a(X) SEQ b(Y)).3s.",
    "f(X) <- (NOT(c(_)).[a(X), b(X)]).4s. g(X, count()) <- i: f(X), w: extend(i, 2s), while w: collect b(_).",
    "f(X, count(), sum(Y)) <- w: every(3s, 1s), while w: collect d(X, Y) TOP 1 BY count() WITH TIES.",
    "f(X, avg(Y), list(Y)) <- w: every(2s), while w: collect d(X, Y).",
    "f(X) <- i: a(X), w: extend(i, 2s), while w: not b(X).",
    "f(X, Y) <- d(X, Y), Y > 0. f(Y, X) <- d(X, Y).",
    "f(X, Z) <- (d(X, Y) AND d(Y, Z)).2s. g(X, max(Z)) <- i: a(X), w: from_end(i, 2s), while w: collect f(X, Z).",
)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("text", SLICED)
def test_what_allows_slices(text: str) -> None:
    program, sliced = augury.compile(text), 0
    for seed in range(200 if FUZZ else 2):
        chance = random.Random(f"threads {seed}")
        history: list[HistoryItem] = []
        for number in range(40):
            end = chance.randrange(30)
            start = end if chance.random() < 0.7 else end - chance.randrange(3)
            type, arity = chance.choice([("a", 1), ("b", 1), ("c", 1), ("d", 2)])
            args: tuple[Any, ...] = tuple(
                chance.choice([0, 1, 1.0, 2, "x"][: 4 if type == "d" else 5]) for _ in range(arity)
            )
            history.append(Event(type, args, start, end, f"e{number}" if chance.random() < 0.2 else ""))
        sliced += agree(program, history, Clock("logical"), until=chance.choice([None, None, 20, 40]))
    assert sliced


@pytest.mark.usefixtures("tiny")
def test_a_result_by_slices_is_that_of_one_thread(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    times = np.arange(400) // 3
    pq.write_table(pa.table({"time": times, "k": times % 7, "x": [f"x{i % 11}" for i in range(400)]}), path)
    text = """tick 1s. event a(k: int, x: string).
        f(K, X, Y) <- (a(K, X) SEQ a(K, Y)).8. g(X, count()) <- w: every(9), while w: collect f(_, X, _)."""

    def run(threads: int) -> augury.Result:
        return augury.run(text, {"a": augury.read(str(path))}, clock="logical", threads=threads)

    one, several = run(1), run(3)
    assert isinstance(several.model, SlicedModel) and len(several["f"]) > 400
    assert several.to_arrow().equals(one.to_arrow())
    assert list(several) == list(one)
    event = one["g"][5]
    assert repr(several.why(event)) == repr(one.why(event))
    assert several.errors == one.errors == {}


@pytest.mark.usefixtures("tiny")
def test_rows_that_cannot_be_computed_are_counted_once() -> None:
    program = augury.compile("f(X, Z) <- (a(X) SEQ a(Y)).5s WHERE Z = X / Y.")
    events = [Event("a", (i % 3,), i) for i in range(60)]
    one, several = (augury.run(program, events, clock="logical", threads=threads) for threads in (1, 2))
    assert one.errors and several.errors == one.errors
    assert several.to_arrow().equals(one.to_arrow())


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_limit_of_time_is_that_of_every_thread(threads: int) -> None:
    events = [Event(type, (1, i), i) for i in range(90) for type in ("a", "b")]
    with pytest.raises(RunError, match="takes longer than 0 s for one step; the step is undone"):
        augury.run(CHAIN, events, clock="logical", limits={"time": 0}, threads=threads)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("options", [{"limits": {"rows": 10_000}}, {"retention": "1h"}, {"as_of": 50}, {"threads": 1}])
def test_what_counts_the_whole_run_has_one_thread(options: dict[str, Any]) -> None:
    events = [Event(type, (1, i), i) for i in range(90) for type in ("a", "b")]
    result = augury.run(CHAIN, events, clock="logical", **{"threads": 3, **options})
    assert not isinstance(result.model, SlicedModel) and len(result)


def test_few_events_start_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(batch, "in_threads")
    events = [Event(type, (1, i), i) for i in range(90) for type in ("a", "b")]
    assert len(augury.run(CHAIN, events, clock="logical", threads=8)) == 89


@pytest.mark.parametrize("threads", [0, 1.5, True, "2"])
def test_threads_are_a_number(threads: Any) -> None:
    with pytest.raises(RunError, match="not a number of threads"):
        augury.run(CHAIN, [], clock="logical", threads=threads)


def test_a_session_refuses_threads() -> None:
    with pytest.raises(RunError, match="a session runs in one thread"):
        augury.compile(CHAIN).session(clock="logical", threads=2)


# Threads


@pytest.mark.parametrize("fails", [0, 1, 2])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_all_pieces(fails: int, error: type[BaseException]) -> None:
    stopped, left = threading.Event(), list[int]()

    def piece(number: int) -> int:
        if number == fails:
            raise error(number)
        assert stopped.wait(60)
        left.append(number)
        return number

    with pytest.raises(error, match=str(fails)):
        in_threads([partial(piece, number) for number in range(3)], stopped.set)
    assert sorted(left) == sorted({0, 1, 2} - {fails})


def test_a_run_that_is_stopped_ends() -> None:
    program = augury.compile(CHAIN)
    run = batch.BatchRun(program, clock=Clock("logical"))
    run.circuit.tables.guard.stop()
    with pytest.raises(Stopped):
        run.push([Event("a", (1, 1), 1)])


def test_results_of_pieces_are_in_order() -> None:
    assert in_threads([partial(int, number) for number in range(5)], lambda: None) == [0, 1, 2, 3, 4]
