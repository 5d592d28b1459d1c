"""A plugin for pytest: TOML files with cases are tests. It loads the engine once a file with cases is found.

The files are those that match `augury_cases` in the configuration of pytest; by default `cases.toml`, `*_cases.toml`,
`test_*.toml` and `*_test.toml`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from augury.testing import Case

PATTERNS = ["cases.toml", "*_cases.toml", "test_*.toml", "*_test.toml"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("augury_cases", "patterns of the names of files with cases for Augury", "args", PATTERNS)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    patterns = parent.config.getini("augury_cases")
    named = file_path.suffix == ".toml" and any(file_path.match(pattern) for pattern in patterns)
    if named and "[[case]]" in file_path.read_text(encoding="utf-8", errors="replace"):
        return CaseFile.from_parent(parent, path=file_path)
    return None


class CaseFile(pytest.File):
    """A TOML file with cases."""

    def collect(self) -> Iterator[pytest.Item]:
        from augury.core.errors import AuguryError
        from augury.testing import read_spec

        try:
            cases = read_spec(self.path)
        except AuguryError as error:
            raise self.CollectError(str(error)) from None
        for case in cases:
            item = CaseItem.from_parent(self, name=case.name, case=case)
            item.extra_keyword_matches.update(case.tags)
            yield item


class CaseFailed(Exception):
    """A case that does not pass; the message says what differs, and why."""


class CaseItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, **options: Any) -> None:
        super().__init__(**options)
        self.case = case
        self.funcargs: dict[str, object] = {}  # pytest-lsp fails on tests that have no such attribute

    def runtest(self) -> None:
        from augury.tools.case_runs import run_cases

        for result in run_cases([self.case]):
            if not result.passed:
                raise CaseFailed(result.message)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name
