"""Rows as a table in the terminal and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from bench.rows import Row, is_rate


def figures(value: float) -> str:
    """Three significant figures or all whole ones: 12,345 · 123 · 12.3 · 1.23."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


WIDTH = 80
_OWN = "augury"
_COUNTS = ("events", "areas", "places")


def table(title: str, rows: Sequence[Row]) -> Table:
    """A table of 80 columns: each figure with its ratio to the best of what stands beside Augury, or to its own base."""
    unit = rows[0].unit if len({row.unit for row in rows}) == 1 else ""
    sizes = {row.events for row in rows}
    about = [unit, f"{sizes.pop():,} events" if len(sizes) == 1 and 0 not in sizes else ""]
    heading = f"{title} ({', '.join(filter(None, about))})" if any(about) else title
    shown = Table(title=heading, title_justify="left", title_style="bold", width=WIDTH, pad_edge=False)
    shown.add_column("case", width=16)
    shown.add_column("of", width=17)
    for column in ("result", "answers", "ratio"):
        shown.add_column(column, justify="right", no_wrap=True)
    shown.add_column("check")
    best = _baselines(rows)
    for before, row in zip([None, *rows], rows, strict=False):
        repeated = before is not None and before.case == row.case
        ratio = row.ratio if row.ratio is not None else _beside(row, best.get(row.case))
        shown.add_row(
            "" if repeated else escape(row.case),
            escape(row.series),
            figures(row.value) if unit else f"{figures(row.value)} {row.unit}",
            "" if row.answers is None else f"{row.answers:,}",
            "" if ratio is None else f"{ratio:.2f}",
            " · ".join(filter(None, (check(row), aim(row), escape(row.note)))),
        )
    return shown


def _baselines(rows: Sequence[Row]) -> dict[str, float]:
    """For each case the best figure of what stands beside Augury; counts have none."""
    found: dict[str, float] = {}
    for row in rows:
        if not row.series.startswith(_OWN) and row.unit not in _COUNTS:
            better = max if is_rate(row.unit) else min
            found[row.case] = better(found.get(row.case, row.value), row.value)
    return found


def _beside(row: Row, base: float | None) -> float | None:
    """How a figure compares with another: above 1 is better."""
    if base is None or not row.series.startswith(_OWN):
        return None
    return row.value / max(base, 1e-9) if is_rate(row.unit) else base / max(row.value, 1e-9)


def aim(row: Row) -> str:
    if row.met is None:
        return ""
    bound = f"≥ {row.least:g}" if row.target is None else f"{row.target:g}"
    return f"{bound} [green]met[/]" if row.met else f"{bound} [bold red]missed[/]"


def check(row: Row) -> str:
    if not row.right:
        return f"[bold red]WRONG[/], must be {row.expected:,}"
    return "" if row.expected is None else "right"


def as_json(rows: Sequence[Row]) -> str:
    return json.dumps(
        {"machine": machine(), "rows": [as_plain(row) for row in rows]},
        indent=1,
        ensure_ascii=False,
    )


def as_plain(row: Row) -> dict[str, Any]:
    return asdict(row) | {"right": row.right, "ratio": row.ratio, "met": row.met}


def machine() -> dict[str, Any]:
    """What a figure depends on besides the code."""
    packages = {}
    for name in ("augury", "numpy", "numba", "pyarrow", "duckdb", "pyspark"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": packages,
    }


def processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
