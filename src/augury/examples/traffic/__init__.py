"""Traffic in Aarhus: how congested roads are, every five minutes, as graph events of three groups of sensors."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from augury.examples import EventObject, Example, graph_event, lines_of

MORNING = datetime(2026, 11, 2, 6)
PREFIX = "@prefix : <http://traffic.org/ns#> . "
ROADS = {
    "main": ("Ringgade", "Havnegade"),
    "west": ("Viborgvej", "Kystvejen"),
    "east": ("Randersvej", "Skolebakken"),
}  # each road of a group with those at its place in the other groups


def observations(count: int) -> list[EventObject]:
    """So many rounds of observations: jams come at the main roads, and some of them spread."""
    chance = random.Random(6)
    level = {road: 1.0 for roads in ROADS.values() for road in roads}
    result: list[EventObject] = []
    for number in range(count):
        for index, road in enumerate(ROADS["main"]):
            if chance.random() < 0.06:
                level[road] = 6.0
            if level[road] > 4 and chance.random() < 0.5:
                for group in ("west", "east"):
                    level[ROADS[group][index]] = chance.choice((2.0, 5.0))
        for group, roads in ROADS.items():
            for road in roads:
                level[road] = max(0.5, level[road] * 0.85)
                graph = f":o{len(result)} :road :{road} ; :congestion {level[road]:.1f} ."
                time = MORNING + timedelta(minutes=5 * number)
                result.append(graph_event(f"http://traffic.org/{group}", time, f"o{len(result)}", PREFIX + graph))
    return result


EXAMPLE = Example(
    name="traffic",
    about="sensors of roads as three streams of graphs: jams that spread to both roads that lead there",
    program=("jam.spaseq",),
    rdf=("roads.trig",),
    write=lines_of(observations),
    sizes=(150, 40),
)
