"""The physical plan as text and JSON: operators with keys, conditions in order, columns, kept state and metrics.

4 join 1 × 2 on X, SEQ within 10s → X; keeps left 10s, right 0s (rule m)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from augury.algebra.nodes import Condition
from augury.algebra.terms import show
from augury.core.bounds import FAR
from augury.core.clock import Clock, show_duration
from augury.explain.wording import show_condition
from augury.planner import specs as s


@dataclass(frozen=True)
class OperatorMetrics:
    """What an operator of a running session has done: rows read and written, rows that it keeps, rows touched, bytes."""

    rows_in: int
    rows_out: int
    kept: int
    touched: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.rows_in:,} in, {self.rows_out:,} out, {self.kept:,} kept, {self.touched:,} touched"


def operators_text(specs: Iterable[s.Spec], clock: Clock, metrics: Mapping[s.Spec, OperatorMetrics]) -> str:
    """One line for each operator, numbered; inputs are named by their numbers."""
    lines = []
    for one in operators_json(specs, clock, metrics):
        inputs = " × ".join(map(str, one["inputs"]))
        columns = f" → {', '.join(one['columns'])}" if one["columns"] else ""
        details = ", ".join(one["details"])
        keeps = f"; keeps {', '.join(one['keeps'])}" if one["keeps"] else ""
        rule = f" (rule {one['rule']})" if one["rule"] else ""
        words = " ".join(part for part in (str(one["number"]), one["operator"], inputs, details) if part)
        lines.append(words + columns + keeps + rule)
        if one["metrics"]:
            lines.append("    " + str(OperatorMetrics(**one["metrics"])))
    return "\n".join(lines)


def operators_json(
    specs: Iterable[s.Spec], clock: Clock, metrics: Mapping[s.Spec, OperatorMetrics]
) -> list[dict[str, Any]]:
    """The same as plain data."""
    specs = [spec for spec in specs if not isinstance(spec, s.RederiveSpec)]
    number = {spec: i for i, spec in enumerate(specs, 1)}
    return [
        {
            "number": number[spec],
            "operator": spec.kind,
            "rule": spec.rule,
            "inputs": [number[rows.source] for rows in spec.inputs],
            "details": list(_details(spec)),
            "columns": [*spec.out.vars, *(name for name in spec.out.labels if not name.startswith("#"))],
            "keeps": list(_keeps(spec, clock)),
            "metrics": vars(metrics[spec]) if spec in metrics else None,
        }
        for spec in specs
    ]


def _where(where: tuple[Condition, ...]) -> list[str]:
    return [f"where {', '.join(map(show_condition, where))}"] if where else []


def _on(keys: tuple[str, ...], unbound: tuple[str, ...] = ()) -> list[str]:
    return ([f"on {', '.join(keys)}"] if keys else []) + ([f"agree on {', '.join(unbound)}"] if unbound else [])


def _details(spec: s.Spec) -> list[str]:
    """Keys, times, conditions in evaluation order, and the algorithm."""
    match spec:
        case s.InputSpec() | s.SetSpec():
            return [f"{spec.type}/{spec.arity}"]
        case s.DeriveSpec():
            args = f"({', '.join(map(show, spec.args))})" if spec.args else ""
            return [f"of {spec.events.type}{args}"]
        case s.ScanSpec():
            matched = [f"{position} = {show(expr)}" for position, expr in spec.args]
            return [*(["arguments " + ", ".join(matched)] if matched else []), *_where(spec.where)]
        case s.SelectSpec():
            return _where(spec.where)
        case s.JoinSpec():
            windows = f" within {show_duration(min(spec.node.windows))}" if spec.node.windows else ""
            times = [c for c in spec.node.where if c not in spec.where]
            related = [f"with {', '.join(map(show_condition, times))}"] if times else []
            return [*_on(spec.keys, spec.open), spec.node.op + windows, *related, *_where(spec.where)]
        case s.ChoiceSpec():
            return [spec.policy.name]
        case s.AbsenceSpec():
            return [*_on(spec.keys, spec.open), f"in {spec.window.removeprefix('#')}", *_where(spec.where)]
        case s.CollectSpec():
            how = "running totals" if isinstance(spec, s.RangedCollectSpec) else "listed members"
            return [*_on(spec.keys, spec.open), f"in {spec.window.removeprefix('#')}", how, *_where(spec.collect.where)]
        case s.PanesSpec():
            return [spec.windows.text, *_where(spec.collect.where)]
        case s.ClockWindowsSpec():
            return [spec.windows.text]
        case s.MomentsSpec():
            return [f"per {', '.join(spec.run_key)}"] if spec.run_key else []
        case s.RunSpec():
            return [f"algorithm {spec.algorithm}"]
        case s.ThrottleSpec():
            return [f"{spec.count}", *_on(spec.per)]
    return []


def _keeps(spec: s.Spec, clock: Clock) -> list[str]:
    """How long rows of each input are kept, where planning says so."""

    def length(points: int) -> str:
        if points >= FAR:
            return "for ever"
        return show_duration(max(points, 0) * (clock.tick if clock.kind == "logical" else 1))

    match spec:
        case s.JoinSpec():
            reach = spec.bounds.reach
            return [f"{side} {length(-int(reach[1 - port][1]))}" for port, side in enumerate(("left", "right"))]
        case s.WindowedSpec():
            return [length(spec.back if spec.back >= FAR else spec.back - 1)]
    return []
