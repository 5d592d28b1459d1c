"""Bar charts as SVG, drawn by matplotlib.

One file a figure: a group of bars a case, a colour a series, the value at the end of the bar. The scale is linear and
begins at zero, so that lengths can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from augury.pictures.picture import Picture
from augury.pictures.plots import PALETTE, figure, picture_of, style
from bench.report import figures
from bench.rows import Row

COLOURS = (PALETTE[1], PALETTE[5], PALETTE[4], "#8a8f98", PALETTE[2], PALETTE[3])
WRONG = PALETTE[0]
BAR, GAP = 18, 0.6  # pixels of a bar, and the gap between cases in bars


def draw(titles: dict[str, str], rows: Sequence[Row], folder: Path) -> list[Path]:
    """One chart for each figure and unit; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name in dict.fromkeys(row.figure for row in rows):
        mine = [row for row in rows if row.figure == name]
        for number, unit in enumerate(dict.fromkeys(row.unit for row in mine)):
            path = folder / f"{name}{f'-{number + 1}' if number else ''}.svg"
            written.append(chart(titles.get(name, name), [r for r in mine if r.unit == unit]).save(path))
    return written


def chart(title: str, rows: Sequence[Row]) -> Picture:
    cases = list(dict.fromkeys(row.case for row in rows))
    series = list(dict.fromkeys(row.series for row in rows))
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(series)}
    y = 0.0
    middles: list[float] = []
    placed: list[tuple[float, Row]] = []
    for case in cases:
        bars = [row for row in rows if row.case == case]
        middles.append(y + (len(bars) - 1) / 2)
        placed += [(y + i, row) for i, row in enumerate(bars)]
        y += len(bars) + GAP
    with style():
        from matplotlib.patches import Patch

        drawn = figure(860, 80 + BAR * y + (24 if len(series) > 1 else 0))
        axes = drawn.add_subplot()
        for name in series:
            own = [(at, row) for at, row in placed if row.series == name]
            shades = [colour[name] if row.right else WRONG for _, row in own]
            values = [row.value for _, row in own]
            drawn_bars = axes.barh([at for at, _ in own], values, height=0.86, color=shades, label=name)
            axes.bar_label(
                drawn_bars,
                [figures(row.value) + ("" if row.right else " WRONG") for _, row in own],
                padding=4,
                fontsize=9,
            )
        axes.set_yticks(middles, cases)
        axes.set_ylim(y - GAP - 0.3, -0.7)
        axes.margins(x=0.12)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
        axes.set_xlabel(rows[0].unit)
        axes.set_title(title)
        if len(series) > 1:
            boxes = [Patch(color=colour[name], label=name) for name in series]
            drawn.legend(handles=boxes, loc="outside lower left", ncols=min(4, len(series)), fontsize=9)
        return picture_of(drawn, title)
