"""Every spec case, on every executor."""

from pathlib import Path

import pytest

from augury.testing import Case
from tests.support.functions import FUNCTIONS
from tests.support.spec_cases import all_cases

CASES = [(engine, case) for engine, cases in (("reference", all_cases()), ("embedded", all_cases())) for case in cases]


@pytest.mark.parametrize(
    ("engine", "case"), CASES, ids=[f"{e}, {Path(c.path).parent.name}/{Path(c.path).stem}: {c.name}" for e, c in CASES]
)
def test_spec(engine: str, case: Case) -> None:
    case.check(FUNCTIONS, engine)
