"""A program as a circuit: one operator for each node of its plan, equal sub-plans once, wired through tables."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from time import perf_counter
from typing import Any, TypeAlias

from augury.algebra.nodes import (
    UNRESTRICTED,
    Every,
    Join,
    Repeat,
    Rule,
    Scan,
    held_by,
    walk_all,
)
from augury.algebra.place import reading
from augury.algebra.plan import INPUT, Plan, Predicate
from augury.algebra.properties import event_lengths
from augury.algebra.strata import Stratum, edges, fact_edges, strata
from augury.core.clock import Clock
from augury.core.collector import uncollected
from augury.core.model import Fact
from augury.engine.events import Events
from augury.engine.operators.base import Operator
from augury.engine.operators.clocked import ClockWindows
from augury.engine.operators.derive import Derive, Derived, Rederive
from augury.engine.operators.join import JoinOperator as JoinOperator
from augury.engine.operators.learn import Learn
from augury.engine.runtime import Runtime
from augury.engine.wiring import build
from augury.knowledge.knowledge_base import Knowledge
from augury.planner import physical_plan
from augury.planner.choose_operators import PhysicalPlan, new_planning
from augury.planner.planning import Setting
from augury.storage.dictionary import Dictionary
from augury.storage.frame import View
from augury.storage.guard import Guard
from augury.storage.table import RIGHT, Links, TableObserver

# The state of a circuit when a step began, as far as nothing else has it: its time, the longest input, after which time
# inputs begin, whether there are durations, how many operators and inputs there are, the attributes that operators carry,
# how many values there are, and the dictionary of knowledge with how many it has. A step makes one: a plain tuple.
CircuitMark: TypeAlias = tuple[
    int | None,
    int,
    int | None,
    bool,
    int,
    int,
    Sequence[tuple[Operator, tuple[Any, ...]]],
    tuple[int, int],
    Dictionary,
    tuple[int, int],
]


class Circuit(Runtime):
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
        super().__init__(plan, clock, facts, longest, knowledge)
        self.may_change = set(changing)  # facts that may change while the program runs, beside those that rules make
        self.retention = retention
        self.heads: dict[str, Derive] = {}
        self.learning: dict[Predicate, Learn] = {}
        # The types on which a recursion rests that looks at what is absent or chosen, so that these events are taken in time
        # by time; and the last of its operators, up to which the circuit runs meanwhile.
        self.in_order: frozenset[Predicate] = frozenset()
        self.last_in_order = 0
        self.running: Operator | None = None  # the one that takes in changes, or was the last to
        self.planning = new_planning()
        self._weighed = 0
        self.values_kept = 0  # how many values there were after the last compaction
        self.given: dict[str, Rule] = {}  # as the plan has them
        self.since: dict[str, int | None] = {}
        self.extend(plan)
        self.settle()

    # Running

    def run(self, last: int | None = None) -> None:
        """Lets every operator take in what has changed, those first whose inputs are complete; with `last`, up to this one."""
        ready, guard, before = self.ready, self.tables.guard, perf_counter()
        while ready and (last is None or ready[0][0] <= last):
            operator = self.running = heapq.heappop(ready)[2]
            operator.scheduled = False
            operator.step()
            operator.seconds += (now := perf_counter()) - before
            before = now
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
        """Bytes of the state: rows and events, facts, and the values of both."""
        state = sum(operator.bytes for operator in self.operators)
        return state + self.tables.dictionary.bytes + self.knowledge.bytes

    @property
    def weight(self) -> int:
        """How much is held: rows, facts and values."""
        facts = sum(relation.rows.n for relation in self.knowledge.relations.values())
        return self.tables.rows + self.tables.dictionary.n + self.knowledge.words.n + facts

    def begin(self) -> None:
        """A step begins: limits count."""
        guard = self.tables.guard
        guard.pairs, guard.watching = 0, True
        if guard.timed:
            guard.begin()
        if guard.bytes is not None:
            self.tables.dictionary.most = self.knowledge.words.most = guard.bytes

    def mark(self) -> CircuitMark:
        """The state to undo to, beside the journals of tables, facts and reports."""
        carried = (
            [(o, tuple(getattr(o, name) for name in o.carries)) for o in self.clocked if o.carries]
            if self.clocked
            else ()
        )
        words, dictionary = self.knowledge.words, self.tables.dictionary
        return (
            self.now, self.longest_seen, self.begins, self.context.durations, len(self.operators), len(self.inputs),
            carried, (dictionary.n, dictionary.held), words, (words.n, words.held),
        )  # fmt: skip

    def undo(self, mark: CircuitMark, shared: bool) -> None:
        """Restores everything that the step has changed. It may be broken off and called again.

        Values of knowledge that is `shared` with other sessions stay: they may use them.
        """
        self.ready.clear()
        now, longest_seen, begins, durations, operators, inputs, carried, values, words, known_words = mark
        for operator in self.operators[operators:]:  # of types that came for the first time
            self._unbuild(operator)
        del self.operators[operators:]
        self.inputs = dict(islice(self.inputs.items(), inputs))
        for operator in self.operators:
            operator.scheduled = False
        self.now, self.longest_seen, self.begins, self._weighed = now, longest_seen, begins, 0
        for table, field, row, value in reversed(self.journal):
            table.data[field, row] = value
        for operator in self.operators:  # a table may have changed before it could say so
            operator.out.table.undo()
        self.tables.share = 1.0
        self.knowledge.undo(words, (words.n, words.held) if shared else known_words)
        self.tables.dictionary.cut(values)
        self.bridge.reset()
        self.context.durations = durations
        for operator, attributes in carried:
            for name, value in zip(operator.carries, attributes, strict=True):
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
        """Rebuilds indexes and all other state that is not in tables."""
        self._events.clear()
        self.tables.rows = self.rows
        for operator in self.operators:
            operator.out.table.rebuild()
        for operator in self.operators:
            operator.rebuild()

    def settle(self) -> None:
        """The step is over. It may be broken off and called again."""
        for table in self.tables.changed.values():
            if table.killed:
                table.begin()
            else:
                table.mark = table.n
        self.tables.share = 1.0
        self.tables.dictionary.most = self.knowledge.words.most = sys.maxsize
        if self.knowledge.changes.marks:
            self.knowledge.changes.commit()
        self.reported = {}
        self.journal = []
        self.tables.changed = {}

    # Building

    @uncollected()
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
        self.lengths = None if self.longest is None else event_lengths(plan, self.longest)
        layers = strata(plan)
        new = [rule for layer in layers for rule in layer.rules if rule.label not in self.rules]
        self.since |= {rule.label: since for rule in new}
        setting = Setting(self.clock, self.lengths, self.changing, self.varying, self.retention, self.since)
        self._forget_rederive()
        self._build(physical_plan(plan, setting, tuple(new), self.planning))
        self._component(layers)
        self.in_order = _types_in_order(plan, layers)
        self._number(layers)
        for operator in self.operators:  # a new operator takes in what is there
            operator.wake()
        self.run()

    def _forget_rederive(self) -> None:
        """Components may change with each plan, so the operators that rederive their events are rebuilt."""
        gone = [o for o in self.operators if isinstance(o, Rederive)]
        self.operators = [o for o in self.operators if not isinstance(o, Rederive)]
        for operator in gone:
            self._unbuild(operator)

    def _build(self, physical: PhysicalPlan) -> None:
        """Builds the operators of new specs, each after its inputs."""
        for type, columns in physical.columns.items():
            self.input(type).use(columns)
        for spec in physical.specs:
            if spec not in self.built:
                build(self, spec)
        self.rules |= physical.rules
        self.heads |= {label: self.operator(spec, Derive) for label, spec in physical.heads.items()}
        self.derived |= {o.spec.predicate: o for s in physical.specs if isinstance(o := self.built[s], Derived)}
        self.learning |= {o.predicate: o for s in physical.specs if isinstance(o := self.built[s], Learn)}

    def _component(self, layers: Iterable[Stratum]) -> None:
        """Marks the sets of derived events that are recursive, and connects these to what rederives their events."""
        for operator in [o for o in self.operators if isinstance(o, Rederive)]:
            for events in operator.events:
                events.rederive = operator
        for layer in layers:
            for type in layer.types:
                self.derived[type].recursive = layer.recursive

    def input(self, type: Predicate) -> Events:
        """The events that come of a type. Of one that no rule reads their times count, and their ids."""
        events = self.inputs.get(type)
        if events is None:
            spec = self.planning.input(type)
            build(self, spec)
            events = self.inputs[type] = self.operator(spec, Events)
            for operator in self.clocked:
                if isinstance(operator, ClockWindows) and INPUT not in self.inputs:
                    operator.also(View(events.out.table))
        return events

    # Facts that change

    def asked_since(self, settled: int, unsettled: Mapping[int, int]) -> dict[str, int]:
        """Up to when facts that change are asked for no more, and what made them is certain, by name, where that is before
        `settled`.
        """
        floors = {name: since - 1 for name, since in self.facts_unsettled(unsettled, settled).items()}
        for operator, names, _ in self.asking:
            floor = min(unsettled[id(view.table)] for view in operator.inputs) - 1
            floor = min([floor, *(view.table.earliest() - 1 for view in operator.asks_again() if view.table.live)])
            floor -= id(operator) in self.looking_back
            if floor < settled:
                for name in self._below(names):
                    floors[name] = min(floor, floors.get(name, floor))
        return floors

    def facts_unsettled(self, since: Mapping[int, int], frontier: int) -> dict[str, int]:
        """From when on the facts of predicates may still change, where that is before the frontier."""
        begins: dict[str, int] = {}
        for (name, _), learn in self.learning.items():
            least = min(since.get(id(view.table), frontier + 1) for view in learn.inputs)
            if least <= frontier:
                begins[name] = min(least, begins.get(name, least))
        return begins

    def asked_by(self, operator: Operator) -> set[str]:
        """The predicates of facts that an operator asks for, and those that they rest on."""
        return {p for asking, names, _ in self.asking if asking is operator for p in self._below(names)}

    def _below(self, names: set[str]) -> set[str]:
        """The static predicates that some rest on."""
        return {
            p[0] for (name, arity) in self.knowledge.reads if name in names for p in self.knowledge.below((name, arity))
        } | names

    def _number(self, layers: Sequence[Stratum]) -> None:
        """Numbers the operators: each after those it reads, a set after the rules that derive its events."""
        done: set[int] = set()

        def number(operator: Operator) -> None:
            open_operators, begun = [operator], set[int]()
            while open_operators:
                last = open_operators[-1]
                below = [self.maker(view.table) for view in last.inputs]
                if isinstance(last, Derived) and _is_held(last):
                    below = [self.maker(links.child) for links in last.supports]
                new = [o for o in below if id(o) not in done and id(o) not in begun]
                waiting = [o for o in new if not isinstance(o, Derived) or _is_held(o)]
                begun.add(id(last))  # a repetition reads itself
                if waiting:
                    open_operators.extend(waiting)
                    continue
                open_operators.pop()
                if id(last) not in done:
                    done.add(id(last))
                    last.order = self.next_order()

        for layer in layers:
            sets = [self.derived[type] for type in layer.types]
            for made in sets:
                for links in made.supports:
                    number(self.maker(links.child))
            for made in sets:
                number(made)
            if layer.recursive:
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
        """Retracts the events of a rule, unless another rule derives them, too."""
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

    def _unbuild(self, operator: Operator) -> None:
        """An operator is gone, and its spec with it."""
        self.built.pop(operator.spec, None)
        self.planning.forget(operator.spec)

    def _drop(self, operator: Operator) -> None:
        """Takes out an operator, and below it all that has no reader any more."""
        self.operators.remove(operator)
        self._unbuild(operator)
        self.asking = [asked for asked in self.asking if asked[0] is not operator]
        self.clocked = [o for o in self.clocked if o is not operator]
        self.holding = [o for o in self.holding if o is not operator]
        for view in operator.inputs:
            view.table.readers = [(o, port) for o, port in view.table.readers if o is not operator]
            below = self.maker(view.table)
            if not view.table.readers and not isinstance(below, Events | Derived) and below in self.operators:
                self._drop(below)


def _is_held(events: Derived) -> bool:
    """Whether its events are intervals in which facts hold, which are made outside of the strata of rules."""
    return held_by((events.type, events.arity)) is not None


def _types_in_order(plan: Plan, layers: Iterable[Stratum]) -> frozenset[Predicate]:
    """The types below recursions that look at what is absent or chosen, or at facts that they make, and those types in them."""
    facts = fact_edges(plan)
    reads: dict[Predicate, set[Predicate]] = {}
    for rule in plan.rules:
        reads.setdefault(rule.predicate, set()).update(n.predicate for n in rule.nodes if isinstance(n, Scan))
    for edge in facts:
        reads.setdefault(edge.head, set()).add(edge.reads)
    heads: set[Predicate] = set()
    for layer in layers:
        looks_back = any(e.head in layer.types and e.reads in layer.types for e in facts)
        if layer.recursive and (looks_back or not _monotone(layer)):
            heads |= set(layer.types)
    while more := {type for head in heads for type in reads.get(head, ())} - heads:
        heads |= more
    clocked = any(isinstance(node, Every) for rule in plan.rules if rule.predicate in heads for node in rule.nodes)
    return frozenset(plan.event_types if clocked and heads else heads)  # windows by the clock rest on all that comes


def _monotone(stratum: Stratum) -> bool:
    for rule in stratum.rules:
        if any(e.reads in stratum.types and e.kind != "positive" for e in edges(rule)):
            return False
        for node in walk_all(rule.body):
            if isinstance(node, Join | Repeat) and node.policy != UNRESTRICTED:
                return False
    return True
