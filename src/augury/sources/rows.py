"""Events as objects: one by one, and many of one shape column by column.

{"type": "wind", "args": ["l1", 12.5], "time": 3}      {"op": "revoke", "id": "e7"}      Event("wind", ("l1", 12.5), 3)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from augury.algebra.program import Plan
from augury.clock import Clock
from augury.errors import DataError, nearest
from augury.model import Event, HistoryItem, Revocation, Value, from_json
from augury.sources.cells import MISSING, PlainCells, declared, python_column, read_time
from augury.sources.columns import Array, Column
from augury.sources.heading import NAMES, Names
from augury.sources.history import Batch, History
from augury.sources.types import convert

FORM = '{"type": "wind", "args": ["l1", 12.5], "time": 3}'
_SHAPES = 256  # of objects that are worth a look each


# One by one


def item_from(item: Any, plan: Plan, clock: Clock, names: Names = NAMES, type: str | None = None) -> HistoryItem:
    """An event or a revocation from a Python object or the JSON form; `type` is that of an object that names none."""
    if isinstance(item, Event):
        return replace(item, args=_converted(item.type, item.args, plan))
    if isinstance(item, Revocation):
        return item
    if not isinstance(item, Mapping):
        raise DataError(f"not an event: {item!r:.60}", hint=f"an event is {FORM}")
    name = item.get(names.type, type)
    # A declared attribute of that name is an attribute: `event order(id: int)` has no event ids in its `id`.
    own = {a.name for a in plan.declared.get(str(name), ())} if "args" not in item else set()
    op, id, known = (None if key in own else item.get(key) for key in (names.op, names.id, names.known))
    since = None if known is None else clock.read(known)
    id = "" if id is None else str(id)
    if op == "revoke":
        if not id:
            raise DataError("a revocation names the id of an event", hint='{"op": "revoke", "id": "e7"}')
        return Revocation(id, since)
    if op not in (None, "", "insert"):
        raise DataError(f"unknown op {op!r}", hint="it is insert or revoke")
    if not isinstance(name, str):
        raise DataError("an event has a type", hint=FORM)
    args = args_of(item, name, plan, names)
    start, end = _interval(item, clock, names)
    return Event(name, args, start, end, id, known=since)


def args_of(item: Mapping[str, Any], name: str, plan: Plan, names: Names) -> tuple[Value, ...]:
    """The arguments of an event in the JSON form: a list, or by name where the type is declared."""
    attributes = plan.declared.get(name)
    if "args" in item:
        if not isinstance(item["args"], list | tuple):
            raise DataError(f"the args of `{name}` are not a list")
        return _converted(name, item["args"], plan)
    if attributes is None:
        if any(key not in names.all for key in item):
            raise DataError(f"`{name}` has attributes by name, but the program does not declare it",
                            hint=f"declare `event {name}(…).`, or give `args` as a list")  # fmt: skip
        return ()
    missing = next((a.name for a in attributes if a.name not in item), None)
    if missing is not None:
        close = nearest(missing, [k for k in item if k not in names.all and k not in {a.name for a in attributes}])
        raise DataError(f"`{name}` has no `{missing}`", hint=f"there is `{close}`" if close else "")
    return tuple(convert(item[a.name], a, plan.prefixes) for a in attributes)


def _converted(name: str, given: Sequence[Any], plan: Plan) -> tuple[Value, ...]:
    """Arguments in order, of the declared types where there are any."""
    attributes = plan.declared.get(name)
    if attributes is None:
        return tuple(from_json(a) for a in given)
    if len(given) != len(attributes):
        raise DataError(f"`{name}` is declared with {len(attributes)} arguments, not {len(given)}")
    return tuple(convert(v, a, plan.prefixes) for v, a in zip(given, attributes, strict=True))


def _interval(item: Mapping[str, Any], clock: Clock, names: Names) -> tuple[int, int]:
    time, start, end = (read_time(item.get(k), clock) for k in (time_key(item, names), names.start, names.end))
    first, last = _first(start, time, end), _first(end, time, start)
    if first is None or last is None:
        raise DataError("an event has a time", hint='give "time", or "start" and "end"')
    if first > last:
        raise DataError(f"the event starts at {clock.show(first)}, after its end {clock.show(last)}")
    return first, last


def time_key(keys: Any, names: Names) -> str:
    return names.time if names.time in keys else "time"


def _first(*times: int | None) -> int | None:
    return next((t for t in times if t is not None), None)


# Column by column


class Irregular(Exception):
    """Objects that have to be looked at one by one: of many shapes, or wrong."""


def by_columns(objects: Sequence[Any], plan: Plan, clock: Clock, names: Names, type: str | None, first: int) -> History:
    """Events and revocations; `first` is the place of the first one in the order of arrival."""
    kinds = set(map(_type, objects))
    if kinds == {dict}:
        return _dicts(objects, plan, clock, names, type, first)
    if kinds and all(issubclass(kind, Event | Revocation) for kind in kinds):
        return _converted_columns(History.of(objects, range(first, first + len(objects))), plan)
    raise Irregular


_type = type


def _converted_columns(history: History, plan: Plan) -> History:
    for (name, arity), batch in history.batches.items():
        attributes = plan.declared.get(name)
        if attributes is not None and len(attributes) != arity:
            raise Irregular
        if attributes is not None:
            pairs = zip(batch.columns, attributes, strict=True)
            batch.columns = [declared(c, a, plan.prefixes) for c, a in pairs]
    return history


def _dicts(
    objects: Sequence[dict[str, Any]], plan: Plan, clock: Clock, names: Names, type: str | None, first: int
) -> History:
    history = History(length=len(objects))
    shapes = set(map(tuple, objects))
    if len(shapes) > _SHAPES:
        raise Irregular
    rows: Array = np.arange(first, first + len(objects))
    if any(names.op in shape for shape in shapes):
        other = [i for i, o in enumerate(objects) if o.get(names.op) not in (None, "", "insert")]
        if other:
            history = History.of(
                [item_from(objects[i], plan, clock, names, type) for i in other], (first + i for i in other)
            )
            history.length = len(objects)
            rows = np.delete(rows, other)
            objects = [objects[i] for i in (rows - first).tolist()]
    for name, places in _by_type(objects, names.type, type).items():
        some = objects if places is None else [objects[i] for i in places]
        batch = _batch(name, some, plan, clock, names)
        batch.rows = rows if places is None else rows[places]
        if (name, len(batch.columns)) in history.batches:  # an attribute that is called `op`
            raise Irregular
        history.batches[name, len(batch.columns)] = batch
    return history


def _by_type(objects: Sequence[dict[str, Any]], key: str, default: str | None) -> dict[str, list[int] | None]:
    """The places of the objects of each type; None for all of them."""
    try:
        types = list(map(itemgetter(key), objects))
    except KeyError:
        types = [o.get(key, default) for o in objects]
    try:
        different = set(types)
    except TypeError:
        raise Irregular from None
    if any(type(t) is not str for t in different):
        raise Irregular
    if len(different) == 1:
        return {types[0]: None}
    found: dict[str, list[int]] = {}
    for i, name in enumerate(types):
        found.setdefault(name, []).append(i)
    return dict(found)


def _batch(name: str, objects: Sequence[dict[str, Any]], plan: Plan, clock: Clock, names: Names) -> Batch:
    shapes = set(map(tuple, objects))
    keys = set().union(*shapes)
    columns = _columns(name, objects, shapes, keys, plan, names)
    own = {a.name for a in plan.declared.get(name, ())} if "args" not in keys else set()
    time = names.time if all(names.time in shape for shape in shapes) else "time" if names.time == "time" else None
    if time is None:
        if any(names.time in shape for shape in shapes):
            raise Irregular
        time = "time"

    def said(key: str) -> list[Any] | None:
        return [o.get(key) for o in objects] if key in keys and key not in own else None

    times = [
        None if key not in keys else PlainCells([o.get(key) for o in objects]).times(clock)
        for key in (time, names.start, names.end)
    ]
    start, end = interval(times[0], times[1], times[2])
    ids, known = said(names.id), said(names.known)
    texts = None if ids is None else [None if i is None or i == "" else str(i) for i in ids]
    since = None if known is None else PlainCells(known).times(clock)
    return Batch(start, end, columns, texts if texts is not None and any(texts) else None, known=since)


def _columns(
    name: str, objects: Sequence[dict[str, Any]], shapes: set[tuple[str, ...]], keys: set[str], plan: Plan, names: Names
) -> list[Column]:
    attributes = plan.declared.get(name)
    if "args" in keys:
        if not all("args" in shape for shape in shapes):
            raise Irregular
        lists = list(map(itemgetter("args"), objects))
        if not set(map(type, lists)) <= {list, tuple} or len(set(map(len, lists))) > 1:
            raise Irregular
        columns = [python_column(values) for values in zip(*lists, strict=True)]
        if attributes is not None and len(attributes) != len(columns):
            raise Irregular
    elif attributes is None:
        if not keys <= set(names.all):
            raise Irregular
        columns = []
    else:
        if not all(a.name in shape for a in attributes for shape in shapes):
            raise Irregular
        columns = [python_column(list(map(itemgetter(a.name), objects))) for a in attributes]
    if attributes is None:
        return columns
    return [declared(c, a, plan.prefixes) for c, a in zip(columns, attributes, strict=True)]


def interval(time: Array | None, start: Array | None, end: Array | None) -> tuple[Array, Array]:
    """Start and end of events by what says them: one that is missing is taken from the others."""
    if start is None and end is None and time is not None:
        first = last = time
    else:
        first, last = _coalesced(start, time, end), _coalesced(end, time, start)
    if (first == MISSING).any() or (first is not last and ((last == MISSING).any() or (first > last).any())):
        raise Irregular
    return first, last


def _coalesced(*times: Array | None) -> Array:
    given = [t for t in times if t is not None]
    if not given:
        raise Irregular
    found = given[0]
    for other in given[1:]:
        found = np.where(found == MISSING, other, found)
    return found
