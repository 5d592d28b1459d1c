"""An Arrow IPC file, which is also called Feather: one table, of all types where there are several outputs."""

from __future__ import annotations

from typing import Any, BinaryIO

import pyarrow as pa

from augury.sinks.answers import Answers


def write(answers: Answers[Any], file: BinaryIO, trace: bool = True) -> None:
    """Answers as record batches, one after the other."""
    schema, batches = answers.batches(None, trace)
    with pa.ipc.new_file(pa.PythonFile(file, "w"), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
