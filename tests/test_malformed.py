"""Malformed input: what is said of each mistake, of its line and of no other, and that the rest is read as without it."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from augury.clock import Clock
from augury.errors import AuguryError
from augury.knowledge.facts import facts_from
from augury.sources import Reader, Skipped, read_history
from tests.malformed import FAULTS, FORMS, PROGRAM, ROWS, Fault, Form, good_row, holds

PLACES = [(0,), (ROWS // 2,), (ROWS - 1,), (1, ROWS - 2)]
ALL = bool(os.environ.get("AUGURY_FUZZ"))
TIMES = 4 if ALL else 1


def outcome(given: Any, about: str, clock: Clock, on_error: Any, program: Any = PROGRAM) -> tuple[list[str], list[str]]:
    """What is read, one a row, and what is said of the rest."""
    skipped = Skipped(on_error)
    if about == "events":
        found: Any = read_history(Reader(program.plan, clock, skipped), given).items()
    else:
        found = facts_from({"setting": given}, program.plan, clock, skipped)
    return [repr(one) for one in found], skipped.problems


@cache
def good(form: str, about: str, clock: Clock) -> list[str]:
    """What all rows of a form are read as, where nothing is wrong."""
    with TemporaryDirectory() as folder:
        rows: list[Any] = [good_row(k, about, FORMS[form].family) for k in range(ROWS)]
        return outcome(FORMS[form].write(rows, about, Path(folder), {}).given, about, clock, "stop")[0]


def check(fault: Fault, form: Form, about: str, wrong: tuple[int, ...], folder: Path) -> None:
    rows: list[Any] = [good_row(k, about, form.family) for k in range(ROWS)]
    for row in wrong:
        rows[row] = fault.wrong(rows[row])
    written = form.write(rows, about, folder, fault.kinds)
    with pytest.raises(AuguryError) as caught:
        outcome(written.given, about, fault.clock, "stop")
    first, said = str(caught.value).split("\n")[0], [f"{written.place}:{written.line(row)}: " for row in wrong]
    assert first.startswith(said[0]), (first, said[0])
    assert re.match(fault.said, first[len(said[0]) :]), (first, fault.said)
    assert len(first) < 300 + len(said[0]), "nobody reads so much"
    found, problems = outcome(written.given, about, fault.clock, "skip")
    assert [p[: len(s)] for p, s in zip(problems, said, strict=True)] == said
    assert problems[0] == first
    assert all(re.match(fault.said, p[len(s) :]) for p, s in zip(problems, said, strict=True))
    assert found == [one for row, one in enumerate(good(form.name, about, fault.clock)) if row not in wrong]


HELD = [(fault, form) for fault in FAULTS for form in FORMS.values() if holds(form, fault)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("malformed")


@pytest.mark.parametrize(("fault", "form"), HELD, ids=[f"{fault.name}-{form.name}" for fault, form in HELD])
def test_a_wrong_row(fault: Fault, form: Form, folder: Path) -> None:
    for about in fault.about:
        for wrong in places(fault, form, about):
            check(fault, form, about, wrong, folder)


def places(fault: Fault, form: Form, about: str) -> list[tuple[int, ...]]:
    """Where the mistake stands: one place after the other as one goes through forms and faults, which is all of them."""
    at = FAULTS.index(fault) + list(FORMS).index(form.name) + len(about)
    return [PLACES[(at + i) % (3 if fault.alone else 4)] for i in range(TIMES)]
