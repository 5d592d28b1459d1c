"""The prompt of `augury repl` in a terminal: several lines, history, completion, colours."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document as InputText
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

from augury.editor.completions import suggestions
from augury.editor.open_files import ProjectFiles
from augury.editor.pygments_lexers import AuguryLexer
from augury.tools.conversation import COMMANDS, Conversation, is_complete


class ConversationCompleter(Completer):
    """Commands at the start of a line; after that what an editor would offer behind the rules so far."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.files = ProjectFiles()

    def get_completions(self, document: InputText, complete_event: CompleteEvent) -> Iterable[Completion]:
        typed = document.text_before_cursor
        word = document.get_word_before_cursor(WORD=False)
        word = word if word.replace("_", "").isalnum() else ""
        if typed.startswith((":load ", ":save ")):
            yield from _paths(typed.partition(" ")[2])
            return
        if typed == typed.lstrip() and "\n" not in typed and " " not in typed:
            for command, (_, about) in COMMANDS.items():
                if command.startswith(typed):
                    yield Completion(command, start_position=-len(typed), display_meta=about)
        if not word and not complete_event.completion_requested:
            return
        rules = "\n".join(source.text for source in self.conversation.sources if source.language == "rules")
        lead = f"{rules}\n" if rules else ""
        question = typed.removeprefix("?- ").removeprefix("why not ").removeprefix("why ")
        asked = f"q <- a WHERE {question}" if question != typed else typed
        text = self.files.opened(Path("/repl.aug"), lead + asked, 0)
        for row in suggestions(self.files, text, len(text.text)):
            if row.text.lower().startswith(word.lower()):
                yield Completion(row.text, start_position=-len(word), display_meta=row.detail or row.kind)


def _paths(typed: str) -> Iterable[Completion]:
    folder = Path(typed).parent if not typed.endswith("/") else Path(typed)
    part = "" if typed.endswith("/") else Path(typed).name
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        if path.name.startswith(part) and not path.name.startswith("."):
            yield Completion(path.name + ("/" if path.is_dir() else ""), start_position=-len(part))


def make_prompt(conversation: Conversation, history: Path) -> Callable[[], str]:
    """A function that asks for the next input, which may have several lines."""
    session: PromptSession[str] = PromptSession(
        history=_kept(history),
        lexer=PygmentsLexer(AuguryLexer),
        completer=ConversationCompleter(conversation),
        complete_while_typing=True,
        auto_suggest=AutoSuggestFromHistory(),
        multiline=True,
        prompt_continuation=lambda width, number, wrapped: "... ".rjust(width),
        key_bindings=_keys(),
    )
    return lambda: session.prompt("aug> ")


def _kept(history: Path) -> History:
    """The history of earlier prompts, where it can be written."""
    try:
        history.parent.mkdir(parents=True, exist_ok=True)
        history.touch()
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(history))


def _keys() -> KeyBindings:
    """Enter ends an input that is whole; else it begins another line."""
    keys = KeyBindings()

    @Condition
    def whole() -> bool:
        return is_complete(get_app().current_buffer.text)

    @keys.add("enter", filter=whole)
    def accept(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys
