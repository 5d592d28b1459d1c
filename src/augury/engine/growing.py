"""Rules that come and go while a session runs."""

from __future__ import annotations

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
        what = f"`{name}` with {arity} arguments is an input of the running rules"
        raise RunError(f"{what}, so no new rule can derive it")
    check_new_makers(session, program)
    return program


def add(session: Session, program: Compiled, rules: str | Path, after: int | None) -> None:
    """Adds the rules that a program has more. They see what starts after a time, or all that is held."""
    text = read_text(Path(rules)) if isinstance(rules, Path) or rules.endswith(".aug") else rules
    circuit = session.circuit
    circuit.extend(program.optimised, after)
    session.program, session.input_ids.plan = program, program.plan
    known = {id(one.events) for one in session.answers}
    for (name, _), events in circuit.derived.items():
        if name in program.plan.outputs and id(events) not in known:
            session.answers.append(EmittedRows(events))
    session._index_answers()
    session.grown = [*session.grown, ("add", text, after)]


def remove(session: Session, step: StepTransaction, program: Compiled, label: str) -> tuple[Changes, list[Goal]]:
    """Takes a rule out; what only it derived is retracted."""
    circuit, running = session.circuit, session.program
    circuit.silence(label)
    changes, goals = session._changes(step)
    for one in session.answers:
        one.commit()
    circuit.settle()
    # What was given of a type that is no longer derived is no longer an answer.
    leaving = [one for one in session.answers if one.events.type not in program.plan.outputs]
    given = [AnswerRows(circuit, one.events, rows, "retract") for one in leaving if len(rows := one.standing())]
    parts = [*given, *step.answers]
    for answers in parts:
        answers.keep()
    circuit.remove(label)
    session.program, session.input_ids.plan = program, program.plan
    session.answers = [one for one in session.answers if one not in leaving]
    session._index_answers()
    session.grown = [*session.grown, ("remove", label, None)]
    step.answers = []
    return type(changes)(running.plan, session.clock, sorted(parts, key=lambda part: part.op == "insert")), goals
