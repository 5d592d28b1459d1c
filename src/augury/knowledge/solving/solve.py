"""Static rules answered goal by goal, in columns: one call for a batch of bindings.

A *call* is a predicate with the values of its bound arguments, at a time. Calls and their answers are tabled, so left
recursion and cyclic data end, and a call that came before is looked up. Predicates that depend on one another are answered
together, semi-naively: a body that reaches a call of its own component waits there, and goes on with each new answer.
Negation, and clauses before a cut, ask other components only, whose answers are complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from augury.algebra.nodes import Clause, Condition, Holds, condition_vars
from augury.algebra.plan import Predicate
from augury.algebra.ready import binds, evaluation_order
from augury.algebra.terms import variables
from augury.core.arrays import Array
from augury.core.jit import count_work
from augury.storage.frame import Frame
from augury.storage.rows import Distinct, Rows
from augury.storage.table import NONE
from augury.storage.unique import is_in, unique

if TYPE_CHECKING:
    from augury.knowledge.knowledge_base import Knowledge

Mode = tuple[bool, ...]  # which arguments of a call are bound
Found = TypeVar("Found")


class TooMany(Exception):
    """An attempt to answer everything at once has become too large."""


@dataclass(frozen=True)
class ClauseGoal:
    """A clause as it is answered for calls of a mode: what the call binds, and its conditions in order."""

    clause: Clause
    early: tuple[int, ...]  # arguments that the call gives and the head takes apart first
    late: tuple[int, ...]  # arguments that are matched after the body: those a clause with a cut does not use
    steps: tuple[Condition, ...]
    calls: tuple[int, ...]  # the steps that call a predicate of the same component
    keeps: tuple[tuple[str, ...], ...]  # the variables that are still needed after each step
    commits: bool


@dataclass
class SuspendedBodies:
    """Bodies that have come to a call of their own component."""

    rows: Rows
    names: tuple[str, ...]
    on: CallTable
    seen: int = 0
    answered: int = 0


@dataclass
class CallTable:
    """The calls of a predicate in one mode, and their answers: the number of the call, then all arguments."""

    predicate: Predicate
    mode: Mode
    calls: Distinct  # time, bound arguments
    answers: Distinct  # call, arguments
    goals: tuple[ClauseGoal, ...]
    started: int = 0
    waiting: dict[tuple[int, int], SuspendedBodies] = field(default_factory=dict)


class Solver:
    """Answers calls of predicates that have clauses."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.tables: dict[tuple[Predicate, Mode], CallTable] = {}
        self.most: int | None = None  # how many rows an attempt may make

    @property
    def size(self) -> int:
        return sum(t.calls.n + t.answers.n for t in self.tables.values())

    @property
    def bytes(self) -> int:
        return sum(t.calls.bytes + t.answers.bytes for t in self.tables.values())

    def forget(self, touched: set[Predicate] | None = None) -> None:
        """Forgets the answers of some predicates, or of all."""
        self.tables = {k: t for k, t in self.tables.items() if touched is not None and k[0] not in touched}

    def solve(
        self, predicate: Predicate, mode: Mode, asked: Sequence[Array], times: Array
    ) -> tuple[Array, list[Array]]:
        """Pairs of a question and an answer, as its columns. `asked` has a column for each bound argument."""
        count_work(len(times))
        table = self._table(predicate, mode)
        calls = table.calls.admit([times << 2, *asked], len(times))
        if table.calls.n > table.started:
            self._complete(table)
        which, rows = table.answers.find((0,), [calls << 2], len(calls))
        return which, [table.answers.data[i + 1, rows] for i in range(predicate[1])]

    def _table(self, predicate: Predicate, mode: Mode) -> CallTable:
        result = self.tables.get((predicate, mode))
        if result is None:
            words = self.knowledge.words
            goals = tuple(
                self._goal(clause, mode, last=i == len(clauses) - 1)
                for clauses in [self.knowledge.clauses.get(predicate, ())]
                for i, clause in enumerate(clauses)
            )
            calls, answers = Distinct(1 + sum(mode), words), Distinct(1 + predicate[1], words)
            result = self.tables[predicate, mode] = CallTable(predicate, mode, calls, answers, goals)
        return result

    def _goal(self, clause: Clause, mode: Mode, last: bool) -> ClauseGoal:
        used = {v for c in clause.body for v in condition_vars(c)}
        bound_places = [i for i, bound in enumerate(mode) if bound]
        late = tuple(i for i in bound_places if clause.cut and not variables(clause.args[i]) & used)
        early = tuple(i for i in bound_places if i not in late)
        bound = variables(*(clause.args[i] for i in early))
        steps = evaluation_order(clause.body, bound)
        component = self.knowledge.component[clause.name, len(clause.args)]
        calls = tuple(
            i
            for i, c in enumerate(steps)
            if isinstance(c, Holds) and self.knowledge.component.get((c.name, len(c.args))) == component
        )
        so_far, keeps = set(bound), list[tuple[str, ...]]()
        for i, condition in enumerate(steps):
            so_far |= binds(condition, so_far)
            needed = variables(*clause.args).union(*(condition_vars(c) for c in steps[i + 1 :]))
            keeps.append(tuple(sorted(so_far & needed)))
        return ClauseGoal(clause, early, late, steps, calls, tuple(keeps), clause.cut and not last)

    # Completing a table

    def _complete(self, table: CallTable) -> None:
        """Answers all calls that have come, and those that they lead to."""
        component, done = self.knowledge.component[table.predicate], 0
        while True:
            members = [t for t in self.tables.values() if self.knowledge.component[t.predicate] == component]
            fresh = [t for t in members if t.calls.n > t.started]
            for item in fresh:
                self._start(item)
            if not self._pump(members) and not fresh:
                break
            count_work(sum(t.answers.n for t in members) - done)
            done = sum(t.answers.n for t in members)
        for item in members:
            item.waiting.clear()

    def _start(self, table: CallTable) -> None:
        """Facts and clauses for the calls that have come."""
        lo, hi = table.started, table.calls.n
        table.started = hi
        count = hi - lo
        times = table.calls.data[0, lo:hi] >> 2
        places = [i for i, bound in enumerate(table.mode) if bound]
        bound_columns = dict(zip(places, (table.calls.data[1 + k, lo:hi] for k in range(len(places))), strict=True))
        numbers = np.arange(lo, hi, dtype=np.int64)
        facts = self.knowledge.relations.get(table.predicate)
        if facts is not None and facts.rows.n:
            which, columns = facts.find(tuple(places), [bound_columns[i] for i in places], count, times)
            table.answers.admit([numbers[which] << 2, *columns], len(which))
        for i, goal in enumerate(table.goals):
            if not len(numbers):
                break
            rows = numbers - lo
            frame = _frame_of(times[rows], numbers, {})
            frame = self._matched(goal, goal.early, frame, table)
            met = self._run(table, i, goal, frame, 0)
            if goal.commits:
                numbers = numbers[~is_in(numbers, met)]

    def _matched(self, goal: ClauseGoal, places: tuple[int, ...], frame: Frame, table: CallTable) -> Frame:
        """The calls whose arguments at these places match the head of the clause."""
        if not places:
            return frame
        bound = [i for i, is_bound in enumerate(table.mode) if is_bound]
        columns = [table.calls.data[1 + bound.index(i), frame.right] for i in places]
        return self.knowledge.context.matched(tuple(goal.clause.args[i] for i in places), columns, frame)

    def _run(self, table: CallTable, number: int, goal: ClauseGoal, frame: Frame, step: int) -> Array:
        """Takes bodies on from a step, to its end or to a call of the own component; the calls whose bodies hold."""
        knowledge, rule = self.knowledge, self.knowledge.context.scalars.rule
        for i in range(step, len(goal.steps)):
            if not len(frame):
                return NONE
            condition = goal.steps[i]
            if i in goal.calls:
                self._wait(table, number, i, goal, frame)
                return NONE
            frame = knowledge.context.meet(condition, frame)
            frame.vars = {v: frame.vars[v] for v in goal.keeps[i] if v in frame.vars}
            self._limit(len(frame))
        knowledge.context.scalars.rule = rule
        met = unique(frame.right) if goal.commits else NONE
        self._conclude(table, goal, frame)
        return met

    def _conclude(self, table: CallTable, goal: ClauseGoal, frame: Frame) -> None:
        """The head: an answer for each body that holds."""
        frame = self._matched(goal, goal.late, frame, table)
        context = self.knowledge.context
        if not len(frame):
            return
        bound = [i for i, is_bound in enumerate(table.mode) if is_bound]
        columns: list[Array] = []
        sure = np.ones(len(frame), bool)
        for i, expr in enumerate(goal.clause.args):
            if i in bound:
                columns.append(table.calls.data[1 + bound.index(i), frame.right])
            else:
                codes, ok = context.values(expr, frame, context.scalars.rule)
                columns.append(codes)
                sure &= ok
        if not sure.all():
            frame, columns = frame.where(sure), [c[sure] for c in columns]
        table.answers.admit([frame.right << 2, *columns], len(frame))
        self._limit(table.answers.n)

    def _limit(self, rows: int) -> None:
        if self.most is not None and rows > self.most:
            raise TooMany

    def _wait(self, table: CallTable, number: int, step: int, goal: ClauseGoal, frame: Frame) -> None:
        """Bodies wait for the answers of a call; calls that are new are started in their turn."""
        call = goal.steps[step]
        assert isinstance(call, Holds)
        context = self.knowledge.context
        mode, columns = context.asked(call.args, frame)
        keep = ~context.null_asked(columns)
        if not keep.all():
            frame, columns = frame.where(keep), [c[keep] for c in columns]
        on = self._table((call.name, len(call.args)), mode)
        waiting = table.waiting.get((number, step))
        if waiting is None:
            names = tuple(sorted(frame.vars))
            waiting = table.waiting[number, step] = SuspendedBodies(Rows(3 + len(names), context.dictionary), names, on)
            waiting.answered = 0
        calls = on.calls.admit([frame.end << 2, *columns], len(frame))
        waiting.rows.append([calls << 2, frame.right, frame.end, *(frame.vars[v] for v in waiting.names)], len(frame))

    def _pump(self, tables: list[CallTable]) -> bool:
        """Takes waiting bodies on with the answers that have come; whether there were any."""
        moved = False
        for table in tables:
            for (number, step), waiting in list(table.waiting.items()):
                answers, rows = waiting.on.answers, waiting.rows
                lo, hi, first, last = waiting.seen, rows.n, waiting.answered, answers.n
                if lo == hi and first == last:
                    continue
                waiting.seen, waiting.answered, moved = hi, last, True
                pairs: list[tuple[Array, Array]] = []
                if hi > lo and last:
                    asked, numbers = answers.find((0,), [rows.data[0, lo:hi]], hi - lo)
                    pairs.append((asked + lo, numbers))
                if lo and last > first:
                    asked, numbers = rows.find((0,), [answers.data[0, first:last]], last - first)
                    old = numbers < lo
                    pairs.append((numbers[old], asked[old] + first))
                for which, numbers in pairs:
                    if len(which):
                        self._go_on(table, number, step, waiting, which, numbers)
        return moved

    def _go_on(
        self, table: CallTable, number: int, step: int, waiting: SuspendedBodies, which: Array, answer_rows: Array
    ) -> None:
        goal, rows, answers = table.goals[number], waiting.rows.data, waiting.on.answers.data
        call = goal.steps[step]
        assert isinstance(call, Holds)
        bound = {v: rows[3 + i, which] for i, v in enumerate(waiting.names)}
        frame = _frame_of(rows[2, which], rows[1, which], bound)
        columns = [answers[1 + i, answer_rows] for i in range(len(call.args))]
        frame = self.knowledge.context.matched(call.args, columns, frame)
        frame.vars = {v: frame.vars[v] for v in goal.keeps[step] if v in frame.vars}
        self._limit(len(frame))
        self._run(table, number, goal, frame, step + 1)


def untouched(items: dict[Predicate, Found], touched: set[Predicate] | None) -> dict[Predicate, Found]:
    """The answers about predicates, without those of some, or without all."""
    return {p: item for p, item in items.items() if touched is not None and p not in touched}


def _frame_of(times: Array, calls: Array, bound: dict[str, Array]) -> Frame:
    """The bodies that are answered for calls, at their times."""
    return Frame(times, times, np.full(len(times), -1, np.int64), calls, np.zeros(len(times), np.int64), bound, {})
