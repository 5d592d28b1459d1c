"""Checking a program with its lints, and applying the fixes that are safe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from augury.compiled import Compiled
from augury.core.errors import Diagnostic, Fix, ProgramError, Source
from augury.lint import lint
from augury.lint.fixes import apply, compatible, with_fix

Compile = Callable[[Sequence[Source]], Compiled]


@dataclass(frozen=True)
class Checked:
    """A program with what was found. Without `program`, it has errors."""

    program: Compiled | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> int:
        return sum(diagnostic.severity == "error" for diagnostic in self.diagnostics)

    @property
    def warnings(self) -> int:
        return len(self.diagnostics) - self.errors

    def chosen(self, select: Iterable[str], ignore: Iterable[str]) -> Checked:
        """The errors, and the warnings whose codes begin as selected and not as ignored."""
        selected, ignored = tuple(select), tuple(ignore)
        kept = [
            d
            for d in self.diagnostics
            if d.severity == "error"
            or ((not selected or d.code.startswith(selected)) and not d.code.startswith(ignored))
        ]
        return Checked(self.program, tuple(kept))


def check_program(sources: Sequence[Source], compile: Compile, retention: int | None = None) -> Checked:
    try:
        program = compile(sources)
    except ProgramError as error:
        return Checked(None, tuple(map(with_fix, error.diagnostics)))
    return Checked(program, lint(program, retention))


def fixed(
    sources: Sequence[Source], check: Callable[[Sequence[Source]], Checked], rounds: int = 10
) -> tuple[list[Source], list[Fix]]:
    """The sources after all safe fixes, and these. What a fix uncovers is fixed as well; one that would break the program is not made."""
    current = list(sources)
    made: list[Fix] = []
    for _ in range(rounds):
        before = check(current)
        fixes = [d.fix for d in before.diagnostics if d.fix is not None and d.fix.safe and _inside(d.fix, current)]
        chosen = compatible(fixes)
        if chosen and check(_applied(current, chosen)).errors > before.errors:
            chosen = [fix for fix in chosen if check(_applied(current, [fix])).errors <= before.errors]
            if check(_applied(current, chosen)).errors > before.errors:
                chosen = chosen[:1]
        if not chosen:
            break
        current, made = _applied(current, chosen), [*made, *chosen]
    return current, made


def _inside(fix: Fix, sources: Sequence[Source]) -> bool:
    """Whether all of a fix is in the files that were named, and none of it in what they include."""
    return all(edit.span.source in sources for edit in fix.edits)


def _applied(sources: Sequence[Source], fixes: Iterable[Fix]) -> list[Source]:
    texts = apply(edit for fix in fixes for edit in fix.edits)
    return [Source(source.name, texts.get(source, source.text), source.language) for source in sources]
