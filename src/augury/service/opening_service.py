"""`augury.live`: a service from Python, and what the command makes of its options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from augury.connectors import AnswerSink, EventSource, connectors
from augury.connectors.python_ends import CallbackSink, IterableSource
from augury.core.errors import Source
from augury.program import Program, compile
from augury.service.journal import SyncPolicy
from augury.service.live_service import LiveService, Log, NamedSink, NamedSource, ServiceOptions
from augury.settings import Settings, length

SourceForm: TypeAlias = str | EventSource | Iterable[Any]
NamedEnd = TypeVar("NamedEnd", NamedSource, NamedSink)
SinkForm: TypeAlias = str | AnswerSink | Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class ServiceSettings:
    """How a service runs, as users write it."""

    state: str | Path
    lateness: str = "0s"
    emit: str = "final"
    dead: str = ""
    idle: str = "10s"
    wall_clock: bool = False
    snapshot_every: str = "30s"
    sync: SyncPolicy = "step"
    trace: bool = True
    watch: bool = True
    clock: str | None = None
    time_unit: str | None = None
    zone: str | None = None
    retention: str | None = None
    strict: bool = False
    limits: Mapping[str, object] = field(default_factory=dict)

    def options(self, tick: int | None) -> ServiceOptions:
        idle, every = ((length(text) or 0) / 1e6 for text in (self.idle, self.snapshot_every))
        return ServiceOptions(
            Path(self.state), length(self.lateness, tick) or 0, idle, every, self.sync, self.trace, self.wall_clock,
            dead=self.dead, watch=self.watch,
        )  # fmt: skip

    def of_session(self, program: Program, follows: bool) -> Settings:
        """The settings of the session. Facts of a table that is followed come before the first event says its clock."""
        clock = self.clock or ("timestamp" if follows and program.plan.tick is None else None)
        names = ("emit", "time_unit", "zone", "retention", "strict", "limits")
        return Settings.of(program, clock=clock, **{name: getattr(self, name) for name in names})


def open_service(
    compiled: Callable[[Sequence[Source] | None], Program],
    sources: Iterable[str | EventSource],
    sinks: Iterable[str | AnswerSink],
    facts: Mapping[str, Any],
    rdf: Any,
    settings: ServiceSettings,
    log: Log,
) -> LiveService:
    """A service; `compiled` compiles the program anew, or a saved one."""
    followed = {name: value for name, value in facts.items() if is_followed(value)}
    program = compiled(None)
    ends = [NamedSource.of(source) for source in sources]
    ends += [NamedSource.of(address, facts=name) for name, address in followed.items()]
    remaining = {name: value for name, value in facts.items() if name not in followed}
    return LiveService(
        compiled, _numbered(ends), _numbered([NamedSink.of(sink) for sink in sinks]), settings.options(program.plan.tick),
        settings.of_session(program, bool(followed)), remaining, rdf, log,
    )  # fmt: skip


def _numbered(ends: Sequence[NamedEnd]) -> list[NamedEnd]:
    """Connectors and iterables have no address that would tell them apart: the second one is `IterableSource 2`."""
    result: list[NamedEnd] = []
    numbers = Counter[str]()
    for end in ends:
        plain = end.name == type(end.source if isinstance(end, NamedSource) else end.sink).__name__
        numbers[end.name] += plain
        result.append(replace(end, name=f"{end.name} {numbers[end.name]}") if numbers[end.name] > 1 and plain else end)
    return result


def is_followed(source: object) -> bool:
    """Whether facts come from an address, whose changes are followed."""
    scheme, separator, _ = source.partition("://") if isinstance(source, str) else ("", "", "")
    return bool(separator) and scheme in connectors()


def live(
    program: Program | str | Path | Sequence[str | Path],
    sources: SourceForm | Sequence[SourceForm],
    sinks: SinkForm | Sequence[SinkForm],
    *,
    state: str | Path,
    facts: Mapping[str, Any] | None = None,
    rdf: Any = (),
    log: Log = lambda level, message: None,
    **settings: Any,
) -> LiveService:
    """A program as a service: `run()` it, `await serve()` it, or use `with running():`; `stop()` ends it.

    Sources and sinks are addresses such as `kafka://host:9092/topic`, files, or connectors. A source may also be an iterable
    of events as dicts, and a sink a function that takes each change as a dict. `facts` are given by name as elsewhere; an
    address of a table, such as `postgres://…`, is followed. `state` is the directory of the service, from which it resumes.

    `lateness`, `emit` ("final" or "early"), `clock`, `time_unit`, `zone`, `retention`, `strict` and `limits` are those of
    sessions. `idle` is how long a source may be silent before it holds back no answers, `wall_clock` whether time passes with
    the clock of the machine while no events come, `snapshot_every` how often the state is saved, `dead` the address of what
    cannot be taken in, `watch` whether a changed program is taken over, `log` is called with a level and a message.
    """
    given_facts = facts or {}

    def compiled(saved: Sequence[Source] | None) -> Program:
        if isinstance(program, Program):
            return program if saved is None else Program.of(saved, program.functions, program.facts)
        return compile(program, facts=tuple(given_facts)) if saved is None else Program.of(saved, (), given_facts)

    ends = [s if isinstance(s, str | EventSource) else IterableSource(s) for s in _listed(sources)]
    exits = [s if isinstance(s, str | AnswerSink) else CallbackSink(s) for s in _listed(sinks)]
    return open_service(compiled, ends, exits, given_facts, rdf, ServiceSettings(state, **settings), log)


def _listed(ends: Any) -> list[Any]:
    several = isinstance(ends, list | tuple) and not any(
        isinstance(end, Mapping) for end in ends
    )  # events are one source
    return list(ends) if several else [ends]
