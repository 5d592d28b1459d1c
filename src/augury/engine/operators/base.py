"""The base class of all operators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from augury.algebra.nodes import Node
from augury.core.arrays import Array, RowIds
from augury.core.bounds import TIME_LIMIT
from augury.core.model import Event
from augury.engine.saved import check_numbers, require
from augury.planner.specs import Spec
from augury.storage.frame import Frame, View
from augury.storage.table import END, LEFT, NONE, RIGHT, Links, Table

if TYPE_CHECKING:
    from augury.engine.horizon import Horizon
    from augury.engine.runtime import FactKey, Runtime

Part = tuple[Table, int]  # an event that an occurrence is made of: a row of the table of its type
Source = tuple[Table, Array, Array | None]  # rows of a table; and where a row is made of several, whose each one is
Ways = list[tuple[Array, list[Source]]]  # some of the rows, and what each of them is made of


class PartialMatch(NamedTuple):
    """A partial match: its events, what it awaits and until when, None without a bound, and its variables as codes."""

    done: tuple[Part, ...]
    awaits: Node | str
    until: int | None
    binding: dict[str, int]


NOT_THERE = "a row made of one that is not there"


class Operator(ABC):
    """Reads tables, writes one. `step` takes in what has changed since it was last called.

    Its spec has all that was decided when the program was planned. Its class has its law, in the docstring; what it
    takes in (`step`); what a row derives from (`parents`, `parts`, `sources`); which state it keeps and for how long
    (`unsettled`, `wants`, `retain`, `remembers`); and how it survives a compaction and a snapshot (`moved`, `state`,
    `fill`, `check`) and is built anew from its tables (`rebuild`) after these, or after a step that failed.
    """

    is_input = False  # whether its rows are events that came from outside
    holds_events = False  # whether its rows are events, which are asked no further what they were made of
    alone = False  # whether each row is an occurrence of its own, made of no events
    stays = False  # whether its rows stay as long as what was derived of them: less than to write down their inputs
    carries: tuple[str, ...] = ()  # attributes that a step replaces and that neither its table nor `rebuild` says
    altered: tuple[str, ...] = ()  # attributes that a compaction changes in place
    linked: tuple[int, ...] = (LEFT, RIGHT)  # the fields of a row that name rows of its first inputs, which may fall

    def __init__(self, runtime: Runtime, spec: Spec) -> None:
        self.runtime, self.spec, self.rule = runtime, spec, spec.rule
        self.inputs, self.out = self.reads(), runtime.output(spec.out)
        self.seen = [0] * len(self.inputs)
        self.lost: list[list[Array]] = [[] for _ in self.inputs]
        self.scheduled = False
        # Over which times facts that it asks for have changed, and which facts, if that is known.
        self.revised: list[tuple[Array, Array, Sequence[FactKey] | None]] = []
        self.seconds = 0.0  # how long its steps took
        self.touched = 0  # how many rows it has looked at, so that tests can see what a step costs
        self.order = runtime.add(self)
        for port, view in enumerate(self.inputs):
            view.table.readers.append((self, port))
        # From rows of inputs to the rows that derive from them.
        linked = zip(self.inputs, self.linked, strict=False)
        self.links = [Links(view.table, self.out.table, field) for view, field in linked]

    def reads(self) -> tuple[View, ...]:
        """The tables that it reads."""
        return tuple(self.runtime.view(rows) for rows in self.spec.inputs)

    @property
    def kind(self) -> str:
        return self.spec.kind

    def wake(self) -> None:
        if not self.scheduled:
            self.scheduled = True
            heappush(self.runtime.ready, (self.order, id(self), self))

    def lose(self, port: int, rows: RowIds) -> None:
        self.lost[port].append(rows)
        if not self.scheduled:
            self.wake()

    def revise(self, lo: Array, hi: Array, keys: Sequence[FactKey] | None) -> None:
        """Facts that it asks for have changed, each from `lo` up to, not including, `hi`; for some keys, if that is known."""
        self.revised.append((lo, hi, keys))
        self.wake()

    def stale(self, port: int) -> Array:
        """The rows of an input that it has taken in, that stand, and for which facts have changed."""
        spans, self.revised = self.revised, []
        spans = [span for span in spans if len(span[0])]
        if not spans or not self.seen[port]:
            return NONE
        table, fields = self.inputs[port].table, self.asked_fields
        first, last = min(int(lo.min()) for lo, _, _ in spans), max(int(hi.max()) for _, hi, _ in spans)
        # No row sees facts later than it ends.
        rows = table.ending(first, last if fields == (END,) else 2 * TIME_LIMIT)
        rows = rows[rows < self.seen[port]]
        changed = np.zeros(len(rows), bool)
        for lo, hi, keys in spans if len(rows) else ():
            order = np.argsort(lo)
            lo, hi, concerned = lo[order], np.maximum.accumulate(hi[order]), np.zeros(len(rows), bool)
            for times in table.data[np.array(fields, np.int64)][:, rows]:
                concerned |= (times >= lo[0]) & (times < hi[np.searchsorted(lo, times, side="right") - 1])
            if keys is not None:
                concerned[concerned] = self.asks_for(rows[concerned], keys)
            changed |= concerned
        return rows[changed]

    def asks_for(self, rows: RowIds, keys: Sequence[FactKey]) -> Array:
        """Which rows may ask for facts of some keys."""
        return np.ones(len(rows), bool)

    @property
    def asked_fields(self) -> tuple[int, ...]:
        """The fields of its first input that have the times at which rows see facts."""
        return (END,)

    def losses(self, port: int) -> Array:
        """The rows of an input that have died since the last step."""
        lost = self.lost[port]
        if not lost:
            return NONE
        self.lost[port] = []
        rows = lost[0] if len(lost) == 1 else np.concatenate(lost)
        if len(rows) == 1:
            return rows if rows[0] < self.seen[port] else NONE
        return rows[rows < self.seen[port]]

    def gains(self, port: int) -> Array:
        """The rows of an input that have come since the last step and stand."""
        table, lo = self.inputs[port].table, self.seen[port]
        self.seen[port] = table.n
        if lo == table.n:
            return NONE
        rows = np.arange(lo, table.n, dtype=np.int64)
        if len(rows) == 1:
            if not table.alive[lo]:
                return NONE
            self.touched += 1
            return rows
        alive = table.alive[lo : table.n]
        rows = rows if alive.all() else rows[alive.astype(bool)]
        self.touched += len(rows)
        return rows

    def drop_children(self, port: int) -> None:
        """Kills the rows that were made of rows that died."""
        if not self.lost[port]:
            return
        lost = self.losses(port)
        if len(lost):
            self.touched += len(lost) + len(self.links[port].kill(lost))

    @abstractmethod
    def step(self) -> None:
        """Takes in what has changed."""

    def name_events(self, frame: Frame, i: int) -> str:
        """The events that a row on its way through this operator is made of."""
        parts: tuple[Part, ...] = ()
        for port, rows in enumerate((frame.left, frame.right)[: len(self.inputs)]):
            parts += self.runtime.parts(self.inputs[port].table, int(rows[i]))
        return ", ".join(f"{event} ({event.id})" for event in map(self.runtime.event, parts))

    def rebuild(self) -> None:
        """Rebuilds the state that is not in tables."""
        self.seen = [view.table.n for view in self.inputs]
        self.lost = [[] for _ in self.inputs]
        self.revised = []
        for links in self.links:
            links.drop()

    # What a row is made of

    def parents(self) -> list[tuple[int, Table]]:
        """The fields of a row that name the rows it was made of, and the tables of these."""
        return [(field, view.table) for field, view in zip((LEFT, RIGHT), self.inputs, strict=False)]

    def parts(self, row: int) -> tuple[Part, ...]:
        """The events that a row is made of."""
        result: tuple[Part, ...] = ()
        for field, table in self.parents():
            result += self.runtime.parts(table, int(self.out.table.data[field, row]))
        return result

    def part_rows(self, rows: RowIds) -> tuple[Table, Array] | None:
        """The same for many rows, where each is made of one event: the table of these, and their rows."""
        parents = self.parents()
        if len(parents) != 1:
            return None
        return self.runtime.part_rows(parents[0][1], self.out.table.data[parents[0][0], rows])

    def sources(self, rows: RowIds) -> Ways:
        """The source rows of many rows, in groups that are made alike; rows in no group are asked one by one."""
        origins: list[Source] = [(table, self.out.table.data[field, rows], None) for field, table in self.parents()]
        if not origins:
            return [(np.arange(len(rows)), [])]
        has = [parents >= 0 for _, parents, _ in origins]
        if len(origins) == 1:
            return [(np.flatnonzero(has[0]), origins)]
        both, left, right = has[0] & has[1], has[0] & ~has[1], has[1] & ~has[0]
        return [
            (np.flatnonzero(both), origins),
            (np.flatnonzero(left), origins[:1]),
            (np.flatnonzero(right), origins[1:]),
        ]

    def event(self, row: int) -> Event:
        """The event that a row is, where rows are events."""
        raise NotImplementedError(self.kind)

    def waiting(self, now: int | None, new: bool) -> Iterator[PartialMatch]:
        """Partial matches that wait here and can still go on at a time; the new ones are those that the step has added."""
        yield from ()

    @property
    def bytes(self) -> int:
        """Bytes of its state: its table, and the links from its inputs to its rows."""
        return self.out.table.bytes + sum(links.bytes for links in self.links)

    def about(self) -> dict[str, Any]:
        """Further entries of `stats`, beside its kind and size."""
        return {}

    # What it keeps, and for how long

    def unsettled(self, since: Mapping[int, int], frontier: int) -> int:
        """The least end of its rows that may still appear or vanish, given that of each input."""
        return min((since.get(id(view.table), frontier + 1) for view in self.inputs), default=frontier + 1)

    def asks_again(self) -> tuple[View, ...]:
        """The inputs at the ends of whose rows it may ask for facts again, however long ago a row ended; of other rows it
        asks while they are unsettled."""
        return ()

    def may_change(self, horizon: Horizon) -> tuple[Array, int] | None:
        """Where what was chosen may be chosen no longer, however long ago it ended: which of its rows, and from which end on
        what it chooses among is unsettled."""
        return None

    def wants(self, port: int, horizon: Horizon) -> Array | None:
        """Which rows of an input it may still need; None where it needs none that is settled."""
        return None

    def remembers(self, horizon: Horizon) -> bool:
        """Whether it keeps some of its state for ever: nothing says that what it holds meets nothing more."""
        return False

    def retain(self, keep: dict[int, Array], frontier: int | None, since: Mapping[int, int]) -> None:  # noqa: B027
        """Marks what is kept, or is not, for reasons that no reader has."""

    def keep_parents(self, keep: dict[int, Array]) -> None:
        """A row that is kept keeps what it was made of."""
        kept = keep[id(self.out.table)]
        for field, parent in self.parents():
            rows = self.out.table.data[field, : self.out.table.n][kept]
            keep[id(parent)][rows[rows >= 0]] = True

    def keeping(self, rows: RowIds) -> None:  # noqa: B027
        """A compaction is about to keep just these of its rows."""

    def moved(self, places: Mapping[int, Array]) -> None:
        """A compaction is done: where the rows of each table went, -1 where they were dropped."""
        table = self.out.table
        for field, parent in self.parents():
            table.data[field, : table.n] = places[id(parent)][table.data[field, : table.n]]

    # Snapshots

    def state(self, number: Mapping[int, int]) -> Any:
        """The part of its state that is not in its table, as plain values; operators are named by their numbers."""
        return None

    def fill(self, state: object, operators: Sequence[Operator]) -> None:
        """Takes in what `state` gave, which may come from anywhere."""
        require(state is None, "unexpected state")

    def check(self) -> None:
        """Whether what its rows name is there. They may come from anywhere, and kernels do not look where they go."""
        for field, parent in self.parents():
            check_numbers(self.out.table.data[field, : self.out.table.n], 0, parent.n, NOT_THERE)


class Clocked(Operator):
    """An operator that waits for time to pass."""

    @property
    @abstractmethod
    def due(self) -> int | None:
        """When it has something to do next; None where it waits for nothing."""

    @abstractmethod
    def tick(self, now: int) -> None:
        """Time has come to `now`."""


def check_either(operator: Operator) -> None:
    """Each row is made of a row of one input, or of both."""
    table = operator.out.table
    left, right = (table.data[field, : table.n] for field in (LEFT, RIGHT))
    for rows, view in zip((left, right), operator.inputs, strict=False):
        check_numbers(rows, -1, view.table.n, NOT_THERE)
    require(bool(((left >= 0) | (right >= 0)).all()), NOT_THERE)
