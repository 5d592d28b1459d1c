"""What sources yield: some lines with the position behind them; and how these become events."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from augury.algebra.plan import Plan
from augury.core.clock import Clock
from augury.core.errors import DataError, RunError
from augury.core.limits import NO_LIMITS, Limits
from augury.sources import ColumnNames, History, Reader, Skipped, SourceFile
from augury.sources.bounded import BoundedStream, ReadLimits
from augury.sources.files import FORMATS
from augury.sources.heading import NAMES
from augury.sources.problems import Problem
from augury.sources.sheet import Items


@dataclass(frozen=True)
class Poison:
    """A message that is no event: what it is, and why."""

    reason: str
    payload: bytes


@dataclass(frozen=True)
class Delivery:
    """Some events, in the order in which they came.

    `data` is whole lines of a `form` of text, one event a line where it is "jsonl"; of CSV the line of the columns is
    `header`. `position` is that of the source behind them. A source has several `part`s, such as partitions, where time
    passes in each of them by itself. `type` is that of events that name none; `facts` names the predicate whose facts
    these lines are instead of events. `poison` is what the source could not even make lines of.
    """

    data: bytes
    position: dict[str, Any]
    part: str = ""
    form: str = "jsonl"
    header: bytes = b""
    first: int = 1  # the number of the first line, in its file
    type: str | None = None
    facts: str = ""
    poison: tuple[Poison, ...] = field(default=())

    def __len__(self) -> int:
        """About how many events."""
        return self.data.count(b"\n")


def lines_of(messages: Iterable[bytes]) -> tuple[bytes, list[Poison]]:
    """Messages of one JSON document each as lines; a document may be an array of events, and have line ends in it."""
    listed = list(messages)
    data = b"\n".join(listed)
    if data.count(b"\n") == max(0, len(listed) - 1) and b"\n[" not in data and not data.startswith(b"["):
        return (data + b"\n" if data else b""), []
    lines: list[bytes] = []
    poison: list[Poison] = []
    for message in listed:
        if b"\n" not in message and not message.lstrip().startswith(b"["):
            lines.append(message)
            continue
        try:
            document = orjson.loads(message)
        except orjson.JSONDecodeError as error:
            poison.append(Poison(f"malformed JSON: {error}", message))
            continue
        lines.extend(orjson.dumps(item) for item in (document if isinstance(document, list) else [document]))
    return b"".join(line + b"\n" for line in lines), poison


class RefusedLines(Skipped):
    """What could not be read, each with the number of its line."""

    def __init__(self, limits: Limits) -> None:
        super().__init__("skip", limits=limits)
        self.refused: list[Problem] = []

    def handle_all(self, problems: Iterable[Problem]) -> None:
        self.refused += sorted(problems, key=lambda problem: problem[0])


class DeliveryReader:
    """Makes events of deliveries. What is wrong with a line does not stop the others: `poison` has it, with the reason."""

    def __init__(
        self,
        plan: Plan,
        clock: Clock | Callable[[object], Clock],
        names: ColumnNames = NAMES,
        nulls: tuple[str, ...] = (),
        strict: bool = False,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self._refused = RefusedLines(limits)
        self.reader = Reader(plan, clock, self._refused, strict)
        self.names, self.nulls, self.limits = names, nulls, limits
        self.poison: list[Poison] = []

    def read(self, delivery: Delivery) -> History:
        """The events of a delivery; those that cannot be read are added to `poison`."""
        self.poison += delivery.poison
        self._refused.refused.clear()
        data = delivery.header + delivery.data
        source = SourceFile(f"delivery.{delivery.form}", delivery.type, self.names, self.nulls, shown=delivery.part)
        histories: list[History] = []
        try:
            stream = BoundedStream(io.BytesIO(data), ReadLimits(delivery.part, self.limits))
            for part in FORMATS[delivery.form].read(stream, source, self.reader.plan):
                if isinstance(part, Items):
                    histories.append(self.reader.objects(part, self.names, delivery.type))
                else:
                    histories.append(self.reader.sheet(part, self.names, delivery.type))
        except DataError as error:  # of all lines: a header without a time, a line that is too long
            self.poison.append(Poison(error.message, data))
            return History()
        if self._refused.refused:
            self._collect(data, delivery)
        return History.joined(histories or [History()])

    def _collect(self, data: bytes, delivery: Delivery) -> None:
        lines = data.splitlines()
        shift = delivery.first - 1 - bool(delivery.header)
        for number, error in self._refused.refused:
            line = lines[number - 1] if 0 < number <= len(lines) else b""
            where = f"{delivery.part}:{number + shift}: " if delivery.part else ""
            self.poison.append(Poison(f"{where}{error.message}", line))

    def facts(self, delivery: Delivery) -> list[dict[str, Any]]:
        """The rows of a delivery of facts, each with `op`, `args` and, where it says so, `valid_from` and `valid_to`."""
        return [orjson.loads(line) for line in delivery.data.splitlines()]

    def check(self, delivery: Delivery) -> None:
        """Refuses a form whose columns have no type before all of it is read."""
        if delivery.form == "csv" and not self.reader.plan.declared:
            raise RunError(
                "CSV that grows needs declared events, since its columns do not say what they hold",
                hint="declare `event wind(station: string, speed: float).`",
            )

    def with_plan(self, plan: Plan) -> DeliveryReader:
        """The reader for a changed program, on the same clock."""
        other = DeliveryReader(
            plan, self.reader.clock, self.names, self.nulls, self.reader.known_types.strict, self.limits
        )
        other.reader.row = self.reader.row
        return other


def typed(deliveries: list[Delivery], type: str | None, facts: str = "") -> list[Delivery]:
    """Deliveries whose events are of a type where they name none, or whose lines are facts."""
    if type is None and not facts:
        return deliveries
    return [replace(each, type=each.type or type, facts=each.facts or facts) for each in deliveries]
