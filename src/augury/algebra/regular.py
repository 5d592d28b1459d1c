"""Regular expressions in the syntax of RE2, which takes time linear in the text, whatever the expression is."""

from __future__ import annotations

from functools import lru_cache


class RegularExpressionError(Exception):
    """A regular expression that is not one."""


def check_pattern(pattern: str) -> None:
    """Raises where a regular expression is not written as one."""
    found_in("", pattern)


@lru_cache(maxsize=65536)
def found_in(text: str, pattern: str) -> bool:
    """Whether a regular expression is found anywhere in a text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return bool(pc.match_substring_regex(pa.scalar(text, pa.string()), pattern).as_py())
    except pa.ArrowInvalid as error:
        reason = str(error).partition(": ")[2]
        raise RegularExpressionError(f"{pattern!r} is not a regular expression: {reason}") from None
