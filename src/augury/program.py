"""The face of a program: compile it, explain it, open a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.scalar import Function
from augury.compiled import Compiled, source_of
from augury.core.clock import Clock
from augury.core.errors import RunError
from augury.core.model import Change, Event, Fact
from augury.engine.changes import Changes
from augury.engine.found import AnswerRows
from augury.engine.session import Session
from augury.engine.snapshot import restored
from augury.explain import sessions
from augury.explain.costs import Profile, profile
from augury.explain.plans import explain
from augury.pictures import Picture, Scene, TimelineOptions, timeline
from augury.pictures.scenes import scene_of
from augury.settings import Settings
from augury.sinks.markup import Explanation


class PicturedChanges(Changes):
    """The changes of a step, which can be drawn."""

    def timeline(self, **options: Unpack[TimelineOptions]) -> Picture:
        """The answers that the step has inserted and retracted, with the events that the session holds; see
        `Result.timeline`.
        """
        rows = next(iter(self.parts), None)
        if rows is None:
            return timeline(Scene((), self.clock), **options)
        assert isinstance(rows, AnswerRows)
        circuit = rows.derived.runtime
        with circuit.lock:
            return timeline(scene_of(circuit, self.plan, self.clock, self.inserted, self.retracted), **options)


class ProgramSession(Session):
    """A session that explains and draws what it holds: what `Program.session` opens, and `augury.Session`."""

    changes_type: ClassVar[type[Changes]] = PicturedChanges

    if TYPE_CHECKING:  # every step returns changes of that type

        def push(self, events: object) -> PicturedChanges: ...
        def revoke(self, id: str | Event | Iterable[str | Event]) -> PicturedChanges: ...
        def assert_fact(self, name: str, *args: object, at: object = None, until: object = None) -> PicturedChanges: ...
        def retract_fact(self, name: str, *args: object, at: object = None) -> PicturedChanges: ...
        def learn(self, facts: Mapping[str, object] | Iterable[Fact]) -> PicturedChanges: ...
        def advance(self, time: object) -> PicturedChanges: ...
        def finish(self) -> PicturedChanges: ...
        def add_rules(self, rules: str | Path, since: Literal["past", "now"] = "past") -> PicturedChanges: ...
        def remove_rule(self, label: str) -> PicturedChanges: ...

    def why(self, event: Event, all: bool = False, format: Literal["text", "json", "mermaid"] = "text") -> str:
        """The derivation of an event that stands, as a tree; with `all`, every derivation that is held."""
        with self._lock:
            return sessions.why(self, event, all, format)

    def why_not(self, atom: str, format: Literal["text", "json"] = "text") -> str:
        """Why an event such as `alarm('l1')` was not detected: for each rule the nearest partial match and what failed."""
        with self._lock:
            return sessions.why_not(self, atom, format)

    def explain(self, format: str = "text") -> str:
        """How the program is read and what runs, with what each operator has done so far."""
        if self._circuit is None:
            text = explain(self.program.plan, self.program.optimised, self.program.modules, format)
        else:
            with self._lock:
                text = sessions.explain_session(self, format)
        return Explanation(text) if format == "text" else text

    def profile(self) -> Profile:
        """What each rule and operator has cost so far: print it, or look at its `rules` and `operators`."""
        with self._lock:
            return profile(self)

    def timeline(self, changes: Iterable[Change] = (), **options: Unpack[TimelineOptions]) -> Picture:
        """A picture of the events that are held and of what stands; see `Result.timeline`.

        A session does not keep its `changes`: give those whose retracted answers the picture shows as well.
        """
        if self._circuit is None:
            return timeline(Scene((), Clock()), **options)
        with self._lock:
            stands = self._standing(None)
            retracted = {change.event.content: change.event for change in changes if change.op == "retract"}
            standing = {event.content for event in (stands if retracted else ())}
            gone = [event for content, event in retracted.items() if content not in standing]
            scene = scene_of(self._circuit, self.program.plan, self.clock, stands, gone, self.now)
            return timeline(scene, **options)


@dataclass(frozen=True, repr=False)
class Program(Compiled):
    """A compiled program: its plan, and the warnings that compiling it gave."""

    def explain(self, format: str = "text") -> str:
        """How the program is read and what runs: its operators, as text, JSON or a Mermaid diagram."""
        text = explain(self.plan, self.optimised, self.modules, format)
        return Explanation(text) if format == "text" else text

    def session(
        self,
        *,
        policy: str | None = None,
        facts: Mapping[str, Any] | Iterable[Any] = (),
        rdf: Any = (),
        late: Callable[[Any], None] | None = None,
        **settings: Any,
    ) -> ProgramSession:
        """A session of the embedded engine: events go in, changes come out.

        `clock` is "logical" or "timestamp"; `time_unit` ("s", "ms", "us" or "ns") is that of times that are numbers, `zone` that
        of times without one; `emit` is "early" or "final"; `lateness` bounds how late an event may come,
        `longest` how long one lasts, `retention` how long rules without a bound remember; `revisable` is whether events may
        be revoked, or how old one may be; `changing` names the predicates whose facts change; `strict` refuses events of
        types that the program does not know; `policy` stands in where the program names none; `facts` are given by name;
        `late` is called with what came too late; `limits` says how many rows and bytes of state there may be, and how many
        pairs and answers and how much time a step may take: `{"rows": 1_000_000, "bytes": "2 GB", "time": "10s"}`.
        """
        if settings.get("threads", 1) != 1:
            raise RunError("a session runs in one thread", hint="augury.run uses several for a whole history")
        program = self.with_policy(policy) if policy else self
        clock = settings.pop("clock") if isinstance(settings.get("clock"), Clock) else None
        return ProgramSession(program, Settings.of(program, **settings), clock=clock, facts=facts, rdf=rdf, late=late)

    def restore(self, snapshot: bytes | str | Path, **settings: object) -> ProgramSession:
        """The session that `session.snapshot()` was taken of, or that was saved to a path, to go on with.

        `late` and `limits` may be set again. Raises SnapshotError where the snapshot is damaged, or of another
        program or version.
        """
        return restored(self, snapshot, ProgramSession, **settings)


def compile(
    program: str | Path | Sequence[str | Path],
    *,
    functions: Iterable[Function | AggregateFunction] = (),
    facts: Iterable[str] = (),
    policy: str | None = None,
    name: str | None = None,
    include_from: Iterable[str | Path] = (),
    language: str | None = None,
) -> Program:
    """Compiles a program from a path or from text; raises ProgramError with everything that is wrong.

    Several paths, or texts, are one program. `language` is "rules" or "spaseq"; by default that of the file's ending. `name`
    is what a text is called in messages; a query in SPAseQ derives events of that name, or that of its file.

    `functions` are Python functions and aggregates made by `augury.function` and `augury.aggregate`; `facts` names static
    predicates whose facts come with the run; `policy` stands in where the program names none. A program includes files of
    its own folder and those below it, and of the folders in `include_from`.
    """
    listed = [program] if isinstance(program, str | Path) or not isinstance(program, Sequence) else program
    return Program.of([source_of(item, name, language) for item in listed], functions, facts, policy, include_from)
