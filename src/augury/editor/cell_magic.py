"""`%%augury` in a notebook: a cell of rules runs over events that a variable or a file has, and shows answers and a timeline.

%load_ext augury

%%augury --events winds --facts near=places --into result
alarm(P) <- (reported(P) AND wind(S, V)).2h WHERE near(P, S), V > 20.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any, NoReturn

import augury


class MagicUsageError(augury.AuguryError):
    """The line of a cell is wrong."""


class _Options(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise MagicUsageError(f"%%augury: {message}\n{self.format_usage()}")


def _options() -> _Options:
    options = _Options(prog="%%augury", add_help=False)
    options.add_argument("--events", action="append", default=[], metavar="[TYPE=]NAME")
    options.add_argument("--facts", action="append", default=[], metavar="PREDICATE=NAME")
    options.add_argument("--rdf", action="append", default=[], metavar="FILE")
    options.add_argument("--into", metavar="NAME")
    options.add_argument("--language", choices=["rules", "spaseq"])
    options.add_argument("--name")
    for name in ("--until", "--clock", "--policy", "--retention"):
        options.add_argument(name)
    return options


def register(shell: Any) -> None:
    """Makes the magic known to a shell of IPython."""
    shell.register_magic_function(lambda line, cell: run_cell(shell, line, cell), "cell", "augury")


def run_cell(shell: Any, line: str, cell: str) -> object:
    """The answers of a cell, or its program where no events are given; mistakes are shown without a traceback."""
    try:
        return _ran(shell, line, cell)
    except augury.ProgramError as error:
        shell.display_pub.publish({"text/plain": str(error), "text/html": error._repr_html_()})
    except augury.AuguryError as error:
        shell.display_pub.publish({"text/plain": f"error: {error}"})
    return None


def _ran(shell: Any, line: str, cell: str) -> object:
    options = _options().parse_args(shlex.split(line))
    facts = {name: _value(shell, value) for name, _, value in (text.partition("=") for text in options.facts)}
    program = augury.compile(
        cell if cell.endswith("\n") else cell + "\n", facts=facts, name=options.name, language=options.language
    )
    result: object = program
    if options.events:
        typed = {
            type: _value(shell, name) for type, equals, name in (t.rpartition("=") for t in options.events) if type
        }
        plain = [_value(shell, name) for name in options.events if "=" not in name]
        settings = {name: getattr(options, name) for name in ("until", "clock", "policy", "retention")}
        chosen = {name: value for name, value in settings.items() if value is not None}
        if options.rdf:
            chosen["rdf"] = options.rdf
        if len(plain) + bool(typed) > 1:
            raise MagicUsageError("%%augury: give --events once without a type, or once for each type")
        result = augury.run(program, plain[0] if plain else typed, facts=facts, **chosen)
    if options.into:
        shell.user_ns[options.into] = result
    return result


def _value(shell: Any, name: str) -> Any:
    """A variable of the notebook, or else a file."""
    return shell.user_ns[name] if name in shell.user_ns else augury.read(name)
