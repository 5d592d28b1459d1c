"""What throughput does not say: the wait for one event, memory over a long time, snapshots, and the first answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import augury
from bench import script
from bench.counts import sequences
from bench.measure import Session, Settings, Timing, give, measure, open_session, standing, timed
from bench.patterns import PRELUDE, SEQUENCE
from bench.rows import THROUGHPUT, Row, throughput
from bench.streams import Stream, streams
from bench.workload import Workload, stream_tables

LATENCY_EVENTS = 20_000
WARM_EVENTS = 2_000
OTHER_RULES = 99
MEMORY_EVENTS = 2_000_000
LONG_EVENTS = 10_000_000
MEMORY_PIECE = 100_000
SNAPSHOT_EVENTS = 200_000
ANSWER_EVENTS = 200_000
SAMPLES = 10
BATCHES = (100, 1_000, 10_000, 100_000)
FLAT = 1.05  # what memory may grow from a fifth of the way to the end

FIRST_ANSWER = """
from time import perf_counter
began = perf_counter()
import augury
imported = perf_counter()
session = augury.compile("alarm(P) <- (smoke(P) SEQ heat(P)).5.").session(clock="logical")
session.push({"type": "smoke", "args": ["kitchen"], "time": 1})
changes = session.push({"type": "heat", "args": ["kitchen"], "time": 3})
print(len(changes), imported - began, perf_counter() - began)
"""


def other_rules(number: int) -> str:
    """Rules of the same shape about types that never come."""
    return "".join(
        f"other{i}(K, X, Y, Z) <- (p{i}(K, X, _) SEQ q{i}(K, Y, _) SEQ r{i}(K, Z, _)).1000.\n" for i in range(number)
    )


def latency(settings: Settings) -> Iterator[Row]:
    """P1, one event at a time: alone, and among a hundred rules of which it is the only one concerned."""
    events = min(LATENCY_EVENTS, settings.events)
    stream = streams(max(4 * (events // 4), 4)).abcd
    for case, rules in (("1 rule", SEQUENCE), ("100 rules", SEQUENCE + "\n" + other_rules(OTHER_RULES))):
        session = settings.open(augury.compile(PRELUDE + rules))
        took, found = one_by_one(session, stream)
        warm = took[len(took) * WARM_EVENTS // LATENCY_EVENTS :]
        for series, share in (("median", 50), ("99 %", 99)):
            micros = float(np.percentile(warm, share)) * 1e6
            yield Row("latency", case, series, micros, "µs", len(stream), found, sequences(stream))


def one_by_one(session: Session, stream: Stream) -> tuple[list[float], int]:
    """The seconds that each event took, answers included."""
    took: list[float] = []
    found = 0
    for event in stream.events():
        began = perf_counter()
        found += len(session.push(event))
        took.append(perf_counter() - began)
    return took, found


def batches(settings: Settings) -> Iterator[Row]:
    """P1 by the number of events that are pushed at once."""
    for batch in BATCHES:
        stream = streams(4 * (min(settings.events, 2_000 * batch) // 4)).abcd
        work = Workload(PRELUDE + SEQUENCE, stream_tables(stream, batch), len(stream), sequences(stream))
        yield throughput("batches", f"{batch:,} at once", "augury", work, measure(work, settings))


def answers(settings: Settings) -> Iterator[Row]:
    """P1, its answers counted, and each made into an event, with what it came from, and looked at."""
    stream = streams(4 * (min(settings.events, ANSWER_EVENTS) // 4)).abcd
    work = Workload(PRELUDE + SEQUENCE, stream_tables(stream), len(stream), sequences(stream))
    program = augury.compile(work.text)
    yield throughput("answers", "counted", "augury", work, measure(work, settings))
    runs = [timed(partial(standing, settings.open(program), work.steps)) for _ in range(max(1, settings.repeat))]
    cpu = min(cpu for cpu, _ in runs)
    yield throughput("answers", "looked at", "augury", work, Timing(cpu, 0.0, runs[-1][1]))


def memory(settings: Settings) -> Iterator[Row]:
    """Resident memory over many windows, where lateness is bounded: it must not grow."""
    yield from resident(min(MEMORY_EVENTS, 2 * settings.events))


def memory_long(settings: Settings) -> Iterator[Row]:
    """The same over ten million events, however many were asked for."""
    yield from resident(LONG_EVENTS)


def resident(events: int) -> Iterator[Row]:
    """In a process of its own, so that nothing that ran before hides what is kept."""
    code = f"from bench.extras import long_run; long_run({events})"
    done = subprocess.run(script(code), capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    samples: list[float] = report["megabytes"]
    settled = samples[len(samples) // 5]
    growth = max(samples) / settled
    note = "flat" if growth <= FLAT else f"grows {growth:.2f} times"
    for number, megabytes in enumerate(samples, 1):
        case = f"after {number * events // len(samples):,}"
        yield Row("memory", case, "augury", megabytes, "MB", events, report["answers"], report["expected"], note=note)
    yield Row("memory", "throughput", "augury", events / report["cpu"] / 1000, THROUGHPUT, events)


def long_run(events: int) -> None:
    """Pushes a piece of P1's stream again and again, later and with other keys each time; writes figures as JSON."""
    piece = streams(min(MEMORY_PIECE, events)).abcd
    session = open_session(augury.compile(PRELUDE + SEQUENCE), lateness="1s", revisable=False)
    rounds = max(1, events // len(piece))
    sampled = {max(0, rounds * i // SAMPLES - 1) for i in range(1, SAMPLES + 1)}
    span = len(piece) + 10_000
    report: dict[str, Any] = {"megabytes": [], "answers": 0, "expected": rounds * sequences(piece), "cpu": 0.0}
    for number in range(rounds):
        later = replace(piece, key=piece.key + number * len(piece), time=piece.time + number * span)
        tables = stream_tables(later)
        began = process_time()
        report["answers"] += give(session, tables)
        report["cpu"] += process_time() - began
        if number in sampled:
            report["megabytes"].append(megabytes())
    json.dump(report, sys.stdout)


def megabytes() -> float:
    """What the process holds now; where the system does not say, the most that it held."""
    status = Path("/proc/self/status")
    if status.exists():
        held = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmRSS"))
        return int(held.split()[1]) / 1000
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def snapshot(settings: Settings) -> Iterator[Row]:
    """Half of P1's stream, a snapshot, and the other half in the session that is restored from it."""
    events = 4 * (min(SNAPSHOT_EVENTS, settings.events) // 4)
    stream = streams(events).abcd
    steps = stream_tables(stream, max(1, events // 20))
    program: Any = augury.compile(PRELUDE + SEQUENCE)
    session: Any = open_session(program)
    found = give(session, steps[:10])
    saving, state = best_of(session.snapshot, settings.repeat)
    loading, restored = best_of(lambda: program.restore(state), settings.repeat)
    found += give(restored, steps[10:])
    size = len(state) / 1e6
    for case, seconds in (("snapshot", saving), ("restore", loading)):
        yield Row(
            "snapshot", case, "augury", size / seconds, "MB/s", events, found, sequences(stream), note=f"{size:.1f} MB"
        )


def best_of(work: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    """Wall time: saving and loading are waited for."""
    results = []
    for _ in range(max(1, repeat)):
        began = perf_counter()
        made = work()
        results.append((perf_counter() - began, made))
    return min(seconds for seconds, _ in results), results[-1][1]


def start(settings: Settings) -> Iterator[Row]:
    """A new process: until `import augury` is done, until the first answer, and as a whole."""
    times: list[tuple[float, float, float]] = []
    answers = 0
    for _ in range(1 + settings.repeat):  # the first run may have to compile and to write caches
        began = perf_counter()
        done = subprocess.run([sys.executable, "-c", FIRST_ANSWER], capture_output=True, text=True, check=True)
        whole = perf_counter() - began
        found, imported, answered = done.stdout.split()
        answers = int(found)
        times.append((float(imported), float(answered), whole))
    for case, place in (("import augury", 0), ("first answer", 1), ("whole process", 2)):
        least = min(row[place] for row in times)
        note = f"first time {1000 * times[0][place]:.0f} ms"
        yield Row("start", case, "augury", 1000 * least, "ms", 2, answers, 1, note=note)


EXPERIMENTS = {
    "latency": latency,
    "batches": batches,
    "answers": answers,
    "snapshot": snapshot,
    "start": start,
    "memory": memory,
}
LONG = {"memory-long": memory_long}
