"""Events as objects: one by one, and many of one shape column by column.

{"type": "wind", "args": ["l1", 12.5], "time": 3}      {"op": "revoke", "id": "e7"}      Event("wind", ("l1", 12.5), 3)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from augury.algebra.plan import Attribute, Plan
from augury.core.arrays import Array, RowIds, Times
from augury.core.bounds import MAX_TIME, MIN_TIME
from augury.core.clock import Clock, check_time, number_of
from augury.core.errors import DataError, brief, nearest
from augury.core.model import (
    MAX_INT,
    MIN_INT,
    VERSION_NEEDS_ID,
    Event,
    HistoryItem,
    Revocation,
    Value,
    on_calendar,
)
from augury.sources.cells import MISSING, Cells, declared, time_of
from augury.sources.graph_events import as_plain, check_graph, graph_columns, is_graph_event, is_stream
from augury.sources.heading import NAMES, ColumnNames, EventHeading
from augury.sources.history import History
from augury.sources.python_cells import PlainCells
from augury.sources.sheet import Items, Sheet
from augury.sources.types import convert, text_of, value_of

FORM = '{"type": "wind", "args": ["l1", 12.5], "time": 3}'
_REPLACE = '{"op": "replace", "id": "e7", "version": 2, …}'
_SHAPES = 256  # of objects that are worth a look each


# One by one


def with_paths(item: Mapping[str, object], paths: Sequence[str]) -> Mapping[str, object]:
    """An object with a key more for each name that is no key but a path to a value inside: null where there is none.

    {"card": {"id": "c1"}} with the path card.id   →   {"card": {"id": "c1"}, "card.id": "c1"}
    """
    more: dict[str, object] = {}
    for path in paths:
        head, *inside = path.split(".")
        if path not in item and head in item:
            value: object = item[head]
            for name in inside:
                value = value.get(name) if isinstance(value, Mapping) else None
            more[path] = value
    return {**item, **more} if more else item


def item_from(item: Any, plan: Plan, clock: Clock, names: ColumnNames = NAMES, type: str | None = None) -> HistoryItem:
    """An event or a revocation from a Python object or the JSON form; `type` is that of an object that names none."""
    if isinstance(item, Event):
        for time in (item.start, item.end, item.known):
            _check_point(time, item.type)
        args = _converted(item.type, item.args, plan)
        _check_graph(item.type, args, plan)
        check_version(item.version, item.id)
        return replace(item, args=args)
    if isinstance(item, Revocation):
        _check_point(item.known, f"the revocation of {brief(item.id)}")
        if item.version is not None:
            check_version(item.version, item.id)
        return item
    if not isinstance(item, Mapping):
        raise DataError(f"not an event: {brief(item)}", hint=f"an event is {FORM}")
    if is_graph_event(item, names, type):
        item = as_plain(item, names)
    if plan.has_columns or names is not NAMES:
        item = with_paths(item, names.paths(plan))
    name = item.get(names.type, type)
    # A declared attribute of that name is an attribute: `event order(id: int)` has no event ids in its `id`.
    declared = plan.declared.get(name, ()) if isinstance(name, str) else ()
    declared_columns = {names.column(name, a) for a in declared} if "args" not in item else set()
    roles = (names.op, names.id, names.known, names.version)
    op, id, known_time, version = (None if key in declared_columns else item.get(key) for key in roles)
    since, id, op = time_of(known_time, names.known, clock), _text(id, names.id) or "", _text(op, names.op)
    number = version_of(version, names.version)
    if op == "revoke":
        if not id:
            raise DataError("a revocation names the id of an event", hint='{"op": "revoke", "id": "e7"}')
        return Revocation(id, since, number)
    if op not in (None, "insert", "replace"):
        raise DataError(f"unknown op {brief(op)}", hint="it must be insert, replace or revoke")
    if op == "replace" and number is None:
        raise DataError("a replacement names its version", hint=_REPLACE)
    check_version(number or 0, id)
    if not isinstance(name, str) or not name:
        raise DataError("an event has a type", hint=FORM)
    _text(name, names.type)
    args = args_of(item, name, plan, names)
    _check_graph(name, args, plan)
    start, end = _interval(item, clock, names)
    event = Event(name, args, start, end, id, known=since, version=number or 0)
    return on_calendar(event) if clock.kind == "timestamp" else event


def version_of(cell: object, column: str) -> int | None:
    """The version that a cell or a key says; None where it says none."""
    if cell is None or cell == "":
        return None
    with suppress(DataError):
        number = number_of(cell) if isinstance(cell, str) else cell
        value = convert(number, Attribute(column, "int"), {})
        if type(value) is int or (value is None and not isinstance(cell, str)):
            return value
    raise DataError(f"a version is a whole number, not {brief(cell)}").of(column)


def check_version(version: int, id: str) -> None:
    """Refuses a version that is none, or that no id has."""
    if type(version) is not int or not MIN_INT < version <= MAX_INT:
        raise DataError(f"a version must fit into 64 bits, not {brief(version)}")
    if version and not id:
        raise DataError(VERSION_NEEDS_ID, hint=_REPLACE)


def _check_point(time: int | None, what: str) -> None:
    """Refuses a time point of an event of Python that is too far from the origin, or that is no integer."""
    if time is None:
        return
    if type(time) is not int:
        raise DataError(f"{what}: {brief(time)} is not a time point, which is an integer")
    try:
        check_time(time)
    except DataError as error:
        raise DataError(f"{what}: {error.message}", hint=error.hint) from None


def _check_graph(type: str, args: tuple[Value, ...], plan: Plan) -> None:
    """Raises DataError where the graph of an event that some query reads is no RDF."""
    if is_stream(type) and len(args) == 1 and is_known(type, plan):
        if not isinstance(args[0], str):
            raise DataError(f"the graph of a graph event is text, not {brief(args[0])}", hint="N-Triples or Turtle")
        check_graph(args[0])


def _text(value: object, column: str) -> str | None:
    try:
        return text_of(value)
    except DataError as error:
        raise error.of(column) from None


def args_of(item: Mapping[str, object], name: str, plan: Plan, names: ColumnNames) -> tuple[Value, ...]:
    """The arguments of an event in the JSON form: a list, or by name where the type is declared."""
    attributes = plan.declared.get(name)
    if "args" in item:
        if not isinstance(item["args"], list | tuple):
            raise DataError(f"the args of `{name}` are not a list")
        return _converted(name, item["args"], plan)
    if attributes is None:
        if any(key not in names.all for key in item) and is_known(name, plan):
            raise DataError(
                f"`{name}` has attributes by name, but the program does not declare it",
                hint=f"declare `event {name}(…).`, or give `args` as a list",
            )
        return ()
    keys = [names.column(name, a) for a in attributes]
    missing = next((key for key in keys if key not in item), None)
    if missing is not None:
        close = nearest(missing, [str(k) for k in item if k not in names.all and k not in keys])
        raise DataError(f"`{name}` has no `{missing}`", hint=f"there is `{close}`" if close else "")
    return tuple(convert(item[key], a, plan.prefixes) for key, a in zip(keys, attributes, strict=True))


def is_known(name: str, plan: Plan) -> bool:
    """Whether the program reads events of a type. Of those that it does not read, the time alone matters."""
    return any(name == declared for declared, _ in plan.event_types)


def _converted(name: str, values: Sequence[object], plan: Plan) -> tuple[Value, ...]:
    """Arguments in order, of the declared types where there are any."""
    attributes = plan.declared.get(name)
    if attributes is None:
        return tuple(argument(name, i, a) for i, a in enumerate(values, 1))
    if len(values) != len(attributes):
        raise DataError(f"`{name}` is declared with {len(attributes)} arguments, not {len(values)}")
    return tuple(convert(v, a, plan.prefixes) for v, a in zip(values, attributes, strict=True))


def argument(name: str, number: int, value: object) -> Value:
    """An argument that is not declared."""
    try:
        return value_of(value)
    except DataError as error:
        raise DataError(f"argument {number} of `{name}`: {error.message}", hint=error.hint) from None


def _interval(item: Mapping[str, object], clock: Clock, names: ColumnNames) -> tuple[int, int]:
    time, start, end = (time_of(item.get(k), k, clock) for k in (time_key(item, names), names.start, names.end))
    first, last = _first(start, time, end), _first(end, time, start)
    if first is None or last is None:
        raise DataError("an event has a time", hint='give "time", or "start" and "end"')
    if first > last:
        raise DataError(f"the event starts at {clock.show(first)}, after its end {clock.show(last)}")
    return first, last


def time_key(keys: Any, names: ColumnNames) -> str:
    return names.time if names.time in keys else "time"


def _first(*times: int | None) -> int | None:
    return next((t for t in times if t is not None), None)


# Column by column


class IrregularObjects(Exception):
    """Objects that have to be looked at one by one: of many shapes, or wrong."""


@dataclass(frozen=True)
class ObjectHeading(EventHeading):
    """The keys of objects of one shape; `width` is how many arguments they list."""

    width: int | None = None

    def own_columns(self, type: str, plan: Plan) -> set[str]:
        return super().own_columns(type, plan) if self.width is None else set()

    def args(self, type: str, plan: Plan) -> list[tuple[str, Attribute | None]]:
        attributes = plan.declared.get(type)
        if self.width is None:
            if attributes is None and self.data:
                if is_known(type, plan):
                    raise IrregularObjects
                return []
            return super().args(type, plan)
        if attributes is not None and len(attributes) != self.width:
            raise IrregularObjects
        return [(_listed(i), attributes[i] if attributes else None) for i in range(self.width)]


def _listed(i: int) -> str:
    return f" {i}"  # no key of JSON that anybody has


def by_shape(items: Items, names: ColumnNames, type: str | None) -> Iterator[tuple[Array | None, Sheet, ObjectHeading]]:
    """Objects of one shape as a sheet each, with the places that they had; None where all are of one shape."""
    if items.columns is not None:
        named, listed = items.columns.named, items.columns.listed
        yield None, *_sheet(named, listed, len(items), names, type)
        return
    objects = items.objects
    keys = tuple(objects[0])
    if set(map(len, objects)) == {len(keys)}:
        with suppress(KeyError):  # as many keys, and all of these: one shape
            yield from _sheets(None, objects, keys, names, type)
            return
    shapes = list(map(tuple, objects))
    different = dict.fromkeys(shapes)
    if len(different) > _SHAPES:
        raise IrregularObjects
    places: dict[tuple[str, ...], list[int]] = {shape: [] for shape in different}
    for i, shape in enumerate(shapes):
        places[shape].append(i)
    for shape, rows in places.items():
        yield from _sheets(np.array(rows, np.int64), [objects[i] for i in rows], shape, names, type)


def _sheets(
    rows: RowIds | None, objects: Sequence[dict[str, Any]], keys: tuple[str, ...], names: ColumnNames, type: str | None
) -> Iterator[tuple[Array | None, Sheet, ObjectHeading]]:
    columns: dict[str, Sequence[Any]] = dict(zip(keys, _transposed(objects, keys), strict=True))
    lists = columns.pop("args", None)
    listed: list[Cells] | None = None
    if lists is not None:
        if not set(map(_type, lists)) <= {list, tuple} or len(set(map(len, lists))) > 1:
            raise IrregularObjects
        listed = [PlainCells(values) for values in zip(*lists, strict=True)]
    named: dict[str, Cells] = {key: PlainCells(values) for key, values in columns.items()}
    yield rows, *_sheet(named, listed, len(objects), names, type)


def _sheet(
    named: Mapping[str, Cells], listed: Sequence[Cells] | None, length: int, names: ColumnNames, type: str | None
) -> tuple[Sheet, ObjectHeading]:
    """Columns by the keys of objects, and by the places in their `args`."""
    if listed is None and is_graph_event(named, names, type):
        named, listed = graph_columns(named, names)
    columns = {**named, **{_listed(i): cells for i, cells in enumerate(listed or ())}}
    heading = ObjectHeading(
        tuple(columns),
        names if names.time in columns else replace(names, time="time"),
        None if names.type in columns else type,
        width=None if listed is None else len(listed),
    )
    return Sheet(tuple(columns), [*columns.values()], length), heading


def _transposed(objects: Sequence[dict[str, Any]], keys: tuple[str, ...]) -> Iterable[list[Any]]:
    return [list(map(itemgetter(key), objects)) for key in keys]


_type = type


def of_events(objects: Sequence[Any], plan: Plan, first: int) -> History:
    """Events and revocations that are objects of Python, by columns."""
    if not all(item.known is None or MIN_TIME <= item.known <= MAX_TIME for item in objects):
        raise IrregularObjects
    if not all(item.start >= MIN_TIME and item.end <= MAX_TIME for item in objects if isinstance(item, Event)):
        raise IrregularObjects
    if any(item.version and not (type(item.version) is int and item.id) for item in objects):
        raise IrregularObjects
    history = History.of(objects, range(first, first + len(objects)))
    for (name, arity), batch in history.batches.items():
        attributes = plan.declared.get(name)
        if attributes is not None and len(attributes) != arity:
            raise IrregularObjects
        if attributes is not None:
            pairs = zip(batch.columns, attributes, strict=True)
            batch.columns = [declared(c, a, plan.prefixes) for c, a in pairs]
    return history


def interval(time: Array | None, start: Times | None, end: Times | None) -> tuple[Array, Array]:
    """Start and end of events by what says them: one that is missing is taken from the others."""
    if start is None and end is None and time is not None:
        first = last = time
    else:
        first, last = _coalesced(start, time, end), _coalesced(end, time, start)
    if (first == MISSING).any() or (first is not last and ((last == MISSING).any() or (first > last).any())):
        raise IrregularObjects
    return first, last


def _coalesced(*times: Times | None) -> Array:
    columns = [t for t in times if t is not None]
    if not columns:
        raise IrregularObjects
    result = columns[0]
    for other in columns[1:]:
        result = np.where(result == MISSING, other, result)
    return result
