"""How fast each pattern is on one core, and how much it remembers, as a table and a chart (E, figure 6).

python -m augury.examples.blizzard.throughput [DAYS [CHART.svg]]
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from augury.examples import load
from augury.pictures.picture import Picture
from augury.pictures.plots import PALETTE, figure, picture_of, style
from augury.program import compile
from augury.sources import SourceFile

PATTERNS = {"39 settling": "settling", "40 warning": "warning", "42 area": "blizzard_area", "places": "affected"}
PARTS = 24  # in which the readings are pushed


def main(days: int, chart: str | None = None) -> None:
    """A line for each pattern: readings in a second of processor time, answers, and the most that a session held."""
    measured: dict[str, tuple[float, float]] = {}
    example = load("blizzard")
    with TemporaryDirectory() as name:
        folder = Path(name)
        readings = example.prepare(folder, days)
        text = (folder / "blizzard.aug").read_text(encoding="utf-8")
        click.echo(f"{readings:,} readings\n{'pattern':<14}{'readings/s':>12}{'answers':>10}{'state, MB':>12}")
        for title, output in PATTERNS.items():
            program = compile(re.sub(r"output [^.]*\.", f"output {output}.", text), facts=["place"])
            session = program.session(
                clock="timestamp", lateness="1h", facts={"place": folder / "places.csv"}, rdf=folder / "stations.ttl"
            )
            table = SourceFile.parse(f"sensor={folder / 'readings.parquet'}").to_arrow()
            step, answers, held = -(-table.num_rows // PARTS), 0, 0
            began = time.process_time()
            for first in range(0, table.num_rows, step):
                answers += len(session.push({"sensor": table.slice(first, step)}))
                held = max(held, session.stats()["bytes"])
                session.prune()
            took = time.process_time() - began
            click.echo(f"{title:<14}{readings / took:>12,.0f}{answers:>10,}{held / 1e6:>12.1f}")
            measured[title] = (readings / took, held / 1e6)
    if chart is not None:
        _draw(measured).save(chart)
        click.echo(f"drew {chart}")


def _draw(measured: dict[str, tuple[float, float]]) -> Picture:
    """Throughput and state side by side, a bar for each pattern."""
    with style():
        drawn = figure(720, 230)
        for index, (title, unit) in enumerate((("Throughput", "readings per CPU second"), ("State", "MB at most"))):
            axes = drawn.add_subplot(1, 2, index + 1)
            bars = axes.barh(
                list(measured), [values[index] for values in measured.values()], color=PALETTE[index], height=0.6
            )
            axes.bar_label(bars, fmt="{:,.0f}" if index == 0 else "{:.1f}", padding=4, fontsize=9)
            axes.set(title=title, xlabel=unit)
            axes.margins(x=0.2)
            axes.grid(axis="y", visible=False)
            axes.invert_yaxis()
        return picture_of(drawn, "Throughput and state")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1096, sys.argv[2] if len(sys.argv) > 2 else None)
