"""A session that goes on with another program: unchanged rules keep their state, new ones start, gone ones end."""

from __future__ import annotations

import os
import random

import pytest

import augury
from augury.compiled import Compiled
from augury.core.clock import Clock
from augury.core.model import Event, OrderKey
from augury.engine.admission import history_of
from augury.engine.changes import Changes
from augury.engine.session import Session
from augury.engine.snapshot import fingerprint, restored
from augury.program import Program
from augury.reference import evaluate
from augury.settings import Settings

RULES = (
    "rule pair: p(X) <- (a(X, _) SEQ b(X, _)).20.",
    "rule pair: p(X) <- (a(X, _) SEQ b(X, _)).30.",
    "rule triple: t(X) <- (p(X) SEQ c(X, _)).50.",
    "rule count: n(X, count()) <- w: every(10s), while w: collect a(X, _).",
    "rule absence: z(X) <- o: a(X, _), w: extend(o, 8s), while w: not b(X, _).",
    "rule recent: r(X, V) <- (a(X, V) SEQ[recent per (X)] c(X, _)).40.",
    "rule sums: s(X, sum(V)) <- o: c(X, _), w: extend_backward(o, 15s), while w: collect a(X, V).",
    "rule run: q(X, count(V)) <- (a(X, V){2,3}).60 WHERE V > prev(V) PER (X).",
    "rule graph: g(X, Y) <- a(X, Y). ",
    "rule reach: g(X, Z) <- (g(X, Y) SEQ b(Y, Z)).25.",
)  # fmt: skip


def some_rules(chance: random.Random) -> Program:
    rules = [rule for rule in RULES if chance.random() < 0.5]
    labels = [rule.partition(":")[0].removeprefix("rule ") for rule in rules]
    rules = [rule for n, rule in enumerate(rules) if labels[n] not in labels[:n]]
    if "triple" in labels and "pair" not in labels:
        rules.append(RULES[0])
    if "reach" in labels and "graph" not in labels:
        rules.append(RULES[8])
    return augury.compile("\n".join(rules) or RULES[0])


@pytest.mark.parametrize("emit", ["early", "final"])
def test_rules_change_while_a_session_runs(emit: str) -> None:
    for seed in range(100 if os.environ.get("AUGURY_FUZZ") else 10):
        _check(random.Random(f"{emit} {seed}"), emit)


def _check(chance: random.Random, emit: str) -> None:
    events = [Event(chance.choice("abc"), (chance.randrange(3), chance.randrange(9)), time) for time in range(150)]
    programs = [some_rules(chance) for _ in range(3)]
    clock, since = Clock("logical"), {rule.label: -1 for rule in programs[0].optimised.rules}
    session = Session(Compiled(programs[0].plan), Settings(emit=emit), clock=clock)  # type: ignore[arg-type]
    session.circuit.learns = False
    standing: dict[OrderKey, Event] = {}
    for number, running in enumerate(programs):
        if number:
            now = 50 * number - 1
            before = {rule.label: rule for rule in session.plan.rules}
            after = running.optimised
            since = {r.label: since.get(r.label, -1) if before.get(r.label) == r else now for r in after.rules}
            _tell(standing, session.become(Compiled(running.plan), now), emit)
            if emit == "final":
                standing = {c: e for c, e in standing.items() if e.type in running.plan.outputs}
        for start in range(50 * number, 50 * number + 50, 10):
            _tell(standing, session.push_batches(history_of(events[start : start + 10]).batches, start + 9), emit)
            if chance.random() < 0.4:
                session.prune()
            if chance.random() < 0.5:
                chain = {fingerprint(p.plan, clock): Compiled(p.plan) for p in programs[: number + 1]}
                session = restored(Compiled(programs[0].plan), session.snapshot(), Session, programs=chain)
                session.circuit.learns = False
    _compare(standing, session, programs[-1], events, since, emit)


def _tell(standing: dict[OrderKey, Event], changes: Changes, emit: str) -> None:
    for change in changes:
        if change.op == "insert":
            standing[change.event.content] = change.event
        elif emit == "early":
            standing.pop(change.event.content)


def _compare(
    standing: dict[OrderKey, Event],
    session: Session,
    last: Program,
    events: list[Event],
    since: dict[str, int],
    emit: str,
) -> None:
    """Each rule whose inputs are events, or rules as old as itself, has the answers of the events that it has seen."""
    for rule in last.optimised.rules:
        below = [r for r in last.optimised.rules if r.type == rule.type or (rule.label, r.label) == ("triple", "pair")]
        seen = {since[r.label] for r in below}
        if len(seen) > 1:
            continue
        start = seen.pop()
        model = evaluate(last.plan, [e for e in events if e.start > start], session.clock, (), 149, None, None, {})
        expected = {e.content for e in model.events if e.type == rule.type and e.end > 100}
        assert {c for c, e in standing.items() if e.type == rule.type and e.end > 100} == expected
    assert emit == "final" or {e.content for e in session.events()} <= set(standing)
