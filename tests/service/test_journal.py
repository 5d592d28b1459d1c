"""The journal: what is in it comes back, and what a crash or a disk has broken is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from augury.connectors import Delivery, Poison
from augury.core.errors import RunError
from augury.service.journal import Journal, RuleSwitch, Step

STEPS = (
    Step(1, (("s", Delivery(b'{"a": 1}\n', {"n": 1}, "p", "csv", b"a\n", 7, "wind", "", (Poison("bad", b"\xff"),))),)),
    Step(2, (), ("s\tp",), ("s\tq",), 5, RuleSwitch(("x",), "y <- z.")),
    Step(3, (("s", Delivery(b"", {"n": 2})), ("t", Delivery(b"[]\n", {}, facts="near"))), over=True),
)


def _written(folder: Path) -> Path:
    journal = Journal(folder)
    for step in STEPS:
        journal.append(step)
    journal.close()
    return journal.segments()[0]


def test_steps_come_back_as_they_were(tmp_path: Path) -> None:
    _written(tmp_path)
    assert tuple(Journal(tmp_path).steps(0)) == STEPS
    assert tuple(Journal(tmp_path).steps(2)) == STEPS[2:]


def test_a_torn_end_is_left_out_wherever_it_is_torn(tmp_path: Path) -> None:
    path = _written(tmp_path)
    whole = path.read_bytes()
    last = len(whole) - len(STEPS[2].packed())
    for size in range(last, len(whole), 7):
        path.write_bytes(whole[:size])
        assert tuple(Journal(tmp_path).steps(0)) == STEPS[:2]
        assert path.stat().st_size == last


def test_a_flipped_bit_before_the_end_is_an_error(tmp_path: Path) -> None:
    path = _written(tmp_path)
    data = bytearray(path.read_bytes())
    data[40] ^= 4
    path.write_bytes(data)
    with pytest.raises(RunError, match="is damaged at byte 0"):
        list(Journal(tmp_path).steps(0))


def test_what_a_snapshot_holds_is_removed(tmp_path: Path) -> None:
    _written(tmp_path)
    journal = Journal(tmp_path)
    journal.trim(3)
    assert journal.segments() == []
    journal.append(Step(4))
    journal.close()
    assert [step.number for step in Journal(tmp_path).steps(3)] == [4]
