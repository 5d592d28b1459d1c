"""Runs a notebook without Jupyter: its cells in order, in one namespace, and what they show.

`python -m tests.support.notebooks docs/first_steps.ipynb` writes what the cells show into the file.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any


def run(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The outputs of each cell of code."""
    namespace: dict[str, Any] = {}
    return [outputs("".join(c["source"]), namespace, n) for n, c in enumerate(code_cells(notebook), 1)]


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def outputs(source: str, namespace: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell prints, and how its last expression shows."""
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    shown = ast.Expression(last.value) if isinstance(last, ast.Expr) else None
    if shown is not None:
        tree.body.pop()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), namespace)
        value = None if shown is None else eval(compile(shown, f"cell {number}", "eval"), namespace)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        found.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return found


def main(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for number, (cell, shown) in enumerate(zip(code_cells(notebook), run(notebook), strict=True), 1):
        cell["outputs"], cell["execution_count"] = shown, number
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
