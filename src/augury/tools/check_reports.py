"""What `augury check` finds, for other programs: JSON, SARIF 2.1.0, and the commands that GitHub turns into annotations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any

from augury.core.errors import Diagnostic, Edit, Span
from augury.language.codes import CODES


def region(span: Span) -> dict[str, int]:
    """Lines and columns, both from one; the end is after the last character."""
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(max(span.start, span.end))
    return {"line": line, "column": column, "end_line": end_line, "end_column": end_column}


def as_json(diagnostics: Iterable[Diagnostic]) -> str:
    return json.dumps([_plain(diagnostic) for diagnostic in diagnostics], indent=2, ensure_ascii=False)


def _plain(diagnostic: Diagnostic) -> dict[str, Any]:
    fix = diagnostic.fix
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "file": diagnostic.span.source.name,
        **region(diagnostic.span),
        "notes": [
            {"text": note.text, **({} if note.span is None else {"file": note.span.source.name, **region(note.span)})}
            for note in diagnostic.notes
        ],
        "hint": diagnostic.hint,
        "fix": None
        if fix is None
        else {"title": fix.title, "safe": fix.safe, "edits": [_plain_edit(e) for e in fix.edits]},
    }


def _plain_edit(edit: Edit) -> dict[str, object]:
    return {"file": edit.span.source.name, **region(edit.span), "text": edit.text}


def as_sarif(diagnostics: Iterable[Diagnostic]) -> str:
    listed = list(diagnostics)
    codes = sorted({diagnostic.code for diagnostic in listed})
    driver = {
        "name": "augury",
        "version": version("augury"),
        "rules": [{"id": code, "shortDescription": {"text": CODES[code]}} for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(diagnostic, codes.index(diagnostic.code)) for diagnostic in listed],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _result(diagnostic: Diagnostic, rule: int) -> dict[str, object]:
    hint = f" (hint: {diagnostic.hint})" if diagnostic.hint else ""
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": diagnostic.severity,
        "message": {"text": diagnostic.message + hint},
        "locations": [_location(diagnostic.span)],
    }
    notes = [note for note in diagnostic.notes if note.span is not None]
    if notes:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": note.text}, **_location(note.span)}
            for number, note in enumerate(notes)
            if note.span is not None
        ]
    if diagnostic.fix is not None:
        changes = [
            {
                "artifactLocation": {"uri": edit.span.source.name},
                "replacements": [{"deletedRegion": _sarif_region(edit.span), "insertedContent": {"text": edit.text}}],
            }
            for edit in diagnostic.fix.edits
        ]
        result["fixes"] = [{"description": {"text": diagnostic.fix.title}, "artifactChanges": changes}]
    return result


def _location(span: Span) -> dict[str, object]:
    return {"physicalLocation": {"artifactLocation": {"uri": span.source.name}, "region": _sarif_region(span)}}


def _sarif_region(span: Span) -> dict[str, int]:
    lines = region(span)
    names = {"line": "startLine", "column": "startColumn", "end_line": "endLine", "end_column": "endColumn"}
    return {name: lines[key] for key, name in names.items()}


def as_github(diagnostics: Iterable[Diagnostic]) -> str:
    return "\n".join(map(_annotation, diagnostics))


def _annotation(diagnostic: Diagnostic) -> str:
    lines = region(diagnostic.span)
    properties = {
        "file": diagnostic.span.source.name, "line": lines["line"], "endLine": lines["end_line"], "col": lines["column"],
        "endColumn": lines["end_column"], "title": diagnostic.code,
    }  # fmt: skip
    hint = f"\nhint: {diagnostic.hint}" if diagnostic.hint else ""
    written = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in properties.items())
    return f"::{diagnostic.severity} {written}::{_escaped(diagnostic.message + hint)}"


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


REPORTS: dict[str, Callable[[Iterable[Diagnostic]], str]] = {"json": as_json, "sarif": as_sarif, "github": as_github}
