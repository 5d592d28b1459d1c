"""Streams of facts: each row asserts or retracts a fact from a time on, and every bucket hears of it.

    detect_stream(program, {…}, facts={"linked": changes}, lateness="1 minute")

`changes` has a column for each argument, `valid_from` or `time`, and `op`, which is assert where it is null. Its
rows are events of two types that no other rule reads, and rules make facts of them, as `fact linked(A, B) <- …`
does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from augury.algebra.nodes import Rule, Scan, made_type
from augury.algebra.plan import Attribute, Plan, static_calls
from augury.algebra.terms import Var
from augury.core.errors import DataError
from augury.sources.heading import ColumnNames, FactHeading
from augury.spark.inputs import EventFrame, TypeColumns, kind_of

# Columns of streams of facts have names of their own, so that none says something of an event.
_NAMES = ColumnNames("augury_type", "augury_from", "augury_start", "augury_end", "augury_id", "augury_no_op")


def with_streams(plan: Plan, streams: Mapping[str, DataFrame]) -> tuple[Plan, list[EventFrame]]:
    """The plan with rules that make facts of streams, and the streams as sources."""
    rules, sources, declared = list(plan.rules), list[EventFrame](), dict(plan.declared)
    for name, frame in streams.items():
        columns, time = _columns(name, frame, plan)
        arity = len(columns)
        if (name, arity) in plan.latest:
            raise DataError(
                f"a stream of facts cannot say what `{name}` is: `fact latest` rules make its facts",
                hint="read the stream as events, and write a `fact latest` rule for them",
            )
        attributes = plan.static.get(name, tuple(Attribute(c) for c in columns))
        types = {f.name: f.dataType for f in frame.schema.fields}
        kinds = tuple(kind_of(name, a, types[c]) for a, c in zip(attributes, columns, strict=True))
        inner = tuple(f"augury_{i}" for i in range(arity))
        op = F.col("`op`") if "op" in frame.columns and "op" not in columns else F.lit(None).cast("string")
        cells = [F.col(f"`{c}`").alias(i) for c, i in zip(columns, inner, strict=True)]
        rows = frame.select(*cells, F.col(f"`{time}`").alias(_NAMES.time), op.alias("augury_op"))
        retracts = F.coalesce(F.col("augury_op") == "retract", F.lit(False))
        for makes, wanted in (("fact", ~retracts), ("no fact", retracts)):
            type = f"said {made_type(name, makes)}"
            variables = tuple(Var(f"X{i}") for i in range(arity))
            rules.append(Rule(type, made_type(name, makes), variables, Scan(type, variables), makes=name))
            declared[type] = attributes
            part = TypeColumns((type, arity), inner, kinds)
            stated = rows.where(wanted).drop("augury_op")
            sources.append(EventFrame(stated, (part,), _NAMES, prefixes=plan.prefixes, facts_of=name))
    return replace(plan, rules=tuple(rules), declared=declared), sources


def _columns(name: str, frame: DataFrame, plan: Plan) -> tuple[list[str], str]:
    """The columns of the arguments, and the one that says from when on."""
    declared = plan.static.get(name)
    heading = FactHeading(name, tuple(frame.columns), plan)
    heading.check()
    args = [column for column, _ in heading.args]
    if heading.column_for("valid_to"):
        raise DataError(
            f"the stream of facts `{name}` has `valid_to`", hint="end a fact with a row whose op is retract"
        )
    time = heading.column_for("valid_from", "time")
    if time is None:
        raise DataError(
            f"the stream of facts `{name}` has no time column",
            hint="add a column `valid_from`: the time from which a fact holds, or no longer holds",
        )
    asked = {arity for n, arity in static_calls(plan) if n == name} | ({len(declared)} if declared else set())
    if not asked:
        raise DataError(f"nothing in the program asks for facts of `{name}`")
    if len(args) not in asked:
        raise DataError(f"the facts `{name}` have {len(args)} columns; the program asks with {min(asked)} arguments")
    return args, time
