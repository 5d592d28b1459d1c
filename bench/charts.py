"""Bar charts as SVG, written by hand: they need no library, and a browser or a README shows them.

One file a figure: a group of bars a case, a colour a series, the value at the end of the bar. The scale is linear and
begins at zero, so that lengths can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from bench.report import figures
from bench.rows import Row

COLOURS = ("#1b6ca8", "#7fb3d5", "#e08e45", "#8a8a8a", "#5a9e6f")
WRONG = "#c0392b"
WIDTH, BAR, GAP, TOP, RIGHT = 860, 16, 12, 66, 110
LETTER = 7.0  # width of a letter of the labels, about


def draw(titles: dict[str, str], rows: Sequence[Row], folder: Path) -> list[Path]:
    """One chart for each figure and unit; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for figure in dict.fromkeys(row.figure for row in rows):
        mine = [row for row in rows if row.figure == figure]
        for number, unit in enumerate(dict.fromkeys(row.unit for row in mine)):
            path = folder / f"{figure}{f'-{number + 1}' if number else ''}.svg"
            path.write_text(chart(titles.get(figure, figure), [r for r in mine if r.unit == unit]), encoding="utf-8")
            written.append(path)
    return written


def chart(title: str, rows: Sequence[Row]) -> str:
    cases = list(dict.fromkeys(row.case for row in rows))
    series = list(dict.fromkeys(row.series for row in rows))
    colour = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(series)}
    left = 24 + LETTER * max(len(case) for case in cases)
    scale = (WIDTH - left - RIGHT) / max(max(row.value for row in rows), 1e-9)
    parts = [text(16, 26, title, "start", 15, "bold"), text(WIDTH - 16, 26, rows[0].unit, "end", 12)]
    if len(series) > 1:
        parts += legend(colour)
    y = float(TOP if len(series) > 1 else TOP - 20)
    for case in cases:
        bars = [row for row in rows if row.case == case]
        parts.append(text(left - 8, y + BAR * len(bars) / 2 + 4, case, "end", 12))
        for row in bars:
            fill = colour[row.series] if row.right else WRONG
            width = max(1.0, row.value * scale)
            parts.append(f'<rect x="{left:.0f}" y="{y:.0f}" width="{width:.1f}" height="{BAR - 2}" fill="{fill}"/>')
            shown = figures(row.value) + ("" if row.right else " WRONG")
            parts.append(text(left + width + 5, y + BAR - 5, shown, "start", 11))
            y += BAR
        y += GAP
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 4:.0f}" font-family="sans-serif">'
    return "\n".join([frame, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""])


def legend(colour: dict[str, str]) -> list[str]:
    parts: list[str] = []
    x = 16.0
    for name, fill in colour.items():
        parts.append(f'<rect x="{x:.0f}" y="40" width="12" height="12" fill="{fill}"/>')
        parts.append(text(x + 17, 50, name, "start", 12))
        x += 36 + LETTER * len(name)
    return parts


def text(x: float, y: float, words: str, anchor: str, size: int, weight: str = "normal") -> str:
    place = f'x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" font-weight="{weight}" fill="#222">{escape(words)}</text>'
