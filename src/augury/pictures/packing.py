"""Packs marks and labels into the rows of a lane without overlaps."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

LETTER = 6.3  # the width of a letter of a label of 11 px, about
RADIUS = 5.0  # of a point
_GAP = 5.0
_LABELLED, _ROWS = 4, 7  # rows of a lane with labels, and without


@dataclass(frozen=True)
class Placed:
    """A mark from one place to another, in a row; and the place of its label, where there is room for one."""

    left: float
    right: float
    row: int
    label: float | None = None
    anchor: Literal["start", "end"] = "start"


def text_width(text: str) -> float:
    return LETTER * sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def packed(
    marks: Sequence[tuple[float, float]], labels: Sequence[tuple[str, bool]], bounds: tuple[float, float]
) -> list[Placed] | None:
    """The places of marks, with labels where few rows are enough for that; None where they are too many for rows.

    With each label comes whether it may stand inside its mark.
    """
    labelled = _packed(marks, labels, bounds, _LABELLED) if any(text for text, _ in labels) else None
    return labelled or _packed(marks, [("", False)] * len(marks), bounds, _ROWS)


def _packed(
    marks: Sequence[tuple[float, float]], labels: Sequence[tuple[str, bool]], bounds: tuple[float, float], most: int
) -> list[Placed] | None:
    """Each mark goes to the first row that is free where it and its label are."""
    taken: list[list[tuple[float, float]]] = []
    result: dict[int, Placed] = {}
    for number in sorted(range(len(marks)), key=lambda i: marks[i]):
        left, right = marks[number]
        ways = _ways(left, right, *labels[number], bounds)
        rows = [next((r for r, boxes in enumerate(taken) if _free(boxes, room)), len(taken)) for room, _, _ in ways]
        row = min(rows)
        room, label, anchor = ways[rows.index(row)]
        if row == len(taken):
            if row == most:
                return None
            taken.append([])
        taken[row].append(room)
        result[number] = Placed(left, right, row, label, anchor)
    return [result[i] for i in range(len(marks))]


def _ways(
    left: float, right: float, label: str, inside: bool, bounds: tuple[float, float]
) -> list[tuple[tuple[float, float], float | None, Literal["start", "end"]]]:
    """The room that a mark and its label need: the label inside, behind or ahead of it."""
    first, last = left - RADIUS - 1, right + RADIUS + 1
    # A point has room around it; bars may meet, as windows by the clock and values of a fact do.
    alone = (left, right) if right - left > 2 * RADIUS else (first, last)
    width = text_width(label)
    if not label:
        return [(alone, None, "start")]
    if inside and right - left >= width + 2 * _GAP:
        return [(alone, left + _GAP, "start")]
    ways: list[tuple[tuple[float, float], float | None, Literal["start", "end"]]] = []
    if last + _GAP + width <= bounds[1]:
        ways.append(((first, last + _GAP + width), last + _GAP / 2, "start"))
    if first - _GAP - width >= bounds[0]:
        ways.append(((first - _GAP - width, last), first - _GAP / 2, "end"))
    return ways or [((first, last), None, "start")]


def _free(taken: Sequence[tuple[float, float]], room: tuple[float, float]) -> bool:
    return all(room[1] <= left or right <= room[0] for left, right in taken)
