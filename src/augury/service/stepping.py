"""Takes steps: deliveries become events of a session, and its changes become lines. The same steps give the same changes."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from augury.connectors import Delivery, DeliveryReader, Poison, RenderedChanges, rendered
from augury.core.clock import Clock
from augury.core.errors import DataError, RunError, UnusableError
from augury.core.model import Event, HistoryItem
from augury.engine.changes import Changes
from augury.notation import show_event
from augury.program import ProgramSession
from augury.service.journal import Step
from augury.service.rule_switch import net_of, switch_rules
from augury.service.watermarks import Watermarks, greatest_end
from augury.sources import History

_QUOTED = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|\d[\d.,:TZ+-]*")
_REASONS = 20  # reasons that are counted one by one
_REMEMBERED = 1000  # letters of what is said of a dead letter


@dataclass
class ServiceCounts:
    """What has been read and written since the service was first started."""

    events: int = 0
    inserts: int = 0
    retracts: int = 0
    late: int = 0
    rejected: int = 0
    facts: int = 0
    malformed: Counter[str] = field(default_factory=Counter)

    def state(self) -> dict[str, Any]:
        return {**vars(self), "malformed": dict(self.malformed)}

    @staticmethod
    def of(state: dict[str, Any]) -> ServiceCounts:
        return ServiceCounts(**{**state, "malformed": Counter(state["malformed"])})

    def count_malformed(self, reason: str) -> None:
        """Counts a reason without what differs from message to message."""
        kind = _QUOTED.sub("…", reason.rpartition(": ")[2] if re.match(r"\S+:\d+: ", reason) else reason)[:80]
        self.malformed[kind if kind in self.malformed or len(self.malformed) < _REASONS else "other"] += 1


@dataclass(frozen=True)
class StepResult:
    """What a step has changed, what could not be taken in, and how long the engine took."""

    changes: RenderedChanges
    dead: RenderedChanges
    seconds: float


class Stepper:
    """A session with its reader and the progress of its sources."""

    def __init__(self, session: ProgramSession, watermarks: Watermarks, lateness: int, trace: bool) -> None:
        """`lateness` is in microseconds."""
        self.session, self.watermarks, self.lateness, self.trace = session, watermarks, lateness, trace
        self.counts = ServiceCounts()
        self.positions: dict[str, Any] = {}
        self.parted: set[str] = set()  # sources in whose parts time passes by itself
        self.waiting_facts: dict[str, list[dict[str, Any]]] = {}  # which came before the first event
        self._late: list[HistoryItem] = []
        settings = session.settings
        self.reader = DeliveryReader(
            session.program.plan, session.reading_clock, strict=settings.strict, limits=settings.limits
        )

    @property
    def opened(self) -> bool:
        """Whether the session has begun, with the first event or fact."""
        return self.session.opened_clock

    def keep_late(self, item: HistoryItem) -> None:
        """The callback of the session."""
        self._late.append(item)

    def part_of(self, source: str, delivery: Delivery) -> str:
        return f"{source}\t{delivery.part}" if source in self.parted else source

    def take(self, step: Step) -> StepResult:
        """One step; the same step of the same state gives the same result."""
        began = time.perf_counter()
        number, dead = step.number, list[Poison]()
        parts: list[Changes] = []
        if step.rules is not None:
            parts += switch_rules(self.session, step.rules)
            self.reader = self.reader.with_plan(self.session.program.plan)
        self.watermarks.expect(step.parts)
        histories: list[History] = []
        for source, delivery in step.deliveries:
            self.positions[source] = delivery.position
            if delivery.facts:
                parts += self._push(histories, dead)
                parts += self._learn(delivery, dead)
                continue
            history = self.reader.read(delivery)
            self.watermarks.observe(self.part_of(source, delivery), greatest_end(history))
            histories.append(history)
        parts += self._push(histories, dead)
        if step.idle is not None:
            self.watermarks.idle = frozenset(step.idle)
        if step.promise is not None:
            self.watermarks.promised = max(step.promise, self.watermarks.promised or step.promise)
        parts += self._advance(step.over)
        changes = rendered(number, parts, self.trace)
        if step.rules is not None:
            changes = net_of(changes)
        retracts = changes.ops.count("retract")
        self.counts.retracts += retracts
        self.counts.inserts += len(changes) - retracts
        letters = self._dead_letters(number, dead)
        return StepResult(changes, letters, time.perf_counter() - began)

    def _push(self, histories: list[History], dead: list[Poison]) -> list[Changes]:
        """Pushes what was read; what the session refuses is pushed in halves, until what it refuses is one event."""
        history = History.joined(histories) if histories else History()
        histories.clear()
        dead += self.reader.poison
        self.reader.poison = []
        self.counts.events += len(history)
        if not len(history):
            return []
        parts: list[Changes] = []
        for name, rows in self.waiting_facts.items():  # which hold from the beginning
            parts += self._halved(lambda part, name=name: self.session.learn({name: part}), rows, dead)  # type: ignore[misc]
        self.waiting_facts.clear()
        try:
            return [*parts, self.session.push(history)]
        except UnusableError:
            raise
        except (RunError, DataError):
            return parts + self._halved(self.session.push, history.items(), dead)

    def _halved(self, take: Callable[[list[Any]], Changes], items: list[Any], dead: list[Poison]) -> list[Changes]:
        """Takes items in one step, or in halves where that is refused; an item that is refused is a dead letter."""
        try:
            return [take(items)] if items else []
        except UnusableError:
            raise
        except (RunError, DataError) as error:
            if len(items) == 1:
                dead.append(Poison(f"refused: {error.message}", _as_line(items[0], self.session.clock)))
                self.counts.rejected += 1
                return []
            middle = len(items) // 2
            return self._halved(take, items[:middle], dead) + self._halved(take, items[middle:], dead)

    def _learn(self, delivery: Delivery, dead: list[Poison]) -> list[Changes]:
        """Takes in changes of facts, which hold for what ends after the latest event so far.

        Before the first event just what stands in the end counts."""
        name, rows = delivery.facts, self.reader.facts(delivery)
        self.counts.facts += len(rows)
        if self.session.now is None:
            waiting = self.waiting_facts.setdefault(name, [])
            for row in rows:
                standing = {"op": "assert", "args": row["args"]}
                if row["op"] == "assert":
                    waiting.append(standing)
                elif standing in waiting:
                    waiting.remove(standing)
            return []
        moment = self.session.clock.moment(self.session.now + 1)
        timed = [row if "time" in row else {**row, "time": moment} for row in rows]
        return self._halved(lambda part: self.session.learn({name: part}), timed, dead)

    def _advance(self, over: bool) -> list[Changes]:
        """Moves the frontier to that of the sources; to the end where nothing more comes."""
        session, result = self.session, list[Changes]()
        if not self.opened:
            return result
        self.watermarks.lateness = session.clock.length(self.lateness)
        frontier = self.watermarks.frontier
        if frontier is not None and (session.advanced is None or frontier > session.advanced):
            result.append(session.advance(session.clock.moment(frontier)))
        if over:
            result.append(session.finish())
        return result

    def _dead_letters(self, number: int, dead: list[Poison]) -> RenderedChanges:
        """What could not be taken in, as lines: step, reason and payload."""
        for poison in dead:
            self.counts.count_malformed(poison.reason)
        clock = self.session.clock if self._late or self.session.rejected else None
        letters = [(poison.reason, poison.payload) for poison in dead]
        letters += [("late", _as_line(item, clock)) for item in self._late]
        letters += [(reason, _as_line(event, clock)) for event, reason in self.session.rejected]
        self.counts.late += len(self._late)
        self.counts.rejected += len(self.session.rejected)
        self._late.clear()
        self.session.rejected.clear()
        result = RenderedChanges(number)
        for index, (reason, payload) in enumerate(letters):
            line = {"step": number, "reason": reason[:_REMEMBERED], "payload": payload.decode("utf-8", "replace")}
            result.lines.append(orjson.dumps(line))
            result.ids.append(f"{number}.{index}")
            result.ops.append("insert")
            result.types.append("dead_letter")
        return result


def _as_line(item: object, clock: Clock | None) -> bytes:
    if isinstance(item, Event) and clock is not None:
        return show_event(item, clock).encode()
    return str(item).encode()
