"""What is derived or declared, and nothing reads."""

from __future__ import annotations

from augury.algebra.plan import rule_reads, static_calls
from augury.compiled import Compiled
from augury.core.errors import Edit, Findings, Fix, Span, misspelt
from augury.language.checks.arity import head_of
from augury.language.rules import syntax as s
from augury.language.rules.symbols import name_of


def lint_unread(program: Compiled, findings: Findings) -> None:
    """L109: a rule derives what is no output and what no rule reads. L110: a declaration, or facts, that nothing uses."""
    plan = program.plan
    read = {type for rule in plan.rules for type in rule_reads(rule)}
    read |= {type for query in plan.graph_queries for type in query.reads}
    declared = [x for m in program.modules for x in m.statements if isinstance(x, s.OutputDecl)]
    reported: set[str] = set()
    for rule in plan.rules:
        if rule.makes or rule.type in plan.outputs or rule.predicate in read or rule.type in reported:
            continue
        reported.add(rule.type)
        fix = None
        if declared:
            end = declared[-1].names[-1].span.end
            edit = Edit(Span(declared[-1].span.source, end, end), f", {rule.type}")
            fix = Fix(f"add {rule.type} to the outputs", (edit,))
        findings.add(
            "L109",
            f"`{rule.type}` is derived, and nothing reads it: it is no output, and no rule asks for it",
            head_of(rule.span),
            hint=f"name it in `output`, or remove rule `{rule.label}`",
            fix=fix,
        )
    if not plan.graph_queries:  # a query may read what rules only declare
        _lint_declarations(program, {name for name, _ in read}, findings)


def _lint_declarations(program: Compiled, read: set[str], findings: Findings) -> None:
    asked = {name for name, _ in static_calls(program.plan)} | {
        name for clause in program.plan.clauses for name in (clause.name,) if name in program.plan.static
    }
    derived = {name for name, _ in program.plan.derived}
    statements = [x for m in program.modules for x in m.statements]
    undeclared = read - derived - {x.name for x in statements if isinstance(x, s.EventDecl)}
    for statement in statements:
        match statement:
            case s.EventDecl(name=name) if name not in read and name not in derived:
                close = misspelt(name, undeclared)
                hint = f"`{close}` is read, and not declared: is it this event?" if close else None
                findings.add("L110", f"no rule reads the event `{name}`", name_of(statement), hint=hint)
            case s.StaticDecl(name=name) if name not in asked:
                findings.add("L110", f"no rule asks for the facts of `{name}`", name_of(statement))
    seen: set[str] = set()
    calls = {name for name, _ in static_calls(program.plan)}
    for clause in program.plan.clauses:
        if clause.name not in calls and clause.name not in seen:
            seen.add(clause.name)
            findings.add("L110", f"no rule asks for `{clause.name}`", clause.span)
