"""Reads sheets and objects from any source into a history of events in columns.

A part is read column by column; only where that fails are its rows looked at one by one, to name what is wrong with each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from augury.algebra.graph_queries import stream_of
from augury.algebra.plan import Plan, Predicate
from augury.core.arrays import Array
from augury.core.clock import Clock, TimePoint, Timestamp, number_of, read_timestamp
from augury.core.collector import uncollected
from augury.core.errors import DataError, RunError, brief, misspelt, nearest
from augury.core.model import MAX_INT, Event, HistoryItem, Revocation
from augury.sources.cells import MISSING, Cells
from augury.sources.files import SourceFile
from augury.sources.graph_events import GraphColumns, is_stream
from augury.sources.heading import NAMES, ColumnNames, EventHeading, declares_type
from augury.sources.history import Batch, History
from augury.sources.objects import (
    FORM,
    IrregularObjects,
    by_shape,
    interval,
    item_from,
    of_events,
    version_of,
    with_paths,
)
from augury.sources.problems import Problem, Skipped
from augury.sources.python_cells import ColumnCells
from augury.sources.sheet import Items, Sheet, with_kinds
from augury.sources.tables import is_table, sheets
from augury.sources.text_cells import TextCells
from augury.sources.types import from_numpy, is_null
from augury.storage.column import coded

_NO_KEY = " type"  # which no object of JSON has: its type is given, and `type` is an attribute
_CHUNK = 1 << 14  # objects that are read at a time: they should stay in the caches until they are columns
_type = type


class EventTypes:
    """The event types of a program. A type that it does not know is passed over, unless it looks misspelt."""

    def __init__(self, plan: Plan, strict: bool = False) -> None:
        self.strict = strict
        self.arities: dict[str, set[int]] = {}
        for name, arity in plan.event_types:
            self.arities.setdefault(name, set()).add(arity)

    def passed_over(self, type: Predicate) -> str:
        """The name under which unused events of a type are counted; empty for a type that the program knows."""
        name, arity = type
        if name not in self.arities:
            return name
        return "" if arity in self.arities[name] else f"{name}/{arity}"

    def problem(self, type: Predicate) -> DataError | None:
        """The error for events of a type that is probably misspelt; with `strict`, for any that the program does not know."""
        name, arity = type
        if name not in self.arities:
            return self.unknown(name)
        return self.width(name, arity) if self.strict else None

    def width(self, name: str, arity: int) -> DataError | None:
        """The error for a wrong number of arguments of a known type."""
        if name not in self.arities or arity in self.arities[name]:
            return None
        expected = " or ".join(str(n) for n in sorted(self.arities[name]))
        return DataError(f"`{name}` has {arity} arguments; the program uses it with {expected}")

    def unknown(self, name: str) -> DataError | None:
        """The error for a type that the program does not know; None where it is passed over."""
        if name in self.arities:
            return None
        if stream_of(name) is not None and not self.strict:
            return None  # streams are often numbered, and one that is not read is no slip
        close = (nearest if self.strict else misspelt)(name, sorted(self.arities))
        if close is None and not self.strict:
            return None
        hint = f"did you mean `{close}`?" if close else f"the program knows {', '.join(sorted(self.arities))}"
        return DataError(f"unknown event type `{name}`", hint=hint)


class Reader:
    """Reads events for a program. The clock is chosen by the first time that it meets."""

    def __init__(
        self,
        plan: Plan,
        clock: Clock | Callable[[object], Clock],
        skipped: Skipped | None = None,
        strict: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.plan = self.written_plan = plan  # the first gets the zone of the clock
        self.skipped, self.known_types = skipped or Skipped(), EventTypes(plan, strict)
        self._clock = clock
        self.row = 0  # the place of the next row in the order of arrival
        self.progress = progress

    @cached_property
    def graphs(self) -> GraphColumns:
        return GraphColumns(self.plan)

    @property
    def clock(self) -> Clock:
        """The clock of the run; without any event, the one that there is by default."""
        if not isinstance(self._clock, Clock):
            self._clock = self._clock(None)
        return self._clock

    def _begin(self, part: Sheet | Items, first_time: Callable[[], object]) -> Clock:
        """The clock, once a time is there to tell it; revocations alone need none."""
        if isinstance(self._clock, Clock):
            clock = self._clock
        else:
            first = first_time()
            try:
                clock = self._clock(first)
            except DataError as error:
                raise error.at(part.location) from None
            if first is not None and clock.decided:
                self._clock = clock
        self.plan = self.plan.in_zone(clock.zone)
        return clock

    # Wherever events come from

    def source(self, source: SourceFile) -> History:
        """The events of a file, a folder or standard input."""
        return History.joined([*self.parts(source)] or [History()])

    def parts(self, source: SourceFile) -> Iterator[History]:
        """The events of a source, part by part."""
        size, most = 0, self.skipped.limits.bytes
        for part in self._parts(source):
            yield part
            if most is not None and not source.live:
                size += part.nbytes
                if size > most:
                    raise DataError(f"its events take more than {most:,} bytes", source.location, "--limit bytes=…")

    def _parts(self, source: SourceFile) -> Iterator[History]:
        """Undeclared columns of text are known when all parts are."""
        if source.type is not None:
            self._refuse(self.known_types.unknown(source.type), source.location)
        held: list[Sheet] = []
        columns: tuple[str, ...] | None = None
        for part in source.parts(self.plan, self.skipped.limits):
            if isinstance(part, Items):
                yield self.objects(part, source.names, source.type)
                continue
            columns = columns or part.names
            part = part.like(columns)
            if not len(part) and self.skipped.on_error == "stop":
                self.skipped.handle_all(part.problems)  # of a line that is too long: nothing is read beyond it
            if self._waits(part, source):
                held.append(part)
            else:
                yield self.sheet(part, source.names, source.type)
        for sheet in with_kinds(held):
            yield self.sheet(sheet, source.names, source.type)

    def _refuse(self, problem: DataError | None, location: str) -> None:
        if problem is not None:
            raise DataError(problem.message, location, problem.hint)

    def _waits(self, sheet: Sheet, source: SourceFile) -> bool:
        """Whether the columns of a sheet of text have to be known as a whole."""
        if not any(isinstance(cells, TextCells) for cells in sheet.cells):
            return False
        if source.type is not None:
            return source.type not in self.plan.declared
        return any(name not in self.plan.declared for name in self.known_types.arities)

    def sources(self, sources: Iterable[SourceFile], in_order: bool = False) -> History:
        """The events of several sources as one history. Each keeps its order, and of what comes next in them the earliest
        is said first, where the order matters: `in_order`, or where events have ids."""
        histories = [self.source(source) for source in sources]
        firsts = np.cumsum([self.row - sum(map(len, histories)), *map(len, histories)])
        history = History.joined(histories or [History()])
        named = bool(history.revoked) or any(batch.ids is not None for batch in history.batches.values())
        if len(histories) > 1 and (in_order or named):
            _interleave(history, firsts)
        return history

    def tables(self, tables: Mapping[str, object]) -> History:
        """Tables, or files, by type. They are pushed in the order of time."""
        histories = [
            self.source(replace(t, type=name)) if isinstance(t, SourceFile) else self.table(name, t)
            for name, t in tables.items()
        ]
        history = History.joined(histories)
        history.ordered = False
        return history

    def table(self, name: str | None, table: object, names: ColumnNames = NAMES) -> History:
        """The events of a table of Python; without a type, it has a column that names it."""
        position = f"the table of `{name}`" if name is not None else "the events"
        if name is not None:
            self._refuse(self.known_types.unknown(name), "")
        return History.joined([self.sheet(sheet, names, name) for sheet in sheets(table, position)])

    def listed(self, objects: Iterable[object]) -> History:
        """Events, revocations and objects in the JSON form."""
        histories: list[History] = []
        chunk: list[Any] = []
        for item in objects:
            chunk.append(item)
            if len(chunk) == _CHUNK:
                histories.append(self._chunk(chunk, len(histories)))
                chunk = []
        if chunk or not histories:
            histories.append(self._chunk(chunk, len(histories)))
        return History.joined(histories)

    def _chunk(self, objects: list[Any], number: int) -> History:
        return self.objects(Items(objects, "the events", lambda row: number * _CHUNK + row + 1))

    # One part

    def objects(self, items: Items, names: ColumnNames = NAMES, type: str | None = None) -> History:
        """Objects, one an event or a revocation."""
        if not len(items):
            self.skipped.handle_all(items.problems)
            return History()
        if declares_type(type, self.plan, names):
            names = replace(names, type=_NO_KEY)
        if (self.plan.has_columns or names is not NAMES) and (paths := names.paths(self.plan)):
            objects = [with_paths(item, paths) if _type(item) is dict else item for item in items.objects]
            items = replace(items, objects=objects, columns=None)
        clock, problems = self._begin(items, lambda: first_time(items.objects, names)), items.problems
        try:
            with uncollected():
                history = self._objects(items, names, type, clock)
        except (IrregularObjects, DataError):
            read = lambda row: item_from(items.objects[row], self.plan, clock, names, type)  # noqa: E731
            history, problems = self._one_by_one(items, read)
        return self._checked(history, items, problems)

    def _objects(self, items: Items, names: ColumnNames, type: str | None, clock: Clock) -> History:
        kinds = {dict} if items.columns is not None else set(map(_type, items.objects))
        if kinds == {dict}:
            shaped = by_shape(items, names, type)
            result = History.joined([self._by_columns(sheet, heading, clock, rows) for rows, sheet, heading in shaped])
            result.length = len(items)
            return result
        if all(issubclass(kind, Event | Revocation) for kind in kinds):
            result = of_events(items.objects, self.plan, self.row)
            for (name, _), batch in result.batches.items():
                if self._has_graphs(name):
                    batch.columns = [self.graphs.column(name, ColumnCells(column)) for column in batch.columns]
            return result
        raise IrregularObjects

    def sheet(self, sheet: Sheet, names: ColumnNames = NAMES, type: str | None = None) -> History:
        """Rows under a header."""
        heading = EventHeading(sheet.names, names, type, sheet.top)
        heading.check(self.plan)
        self._check_cells(sheet, heading)
        if not len(sheet):
            self.skipped.handle_all(sheet.problems)
            return History()
        clock, problems = self._begin(sheet, lambda: _first_of_sheet(sheet, heading)), sheet.problems
        try:
            history = self._by_columns(sheet, heading, clock)
        except (IrregularObjects, DataError):
            history, problems = self._one_by_one(sheet, lambda row: self._item(sheet, heading, row, clock))
        return self._checked(history, sheet, problems)

    def _checked(self, history: History, part: Sheet | Items, problems: list[Problem]) -> History:
        """Without the events of types that are probably misspelt; those of unknown types are counted.

        What is wrong with the part is said in the order of its lines.
        """
        first, self.row = self.row, self.row + len(part)
        problems = list(problems)
        for type in list(history.batches):
            # A table with another number of columns is a mistake; an object is an event of another type.
            problem = self.known_types.problem(type) or (
                self.known_types.width(*type) if isinstance(part, Sheet) else None
            )
            if problem is not None:
                for row in (history.batches.pop(type).rows - first).tolist():
                    problems.append((part.line(row), DataError(problem.message, part.location_of(row), problem.hint)))
            elif name := self.known_types.passed_over(type):
                history.unknown[name] = history.unknown.get(name, 0) + len(history.batches[type])
        self.skipped.handle_all(problems)
        if self.progress is not None:
            self.progress(self.row)
        return history

    def _one_by_one(self, part: Sheet | Items, read: Callable[[int], HistoryItem]) -> tuple[History, list[Problem]]:
        """Row by row; with what is wrong, up to where a run would stop."""
        items: list[HistoryItem] = []
        rows: list[int] = []
        problems = list(part.problems)
        for row in range(len(part)):
            try:
                items.append(read(row))
                rows.append(self.row + row)
            except DataError as error:
                wrong = error.at(error.place or part.location_of(row))
                problems.append((part.line(row), wrong))
                if self.skipped.on_error == "stop":
                    break
        result = History.of(items, rows)
        result.length = len(part)
        return result, problems

    # A sheet

    def _check_cells(self, sheet: Sheet, heading: EventHeading) -> None:
        """Refuses a table with columns that no event can hold."""
        for name in self._used(sheet, heading):
            refused = sheet[name].refused()
            if refused is not None:
                raise DataError(
                    f"the column `{name}` is {refused[0]}, which no event can hold", sheet.location, refused[1]
                )

    def _used(self, sheet: Sheet, heading: EventHeading) -> Iterable[str]:
        if heading.type is None:
            return sheet.names
        roles = ("start", "end", "time", "id", "op", "known", "version")
        said = [name for role in roles if (name := heading.column_for(role))]
        try:
            return [*(name for name, _ in heading.args(heading.type, self.plan)), *said]
        except DataError as error:
            raise DataError(error.message, sheet.location_of(0) if len(sheet) else sheet.top, error.hint) from None

    def _by_columns(self, sheet: Sheet, heading: EventHeading, clock: Clock, places: Array | None = None) -> History:
        """The events of a sheet; `places` are those of its rows, where they do not follow one another."""
        history, names = History(length=len(sheet)), heading.names
        order = self.row + (np.arange(len(sheet)) if places is None else places)
        types, index = self._types(sheet, heading)
        times = {name: sheet[name].times(clock) for name in {names.time, names.start, names.end} & set(sheet.names)}
        ops = sheet[names.op].texts() if names.op in sheet.names else None
        ids = sheet[names.id].texts() if names.id in sheet.names else None
        known_times = sheet[names.known].times(clock) if names.known in sheet.names else None
        versions = _versions(sheet[names.version], names.version) if names.version in sheet.names else None
        inserts = self._revocations(history, heading, types, index, ops, ids, known_times, versions, order)
        for number, name in enumerate(types):
            mask = (
                inserts if len(types) == 1 else (index == number) & inserts if inserts is not None else index == number
            )
            rows = None if mask is None or mask.all() else np.flatnonzero(mask)
            if rows is not None and not len(rows):
                continue
            if name is None:
                raise IrregularObjects
            own_columns = heading.own_columns(name, self.plan)
            cells = [(sheet[column], attribute) for column, attribute in heading.args(name, self.plan)]
            chosen = [(c if rows is None else c.some(rows), a) for c, a in cells]
            graphs = self.graphs if self._has_graphs(name) else None
            # Where rows may be refused, all of a row is looked at before it is accepted.
            later = self.skipped.on_error == "stop"
            columns = [
                graphs.column(name, c, a) if graphs else (c.deferred if later else c.column)(a, self.plan.prefixes)
                for c, a in chosen
            ]
            parts = [
                None if (t := times.get(n)) is None else t if rows is None else t[rows]
                for n in (names.time, names.start, names.end)
            ]
            start, end = interval(*parts)
            texts = (
                None
                if ids is None or names.id in own_columns
                else ids
                if rows is None
                else [ids[i] for i in rows.tolist()]
            )
            since = (
                None
                if known_times is None or names.known in own_columns
                else known_times
                if rows is None
                else known_times[rows]
            )
            if since is not None and (since == MISSING).all():
                since = None
            batch = Batch(start, end, columns, texts if texts is not None and any(texts) else None, known=since)
            if versions is not None and names.version not in own_columns:
                batch.versions = _checked_versions(versions if rows is None else versions[rows], batch.ids)
            batch.rows = order if rows is None else order[rows]
            history.batches[name, len(columns)] = batch
        return history

    def _has_graphs(self, type: str) -> bool:
        """Whether events of a type are graph events that some query reads."""
        return is_stream(type) and type in self.known_types.arities

    def _types(self, sheet: Sheet, heading: EventHeading) -> tuple[list[str | None], Array]:
        """The types of the rows, and which of them each row has."""
        if heading.type is not None or heading.names.type not in sheet.names:
            return [heading.type], np.zeros(len(sheet), np.int64)
        values, index = coded(sheet[heading.names.type].written()).distinct()
        if not all(v is None or isinstance(v, str) for v in values):
            raise IrregularObjects
        return [v or None for v in values], index  # type: ignore[misc]

    def _revocations(
        self,
        history: History,
        heading: EventHeading,
        types: list[str | None],
        index: Array,
        ops: list[str | None] | None,
        ids: list[str | None] | None,
        known_times: Array | None,
        versions: Array | None,
        order: Array,
    ) -> Array | None:
        """Takes in the rows that revoke; which rows are left, None for all."""
        if ops is None or not any(op not in (None, "insert") for op in ops):
            return None
        names = heading.names
        attributes = [set() if name is None else heading.own_columns(name, self.plan) for name in types]
        has_op = [names.op in some for some in attributes]
        left = np.ones(len(ops), bool)
        for row, op in enumerate(ops):
            if op in (None, "insert") or has_op[index[row]]:
                continue
            declared = attributes[index[row]]
            version = None if versions is None or names.version in declared else int(versions[row])
            version = None if version == MISSING else version
            if op == "replace" and version is not None:
                continue
            id = None if ids is None or names.id in declared else ids[row]
            if op != "revoke" or id is None:
                raise IrregularObjects
            said = known_times is not None and names.known not in declared and known_times[row] != MISSING
            since = int(known_times[row]) if said and known_times is not None else None
            history.revoked.append((int(order[row]), Revocation(id, since, version)))
            left[row] = False
        return left

    def _item(self, sheet: Sheet, heading: EventHeading, row: int, clock: Clock) -> HistoryItem:
        """One row of a sheet."""
        names = heading.names
        said = (names.time, names.start, names.end, names.id, names.op, names.known, names.version)
        roles = [n for n in ((names.type,) if heading.type is None else ()) + said if n in sheet.names]
        times = {names.time, names.start, names.end, names.known}
        cells = ((n, sheet.cell(n, row, clock if n in times else None)) for n in roles)
        item: dict[str, Any] = {n: v for n, v in cells if not _is_empty(v)}
        if heading.type is not None:
            item[names.type] = heading.type
        type = item.get(names.type)
        if not isinstance(type, str):
            if item.get(names.op) != "revoke":
                type_found = f"has {brief(type)}" if names.type in item else "is empty"
                raise DataError("an event has a type", hint=f"the column `{names.type}` {type_found}")
            type = ""
        if item.get(names.op, "insert") in ("insert", "replace") or names.op in heading.own_columns(type, self.plan):
            args = heading.args(type, self.plan)
            values = [sheet.value(column, row, attribute, self.plan.prefixes) for column, attribute in args]
            item = {
                k: v
                for k, v in item.items()
                if k not in heading.own_columns(type, self.plan) or k in (names.time, names.start, names.end)
            }
            item["args"] = values
        return item_from(item, self.plan, clock, names)


def _versions(cells: Cells, column: str) -> Array:
    """The versions of a column, MISSING where there is none."""
    column = cells.plain()
    if isinstance(column, np.ndarray) and column.dtype.kind == "i":
        if len(column) and int(column.min()) == MISSING:
            raise IrregularObjects
        return column.astype(np.int64)
    values = coded(column)
    read = [version_of(value, column) for value in values.values]
    if not all(number is None or MISSING < number <= MAX_INT for number in read):
        raise IrregularObjects
    return np.array([*(MISSING if number is None else number for number in read), MISSING], np.int64)[values.index]


def _checked_versions(versions: Array, ids: list[str | None] | None) -> Array | None:
    """Versions, 0 where there is none; nothing where all are. One without an id is refused."""
    versions = np.where(versions == MISSING, 0, versions)
    numbered = np.flatnonzero(versions)
    if not len(numbered):
        return None
    if ids is None or any(ids[row] is None for row in numbered.tolist()):
        raise IrregularObjects
    return versions


def _is_empty(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and cell == "")


def _interleave(history: History, firsts: Array) -> None:
    """Numbers the rows of sources anew: each source keeps its order, and of their next rows the earliest comes first.

    A row comes as soon as no other source has one that is earlier, so it is placed by the greatest time up to it in its own.
    """
    size, first = int(firsts[-1] - firsts[0]), int(firsts[0])
    times = np.full(size, MISSING, np.int64)
    for batch in history.batches.values():
        said = batch.end if batch.known is None else np.where(batch.known == MISSING, batch.end, batch.known)
        times[batch.rows - first] = said
    for row, item in history.revoked:
        if item.known is not None:
            times[row - first] = item.known
    sources = np.repeat(np.arange(len(firsts) - 1), np.diff(firsts))
    for lo, hi in pairwise((firsts - first).tolist()):
        np.maximum.accumulate(times[lo:hi], out=times[lo:hi])
    position = np.empty(size, np.int64)
    position[np.lexsort((np.arange(size), sources, times))] = np.arange(first, first + size)
    for batch in history.batches.values():
        batch.rows = position[batch.rows - first]
    history.revoked = [(int(position[row - first]), item) for row, item in history.revoked]


def read_history(reader: Reader, events: object) -> History:
    """Events in any form in which they come: objects, tables by type, one table with a column `type`, files."""
    if isinstance(events, History):
        return events
    if isinstance(events, SourceFile):
        return reader.sources([events])
    if isinstance(events, Mapping):
        if events and all(isinstance(event, SourceFile) or is_table(event) for event in events.values()):
            return reader.tables(events)
        raise RunError("neither an event nor tables by type", hint=f'an event is {FORM}, tables are {{"wind": table}}')
    if is_table(events):
        if "type" not in _columns_of(events):
            raise RunError("a table of which type?", hint='give it by type, {"wind": table}, or with a column `type`')
        return reader.table(None, events)
    if isinstance(events, str | bytes | Event | Revocation) or not isinstance(events, Iterable):
        hint = 'augury.read("events.csv") reads a file' if isinstance(events, str) else ""
        raise RunError(f"events are a list of events, or tables by type, not {type(events).__name__}", hint=hint)
    listed = events if isinstance(events, list | tuple) else None
    if listed and all(isinstance(item, SourceFile) for item in listed):
        return reader.sources(listed)
    return reader.listed(events)


def _columns_of(table: object) -> list[str]:
    if hasattr(table, "schema") and hasattr(table.schema, "names"):
        names: Any = table.schema.names
    else:
        names = getattr(table, "column_names", None) or getattr(table, "columns", ())
    return [str(n) for n in (names() if callable(names) else names)]


# The first time, which decides the clock


def first_time(items: Iterable[object], names: ColumnNames = NAMES) -> object:
    """The first time that an input names; where none can be read, the first thing in the place of one."""
    said: object = None
    for item in items:
        if isinstance(item, Event):
            return TimePoint(item.end)
        if isinstance(item, dict):
            for key in (names.time, "time", names.end, names.start):
                if (hint := clock_hint(item.get(key))) is not None:
                    return hint
                said = _said(item.get(key)) if said is None else said
    return said


def first_of(part: Sheet | Items, names: ColumnNames, type: str | None) -> object:
    """The first time of a part, as `first_time` has it."""
    if isinstance(part, Items):
        return first_time(part.objects, names)
    return _first_of_sheet(part, EventHeading(part.names, names, type))


def _first_of_sheet(sheet: Sheet, heading: EventHeading) -> object:
    names = heading.names
    columns = [sheet[n] for n in (names.time, names.end, names.start) if n in sheet.names]
    for hint in (clock_hint, _said):
        result = [first for cells in columns if (first := cells.first(hint))]
        if result:
            return min(result, key=lambda pair: pair[0])[1]
    return None


def clock_hint(time: object) -> object:
    """The clock that a time suggests: a number is one, however it is written. A value that is no time on any clock suggests none."""
    if isinstance(time, np.generic):
        time = from_numpy(time)
    match time:
        case str() if (number := number_of(time)) is not None:
            return number if isinstance(number, int) else float(number)
        case str():
            try:
                read_timestamp(time)
            except ValueError:
                return None
            return time
        case float():
            return time if isfinite(time) else None
        case int():
            return None if isinstance(time, bool) else time
        case date() | Timestamp():
            return None if is_null(time) else time
    return None


def _said(time: object) -> object:
    return None if is_null(time) or (isinstance(time, str) and time == "") else time
