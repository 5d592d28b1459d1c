"""What is wrong with a draft of the rules, and what is running: places and plans as data."""

from __future__ import annotations

from typing import Any

from augury.console.near_misses import place_of, words_of
from augury.console.program_text import RuleDifference, WrittenProgram
from augury.console.recording import Recording
from augury.core.errors import Diagnostic, ProgramError, RunError
from augury.lint import lint


def checked(body: dict[str, Any], recording: bytes) -> dict[str, Any]:
    """The findings of a draft, and how its rules differ from those that run."""
    text = Recording.of_bytes(recording).setup.text
    try:
        program = text.changed(body["sources"]).compile()
    except ProgramError as error:
        errors_first = sorted(error.diagnostics, key=lambda diagnostic: diagnostic.severity != "error")
        return {"findings": [finding(d) for d in errors_first], "difference": None, "notNow": ""}
    try:
        difference: RuleDifference | None = WrittenProgram(program).difference(WrittenProgram(text.compile()))
        refused = ""
    except RunError as error:
        difference, refused = None, f"{error.message}: {error.hint}" if error.hint else error.message
    return {
        "findings": [finding(d) for d in lint(program)],
        "difference": None
        if difference is None
        else {"added": list(difference.added), "removed": list(difference.removed)},
        "notNow": refused,
    }


def finding(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic as data."""
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "words": words_of(diagnostic.message),
        "place": place_of(diagnostic.span),
        "notes": [{"words": words_of(note.text), "place": place_of(note.span)} for note in diagnostic.notes],
        "hint": diagnostic.hint or "",
        "hintWords": words_of(diagnostic.hint or ""),
    }
