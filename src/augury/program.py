"""The face of a program: compile it, explain it, open a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.scalar import Function
from augury.compiled import Compiled, source_of
from augury.core.clock import Clock
from augury.engine.session import Session
from augury.engine.snapshot import restored
from augury.explain.plans import explain
from augury.pictures import Explanation
from augury.settings import Settings


@dataclass(frozen=True, repr=False)
class Program(Compiled):
    """A compiled program: its plan, and the warnings that compiling it gave."""

    def explain(self, format: str = "text") -> str:
        """How the program is read and what follows from its shape: as text, JSON or a Mermaid diagram."""
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
    ) -> Session:
        """A session of the embedded engine: events go in, changes come out.

        `clock` is "logical" or "timestamp"; `time_unit` ("s", "ms", "us" or "ns") is that of times that are numbers, `zone` that
        of times without one; `emit` is "early" or "final"; `lateness` bounds how late an event may come,
        `longest` how long one lasts, `retention` how long rules without a bound remember; `revisable` is whether events may
        be revoked, or how old one may be; `changing` names the predicates whose facts change; `strict` refuses events of
        types that the program does not know; `policy` stands in where the program names none; `facts` are given by name;
        `late` is called with what came too late; `limits` says how many rows and bytes of state there may be, and how many
        pairs and answers and how much time a step may take: `{"rows": 1_000_000, "bytes": "2 GB", "time": "10s"}`.
        """
        program = self.with_policy(policy) if policy else self
        known = settings.pop("clock") if isinstance(settings.get("clock"), Clock) else None
        return Session(program, Settings.of(program, **settings), clock=known, facts=facts, rdf=rdf, late=late)

    def restore(self, snapshot: bytes | str | Path, **settings: Any) -> Session:
        """The session that `session.snapshot()` was taken of, or that was saved to a path, to go on with.

        `late` and `limits` may be given anew. Raises SnapshotError where the snapshot is damaged, or of another program or version.
        """
        return restored(self, snapshot, **settings)


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
    return Program.of([source_of(one, name, language) for one in listed], functions, facts, policy, include_from)
