"""A picture as a page: one file that works offline. A timeline in it is the one of the console, to pan, to zoom and to click in."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import Any


def page_file(name: str) -> str:
    """The script of the timeline, which is built from `console/web`, or the style around it."""
    return (files("augury.pictures") / name).read_text(encoding="utf-8")


def page_of(drawn: str, title: str) -> str:
    """A page around SVG in `currentColor`."""
    return _page(drawn, title)


def timeline_page(data: dict[str, Any], title: str) -> str:
    """A page with the timeline of some data. No text of an event ends the script that holds it."""
    stored = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    script = page_file("timeline.js").replace("</script", "<\\/script")
    body = (
        f'<div id="augury-timeline"></div>\n<script type="application/json" id="augury-data">{stored}</script>\n'
        f'<script type="module">\n{script}</script>\n'
    )
    return _page(body, title)


def _page(body: str, title: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title or "Timeline")}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>\n{page_file("timeline.css")}{page_file("page.css")}</style>\n</head>\n<body>\n{body}'
        "</body>\n</html>\n"
    )
