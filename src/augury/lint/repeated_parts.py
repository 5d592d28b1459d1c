"""Parts of a rule that say again what another part of it says."""

from __future__ import annotations

from augury.algebra.kinds import of_kind
from augury.algebra.nodes import AnyOf, Condition, Either, Holds, Node, Rule, Unless, inputs, walk
from augury.compiled import Compiled
from augury.core.errors import Findings, Fix, Note, Span
from augury.language.checks.value_conflicts import certain
from augury.lint.fixes import without


def lint_repeated_parts(program: Compiled, findings: Findings) -> None:
    """L102: `near(X, Y), near(X, Y)`, whose second part asks what the first one has asked; `a(X) OR a(X)`."""
    for rule in program.plan.rules:
        _lint_atoms((*certain(rule.body),), findings)
        _lint_alternatives(rule, findings)
    for clause in program.plan.clauses:
        _lint_atoms(clause.body, findings)


def _lint_atoms(where: tuple[Condition, ...], findings: Findings) -> None:
    seen: dict[Condition, Span] = {}
    for condition in where:
        if not isinstance(condition, Holds | Unless | AnyOf):  # comparisons are L104
            continue
        first, span = seen.setdefault(condition, condition.span), condition.span
        if first.start < span.start and first.source == span.source:
            edits = without(span)
            fix = Fix("remove the condition", edits, safe=True) if edits else None
            findings.add("L102", f"{span.quoted} is asked twice", span, Note("the other one", first), fix=fix)


def _lint_alternatives(rule: Rule, findings: Findings) -> None:
    inside: set[int] = set()
    for either in (node for pattern in rule.patterns for node in of_kind(walk(pattern), Either)):
        if id(either) in inside:
            continue
        branches = [(branch, _span(branch)) for branch in _branches(either, inside)]
        for number, (branch, span) in enumerate(branches):
            first = next((s for other, s in branches[:number] if other == branch), None)
            if first is not None and span is not None:
                findings.add(
                    "L102", f"the alternative {span.quoted} is there twice", span, Note("the other one", first)
                )


def _branches(either: Either, inside: set[int]) -> list[Node]:
    """The alternatives of a chain of OR; `inside` gets the parts of the chain."""
    branches: list[Node] = []
    for side in (either.left, either.right):
        if isinstance(side, Either):
            inside.add(id(side))
            branches += _branches(side, inside)
        else:
            branches.append(side)
    return branches


def _span(node: Node) -> Span | None:
    """Where a pattern is written; a node that only wraps another one has no place of its own."""
    span: Span | None = getattr(node, "span", None)
    if span is not None and span.end > span.start:
        return span
    return next((below for part in inputs(node) if (below := _span(part)) is not None), None)
