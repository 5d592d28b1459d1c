"""Addresses: schemes, options, secrets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import augury
from augury.connectors import Address, addresses, connectors, open_sink, open_source, redacted
from augury.core.errors import RunError


@dataclass(frozen=True)
class Sample:
    group: str = "augury"
    most: int = 10
    wait: float = 1.0
    from_start: bool = False


def test_an_address_has_type_scheme_host_path_and_options() -> None:
    address = Address.parse("wind=s3://one:9092,two:9092/readings?group=g&most=5&wait=2min&from-start=true")
    assert (address.type, address.scheme, address.host, address.path) == (
        "wind",
        "s3",
        "one:9092,two:9092",
        "/readings",
    )
    assert address.read(Sample) == Sample("g", 5, 120.0, True)


def test_a_topic_of_mqtt_may_have_a_hash() -> None:
    assert Address.parse("s3://localhost/alarms/+/#").path == "/alarms/+/#"


def test_what_has_no_scheme_is_a_file(tmp_path: Path) -> None:
    assert Address.parse("wind=events.jsonl?follow=false").options == {"follow": "false"}
    assert Address.parse("-").scheme == "-"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fle://h/t", "unknown scheme `fle://`"),
        ("s3://u:${NOWHERE_SET}@h/db", "the environment has no variable `NOWHERE_SET`"),
        ("s3://u:${file:/nowhere/secret}@h/db", "cannot be read"),
    ],
)
def test_wrong_addresses_are_refused(text: str, message: str) -> None:
    with pytest.raises(RunError, match=message):
        Address.parse(text)


def test_wrong_options_are_refused() -> None:
    with pytest.raises(RunError, match="did you mean `follow`"):
        open_source("events.jsonl?folow=true")
    with pytest.raises(RunError, match="`most` is a whole number, not 'many'"):
        Address.parse("file://h/t?most=many").read(Sample)
    with pytest.raises(RunError, match="cannot be written to"):
        open_sink("listen://127.0.0.1:0/x")
    with pytest.raises(RunError, match=r"name it with \.jsonl"):
        open_sink("answers.xml")


def test_secrets_come_from_the_environment_or_a_file_and_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "hunter-two")
    (tmp_path / "token").write_text("tok-en-123\n")
    address = Address.parse(f"s3://u:${{DB_PASSWORD}}@h/db?token=${{file:{tmp_path}/token}}")
    assert (address.password, address.options["token"]) == ("hunter-two", "tok-en-123")
    assert "hunter" not in f"{address} {address!r}" and "tok-en" not in f"{address} {address!r}"
    assert redacted("no access for hunter-two") == "no access for ***"
    assert "pass-word" not in str(Address.parse("s3://u:pass-word@h/db"))


def test_a_package_adds_a_scheme_with_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "upper_lines.py").write_text(
        "from augury.connectors import AnswerSink\n"
        "class UpperLines(AnswerSink):\n"
        "    def __init__(self, address): self.path = address.path\n"
        "    def write(self, steps):\n"
        "        with open(self.path, 'ab') as file:\n"
        "            file.writelines(line.upper() + b'\\n' for step in steps for line in step.lines)\n"
        "        return []\n"
        "def sink(address): return UpperLines(address)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(addresses, "entry_points", lambda group: [EntryPoint("upper", "upper_lines", group)])
    connectors.cache_clear()
    try:
        events = [{"type": "a", "args": ["x"], "time": 1}]
        augury.live("b(X) <- a(X).", events, f"upper://{tmp_path}/out", state=tmp_path / "state", clock="logical").run()
        assert json.loads((tmp_path / "out").read_text().lower())["args"] == ["x"]
        with pytest.raises(RunError, match="cannot be read from"):
            open_source(f"upper://{tmp_path}/out")
    finally:
        connectors.cache_clear()
