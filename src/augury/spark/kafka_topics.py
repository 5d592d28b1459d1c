"""Kafka on Spark, with its own source and sink: messages as lines, as those of files are, and answers as messages.

    augury stream fire.aug --from kafka://host:9092/readings --to kafka://host:9092/alerts --state dir

In: JSON, whose key is the id of an event that names none; a tombstone revokes it. Out: the key is the id of an answer, and a
tombstone retracts it. A batch that is repeated after a crash writes its messages a second time, with the same keys.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from augury.connectors import Address
from augury.connectors.kafka_options import KafkaConnection, KafkaSinkOptions, KafkaSourceOptions, topic_of, topics_of
from augury.core.errors import RunError
from augury.spark.inputs import PATH
from augury.spark.line_reader import LINE, START

_JARS = Path(os.environ.get("AUGURY_SPARK_KAFKA", Path.home() / ".cache" / "augury" / "spark-kafka"))
_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_GIVEN = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")
_LIVE_ONLY = ("columns", "registry", "schema", "message", "headers", "time", "group")
Settings = TypeVar("Settings", bound=KafkaConnection)


def is_kafka(path: str) -> bool:
    return path.startswith("kafka://")


def package_settings(conf: tuple[str, ...]) -> tuple[str, ...]:
    """The settings with which Spark gets its Kafka package: jars in a cache folder, or what it fetches itself."""
    if any(text.partition("=")[0].strip() in _GIVEN for text in conf):
        return conf
    if jars := sorted(map(str, _JARS.glob("*.jar"))):
        return (*conf, f"spark.jars={','.join(jars)}")
    import pyspark

    return (*conf, f"spark.jars.packages={_PACKAGE}:{pyspark.__version__}")


def _source_options(text: str) -> tuple[Address, KafkaSourceOptions]:
    address = Address.parse(text)
    options = address.read(KafkaSourceOptions)
    topics_of(address, options)
    asked = next((name for name in _LIVE_ONLY if getattr(options, name)), "format" if options.format != "json" else "")
    if asked or options.key == "replace":
        name = asked or "key=replace"
        raise RunError(
            f"{address}: Spark reads JSON messages, without the option `{name}`",
            hint="leave it out, run `augury live`, or give detect_stream a DataFrame",
        )
    return address, options


def check_topics(sources: Sequence[str], sink: str) -> None:
    """Refuses topics with options that Spark does not have."""
    for text in filter(is_kafka, sources):
        _source_options(text)
    if is_kafka(sink):
        address = Address.parse(sink)
        address.read(KafkaSinkOptions)
        topic_of(address)


def _connected(frame: Any, address: Address, options: KafkaConnection) -> Any:
    """A reader or a writer with the settings of a connection."""
    security = options.security or ("SASL_PLAINTEXT" if address.user else "")
    settings = {"bootstrap.servers": address.host, "security.protocol": security}
    if address.user:
        module = "scram.Scram" if options.mechanism.startswith("SCRAM") else "plain.Plain"
        user, password = (_quoted(text) for text in (address.user, address.password))
        login = f"org.apache.kafka.common.security.{module}LoginModule required username={user} password={password};"
        settings |= {"sasl.mechanism": options.mechanism, "sasl.jaas.config": login}
    if options.ca:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": options.ca}
    for name, value in settings.items():
        if value:
            frame = frame.option(f"kafka.{name}", value)
    return frame


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def message_lines(spark: SparkSession, text: str, streaming: bool) -> DataFrame:
    """The messages of topics as lines, with the name of their partition in place of that of a file."""
    address, options = _source_options(text)
    reader = _connected((spark.readStream if streaming else spark.read).format("kafka"), address, options)
    reader = reader.option("subscribe", ",".join(topics_of(address, options)))
    if streaming:
        reader = reader.option("startingOffsets", options.start).option("failOnDataLoss", "true")
    part = F.concat_ws("/", "topic", F.col("partition").cast("string"))
    line = _line(named=options.key == "id")
    return reader.load().select(line.alias(LINE), part.alias(PATH), F.lit(0).cast("bigint").alias(START))  # type: ignore[no-any-return]


def _line(named: bool) -> Column:
    """A message as one line: a tombstone as a revocation, an object that names no id with its key."""
    key, value = F.col("key").cast("string"), F.col("value").cast("string")
    text = F.trim(F.regexp_replace(value, "[\r\n]+", " "))  # line ends stand between tokens alone
    nameless = F.lit(named) & key.isNotNull() & text.startswith("{") & ~text.contains('"id"') & (F.length(text) > 2)
    beginning = F.to_json(F.struct(key.alias("id")))
    with_key = F.concat(F.substr(beginning, F.lit(1), F.length(beginning) - 1), F.lit(","), F.substr(text, F.lit(2)))
    revocation = F.to_json(F.struct(F.lit("revoke").alias("op"), key.alias("id")))
    return F.when(value.isNull(), revocation).when(nameless, with_key).otherwise(text).cast("binary")


def write_messages(answers: DataFrame, text: str) -> None:
    """Answers as messages; with a column `op`, one that is retracted is a tombstone."""
    address = Address.parse(text)
    options = address.read(KafkaSinkOptions)
    value = F.to_json(F.struct("*"))
    if "op" in answers.columns:
        value = F.when(F.col("op") != "retract", value)
    messages = answers.select(F.col("id").alias("key"), value.alias("value"))
    writer = _connected(messages.write.format("kafka"), address, options)
    writer.option("topic", topic_of(address)).option("kafka.compression.type", options.compression).save()
