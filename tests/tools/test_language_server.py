"""The language server over its protocol, with a client as editors have one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from pytest_lsp import ClientServerConfig, LanguageClient

pytestmark = pytest.mark.asyncio(loop_scope="module")
COMMAND = [sys.executable, "-m", "augury", "lsp"]

LIBRARY = """\
% Readings of the anemometers.
event wind(station: string, speed: float).
static near(fire: string, station: string).
event reported(fire: string).
"""
FIRE = """\
%! events: events.csv
%! facts: near=near.csv
include "lib.aug".
output fire_alarm.

% The wind rises.
increase(S, New) <- (wind(S, Old) SEQ wind(S, New)).30min WHERE New > Old * 1.1.
fire_alarm(P) <-
    (reported(P) AND increase(S, _)).2h WHERE near(P, S).
"""
QUERY = """\
PREFIX e: <http://e.org/>
SELECT ?car WITHIN 10 MINUTES
FROM STREAM S <http://e.org/cars>
WHERE {
    SEQ(A, B)
    DEFINE GPM A ON S { ?car e:speed ?v . FILTER(?v > 100) }
    DEFINE GPM B ON S { ?car e:speed ?w . FILTER(?w > ?v) }
}
"""
EVENTS = "type,station,speed,fire,time\nwind,s1,10,,2026-07-01 12:00\nreported,,,creek,2026-07-01 12:05\nwind,s1,12.5,,2026-07-01 12:20\n"


class Editor:
    """A client with a folder, as an editor has it."""

    def __init__(self, client: LanguageClient, folder: Path) -> None:
        self.client, self.folder, self.texts, self.version = client, folder, dict[str, str](), 0

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def open(self, name: str, text: str) -> None:
        self.write(name, text)
        self.texts[name] = text
        language = "spaseq" if name.endswith(".spaseq") else "augury"
        item = lsp.TextDocumentItem(self.uri(name), language, self.version, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def change(self, name: str, text: str) -> None:
        self.texts[name], self.version = text, self.version + 1
        identifier = lsp.VersionedTextDocumentIdentifier(self.version, self.uri(name))
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, [change]))

    def type(self, name: str, before: str, new: str) -> None:
        """Puts a text behind another, as it is typed: a change of a part of the document."""
        where = self.position(name, before + "|")
        self.version += 1
        offset = self.texts[name].index(before) + len(before)
        self.texts[name] = self.texts[name][:offset] + new + self.texts[name][offset:]
        identifier = lsp.VersionedTextDocumentIdentifier(self.version, self.uri(name))
        change = lsp.TextDocumentContentChangePartial(lsp.Range(where, where), new)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, [change]))

    def position(self, name: str, marked: str) -> lsp.Position:
        """Where a text stands, at its `|`."""
        offset = self.texts[name].index(marked.replace("|", "")) + marked.index("|")
        before = self.texts[name][:offset]
        column = before.rpartition("\n")[2]
        return lsp.Position(before.count("\n"), len(column.encode("utf-16-le")) // 2)

    def place(self, name: str, marked: str) -> tuple[lsp.TextDocumentIdentifier, lsp.Position]:
        return lsp.TextDocumentIdentifier(self.uri(name)), self.position(name, marked)

    async def codes(self, name: str, *wanted: str) -> list[str]:
        """The codes of the findings, once they are as wanted, or a while has passed."""
        codes: list[str] = []
        for _ in range(1200):
            codes = sorted(str(d.code) for d in self.client.diagnostics.get(self.uri(name), ()))
            if codes == sorted(wanted):
                break
            await asyncio.sleep(0.05)
        return codes

    async def hover(self, name: str, marked: str) -> str:
        result = await self.client.text_document_hover_async(lsp.HoverParams(*self.place(name, marked)))
        return result.contents.value if result is not None and isinstance(result.contents, lsp.MarkupContent) else ""

    async def checked(self) -> None:
        """Waits until the files that were opened are checked, which texts on hovering come from."""
        for name, marked, text in (
            ("fire.aug", "increa|se(S, New)", "window: "),
            ("lib.aug", "event wi|nd", "event wind("),
            ("fast.spaseq", "SEL|ECT", "10min"),
        ):
            for _ in range(1200):
                if text in (shown := await self.hover(name, marked)):
                    break
                await asyncio.sleep(0.05)
            assert text in shown

    async def complete(self, name: str, marked: str) -> dict[str, lsp.CompletionItem]:
        result = await self.client.text_document_completion_async(lsp.CompletionParams(*self.place(name, marked)))
        assert isinstance(result, lsp.CompletionList)
        return {item.label: item for item in result.items}

    def shown(self, location: lsp.Location) -> str:
        """A location as `lib.aug:2`, with the text that it covers."""
        name = location.uri.rpartition("/")[2]
        text = self.texts.get(name) or (self.folder / name).read_text()
        lines = text.split("\n")
        start, end = location.range.start, location.range.end
        return f"{name}:{start.line + 1} {lines[start.line][start.character : end.character]}"


@pytest_lsp.fixture(config=ClientServerConfig(server_command=COMMAND), scope="module")  # type: ignore[untyped-decorator]
async def started(lsp_client: LanguageClient, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[None, None]:
    folder = tmp_path_factory.mktemp("rules")
    lsp_client.folder = folder  # type: ignore[attr-defined]
    (folder / "lib.aug").write_text(LIBRARY)
    (folder / "events.csv").write_text(EVENTS)
    (folder / "near.csv").write_text("fire,station\ncreek,s1\n")
    params = lsp.InitializeParams(
        capabilities=lsp.ClientCapabilities(),
        workspace_folders=[lsp.WorkspaceFolder(folder.as_uri(), "rules")],
    )
    await lsp_client.initialize_session(params)
    yield
    await lsp_client.shutdown_session()


@pytest.fixture
def editor(started: LanguageClient) -> Editor:
    editor = Editor(started, started.folder)  # type: ignore[attr-defined]
    editor.open("lib.aug", LIBRARY)
    editor.open("fire.aug", FIRE)
    editor.open("fast.spaseq", QUERY)
    return editor


async def test_findings_come_as_one_types(editor: Editor) -> None:
    assert await editor.codes("fire.aug") == []
    editor.change("fire.aug", FIRE.replace("New > Old * 1.1", "New > Older * 1.1"))
    assert await editor.codes("fire.aug", "E301") == ["E301"]
    [finding] = editor.client.diagnostics[editor.uri("fire.aug")]
    assert finding.message.startswith("`Older` is not bound") and finding.range.start == editor.position(
        "fire.aug", "|Older"
    )
    editor.change("fire.aug", FIRE + "alarm(X <- wind(X, _).\n")
    assert await editor.codes("fire.aug", "E101") == ["E101"]
    editor.change("fire.aug", FIRE + "wet(S) <- wind(S, V) WHERE V > 20, V > 10.\n")  # a lint, after the whole check
    assert await editor.codes("fire.aug", "L104", "L109") == ["L104", "L109"]
    editor.change("fast.spaseq", QUERY.replace("SEQ(A, B)", "SEQ(A, C)"))
    assert await editor.codes("fast.spaseq", "E201") == ["E201"]
    editor.change("fast.spaseq", QUERY)
    editor.change("fire.aug", FIRE)
    assert await editor.codes("fire.aug") == [] and await editor.codes("fast.spaseq") == []


async def test_a_change_of_an_included_file_that_is_not_saved(editor: Editor) -> None:
    assert await editor.codes("fire.aug") == []
    editor.change("lib.aug", LIBRARY.replace("speed: float", "speed: string"))
    assert await editor.codes("fire.aug", "E601", "E601") == ["E601", "E601"]
    editor.change("lib.aug", LIBRARY)
    assert await editor.codes("fire.aug") == []


async def test_a_mistake_in_a_long_file(editor: Editor) -> None:
    rules = "".join(
        f"alarm{n}(S, V) <- (wind(S, V) SEQ smoke{n % 50}(S, L)).{n % 30 + 1}min WHERE V > {n}.5, L < {n * 2}.\n"
        for n in range(300)
    )
    editor.open("long.aug", "event wind(station: string, speed: float).\n" + rules)
    while editor.uri("long.aug") not in editor.client.diagnostics:
        await asyncio.sleep(0.05)
    editor.type("long.aug", "alarm250(S, V) <- (wind(S, V) SEQ smoke0(S, L)).11min WHERE V > 250.5, L < 500", " + Q")
    assert "E301" in await editor.codes("long.aug", "E301")
    editor.client.text_document_did_close(
        lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(editor.uri("long.aug")))
    )


async def test_hover(editor: Editor) -> None:
    await editor.checked()
    increase = await editor.hover("fire.aug", "increa|se(S, New)")
    assert "event increase(S: string, New: float)" in increase and "The wind rises." in increase
    assert "window: its events last at most 30min" in increase and "key: S" in increase and "horizon: 30min" in increase
    assert "Readings of the anemometers." in await editor.hover("fire.aug", "(wi|nd(S, Old)")
    assert (
        "near declares" not in (station := await editor.hover("fire.aug", "increase(|S, _)")) and "S: string" in station
    )
    assert "the second begins after the first has ended" in await editor.hover("fire.aug", "SE|Q wind")
    assert "```spaseq\nFROM STREAM S" in await editor.hover("fast.spaseq", "A ON |S")
    assert "DEFINE GPM B" in await editor.hover("fast.spaseq", "SEQ(A, |B)")
    assert "10min" in await editor.hover("fast.spaseq", "SEL|ECT")
    assert "in A, B" in await editor.hover("fast.spaseq", "?c|ar WITHIN")


async def test_definitions_references_and_renaming_across_files(editor: Editor) -> None:
    await editor.checked()
    client = editor.client
    definition = await client.text_document_definition_async(
        lsp.DefinitionParams(*editor.place("fire.aug", "SEQ wi|nd"))
    )
    assert isinstance(definition, list)
    assert [editor.shown(place) for place in definition if isinstance(place, lsp.Location)] == ["lib.aug:2 wind"]
    included = await client.text_document_definition_async(
        lsp.DefinitionParams(*editor.place("fire.aug", '"lib|.aug"'))
    )
    assert isinstance(included, list) and isinstance(included[0], lsp.Location)
    assert included[0].uri == editor.uri("lib.aug")
    references = await client.text_document_references_async(
        lsp.ReferenceParams(lsp.ReferenceContext(True), *editor.place("lib.aug", "event wi|nd"))
    )
    assert [editor.shown(place) for place in references or ()] == [
        "lib.aug:2 wind",
        "fire.aug:7 wind",
        "fire.aug:7 wind",
    ]
    edit = await client.text_document_rename_async(lsp.RenameParams(*editor.place("lib.aug", "wi|nd"), "breeze"))
    assert edit is not None and edit.changes is not None
    assert {uri.rpartition("/")[2]: len(edits) for uri, edits in edit.changes.items()} == {"fire.aug": 2, "lib.aug": 1}
    local = await client.text_document_rename_async(lsp.RenameParams(*editor.place("fire.aug", "(|S, Old)"), "Station"))
    assert local is not None and local.changes is not None and len(local.changes[editor.uri("fire.aug")]) == 3
    variable = await client.text_document_rename_async(lsp.RenameParams(*editor.place("fast.spaseq", "?c|ar"), "auto"))
    assert variable is not None and variable.changes is not None
    assert {edit.new_text for edit in variable.changes[editor.uri("fast.spaseq")]} == {"?auto"}
    with pytest.raises(Exception, match="begins with a capital"):
        await client.text_document_rename_async(lsp.RenameParams(*editor.place("fire.aug", "(|S, Old)"), "station"))


async def test_completion_knows_what_may_stand_where(editor: Editor) -> None:
    await editor.checked()
    text = FIRE + "hot(S) <- wind(S, V) WH\nevent smoke(\nexact(T) <- w: extend(o, 6h), while w: col\n"
    editor.change("fire.aug", text)
    after = await editor.complete("fire.aug", "hot(S) <- wind(S, V) WH|")
    assert {"WHERE", "SEQ", "ONCE"} <= after.keys() and "output" not in after and "fire_alarm" not in after
    head = await editor.complete("fire.aug", "hot(S) <- |wind")
    assert {"wind", "near", "NOT", "while", "increase"} <= head.keys() and "WHERE" not in head
    inside = await editor.complete("fire.aug", "hot(S) <- wind(S, |V)")
    assert next(iter(inside)) == "Speed" and "speed = " not in inside
    assert "station = " in await editor.complete("fire.aug", "hot(S) <- wind(|S")
    editor.change("fire.aug", FIRE + "event smoke(")
    columns = await editor.complete("fire.aug", "event smoke(|")
    assert columns["station: "].detail == "a column of events.csv" and "type: " not in columns
    editor.change("fire.aug", FIRE + "event smoke(place: ")
    assert {"string", "float", "duration"} == (await editor.complete("fire.aug", "smoke(place: |")).keys() & {
        "string", "float", "duration",
    }  # fmt: skip
    editor.change("fire.aug", FIRE + "b(X) <- wind(X, V) WHERE distance_km(1, ")
    help = await editor.client.text_document_signature_help_async(
        lsp.SignatureHelpParams(*editor.place("fire.aug", "distance_km(1, |"))
    )
    assert help is not None and help.active_parameter == 1 and help.signatures[0].label.startswith("distance_km(number")
    assert {"include", "event", "rule"} <= (await editor.complete("fire.aug", "\n|b(X) <-")).keys()
    clause = await editor.complete("fast.spaseq", "WITHIN 10 |MINUTES")
    assert "MINUTES" in clause and "EVENTS" in clause and "SELECT" not in clause
    pattern = await editor.complete("fast.spaseq", "FILTER(|?v > 100)")
    assert {"?car", "?v", "e:", "EXISTS"} <= pattern.keys()
    editor.change("fire.aug", FIRE)


async def test_quick_fixes(editor: Editor) -> None:
    text = FIRE.replace("near(P, S).", "near(P, S), S \\= S2, S2 = 'x'.").replace("reported(P) AND", "reported(P) AN")
    editor.change("fire.aug", FIRE + "quiet(X) <- wind(X, Speed)\n")
    await editor.codes("fire.aug", "E102", "W303")
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))
    actions = await editor.client.text_document_code_action_async(
        lsp.CodeActionParams(lsp.TextDocumentIdentifier(editor.uri("fire.aug")), whole, lsp.CodeActionContext([]))
    )
    titles = {action.title: action for action in actions or () if isinstance(action, lsp.CodeAction)}
    assert "add the full stop" in titles, (titles, text)
    stop = titles["add the full stop"].edit
    assert stop is not None and stop.changes is not None
    assert [edit.new_text for edit in stop.changes[editor.uri("fire.aug")]] == ["."]
    editor.change("fire.aug", FIRE)


async def test_layout_outline_and_colours(editor: Editor) -> None:
    await editor.checked()
    client = editor.client
    document = lsp.TextDocumentIdentifier(editor.uri("fire.aug"))
    options = lsp.FormattingOptions(4, True)
    editor.change("fire.aug", FIRE.replace("(reported(P) AND", "(reported( P )   and"))
    edits = await client.text_document_formatting_async(lsp.DocumentFormattingParams(document, options))
    assert edits and "reported(P) AND increase" in edits[0].new_text
    symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(document))
    assert [symbol.name for symbol in symbols or ()] == ["lib.aug", "fire_alarm", "increase", "fire_alarm"]
    folds = await client.text_document_folding_range_async(lsp.FoldingRangeParams(document))
    assert [(fold.start_line, fold.end_line) for fold in folds or ()] == [(0, 1), (7, 8)]
    tokens = await client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(document))
    assert tokens is not None and len(tokens.data) % 5 == 0
    lines = editor.texts["fire.aug"].split("\n")
    line = column = 0
    coloured = []
    for index in range(0, len(tokens.data), 5):
        down, right, length, kind, _ = tokens.data[index : index + 5]
        line, column = line + down, right if down else column + right
        coloured.append((lines[line][column : column + length], kind))
    assert ("increase", 0) in coloured and ("near", 1) in coloured and ("Old", 3) in coloured
    query = lsp.TextDocumentIdentifier(editor.uri("fast.spaseq"))
    parts = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(query))
    assert parts and isinstance(parts[0], lsp.DocumentSymbol)
    assert [child.name for child in parts[0].children or ()] == ["S", "A", "B"]
    found_symbols = await client.workspace_symbol_async(lsp.WorkspaceSymbolParams("incr"))
    assert [symbol.name for symbol in found_symbols or ()] == ["increase"]
    editor.change("fire.aug", FIRE)


async def test_lenses_run_the_sample(editor: Editor) -> None:
    client = editor.client
    document = lsp.TextDocumentIdentifier(editor.uri("fire.aug"))
    await editor.checked()

    async def titles() -> list[str]:
        lenses = await client.text_document_code_lens_async(lsp.CodeLensParams(document))
        return [lens.command.title for lens in lenses or () if lens.command is not None]

    assert await titles() == ["run on sample"]
    run = lsp.ExecuteCommandParams("augury.runSample", arguments=[editor.uri("fire.aug")])
    result = await client.workspace_execute_command_async(run)
    assert "fire_alarm('creek')" in str(result)
    assert await titles() == ["run on sample", "1 answer", "1 answer"]
    assert "cost:" in await editor.hover("fire.aug", "increa|se(S, New)")
    editor.change("fire.aug", FIRE.replace("1.1", "1.5"))
    assert "1 answer before the change" in await titles()
    editor.change("fire.aug", FIRE)


async def test_columns_are_counted_as_the_protocol_counts_them(editor: Editor) -> None:
    editor.open("smile.aug", "a(X) <- b(X, '\U0001f525', Y), c(Z).\n")
    codes = ["L107", "W303", "W303", "W304"]
    assert await editor.codes("smile.aug", *codes) == codes
    starts = sorted(d.range.start.character for d in editor.client.diagnostics[editor.uri("smile.aug")])
    line = editor.texts["smile.aug"]
    assert len(line[: line.index("Y")].encode("utf-16-le")) // 2 in starts
