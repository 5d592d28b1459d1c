"""Static rules that are never tried because of another one. What derived events rule out is W314."""

from __future__ import annotations

from augury.compiled import Compiled
from augury.core.errors import Findings, Fix, Note, Span
from augury.lint.fixes import without_statement


def lint_unreachable(program: Compiled, findings: Findings) -> None:
    """L101: a rule after one that always commits: `risk(X, 1) :- !.` hides `risk(X, 2) :- old(X).`"""
    hiding: dict[tuple[str, int], Span] = {}
    for clause in program.plan.clauses:
        if clause.predicate in hiding:
            message = f"this rule of `{clause.name}` is never tried: a cut before it always commits"
            fix = Fix("remove this rule", (without_statement(clause.span),), safe=True)
            findings.add("L101", message, clause.span, Note("the cut", hiding[clause.predicate]), fix=fix)
        if clause.cut and not clause.body:  # arguments are matched after the commit
            hiding.setdefault(clause.predicate, clause.span)
