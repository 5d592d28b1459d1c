"""A web shop: orders of some days, shipped and delivered sooner, later or never."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from augury.examples import EventObject, Example, lines_of

FIRST = datetime(2026, 5, 4)
PRODUCTS = ("tea", "books", "roses", "cheese", "lamp")


def orders(count: int) -> list[EventObject]:
    """So many orders, half an hour apart on the average."""
    chance = random.Random(5)
    result: list[tuple[datetime, str, list[object]]] = []
    time = FIRST
    for number in range(1, count + 1):
        time += timedelta(minutes=round(chance.expovariate(1 / 30)) + 1)
        product, parcel = chance.choice(PRODUCTS), f"p{number}"
        result.append((time, "order", [number, product, chance.choice((1, 2, 5, 12, 30))]))
        if chance.random() < 0.95:
            left = time + timedelta(minutes=round(chance.lognormvariate(4.8, 0.8)))
            result.append((left, "shipped", [number, parcel]))
            if chance.random() < 0.97:
                result.append((left + timedelta(minutes=round(chance.gauss(1500, 500)) % 4000), "delivered", [parcel]))
    end = max(when for when, _, _ in result)
    return [
        {"type": type, "args": args, "time": when.isoformat(" ", "minutes"), "id": f"{type[0]}{args[0]}"}
        for when, type, args in sorted(result)
        if when <= end
    ]


EXAMPLE = Example(
    name="web_shop",
    about="orders that are completed, timely or overdue, with goods that spoil; reports by the hour and by the day",
    program=("web_shop.aug",),
    facts=("perishable=perishable.csv",),
    write=lines_of(orders),
    sizes=(400, 40),
    explains="report",
    pictured=("order", "shipped", "delivered", "timely", "overdue", "best_sellers"),
)
