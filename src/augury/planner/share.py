"""Sharing: patterns that are equal up to the names of variables and labels are one operator (E 3.1, R fig. 5c).

    m(X) <- (a(X) SEQ b(X)).10.   n(Y) <- (a(Y) SEQ b(Y)).10.   →   one join, whose column is X of one rule and Y of the other

Equal patterns have equal rows. A call that is not pure has a form of its own, so that two rules never share what it gave.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from augury.algebra.nodes import (
    AnyOf,
    Graph,
    Holds,
    Label,
    Node,
    Policy,
    Run,
    RunPart,
    Scan,
    SessionWindow,
    Unfold,
    conditions,
    walk_all,
)
from augury.algebra.terms import Apply, Build, Const, Var
from augury.planner.project import Needs, possible_labels
from augury.planner.specs import FrozenDict, Reading

if TYPE_CHECKING:
    from augury.planner.planning import Planning


def share(planning: Planning, node: Node, needs: Needs, rule: str) -> Reading:
    """The rows of a pattern: those of an equal pattern, or of operators that are chosen now."""
    names: dict[str, str] = {}
    form = canonical(node, names)
    label_names = {name: names.get(f"label {name}", name) for name in possible_labels(node)}
    asks = any(isinstance(c, Holds | AnyOf) for n in walk_all(node) for c in conditions(n))
    key = (
        form,
        tuple(sorted(names.get(v, v) for v in needs.vars)),
        tuple(sorted(label_names[name] for name in needs.labels)),
        asks and bool(planning.setting.varying),
        planning.setting.since.get(rule),
    )
    shared = planning.shared.get(key)
    if shared is None:
        chosen = planning.choose(planning, node, needs, rule)
        shared = planning.shared[key] = _renamed(chosen, names, label_names)
    back = {short: name for name, short in names.items() if not name.startswith("label ")}
    return _renamed(shared, back, {short: name for name, short in label_names.items()})


def _renamed(rows: Reading, names: Mapping[str, str], labels: Mapping[str, str]) -> Reading:
    return Reading(
        rows.source,
        FrozenDict({names.get(v, v): f for v, f in rows.vars.items()}),
        FrozenDict({labels.get(n, n): f for n, f in rows.labels.items()}),
        FrozenDict({labels.get(n, n): f for n, f in rows.named.items()}),
    )


def canonical(node: object, names: dict[str, str] | None = None) -> str:
    """A pattern with its variables and labels renamed in the order in which they appear: equal for equal patterns."""
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
            identity = f" #{id(node)}" if isinstance(node, Apply) and not node.pure else ""
            return f"{type(node).__name__} {head}{identity}({','.join(canonical(a, names) for a in node.args)})"
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
            return f"Part {node.link} {node.between} {node.least} {node.most} {node.iterates} {each} {' '.join(below)}"
        case Unfold():
            unfolded = canonical((node.input, node.of), names)
            return f"Unfold {unfolded} {[canonical(Var(v), names) for v in node.binds]}"
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
