"""The tree is the pipeline: imports point one way."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "augury"
ORDER = [
    "errors", "jit", "clock", "limits", "model", "standing", "algebra", "entailment", "optimiser", "language", "program", "columns", "sources", "knowledge", "settings", "meaning", "notation",
    "explain", "sinks", "engine", "spark", "run", "testing", "terminal", "job", "cli",
]  # fmt: skip
# One idea on two sides: a format that is read and written, a command and what it does, an algebra's node and its meaning.
TWO_SIDES = {
    "batch", "csv", "facts", "files", "job", "jsonl", "parquet", "patterns", "relation", "run", "static", "stream", "types", "why",
}  # fmt: skip
LATER = {
    "program": {"explain", "engine", "knowledge", "settings"}
}  # imported inside a method, so that the face of a program can show its plan


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    return {name.split(".")[1] for name in names if name.startswith("augury.")}


def test_imports_point_one_way() -> None:
    for path in SOURCE.rglob("*.py"):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if part in ("__init__", "__main__"):
            continue
        for name in imported(path) - {part} - LATER.get(part, set()):
            assert ORDER.index(name) < ORDER.index(part), f"{path} imports {name}"


def test_the_judge_is_asked_by_those_who_judge() -> None:
    """Executors are compared with `meaning/`, so none of them may rest on it."""
    for path in SOURCE.rglob("*.py"):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if "meaning" in imported(path) - {part}:
            assert part in ("explain", "run", "testing", "job"), path


def test_no_two_modules_have_one_name() -> None:
    names = [path.stem for path in SOURCE.rglob("*.py") if path.stem not in ("__init__", "__main__")]
    assert {name for name in names if names.count(name) > 1} == TWO_SIDES


def test_no_text_is_left_unfinished() -> None:
    for path in SOURCE.rglob("*.py"):
        assert "TODO" not in path.read_text(encoding="utf-8"), path


def test_nothing_is_read_that_could_run() -> None:
    """State, checkpoints and what goes to workers is written as plain data, and never as pickled objects."""
    for path in SOURCE.rglob("*.py"):
        assert not {"pickle", "marshal", "shelve", "dill", "cloudpickle"} & _modules(path), path


def _modules(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    return names | {n.module.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
