"""A stateful operator on its way to the workers of a cluster.

Before a stream starts, Spark asks an operator for its state variables in a process beside the driver, which has none of the
files that were sent along with `--py-files`. So what is sent is a class that is pickled as it is written, and not by the
name of its module: it names the variables, and reads what it carries when there are rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.stateful_processor import StatefulProcessor


def carried(processor: Any) -> StatefulProcessor:
    """An operator that becomes another one where there are rows; that one takes its state variables by `take`."""

    class Carrier(StatefulProcessor):
        """Names nothing of ours: a class inside a function is pickled with its code."""

        def __init__(self, data: bytes) -> None:
            self.data = data
            self.opened: Any = None

        def init(self, handle: Any) -> None:
            head, program = (handle.getValueState(name, "data binary") for name in ("head", "program"))
            self.state = handle, head, program, handle.getMapState("log", "n bigint", "data binary")

        def open(self) -> Any:
            if self.opened is None:
                from pyspark.serializers import CloudPickleSerializer

                self.opened = CloudPickleSerializer().loads(self.data)  # type: ignore[no-untyped-call]
                self.opened.take(*self.state)
            return self.opened

        def handleInputRows(self, key: object, rows: object, timerValues: object) -> Iterator[Any]:
            return self.open().handleInputRows(key, rows, timerValues)  # type: ignore[no-any-return]

        def handleExpiredTimer(self, key: object, timerValues: object, expiredTimerInfo: object) -> Iterator[Any]:
            return self.open().handleExpiredTimer(key, timerValues, expiredTimerInfo)  # type: ignore[no-any-return]

        def close(self) -> None:
            """There is nothing to close."""

    return Carrier(CloudPickleSerializer().dumps(processor))  # type: ignore[no-untyped-call]
