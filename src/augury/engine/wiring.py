"""Builds operators from specs: a table from spec to operator."""

from __future__ import annotations

from collections.abc import Callable

from augury.engine.events import Events
from augury.engine.operators.absence import Absence
from augury.engine.operators.base import Operator
from augury.engine.operators.choose import AgreeingPairs
from augury.engine.operators.chronological import ChooseChronological, Chronological
from augury.engine.operators.clipped import Clipped, DistinctWindows
from augury.engine.operators.clocked import ClockWindows
from augury.engine.operators.collect import CollectOperator
from augury.engine.operators.derive import Derive, Derived, Rederive
from augury.engine.operators.graph import Solve
from augury.engine.operators.holding_intervals import EndedIntervals, HoldingIntervals
from augury.engine.operators.join import JoinOperator
from augury.engine.operators.learn import Learn
from augury.engine.operators.learn_latest import LearnLatest
from augury.engine.operators.map import MapOperator, Point, ScanOperator, Unfolded, UnionOperator, Until
from augury.engine.operators.panes import Panes
from augury.engine.operators.ranged_collect import RangedCollect
from augury.engine.operators.ranking import Ranking
from augury.engine.operators.recent import ChooseRanked, Recent
from augury.engine.operators.runs.greedy import GreedyMatches
from augury.engine.operators.runs.matches import CompleteMatches, LongestMatches
from augury.engine.operators.runs.moments import Moments
from augury.engine.operators.runs.partials import Partials
from augury.engine.operators.session_windows import SessionWindows
from augury.engine.operators.settled import SettledRows
from augury.engine.operators.throttle import EventRows, Throttle
from augury.engine.runtime import Runtime
from augury.planner import specs as s

# Each row has an operator whose constructor takes the runtime and a spec of this class.
OPERATORS: dict[type[s.Spec], Callable[..., Operator]] = {
    s.AbsenceSpec: Absence,
    s.AgreeSpec: AgreeingPairs,
    s.ChronologicalChoiceSpec: ChooseChronological,
    s.ChronologicalSpec: Chronological,
    s.ClipSpec: Clipped,
    s.ClockWindowsSpec: ClockWindows,
    s.CollectSpec: CollectOperator,
    s.CompleteSpec: CompleteMatches,
    s.DeriveSpec: Derive,
    s.DistinctWindowsSpec: DistinctWindows,
    s.EndedSpec: EndedIntervals,
    s.EventRowsSpec: EventRows,
    s.GraphSpec: Solve,
    s.GreedyRunSpec: GreedyMatches,
    s.HoldingSpec: HoldingIntervals,
    s.InputSpec: Events,
    s.JoinSpec: JoinOperator,
    s.LatestSpec: LearnLatest,
    s.LearnSpec: Learn,
    s.LongestSpec: LongestMatches,
    s.MomentsSpec: Moments,
    s.PanesSpec: Panes,
    s.PartialRunSpec: Partials,
    s.PointSpec: Point,
    s.RangedCollectSpec: RangedCollect,
    s.RankingSpec: Ranking,
    s.RankedChoiceSpec: ChooseRanked,
    s.RecentSpec: Recent,
    s.RederiveSpec: Rederive,
    s.ScanSpec: ScanOperator,
    s.SelectSpec: MapOperator,
    s.SessionSpec: SessionWindows,
    s.SetSpec: Derived,
    s.SettledSpec: SettledRows,
    s.ThrottleSpec: Throttle,
    s.UnfoldSpec: Unfolded,
    s.UnionSpec: UnionOperator,
    s.UntilSpec: Until,
}


def build(runtime: Runtime, spec: s.Spec) -> Operator:
    """The operator of a spec, whose inputs have been built."""
    return OPERATORS[type(spec)](runtime, spec)
