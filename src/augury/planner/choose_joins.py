"""Chooses the operators of joins: the kind of join, absences between or around its parts, and what a policy takes.

a(X) SEQ[recent] b(X)            →   RecentSpec, where the pair alone decides whether it is a candidate
NOT(c).[a, b] with a policy      →   JoinSpec ← AbsenceSpec ← RankedChoiceSpec, of listed candidates
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from augury.algebra.nodes import (
    GAP,
    Condition,
    Either,
    Every,
    Holds,
    Instant,
    Join,
    Node,
    NoneInside,
    Policy,
    Relative,
    Repeat,
    Select,
    SessionWindow,
    bound_vars,
    condition_labels,
    condition_vars,
    conditions,
    inputs,
    walk,
)
from augury.algebra.place import not_looked_for
from augury.planner.implied_bounds import JoinBounds, implied_bounds
from augury.planner.planning import Planning, in_order, same_columns
from augury.planner.policies import selection_of
from augury.planner.project import Needs, possible_vars
from augury.planner.specs import (
    AbsenceSpec,
    AgreeSpec,
    JoinSpec,
    LookBack,
    Output,
    Reading,
    SelectSpec,
)

ChooseSelect = Callable[[Planning, Select, Needs, str], Reading]


@dataclass(frozen=True)
class _Parts:
    """The two inputs of a join, the conditions on a pair beside its times, the bounds on these, and shared variables."""

    left: Reading
    right: Reading
    node: Join
    where: tuple[Condition, ...]
    bounds: JoinBounds
    shared: tuple[str, ...]
    keys: tuple[str, ...]

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(v for v in self.shared if v not in self.keys)


def choose_join(planning: Planning, node: Join, needs: Needs, rule: str, select: ChooseSelect) -> Reading:
    """Pairs; of them those for which facts hold, without what must be absent, that the policy takes."""
    selection = selection_of(node.policy)
    needs = needs.more(node.policy.per)
    changing = () if node.policy.before_join else tuple(c for c in node.where if planning.changes(c))
    node = replace(node, where=tuple(c for c in node.where if c not in changing))
    if changing and selection is None:
        return select(planning, Select(node, changing, node.span), needs, rule)
    where, absences = parted(node.where)
    shared = tuple(sorted(possible_vars(node.left) & possible_vars(node.right)))
    candidates = needs.of((*absences, *node.absent_where)).more(_absent_keys(node))
    above = candidates.of(changing)
    below = above.of(where).more((*shared, node.policy.by or ""))
    left, right = planning.pattern(node.left, below, rule), planning.pattern(node.right, below, rule)
    out = _columns(node, left, right, above, where)
    if node.policy.before_join:
        rows = _join_per(planning, node, left, right, out, shared, where, rule)
        return _without(planning, rows, node, absences, rule)
    keys = tuple(v for v in shared if v in bound_vars(node.left) & bound_vars(node.right))
    parts = _parts(planning, node, left, right, where, shared, keys)
    one_row = not (changing or absences or node.absent or _stretched(node))
    one_row = one_row and not (several_rows(node.left) or several_rows(node.right))
    one_row = one_row and set(node.policy.per) <= set(keys)  # then the parts of a pair have one value
    if selection is not None and selection.join is not None and selection.joins(node.op) and one_row:
        spec = selection.join(**_join_fields(planning, parts, out, rule), policy=node.policy)
        return planning.add(spec, parts.where)
    absent = _absent_input(planning, node, right, rule)
    join = JoinSpec(
        **_join_fields(planning, parts, out, rule, absent),
        gap=node.absent is not None,
        absent_keys=_absent_keys(node) if absent is not None else (),
    )
    rows = planning.add(join, parts.where)
    join = rows.source  # type: ignore[assignment]
    if changing:
        rows = _holding(planning, rows, node, changing, candidates, rule)
    return _chosen(planning, node.policy, _without(planning, rows, node, absences, rule), join, rule)


def _columns(node: Join, left: Reading, right: Reading, above: Needs, where: tuple[Condition, ...]) -> Output:
    made = {c.label for c in where if isinstance(c, Relative)}
    labels = sorted(above.labels & (set(left.labels) | set(right.labels) | made))
    named = {**dict.fromkeys(right.named, 1), **dict.fromkeys(left.named, 0)}
    gap = [GAP] if node.absent is not None else []
    return Output.of(sorted(above.vars & possible_vars(node)), [*labels, *gap], named)


def _parts(
    planning: Planning,
    node: Join,
    left: Reading,
    right: Reading,
    where: tuple[Condition, ...],
    shared: tuple[str, ...],
    keys: tuple[str, ...],
) -> _Parts:
    """The parts of a join with all bounds on their times, and the conditions that are no such bounds."""
    node = replace(node, where=where)
    bounds, rest = implied_bounds(node, planning.setting.clock, left.labels, right.labels, planning.setting.lengths)
    return _Parts(left, right, node, in_order(rest, {*left.vars, *right.vars}), bounds, shared, keys)


def _join_fields(
    planning: Planning, parts: _Parts, out: Output, rule: str, absent: Reading | None = None
) -> dict[str, Any]:
    inputs = (parts.left, parts.right) if absent is None else (parts.left, parts.right, absent)
    return {
        "inputs": inputs, "out": out, "rule": rule, "keys": parts.keys, "open": parts.open, "where": parts.where,
        "node": parts.node, "clock": planning.setting.clock, "bounds": parts.bounds,
    }  # fmt: skip


def _join_per(
    planning: Planning,
    node: Join,
    left: Reading,
    right: Reading,
    out: Output,
    shared: tuple[str, ...],
    where: tuple[Condition, ...],
    rule: str,
) -> Reading:
    """`recent per` chooses by the temporal conditions alone, before the parts have to agree."""
    timely = tuple(c for c in where if _timely(c, left, right))
    parts = _parts(planning, node, left, right, timely, (), ())
    pairs = planning.add(JoinSpec(**_join_fields(planning, parts, Output(named=out.named), rule)), parts.where)
    join = pairs.source
    assert isinstance(join, JoinSpec)
    chosen = _chosen(planning, node.policy, pairs, join, rule)
    agreed = Output.of(out.vars, out.labels, dict.fromkeys(out.named, 0))
    where = in_order(where, {*left.vars, *right.vars})
    gap = node.absent is not None
    spec = AgreeSpec(inputs=(chosen,), out=agreed, rule=rule, join=join, shared=shared, where=where, gap=gap)
    return planning.add(spec, where)


def _timely(condition: Condition, left: Reading, right: Reading) -> bool:
    labels = condition_labels(condition)
    if isinstance(condition, Relative | NoneInside) or not labels or condition_vars(condition):
        return False
    return labels <= set(left.labels) | set(right.labels)


def _chosen(planning: Planning, policy: Policy, rows: Reading, join: JoinSpec, rule: str) -> Reading:
    selection = selection_of(policy)
    if selection is None:
        return rows
    return planning.add(selection.listed(inputs=(rows,), out=same_columns(rows), rule=rule, policy=policy, join=join))


def _holding(
    planning: Planning, rows: Reading, node: Join, where: tuple[Condition, ...], needs: Needs, rule: str
) -> Reading:
    """Candidates of a policy for which facts that may change hold, as long as they do."""
    vars = needs.vars & (possible_vars(node) | {v for c in where for v in condition_vars(c)})
    out = Output.of(sorted(vars), sorted(rows.labels), dict.fromkeys(rows.named, 0))
    where = in_order(where, rows.vars)
    return planning.add(SelectSpec(inputs=(rows,), out=out, rule=rule, where=where), where)


# Absences


def _absent_input(planning: Planning, node: Join, right: Reading, rule: str) -> Reading | None:
    """The absent pattern as an input of the join, where the right part alone says which occurrences of it block."""
    if node.absent is None or node.absent_where:
        return None
    keys = set(_absent_keys(node))
    if not keys <= bound_vars(node.right) & bound_vars(node.absent) & set(right.vars):
        return None
    return planning.pattern(node.absent, Needs(frozenset(keys)), rule)


def _absent_keys(node: Join) -> tuple[str, ...]:
    """The variables that what must be absent shares with a pair."""
    both = possible_vars(node.left) | possible_vars(node.right)
    return () if node.absent is None else tuple(sorted(possible_vars(node.absent) & both))


def _without(planning: Planning, rows: Reading, node: Join, inside: tuple[NoneInside, ...], rule: str) -> Reading:
    """Pairs with nothing of `absent` between their parts, and nothing of the others inside a window."""
    if node.absent is not None:
        bound = bound_vars(node.left) | bound_vars(node.right)
        absent = NoneInside(GAP, node.absent, node.absent_where)
        back = LookBack(node, None, planning.setting.clock)
        both = possible_vars(node.left) | possible_vars(node.right)
        rows = choose_absence(planning, rows, absent, bound, back, rule, of=both)
    for condition in inside:
        rows = without_inside(planning, condition, rows, node, rule)
    return rows


def without_inside(planning: Planning, condition: NoneInside, rows: Reading, node: Select | Join, rule: str) -> Reading:
    """Rows of a pattern with nothing inside a window."""
    ignored = tuple(sorted(not_looked_for(condition, node) & set(rows.named)))
    back = LookBack(node, condition.window, planning.setting.clock)
    return choose_absence(planning, rows, condition, bound_vars(node), back, rule, ignored=ignored)


def choose_absence(
    planning: Planning,
    rows: Reading,
    condition: NoneInside,
    bound: set[str],
    back: LookBack,
    rule: str,
    *,
    of: set[str] | None = None,
    ignored: tuple[str, ...] = (),
) -> Reading:
    """Rows with nothing of a pattern in a window. `of` are the variables that it may share with them."""
    pattern = condition.pattern
    inner = possible_vars(pattern)
    mine = set(rows.vars) if of is None else set(rows.vars) & of
    asked = {v for c in condition.where for v in condition_vars(c)}
    absent = planning.pattern(pattern, Needs(frozenset((mine | asked) & inner)), rule)
    shared = tuple(sorted(mine & inner))
    keys = tuple(v for v in shared if v in bound and v in bound_vars(pattern))
    where = in_order(condition.where, {*rows.vars, *absent.vars})
    spec = AbsenceSpec(
        inputs=(rows, absent), out=same_columns(rows), rule=rule, window=condition.window, keys=keys,
        open=tuple(v for v in shared if v not in keys), where=where, ignored=ignored,
        back=back(planning.setting.lengths), look_back=back,
    )  # fmt: skip
    return planning.add(spec, where)


def parted(where: tuple[Condition, ...]) -> tuple[tuple[Condition, ...], tuple[NoneInside, ...]]:
    """Conditions on a row, and those on what is absent."""
    absent = tuple(c for c in where if isinstance(c, NoneInside))
    return tuple(c for c in where if not isinstance(c, NoneInside)), absent


# The shape of patterns


def repeated(node: Repeat) -> Node:
    """`P ^ n` is `P ^ (n-1) SEQ P`; consecutive: `NOT(P).[P ^ (n-1), P]`."""
    rows = node.input
    for _ in range(node.count - 1):
        absent = node.input if node.consecutive else None
        once_more = replace(node.input)  # times are distinguished by the identity of nodes
        rows = Join("SEQ", rows, once_more, windows=node.windows, absent=absent, policy=node.policy, span=node.span)
    return rows


def several_rows(node: Node) -> bool:
    """Whether several rows may derive from the same events: where facts bind, or branches meet."""
    return any(isinstance(n, Either) for n in walk(node)) or bool(bound_by_facts(node))


def bound_by_facts(node: Node) -> set[str]:
    """The variables that facts bind. A static literal whose variables are all bound holds once, or not at all."""
    names: set[str] = set()
    for part in walk(node):
        asked = {v for c in conditions(part) if isinstance(c, Holds) for v in condition_vars(c)}
        names |= asked - {v for below in inputs(part) for v in bound_vars(below)}
    return names


def _stretched(node: Join) -> bool:
    """Whether its parts may be the same events over different intervals: `a AND (@2 AND a)`."""
    return node.op != "SEQ" and any(isinstance(n, Instant | Every | SessionWindow) for n in walk(node))
