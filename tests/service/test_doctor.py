"""`augury doctor` says what is wrong and how to mend it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from augury.cli import cli


def test_each_address_is_tried_and_a_sample_is_read(tmp_path: Path) -> None:
    program, events = tmp_path / "p.aug", tmp_path / "e.jsonl"
    program.write_text("event wind(place: string, speed: float).\nstrong(P) <- wind(P, S) WHERE S > 3.\n")
    events.write_text(json.dumps({"type": "wind", "place": "x", "speed": 4, "time": "2026-07-01 12:00"}) + "\n")
    args = ["doctor", str(program), "--from", f"{events}?follow=false", "--to", str(tmp_path / "out.jsonl")]
    good = CliRunner().invoke(cli, [*args, "--state", str(tmp_path / "state")])
    assert good.exit_code == 0, good.output
    assert "1 events fit the program" in good.output and "GB free" in good.output
    events.write_text('{"type": "wind", "place": "x", "speed": "much", "time": 5}\n')
    bad = CliRunner().invoke(cli, [*args, "--to", "http://127.0.0.1:1/hook?secret=word-of-mine", "--to", "kafak://h/t"])
    assert bad.exit_code == 1
    assert "`speed` is declared as float" in bad.output and "did you mean `kafka://`?" in bad.output
    assert "127.0.0.1:1/hook" in bad.output and "word-of-mine" not in bad.output
