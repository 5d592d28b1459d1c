"""The applications that come with Augury: their answers, worked out in another way."""

from __future__ import annotations

import math
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import groupby, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from augury.core.model import Event, Iri
from augury.examples import (
    EXAMPLES,
    Example,
    blizzard,
    brokerage,
    card_fraud,
    earthquakes,
    flower_delivery,
    load,
    seattle_weather,
    smart_grid,
    stocks,
    supply_chain,
    traffic,
    trajectories,
    web_shop,
    wildfire,
)
from augury.job import Job
from augury.knowledge.graphs import RdfGraph
from augury.program import Program, compile
from augury.settings import Settings, Task
from augury.sources import SourceFile
from tests.support.spark_local import Local

Row = tuple[Any, ...]


def task_of(example: Example, folder: Path) -> Task:
    """An example whose files are in a folder."""
    facts = tuple((name, path) for name, _, path in (f.partition("=") for f in example.located(example.facts, folder)))
    program = compile([folder / path for path in example.program], facts=[name for name, _ in facts])
    sources = tuple(map(SourceFile.parse, example.located(example.events, folder)))
    return Task(program, sources, facts, tuple(map(RdfGraph, example.located(example.rdf, folder))), Settings())


@pytest.mark.parametrize("name", EXAMPLES)
def test_reference_agrees_on_examples(name: str, tmp_path: Path) -> None:
    example = load(name)
    assert example.prepare(tmp_path, example.sizes[1]) > 0
    job = Job(task_of(example, tmp_path))
    found, expected = (job.evaluate(example.until, engine=engine) for engine in ("embedded", "reference"))
    assert [e.content for e in found.events] == [e.content for e in expected.events]
    assert not found.errors and not found.rejected


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_stages_of_spark(name: str, tmp_path: Path) -> None:
    """What Spark would run, cut into buckets in this process."""
    example = load(name)
    example.prepare(tmp_path, example.sizes[1])
    job = Job(task_of(example, tmp_path))
    assert isinstance(job.task.program, Program)
    until = job.time("until", example.until)
    local = Local(job.task.program, job.history.items(), facts=job.execution("embedded").facts, kind="timestamp")
    found, _ = local.batch(3, until=until)
    assert {e.content for e in found} == {e.content for e in job.evaluate(example.until, engine="embedded").events}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_readme_says_how_to_run_it(name: str) -> None:
    example = load(name)
    text = files("augury.examples").joinpath(name, "README.md").read_text(encoding="utf-8")
    assert f"    augury run {' '.join(example.options())}" in text
    assert f"    augury demo {name}" in text
    assert (f"augury demo {name} --stream" in text) == example.streams
    for output in compile([Path(str(files("augury.examples").joinpath(name, p))) for p in example.program],
                          facts=[f.partition("=")[0] for f in example.facts]).outputs:  # fmt: skip
        assert f"`{output}" in text, output
    assert "(picture.svg)" in text and files("augury.examples").joinpath(name, "picture.svg").is_file()
    gallery = files("augury.examples").joinpath("README.md").read_text(encoding="utf-8")
    assert f"[{name}]({name}/README.md)" in gallery


# The answers of the demonstrations


@cache
def answers(name: str, size: int | None = None) -> list[Event]:
    """What the demonstration of an example detects, with something of each output."""
    example = load(name)
    with TemporaryDirectory() as folder:
        example.prepare(Path(folder), size)
        job = Job(task_of(example, Path(folder)))
        found = job.evaluate(example.until, engine="embedded").events
    assert {e.type for e in found} == set(job.plan.outputs)
    return found


def rows(name: str, type: str) -> set[Row]:
    """The answers of one type: arguments, start and end."""
    return {(*map(_plain, e.args), at(e.start), at(e.end)) for e in answers(name) if e.type == type}


def _plain(value: Any) -> Any:
    return value.text.rpartition("#")[2] if isinstance(value, Iri) else value


def at(us: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(microseconds=us)


def time(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["time"])


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def km(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The distance of two places by the law of cosines, which is another formula than that of the engine."""
    a, b, c, d = map(math.radians, (*one, *other))
    return 6378.137 * math.acos(min(1, math.sin(a) * math.sin(c) + math.cos(a) * math.cos(c) * math.cos(b - d)))


def places(path: str) -> dict[str, tuple[float, float]]:
    text = files("augury.examples").joinpath(*path.split("/")).read_text(encoding="utf-8")
    return {name: (float(x), float(y)) for name, x, y in (line.split(",") for line in text.splitlines()[1:])}


def test_wildfire() -> None:
    events = wildfire.day(900)
    wind = [(e["station"], e["speed"], time(e)) for e in events if e["type"] == "wind"]
    reported, localised = ({e["fire"]: time(e) for e in events if e["type"] == t} for t in ("reported", "localised"))
    increases = [
        (s, v, t0, t1)
        for s, u, t0 in wind
        for r, v, t1 in wind
        if s == r and t0 < t1 <= t0 + minutes(30) and v > 1.1 * u
    ]
    stations, fires = places("wildfire/stations.csv"), places("wildfire/fires.csv")
    late = datetime.max
    alarms = {
        (fire, s, v, begin, t1)
        for fire, begin in reported.items()
        for s, v, t0, t1 in increases
        if km(stations[s], fires[fire]) < 15 and begin < t0 and t1 <= begin + minutes(120)
        if not begin < localised.get(fire, late) < t0
    }
    assert rows("wildfire", "fire_alarm") == alarms
    assert {name for name, *_ in alarms} == {"Diablo Canyon", "Tunnel"}
    overdue = {(f, t, t + minutes(180)) for f, t in reported.items() if localised.get(f, late) > t + minutes(180)}
    assert rows("wildfire", "overdue") == overdue
    assert rows("wildfire", "active_fire") == {(f, reported[f], t) for f, t in localised.items()}
    assert {row[:2] for row in rows("wildfire", "enhanced_fire")} == {
        ("Tunnel", "Observ_1"),
        ("Painted Cave", "Observ_2"),
    }
    limits = {"caution": (80, 90), "extreme_caution": (90, 105), "danger": (105, 130), "extreme_danger": (130, 999)}
    for note, _, index, *_ in rows("wildfire", "heat_effect"):
        assert limits[note][0] - 0.5 <= index <= limits[note][1] + 0.5


def test_blizzard() -> None:
    size = 60  # days, with an area
    found = answers("blizzard", size)
    bad: dict[str, list[int]] = {}
    for row in blizzard.readings(size).to_pylist():
        if row["wind"] >= 35 and row["condition"] == "snow" and row["visibility"] < 0.25:
            bad.setdefault(row["station"], []).append(int(row["time"].replace(tzinfo=UTC).timestamp()) // 60)
    settled, warned = set(), set()
    for station, times in bad.items():
        chain: tuple[int, int] | None = None  # when the latest settling began, and its readings
        for before, now in pairwise([times[0] - 10_000, *times]):
            settled.add((station, 1, now, now))
            start, count = chain if chain is not None and now - chain[0] <= 360 else (before, 1)
            chain = (start, count + 1) if now - start <= 360 else None
            if chain is not None:
                settled.add((station, count + 1, start, now))
                if count + 1 >= 4 and now - start >= 180:
                    warned.add((station, count + 1, now, now))
    by_minute = {t: {(*e.args, e.start // 60_000_000, e.end // 60_000_000) for e in found if e.type == t} for t in
                 ("settling", "warning", "blizzard_area")}  # fmt: skip
    assert by_minute["settling"] == settled
    assert by_minute["warning"] == warned
    where = blizzard.stations()
    times_of = {name: sorted(t for s, _, t, _ in warned if s == name) for name in where}
    near = {(a, b) for a in where for b in where if 0 < km(where[a], where[b]) < 300}
    for first, second, number, since, end in by_minute["blizzard_area"]:
        assert (first, second) in near and since in times_of[str(first)] and end in times_of[str(second)]
        between = sum(since < t <= end for times in times_of.values() for t in times)
        assert since < end <= since + 540 and isinstance(number, int) and 1 <= number <= between
    # A warning that follows a first one nearby within nine hours, of which there was none before, makes an area.
    starts = {(a, min(t for t in times_of[a])) for a in where if times_of[a]}
    for first, start in starts:
        for second in (b for a, b in near if a == first):
            after = [t for t in times_of[second] if start < t <= start + 540]
            if after:
                assert any(row[:2] == (first, second) and row[4] == after[0] for row in by_minute["blizzard_area"])


def test_flower_delivery() -> None:
    events = flower_delivery.shift(60)
    requests = {e["args"][0]: (time(e), *e["args"][1:]) for e in events if e["type"] == "request"}
    done = {t: {e["args"][0]: time(e) for e in events if e["type"] == t} for t in ("picked_up", "delivered")}
    asked = {(r, d) for r, d, *_ in rows("flower_delivery", "bid_request")}
    rank = {"ann": 5, "bob": 3, "cleo": 4, "dora": 2, "emil": 1}
    roads = {"Queens": "Manhattan", "Manhattan": "Brooklyn", "Brooklyn": "Queens"}  # in a circle; and one to the island
    least = {"Rose Garden": 3, "Tulip & Co": 1, "Orchid House": 4}
    regions = {position: name for name, position in flower_delivery.POSITIONS.items()}
    expected = set()
    for name, (when, _, _, store) in requests.items():
        for driver in rank:
            seen = [e for e in events if e["type"] == "gps" and e["args"][0] == driver and time(e) <= when]
            here = regions[tuple(seen[-1]["args"][1]["args"][1::2])] if seen else "nowhere"
            if rank[driver] >= least[store] and here in roads:
                expected.add((name, driver))
    assert asked == expected
    bids = [(*e["args"], time(e)) for e in events if e["type"] == "bid"]
    offers = [
        (r, d, m, t) for r, d, m, t in bids if (r, d) in asked and requests[r][0] < t <= requests[r][0] + minutes(2)
    ]
    assert {row[0] for row in rows("flower_delivery", "no_bids")} == set(requests) - {o[0] for o in offers}
    assigned: dict[str, tuple[str, int, datetime]] = {}
    for name, (when, _, _, store) in requests.items():
        mine = [o for o in offers if o[0] == name]
        if flower_delivery.STORES[store] == "automatic" and mine:
            _, driver, promised, _ = max(mine, key=lambda o: rank[o[1]])
            assigned[name] = driver, promised, when + minutes(2)
        for e in events:
            if e["type"] == "chosen" and e["args"][0] == name and e["args"][1] in [o[1] for o in mine]:
                promised = next(o[2] for o in mine if o[1] == e["args"][1])
                assigned[name] = e["args"][1], promised, time(e)
    assert {(r, d, m, t) for r, d, m, _, t in rows("flower_delivery", "assignment")} == {
        (r, *rest) for r, rest in assigned.items()
    }
    late = datetime.max
    unpicked = {r for r, (_, _, t) in assigned.items() if not t <= done["picked_up"].get(r, late) <= t + minutes(20)}
    assert {row[0] for row in rows("flower_delivery", "late_pickup")} == unpicked
    allowed = {"express": 45, "standard": 90}
    slow = {r for r in assigned if done["delivered"].get(r, late) > requests[r][0] + minutes(allowed[requests[r][2]])}
    assert {row[0] for row in rows("flower_delivery", "late_delivery")} == slow
    points: Counter[str] = Counter()
    for name, (driver, _, when) in assigned.items():
        points[driver] += when < done["delivered"].get(name, late) <= requests[name][0] + minutes(180)
        points[driver] -= 2 * (name in slow)
    assert {row[1:3] for row in rows("flower_delivery", "ranking")} <= set(points.items())
    assert max(points.values()) == next(row[2] for row in rows("flower_delivery", "ranking") if row[0] == 1)


def test_brokerage() -> None:
    events = brokerage.days(5)
    gone = {e["id"] for e in events if e.get("op") == "revoke"}
    standing = [e for e in events if "type" in e and e["id"] not in gone]
    trades = set()  # an offer, an order and a balance follow each other; the generator does not let them meet others
    for offer, order, booked in zip(
        *([e for e in events if e.get("type") == t] for t in ("available", "checked", "balance")), strict=True
    ):
        if order in standing and booked in standing and order["args"][3] > 10000:
            client, stock, _, amount = order["args"]
            trades.add((client, stock, amount, time(offer), time(booked)))
    assert rows("brokerage", "big_trade") == trades
    by_day = Counter((client, when.date()) for client, _, _, when, _ in trades)
    found = {(client, start.date()): number for client, number, _, start, _ in rows("brokerage", "investigation")}
    assert found == {key: number for key, number in by_day.items() if number >= 2}


def test_what_was_said_and_taken_back() -> None:
    """At each time the answer is that of the events that stand."""
    session = compile(Path(str(files("augury.examples").joinpath("brokerage", "brokerage.aug")))).session()
    said: Counter[str] = Counter()
    for event in brokerage.days(5):
        for change in session.push({k: v for k, v in event.items() if k != "heard"}):
            said[f"{change.op} {change.event.type}"] += 1
    assert said["insert big_trade"] - said["retract big_trade"] == len(rows("brokerage", "big_trade"))
    assert said["retract big_trade"] > 0


def test_web_shop() -> None:
    events = web_shop.orders(400)
    orders = {e["args"][0]: (time(e), *e["args"][1:]) for e in events if e["type"] == "order"}
    shipped = {e["args"][0]: time(e) for e in events if e["type"] == "shipped"}
    delivered = {int(e["args"][0][1:]): time(e) for e in events if e["type"] == "delivered"}
    whole = {n for n in orders if n in delivered and orders[n][0] < shipped[n] < delivered[n]}
    days, hours = timedelta(days=1), timedelta(hours=1)
    assert {row[0] for row in rows("web_shop", "completed")} == {
        n for n in whole if delivered[n] - orders[n][0] <= 5 * days
    }
    assert {row[0] for row in rows("web_shop", "timely")} == {
        n for n in whole if shipped[n] - orders[n][0] <= 12 * hours and delivered[n] - shipped[n] <= 36 * hours
    }
    now = max(map(time, events))
    overdue = set()
    for n, (when, product, quantity) in orders.items():
        allowed = 3 if product in ("roses", "cheese") else 6 if quantity < 10 else 12
        end = when + allowed * hours
        if end <= now and shipped.get(n, datetime.max) > end:
            overdue.add((n, allowed, when, end))
    assert rows("web_shop", "overdue") == overdue
    counted = {(n, sum(end - days <= t <= end for t in shipped.values())) for n, _, _, end in overdue}
    assert {row[:2] for row in rows("web_shop", "report")} == {row for row in counted if row[1]}
    hourly: dict[datetime, list[int]] = {}
    for when, _, quantity in orders.values():
        hourly.setdefault(when.replace(minute=0), []).append(quantity)
    expected = {(len(q), sum(q), t) for t, q in hourly.items() if t + hours <= now}
    assert {row[:3] for row in rows("web_shop", "hourly")} == expected


def test_supply_chain() -> None:
    events = supply_chain.quotes(360)
    changes = [(time(e), e["type"], tuple(e["args"])) for e in events if e["type"] != "price"]
    prices: dict[str, list[tuple[datetime, float]]] = {}
    for e in events:
        if e["type"] == "price":
            prices.setdefault(e["args"][0], []).append((time(e), e["args"][1]))
    rises = [(name, t0, t1) for name, quotes in prices.items() for (t0, p), (t1, q) in pairwise(quotes) if q > 1.05 * p]

    def reached(start: str, when: datetime) -> set[str]:
        links = set(supply_chain.links())
        for t, type, link in sorted(changes):
            if t <= when:
                links = links | {link} if type == "link_up" else links - {link}
        found: set[str] = set()
        todo = [start]
        while todo:
            here = todo.pop()
            for a, b in links:
                if a == here and b not in found:
                    found.add(b)
                    todo.append(b)
        return found

    expected = {
        (a, b, s, v) for a, s, t in rises for b, u, v in rises if t < u and v - s <= minutes(10) and b in reached(a, v)
    }
    assert rows("supply_chain", "trend") == expected
    assert {heard for _, heard, *_ in supply_chain.NEWS} != {when for when, *_ in supply_chain.NEWS}  # one comes late


def graphs(events: list[dict[str, Any]], pattern: str) -> list[tuple[datetime, str, tuple[str, ...]]]:
    """Graph events whose text a regular expression finds: time, stream, what the groups have."""
    found = [(time(e), e["stream"].rpartition("/")[2], re.search(pattern, e["graph"])) for e in events]
    return [(t, stream, match.groups()) for t, stream, match in found if match]


def test_smart_grid() -> None:
    expected = set()
    places: dict[str, list[tuple[datetime, str, tuple[str, ...]]]] = {}
    least = {"mainSource": 20, "weather": 3, "storageSource": 0}
    for one in graphs(smart_grid.events(40), r":(\w+) :loc :(L\d).* :(?:fare|windspeed) ([\d.]+)"):
        if float(one[2][2]) > least[one[1]]:  # an event belongs to a partition where a pattern has a solution with it
            places.setdefault(one[2][1], []).append(one)
    for mine in places.values():
        for number, (start, stream, (house, _, fuel)) in enumerate(mine):
            if stream != "mainSource":
                continue
            windy = [n for n in range(number + 1, len(mine)) if mine[n][1] == "weather"]
            if not windy:
                continue
            last = windy[0]  # the first one after the price, then all that follow directly
            while last + 1 in windy:
                last += 1
            for end in range(windy[0], last + 1):
                if end + 1 < len(mine):
                    when, kind, (_, _, solar) = mine[end + 1]
                    if kind == "storageSource" and float(solar) < float(fuel) and when - start <= minutes(60):
                        expected.add((house, int(fuel), int(solar), end - windy[0] + 1, start, when))
    found = {(h, fuel, solar, n, s, e) for h, _, _, fuel, solar, n, _, s, e in rows("smart_grid", "switch")}
    assert found == expected


def test_card_fraud() -> None:
    used: dict[str, list[tuple[datetime, int, str]]] = {}
    for at_, _, (card, sum_, terminal) in graphs(
        card_fraud.withdrawals(600), r":card :(\w+) ; :amount (\d+) ; :terminal :(\w+)"
    ):
        used.setdefault(card, []).append((at_, int(sum_), terminal))
    country = {"t1": "IE", "t2": "IE", "t3": "FR", "t4": "DE"}
    small, away = set(), set()
    for card, mine in used.items():
        for number, (start, big, _) in enumerate(mine):
            total = 0
            for place, (when, amount, _) in enumerate(mine[number + 1 :], 1):
                if big < 400 or amount * 10 > big or when - start > minutes(30):
                    break
                total += amount
                if place >= 2:
                    small.add((card, big, place, total, start, when))
        for (t0, _, here), (t1, _, there) in pairwise(mine):
            if country[here] != country[there] and t1 - t0 <= minutes(60):
                away.add((card, country[here], country[there], t0, t1))
    assert {(c, *rest) for c, _, *rest in rows("card_fraud", "small_after_big")} == small
    assert {(c, *rest) for c, _, *rest in rows("card_fraud", "far_away")} == away
    blocked = set()
    for card, _, _, t0, t1 in away:
        signs = sum(c == card and t0 - minutes(120) <= s and e <= t1 for c, _, _, _, s, e in small)
        if signs:
            blocked.add((card, signs, t0 - minutes(120), t1))
    assert {(c, *rest) for c, _, *rest in rows("card_fraud", "block")} == blocked


def test_stocks() -> None:
    prices: dict[str, list[tuple[datetime, float]]] = {}
    for at_, _, (company, quote) in graphs(stocks.quotes(200), r":(\w+) :price ([\d.]+)"):
        prices.setdefault(company, []).append((at_, float(quote)))
    shapes, heads = set(), set()
    for company, quotes in prices.items():
        for number, (start, before) in enumerate(quotes):
            low: list[float] = []
            for when, price in quotes[number + 1 :]:
                if low and price >= before and when - start <= minutes(60):
                    shapes.add((company, before, min(low), price, len(low), start, when))
                if price > before * 0.98:
                    break
                low.append(price)
            seven = quotes[number : number + 7]
            if len(seven) == 7:
                a, b, c, d, e, f, g = (price for _, price in seven)
                if b > a * 1.005 and a < c < b and d > b * 1.005 and a < e < b and e < f < d * 0.995 and g < e:
                    heads.add((company, b, d, f, g, start, seven[-1][0]))
    assert {(c, *rest) for c, _, *rest in rows("stocks", "v_shape")} == shapes
    assert {(c, *rest) for c, _, *rest in rows("stocks", "head_and_shoulders")} == heads


def test_traffic() -> None:
    seen = graphs(traffic.observations(150), r":road :(\w+) ; :congestion ([\d.]+)")
    jammed = {(when, road): float(level) for when, _, (road, level) in seen if float(level) > 3}
    expected = set()
    for place, road in enumerate(traffic.ROADS["main"]):
        left, right = traffic.ROADS["west"][place], traffic.ROADS["east"][place]
        both = sorted(when for when, r in jammed if r == left and (when, right) in jammed)
        for when, r in jammed:
            after = [t for t in both if t > when]
            if r == road and after and after[0] - when <= minutes(30):
                end = after[0]
                expected.add((road, jammed[when, r], jammed[end, left], jammed[end, right], when, end))
    found = {(road, a, b, c, start, end) for _, road, _, _, a, b, c, start, end in rows("traffic", "jam")}
    assert found == expected


def test_trajectories() -> None:
    tracks: dict[str, list[Row]] = {}
    for when, _, (vessel, speed, where, course) in graphs(
        trajectories.fixes(12), r':(\w+) :speed (\d+) ; :location "([\w ]+)" ; :direction (\d+)'
    ):
        tracks.setdefault(vessel, []).append((when, int(speed), where, int(course)))
    expected = set()
    for vessel, track in tracks.items():
        for number, (start, first, where, course) in enumerate(track):
            if where != "harbour" or not first:
                continue
            for steady, (when, speed, place, direction) in enumerate(track[number + 1 :]):
                if place == "fishing area" and speed == 0 and steady >= 3 and when - start <= minutes(360):
                    expected.add((vessel, course, steady, start, when))
                if place != "sea" or direction != course or speed <= first:
                    break
    assert {(v, course, n, s, e) for v, _, _, course, n, _, s, e in rows("trajectories", "fishing")} == expected


def test_earthquakes() -> None:
    quakes = [(e["args"][0], e["args"][1], (e["args"][2], e["args"][3]), time(e)) for e in earthquakes.reports(1707)
              if e["kind"] == "earthquake"]  # fmt: skip
    strong = [q for q in quakes if q[1] >= 4.5]
    days = timedelta(days=3)
    main = {
        i: (m, where, t)
        for i, m, where, t in strong
        if not any(n > m and t - days <= u <= t and km(where, there) < 100 for _, n, there, u in strong)
    }
    assert {row[0] for row in rows("earthquakes", "main_shock")} == set(main)
    after = {
        (i, j)
        for i, (m, where, t) in main.items()
        for j, n, there, u in quakes
        if n <= m and t < u <= t + days and km(where, there) < 100
    }
    assert {row[:2] for row in rows("earthquakes", "aftershock")} == after
    fore = {
        (i, j)
        for i, (m, p, t) in main.items()
        for j, (n, q, u) in main.items()
        if n > m and t < u <= t + days and km(p, q) < 100
    }
    assert {(row[0], row[2]) for row in rows("earthquakes", "foreshock")} == fore
    assert ("us1000cfn6", "us1000chhc") in fore  # Hualien, 4 and 6 February 2018
    by_day = Counter(t.date() for *_, t in quakes)
    assert {(row[3].date(), row[0]) for row in rows("earthquakes", "daily")} == set(by_day.items())


def test_seattle_weather() -> None:
    days = [(date.fromisoformat(e["time"]), *e["args"]) for e in seattle_weather.days(1461)]

    def spells(type: str, is_one: Any, least: int) -> None:
        found = {(row[0], row[2].date(), row[3].date()) for row in rows("seattle_weather", type)}
        expected = set()
        for holds, part in groupby(days, is_one):
            several = list(part)
            if holds and len(several) >= least:
                expected.add((len(several), several[0][0], several[-1][0]))
        assert found == expected

    spells("dry_spell", lambda day: day[1] == 0, 14)
    spells("heat_wave", lambda day: day[2] > 30, 3)
    assert {row[2].date() for row in rows("seattle_weather", "storm")} == {
        d for d, rain, _, _, wind, _ in days if rain >= 20 and wind >= 6
    }
    frosts = [day[0] for day in days if day[3] <= 0]
    first = {d for d in frosts if not any(0 < (d - other).days <= 180 for other in frosts)}
    assert {row[1].date() for row in rows("seattle_weather", "first_frost")} == first
    months = {
        (start.year, start.month): (round(rain, 6), wet)
        for rain, wet, _, _, start, _ in rows("seattle_weather", "month")
    }
    for (year, number), (rain, wet) in months.items():
        mine = [day for day in days if (day[0].year, day[0].month) == (year, number)]
        assert (round(sum(day[1] for day in mine), 6), sum(day[1] > 0 for day in mine)) == (rain, wet)
    assert len(months) == 47  # the last day begins, and does not end
