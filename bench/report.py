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

from bench.rows import Row


def figures(value: float) -> str:
    """Three significant figures or all whole ones: 12,345 · 123 · 12.3 · 1.23."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(title: str, rows: Sequence[Row]) -> Table:
    unit = rows[0].unit if len({row.unit for row in rows}) == 1 else ""
    shown = Table(title=f"{title} ({unit})" if unit else title, title_justify="left", title_style="bold")
    shown.add_column("case", min_width=min(16, max(len(row.case) for row in rows)))
    shown.add_column("of", no_wrap=True)
    warmed = any(row.warm for row in rows)
    for column in ("result", "events", "answers", *(("warm-up",) if warmed else ())):
        shown.add_column(column, justify="right", no_wrap=True)
    aims = any(row.met is not None for row in rows)
    for column in ("ratio", "target") if aims else ():
        shown.add_column(column, justify="right", no_wrap=True)
    shown.add_column("check")
    for before, row in zip([None, *rows], rows, strict=False):
        again = before is not None and before.case == row.case
        shown.add_row(
            "" if again else escape(row.case),
            escape(row.series),
            figures(row.value) if unit else f"{figures(row.value)} {row.unit}",
            f"{row.events:,}" if row.events else "",
            "" if row.answers is None else f"{row.answers:,}",
            *((f"{row.warm:.2f} s" if row.warm else "",) if warmed else ()),
            *(("" if row.ratio is None else f"{row.ratio:.2f}", aim(row)) if aims else ()),
            " · ".join(filter(None, (check(row), escape(row.note)))),
        )
    return shown


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
