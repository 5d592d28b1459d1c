"""The stages of the Spark executors against the reference: every spec case, and random programs told in any way.

No Spark here: `tests.support.spark_local` does in Python what Catalyst does around the circuits.
"""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="the Spark executor is an extra")
pytest.importorskip("pandas", reason="streams on Spark come with pandas")

import augury
from augury.algebra.nodes import Every, Instant, Run, SessionWindow, walk
from augury.algebra.plan import Plan
from augury.algebra.stages import Stages, needed, stages
from augury.core.clock import Clock
from augury.core.errors import Source
from augury.core.model import Event, Fact, HistoryItem, OrderKey, Revocation, content_id, give_ids
from augury.engine.found import AnswerRows
from augury.engine.session import Session
from augury.program import Program
from augury.reference import evaluate, static_graphs
from augury.sources import Batch
from augury.spark import state
from augury.testing import Case, compare_answers, read_spec
from tests.differential.test_differential import asked, compiled, once
from tests.generators import mixtures, spaseq_programs
from tests.generators.programs import STRATEGIES, example, flat
from tests.generators.run_programs import write_run_case
from tests.support.functions import FUNCTIONS
from tests.support.spark_local import HEARTBEAT, Emit, Local, Streamed
from tests.support.spec_cases import all_cases, chooses, clock_windows

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))
CASES = [c for c in all_cases() if c.expected is not None]


@dataclass
class Told:
    """A program and what it is told."""

    program: Program
    history: list[HistoryItem]
    clock: Clock
    facts: Sequence[Fact] = ()
    until: int | None = None
    retention: str | None = None
    closed: Sequence[Fact] | None = None  # the facts by the plainest way, where there is another
    graphs: Mapping[Any, Any] = field(default_factory=dict)  # those that GRAPH in queries reads

    def local(self, seed: object, history: list[HistoryItem] | None = None) -> Local:
        chance = random.Random(f"way {seed}")
        return Local(
            self.program, self.history if history is None else history, facts=self.facts, kind=self.clock.kind,
            typed=chance.random() < 0.5, longest=chance.random() < 0.6, retention=self.retention, seed=seed,
        )  # fmt: skip

    def reference(self, local: Local, history: Iterable[HistoryItem], until: int | None) -> dict[OrderKey, Event]:
        model = evaluate(
            self.program.plan,
            list(history),
            self.clock,
            self.facts if self.closed is None else self.closed,
            until,
            None,
            local.pipeline.retention,
            self.graphs,
        )
        return {e.content: e for e in model.events}


def same(found: dict[OrderKey, Event], expected: dict[OrderKey, Event]) -> None:
    missing = [str(e) for content, e in expected.items() if content not in found]
    more = [str(e) for content, e in found.items() if content not in expected]
    assert not missing and not more, f"missing: {missing}, too much: {more}"


def well_formed(found: Iterable[Event], history: Iterable[HistoryItem]) -> None:
    """Ids are made of contents, and traces name inputs."""
    known = {i.id for i in give_ids(history) if isinstance(i, Event)}
    for event in found:
        assert event.id == content_id(event.type, event.args, event.start, event.end)
        assert set(event.trace) <= known, f"{event} of {event.trace}"


# Batch


def check_batch(told: Told, buckets: int, seed: object) -> tuple[list[Event], Stages]:
    """The batch executor says what the reference says; the answers and the stages."""
    chance = random.Random(f"batch {seed}")
    local = told.local(seed)
    found, spread = local.batch(
        buckets, slices=chance.random() < 0.8, skew=chance.random() < 0.3, until=told.until, chunk=chance.choice([1, 3, 1 << 16]),
        times=chance.choice([1, 1, 2, 16]),
    )  # fmt: skip
    answer = {e.content: e for e in found}
    assert len(answer) == len(found), "an answer is there twice"
    same(answer, told.reference(local, local.history, told.until))
    well_formed(found, local.history)
    return found, spread


# Streams


def far(told: Told) -> Event:
    """An event long after all others; with windows by the clock not that long, since there are windows up to there."""
    last, clock = max((i.end for i in told.history if isinstance(i, Event)), default=0), told.clock
    unit, lengths = (
        1000 if clock.kind == "timestamp" else 1,
        [max(w.longest, w.farthest) for w in clock_windows(told.program.plan)],
    )
    ahead = 3 * clock.length(max(lengths)) + 300 * unit if lengths else 10**12 * unit if unit > 1 else 10**7
    return Event(HEARTBEAT, (), last + ahead)


def arrivals(history: Sequence[HistoryItem], lateness: int, chance: random.Random) -> list[HistoryItem]:
    """The order in which a history arrives so that nothing is late."""
    ends = {i.id: i.end for i in history if isinstance(i, Event) and i.id}
    middle = sorted(i.end for i in history if isinstance(i, Event))[len(history) // 3 :][:1] or [0]
    due: list[tuple[float, int]] = []
    for n, item in enumerate(history):
        end = item.end if isinstance(item, Event) else ends.get(item.id, middle[0])
        early = lateness if isinstance(item, Revocation) else 0  # it may come before its event
        due.append((end + chance.choice([0, 0, chance.uniform(-early, lateness)]), n))
    return [history[n] for _, n in sorted(due)]


def split(items: Sequence[HistoryItem], chance: random.Random) -> list[list[HistoryItem]]:
    batches: list[list[HistoryItem]] = []
    at = 0
    while at < len(items):
        size = chance.choice([1, 1, 2, 3, 5, 20, 0])
        batches.append(list(items[at : at + size]))
        at += size
    return batches


def check_stream(told: Told, buckets: int, emit: Emit, seed: object, shuffled: bool = False) -> Streamed:
    """The streaming executor: in the end the answer of the reference; final answers at their time, and never taken back."""
    chance = random.Random(f"stream {seed}")
    last = far(told)
    local = told.local(seed, [*told.history, last])
    unit = 1000 if told.clock.kind == "timestamp" else 1
    lateness = chance.choice([0, 2, 5, 50, 50 if clock_windows(told.program.plan) else 10**6]) * unit
    order = list(local.history[:-1])
    if shuffled:  # some may be late
        chance.shuffle(order)
        lateness = chance.choice([0, 1, 3])
    else:
        order = arrivals(order, lateness, chance)
    batches: list[list[HistoryItem]] = [*split(order, chance), [last]]
    kept, late = local.in_time(batches, lateness)
    assert shuffled or not late
    found = local.stream(batches, lateness, buckets, emit, chance.choice(["kept", "kept", "cold", "old"]))
    standing = found.standing()
    items = [i for batch in kept for i in batch]
    expected_now, last_frontier = told.reference(local, items, None), found.frontiers[-1]
    if emit == "final":  # there are windows by the clock up to the last event
        expected_now = {
            content: e for content, e in expected_now.items() if last_frontier is not None and e.end <= last_frontier
        }
    same(standing, expected_now)
    well_formed((c.event for c in found.changes), local.history)
    spread = local.pipeline.staged(local.outputs, live=True)
    reads = {t for stage in spread.stages for t in stage.reads}
    expected = Counter((i.type, i.id, i.end) for i in late if isinstance(i, Event) and (i.type, len(i.args)) in reads)
    told_late = [
        {"type": f"<{e['stream']}>", **e} if "stream" in e else e for e in found.late if e.get("op") != "revoke"
    ]
    assert Counter((e["type"], e.get("id", ""), told.clock.read(e.get("end", e.get("time")))) for e in told_late) == expected  # fmt: skip
    if emit == "final":
        for change in found.changes:
            assert change.op > 0, f"a final answer is taken back: {change}"
            content, waits = change.event.content, any(q.answers_late for q in told.program.plan.graph_queries)
            due = next(
                number
                for number, frontier in enumerate(found.frontiers)
                if frontier is not None
                and frontier >= change.event.end
                and (not waits or content in told.reference(local, items, frontier))
            )
            assert change.batch == due, f"{change} is due in batch {due}"
    elif spread.plan.rules and not ahead(spread):
        prefixes_agree(told, local, kept, found)
    return found


def ahead(spread: Stages) -> bool:
    """Whether the clock of a bucket may matter, or that of a stage before it."""
    return len(spread.stages) > 1 or any(
        rule.covers or any(isinstance(n, Instant | Every | SessionWindow) for n in walk(rule.body))
        for rule in spread.plan.rules
    )


def prefixes_agree(told: Told, local: Local, kept: list[list[HistoryItem]], found: Streamed) -> None:
    """After every batch the answer is that of what was told so far."""
    standing: dict[OrderKey, Event] = {}
    items: list[HistoryItem] = []
    for number, batch in enumerate(kept):
        items += batch
        for change in (c for c in found.changes if c.batch == number):
            if change.op > 0:
                standing[change.event.content] = change.event
            else:
                del standing[change.event.content]
        same(standing, told.reference(local, items, None) if any(isinstance(i, Event) for i in items) else {})


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots after a few steps, in several pieces."""
    monkeypatch.setattr(state, "LEAST", 3000)
    monkeypatch.setattr(state, "ENTRIES", 4)
    monkeypatch.setattr(state, "PIECE", 700)


# Spec cases


def told_of(case: Case) -> Told:
    program = case.compiled(FUNCTIONS)
    clock, settings = case.clock(program), case.settings
    history = [case.read(line, program, clock) for line in case.events]
    facts = case.facts(program, clock)
    until = None if (t := settings.get("until")) is None else clock.read(t)
    return Told(
        program, history, clock, facts, until, settings.get("retention"), case.facts(program, clock, "reference"),
        static_graphs(case.graphs, program.plan),
    )  # fmt: skip


def suitable(case: Case) -> Told:
    if "as_of" in case.settings:
        pytest.skip("the Spark executors have no `as_of`")
    told = told_of(case)
    if not told.history:
        pytest.skip("without an event there is no clock and no DataFrame")
    contents: dict[str, OrderKey] = {}
    for item in told.history:
        if isinstance(item, Event) and item.id and contents.setdefault(item.id, item.content) != item.content:
            pytest.skip("which of two events of one id comes first hangs on the order of arrival")
    return told


by_case = pytest.mark.parametrize(
    "case", CASES, ids=[f"{Path(c.path).parent.name}/{Path(c.path).stem}: {c.name}" for c in CASES]
)


@by_case
def test_spec_cases_by_stages_in_batch(case: Case) -> None:
    told = suitable(case)
    for buckets in (1, 2, 5) if FUZZ else ((1, 2, 5)[len(case.name) % 3],):
        found, _ = check_batch(told, buckets, f"{case.name} {buckets}")
        compare_answers(case.expected or (), found, told.clock, case.prefixes(told.program))


@by_case
@pytest.mark.usefixtures("tiny")
def test_spec_in_a_stream(case: Case) -> None:
    told = suitable(case)
    if any(item.version for item in told.history):
        pytest.skip("a stream on Spark refuses versions")
    ways: list[tuple[int, Emit]] = [(1, "early"), (2, "final"), (5, "early"), (5, "final")]
    for buckets, emit in ways if FUZZ else [ways[crc32(case.name.encode()) % len(ways)]]:
        check_stream(told, buckets, "early" if chooses(told.program.plan) else emit, f"{case.name} {buckets}")


# Random programs


def random_told(kind: str, seed: object) -> Iterator[Told]:
    text, steps, known = example(kind, seed)
    program = compiled(text)
    if program is not None:
        history = flat(once(steps))
        if any(isinstance(i, Event) for i in history):
            yield Told(program, history, Clock("logical", program.plan.tick or 1_000_000), asked(program.plan, known))


@pytest.mark.parametrize("kind", STRATEGIES)
def test_random_programs_in_batch(kind: str) -> None:
    hows: Counter[str] = Counter()
    for seed in range(1500 if FUZZ else 45):
        for told in random_told(kind, f"batch {seed}"):
            _, spread = check_batch(told, [1, 2, 5][seed % 3], f"{kind} {seed}")
            hows.update(stage.how for stage in spread.stages)
            hows["several"] += len(spread.stages) > 1
    assert hows["key"] and hows["one"] and (kind in ("policy", "recursive") or hows["slices"])


@pytest.mark.parametrize("kind", STRATEGIES)
@pytest.mark.usefixtures("tiny")
def test_random_programs_in_a_stream(kind: str) -> None:
    snapshots = 0
    for seed in range(1200 if FUZZ else 24):
        for told in random_told(kind, f"stream {seed}"):
            emit: Emit = "early" if seed % 2 else "final"
            found = check_stream(told, [1, 2, 5][seed % 3], emit, f"{kind} {seed}", shuffled=seed % 4 > 1)
            snapshots += found.snapshots
    assert snapshots


def random_mixture(seed: object) -> Told:
    """Sessions, facts that events make, intervals in which they hold, throttles and runs, one over the other."""
    while (program := compiled((story := mixtures.story("mixtures", f"spread {seed}")).text)) is None:
        seed = f"{seed}'"
    items = [item for action in story.actions if isinstance(action, list) for item in action]
    first = {i.id: i for i in reversed(items) if isinstance(i, Event)}
    items = [i for i in items if not isinstance(i, Event) or i == first[i.id]]
    if not first:
        return random_mixture(f"{seed}'")
    return Told(program, items, Clock("logical"), story.facts)


def waits_long(plan: Plan) -> bool:
    """Whether answers may wait for ever where nothing says how long events last."""
    return chooses(plan) or any(isinstance(node, SessionWindow) for rule in plan.rules for node in walk(rule.body))


def test_random_mixtures_in_batch() -> None:
    answers = 0
    for seed in range(1500 if FUZZ else 24):
        found, _ = check_batch(random_mixture(f"batch {seed}"), [1, 2, 5][seed % 3], f"mixture {seed}")
        answers += len(found)
    assert answers


@pytest.mark.usefixtures("tiny")
def test_random_mixtures_in_a_stream() -> None:
    for seed in range(1000 if FUZZ else 12):
        told = random_mixture(f"stream {seed}")
        emit: Emit = "early" if seed % 2 or waits_long(told.program.plan) else "final"
        check_stream(told, [1, 2, 5][seed % 3], emit, f"mixture {seed}", shuffled=seed % 4 > 1)


def random_run(seed: object) -> Told:
    """A run; beside some of them a rule of another key that asks whether it is absent."""
    number = random.Random(f"run {seed}").randint
    spec, steps = write_run_case(number)
    while (program := compiled(spec.text)) is None:
        spec, steps = write_run_case(number)
    text, history = spec.text, flat(steps)
    if number(0, 2) == 0:
        arity = next(len(rule.args) for rule in program.plan.rules if rule.type == "e")
        text += f"\nnone(X, Y) <- NOT(e({', '.join('_' * arity)})).[r(_, X), u(_, Y)]."
    return Told(augury.compile(text.replace("e()", "e")), history, Clock())


def test_random_runs_in_batch() -> None:
    hows: Counter[str] = Counter()
    for seed in range(3000 if FUZZ else 60):
        _, spread = check_batch(random_run(f"batch {seed}"), [1, 2, 5][seed % 3], f"run {seed}")
        hows.update(stage.how for stage in spread.stages)
    assert hows["key"] and hows["one"]


@pytest.mark.usefixtures("tiny")
def test_random_runs_in_a_stream() -> None:
    for seed in range(2000 if FUZZ else 40):
        told = random_run(f"stream {seed}")
        chooses = any(
            isinstance(n, Run) and n.which != "ALL" for rule in told.program.plan.rules for n in walk(rule.body)
        )
        emit: Emit = "early" if seed % 2 or chooses else "final"  # what a later event may still change is final later
        check_stream(told, [1, 2, 5][seed % 3], emit, f"run {seed}", shuffled=seed % 4 > 1)


def random_chain(seed: object) -> Told:
    """A rule whose key changes from event to event, as a pattern or with labels, beside conditions, windows and absences."""
    chance = random.Random(f"chain {seed}")
    length = chance.randint(3, 5)
    types = [chance.choice("abcd") for _ in range(length)]
    atoms = [f"{type}(V{i}, V{i + 1})" for i, type in enumerate(types)]
    if chance.random() < 0.3:
        atoms[-1] = atoms[-1].replace(f"V{length}", "_")
    head = ", ".join(chance.sample([f"V{i}" for i in range(length)], chance.randint(0, 3)))
    where = [
        f"V{chance.randrange(length)} {chance.choice(['<', '!=', '<='])} V{chance.randrange(length)}"
    ] * chance.choice([0, 0, 1])
    if chance.random() < 0.4:
        labelled = [f"o{i}: {atom}" for i, atom in enumerate(atoms)]
        names = [f"o{i}" for i in range(length)]
        for first, then in itertools.pairwise(names):
            labelled.append(
                f"{first} {chance.choice(['before', 'before', 'meets', 'overlaps', 'during', 'after'])} {then}"
            )
        for _ in range(chance.choice([0, 1, 2])):
            labelled.append(f"{{{', '.join(chance.sample(names, 2))}}} within {chance.choice([5, 20])}s")
        if chance.random() < 0.3:
            head = ", ".join(
                [*filter(None, [head]), chance.choice(["start", "end", "duration"]) + f"({chance.choice(names)})"]
            )
        if chance.random() < 0.3:
            labelled.append(f"start({chance.choice(names)}) - end({chance.choice(names)}) < 9")
        if chance.random() < 0.3:
            labelled += [
                f"w: extend({chance.choice(names)}, 4s)",
                f"while w: not {chance.choice('abcd')}(V{chance.randrange(length)}, _)",
            ]
        text = f"s({head}) <- {', '.join([*labelled, *where])}."
    else:
        pattern = atoms[0]
        for atom in atoms[1:]:
            sides = [pattern, atom] if chance.random() < 0.8 else [atom, pattern]
            pattern = f"({sides[0]} {chance.choice(['SEQ', 'SEQ', 'AND', 'PAR'])} {sides[1]})"
            if chance.random() < 0.4:
                pattern += f".{chance.choice([4, 9, 30])}"
            if chance.random() < 0.2:
                pattern = f"NOT({chance.choice('abcd')}(V1, _)).[{pattern}, d(V1, _)]"
        text = f"s({head}) <- {pattern}{' WHERE ' + where[0] if where else ''}."
    items: list[HistoryItem] = []
    for _ in range(chance.randint(6, 45)):
        start = chance.randrange(40)
        values = [chance.choice([0, 1, 1, 2, 2.0, None, "x"]) for _ in range(2)]
        items.append(
            Event(chance.choice(types), tuple(values), start, start + chance.choice([0, 0, 1, 4]), id=f"e{len(items)}")
        )
    if chance.random() < 0.4:
        items += [Revocation(chance.choice(items).id) for _ in range(3)]
    program = compiled(text)
    if program is None:
        return random_chain(f"{seed}'")
    retention = chance.choice([None, None, "7s"])
    return Told(program, items, Clock("logical"), retention=retention)


def test_random_chains_in_batch() -> None:
    cuts: Counter[int] = Counter()
    for seed in range(3000 if FUZZ else 60):
        _, spread = check_batch(random_chain(f"batch {seed}"), [2, 5][seed % 2], f"chain {seed}")
        cuts[len(spread.plan.rules)] += 1
    assert cuts[2] and cuts[3]


@pytest.mark.usefixtures("tiny")
def test_random_chains_in_a_stream() -> None:
    for seed in range(2000 if FUZZ else 30):
        check_stream(
            random_chain(f"stream {seed}"),
            [2, 5][seed % 2],
            "early" if seed % 4 > 1 else "final",
            f"chain {seed}",
            shuffled=seed % 3 == 0,
        )


def random_query(seed: int) -> Told:
    spec, events = (spaseq_programs.choosing if seed % 4 == 3 else spaseq_programs.example)(seed)
    program = augury.compile(spec.text, language="spaseq", name="q")
    if seed % 3 == 0:  # somebody reads its answers, which may come after their ends
        q = f"q({', '.join('_' * program.plan.graph_queries[0].predicate[1])})"
        rules = f"pair <- ({q} SEQ {q}).9. lone <- a: {q}, w: extend(a, 3s), while w: not {q}."
        program = augury.Program.of([Source("q.spaseq", spec.text, "spaseq"), Source("rules.aug", rules)])
    read = [e.event for e in events if (e.event.type, 1) in program.plan.event_types]
    items: list[HistoryItem] = [replace(event, id=f"e{number}") for number, event in enumerate(read)]
    return Told(program, items, Clock())


@pytest.mark.usefixtures("tiny")
def test_random_queries_by_stages() -> None:
    for seed in range(1500 if FUZZ else 16):
        told = random_query(seed)
        if told.history:
            check_batch(told, [1, 2, 5][seed % 3], f"query {seed}")
            emit: Emit = "early" if seed % 2 or chooses(told.program.plan) else "final"
            check_stream(told, [1, 2, 5][seed % 3], emit, f"query {seed}", shuffled=seed % 4 > 1)


# The planner


def test_who_reads_what_comes_late_runs_beside_it() -> None:
    """A stage has come to the ends of such events when they are known; over history, it does not matter."""
    text = """
    up(S, first(P), last(P)) <- tick(S, P){2,} WHERE P > prev(P) PER (S) LONGEST.
    of(S) <- up(S, _, _) SEQ x(S).
    none(A, B) <- NOT(of(_)).[x(A), y(B)].
    other(A) <- x(A) SEQ y(A).
    """
    plan = augury.compile(text).plan
    live = stages(plan, 0, everywhere=True).stages
    assert [(s.how, {t[0] for t in s.gives}) for s in live] == [("key", {"other"}), ("one", {"up", "of", "none"})]
    keyed = stages(needed(plan, ["of"]), 0, everywhere=True).stages
    assert [(s.how, {t[0] for t in s.gives}) for s in keyed] == [("key", {"up", "of"})]
    assert len(stages(plan, 0).stages) > 1


def planned(text: str, longest: int | None = 0, outputs: Iterable[str] | None = None) -> list[str]:
    """The stages of a program, a line each: how it is cut, the key of each type it reads, and what it makes."""
    plan = augury.compile(text).plan
    lines = []
    for stage in stages(needed(plan, plan.outputs if outputs is None else outputs), longest).stages:
        keys = ", ".join(f"{t[0]}.{at[0] if len(at) == 1 else at}" for t, at in stage.reads.items() if at)
        lines.append(f"{stage.how}({keys}) -> {', '.join(t[0] for t in stage.gives)}")
    return lines


PLANS = {
    "one key": ("s(L, W) <- wind(L, W) SEQ fire(L).", ["key(fire.0, s.0, wind.0) -> s"]),
    "the key of all rules, whatever its place": (
        "s(W, L) <- wind(L, W) SEQ fire(L). t(L) <- s(_, L) AND fire(L).",
        ["key(fire.0, s.1, t.0, wind.0) -> s, t"],
    ),
    "an equality is a shared variable": ("s(X) <- a(X) SEQ b(Y) WHERE X = Y.", ["key(a.0, b.0, s.0) -> s"]),
    "by station, then by distance": (
        "settling(T, ID) <- sensor(T, ID, W) SEQ sensor(_, ID, W). "
        "near(A, B) <- (settling(_, A) AND settling(_, B)).1h WHERE A != B.",
        ["key(sensor.1, settling.1) -> settling", "slices() -> near"],
    ),
    "another key": (
        "s(X, Y) <- a(X) SEQ b(X, Y). t(Y) <- s(_, Y) SEQ c(Y).",
        ["key(a.0, b.0, s.0) -> s", "key(c.0, s.1, t.0) -> t"],
    ),
    "no key, no window: one bucket": ("s(X, Y) <- a(X) SEQ b(Y).", ["one() -> s"]),
    "no key, but a window: slices": ("s(X, Y) <- (a(X) SEQ b(Y)).5.", ["slices() -> s"]),
    "a policy that takes the most recent within a window": (
        "s(X, Y) <- (a(X) SEQ[recent] b(Y)).5.", ["slices() -> s"],
    ),
    "a policy that consumes is never cut": ("s(X, Y) <- (a(X) SEQ[chronological] b(Y)).5.", ["one() -> s"]),
    "a policy without a window is never cut": ("s(X, Y) <- a(X) SEQ[recent] b(Y).", ["one() -> s"]),
    "a policy per key": ("s(X) <- (a(X, _) SEQ[recent per (X)] b(X, _)).5.", ["key(a.0, b.0, s.0) -> s"]),
    "a policy per something else": ("s(X, Y) <- (a(X, Y) SEQ[recent per (Y)] b(X, _)).5.", ["one() -> s"]),
    "a policy that chooses the partner of a time point": (
        "s(Y) <- 1 SEQ b(Y) POLICY chronological.", ["one() -> s"],
    ),
    "the same for each key": ("s(Y) <- (1 SEQ a(Y)) SEQ[recent per (Y)] b(Y).", ["key(a.0, b.0, s.0) -> s"]),
    "the last n of no key are never cut": ("s(X, count()) <- o: a(X), last 3: collect b(_).", ["one() -> s"]),
    "a throttle per key": (
        "s(X, Y) <- a(X, Y) SEQ b(X) AT MOST 1 PER (X) EVERY 5s.", ["key(a.0, b.0, s.0) -> s"],
    ),
    "a throttle of all": ("s(X, Y) <- a(X, Y) SEQ b(X) AT MOST 1 EVERY 5s.", ["one() -> s"]),
    "a throttle per something else": ("s(X, Y) <- a(X, Y) SEQ b(X) AT MOST 1 PER (Y) EVERY 5s.", ["one() -> s"]),
    "a throttle per what the head lacks": ("s(Y) <- a(X, Y) SEQ b(X) AT MOST 1 PER (X) EVERY 5s.", ["one() -> s"]),
    "a throttle is never cut": ("s(X, Y) <- (a(X) SEQ b(Y)).5 AT MOST 1 EVERY 5s.", ["one() -> s"]),
    "recursion that keeps its key": (
        "e(X) <- a(X). e(X) <- e(X) SEQ b(X).",
        ["key(a.0, b.0, e.0) -> e"],
    ),
    "recursion that changes its key": (
        "path(X, Y) <- edge(X, Y). path(X, Z) <- path(X, Y) SEQ edge(Y, Z).",
        ["one() -> path"],
    ),
    "recursion within a window": (
        "path(X, Y) <- edge(X, Y). path(X, Z) <- (path(X, Y) SEQ edge(Y, Z)).9.",
        ["slices() -> path"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
def test_stages_of_a_plan(name: str) -> None:
    text, expected = PLANS[name]
    assert planned(text) == expected


def test_the_blizzards_of_the_papers() -> None:
    """Settling is by station; warnings meet by distance, one after the other, which is one bucket."""
    papers = Path(__file__).parents[1] / "specs" / "papers"
    settling, area = (read_spec(papers / f"{name}.toml")[-1].program for name in ("e39_blizzard", "e41_blizzard_area"))
    whole = settling.replace("output BlizzardWarning.", "") + area.replace("tick 1h.", "")
    assert planned(whole) == [
        "key(BlizzardSettling.2, BlizzardWarning.2, sensor.1) -> BlizzardSettling, BlizzardWarning",
        "one() -> AreaSettling",
        "key(AreaSettling.(0, 1), BlizzardArea.(0, 1)) -> BlizzardArea",
    ]


@pytest.mark.parametrize("buckets", [1, 2])
def test_an_event_with_an_id_is_in_all_its_slices(buckets: int) -> None:
    program = augury.compile("event day(n: int).\noutput pair.\npair(A, B) <- (day(A) SEQ day(B)).3.")
    history: list[HistoryItem] = [Event("day", (t % 7,), t, id=f"day {t}") for t in range(100)]
    for n in range(4):
        check_batch(Told(program, [*history, history[50]], Clock("logical")), buckets, n)


def test_equal_events_without_ids_are_counted_in_each_of_their_slices() -> None:
    program = augury.compile("event day(n: int).\noutput pair.\npair(A, B) <- (day(A) SEQ day(B)).3.")
    history: list[HistoryItem] = [Event("day", (t // 2 % 7,), t // 2) for t in range(100)]
    for n in range(4):
        check_batch(Told(program, history, Clock("logical")), 1, n)


def test_without_a_bound_on_inputs_nothing_is_cut_into_slices() -> None:
    assert planned("s(X, Y) <- (a(X) SEQ b(Y)).5.", None) == ["one() -> s"]


def test_only_what_an_output_rests_on_runs() -> None:
    text = "s(X) <- a(X) SEQ b(X). t(X) <- c(X) SEQ d(X). u(X) <- s(X) SEQ d(X)."
    assert planned(text, outputs=["u"]) == ["key(a.0, b.0, d.0, s.0, u.0) -> s, u"]
    assert planned(text, outputs=["t"]) == ["key(c.0, d.0, t.0) -> t"]


def test_events_that_several_buckets_may_make() -> None:
    """A head without the key, and a type of two stages: equal events of two buckets are one."""
    plan = augury.compile("z <- a(X) SEQ b(X). e(X) <- a(X) SEQ b(X). e(X) <- c(X) SEQ d(Y). f(X) <- a(X).").plan
    assert stages(plan).spread == {("z", 0), ("e", 1)}


def test_an_event_under_two_names_is_once_in_a_trace() -> None:
    """An event that facts were joined with is an event of another type, with the same id."""
    text = "event order(s: int).\nevent joined(s: int, r: int).\nboth(S, R) <- (order(S) AND joined(_, R)).10."
    plan = replace(augury.compile(text).plan, aliases={("joined", 2): ("order", 1)})
    orders = Batch(np.array([3]), np.array([3]), [np.array([1])], ["x"])
    joined = Batch(np.array([3, 4]), np.array([3, 4]), [np.array([1, 2]), np.array([7, 8])], ["x", "y"])
    changes = Session(Program(plan)).push_batches({("order", 1): orders, ("joined", 2): joined}, None)
    [part] = changes.parts
    assert isinstance(part, AnswerRows)
    assert part.traces(0, len(part)).tuples() == [("x",), ("x", "y")]
