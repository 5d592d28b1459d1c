"""Sheets of facts: read column by column; row by row only to locate errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from augury.algebra.plan import Plan
from augury.core.arrays import Array
from augury.core.clock import Clock
from augury.core.errors import DataError
from augury.knowledge.fact_table import ALWAYS, EVER, FactTable
from augury.knowledge.timeline import Statement, StatementTable, statement, statement_tables
from augury.sources.cells import MISSING, Cells, time_of
from augury.sources.heading import FactHeading
from augury.sources.problems import OnError, Problem, Skipped
from augury.sources.sheet import Items, Sheet, with_kinds
from augury.sources.text_cells import TextCells
from augury.storage.column import coded


def facts_of_sheets(
    name: str, sheets: Iterable[Sheet], plan: Plan, clock: Clock, skipped: Skipped
) -> list[StatementTable]:
    """The facts of sheets; a wrong row stops the run, or is skipped."""
    statements: list[StatementTable] = []
    held: list[Sheet] = []
    columns: tuple[str, ...] | None = None
    for sheet in sheets:
        columns = columns or sheet.names
        sheet = sheet.like(columns)
        checked(name, sheet, plan)
        if name not in plan.static and any(isinstance(cells, TextCells) for cells in sheet.cells):
            held.append(sheet)  # what its columns are is known when all of them are there
        else:
            statements += facts_of_sheet(name, sheet, plan, clock, skipped)
    return statements + [
        table for sheet in with_kinds(held) for table in facts_of_sheet(name, sheet, plan, clock, skipped)
    ]


def facts_of_sheet(name: str, sheet: Sheet, plan: Plan, clock: Clock, skipped: Skipped) -> list[StatementTable]:
    """The facts of one sheet."""
    try:
        result = [read_sheet(name, sheet, plan, clock)]
    except DataError:
        return read_rows(name, sheet, plan, clock, skipped)
    skipped.handle_all(sheet.problems)
    return result


def checked(name: str, sheet: Sheet, plan: Plan) -> FactHeading:
    """The columns of a sheet; refuses those that a fact cannot hold."""
    heading = FactHeading(name, sheet.names, plan, sheet.top)
    heading.check()
    for column in heading.used:
        refused = sheet[column].refused()
        if refused is not None:
            raise DataError(
                f"the column `{column}` is {refused[0]}, which no fact can hold", sheet.location, refused[1]
            )
    return heading


def read_sheet(name: str, sheet: Sheet, plan: Plan, clock: Clock) -> StatementTable:
    """The facts of a sheet, column by column. What is wrong with a cell is a DataError that does not say where."""
    heading = checked(name, sheet, plan)
    columns = tuple(sheet[h].column(attribute, plan.prefixes) for h, attribute in heading.args)
    since, until, op = (
        heading.column_for("time", "valid_from"),
        heading.column_for("valid_to"),
        heading.column_for("op"),
    )
    starts = _bounds(sheet[since], clock, ALWAYS) if since else None
    ends = _bounds(sheet[until], clock, EVER) if until else None
    if starts is not None and ends is not None and (starts >= ends).any():
        raise DataError("a fact with an empty interval")
    retract = _retracts(sheet[op]) if op else None
    if retract is not None and retract.any():
        if starts is None or (starts[retract] == ALWAYS).any():
            raise DataError("a retract needs a time")
        if ends is not None and (ends[retract] != EVER).any():
            raise DataError("a retract has no `valid_to`")
    else:
        retract = None
    return StatementTable(FactTable(name, columns, sheet.length, starts, ends), retract)


def _bounds(cells: Cells, clock: Clock, unbounded: int) -> Array | None:
    """Times, `unbounded` where there is none; None where no row has one."""
    result = cells.times(clock)
    missing = result == MISSING
    return None if missing.all() else np.where(missing, unbounded, result)


def _retracts(cells: Cells) -> Array:
    """Whether a row retracts, by its `op`."""
    result = coded(cells.plain())
    unknown = [v for v in result.values if v not in (None, "", "assert", "retract")]
    if unknown:
        raise DataError(f"unknown op {unknown[0]!r}", hint="it must be assert or retract")
    return np.array([*(v == "retract" for v in result.values), False], bool)[result.index]


def read_rows(name: str, sheet: Sheet, plan: Plan, clock: Clock, skipped: Skipped) -> list[StatementTable]:
    """The facts of a sheet, row by row; a wrong one is named with its place."""
    heading = checked(name, sheet, plan)
    statements, problems = one_by_one(sheet, lambda row: _statement(heading, sheet, row, plan, clock), skipped.on_error)
    skipped.handle_all(problems)
    return statement_tables(statements)


def one_by_one(
    part: Sheet | Items, read: Callable[[int], Statement], on_error: OnError
) -> tuple[list[Statement], list[Problem]]:
    """The statements of a part, with what is wrong in it, up to where a run would stop."""
    statements: list[Statement] = []
    problems = list(part.problems)
    for row in range(len(part)):
        try:
            statements.append(read(row))
        except DataError as error:
            problems.append((part.line(row), error.at(error.place or part.location_of(row))))
            if on_error == "stop":
                break
    return statements, problems


def _statement(heading: FactHeading, sheet: Sheet, row: int, plan: Plan, clock: Clock) -> Statement:
    since, until, op = (
        heading.column_for("time", "valid_from"),
        heading.column_for("valid_to"),
        heading.column_for("op"),
    )
    values = tuple(sheet.value(h, row, attribute, plan.prefixes) for h, attribute in heading.args)
    bounds = [None if key is None else time_of(sheet.cell(key, row, clock), key, clock) for key in (since, until)]
    return statement(heading.name, values, sheet.cell(op, row) if op else None, bounds[0], bounds[1])
