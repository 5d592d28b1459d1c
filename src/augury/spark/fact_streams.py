"""Streams of facts: each row asserts or retracts a fact from a time on, and every bucket hears of it.

    detect_stream(program, {…}, facts={"linked": changes}, lateness="1 minute")

`changes` has a column for each argument, `valid_from` or `time`, and `op`, which is assert where it is null. Its rows are
events of two types that nobody else reads, and rules make facts of them, as `fact linked(A, B) <- …` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from augury.algebra.nodes import Rule, Scan, made_type
from augury.algebra.plan import Attribute, Plan, static_calls
from augury.algebra.terms import Var
from augury.errors import DataError
from augury.sources.heading import FactHeading, Names
from augury.spark.inputs import Part, Source, kind_of


@dataclass(frozen=True)
class FactSource(Source):
    """Statements about facts. They do not tell how far the events are."""

    tells_time: bool = False

    @property
    def title(self) -> str:
        return f"the facts {self.parts[0].type[0].partition(' ')[2]}"


def with_streams(plan: Plan, streams: Mapping[str, DataFrame]) -> tuple[Plan, list[Source]]:
    """The plan with rules that make facts of streams, and the streams as sources."""
    rules, sources, declared = list(plan.rules), list[Source](), dict(plan.declared)
    for name, frame in streams.items():
        columns, time = _columns(name, frame, plan)
        arity = len(columns)
        attributes = plan.static.get(name, tuple(Attribute(c) for c in columns))
        types = {f.name: f.dataType for f in frame.schema.fields}
        kinds = tuple(kind_of(name, a, types[c]) for a, c in zip(attributes, columns, strict=True))
        inner = tuple(f"augury_{i}" for i in range(arity))
        op = F.col("`op`") if "op" in frame.columns and "op" not in columns else F.lit(None).cast("string")
        plain = frame.select(*(F.col(f"`{c}`").alias(i) for c, i in zip(columns, inner, strict=True)), F.col(f"`{time}`").alias("augury_from"), op.alias("augury_op"))  # fmt: skip
        for makes, wanted in (("fact", F.coalesce(F.col("augury_op"), F.lit("assert")) != "retract"), ("no fact", F.col("augury_op") == "retract")):  # fmt: skip
            type = f"said {made_type(name, makes)}"
            variables = tuple(Var(f"X{i}") for i in range(arity))
            rules.append(Rule(type, made_type(name, makes), variables, Scan(type, variables), makes=name))
            declared[type] = attributes
            names = Names(time="augury_from", start="augury_start", end="augury_end", id="augury_id", op="augury_op_", type="augury_type")  # fmt: skip
            sources.append(
                FactSource(
                    plain.where(wanted).drop("augury_op"),
                    (Part((type, arity), inner, kinds),),
                    names,
                    prefixes=plan.prefixes,
                )
            )
    return replace(plan, rules=tuple(rules), declared=declared), sources


def _columns(name: str, frame: DataFrame, plan: Plan) -> tuple[list[str], str]:
    """The columns of the arguments, and the one that says from when on."""
    declared = plan.static.get(name)
    heading = FactHeading(name, tuple(frame.columns), plan)
    heading.check()
    own = [column for column, _ in heading.args]
    if heading.said("valid_to"):
        raise DataError(
            f"the stream of facts `{name}` has `valid_to`", hint="say when a fact ends with a row whose op is retract"
        )
    time = heading.said("valid_from", "time")
    if time is None:
        raise DataError(
            f"the stream of facts `{name}` says no times",
            hint="give a column `valid_from`: from when on a fact holds, or no longer does",
        )
    asked = {arity for n, arity in static_calls(plan) if n == name} | ({len(declared)} if declared else set())
    if not asked:
        raise DataError(f"nothing in the program asks for facts of `{name}`")
    if len(own) not in asked:
        raise DataError(f"the facts `{name}` have {len(own)} columns; the program asks with {min(asked)} arguments")
    return own, time
