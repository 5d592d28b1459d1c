"""A smart grid: prices of power, the weather and stored power at four houses, as graph events on three streams."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from augury.examples import EventObject, Example, graph_event, lines_of

NOON = datetime(2026, 6, 1, 12)
HOUSES = ("H1", "H2", "H3", "H4")
PREFIX = "@prefix : <http://smartgrid.org/ns#> . "


def events(count: int) -> list[EventObject]:
    """So many rounds; in each one, every house has a price, then some readings of the wind, then stored power."""
    chance = random.Random(2)
    result: list[tuple[datetime, str, str]] = []
    for number in range(count):
        for index, house in enumerate(HOUSES):
            time = NOON + timedelta(minutes=50 * number, seconds=7 * index)
            fuel, solar = chance.randrange(14, 32), chance.randrange(8, 28)
            power = f':{house} :loc :L{index} ; :pow :Pw . :Pw :source "fuel" ; :fare {fuel} ; :watt 20 .'
            result.append((time, "mainSource", power))
            for _ in range(chance.randrange(1, 5)):
                time += timedelta(minutes=8)
                speed = round(chance.uniform(1, 9), 1)
                result.append((time, "weather", f":W :loc :L{index} ; :value :V . :V :windspeed {speed} ."))
            time += timedelta(minutes=8)
            stored = f':S :loc :L{index} ; :pow :Pw . :Pw :source "solar" ; :fare {solar} .'
            result.append((time, "storageSource", stored))
    return [
        graph_event(f"http://smartgrid.org/{stream}", time, f"g{n}", PREFIX + graph)
        for n, (time, stream, graph) in enumerate(sorted(result))
    ]


EXAMPLE = Example(
    name="smart_grid",
    about="a SPAseQ query over three streams of graphs: when to switch from fuel to the sun, and whose house it is",
    program=("switch.spaseq",),
    rdf=("homes.trig",),
    write=lines_of(events),
    sizes=(40, 2),
)
