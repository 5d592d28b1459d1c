"""`augury repl`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from augury.cli.options import functions_option
from augury.core.errors import AuguryError, ProgramError, RunError
from augury.job import load_functions
from augury.terminal import coloured, is_terminal, say, show, show_diagnostics
from augury.tools.conversation import Conversation, Finished, inputs


@click.command()
@click.argument("program", nargs=-1, metavar="[FILE]...")
@functions_option
def repl(program: tuple[str, ...], functions: tuple[str, ...]) -> None:
    """A prompt for rules, events and questions; over a pipe it reads lines.

    FILE are rules, queries or events to begin with; `help` at the prompt lists what it understands.
    """
    conversation = Conversation(tuple(load_functions(functions)))
    wrong = 0
    for name in program:
        wrong += not _answered(conversation, f":load {name}")
    if sys.stdin.isatty() and is_terminal():
        _talk(conversation)
        return
    for text in inputs(sys.stdin):
        try:
            wrong += not _answered(conversation, text)
        except Finished:
            break
    if wrong:
        raise click.exceptions.Exit(1)


def _answered(conversation: Conversation, text: str) -> bool:
    """Shows the answer to an input; whether there is one."""
    try:
        answer = conversation.answer(text)
    except ProgramError as error:
        show_diagnostics(error.diagnostics)
        return False
    except AuguryError as error:
        say(f": {error}", coloured("error", "red"))
        return False
    if answer:
        show(answer)
    return True


def _talk(conversation: Conversation) -> None:
    try:
        from augury.editor.prompt import make_prompt
    except ImportError as error:
        raise RunError(f"the prompt needs `{error.name}`", hint="pip install 'augury[repl]'") from None
    ask: Callable[[], str] = make_prompt(conversation, _history())
    show("Augury. Rules end with a full stop, events have a time: smoke('l1') @ 3. `help` lists the rest.")
    while True:
        try:
            _answered(conversation, ask())
        except KeyboardInterrupt:
            continue
        except (EOFError, Finished):
            break


def _history() -> Path:
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "augury"
    return folder / "repl_history"
