"""What is wrong with a document: at once for the statement that is typed, then for the whole program.

Checking a program of 500 rules takes a second, a pause in typing less. So the statements that have changed are compiled
with the declarations and the few rules that they are about; that gives their errors within milliseconds. All findings
follow when the whole program is checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from augury.algebra.plan import Plan
from augury.compiled import Compiled
from augury.core.errors import Diagnostic, Findings, Fix, ProgramError, Source, Span
from augury.editor.open_files import Document, ProjectFiles
from augury.editor.statements_read import WrittenStatement
from augury.language.rules import syntax as s
from augury.lint.fixes import with_fix
from augury.tools.checking import check_program

_MOST_BESIDE = 12  # rules that a changed one is compiled with
_MOST_CHANGED = 8  # statements; where more change, as when text is pasted, the whole program is checked


@dataclass(frozen=True)
class PlacedDiagnostic:
    """A finding with its place in a document as it is now; `edits` is what its fix changes there, by offsets."""

    start: int
    end: int
    diagnostic: Diagnostic
    edits: tuple[tuple[Document, int, int, str], ...] = ()


@dataclass(frozen=True)
class WholeCheck:
    """A program as it was when its check began: documents with their versions and texts."""

    root: Document
    sources: tuple[Source, ...]
    versions: dict[Document, int] = field(hash=False)
    unsaved: dict[Path, str] = field(hash=False)
    facts: tuple[str, ...] = ()

    def run(self) -> tuple[Compiled | None, tuple[Diagnostic, ...]]:
        """Checks the program, with its lints; the documents are not looked at, so that any thread may do it."""

        def compile(sources: Iterable[Source]) -> Compiled:
            return Compiled.of(sources, facts=self.facts, unsaved=self.unsaved)

        checked = check_program(self.sources, compile)
        return checked.program, checked.diagnostics


def whole_check(project: ProjectFiles, document: Document) -> WholeCheck:
    """The check of the program that a document belongs to."""
    root = project.root(document)
    program = project.program(document)
    for member in program:
        member.program = tuple(program)
    versions = {member: member.version for member in program}
    sources = tuple(project.sources(root))
    facts = tuple(dict.fromkeys(name for member in program for name in member.remarks.fact_names))
    return WholeCheck(root, sources, versions, dict(project.unsaved()), facts)


def take_whole(check: WholeCheck, program: Compiled | None, diagnostics: Iterable[Diagnostic]) -> list[Document]:
    """Gives the findings of a check to the documents that have not changed since; these documents."""
    by_name: dict[str, list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        by_name.setdefault(diagnostic.span.source.name, []).append(diagnostic)
    current = [document for document, version in check.versions.items() if document.version == version]
    for document in current:
        findings = next((ds for name, ds in by_name.items() if _is_of(document, name)), [])
        document.whole = tuple(findings)
        document.checked_version = document.version
        if program is not None:
            document.checked = program
        if not document.is_query:
            for entry in document.statements.entries:
                entry.meant = [
                    (d.span.start - entry.start, d.span.end - entry.start, d)
                    for d in findings
                    if entry.start <= d.span.start < max(entry.end, entry.start + 1) and not _was_read(d, entry)
                ]
            _take_last(document, findings)
    return current


def _take_last(document: Document, findings: list[Diagnostic]) -> None:
    """What is said about the end of the text belongs to the last statement."""
    entries = document.statements.entries
    if entries:
        last = entries[-1]
        last.meant += [
            (d.span.start - last.start, d.span.end - last.start, d) for d in findings if d.span.start >= last.end
        ]


def _was_read(diagnostic: Diagnostic, entry: WrittenStatement) -> bool:
    """Whether reading the statement gave the same finding."""
    return any((d.code, d.message) == (diagnostic.code, diagnostic.message) for d in entry.findings)


def _is_of(document: Document, name: str) -> bool:
    return name == str(document.path) or Path(name).resolve() == document.path


def check_changed(document: Document, changed: list[WrittenStatement]) -> bool:
    """Checks the statements that have changed, with what they are about; False where that is left to the whole check."""
    for entry in changed:
        entry.meant = []
    if len(changed) > _MOST_CHANGED:
        return False
    wanted = [entry for entry in changed if entry.statements and not entry.findings]
    if not wanted:
        return True
    members = [member for member in (*document.program, document) if not member.is_query]
    others = list({id(e): e for m in members for e in m.statements.entries}.values())
    names = {name for entry in wanted for name in entry.uses}
    fact_names = {name for member in members for name in member.remarks.fact_names}
    declared = [entry for entry in others if entry.declares and entry.defines & names and entry not in wanted]
    rules = [entry for entry in others if not entry.declares and entry.defines & names and entry not in wanted]
    chosen = [*declared, *rules[:_MOST_BESIDE], *wanted]
    left = {name for entry in rules[_MOST_BESIDE:] for name in entry.defines if _is_static(entry, name)}
    statements = [x for entry in chosen for x in entry.statements if not isinstance(x, s.OutputDecl)]
    module = s.Module(tuple(statements), (), Span(Source(str(document.path), ""), 0, 0))
    for diagnostic in _errors(module, [*fact_names, *left]):
        for entry in wanted:
            if diagnostic.span.source == entry.source:
                entry.meant.append((diagnostic.span.start, diagnostic.span.end, with_fix(diagnostic)))
    return True


def _is_static(entry: WrittenStatement, name: str) -> bool:
    return any(o.name == name and o.kind == "static" for o in entry.names)


def _errors(module: s.Module, facts: list[str]) -> list[Diagnostic]:
    try:
        Compiled(Plan(), facts=tuple(facts)).with_modules([module])
    except ProgramError as error:
        return [d for d in error.diagnostics if d.severity == "error"]
    return []


def diagnostics_of(document: Document) -> list[PlacedDiagnostic]:
    """All that is wrong with a document, at its places in the text as it is now."""
    if document.is_query:
        return [_placed(document, d.span.start, d.span.end, d, document.version == document.checked_version)
            for d in document.whole]  # fmt: skip
    result: list[PlacedDiagnostic] = []
    for entry in document.statements.entries:
        for diagnostic in entry.findings:
            span = diagnostic.span
            result.append(
                PlacedDiagnostic(
                    entry.start + span.start,
                    entry.start + span.end,
                    diagnostic,
                    _edits(document, diagnostic.fix, entry.start, entry.source),
                )
            )
        for start, end, diagnostic in entry.meant:
            if diagnostic.span.source == entry.source:
                edits = _edits(document, diagnostic.fix, entry.start, entry.source)
                result.append(PlacedDiagnostic(entry.start + start, entry.start + end, diagnostic, edits))
            else:
                whole = document.version == document.checked_version
                result.append(_placed(document, entry.start + start, entry.start + end, diagnostic, whole))
    return result


def _placed(document: Document, start: int, end: int, diagnostic: Diagnostic, fixable: bool) -> PlacedDiagnostic:
    edits = _edits(document, diagnostic.fix, 0, diagnostic.span.source) if fixable else ()
    return PlacedDiagnostic(start, end, diagnostic, edits)


def _edits(
    document: Document, fix: Fix | None, offset: int, source: Source
) -> tuple[tuple[Document, int, int, str], ...]:
    """The edits of a fix, where all of them are in one source."""
    if fix is None or any(edit.span.source != source for edit in fix.edits):
        return ()
    return tuple((document, offset + e.span.start, offset + e.span.end, e.text) for e in fix.edits)


def check_query(document: Document) -> None:
    """Checks a query by itself, as it is typed."""
    findings = Findings()
    try:
        document.checked = Compiled.of([document.source])
        findings.items.extend(document.checked.warnings)
    except ProgramError as error:
        findings.items.extend(error.diagnostics)
    document.whole = tuple(map(with_fix, findings.sorted()))
    document.checked_version = document.version
