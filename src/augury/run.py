"""One run over a whole history: what `augury.run` and `augury run` do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from augury.clock import SECOND, Clock, Kind, read_duration
from augury.errors import RunError
from augury.meaning import Model, evaluate
from augury.model import Event, Fact, Revocation
from augury.program import Program, check_clock, compile
from augury.sources import facts_from, item_from
from augury.why import derivation_tree, show_tree

EventsIn = Iterable[Event | Revocation | Mapping[str, Any]]
FactsIn = Mapping[str, Iterable[Any]] | Iterable[Fact]
ENGINES = ("reference",)


@dataclass(frozen=True)
class Result:
    """The answer of a run: iterate over it for the derived events, in the order of events."""

    program: Program
    model: Model
    clock: Clock

    def __iter__(self) -> Iterator[Event]:
        return iter(self.model.events)

    def __len__(self) -> int:
        return len(self.model.events)

    @property
    def events(self) -> list[Event]:
        return self.model.events

    @property
    def rejected(self) -> list[tuple[Event, str]]:
        """Inputs whose id names another event already."""
        return self.model.rejected

    @property
    def errors(self) -> dict[tuple[str, str], int]:
        """Rows that could not be computed: how often, by rule and message."""
        return self.model.errors

    def why(self, event: Event, all: bool = False) -> str:
        """The derivation of an event as a tree; with `all`, every derivation."""
        return show_tree(derivation_tree(self.model, event, all), self.clock)


def choose_clock(program: Program, kind: Kind | None, first_time: object) -> Clock:
    """The clock of a run: as asked; else logical where the program declares its tick or times are whole numbers."""
    tick = program.plan.tick
    if kind == "timestamp" and tick is not None:
        raise RunError(
            "the program declares its tick, so it runs on the logical clock",
            hint="use --clock logical, or remove `tick`",
        )
    if kind is None:
        whole = isinstance(first_time, int) or (isinstance(first_time, str) and first_time.lstrip("-").isdigit())
        kind = "logical" if tick is not None or first_time is None or whole else "timestamp"
    return Clock(kind, tick or SECOND)


def run(
    program: Program | str | Path,
    events: EventsIn,
    *,
    clock: Kind | None = None,
    policy: str | None = None,
    facts: FactsIn = (),
    until: Any = None,
    as_of: Any = None,
    retention: str | None = None,
    engine: str = "reference",
) -> Result:
    """Runs a program over all events at once.

    Events are `Event` objects or dicts in the JSON form; facts are `Fact` objects or, by name, tuples or dicts.
    """
    if engine not in ENGINES:
        raise RunError(f"unknown engine `{engine}`", hint=f"there is {', '.join(ENGINES)}")
    given_facts: list[Any] = list(facts.items()) if isinstance(facts, Mapping) else list(facts)
    if not isinstance(program, Program):
        names = {f.name if isinstance(f, Fact) else f[0] for f in given_facts}
        program = compile(program, policy=policy, facts=names)
    elif policy is not None:
        program = program.with_policy(policy)
    given = list(events)
    chosen = choose_clock(program, clock, first_time(given))
    check_clock(program, chosen.kind)
    history = [item_from(item, program.plan, chosen) for item in given]
    known = facts_from(given_facts, program.plan, chosen)
    time = {name: None if t is None else chosen.read(t) for name, t in (("until", until), ("as_of", as_of))}
    model = evaluate(
        program.plan, history, chosen, known, time["until"], time["as_of"], length(retention, program.plan.tick)
    )
    return Result(program, model, chosen)


def length(duration: str | None, tick: int | None = None) -> int | None:
    """A duration in microseconds; a bare number is seconds, or ticks where the program declares its tick."""
    if duration is None:
        return None
    if duration.strip().isdigit():
        return int(duration) * (tick or SECOND)
    try:
        return read_duration(duration)
    except ValueError as error:
        raise RunError(str(error)) from None


def first_time(items: Iterable[Any]) -> object:
    """The first time that an input names."""
    for item in items:
        if isinstance(item, Event):
            return item.end
        if isinstance(item, Mapping):
            for key in ("time", "end", "start"):
                if item.get(key) is not None:
                    return item[key]
    return None
