"""JSON lines: an object for each answer, with its arguments as a list and by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from augury.algebra.graph_queries import stream_of
from augury.algebra.plan import Plan
from augury.core.clock import Clock
from augury.core.model import Event, to_json
from augury.sinks.answers import AnswerColumns, Answers, items_of
from augury.sinks.names import column_names, numbered
from augury.sinks.texts import data_of, joined, json_texts, quoted, times


def event_as_json(
    event: Event, clock: Clock, op: str | None = None, plan: Plan | None = None, trace: bool = True
) -> dict[str, Any]:
    """The JSON form of a derived event, with `op` first where changes are asked for, and attributes by name with a plan.

    A graph event is written in the form in which they come in.
    """
    args = [to_json(a) for a in event.args]
    stream = stream_of(event.type)
    if stream is not None:
        return {
            **({"op": op} if op else {}),
            "stream": stream,
            "time": clock.show(event.end),
            "graph": args[0],
            "id": event.id,
            **({"trace": list(event.trace)} if trace else {}),
        }
    return {
        **({"op": op} if op else {}),
        "type": event.type,
        "args": args,
        **({name: args[i] for name, i in named(plan, event.type).items() if i < len(args)} if plan else {}),
        "start": clock.show(event.start),
        "end": clock.show(event.end),
        "id": event.id,
        **({"trace": list(event.trace)} if trace else {}),
    }


def named(plan: Plan, type: str) -> dict[str, int]:
    """The attributes of a type that have names of their own."""
    names = column_names(plan, type)
    return {name: i for i, name in enumerate(names) if name not in (numbered(i), "args")}


def lines(answers: Answers[Any], trace: bool = True) -> Iterator[Any]:
    """The answers as bytes, some lines at a time."""
    names = {type: named(answers.plan, type) for type in answers.plan.outputs}
    for chunk in answers.chunks(trace=trace):
        yield data_of(
            chunk.interleaved([piece_lines(piece, names[piece.type], answers.clock) for piece in chunk.pieces])
        )


def piece_lines(piece: AnswerColumns, names: dict[str, int], clock: Clock) -> Any:
    """As `json.dumps(event_as_json(…), ensure_ascii=False)` writes each of them."""
    texts = [json_texts(column) for column in piece.columns]
    op = f'"op": "{piece.op}", ' if piece.op else ""
    stream = stream_of(piece.type)
    if stream is not None:
        time = times(piece.end, clock)
        shown = quoted(time) if clock.kind == "timestamp" else time
        return _ended([f'{{{op}"stream": {_text(stream)}, "time": ', shown, ', "graph": ', texts[0]], piece)
    pieces: list[Any] = [f'{{{op}"type": {_text(piece.type)}, "args": [']
    for i, text in enumerate(texts):
        pieces += [", ", text] if i else [text]
    pieces.append("]")
    for name, i in names.items():
        if i < len(texts):
            pieces += [f", {_text(name)}: ", texts[i]]
    for key, time in (("start", piece.start), ("end", piece.end)):
        shown = times(time, clock)
        pieces += [f', "{key}": ', quoted(shown) if clock.kind == "timestamp" else shown]
    return _ended(pieces, piece)


def _ended(pieces: list[Any], piece: AnswerColumns) -> Any:
    """Lines that end with the id and the trace."""
    pieces += [', "id": ', quoted(piece.ids)]
    if piece.trace is not None:
        pieces += [', "trace": [', pc.binary_join(_quoted_lists(piece.trace), ", "), "]"]
    return joined(*_merged([*pieces, "}\n"]))


def _quoted_lists(lists: Any) -> Any:
    offsets = lists.offsets.to_numpy()
    return pa.ListArray.from_arrays(pa.array(offsets - offsets[0]), quoted(items_of(lists)))


def _merged(pieces: list[Any]) -> list[Any]:
    """Texts that stand side by side for all rows, as one."""
    result: list[Any] = []
    for piece in pieces:
        if isinstance(piece, str) and result and isinstance(result[-1], str):
            result[-1] += piece
        else:
            result.append(piece)
    return result


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
