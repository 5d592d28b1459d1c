"""The language server: what an editor asks, answered from the project. `augury lsp` runs it on standard streams."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lsprotocol import types as lsp

from augury.core.errors import AuguryError, ProgramError
from augury.editor import analysis
from augury.editor.completions import SuggestionKind, open_call, suggestions
from augury.editor.editor_server import PAUSE, EditorServer, path_of
from augury.editor.hover_texts import HoverTexts, word_at
from augury.editor.meanings import Names
from augury.editor.open_files import Document
from augury.editor.outline import (
    TOKEN_MODIFIERS,
    TOKEN_TYPES,
    OutlineEntry,
    OutlineKind,
    coloured_names,
    folds,
    outline,
)
from augury.editor.positions import Positions
from augury.editor.renaming import as_written, check_new_name, renames
from augury.editor.samples import run_sample
from augury.tools.formatting import formatted

RUN_SAMPLE, SHOW_ANSWERS = "augury.runSample", "augury.showAnswers"
_COMPLETION: dict[SuggestionKind, lsp.CompletionItemKind] = {
    "keyword": lsp.CompletionItemKind.Keyword,
    "event": lsp.CompletionItemKind.Event,
    "static": lsp.CompletionItemKind.Struct,
    "function": lsp.CompletionItemKind.Function,
    "variable": lsp.CompletionItemKind.Variable,
    "label": lsp.CompletionItemKind.Reference,
    "attribute": lsp.CompletionItemKind.Property,
    "type": lsp.CompletionItemKind.TypeParameter,
    "column": lsp.CompletionItemKind.Field,
    "file": lsp.CompletionItemKind.File,
    "prefix": lsp.CompletionItemKind.Module,
}
_SYMBOL: dict[OutlineKind, lsp.SymbolKind] = {
    "event": lsp.SymbolKind.Event,
    "static": lsp.SymbolKind.Struct,
    "function": lsp.SymbolKind.Function,
    "rule": lsp.SymbolKind.Method,
    "fact": lsp.SymbolKind.Constant,
    "output": lsp.SymbolKind.Interface,
    "query": lsp.SymbolKind.Class,
    "gpm": lsp.SymbolKind.Object,
    "stream": lsp.SymbolKind.Namespace,
    "module": lsp.SymbolKind.Module,
}


def make_server() -> EditorServer:
    """A server with all that it can do."""
    server = EditorServer()
    for register in (_follow_documents, _answer_names, _answer_typing, _answer_layout, _answer_lenses):
        register(server)
    return server


def _follow_documents(server: EditorServer) -> None:
    @server.feature(lsp.INITIALIZED)
    def initialized(_: lsp.InitializedParams) -> None:
        folders = [path_of(folder.uri) for folder in server.workspace.folders.values()]
        if not folders and server.workspace.root_path:
            folders = [Path(server.workspace.root_path)]
        server.project.folders = [folder.resolve() for folder in folders]
        encoding = server.workspace.position_encoding
        server.positions = Positions(str(getattr(encoding, "value", encoding)))

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        server.opened(params.text_document)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        server.changed(params.text_document.uri, params.text_document.version)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        server.closed(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
        server.project.refresh()
        saved = server.document(params.text_document.uri)
        for document in list(server.project.documents.values()):  # those that include what was saved
            if document is saved or saved in document.program or document in saved.program:
                server.check_soon(document, 0.0)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_files(_: lsp.DidChangeWatchedFilesParams) -> None:
        server.project.refresh()
        for document in list(server.project.documents.values()):
            server.check_soon(document, PAUSE)


def _answer_names(server: EditorServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        document = server.document(params.text_document.uri)
        offset = server.positions.offset(document, params.position)
        texts = HoverTexts(document, Names(server.project.related(document)), server.costs(document))
        name_place = document.name_at(offset)
        start, end = (name_place.start, name_place.end) if name_place else word_at(document.text, offset)
        text = texts.of(name_place) if name_place else texts.of_word(document.text[start:end])
        if not text:
            return None
        contents = lsp.MarkupContent(lsp.MarkupKind.Markdown, text)
        return lsp.Hover(contents, server.positions.range(document, start, end))

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def definition(params: lsp.DefinitionParams) -> list[lsp.Location]:
        name_place = server.name_at(params)
        return [] if name_place is None else list(map(server.location, server.project.definitions(name_place)))

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        name_place = server.name_at(params)
        uses = [] if name_place is None else server.project.uses(name_place)
        if not params.context.include_declaration:
            uses = [use for use in uses if use.name.role == "reference"]
        return list(map(server.location, uses))

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
        name_place = server.name_at(params)
        uses = [] if name_place is None else server.project.uses(name_place)
        return [
            lsp.DocumentHighlight(
                server.location(use).range,
                lsp.DocumentHighlightKind.Read if use.name.role == "reference" else lsp.DocumentHighlightKind.Write,
            )
            for use in uses
            if name_place is not None and use.document is name_place.document
        ]

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare_rename(params: lsp.PrepareRenameParams) -> lsp.Range | None:
        name_place = server.name_at(params)
        return (
            server.location(name_place).range
            if name_place is not None and renames(server.project, name_place)
            else None
        )

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        name_place = server.name_at(params)
        if name_place is None or not renames(server.project, name_place):
            return None
        check_new_name(server.project, name_place, params.new_name)
        edits: dict[str, list[lsp.TextEdit]] = {}
        for use in server.project.uses(name_place):
            edits.setdefault(server.uri(use.document), []).append(
                lsp.TextEdit(server.location(use).range, as_written(use, params.new_name))
            )
        return lsp.WorkspaceEdit(edits)

    @server.feature(
        lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL,
        lsp.SemanticTokensLegend(list(TOKEN_TYPES), list(TOKEN_MODIFIERS)),
    )
    def semantic_tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        document = server.document(params.text_document.uri)
        data: list[int] = []
        line = column = 0
        for start, end, type, modifiers in coloured_names(document, Names(server.project.related(document))):
            position = server.positions.position(document, start)
            length = server.positions.width(document.text[start:end])
            moved = position.line - line
            flags = sum(1 << TOKEN_MODIFIERS.index(modifier) for modifier in modifiers)
            data += [moved, position.character - (0 if moved else column), length, TOKEN_TYPES.index(type), flags]
            line, column = position.line, position.character
        return lsp.SemanticTokens(data)


def _answer_typing(server: EditorServer) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["(", ":", "?", '"', "'", "!", ","])
    )
    def completion(params: lsp.CompletionParams) -> lsp.CompletionList:
        document = server.document(params.text_document.uri)
        offset = server.positions.offset(document, params.position)
        start = offset
        while start and (document.text[start - 1].isalnum() or document.text[start - 1] in "_?"):
            start -= 1
        replaced = server.positions.range(document, start, offset)
        items = []
        for number, row in enumerate(suggestions(server.project, document, offset)):
            documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, row.about) if row.about else None
            items.append(
                lsp.CompletionItem(
                    row.text, kind=_COMPLETION[row.kind], detail=row.detail or None, documentation=documentation,
                    sort_text=f"{number:05}", filter_text=row.text, text_edit=lsp.TextEdit(replaced, row.text),
                )
            )  # fmt: skip
        return lsp.CompletionList(False, items)

    @server.feature(
        lsp.TEXT_DOCUMENT_SIGNATURE_HELP,
        lsp.SignatureHelpOptions(trigger_characters=["(", ","], retrigger_characters=[","]),
    )
    def signature_help(params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        document = server.document(params.text_document.uri)
        offset = server.positions.offset(document, params.position)
        entry = None if document.is_query else document.statements.at_offset(max(0, offset - 1))
        if entry is None:
            return None
        call = open_call(document.text[entry.start : offset])
        signature = Names(server.project.related(document)).signature(call[0]) if call is not None else None
        if call is None or signature is None:
            return None
        parameters = [lsp.ParameterInformation(parameter) for parameter in signature.parameters]
        active = min(call[1], max(0, len(parameters) - 1))
        row = lsp.SignatureInformation(str(signature), signature.about or None, parameters, active)
        return lsp.SignatureHelp([row], 0, active)

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll]),
    )
    def code_action(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        document = server.document(params.text_document.uri)
        start = server.positions.offset(document, params.range.start)
        end = server.positions.offset(document, params.range.end)
        actions = []
        for placed in analysis.diagnostics_of(document):
            fix = placed.diagnostic.fix
            if placed.edits and fix is not None and placed.start <= end and start <= placed.end:
                edit = lsp.WorkspaceEdit({server.uri(document): _text_edits(server, placed)})
                finding = server.finding(document, placed)
                kind = lsp.CodeActionKind.QuickFix
                actions.append(lsp.CodeAction(fix.title, kind, [finding], is_preferred=fix.safe, edit=edit))
            if placed.start <= end and start <= placed.end and placed.diagnostic.severity == "warning":
                actions.append(_suppression(server, document, placed))
        return actions


def _text_edits(server: EditorServer, placed: analysis.PlacedDiagnostic) -> list[lsp.TextEdit]:
    return [lsp.TextEdit(server.positions.range(d, start, end), text) for d, start, end, text in placed.edits]


def _suppression(server: EditorServer, document: Document, placed: analysis.PlacedDiagnostic) -> lsp.CodeAction:
    """The comment that ignores a finding, above the line where it stands."""
    line = document.text.rfind("\n", 0, placed.start) + 1
    if not document.is_query:
        entry = document.statements.at_offset(placed.start)
        if entry is not None and entry.statements:
            statement = entry.start + entry.statements[0].span.start
            line = document.text.rfind("\n", 0, statement) + 1
    sign = "#" if document.is_query else "%"
    text = f"{sign} ignore {placed.diagnostic.code}: why\n"
    edit = lsp.WorkspaceEdit({server.uri(document): [lsp.TextEdit(server.positions.range(document, line, line), text)]})
    return lsp.CodeAction(f"ignore {placed.diagnostic.code} here", lsp.CodeActionKind.QuickFix, edit=edit)


def _answer_layout(server: EditorServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        document = server.document(params.text_document.uri)
        try:
            text = formatted(document.source)
        except ProgramError:
            return None
        if text == document.text:
            return []
        return [lsp.TextEdit(server.positions.range(document, 0, len(document.text)), text)]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def document_symbol(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        document = server.document(params.text_document.uri)
        return [_symbol(server, document, entry) for entry in outline(document)]

    @server.feature(lsp.WORKSPACE_SYMBOL)
    def workspace_symbol(params: lsp.WorkspaceSymbolParams) -> list[lsp.WorkspaceSymbol]:
        result = []
        for path in server.project.paths():
            document = server.project.document(path)
            for entry in outline(document) if document is not None else ():
                if params.query.lower() in entry.name.lower():
                    name_place = server.positions.range(document, entry.name_start, entry.name_end)  # type: ignore[arg-type]
                    location = lsp.Location(server.uri(document), name_place)  # type: ignore[arg-type]
                    result.append(lsp.WorkspaceSymbol(location, entry.name, _SYMBOL[entry.kind]))
        return result[:500]

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    def folding(params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        rows = folds(server.document(params.text_document.uri))
        return [lsp.FoldingRange(first, last, kind=lsp.FoldingRangeKind(kind)) for first, last, kind in rows]


def _symbol(server: EditorServer, document: Document, entry: OutlineEntry) -> lsp.DocumentSymbol:
    return lsp.DocumentSymbol(
        entry.name,
        _SYMBOL[entry.kind],
        server.positions.range(document, entry.start, entry.end),
        server.positions.range(document, entry.name_start, entry.name_end),
        entry.detail,
        children=[_symbol(server, document, part) for part in entry.parts],
    )


def _answer_lenses(server: EditorServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    def code_lens(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        document = server.document(params.text_document.uri)
        root = server.project.root(document)
        lenses = []
        if document.remarks.events:
            line = document.remarks.line
            command = lsp.Command("run on sample", RUN_SAMPLE, arguments=[server.uri(document)])
            lenses.append(lsp.CodeLens(lsp.Range(lsp.Position(line, 0), lsp.Position(line, 0)), command))
        run = server.runs.get(root.path)
        if run is not None:
            for entry in outline(document):
                if entry.kind in ("rule", "query") and entry.name in run.counts:
                    count = run.counts[entry.name]
                    title = f"{count:,} answer{'' if count == 1 else 's'}"
                    title += "" if run.is_current else " before the change"
                    command = lsp.Command(title, SHOW_ANSWERS, arguments=[server.uri(document), entry.name])
                    name_place = server.positions.range(document, entry.name_start, entry.name_start)
                    lenses.append(lsp.CodeLens(name_place, command))
        return lenses

    @server.command(RUN_SAMPLE)
    async def run(uri: str) -> dict[str, object]:
        document = server.document(uri)
        try:
            result = await asyncio.to_thread(run_sample, server.project, document)
        except AuguryError as error:
            server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Error, str(error)))
            return {"error": str(error)}
        server.runs[server.project.root(document).path] = result
        total = ", ".join(f"{count:,} {type}" for type, count in result.counts.items()) or "no answers"
        server.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, f"{result.events:,} events: {total}"))
        await server.refresh_lenses()
        return {"counts": result.counts, "text": result.text()}

    @server.command(SHOW_ANSWERS)
    def show(uri: str, type: str) -> dict[str, object]:
        document = server.document(uri)
        result = server.runs.get(server.project.root(document).path)
        return {"text": "" if result is None else "\n".join(result.answers.get(type, ())) + "\n"}
