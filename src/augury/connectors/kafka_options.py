"""What an address of Kafka says, wherever it is read: here through librdkafka, on Spark through its own source."""

from __future__ import annotations

from dataclasses import dataclass

from augury.connectors.addresses import Address
from augury.connectors.payloads import PayloadOptions
from augury.core.errors import RunError


@dataclass(frozen=True)
class KafkaConnection:
    """`security` is that of librdkafka, such as SASL_SSL; `mechanism` that of SASL; `ca` a file of certificates."""

    security: str = ""
    mechanism: str = "PLAIN"
    ca: str = ""


@dataclass(frozen=True)
class KafkaSourceOptions(PayloadOptions, KafkaConnection):
    """`start` is where reading begins without a state; `group` receives offsets; `headers` become attributes."""

    start: str = "earliest"
    group: str = ""
    key: str = "id"
    headers: str = ""
    time: str = ""


@dataclass(frozen=True)
class KafkaSinkOptions(KafkaConnection):
    """`id` is that of the transactions; without `transactions` delivery is at least once."""

    id: str = ""
    transactions: bool = True
    compression: str = "lz4"


def topic_of(address: Address) -> str:
    """The topic that an address names."""
    return address.named("topic", "kafka://host:9092/topic")


def topics_of(address: Address, options: KafkaSourceOptions) -> list[str]:
    """The topics that an address names; refuses options that mean nothing."""
    topics = [topic for topic in topic_of(address).split(",") if topic]
    if options.key not in ("id", "replace", "ignore"):
        raise RunError(f"{address}: the key of a message is its `id`, `replace` or `ignore`, not `{options.key}`")
    if options.start not in ("earliest", "latest"):
        raise RunError(f"{address}: reading starts at the `earliest` or `latest` message")
    return topics
