"""Which addresses a stream on Spark reads and writes: Kafka by Spark's own source and sink, folders, and for answers all sinks
of `augury live`. What Spark has no source for is refused before it starts."""

from __future__ import annotations

from collections.abc import Sequence

from augury.connectors import Address, connectors, open_sink
from augury.core.errors import RunError
from augury.spark.kafka_topics import check_topics, is_kafka, package_settings

_FOLDERS = ("file", "s3", "gs", "abfs", "memory")  # which Spark's file systems read and write
_LIVE = (
    "run `augury live`, or let it pass the events on to Kafka: augury live … --from {name} --to kafka://host:9092/topic"
)
_FRAME = "give detect_stream the DataFrame of spark.readStream.format('delta'), or run `augury live`"


def connector_scheme(path: str) -> str | None:
    """The scheme of an address that is a connector's, and not Spark's own."""
    scheme, separator, _ = path.partition("://")
    scheme = scheme.lower()
    of_spark = scheme in _FOLDERS or is_kafka(path)
    return scheme if separator and scheme in connectors() and not of_spark else None


def with_packages(conf: tuple[str, ...], paths: Sequence[str]) -> tuple[str, ...]:
    """The settings of Spark, with the package of Kafka where an address needs it."""
    return package_settings(conf) if any(map(is_kafka, paths)) else conf


def check_addresses(sources: Sequence[str], sink: str) -> None:
    """Refuses addresses that Spark cannot use, before it starts."""
    for text in sources:
        check_source(text)
    check_topics(sources, sink)
    if connector_scheme(sink) is not None:
        open_sink(sink)  # which connects with the first batch: here options and packages are checked


def check_source(text: str) -> None:
    """Refuses a source that Spark does not have."""
    scheme = connector_scheme(text)
    if scheme is not None:
        hint = _FRAME if scheme.startswith("delta") else _LIVE.format(name=f"{scheme}://…")
        raise RunError(f"{Address.parse(text)}: Spark has no source for {scheme}://", hint=hint)
