"""The fields that all rows of tables have: their interval, the two rows they were made of, their rank in a recursion."""

from __future__ import annotations

from augury.planner.implied_bounds import END, START

LEFT, RIGHT, RANK = 2, 3, 4
FIELDS = 5  # the first field of variables and labels

__all__ = ["END", "FIELDS", "LEFT", "RANK", "RIGHT", "START"]
