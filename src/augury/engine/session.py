"""A session: events go in, changes come out. The public face of the engine, together with `Program.session`."""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from augury.algebra.plan import Predicate
from augury.compiled import Compiled
from augury.core.clock import Clock
from augury.core.errors import RunError, nearest, too_deep
from augury.core.model import Change, Event, Fact, Revocation
from augury.core.standing import Frontier
from augury.engine import growing, inspect, snapshot
from augury.engine.admission import Admission, admit, withdraw
from augury.engine.atomic import StepTransaction
from augury.engine.changes import Changes
from augury.engine.found import AnswerRows
from augury.engine.goals import Goal, Goals, goals, states
from augury.engine.learning import admit_statements, rewire, statements_from, unforeseen
from augury.engine.session_core import SessionCore
from augury.engine.single_event import push_event
from augury.sinks import Answers
from augury.sources import Batch, History


class Session(SessionCore):
    """A program that runs: `push` events, `revoke` them, `advance` the clock; each returns the changes of the answer.

    One thread at a time pushes; a second one gets an error. Readers wait until a step is over.
    """

    # Inputs

    def push(self, events: object) -> Changes:
        """Takes in an event, a list of them, tables by type, or what `augury.read` returns; the changes of the answer.

        An event is an `Event`, a `Revocation` or a dict in the JSON form; a table is anything that is a stream of Arrow, such
        as a DataFrame of pandas or Polars. A table of several types has a column `type`.
        """
        lock = self._lock
        lock.enter_step(sys._getframe())
        try:
            if type(events) is Event and (changes := push_event(self, events)) is not None:
                return changes
            return self._step(lambda: self._admit(events))
        except RecursionError:
            raise too_deep() from None
        finally:
            lock.leave_step()

    def _admit(self, events: object) -> Admission | None:
        history = self._intake.read(events, self.program.plan)
        if not len(history) and self._circuit is None:
            return None  # nothing yet that decides the clock
        if history.revoked and self.settings.revisable is False:
            raise RunError("the session is not revisable", hint="open it with revisable=True")
        return admit(history, self.input_ids, self._frontier, self._rules)

    @property
    def unknown(self) -> dict[str, int]:
        """How many events came of types that the program does not know."""
        return self._intake.unknown

    def revoke(self, id: str | Event | Iterable[str | Event]) -> Changes:
        """Takes events back, by id, whether they came already or are still to come."""
        revoked = [id] if isinstance(id, str | Event) or not isinstance(id, Iterable) else list(id)
        ids = [each.id if isinstance(each, Event) else each for each in revoked]
        if not all(isinstance(each, str) and each for each in ids):
            raise RunError("events are revoked by their ids", hint='session.revoke("e7"), or a list of ids')
        return self.push([Revocation(each) for each in ids])

    def assert_fact(self, name: str, *args: object, at: object = None, until: object = None) -> Changes:
        """Says that a fact holds from a time on, from now where none is given, up to another; the changes of the answer."""
        return self.learn({name: [self._said("assert", args, at, until)]})

    def retract_fact(self, name: str, *args: object, at: object = None) -> Changes:
        """Says that a fact no longer holds from a time on, from now where none is given; the changes of the answer."""
        return self.learn({name: [self._said("retract", args, at, None)]})

    def _said(self, op: str, args: tuple[object, ...], moment: object, until: object) -> dict[str, object]:
        time = moment if moment is not None or self.now is None else self.clock.moment(self.now)
        if op == "retract" and time is None:
            raise RunError(
                "a fact ends at a time, and the clock has not begun", hint="give the time: retract_fact(…, at=…)"
            )
        return {"op": op, "args": list(args), "valid_from": time, "valid_to": until}

    def learn(self, facts: Mapping[str, object] | Iterable[Fact]) -> Changes:
        """Takes in changes of facts, in any form that facts come in; the changes of the answer.

        Rows may have `op` (assert or retract), `valid_from` and `valid_to`. What says no time holds from now on; what is
        said of a time that is settled already comes too late.
        """
        with self._exclusive():
            with self._undoing(StepTransaction(self).undo):
                self._open(self.now)
                statements = statements_from(self, facts)
                new = unforeseen(self, {statement.fact.name for statement in statements})
                self._lock.pending = None
            if new:
                with self._restoring():
                    rewire(self, new)
                    self._lock.pending = None
            return self._step(lambda: admit_statements(self, statements))

    def push_batches(
        self,
        batches: Mapping[Predicate, Batch],
        frontier: int | None = None,
        revoked: Iterable[str] = (),
        withdrawn: Mapping[Predicate, Iterable[str]] | None = None,
        late: int | None = None,
    ) -> Changes:
        """One step of a host: events as columns, ids that are revoked or withdrawn, and up to when nothing more comes.

        What ends at or before `late` is late already. The host reads the changes before its next step, or never.
        """

        repeats: Counter[Predicate | None] = Counter()

        def admission() -> Admission:
            self._open(None)
            closed = max((t for t in (self.frontier, late) if t is not None), default=None)
            history = History(dict(batches), [(-1, Revocation(id)) for id in revoked])
            result = admit(history, self.input_ids, Frontier(promised=closed), self._rules)
            withdraw(result, self.input_ids, withdrawn or {})
            repeats.update(result.repeats)
            return result

        with self._exclusive():
            changes = self._step(admission, frontier)
            self.repeats.update(repeats)
            self._unseen.difference_update((*changes.retracted.parts, *changes.inserted.parts))
            return changes

    def advance(self, time: object) -> Changes:
        """Promises that nothing more ends at or before a time; the changes of the answer."""

        def promise() -> Admission:
            self._open(time)
            return self._promise(self.clock.read(time))

        with self._exclusive():
            return self._step(promise)

    def finish(self) -> Changes:
        """Says that nothing more comes: what is there is final."""
        now = self.now
        return self.changes_type() if now is None else self._advance(now, over=True)

    def feed(self, events: Iterable[object]) -> Iterator[Change]:
        """Pushes one event at a time, and yields the changes as they come."""
        for event in events:
            yield from self.push(event)

    # State

    def prune(self) -> int:
        """Forgets what can no longer matter; how many rows of state are left. It happens by itself now and then."""
        with self._exclusive():
            return self._prune()

    def snapshot(self) -> bytes:
        """The state as bytes; `program.restore` goes on from it."""
        with self._lock:
            return snapshot.taken(self)

    def save(self, path: str | Path) -> None:
        """Writes the state to a file; `program.restore` goes on from it.

        The file appears once it is whole: one that exists already stays as it is until then, whatever happens.
        """
        with self._lock:
            snapshot.save(self, path)

    def on(self, type: str, callback: Callable[[Change], None]) -> None:
        """Calls a function with every change of an event type."""
        derived = {name for name, _ in self.program.plan.derived}
        if type not in derived:
            raise RunError(f"no rule derives `{type}`", hint=f"there is {', '.join(sorted(derived))}")
        if type not in self.program.plan.outputs:
            raise RunError(f"`{type}` is not an output of the program", hint=f"say `output {type}.`")
        self._callbacks.of_type.setdefault(type, []).append(callback)

    def on_goal(self, rule: str, threshold: float, callback: Callable[[Goal], None]) -> None:
        """Calls a function with each partial match of a rule that is at least so complete, from 0 to 1."""
        self._known_rule(rule)
        self._callbacks.of_goal.setdefault(rule, []).append((threshold, callback))

    # Rules come and go

    def add_rules(self, rules: str | Path, since: Literal["past", "now"] = "past") -> Changes:
        """Adds event rules. They see what is held of the past, or just the events that start from now on."""
        if since not in ("past", "now"):
            raise RunError(f"rules start from the past or from now, not from {since!r}")
        with self._exclusive():
            program = growing.with_rules(self, rules)
            with self._restoring() as step:
                growing.add(self, program, rules, self.now if since == "now" else None)
                changes, goals = self._changes(step)
                self._lock.pending = step.complete
            self._complete(step, changes, goals, [])
            return changes

    def remove_rule(self, label: str) -> Changes:
        """Takes a rule out; what only it derived is retracted."""
        with self._exclusive():
            program = self.program.without_rule(label)
            with self._restoring() as step:
                changes, goals = growing.remove(self, step, program, label)
                self._lock.pending = step.complete
            self._complete(step, changes, goals, [])
            return changes

    def become(self, program: Compiled, since: int | None = None) -> Changes:
        """Goes on with another program of a host: rules that it has as they are keep their state, and new ones see what
        starts after `since`. The changes have what rules that are gone, or changed, had derived."""
        with self._exclusive():
            self._open(None)
            with self._restoring() as step:
                self.programs[snapshot.fingerprint(program.plan, self.clock)] = program
                changes, goals = growing.become(self, step, program, since)
                self._lock.pending = step.complete
            self._complete(step, changes, list(goals), [])
            return changes

    def fingerprint_of(self, program: Compiled) -> str:
        return snapshot.fingerprint(program.plan, self.clock)

    @contextmanager
    def _restoring(self) -> Iterator[StepTransaction]:
        """A change of more than rows: where it fails, the session goes back to a snapshot of before."""
        self._keep_unseen()
        step, before = StepTransaction(self), snapshot.taken(self)

        def undo() -> None:
            shared = {} if self.shared is None else {"knowledge": self.shared, "facts": self.facts}
            options = {"limits": self.settings.limits, "programs": self.programs, **shared}
            self._take_over(snapshot.restored(self.opened, before, Session, **options))
            step.undo()

        with self._undoing(undo):
            yield step

    def _take_over(self, other: Session) -> None:
        """Goes on with the state of another session."""
        circuit = other.circuit
        circuit.lock = self._lock
        names = (
            "program", "_circuit", "answers", "_of_table", "_waiting", "input_ids", "_rules", "grown", "_kept", "_heavy",
        )  # fmt: skip
        self.__dict__.update({name: other.__dict__[name] for name in names})
        self._lock.circuit = weakref.ref(circuit)

    # Looking inside

    def goals(self, rule: str | None = None) -> Goals:
        """Open goals: partial matches, and facts that events made and that still hold."""
        if rule is not None:
            self._known_rule(rule)
        with self._lock:
            forgotten = self.settled if self.pruned else None
            return Goals([*goals(self.circuit, rule, self.now), *states(self.circuit, rule, self.now, forgotten)])

    def stats(self) -> dict[str, Any]:
        """Statistics: inputs, rows and bytes by operator and rule, and ids revoked so far."""
        with self._lock:
            return inspect.stats(self)

    def _known_rule(self, label: str) -> None:
        labels = [rule.label for rule in self.program.plan.rules]
        if label not in labels:
            close = nearest(label, labels)
            raise RunError(f"there is no rule `{label}`", hint=f"did you mean `{close}`?" if close else "")

    # What stands

    def events(self, until: int | None = None) -> Answers[Event]:
        """All answers that stand, in the order of events; or just those that end by a time."""
        with self._lock:
            return self._standing(until)

    def _standing(self, until: int | None) -> Answers[Event]:
        if self._circuit is None:
            return Answers(self.program.plan, Clock())
        parts = []
        for answer_set in self.answers:
            rows = answer_set.standing()
            if until is not None:
                rows = rows[answer_set.events.given_at()[rows] <= until]
            if len(rows):
                parts.append(AnswerRows(self._circuit, answer_set.events, rows))
        self._unseen.update(parts)
        return Answers(self.program.plan, self.clock, parts)
