"""The state of a language server: the project of its client, what is being checked, and the samples that were run."""

from __future__ import annotations

import asyncio
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from augury.core.errors import Diagnostic
from augury.editor import analysis
from augury.editor.open_files import Document, NamePlace, ProjectFiles
from augury.editor.positions import Positions
from augury.editor.samples import SampleRun, saved_costs

PAUSE = 0.2  # seconds without a change, after which the whole program is checked
_UNUSED = ("L102", "L103", "L104", "L109", "L110", "W303")


class AskedPlace(Protocol):
    """What an editor asks about: a position in a document."""

    @property
    def text_document(self) -> lsp.TextDocumentIdentifier: ...
    @property
    def position(self) -> lsp.Position: ...


def path_of(uri: str) -> Path:
    """The path of a file's URI; of a text that is not saved, a name beside the workspace."""
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if parts.scheme != "file":
        return Path("/") / (path if path.endswith((".aug", ".spaseq")) else f"{path}.aug")
    return Path(path.removeprefix("/") if re.match(r"^/[A-Za-z]:", path) else path)


class EditorServer(LanguageServer):
    """The state of a client: its project, how it counts columns, and the samples that were run."""

    def __init__(self) -> None:
        super().__init__("augury", version("augury"))
        self.project = ProjectFiles()
        self.positions = Positions()
        self.uris: dict[Path, str] = {}
        self.runs: dict[Path, SampleRun] = {}
        self._due: dict[Path, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # Documents

    def document(self, uri: str) -> Document:
        path = path_of(uri)
        document = self.project.document(path)
        if document is None:
            document = self.project.opened(path, self.workspace.get_text_document(uri).source, 0)
        return document

    def uri(self, document: Document) -> str:
        return self.uris.get(document.path) or document.path.as_uri()

    def opened(self, item: lsp.TextDocumentItem) -> None:
        path = path_of(item.uri).resolve()
        self.uris[path] = item.uri
        self.project.refresh()
        document = self.project.opened(path, item.text, item.version)
        self.check_soon(document, 0.0)

    def changed(self, uri: str, number: int) -> None:
        """Takes what was typed: errors of the statement at once, all findings after a pause."""
        document = self.document(uri)
        changed = document.change(self.workspace.get_text_document(uri).source, number)
        if document.is_query:
            analysis.check_query(document)
            self.publish(document)
        elif analysis.check_changed(document, changed):
            self.publish(document)
        self.check_soon(document, PAUSE)

    def closed(self, uri: str) -> None:
        path = path_of(uri).resolve()
        self.project.closed(path)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))
        self.uris.pop(path, None)

    # Findings

    def check_soon(self, document: Document, seconds: float) -> None:
        """Checks the program of a document after a pause, unless more is typed."""
        handle = self._due.pop(document.path, None)
        if handle is not None:
            handle.cancel()

        def begin() -> None:
            task = asyncio.ensure_future(self._check(document))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._due[document.path] = asyncio.get_running_loop().call_later(seconds, begin)

    async def _check(self, document: Document) -> None:
        check = analysis.whole_check(self.project, document)
        program, diagnostics = await asyncio.to_thread(check.run)
        for current in analysis.take_whole(check, program, diagnostics):
            if current.is_open:
                self.publish(current)
        await self.refresh_lenses()

    async def refresh_lenses(self) -> None:
        """Has the client ask for lenses again, if it can."""
        workspace = self.client_capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            await self.workspace_code_lens_refresh_async(None)

    def publish(self, document: Document) -> None:
        findings = [self.finding(document, placed) for placed in analysis.diagnostics_of(document)]
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(self.uri(document), findings, document.version)
        )

    def finding(self, document: Document, placed: analysis.PlacedDiagnostic) -> lsp.Diagnostic:
        diagnostic = placed.diagnostic
        message = diagnostic.message + (f"\nhint: {diagnostic.hint}" if diagnostic.hint else "")
        message += "".join(f"\nnote: {note.text}" for note in diagnostic.notes if note.span is None)
        return lsp.Diagnostic(
            self.positions.range(document, placed.start, max(placed.end, placed.start + 1)),
            message,
            lsp.DiagnosticSeverity.Error if diagnostic.severity == "error" else lsp.DiagnosticSeverity.Warning,
            diagnostic.code,
            source="augury",
            tags=[lsp.DiagnosticTag.Unnecessary] if diagnostic.code in _UNUSED else None,
            related_information=self._related(document, diagnostic) or None,
        )

    def _related(self, document: Document, diagnostic: Diagnostic) -> list[lsp.DiagnosticRelatedInformation]:
        """The other places of a finding: those that are in files, and not in a statement that is being typed."""
        result = []
        for note in diagnostic.notes:
            if note.span is None:
                continue
            path = Path(note.span.source.name)
            other = document if path == document.path else self.project.document(path)
            start, end = note.span.start, note.span.end
            if other is None:
                entry = next((e for e in document.statements.entries if e.source == note.span.source), None)
                if entry is None:
                    continue
                other, start, end = document, entry.start + start, entry.start + end
            location = lsp.Location(self.uri(other), self.positions.range(other, start, end))
            result.append(lsp.DiagnosticRelatedInformation(location, note.text))
        return result

    # Names

    def location(self, name_place: NamePlace) -> lsp.Location:
        return lsp.Location(
            self.uri(name_place.document), self.positions.range(name_place.document, name_place.start, name_place.end)
        )

    def name_at(self, where: AskedPlace) -> NamePlace | None:
        document = self.document(where.text_document.uri)
        return document.name_at(self.positions.offset(document, where.position))

    def costs(self, document: Document) -> dict[str, dict[str, Any]]:
        """What rules cost: in the last run on the sample, else in the profile that a remark names."""
        root = self.project.root(document)
        run = self.runs.get(root.path)
        return run.costs if run is not None else saved_costs(root) or saved_costs(document)
