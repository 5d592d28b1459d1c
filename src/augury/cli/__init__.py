"""The command line: one file for each command.

Exit codes: 0 fine, 1 the program or the data is wrong (diagnostics on standard error), 2 usage.
"""

from __future__ import annotations

import io
import os
import sys

import click

from augury.cli.bench import bench
from augury.cli.case import case
from augury.cli.check import check
from augury.cli.console import console
from augury.cli.demo import demo
from augury.cli.diff import diff
from augury.cli.explain import explain
from augury.cli.fmt import fmt
from augury.cli.new import new
from augury.cli.profile import profile
from augury.cli.run import run
from augury.cli.stream import stream
from augury.cli.test import test
from augury.cli.why import why, why_not
from augury.core.errors import AuguryError, ProgramError, counted, too_deep
from augury.terminal import coloured, say, show_diagnostics


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="augury", prog_name="augury")
def cli() -> None:
    """Complex event processing with knowledge: which situations hold, when, and why."""


for command in (check, fmt, explain, run, stream, why, why_not, console, test, profile, diff, case, bench, demo, new):
    cli.add_command(command)


def main() -> None:
    """Runs the command line; a user's mistake is a message and exit code 1, never a traceback."""
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    elif isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # With PYTHONUNBUFFERED a full disk takes a part of what is written, and nobody is told.
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(sys.stdout.buffer), sys.stdout.encoding, line_buffering=True)
    try:
        code = cli(standalone_mode=False)
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
