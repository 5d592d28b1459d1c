"""Facts of static predicates: from Python, or from DataFrames, which are fetched once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from augury.algebra.program import Plan
from augury.clock import Clock
from augury.errors import DataError, nearest
from augury.facts import facts_from
from augury.model import Fact
from augury.spark.inputs import is_frame


def read_facts(given: Mapping[str, Any] | list[Any], plan: Plan, clock: Clock) -> list[Fact]:
    """All facts that come with a run."""
    if not isinstance(given, Mapping):
        return facts_from(given, plan, clock)
    return facts_from([(name, _rows(name, rows, plan)) for name, rows in given.items()], plan, clock)


def _rows(name: str, rows: Any, plan: Plan) -> Any:
    if not is_frame(rows):
        return rows
    declared = plan.static.get(name)
    if declared is not None:
        missing = [a.name for a in declared if a.name not in rows.columns]
        if missing:
            close = nearest(missing[0], rows.columns)
            raise DataError(
                f"the facts `{name}` have no column `{missing[0]}`", hint=f"there is `{close}`" if close else ""
            )
        rows = rows.select(*(a.name for a in declared))
    return [tuple(row) for row in rows.collect()]
