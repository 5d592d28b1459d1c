"""Figures over time: each recorded run is a file in `bench/history/`, with what a fixed kernel took in the same run.

Machines differ, and the same one is slower when it is shared, so figures are compared by the CPU time of that kernel: a run in
which everything takes twice as long is no step back.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from augury.pictures.picture import Picture
from augury.pictures.plots import MARKERS, PALETTE, figure, picture_of, style
from bench.measure import best
from bench.report import machine
from bench.rows import Row, is_rate

FOLDER = Path(__file__).parent / "history"
NUMBERS = 1 << 20
STEPS = 200_000


def baseline() -> float:
    """CPU seconds of a fixed kernel: numbers that are sorted and gathered, and a loop of Python over a dictionary."""
    numbers = np.random.default_rng(26).integers(0, 1 << 62, NUMBERS)

    def kernel() -> int:
        order = np.argsort(numbers, kind="stable")
        counts: dict[int, int] = {}
        for number in numbers[order[:STEPS]].tolist():
            counts[number & 1023] = counts.get(number & 1023, 0) + 1
        return len(counts)

    return best(kernel, 3)[0]


@dataclass(frozen=True)
class Recorded:
    """The figures of one run: of each figure, case and series the value, its unit and how many events it is of."""

    time: str
    commit: str
    baseline: float
    values: Mapping[tuple[str, str, str], tuple[float, str, int]]

    def speed(self, key: tuple[str, str, str]) -> float:
        """How fast the machine's own kernel makes it: more is better."""
        value, unit, _ = self.values[key]
        return value * self.baseline if is_rate(unit) else self.baseline / max(value, 1e-9)


def record(rows: Sequence[Row], kernel: float, folder: Path = FOLDER) -> list[Path]:
    """Writes the figures of a run, and draws all runs anew; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    about = machine()
    kept = [
        [row.figure, row.case, row.series, float(f"{row.value:.4g}"), row.unit, row.events]
        for row in rows
        if row.value > 0 and row.right
    ]
    content = {"commit": commit(), "baseline": float(f"{kernel:.4g}"), "machine": about}
    lines = ",\n".join(json.dumps(line, ensure_ascii=False) for line in kept)
    text = json.dumps(content, indent=1, ensure_ascii=False)[:-2] + f',\n "figures": [\n{lines}\n]}}\n'
    path = folder / f"{about['time'][:19].replace(':', '')}.json"
    path.write_text(text, encoding="utf-8")
    return [path, *draw(recorded(folder), folder)]


def commit() -> str:
    """The commit that is measured, where there is one."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return done.stdout.strip()


def recorded(folder: Path = FOLDER) -> list[Recorded]:
    """All recorded runs, the earliest first."""
    result = []
    for path in sorted(folder.glob("*.json")):
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        values = {
            (f, case, series): (value, unit, events) for f, case, series, value, unit, events in content["figures"]
        }
        result.append(Recorded(content["machine"]["time"], content["commit"], content["baseline"], values))
    return result


def draw(runs: Sequence[Recorded], folder: Path) -> list[Path]:
    """One picture for each figure that was recorded twice: the speed of each case beside its first run."""
    written = []
    for name in dict.fromkeys(key[0] for run in runs for key in run.values):
        lines = dict(_lines(runs, name))
        if lines:
            written.append(_chart(name, runs, lines).save(folder / f"{name}.svg"))
    return written


def _lines(runs: Sequence[Recorded], name: str) -> Iterable[tuple[str, list[tuple[int, float]]]]:
    """For each case of a figure by Augury its speed in each run, as a multiple of that in the first one of as many events."""
    keys = dict.fromkeys(
        (key, run.values[key][2])
        for run in runs
        for key in run.values
        if key[0] == name and key[2].startswith("augury")
    )
    for key, events in keys:
        there = [i for i, run in enumerate(runs) if run.values.get(key, (0, "", -1))[2] == events]
        if len(there) > 1:
            first = runs[there[0]].speed(key)
            label = key[1] if key[2] == "augury" else f"{key[1]}, {key[2]}"
            yield f"{label} ({events:,})", [(i, runs[i].speed(key) / first) for i in there]


def _chart(name: str, runs: Sequence[Recorded], lines: Mapping[str, list[tuple[int, float]]]) -> Picture:
    title = f"{name}: speed over time, beside the first run and the machine's own kernel"
    with style():
        drawn = figure(860, 320 + 14 * len(lines) // 3)
        axes = drawn.add_subplot()
        for number, (label, points) in enumerate(lines.items()):
            colour, marker = PALETTE[number % len(PALETTE)], MARKERS[number // len(PALETTE) % len(MARKERS)]
            axes.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=4, linewidth=1.2, label=label)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xticks(range(len(runs)), [f"{run.time[:10]}\n{run.commit}" for run in runs], fontsize=8)
        axes.set_ylabel("times the first run")
        axes.set_title(title)
        drawn.legend(loc="outside lower left", ncols=3, fontsize=8)
        return picture_of(drawn, title)
