"""The tree is the pipeline: imports point one way."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import get_args

from augury.algebra import nodes
from tests.conftest import piece

SOURCE = Path(__file__).parents[2] / "src" / "augury"
ORDER = [
    "core", "algebra", "entailment", "language", "storage", "graphs", "sources", "knowledge", "queries", "planner", "compiled", "settings", "reference", "notation", "pictures",
    "explain", "sinks", "engine", "program", "spark", "run", "testing", "terminal", "job", "examples", "cli",
]  # fmt: skip
# One idea on two sides: a format that is read and written, a command and what it does, an algebra's node and its meaning.
TWO_SIDES = {
    "batch", "csv", "facts", "files", "job", "jsonl", "parquet", "patterns", "policies", "relation", "run", "static", "stream", "why",
}  # fmt: skip


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported(path: Path) -> set[str]:
    """The parts of the tree that a file imports, wherever in the file it does."""
    names: list[str] = []
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} imports from where it stands"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("augury.")}


def test_imports_point_one_way() -> None:
    for path in SOURCE.rglob("*.py"):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if part in ("__init__", "__main__"):
            continue
        for name in imported(path) - {part}:
            assert ORDER.index(name) < ORDER.index(part), f"{path} imports {name}"


def test_the_judge_is_asked_by_those_who_judge() -> None:
    """Executors are compared with `reference/`, so none of them may rest on it."""
    for path in SOURCE.rglob("*.py"):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if "reference" in imported(path) - {part}:
            assert part in ("explain", "run", "testing", "job"), path


def test_no_two_modules_have_one_name() -> None:
    names = [path.stem for path in SOURCE.rglob("*.py") if path.stem not in ("__init__", "__main__")]
    assert {name for name in names if names.count(name) > 1} == TWO_SIDES


def test_no_two_classes_have_one_name() -> None:
    names = [n.name for path in SOURCE.rglob("*.py") for n in ast.walk(_tree(path)) if isinstance(n, ast.ClassDef)]
    assert {name for name in names if names.count(name) > 1} == set()


NODES = {t.__name__ for t in get_args(nodes.Node)}
CONDITIONS = {t.__name__ for t in get_args(nodes.Condition)}


def test_what_tells_nodes_apart_names_all_of_them() -> None:
    """A `match` on nodes or conditions ends in `assert_never`, so that a new one is missed by the type checker."""
    for path in SOURCE.rglob("*.py"):
        for found in ast.walk(_tree(path)):
            if isinstance(found, ast.Match) and path.name != "sharing.py":  # which takes anything apart
                used = {_class_of(p) for case in found.cases for p in ast.walk(case.pattern)}
                if len(used & NODES) > 1 or len(used & CONDITIONS) > 1:
                    assert "assert_never" in ast.unparse(found.cases[-1]), f"{path}:{found.lineno}"


def _class_of(pattern: ast.AST) -> str:
    if not isinstance(pattern, ast.MatchClass):
        return ""
    return pattern.cls.attr if isinstance(pattern.cls, ast.Attribute) else getattr(pattern.cls, "id", "")


def test_no_text_is_left_unfinished() -> None:
    for path in SOURCE.rglob("*.py"):
        assert "TODO" not in path.read_text(encoding="utf-8"), path


def test_the_files_that_the_documents_name_are_there() -> None:
    """`operators/join.py` may be named by the end of its path; a folder by its name and a slash."""
    root = SOURCE.parent.parent
    there = [path.as_posix() for folder in ("src", "tests", "docs") for path in (root / folder).rglob("*")]
    there += [(root / folder).as_posix() for folder in ("src", "tests", "docs")]
    for document in (root / "docs" / "design.md", root / "CONTRIBUTING.md"):
        named = re.findall(r"`([\w/.]+(?:\.(?:py|lark|toml|md)|/))(?::[^`]*)?`", document.read_text(encoding="utf-8"))
        assert named
        for name in named:
            assert any(path.endswith("/" + name.rstrip("/")) for path in there), f"{document.name}: {name}"


def test_the_documents_have_the_order_of_imports() -> None:
    text = (SOURCE.parent.parent / "docs" / "design.md").read_text(encoding="utf-8")
    rows = text.split("| part | what it is |\n")[1].split("\n\n")[0].splitlines()[1:]
    assert [name for row in rows for name in re.findall(r"`(\w+)/?`", row.split("|")[1])] == ORDER


def test_nothing_is_read_that_could_run() -> None:
    """State, checkpoints and what goes to workers is written as plain data, and never as pickled objects."""
    for path in SOURCE.rglob("*.py"):
        assert not {"pickle", "marshal", "shelve", "dill", "cloudpickle"} & _modules(path), path


def _modules(path: Path) -> set[str]:
    tree = _tree(path)
    names = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    return names | {n.module.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}


def test_all_that_runs_on_spark_is_one_piece() -> None:
    """A file that uses the session of the tests is listed in `conftest.py`: else a second worker starts a second one."""
    tests = Path(__file__).parents[1]
    sessions = [
        path.name
        for path in tests.rglob("test_*.py")
        if "tests.support.spark_session" in path.read_text(encoding="utf-8")
    ]
    listed = [name for name in sessions if piece(f"tests/spark/{name}::test_x") == "spark"]
    assert sorted(set(sessions) - set(listed)) == ["test_docs.py", "test_layout.py"]  # of the pages, some run on Spark
    assert piece("tests/docs/test_docs.py::test_page_runs[spark.md]") == "spark"
