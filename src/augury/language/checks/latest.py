"""All rules that make facts of a `latest` predicate agree on its key, and no other rule makes its facts."""

from __future__ import annotations

from augury.algebra.nodes import ANY_VALUE, Rule
from augury.algebra.plan import Plan
from augury.algebra.terms import Const
from augury.core.errors import Findings, Note
from augury.language.checks.arity import head_of


def check_latest(plan: Plan, findings: Findings) -> None:
    first: dict[tuple[str, int], Rule] = {}
    for rule in plan.rules:
        if rule.latest is not None:
            first.setdefault((rule.makes, len(rule.args)), rule)
    for rule in plan.rules:
        latest = first.get((rule.makes, len(rule.args)))
        if latest is not None and latest.latest is not None:
            _check_rule(rule, latest, latest.latest, findings)
        elif rule.makes and any(isinstance(a, Const) and a.value == ANY_VALUE for a in rule.args):
            message = f"no `fact latest` rule makes facts of `{rule.makes}` with {len(rule.args)} arguments"
            findings.add("E275", message, head_of(rule.span), hint="name the fact that ends, argument by argument")


def _check_rule(rule: Rule, latest: Rule, key: tuple[int, ...], findings: Findings) -> None:
    where, other = head_of(rule.span), Note("the `fact latest` rule", head_of(latest.span))
    if rule.ends_facts:
        if any(isinstance(rule.args[i], Const) and rule.args[i].value == ANY_VALUE for i in key):  # type: ignore[union-attr]
            message = f"`_` stands in the key of `{rule.makes}`"
            findings.add("E275", message, where, other, hint="`_` stands for a value; name the key whose value ends")
    elif rule.latest is None:
        message = f"a plain `fact` rule makes facts of `{rule.makes}` beside `fact latest`"
        findings.add("E275", message, where, other, hint="write `fact latest` in both, with one PER")
    elif rule.latest != key:
        message = f"two `fact latest` rules for `{rule.makes}` have different keys"
        findings.add("E275", message, where, other, hint="name the same arguments in PER")
