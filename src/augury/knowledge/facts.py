"""Facts from files and Python objects, and whether they fit the program."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from augury.algebra.program import Plan, static_calls
from augury.clock import Clock
from augury.errors import DataError, counted, nearest
from augury.model import Fact, from_json
from augury.sources import Skipped, SourceFile, convert, from_text, infer_column, table_rows


def read_fact_file(name: str, path: str, plan: Plan, clock: Clock, skipped: Skipped) -> list[Fact]:
    """Facts from a CSV file (columns in order, or by name where declared) or JSON lines (lists, or objects by name)."""
    source = SourceFile(path)
    text = source.read()
    if source.form(text) == "csv":
        return list(_csv_facts(name, source, text, plan, clock, skipped))
    facts: list[Fact] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            facts.append(fact_from(name, json.loads(line), plan, clock))
        except json.JSONDecodeError as error:
            skipped.handle(DataError(f"malformed JSON: {error.msg} at column {error.colno}", f"{path}:{number}"))
        except DataError as error:
            skipped.handle(DataError(error.message, f"{path}:{number}", error.hint))
    return facts


def _csv_facts(name: str, source: SourceFile, text: str, plan: Plan, clock: Clock, skipped: Skipped) -> Iterator[Fact]:
    header, rows = table_rows(source, text, skipped)
    data = [h for h in header if h not in ("valid_from", "valid_to")]
    declared = plan.static.get(name)
    reads = {h: infer_column(row[header.index(h)] for _, row in rows) for h in data}
    missing = [a.name for a in declared or () if a.name not in data]
    if missing:
        close = nearest(missing[0], data)
        raise DataError(f"`{name}` has no column `{missing[0]}`", f"{source.place}:1",
                        f"there is `{close}`" if close else f"the columns are {', '.join(data)}")  # fmt: skip
    for number, row in rows:
        cells = dict(zip(header, row, strict=True))
        try:
            args = (
                tuple(from_text(cells[a.name], a, plan) for a in declared)
                if declared
                else tuple(reads[h](cells[h]) for h in data)
            )
            yield Fact(name, args, *(_validity(cells.get(k) or None, clock) for k in ("valid_from", "valid_to")))
        except DataError as error:
            skipped.handle(DataError(error.message, f"{source.place}:{number}", error.hint))


def _validity(value: Any, clock: Clock) -> int | None:
    return None if value is None else clock.read(value)


def fact_from(name: str, row: Any, plan: Plan, clock: Clock) -> Fact:
    """A fact from a Python object: a tuple or list of values, a dict by attribute name, or one value."""
    declared = plan.static.get(name)
    since = until = None
    if isinstance(row, Mapping) and "functor" not in row:
        since, until = (_validity(row.get(k), clock) for k in ("valid_from", "valid_to"))
        named = {k: v for k, v in row.items() if k not in ("valid_from", "valid_to")}
        if "args" in named:
            values = list(named["args"])
        elif declared is not None:
            missing = [a.name for a in declared if a.name not in named]
            if missing:
                raise DataError(f"a fact of `{name}` has no `{missing[0]}`")
            values = [named[a.name] for a in declared]
        else:
            values = list(named.values())
    else:
        values = list(row) if isinstance(row, list | tuple) else [row]
    if declared is None:
        return Fact(name, tuple(from_json(v) for v in values), since, until)
    if len(values) != len(declared):
        raise DataError(f"`{name}` is declared with {len(declared)} arguments, not {len(values)}")
    return Fact(name, tuple(convert(v, a, plan) for v, a in zip(values, declared, strict=True)), since, until)


def check_facts(facts: Iterable[Fact], plan: Plan) -> None:
    """Facts that nothing asks for, or with another number of arguments, are probably a mistake."""
    asked: dict[str, set[int]] = {}
    for name, arity in static_calls(plan) | {(n, len(a)) for n, a in plan.static.items()}:
        asked.setdefault(name, set()).add(arity)
    for name, arity in dict.fromkeys((f.name, len(f.args)) for f in facts):
        if name not in asked:
            close = nearest(name, asked)
            raise DataError(f"nothing in the program asks for facts of `{name}`",
                            hint=f"did you mean `{close}`?" if close else f"it asks for {', '.join(sorted(asked)) or 'none'}")  # fmt: skip
        if arity not in asked[name]:
            expected = " or ".join(str(n) for n in sorted(asked[name]))
            raise DataError(f"a fact of `{name}` has {counted(arity, 'argument')}; the program asks with {expected}")


def without_facts(facts: Iterable[Fact], plan: Plan) -> list[str]:
    """The static predicates that the program asks for and nothing defines."""
    known = {f.name for f in facts} | {c.name for c in plan.clauses}
    return sorted({name for name, _ in static_calls(plan)} - known)


def facts_from(facts: Iterable[Any], plan: Plan, clock: Clock) -> list[Fact]:
    """Facts from `Fact` objects or pairs of a name and its rows."""
    result: list[Fact] = []
    for item in facts:
        if isinstance(item, Fact):
            result.append(item)
        else:
            name, rows = item
            result.extend(fact_from(name, row, plan, clock) for row in rows)
    return result
