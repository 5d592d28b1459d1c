"""Spec files: which keys a case may have, and how files are read."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from augury.core.errors import DataError, nearest
from augury.testing.case_steps import STEP_KEYS
from augury.testing.spec_case import Case

_LINES, _TEXT, _TABLE, _TIME = (list,), (str,), (dict,), (str, int, float)
# Each key of a case, and the types of its value in TOML.
KEYS: Mapping[str, tuple[type, ...]] = {
    "name": _TEXT, "about": _TEXT, "tags": _LINES, "program": _TEXT, "query": _TEXT, "queries": _TABLE,
    "functions": _TEXT, "events": (list, str), "tables": _TABLE, "facts": _TABLE, "rdf": _TEXT, "clock": _TEXT,
    "policy": _TEXT, "until": _TIME, "as_of": _TIME, "retention": _TEXT, "emit": _TEXT, "lateness": _TEXT,
    "expected": _LINES, "changes": _LINES, "steps": _LINES, "expect_none": (bool, list), "expect_error": _TEXT,
}  # fmt: skip
_EXPECTS = ("expected", "changes", "steps", "expect_none", "expect_error")
_NOT_SETTINGS = ("name", "about", "program", "expected", "tags")


def read_spec(path: str | Path, programs: dict[Any, Any] | None = None) -> list[Case]:
    """The cases of a spec file. Cases with the same program share it; `programs` shares those of several files."""
    path, shared_programs = Path(path), {} if programs is None else programs
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", str(path)) from None
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 text (byte {error.start})", str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"malformed TOML: {error}", str(path)) from None
    shared = {k: v for k, v in data.items() if k != "case"}
    cases = data.get("case", [])
    if not cases:
        raise DataError("has no [[case]]", str(path))
    result: list[Case] = []
    for number, case in enumerate(cases, 1):
        merged = {**shared, **case}
        _check(merged, number, path)
        result.append(
            Case(
                str(case.get("name", f"case {number}")),
                merged.get("program", ""),
                tuple(events) if isinstance(events := merged.get("events", ()), list) else (),
                tuple(merged["expected"]) if "expected" in merged else None,
                {k: v for k, v in merged.items() if k not in _NOT_SETTINGS},
                str(path),
                tuple(merged.get("tags", ())),
                number - 1,
                shared_programs,
            )
        )
    return result


def _check(case: dict[str, Any], number: int, path: Path) -> None:
    """Refuses a case with an unknown key, a value of another type, or one that has nothing to run or to expect."""
    for key, value in case.items():
        if key not in KEYS:
            close = nearest(key, KEYS)
            raise DataError(
                f"unknown key `{key}` in case {number}", str(path), f"did you mean `{close}`?" if close else ""
            )
        if not isinstance(value, KEYS[key]):
            kinds = " or ".join({list: "a list", str: "text", dict: "a table", int: "a number", bool: "true"}.get(k, "") for k in KEYS[key] if k is not float)  # fmt: skip
            raise DataError(f"`{key}` of case {number} is {kinds}, not {value!r}", str(path))
    for step in case.get("steps", ()):
        if not isinstance(step, dict) or (unknown := sorted(set(step) - STEP_KEYS)):
            wrong = f"has no key `{unknown[0]}`" if isinstance(step, dict) else f"is a table, not {step!r}"
            hint = 'such as {{ push = ["a(1) @ 1"], emits = [] }}; keys are ' + ", ".join(sorted(STEP_KEYS))
            raise DataError(f"a step of case {number} {wrong}", str(path), hint)
    if not case.keys() & {"program", "query", "queries"} or not case.keys() & set(_EXPECTS):
        raise DataError(f"case {number} needs `program` (or `query`) and `expected` (or `changes`)", str(path))


def read_specs(folder: str | Path) -> Iterator[Case]:
    """The cases of all spec files below a folder."""
    programs: dict[Any, Any] = {}
    for path in sorted(Path(folder).rglob("*.toml")):
        yield from read_spec(path, programs)


def case_files(path: str | Path) -> list[Path]:
    """The files with cases at a path: a file itself; below a folder every TOML file with a [[case]]."""
    path = Path(path)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError("no such file or folder", str(path))
    files = [
        file
        for file in sorted(path.rglob("*.toml"))
        if not any(part.startswith(".") for part in file.relative_to(path).parts)
    ]
    return [file for file in files if "[[case]]" in file.read_text(encoding="utf-8", errors="replace")]
