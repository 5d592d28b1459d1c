"""The command line: one file for each command.

Exit codes: 0 fine, 1 the program or the data is wrong (diagnostics on standard error), 2 usage.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import cast

import click

from augury.core.errors import AuguryError, ProgramError, counted, nearest, too_deep
from augury.terminal import coloured, say, show_diagnostics

# Every command, its module (which has a function of that name), and its line in the overview. A module is imported when
# its command is used: together they import most of Augury and half a dozen libraries.
COMMANDS = {
    "check": ("check", "Check programs: errors, warnings and lints."),
    "fmt": ("fmt", "Format programs in place."),
    "explain": ("explain", "Show how a program is read and what runs."),
    "run": ("run", "Run a program over events and write what it derives."),
    "stream": ("stream", "Run a program over events as they come, on Spark."),
    "live": ("live", "Run a program as a service, from and to brokers, databases and files."),
    "checkpoint": ("checkpoints", "Look at the checkpoint of a stream; check, copy, rescale or upgrade it."),
    "pack": ("pack", "Pack a stream with its environment for a cluster, with the line that submits it."),
    "doctor": ("doctor", "Check what a service needs: machine, addresses, and a sample against the program."),
    "why": ("why", "Show why an event was detected."),
    "why-not": ("why", "Show why an event was not detected, and what came nearest."),
    "goals": ("inspect_stream", "Show the partial matches that a stream holds."),
    "stats": ("inspect_stream", "Show what a stream has seen and what it holds."),
    "console": ("console", "Open a page that shows what a program does with its events."),
    "test": ("test", "Run the cases of TOML files."),
    "profile": ("profile", "Run a program, and show what each rule and operator costs."),
    "diff": ("diff", "Compare two versions of a program over one history."),
    "case": ("case", "Write the smallest test case in which an event is detected."),
    "lineage": ("lineage", "Show which columns and facts an output depends on."),
    "repl": ("repl", "A prompt for rules, events and questions."),
    "lsp": ("lsp", "Run the language server, which editors start."),
    "bench": ("bench", "Measure Augury beside hand-written code and other engines."),
    "warm": ("warm", "Compile the inner loops ahead of the first large run."),
    "demo": ("demo", "Run an application that comes with Augury."),
    "new": ("new", "Write a small project into a folder."),
}


class Commands(click.Group):
    """A group that imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *self.commands]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return super().get_command(ctx, name)
        module = import_module(f"augury.cli.{COMMANDS[name][0]}")
        return cast(click.Command, getattr(module, name.replace("-", "_")))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if (
            not args[0].startswith("-")
            and args[0] not in (names := self.list_commands(ctx))
            and (close := nearest(args[0], names))
        ):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{close}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            added = [(name, command.get_short_help_str()) for name, command in self.commands.items()]
            formatter.write_dl([*((name, line) for name, (_, line) in COMMANDS.items()), *added])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="augury", prog_name="augury")
def cli() -> None:
    """Complex event processing with knowledge: which situations hold, when, and why."""


def main() -> None:
    """Runs the command line; a user's mistake is a message and exit code 1, never a traceback."""
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    elif isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # With PYTHONUNBUFFERED a full disk takes a part of what is written, without an error.
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(sys.stdout.buffer), sys.stdout.encoding, line_buffering=True)
    try:
        code = cli(standalone_mode=False)
        if not sys.stdout.closed:  # the language server closes it
            sys.stdout.flush()
        sys.exit(code)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ProgramError as error:
        show_diagnostics(error.diagnostics)
        wrong = sum(d.severity == "error" for d in error.diagnostics)
        say(counted(wrong, "error"))
        sys.exit(1)
    except AuguryError as error:
        say(f": {error}", coloured("error", "red"))
        sys.exit(1)
    except RecursionError:
        say(f": {too_deep()}", coloured("error", "red"))
        sys.exit(1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        # Standard output is full or closed; there may be no other place to say so.
        click.echo(f"error: cannot write: {error.strerror}", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
