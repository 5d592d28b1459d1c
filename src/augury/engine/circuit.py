"""A program as a circuit: one operator for each node of its plan, equal sub-plans once, wired through tables."""

from __future__ import annotations

import heapq
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from augury.algebra.matching import Scalars
from augury.algebra.nodes import (
    UNRESTRICTED,
    Condition,
    Every,
    Graph,
    Holds,
    Join,
    Repeat,
    Rule,
    Scan,
    Unless,
    walk_all,
    walk_condition,
)
from augury.algebra.place import placed, reading
from augury.algebra.plan import INPUT, Plan, Predicate
from augury.algebra.properties import all_properties, event_lengths
from augury.algebra.strata import Stratum, asks_before, edges, fact_edges, static_calls_of, strata
from augury.algebra.terms import Var, Wild
from augury.core.arrays import Array, RowIds, Times
from augury.core.bounds import TIME_LIMIT
from augury.core.clock import Clock, show_duration
from augury.core.errors import RunError, cut
from augury.core.model import Event, Fact
from augury.engine.events import Events
from augury.engine.operators.base import Operator, Part
from augury.engine.operators.clocked import ClockWindows
from augury.engine.operators.derive import Derive, Derived, Rederive
from augury.engine.operators.graph import GraphTexts
from augury.engine.operators.join import JoinOperator as JoinOperator
from augury.engine.operators.learn import Learn
from augury.engine.operators.learn_latest import LearnLatest
from augury.engine.operators.panes import Panes
from augury.engine.operators.session_windows import SessionWindows
from augury.engine.operators.settled import Settled
from augury.engine.wiring import Wiring, reads_text_alone
from augury.knowledge.facts import Facts
from augury.knowledge.graphs import entailing
from augury.knowledge.knowledge_base import Knowledge
from augury.knowledge.solving.bridge import Bridge
from augury.knowledge.solving.changing import Spans
from augury.storage.conditions import Context
from augury.storage.dictionary import Dictionary
from augury.storage.frame import View
from augury.storage.guard import Guard
from augury.storage.table import LEFT, RIGHT, Links, Table, TableObserver, Tables


@dataclass(frozen=True)
class CircuitMark:
    """What a circuit was when a step began, as far as nothing else says so."""

    now: int | None
    longest_seen: int
    begins: int | None
    durations: bool
    operators: int
    inputs: tuple[Predicate, ...]
    carried: Sequence[tuple[Operator, tuple[Any, ...]]]
    values: tuple[int, int]
    words: Dictionary
    known: tuple[int, int]


class Circuit:
    """The operators of a program and the order in which they are to run."""

    def __init__(
        self,
        plan: Plan,
        clock: Clock,
        facts: Iterable[Fact] = (),
        retention: int | None = None,
        longest: int | None = None,
        changing: Iterable[str] = (),
        knowledge: Knowledge | None = None,
    ) -> None:
        self.turn: AbstractContextManager[Any] = (
            threading.RLock()
        )  # held during a step, and by whoever reads tables meanwhile
        self.may_change = set(changing)  # facts that may change while the program runs, beside those that rules make
        self.asking: list[tuple[Operator, set[str]]] = []  # who asks for facts that may change, and for which
        self.clocked: list[ClockWindows | Panes | SessionWindows | Settled] = []  # those that wait for time to pass
        self.now: int | None = None
        self.looking_back: set[int] = set()  # of these, who asks how facts were one time point before
        self.just_back: set[int] = set()  # and who asks for nothing else
        self.plan, self.clock, self.retention, self.longest = plan, clock, retention, longest
        self.longest_seen = 0  # the longest input so far, in time points
        self.learns = True  # whether that stands for all inputs, where nobody said how long they last
        self.begins: int | None = None  # inputs begin after it, or might need what was forgotten by their lengths
        self.facts = Facts.of(facts)
        self.tables = Tables(Dictionary())
        scalars = Scalars(plan.functions, plan.aggregates, clock)
        self.knowledge = knowledge or Knowledge(
            (*plan.clauses, *entailing(self.facts.predicates)), self.facts, scalars, self.report
        )
        self.bridge = Bridge(self.knowledge, self.tables, scalars, self.report)
        self.context = Context(scalars, self.bridge, self.tables.dictionary, self.report)
        self.errors: dict[tuple[str, str], int] = {}
        self.reported: dict[tuple[str, str], int] = {}  # how often those of the step had been reported before it
        self.operators: list[Operator] = []
        self.makers: dict[int, Operator] = {}
        self.sources: dict[int, tuple[View, ...]] = {}  # what the rows of each table are made of
        self.inputs: dict[Predicate, Events] = {}
        self.derived: dict[Predicate, Derived] = {}
        self.heads: dict[str, Derive] = {}
        self.learning: dict[Predicate, Learn] = {}
        self.journal: list[tuple[Table, int, int, int]] = []
        # The types on which a recursion rests that looks at what is absent or chosen, so that these events are taken in time
        # by time; and the last of its operators, up to which the circuit runs meanwhile.
        self.in_order: frozenset[Predicate] = frozenset()
        self.last_in_order = 0
        self._ready: list[tuple[int, int, Operator]] = []
        self.running: Operator | None = None  # the one that takes in changes, or was the last to
        self.graph_texts: dict[int, GraphTexts] = {}
        self.wiring = Wiring(self)
        self._events: dict[tuple[int, int], Event] = {}
        self._orders = 0
        self._weighed = 0
        self.values_kept = 0  # how many values there were after the last compaction
        self.rules: dict[str, Rule] = {}  # with their conditions placed
        self.given: dict[str, Rule] = {}  # as the plan has them
        self.since: dict[str, int | None] = {}
        self.extend(plan)
        self.settle()

    def lasting(self, start: Times, end: Times) -> None:
        """Inputs come. One that is longer than all were, when the past was forgotten, may need what is gone."""
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
        """How long events of some types last at most, in time points; None where nothing says so."""
        lengths = self.lengths
        if lengths is None and self.learns:
            lengths = event_lengths(self.plan, self.duration(self.longest_seen))
        bounds = [None if lengths is None else lengths.get(type) for type in types]
        return None if None in bounds else max(self.clock.length(bound or 0) for bound in bounds)

    def duration(self, length: int) -> int:
        """A length in time points as microseconds."""
        return length * (self.clock.tick if self.clock.kind == "logical" else 1)

    def report(self, rule: str, message: str, binding: Mapping[str, object]) -> None:
        key = (rule, cut(message))
        before = self.errors.get(key, 0)
        self.reported.setdefault(key, before)
        self.errors[key] = before + 1

    # Running

    def add(self, operator: Operator) -> int:
        self.operators.append(operator)
        self.makers[id(operator.out.table)] = operator
        self.sources[id(operator.out.table)] = operator.inputs
        return self._next_order()

    def _next_order(self) -> int:
        self._orders += 1
        return self._orders

    def schedule(self, operator: Operator) -> None:
        operator.scheduled = True
        heapq.heappush(self._ready, (operator.order, id(operator), operator))

    def run(self, last: int | None = None) -> None:
        """Lets every operator take in what has changed, those first whose inputs are complete; with `last`, up to this one."""
        ready, guard = self._ready, self.tables.guard
        while ready and (last is None or ready[0][0] <= last):
            operator = self.running = heapq.heappop(ready)[2]
            operator.scheduled = False
            operator.step()
            if guard.timed:
                guard.timely()
            if guard.bytes is not None:
                self._weigh(guard, over=not ready)

    def _weigh(self, guard: Guard, over: bool) -> None:
        """Compares what is held with the limit, once enough has come to be worth adding it all up."""
        assert guard.bytes is not None
        about = 64 * self.tables.rows + self.tables.dictionary.held + self.knowledge.words.held
        if over or about > self._weighed + guard.bytes // 64:
            self._weighed = about
            guard.held(self.bytes)

    def tick(self, now: int | None) -> None:
        """Time has come to `now`."""
        self.now = now
        if now is not None and self.clocked:
            for operator in self.clocked:
                operator.tick(now)
            self.run()

    @property
    def rows(self) -> int:
        return sum(operator.out.table.n for operator in self.operators)

    @property
    def bytes(self) -> int:
        """What the state takes: rows and events, facts, and the values of both."""
        state = sum(operator.bytes for operator in self.operators)
        return state + self.tables.dictionary.bytes + self.knowledge.bytes

    @property
    def weight(self) -> int:
        """How much is held: rows, facts and values."""
        facts = sum(one.rows.n for one in self.knowledge.relations.values())
        return self.tables.rows + self.tables.dictionary.n + self.knowledge.words.n + facts

    def begin(self) -> None:
        """A step begins: limits count."""
        guard = self.tables.guard
        guard.begin()
        if guard.bytes is not None:
            self.tables.dictionary.most = self.knowledge.words.most = guard.bytes

    def mark(self) -> CircuitMark:
        """What `undo` needs beside what tables, facts and reports write down themselves."""
        carried = [(o, tuple(getattr(o, name) for name in o.carries)) for o in self.clocked if o.carries]
        words, dictionary = self.knowledge.words, self.tables.dictionary
        return CircuitMark(
            self.now, self.longest_seen, self.begins, self.context.durations, len(self.operators), tuple(self.inputs),
            carried, dictionary.mark(), words, words.mark(),
        )  # fmt: skip

    def undo(self, mark: CircuitMark, shared: bool) -> None:
        """Restores everything that the step has changed. It may be broken off and called again.

        Values of knowledge that is `shared` with other sessions stay: they may have been told of them.
        """
        self._ready.clear()
        del self.operators[mark.operators :]  # of types that came for the first time
        self.inputs = {type: self.inputs[type] for type in mark.inputs}
        for operator in self.operators:
            operator.scheduled = False
        self.now, self.longest_seen, self.begins, self._weighed = mark.now, mark.longest_seen, mark.begins, 0
        for table, field, row, value in reversed(self.journal):
            table.data[field, row] = value
        for operator in self.operators:  # a table may have changed before it could say so
            operator.out.table.undo()
        self.tables.share = 1.0
        self.knowledge.undo(mark.words, mark.words.mark() if shared else mark.known)
        self.tables.dictionary.cut(mark.values)
        self.bridge.reset()
        self.context.durations = mark.durations
        for operator, values in mark.carried:
            for name, value in zip(operator.carries, values, strict=True):
                setattr(operator, name, value)
            self.sources[id(operator.out.table)] = operator.inputs
        for operator in self.operators:
            with suppress(MemoryError):  # it takes more room for a moment, and does without
                operator.out.table.shrink()
        self.rebuild()
        for key, count in self.reported.items():  # those of a rebuild, too
            if count:
                self.errors[key] = count
            else:
                self.errors.pop(key, None)
        self.settle()

    def rebuild(self) -> None:
        """Makes indexes and all else anew that is not in tables."""
        self._events.clear()
        self.tables.rows = self.rows
        for operator in self.operators:
            operator.out.table.rebuild()
        for operator in self.operators:
            operator.rebuild()

    def prepare(self) -> None:
        """Allocates what `settle` needs: from then on the step counts."""
        for table in self.tables.changed.values():
            table.prepare()

    def settle(self) -> None:
        """The step is over. It may be broken off and called again."""
        for table in self.tables.changed.values():
            table.begin()
        self.tables.share = 1.0
        self.tables.dictionary.most = self.knowledge.words.most = sys.maxsize
        self.knowledge.changes.settle()
        self.reported = {}
        self.journal = []
        self.tables.changed = {}

    # What rows are made of

    def maker(self, table: Table) -> Operator:
        return self.makers[id(table)]

    def parts(self, table: Table, row: int) -> tuple[Part, ...]:
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
        """The events that rows are made of, where each is made of one: their table, and their rows."""
        return None if (rows < 0).any() else self.makers[id(table)].part_rows(rows)

    def event(self, part: Part) -> Event:
        """The event of a part."""
        key = (id(part[0]), part[1])
        found = self._events.get(key)
        if found is None:
            found = self.maker(part[0]).event(part[1])
            if len(self._events) > 100_000:
                self._events.clear()
            self._events[key] = found
        return found

    # Building

    def extend(self, plan: Plan, since: int | None = None) -> None:
        """Adds the rules that a plan has more. They see what is held of the past, or just what starts after `since`."""
        self.plan = plan
        for rule in plan.rules:  # a rule that is now to be read in another way is made anew
            if rule.label in self.rules and self.given[rule.label] != rule:
                self.silence(rule.label)
                self.remove(rule.label)
            self.given[rule.label] = rule
        self.context.scalars.functions, self.context.scalars.aggregates = plan.functions, plan.aggregates
        self.changing = reading(plan, {name for name, _ in plan.made} | self.may_change)
        self.varying = reading(plan, self.facts.timed) | self.changing
        unbounded = (
            {label for label, found in all_properties(plan).items() if found.horizon is None}
            if self.retention is not None
            else set()
        )
        self.lengths = None if self.longest is None else event_lengths(plan, self.longest)
        layers = strata(plan)
        new = [rule for layer in layers for rule in layer.rules if rule.label not in self.rules]
        for rule in new:
            self.rules[rule.label] = placed(rule, self.varying, self.retention, unbounded)
            self.since[rule.label] = since
        self._add_inputs(plan, [self.rules[rule.label] for rule in new])
        self.operators = [o for o in self.operators if not isinstance(o, Rederive)]
        labels = {rule.label for rule in new}
        for layer in layers:
            self._stratum(layer, labels)
        self.in_order = _types_in_order(plan, layers)
        self._number(layers)
        for operator in self.operators:  # a new operator takes in what is there
            operator.wake()
        self.run()

    def _add_inputs(self, plan: Plan, rules: list[Rule]) -> None:
        used: dict[Predicate, set[int]] = {}
        for rule in rules:
            nodes = [node for pattern in rule.patterns for node in walk_all(pattern)]
            graphs = [n for n in nodes if isinstance(n, Graph) and reads_text_alone(n, plan)]
            texts = {id(graph.input): graph.text for graph in graphs} if self.since.get(rule.label) is None else {}
            for node in nodes:
                if isinstance(node, Scan):
                    some, text = used.setdefault((node.type, len(node.args)), set()), texts.get(id(node))
                    looked_at = [
                        not isinstance(a, Wild) and not (isinstance(a, Var) and a.name == text) for a in node.args
                    ]
                    some |= {i for i, one in enumerate(looked_at) if one}
        for type in sorted(plan.event_types):
            needed = set(range(type[1])) if type in plan.derived else used.get(type, set())
            self.input(type).use(needed)

    def input(self, type: Predicate) -> Events:
        """The events that come of a type. Of one that no rule reads their times count, and their ids."""
        events = self.inputs.get(type)
        if events is None:
            events = self.inputs[type] = Events(self, *type, ())
            for operator in self.clocked:
                if isinstance(operator, ClockWindows) and INPUT not in self.inputs:
                    operator.also(View(events.out.table))
        return events

    # Facts that change

    def asks(self, operator: Operator, where: Iterable[Condition]) -> None:
        """Says that an operator asks for facts; where they may change, it revises when they do."""
        names = {name for condition in where for name, _ in static_calls_of(condition)} & self.changing
        if names:
            self.asking.append((operator, names))
            self.looking_back |= {id(operator)} if any(map(asks_before, where)) else set()
            parts = [part for c in where for part in walk_condition(c) if isinstance(part, Holds | Unless)]
            self.just_back |= {id(operator)} if all(part.was for part in parts if part.name in names) else set()

    def learned(self, spans: Spans) -> None:
        """Facts have changed: those who asked for them, at the times over which they did, ask again."""
        if self.tables.rows + self.knowledge.learned > self.tables.guard.rows:
            raise self.tables.guard.too_many_rows()
        for (name, _), (lo, hi) in spans.items():
            touched = reading(self.plan, {name})
            for operator, names in self.asking:
                if names & touched:  # who asks for the time point before is concerned by one more
                    until = np.minimum(hi, TIME_LIMIT) + 1 if id(operator) in self.looking_back else hi
                    operator.revise(lo + 1 if id(operator) in self.just_back else lo, until)

    def asked_since(self, settled: int, unsettled: Mapping[int, int]) -> dict[str, int]:
        """Up to when facts that change are asked for no more, by name, where somebody still looks back of `settled`."""
        found: dict[str, int] = {}
        for operator, names in self.asking:
            floor = min(unsettled[id(view.table)] for view in operator.inputs) - 1
            floor = min([floor, *(view.table.earliest() - 1 for view in operator.asks_again() if view.table.live)])
            floor -= id(operator) in self.looking_back
            if floor < settled:
                for name in self._below(names):
                    found[name] = min(floor, found.get(name, floor))
        return found

    def _below(self, names: set[str]) -> set[str]:
        """The static predicates that some rest on."""
        return {
            p[0] for (name, arity) in self.knowledge.reads if name in names for p in self.knowledge.below((name, arity))
        } | names

    def _stratum(self, stratum: Stratum, new: set[str]) -> None:
        for type in stratum.types:
            if type in self.derived:
                self.derived[type].recursive = stratum.recursive
                continue
            self.derived[type] = Derived(self, *type, stratum.recursive)
            given, names = self.inputs[type], [f"#{i}" for i in range(type[1])]
            view = View(given.out.table, {name: given.field(i) for i, name in enumerate(names)})
            Derive(self, view, self.derived[type], "", tuple(Var(name) for name in names), ())
        for rule in stratum.rules:
            if rule.label in new:
                self.wiring.rule(self.rules[rule.label])
        sets = [self.derived[type] for type in stratum.types]
        rederive = Rederive(self, sets)
        for one in sets:
            one.rederive = rederive
        self._learn(stratum)

    def _learn(self, stratum: Stratum) -> None:
        """Where both kinds of events that make facts are there, knowledge follows them."""
        for predicate, types in self.plan.made.items():
            there = tuple(t in self.derived for t in types)
            wanted = tuple(t in self.plan.derived for t in types)
            if predicate not in self.learning and there == wanted and any(t in stratum.types for t in types):
                chosen = [(self.derived[t], i == 1) for i, t in enumerate(types) if there[i]]
                sets, ends = tuple(d for d, _ in chosen), tuple(e for _, e in chosen)
                key = self.plan.latest.get(predicate)
                self.learning[predicate] = (
                    Learn(self, predicate, sets, ends) if key is None else LearnLatest(self, predicate, sets, ends, key)
                )

    def _number(self, layers: Iterable[Stratum]) -> None:
        """Numbers the operators: each after those it reads, a set after the rules that derive its events."""
        done: set[int] = set()

        def number(operator: Operator) -> None:
            open_operators, begun = [operator], set[int]()
            while open_operators:
                last = open_operators[-1]
                below = [self.maker(view.table) for view in last.inputs]
                waiting = [o for o in below if id(o) not in done and id(o) not in begun and not isinstance(o, Derived)]
                begun.add(id(last))  # a repetition reads itself
                if waiting:
                    open_operators.extend(waiting)
                    continue
                open_operators.pop()
                if id(last) not in done:
                    done.add(id(last))
                    last.order = self._next_order()

        for layer in layers:
            sets = [self.derived[type] for type in layer.types]
            for one in sets:
                for links in one.supports:
                    number(self.maker(links.child))
            for one in sets:
                number(one)
            number(sets[0].rederive)
            for learn in self.learning.values():
                makers = [self.maker(view.table) for view in learn.inputs]
                if any(maker in sets for maker in makers) and all(id(maker) in done for maker in makers):
                    number(learn)
            if self.in_order.intersection(layer.types):
                self.last_in_order = self._orders
        for operator in self.operators:
            number(operator)
        for events in self.derived.values():
            events.loops = [loop for reader in events.out.table.readers if (loop := self._loop(events, *reader))]

    def _loop(self, events: Derived, reader: TableObserver, port: int) -> tuple[Links, Derive] | None:
        """A rule that joins events of a set and derives events of the same set, and whose join nothing else reads."""
        if type(reader) is not JoinOperator or port > 1 or len(reader.out.table.readers) != 1:
            return None
        head, links = reader.out.table.readers[0][0], reader.links[port]
        if isinstance(head, Derive) and head.events is events:
            return links, head
        return None

    def silence(self, label: str) -> None:
        """What a rule derived falls, unless another rule derives it, too."""
        head = self.heads[label]
        table = head.out.table
        rows = table.standing()
        table.kill(rows)
        head.events.release(table.data[RIGHT, rows])
        self.run()

    def remove(self, label: str) -> None:
        """Takes a rule out that has been silenced."""
        head = self.heads.pop(label)
        table = head.out.table
        head.events.supports = [links for links in head.events.supports if links.child is not table]
        self.rules.pop(label)
        self._drop(head)

    def _drop(self, operator: Operator) -> None:
        """Takes out an operator, and below it all that nobody reads any more."""
        self.operators.remove(operator)
        self.asking = [(o, names) for o, names in self.asking if o is not operator]
        self.clocked = [o for o in self.clocked if o is not operator]
        known = self.wiring.known.items()
        self.wiring.known = {key: view for key, view in known if view.table is not operator.out.table}
        for view in operator.inputs:
            view.table.readers = [(o, port) for o, port in view.table.readers if o is not operator]
            below = self.maker(view.table)
            if not view.table.readers and not isinstance(below, Events | Derived) and below in self.operators:
                self._drop(below)


def _types_in_order(plan: Plan, layers: Iterable[Stratum]) -> frozenset[Predicate]:
    """The types below recursions that look at what is absent or chosen, or at facts that they make, and those types in them."""
    facts = fact_edges(plan)
    reads: dict[Predicate, set[Predicate]] = {}
    for rule in plan.rules:
        reads.setdefault(rule.predicate, set()).update(n.predicate for n in rule.nodes if isinstance(n, Scan))
    for edge in facts:
        reads.setdefault(edge.head, set()).add(edge.reads)
    found: set[Predicate] = set()
    for layer in layers:
        looks_back = any(e.head in layer.types and e.reads in layer.types for e in facts)
        if layer.recursive and (looks_back or not _monotone(layer)):
            found |= set(layer.types)
    while more := {type for head in found for type in reads.get(head, ())} - found:
        found |= more
    clocked = any(isinstance(node, Every) for rule in plan.rules if rule.predicate in found for node in rule.nodes)
    return frozenset(plan.event_types if clocked and found else found)  # windows by the clock rest on all that comes


def _monotone(stratum: Stratum) -> bool:
    for rule in stratum.rules:
        if any(e.reads in stratum.types and e.kind != "positive" for e in edges(rule)):
            return False
        for node in walk_all(rule.body):
            if isinstance(node, Join | Repeat) and node.policy != UNRESTRICTED:
                return False
    return True
