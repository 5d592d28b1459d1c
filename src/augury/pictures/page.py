"""A timeline as a page: one file that works offline, to pan, to zoom and to click in."""

from __future__ import annotations

from html import escape
from importlib.resources import files

_HELP = "Scroll to zoom, drag to move, click an event to see what it was made of; double-click to see all again."


def page_of(drawn: str, title: str, zooms: bool = True) -> str:
    """A page around SVG in `currentColor`; the script of one that zooms is `zoom.js`."""
    script, style = ((files("augury.pictures") / name).read_text(encoding="utf-8") for name in ("zoom.js", "page.css"))
    below = f'<p id="said">{_HELP}</p>\n<script>\n{script}</script>\n' if zooms else ""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title or "Timeline")}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>\n{style}</style>\n</head>\n<body>\n{drawn}'
        f"{below}</body>\n</html>\n"
    )
