"""The fields that all rows of tables have: their interval, the two rows they were made of, their rank in a recursion."""

from __future__ import annotations

START, END, LEFT, RIGHT, RANK = 0, 1, 2, 3, 4
FIELDS = 5  # the first field of variables and labels
