"""Stocks: quotes every five minutes as graph events, with shapes that traders look for hidden among them."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from augury.examples import EventObject, Example, graph_event, lines_of

START = datetime(2026, 4, 1, 8)
COMPANIES = ("goog", "sap", "asml", "ibm")
V = (-0.03, -0.002, -0.001, 0.036)
PREFIX = "@prefix : <http://stockmarket.org/ns#> . "
HEAD = (0.012, -0.006, 0.025, -0.022, 0.01, -0.02)


def quotes(count: int) -> list[EventObject]:
    """So many quotes of each company: a random walk, in which a shape begins now and then."""
    chance = random.Random(9)
    price = {company: chance.uniform(80, 300) for company in COMPANIES}
    plan: dict[str, list[float]] = {company: [] for company in COMPANIES}
    result: list[EventObject] = []
    for number in range(count):
        for index, company in enumerate(COMPANIES):
            if not plan[company] and chance.random() < 0.06:
                plan[company] = list(chance.choice((V, HEAD)))
            price[company] *= 1 + (plan[company].pop(0) if plan[company] else chance.gauss(0, 0.0015))
            time = START + timedelta(minutes=5 * number, seconds=index)
            graph = f":{company} :price {price[company]:.2f} ; :volume {chance.randrange(100, 9000)} ."
            result.append(graph_event("http://stockmarket.org/stocks", time, f"q{len(result)}", PREFIX + graph))
    return result


EXAMPLE = Example(
    name="stocks",
    about="quotes as graphs: V-shapes, and heads with their shoulders",
    program=("v_shape.spaseq", "head_and_shoulders.spaseq"),
    rdf=("companies.trig",),
    write=lines_of(quotes),
    sizes=(200, 20),
)
