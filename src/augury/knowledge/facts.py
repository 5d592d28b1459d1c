"""Facts from files, tables, databases and Python objects, and whether they fit the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from augury.algebra.plan import Plan, Predicate, static_calls
from augury.algebra.sparql_conditions import KNOWN_PREFIXES
from augury.core.clock import Clock
from augury.core.errors import DataError, brief, counted, misspelt, nearest
from augury.core.limits import NO_LIMITS, Limits
from augury.core.model import Fact
from augury.knowledge.fact_table import FactTable, tables_of
from augury.knowledge.rdfs import ABOVE, DIRECT
from augury.knowledge.static_triples import STATIC_TRIPLES
from augury.knowledge.timeline import Statement, StatementTable, resolved_facts, statement, statement_tables
from augury.sources import FORMATS, Skipped, SourceFile
from augury.sources.cells import time_of
from augury.sources.heading import FACT_ROLES
from augury.sources.objects import argument
from augury.sources.python_cells import PlainCells
from augury.sources.sheet import Items, Sheet
from augury.sources.tables import is_table, sheets
from augury.sources.types import convert

OF_GRAPHS = frozenset({ABOVE, DIRECT, STATIC_TRIPLES})  # facts that come with graphs, and that no program names

_MANY = 1000  # tuples that are worth turning into columns


class Facts(Sequence[Fact]):
    """The facts of a run, in tables; iterate over it for single ones.

    `tables` are those of predicates of which nothing is retracted, `statements` those about the others, and `settled`
    all facts with the intervals in which they hold.
    """

    def __init__(self, statement_tables: Iterable[StatementTable] = ()) -> None:
        self.statement_tables = tuple(statement_tables)

    @staticmethod
    def of(facts: Iterable[Fact]) -> Facts:
        """Single facts as tables."""
        return facts if isinstance(facts, Facts) else Facts(StatementTable(table) for table in tables_of(facts))

    def __add__(self, other: Facts) -> Facts:
        """The statements of the other come later."""
        return Facts(self.statement_tables + other.statement_tables)

    @cached_property
    def predicates(self) -> set[Predicate]:
        return {table.predicate for table in self.statement_tables}

    @cached_property
    def changing(self) -> set[Predicate]:
        """The predicates of which something is retracted."""
        return {table.predicate for table in self.statement_tables if table.retract is not None}

    @cached_property
    def timed(self) -> set[str]:
        """The names of those predicates whose facts do not always hold."""
        return {table.facts.name for table in self.statement_tables if table.facts.timed or table.retract is not None}

    @cached_property
    def tables(self) -> list[FactTable]:
        return [table.facts for table in self.statement_tables if table.predicate not in self.changing]

    @cached_property
    def statements(self) -> list[StatementTable]:
        return [table for table in self.statement_tables if table.predicate in self.changing]

    @cached_property
    def resolved(self) -> list[FactTable]:
        changing = dict.fromkeys(table.predicate for table in self.statements)
        return self.tables + [resolved_facts(t for t in self.statements if t.predicate == p) for p in changing]

    def __iter__(self) -> Iterator[Fact]:
        for table in self.resolved:
            yield from table

    def __len__(self) -> int:
        return sum(map(len, self.resolved))

    @cached_property
    def _listed(self) -> list[Fact]:
        return list(self)

    @overload
    def __getitem__(self, index: int) -> Fact: ...
    @overload
    def __getitem__(self, index: slice) -> list[Fact]: ...
    def __getitem__(self, index: int | slice) -> Fact | list[Fact]:
        return self._listed[index]

    def __repr__(self) -> str:
        return f"<Facts: {', '.join(f'{name}/{arity}' for name, arity in sorted(self.predicates))}>"

    def __reduce__(self) -> Any:
        return Facts, (self.statement_tables,)


# Reading


def read_fact_file(name: str, path: str, plan: Plan, clock: Clock, skipped: Skipped) -> Facts:
    """Facts from a file, by its ending: CSV, JSON lines, Parquet, Arrow, or a database with a query.

    Columns are the arguments in order, or by name where the program declares them. `valid_from`, or `time`, and `valid_to`
    say when a fact holds; an `op` of `retract` that it no longer does.
    """
    return Facts(_from_path(name, path, plan, clock, skipped))


def _from_path(name: str, path: str, plan: Plan, clock: Clock, skipped: Skipped) -> list[StatementTable]:
    from augury.knowledge.databases import Database

    database = Database.parse(path)
    if database is not None:
        from augury.knowledge.sheets import facts_of_sheets

        return facts_of_sheets(name, [database.sheet(name, skipped.limits)], plan, clock, skipped)
    source = SourceFile(path)
    if path != "-":
        _check_form(source)
    return _from_source(name, source, plan, clock, skipped)


# Addresses of tables and topics of facts that change (`connectors/`), which may have passwords.
_FOLLOWED = ("postgres", "postgresql", "kafka", "redis", "nats", "mqtt", "delta")


def _from_source(name: str, source: SourceFile, plan: Plan, clock: Clock, skipped: Skipped) -> list[StatementTable]:
    from augury.knowledge.sheets import facts_of_sheets

    if source.path != "-" and not source.remote and FORMATS[source.files()[0].form()].graphs:
        raise DataError("is an RDF file, not a table of facts", source.location, "give it with --rdf, or rdf=…")
    statements: list[StatementTable] = []
    tables: list[Sheet] = []
    for part in source.parts(limits=skipped.limits):
        if isinstance(part, Items):
            statements += facts_of_items(name, part, plan, clock, skipped)
        else:
            tables.append(part)
    return statements + facts_of_sheets(name, tables, plan, clock, skipped)


def _check_form(source: SourceFile) -> None:
    scheme, separator, _ = source.path.partition("://")
    if separator and scheme in _FOLLOWED:
        raise DataError(
            "is followed while it changes, which `augury live --facts` does",
            f"{scheme}://",
            "for a run or a stream on Spark write the table to a file, or give it in Python: facts={name: frame}",
        )
    try:
        source.check()
    except DataError as error:
        if "by its name" not in error.message:
            raise
        raise DataError(
            "is neither CSV, JSON lines, Parquet, Arrow nor a database by its name",
            source.location,
            "name it .csv, .jsonl, .parquet, .arrow, .duckdb or .sqlite",
        ) from None


def facts_of_items(name: str, items: Items, plan: Plan, clock: Clock, skipped: Skipped) -> list[StatementTable]:
    """Facts from objects, one each: column by column where they have one shape, else one by one."""
    from augury.knowledge.sheets import one_by_one, read_sheet

    try:
        sheet = _sheet_of_objects(name, items, plan)
        if sheet is not None:
            result = [read_sheet(name, sheet, plan, clock)]
            skipped.handle_all(items.problems)
            return result
    except DataError:
        pass
    statements, problems = one_by_one(
        items, lambda row: statement_from(name, items.objects[row], plan, clock), skipped.on_error
    )
    skipped.handle_all(problems)
    return statement_tables(statements)


def _sheet_of_objects(name: str, items: Items, plan: Plan) -> Sheet | None:
    """Objects of one shape as a sheet: dicts by their keys, lists in order; None where there are several shapes."""
    if items.columns is not None and items.columns.listed is None and "functor" not in items.columns.named:
        return Sheet(tuple(items.columns.named), [*items.columns.named.values()], len(items))
    objects = items.objects
    kinds = set(map(type, objects))
    attributes = plan.static.get(name)
    if len(objects) < _MANY:
        return None
    if kinds == {dict}:
        shapes = set(map(tuple, objects))
        keys = next(iter(shapes))
        if len(shapes) > 1 or {"args", "functor"} & set(keys):
            return None
        return Sheet(keys, [PlainCells([o[k] for o in objects]) for k in keys], len(objects))
    if not kinds <= {list, tuple} or len(set(map(len, objects))) > 1 or not objects[0]:
        return None
    names = tuple(f" {i}" for i in range(len(objects[0]))) if attributes is None else tuple(a.name for a in attributes)
    if len(names) != len(objects[0]) or set(names) & set(FACT_ROLES):
        return None
    return Sheet(names, [PlainCells(values) for values in zip(*objects, strict=True)], len(objects))


def statement_from(name: str, row: object, plan: Plan, clock: Clock) -> Statement:
    """A statement from a Python object: a tuple or list of values, a dict by attribute name, or one value."""
    declared = plan.static.get(name)
    op = since = until = None
    if isinstance(row, Mapping) and "functor" not in row:
        arguments = set() if "args" in row else {a.name for a in declared or ()}
        roles = {key: row.get(key) for key in FACT_ROLES if key not in arguments}
        op, since, until = roles.get("op"), _since(roles, clock), time_of(roles.get("valid_to"), "valid_to", clock)
        named = {k: v for k, v in row.items() if k not in roles}
        for key in named.keys() - arguments - {"args"}:
            if arguments or "args" in row:
                close = misspelt(str(key), [*FACT_ROLES, *arguments])
                if close:
                    raise DataError(f"a fact of `{name}` has no `{key}`", hint=f"did you mean `{close}`?")
        values = _values(name, named, plan)
    else:
        values = list(row) if isinstance(row, list | tuple) else [row]
    if declared is None:
        args = tuple(argument(name, i, v) for i, v in enumerate(values, 1))
        return statement(name, args, op, since, until)
    if len(values) != len(declared):
        raise DataError(f"`{name}` is declared with {counted(len(declared), 'argument')}, not {len(values)}")
    args = tuple(convert(v, a, plan.prefixes) for v, a in zip(values, declared, strict=True))
    return statement(name, args, op, since, until)


def _values(name: str, named: Mapping[str, object], plan: Plan) -> list[Any]:
    """The arguments of a row in the form of a dict."""
    declared = plan.static.get(name)
    if "args" in named:
        if not isinstance(named["args"], list | tuple):
            raise DataError(f"the args of `{name}` are not a list")
        return list(named["args"])
    if declared is None:
        return list(named.values())
    missing = [a.name for a in declared if a.name not in named]
    if missing:
        close = nearest(missing[0], map(str, named))
        raise DataError(f"a fact of `{name}` has no `{missing[0]}`", hint=f"there is `{close}`" if close else "")
    return [named[a.name] for a in declared]


def _since(roles: Mapping[str, object], clock: Clock) -> int | None:
    if roles.get("time") is not None and roles.get("valid_from") is not None:
        raise DataError("has both `time` and `valid_from`", hint="they mean the same: keep one of them")
    key = "valid_from" if roles.get("time") is None else "time"
    return time_of(roles.get(key), key, clock)


def facts_listed(facts: object) -> list[Any]:
    """Facts that are a list, to be looked at before the program is known."""
    if facts is None:
        return []
    if isinstance(facts, Fact):
        return [facts]
    if isinstance(facts, str | Path) or not isinstance(facts, Iterable) or _sheets_of(facts, "") is not None:
        raise DataError(
            "facts are given by name", hint='facts={"store": …}, where … is a list, a table, a query or a path'
        )
    result = list(facts)
    for item in result:
        if not isinstance(item, Fact) and not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)):
            raise DataError(
                f"facts are `Fact` objects, or rows by name, not {brief(item)}",
                hint='facts={"store": [("s1", "north")]}',
            )
    return result


def facts_from(
    source: Iterable[object] | Mapping[str, object], plan: Plan, clock: Clock, skipped: Skipped | None = None
) -> Facts:
    """Facts from `Fact` objects, or from pairs of a name and what holds its rows.

    That is a list of tuples or dicts, a table of Arrow, pandas or DuckDB, a connection and its query, or a path. A wrong
    row stops the run, unless `skipped` says otherwise.
    """
    if isinstance(source, Facts):
        return source
    tables: list[StatementTable] = []
    single: list[Fact] = []
    items: Iterable[Any] = source.items() if isinstance(source, Mapping) else facts_listed(source)
    for item in items:
        if isinstance(item, Fact):
            single.append(item)
            continue
        tables += Facts.of(single).statement_tables
        single = []
        name, rows = item
        tables += _rows_from(full_name(name, plan), rows, plan, clock, skipped or Skipped())
    return Facts((*tables, *Facts.of(single).statement_tables))


def _rows_from(name: str, rows: object, plan: Plan, clock: Clock, skipped: Skipped) -> list[StatementTable]:
    from augury.knowledge.sheets import facts_of_sheets

    position = f"facts `{name}`"
    if isinstance(rows, str | Path):
        return _from_path(name, str(rows), plan, clock, skipped)
    if isinstance(rows, SourceFile):
        return _from_source(name, rows, plan, clock, skipped)
    result = _sheets_of(rows, position, skipped.limits)
    if result is not None:
        return facts_of_sheets(name, result, plan, clock, skipped)
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise DataError(
            f"the facts of `{name}` are {type(rows).__name__}, not rows", hint="give a list, a table or a path"
        )
    return facts_of_items(
        name, Items(rows if isinstance(rows, list | tuple) else list(rows), position), plan, clock, skipped
    )


def full_name(name: str, plan: Plan) -> str:
    """The name of a predicate; a prefixed one as the IRI that it stands for."""
    prefix, colon, local = name.partition(":")
    prefixes = {**KNOWN_PREFIXES, **plan.prefixes}
    return prefixes[prefix] + local if colon and prefix in prefixes and not local.startswith("//") else name


def _sheets_of(rows: object, source: str, limits: Limits = NO_LIMITS) -> Iterable[Sheet] | None:
    """A table, or a query for one, as sheets."""
    from augury.knowledge.databases import query_sheet, relation_sheet

    if isinstance(rows, tuple) and len(rows) == 2 and isinstance(rows[1], str) and hasattr(rows[0], "cursor"):
        return [query_sheet(rows[0], rows[1], source, limits)]
    if type(rows).__module__.split(".")[0] in ("duckdb", "_duckdb"):
        return [relation_sheet(rows, source)]
    library = type(rows).__module__.split(".")[0]
    return sheets(rows, source) if is_table(rows) or library in ("pyarrow", "pandas") else None


# Checking


def check_facts(facts: Iterable[Fact], plan: Plan) -> None:
    """Facts that nothing asks for, or with another number of arguments, are probably a mistake."""
    asked: dict[str, set[int]] = {}
    for name, arity in static_calls(plan) | {(n, len(a)) for n, a in plan.static.items()}:
        asked.setdefault(name, set()).add(arity)
    for name, arity in _predicates(facts):
        if name in OF_GRAPHS or name in plan.queries:
            continue
        if name not in asked:
            close = nearest(name, asked)
            raise DataError(
                f"nothing in the program asks for facts of `{name}`",
                hint=f"did you mean `{close}`?" if close else f"it asks for {', '.join(sorted(asked)) or 'none'}",
            )
        if arity not in asked[name]:
            expected = " or ".join(str(n) for n in sorted(asked[name]))
            raise DataError(f"a fact of `{name}` has {counted(arity, 'argument')}; the program asks with {expected}")


def without_facts(facts: Iterable[Fact], plan: Plan) -> list[str]:
    """The static predicates that the program asks for and nothing defines."""
    predicates = (
        {name for name, _ in _predicates(facts)} | {c.name for c in plan.clauses} | {name for name, _ in plan.made}
    )
    return sorted({name for name, _ in static_calls(plan)} - predicates)


def _predicates(facts: Iterable[Fact]) -> list[Predicate]:
    """The predicates of facts, those first that come first."""
    if isinstance(facts, Facts):
        return list(dict.fromkeys(table.predicate for table in facts.statement_tables))
    return list(dict.fromkeys((f.name, len(f.args)) for f in facts))
