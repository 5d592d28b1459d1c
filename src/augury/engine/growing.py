"""Rules that come and go while a session runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from augury.algebra.plan import rule_reads
from augury.compiled import Compiled, check_clock, read_text
from augury.core.errors import RunError
from augury.engine.atomic import StepTransaction
from augury.engine.changes import Changes
from augury.engine.emission import EmittedRows
from augury.engine.found import AnswerRows
from augury.engine.goals import Goal
from augury.engine.learning import check_new_makers

if TYPE_CHECKING:
    from augury.engine.session import Session


def with_rules(session: Session, rules: str | Path) -> Compiled:
    """The program with more rules; raises where they do not fit what runs."""
    running, program = session.program, session.program.with_rules(rules)
    if program.plan.clauses != running.plan.clauses:
        raise RunError("static rules cannot be added to a session", hint="give facts and static rules when it opens")
    if program.plan.tick != running.plan.tick:
        raise RunError("the tick of a session cannot change")
    check_clock(program, session.clock.kind)
    read = {t for rule in running.plan.rules for t in rule_reads(rule)}
    for name, arity in sorted((program.plan.derived.keys() - session.circuit.derived.keys()) & read):
        message = f"`{name}` with {arity} arguments is an input of the running rules"
        raise RunError(f"{message}, so no new rule can derive it")
    check_new_makers(session, program)
    return program


def add(session: Session, program: Compiled, rules: str | Path, after: int | None) -> None:
    """Adds the rules that a program has more. They see what starts after a time, or all that is held."""
    text = read_text(Path(rules)) if isinstance(rules, Path) or rules.endswith(".aug") else rules
    session.circuit.extend(program.optimised, after)
    session.program, session.input_ids.plan = program, program.plan
    _new_answers(session)
    session.grown = [*session.grown, ("add", text, after)]


def remove(session: Session, step: StepTransaction, program: Compiled, label: str) -> tuple[Changes, list[Goal]]:
    """Takes a rule out; what only it derived is retracted."""
    circuit, running = session.circuit, session.program
    circuit.silence(label)
    changes, goals = session._changes(step)
    for answer_set in session.answers:
        answer_set.commit()
    circuit.settle()
    # What was given of a type that is no longer derived is no longer an answer.
    leaving = [answer_set for answer_set in session.answers if answer_set.events.type not in program.plan.outputs]
    retracted = [
        AnswerRows(circuit, answer_set.events, rows, "retract")
        for answer_set in leaving
        if len(rows := answer_set.standing())
    ]
    parts = [*retracted, *step.answers]
    for answers in parts:
        answers.keep()
    circuit.remove(label)
    session.program, session.input_ids.plan = program, program.plan
    session.answers = [answer_set for answer_set in session.answers if answer_set not in leaving]
    session._index_answers()
    session.grown = [*session.grown, ("remove", label, None)]
    step.answers = []
    return type(changes)(running.plan, session.clock, sorted(parts, key=lambda part: part.op == "insert")), goals


def become(
    session: Session, step: StepTransaction, program: Compiled, since: int | None
) -> tuple[Changes, Sequence[Goal]]:
    """Goes on with another program. Rules that it has as they are keep their state; what others derived is retracted;
    new ones see what starts after `since`."""
    before, parts = session.grown, list[AnswerRows]()
    kept = {rule.label: rule for rule in program.optimised.rules}
    for label in [rule.label for rule in session.plan.rules if kept.get(rule.label) != rule]:
        plan = session.program.plan
        rules = tuple(rule for rule in plan.rules if rule.label != label)
        derived = {rule.type for rule in rules} | {name for name, _ in plan.given} | set(program.plan.outputs)
        plan = replace(plan, rules=rules, outputs=tuple(name for name in plan.outputs if name in derived))
        changes, _ = remove(session, step, type(program)(plan), label)
        parts += [part for part in changes.parts if isinstance(part, AnswerRows)]
    circuit = session.circuit
    circuit.extend(program.optimised, since)
    session.program, session.input_ids.plan = program, program.plan
    session.answers = [emitted for emitted in session.answers if emitted.events.type in program.plan.outputs]
    _new_answers(session)
    session.elsewhere(program.plan)
    session.grown = [*before, ("plan", session.fingerprint_of(program), since)]
    changes, goals = session._changes(step)
    step.answers = [*parts, *step.answers]
    return type(changes)(program.plan, session.clock, step.answers), goals


def _new_answers(session: Session) -> None:
    """The answers of types that no rule derived before."""
    emitted = {id(answer_set.events) for answer_set in session.answers}
    for (name, _), events in session.circuit.derived.items():
        if name in session.program.plan.outputs and id(events) not in emitted:
            session.answers.append(EmittedRows(events))
    session._index_answers()
