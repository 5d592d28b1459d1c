"""How a stream of the command line runs, and the checkpoint that it resumes from.

All state of a run is below the checkpoint: `augury.json` says of what it is one, `spark` is Spark's own,
`input` holds the lines of standard input, `output` the batch that is being written, `lock` says which run is at it, and
`spark.log` what the JVM had to say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from augury.compiled import Compiled
from augury.connectors import redacted
from augury.core.clock import SECOND, Clock, read_duration, show_duration
from augury.core.errors import DataError, RunError, SnapshotError, Source, counted
from augury.engine.saved import write_file
from augury.engine.saved.envelope import FORMAT
from augury.settings import Task
from augury.sinks import make_folder
from augury.sources import ColumnNames, SourceFile
from augury.spark.checkpoint_files import (
    check_complete,
    check_files,
    damaged,
    files_read,
    last_batches,
    last_watermark,
    sealed,
    spark_home,
    unsealed,
)
from augury.spark.heartbeats import BEATS
from augury.spark.kafka_topics import is_kafka
from augury.spark.packages import SHIFT
from augury.spark.starting import usual_buckets
from augury.spark.state import NEW, check_program
from augury.spark.stream_addresses import connector_scheme
from augury.spark.upgrading import StreamSetting, Upgrade, upgrade

StreamFormat = Literal["jsonl", "csv", "parquet"]
# What earlier versions say of a checkpoint, without its format and a checksum.
_UNFORMATTED = {
    "rules", "outputs", "declared_events", "buckets", "emission", "lateness", "longest", "retention", "clock"
}  # fmt: skip


_OF_VERSION = ("program", "rules", "outputs", "since")
_OF_PROGRAM = ("rules", "outputs", "declared_events")
_OF_OUTPUT = ("format", "emission", "clock", "time_unit", "zone")  # what state that is computed anew cannot change

_REBUILD = "--rebuild computes the state anew, from the files that the stream has read"


@dataclass(frozen=True)
class StreamOptions:
    """How a stream runs: its task, its checkpoint, its output, and the time between batches."""

    task: Task
    checkpoint: Path
    output: str
    format: StreamFormat = "jsonl"
    late: str | None = None
    trigger: str = "1s"
    asked_buckets: int | None = None
    master: str = "local[*]"
    ahead: int | None = None  # microseconds by which an event may be ahead of the time of its batch
    idle: int | None = None  # microseconds without an event after which the clock follows that of the machine
    rebuild: bool = False  # whether the state is computed anew, from all files that the stream has read
    archived: bool = False  # whether those of them that are gone are read elsewhere
    keep: int | None = None  # microseconds for which inputs are kept, so that old answers can be explained
    history: bool = False  # whether it reads a history, with which a stream begins

    @property
    def spark(self) -> Path:
        """The folder of Spark's own files."""
        if self.rebuilds:
            return self.checkpoint / f"spark-{self.first}"
        return spark_home(self.checkpoint, self.saved)[0]

    @property
    def rebuilds(self) -> bool:
        """Whether there is state, which is computed anew."""
        return self.rebuild and bool(self.saved)

    @cached_property
    def first(self) -> int:
        """The number of Spark's first batch among those of the stream."""
        spark, first = spark_home(self.checkpoint, self.saved)
        if not self.rebuilds:
            return first
        ended = last_batches(spark)[1]
        return first if ended is None else first + ended + 1

    @cached_property
    def saved(self) -> dict[str, Any]:
        """What the checkpoint says of itself; nothing where it is new."""
        path = self.checkpoint / "augury.json"
        if not path.exists() and not (self.checkpoint / "spark").exists():
            return {}
        result = unsealed(path, _UNFORMATTED)
        if not isinstance(result["rules"], dict):
            raise damaged(path, "does not say of which program it is")
        return result

    @cached_property
    def buckets(self) -> int:
        """The parts of the state: as asked, as the checkpoint has them, or what is usual."""
        usual = partial(usual_buckets, self.task.plan, self.master, os.cpu_count() or 1)
        return self.asked_buckets or self.saved.get("buckets") or usual()

    @property
    def once(self) -> bool:
        return self.trigger == "once"

    def spark_trigger(self) -> dict[str, Any]:
        """When micro-batches run, as Spark takes it."""
        if self.once:
            return {"availableNow": True}
        try:
            return {"processingTime": f"{max(1, read_duration(self.trigger) // 1000)} milliseconds"}
        except ValueError as error:
            raise DataError(str(error), "--trigger") from None

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The identity of a checkpoint: the rules as they are written, and the settings that shape its state."""
        plan, settings = self.task.plan, self.task.settings
        declared = {
            name: [f"{a.name}: {a.type}" for a in attributes] for name, attributes in sorted(plan.declared.items())
        }
        lengths = {name: getattr(settings, name) for name in ("lateness", "longest", "retention")}
        return {
            "rules": self.task.program.written_rules({rule.span: rule.label for rule in plan.rules}),
            "outputs": list(plan.outputs),
            "declared_events": declared,
            "buckets": self.buckets,
            "format": self.format,
            "emission": settings.emit,
            **{name: us and show_duration(us) for name, us in lengths.items()},
            "clock": settings.clock,
            "time_unit": settings.time_unit,
            "zone": settings.zone,
            "idle": self.idle is not None,
        }

    def save(self, clock: Clock) -> None:
        """Writes the identity of the checkpoint: from then on the stream is of this program."""
        decided = {"clock": clock.kind, "time_unit": clock.unit}
        program = {"program": _listed(self.task.program.written), "since": self.since, "versions": self.versions}
        home = {"spark": self.spark.name, "first": self.first} if self.spark.name != "spark" else {}
        said = {**self.fingerprint, **decided, **program, **self._about, **home}
        write_file(self.checkpoint / "augury.json", [sealed(said)])

    @property
    def _about(self) -> dict[str, Any]:
        """What it takes to run the stream again, or to look into it, beside its program and what shapes its state."""
        task, settings = self.task, self.task.settings
        return {
            "sources": [written_source(source) for source in task.events],
            "facts": [[name, _whole(path)] for name, path in task.facts],
            "graphs": [[_whole(str(graph.source)), graph.entailment] for graph in task.graphs],
            "on_error": settings.on_error,
            "strict": settings.strict,
            "output": redacted(self.output) if self._is_elsewhere else _whole(self.output),
            "late": self.late and _whole(self.late),
            "folders": self.folders if self.output != "-" else {},
            "ahead": self.ahead,
            "keep": self.keeps,
            "idle_for": self.idle,
            "state_format": self.saved.get("state_format") if self.saved and not self.rebuilds else FORMAT,
        }

    def spooled(self, source: SourceFile) -> SourceFile:
        """Standard input as the files in which a stream keeps it."""
        return spooled(source, self.checkpoint)

    # Another program

    @property
    def _is_new_program(self) -> bool:
        if self.rebuilds:
            return False
        if any(self.saved.get(name, new) != new for name, new in self.fingerprint.items() if name in _OF_PROGRAM):
            return True
        # A policy, a static rule or a fact of the program is in no rule as it is written.
        sources = _listed(self.task.program.written)
        return [text for _, text, _ in self.saved.get("program", sources)] != [text for _, text, _ in sources]

    @cached_property
    def versions(self) -> list[dict[str, Any]]:
        """The earlier programs of the checkpoint, the oldest first: their sources, and since when their new rules saw events."""
        earlier = [] if self.rebuilds else list(self.saved.get("versions", ()))
        return [*earlier, {name: self.saved.get(name) for name in _OF_VERSION}] if self._is_new_program else earlier

    @cached_property
    def since(self) -> int | None:
        """Rules that are new in this version see what starts after it: the greatest end that any batch has had."""
        if not self._is_new_program:
            return None if self.rebuilds else self.saved.get("since")
        return self.last_end(read_duration(self.saved["lateness"] or "0s"))

    @property
    def keeps(self) -> int | None:
        """For how long inputs are kept: as asked, or as before."""
        keep: int | None = self.saved.get("keep") if self.keep is None else self.keep
        return keep

    def last_end(self, lateness: int) -> int | None:
        """The greatest end that any event so far has had, to the millisecond; none before the first event."""
        watermark = last_watermark(self.spark)
        if watermark is None:
            return None
        return (watermark * 1000 + 999 if self.clock.kind == "timestamp" else watermark - SHIFT) + self.clock.length(
            lateness
        )

    @cached_property
    def clock(self) -> Clock:
        """The clock of the checkpoint."""
        return Clock(self.saved.get("clock") or "timestamp", self.task.plan.tick or SECOND)

    def upgrade(self) -> Upgrade | None:
        """What becomes of the rules of the checkpoint, where this is another program."""
        if not self.saved or not self._is_new_program:
            return None
        settings = self.task.settings
        setting = StreamSetting(self.clock, self.buckets, settings.longest, settings.retention)
        since = "" if self.since is None else str(self.clock.show(self.since))
        old = earlier_program(self.task.program, self.saved["program"])
        return upgrade(old, self.task.program, setting, since, settings.emit == "early")

    def ready(self) -> StreamOptions:
        """With the folders made that it writes to."""
        output = self.output if self._is_elsewhere else _writable(make_folder(self.output))
        return replace(self, output=output, late=self.late and _writable(make_folder(self.late)))

    @property
    def _is_elsewhere(self) -> bool:
        """Whether answers go to no folder."""
        return self.output == "-" or is_kafka(self.output) or connector_scheme(self.output) is not None

    @property
    def folders(self) -> dict[str, str]:
        """The folders of the parts of a batch, by name."""
        outputs = self.task.plan.outputs
        late = {} if self.late is None else {"late": self.late}
        if self._is_elsewhere:
            return late
        if self.format == "parquet" and len(outputs) > 1:
            return {f"output.{type}": f"{self.output.rstrip('/')}/{type}" for type in outputs} | late
        return {"output": self.output} | late

    # What can be known to be wrong before Spark starts

    def check(self) -> None:
        self.check_checkpoint()
        for destination in (self.output, self.late or "-"):
            if destination != "-" and "://" not in destination:
                self._check_folder(Path(destination))
        self.spark_trigger()

    def check_checkpoint(self, running: bool = False) -> None:
        """Refuses the checkpoint of another program or other settings, and says what has changed.

        Its files are checked unless the stream may be `running`: it is writing them.
        """
        if self.saved:
            self._check_state_format()
            self._check_sources()
            new = self.fingerprint
            for name in ("clock", "time_unit"):  # what was not said is as the checkpoint has it
                if getattr(self.task.settings, name) is None:
                    new[name] = self.saved.get(name)
            # What older checkpoints do not say, and what a stream is told anew whenever it starts.
            older = {"format": self.format, "time_unit": None, "zone": None, "idle": False}
            saved = {
                **older,
                **{name: value for name, value in self.saved.items() if name in new},
                "lateness": new["lateness"],
            }
            if "program" in self.saved:
                saved |= {name: new[name] for name in _OF_PROGRAM}
            if self.rebuild:
                saved = {name: new[name] if name not in _OF_OUTPUT else value for name, value in saved.items()}
            check_program(saved, new, NEW if self.rebuild else f"{NEW}; {_REBUILD}")
            if (change := self.upgrade()) is not None:
                change.check(_REBUILD)
            if change is not None or self.rebuild:
                check_complete(self.checkpoint, self.saved)
            if not running:
                check_files(self.checkpoint, self.saved)
            if self.rebuild:
                self._check_rebuild()

    def _check_state_format(self) -> None:
        """Refuses state in the format of another version, unless it is computed anew."""
        written = self.saved.get("state_format", FORMAT)
        if not self.rebuild and written not in (None, FORMAT):
            raise SnapshotError(
                f"the state of the checkpoint has format {written}, and this version of Augury reads {FORMAT}",
                f"augury checkpoint upgrade {self.checkpoint} computes it anew, from the files that the stream has read",
                "S102",
            )

    def _check_sources(self) -> None:
        """Refuses another number of sources: Spark knows them by their places."""
        before, now = len(self.saved.get("sources", self.task.events)), len(self.task.events)
        if before != now and not self.rebuild:
            raise RunError(
                f"the stream of the checkpoint has {counted(before, 'source')}, and not {now}",
                "give --events as often as before, in the same order",
            )

    def _check_rebuild(self) -> None:
        """Refuses to compute state anew where what it was computed of, or the answers, are not there any more."""
        if self.output == "-":
            raise RunError(
                "state is computed anew beside the answers that are written, and standard output keeps none",
                "name a folder: --output DIR, or start with a new checkpoint directory",
            )
        if self.task.settings.emit == "early" and self.format != "jsonl":
            raise RunError(f"state of early answers is computed anew beside JSON lines, not {self.format}", NEW)
        if topic := next((p for p in (self.output, *(s.path for s in self.task.events)) if is_kafka(p)), None):
            raise RunError(f"state is computed anew from files, and {redacted(topic)} is a topic", NEW)
        if (scheme := connector_scheme(self.output)) is not None:
            raise RunError(f"state is computed anew beside the answers in a folder, and not in {scheme}://", NEW)
        gone = sorted(path for path in self.files if not _is_there(path))
        if gone and not self.archived:
            raise RunError(
                f"{counted(len(gone), 'file')} that the stream has read are gone, {_local(gone[0])} among them",
                "put them back, or name where they are now with --backfill",
            )

    @cached_property
    def files(self) -> set[str]:
        """The files with events that the stream has read."""
        spark, _ = spark_home(self.checkpoint, self.saved)
        return {path for path in files_read(spark) if f"/{BEATS}/" not in path}

    def _check_folder(self, path: Path) -> None:
        """Refuses a folder that holds anything but batches, or the batches of another stream."""
        if path.exists() and not path.is_dir():
            raise DataError("is a file; a stream writes to a folder", str(path))
        entries = [e.name for e in path.iterdir()] if path.is_dir() else []
        outputs = {name for version in [*self.versions, self.saved] for name in version.get("outputs", ())}
        for name in entries:
            if not name.startswith("batch=") and name not in {*self.task.plan.outputs, *outputs}:
                raise DataError(f"has other files, such as {name}", str(path), "name a new folder")
        if entries and not self.saved:
            hint = "name a new folder, or resume its checkpoint"
            raise DataError("holds the batches of another stream", str(path), hint)


def _local(path: str) -> str:
    """The path of a file as Spark writes it, on this machine."""
    return unquote(urlsplit(path).path) if path.startswith("file:") else path


def _is_there(path: str) -> bool:
    """Whether a file is there; of other file systems Spark says so when it reads them."""
    return not path.startswith("file:") or Path(_local(path)).exists()


def spooled(source: SourceFile, checkpoint: Path) -> SourceFile:
    if source.path != "-":
        return source
    return replace(source, path=str(checkpoint / "input" / "*.jsonl"), shown="standard input")


def _whole(path: str) -> str:
    """The whole path of what is there, since whoever runs the stream later may stand elsewhere; an address is as it is."""
    return path if "://" in path or not os.path.exists(path) else os.path.abspath(path)


def written_source(source: SourceFile) -> dict[str, object]:
    """A source as plain data, by its whole path: whoever looks at the stream may stand elsewhere."""
    here = source.path == "-" or source.remote
    return asdict(source) | {"path": source.path if here else os.path.abspath(source.path)}


def source_as_written(saved: dict[str, Any]) -> SourceFile:
    """The source that a checkpoint names."""
    names = saved["names"]
    renamed = tuple(tuple(item) for item in names["renamed"])
    return SourceFile(
        **{**saved, "names": ColumnNames(**{**names, "renamed": renamed}), "nulls": tuple(saved["nulls"])}
    )


def _listed(sources: Iterable[Source]) -> list[list[str]]:
    return [[source.name, source.text, source.language] for source in sources]


def earlier_program(program: Compiled, sources: list[list[str]]) -> Compiled:
    """A program of which the sources were saved, with the functions and facts of the one that runs."""
    listed = [Source(*source) for source in sources]
    return type(program).of(listed, functions=program.functions, facts=program.facts)


def _writable(folder: str) -> str:
    """A folder, if files can be made in it."""
    if "://" not in folder and not os.access(folder, os.W_OK | os.X_OK):
        frozen = os.statvfs(folder).f_flag & os.ST_RDONLY
        raise DataError(f"cannot be written: {'Read-only file system' if frozen else 'Permission denied'}", folder)
    return folder
