"""Facts that change: statements about a fact, one after the other, and the intervals in which it holds by them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from augury.core.errors import DataError, brief
from augury.core.model import Fact, Value, order_key, show_value
from augury.knowledge.fact_table import ALWAYS, EVER, FactTable, tables_of
from augury.storage.column import column_of


class Statements:
    """The statements about one fact.

    It holds at `x` where it was asserted over `[since, until)` with `since <= x < until`, and not retracted at a time `t`
    with `since < t <= x`. Of an assertion and a retraction at the same time, the later statement stands.
    """

    def __init__(self) -> None:
        self._asserts: dict[int, int] = {}  # the greatest `until` of each `since`
        self._retracts: set[int] = set()

    def add_assert(self, since: int = ALWAYS, until: int = EVER) -> None:
        self._retracts.discard(since)
        self._asserts[since] = max(until, self._asserts.get(since, until))

    def add_retract(self, time: int) -> None:
        self._asserts.pop(time, None)
        self._retracts.add(time)

    def intervals(self) -> list[tuple[int, int]]:
        """When the fact holds: the fewest intervals `[since, until)`, in order."""
        retracts = sorted(self._retracts)
        result: list[tuple[int, int]] = []
        for since, until in sorted(self._asserts.items()):
            after = bisect_right(retracts, since)
            until = min(until, retracts[after]) if after < len(retracts) else until
            if result and since <= result[-1][1]:
                result[-1] = (result[-1][0], max(until, result[-1][1]))
            elif since < until:
                result.append((since, until))
        return result


@dataclass(frozen=True, slots=True)
class Statement:
    """That a fact holds; with `retract`, that it no longer holds from its `since` on."""

    fact: Fact
    retract: bool = False

    def __str__(self) -> str:
        shown = f"{self.fact.name}({', '.join(show_value(a) for a in self.fact.args)})"
        since = "" if self.fact.since is None else f" {'at' if self.retract else 'from'} {self.fact.since}"
        return (
            ("retract " if self.retract else "")
            + shown
            + since
            + ("" if self.fact.until is None else f" to {self.fact.until}")
        )


def statement(name: str, args: tuple[Value, ...], op: object, since: int | None, until: int | None) -> Statement:
    """The statement of a row. `op` is assert, which is the default, or retract."""
    if since is not None and until is not None and since >= until:
        raise DataError(
            "a fact with an empty interval: it ends before it begins", hint="`valid_to` is later than `valid_from`"
        )
    if op in (None, "", "assert"):
        return Statement(Fact(name, args, since, until))
    if op != "retract":
        raise DataError(f"unknown op {brief(op)}", hint="it must be assert or retract")
    if since is None:
        raise DataError("a retract needs a time", hint="give it as `time`, or as `valid_from`")
    if until is not None:
        raise DataError(
            "a retract has no `valid_to`", hint="the fact no longer holds from its time on, until it is asserted again"
        )
    return Statement(Fact(name, args, since), True)


@dataclass(frozen=True)
class StatementTable:
    """Statements about one predicate, in the order in which they came."""

    facts: FactTable
    retract: Any = None  # whether a row retracts; None where none does

    @property
    def predicate(self) -> tuple[str, int]:
        return self.facts.name, self.facts.arity

    def __len__(self) -> int:
        return len(self.facts)

    def __iter__(self) -> Iterator[Statement]:
        flags = [False] * len(self) if self.retract is None else self.retract.tolist()
        for fact, retract in zip(self.facts, flags, strict=True):
            yield Statement(fact, retract)


def statement_tables(statements: Iterable[Statement]) -> list[StatementTable]:
    """Single statements as tables, one a predicate."""
    groups: dict[tuple[str, int], list[Statement]] = {}
    for item in statements:
        groups.setdefault((item.fact.name, len(item.fact.args)), []).append(item)
    tables: list[StatementTable] = []
    for group in groups.values():
        flags = np.array([s.retract for s in group], bool)
        tables += [StatementTable(t, flags if flags.any() else None) for t in tables_of(s.fact for s in group)]
    return tables


def timeline(statements: Iterable[Statement]) -> Iterator[Fact]:
    """Statements as facts with the intervals in which they hold.

    `open() from 2`, `retract open() at 5`, `open() from 7` → `open()` in [2, 5) and from 7 on.
    """
    grouped: dict[Hashable, tuple[Fact, Statements]] = {}
    for item in statements:
        fact = item.fact
        _, about = grouped.setdefault((fact.name, fact_key(fact.args)), (fact, Statements()))
        since = ALWAYS if fact.since is None else fact.since
        if item.retract:
            about.add_retract(since)
        else:
            about.add_assert(since, EVER if fact.until is None else fact.until)
    for fact, about in grouped.values():
        for since, until in about.intervals():
            yield Fact(fact.name, fact.args, None if since == ALWAYS else since, None if until == EVER else until)


def as_statements(facts: Iterable[Fact]) -> list[Statement]:
    """Facts as statements, those of which something is retracted as they came."""
    tables = getattr(facts, "statement_tables", None)
    return [Statement(f) for f in facts] if tables is None else [item for table in tables for item in table]


def fact_key(args: tuple[Value, ...]) -> Hashable:
    """Equal for the arguments of one fact: where their order keys are."""
    return tuple(a if type(a) in (int, str, float) else order_key(a) for a in args)


def resolved_facts(tables: Iterable[StatementTable]) -> FactTable:
    """The facts that the statements about one predicate leave valid, with their intervals."""
    tables = list(tables)
    result = tables_of(timeline(s for table in tables for s in table))
    name, arity = tables[0].predicate
    return result[0] if result else FactTable(name, tuple(column_of([]) for _ in range(arity)), 0)
