"""The answers that a stream has written, for one whose state is computed anew: what was written is not written again.

An answer has the same id in every run, so the output says what was given. What stands there is, for each id, what was
inserted once more than it was retracted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from augury.spark.checkpoint import StreamFormat


@dataclass
class DeliveredAnswers:
    """What is in the folders of an output, up to a batch."""

    spark: SparkSession
    format: StreamFormat
    folders: Mapping[str, str]  # by part of a batch
    first: int  # the first batch that is no longer one of these
    frames: list[DataFrame] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name, folder in self.folders.items():
            if name != "late" and (paths := self._batches(folder)):
                self.frames.append(self._read(paths))

    def _batches(self, folder: str) -> list[str]:
        """The folders of batches; of another file system, that of all of them."""
        if "://" in folder and not folder.startswith("file://"):
            return [folder]
        homes = Path(folder.removeprefix("file://")).glob("batch=*")
        numbers = {home: home.name.partition("=")[2] for home in homes if any(home.iterdir())}
        return [str(home.absolute()) for home, n in numbers.items() if n.isdecimal() and int(n) < self.first]

    def _read(self, paths: list[str]) -> DataFrame:
        """Their id, whether each is inserted, and in JSON lines how it was written."""
        reader = self.spark.read
        if self.format == "jsonl":
            lines = reader.text(paths)
            said = {name: F.get_json_object("value", f"$.{name}") for name in ("id", "op")}
            frame = lines.select("value", *(column.alias(name) for name, column in said.items()))
        elif self.format == "csv":
            frame = reader.option("header", "true").option("escape", '"').csv(paths)
        else:
            frame = reader.parquet(*paths)
        op = F.col("op") if "op" in frame.columns else F.lit(None).cast("string")
        sign = F.when(op == "retract", F.lit(-1)).otherwise(F.lit(1)).alias("sign")
        text = F.col("value") if "value" in frame.columns else F.lit("")
        return frame.select("id", sign, text.alias("text"))

    @property
    def standing(self) -> DataFrame | None:
        """The id and the text of each answer that stands."""
        if not self.frames:
            return None
        rows = reduce(DataFrame.unionByName, self.frames).groupBy("id")
        return rows.agg(F.sum("sign").alias("times"), F.max("text").alias("text")).where("times > 0").drop("times")

    def without(self, rows: DataFrame) -> DataFrame:
        """A batch without the answers that stand already; what is no answer stays."""
        standing = self.standing
        if standing is None:
            return rows
        written = standing.select(F.col("id").alias("known_id"), F.lit(True).alias("known"))
        joined = rows.join(written, (F.col("type") >= 0) & (F.col("id") == F.col("known_id")), "left")
        return joined.where(F.col("known").isNull()).drop("known_id", "known")

    def fallen(self, rows: DataFrame, code: int) -> DataFrame | None:
        """What stands and is no answer of a batch any more, as rows that retract it: notices of this code."""
        standing = self.standing
        if standing is None:
            return None
        there = rows.where(F.col("type") >= 0).select("id")
        text = F.regexp_replace("text", r'^\{("op":"insert",)?', '{"op":"retract",')
        columns = {"type": F.lit(code), "op": F.lit(1).cast("tinyint"), "start": F.lit(None).cast("bigint")}
        columns |= {"end": F.lit(0).cast("bigint"), "id": F.lit(None).cast("string"), "trace": F.array(text)}
        gone = standing.join(there, "id", "left_anti")
        result = gone.select(*(column.alias(name) for name, column in columns.items()))
        return rows.limit(0).unionByName(result, allowMissingColumns=True)
