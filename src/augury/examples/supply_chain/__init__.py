"""A supply chain: quotes of companies whose rises run down the chain, and news that change the chain."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from importlib.resources import files

from augury.examples import EventObject, Example, lines_of

NOON = datetime(2026, 9, 1, 12)
# News, by the minute they are of, and the minute at which they are heard: the last one comes late, and revises.
NEWS = (
    (60, 60, "link_down", ["Tyre Group", "Car Makers"]),
    (90, 90, "link_up", ["Chip Fab", "Tyre Group"]),
    (150, 190, "link_down", ["Steel Works", "Frames Ltd"]),
)


def links() -> list[tuple[str, str]]:
    text = files("augury.examples.supply_chain").joinpath("linked.csv").read_text(encoding="utf-8")
    return [(row["supplier"], row["customer"]) for row in csv.DictReader(text.splitlines())]


def quotes(minutes: int) -> list[EventObject]:
    """Quotes every two minutes; now and then one rises, and those downstream follow, some minutes later."""
    chance = random.Random(3)
    down: dict[str, list[str]] = {}
    for supplier, customer in links():
        down.setdefault(supplier, []).append(customer)
    companies = sorted({name for link in links() for name in link})
    prices = {name: chance.uniform(20, 200) for name in companies}
    rises: dict[int, set[str]] = {}
    events: list[tuple[int, int, str, Sequence[object]]] = list(NEWS)
    for minute in range(0, minutes, 2):
        if minute % 40 == 10:
            rises.setdefault(minute, set()).add("Steel Works" if minute == 170 else chance.choice(sorted(down)))
        for name in companies:
            prices[name] *= chance.uniform(0.998, 1.002)
            if name in rises.get(minute, ()):
                prices[name] *= 1.08
                for customer in down.get(name, ()):
                    if chance.random() < 0.8:
                        rises.setdefault(minute + chance.choice((2, 4)), set()).add(customer)
            events.append((minute, minute, "price", [name, round(prices[name], 2)]))
    kept = sorted((item for item in events if item[1] < minutes), key=lambda entry: entry[1])
    return [
        {"type": type, "args": args, "time": (NOON + timedelta(minutes=start)).isoformat(" "), "id": f"{type}{number}"}
        | {"heard": (NOON + timedelta(minutes=heard)).isoformat(" ")}
        for number, (start, heard, type, args) in enumerate(kept)
    ]


EXAMPLE = Example(
    name="supply_chain",
    about="rises of prices that run down a chain of suppliers, while news change who supplies whom",
    program=("supply_chain.aug",),
    facts=("linked=linked.csv",),
    write=lines_of(quotes),
    sizes=(360, 70),
    lateness="1h",
    revises=("trend",),
    explains="trend",
    pictured=("link_up", "link_down", "rise", "trend", "exposed"),
)
