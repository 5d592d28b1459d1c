"""Chooses the algorithm of a run.

    a NEXT b+ NEXT c  LONGEST        →   GreedyRunSpec: one match of each first event, no partial matches
    a NEXT b+ NEXT c  ALL            →   PartialRunSpec ← CompleteSpec

Greedy search is possible where one match of each first event is taken, what may follow an event depends on that event
alone, and nothing is asked of the match as a whole.
"""

from __future__ import annotations

from augury.algebra.nodes import Holds, Node, NoneInside, Relative, Run, Scan, conditions, walk
from augury.algebra.run_terms import run_labels, run_variables
from augury.planner.choose_joins import choose_absence
from augury.planner.implied_bounds import implied_length
from augury.planner.planning import Planning, same_columns
from augury.planner.project import Needs, possible_vars
from augury.planner.run_moves import Moves
from augury.planner.specs import (
    CompleteSpec,
    GreedyRunSpec,
    LongestSpec,
    LookBack,
    MomentsSpec,
    Output,
    PartialRunSpec,
    Reading,
)


def choose_run(planning: Planning, node: Run, needs: Needs, rule: str) -> Reading:
    """A run: its events in order, the partial matches, the complete ones, and those that are taken."""
    every = frozenset(v for part in node.parts for v in possible_vars(part.input))
    parts = tuple(planning.pattern(part.input, Needs(every), rule) for part in node.parts)
    among = tuple(planning.pattern(scan, Needs(frozenset(node.key)), rule) for scan in node.among)
    columns = Output(vars=node.key, numbers=len(parts))
    longest = implied_length(node, planning.setting.clock, planning.setting.lengths)
    moments = planning.add(
        MomentsSpec(
            inputs=(*among, *parts), out=columns, rule=rule, run_key=node.key, among=len(among), longest=longest
        )
    )
    moves = Moves(node, parts)
    common = {
        "inputs": (moments,),
        "rule": rule,
        "run": node,
        "moments": moments.source,
        "parts": parts,
        "moves": moves,
    }
    asked = node.where + tuple(c for part in node.parts for c in (*part.where, *part.after))
    if is_greedy(node, moves):
        out = Output.of([*node.key, *sorted(needs.vars & run_variables(node))], sorted(needs.labels & run_labels(node)))
        return planning.add(GreedyRunSpec(out=out, **common), asked)  # type: ignore[arg-type]
    partials = planning.add(PartialRunSpec(out=Output(numbers=2 + 2 * len(parts)), **common), asked)  # type: ignore[arg-type]
    assert isinstance(partials.source, PartialRunSpec)
    return _whole(planning, node, partials.source, partials, needs, rule)


def _whole(planning: Planning, node: Run, partials: PartialRunSpec, rows: Reading, needs: Needs, rule: str) -> Reading:
    """The complete matches of partial ones, without what must be absent, and those that are taken."""
    absences = tuple(c for c in node.where if isinstance(c, NoneInside))
    above = needs.of(absences)
    labels = run_labels(node) | {c.label for c in node.where if isinstance(c, Relative)} | {c.window for c in absences}
    out = Output.of(sorted(above.vars & run_variables(node)), sorted(above.labels & labels))
    rows = planning.add(CompleteSpec(inputs=(rows,), out=out, rule=rule, partials=partials), node.where)
    for condition in absences:
        back = LookBack(node, condition.window, planning.setting.clock)
        rows = choose_absence(planning, rows, condition, run_variables(node), back, rule)
    if node.which == "ALL":
        return rows
    return planning.add(LongestSpec(inputs=(rows,), out=same_columns(rows), rule=rule, partials=partials))


def is_greedy(run: Run, moves: Moves) -> bool:
    """Whether greedy search finds the matches of a run."""
    if run.which == "ALL" or run.where or any(part.after or _several_iterations(part.input) for part in run.parts):
        return False
    return not moves.chosen


def _several_iterations(node: Node) -> bool:
    """Whether an event may be several iterations: where facts bind, or two atoms have one type."""
    types = [n.predicate for n in walk(node) if isinstance(n, Scan)]
    facts = any(isinstance(c, Holds) for n in walk(node) for c in conditions(n))
    return facts or len(set(types)) < len(types)
