"""Benchmarks: how fast Augury detects, each count checked against brute force. `augury bench` runs them from a checkout."""

from __future__ import annotations

import sys
from pathlib import Path


def script(code: str) -> list[str]:
    """The command that runs some lines of Python, which may import from here, in a process of its own."""
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r}); {code}"]
