"""Rules that say what another one says: the same, or less."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from augury.compiled import Compiled
from augury.core.clock import Duration
from augury.core.errors import Findings, Fix, Note, Span
from augury.language.rules import syntax as s
from augury.language.rules.show import Printer
from augury.lint.fixes import without_statement

_NUMBER, _ORDER = r"(-?\d+(?:\.\d+)?)", r"(<=?|>=?|=)"
_LEAST, _LEAST_FLIPPED = (
    re.compile(rf"(V\d+) {_ORDER} {_NUMBER}"),
    re.compile(rf"{_NUMBER} {_ORDER} (V\d+)"),
)
_TURNED = str.maketrans("<>", "><")
_VARIABLE = re.compile(r"'[^']*'|\"[^\"]*\"|\b([A-Z]\w*|_\w+)\b(?!\()")


@dataclass(frozen=True)
class RuleParts:
    """A rule taken apart: what must be the same in both, its conditions, and the window around all of it."""

    core: str
    conditions: frozenset[str]
    window: int | None


def lint_repeated_rules(program: Compiled, findings: Findings) -> None:
    """L102: the same rule twice. L103: a rule all of whose answers another one gives, for it asks for less."""
    printer = Printer(explicit=True, width=10_000)
    statements = [x for m in program.modules for x in m.statements if isinstance(x, s.RuleStatement | s.StaticRule)]
    seen: dict[str, Span] = {}
    by_core: dict[str, list[tuple[RuleParts, s.RuleStatement]]] = {}
    for statement in statements:
        text = _renamed(printer.statement(replace(statement, label=None)))
        if text in seen:
            kind = "this fact" if isinstance(statement, s.StaticRule) and not statement.body else "this rule"
            fix = Fix(f"remove {kind}", (without_statement(statement.span),), safe=True)
            findings.add("L102", f"{kind} is there twice", statement.span, Note("the other one", seen[text]), fix=fix)
        elif isinstance(statement, s.RuleStatement) and (parts := _parts(statement, printer)) is not None:
            by_core.setdefault(parts.core, []).append((parts, statement))
        seen.setdefault(text, statement.span)
    for group in by_core.values():
        for parts, statement in group if len(group) > 1 else ():
            other = next((other for p, other in group if other is not statement and _covers(p, parts)), None)
            if other is not None:
                message = "every answer of this rule is one of another rule, which asks for less"
                fix = Fix("remove this rule", (without_statement(statement.span),))
                findings.add("L103", message, statement.span, Note("the other one", other.span), fix=fix)


def _covers(wide: RuleParts, narrow: RuleParts) -> bool:
    longer = wide.window is None or (narrow.window is not None and narrow.window <= wide.window)
    return longer and wide != narrow and all(_implied(asked, narrow.conditions) for asked in wide.conditions)


def _implied(asked: str, conditions: frozenset[str]) -> bool:
    """Whether conditions include one, or a comparison with a number that says more: `V > 20` implies `V > 10`."""
    if asked in conditions:
        return True
    bound = _bound(asked)
    if bound is None:
        return False
    name, op, limit = bound
    for other, its_op, value in filter(None, map(_bound, conditions)):
        if other != name or its_op not in (op[0], f"{op[0]}=", "="):
            continue
        beyond = value > limit if op[0] == ">" else value < limit
        if beyond or (value == limit and ("=" in op if its_op == "=" else its_op == op or op.endswith("="))):
            return True
    return False


def _bound(condition: str) -> tuple[str, str, Fraction] | None:
    """`V1 > 20` or `20 < V1` taken apart."""
    if match := _LEAST.fullmatch(condition):
        return match[1], match[2], Fraction(match[3])
    if match := _LEAST_FLIPPED.fullmatch(condition):
        return match[3], match[2].translate(_TURNED), Fraction(match[1])
    return None


def _parts(rule: s.RuleStatement, printer: Printer) -> RuleParts | None:
    """None where a condition more may change what a choice, an aggregate or an absence makes of the rest."""
    if rule.policy or rule.choice or rule.top or rule.at_most or rule.makes != "event" or rule.since is not None:
        return None
    literals: list[str] = []
    conditions: list[str] = []
    window: int | None = None
    for literal in rule.body:
        if any(isinstance(part, s.While | s.Last | s.Holding) or _has_policy(part) for part in s.walk(literal)):
            return None
        if isinstance(literal, s.Chain | s.Among | s.Between):
            conditions.append(printer.node(literal))
            continue
        node: s.Node = literal
        while isinstance(node, s.Where | s.Window):
            if isinstance(node, s.Where):
                conditions += map(printer.node, _conjuncts(node.condition))
            elif isinstance(node.length.value, Duration) and len(rule.body) == 1:
                window = min(node.length.value.us, window or node.length.value.us)
            else:
                return None
            node = node.pattern
        literals.append(printer.node(node))
    core = f"{printer.node(rule.head)} <- {', '.join(literals)}"
    marked = "\x00".join([core, *sorted(conditions)])
    core, *conditions = _renamed(marked).split("\x00")
    return RuleParts(core, frozenset(conditions), window)


def _has_policy(node: s.Node) -> bool:
    return isinstance(node, s.Binary | s.Not) and node.policy is not None


def _conjuncts(node: s.Node) -> Iterator[s.Node]:
    match node:
        case s.Group():
            for item in node.items:
                yield from _conjuncts(item)
        case s.Binary(op="AND"):
            yield from _conjuncts(node.left)
            yield from _conjuncts(node.right)
        case _:
            yield node


def _renamed(text: str) -> str:
    """A text with its variables numbered in the order in which they occur."""
    names: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        return names.setdefault(match[1], f"V{len(names)}") if match[1] else match[0]

    return _VARIABLE.sub(name, text)
