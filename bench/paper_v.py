"""The experiments of "Retractable Complex Event Processing and Stream Reasoning" (2011), figures 3 to 5."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

import augury
from bench.bundles import ABSENT, alike, bundled
from bench.measure import Settings, give, measure, timed
from bench.paper_r import HEADER, NAMES, declared, size
from bench.rows import Row, throughput
from bench.streams import BEGIN, SEED
from bench.workload import BATCH, Revoke, Tables, Workload, one, tables

COMPANIES = (100, 1_000, 10_000)
SHARES = (5, 10, 15, 20)
CHAINS = (1_000, 10_000, 20_000, 50_000)
RULES = (1_000, 2_000, 5_000)  # a rule for each derived event: reading fifty thousand of them would be most of the time
PAPER = {
    1_000: 31.0,
    10_000: 1_000.0,
    20_000: 3_000.0,
    50_000: 16_000.0,
}  # milliseconds; for 10,000 "less than a second"
INCREASES = (0, 2, 5, 10)
DAYS = 12_500  # trading days of about fifty years, the length of the paper's series
REVISED = 0.05


REASONING = f"""{HEADER}static linked(supplier: int, customer: int).
event risen(company: int).
supplies(X, Y) :- linked(X, Y).
supplies(X, Z) :- linked(X, Y), supplies(Y, Z).
trend(A, B) <- (risen(A) SEQ risen(B)).10 WHERE supplies(A, B).
"""


def reasoning(events: int, companies: int) -> Workload:
    """A rise of the first company, then of the last: each pair is an answer as a chain of suppliers links the two."""
    pairs = events // 2
    # A pair has a second to itself: no company of one pair is near one of the next.
    time = BEGIN + np.repeat(np.arange(pairs), 2) * 1000 + np.tile([0, 5], pairs)
    columns = {"time": time, "company": np.tile([0, companies - 1], pairs)}
    steps = tables(np.zeros(2 * pairs, np.int64), ["risen"], columns)
    facts = {"linked": [(i, i + 1) for i in range(companies - 1)]}
    return Workload(REASONING, steps, 2 * pairs, pairs, facts)


def operator(events: int, name: str) -> Workload:
    """Rule (1)."""
    keys = events // 2
    stream = bundled(alike(keys, (0, 1)))
    rule = f"found(K) <- (a(K, _) {name} b(K, _)).1000.\n"
    return Workload(declared("ab") + rule, stream.tables(NAMES), len(stream), 2 * keys if name == "OR" else keys)


def negation(events: int, share: int, revised: bool) -> Workload:
    """Rule (2): a share of the keys has a c; where the stream is revised, as many again have one that is taken back.

    A c is taken back after the batch in which it came, when its key was already found not to be an answer.
    """
    keys = events // 3
    kinds = alike(keys, (0, 2, 1))
    lot = np.random.default_rng(share).random(keys)
    stands = lot < share / 100
    falls = ~stands & (lot < 2 * share / 100) & revised
    kinds[~(stands | falls), 1] = ABSENT
    stream = bundled(kinds)
    ids = np.array([f"e{i}" for i in range(len(stream))])
    columns = {"time": stream.time, "id": ids, "key": stream.key, "value": stream.value}
    revoked = np.flatnonzero((stream.kind == 2) & falls[stream.key])
    steps: list[Tables | Revoke] = []
    for number, step in enumerate(tables(stream.kind, NAMES, columns)):
        steps.append(step)
        gone = revoked[revoked // BATCH == number]
        if len(gone):
            steps.append(Revoke(tuple(ids[gone].tolist())))
    rule = "found(K) <- (NOT(c(K, _)).[a(K, _) SEQ b(K, _)]).1000.\n"
    return Workload(declared("abc") + rule, steps, len(stream) + len(revoked), int(np.sum(~stands)))


def chain_of_rules(length: int) -> Workload:
    """Rule (3): each type is derived from the one before. What stands in the end is nothing."""
    rules = "".join(f"e{i + 1}(K) <- e{i}(K).\n" for i in range(1, length + 1))
    return Workload(HEADER + rules, [one("e1", time=BEGIN, id="first", key=1), Revoke(("first",))], length, 0)


def chain_of_events(length: int) -> Workload:
    """The same chain grown by recursion: each derived event needs the one before, and all need the first."""
    rules = """output reached.
reached(N) <- begin(N).
reached(M) <- reached(N) SEQ link(N, M).
"""
    begin = one("begin", time=BEGIN, id="first", node=0)
    node = np.arange(length - 1)
    links = tables(np.zeros(length - 1, np.int64), ["link"], {"time": BEGIN + 1 + node, "node": node, "next": node + 1})
    return Workload(HEADER + rules, [begin, *links, Revoke(("first",))], length, 0)


def increases(events: int, percent: int, revised: bool) -> Workload:
    """Rule (4), the increase from one day to the next; a revised stream corrects one event in twenty."""
    rng = np.random.default_rng(SEED)
    companies = max(1, events // DAYS)
    days = events // companies
    walk = 100 * np.exp(np.cumsum(rng.normal(0, 0.04, (days, companies)), axis=0))
    adjusted = walk.reshape(-1).copy()
    company = np.tile(np.arange(companies), days)
    ids = np.array([f"s{i}" for i in range(len(adjusted))])
    columns = {
        "time": BEGIN + np.arange(len(adjusted)),
        "id": ids,
        "company": company,
        "date": np.repeat(np.arange(days), companies),
        "opening": adjusted * 0.99,
        "high": adjusted * 1.02,
        "low": adjusted * 0.98,
        "closing": adjusted * 1.01,
        "volume": rng.integers(1_000, 100_000, len(adjusted)),
        "adjusted": adjusted.copy(),
    }
    kind = np.zeros(len(adjusted), np.int64)
    wrong = np.flatnonzero(rng.random(len(adjusted)) < REVISED) if revised else np.zeros(0, np.int64)
    adjusted[wrong] *= rng.uniform(0.9, 1.1, len(wrong))
    corrected = {name: values[wrong] for name, values in columns.items()}
    corrected["adjusted"] = adjusted[wrong]
    corrected["id"] = np.char.add(ids[wrong], "corrected")
    steps: list[Tables | Revoke] = []
    for number, step in enumerate(tables(kind, ["stock"], columns)):
        steps.append(step)
        mine = wrong // BATCH == number
        if mine.any():
            steps.append(Revoke(tuple(ids[wrong[mine]].tolist())))
            steps += tables(kind[wrong[mine]], ["stock"], {name: values[mine] for name, values in corrected.items()})
    factor = 1 + percent / 100
    rules = f"""event stock(company: int, date: int, opening: float, high: float, low: float, closing: float,
    volume: int, adjusted: float).
increase(C, P, Q) <- (NOT(stock(C, _, _, _, _, _, _, _)).[stock(C, _, _, _, _, _, _, P), stock(C, _, _, _, _, _, _, Q)])
    .{2 * companies} WHERE P * {factor} < Q.
"""
    final = adjusted.reshape(days, companies)
    expected = int(np.sum(final[:-1] * factor < final[1:]))
    return Workload(HEADER + rules, steps, len(adjusted) + 2 * len(wrong), expected)


def figure_3a(settings: Settings) -> Iterator[Row]:
    """Detection with reasoning: chains of linked companies behind each answer."""
    shrink = min(1.0, settings.events / 1_000_000)
    for companies in COMPANIES:
        workload = reasoning(size(settings) // 5, max(10, int(companies * shrink)))
        yield throughput(
            "V3a", f"{len(workload.facts['linked']) + 1:,} companies", "augury", workload, measure(workload, settings)
        )


def figure_3b(settings: Settings) -> Iterator[Row]:
    """What it costs to be ready for revocations, by operator."""
    for name in ("SEQ", "AND", "OR"):
        workload = operator(size(settings), name)
        for series, revisable in (("without revision", False), ("with revision", True)):
            yield throughput("V3b", name, series, workload, measure(workload, settings, revisable=revisable))


def figure_3c(settings: Settings) -> Iterator[Row]:
    """Negation: a share of the keys negated, and as many again negated and taken back."""
    for share in SHARES:
        for series, revised in (("without revision", False), ("with revision", True)):
            workload = negation(size(settings), share, revised)
            yield throughput(
                "V3c", f"{share} % negated", series, workload, measure(workload, settings, revisable=revised)
            )


def figure_4(settings: Settings) -> Iterator[Row]:
    """How long it takes to take back a chain of derived events after its first event is revoked."""
    shrink = min(1.0, settings.events / 1_000_000)
    for length in sorted({*RULES, *CHAINS}):
        events = max(10, int(length * shrink))
        if length in RULES:
            yield retraction("augury, n rules", chain_of_rules(events), settings)
        if length in CHAINS:
            yield retraction("augury, recursion", chain_of_events(events), settings)
        if length in PAPER and events == length:
            yield Row("V4", f"chain of {length:,}", "the paper", PAPER[length], "CPU ms", length)


def retraction(series: str, workload: Workload, settings: Settings) -> Row:
    """The time of the last step alone, which takes back as many answers as the steps before it gave."""
    program = augury.compile(workload.text)
    times: list[float] = []
    for _ in range(1 + settings.repeat):  # the first run is the warm-up
        session = settings.open(program)
        give(session, workload.steps[:-1])
        cpu, gone = timed(partial(give, session, workload.steps[-1:]))
        times.append(cpu)
    length = workload.events
    return Row("V4", f"chain of {length:,}", series, 1000 * min(times[1:]), "CPU ms", length, gone, length, times[0])


def figure_5(settings: Settings) -> Iterator[Row]:
    """Prices day by day, as they are and with 5 % of them corrected, by the increase that is looked for."""
    for percent in INCREASES:
        for series, revised in (("original", False), ("5 % revised", True)):
            workload = increases(size(settings), percent, revised)
            timing = measure(workload, settings, revisable=revised)
            yield throughput("V5", f"more than {percent} %", series, workload, timing)


EXPERIMENTS = {"V3a": figure_3a, "V3b": figure_3b, "V3c": figure_3c, "V4": figure_4, "V5": figure_5}
