"""A session as bytes: its program, its facts and its inputs in the order of arrival. `augury console FILE.recording` reopens it.

They have the form of snapshots: nothing in them runs, and nothing is believed before it has been checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from augury.console.input_log import ClockAdvance, Input, RuleChange, Setup
from augury.console.program_text import ProgramText
from augury.core.errors import Source
from augury.core.limits import NO_LIMITS
from augury.core.model import Event, Revocation
from augury.engine.saved import CorruptSnapshot, not_whole, packed, require, unpacked
from augury.program import ProgramSession
from augury.settings import Settings

KIND, ENDING = "recording", ".recording"
_PLAIN = tuple(field.name for field in fields(Settings) if field.name not in ("limits", "changing"))


@dataclass(frozen=True)
class Recording:
    """A session from its beginning, or from a snapshot on: what it was opened with, and what each step took in.

    `counts` has the number of inputs after each step, `wall` when each step was taken.
    """

    setup: Setup
    inputs: tuple[Input, ...]
    counts: tuple[int, ...]
    wall: tuple[float, ...]
    base: bytes = b""

    def opened(self) -> ProgramSession:
        """The session before the first input."""
        everything = self.setup.everything
        return everything.restore(self.base, limits=None) if self.base else self.setup.open()

    def steps(self) -> list[tuple[float, tuple[Input, ...]]]:
        """When each step was taken, and its inputs."""
        starts = (0, *self.counts)
        return [(self.wall[number], self.inputs[starts[number] : count]) for number, count in enumerate(self.counts)]

    def to_bytes(self) -> bytes:
        setup = self.setup
        settings = {name: getattr(setup.settings, name) for name in _PLAIN}
        state = {
            "sources": [(source.name, source.text, source.language) for source in setup.text.sources],
            "names": list(setup.text.facts),
            "functions": list(setup.text.functions),
            "policy": setup.text.policy,
            "clock": setup.clock,
            "facts": list(setup.facts),
            "settings": settings | {"changing": sorted(setup.settings.changing)},
            "inputs": _columns(self.inputs),
            "counts": np.array(self.counts, np.int64),
            "wall": np.array(self.wall, np.float64),
            "base": np.frombuffer(self.base, np.uint8),
        }
        return packed(KIND, state)

    @staticmethod
    def of_bytes(data: bytes, functions: Sequence[str] | None = None) -> Recording:
        """A recording that was written; raises SnapshotError. `functions` are Python files, which it names, but never holds."""
        _, state = unpacked(KIND, data)
        try:
            return Recording._read(state, functions)
        except CorruptSnapshot as error:
            raise not_whole(str(error)) from None
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise not_whole(f"it says what cannot be ({type(error).__name__})") from None

    @staticmethod
    def _read(state: Any, functions: Sequence[str] | None) -> Recording:
        require(isinstance(state, dict), "it is no recording")
        files = tuple(state["functions"]) if functions is None else tuple(functions)
        sources = tuple(Source(*source) for source in state["sources"])
        text = ProgramText(sources, tuple(state["names"]), files, state["policy"])
        written = dict(state["settings"])
        settings = Settings(**{**written, "changing": frozenset(written["changing"]), "limits": NO_LIMITS})
        setup = Setup(text, state["clock"], tuple(state["facts"]), settings)
        counts, wall = tuple(state["counts"].tolist()), tuple(state["wall"].tolist())
        inputs = _inputs(state["inputs"])
        ordered = not counts or (counts[-1] == len(inputs) and bool((np.diff((0, *counts)) >= 0).all()))
        require(ordered and len(counts) == len(wall), "its steps do not fit its inputs")
        return Recording(setup, inputs, counts, wall, state["base"].tobytes())

    def without_functions(self) -> Recording:
        """As it is shared: the paths of Python files say nothing elsewhere."""
        return replace(self, setup=replace(self.setup, text=replace(self.setup.text, functions=())))


def _columns(inputs: Sequence[Input]) -> dict[str, Any]:
    """Inputs as columns: events, and beside them, by their places, what is no event."""
    events = [item for item in inputs if isinstance(item, Event)]
    others: list[tuple[int, str, Any, Any]] = []
    for number, item in enumerate(inputs):
        match item:
            case Revocation():
                others.append((number, "revoke", item.id, (item.known, item.version)))
            case ClockAdvance():
                others.append((number, "advance", item.time, None))
            case RuleChange():
                others.append((number, "rules", item.text, item.removed))
    learnt = [(number, item.known) for number, item in enumerate(events) if item.known is not None]
    versions = [(number, item.version) for number, item in enumerate(events) if item.version]
    return {
        "type": [event.type for event in events],
        "args": [event.args for event in events],
        "start": np.array([event.start for event in events], np.int64),
        "end": np.array([event.end for event in events], np.int64),
        "id": [event.id for event in events],
        "known": learnt,
        "versions": versions,
        "others": others,
    }


def _inputs(columns: Mapping[str, Any]) -> tuple[Input, ...]:
    """The inputs of columns."""
    names = ("type", "args", "start", "end", "id")
    rows = [columns[name].tolist() if name in ("start", "end") else columns[name] for name in names]
    require(len({len(row) for row in rows}) == 1, "its events have columns of different lengths")
    inputs: list[Input] = [Event(*row) for row in zip(*rows, strict=True)]
    for number, learnt in columns["known"]:
        event = inputs[number]
        assert isinstance(event, Event)
        inputs[number] = replace(event, known=learnt)
    for number, version in columns["versions"]:
        event = inputs[number]
        assert isinstance(event, Event)
        inputs[number] = replace(event, version=version)
    for number, kind, first, second in columns["others"]:
        require(0 <= number <= len(inputs), "an input lies beyond the last")
        inputs.insert(number, _other(kind, first, second))
    return tuple(inputs)


def _other(kind: str, first: Any, second: Any) -> Input:
    match kind:
        case "revoke":
            return Revocation(first, *second)
        case "advance":
            return ClockAdvance(first)
        case "rules":
            return RuleChange(first, second)
    raise CorruptSnapshot(f"an input of the kind {kind}")
