"""What leads from the program that runs to another one, while the state stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from augury.algebra.nodes import Rule
from augury.algebra.plan import Predicate, rule_reads
from augury.compiled import Compiled
from augury.connectors import RenderedChanges
from augury.core.errors import RunError
from augury.engine.changes import Changes
from augury.language.rules import syntax as s
from augury.language.rules.show import Printer
from augury.program import Program, ProgramSession
from augury.service.journal import RuleSwitch


@dataclass
class ProgramStatements:
    """The rules of a program by their labels, as they are written without these, and its other statements."""

    rules: dict[str, str] = field(default_factory=dict)
    others: dict[str, s.Statement] = field(default_factory=dict)

    @staticmethod
    def of(program: Compiled) -> ProgramStatements:
        result, printer = ProgramStatements(), Printer(explicit=True, width=10_000)
        labels = {rule.span: rule.label for rule in program.plan.rules}
        for statement in _statements(program):
            if isinstance(statement, s.RuleStatement):
                result.rules[labels[statement.span]] = printer.statement(replace(statement, label=None))
            elif not isinstance(statement, s.Include):
                result.others[printer.statement(statement)] = statement
        return result


def _statements(program: Compiled) -> Iterator[s.Statement]:
    for module in program.modules:
        for statement in module.statements:
            yield replace(statement, comments=s.Comments())


def rule_switch(running: Compiled, program: Compiled) -> RuleSwitch | None:
    """The rules that leave and come; None where nothing does. Raises where only a new state can run the program.

    With a rule that changes, those that read what it derives leave and come, too.
    """
    before, after = ProgramStatements.of(running), ProgramStatements.of(program)
    if running.plan.graph_queries or program.plan.graph_queries:
        if before.rules == after.rules and repr(running.plan.graph_queries) == repr(program.plan.graph_queries):
            return None
        raise _needs_new_state("queries of SPAseQ cannot be changed while they run")
    _check_others(before, after)
    dropped = set(running.plan.outputs) & {rule.type for rule in program.plan.rules} - set(program.plan.outputs)
    if dropped:
        raise _needs_new_state(f"`{min(dropped)}` is no longer an output")
    old_texts, new_texts = set(before.rules.values()), set(after.rules.values())
    changed = {label for label, text in before.rules.items() if text not in new_texts}
    new = {label for label, text in after.rules.items() if text not in old_texts}
    leaving = _with_readers(running, _derived(running, changed) | _derived(program, new), changed)
    kept = {text for label, text in before.rules.items() if label not in leaving}
    coming = [text for text in after.rules.values() if text not in kept]
    declared = [text for text, statement in after.others.items() if text not in before.others and _may_come(statement)]
    if not leaving and not coming and not declared:
        return None
    order = [rule.label for rule in reversed(running.plan.rules) if rule.label in leaving]
    return RuleSwitch(tuple(order), "\n".join(f"{text}." for text in (*declared, *coming)))


def _may_come(statement: s.Statement) -> bool:
    return isinstance(statement, s.EventDecl | s.StaticDecl | s.OutputDecl | s.PrefixDecl)


def _check_others(before: ProgramStatements, after: ProgramStatements) -> None:
    """Refuses changes of anything but rules, and of declarations that come."""
    names = {x.name for x in before.others.values() if isinstance(x, s.EventDecl | s.StaticDecl)}
    for text, statement in after.others.items():
        if text in before.others:
            continue
        if not _may_come(statement):
            raise _needs_new_state(f"`{text}` is new")
        if isinstance(statement, s.EventDecl | s.StaticDecl) and statement.name in names:
            raise _needs_new_state(f"the declaration of `{statement.name}` has changed")
    for text, statement in before.others.items():
        if text not in after.others and not _may_come(statement):
            raise _needs_new_state(f"`{text}` is gone")


def _needs_new_state(reason: str) -> RunError:
    return RunError(
        f"{reason}, which a running service cannot take over", hint="stop it, and begin with another --state directory"
    )


def _derived(program: Compiled, labels: set[str]) -> set[Predicate]:
    return {rule.predicate for rule in program.plan.rules if rule.label in labels}


def _with_readers(program: Compiled, types: set[Predicate], labels: set[str]) -> set[str]:
    """Rules, and all that read one of some types, directly or through others."""
    result, reached = set(labels), set(types)
    rules: list[Rule] = list(program.plan.rules)
    while True:
        more = [r for r in rules if r.label not in result and (rule_reads(r) & reached)]
        if not more:
            return result
        result |= {rule.label for rule in more}
        reached |= {rule.predicate for rule in more}


def switch_rules(session: ProgramSession, switch: RuleSwitch) -> list[Changes]:
    """Takes rules out and adds others."""
    parts: list[Changes] = []
    for label in switch.removed:
        parts.append(session.remove_rule(label))
    if switch.added:
        parts.append(session.add_rules(switch.added))
    return parts


def check_switch(session: ProgramSession, switch: RuleSwitch, opened: Program) -> None:
    """Raises where a session could not take a switch; tries it on a copy of the session."""
    copy = opened.restore(session.snapshot())
    switch_rules(copy, switch)


def net_of(changes: RenderedChanges) -> RenderedChanges:
    """Without answers that are retracted and inserted again."""
    last: dict[str, int] = {}
    first: dict[str, str] = {}
    for row, (id, op) in enumerate(zip(changes.ids, changes.ops, strict=True)):
        last[id] = row
        first.setdefault(id, op)
    rows = sorted(row for id, row in last.items() if first[id] == changes.ops[row])
    ops, types, ids, lines = (
        [column[row] for row in rows] for column in (changes.ops, changes.types, changes.ids, changes.lines)
    )
    return RenderedChanges(changes.step, ops, types, ids, lines)  # type: ignore[arg-type]
