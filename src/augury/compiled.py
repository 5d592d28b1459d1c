"""From text to a compiled program: read, translate, check. It is a value; `program.py` has what can be done with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from augury.algebra.aggregates import AggregateFunction
from augury.algebra.graph_queries import GraphQuery
from augury.algebra.nodes import Policy
from augury.algebra.plan import Plan
from augury.algebra.scalar import Function
from augury.core.clock import Kind
from augury.core.errors import (
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
from augury.knowledge.sparql import check_queries
from augury.language.checks import check
from augury.language.checks.inference import check_subjects, check_types
from augury.language.checks.means import check_means
from augury.language.rules import syntax as s
from augury.language.rules.read import Loader, read
from augury.language.rules.show import Printer
from augury.language.rules.translate import read_policy, translate
from augury.language.spaseq.graph_atoms import graph_atoms
from augury.language.spaseq.query_checks import check_origin
from augury.language.spaseq.query_program import SPASEQ, declared_by, ordered, read_queries
from augury.planner import optimise
from augury.planner.lower_queries import lower_queries


@dataclass(frozen=True)
class Compiled:
    """A compiled program: its plan, and the warnings that compiling it gave. Executors take this; users see `Program`."""

    plan: Plan
    warnings: tuple[Diagnostic, ...] = ()
    modules: tuple[s.Module, ...] = field(default=(), repr=False)
    functions: tuple[Function | AggregateFunction, ...] = field(default=(), repr=False)
    facts: tuple[str, ...] = field(default=(), repr=False)
    policy: str | None = field(default=None, repr=False)  # holds where the program names none itself

    @classmethod
    def of(
        cls,
        sources: Iterable[Source],
        functions: Iterable[Function | AggregateFunction] = (),
        facts: Iterable[str] = (),
        policy: str | None = None,
        include_from: Iterable[str | Path] = (),
        unsaved: Mapping[Path, str] = {},
    ) -> Self:
        """Several sources as one program; raises ProgramError with everything that is wrong.

        `unsaved` has the texts of included files that are being edited, by their resolved paths.
        """
        findings = Findings()
        modules: list[s.Module] = []
        source_list = list(sources)
        listed = [include_from] if isinstance(include_from, str | Path) else include_from
        loader = _loader(findings, [*map(_folder, source_list), *map(Path, listed)], unsaved)
        with _not_too_deep(source_list):
            queries = read_queries([source for source in source_list if source.language == SPASEQ], findings)
            for source in (source for source in source_list if source.language != SPASEQ):
                read_names = {m.span.source.name for m in modules}
                modules += [m for m in read(source, findings, loader) if m.span.source.name not in read_names]
        registered = tuple(functions)
        for item in registered:
            if not isinstance(item, Function | AggregateFunction):
                raise RunError(
                    f"{item!r} is not registered", hint="decorate it with @augury.function or @augury.aggregate"
                )
        names = (facts,) if isinstance(facts, str) else tuple(facts)
        return cls._compiled(modules, queries, findings, registered, names, policy)

    @classmethod
    def _compiled(
        cls,
        modules: list[s.Module],
        queries: tuple[GraphQuery, ...],
        findings: Findings,
        functions: tuple[Function | AggregateFunction, ...],
        facts: tuple[str, ...],
        policy: str | None,
    ) -> Self:
        in_order = ordered([*queries, *graph_atoms(modules)], findings)
        with _not_too_deep([m.span.source for m in modules]):
            plan = translate(
                modules,
                findings,
                {f.name: f for f in functions if isinstance(f, Function)},
                {f.name: f for f in functions if isinstance(f, AggregateFunction)},
                facts,
                _read_policy(policy, findings) if policy else None,
                in_order,
            )
            plan = replace(plan, declared={**declared_by(in_order), **plan.declared})
            check(plan, findings)
            check_subjects(plan, findings, facts)
        has_rules = any(isinstance(x, s.RuleStatement) for m in modules for x in m.statements)
        if not findings.errors and not has_rules and not queries:
            where = modules[-1].span if modules else NOWHERE
            findings.add(
                "W311",
                "the program has no rules, so nothing is detected",
                Span(where.source, 0, 0),
                hint="a rule is written `name(arguments) <- body.`",
            )
        check_queries(plan, findings)
        findings.raise_errors()
        return cls(plan, findings.sorted(), tuple(modules), functions, facts, policy)

    def __repr__(self) -> str:
        number = len(self._queries)
        parts = [counted(len(self.plan.rules), "rule")] if self.plan.rules or not number else []
        parts += [f"{number} {'query' if number == 1 else 'queries'}"] if number else []
        return f"<{type(self).__name__} of {' and '.join(parts)}: {', '.join(self.plan.outputs)}>"

    @cached_property
    def optimised(self) -> Plan:
        """The plan that runs: after all rewrites, with the same answers."""
        return optimise(self.lowered)

    @cached_property
    def lowered(self) -> Plan:
        """The plan with its queries as rules: what executors run, but for the judge."""
        return lower_queries(self.plan)

    @property
    def _queries(self) -> tuple[GraphQuery, ...]:
        """The queries that are files of their own."""
        return tuple(query for query in self.plan.graph_queries if not query.inside)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The event types that a run answers with."""
        return self.plan.outputs

    def with_policy(self, policy: str) -> Self:
        """The same program under another policy, where it names none itself."""
        return self._compiled(list(self.modules), self._queries, Findings(), self.functions, self.facts, policy)

    def with_rules(self, rules: str | Path) -> Self:
        """The program with more rules, from a path or from text."""
        findings = Findings()
        names = {m.span.source.name for m in self.modules}
        source = source_of(rules)
        if source.name in names:
            source = Source(f"<rules {len(names)}>", source.text)
        folders = [Path(name).parent for name in names if name != "<program>"]
        loader = _loader(findings, [_folder(source), *folders])
        added = [m for m in read(source, findings, loader) if m.span.source.name not in names]
        return self._compiled(
            [*self._labelled(), *added], self._queries, findings, self.functions, self.facts, self.policy
        )

    def with_modules(self, modules: Iterable[s.Module]) -> Self:
        """The program with other syntax trees for its rules: a variant of it. Its queries stay."""
        return self._compiled(list(modules), self._queries, Findings(), self.functions, self.facts, self.policy)

    def without_rule(self, label: str) -> Self:
        """The program without one of its rules."""
        if label not in {rule.label for rule in self.plan.rules}:
            close = nearest(label, [rule.label for rule in self.plan.rules])
            raise RunError(f"there is no rule `{label}`", hint=f"did you mean `{close}`?" if close else "")
        gone = next(rule for rule in self.plan.rules if rule.label == label)
        last = sum(rule.type == gone.type for rule in self.plan.rules) == 1

        def kept(statement: s.Statement) -> s.Statement | None:
            if isinstance(statement, s.RuleStatement) and statement.label == label:
                return None
            if isinstance(statement, s.OutputDecl) and last:  # what no rule derives is no output
                names = tuple(n for n in statement.names if n.text != gone.type)
                return replace(statement, names=names) if names else None
            return statement

        modules = [
            replace(m, statements=tuple(y for x in m.statements if (y := kept(x)) is not None))
            for m in self._labelled()
        ]
        return self._compiled(modules, self._queries, Findings(), self.functions, self.facts, self.policy)

    def written_rules(self, labels: Mapping[Span | None, str]) -> dict[str, str]:
        """Some rules as they are written, by their labels; `labels` has the label of the rule at each span."""
        printer = Printer(explicit=True, width=10_000)
        statements = (statement for module in self.modules for statement in module.statements)
        return {labels[s.span]: printer.statement(s) for s in statements if s.span in labels}

    @property
    def written(self) -> tuple[Source, ...]:
        """The program as sources that read no other files, and mean the same in this order."""
        result = [query.span.source for query in self._queries]
        for module in self.modules:
            statements = tuple(x for x in module.statements if not isinstance(x, s.Include))
            text = Printer(explicit=True, width=10_000).module(replace(module, statements=statements))
            result.append(Source(module.span.source.name, text))
        if self.policy and not self._names_policy:
            result.append(Source("<policy>", f"policy {self.policy}.\n"))
        return tuple(dict.fromkeys(result))

    @property
    def _names_policy(self) -> bool:
        return any(isinstance(x, s.PolicyDecl) for module in self.modules for x in module.statements)

    def _labelled(self) -> list[s.Module]:
        """The modules with every rule under its label, so that labels stay when rules come and go."""
        labels = {(rule.span.source.name, rule.span.start): rule.label for rule in self.plan.rules}

        def labelled(statement: s.Statement) -> s.Statement:
            if isinstance(statement, s.RuleStatement):
                span = statement.span
                return replace(statement, label=labels.get((span.source.name, span.start), statement.label))
            return statement

        return [replace(m, statements=tuple(labelled(x) for x in m.statements)) for m in self.modules]


@contextmanager
def _not_too_deep(sources: Sequence[Source]) -> Iterator[None]:
    """Where Python's stack does not reach for a program, that is a finding like any other."""
    try:
        yield
    except RecursionError:
        first = sources[-1] if sources else NOWHERE.source
        raise ProgramError(
            [
                Diagnostic(
                    "E108",
                    "the program is nested too deeply to be compiled",
                    Span(first, 0, 1),
                    hint="derive events, or define predicates, from parts of it",
                )
            ]
        ) from None


def check_clock(program: Compiled, clock: Kind) -> None:
    """On a known clock, times and durations have one type each; raises ProgramError where a use does not fit it."""
    findings = Findings()
    check_types(program.plan, findings, clock)
    check_means(program.plan, findings, clock)
    for query in program.plan.graph_queries:
        check_origin(query, clock, findings)
    findings.raise_errors()


LANGUAGES = ("rules", SPASEQ)


def source_of(program: str | Path, name: str | None = None, language: str | None = None) -> Source:
    """A path where it looks like one; text otherwise. Its language is that of its ending, where none is named."""
    if not isinstance(program, str | Path):
        raise RunError(f"a program is a path or text, not {type(program).__name__}")
    if language is not None and language not in LANGUAGES:
        raise RunError(f"unknown language `{language}`", hint=f"there is {' and '.join(LANGUAGES)}")
    if isinstance(program, Path) or (program.endswith((".aug", ".spaseq")) and "\n" not in program):
        path = Path(program)
        return Source(name or str(path), read_text(path), language or language_of(path))
    named = name or "<program>"
    return Source(named, program, language or language_of(named))


def language_of(path: str | Path) -> str:
    """The language of a file, by its ending."""
    return SPASEQ if str(path).endswith(".spaseq") else "rules"


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


def _loader(findings: Findings, folders: Iterable[Path], unsaved: Mapping[Path, str] = {}) -> Loader:
    """Included files are looked for beside the file that includes them, and read only below one of the folders.

    So a program from elsewhere cannot have files of its user read, and shown in messages. A link lies where it leads to.
    """
    allowed = {folder.resolve() for folder in folders}

    def load(path: str, span: Span) -> Source | None:
        target = _folder(span.source) / path
        if not any(target.resolve().is_relative_to(folder) for folder in allowed):
            findings.add(
                "E107",
                f"may not include `{path}`: it lies outside the program's folder",
                span,
                hint=f"allow its folder: --allow-include {target.parent}, or include_from=[…] from Python",
            )
            return None
        if not target.is_file():
            findings.add("E107", f"cannot include `{path}`: no such file", span, hint=f"it was looked for at {target}")
            return None
        text = unsaved.get(target.resolve())
        return Source(str(target), read_text(target) if text is None else text)

    return load


def _read_policy(policy: str, findings: Findings) -> Policy:
    """A policy as `--policy` gives it."""
    modules = read(Source("--policy", f"policy {policy}."), findings)
    for statement in modules[0].statements:
        if isinstance(statement, s.PolicyDecl):
            return read_policy(statement.policy)
    findings.raise_errors()
    return Policy()
