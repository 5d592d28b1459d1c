"""Python functions and aggregates that the spec cases register."""

from __future__ import annotations

from typing import Any

import augury


@augury.function
def index(temperature: float, humidity: float) -> float:
    """A stand-in for the heat index: simple enough to work out by hand."""
    return temperature + humidity / 10


@augury.function
def Index(temperature: float, humidity: float) -> float:
    """The same, as the paper writes its name."""
    return temperature + humidity / 10


@augury.aggregate
def middle(values: list[Any]) -> Any:
    return sorted(values)[len(values) // 2]


@augury.aggregate
def row(values: list[Any]) -> str:
    """All values in their order, so that a case can say which iterations a run has."""
    return " ".join(str(value) for value in values)


FUNCTIONS = (index, Index, middle, row)
