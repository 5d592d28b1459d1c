"""Windows by the clock, read off section 11 of the semantics by brute force: nothing here is shared with the algebra.

A calendar window begins at the first instant whose local time is at or past its wall time: instants are tried, minute by
minute. Totals, conditions, groups of nothing, rankings and starts are loops over all windows and all events.
"""

from __future__ import annotations

import os
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random
from zoneinfo import ZoneInfo

import pytest

import augury
from augury.core.clock import Clock, show_timestamp
from augury.core.model import Event, order_key
from augury.reference.evaluator import evaluate

COUNT = 400 if os.environ.get("AUGURY_FUZZ") else 20
MINUTE = 60_000_000
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Pacific/Apia",
)
# About changes of the clocks, the ends of months, a leap day, a day that was skipped, and the epoch.
TIMES = ("2026-03-29 01:00", "2026-10-25 01:00", "2018-11-04 03:00", "2018-02-18 02:00", "2024-02-29 12:00",
         "2011-12-30 10:00", "1969-12-31 23:30", "2026-04-04 15:00", "2026-12-31 23:00", "1999-06-30 22:00")  # fmt: skip
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Answer = tuple[str, tuple[object, ...], int, int]


def us(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def first_instant(wall: datetime, zone: str) -> int:
    """The first minute at which clocks in a zone show a wall time, or one past it."""
    tz = ZoneInfo(zone)
    moment = wall.replace(tzinfo=UTC) - timedelta(hours=16)
    while moment.astimezone(tz).replace(tzinfo=None) < wall:
        moment += (
            timedelta(minutes=30)
            if moment.astimezone(tz).replace(tzinfo=None) < wall - timedelta(hours=27)
            else timedelta(minutes=1)
        )
    return us(moment)


@dataclass(frozen=True)
class Spec:
    """Windows of some days or months in a zone, or of elapsed time; and what is asked of them."""

    text: str
    unit: str
    size: int
    hop: int
    origin: int
    zone: str
    form: str
    clock: str

    def windows(self, least: int, now: int) -> Iterator[tuple[int, int]]:
        """All windows that end at or after the least end of an event, and by the clock."""
        found = {
            "us": self._elapsed,
            "day": self._days,
            "month": self._months,
        }[self.unit](least, now)
        yield from ((s, e) for s, e in found if s <= e and least <= e <= now)

    def _elapsed(self, least: int, now: int) -> Iterator[tuple[int, int]]:
        first = (least - self.origin) // self.hop - self.size // self.hop - 3
        for k in range(first, (now - self.origin) // self.hop + 3):
            start = self.origin + k * self.hop
            yield start, start + self.size - 1

    def _days(self, least: int, now: int) -> Iterator[tuple[int, int]]:
        base = datetime(1969, 12, 29) if self.size % 7 == 0 or self.hop % 7 == 0 else datetime(1970, 1, 1)
        low = (EPOCH + timedelta(microseconds=least)).replace(tzinfo=None) - timedelta(days=self.size + 3)
        high = (EPOCH + timedelta(microseconds=now)).replace(tzinfo=None) + timedelta(days=3)
        k = (low - base).days // self.hop - 1
        while base + timedelta(days=k * self.hop) <= high:
            start, after = (base + timedelta(days=k * self.hop + more) for more in (0, self.size))
            yield first_instant(start, self.zone), first_instant(after, self.zone) - 1
            k += 1

    def _months(self, least: int, now: int) -> Iterator[tuple[int, int]]:
        low = (EPOCH + timedelta(microseconds=least)).year * 12 - 14
        high = (EPOCH + timedelta(microseconds=now)).year * 12 + 14
        for k in range(low - low % self.size, high, self.size):
            start, after = (datetime(m // 12, m % 12 + 1, 1) for m in (k, k + self.size))
            assert monthrange(start.year, start.month)
            yield first_instant(start, self.zone), first_instant(after, self.zone) - 1


def spec(chance: Random) -> Spec:
    form = chance.choice(["totals", "having", "none", "top", "since", "silent"])
    match chance.choice(["ticks", "us", "day", "month"]):
        case "ticks":
            size, hop, origin = chance.randint(1, 7), chance.randint(1, 7), chance.randint(-3, 3)
            return Spec(f"every({size}s, {hop}s, from = {origin})", "us", size, hop, origin, "", form, "logical")
        case "us":
            size, hop = chance.choice([(3600, 600), (86400, 86400), (5400, 3600), (600, 900)])
            return Spec(f"every({size}s, {hop}s)", "us", size * 10**6, hop * 10**6, 0, "", form, "timestamp")
        case "day":
            size, hop = chance.choice([(1, 1), (2, 1), (7, 7), (3, 5), (14, 7), (7, 2)])
            zone = chance.choice(ZONES)
            return Spec(
                f"every({size} days, {hop} days, zone = '{zone}')", "day", size, hop, 0, zone, form, "timestamp"
            )
    name, size = chance.choice([("month", 1), ("quarter", 3), ("year", 12)])
    zone = chance.choice([*ZONES, "UTC"])
    return Spec(f"every({name}, zone = '{zone}')", "month", size, size, 0, zone, form, "timestamp")


PROGRAMS = {
    "totals": "e(K, sum(X), count()) <- w: {}, while w: collect a(K, X).",
    "having": "e(K, N) <- w: {}, while w: collect a(K, X), N = count(), N >= 2, max(X) > 1.",
    "none": "known(1). known(2). known(3). e(K, count(), sum(X)) <- w: {}, known(K), while w: collect a(K, X) or none.",
    "top": "e(K, R) <- w: {}, while w: collect a(K, X) TOP 2 BY sum(X) AS R.",
    "since": "e(K, count()) SINCE last(start(p)) <- w: {}, while w: collect p: a(K, X).",
    "silent": "known(1). known(2). e(K) <- w: {}, known(K), while w: not a(K, _).",
}


def history(chance: Random, one: Spec) -> list[Event]:
    events = []
    base = 0 if one.clock == "logical" else us(datetime.fromisoformat(chance.choice(TIMES)).replace(tzinfo=UTC))
    for i in range(chance.randint(1, 9)):
        step = 1 if one.clock == "logical" else chance.choice([MINUTE, 30 * MINUTE, 60 * MINUTE, 24 * 60 * MINUTE])
        start = base + chance.randint(-8, 8) * step - chance.choice([0, 0, 1])
        end = start + chance.choice([0, 0, 0, 1, 2]) * step
        events.append(Event("a", (chance.randint(1, 3), chance.choice([1, 2, 3, 2.5])), start, end, f"i{i}"))
    return events


def answers(one: Spec, events: list[Event], now: int) -> set[Answer]:
    """What section 11 says, by trying everything."""
    found: set[Answer] = set()
    if not events:
        return found
    for start, end in one.windows(min(e.end for e in events), now):
        inside = sorted((e for e in events if start <= e.start and e.end <= end), key=lambda e: e.order)
        groups = {k: [e for e in inside if e.args[0] == k] for k in (1, 2, 3)}
        totals = {k: _sum([e.args[1] for e in own]) for k, own in groups.items()}
        for k, own in groups.items():
            match one.form:
                case "totals" if own:
                    found.add(("e", (k, totals[k], len(own)), start, end))
                case "having" if len(own) >= 2 and max(e.args[1] for e in own) > 1:  # type: ignore[type-var, operator]
                    found.add(("e", (k, len(own)), start, end))
                case "none":
                    found.add(("e", (k, len(own), totals[k] if own else None), start, end))
                case "since" if own:
                    found.add(("e", (k, len(own)), own[-1].start, end))
                case "silent" if not own and k < 3:
                    found.add(("e", (k,), start, end))
        if one.form == "top":
            ranked = sorted((k for k, own in groups.items() if own), key=lambda k: (-totals[k], k))  # type: ignore[operator]
            found |= {("e", (k, place), start, end) for place, k in enumerate(ranked[:2], 1)}
    return found


def _sum(values: list[object]) -> object:
    exact = sum(Fraction(v) for v in values)  # type: ignore[call-overload, arg-type, unused-ignore]
    return float(exact) if any(isinstance(v, float) for v in values) else int(exact)


def keyed(found: set[Answer]) -> set[object]:
    return {(type, tuple(order_key(a) for a in args), start, end) for type, args, start, end in found}  # type: ignore[arg-type]


@pytest.mark.parametrize("part", range(4))
def test_windows_by_brute_force(part: int) -> None:
    """The reference, and a session that is told in any order with an event that is taken back, say what brute force says."""
    said = 0
    for seed in range(COUNT):
        chance = Random(f"{part} {seed}")
        one = spec(chance)
        events = history(chance, one)
        program = augury.compile(PROGRAMS[one.form].format(one.text))
        clock = Clock("logical") if one.clock == "logical" else Clock("timestamp")
        ahead = chance.choice([0, 5, 40]) * (1 if one.clock == "logical" else 24 * 60 * MINUTE)
        now = max(e.end for e in events) + ahead
        expected = keyed(answers(one, events, now))
        model = evaluate(program.plan, events, clock, until=now)
        assert keyed({(e.type, e.args, e.start, e.end) for e in model.events}) == expected, (part, seed, one)
        session = program.session(clock=one.clock)
        first = min(e.start for e in events)
        told = [*events, Event("a", (1, 3), first, max(first, max(e.end for e in events) - 1), "extra")]
        chance.shuffle(told)
        for event in told:
            session.push(event)
        session.revoke("extra")
        session.advance(now if one.clock == "logical" else show_timestamp(now))
        given = {(e.type, e.args, e.start, e.end) for e in session.events()}
        assert keyed(given) == expected, (part, seed, one)  # type: ignore[arg-type]
        said += bool(expected)
    assert said > COUNT / 2
