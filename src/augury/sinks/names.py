"""The attribute names of derived events."""

from __future__ import annotations

from augury.algebra.plan import Plan, Predicate
from augury.algebra.terms import Var

RESERVED = ("start", "end", "id", "op", "trace", "type")


def attribute_names(plan: Plan, type: Predicate) -> list[str]:
    """The names of the attributes of a derived type: as declared; else the variable that all its rules have there."""
    declared = plan.declared.get(type[0])
    if declared is not None and len(declared) == type[1]:
        wanted = [a.name for a in declared]
    else:
        heads = [[rule.args[i] for rule in plan.derived.get(type, ())] for i in range(type[1])]
        wanted = [
            _variable({a.name.lower() if isinstance(a, Var) and a.name.isidentifier() else "" for a in args})
            for args in heads
        ]
    result: list[str] = []
    for i, name in enumerate(wanted):
        result.append(name if name and name not in RESERVED and name not in result else numbered(i))
    return result


def _variable(names: set[str]) -> str:
    return names.pop() if len(names) == 1 else ""


def numbered(position: int) -> str:
    """The name of an attribute that has none."""
    return f"arg{position + 1}"


def column_names(plan: Plan, type: str) -> list[str]:
    """The names of the columns of a type: those of its attributes; numbered where rules derive it with several arities."""
    arities = sorted({arity for name, arity in plan.derived if name == type})
    if len(arities) == 1:
        return attribute_names(plan, (type, arities[0]))
    return [numbered(i) for i in range(arities[-1] if arities else 0)]


def declared_types(plan: Plan, type: str) -> list[str]:
    """What the declaration of a type says of its columns; `any` where it says nothing."""
    declared = plan.declared.get(type)
    names = column_names(plan, type)
    if declared is None or len(declared) != len(names):
        return ["any"] * len(names)
    return [a.type for a in declared]
