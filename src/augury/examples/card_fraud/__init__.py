"""Card fraud: withdrawals as graph events, some of them by thieves."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from augury.examples import EventObject, Example, graph_event, lines_of

START = datetime(2026, 10, 1)
CARDS = ("c1", "c2", "c3", "c4", "c5")


def withdrawals(count: int) -> list[EventObject]:
    """So many withdrawals, one every nine minutes or so; now and then a thief takes much, and then little by little."""
    chance = random.Random(4)
    result: list[tuple[datetime, str, int, str]] = []
    time = START
    while len(result) < count:
        time += timedelta(seconds=chance.randrange(300, 800))
        card, terminal = chance.choice(CARDS), chance.choice(("t1", "t1", "t2"))
        result.append((time, card, chance.choice((20, 40, 60, 100, 150)), terminal))
        if chance.random() < 0.12:
            theft, card, away = time, chance.choice(CARDS), chance.choice(("t2", "t3", "t4"))
            for amount in (500, *(chance.choice((20, 30, 50)) for _ in range(chance.randrange(1, 5)))):
                theft += timedelta(seconds=chance.randrange(60, 400))
                result.append((theft, card, amount, away))
    graph = "@prefix : <http://creditcard.org/ns#> . :w{} :card :{} ; :amount {} ; :terminal :{} ."
    return [
        graph_event("http://creditcard.org/withdrawals", when, f"w{n}", graph.format(n, card, amount, terminal))
        for n, (when, card, amount, terminal) in enumerate(sorted(result)[:count])
    ]


EXAMPLE = Example(
    name="card_fraud",
    about="withdrawals as graphs: small sums after a large one, cards in two countries, and rules over both queries",
    program=("small_after_big.spaseq", "far_away.spaseq", "block.aug"),
    rdf=("cards.trig",),
    write=lines_of(withdrawals),
    sizes=(600, 50),
    explains="block",
)
