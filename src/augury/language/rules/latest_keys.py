"""`fact latest p(K, V) PER (K) <- …`: which arguments of the head are the key (SEMANTICS 12)."""

from __future__ import annotations

from augury.algebra.nodes import ANY_VALUE
from augury.algebra.terms import Const, Expr, Var, Wild
from augury.core.errors import Findings
from augury.language.rules import syntax as s
from augury.language.rules.show import show_node

_FORM = "write `fact latest mode(M, S) PER (M) <- …`"


def key_positions(statement: s.RuleStatement, args: tuple[Expr, ...], findings: Findings) -> tuple[int, ...] | None:
    """The places of the key among the arguments; None where the rule is no `fact latest`, or its key is wrong."""
    key, head = statement.key, statement.head
    if statement.makes != "latest":
        if key is not None:
            message = f"PER before the arrow belongs to `fact latest`, and `{show_node(head)}` is not one"
            findings.add("E275", message, head.span, hint=f"{_FORM}; PER of a run stands at the end of the rule")
        return None
    if key is None:
        message = "`fact latest` does not say for which key a new fact replaces the earlier one"
        findings.add("E275", message, head.span, hint=f"{_FORM}, or `PER ()` where there is one value for all")
        return None
    names = [arg.name if isinstance(arg, Var) else None for arg in args]
    for variable in key:
        if variable.name not in names:
            message = f"`{variable.name}` is not an argument of `{show_node(head)}`"
            findings.add("E275", message, variable.span, hint="PER names arguments of the head")
            return None
    return tuple(sorted({i for i, name in enumerate(names) if name in {v.name for v in key}}))


def with_any_value(arg: s.Node) -> s.Node:
    """`_` in the head of `fact not`, beside `fact latest`, stands for whatever holds."""
    return Const(ANY_VALUE, arg.span) if isinstance(arg, Wild) else arg
