"""Rules that come and go while a session runs: the answer is that of the reference for the rules that are there."""

from __future__ import annotations

import os
from random import Random

import augury
from augury.core.errors import AuguryError
from augury.core.model import Event, HistoryItem, OrderKey
from augury.engine.changes import Changes
from augury.engine.session import Session
from augury.knowledge.facts import Facts
from augury.reference import evaluate
from tests.differential.test_differential import CLOCK
from tests.generators import mixtures

COUNT = 600 if os.environ.get("AUGURY_FUZZ") else 12


class Watched:
    """A session beside what it was told, and the answer that its changes add up to."""

    def __init__(self, program: augury.Program) -> None:
        self.program, self.items, self.answer = program, list[HistoryItem](), dict[OrderKey, Event]()
        self.session: Session = program.session(clock="logical")

    def take(self, changes: Changes) -> None:
        for change in changes:
            content = change.event.content
            assert (content in self.answer) == (change.op == "retract"), str(change.event)
            if change.op == "insert":
                self.answer[content] = change.event
            else:
                del self.answer[content]
        model = evaluate(self.session.program.plan, self.items, CLOCK, Facts(), self.session.now)
        assert sorted(map(str, model.events)) == sorted(map(str, self.answer.values()))

    def push(self, items: list[HistoryItem]) -> None:
        self.items += items
        self.take(self.session.push(items))


def grown(seed: int) -> bool | None:
    """A program some of whose rules come later, or go; whether it has an answer, None where it is refused."""
    story, chance = mixtures.story("mixtures", f"grown {seed}"), Random(seed)
    lines = story.text.splitlines()
    rules = {f"r{i}": f"rule r{i}: {line}" for i, line in enumerate(lines) if line.startswith("d")}
    later = [label for label in rules if chance.random() < 0.4]
    first = [rule for label, rule in rules.items() if label not in later]
    try:
        program = augury.compile("\n".join([*(line for line in lines if not line.startswith("d")), *first]))
    except AuguryError:
        return None
    watched, present = Watched(program), [label for label in rules if label not in later]
    for action in [action for action in story.actions if isinstance(action, list)]:
        watched.push(action)
        session = watched.session
        try:
            if later and chance.random() < 0.5:
                label = later.pop(chance.randrange(len(later)))
                watched.take(session.add_rules(rules[label]))
                present.append(label)
            elif len(present) > 1 and chance.random() < 0.15:
                label = present.pop(chance.randrange(len(present)))
                watched.take(session.remove_rule(label))
                later.append(label)
        except AuguryError:  # it is read as an input, or another rule needs it
            pass
        if chance.random() < 0.3:
            watched.session = program.restore(session.snapshot())
    return bool(watched.answer)


def test_rules_come_and_go() -> None:
    assert sum(bool(grown(seed)) for seed in range(COUNT)) > COUNT // 5


def test_a_type_without_rules_gets_one_again() -> None:
    watched = Watched(augury.compile("rule one: p(X) <- a(X).\nz(X) <- b(X)."))
    watched.push([Event("a", (1,), 1, 1, "a")])
    watched.take(watched.session.remove_rule("one"))
    watched.take(watched.session.add_rules("rule two: q(X, Y) <- p(X) SEQ a(Y)."))
    watched.push([Event("a", (2,), 2, 2, "b"), Event("p", (7,), 1, 1, "p")])
    watched.take(watched.session.add_rules("rule one: p(X) <- a(X)."))
    assert {event.args for event in watched.answer.values() if event.type == "q"} == {(1, 2), (7, 2)}


def test_a_policy_that_is_given_with_the_program_holds_for_rules_that_come_and_go() -> None:
    program = augury.compile("b(X, Y) <- a(X) SEQ a(Y).", policy="recent")
    session = program.session(clock="logical")
    session.add_rules("rule last: c(X, Y) <- a(X) SEQ a(Y).")
    changes = session.push([{"type": "a", "args": [n], "time": n} for n in range(3)])
    assert {(c.event.type, *c.event.args) for c in changes} == {(t, x, x + 1) for t in "bc" for x in range(2)}
    session.remove_rule("last")
    assert [c.event.args for c in session.push({"type": "a", "args": [3], "time": 3})] == [(2, 3)]
    assert program.with_rules("d(X) <- a(X).").written[-1].text == "policy recent.\n"
