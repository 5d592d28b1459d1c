"""A few of each fault; `make faults` makes many."""

from __future__ import annotations

import pytest

from tests.faults.kinds import FAULTS


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.few])
def test_what_is_promised_holds(name: str) -> None:
    fault = FAULTS[name]
    found = list(fault.make(fault.few, 7))
    assert len(found) == fault.few
    assert not [wrong for wrong in found if wrong is not None]
