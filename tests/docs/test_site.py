"""The site and the notebook: everything is listed, and what the cells show is what is stored."""

from __future__ import annotations

import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import augury
from tests.support import notebooks

ROOT = Path(__file__).parents[2]


def site() -> ModuleType:
    loader = SourceFileLoader("site_builder", str(ROOT / "scripts" / "site"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_every_page_is_in_the_contents() -> None:
    listed = [page for pages in site().CONTENTS.values() for page in pages]
    made = ["first_steps", "gallery", "reference"]
    assert sorted(listed) == sorted(
        [*made, *(path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md"))]
    )


def test_the_reference_has_every_public_name() -> None:
    found = site().reference()
    for name in augury.__all__:
        assert f"\n### `augury.{name}`\n" in found
    assert "Runs a program over all events at once" in found
    assert " at 0x" not in found


def test_blocks_have_titles() -> None:
    shown = site().blocks_shown("```csv wind.csv\na,b\n```\n\n```answer\na @ 1\n```\n")
    assert ":caption: wind.csv" in shown and ":caption: answer" in shown and "```csv" not in shown


def test_the_notebook_shows_what_its_cells_give() -> None:
    stored = json.loads((ROOT / "docs" / "first_steps.ipynb").read_text(encoding="utf-8"))
    cells = notebooks.code_cells(stored)
    for cell, shown in zip(cells, notebooks.run(stored), strict=True):
        assert cell["outputs"] == shown, "".join(cell["source"])
    assert any("<svg" in "".join(o.get("data", {}).get("text/html", [])) for cell in cells for o in cell["outputs"])
