"""A brokerage: offers, trades and balances of some days, with transfers that fail and clients who think again."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from augury.examples import EventObject, Example, lines_of

FIRST = datetime(2026, 3, 2, 9)
STOCKS = {"IBM": 182.5, "SAP": 171.0, "ASML": 904.0}
CLIENTS = ("ann", "bob", "cleo", "dora")


def days(count: int) -> list[EventObject]:
    """The events in the order in which they are heard; `heard` says when, for what is revoked later."""
    chance = random.Random(11)
    result: list[tuple[datetime, EventObject]] = []

    def happens(time: datetime, type: str, args: list[object]) -> str:
        name = f"{type}{len(result)}"
        result.append((time, {"type": type, "args": args, "time": time.isoformat(" "), "id": name}))
        return name

    for day in range(count):
        opens = FIRST + timedelta(days=day)
        happens(opens, "opens", [])
        happens(opens + timedelta(hours=8), "closes", [])
        for number in range(12):
            time = opens + timedelta(minutes=20 + 38 * number)
            stock, client = chance.choice(list(STOCKS)), chance.choice(CLIENTS)
            price, offered = round(STOCKS[stock] * chance.uniform(0.97, 1.03), 2), chance.randrange(5, 40) * 1000
            wanted = min(offered, chance.choice((500, 2000, 12000, 20000)))
            happens(time, "available", [stock, price, offered])
            bought = time + timedelta(minutes=4)
            order = happens(bought, "checked", [client, stock, price, wanted])
            booked = happens(bought + timedelta(minutes=2), "balance", [client, offered, offered - wanted])
            fate = chance.random()
            if fate < 0.15:  # the transfer of the money fails: the balance is restored
                result.append((bought + timedelta(minutes=2, seconds=1), {"op": "revoke", "id": booked}))
            elif fate < 0.35:  # the client cancels within two hours
                result.append((bought + timedelta(minutes=chance.choice((30, 110))), {"op": "revoke", "id": order}))
    result.sort(key=lambda entry: entry[0])
    return [{**event, "heard": time.isoformat(" ")} for time, event in result]


EXAMPLE = Example(
    name="brokerage",
    about="trades of suspicious size, and investigations that are called off when a trade falls through",
    program=("brokerage.aug",),
    write=lines_of(days),
    sizes=(5, 2),
    lateness="2h",
    revises=("big_trade", "investigation"),
    explains="investigation",
    pictured=("working_day", "big_trade", "investigation"),
)
