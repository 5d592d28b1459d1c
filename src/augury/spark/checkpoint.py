"""How a stream of the command line runs, and the checkpoint that it resumes from.

All state of a run is below the checkpoint: `augury.json` says of what it is one, `spark` is Spark's own,
`input` holds the lines of standard input, `output` the batch that is being written, `lock` says which run is at it, and
`spark.log` what the JVM had to say.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from augury.core.clock import Clock, read_duration, show_duration
from augury.core.errors import DataError
from augury.engine.saved import write_file
from augury.settings import Task
from augury.sinks import make_folder
from augury.spark.checkpoint_files import check_files, damaged, sealed, unsealed
from augury.spark.starting import usual_buckets
from augury.spark.state import check_program

StreamFormat = Literal["jsonl", "csv", "parquet"]
# What earlier versions say of a checkpoint, without its format and a checksum.
_UNFORMATTED = {
    "rules", "outputs", "declared_events", "buckets", "emission", "lateness", "longest", "retention", "clock"
}  # fmt: skip


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
        """Of what a checkpoint is one: the rules as they are written, and what decides how state is kept."""
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
        }

    def save(self, clock: Clock) -> None:
        """Says in the checkpoint of what it is one."""
        decided = {"clock": clock.kind, "time_unit": clock.unit}
        write_file(self.checkpoint / "augury.json", [sealed({**self.fingerprint, **decided})])

    def ready(self) -> StreamOptions:
        """With the folders made that it writes to."""
        output = self.output if self.output == "-" else _writable(make_folder(self.output))
        return replace(self, output=output, late=self.late and _writable(make_folder(self.late)))

    @property
    def folders(self) -> dict[str, str]:
        """The folders of the parts of a batch, by name."""
        outputs = self.task.plan.outputs
        late = {} if self.late is None else {"late": self.late}
        if self.output == "-":
            return late
        if self.format == "parquet" and len(outputs) > 1:
            return {f"output.{type}": f"{self.output.rstrip('/')}/{type}" for type in outputs} | late
        return {"output": self.output} | late

    # What can be known to be wrong before Spark starts

    def check(self) -> None:
        self._check_checkpoint()
        for destination in (self.output, self.late or "-"):
            if destination != "-" and "://" not in destination:
                self._check_folder(Path(destination))
        self.spark_trigger()

    def _check_checkpoint(self) -> None:
        """Refuses the checkpoint of another program or other settings, and says what has changed."""
        if self.saved:
            new = self.fingerprint
            for name in ("clock", "time_unit"):  # what was not said is as the checkpoint has it
                if getattr(self.task.settings, name) is None:
                    new[name] = self.saved.get(name)
            older = {"format": self.format, "time_unit": None, "zone": None}  # what older checkpoints do not say
            check_program({**older, **self.saved}, new)
            check_files(self.checkpoint, noted="format" in self.saved)

    def _check_folder(self, path: Path) -> None:
        """Refuses a folder that holds anything but batches, or the batches of another stream."""
        if path.exists() and not path.is_dir():
            raise DataError("is a file; a stream writes to a folder", str(path))
        entries = [e.name for e in path.iterdir()] if path.is_dir() else []
        for name in entries:
            if not name.startswith("batch=") and name not in self.task.plan.outputs:
                raise DataError(f"has other files, such as {name}", str(path), "name a new folder")
        if entries and not self.saved:
            hint = "name a new folder, or resume its checkpoint"
            raise DataError("holds the batches of another stream", str(path), hint)


def _writable(folder: str) -> str:
    """A folder, if files can be made in it."""
    if "://" not in folder and not os.access(folder, os.W_OK | os.X_OK):
        frozen = os.statvfs(folder).f_flag & os.ST_RDONLY
        raise DataError(f"cannot be written: {'Read-only file system' if frozen else 'Permission denied'}", folder)
    return folder
