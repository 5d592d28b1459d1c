"""How the rows of rules spread over tasks, counted: no rule with a key, a window or a combinable aggregate runs in one.

No Spark here: `tests.support.spark_local` routes rows as the Spark executors do. Answers are compared with a session's.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from typing import Literal

import pytest

pytest.importorskip("pyspark", reason="the Spark executor is an extra")

import augury
from augury.core.model import Event, HistoryItem
from tests.support.spark_local import HEARTBEAT, Local

BUCKETS = 8
QUERY = """PREFIX e: <http://e/>
SELECT ?k ?v ?w
WITHIN 9 SECONDS {partition}
FROM STREAM S <http://e/S>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?k e:v ?v }}
  DEFINE GPM B ON S {{ ?k e:v ?w FILTER(?w > ?v) }}
}}"""
How = Literal["batch", "stream"]


@dataclass(frozen=True)
class Spread:
    """A program, and where no task may have more than half of the rows that go into its stages."""

    text: str
    batch: bool = True
    stream: bool = True
    language: str = "rules"


RULES = {
    "a sequence with one key": Spread("s(X) <- (a(X, _) SEQ b(X, _)).50."),
    "a key that changes inside a rule": Spread("s(X, Z) <- ((a(X, Y) SEQ b(Y, Z)).20 SEQ c(Z, _)).50."),
    "a key that changes twice": Spread("s(X, W) <- (((a(X, Y) SEQ b(Y, Z)) SEQ c(Z, W)) SEQ d(W, _)).300."),
    "a key that changes between labels": Spread(
        "s(X, Z) <- o: a(X, Y), p: b(Y, Z), q: c(Z, _), o before p, p before q, {o, p} within 20s, {o, q} within 50s."
    ),
    "the same as two rules": Spread(
        "output s. p(X, Z) <- (a(X, Y) SEQ b(Y, Z)).20. s(X, Z) <- (p(X, Z) SEQ c(Z, _)).50."
    ),
    "a join on a distance": Spread("s(X, Y) <- (a(X, V) SEQ b(Y, W)).10 WHERE abs(V - W) < 3."),
    "a count per hour": Spread("s(count()) <- w: every(10s), while w: collect a(_, _)."),
    "totals of a long window": Spread("s(count(), sum(V), avg(V where V > 9), max(X)) <- w: every(200s), while w: collect a(X, V)."),
    "distinct values of a long window": Spread(
        "s(count(distinct V), count()) <- w: every(200s), while w: collect a(_, V)."
    ),
    "the top three of a long window": Spread(
        "s(X, C, R) <- w: every(200s), while w: collect a(X, _), C = count() TOP 3 BY C AS R.",
    ),
    "a moving sum": Spread(
        "s(X, sum(V)) <- o: a(X, _), w: extend_backward(o, 10s), while w: collect b(_, V).",
    ),
    "a transitive closure": Spread("s(X, Y) <- a(X, Y). s(X, Z) <- (s(X, Y) SEQ a(Y, Z)).6."),
    "a recursion with a key": Spread("s(X, Y) <- a(X, Y). s(X, Z) <- (s(X, _) SEQ b(X, Z)).9."),
    "a policy with a key": Spread("s(X) <- (a(X, _) SEQ[recent per (X)] b(X, _)).50."),
    "a policy without a key": Spread("s(X, Y) <- (a(X, _) SEQ[recent] b(Y, _)).9."),
    "two policies without a key": Spread("s(X, Z) <- ((a(X, _) SEQ[recent] b(_, _)) SEQ[recent] c(Z, _)).9."),
    "first in, first out": Spread("s(X, Y) <- (a(X, _) SEQ[chronological] b(Y, _)).9.", False, False),
    "a run with a key": Spread("s(X, count(V)) <- (a(X, V){2,3}).90 WHERE V > prev(V) PER (X)."),
    "a run without a key": Spread("s(count(V)) <- (a(_, V){2,3}).9 WHERE V > prev(V) PER ()."),
    "a window by the clock for each key": Spread("s(X, count()) <- w: every(10s), while w: collect a(X, _)."),
    "the top ten of a window": Spread(
        "s(X, C, R) <- w: every(20s), while w: collect a(X, _), C = count() TOP 3 BY C AS R.",
    ),
    "changing facts": Spread("fact on(X) <- a(X, _). fact not on(X) <- b(X, _). s(X, V) <- c(X, V) WHERE on(X)."),
    "the latest facts": Spread("fact latest rate(X, V) PER (X) <- a(X, V). s(X, V, W) <- c(X, W) WHERE rate(X, V)."),
    "static rules over changing facts": Spread(
        "fact on(X) <- a(X, _). lit(X, N) :- on(X), room(X, N). room(1, 7). room(2, 8). room(3, 9). "
        "s(X, N) <- c(X, _) WHERE lit(X, N)."
    ),
    "an absence with a key": Spread("s(X) <- o: a(X, _), w: extend(o, 10s), while w: not b(X, _)."),
    "an absence without a key": Spread("s(X) <- o: a(X, _), w: extend(o, 3s), while w: not b(_, _)."),
    "the first of equal ones": Spread("s(X) <- o: a(X, _), w: extend_backward(o, 10s), while w: not b(X, _)."),
    "counts by two keys": Spread(
        "s(X, count()) <- w: every(10s), while w: collect a(X, _). t(V, count()) <- w: every(10s), while w: collect a(_, V)."
    ),
    "the last n of a key": Spread("s(X, sum(V)) <- a(X, _), last 3: collect b(X, V)."),
    "unrelated events within a minute": Spread("s(X, Y, Z) <- (a(X, _) SEQ b(Y, _) SEQ c(Z, _)).6."),
    "windows in which nothing happened": Spread("s() <- w: every(10s), while w: not a(1, _)."),
    "windows with or without events": Spread(
        "room(1). room(2). room(99). s(X, count(), sum(V)) <- w: every(20s), room(X), while w: collect a(X, V) or none."
    ),
    "windows without events, by the key of events beside them": Spread(
        "s(X, start(o), count()) <- w: every(10s), o: b(X, _), o inside w, while w: collect a(X, V) or none."
    ),
    "windows in which nothing of a key happened": Spread(
        "s(X) <- w: every(10s), o: b(X, _), o inside w, while w: not a(X, _)."
    ),
    "windows and those before them": Spread(
        "s(X, count(U), count(V)) <- w: every(10s), v: previous(w), while w: collect a(X, V), while v: collect a(X, U)."
    ),
    "a query by partitions": Spread(QUERY.format(partition="PARTITION BY (?k)"), language="spaseq"),
    "a query without partitions": Spread(QUERY.format(partition=""), language="spaseq"),
    "two variables": Spread("s(X, V) <- (a(X, V) SEQ b(X, V)).50."),
}  # fmt: skip


def program_of(name: str) -> augury.Program:
    return augury.compile(RULES[name].text, language=RULES[name].language, name="q")


def history(name: str) -> list[HistoryItem]:
    if RULES[name].language == "spaseq":
        chance = random.Random(name)
        rows = [(chance.randrange(20), chance.randrange(9), time) for time in range(200)]
        return [Event("<http://e/S>", (f"<http://e/n{k}> <http://e/v> {v} .",), time) for k, v, time in rows]
    chance, keys = random.Random(name), 4 if "facts" in name or "without events" in name else 40
    types = sorted({type for type, arity in program_of(name).plan.event_types if type in "abcd"})
    return [Event(chance.choice(types), (chance.randrange(keys), chance.randrange(keys)), time) for time in range(400)]


def shares(name: str, how: How) -> tuple[dict[int, Counter[int]], set[object]]:
    """How many rows each task takes in, and the answers."""
    program, items = program_of(name), history(name)
    if how == "batch":
        local = Local(program, items, longest=True, seed=name, typed=True)
        found, _ = local.batch(BUCKETS)
        return local.rows_by_task, {e.content for e in found}
    last = Event(HEARTBEAT, (), 10**3)
    local = Local(program, [*items, last], longest=True, seed=name, typed=True)
    batches = [*(local.history[i : i + 50] for i in range(0, len(items), 50)), local.history[-1:]]
    told = local.stream(batches, 10, BUCKETS, "final")
    return local.rows_by_task, {content for content, e in told.standing().items() if e.end < 400}


@pytest.mark.parametrize("how", ["batch", "stream"])
@pytest.mark.parametrize("name", RULES)
def test_rows_spread_over_tasks(name: str, how: How) -> None:
    rule, until = RULES[name], 399 if how == "batch" else 500
    expected = {e.content for e in augury.run(program_of(name), history(name), until=until) if e.end < 400}
    tasks, found = shares(name, how)
    assert expected and found == expected
    all_rows = max(sum(rows.values()) for rows in tasks.values())  # what is left for totals of totals is few
    widest = max(max(rows.values()) for rows in tasks.values()) / all_rows
    assert (widest < 0.55) == (rule.batch if how == "batch" else rule.stream)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if not rule.batch])
def test_explain_says_which_rule_stays_in_one_bucket_and_what_would_help(name: str) -> None:
    lines = [line.strip() for line in program_of(name).explain().splitlines()]
    for number in (n for n, line in enumerate(lines) if line.endswith("in one bucket")):
        rest = lines[number : number + 8]
        assert any(line.startswith("warning: no key, for") and "rule `s`" in line for line in rest)
        assert any(line.startswith("hint: ") for line in rest)
