"""The spec cases."""

from __future__ import annotations

from pathlib import Path

from augury.testing import Case, read_specs

FOLDER = Path(__file__).parent / "specs"


def all_cases() -> list[Case]:
    return list(read_specs(FOLDER))
