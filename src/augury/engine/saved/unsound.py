"""What is said of bytes that are not, or no longer, what was saved."""

from __future__ import annotations

from augury.core.errors import SnapshotError


class Unsound(Exception):
    """Something in saved state cannot be: it was not written like this."""


def require(sound: object, what: str) -> None:
    if not sound:
        raise Unsound(what)


def not_whole(why: str) -> SnapshotError:
    """The one error for whatever is wrong with the bytes themselves."""
    return SnapshotError(
        f"not a whole snapshot: {why}",
        hint="it is damaged, cut off, or something else: take another copy, or tell a new session its events again",
        code="S101",
    )


def other_version(why: str) -> SnapshotError:
    return SnapshotError(
        f"a snapshot of another version: {why}",
        hint="restore it with the version of Augury that it was taken with, or tell a new session its events again",
        code="S102",
    )
