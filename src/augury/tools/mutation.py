"""Mutation: each condition, bound and operator of the rules is broken in turn; which of that does no case notice?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from augury.core.errors import AuguryError, ProgramError
from augury.language.rules import syntax as s
from augury.program import Program
from augury.testing import Case
from augury.tools.rule_variants import Variant, broken


@dataclass(frozen=True)
class Mutant:
    """A program with one part broken, and the case that notices it; none where it survives."""

    variant: Variant
    noticed_by: Case | None


@dataclass(frozen=True)
class MutationResult:
    """All mutants that compile; `invalid` is how many do not."""

    mutants: tuple[Mutant, ...]
    invalid: int

    @property
    def survivors(self) -> list[Mutant]:
        alive = [mutant for mutant in self.mutants if mutant.noticed_by is None]
        return sorted(alive, key=lambda mutant: (mutant.variant.span.source.name, mutant.variant.span.start))


def mutate(cases: Iterable[Case], progress: Callable[[str], None] = lambda text: None) -> MutationResult:
    """Breaks the programs of some cases, all of which pass, and runs the cases of each on what comes out."""
    suites: dict[int, tuple[Program, list[Case]]] = {}
    for case in cases:
        if "expect_error" not in case.settings:
            program = case.compiled()
            suites.setdefault(id(program), (program, []))[1].append(case)
    mutants: dict[object, Mutant] = {}
    invalid = 0
    for program, suite in suites.values():
        for variant, compiled in _mutants(program):
            if compiled is None:
                invalid += 1
                continue
            key = (variant.span, variant.kind, variant.change)  # files that several programs include
            if key not in mutants or mutants[key].noticed_by is None:
                progress(f"{len(mutants)} mutants")
                mutants[key] = Mutant(variant, _noticed(suite, compiled))
    return MutationResult(tuple(mutants.values()), invalid)


def _mutants(program: Program) -> Iterator[tuple[Variant, Program | None]]:
    for position, module in enumerate(program.modules):
        for number, statement in enumerate(module.statements):
            if not isinstance(statement, s.RuleStatement | s.StaticRule):
                continue
            for variant in broken(statement, program.plan):
                statements = (*module.statements[:number], variant.statement, *module.statements[number + 1 :])
                changed = replace(module, statements=statements)
                modules = [*program.modules[:position], changed, *program.modules[position + 1 :]]
                try:
                    yield variant, program.with_modules(modules)
                except ProgramError:
                    yield variant, None


def _noticed(suite: Iterable[Case], program: Program) -> Case | None:
    """The first case that does not pass."""
    for case in suite:
        try:
            if not case.run(program=program).passed:
                return case
        except (AuguryError, AssertionError):
            return case
    return None
