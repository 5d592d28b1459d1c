"""What a notebook shows: tables, trees and texts as HTML, without scripts and without styles of its own page.

Colours are half transparent, so that they stand on light pages and on dark ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from augury.core.clock import Clock
from augury.core.errors import visible

_CELL = "padding:2px 10px;text-align:{side};white-space:nowrap"
_LINE = "border-bottom:1px solid rgba(128,128,128,.4)"
_BRANCH = re.compile(r"^([│├└─ ]*)(.*)$")


class Explanation(str):
    """A text that a notebook shows laid out; for everybody else it is a text."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return pre("\n".join(_line(line) for line in self.splitlines()))


def pre(html: str) -> str:
    """Lines as they are, in letters of one width."""
    look = "font-family:ui-monospace,Menlo,Consolas,monospace;line-height:1.45;white-space:pre;overflow-x:auto;margin:0"
    return f'<pre style="{look}">{html}</pre>'


def _line(line: str) -> str:
    """A line of an explanation: the branches of a tree are faint, and what is first in the text is strong."""
    found = _BRANCH.match(line)
    assert found is not None
    branch, text = found[1], escape(visible(found[2]), quote=False)
    text = re.sub(r"(\(input [^()]*\))$", r'<span style="opacity:.65">\1</span>', text)
    if text.startswith("by rule "):
        text = f'<span style="opacity:.75">by rule <i>{text.removeprefix("by rule ")}</i></span>'
    elif text and not branch:
        text = f"<b>{text}</b>"
    return f'<span style="opacity:.5">{branch}</span>{text}' if branch else text


class Html(str):
    """A cell of a table that is HTML already."""

    __slots__ = ()


def share_bar(share: float) -> Html:
    """A share from 0 to 1 as a bar with a number."""
    whole = "display:inline-block;width:60px;height:8px;margin-right:6px;background:rgba(128,128,128,.3)"
    part = f"display:block;width:{60 * share:.0f}px;height:8px;background:#0072b2"
    return Html(f'<span style="{whole}"><span style="{part}"></span></span>{share:.0%}')


def readable(time: int, clock: Clock) -> str:
    """A time as people write it: `2026-07-01 12:05:00`."""
    return str(clock.show(time)).replace("T", " ").removesuffix("Z")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = (), faint: str = "") -> str:
    """A table of texts; the columns in `right` are set to the right, and `faint` stands below."""
    sides = dict.fromkeys(right, "right")

    def line(cells: Sequence[str], tag: str) -> str:
        made = "".join(
            f'<{tag} style="{_CELL.format(side=sides.get(i, "left"))}{";" + _LINE if tag == "th" else ""}">{c if isinstance(c, Html) else escape(visible(c))}</{tag}>'
            for i, c in enumerate(cells)
        )
        return f"<tr>{made}</tr>"

    body = "".join(line(row, "td") for row in rows)
    below = f'<div style="opacity:.7;padding:2px 10px">{escape(visible(faint))}</div>' if faint else ""
    head = f"<thead>{line(header, 'th')}</thead>"
    look = "border-collapse:collapse;font-variant-numeric:tabular-nums"
    return f'<div style="overflow-x:auto"><table style="{look}">{head}<tbody>{body}</tbody></table>{below}</div>'
