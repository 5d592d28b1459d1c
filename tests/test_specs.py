"""Every spec case, on every executor."""

from pathlib import Path

import pytest

from augury.testing import Case, read_specs
from tests.functions import FUNCTIONS

CASES = list(read_specs(Path(__file__).parent / "specs"))


@pytest.mark.parametrize("engine", ["reference", "embedded"])
@pytest.mark.parametrize(
    "case", CASES, ids=[f"{Path(c.path).parent.name}/{Path(c.path).stem}: {c.name}" for c in CASES]
)
def test_spec(case: Case, engine: str) -> None:
    case.check(FUNCTIONS, engine)
