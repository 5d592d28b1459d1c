"""Chooses the operators of `holding p(X)`: intervals of facts as events, or what windows have of them.

x: holding p(X)                                   →   DeriveSpec ← EndedSpec ← HoldingSpec
w: every(1h), while w: collect x: holding p(X)    →   PanesSpec ← ClipSpec ← DistinctWindowsSpec, HoldingSpec
"""

from __future__ import annotations

from dataclasses import replace

from augury.algebra.nodes import SEEN, Collect, Node, Rule, Scan, held_by, mapped
from augury.algebra.plan import Predicate
from augury.algebra.rule_terms import clock_labels
from augury.algebra.strata import below, static_reads
from augury.algebra.terms import Var, Wild
from augury.planner.planning import Planning, same_columns
from augury.planner.project import Needs, possible_vars
from augury.planner.specs import (
    ClipSpec,
    DeriveSpec,
    DistinctWindowsSpec,
    EndedSpec,
    HoldingSpec,
    LookBack,
    Output,
    Reading,
    SetSpec,
)

OPEN = "held "  # the type of intervals that may have no beginning, and no end: `held p`


def held_intervals(planning: Planning, predicate: Predicate) -> Reading:
    """The intervals in which facts of a predicate hold, also those without a beginning or an end."""
    plan = planning.plan
    made = sorted(below(predicate, static_reads(plan.clauses)) & plan.made.keys())
    makers = [type for made_predicate in made for type in plan.made[made_predicate] if type in plan.derived]
    out = Output.of(f"#{i}" for i in range(predicate[1]))
    inputs = tuple(Reading(planning.events(type)) for type in makers)
    return planning.add(HoldingSpec(inputs=inputs, out=out, predicate=predicate))


def held_events(planning: Planning, type: Predicate, predicate: Predicate) -> SetSpec:
    """The intervals with a beginning and an end, as events."""
    if not planning.has_set(type):
        rows = held_intervals(planning, predicate)
        ended = planning.add(EndedSpec(inputs=(rows,), out=same_columns(rows)))
        args = tuple(Var(f"#{i}") for i in range(type[1]))
        planning.add(DeriveSpec(inputs=(ended,), events=planning.events(type), args=args))
    return planning.events(type)


def choose_clipped(planning: Planning, rule: Rule, collect: Collect, rows: Reading, keys: tuple[str, ...]) -> Reading:
    """Intersections of windows with held intervals: rows over the window, with the common time under the label."""
    assert collect.window is not None and collect.label is not None
    pattern = _all_named(collect.pattern)
    names = sorted(possible_vars(pattern))
    held = planning.pattern(pattern, Needs(frozenset(names)), rule.label)
    clock, lengths = planning.setting.clock, planning.setting.lengths
    begins, ends = (LookBack(rule.body, collect.window, clock, point) for point in "se")
    # The windows: the fields of the first input are its own times.
    windows = planning.add(
        DistinctWindowsSpec(
            inputs=(rows,),
            out=Output.of(keys),
            rule=rule.label,
            window=collect.window,
            back=ends(lengths),
            look_back=ends,
        )
    )
    labels = [collect.label] if not collect.where else [collect.label, SEEN]
    return planning.add(
        ClipSpec(
            inputs=(windows, held),
            out=Output.of(names, labels),
            rule=rule.label,
            label=collect.label,
            past=collect.window in clock_labels(rule.body),
            back=begins(lengths),
            look_back=begins,
        )
    )


def _all_named(pattern: Node) -> Node:
    """The pattern over all intervals, each argument with a name: what differs in any argument is another fact."""
    if not isinstance(pattern, Scan):
        return mapped(pattern, _all_named)
    held = held_by(pattern.predicate)
    assert held is not None
    args = tuple(Var(f"#{i}", a.span) if isinstance(a, Wild) else a for i, a in enumerate(pattern.args))
    return replace(pattern, type=OPEN + held[0], args=args)
