"""SPAseQ's sequences (S, Definitions 7 to 15) out of joins and absences.

next         no compatible row of `then` starts between
contiguous   no event of the streams starts between
B+           the iterations so far, followed by one more
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from augury.algebra.nodes import Follow, Join, Kleene, Node, Skip, bound_vars, event_types
from augury.columns.frame import Frame, Needs, View
from augury.engine.operators.absence import Absence
from augury.engine.operators.join import GAP
from augury.engine.operators.join import Join as JoinOperator
from augury.engine.operators.map import Map, Union
from augury.errors import RunError
from augury.optimiser.implied_bounds import implied_bounds

if TYPE_CHECKING:
    from augury.engine.wiring import Wiring


class Starts(Map):
    """The time points at which rows start."""

    def mapped(self, frame: Frame) -> Frame:
        frame.end = frame.start
        return frame


def follow(wiring: Wiring, node: Follow, needs: Needs, rule: str) -> View:
    """`A , B`, `A ; B` and `A : B`, with `B!` between."""
    shared = sorted(bound_vars(node.first) & bound_vars(node.then))
    below = needs.more((*shared, *(bound_vars(node.absent) if node.absent is not None else ())))
    left, right = wiring.view(node.first, below, rule), wiring.view(node.then, below, rule)
    rows = _pairs(
        wiring, Join("SEQ", node.first, node.then), left, right, sorted(needs.vars | set(left.vars)), shared, rule
    )
    _check(node.then, node.skip, node.streams, rule)
    rows = _nothing_skipped(wiring, rows, right, node.skip, node.streams, shared, rule)
    if node.absent is not None:
        mine = bound_vars(node.first)
        rows = wiring.absence(rows, node.absent, (), GAP, mine, mine, (), None, rule)
    return rows


def kleene(wiring: Wiring, node: Kleene, rule: str) -> View:
    """One or more rows, one after the other. Local variables are each iteration's own: the last one's are kept."""
    names = sorted(bound_vars(node.input))
    step = wiring.view(node.input, Needs(frozenset(names)), rule)
    found = wiring.table(names, ())
    kept = [v for v in names if v not in node.local]
    so_far = View(found.table, {v: found.vars[v] for v in kept})
    more = _pairs(wiring, Join("SEQ", node.input, node.input), so_far, step, names, kept, rule)
    _check(node.input, node.skip, node.streams, rule)
    more = _nothing_skipped(wiring, more, step, node.skip, node.streams, kept, rule)
    Union(wiring.circuit, (step, more), found, rule)
    return found


def _check(then: Node, skip: Skip, streams: tuple[str, ...], rule: str) -> None:
    """What follows is one of the events over which contiguity is asked for."""
    if skip == "contiguous" and not {name for name, _ in event_types(then)} <= set(streams):
        raise RunError(f"rule `{rule}` asks for contiguity over streams of which what follows is none",
                       hint="name all streams of the sequence")  # fmt: skip


def _pairs(wiring: Wiring, node: Join, left: View, right: View, names: list[str], shared: list[str], rule: str) -> View:
    """Pairs of which the second starts after the first ends, that agree."""
    # Times are told apart by the identity of nodes, and a repetition is followed by itself.
    relation, _ = implied_bounds(Join("SEQ", node.left, replace(node.right)), wiring.circuit.clock, {}, {})
    out = wiring.table([v for v in names if v in left.vars or v in right.vars], [GAP])
    JoinOperator(
        wiring.circuit, left, right, out, rule, keys=tuple(shared), shared=tuple(shared), relation=relation, where=(),
        gap=True, nodes=(node.left, node.right),
    )  # fmt: skip
    wiring.circuit.sources[id(out.table)] = (left, right)
    return out


def _nothing_skipped(
    wiring: Wiring, rows: View, then: View, skip: Skip, streams: tuple[str, ...], shared: list[str], rule: str
) -> View:
    """Only those pairs between which nothing lies that may not be skipped."""
    if skip == "any":
        return rows
    if skip == "next":
        points = wiring.table(shared, ())
        Starts(wiring.circuit, View(then.table, {v: then.vars[v] for v in shared}), points, rule)
        keys = tuple(shared)
    else:
        points, keys = _events_of(wiring, streams, rule), ()
    out = wiring.like(rows)
    Absence(
        wiring.circuit, rows, points, out, rule, window=GAP, keys=keys, shared=keys, where=(), not_looked_for=(), back=None
    )  # fmt: skip
    wiring.circuit.sources[id(out.table)] = (rows, points)
    return out


def _events_of(wiring: Wiring, streams: tuple[str, ...], rule: str) -> View:
    """When events of some streams start."""
    known = {name for name, _ in wiring.circuit.plan.event_types}
    if not streams or not set(streams) <= known:
        raise RunError(f"rule `{rule}` asks for contiguity over streams that the program does not declare",
                       hint="name the streams, and declare their events")  # fmt: skip
    circuit = wiring.circuit
    found: View | None = None
    for type in sorted(t for t in circuit.plan.event_types if t[0] in streams):
        table = (circuit.derived if type in circuit.derived else circuit.inputs)[type].out.table
        points = wiring.table((), ())
        Starts(circuit, View(table), points, rule)
        if found is not None:
            both = wiring.table((), ())
            Union(circuit, (found, points), both, rule)
            points = both
        found = points
    return found if found is not None else wiring.table((), ())
