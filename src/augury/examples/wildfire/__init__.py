"""Wildfires: a hot day in California, with a wind that rises in the afternoon."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta

from augury.examples import EventObject, Example, lines_of

MORNING = datetime(2026, 7, 1, 6)
STATIONS = ("KOAK", "KCCR", "KSBA", "KIZA")
PLACES = {"Oakland": ("N", 3782, "W", 12218), "Solvang": ("N", 3459, "W", 11960)}
# Fires, with the minutes after six at which they are reported and localised, and what was seen there, when.
FIRES: tuple[tuple[str, int, int | None, tuple[tuple[int, str], ...]], ...] = (
    ("Tunnel", 425, 560, ((470, "wt:Observ_1"),)),
    ("Diablo Canyon", 395, None, ((450, "wt:Observ_1"),)),
    ("Painted Cave", 610, 705, ((640, "wt:Observ_3"), (660, "wt:Observ_2"))),
    ("Figueroa", 200, 230, ()),
)


def day(minutes: int) -> list[EventObject]:
    """The events of a day, up to so many minutes after six."""
    chance = random.Random(7)
    result: list[tuple[int, EventObject]] = []
    for number, station in enumerate(STATIONS):
        gusts = 420 + 60 * number  # when the wind begins to rise there
        for minute in range(number, minutes, 15):
            speed = 12 + 25 / (1 + math.exp((gusts - minute) / 20)) + chance.uniform(-0.3, 0.3)
            result.append((minute, {"type": "wind", "station": station, "speed": round(speed, 1)}))
    for number, coordinates in enumerate(PLACES.values()):
        term = {"functor": "loc", "args": list(coordinates)}
        for minute in range(5 + number, minutes, 60):
            sun = math.sin(math.pi * minute / 900)
            warm = {"type": "temperature", "place": term, "fahrenheit": round(68 + (24 + 18 * number) * sun, 1)}
            damp = {"type": "humidity", "place": term, "percent": round(62 - 20 * sun, 1)}
            result += [(minute, warm), (minute + 10, damp)]
    for name, reported, localised, seen in FIRES:
        result.append((reported, {"type": "reported", "fire": name}))
        result += [(minute, {"type": "observed", "fire": name, "observation": what}) for minute, what in seen]
        if localised is not None:
            result.append((localised, {"type": "localised", "fire": name}))
    inside = sorted(((m, e) for m, e in result if m < minutes), key=lambda item: item[0])
    return [
        {**event, "time": (MORNING + timedelta(minutes=minute)).isoformat(" ", "minutes"), "id": f"e{number}"}
        for number, (minute, event) in enumerate(inside)
    ]


EXAMPLE = Example(
    name="wildfire",
    about="fires and the weather around them: rising winds, kinds of wind from an ontology, fires out of time",
    program=("wildfire.aug",),
    facts=("station=stations.csv", "fire=fires.csv"),
    rdf=("weather.ttl",),
    write=lines_of(day),
    sizes=(900, 900),
    lanes=("active_fire", "enhanced_fire", "fire_alarm", "overdue"),
    explains="fire_alarm",
    pictured=("reported", "localised", "wind_increase", "active_fire", "fire_alarm", "enhanced_fire", "overdue"),
)
