"""Chooses the operators of collects: by panes of the clock, by running totals, or by listing what a window has.

w: every(1h), while w: collect a(X)                             →   PanesSpec
m(sum(X)) <- o: b, w: extend_backward(o, 1h), while w: collect a(X)   →   RangedCollectSpec
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from augury.algebra.aggregates import accumulates, is_ranked
from augury.algebra.clock_windows import Windows, refuse_clock
from augury.algebra.nodes import Collect, Either, Holds, Rule, bound_vars, condition_vars, walk
from augury.algebra.plan import Plan
from augury.algebra.rule_terms import collected_variables, head_labels, later_variables
from augury.algebra.terms import labels, variables
from augury.core.bounds import FAR
from augury.core.fields import END
from augury.planner.choose_holding import choose_clipped
from augury.planner.choose_joins import bound_by_facts, several_rows
from augury.planner.planning import Planning, in_order, same_columns
from augury.planner.project import Needs, possible_vars
from augury.planner.specs import (
    UNTIL,
    CollectSpec,
    FrozenDict,
    LookBack,
    Output,
    PanesSpec,
    RangedCollectSpec,
    Reading,
    RowsOfOne,
    UntilSpec,
)

_OVERLAPS = 4  # to list what lies in so many windows, each time, is cheaper than to keep running totals
_FEW = 32  # to list the last few is cheaper than to keep running totals


def needed_after(rule: Rule, number: int) -> Needs:
    """The columns that are read after a collect: by the head, conditions on groups, a ranking, and later collects."""
    vars = {v for value in rule.values for v in variables(value)}
    vars |= rule.per
    if number < len(rule.collects):
        vars |= {v for c in rule.having for v in condition_vars(c)}
    for collect in rule.collects[number + 1 :]:
        vars |= collected_variables(collect)
    last = {UNTIL} if any(collect.last is not None for collect in rule.collects[number + 1 :]) else set()
    return Needs(frozenset(vars), frozenset(head_labels(rule) | last))


def with_until(planning: Planning, rule: Rule, rows: Reading) -> Reading:
    """Rows with the time up to which `last n` collects: their end, or that of a window if it is later."""
    if not rule.covers:
        return replace(rows, labels=FrozenDict({**rows.labels, UNTIL: (END, END)}))
    out = same_columns(rows, [UNTIL])
    return planning.add(UntilSpec(inputs=(rows,), out=out, rule=rule.label, covers=rule.covers))


def choose_panes(planning: Planning, rule: Rule, windows: Windows) -> Reading:
    """The collect over windows by the clock, where these are all that the body has."""
    refuse_clock(windows, planning.setting.clock.kind, rule.label)
    collect, above = rule.collects[0], needed_after(rule, 0)
    needed = (collected_variables(collect) | above.vars) & possible_vars(collect.pattern)
    if collect.clips:
        body = planning.pattern(rule.body, Needs(labels=frozenset({collect.window or ""})), rule.label)
        collected = choose_clipped(planning, rule, collect, body, ())
    else:
        collected = planning.pattern(collect.pattern, Needs(frozenset(needed)), rule.label)
    names = {total.name for total in collect.totals} | set(collect.by)
    out = Output.of(sorted(above.vars & names), sorted(above.labels & {collect.window or ""}))
    collect = replace(collect, where=in_order(collect.where, collected.vars))
    several = _several_collected(collect)
    ranged = windows.size > _OVERLAPS * windows.hop and not (several or collect.clips)
    spec = PanesSpec(
        inputs=(collected,), out=out, rule=rule.label, collect=collect, windows=windows, several=several,
        ranged=ranged and _has_running_totals(collect, set(), planning.plan),
    )  # fmt: skip
    return planning.add(spec, collect.where)


def choose_collect(planning: Planning, rule: Rule, number: int, rows: Reading) -> Reading:
    """Rows with what they collect."""
    collect, clock = rule.collects[number], planning.setting.clock
    inner, bound = possible_vars(collect.pattern), bound_vars(rule.body)
    bound |= {v for other in rule.collects[:number] for v in other.by}
    above = needed_after(rule, number)
    needed = (collected_variables(collect) | above.vars | set(rows.vars)) & inner
    shared = tuple(sorted(set(rows.vars) & inner))
    keys = tuple(v for v in shared if v in bound & bound_vars(collect.pattern))
    if collect.clips:
        collected = choose_clipped(planning, rule, collect, rows, keys)
    else:
        collected = planning.pattern(collect.pattern, Needs(frozenset(needed)), rule.label)
    names = {total.name for total in collect.totals}
    columns = sorted(above.vars & (set(rows.vars) | set(collect.by) | names))
    rows_of_one = _rows_of_one(rule, number, rows)
    several = _several_collected(collect)
    simple = keys == shared and rows_of_one != "groups" and not (several or collect.clips)
    simple = simple and set(collect.by) <= set(columns)
    ranged = simple and _has_running_totals(collect, rows.vars.keys(), planning.plan)
    back = None if collect.window is None else LookBack(rule.body, collect.window, clock)
    collect = replace(collect, where=in_order(collect.where, {*rows.vars, *collected.vars}))
    later = later_variables(rule, number)
    spec = (RangedCollectSpec if ranged else CollectSpec)(
        inputs=(rows, collected), out=Output.of(columns, sorted(above.labels & set(rows.labels))), rule=rule.label,
        window=collect.window or UNTIL, keys=keys, open=tuple(v for v in shared if v not in keys), collect=collect,
        groups=tuple(sorted(v for v in later if v in rows.vars or v in collect.by)), rows_of_one=rows_of_one,
        several_collected=several, whole=collect.clips,
        back=FAR if back is None else back(planning.setting.lengths), look_back=back,
    )  # fmt: skip
    return planning.add(spec, collect.where)


def _several_collected(collect: Collect) -> bool:
    """Whether one occurrence may be several rows. A fact in a filter may bind in several ways, too."""
    return several_rows(collect.pattern) or any(isinstance(c, Holds) for c in collect.where)


def _rows_of_one(rule: Rule, number: int, rows: Reading) -> RowsOfOne:
    """How rows that a collect is for may derive from the same events, see `RowsOfOne`."""
    earlier = {v for collect in rule.collects[:number] for v in collect.by}
    extra, later = bound_by_facts(rule.body) | earlier, later_variables(rule, number)
    if any(isinstance(node, Either) for node in walk(rule.body)) or not extra & rows.vars.keys() <= later:
        return "groups"
    if extra <= later:
        return "one"
    return "groups" if number else "copies"


def _has_running_totals(collect: Collect, outer: Set[str], plan: Plan) -> bool:
    """Whether the totals of a window follow from running totals of the collected rows, or from ranks."""
    few = collect.last is not None and collect.last <= _FEW
    if collect.where or (collect.none if collect.by else few):  # what is no group has no value of `by`
        return False
    window = {collect.label} if collect.label is not None else set()
    return all(
        (accumulates(part, plan.functions, plan.aggregates, ordered=True) or is_ranked(part, plan.functions))
        and not variables(*part.args) & outer
        and labels(*part.args) <= window
        for part in (total.aggregate for total in collect.totals)
    )
