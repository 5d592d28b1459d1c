"""`augury check`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from augury import sinks
from augury.cli.options import compile_sources, program_options, program_sources
from augury.compiled import Compiled
from augury.core.errors import AuguryError, DataError, RunError, Source, counted
from augury.settings import length
from augury.terminal import coloured, say, show_diagnostics
from augury.tools.check_reports import REPORTS
from augury.tools.checking import Checked, check_program, fixed


@dataclass(frozen=True)
class CheckRequest:
    """The files of a program, and what is asked of them."""

    paths: tuple[str, ...]
    compile: Callable[[Sequence[Source]], Compiled]
    retention: int | None
    select: tuple[str, ...]
    ignore: tuple[str, ...]

    def of(self, sources: Sequence[Source]) -> Checked:
        return check_program(sources, self.compile, self.retention).chosen(self.select, self.ignore)

    def show(self, checked: Checked) -> None:
        show_diagnostics(checked.diagnostics)
        if checked.program is None:
            say(counted(checked.errors, "error"))
        else:
            click.echo(f"{', '.join(self.paths)}: {_summary(checked.program, checked.warnings)}")

    def apply_fixes(self) -> None:
        before = program_sources(self.paths)
        after, fixes = fixed(before, self.of)
        for path, old, new in zip(self.paths, before, after, strict=True):
            if new.text != old.text:
                sinks.write_text(new.text, path, sys.stdout)
        for fix in fixes:
            edit = fix.edits[0]
            say(f"{edit.span!r}: {fix.title}")
        say(f"{counted(len(fixes), 'finding')} fixed" if fixes else "nothing to fix safely")


def _summary(program: Compiled, warnings: int) -> str:
    rules, queries = len(program.plan.rules), len(program.plan.graph_queries)
    parts = ["no errors", counted(warnings, "warning")]
    parts += [counted(rules, "rule")] if rules or not queries else []
    parts += [f"{queries} {'query' if queries == 1 else 'queries'}"] if queries else []
    return ", ".join(parts)


def _codes(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(code.strip().upper() for value in values for code in value.split(",") if code.strip())


@click.command()
@program_options
@click.option(
    "--format",
    type=click.Choice(["text", *REPORTS]),
    default="text",
    show_default=True,
    help="How findings are written.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 where there is a warning, too.")
@click.option(
    "--select", multiple=True, metavar="CODE", callback=_codes, help="Only warnings whose codes begin so: L, W3, L107."
)
@click.option("--ignore", multiple=True, metavar="CODE", callback=_codes, help="No warnings whose codes begin so.")
@click.option("--retention", metavar="D", help="The retention that runs will have, for windows that are longer.")
@click.option("--fix", is_flag=True, help="Apply the fixes that leave the answers as they are.")
@click.option("--each", is_flag=True, help="Each file is a program of its own.")
@click.option("--watch", is_flag=True, help="Check again whenever a file changes.")
def check(
    program: tuple[str, ...],
    facts: tuple[str, ...],
    functions: tuple[str, ...],
    format: str,
    strict: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    retention: str | None,
    fix: bool,
    each: bool,
    watch: bool,
) -> None:
    """Check a program. Several files are one program.

    A comment `% ignore L107: the reason` suppresses a finding, at the end of its line or before its statement.
    """
    try:
        kept = length(retention, None)
    except RunError as error:
        raise DataError(error.message, "--retention") from None
    compile_program = compile_sources(facts, functions)
    groups = [(path,) for path in program] if each else [program]
    requests = [CheckRequest(paths, compile_program, kept, select, ignore) for paths in groups]
    if watch:
        if format != "text":
            raise click.UsageError("--watch writes text: leave out --format")
        _watch(requests, fix)
    if fix:
        for request in requests:
            request.apply_fixes()
    results = [request.of(program_sources(request.paths)) for request in requests]
    if format == "text":
        for request, checked in zip(requests, results, strict=True):
            request.show(checked)
    else:
        click.echo(REPORTS[format](diagnostic for checked in results for diagnostic in checked.diagnostics))
    if any(checked.errors or (strict and checked.warnings) for checked in results):
        raise click.exceptions.Exit(1)


def _watch(requests: Sequence[CheckRequest], fix: bool, interval: float = 0.3) -> None:
    """Checks whenever a file of the program, or one that it includes, changes; until it is interrupted."""
    files = {Path(path) for request in requests for path in request.paths if path != "-"}
    seen: dict[Path, int | None] = {}
    while True:
        now = {path: path.stat().st_mtime_ns if path.exists() else None for path in files}
        if now != seen:
            say(time.strftime("%H:%M:%S"), coloured("checked ", "cyan"))
            try:
                for request in requests:
                    if fix:
                        request.apply_fixes()
                    checked = request.of(program_sources(request.paths))
                    request.show(checked)
                    if checked.program is not None:
                        files |= {Path(m.span.source.name) for m in checked.program.modules}
            except AuguryError as error:
                say(f": {error}", coloured("error", "red"))
            seen = {path: path.stat().st_mtime_ns if path.exists() else None for path in files}
        time.sleep(interval)
