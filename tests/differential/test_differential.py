"""The engine against the reference evaluator: any program, any history, told in any way; compared after every step."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import augury
from augury.algebra.plan import Plan, static_calls
from augury.core.clock import Clock
from augury.core.errors import AuguryError, RunError
from augury.core.model import Event, Fact, HistoryItem, OrderKey, Revocation
from augury.core.versions import InputVersions
from augury.engine.session import Session
from augury.knowledge.graphs import Graphs
from augury.program import Program
from augury.reference import evaluate, static_graphs
from tests.generators.programs import STRATEGIES, Step, example, facts, tellings

FUZZ = bool(os.environ.get("AUGURY_FUZZ"))
CLOCK = Clock()


class Told:
    """What has been told and was in time, with the clock and the frontier that follow from it."""

    def __init__(self, lateness: int | None) -> None:
        self.lateness = lateness
        self.items: list[HistoryItem] = []
        self.ids: dict[str, InputVersions] = {}
        self.greatest: int | None = None
        self.advanced: int | None = None
        self.late = 0

    @property
    def frontier(self) -> int | None:
        behind = None if self.lateness is None or self.greatest is None else self.greatest - self.lateness - 1
        return max((t for t in (behind, self.advanced) if t is not None), default=None)

    @property
    def now(self) -> int:
        return max((t for t in (self.greatest, self.advanced) if t is not None), default=-(10**6))

    def tell(self, item: HistoryItem) -> None:
        versions = self.ids.get(item.id, InputVersions())
        if isinstance(item, Revocation):
            taken, after = versions.taken_back_by(item.version), versions.with_revoked(item.version)
            late = self._fixed(taken)
        elif item.id and item.version in versions.events:
            late, after = False, versions
        else:
            late = self.frontier is not None and item.end <= self.frontier
            late, after = late or self._fixed(versions.replaced_by(item)), versions.with_event(item)
        if late:
            self.late += 1
            return
        self.items.append(item)
        if item.id:
            self.ids[item.id] = after
        if isinstance(item, Event) and after is not versions:
            self.greatest = item.end if self.greatest is None else max(self.greatest, item.end)

    @property
    def fixed(self) -> int | None:
        """What ends at or before it can no longer be revoked."""
        return self.frontier

    def _fixed(self, event: Event | None) -> bool:
        return event is not None and self.fixed is not None and event.end <= self.fixed


def asked(plan: Plan, given: list[Fact]) -> list[Fact]:
    calls = static_calls(plan)
    return [f for f in given if (f.name, len(f.args)) in calls]


def once(steps: list[Step]) -> list[Step]:
    """Without second uses of an id: they are told apart only while the first is held."""
    seen: set[str] = set()

    def new(item: HistoryItem) -> bool:
        if isinstance(item, Revocation) or not item.id:
            return not item.version
        known = item.id in seen
        seen.add(item.id)
        return not known

    return [step if isinstance(step, tuple) else [i for i in step if new(i)] for step in steps]


def compare(
    program: Program, steps: list[Step], given: list[Fact], *, lateness: int | None = None, prune: bool = False, save: object = None,
    rdf: Any = (),
) -> Iterator[dict[OrderKey, Event]]:  # fmt: skip
    """Tells a session step by step, and yields the answer after each, which is that of the reference evaluator."""
    known = asked(program.plan, given)
    lasting = max(
        (i.end - i.start for step in steps if isinstance(step, list) for i in step if isinstance(i, Event)), default=0
    )
    session: Session = program.session(
        clock="logical",
        facts=known,
        rdf=rdf,
        lateness=None if lateness is None else f"{lateness}s",
        longest=f"{lasting}s" if prune and len(steps) % 2 else None,
    )
    told, answer = Told(lateness), dict[OrderKey, Event]()
    graphs = static_graphs(Graphs.of(rdf), program.plan)
    chance = random.Random(str(save))
    for step in once(steps) if prune else steps:
        if isinstance(step, tuple):
            told.advanced = step[1] if told.advanced is None else max(told.advanced, step[1])
            changes = session.advance(step[1])
        else:
            for item in step:
                told.tell(item)
            try:
                changes = session.push(step)
            except RunError as error:  # what it needs is forgotten, and nobody said that it would come
                if prune and "lasts longer" in error.message and session.settings.longest is None:
                    return
                raise
        assert len({change.event.content for change in changes}) == len(changes), "a step tells net changes"
        for change in changes:
            content = change.event.content
            assert (content in answer) == (change.op == "retract"), f"{change} of {answer}"
            if change.op == "insert":
                answer[content] = change.event
            else:
                del answer[content]
        expected = evaluate(program.plan, told.items, CLOCK, known, told.now, graphs=graphs)
        missing = [str(e) for e in expected.events if e.content not in answer]
        right = {e.content for e in expected.events}
        assert not missing and right == answer.keys(), (missing, [str(e) for k, e in answer.items() if k not in right])
        if prune:
            session.prune()
        else:
            assert session.late_count == told.late
            assert [e.content for e in session.events()] == [e.content for e in expected.events]
        if save is not None and chance.random() < 0.5:
            session = program.restore(session.snapshot())
        yield answer


def compiled(text: str) -> Program | None:
    try:
        return augury.compile(text)
    except augury.ProgramError:
        return None


@pytest.mark.parametrize("kind", STRATEGIES)
def test_the_engine_says_what_the_reference_says(kind: str) -> None:
    @given(
        STRATEGIES[kind](),
        tellings(),
        facts(),
        st.sampled_from(["", "prune", "save"]),
        st.sampled_from([None, None, 0, 2, 6]),
    )
    def check(text: str, steps: list[Step], known: list[Fact], way: str, lateness: int | None) -> None:
        program = compiled(text)
        if program is not None:
            save = len(text) if way == "save" else None
            for _ in compare(program, steps, known, lateness=lateness, prune=way == "prune", save=save):
                pass

    check()


@pytest.mark.parametrize("kind", STRATEGIES)
def test_many_programs_have_an_answer(kind: str) -> None:
    """The same from seeds, which are more varied; and of the examples more than 40 % have an answer that a rule derived."""
    count = answered = 0
    for seed in range(400 if FUZZ else 40):
        text, steps, known = example(kind, f"answers {seed}")
        program = compiled(text)
        if program is None:
            continue
        derived = {rule.type for rule in program.plan.rules}
        last: dict[OrderKey, Event] = {}
        for answer in compare(
            program, steps, known, lateness=[None, 3, None][seed % 3], prune=seed % 2 == 1, save=seed
        ):
            last = answer or last
        count += 1
        answered += any(e.type in derived for e in last.values())
    assert answered > 0.4 * count, f"{answered} of {count}"


@pytest.mark.parametrize("kind", STRATEGIES)
def test_final_answers_are_never_taken_back(kind: str) -> None:
    """Final: an answer is given once the frontier has passed its end; in the end they are the same as early ones."""
    for seed in range(200 if FUZZ else 20):
        text, steps, known = example(kind, f"final {seed}")
        program = compiled(text)
        if program is None:
            continue
        told, lateness = Told(2), "2s"
        session = program.session(clock="logical", facts=asked(program.plan, known), emit="final", lateness=lateness)
        given: dict[OrderKey, Event] = {}
        for step in steps:
            if isinstance(step, tuple):
                told.advanced = step[1] if told.advanced is None else max(told.advanced, step[1])
                changes = session.advance(step[1])
            else:
                for item in step:
                    told.tell(item)
                changes = session.push(step)
            assert all(c.op == "insert" and c.event.content not in given for c in changes)
            given.update({c.event.content: c.event for c in changes})
            if told.frontier is not None:
                expected = evaluate(program.plan, told.items, CLOCK, asked(program.plan, known), told.frontier)
                assert {e.content for e in expected.events} == given.keys()
        given.update({c.event.content: c.event for c in session.finish()})
        if told.now > -(10**6):
            expected = evaluate(program.plan, told.items, CLOCK, asked(program.plan, known), told.now)
            assert {e.content for e in expected.events} == given.keys()


@pytest.mark.filterwarnings("ignore:events of types that the program does not know")
@pytest.mark.parametrize("kind", ["operator", "recursive", "mixed"])
def test_a_trace_is_one_derivation(kind: str) -> None:
    """The trace of an answer is that of one of the derivations that the reference finds."""
    for seed in range(100 if FUZZ else 25):
        text, steps, known = example(kind, f"trace {seed}")
        program = compiled(text)
        if program is None:
            continue
        told = [i for step in steps if not isinstance(step, tuple) for i in step]
        try:
            result = augury.run(program, told, facts=asked(program.plan, known), clock="logical")
        except AuguryError:
            continue
        model = evaluate(program.plan, told, CLOCK, asked(program.plan, known))
        for event in result:
            assert set(event.trace) in list(_inputs(model, event.id, ())), (text, event)


def _inputs(model, id: str, above: tuple[str, ...]) -> Iterator[set[str]]:  # type: ignore[no-untyped-def]
    """The sets of inputs that the derivations of an event rest on."""
    if id in above:
        return
    for way in model.derivations.get(id, ()):
        if not way.rule:
            yield {way.parts[0].id}
            continue
        sets: list[set[str]] = [set()]
        for part in way.parts:
            below = list(_inputs(model, part.id, (*above, id))) if part.id in model.derivations else [{part.id}]
            sets = [one | more for one in sets for more in below][:4000]
        yield from sets


@pytest.mark.parametrize("kind", STRATEGIES)
def test_rules_that_come_and_go(kind: str) -> None:
    """A rule that is added halfway sees the past; without it again, the answer is that of the program without it."""
    for seed in range(200 if FUZZ else 12):
        text, steps, given = example(kind, f"rules {seed}")
        lines = [line for line in text.splitlines() if line.strip()]
        last = max(i for i, line in enumerate(lines) if "<-" in line)
        base, whole = compiled("\n".join(lines[:last] + lines[last + 1 :])), compiled(text)
        if base is None or whole is None or "output" in text or not base.plan.rules:
            continue
        known = asked(base.plan, given)
        if known != asked(whole.plan, given):
            continue
        session, told, answer = base.session(clock="logical", facts=known), Told(None), dict[OrderKey, Event]()
        for number, step in enumerate([*steps, "remove"]):
            changes: list[augury.Change] = []
            try:
                if number == len(steps) // 2:
                    changes += session.add_rules(lines[last])
                if step == "remove":
                    changes += session.remove_rule(session.program.plan.rules[-1].label)
            except AuguryError:  # an input of the running rules, or a rule that others need
                break
            if isinstance(step, tuple):
                told.advanced = step[1] if told.advanced is None else max(told.advanced, step[1])
                changes += session.advance(step[1])
            elif isinstance(step, list):
                for item in step:
                    told.tell(item)
                changes += session.push(step)
            for change in changes:
                content = change.event.content
                assert (content in answer) == (change.op == "retract"), (text, change)
                if change.op == "insert":
                    answer[content] = change.event
                else:
                    del answer[content]
            expected = evaluate(session.program.plan, told.items, CLOCK, known, told.now)
            assert {e.content for e in expected.events} == answer.keys(), text
            if number % 3 == 2:
                session = base.restore(session.snapshot())
