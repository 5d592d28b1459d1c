"""Earthquakes: a week of reports of the United States Geological Survey, pushed in the order in which they were last revised."""

from __future__ import annotations

import csv
from collections import Counter
from importlib.resources import files

from augury.examples import EventObject, Example, ExampleResult, ExampleTable, lines_of


def reports(count: int) -> list[EventObject]:
    """The first so many reports, in the order of their last revision; they are heard at the end of the hour."""
    text = files("augury.examples.earthquakes").joinpath("reports.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))[:count]
    numbers = ("magnitude", "latitude", "longitude", "depth")
    return [
        {
            "type": "report",
            "id": row["id"],
            "time": row["time"],
            "heard": row["updated"][:13] + ":59",
            "place": row["place"],
        }
        | {"kind": row["kind"], "args": [row["id"], *(float(row[n]) for n in numbers), row["place"], row["kind"]]}
        for row in rows
    ]


def tables(result: ExampleResult) -> list[ExampleTable]:
    followers = Counter(event.args[0] for event in result.of("aftershock"))
    shocks = sorted(result.of("main_shock"), key=lambda event: float(str(event.args[1])), reverse=True)
    return [
        ExampleTable(
            f"Main shocks: {len(shocks)}, the strongest of them",
            ("at", "magnitude", "aftershocks", "place"),
            [(result.time(e.end), e.args[1], followers[e.args[0]], e.args[4]) for e in shocks],
        ),
        ExampleTable(
            "Foreshocks: a stronger one came within three days",
            ("from", "to", "magnitude", "then", "place"),
            [
                (result.time(e.start), result.time(e.end), e.args[1], e.args[3], e.args[4])
                for e in result.of("foreshock")
            ],
        ),
        ExampleTable(
            "Swarms: 15 or more within 10 km in six hours",
            ("from", "quakes", "strongest", "place"),
            [(result.time(e.start), *e.args[1:]) for e in result.of("swarm")],
        ),
        ExampleTable(
            "Day by day",
            ("from", "quakes", "strongest", "place"),
            [(result.time(e.start), *e.args) for e in result.of("daily")],
        ),
    ]


EXAMPLE = Example(
    name="earthquakes",
    about="a week of real reports: main shocks, aftershocks, swarms, and what a later report changes",
    program=("earthquakes.aug",),
    write=lines_of(reports),
    sizes=(1707, 200),
    until="2018-02-08",
    lateness="7 days",
    revises=("main_shock",),
    explains="foreshock",
    tables=tables,
    pictured=("main_shock",),
    places=dict,
)
