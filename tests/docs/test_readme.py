"""What the README shows works as it stands."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from augury.cli import COMMANDS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_first_program_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(code, {})
    out = capsys.readouterr().out
    assert out.startswith("fire_alarm ('creek',)\noverdue ('creek',)\nfire_alarm('creek') @")
    assert "└─ by rule fire_alarm" in out


def test_the_commands_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^    make (\w+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile
    assert set(re.findall(r"^    augury (\w+)", README, re.MULTILINE)) <= set(COMMANDS)


def test_every_page_is_named() -> None:
    named = re.findall(r"\]\(([\w/.]+)\)", README)
    assert all((ROOT / page).exists() for page in named)
    assert {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} <= set(named)


def test_the_block_of_commands_runs_as_printed(tmp_path: Path) -> None:
    """In a folder of its own, one command after the other; the stream, which needs Spark, where there is time."""
    (block,) = re.findall(r"((?:^    (?:\. |augury |cd ).*\n)+)", README, re.MULTILINE)
    folder, ran = tmp_path, 0
    for line in block.splitlines():
        words = shlex.split(line, comments=True)
        if words[0] == "cd":
            folder = folder / words[1]
        elif words[0] == "augury" and (
            words[1] != "stream" or (os.environ.get("AUGURY_LONG") and shutil.which("java"))
        ):
            command = [sys.executable, "-m", "augury", *words[1:]]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, (line, done.stderr)
            ran += 1
    assert ran >= 7
    tests = subprocess.run([sys.executable, "test_rules.py"], cwd=folder, capture_output=True, text=True)
    assert tests.returncode == 0 and "passed: the data" in tests.stdout, tests.stderr
