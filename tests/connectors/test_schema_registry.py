"""Avro with the frame of a schema registry, against a server on loopback that speaks its REST interface."""

from __future__ import annotations

import base64
import io
import json
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from augury.connectors import UnavailableError
from augury.connectors.kafka_options import KafkaSourceOptions
from augury.connectors.payloads import decoder_of
from augury.core.errors import DataError, RunError

fastavro = pytest.importorskip("fastavro")
FIELDS = [{"name": "station", "type": "string"}, {"name": "speed", "type": "double"}]
SCHEMA = {"type": "record", "name": "Reading", "fields": FIELDS}
WIDER = {**SCHEMA, "fields": [*FIELDS, {"name": "gust", "type": ["null", "double"], "default": None}]}


class Registry:
    """A registry of schemas, which asks for a user."""

    def __init__(self) -> None:
        self.schemas: dict[int, str] = {7: json.dumps(SCHEMA), 8: json.dumps(WIDER), 9: '{"type": "Unknown"}', 10: "{"}
        self.asked: list[str] = []
        self.broken = 0  # how many requests fail from now on
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, answer = registry.answer(self.path, self.headers.get("authorization", ""))
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/vnd.schemaregistry.v1+json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.address = f"127.0.0.1:{self.server.server_address[1]}"

    def answer(self, path: str, login: str) -> tuple[int, dict[str, Any]]:
        self.asked.append(path)
        if self.broken:
            self.broken -= 1
            return 503, {"error_code": 50302, "message": "the leader is not known"}
        if login != "Basic " + base64.b64encode(b"augury:word-of-mine").decode():
            return 401, {"error_code": 401, "message": "Unauthorized"}
        text = self.schemas.get(int(path.removeprefix("/schemas/ids/")))
        return (404, {"error_code": 40403, "message": "Schema not found"}) if text is None else (200, {"schema": text})


@pytest.fixture
def registry() -> Iterator[Registry]:
    result = Registry()
    yield result
    result.server.shutdown()
    result.server.server_close()


def framed(number: int, schema: Any, value: dict[str, Any]) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, value)
    return struct.pack(">bI", 0, number) + body.getvalue()


def test_schemas_are_fetched_once_by_their_number(registry: Registry) -> None:
    decode = decoder_of(KafkaSourceOptions(format="avro", registry=f"http://augury:word-of-mine@{registry.address}/"))
    assert decode is not None
    for _ in range(3):
        assert decode(framed(7, SCHEMA, {"station": "s1", "speed": 2.5})) == {"station": "s1", "speed": 2.5}
    assert decode(framed(8, WIDER, {"station": "s2", "speed": 1.0, "gust": 9.5}))["gust"] == 9.5
    assert registry.asked == ["/schemas/ids/7", "/schemas/ids/8"]


def test_what_no_schema_fits_is_poison_and_an_outage_is_not(registry: Registry) -> None:
    """A message is given up only where the registry says so: while it cannot answer, the source waits."""
    decode = decoder_of(KafkaSourceOptions(format="avro", registry=f"http://augury:word-of-mine@{registry.address}"))
    assert decode is not None
    message = framed(7, SCHEMA, {"station": "s1", "speed": 2.5})
    for number, reason in ((6, "has no schema 6"), (9, "schema 9 is no Avro"), (10, "schema 10 is no Avro")):
        with pytest.raises(DataError, match=reason):
            decode(struct.pack(">bI", 0, number) + message[5:])
    with pytest.raises(DataError, match="no frame"):
        decode(message[5:])
    registry.broken = 1
    with pytest.raises(UnavailableError, match="answers 503"):
        decode(message)
    assert decode(message)["speed"] == 2.5


def test_who_may_not_read_schemas_is_told(registry: Registry) -> None:
    decode = decoder_of(KafkaSourceOptions(format="avro", registry=f"http://augury:wrong-word@{registry.address}"))
    assert decode is not None
    with pytest.raises(RunError, match="answers 401") as error:
        decode(framed(7, SCHEMA, {"station": "s1", "speed": 2.5}))
    assert "wrong-word" not in str(error.value)
    nowhere = decoder_of(KafkaSourceOptions(format="avro", registry="http://127.0.0.1:1"))
    assert nowhere is not None
    with pytest.raises(UnavailableError, match="cannot be reached"):
        nowhere(framed(7, SCHEMA, {"station": "s1", "speed": 2.5}))
