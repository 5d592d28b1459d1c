"""The physical plan: a graph of frozen specs, one for each operator that runs.

A spec has all that its operator needs to know: its inputs, its output columns, its keys, the bounds on times, and its
conditions in evaluation order. Specs are compared by value, so equal sub-plans are one spec and one operator.

    m(X) <- (a(X) SEQ b(X)).10.    →    DeriveSpec(JoinSpec(keys=("X",), bounds=…)(InputSpec a/1, InputSpec b/1))
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast

from augury.algebra.clock_windows import Windows
from augury.algebra.nodes import ALL_COLLECTED, Collect, Condition, Graph, Join, Node, Policy, Relates, Rule, Run, Spans
from augury.algebra.plan import Predicate
from augury.algebra.terms import Expr
from augury.algebra.timing import Lengths
from augury.core.bounds import FAR
from augury.core.clock import Clock
from augury.core.fields import FIELDS
from augury.planner.implied_bounds import JoinBounds, implied_ahead, implied_back, implied_bounds
from augury.planner.run_moves import Moves

_K = TypeVar("_K")
_V = TypeVar("_V")

UNTIL = "#until"  # the label of the time up to which `last n` collects; it has no lower bound

# Rows derived from the same events: there is one; or copies, which differ only in unused variables that facts bind; or
# rows that may share a group of what they collect.
RowsOfOne: TypeAlias = Literal["one", "copies", "groups"]


class FrozenDict(dict[_K, _V]):
    """A mapping that does not change after it was made, so that it can be part of a key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


@dataclass(frozen=True)
class Output:
    """The columns of an operator's table: variables, start and end of each label, and unnamed columns.

    `named` says where the occurrence behind a label is: -1 in the row itself, else the number of the input.
    """

    vars: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    named: FrozenDict[str, int] = field(default_factory=FrozenDict)
    codes: int = 0  # unnamed columns of values
    numbers: int = 0  # unnamed columns of plain numbers

    @cached_property
    def var_fields(self) -> FrozenDict[str, int]:
        return FrozenDict({v: FIELDS + i for i, v in enumerate(self.vars)})

    @cached_property
    def label_fields(self) -> FrozenDict[str, tuple[int, int]]:
        first = FIELDS + len(self.vars) + self.codes
        return FrozenDict({name: (first + 2 * i, first + 2 * i + 1) for i, name in enumerate(self.labels)})

    @staticmethod
    def of(vars: Iterable[str] = (), labels: Iterable[str] = (), named: Mapping[str, int] | None = None) -> Output:
        """An output with these variables and labels, each once."""
        return Output(tuple(dict.fromkeys(vars)), tuple(dict.fromkeys(labels)), FrozenDict(named or {}))


@dataclass(frozen=True)
class KeptState:
    """State of an operator: what it is, and for how many time points, `FAR` without a bound; or the last `count`."""

    what: str
    points: int
    count: int | None = None


@cache
def _compared(spec_type: Any) -> tuple[str, ...]:
    """The names of the fields that make two specs of a class equal."""
    return tuple(f.name for f in fields(spec_type) if f.compare)


@dataclass(frozen=True, eq=False, kw_only=True)
class Spec:
    """The spec of one operator. `serial` distinguishes equal specs that must not be shared: impure calls.

    `types` are those of the variables of its output, or of the arguments of its events: int, float, number, string, …,
    any, or empty where no value can come. They are what declarations and rules say: events of a derived type that is
    not declared may arrive with others. `infer_types` sets them, last of all passes.
    """

    inputs: tuple[Reading, ...] = ()
    out: Output = field(default_factory=Output)
    rule: str = ""
    serial: int = 0
    types: tuple[str, ...] = field(default=(), init=False, compare=False, repr=False)
    kind: ClassVar[str] = "operator"

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """The identity of a spec; fields that follow from others are left out."""
        return (type(self), *(getattr(self, name) for name in _compared(cast(Hashable, type(self)))))

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Spec) and self._hash == other._hash and self.key == other.key

    @property
    def keeps(self) -> tuple[KeptState, ...]:
        """The rows of inputs that it may ask for again, and for how long."""
        return ()

    @property
    def derived_from(self) -> tuple[int, ...]:
        """The numbers of the inputs whose events are those of its rows; others only decide which rows there are."""
        return tuple(range(len(self.inputs)))

    def infer(self, types: Iterable[str]) -> bool:
        """Sets its types, which follow from those of its inputs. Whether they changed."""
        before = self.types
        object.__setattr__(self, "types", tuple(types))
        return self.types != before

    def reading(self) -> Reading:
        """Its output read under its own names."""
        return Reading(self, self.out.var_fields, self.out.label_fields, self.out.named)


@dataclass(frozen=True)
class Reading:
    """The output of a spec read as a pattern: which field has which variable, and the start and end of which label.

    Fields of an input are numbered by argument: just the arguments that some rule reads are columns of its table.
    """

    source: Spec
    vars: FrozenDict[str, int] = field(default_factory=FrozenDict)
    labels: FrozenDict[str, tuple[int, int]] = field(default_factory=FrozenDict)
    named: FrozenDict[str, int] = field(default_factory=FrozenDict)


# Events


@dataclass(frozen=True, eq=False, kw_only=True)
class InputSpec(Spec):
    """The events of a type that arrive."""

    kind: ClassVar[str] = "input"
    type: str
    arity: int


@dataclass(frozen=True, eq=False, kw_only=True)
class SetSpec(Spec):
    """The derived events of a type, each once."""

    kind: ClassVar[str] = "set"
    type: str
    arity: int

    @property
    def predicate(self) -> Predicate:
        return self.type, self.arity


@dataclass(frozen=True, eq=False, kw_only=True)
class DeriveSpec(Spec):
    """The head of a rule. `delay` is how long after its end an event is known, in time points."""

    kind: ClassVar[str] = "head"
    events: SetSpec
    args: tuple[Expr, ...]
    covers: tuple[str, ...] = ()
    since: Expr | Literal["END"] | None = None
    until: Expr | None = None
    delay: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class RederiveSpec(Spec):
    """Derives again what a recursive component retracted too eagerly."""

    kind: ClassVar[str] = "rederive"
    sets: tuple[SetSpec, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnSpec(Spec):
    """Facts that events make, and end where `ends` says so for an input."""

    kind: ClassVar[str] = "facts"
    predicate: Predicate
    ends: tuple[bool, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class LatestSpec(LearnSpec):
    """Facts with one value for each key, which the last event makes. `key_arguments` are the numbers of its arguments."""

    kind: ClassVar[str] = "latest facts"
    key_arguments: tuple[int, ...]


# Rows of one input


@dataclass(frozen=True, eq=False, kw_only=True)
class SelectSpec(Spec):
    """Rows that meet conditions. `longest` bounds their length; `labels` are names for the row itself."""

    kind: ClassVar[str] = "select"
    where: tuple[Condition, ...] = ()
    labels: tuple[str, ...] = ()
    longest: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class ScanSpec(SelectSpec):
    """Events whose arguments match `args`, by position, and that start later than `after`."""

    kind: ClassVar[str] = "scan"
    args: tuple[tuple[int, Expr], ...] = ()
    after: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class UntilSpec(Spec):
    """Rows with the time up to which `last n` collects: the end of the labels it covers."""

    kind: ClassVar[str] = "until"
    covers: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class UnfoldSpec(Spec):
    """A row for each item of a list of lists."""

    kind: ClassVar[str] = "unfold"
    of: Expr
    binds: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphSpec(Spec):
    """A row for each solution of a graph pattern."""

    kind: ClassVar[str] = "graph"
    node: Graph


@dataclass(frozen=True, eq=False, kw_only=True)
class SettledSpec(Spec):
    """Rows whose end the clock has passed."""

    kind: ClassVar[str] = "settled"


@dataclass(frozen=True, eq=False, kw_only=True)
class RankingSpec(Spec):
    """The first rows of each table of a ranking, with their places."""

    kind: ClassVar[str] = "top"
    head: Rule


@dataclass(frozen=True, eq=False, kw_only=True)
class EventRowsSpec(Spec):
    """The event that each row of a rule makes: its times and, under `names`, its arguments."""

    kind: ClassVar[str] = "events"
    names: tuple[str, ...]
    args: tuple[Expr, ...]
    covers: tuple[str, ...] = ()
    since: Expr | Literal["END"] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class ThrottleSpec(Spec):
    """AT MOST: of the events with the values of `per`, at most `count` within `every` time points, or ever.

    Where the key is `owned`, the arguments of the event hold it, so that equal events have equal keys.
    """

    kind: ClassVar[str] = "at most"
    count: int
    every: int | None
    args: tuple[str, ...]
    per: tuple[str, ...]
    owned: bool

    @property
    def keeps(self) -> tuple[KeptState, ...]:
        return (KeptState("events", FAR, self.count) if self.every is None else KeptState("events", self.every),)


@dataclass(frozen=True, eq=False, kw_only=True)
class UnionSpec(Spec):
    """The rows of both inputs."""

    kind: ClassVar[str] = "or"


# Times


@dataclass(frozen=True, eq=False, kw_only=True)
class PointSpec(Spec):
    """One time point."""

    kind: ClassVar[str] = "point"
    time: int


@dataclass(frozen=True, eq=False, kw_only=True)
class ClockWindowsSpec(Spec):
    """Windows by the clock, as rows. It reads the ends of all inputs."""

    kind: ClassVar[str] = "windows"
    windows: Windows


@dataclass(frozen=True, eq=False, kw_only=True)
class SessionSpec(Spec):
    """Session windows over the occurrences of `type`. Its output has a variable for each part of the key."""

    kind: ClassVar[str] = "sessions"
    type: Predicate
    gap: int  # in time points
    most: int

    @property
    def keeps(self) -> tuple[KeptState, ...]:
        return (KeptState("open sessions", self.most),)


# Facts that hold


@dataclass(frozen=True, eq=False, kw_only=True)
class HoldingSpec(Spec):
    """The maximal intervals in which facts of a predicate hold. Its inputs are the events that make facts below it."""

    kind: ClassVar[str] = "holding"
    predicate: Predicate


@dataclass(frozen=True, eq=False, kw_only=True)
class EndedSpec(Spec):
    """Of intervals in which facts hold those with a beginning and an end."""

    kind: ClassVar[str] = "held"


@dataclass(frozen=True, eq=False, kw_only=True)
class DistinctWindowsSpec(Spec):
    """The windows of rows, each once for each value of the variables. They end at most `back` before their rows."""

    kind: ClassVar[str] = "distinct windows"
    window: str
    back: int = field(compare=False)
    look_back: LookBack | None = field(compare=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class ClipSpec(Spec):
    """Intersections of windows and held intervals with the same key, as `label`. With `past` windows count to their
    very end, one time point past it. Windows begin at most `back` before their rows end.
    """

    kind: ClassVar[str] = "clip"
    label: str
    past: bool
    back: int = field(compare=False)
    look_back: LookBack | None = field(compare=False)


# Pairs


@dataclass(frozen=True, eq=False, kw_only=True)
class JoinSpec(Spec):
    """Pairs of two inputs. `keys` are looked up; `open` are shared variables that either side may leave unbound.

    A third input, if there is one, has what must be absent between the two, found by `absent_keys`.
    """

    kind: ClassVar[str] = "join"
    keys: tuple[str, ...]
    open: tuple[str, ...]
    where: tuple[Condition, ...]
    gap: bool = False
    absent_keys: tuple[str, ...] = ()
    node: Join  # with the temporal conditions that `bounds` has
    clock: Clock = field(compare=False)
    bounds: JoinBounds = field(compare=False)

    @property
    def keeps(self) -> tuple[KeptState, ...]:
        reaches = self.bounds.reach[1], self.bounds.reach[0]
        left, right = (KeptState(side, -int(reach[1])) for side, reach in zip(("left", "right"), reaches, strict=True))
        return (left, right, KeptState("absent", left.points)) if len(self.inputs) > 2 else (left, right)

    @property
    def derived_from(self) -> tuple[int, ...]:
        return 0, 1

    @property
    def related(self) -> tuple[Condition, ...]:
        """The temporal conditions on a pair, which `bounds` has."""
        return tuple(c for c in self.node.where if isinstance(c, Relates | Spans))

    def bounds_for(self, lengths: Lengths | None) -> JoinBounds:
        """The bounds where events are no longer than `lengths` says."""
        left, right = self.inputs[:2]
        return implied_bounds(self.node, self.clock, left.labels, right.labels, lengths)[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class ChoosingJoinSpec(JoinSpec):
    """A join that finds what its policy takes without listing all candidates."""

    policy: Policy


@dataclass(frozen=True, eq=False, kw_only=True)
class RecentSpec(ChoosingJoinSpec):
    """Each later part with its most recent candidate."""

    kind: ClassVar[str] = "recent"


@dataclass(frozen=True, eq=False, kw_only=True)
class ChronologicalSpec(ChoosingJoinSpec):
    """First in, first out; both parts are consumed."""

    kind: ClassVar[str] = "chronological"


@dataclass(frozen=True, eq=False, kw_only=True)
class ChoiceSpec(Spec):
    """A policy's choice among the candidates that `join` lists."""

    kind: ClassVar[str] = "policy"
    policy: Policy
    join: JoinSpec


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedChoiceSpec(ChoiceSpec):
    """Of the listed candidates of each later part the one that ranks highest."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ChronologicalChoiceSpec(ChoiceSpec):
    """`chronological`, of listed candidates."""


@dataclass(frozen=True, eq=False, kw_only=True)
class AgreeSpec(Spec):
    """The choice of `recent per`: the pairs of `join` that agree on shared variables and meet the other conditions."""

    kind: ClassVar[str] = "agree"
    join: JoinSpec
    shared: tuple[str, ...]
    where: tuple[Condition, ...]
    gap: bool


# Windows of rows


@dataclass(frozen=True)
class LookBack:
    """How far before the end of a row its window begins, given how long events are; see `implied_back`.

    With `point` "e", how far before it the window ends.
    """

    node: Node
    window: str | None
    clock: Clock
    point: str = "s"

    def __call__(self, lengths: Lengths | None) -> int:
        return implied_back(self.node, self.window, self.clock, lengths, self.point)

    def ahead(self, lengths: Lengths | None) -> int:
        """How long after the end of a row its window ends."""
        return implied_ahead(self.node, self.window, self.clock, lengths)


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowedSpec(Spec):
    """Rows of the first input, each with what of the second lies in its window.

    `back` is how far before the end of a row its window begins, `FAR` where nothing bounds it.
    """

    looked_for: ClassVar[str]
    window: str
    keys: tuple[str, ...]
    open: tuple[str, ...]
    back: int = field(compare=False)
    look_back: LookBack | None = field(compare=False)

    @property
    def keeps(self) -> tuple[KeptState, ...]:
        waits = 0 if self.look_back is None else self.look_back.ahead(None)
        return KeptState("waiting", waits), KeptState(self.looked_for, self.back if self.back >= FAR else self.back - 1)


@dataclass(frozen=True, eq=False, kw_only=True)
class AbsenceSpec(WindowedSpec):
    """Rows with nothing of the second input in their window. What a label of `ignored` names does not count."""

    kind: ClassVar[str] = "not"
    looked_for: ClassVar[str] = "absent"
    where: tuple[Condition, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def derived_from(self) -> tuple[int, ...]:
        return (0,)


@dataclass(frozen=True, eq=False, kw_only=True)
class CollectSpec(WindowedSpec):
    """Rows with the groups and totals of their windows. `groups` are the variables whose values make groups."""

    kind: ClassVar[str] = "collect"
    looked_for: ClassVar[str] = "collected"
    collect: Collect
    groups: tuple[str, ...]
    rows_of_one: RowsOfOne
    several_collected: bool  # whether one occurrence may be collected as several rows
    whole: bool = False  # whether what is collected has the very times of the window

    @property
    def keeps(self) -> tuple[KeptState, ...]:
        last = self.collect.last
        return super().keeps if last is None or last == ALL_COLLECTED else (KeptState("collected", FAR, last),)


@dataclass(frozen=True, eq=False, kw_only=True)
class RangedCollectSpec(CollectSpec):
    """Totals of windows as differences of running totals."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PanesSpec(Spec):
    """Totals of windows by the clock that have something inside."""

    kind: ClassVar[str] = "panes"
    collect: Collect
    windows: Windows
    several: bool
    ranged: bool  # whether totals follow from running totals of what is collected, or from ranks


# Runs


@dataclass(frozen=True, eq=False, kw_only=True)
class MomentsSpec(Spec):
    """The events of a run by key. The first `among` inputs are its events, the others the rows of its parts."""

    kind: ClassVar[str] = "moments"
    run_key: tuple[str, ...]
    among: int
    longest: int = field(compare=False)  # a match, in time points

    @property
    def keeps(self) -> tuple[KeptState, ...]:
        return (KeptState("events", self.longest),)


@dataclass(frozen=True, eq=False, kw_only=True)
class RunSpec(Spec):
    """Matches of a run over its moments. `parts` are the rows of its parts."""

    algorithm: ClassVar[str]
    run: Run
    moments: MomentsSpec
    parts: tuple[Reading, ...]
    moves: Moves = field(compare=False)

    @property
    def keeps(self) -> tuple[KeptState, ...]:
        return tuple(KeptState("matches", kept.points) for kept in self.moments.keeps)


@dataclass(frozen=True, eq=False, kw_only=True)
class GreedyRunSpec(RunSpec):
    """One match of each first event, found without partial matches: what follows an event depends on it alone."""

    kind: ClassVar[str] = "greedy runs"
    algorithm: ClassVar[str] = "greedy"


@dataclass(frozen=True, eq=False, kw_only=True)
class PartialRunSpec(RunSpec):
    """Partial matches, kept until they cannot continue."""

    kind: ClassVar[str] = "partial runs"
    algorithm: ClassVar[str] = "partials"


@dataclass(frozen=True, eq=False, kw_only=True)
class CompleteSpec(Spec):
    """Partial matches that are complete, with their results."""

    kind: ClassVar[str] = "runs"
    partials: PartialRunSpec


@dataclass(frozen=True, eq=False, kw_only=True)
class LongestSpec(Spec):
    """Of the matches with one first event the longest or shortest; then what SKIP leaves."""

    kind: ClassVar[str] = "longest"
    partials: PartialRunSpec
