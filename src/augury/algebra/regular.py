"""Regular expressions in the syntax of RE2, which takes time linear in the text, whatever the expression is."""

from __future__ import annotations

import re
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
        raise _wrong(pattern, error) from None


def _wrong(pattern: str, error: Exception) -> RegularExpressionError:
    reason = str(error).partition(": ")[2]
    return RegularExpressionError(f"{pattern!r} is not a regular expression: {reason}")


@lru_cache(maxsize=65536)
def extract(text: str, pattern: str, group: int) -> str | None:
    """The text of a group in the first match; group 0 is the whole match. None where nothing matches.

    A group that takes no part in the match is empty, as in Spark and DuckDB.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        groups = pc.extract_regex(pa.scalar(text, pa.string()), naming(pattern, group)).as_py()
    except pa.ArrowInvalid as error:
        raise _wrong(pattern, error) from None
    return None if groups is None else str(groups[_GROUP])


_GROUP = "augury"
_PIECES = re.compile(
    r"""\\Q.*?(?:\\E|\Z)                            # quoted text
    | \\.                                           # an escape
    | \[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]       # a character class, in which ( is a character
    | \(\?P?<\w+>                                   # a named group
    | \((?!\?)                                      # a group with a number
    """,
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=1024)
def naming(pattern: str, group: int) -> str:
    """The expression anchored at the start of the text, with one group that has a name and no others.

    Arrow extracts named groups only. RE2 has no back references, so other groups may lose their numbers.

    `a(b|c)(d)`, 2 → `\\A(?s:.*?)(?:a(?:b|c)(?P<augury>d))`.
    """
    check_pattern(pattern)
    count = 0

    def renamed(piece: re.Match[str]) -> str:
        nonlocal count
        text = piece.group()
        if not text.startswith("("):
            return text
        count += 1
        return f"(?P<{_GROUP}>" if count == group else "(?:"

    body = _PIECES.sub(renamed, pattern)
    if group < 0 or group > count:
        raise RegularExpressionError(f"{pattern!r} has no group {group}: its groups are 0 to {count}")
    return rf"\A(?s:.*?){f'(?P<{_GROUP}>' if group == 0 else '(?:'}{body})"
