"""Rows of facts under a header, wherever they come from: read column by column, or row by row to find what is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from augury.algebra.program import Attribute, Plan, static_calls
from augury.clock import Clock
from augury.errors import DataError, counted, nearest
from augury.knowledge.columns import (
    arrow_cells,
    arrow_column,
    check_type,
    declared_column,
    moment_texts,
    python_column,
    read_time,
    retract_column,
    text_column,
    time_column,
)
from augury.knowledge.table import ALWAYS, EVER, Column, FactTable
from augury.knowledge.timeline import ASIDE, Statement, StatementTable, statement, statement_tables
from augury.model import Value, from_json
from augury.sources import Skipped, SourceFile, convert, from_text, infer_column, table_rows


def aside(name: str, plan: Plan) -> set[str]:
    """The names that are no arguments of a predicate."""
    return set(ASIDE) - {a.name for a in plan.static.get(name, ())}


class Sheet:
    """Rows under a header. `place` says where they were found."""

    def __init__(self, names: Sequence[str], columns: Sequence[Any], length: int, place: str) -> None:
        self.names, self.columns, self.length, self.place = list(names), columns, length, place

    @property
    def top(self) -> str:
        """Where the header is."""
        return self.place

    def check(self, name: str) -> None:
        """Refuses a column that a fact cannot hold."""

    def column(self, name: str, attribute: Attribute | None, plan: Plan) -> Column:
        """The values of a column, of the declared type if there is one."""
        values = self.plain(name)
        return values if attribute is None else declared_column(values, attribute, plan)

    def plain(self, name: str) -> Column:
        """The values of a column as they stand there."""
        return python_column(self.columns[self.names.index(name)])

    def rows(self, skipped: Skipped) -> Iterator[tuple[str, Sequence[Any]]]:
        """The rows, each with its place; those are left out that are no rows at all."""
        for number, row in enumerate(zip(*map(self.cells, range(len(self.names))), strict=True), 1):
            yield f"{self.place}:{number}", row

    def cells(self, at: int) -> Iterable[Any]:
        return self.columns[at]  # type: ignore[no-any-return]

    def cell(self, at: int, value: Any, attribute: Attribute | None, plan: Plan) -> Value:
        """One cell, of the declared type if there is one."""
        return from_json(value) if attribute is None else convert(value, attribute, plan)


class ArrowSheet(Sheet):
    """An Arrow table."""

    def __init__(self, table: Any, place: str) -> None:
        super().__init__(table.column_names, table.columns, table.num_rows, place)

    def check(self, name: str) -> None:
        check_type(name, self.columns[self.names.index(name)].type, self.place)

    def plain(self, name: str) -> Column:
        return arrow_column(self.columns[self.names.index(name)])

    def cells(self, at: int) -> Iterable[Any]:
        return arrow_cells(self.columns[at])


class TextSheet(Sheet):
    """A CSV file whose rows are all well formed."""

    @property
    def top(self) -> str:
        return f"{self.place}:1"

    def column(self, name: str, attribute: Attribute | None, plan: Plan) -> Column:
        return text_column(self.columns[self.names.index(name)], attribute, plan)

    def plain(self, name: str) -> Column:
        return moment_texts(self.columns[self.names.index(name)])


class LineSheet(TextSheet):
    """A CSV file line by line."""

    def __init__(self, source: SourceFile, text: str, skipped: Skipped) -> None:
        names, self.lines = table_rows(source, text, skipped)
        super().__init__(names, [], len(self.lines), source.place)
        self._reads = [infer_column(row[i] for _, row in self.lines) for i in range(len(names))]

    def rows(self, skipped: Skipped) -> Iterator[tuple[str, Sequence[Any]]]:
        for number, row in self.lines:
            yield f"{self.place}:{number}", row

    def cell(self, at: int, value: Any, attribute: Attribute | None, plan: Plan) -> Value:
        return self._reads[at](value) if attribute is None else from_text(value, attribute, plan)


@dataclass(frozen=True)
class Heading:
    """The columns of a sheet, and what they mean: arguments of the predicate, or something said of the fact."""

    name: str
    names: list[str]
    plan: Plan
    place: str

    @property
    def _aside(self) -> set[str]:
        return aside(self.name, self.plan)

    @property
    def data(self) -> list[str]:
        return [h for h in self.names if h not in self._aside]

    @property
    def args(self) -> list[tuple[str, Attribute | None]]:
        """The columns of the arguments: as declared, else those of data in order."""
        declared = self.plan.static.get(self.name)
        return [(h, None) for h in self.data] if declared is None else [(a.name, a) for a in declared]

    def said(self, *keys: str) -> str | None:
        """The column that says something of the facts."""
        return next((k for k in keys if k in self.names and k in self._aside), None)

    @property
    def used(self) -> list[str]:
        return [h for h, _ in self.args] + [k for k in ASIDE if self.said(k)]

    def check(self) -> None:
        """Refuses columns that stand twice, that are missing, or too many for what the program asks."""
        twice = [h for h in self.names if self.names.count(h) > 1]
        if twice:
            raise DataError(f"the column `{twice[0]}` stands twice", self.place)
        if self.said("time") and self.said("valid_from"):
            raise DataError("has both `time` and `valid_from`", self.place, "they mean the same: keep one of them")
        declared = self.plan.static.get(self.name)
        missing = [a.name for a in declared or () if a.name not in self.names]
        if missing:
            close = nearest(missing[0], self.data)
            raise DataError(f"`{self.name}` has no column `{missing[0]}`", self.place,
                            f"there is `{close}`" if close else f"the columns are {', '.join(self.data)}")  # fmt: skip
        if declared is None:
            self._check_arity()

    def _check_arity(self) -> None:
        asked = sorted(arity for name, arity in static_calls(self.plan) if name == self.name)
        if not asked or len(self.data) in asked:
            return
        expected, columns = " or ".join(map(str, asked)), f"{counted(len(self.data), 'column')}"
        shown = f"{columns} ({', '.join(self.data)})" if self.data else columns
        extra = [k for k in ("op", "time") if self.said(k)]
        hint = ""
        if len(self.data) > asked[0]:
            hint = f"declare those that are meant: `static {self.name}({', '.join(self.data[: asked[0]])}).`"
        elif len(self.data) + len(extra) in asked:
            said = "`op` and `time` say" if len(extra) > 1 else f"`{extra[0]}` says"
            hint = f"{said} something of the fact, unless declared: `static {self.name}({', '.join(self.names)}).`"
        raise DataError(f"`{self.name}` has {shown}; the program asks with {expected}", self.place, hint)


def read_sheet(name: str, sheet: Sheet, plan: Plan, clock: Clock) -> list[StatementTable]:
    """The facts of a sheet, column by column. What is wrong with a cell is a DataError that does not say where."""
    heading = checked(name, sheet, plan)
    columns = tuple(sheet.column(h, attribute, plan) for h, attribute in heading.args)
    since, until, op = heading.said("time", "valid_from"), heading.said("valid_to"), heading.said("op")
    starts = time_column(sheet.plain(since), clock, ALWAYS) if since else None
    ends = time_column(sheet.plain(until), clock, EVER) if until else None
    retract = retract_column(sheet.plain(op)) if op else None
    if retract is not None and retract.any():
        if starts is None or (starts[retract] == ALWAYS).any():
            raise DataError("a retract needs a time")
        if ends is not None and (ends[retract] != EVER).any():
            raise DataError("a retract has no `valid_to`")
    else:
        retract = None
    return [StatementTable(FactTable(name, columns, sheet.length, starts, ends), retract)]


def read_rows(name: str, sheet: Sheet, plan: Plan, clock: Clock, skipped: Skipped) -> list[StatementTable]:
    """The facts of a sheet, row by row; a wrong one is named with its place."""
    return statement_tables(_statements(checked(name, sheet, plan), sheet, plan, clock, skipped))


def checked(name: str, sheet: Sheet, plan: Plan) -> Heading:
    heading = Heading(name, sheet.names, plan, sheet.top)
    heading.check()
    for column in heading.used:
        sheet.check(column)
    return heading


def _statements(heading: Heading, sheet: Sheet, plan: Plan, clock: Clock, skipped: Skipped) -> Iterator[Statement]:
    at = {h: i for i, h in enumerate(sheet.names)}
    args = [(at[h], attribute) for h, attribute in heading.args]
    since, until, op = heading.said("time", "valid_from"), heading.said("valid_to"), heading.said("op")
    for place, row in sheet.rows(skipped):
        try:
            values = tuple(sheet.cell(i, row[i], attribute, plan) for i, attribute in args)
            bounds = [None if key is None else read_time(row[at[key]], clock) for key in (since, until)]
            yield statement(heading.name, values, row[at[op]] if op else None, bounds[0], bounds[1])
        except DataError as error:
            skipped.handle(DataError(error.message, place, error.hint))


def facts_of_sheet(name: str, sheet: Sheet, plan: Plan, clock: Clock, skipped: Skipped) -> list[StatementTable]:
    """The facts of a sheet; a wrong row stops the run, or is skipped."""
    checked(name, sheet, plan)
    try:
        return read_sheet(name, sheet, plan, clock)
    except DataError:
        return read_rows(name, sheet, plan, clock, skipped)
