"""Opens the connector of an address; a client library that is missing is an error that names its extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

from augury.connectors.addresses import Address, connectors
from augury.connectors.sink import AnswerSink
from augury.connectors.source import EventSource, Position
from augury.core.errors import RunError


def open_source(address: Address | str) -> EventSource:
    """The source of an address; it connects when it is opened."""
    named = Address.parse(address) if isinstance(address, str) else address
    result: EventSource = _made("source", named)
    result.type = named.type
    return result


def open_sink(address: Address | str) -> AnswerSink:
    """The sink of an address; it connects when it is opened."""
    result: AnswerSink = _made("sink", Address.parse(address) if isinstance(address, str) else address)
    return result


def _made(side: Literal["source", "sink"], named: Address) -> Any:
    connector = connectors()[named.scheme]
    if not (connector.reads if side == "source" else connector.writes):
        verb = "read from" if side == "source" else "written to"
        hint = "to post answers, write to https://…" if named.scheme == "listen" else ""
        raise RunError(f"{named} cannot be {verb}", hint=hint)
    try:
        module = import_module(connector.module)
        make = getattr(module, side, None)
        if make is None:
            raise RunError(f"{named} cannot be {'read from' if side == 'source' else 'written to'}")
        return make(named)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("augury") or not connector.extra:
            raise
        raise RunError(
            f"{named.scheme}:// needs the package {error.name}", hint=f"pip install 'augury[{connector.extra}]'"
        ) from None


@contextmanager
def opened(source: EventSource, position: Position | None = None) -> Iterator[EventSource]:
    """A source that is open inside, and closed in any case."""
    try:
        source.open(position)
        yield source
    finally:
        source.close()
