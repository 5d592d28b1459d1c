"""The program of a console as it is written, so that another process, or a changed version of it, can be compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from augury.algebra.plan import Plan
from augury.algebra.scalar import Function
from augury.compiled import Compiled
from augury.core.errors import Findings, RunError, Source, Span
from augury.job import load_functions
from augury.language.rules import syntax as s
from augury.language.rules.read import read
from augury.language.rules.show import Printer
from augury.program import Program

ADDED = "<console>"  # the source that makes an output of all that is derived


@dataclass(frozen=True)
class ProgramText:
    """The sources of a program, included ones first, and what is given beside them; `functions` are Python files."""

    sources: tuple[Source, ...]
    facts: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    policy: str | None = None

    @staticmethod
    def of(program: Compiled, functions: Sequence[str] = (), policy: str | None = None) -> ProgramText:
        """The text of a program that was compiled."""
        if not functions and any(isinstance(item, Function) for item in program.functions):
            raise RunError("the functions of a program come from files", hint="name them with --functions")
        listed = [module.span.source for module in program.modules]
        listed += [query.span.source for query in program.plan.graph_queries if not query.inside]
        return ProgramText(tuple(dict.fromkeys(listed)), program.facts, tuple(functions), policy)

    def compile(self) -> Program:
        """The program as it is written; what it includes is among its sources."""
        return Program.of(map(_without_includes, self.sources), load_functions(self.functions), self.facts, self.policy)

    def watched(self, program: Program) -> Program:
        """The program with all that it derives as outputs, so that every derived event has its changes.

        That is a source of its own, so that rules can come and go; as is the policy where the program names none.
        """
        plan = program.plan
        types = list(dict.fromkeys((*plan.outputs, *derived_types(plan))))
        decided = any(isinstance(x, s.PolicyDecl) for m in program.modules for x in m.statements)
        policy = f"policy {self.policy}.\n" if self.policy and not decided else ""
        if not types or (not plan.rules and not policy):
            return program
        sources = (*map(_without_includes, self.sources), Source(ADDED, policy + outputs_of(types, plan.prefixes)))
        return Program.of(sources, load_functions(self.functions), self.facts)

    def changed(self, texts: Mapping[str, str]) -> ProgramText:
        """The same with other texts for some of its sources."""
        unknown = sorted(texts.keys() - {source.name for source in self.sources})
        if unknown:
            raise RunError(f"the program has no source `{unknown[0][:60]}`")
        sources = tuple(Source(x.name, texts.get(x.name, x.text), x.language) for x in self.sources)
        return replace(self, sources=sources)


def derived_types(plan: Plan) -> list[str]:
    """The types of events that rules derive; the events that make and end facts have no names of their own."""
    unnamed = {name for makers in plan.made.values() for name, _ in makers}
    return list(dict.fromkeys(rule.type for rule in plan.rules if rule.type not in unnamed))


def outputs_of(types: Sequence[str], prefixes: Mapping[str, str]) -> str:
    """A statement that makes types outputs."""
    printer = Printer()
    printer.prefixes |= dict(prefixes)
    return f"output {', '.join(map(printer.name, types))}.\n"


def _without_includes(source: Source) -> Source:
    """A source whose includes are blank: what they include is a source of its own. Places stay where they are."""
    if source.language != "rules" or "include" not in source.text.casefold():
        return source
    text = source.text
    for module in read(source, Findings()):
        for statement in module.statements:
            if isinstance(statement, s.Include):
                end = text.find(".", statement.span.end) + 1 or len(text)
                text = text[: statement.span.start] + _blank(text[statement.span.start : end]) + text[end:]
    return Source(source.name, text, source.language)


def _blank(text: str) -> str:
    return "".join(c if c == "\n" else " " for c in text)


@dataclass(frozen=True)
class RuleDifference:
    """Which rules one program has more than another, as they are written, and which fewer, by label."""

    added: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True)
class WrittenProgram:
    """The statements of a program, printed: rules by label without it, and the others."""

    program: Compiled

    @cached_property
    def rules(self) -> dict[str, str]:
        labels = {(rule.span.source.name, rule.span.start): rule.label for rule in self.program.plan.rules}
        return {
            labels[key]: self._printer.statement(replace(statement, label=None))
            for statement in self._statements
            if isinstance(statement, s.RuleStatement) and (key := _key(statement.span)) in labels
        }

    @cached_property
    def others(self) -> Counter[str]:
        """All but rules and outputs."""
        kinds = (s.RuleStatement, s.OutputDecl, s.Include)
        return Counter(self._printer.statement(x) for x in self._statements if not isinstance(x, kinds))

    @property
    def _statements(self) -> list[s.Statement]:
        modules = [m for m in self.program.modules if m.span.source.name != ADDED]
        return [replace(statement, comments=s.Comments()) for module in modules for statement in module.statements]

    @cached_property
    def _printer(self) -> Printer:
        printer = Printer(explicit=True, width=10_000)
        printer.prefixes |= dict(self.program.plan.prefixes)
        return printer

    def difference(self, running: WrittenProgram) -> RuleDifference:
        """What to add to a program that runs, and what to take out, so that it has these rules."""
        more, fewer = dict(self.rules), dict(running.rules)
        for label, text in self.rules.items():
            same = next((other for other, written in fewer.items() if written == text), None)
            if same is not None:
                del more[label], fewer[same]
        changed = (self.others - running.others) + (running.others - self.others)
        if changed:
            raise RunError(
                "only rules can change while a session runs",
                hint=f"try it on a copy; this changed: {next(iter(changed))}",
            )
        return RuleDifference(tuple(more.values()), tuple(fewer))


def _key(span: Span) -> tuple[str, int]:
    return span.source.name, span.start
