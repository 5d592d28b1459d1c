"""The runtime of operators: tables, conditions, the clock, the journal, and each other's rows."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from augury.algebra.kinds import atoms_in
from augury.algebra.matching import Scalars
from augury.algebra.nodes import Condition, Holds, Rule, Unless
from augury.algebra.place import reading
from augury.algebra.plan import Plan, Predicate
from augury.algebra.properties import event_lengths
from augury.algebra.terms import Expr
from augury.algebra.timing import Lengths
from augury.core.arrays import Array, RowIds, Times
from augury.core.bounds import TIME_LIMIT
from augury.core.clock import Clock, show_duration
from augury.core.errors import RunError, cut
from augury.core.fields import FIELDS, LEFT
from augury.core.model import Event, Fact
from augury.knowledge.facts import Facts
from augury.knowledge.graphs import entailing
from augury.knowledge.knowledge_base import Knowledge
from augury.knowledge.solving.bridge import Bridge
from augury.knowledge.solving.changing import Spans
from augury.planner.specs import InputSpec, Output, Reading, Spec
from augury.storage.conditions import Context
from augury.storage.dictionary import Dictionary
from augury.storage.frame import View
from augury.storage.table import Table, Tables

if TYPE_CHECKING:
    from augury.engine.events import Events
    from augury.engine.operators.base import Clocked, Operator, Part
    from augury.engine.operators.derive import Derived
    from augury.engine.operators.graph import GraphTexts
    from augury.engine.operators.holding_intervals import HoldingIntervals

_Operator = TypeVar("_Operator", bound="Operator")


class FactKey(NamedTuple):
    """The arguments with which a condition asks for facts, and facts that have changed, as columns of codes."""

    args: tuple[Expr, ...]
    facts: Array


class Runtime:
    """The state that operators share, and what they may ask of it. Just the circuit knows which operators there are."""

    def __init__(
        self, plan: Plan, clock: Clock, facts: Iterable[Fact], longest: int | None, knowledge: Knowledge | None
    ) -> None:
        self.plan, self.clock, self.longest = plan, clock, longest
        self.lengths: Lengths | None = None  # how long events of each type are at most, where `longest` says so
        self.longest_seen = 0  # the longest input so far, in time points
        self.learns = True  # whether that stands for all inputs, where nothing says how long they are
        self.begins: int | None = None  # inputs must begin after it: earlier ones may need rows that were forgotten
        # Held during a step, and by readers of tables meanwhile.
        self.lock: AbstractContextManager[object] = threading.RLock()
        self.now: int | None = None
        self.changing: set[str] = set()  # static predicates whose facts may change while the program runs
        self.facts = Facts.of(facts)
        self.tables = Tables(Dictionary())
        scalars = Scalars(plan.functions, plan.aggregates, clock)
        self.knowledge = knowledge or Knowledge(
            (*plan.clauses, *entailing(self.facts.predicates)), self.facts, scalars, self.report
        )
        self.bridge = Bridge(self.knowledge, self.tables, scalars, self.report)
        self.context = Context(scalars, self.bridge, self.tables.dictionary, self.report)
        self.errors: dict[tuple[str, str], int] = {}
        self.reported: dict[tuple[str, str], int] = {}  # the counts of errors of this step as they were before it
        self.journal: list[tuple[Table, int, int, int]] = []  # fields written in place: table, field, row, old value
        self.rules: dict[str, Rule] = {}  # with their conditions placed
        self.inputs: dict[Predicate, Events] = {}
        self.derived: dict[Predicate, Derived] = {}
        self.operators: list[Operator] = []
        self.built: dict[Spec, Operator] = {}
        self.makers: dict[int, Operator] = {}
        self.sources: dict[int, tuple[View, ...]] = {}  # what the rows of each table derive from
        self.clocked: list[Clocked] = []  # operators that wait for time to pass
        # Operators that ask for facts that may change, which these are, and in which conditions.
        self.asking: list[tuple[Operator, set[str], list[Holds | Unless]]] = []
        self.holding: list[HoldingIntervals] = []  # operators that follow when facts hold
        self.looking_back: set[int] = set()  # of these, those that ask how facts were one time point before
        self.just_back: set[int] = set()  # and those that ask for nothing else
        self.graph_texts: dict[int, GraphTexts] = {}
        self.ready: list[tuple[int, int, Operator]] = []  # the operators that are woken, as a heap
        self._orders = 0
        self._events: dict[tuple[int, int], Event] = {}

    # Operators and their tables

    def add(self, operator: Operator) -> int:
        """Registers an operator; its place in the order of running."""
        self.operators.append(operator)
        self.built[operator.spec] = operator
        self.makers[id(operator.out.table)] = operator
        self.sources[id(operator.out.table)] = operator.inputs
        return self.next_order()

    def next_order(self) -> int:
        self._orders += 1
        return self._orders

    def operator(self, spec: Spec, kind: type[_Operator]) -> _Operator:
        """The operator of a spec, which is of a known class."""
        operator = self.built[spec]
        assert isinstance(operator, kind)
        return operator

    def view(self, rows: Reading) -> View:
        """The table that a reading reads, with its fields."""
        operator, vars = self.built[rows.source], rows.vars
        if isinstance(rows.source, InputSpec):  # its columns are those arguments that some rule reads
            vars = {v: self.field(rows.source, f - FIELDS) for v, f in rows.vars.items()}  # type: ignore[assignment]
        return View(operator.out.table, vars, rows.labels, rows.named)

    def field(self, spec: Spec, argument: int) -> int:
        """The field of an argument of events."""
        if isinstance(spec, InputSpec):
            return self.inputs[spec.type, spec.arity].field(argument)
        return FIELDS + argument

    def output(self, out: Output) -> View:
        """A new table with the columns of an output."""
        codes, numbers = len(out.vars) + out.codes, 2 * len(out.labels) + out.numbers
        return View(Table(codes, self.tables, numbers), out.var_fields, out.label_fields, out.named)

    # What rows derive from

    def maker(self, table: Table) -> Operator:
        return self.makers[id(table)]

    def parts(self, table: Table, row: int) -> tuple[Part, ...]:
        """The events that a row derives from."""
        return self.makers[id(table)].parts(row) if row >= 0 else ()

    def label_parts(self, view: View, row: int, label: str) -> tuple[Part, ...]:
        """The events of the occurrence behind a label."""
        where = view.named.get(label)
        if where is None:
            return ()
        if where < 0:
            return self.parts(view.table, row)
        return self.label_parts(self.sources[id(view.table)][where], int(view.table.data[LEFT + where, row]), label)

    def label_rows(self, view: View, rows: RowIds, label: str) -> tuple[Table, Array] | None:
        """The same for many rows, where all have one event behind the label: its table, and its rows."""
        where = view.named.get(label)
        if where is None or (rows < 0).any():
            return None
        if where < 0:
            return self.part_rows(view.table, rows)
        return self.label_rows(self.sources[id(view.table)][where], view.table.data[LEFT + where, rows], label)

    def part_rows(self, table: Table, rows: RowIds) -> tuple[Table, Array] | None:
        """The events that rows derive from, where each derives from one: their table, and their rows."""
        return None if (rows < 0).any() else self.makers[id(table)].part_rows(rows)

    def event(self, part: Part) -> Event:
        """The event of a part."""
        key = (id(part[0]), part[1])
        event = self._events.get(key)
        if event is None:
            event = self.maker(part[0]).event(part[1])
            if len(self._events) > 100_000:
                self._events.clear()
            self._events[key] = event
        return event

    # Times

    def lasting(self, start: Times, end: Times) -> None:
        """Inputs arrive. One that is longer than all were when rows were forgotten may need what is gone."""
        lengths = end - start
        if self.begins is not None and bool((early := start <= self.begins).any()):
            length = show_duration(self.duration(int(lengths[early].max())))
            raise RunError(
                f"an event lasts longer ({length}) than all had when the past was forgotten, and begins in it",
                hint='say how long events last at most when the session opens: longest="1h"',
            )
        self.longest_seen = max(self.longest_seen, int(lengths.max(initial=0)))

    def relied_on_lengths(self, frontier: int) -> None:
        """The past was forgotten up to a frontier, as far as inputs that are as long as those so far do not need it."""
        begins = frontier - self.longest_seen
        self.begins = begins if self.begins is None else max(begins, self.begins)

    def longest_of(self, types: Iterable[Predicate]) -> int | None:
        """How long events of some types last at most, in time points; None where nothing bounds it."""
        lengths = self.lengths
        if lengths is None and self.learns:
            lengths = event_lengths(self.plan, self.duration(self.longest_seen))
        bounds = [None if lengths is None else lengths.get(type) for type in types]
        return None if None in bounds else max(self.clock.length(bound or 0) for bound in bounds)

    def duration(self, length: int) -> int:
        """A length in time points as microseconds."""
        return length * (self.clock.tick if self.clock.kind == "logical" else 1)

    # Errors and facts

    def report(self, rule: str, message: str, binding: Mapping[str, object]) -> None:
        """Counts an error of a row."""
        key = (rule, cut(message))
        before = self.errors.get(key, 0)
        self.reported.setdefault(key, before)
        self.errors[key] = before + 1

    def asks(self, operator: Operator, where: Iterable[Condition]) -> None:
        """Registers an operator that asks for facts; where they may change, it revises its rows when they do."""
        parts = [part for condition in where for part in atoms_in(condition) if part.name in self.changing]
        if parts:
            self.asking.append((operator, {part.name for part in parts}, parts))
            self.looking_back |= {id(operator)} if any(part.was for part in parts) else set()
            self.just_back |= {id(operator)} if all(part.was for part in parts) else set()

    def learned(self, spans: Spans) -> None:
        """Facts have changed: operators that ask for them revise the rows at the times of the change."""
        if self.tables.rows + self.knowledge.learned > self.tables.guard.rows:
            raise self.tables.guard.too_many_rows()
        for predicate, (lo, hi, rows) in spans.items():
            for intervals in self.holding:
                intervals.change(predicate, rows, lo, hi)
            facts, touched = self.knowledge.relations[predicate].rows.data[:, rows], reading(self.plan, {predicate[0]})
            for operator, names, parts in self.asking:
                if not names & touched:
                    continue
                # Not by static rules over these facts, whose answers are others.
                direct = names & touched == {predicate[0]} and predicate not in self.knowledge.clauses
                keys = [FactKey(part.args, facts) for part in parts if part.predicate == predicate] if direct else None
                # Who asks for the time point before is concerned by one more.
                until = np.minimum(hi, TIME_LIMIT) + 1 if id(operator) in self.looking_back else hi
                operator.revise(lo + 1 if id(operator) in self.just_back else lo, until, keys)
