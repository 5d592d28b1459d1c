"""The options of commands that look into the checkpoint of a stream: what it says of itself need not be said again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from augury.cli.options import AnyCommand, TaskOptions, fact_sources, include_option
from augury.core.errors import RunError, Source
from augury.job import load_functions
from augury.knowledge.graphs import RdfGraph
from augury.program import Program
from augury.settings import Task
from augury.sources import SourceFile

if TYPE_CHECKING:
    from augury.spark.checkpoint import StreamOptions


def _files(command: AnyCommand) -> AnyCommand:
    """The files of a program, which a checkpoint has in it."""
    return click.argument("program", nargs=-1, metavar="[FILE]...")(include_option(command))


# How a stream reads its input, where the command does not say so.
_READING = ("clock", "time_unit", "zone", "retention", "longest", "on_error", "strict")


@dataclass(frozen=True)
class CheckpointOptions(TaskOptions):
    """A program and its events, or the checkpoint of a stream, which names both."""

    program: Annotated[tuple[str, ...], _files]
    checkpoint: Annotated[
        str | None,
        click.option(
            "--checkpoint",
            metavar="DIR",
            help="The checkpoint of a stream on Spark, which may run meanwhile; it names its program and its events.",
        ),
    ]
    events: Annotated[
        tuple[str, ...],
        click.option(
            "--events",
            "--from",
            "events",
            multiple=True,
            metavar="SRC",
            help="Events: a path or type=path, a file, a folder or a pattern; - is standard input. "
            "With --checkpoint, by default those of the stream.",
        ),
    ]

    @cached_property
    def compiled(self) -> Program:
        """The program of the files, or of the checkpoint."""
        if self.program:
            return super().compiled
        if self.checkpoint is None:
            raise click.UsageError("Missing argument 'FILE...'.")
        saved = self.saved.get("program")
        if saved is None:
            raise RunError("the checkpoint does not hold its program", hint="name its files, too")
        facts = [name for name, _ in fact_sources(self.facts) or self.saved.get("facts", ())]
        return Program.of([Source(*source) for source in saved], functions=load_functions(self.functions), facts=facts)

    def sources(self, program: Program) -> tuple[SourceFile, ...]:
        """The sources that are named, or those of the checkpoint."""
        if self.events:
            return super().sources(program)
        if self.checkpoint is None:
            raise click.UsageError("Missing option '--events'.")
        from augury.spark.checkpoint import source_as_written

        if "sources" not in self.saved:
            raise RunError("the checkpoint does not say what it reads", hint="name it as to the stream: --events SRC")
        return tuple(source_as_written(source) for source in self.saved["sources"])

    @cached_property
    def saved(self) -> dict[str, Any]:
        """What the checkpoint says of itself."""
        from augury.spark.checkpoint_report import description

        assert self.checkpoint is not None
        return description(Path(self.checkpoint))

    def stream_task(self) -> Task:
        """The task of the stream, with the settings of its checkpoint."""
        more: dict[str, Any] = {"emit": self.saved["emission"], "lateness": self.saved.get("lateness") or "0s"}
        for name in _READING:
            said = self.saved.get(name)
            if said is not None and getattr(self, name, None) in (None, False, "stop"):
                more[name] = said or "0s" if name == "longest" else said
        task = self.task(**more)
        facts = task.facts or tuple((name, path) for name, path in self.saved.get("facts", ()))
        graphs = task.graphs or tuple(RdfGraph(path, entails) for path, entails in self.saved.get("graphs", ()))
        return replace(task, facts=facts, graphs=graphs)

    def stream_options(self, master: str) -> StreamOptions:
        """How the stream runs."""
        from augury.spark.checkpoint import StreamOptions

        assert self.checkpoint is not None
        saved = self.saved
        return StreamOptions(
            self.stream_task(),
            Path(self.checkpoint),
            saved.get("output") or _output(saved.get("folders", {})),
            saved.get("format", "jsonl"),
            saved.get("late"),
            "once",
            master=master,
            idle=saved.get("idle_for", 0) if saved.get("idle") else None,
            ahead=saved.get("ahead"),
        )


def _output(folders: Mapping[str, str]) -> str:
    """The output of a stream whose checkpoint names the folders of its parts alone, as earlier versions wrote it."""
    parts = [folder for name, folder in folders.items() if name != "late"]
    if not parts:
        return "-"
    return folders["output"] if "output" in folders else parts[0].rpartition("/")[0]
