"""Fast Flower Delivery: some hours of requests, bids, positions, pick-ups and deliveries in New York."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from augury.examples import EventObject, Example, lines_of

MORNING = datetime(2026, 2, 14, 13)  # eight o'clock in New York
POSITIONS = {"Manhattan": (4045, 7364), "Brooklyn": (4038, 7350), "Staten Island": (4037, 7380), "Queens": (4045, 7350)}
STORES = {"Rose Garden": "automatic", "Tulip & Co": "manual", "Orchid House": "automatic"}
DRIVERS = ("ann", "bob", "cleo", "dora", "emil")


def shift(count: int) -> list[EventObject]:
    """So many requests, ten minutes apart, and what comes of them."""
    chance = random.Random(14)
    result: list[tuple[float, str, list[object]]] = []
    for driver in DRIVERS:
        for minute in range(0, 10 * count, 15):
            x, y = POSITIONS[chance.choice(list(POSITIONS))]
            result.append((minute + chance.random(), "gps", [driver, {"functor": "coord", "args": ["N", x, "W", y]}]))
    for number in range(count):
        minutes, name, store = 5.0 + 10 * number, f"r{number + 1}", chance.choice(list(STORES))
        service = chance.choice(("express", "standard"))
        result.append((minutes, "request", [name, chance.choice(list(POSITIONS)), service, store]))
        bidders = chance.sample(DRIVERS, chance.choice((0, 4, 5, 5)))
        for driver in bidders:
            result.append((minutes + chance.uniform(0.2, 2.2), "bid", [name, driver, chance.choice((5, 10, 15))]))
        if bidders and STORES[store] == "manual":
            result.append((minutes + 4, "chosen", [name, bidders[0]]))
        if bidders and chance.random() < 0.9:
            picked = minutes + chance.uniform(8, 26)
            result.append((picked, "picked_up", [name]))
            if chance.random() < 0.9:
                result.append((picked + chance.uniform(10, 60), "delivered", [name]))
    result.sort(key=lambda entry: entry[0])
    return [
        {
            "type": type,
            "args": args,
            "time": (MORNING + timedelta(minutes=minute)).isoformat(" ", "seconds"),
            "id": f"{type}{n}",
        }
        for n, (minute, type, args) in enumerate(result)
    ]


EXAMPLE = Example(
    name="flower_delivery",
    about="Fast Flower Delivery: bids and assignments, routes, pick-ups and deliveries that do not happen, rankings",
    program=("flower_delivery.aug",),
    facts=("store=stores.csv", "driver=drivers.csv", "linked=linked.csv"),
    write=lines_of(shift),
    sizes=(60, 8),
    until="2026-02-15 06:00",
    explains="late_delivery",
    pictured=("request", "assignment", "picked_up", "delivered", "no_bids", "late_pickup", "late_delivery"),
)
