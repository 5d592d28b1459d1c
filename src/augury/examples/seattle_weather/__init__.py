"""The weather of Seattle, 2012 to 2015, as the National Oceanic and Atmospheric Administration has it."""

from __future__ import annotations

import csv
from importlib.resources import files

from augury.examples import EventObject, Example, lines_of


def days(count: int) -> list[EventObject]:
    """The first so many days."""
    text = files("augury.examples.seattle_weather").joinpath("days.csv").read_text(encoding="utf-8")
    numbers = ("precipitation", "temp_max", "temp_min", "wind")
    return [
        {
            "type": "day",
            "args": [*(float(row[n]) for n in numbers), row["weather"]],
            "time": row["date"],
            "id": row["date"],
        }
        for row in list(csv.DictReader(text.splitlines()))[:count]
    ]


EXAMPLE = Example(
    name="seattle_weather",
    about="four years of real weather: dry spells, heat waves, storms, the first frost, every month",
    program=("seattle_weather.aug",),
    write=lines_of(days),
    sizes=(1461, 100),
    explains="first_frost",
)
