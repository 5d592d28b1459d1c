"""Each type is a name with an arity: as declared, else as everywhere else."""

from __future__ import annotations

from augury.algebra.nodes import AnyOf, Condition, Holds, Rule, Scan, Unless, conditions, walk_all
from augury.algebra.program import Plan
from augury.errors import Findings, Note, Span, nearest

Uses = dict[str, list[tuple[int, Span]]]


def check_arity(plan: Plan, findings: Findings) -> None:
    heads: Uses = {}
    read: Uses = {}
    for rule in plan.rules:
        heads.setdefault(rule.type, []).append((len(rule.args), rule.span))
        for scan in scans(rule):
            read.setdefault(scan.type, []).append((len(scan.args), scan.span))
    for name, uses in _merged(heads, read).items():
        _check_event(name, uses, plan, findings)
    for name, uses in read.items():
        if name not in heads and name not in plan.declared:
            _check_unknown(name, uses[0][1], {*heads, *plan.declared}, plan, findings)
    _check_static(plan, findings)


def scans(rule: Rule) -> list[Scan]:
    patterns = [rule.body, *([rule.collect.pattern] if rule.collect else [])]
    return [node for pattern in patterns for node in walk_all(pattern) if isinstance(node, Scan)]


def _merged(first: Uses, second: Uses) -> Uses:
    return {name: first.get(name, []) + second.get(name, []) for name in {**first, **second}}


def _check_event(name: str, uses: list[tuple[int, Span]], plan: Plan, findings: Findings) -> None:
    declared = plan.declared.get(name)
    arity, first = uses[0]
    for count, span in uses:
        if declared is not None and count != len(declared):
            written = ", ".join(a.name for a in declared)
            findings.add("E206", f"`{name}` has {count} arguments, but is declared with {len(declared)}", span,
                         hint=f"it is declared as {name}({written})")  # fmt: skip
        elif declared is None and count != arity:
            findings.add("W302", f"`{name}` is used with {count} and with {arity} arguments: two types", span,
                         Note("the other use", first))  # fmt: skip
            return


def _check_unknown(name: str, span: Span, known: set[str], plan: Plan, findings: Findings) -> None:
    close = nearest(name, known, 0.8) if len(name) > 3 else None
    if close is None:
        return
    if plan.declared:
        findings.add("E201", f"unknown event `{name}`", span,
                     hint=f"did you mean `{close}`? Otherwise declare it: `event {name}(…).`")  # fmt: skip
    else:
        findings.add("W305", f"nothing derives `{name}`, so it is taken as an input", span,
                     hint=f"did you mean `{close}`? Otherwise declare it: `event {name}(…).`")  # fmt: skip


def static_atoms(plan: Plan) -> list[tuple[Holds | Unless, Rule | None]]:
    """Every call of a static predicate, with the event rule it stands in."""
    found: list[tuple[Holds | Unless, Rule | None]] = []

    def visit(where: tuple[Condition, ...], rule: Rule | None) -> None:
        for condition in where:
            if isinstance(condition, Holds | Unless):
                found.append((condition, rule))
            elif isinstance(condition, AnyOf):
                for option in condition.options:
                    visit(option, rule)

    for rule in plan.rules:
        patterns = [rule.body, *([rule.collect.pattern] if rule.collect else [])]
        for pattern in patterns:
            for node in walk_all(pattern):
                visit(conditions(node), rule)
        if rule.collect:
            visit(rule.collect.where, rule)
    for clause in plan.clauses:
        visit(clause.body, None)
    return found


def _check_static(plan: Plan, findings: Findings) -> None:
    defined: dict[str, dict[int, Span]] = {}
    for clause in plan.clauses:
        defined.setdefault(clause.name, {}).setdefault(len(clause.args), clause.span)
    for name, attributes in plan.static.items():
        for arity, span in defined.get(name, {}).items():
            if arity != len(attributes):
                findings.add("E206", f"`{name}` has {arity} arguments, but is declared with {len(attributes)}", span)
    for atom, _ in static_atoms(plan):
        arity = len(atom.args)
        declared = plan.static.get(atom.name)
        if declared is not None and arity != len(declared):
            findings.add(
                "E206", f"`{atom.name}` has {arity} arguments, but is declared with {len(declared)}", atom.span
            )
        elif declared is None and atom.name in defined and arity not in defined[atom.name]:
            other, span = next(iter(defined[atom.name].items()))
            findings.add("E206", f"`{atom.name}` has {arity} arguments here, but is defined with {other}", atom.span,
                         Note("defined here", span))  # fmt: skip
