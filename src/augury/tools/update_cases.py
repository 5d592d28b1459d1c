"""Writes the actual results of cases into their files; comments and layout of the rest stay as they are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

from augury.core.errors import RunError
from augury.tools.case_runs import CaseResult

_PIECES = re.compile(
    r"""(?P<string>'''.*?'''|\"{3}(?:\\.|[^\\])*?\"{3}|'[^'\n]*'|"(?:\\.|[^"\\\n])*")|(?P<comment>\#[^\n]*)"""
    r"""|(?P<header>^[ \t]*\[\[?[^\]\n]+\]\]?)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<key>^[ \t]*[\w.-]+[ \t]*=[ \t]*)|(?P<other>.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def updated(text: str, results: Iterable[CaseResult]) -> str:
    """The text of a spec file with the actual answers of its cases in place of the expected ones."""
    for result in results:
        outcome, position = result.outcome, result.case.position
        if outcome is None or outcome.passed or "expect_error" in result.case.settings:
            continue
        for key, lines in (("expected", outcome.answer), ("changes", outcome.changes)):
            if result.case.expected is not None if key == "expected" else key in result.case.settings:
                text = _replaced(text, position, key, _array(lines))
        for step, lines in enumerate(outcome.emitted):
            if "emits" in result.case.settings["steps"][step]:
                text = _with_step(text, position, step, _array(lines, one_line=True))
    tomllib.loads(text)  # a mistake of ours must not reach the file
    return text


def _array(lines: Sequence[str], one_line: bool = False) -> str:
    """A TOML array of texts: on one line where it is short."""
    texts = [_text(line) for line in lines]
    flat = f"[{', '.join(texts)}]"
    if one_line or len(flat) <= 90:
        return flat
    return "[\n" + "".join(f"    {text},\n" for text in texts) + "]"


def _text(line: str) -> str:
    if "\\" not in line and '"' not in line and line.isprintable():
        return f'"{line}"'
    escaped = line.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'


def _case(text: str, position: int) -> tuple[int, int]:
    """Where a case begins and ends in the text of its file."""
    starts = [
        m.start()
        for m in _PIECES.finditer(text)
        if m.lastgroup == "header" and "[[case]]" in m.group().replace(" ", "")
    ]
    return starts[position], starts[position + 1] if position + 1 < len(starts) else len(text)


def _value(text: str, start: int) -> int:
    """The end of the value that begins at an offset."""
    depth = 0
    for piece in _PIECES.finditer(text, start):
        kind = piece.lastgroup
        if kind in ("open", "header"):
            depth += (
                piece.group().count("[")
                + piece.group().count("{")
                - piece.group().count("]")
                - piece.group().count("}")
            )
        elif kind == "close":
            depth -= 1
        if depth == 0 and kind in ("close", "string", "header"):
            return piece.end()
    raise RunError("the file of the case has changed while it was run")


def _replaced(text: str, position: int, key: str, value: str) -> str:
    """The text with another value of a key of a case; it is added where it stands above the cases."""
    start, end = _case(text, position)
    for piece in _PIECES.finditer(text, start, end):
        if piece.lastgroup == "key" and piece.group().split("=")[0].strip() == key:
            return text[: piece.end()] + value + text[_value(text, piece.end()) :]
    head = text[start:end].rstrip()
    return f"{text[:start]}{head}\n{key} = {value}\n{text[start + len(head) :].removeprefix(chr(10))}"


def _with_step(text: str, position: int, number: int, value: str) -> str:
    """The text with another `emits` of a step: an inline table, or a table [[case.steps]] of its own."""
    start, end = _case(text, position)
    seen = -1
    for match in re.finditer(r"\bemits\s*=\s*", text[start:end]):
        seen += 1
        if seen == number:
            begin = start + match.end()
            return text[:begin] + value + text[_value(text, begin) :]
    return text


def write_updates(results: Sequence[CaseResult]) -> list[str]:
    """Writes the files of the cases whose answers differ; their names."""
    changed = []
    for path in dict.fromkeys(result.case.path for result in results):
        text = Path(path).read_text(encoding="utf-8")
        new = updated(text, [result for result in results if result.case.path == path])
        if new != text:
            Path(path).write_text(new, encoding="utf-8")
            changed.append(path)
    return changed
