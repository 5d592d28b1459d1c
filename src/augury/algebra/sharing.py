"""Sub-plans that several rules have: they exist once in an executor (E 3.1, R fig. 5c)."""

from __future__ import annotations

from dataclasses import dataclass

from augury.algebra.nodes import Graph, Instant, Label, Node, Policy, Run, RunPart, Scan, SessionWindow, Unfold, walk
from augury.algebra.place import place
from augury.algebra.plan import Plan
from augury.algebra.terms import Apply, Build, Const, Var


def canonical(node: object, names: dict[str, str] | None = None) -> str:
    """A pattern with its variables and labels renamed in the order in which they appear: equal for equal sub-plans.

    A call that is not pure has a form of its own, so that two rules never share what it gave.
    """
    names = {} if names is None else names
    match node:
        case Var():
            return names.setdefault(node.name, f"V{len(names)}")
        case str():
            return names.get(f"label {node}", node)
        case Const():
            return repr(node)
        case Build() | Apply() | Scan():
            head = node.functor if isinstance(node, Build) else node.function if isinstance(node, Apply) else node.type
            own = f" #{id(node)}" if isinstance(node, Apply) and not node.pure else ""
            return f"{type(node).__name__} {head}{own}({','.join(canonical(a, names) for a in node.args)})"
        case Label():
            names[f"label {node.label}"] = f"L{len(names)}"
            return canonical(node.input, names)
        case SessionWindow():
            return f"Session {canonical(node.input, names)} {node.gap} {node.most}"
        case Policy():
            by, per = names.get(node.by or ""), tuple(names.get(v) for v in node.per)
            return f"Policy {node.name} {node.ties} {by} {per}"
        case RunPart():
            below = [canonical(x, names) for x in (node.input, node.where, node.after)]
            each = sorted(names.get(v, v) for v in node.own)
            return f"Part {node.link} {node.between} {node.least} {node.most} {each} {' '.join(below)}"
        case Unfold():
            given = canonical((node.input, node.of), names)
            return f"Unfold {given} {[canonical(Var(v), names) for v in node.binds]}"
        case Graph():
            binds = [(name, canonical(Var(variable), names)) for name, variable in node.binds]
            return f"Graph {canonical(node.input, names)} {node.pattern} {binds} {node.visible} {node.event and canonical(Var(node.event), names)}"
        case Run():
            parts, among = canonical(node.parts, names), canonical(node.among, names)
            results = [(canonical(Var(r.name), names), r.part, canonical(r.aggregate, names)) for r in node.results]
            key = sorted(names.get(v, v) for v in node.key)
            where = canonical(node.where, names)
            return f"Run {parts} {key} {among} {results} {sorted(node.windows)} {node.which} {node.skip} {where}"
        case tuple():
            return f"({','.join(canonical(n, names) for n in node)})"
    fields = getattr(node, "__dataclass_fields__", None)
    if fields is None:
        return repr(node)
    values = [canonical(getattr(node, name), names) for name in fields if name != "span"]
    return f"{type(node).__name__}[{','.join(values)}]"


@dataclass(frozen=True)
class Shared:
    """A sub-plan that several rules have."""

    form: str
    node: Node
    rules: tuple[str, ...]


def sharing(plan: Plan) -> list[Shared]:
    """The largest sub-plans that several rules have; a scan alone is not worth a word."""
    found: dict[str, tuple[Node, list[str]]] = {}
    for rule in plan.rules:
        for node in walk(place(rule.body)):
            if not isinstance(node, Scan | Instant | Label):
                found.setdefault(canonical(node), (node, []))[1].append(rule.label)
    shared = [
        Shared(form, node, tuple(dict.fromkeys(rules))) for form, (node, rules) in found.items() if len(set(rules)) > 1
    ]
    return [one for one in shared if not any(_covers(other, one) for other in shared)]


def _covers(outer: Shared, inner: Shared) -> bool:
    """Whether a sub-plan lies inside one that the same rules share."""
    parts = {canonical(part) for part in walk(outer.node)} - {outer.form}
    return outer.rules == inner.rules and inner.form in parts
