"""`augury test`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import click

from augury import sinks
from augury.cli.options import functions_option, gathered
from augury.core.errors import counted
from augury.run import ENGINES
from augury.terminal import progress, say, show
from augury.testing import Case, case_files, read_spec
from augury.tools.case_reports import as_json, junit
from augury.tools.case_runs import CaseResult, run_cases, selected
from augury.tools.coverage_reports import coverage_html, coverage_lcov, coverage_text
from augury.tools.mutation import MutationResult, mutate
from augury.tools.rule_coverage import Coverage, CoverageRun
from augury.tools.update_cases import write_updates


@dataclass(frozen=True)
class CoverageOptions:
    """Whether coverage is measured, and where it is written."""

    coverage: Annotated[
        bool, click.option("--coverage", is_flag=True, help="Show which parts of the rules the cases decide.")
    ]
    html: Annotated[
        str | None, click.option("--html", metavar="FILE", help="Write the coverage as a page over the source.")
    ]
    lcov: Annotated[str | None, click.option("--lcov", metavar="FILE", help="Write the coverage for other tools.")]
    least: Annotated[
        float | None,
        click.option(
            "--min", "least", type=click.FloatRange(0, 100), metavar="PERCENT", help="Fail where coverage is below."
        ),
    ]

    @property
    def wanted(self) -> bool:
        return self.coverage or bool(self.html or self.lcov) or self.least is not None


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("-k", "expression", default="", metavar="EXPR", help="Only cases of this name: 'fire and not late'.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only cases with one of these tags.")
@click.option("--engine", type=click.Choice(ENGINES), default="embedded", show_default=True)
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text")
@click.option("--junit", "junit_file", metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--update", is_flag=True, help="Write the actual results into the files, after asking.")
@click.option("--yes", is_flag=True, help="With --update: do not ask.")
@click.option("--mutate", "mutating", is_flag=True, help="Break each part of the rules; list what no case notices.")
@functions_option
@gathered(CoverageOptions, "measured")
def test(
    paths: tuple[str, ...],
    expression: str,
    tags: tuple[str, ...],
    engine: str,
    format_: str,
    junit_file: str | None,
    update: bool,
    yes: bool,
    mutating: bool,
    functions: tuple[str, ...],
    measured: CoverageOptions,
) -> None:
    """Run the cases of TOML files, here or at PATH; a folder has all files with a [[case]]."""
    cases = selected(_read(paths or (".",), functions), expression, tags)
    if not cases:
        if expression or tags:
            say(f"no cases that meet {expression or ', '.join(tags)}")
        else:
            say(f"no cases in {', '.join(paths or ('this folder',))}: a case is a [[case]] of a .toml file")
        raise click.exceptions.Exit(1)
    results: list[CaseResult] = []
    with progress("running cases") as tell:
        for result in run_cases(cases, engine):
            results.append(result)
            tell(f"{len(results)} of {len(cases)} cases")
    if junit_file:
        sinks.write_text(junit(results), junit_file, sys.stdout)
    failed = [result for result in results if not result.passed]
    if update and failed:
        _update(failed, yes)
        return
    coverage = _measure(cases) if measured.wanted else None
    mutation = _mutate(cases) if mutating and not failed else None
    if format_ == "json":
        show(json.dumps(as_json(results) | _more(coverage, mutation), indent=2, ensure_ascii=False))
    else:
        _show(results, coverage if measured.coverage or measured.least is not None else None, mutation)
    if coverage is not None:
        _write(coverage, measured)
    low = coverage is not None and measured.least is not None and coverage.percent < measured.least
    if low:
        assert coverage is not None
        say(f"coverage {coverage.percent:.1f}% is below {measured.least:g}%")
    if mutating and failed:
        say("no mutants: a case that fails notices everything")
    if failed or low:
        raise click.exceptions.Exit(1)


def _read(paths: Sequence[str], functions: Sequence[str] = ()) -> list[Case]:
    """The cases of some files; those that name no Python file have the one of the command line."""
    resolved = [str(Path(name).resolve()) for name in functions]
    programs: dict[object, object] = {}
    files = list(dict.fromkeys(file for path in paths for file in case_files(path)))
    cases = [case for file in files for case in read_spec(file, programs)]
    return [replace(case, settings={"functions": resolved, **case.settings}) if resolved else case for case in cases]


def _show(results: Sequence[CaseResult], coverage: Coverage | None, mutation: MutationResult | None) -> None:
    """What failed and why, then a line of counts, then coverage and mutants."""
    failed = [result for result in results if not result.passed]
    for result in failed:
        show(f"FAILED {result.case.path}: {result.case.name}")
        show("\n".join(f"  {line}" if line else "" for line in result.message.splitlines()) + "\n")
    seconds = sum(result.seconds for result in results)
    parts = [f"{len(failed)} failed"] if failed else []
    show(
        f"{counted(len(results), 'case')}: {', '.join([*parts, f'{len(results) - len(failed)} passed'])} in {seconds:.2f} s"
    )
    if coverage is not None:
        show("\n" + coverage_text(coverage))
    if mutation is not None:
        alive, total = mutation.survivors, len(mutation.mutants)
        if not total:
            show("\nno mutants: the cases have no rules that can be changed; queries in SPAseQ are not")
            return
        show(
            f"\n{counted(total, 'mutant')}: {total - len(alive)} noticed, {len(alive)} survived; {mutation.invalid} more did not compile"
        )
        for mutant in alive:
            show(f"  {mutant.variant.span!r}  {mutant.variant.kind}: {mutant.variant.change}")


def _measure(cases: Sequence[Case]) -> Coverage:
    run = CoverageRun()
    with progress("measuring coverage") as tell:
        for number, case in enumerate(cases, 1):
            run.add(case)
            tell(f"coverage: {number} of {len(cases)} cases")
    return run.coverage


def _mutate(cases: Sequence[Case]) -> MutationResult:
    with progress("running mutants") as tell:
        return mutate(cases, tell)


def _write(coverage: Coverage, measured: CoverageOptions) -> None:
    for path, text in ((measured.html, coverage_html), (measured.lcov, coverage_lcov)):
        if path:
            sinks.write_text(text(coverage), path, sys.stdout)
            say(f"coverage written to {path}")


def _more(coverage: Coverage | None, mutation: MutationResult | None) -> dict[str, object]:
    more: dict[str, object] = {}
    if coverage is not None:
        kinds = {kind: {"reached": done, "of": goals} for kind, (done, goals) in coverage.counts().items()}
        parts = [
            {"kind": part.kind, "rule": part.rule, "at": repr(part.span), "text": part.span.text, **part.goals}
            for part in coverage.parts.values()
        ]
        more["coverage"] = {"percent": round(coverage.percent, 2), "kinds": kinds, "parts": parts}
    if mutation is not None:
        survivors = [
            {"at": repr(m.variant.span), "kind": m.variant.kind, "change": m.variant.change} for m in mutation.survivors
        ]
        more["mutation"] = {"mutants": len(mutation.mutants), "survivors": survivors}
    return more


def _update(failed: Sequence[CaseResult], yes: bool) -> None:
    """Shows what differs, asks, and writes the actual results."""
    stopped = [result for result in failed if result.error]
    for result in failed:
        show(f"{result.case.path}: {result.case.name}")
        show("\n".join(f"  {line}" for line in result.message.partition("\n\n")[0].splitlines()) + "\n")
    if not yes and not click.confirm(f"write the actual results of {counted(len(failed) - len(stopped), 'case')}?"):
        raise click.exceptions.Exit(1)
    for path in write_updates([result for result in failed if not result.error]):
        say(f"{Path(path)}: updated")
    if stopped:
        say(f"{counted(len(stopped), 'case')} could not be run, and stay as they are")
        raise click.exceptions.Exit(1)
