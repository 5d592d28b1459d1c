"""The spec cases, and which of them an executor other than the reference runs."""

from __future__ import annotations

from pathlib import Path

from augury.testing import Case, read_specs

FOLDER = Path(__file__).parent / "specs"
NOT_ON_THE_ENGINE = {"runs"}  # folders: emptied once the engine, and Spark with it, has the operator of runs


def all_cases() -> list[Case]:
    return list(read_specs(FOLDER))


def engine_cases() -> list[Case]:
    """The cases that the embedded engine and Spark run."""
    return [case for case in all_cases() if Path(case.path).parent.name not in NOT_ON_THE_ENGINE]
