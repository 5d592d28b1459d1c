"""The words of the rule language, read off its grammar, so that the editor colours what the parser knows."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_TERMINAL = re.compile(r"^_?[A-Z_]+(?:\.\d+)?: /(.*)/i$", re.MULTILINE)
_AHEAD = re.compile(r"\(\?[=!<].*")
_GROUP = re.compile(r"\\[a-z]|\(\?:")


@cache
def rule_words() -> tuple[str, ...]:
    """All keywords, in alphabetical order."""
    grammar = (files("augury.language.rules") / "rules.lark").read_text(encoding="utf-8")
    shapes = (_GROUP.sub(" ", _AHEAD.sub("", shape)) for shape in _TERMINAL.findall(grammar))
    return tuple(sorted({word for shape in shapes for word in re.findall(r"[a-z][a-z_]+", shape)}))
