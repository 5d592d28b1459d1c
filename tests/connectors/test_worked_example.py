"""The worked example of docs/production.md: MQTT and PostgreSQL in, Kafka and a webhook out, with a rule that changes."""

from __future__ import annotations

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import augury
from tests.support.servers import Server
from tests.support.service_kills import wait_for

pytest.importorskip("paho.mqtt.client")
pytest.importorskip("psycopg")
pytest.importorskip("confluent_kafka")
PAGE = Path(__file__).parents[2] / "docs" / "production.md"


def test_the_worked_example(
    mosquitto: Server, postgres: Server, kafka: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    from tests.connectors.test_kafka import consumed
    from tests.connectors.test_mqtt import publish
    from tests.connectors.test_postgres import Database

    text = PAGE.read_text().partition("## A worked example")[2]
    program = re.search(r"```aug fire.aug\n(.*?)```", text, re.DOTALL)
    command = re.search(r"    augury live (.*?)\n\n", text, re.DOTALL)
    assert program and command
    (tmp_path / "fire.aug").write_text(program[1])
    monkeypatch.setenv("HOOK_SECRET", "of-the-hook")
    incidents: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            incidents.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    hook = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=hook.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    database = Database(postgres, f"farm{time.monotonic_ns()}")
    database.run("CREATE TABLE stations (name text PRIMARY KEY, village text)")
    database.run("INSERT INTO stations VALUES ('s1', 'Brook')")
    topic = f"alerts{time.monotonic_ns()}"
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{kafka.port}"})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)
    written = (
        command[1].replace(":1883", f":{mosquitto.port}").replace(":5432/farm", f":{postgres.port}/{database.name}")
    )
    written = written.replace(":9092/alerts", f":{kafka.port}/{topic}").replace(":8000", f":{hook.server_address[1]}")
    pairs = re.findall(r"--(from|to|facts) '?([^'\s]+)", written)
    named = {option: [value for name, value in pairs if name == option] for option in ("from", "to", "facts")}
    name, _, table = named["facts"][0].partition("=")
    service = augury.live(
        tmp_path / "fire.aug", named["from"], named["to"], facts={name: table}, state=tmp_path / "state",
        emit="early", lateness="1min",
    )  # fmt: skip

    def alerts() -> list[float]:
        latest = dict(consumed(kafka, topic))
        return sorted(json.loads(value)["args"][1] for value in latest.values() if value is not None)

    try:
        with service.running():
            wait_for(lambda: all(feed.opened for feed in service.feeds))
            publish(mosquitto, [("wind/s1", {"speed": 25, "time": "2026-07-01 12:00"})])
            publish(mosquitto, [("wind/s2", {"speed": 40, "time": "2026-07-01 12:00:01"})])
            wait_for(lambda: alerts() == [25.0])
            database.run("INSERT INTO stations VALUES ('s2', 'Hill')")
            wait_for(lambda: service.stepper is not None and service.stepper.counts.facts == 2)
            publish(mosquitto, [("wind/s2", {"speed": 35, "time": "2026-07-01 12:00:02"})])
            wait_for(lambda: alerts() == [25.0, 35.0])
            (tmp_path / "fire.aug").write_text(program[1].replace("Speed > 20", "Speed > 30"))
            wait_for(lambda: alerts() == [35.0])
            wait_for(lambda: len(incidents) == 3)
    finally:
        hook.shutdown()
        hook.server_close()
    assert [incident["state"] for incident in incidents] == ["open", "open", "resolved"]
    assert incidents[0]["incident"] == incidents[2]["incident"] and incidents[0]["title"] == "alert(Brook, 25.0)"
