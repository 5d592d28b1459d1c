"""Why an event was not detected: the nearest partial match of each rule, and what it fails at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from augury.algebra.matching import Scalars
from augury.algebra.place import placed, varying
from augury.algebra.properties import all_properties
from augury.core.clock import SECOND, Clock, Kind
from augury.core.errors import AuguryError, DataError, RunError
from augury.core.model import Event, Fact, HistoryItem, give_ids, show_value
from augury.explain.why_not import CAPPED, UNTOLD, Miss, misses_as_json, show_misses, why_not
from augury.knowledge.facts import facts_from
from augury.knowledge.timeline import as_statements, timeline
from augury.notation import read_event, show_event
from augury.program import Program, compile
from augury.reference import evaluate
from augury.reference.evaluator import made
from augury.semantics.static_calls import Static
from augury.settings import length
from augury.sources import item_from
from augury.testing import Case
from tests.generators.programs import WRITERS, clock_of, example, flat
from tests.support.functions import FUNCTIONS
from tests.support.spec_cases import all_cases


@dataclass
class Finished:
    """A run of the reference evaluator, to be asked about what it did not detect."""

    program: Program
    clock: Clock
    history: Iterable[HistoryItem]
    facts: Sequence[Fact] = ()
    until: int | None = None
    as_of: int | None = None
    retention: int | None = None

    def __post_init__(self) -> None:
        plan = self.program.plan
        self.model = evaluate(plan, self.history, self.clock, self.facts, self.until, self.as_of, self.retention)
        given = [e for e in self.model.inputs.values() if (e.type, len(e.args)) not in plan.derived]
        self.events: list[Event] = [*given, *self.model.all_events]
        unbounded = {label for label, found in all_properties(plan).items() if found.horizon is None}
        facts_varying = varying(plan, self.facts)
        self.rules = [placed(rule, facts_varying, self.retention, unbounded) for rule in plan.rules]
        self.scalars = Scalars(plan.functions, plan.aggregates, self.clock)
        by_type: dict[tuple[str, int], list[Event]] = {}
        for event in self.events:
            by_type.setdefault((event.type, len(event.args)), []).append(event)
        said = as_statements(self.facts)
        known = list(timeline([*made(plan, by_type, said), *said])) if plan.made else self.facts
        self.static = Static(plan.clauses, known, self.scalars, lambda *_: None)

    def ask(self, atom: str) -> list[Miss]:
        settings = (self.clock, self.static, self.scalars)
        return why_not(self.program.plan, self.rules, self.events, *settings, atom, self.model.clock)


def finished(program: str, events: str, settings: Mapping[str, Any] = {}) -> Finished:
    compiled = compile(program, facts=settings.get("facts", {}), policy=settings.get("policy"))
    kind: Kind = settings.get("clock", "logical")
    clock = Clock(kind, compiled.plan.tick or SECOND)
    lines = [line.strip() for line in events.split(";") if line.strip()]
    history = [item_from(read_event(line, clock, compiled.plan.prefixes), compiled.plan, clock) for line in lines]
    facts = facts_from(list(settings.get("facts", {}).items()), compiled.plan, clock)
    return Finished(compiled, clock, history, facts, settings.get("until"), None, length(settings.get("retention")))


def told(run: Finished, atom: str) -> list[str]:
    """`rule 1 of 2: its events | what failed | …`, one line a rule."""
    return [
        f"{miss.rule} {len(miss.parts)} of {miss.total}: "
        + " | ".join([", ".join(show_event(p, run.clock) for p in miss.parts) or "nothing", *miss.failed])
        for miss in run.ask(atom)
    ]


FIRE = "fire(P) <- (smoke(P) SEQ heat(P)).5."
BURST = "burst(I, count(X)) <- (a(I) NEXT b(I, X)+ NEXT c(I)).9 WHERE X > prev(X)."
ORDERED = "r(X, Y) <- a(X) SEQ b(Y)"
OVERDUE = "overdue(N) <- o: order(N), w: extend(o, 3s), while w: not shipped(N)."
TAKINGS = "takings(S, sum(P)) <- c: closing(S), w: extend_backward(c, 5s), while w: collect sale(S, P)."
SALES = "sale('a', 10) @ 1; sale('a', 5) @ 3; sale('b', 7) @ 4; sale('a', 2) @ 6; closing('a') @ 7; closing('b') @ 10"
TRIPS = "trip(A, B) <- flight(A, B). trip(A, C) <- trip(A, B) SEQ flight(B, C)."
CARS = "position('p', 'gate') @ 1; position('q', 'gate') @ 2; position('p', 'yard') @ 3; alarm('gate') @ 4"
COUNTED = "clicks(S, count()) <- w: every(10s), while w: collect click(S)."
BEST = "best(S, R) <- w: every(10s), while w: collect sale(S, A) TOP 1 BY sum(A) AS R."
SHOPS = "shop('a'). sold(S, count()) <- w: every(10s), shop(S), while w: collect sale(S) or none."
FLOW = "flow(S, count(i), count(o)) <- w: every(10s), while w: collect i: in(S), while w: collect o: out(S)."
HOT = "fact hot(S) <- temp(S, T), T > 90. up(S) <- temp(S, T), T > 90, not was hot(S). still(S) <- temp(S, T), was hot(S)."

# name: program, events, what is asked, and for each rule what is told
CASES: dict[str, tuple[str, str, str, list[str]]] = {
    # Runs
    "a run that lacks its last part": (
        BURST, "a(1) @ 1; b(1, 1) @ 2; b(1, 2) @ 3", "burst",
        ["burst 3 of 4: a(1) @ 1, b(1, 1) @ 2, b(1, 2) @ 3 | no event c(1) after 3"],
    ),
    "an event of the run lies between": (
        BURST, "a(1) @ 1; b(1, 2) @ 2; x: a(1) @ 3; c(1) @ 4", "burst",
        ["burst 2 of 3: a(1) @ 1, b(1, 2) @ 2 | c(1) @ 4 is not next: blocked by a(1) @ 3 [x]"],
    ),
    "an iteration that fails its condition": (
        "up3(S) <- tick(S, P){3} WHERE P > prev(P) PER (S).", "tick(s, 1) @ 1; tick(s, 2) @ 2; tick(s, 2) @ 3", "up3",
        ["up3 2 of 3: tick('s', 1) @ 1, tick('s', 2) @ 2 | `tick(S, P){3}`: 2 of 3 times | "
         "tick('s', 2) @ 3: `P > prev(P)`: 2 > 2 does not hold"],
    ),
    "a run that is too long": (
        BURST, "a(1) @ 1; b(1, 2) @ 2; c(1) @ 14", "burst",
        ["burst 3 of 3: a(1) @ 1, b(1, 2) @ 2, c(1) @ 14 | `window 9s`: from 1 to 14 is 13"],
    ),
    "a result of a run": (
        BURST, "a(1) @ 1; b(1, 2) @ 2; c(1) @ 4", "burst(1, 3)",
        ["burst 3 of 3: a(1) @ 1, b(1, 2) @ 2, c(1) @ 4 | `count(X)` is 1, not 3"],
    ),
    "a condition on the whole repetition": (
        "most(I) <- a(I) NEXT b(I, X)+ WHERE count(X) >= 3.", "a(1) @ 1; b(1, 1) @ 2; b(1, 1) @ 3", "most",
        ["most 3 of 4: a(1) @ 1, b(1, 1) @ 2, b(1, 1) @ 3 | `count(X) >= 3`: 2 >= 3 does not hold"],
    ),
    "a run with no event at all": (
        BURST, "x @ 1", "burst",
        ["burst 0 of 3: nothing | no event a(I)"],
    ),
    "a run beside an event": (
        "most(I) <- (a(I) NEXT b(I)), d(I).", "a(1) @ 1; b(1) @ 2", "most",
        ["most 2 of 3: a(1) @ 1, b(1) @ 2 | no event of type d"],
    ),
    # Missing events
    "no event of a type": (
        FIRE, "smoke('k') @ 7", "fire",
        ["fire 1 of 2: smoke('k') @ 7 | no event of type heat"],
    ),
    "no event at all": (
        FIRE, "other @ 1", "fire('k')",
        ["fire 0 of 2: nothing | no event of type smoke | no event of type heat"],
    ),
    "a type with other arguments": (
        "r <- a(X, Y).", "a(1) @ 2", "r",
        ["r 0 of 1: nothing | no event of type a with 2 arguments"],
    ),
    "no event with the value that is asked": (
        FIRE, "smoke('k') @ 1; heat('c') @ 2", "fire('k')",
        ["fire 1 of 2: smoke('k') @ 1 | no event heat('k'); the latest of its type is heat('c') @ 2"],
    ),
    "a constant of the pattern": (
        "in_kitchen(W) <- moved('kitchen', W, _).", "moved('hall', 'dog', 2) @ 2", "in_kitchen('cat')",
        ["in_kitchen 0 of 1: nothing | no event moved('kitchen', 'cat', _); "
         "the latest of its type is moved('hall', 'dog', 2) @ 2"],
    ),
    "a nested term of the pattern": (
        "north(D) <- fix(pos('N', D)).", "fix(pos('S', 33)) @ 6", "north(33)",
        ["north 0 of 1: nothing | no event fix(pos('N', 33)); the latest of its type is fix(pos('S', 33)) @ 6"],
    ),
    "a derived event below": (
        "up(S) <- w(S, A) SEQ w(S, B) WHERE B > A. alarm(S) <- up(S) SEQ fire(S).",
        "w(1, 5) @ 1; w(1, 3) @ 2; fire(1) @ 5", "alarm(1)",
        ["alarm 1 of 2: fire(1) @ 5 | no event up(1) was detected"],
    ),
    "the middle of a sequence": (
        "r <- (a SEQ b SEQ c SEQ d).10.", "a @ 1; c @ 3; d @ 4", "r",
        ["r 3 of 4: a @ 1, c @ 3, d @ 4 | no event of type b"],
    ),
    "neither branch of OR": (
        "alert(P) <- smoke(P) OR gas(P).", "fire(1) @ 1", "alert(1)",
        ["alert 0 of 1: nothing | no event of type smoke | no event of type gas"],
    ),
    "the branch of OR that came nearer": (
        "alert(P) <- (smoke(P) SEQ heat(P)) OR gas(P).", "smoke(1) @ 1", "alert(1)",
        ["alert 1 of 2: smoke(1) @ 1 | no event of type heat"],
    ),
    # Values and times of two sides
    "a shared variable": (
        "r(N) <- a(N) AND b(N).", "a(1) @ 9; b(2) @ 5", "r",
        ["r 1 of 2: a(1) @ 9 | b(2) @ 5: N is 2, but the others have 1"],
    ),
    "null equals nothing": (
        "r <- a(N) AND b(N).", "b(null) @ 1; a(null) @ 2", "r",
        ["r 1 of 2: a(null) @ 2 | b(null) @ 1: N is null, but the others have null"],
    ),
    "nothing after": (
        FIRE, "heat('k') @ 2; smoke('k') @ 7", "fire('k')",
        ["fire 1 of 2: smoke('k') @ 7 | no event heat('k') after 7; the nearest is heat('k') @ 2"],
    ),
    "nothing before": (
        "r(N) <- a(N) SEQ (b(N) SEQ c(N)).", "b(1) @ 2; c(1) @ 3; a(1) @ 4", "r(1)",
        ["r 2 of 3: b(1) @ 2, c(1) @ 3 | no event a(1) before 2; the nearest is a(1) @ 4"],
    ),
    "two sequences one after the other": (
        "r <- (a SEQ b) SEQ (c SEQ d).", "a @ 1; c @ 2; b @ 3; d @ 4", "r",
        ["r 2 of 4: c @ 2, d @ 4 | `SEQ`: c @ 2, d @ 4 does not start after a @ 1, b @ 3 ends"],
    ),
    "during": (
        "r <- call(C) DURING meeting(M).", "meeting('m') @ [2, 7]; call('y') @ [5, 7]", "r",
        ["r 1 of 2: call('y') @ [5, 7] | `DURING`: call('y') @ [5, 7] is not strictly inside meeting('m') @ [2, 7]"],
    ),
    "overlap": (
        "r(X) <- a(X) PAR b(X).", "a(1) @ [1, 3]; b(1) @ [3, 5]", "r(1)",
        ["r 1 of 2: b(1) @ [3, 5] | `PAR`: a(1) @ [1, 3] and b(1) @ [3, 5] do not overlap"],
    ),
    "after a time point": (
        "late(W) <- 5 SEQ arrival(W).", "arrival('a') @ 4", "late('a')",
        ["late 1 of 1: arrival('a') @ 4 | `SEQ`: arrival('a') @ 4 does not start after 5 ends"],
    ),
    # Windows
    "a window": (
        FIRE, "smoke('k') @ 1; heat('k') @ 9", "fire('k')",
        ["fire 2 of 2: smoke('k') @ 1, heat('k') @ 9 | `window 5s`: from 1 to 9 is 8"],
    ),
    "the window at every operator is one": (
        "r <- (a SEQ b SEQ c SEQ d).3.", "a @ 1; b @ 6; c @ 7; d @ 8", "r",
        ["r 4 of 4: a @ 1, b @ 6, c @ 7, d @ 8 | `window 3s`: from 1 to 8 is 7"],
    ),
    "a window on one event": (
        "r <- (a).2.", "a @ [1, 6]", "r",
        ["r 1 of 1: a @ [1, 6] | `window 2s`: from 1 to 6 is 5"],
    ),
    # Conditions
    "a comparison": (
        f"{ORDERED} WHERE X < Y.", "a(5) @ 1; b(3) @ 2", "r",
        ["r 2 of 2: a(5) @ 1, b(3) @ 2 | `X < Y`: 5 < 3 does not hold"],
    ),
    "each condition by itself": (
        f"{ORDERED} WHERE (X < Y, X > 9, Y > 1).", "a(5) @ 1; b(3) @ 2", "r(5, _)",
        ["r 2 of 2: a(5) @ 1, b(3) @ 2 | `X > 9`: 5 > 9 does not hold | `X < Y`: 5 < 3 does not hold"],
    ),
    "the pair with the fewest failures": (
        f"{ORDERED} WHERE (X < Y, X > 9).", "a(10) @ 1; a(5) @ 2; b(3) @ 3", "r",
        ["r 2 of 2: a(10) @ 1, b(3) @ 3 | `X < Y`: 10 < 3 does not hold"],
    ),
    "a condition on one part": (
        "r(N) <- (a(N, V) WHERE V > 3) SEQ b(N).", "a(1, 5) @ 7; a(1, 2) @ 1; b(1) @ 4", "r",
        ["r 2 of 2: a(1, 2) @ 1, b(1) @ 4 | `V > 3`: 2 > 3 does not hold"],
    ),
    "a value that is computed": (
        "r(X, Z) <- a(X) WHERE Z = X * 2.", "a(5) @ 1", "r(_, 12)",
        ["r 1 of 1: a(5) @ 1 | `Z = X * 2`: 12 = 10 does not hold"],
    ),
    "a comparison that cannot be made": (
        "r <- a(X) WHERE X < 1.", "a('n') @ 1", "r",
        ["r 1 of 1: a('n') @ 1 | `X < 1`: 'n' (string) and 1 (int) have no order"],
    ),
    "a choice of conditions": (
        "r(X) <- a(X) WHERE (X < 3 or X > 9).", "a(5) @ 1", "r(5)",
        ["r 1 of 1: a(5) @ 1 | `(X < 3 or X > 9)`: none of them holds, X is 5"],
    ),
    # Static knowledge
    "a fact": (
        "near('creek', 's1'). windy(P) <- wind(S, V) WHERE (near(P, S), V > 60).", "wind('s2', 70) @ 1", "windy('creek')",
        ["windy 1 of 1: wind('s2', 70) @ 1 | `near(P, S)`: there is no near('creek', 's2')"],
    ),
    "a fact that binds, and a condition on it": (
        "price('tea', 3). big(I) <- sale(I, N) WHERE (price(I, P), N * P > 9).", "sale('tea', 2) @ 1", "big('tea')",
        ["big 1 of 1: sale('tea', 2) @ 1 | `N * P > 9`: 6 > 9 does not hold"],
    ),
    "what depends on a fact that is missing is not told": (
        "price('tea', 3). big(I) <- sale(I, N) WHERE (price(I, P), N * P > 9).", "sale('gin', 2) @ 1", "big('gin')",
        ["big 1 of 1: sale('gin', 2) @ 1 | `price(I, P)`: there is no price('gin', P)"],
    ),
    "a fact that must not hold": (
        "bad(3). r(X) <- a(X) WHERE not bad(X).", "a(3) @ 1", "r(3)",
        ["r 1 of 1: a(3) @ 1 | `not bad(X)`: bad(3) holds"],
    ),
    # Absence
    "not": (
        "r(N) <- NOT(c(N)).[a(N), b(N)].", "a(1) @ 1; x: c(1) @ 4; b(1) @ 7", "r(1)",
        ["r 2 of 2: a(1) @ 1, b(1) @ 7 | blocked by c(1) @ 4 [x]"],
    ),
    "not, with a condition on both": (
        "r(M) <- NOT(bid(O) WHERE O > M).[offer(M), close].", "offer(3) @ 1; w: bid(2) @ 2; x: bid(5) @ 3; close @ 4", "r(3)",
        ["r 2 of 2: offer(3) @ 1, close @ 4 | blocked by bid(5) @ 3 [x]"],
    ),
    "not, of a sequence": (
        "r <- NOT(c SEQ d).[a, b].", "a @ 1; x: c @ 2; y: d @ 3; b @ 4", "r",
        ["r 2 of 2: a @ 1, b @ 4 | blocked by c @ 2, d @ 3 [x, y]"],
    ),
    "while not": (
        OVERDUE, "order(1) @ 1; x: shipped(1) @ 4; order(2) @ 5", "overdue(1)",
        ["overdue 1 of 1: order(1) @ 1 | blocked by shipped(1) @ 4 [x], inside w from 1 to 4"],
    ),
    "an absence that is not certain yet": (
        OVERDUE, "order(3) @ 4; shipped(2) @ 6", "overdue(3)",
        ["overdue 1 of 1: order(3) @ 4 | not yet: the clock is at 6, it ends at 7"],
    ),
    # Repetition
    "too few times": (
        "locked(U) <- failure(U) ^ 3.", "failure('u') @ 1; failure('v') @ 2; failure('u') @ 4", "locked('u')",
        ["locked 2 of 3: failure('u') @ 1, failure('u') @ 4 | no event failure('u') after 4 | `^ 3`: 2 of 3 times"],
    ),
    "often enough, but too slow": (
        "locked(U) <- (failure(U) ^ 3).4.", "failure('u') @ 1; failure('u') @ 2; failure('u') @ 9", "locked('u')",
        ["locked 3 of 3: failure('u') @ 1, failure('u') @ 2, failure('u') @ 9 | `window 4s`: from 1 to 9 is 8"],
    ),
    "consecutive": (
        "locked <- (failure(U) WHERE U > 0) ^ 2 CONSECUTIVE.", "failure(1) @ 1; failure(0) @ 2; failure(2) @ 3", "locked",
        ["locked 1 of 2: failure(2) @ 3 | no event failure(2) after 3 | `^ 2`: 1 of 2 times"],
    ),
    # Labels
    "a relation of labels": (
        "c(N) <- o: order(N), s: shipped(N, P), d: delivered(P), o before s, s before d.",
        "shipped(2, 'p8') @ 4; order(2) @ [5, 6]; delivered('p8') @ 8", "c(2)",
        ["c 3 of 3: shipped(2, 'p8') @ 4, order(2) @ [5, 6], delivered('p8') @ 8 | `o before s`: o is [5, 6], s is 4"],
    ),
    "within": (
        "c(N) <- o: order(N), s: shipped(N), {o, s} within 4s.", "order(1) @ 1; shipped(1) @ 9", "c(1)",
        ["c 2 of 2: order(1) @ 1, shipped(1) @ 9 | `{o, s} within 4s`: from 1 to 9 is 8"],
    ),
    "a duration": (
        "slow(N) <- s: shipping(N), duration(s) > 3.", "shipping(1) @ [3, 5]", "slow(1)",
        ["slow 1 of 1: shipping(1) @ [3, 5] | `duration(s) > 3`: 2 > 3 does not hold"],
    ),
    "a window that would be empty": (
        "r(X) <- o: a(X), w: shorten(o, 5s), while w: not b(X).", "a(5) @ 1", "r(5)",
        ["r 1 of 1: a(5) @ 1 | `w = shorten(o, 5s)`: it would end before it starts"],
    ),
    # Collecting
    "nothing in the window": (
        TAKINGS, SALES, "takings('b', _)",
        ["takings 1 of 2: closing('b') @ 10 | nothing to collect: no event sale('b', P) inside w from 5 to 10; the nearest is sale('b', 7) @ 4"],
    ),
    "nothing that a condition lets pass": (
        f"{TAKINGS[:-1]}, P > 20.", f"{SALES}; sale('a', 30) @ 12", "takings('a', _)",
        ["takings 1 of 2: closing('a') @ 7 | nothing to collect: `P > 20`: 2 > 20 does not hold"],
    ),
    "nothing of the type": (
        TAKINGS, "closing('a') @ 3", "takings",
        ["takings 1 of 2: closing('a') @ 3 | nothing to collect: no event of type sale"],
    ),
    "an aggregate with another value": (
        TAKINGS, SALES, "takings('a', 9)",
        ["takings 3 of 3: sale('a', 5) @ 3, sale('a', 2) @ 6, closing('a') @ 7 | `sum(P)` is 7, not 9"],
    ),
    "too few for exactly": (
        "full(avg(T)) <- r: temp(_), exactly 3: collect temp(T).", "temp(1) @ 1; temp(2) @ 2", "full",
        ["full 2 of 3: temp(1) @ 1, temp(2) @ 2 | `exactly 3`: only 2 to collect"],
    ),
    "no body to collect for": (
        TAKINGS, SALES, "takings('c', _)",
        ["takings 0 of 2: nothing | no event closing('c'); the latest of its type is closing('b') @ 10"],
    ),
    # Policies
    "recent": (
        f"{ORDERED} POLICY recent.", "a(1) @ 1; a(3) @ 3; b(4) @ 4", "r(1, _)",
        ["r 2 of 2: a(1) @ 1, b(4) @ 4 | policy recent took a(3) @ 3 instead"],
    ),
    "recent per": (
        "at(Car) <- position(Car, Place) SEQ[recent per (Car)] alarm(Place).", CARS, "at('p')",
        ["at 2 of 2: position('p', 'gate') @ 1, alarm('gate') @ 4 | "
         "policy recent per (Car) took position('p', 'yard') @ 3 instead"],
    ),
    "chronological, another one first": (
        f"{ORDERED} POLICY chronological.", "a(1) @ 1; a(3) @ 3; b(4) @ 4", "r(3, 4)",
        ["r 2 of 2: a(3) @ 3, b(4) @ 4 | policy chronological took a(1) @ 1 instead"],
    ),
    "chronological, used up": (
        f"{ORDERED} POLICY chronological.", "a(1) @ 1; b(4) @ 4; b(5) @ 5", "r(1, 5)",
        ["r 2 of 2: a(1) @ 1, b(5) @ 5 | policy chronological used up a(1) @ 1 with b(4) @ 4"],
    ),
    "no event with itself": (
        "r(X) <- a(X) AND[recent] a(X).", "a(1) @ 1", "r(1)",
        ["r 2 of 2: a(1) @ 1, a(1) @ 1 | policy recent pairs no event with itself"],
    ),
    "a policy below another operator": (
        "r(X) <- (a(X) SEQ[recent] b) SEQ c.", "a(1) @ 1; a(2) @ 2; b @ 3; c @ 4", "r(1)",
        ["r 3 of 3: a(1) @ 1, b @ 3, c @ 4 | policy recent took a(2) @ 2 instead"],
    ),
    # Several rules, recursion
    "every rule of the type": (
        "warn(R) <- hot(R, T) WHERE T > 90. rule no_signal: warn(R) <- lost(R) SEQ lost(R).", "hot('x', 80) @ 1; lost('x') @ 2", "warn('x')",
        ["warn 1 of 1: hot('x', 80) @ 1 | `T > 90`: 80 > 90 does not hold",
         "no_signal 1 of 2: lost('x') @ 2 | no event lost('x') after 2"],
    ),
    "a rule with another head": (
        "rel('x') <- a. rel('y') <- b.", "a @ 1", "rel('y')",
        ["rel 0 of 1: nothing | its head is `rel('x')`", "rel#2 0 of 1: nothing | no event of type b"],
    ),
    "recursion": (
        TRIPS, "flight('x', 'y') @ [1, 2]; flight('y', 'z') @ [3, 4]; flight('z', 'x') @ [4, 6]", "trip('x', 'x')",
        ["trip 0 of 1: nothing | no event flight('x', 'x'); the latest of its type is flight('z', 'x') @ [4, 6]",
         "trip#2 1 of 2: flight('z', 'x') @ [4, 6] | no event trip('x', 'z') before 4; the nearest is trip('x', 'z') @ [1, 4]"],
    ),
    "recursion with NOT": (
        "streak(1) <- win. streak(N + 1) <- NOT(loss).[streak(N), win].", "win @ 1; x: loss @ 2; win @ 3", "streak(2)",
        ["streak 0 of 1: nothing | its head is `streak(1)`", "streak#2 2 of 2: streak(1) @ 1, win @ 3 | blocked by loss @ 2 [x]"],
    ),
    # Windows by the clock, groups, rankings, starts, and how facts were
    "another total of a window": (
        COUNTED, "click('a') @ 3; click('a') @ 5; end @ 25", "clicks('a', 3)",
        ["clicks 2 of 2: click('a') @ 3, click('a') @ 5 | `count()` is 2, not 3"],
    ),
    "no window with it": (
        COUNTED, "click('a') @ 3; end @ 25", "clicks('b', _)",
        ["clicks 0 of 1: nothing | nothing to collect: no event click('b'); the latest of its type is click('a') @ 3"],
    ),
    "the window that is asked for": (
        COUNTED, "click('a') @ 3; end @ 25", "clicks('a', _) @ [10, 19]",
        ["clicks 0 of 1: nothing | nothing to collect: no event click('a') inside w from 10 to 19; the nearest is click('a') @ 3"],
    ),
    "a window that is not over": (
        COUNTED, "click('a') @ 13; end @ 15", "clicks('a', _)",
        ["clicks 1 of 1: click('a') @ 13 | not yet: the clock is at 15, it ends at 19"],
    ),
    "over the edge of a window": (
        COUNTED, "click('a') @ [8, 12]; end @ 35", "clicks('a', _)",
        ["clicks 0 of 1: nothing | nothing to collect: no event click('a') inside w from 10 to 19; the nearest is click('a') @ [8, 12]"],
    ),
    "a window of long ago": (
        COUNTED, "click('a') @ 3; end @ 2500", "clicks('a', 2)",
        ["clicks 1 of 1: click('a') @ 3 | `count()` is 1, not 2"],
    ),
    "a filter of what is collected in a window": (
        "dear(S, sum(A)) <- w: every(10s), while w: collect sale(S, A), A > 5.", "sale('a', 3) @ 3; end @ 25", "dear('a', _)",
        ["dear 0 of 1: nothing | nothing to collect: `A > 5`: 3 > 5 does not hold"],
    ),
    "an event that is not inside a window": (
        "both(S) <- w: every(10s), o: in(S), o inside w, p: out(S), p inside w.", "in('a') @ 3; out('a') @ 12; end @ 25", "both('a')",
        ["both 2 of 2: in('a') @ 3, out('a') @ 12 | `o inside w`: o is 3, w is [10, 19]"],
    ),
    "the window before": (
        "grew(N, M) <- w: every(10s), v: previous(w), while w: collect p: a(_), while v: collect q: a(_), N = count(p), M = count(q).",
        "a(1) @ 13; end @ 25", "grew",
        ["grew 1 of 2: a(1) @ 13 | nothing to collect: no event a(_) inside v from 0 to 9; the nearest is a(1) @ 13"],
    ),
    "a condition on a group": (
        "busy(S, count()) <- w: every(10s), while w: collect click(S), count() >= 3.", "click('a') @ 3; click('a') @ 5; end @ 25", "busy('a', _)",
        ["busy 2 of 2: click('a') @ 3, click('a') @ 5 | `count() >= 3`: 2 >= 3 does not hold"],
    ),
    "a condition on a total that has a name": (
        "rich(S, T) <- r: sale(S, _), w: extend_backward(r, 5s), while w: collect sale(S, A), T = sum(A), T > 10.",
        "sale('a', 3) @ 3; sale('a', 4) @ 5", "rich('a', _)",
        ["rich 2 of 2: sale('a', 3) @ 3, sale('a', 4) @ 5 | `T > 10`: 7 > 10 does not hold"],
    ),
    "an aggregate that fails": (
        "takes(S, sum(A)) <- w: every(10s), while w: collect sale(S, A).", "sale('a', 'much') @ 3; end @ 25", "takes('a', _)",
        ["takes 1 of 1: sale('a', 'much') @ 3 | 'much' is not a number"],
    ),
    "not among the first": (
        BEST, "sale('a', 3) @ 3; sale('b', 4) @ 5; sale('b', 1) @ 6; end @ 25", "best('a', _)",
        ["best 1 of 1: sale('a', 3) @ 3 | `TOP 1 BY sum(A)`: it is 3, in place 2"],
    ),
    "in another place": (
        BEST, "sale('a', 3) @ 3; end @ 25", "best('a', 2)",
        ["best 1 of 1: sale('a', 3) @ 3 | `R` is 1, not 2"],
    ),
    "not the least of its kind": (
        "least(K, S) <- w: every(10s), while w: collect sale(K, S, A) TOP 1 BY min(A) ASC PER (K).",
        "sale(1, 'a', 3) @ 3; sale(1, 'b', 2) @ 4; sale(2, 'c', 1) @ 5; end @ 25", "least(1, 'a')",
        ["least 1 of 1: sale(1, 'a', 3) @ 3 | `TOP 1 BY min(A) ASC PER (K)`: it is 3, in place 2"],
    ),
    "held back by a throttle": (
        "alarm(S, T) <- temp(S, T), T > 90 ONCE PER (S) EVERY 10s.", "temp('a', 91) @ 1; temp('b', 95) @ 2; temp('a', 92) @ 5", "alarm('a', 92)",
        ["alarm 1 of 1: temp('a', 92) @ 5 | `AT MOST 1 PER (S) EVERY 10s`: alarm('a', 91) @ 1 was given before"],
    ),
    "held back by two": (
        "e(X) <- a(X) AT MOST 2.", "a(1) @ 1; a(2) @ 2; a(3) @ 3", "e(3)",
        ["e 1 of 1: a(3) @ 3 | `AT MOST 2`: e(1) @ 1, e(2) @ 2 were given before"],
    ),
    "something where there should be nothing": (
        "shop('a'). idle(S) <- w: every(10s), shop(S), while w: collect sale(S) or none, count() = 0.", "sale('a') @ 3; end @ 15", "idle('a')",
        ["idle 1 of 1: sale('a') @ 3 | `count() = 0`: 1 = 0 does not hold"],
    ),
    "nothing, which counts as none": (
        SHOPS, "sale('b') @ 3; end @ 25", "sold('a', 1)",
        ["sold 0 of 0: nothing | `count()` is 0, not 1"],
    ),
    "a group of nothing that no fact makes": (
        SHOPS, "sale('b') @ 3; end @ 25", "sold('b', _)",
        ["sold 0 of 1: nothing | `shop(S)`: there is no shop('b')"],
    ),
    "a collect of two that has nothing": (
        FLOW, "in('a') @ 3; out('b') @ 4; end @ 25", "flow('a', _, _)",
        ["flow 1 of 2: in('a') @ 3 | nothing to collect: no event out('a'); the latest of its type is out('b') @ 4"],
    ),
    "two collects that do not meet": (
        FLOW, "in('a') @ 3; out('a') @ 14; end @ 25", "flow('a', _, _)",
        ["flow 1 of 2: in('a') @ 3 | nothing to collect: no event out('a') inside w from 0 to 9; the nearest is out('a') @ 14"],
    ),
    "a condition on two collects": (
        f"{FLOW[:-1]}, count(i) > count(o).", "in('a') @ 3; out('a') @ 4; end @ 25", "flow('a', _, _)",
        ["flow 2 of 2: in('a') @ 3, out('a') @ 4 | `count(i) > count(o)`: 1 > 1 does not hold"],
    ),
    "a start that the head says": (
        "pair(S) SINCE END <- a(S) SEQ b(S).", "a(1) @ 3; b(1) @ 5", "pair(1) @ [3, 5]",
        ["pair 2 of 2: a(1) @ 3, b(1) @ 5 | it is 5, not [3, 5]"],
    ),
    "a start after the end": (
        "late(S) SINCE end(r) + 10 <- r: a(S).", "a(1) @ 3", "late(1)",
        ["late 1 of 1: a(1) @ 3 | SINCE: a start after the end"],
    ),
    "a fact that was": (
        HOT, "temp('a', 95) @ 3; temp('a', 96) @ 5", "up('a') @ 5",
        ["up 1 of 1: temp('a', 96) @ 5 | `not was hot(S)`: hot('a') holds just before 5"],
    ),
    "a fact that was not": (
        HOT, "temp('a', 95) @ 3", "still('a')",
        ["still 1 of 1: temp('a', 95) @ 3 | `was hot(S)`: there is no hot('a') just before 3"],
    ),
    # The head and the interval
    "a computed argument with another value": (
        "fahrenheit(R, C * 9 / 5 + 32) <- celsius(R, C).", "celsius('attic', 35) @ 1", "fahrenheit('attic', 90)",
        ["fahrenheit 1 of 1: celsius('attic', 35) @ 1 | `C * 9 / 5 + 32` is 95.0, not 90"],
    ),
    "a head that cannot be computed": (
        "r(A / B) <- pair(A, B).", "pair(1, 0) @ 1", "r",
        ["r 1 of 1: pair(1, 0) @ 1 | `A / B`: division by zero"],
    ),
    "a nested head": (
        "event at(p: term). at(pos(X, Y)) <- a(X, Y).", "a(1, 2) @ 1", "at(pos(1, 3))",
        ["at 0 of 1: nothing | no event a(1, 3); the latest of its type is a(1, 2) @ 1"],
    ),
    "nothing inside the interval": (
        FIRE, "smoke('k') @ 1; heat('k') @ 3", "fire('k') @ [1, 2]",
        ["fire 1 of 2: smoke('k') @ 1 | no event heat('k') from 1 to 2; the latest of its type is heat('k') @ 3"],
    ),
    "another interval": (
        FIRE, "smoke('k') @ 1; heat('k') @ 3", "fire('k') @ [0, 3]",
        ["fire 2 of 2: smoke('k') @ 1, heat('k') @ 3 | it is [1, 3], not [0, 3]"],
    ),
    "only what failed in that interval": (
        FIRE, "smoke('k') @ 1; heat('k') @ 9; smoke('k') @ 12; heat('k') @ 13", "fire @ [1, 9]",
        ["fire 2 of 2: smoke('k') @ 1, heat('k') @ 9 | `window 5s`: from 1 to 9 is 8"],
    ),
    "a type with a capital letter": (
        "Fire(P) <- Smoke(P).", "Heat(1) @ 1", "Fire",
        ["Fire 0 of 1: nothing | no event of type Smoke"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_why_not_names_what_failed(name: str) -> None:
    program, events, atom, expected = CASES[name]
    assert told(finished(program, events), atom) == expected


def test_why_not_uses_facts_of_the_time() -> None:
    facts = {"open": [{"args": ["s1"], "valid_from": 5, "valid_to": 9}]}
    run = finished("static open(s: string). r(S) <- a(S) WHERE open(S).", "a('s1') @ 3", {"facts": facts})
    assert told(run, "r('s1')") == ["r 1 of 1: a('s1') @ 3 | `open(S)`: there is no open('s1') at 3"]


def test_why_not_shows_calendar_times() -> None:
    events = "b(1) @ '2026-03-01 10:00'; d(1) @ '2026-03-01 10:01'"
    run = finished("q(J) <- (b(J) SEQ d(J)).3s.", events, {"clock": "timestamp"})
    start, end = "2026-03-01T10:00:00Z", "2026-03-01T10:01:00Z"
    assert told(run, "q(1)") == [
        f"q 2 of 2: b(1) @ '{start}', d(1) @ '{end}' | `window 3s`: from {start} to {end} is 1min"
    ]


def test_an_iri_by_its_prefix() -> None:
    program = "prefix ex: <http://example.org/>. event seen(what: iri). found(X) <- seen(X) SEQ seen(X)."
    run = finished(program, "seen(ex:fox) @ 1")
    assert told(run, "found(ex:owl)")[0].startswith("found 0 of 2: nothing | no event seen(<http://example.org/owl>)")


def test_a_retention_is_a_window() -> None:
    run = finished("r <- a SEQ b.", "a @ 1; b @ 9", {"retention": "5s"})
    assert told(run, "r") == ["r 2 of 2: a @ 1, b @ 9 | `window 5s`: from 1 to 9 is 8"]


def test_a_clock_that_was_set() -> None:
    run = finished("r <- a SEQ b.", "a @ 1; b @ 9", {"until": 5})
    assert told(run, "r") == ["r 2 of 2: a @ 1, b @ 9 | not yet: the clock is at 5, it ends at 9"]


# What cannot be asked


@pytest.mark.parametrize("atom", ["fire", "fire(_)", "fire('k')", "fire('k') @ [1, 3]", "fire @ [1, 3]", " fire(X) "])
def test_why_not_refuses_detected_events(atom: str) -> None:
    with pytest.raises(RunError, match=r"was detected\n  hint: ask why of fire\('k'\) @ \[1, 3\]"):
        finished(FIRE, "smoke('k') @ 1; heat('k') @ 3").ask(atom)


@pytest.mark.parametrize(
    ("atom", "message"),
    [
        ("fyre('k')", "no rule derives `fyre`\n  hint: did you mean `fire`?"),
        ("smoke('k')", "no rule derives `smoke`\n  hint: the program derives fire"),
        ("fire('k', 2)", "no rule derives `fire` with 2 arguments\n  hint: it has 1"),
    ],
)
def test_what_no_rule_derives(atom: str, message: str) -> None:
    with pytest.raises(RunError) as error:
        finished(FIRE, "smoke('k') @ 1").ask(atom)
    assert str(error.value) == message


@pytest.mark.parametrize("atom", ["fire(", "fire('k') and heat", "fire(1 + 2)", "", "3"])
def test_what_is_no_event(atom: str) -> None:
    with pytest.raises(DataError, match="not an event"):
        finished(FIRE, "smoke('k') @ 1").ask(atom)


# How it is shown


def test_why_not_as_text() -> None:
    run = finished("r(N) <- NOT(c(N)).[a(N), b(N)]. r(N) <- d(N).", "a(1) @ 1; x: c(1) @ 4; b(1) @ 7")
    assert (
        show_misses(run.ask("r(1)"), run.clock)
        == """\
rule r: 2 of 2 events
├─ a(1) @ 1
├─ b(1) @ 7
└─ failed: blocked by c(1) @ 4 [x]

rule r#2: 0 of 1 event
└─ failed: no event of type d"""
    )


def test_why_not_as_json() -> None:
    run = finished(FIRE, "s1: smoke('k') @ 7")
    (miss,) = json.loads(json.dumps(misses_as_json(run.ask("fire"), run.clock)))
    assert miss == {
        "rule": "fire",
        "parts": [{"type": "smoke", "args": ["k"], "start": 7, "end": 7, "id": "s1"}],
        "total": 2,
        "failed": ["no event of type heat"],
    }


# Many events


@pytest.mark.parametrize(
    ("program", "failed"),
    [
        ("r <- (c(X, _) SEQ b(X, _) SEQ a(X, _)).6.", "`window 6s`: from"),
        ("r <- a(_, V) AND b(_, W) AND c(_, _) WHERE V + W > 1000.", "`V + W > 1000`: "),
        ("r <- a(X, V) SEQ b(X, W) WHERE V + W > 1000 POLICY recent.", "`V + W > 1000`: "),
        ("r <- NOT(c(_, _)).[a(X, _), b(X, V)] WHERE V > 1000.", "`V > 1000`: "),
        ("r <- o: a(_, _), w: extend(o, 1h), while w: not b(_, _), o before p, p: c(_, _).", "blocked by"),
        ("r <- (a(X, _) ^ 9).8.", "times"),
    ],
)
def test_what_is_too_much_is_capped(program: str, failed: str) -> None:
    events = "; ".join(f"{'abc'[i % 3]}({i // 3 % 7}, {i % 11}) @ {i}" for i in range(1800))
    plan = compile(program).plan
    clock = Clock("logical")
    given = [e for e in give_ids(read_event(line, clock) for line in events.split("; ")) if isinstance(e, Event)]
    scalars = Scalars(plan.functions, plan.aggregates, clock)
    static = Static(plan.clauses, (), scalars, lambda *_: None)
    (miss,) = why_not(plan, [placed(rule, ()) for rule in plan.rules], given, clock, static, scalars, "r")
    assert failed in " | ".join(miss.failed)
    assert miss.failed[-1] == CAPPED
    assert miss.parts[-1].end > 1700


# Laws


SPECS = [case for case in all_cases() if not case.queries]


@pytest.mark.parametrize("case", SPECS, ids=[f"{Path(c.path).stem}: {c.name}" for c in SPECS])
def test_every_miss_says_what_failed(case: Case) -> None:
    program = case.compiled(FUNCTIONS)
    clock, settings, plan = case.clock(program), case.settings, program.plan
    history = [item_from(read_event(line, clock, plan.prefixes), plan, clock) for line in case.events]
    facts = case.facts(program, clock, "reference")
    until, as_of = (None if (t := settings.get(k)) is None else clock.read(t) for k in ("until", "as_of"))
    run = Finished(program, clock, history, facts, until, as_of, length(settings.get("retention"), plan.tick))
    check_laws(run)


@pytest.mark.parametrize("kind", WRITERS)
def test_why_not_of_random_programs(kind: str) -> None:
    for seed in range(25):
        text, steps, known = example(kind, seed)
        try:
            run = Finished(compile(text), Clock(), flat(steps), known, clock_of(steps))
        except AuguryError:  # refused
            continue
        check_laws(run)


def check_laws(run: Finished) -> None:
    """What is not detected has no complete match: the search and the meaning agree."""
    for atom in _atoms(run):
        try:
            misses = run.ask(atom)
        except RunError:  # it was detected
            continue
        for miss in misses:
            assert miss.failed and UNTOLD not in miss.failed, atom
            assert len(miss.parts) <= miss.total and set(miss.parts) <= set(run.events), atom


def _atoms(run: Finished) -> Iterable[str]:
    """Each derived type alone, with a value of some event, and at the time of some event."""
    values = [show_value(a) for e in run.events[:3] for a in e.args][:2]
    times = [show_event(e, run.clock).rpartition(" @ ")[2] for e in run.events[:2]]
    for type, arity in run.program.plan.derived:
        if ":" not in type and " " not in type:
            yield type
            yield from (f"{type} @ {time}" for time in times)
            yield from (f"{type}({', '.join([value, *['_'] * (arity - 1)])})" for value in values if arity)
