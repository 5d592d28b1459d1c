"""Trajectories: positions of vessels as graph events; some go fishing, others change their course or pass by."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from augury.examples import EventObject, Example, graph_event, lines_of

DAWN = datetime(2026, 8, 3, 4)
VESSELS = ("v1", "v2", "v3", "v4")


def fixes(count: int) -> list[EventObject]:
    """So many trips of each vessel, with a position every twenty minutes."""
    chance = random.Random(8)
    result: list[tuple[datetime, str, int, str, int]] = []
    for index, vessel in enumerate(VESSELS):
        time = DAWN + timedelta(minutes=3 * index)
        for _ in range(count):
            course = chance.choice((250, 260, 270, 280))
            fishing, steady = chance.random() < 0.6, chance.random() < 0.7
            trip = [(3, "harbour", course)]
            for number in range(chance.randrange(2, 8)):
                trip.append((chance.randrange(8, 12), "sea", course if steady or number != 1 else course + 10))
            trip.append((0, "fishing area" if fishing else "anchorage", course))
            for speed, where, direction in trip:
                result.append((time, vessel, speed, where, direction))
                time += timedelta(minutes=20)
            time += timedelta(hours=5)
    graph = '@prefix : <http://harbour.org/ns#> . :{} :speed {} ; :location "{}" ; :direction {} .'
    return [
        graph_event("http://harbour.org/boats", time, f"f{n}", graph.format(vessel, speed, where, direction))
        for n, (time, vessel, speed, where, direction) in enumerate(sorted(result))
    ]


EXAMPLE = Example(
    name="trajectories",
    about="positions of vessels as graphs: which of them are fishing boats, by the way that they take",
    program=("fishing.spaseq",),
    rdf=("vessels.trig",),
    write=lines_of(fixes),
    sizes=(12, 4),
)
