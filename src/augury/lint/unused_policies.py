"""Policies that choose nothing."""

from __future__ import annotations

from augury.algebra.kinds import chooses
from augury.algebra.nodes import Join, Repeat, Rule, walk_all
from augury.compiled import Compiled
from augury.core.errors import Edit, Findings, Fix, Span
from augury.language.rules import syntax as s
from augury.lint.fixes import without_statement


def lint_policies(program: Compiled, findings: Findings) -> None:
    """L112: a policy where there is nothing to choose from, or that another one replaces."""
    rules = {(rule.span.source, rule.span.start): rule for rule in program.plan.rules}
    default: s.PolicyDecl | None = None
    for statement in (x for m in program.modules for x in m.statements):
        if isinstance(statement, s.PolicyDecl):
            if default is not None:
                _report_declaration(default, "another one replaces it", findings)
            default = statement
        elif isinstance(statement, s.RuleStatement) and statement.policy is not None:
            rule = rules.get((statement.span.source, statement.span.start))
            if rule is not None and not _pairs(rule) and statement.policy.name != "unrestricted":
                span = statement.span.part(r"\s*\bpolicy\b[^.]*$")
                message = f"the policy of rule `{rule.label}` has no effect: nothing in it is paired"
                fix = Fix("remove the policy", (Edit(span, ""),), safe=True)
                findings.add("L112", message, statement.policy.span, fix=fix)
    if default is not None and default.policy.name != "unrestricted":
        chosen = any(chooses(node) for rule in program.plan.rules for p in rule.patterns for node in walk_all(p))
        if not chosen:
            _report_declaration(default, "no rule pairs events under it", findings)


def _pairs(rule: Rule) -> bool:
    return any(isinstance(node, Join | Repeat) for pattern in rule.patterns for node in walk_all(pattern))


def _report_declaration(declaration: s.PolicyDecl, why: str, findings: Findings) -> None:
    edit = without_statement(declaration.span)
    fix = Fix("remove the policy", (Edit(Span(edit.span.source, edit.span.start, edit.span.end), ""),), safe=True)
    findings.add("L112", f"this policy has no effect: {why}", declaration.span, fix=fix)
