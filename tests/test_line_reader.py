"""What Spark makes of a cell of text, or of a value of JSON, is what the row of its type in `sources/types.py` makes of it."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from augury.algebra.plan import Attribute
from augury.clock import Duration, Timestamp
from augury.engine.decoding import tagged
from augury.errors import DataError
from augury.model import Iri, Value
from augury.sources.types import KINDS, convert, fits, from_text
from augury.spark import conversions
from augury.spark.conversions import CONVERSIONS
from tests.spark_session import SPARK
from tests.spark_session import spark_fixture as spark_fixture

pytestmark = SPARK
PREFIXES = {"wt": "http://weather.org/", "": "http://none.org/"}
MANY = 20_000 if os.environ.get("AUGURY_FUZZ") else 600

TEXTS: dict[str, list[str]] = {
    "int": ["0", "-0", "7", "+7", "007", "-12", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
            "-9223372036854775809", " 5", "5\t", "\u00a05", "5\u3000", "\x005", "5\x00", "1_000", "1.0", "1e3", "", " ", "-", "+", "--5", "٣", "0x10", "5\n", "1 2"],
    "float": ["0", "1.5", "-1.5", "+1.5", "1.", ".5", ".", "-.5e3", "1e5", "1E+05", "1e-400", "1e400", "-1e400", "nan", "NaN", "-nan", "inf",
              "Infinity", "1d", "1f", "1D", "0x1p3", "1_0.5", " 2.5 ", "\x012.5", "2.5\x85", "-0.0", "0.1", "123456789.123456789", "1e", "e5", "5e5.5",
              "0.30000000000000004", "17976931348623157" + "0" * 292, "4.9e-324", "2.2250738585072011e-308", "9007199254740993", "1,5"],
    "bool": ["true", "false", "True", "FALSE", " true", "true\n", "yes", "1", "t", "tru", "truE"],
    "string": ["", "a", " a ", "'", '"', "ä\U0001f600", "null", "5"],
    "timestamp": ["2026-01-31", "2026-01-31T10:00", "2026-01-31 10:00:05", "2026-01-31 10:00:05.1", "2026-01-31T10:00:05.123456Z", "2026-01-31T10:00:05.1234567",
                  "2026-01-31T10:00:05,5", "20260131", "20260131T1000", "20260131T100005Z", "2026-W05", "2026-W05-3", "2026W053", "2026W05T10", "2026-W53-7",
                  "2025-W53-1", "2026-W00-1", "2026-W54-1", "2026-W05-8", "2026-01-31T10:00+02", "2026-01-31T10:00-0530", "2026-01-31T10:00:00+02:00:30",
                  "2026-01-31T10:00:00+02:00:30.5", "2026-01-31T10:00+23:59", "2026-01-31T10:00+24:00", "2026-01-31T10:00+00:99", "2026-01-31T10:00 +02:00",
                  "2026-01-31x10:00", "2026-01-31\U0001f60010:00", "2026-01-31T", "2026-01-31T24:00", "2026-01-31T23:60", "2026-01-31T23:59:60", "2026-02-29",
                  "2024-02-29", "2026-13-01", "0000-01-01", "0001-01-01", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00+01:00", "1969-12-31T23:59:59.999999",
                  "1582-10-10", "2026-01-31T10:00z", " 2026-01-31 10:00 ", "2026-01", "2026", "yesterday", "2026-01-3110:00", "2026-01-31T1000:05", "2026-01-31T10:0005",
                  "2026-01-31T10:00:05+0200:30", "26-01-31", "2026-1-31", "2026-01-31T1:00", "1700000000000000", "-5", "2026-01-31-05:00",
                  "2026-0131", "202601-31", "2026-W0531"],
    "duration": ["90s", "90", "1h 30min", "1.5h", "2 days", "1h30min", " 1h ", "250ms", "1.5us", "0.000001s", "0.0000001s", "1 h 2", "h", "-1h", "1H", "1 Weeks 2d",
                 "1.5.5h", "1.h", ".5h", "1year", "", " ", "1e3s", "9223372036854775807us", "9223372036854775808us", "99999999999999999999d", "0.1234567890123w",
                 "0.00000000000001w", "1.50000000000000000000000000s", "1\u00a0h", "3mins,2s"],
    "iri": ["wt:Diablo", "http://x.org/a", ":a", "wt", "wt:", "other:b", "a:b:c", "wt:a:b", "WT:x"],
    "number": ["1", "1.0", "+5", "007", "1e3", "9223372036854775808", "nan", "inf", "a", " 5 "],
    "term": ["loc(1)", '{"functor": "a", "args": []}', ""],
    "list": ["[1]", ""],
    "any": ["5", "a", ""],
}  # fmt: skip
JSON = [
    "0", "1", "-1", "1.0", "-0.0", "1.5", "1.50", "1e3", "1E400", "-1e400", "1e-400", "0.1", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "9007199254740993", "0.30000000000000004", "123456789012345678901234567890", '"a"', '"1"', '"1.5"', '""', '"true"', "true", "false", "null", "NaN", "Infinity",
    '"2026-01-31T10:00Z"', '"1h 30min"', '"wt:Diablo"', '"\\u00e9\\n\\"\\\\"', "[1]", "{}", '{"functor": "a", "args": [1]}',
]  # fmt: skip


def kept(value: Value, kind: str) -> Any:
    """A value as the layout keeps it."""
    match value:
        case None:
            return None
        case Timestamp() | Duration():
            return value.us
        case Iri():
            return value.text
        case bool():
            return int(value)
    return tagged(value) if kind == "json" else value


def expected(read: Any, type: str, given: Any) -> tuple[Any, bool]:
    """What the row of a type makes of something, and whether that is wrong."""
    try:
        found = kept(read(given, Attribute("x", type), PREFIXES), CONVERSIONS[type].kind)
    except DataError:
        return None, True
    too_long = type == "duration" and found is not None and not -(2**63) <= found < 2**63
    return (None, True) if too_long else (found, False)


def mutated(chance: random.Random, text: str) -> str:
    """A text with a slip or two."""
    for _ in range(chance.choice([1, 1, 2, 3])):
        at = chance.randrange(len(text) + 1)
        letter = chance.choice(
            [*"0123456789.,:+- eETZWnhsmd\t_x", text[chance.randrange(len(text))]] if text else ["1"]
        )
        text = chance.choice(
            [text[:at] + letter + text[at:], text[:at] + text[at + 1 :], text[:at] + letter + text[at + 1 :]]
        )
    return text


def same(mine: Any, theirs: Any, type: str) -> bool:
    if type == "number" and mine is not None and theirs is not None:
        one, other = json.loads(mine), json.loads(theirs)
        return one == other and isinstance(one, float) == isinstance(other, float)
    return mine == theirs and (mine is None) == (theirs is None)


@pytest.mark.parametrize("type", list(CONVERSIONS))
def test_text(spark: SparkSession, type: str) -> None:
    chance = random.Random(f"text {type}")
    pool = [*TEXTS[type], *(t for texts in TEXTS.values() for t in texts)]
    texts = list(dict.fromkeys([*pool, *(mutated(chance, chance.choice(TEXTS[type])) for _ in range(MANY))]))
    frame = spark.createDataFrame([(t,) for t in texts], "t string")
    value = conversions.from_text(type, F.col("t"), PREFIXES)
    rows = frame.select("t", value.alias("v"), conversions.misread_text(type, F.col("t"), value).alias("w")).collect()
    for row in rows:
        theirs, wrong = expected(from_text, type, row["t"])
        if type == "timestamp" and row["w"] and row["t"] not in TEXTS[type]:
            continue  # Python also takes `10:00.5` and any letter ahead of a zone; Spark refuses them, and reads nothing else
        assert (row["w"], same(row["v"], theirs, type)) == (wrong, True), (row, theirs, wrong)


@pytest.mark.parametrize("type", [t for t, row in CONVERSIONS.items() if row.json is not None])
def test_json(spark: SparkSession, type: str) -> None:
    frame = spark.createDataFrame([(f'{{"x": {t}}}', t) for t in JSON], "line string, t string")
    given = frame.select("t", F.from_json("line", "x variant")["x"].alias("x"))
    value = conversions.from_json(type, F.col("x"), PREFIXES)
    rows = given.select("t", value.alias("v"), conversions.misread_json(type, F.col("x"), value).alias("w")).collect()
    for row in rows:
        theirs, wrong = expected(convert, type, json.loads(row["t"]))
        assert (row["w"], same(row["v"], theirs, type)) == (wrong, True), (row, theirs, wrong)


def test_undeclared_cells(spark: SparkSession) -> None:
    """A cell is of a kind on Spark where it is of that kind in Python."""
    chance = random.Random("plain")
    pool = [t for texts in TEXTS.values() for t in texts]
    texts = list(
        dict.fromkeys(
            [
                *pool,
                "-e5",
                "e5",
                ".e5",
                "1.",
                "01",
                "-",
                "-.5",
                "1e5",
                *(mutated(chance, chance.choice(pool)) for _ in range(MANY)),
            ]
        )
    )
    frame = spark.createDataFrame([(t,) for t in texts if t], "t string")
    for row in frame.select("t", *(F.col("t").rlike(p).alias(k) for k, p in conversions.PLAIN.items())).collect():
        for kind in conversions.PLAIN:
            assert row[kind] == fits(row["t"], kind), (row, kind)
    assert list(KINDS) == [*conversions.PLAIN, "string"]
