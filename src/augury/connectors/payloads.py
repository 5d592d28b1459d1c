"""What messages hold: JSON, CSV, Avro and Protobuf, the latter two also with the frame of a schema registry; CloudEvents.

A decoder makes of a payload a line of JSON; of JSON and CSV the payload is the line.
"""

from __future__ import annotations

import base64
import io
import json
import struct
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit, urlunsplit

import orjson

from augury.connectors.addresses import hide, redacted
from augury.connectors.source import UnavailableError
from augury.core.errors import DataError, RunError

Decoder: TypeAlias = Callable[[bytes], dict[str, Any]]
_FRAME = struct.Struct(">bI")  # of a schema registry: zero, and the number of the schema
_TIMEOUT = 10.0


@dataclass(frozen=True)
class PayloadOptions:
    """`format` of messages; of CSV its `columns`; of Avro and Protobuf the address of a `registry`, or a `schema` file (an
    Avro schema, or a descriptor set of protoc) and the name of a `message`."""

    format: str = "json"
    columns: str = ""
    registry: str = ""
    schema: str = ""
    message: str = ""


def decoder_of(options: Any) -> Decoder | None:
    """What decodes messages; None for text, which is a line already."""
    match options.format:
        case "json" | "csv":
            if options.format == "csv" and not options.columns:
                raise RunError(
                    "messages in CSV have no header", hint="name their columns: ?format=csv&columns=a,b,time"
                )
            return None
        case "avro":
            return AvroDecoder(options)
        case "protobuf":
            return ProtobufDecoder(options)
    raise RunError(f"unknown format `{options.format}`", hint="it is json, csv, avro or protobuf")


def unframed(payload: bytes) -> tuple[int, bytes]:
    """The number of the schema, and what is behind the frame."""
    if len(payload) < _FRAME.size or payload[0]:
        raise DataError("the message has no frame of a schema registry")
    return _FRAME.unpack_from(payload)[1], payload[_FRAME.size :]


class AvroDecoder:
    """Avro with a schema from a file or from a registry."""

    def __init__(self, options: Any) -> None:
        import fastavro

        self._unreadable = (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType)
        self._read = fastavro.schemaless_reader
        self._parse = fastavro.parse_schema
        self.registry = options.registry.rstrip("/")
        hide(unquote(urlsplit(self.registry).password or ""))
        if not self.registry and not options.schema:
            raise RunError("Avro needs a schema", hint="?registry=http://… or ?schema=readings.avsc")
        self._schema = self._parse(orjson.loads(Path(options.schema).read_bytes())) if options.schema else None
        self._schemas: dict[int, Any] = {}

    def __call__(self, payload: bytes) -> dict[str, Any]:
        schema = self._schema
        if self.registry:
            number, payload = unframed(payload)
            schema = self._schemas.get(number)
            if schema is None:
                schema = self._schemas[number] = self._fetched(number)
        try:
            result: dict[str, Any] = self._read(io.BytesIO(payload), schema, None)  # type: ignore[assignment,arg-type]
        except (EOFError, ValueError, IndexError, TypeError, KeyError, struct.error) as error:
            raise DataError(f"malformed Avro: {type(error).__name__}") from None
        return result

    def _fetched(self, number: int) -> Any:
        """A schema of the registry."""
        text = fetched_schema(self.registry, number)
        try:
            return self._parse(orjson.loads(text))
        except (ValueError, TypeError, KeyError, *self._unreadable) as error:
            raise DataError(f"the schema {number} is no Avro schema that stands by itself: {error}") from None


class ProtobufDecoder:
    """A message of a descriptor set, which `protoc --descriptor_set_out` writes."""

    def __init__(self, options: Any) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

        if not options.schema or not options.message:
            raise RunError(
                "Protobuf needs a descriptor set and the name of a message",
                hint="?schema=readings.desc&message=farm.Reading",
            )
        files = descriptor_pb2.FileDescriptorSet.FromString(Path(options.schema).read_bytes())
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        try:
            self._message = message_factory.GetMessageClass(pool.FindMessageTypeByName(options.message))
        except KeyError:
            raise RunError(f"{options.schema} has no message `{options.message}`") from None
        self.framed = bool(options.registry)

    def __call__(self, payload: bytes) -> dict[str, Any]:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError

        if self.framed:
            payload = _behind_indexes(unframed(payload)[1])
        try:
            message = self._message.FromString(payload)
        except DecodeError:
            raise DataError("malformed Protobuf") from None
        result: dict[str, Any] = MessageToDict(
            message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        return result


def _behind_indexes(payload: bytes) -> bytes:
    """Behind the path to the message in its file: zigzag numbers, the first of which says how many follow."""

    def number(offset: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            if offset >= len(payload) or shift > 28:
                raise DataError("the message has no frame of a schema registry")
            byte = payload[offset]
            offset, value, shift = offset + 1, value | (byte & 0x7F) << shift, shift + 7
            if not byte & 0x80:
                return (value >> 1) ^ -(value & 1), offset

    count, offset = number(0)
    for _ in range(count):
        _, offset = number(offset)
    return payload[offset:]


def fetched_schema(registry: str, number: int) -> str:
    """The text of a schema in a registry, by its REST interface. Raises UnavailableError where it may be there later."""
    parts, headers = urlsplit(registry), {"Accept": "application/vnd.schemaregistry.v1+json"}
    if parts.username:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    request = urllib.request.Request(f"{shown}/schemas/ids/{number}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            return str(json.load(answer)["schema"])
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (401, 403):
            raise RunError(
                f"the schema registry {shown} answers {error.code}", hint="check user and password"
            ) from None
        if error.code == 404:
            raise DataError(f"the schema registry has no schema {number}") from None
        raise UnavailableError(f"the schema registry {shown} answers {error.code}") from None
    except OSError as error:
        raise UnavailableError(f"the schema registry {shown} cannot be reached: {redacted(error)}") from None
    except (ValueError, KeyError, TypeError):
        raise UnavailableError(f"{shown} does not answer as a schema registry does") from None


# CloudEvents


def from_cloud_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event of ours: `source` and `id` name it, `data` has its attributes, `type` its type behind the last full stop."""
    if not isinstance(event, Mapping):
        raise DataError("a CloudEvent is an object")
    data = event.get("data")
    if not isinstance(data, dict):
        raise DataError("a CloudEvent has its attributes in `data`")
    if not event.get("id") or not event.get("source"):
        raise DataError("a CloudEvent has an `id` and a `source`")
    result = {**data, "id": f"{event['source']}#{event['id']}"}
    if "type" not in data and event.get("type"):
        result["type"] = str(event["type"]).rpartition(".")[2]
    if event.get("time") is not None and not {"time", "start", "end"} & data.keys():
        result["time"] = event["time"]
    return result


def cloud_event_of_headers(headers: Mapping[str, str], data: Any) -> dict[str, Any]:
    """The binary form: attributes of the event are headers, `ce-id` or `ce_id`, and the body is its data."""
    named = {name.lower().replace("_", "-"): value for name, value in headers.items()}
    attributes = {name[3:]: value for name, value in named.items() if name.startswith("ce-")}
    return from_cloud_event({**attributes, "data": data})
