"""The fields that all rows of tables have: their interval, the two rows they derive from, their rank in a recursion."""

from __future__ import annotations

START, END, LEFT, RIGHT, RANK = range(5)
FIELDS = 5  # the first field of variables and labels
