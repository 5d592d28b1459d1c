"""From text to a program that can be explained and run: read, translate, check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.nodes import Policy
from augury.algebra.plan import Plan
from augury.algebra.scalar import Function
from augury.clock import Clock, Kind
from augury.errors import (
    NOWHERE,
    DataError,
    Diagnostic,
    Findings,
    ProgramError,
    RunError,
    Source,
    Span,
    counted,
    nearest,
)
from augury.language import syntax as s
from augury.language.checks import check
from augury.language.checks.types import check_subjects, check_types
from augury.language.read import Loader, read
from augury.language.translate import read_policy, translate

if TYPE_CHECKING:
    from augury.engine.session import Session


@dataclass(frozen=True)
class Program:
    """A compiled program: its plan, and the warnings that compiling it gave."""

    plan: Plan
    warnings: tuple[Diagnostic, ...] = ()
    modules: tuple[s.Module, ...] = field(default=(), repr=False)
    functions: tuple[Function | AggregateFunction, ...] = field(default=(), repr=False)
    facts: tuple[str, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return f"<Program of {counted(len(self.plan.rules), 'rule')}: {', '.join(self.plan.outputs)}>"

    @property
    def outputs(self) -> tuple[str, ...]:
        """The event types that a run answers with."""
        return self.plan.outputs

    def with_policy(self, policy: str) -> Program:
        """The same program under another policy, where it names none itself."""
        return _compiled(list(self.modules), Findings(), self.functions, self.facts, policy)

    def with_rules(self, rules: str | Path) -> Program:
        """The program with more rules, from a path or from text."""
        findings = Findings()
        known = {m.span.source.name for m in self.modules}
        source = _source(rules, None)
        if source.name in known:
            source = Source(f"<rules {len(known)}>", source.text)
        folders = [Path(name).parent for name in known if name != "<program>"]
        loader = _loader(findings, [_folder(source), *folders])
        added = [m for m in read(source, findings, loader) if m.span.source.name not in known]
        return _compiled([*self._labelled(), *added], findings, self.functions, self.facts, None)

    def without_rule(self, label: str) -> Program:
        """The program without one of its rules."""
        if label not in {rule.label for rule in self.plan.rules}:
            close = nearest(label, [rule.label for rule in self.plan.rules])
            raise RunError(f"there is no rule `{label}`", hint=f"did you mean `{close}`?" if close else "")
        gone = next(rule for rule in self.plan.rules if rule.label == label)
        last = sum(rule.type == gone.type for rule in self.plan.rules) == 1

        def kept(statement: s.Statement) -> s.Statement | None:
            if isinstance(statement, s.EventRule) and statement.label == label:
                return None
            if isinstance(statement, s.Output) and last:  # what no rule derives is no output
                names = tuple(n for n in statement.names if n.text != gone.type)
                return replace(statement, names=names) if names else None
            return statement

        modules = [
            replace(m, statements=tuple(y for x in m.statements if (y := kept(x)) is not None))
            for m in self._labelled()
        ]
        return _compiled(modules, Findings(), self.functions, self.facts, None)

    def _labelled(self) -> list[s.Module]:
        """The modules with every rule under its label, so that labels stay when rules come and go."""
        labels = {(rule.span.source.name, rule.span.start): rule.label for rule in self.plan.rules}

        def labelled(statement: s.Statement) -> s.Statement:
            if isinstance(statement, s.EventRule):
                span = statement.span
                return replace(statement, label=labels.get((span.source.name, span.start), statement.label))
            return statement

        return [replace(m, statements=tuple(labelled(x) for x in m.statements)) for m in self.modules]

    def explain(self, format: str = "text") -> str:
        """How the program is read and what follows from its shape: as text, JSON or a Mermaid diagram."""
        from augury.explain.plans import explain

        return explain(self.plan, self.modules, format)

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

        `clock` is "logical" or "timestamp"; `emit` is "early" or "final"; `lateness` bounds how late an event may come,
        `longest` how long one lasts, `retention` how long rules without a bound remember; `revisable` is whether events may
        be revoked, or how old one may be; `changing` names the predicates whose facts change; `strict` refuses events of
        types that the program does not know; `policy` stands in where the program names none; `facts` are given by name;
        `late` is called with what came too late; `limits` says how many rows and bytes of state there may be, and how many
        pairs and answers and how much time a step may take: `{"rows": 1_000_000, "bytes": "2 GB", "time": "10s"}`.
        """
        from augury.engine.session import Session
        from augury.settings import Settings

        program = self.with_policy(policy) if policy else self
        known = settings.pop("clock") if isinstance(settings.get("clock"), Clock) else None
        return Session(program, Settings.of(program, **settings), clock=known, facts=facts, rdf=rdf, late=late)

    def restore(self, snapshot: bytes | str | Path, **settings: Any) -> Session:
        """The session that `session.snapshot()` was taken of, or that was saved to a path, to go on with.

        `late` and `limits` may be given anew. Raises SnapshotError where the snapshot is damaged, or of another program or version.
        """
        from augury.engine.snapshot import give

        return give(self, snapshot, **settings)


def compile(
    program: str | Path,
    *,
    functions: Iterable[Function | AggregateFunction] = (),
    facts: Iterable[str] = (),
    policy: str | None = None,
    name: str | None = None,
    include_from: Iterable[str | Path] = (),
) -> Program:
    """Compiles a program from a path or from text; raises ProgramError with everything that is wrong.

    `functions` are Python functions and aggregates made by `augury.function` and `augury.aggregate`; `facts` names static
    predicates whose facts come with the run; `policy` stands in where the program names none. A program includes files of
    its own folder and those below it, and of the folders in `include_from`.
    """
    sources = [_source(program, name)]
    return compile_sources(sources, functions=functions, facts=facts, policy=policy, include_from=include_from)


def compile_sources(
    sources: Iterable[Source],
    *,
    functions: Iterable[Function | AggregateFunction] = (),
    facts: Iterable[str] = (),
    policy: str | None = None,
    include_from: Iterable[str | Path] = (),
) -> Program:
    """Compiles several sources as one program."""
    findings = Findings()
    modules: list[s.Module] = []
    given = list(sources)
    listed = [include_from] if isinstance(include_from, str | Path) else include_from
    loader = _loader(findings, [*map(_folder, given), *map(Path, listed)])
    with _not_too_deep(given):
        for source in given:
            known = {m.span.source.name for m in modules}
            modules += [m for m in read(source, findings, loader) if m.span.source.name not in known]
    registered = tuple(functions)
    for item in registered:
        if not isinstance(item, Function | AggregateFunction):
            raise RunError(f"{item!r} is not registered", hint="decorate it with @augury.function or @augury.aggregate")
    return _compiled(modules, findings, registered, (facts,) if isinstance(facts, str) else tuple(facts), policy)


def _compiled(
    modules: list[s.Module],
    findings: Findings,
    functions: tuple[Function | AggregateFunction, ...],
    facts: tuple[str, ...],
    policy: str | None,
) -> Program:
    with _not_too_deep([m.span.source for m in modules]):
        plan = translate(
            modules,
            findings,
            {f.name: f for f in functions if isinstance(f, Function)},
            {f.name: f for f in functions if isinstance(f, AggregateFunction)},
            facts,
            _read_policy(policy, findings) if policy else None,
        )
        check(plan, findings)
        check_subjects(plan, findings, facts)
    if not findings.errors and not any(isinstance(x, s.EventRule) for m in modules for x in m.statements):
        where = modules[-1].span if modules else NOWHERE
        findings.add("W311", "the program has no rules, so that nothing is detected", Span(where.source, 0, 0),
                     hint="a rule is written `name(arguments) <- body.`")  # fmt: skip
    if plan.queries:
        from augury.knowledge.sparql import check_queries

        check_queries(plan, findings)
    findings.raise_errors()
    return Program(plan, findings.sorted(), tuple(modules), functions, facts)


@contextmanager
def _not_too_deep(sources: Sequence[Source]) -> Iterator[None]:
    """Where Python's stack does not reach for a program, that is a finding like any other."""
    try:
        yield
    except RecursionError:
        first = sources[-1] if sources else NOWHERE.source
        raise ProgramError([Diagnostic("E108", "the program is nested too deeply to be compiled", Span(first, 0, 1),
                                       hint="derive events, or define predicates, from parts of it")]) from None  # fmt: skip


def check_clock(program: Program, clock: Kind) -> None:
    """On a known clock, times and durations have one type each; raises ProgramError where a use does not fit it."""
    findings = Findings()
    check_types(program.plan, findings, clock)
    findings.raise_errors()


def _source(program: str | Path, name: str | None) -> Source:
    """A path where it looks like one; text otherwise."""
    if not isinstance(program, str | Path):
        raise RunError(f"a program is a path or text, not {type(program).__name__}")
    if isinstance(program, Path) or (program.endswith(".aug") and "\n" not in program):
        path = Path(program)
        return Source(name or str(path), read_text(path))
    return Source(name or "<program>", program)


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError("no such file", str(path)) from None
    except IsADirectoryError:
        raise DataError("is a directory, not a file", str(path)) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", str(path)) from None
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 text (byte {error.start})", str(path)) from None


def _folder(source: Source) -> Path:
    return Path(source.name).parent if source.name != "<program>" else Path()


def _loader(findings: Findings, folders: Iterable[Path]) -> Loader:
    """Included files are looked for beside the file that includes them, and read only below one of the folders.

    So a program from elsewhere cannot have files of its user read, and shown in messages. A link lies where it leads to.
    """
    allowed = {folder.resolve() for folder in folders}

    def load(path: str, span: Span) -> Source | None:
        target = _folder(span.source) / path
        if not any(target.resolve().is_relative_to(folder) for folder in allowed):
            findings.add("E107", f"may not include `{path}`: it lies outside the program's folder", span,
                         hint=f"allow its folder: --allow-include {target.parent}, or include_from=[…] from Python")  # fmt: skip
            return None
        if not target.is_file():
            findings.add("E107", f"cannot include `{path}`: no such file", span, hint=f"it was looked for at {target}")
            return None
        return Source(str(target), read_text(target))

    return load


def _read_policy(policy: str, findings: Findings) -> Policy:
    """A policy as `--policy` gives it."""
    modules = read(Source("--policy", f"policy {policy}."), findings)
    for statement in modules[0].statements:
        if isinstance(statement, s.PolicyDecl):
            return read_policy(statement.policy)
    findings.raise_errors()
    return Policy()
