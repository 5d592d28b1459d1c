"""Boxes of packages, names of modules and classes, and what documents say of them."""

from __future__ import annotations

import ast
import re
import runpy
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import get_args

from augury.algebra import nodes
from augury.planner import PASSES
from tests.conftest import SHORT, piece

SOURCE = Path(__file__).parents[2] / "src" / "augury"
# A module imports from its own box and from the boxes before it.
BOXES = {
    "core": ("core",),
    "language": ("algebra", "entailment", "language", "notation"),
    "storage": ("storage", "graphs"),
    "planner": ("queries", "planner"),
    "engine": ("sources", "sinks", "connectors", "knowledge", "compiled", "settings", "engine"),
    "executors": ("semantics", "reference", "spark"),
    "faces": (
        "explain",
        "pictures",
        "program",
        "run",
        "testing",
        "terminal",
        "job",
        "service",
        "examples",
        "lint",
        "tools",
        "editor",
        "console",
        "cli",
    ),
}
# What few may import. Text is read in one place; executors are compared with the reference, so none of them rests on it.
IMPORTED_BY = {
    "language": ("notation", "compiled", *BOXES["faces"]),
    "reference": ("run", "testing"),
    "semantics": ("reference", "explain"),
}
# One idea on two sides: a format that is read and written, a command and what it does, a run here and on Spark.
TWO_SIDES = {"batch", "csv", "job", "jsonl", "parquet", "run", "stream", "why"}


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


@cache
def package_imports() -> dict[str, set[str]]:
    """What each package, or module beside them, imports of the others."""
    imports: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if package not in ("__init__", "__main__"):
            imports.setdefault(package, set()).update(imported(path) - {package})
    return imports


def test_every_package_is_in_one_box() -> None:
    assert sorted(package for packages in BOXES.values() for package in packages) == sorted(package_imports())


def test_imports_point_one_way_between_boxes() -> None:
    box_of = {package: number for number, packages in enumerate(BOXES.values()) for package in packages}
    wrong = [(p, other) for p, others in package_imports().items() for other in others if box_of[other] > box_of[p]]
    assert wrong == []


def test_packages_do_not_import_each_other() -> None:
    """There is an order of all packages, so that no two of them import each other, not even through a third."""
    order = TopologicalSorter(package_imports()).static_order()
    assert len(list(order)) == len(package_imports())


def test_text_and_reference_are_imported_by_few() -> None:
    for package, importers in IMPORTED_BY.items():
        assert {p for p, others in package_imports().items() if package in others} <= set(importers), package


def test_no_two_modules_have_one_name() -> None:
    names = [path.stem for path in SOURCE.rglob("*.py") if path.stem not in ("__init__", "__main__")]
    assert {name for name in names if names.count(name) > 1} == TWO_SIDES


def test_no_two_classes_have_one_name() -> None:
    names = [n.name for path in SOURCE.rglob("*.py") for n in ast.walk(_tree(path)) if isinstance(n, ast.ClassDef)]
    assert {name for name in names if names.count(name) > 1} == set()


# Pronouns and other words that do not say what a variable holds.
VAGUE = {"found", "known", "given", "told", "one", "at", "place", "own", "together", "beside", "spread", "mixed"}
PUBLIC_KEYWORDS = {"assert_fact": {"at"}, "retract_fact": {"at"}}


def test_variables_say_what_they_hold() -> None:
    """A local variable or a parameter is called after the thing: row, index, fact, match."""
    vague: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for function in ast.walk(_tree(path)):
            if isinstance(function, ast.FunctionDef | ast.Lambda):
                names = {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}
                names |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
                if wrong := (names & VAGUE) - PUBLIC_KEYWORDS.get(getattr(function, "name", ""), set()):
                    vague[f"{path}:{function.lineno}"] = wrong
    assert vague == {}


NODES = {t.__name__ for t in get_args(nodes.Node)}
CONDITIONS = {t.__name__ for t in get_args(nodes.Condition)}


def test_match_on_nodes_is_exhaustive() -> None:
    """A `match` on nodes or conditions ends in `assert_never`, so that a new one is missed by the type checker."""
    for path in SOURCE.rglob("*.py"):
        for found in ast.walk(_tree(path)):
            if isinstance(found, ast.Match) and path.name != "share.py":  # which takes anything apart
                used = {_class_of(p) for case in found.cases for p in ast.walk(case.pattern)}
                if len(used & NODES) > 1 or len(used & CONDITIONS) > 1:
                    assert "assert_never" in ast.unparse(found.cases[-1]), f"{path}:{found.lineno}"


def test_no_ladder_of_isinstance_tells_nodes_apart() -> None:
    """Two `if isinstance(node, …)` in a row miss a new node; `match` with `assert_never`, or `algebra/kinds.py`, does not."""
    ladders = []
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).as_posix() == "algebra/nodes.py":
            continue
        for node in ast.walk(_tree(path)):
            for statements in (getattr(node, "body", None), getattr(node, "orelse", None)):
                if isinstance(statements, list):
                    tested = [_tested_node(test) for statement in statements for test in _tests(statement)]
                    ladders += [f"{path}: {a}" for a, b in pairwise(tested) if a and a == b]
    assert ladders == []


def _tests(statement: ast.AST) -> list[ast.expr | None]:
    """The tests of an `if` with its `elif`s; None for another statement."""
    if not isinstance(statement, ast.If):
        return [None]
    below = statement.orelse
    return [statement.test, *(_tests(below[0]) if len(below) == 1 and isinstance(below[0], ast.If) else [])]


def _tested_node(test: ast.expr | None) -> str:
    """What a test asks the class of, where that is a class of nodes or conditions."""
    for call in ast.walk(test) if test is not None else ():
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "isinstance":
            names = {getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(call.args[1])}
            if names & (NODES | CONDITIONS):
                return ast.unparse(call.args[0])
    return ""


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


def test_design_draws_the_boxes() -> None:
    text = (SOURCE.parent.parent / "docs" / "design.md").read_text(encoding="utf-8")
    rows = text.split("| box | packages | what it does |\n")[1].split("\n\n")[0].splitlines()[1:]
    cells = [row.split("|")[1:3] for row in rows]
    assert {box.strip(): tuple(re.findall(r"`(\w+)/?`", packages)) for box, packages in cells} == BOXES


def test_members_that_the_design_names_are_there() -> None:
    """`Circuit.run` is a class with a method; behind a file, `Join` or `lose` is something that the file defines."""
    text = (SOURCE.parent.parent / "docs" / "design.md").read_text(encoding="utf-8")
    members: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.ClassDef):
                members.setdefault(node.name, set()).update(_defined(node), map(_base, node.bases))
    for owner, member in re.findall(r"`([A-Z]\w+)\.(\w+)`", text):
        bases = [owner]
        for base in bases:
            bases += [other for other in members.get(base, ()) if other in members and other not in bases]
        assert any(member in members.get(base, ()) for base in bases), f"{owner}.{member}"
    defined = set().union(*(_defined(_tree(path)) for path in SOURCE.rglob("*.py")))
    camel = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)*)`", text))
    assert camel - defined == set(), "a class that is not there"
    for file, names in re.findall(r"`([\w/]+\.py)`: ((?:`\w+`(?:, )?)+)", text):
        (path,) = [path for path in SOURCE.rglob("*.py") if path.as_posix().endswith(f"/{file}")]
        wrong = set(re.findall(r"\w+", names)) - _defined(_tree(path))
        assert not wrong, f"{file}: {wrong}"


def _defined(node: ast.AST) -> set[str]:
    """What a module or a class defines: functions, classes, variables and attributes."""
    names = set()
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            names.add(part.name)
        for target in [*getattr(part, "targets", ()), getattr(part, "target", None)]:
            names |= {x.attr if isinstance(x, ast.Attribute) else x.id for x in _targets(target)}
    return names


def _targets(target: ast.AST | None) -> list[ast.Attribute | ast.Name]:
    parts = ast.walk(target) if isinstance(target, ast.Tuple) else [target]
    return [part for part in parts if isinstance(part, ast.Attribute | ast.Name)]


def _base(base: ast.expr) -> str:
    return ast.unparse(base).split("[")[0].split(".")[-1]


def test_the_design_lists_the_passes() -> None:
    """In their order, each by its file, which has a function of its name and says what it does."""
    text = (SOURCE.parent.parent / "docs" / "design.md").read_text(encoding="utf-8")
    listed = re.findall(
        r"^\d\. ((?:`\w+\.py`(?:, )?)+)", text.split("## The planner")[1].split("## The engine")[0], re.MULTILINE
    )
    files = [name for names in listed for name in re.findall(r"(\w+)\.py", names)]
    assert files == [each.__name__ for each in PASSES]
    for each in PASSES:
        assert each.__module__ == f"augury.planner.{each.__name__}"
        example = import_module(each.__module__).__doc__ or ""
        assert "→" in example, f"{each.__name__}: no example of before and after"


def test_one_pass_places_conditions() -> None:
    """Executors read them off the physical plan; only the reference evaluator places them itself."""
    users = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ImportFrom) and "placed" in {alias.name for alias in node.names}
        if node.module == "augury.algebra.place"
    }
    assert users == {"planner/place_conditions.py", "reference/evaluator.py"}


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


def test_short_spark_tests_exist() -> None:
    """`conftest.py` names what runs on Spark in the short run by the beginning of its name."""
    for file, names in SHORT.items():
        tests = [
            f.name
            for f in ast.walk(_tree(SOURCE.parents[1] / "tests" / "spark" / file))
            if isinstance(f, ast.FunctionDef)
        ]
        missing = [name for name in names if not any(test.startswith(name.split("[")[0]) for test in tests)]
        assert missing == [], file


def test_every_mutant_has_its_place_in_the_code() -> None:
    """A mutant whose line was rewritten would break nothing, and stop `make mutants`."""
    script = runpy.run_path(str(SOURCE.parents[1] / "scripts" / "mutants"), run_name="mutants")
    places = {mutant.name: (SOURCE / mutant.file).read_text().count(mutant.old) for mutant in script["MUTANTS"]}
    assert places and {name: count for name, count in places.items() if count != 1} == {}
