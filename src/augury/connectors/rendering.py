"""What sinks get: the changes of a step as lines of JSON, each with its id, its type and whether it inserts or retracts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from augury.sinks import Answers, jsonl
from augury.sinks.texts import data_of


@dataclass(frozen=True)
class RenderedChanges:
    """The changes of a step, row by row: `ops` are insert or retract, `lines` have no line end."""

    step: int
    ops: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)


def rendered(step: int, answers: Iterable[Answers[Any]], trace: bool = True) -> RenderedChanges:
    """Changes of one step after another as one: an insertion and a later retraction stay two rows."""
    result = RenderedChanges(step)
    for each in answers:
        names = {type: jsonl.named(each.plan, type) for type in each.plan.outputs}
        for chunk in each.chunks(trace=trace):
            pieces = chunk.pieces
            lines = chunk.interleaved([jsonl.piece_lines(piece, names[piece.type], each.clock) for piece in pieces])
            result.lines.extend(_lines_of(lines))
            result.ids.extend(chunk.interleaved([piece.ids for piece in pieces]).to_pylist())
            for column, name in ((result.ops, "op"), (result.types, "type")):
                if len(pieces) == 1:
                    column.extend([getattr(pieces[0], name) or "insert"] * len(pieces[0]))
                else:
                    whole = [pa.repeat(pa.scalar(getattr(piece, name) or "insert"), len(piece)) for piece in pieces]
                    column.extend(chunk.interleaved(whole).to_pylist())
    return result


def _lines_of(lines: Any) -> list[bytes]:
    """The items of an array of lines, without their ends: no other character of a line is one."""
    return bytes(data_of(lines)).split(b"\n")[:-1]
