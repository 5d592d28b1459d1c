"""The parser of the rule language, whose tables are made from the grammar once and then kept.

Making them takes longer than reading most programs, so they are kept as Python keeps compiled modules: in the folder of the
package or, where that cannot be written to, in the user's folder for caches.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from lark import Lark
from lark import __version__ as lark_version

from augury.algebra.selection import POLICIES
from augury.language.rules.kept_tables import parser_of, tables_of

_NAME = f"rules.{sys.implementation.cache_tag}.parser"


@cache
def parser() -> Lark:
    text = grammar_text()
    stamp = sha256(f"{lark_version} {sys.version} {text}".encode()).digest()
    return _kept(stamp) or _keep(made(text), stamp)


def grammar_text() -> str:
    """The grammar, with the names of the selection policies."""
    text = files("augury.language.rules").joinpath("rules.lark").read_text(encoding="utf-8")
    return text.replace("(POLICIES)", f"({'|'.join(POLICIES)})")


def made(text: str) -> Lark:
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def folders() -> Iterator[Path]:
    yield Path(__file__).parent / "__pycache__"
    with suppress(RuntimeError):  # a user without a home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "augury"


def _kept(stamp: bytes) -> Lark | None:
    """The parser as it was kept for the same grammar, Lark and Python; nothing where there is none, or it is damaged."""
    for folder in folders():
        with suppress(Exception):
            data = (folder / _NAME).read_bytes()
            if data.startswith(stamp):
                return parser_of(data[len(stamp) :])
    return None


def _keep(parser: Lark, stamp: bytes) -> Lark:
    """Keeps a parser in the first folder that can be written to; it is there as a whole or not at all."""
    try:
        tables = tables_of(parser)
    except Exception:  # a Lark whose parsers are made otherwise
        return parser
    for folder in folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            handle, part = tempfile.mkstemp(dir=folder, prefix=_NAME)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(stamp + tables)
                os.chmod(part, 0o644)
                os.replace(part, folder / _NAME)
            except BaseException:
                Path(part).unlink(missing_ok=True)
                raise
            break
    return parser
