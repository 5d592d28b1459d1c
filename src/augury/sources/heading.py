"""The role of each column of a table: arguments by name or in order, time, id, op and type.

place,level,time,id   with `event smoke(place: string, level: int).`   →   arguments place and level, time, id
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from augury.algebra.plan import Attribute, Plan, static_calls
from augury.core.errors import DataError, counted, nearest

FACT_ROLES = ("op", "time", "valid_from", "valid_to")  # what a row says of its fact, unless declared as an argument


@dataclass(frozen=True)
class ColumnNames:
    """The columns that say what is no attribute: of which type, when, which one in which version, whether taken back, and
    since when known.

    `renamed` are the columns of attributes that are called otherwise: type, attribute, column.
    """

    type: str = "type"
    time: str = "time"
    start: str = "start"
    end: str = "end"
    id: str = "id"
    op: str = "op"
    known: str = "known"
    version: str = "version"
    renamed: tuple[tuple[str, str, str], ...] = ()

    def column(self, type: str, attribute: Attribute) -> str:
        """The column, or key, that holds an attribute of a type: as the run says, else as the program does."""
        usual = attribute.column or attribute.name
        return next((c for t, a, c in self.renamed if (t, a) == (type, attribute.name)), usual)

    @property
    def all(self) -> tuple[str, ...]:
        """Every name that is no attribute of an undeclared type; `time` is none even where another column has the time."""
        return (self.type, self.time, "time", self.start, self.end, self.id, self.op, self.known, self.version)

    def paths(self, plan: Plan) -> tuple[str, ...]:
        """The columns that may be named by a path into a nested one, as `meta.ts`."""
        declared = (self.column(type, a) for type, attributes in plan.declared.items() for a in attributes)
        columns = (*self.all, *(column for _, _, column in self.renamed), *declared)
        return tuple(name for name in dict.fromkeys(columns) if "." in name)


NAMES = ColumnNames()


def no_columns_twice(names: Sequence[str], location: str) -> None:
    twice = next((h for h in names if names.count(h) > 1), None)
    if twice is not None:
        raise DataError(f"the column `{twice}` occurs twice", location)


def missing_column(
    type: str, missing: str, columns: Iterable[str], location: str = "", event: bool = False
) -> DataError:
    """The error for a declared column that is missing; columns of events can be renamed."""
    listed = list(columns)
    close = nearest(missing, listed)
    hint = f"there is `{close}`" if close else f"the columns are {', '.join(listed)}"
    if event:
        hint += f"; --columns {type}.{missing}={close or 'COLUMN'} says which column it is"
    return DataError(f"`{type}` has no column `{missing}`", location, hint)


ROLES = ("time", "start", "end", "id", "op", "known", "version")  # what a column says of an event, beside its type


def with_columns(names: ColumnNames, columns: Iterable[str], type: str | None, plan: Plan | None = None) -> ColumnNames:
    """Names with those of `event.attribute=column`; an attribute may be what a column says of an event, such as `time`."""
    for text in columns:
        target, equals, column = text.partition("=")
        event, dot, attribute = target.rpartition(".")
        if not (equals and dot and event and attribute and column):
            raise DataError(f"columns are renamed as event.attribute=column, not {text!r}", hint="wind.speed=v_kmh")
        names = _with_column(names, event, attribute, column, type, plan)
    return names


def _with_column(
    names: ColumnNames, event: str, attribute: str, column: str, type: str | None, plan: Plan | None
) -> ColumnNames:
    attributes = [a.name for a in plan.declared.get(event, ())] if plan is not None else []
    if attribute in ROLES and attribute not in attributes:
        role: dict[str, Any] = {attribute: column}
        return replace(names, **role) if event == type else names
    if plan is not None and attribute not in attributes:
        raise _unknown_attribute(event, attribute, attributes, plan)
    return replace(names, renamed=(*names.renamed, (event, attribute, column)))


def _unknown_attribute(event: str, attribute: str, attributes: Sequence[str], plan: Plan) -> DataError:
    if event not in plan.declared:
        types = {name for name, _ in plan.event_types}
        close = nearest(event, types) if event not in types else None
        hint = f"did you mean `{close}`?" if close else f"declare `event {event}({attribute}: string, …).`"
        return DataError(f"the program declares no event `{event}`, whose columns could be renamed", hint=hint)
    close = nearest(attribute, attributes)
    hint = f"did you mean `{close}`?" if close else f"its attributes are {', '.join(attributes)}"
    return DataError(f"`{event}` has no attribute `{attribute}`", hint=hint)


def declares_type(type: str | None, plan: Plan, names: ColumnNames) -> bool:
    """Whether a type is given that has an attribute of the name that else says the type of an event."""
    return type is not None and any(names.column(type, a) == names.type for a in plan.declared.get(type, ()))


@dataclass(frozen=True)
class EventHeading:
    """The columns of a table of events. `type` is that of all its rows; without it, a column names the type of each."""

    columns: tuple[str, ...]
    names: ColumnNames = NAMES
    type: str | None = None
    location: str = ""

    def check(self, plan: Plan) -> None:
        """Refuses a table that names neither type nor time, that names its type twice, or has a column twice."""
        names = self.names
        no_columns_twice(self.columns, self.location)
        self.check_type(plan)
        if self.type is None and names.type not in self.columns:
            path = self.location.rpartition(":")[0] or self.location
            raise DataError(
                f"has no column `{names.type}`", self.location, f"name the type of its events: --events TYPE={path}"
            )
        if not {names.time, names.start, names.end} & set(self.columns):
            usual = (h for h in self.columns if h.lower() in ("date", "datetime", "timestamp", "ts"))
            close = next(usual, nearest(names.time, self.columns))
            hint = (
                f"is it `{close}`? Say --time {close}" if close else "name the column that holds the time with --time"
            )
            raise DataError(f"has no column `{names.time}` (or `{names.start}` and `{names.end}`)", self.location, hint)

    def check_type(self, plan: Plan) -> None:
        """Refuses a table of one type whose rows name types of their own: both cannot be meant."""
        column = self.names.type
        if self.type is not None and column in self.columns and column not in self.own_columns(self.type, plan):
            raise DataError(
                f"has a column `{column}`, but the source says that all its events are `{self.type}`",
                self.location,
                f"leave out `{self.type}`, and each row is of the type that it names; if it is an attribute, declare it: `event {self.type}(…, {column}: string).`",
            )

    def own_columns(self, type: str, plan: Plan) -> set[str]:
        """The attributes of a declared type: no column of such a name says anything else of its events."""
        return {self.names.column(type, a) for a in plan.declared.get(type, ())}

    def column_for(self, role: str, declared: Iterable[str] = ()) -> str | None:
        """The column that says something of the events."""
        name: str = getattr(self.names, role)
        return name if name in self.columns and name not in declared else None

    @cached_property
    def interval(self) -> tuple[str, str]:
        """The columns that say when an event starts and ends. They do even where they are attributes, too."""
        n = self.names
        there = [c for c in (n.time, n.start, n.end) if c in self.columns]
        start = n.start if n.start in there else n.time if n.time in there else n.end
        return start, n.end if n.end in there else n.time if n.time in there else n.start

    @cached_property
    def data(self) -> list[str]:
        """The columns that are data of an undeclared type."""
        aside = set(self.names.all) - ({self.names.type} if self.type is not None else set())
        return [h for h in self.columns if h not in aside]

    def args(self, type: str, plan: Plan) -> list[tuple[str, Attribute | None]]:
        """The columns of the arguments of a type: as declared, else those of data in order, as many as the program uses."""
        attributes = plan.declared.get(type)
        if attributes is None:
            used = [arity for name, arity in plan.event_types if name == type]
            return [(h, None) for h in self.data[: used[0] if len(used) == 1 else None]]
        columns = [self.names.column(type, a) for a in attributes]
        missing = next((a for a, column in zip(attributes, columns, strict=True) if column not in self.columns), None)
        if missing is not None:
            column = self.names.column(type, missing)
            raise missing_column(type, column, self.data, event=column == missing.name)
        return list(zip(columns, attributes, strict=True))


@dataclass(frozen=True)
class FactHeading:
    """The columns of a table of facts: arguments of the predicate, or something said of the fact."""

    name: str
    columns: tuple[str, ...]
    plan: Plan
    location: str = ""

    @cached_property
    def _aside(self) -> set[str]:
        return set(FACT_ROLES) - {a.name for a in self.plan.static.get(self.name, ())}

    @property
    def data(self) -> list[str]:
        return [h for h in self.columns if h not in self._aside]

    @property
    def args(self) -> list[tuple[str, Attribute | None]]:
        """The columns of the arguments: as declared, else those of data in order."""
        declared = self.plan.static.get(self.name)
        return [(h, None) for h in self.data] if declared is None else [(a.name, a) for a in declared]

    def column_for(self, *roles: str) -> str | None:
        """The column that says something of the facts."""
        return next((k for k in roles if k in self.columns and k in self._aside), None)

    @property
    def used(self) -> list[str]:
        return [h for h, _ in self.args] + [k for k in FACT_ROLES if self.column_for(k)]

    def check(self) -> None:
        """Refuses columns that stand twice, that are missing, or too many for what the program asks."""
        no_columns_twice(self.columns, self.location)
        if self.column_for("time") and self.column_for("valid_from"):
            raise DataError("has both `time` and `valid_from`", self.location, "they mean the same: keep one of them")
        declared = self.plan.static.get(self.name)
        missing = next((a.name for a in declared or () if a.name not in self.columns), None)
        if missing is not None:
            raise missing_column(self.name, missing, self.data, self.location)
        if declared is None:
            self._check_arity()

    def _check_arity(self) -> None:
        asked = sorted(arity for name, arity in static_calls(self.plan) if name == self.name)
        if not asked or len(self.data) in asked:
            return
        expected, columns = " or ".join(map(str, asked)), counted(len(self.data), "column")
        shown = f"{columns} ({', '.join(self.data)})" if self.data else columns
        extra = [k for k in ("op", "time") if self.column_for(k)]
        hint = ""
        if len(self.data) > asked[0]:
            hint = f"declare those that are meant: `static {self.name}({', '.join(self.data[: asked[0]])}).`"
        elif len(self.data) + len(extra) in asked:
            said = "`op` and `time` say" if len(extra) > 1 else f"`{extra[0]}` says"
            hint = f"{said} something of the fact, unless declared: `static {self.name}({', '.join(self.columns)}).`"
        raise DataError(f"`{self.name}` has {shown}; the program asks with {expected}", self.location, hint)
