"""Errors of saved state that is damaged, or not ours."""

from __future__ import annotations

from augury.core.errors import SnapshotError


class CorruptSnapshot(Exception):
    """Saved state that Augury cannot have written."""


def require(sound: object, what: str) -> None:
    if not sound:
        raise CorruptSnapshot(what)


def not_whole(why: str) -> SnapshotError:
    """The one error for whatever is wrong with the bytes themselves."""
    return SnapshotError(
        f"not a whole snapshot: {why}",
        hint="it is damaged, cut off, or something else: take another copy, or replay the events into a new session",
        code="S101",
    )


def other_version(why: str) -> SnapshotError:
    return SnapshotError(
        f"a snapshot of another version: {why}",
        hint="restore it with the version of Augury that it was taken with, or replay the events into a new session",
        code="S102",
    )
