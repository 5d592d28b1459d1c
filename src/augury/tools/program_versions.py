"""The versions of a program that `augury diff` compares: files, folders, and either in a git revision."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from augury.compiled import source_of
from augury.core.errors import DataError, Diagnostic, ProgramError, RunError, Source, Span
from augury.program import Program

Compile = Callable[[Sequence[Source]], Program]


def versions(old: str, new: str, compile: Compile) -> tuple[Program, Program]:
    """Two versions. A query is named by its file: where each has one, the new one is called as the old one is."""
    first, second = version(old, compile), version(new, compile)
    queries = [[query.name for query in program.plan.graph_queries] for program in (first, second)]
    if len(queries[0]) == len(queries[1]) == 1 and queries[0] != queries[1]:
        second = version(new, compile, called=queries[0][0])
    return first, second


def version(named: str, compile: Compile, called: str | None = None) -> Program:
    """The program of a version: a file, a folder of files, or either in a git revision, `HEAD~1:rules/fire.aug`.

    `called` is the name of its only query, whatever its file is called.
    """
    revision, colon, path = named.partition(":")
    if not colon or Path(named).exists():
        return compile(_sources(Path(named), called))
    with TemporaryDirectory(prefix="augury-") as folder:
        exported = _export(revision, path, Path(folder))
        try:
            return compile(_sources(exported, called))
        except ProgramError as error:  # names the files as they are called in the revision
            raise ProgramError(_moved(d, f"{folder}/", f"{revision}:") for d in error.diagnostics) from None


def _sources(path: Path, called: str | None) -> list[Source]:
    """The files of a program: one, or all of a folder."""
    files = [path]
    if path.is_dir():
        files = [file for ending in ("*.aug", "*.spaseq") for file in sorted(path.rglob(ending))]
    if not files:
        raise DataError("has no .aug and no .spaseq file", str(path))
    sources = [source_of(file) for file in files]
    return [
        replace(source, name=str(file.with_name(f"{called}.spaseq"))) if called and file.suffix == ".spaseq" else source
        for file, source in zip(files, sources, strict=True)
    ]


def _moved(diagnostic: Diagnostic, before: str, after: str) -> Diagnostic:
    """A diagnostic whose places are in files of other names."""

    def moved(span: Span) -> Span:
        return replace(span, source=replace(span.source, name=span.source.name.replace(before, after)))

    notes = tuple(n if n.span is None else replace(n, span=moved(n.span)) for n in diagnostic.notes)
    return replace(diagnostic, span=moved(diagnostic.span), notes=notes, fix=None)


def _export(revision: str, path: str, folder: Path) -> Path:
    """Writes the rules of a git revision, which may include one another, into a folder; the path of what is named.

    As in git, a path begins at the top of the repository, or here with `./`; one that is only here is found as well.
    """
    here = PurePosixPath(_git("rev-parse", "--show-prefix").strip())
    listed = _git("ls-tree", "-r", "--name-only", "--full-tree", revision).splitlines()
    wanted = [name for name in listed if name.endswith((".aug", ".spaseq"))]
    for name in wanted:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_git("show", f"{revision}:{name}"), encoding="utf-8")
    places = [(folder / here / path).resolve(), (folder / path).resolve()]
    if not path.startswith((".", "/")):
        places.reverse()
    exported = next((p for p in places if p.exists() and p.is_relative_to(folder.resolve())), None)
    if exported is None:
        raise DataError(f"revision `{revision}` has no `{path}`", hint=f"it has {', '.join(wanted[:5]) or 'no rules'}")
    return exported


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, encoding="utf-8")
    except FileNotFoundError:
        raise RunError("git is not installed", hint="a version may also be a file or a folder") from None
    if done.returncode:
        raise RunError(
            f"git: {done.stderr.strip().splitlines()[0]}", hint="a version is a file, a folder or REVISION:PATH"
        )
    return done.stdout
