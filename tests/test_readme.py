"""What the README shows works as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from augury.cli import cli

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_program(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(code, {})
    out = capsys.readouterr().out
    assert out.startswith("fire_alarm ('creek',)\noverdue ('creek',)\nfire_alarm('creek') @")
    assert "└─ by rule fire_alarm" in out


def test_the_commands_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^    make (\w+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile
    assert set(re.findall(r"^    augury (\w+)", README, re.MULTILINE)) <= set(cli.commands)


def test_every_page_is_named() -> None:
    named = re.findall(r"\]\(([\w/.]+)\)", README)
    assert all((ROOT / page).exists() for page in named)
    assert {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} <= set(named)
