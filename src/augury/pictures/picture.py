"""A picture: saved as a file, or shown in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from augury.core.errors import RunError, visible

if TYPE_CHECKING:
    from anywidget import AnyWidget

_LIGHT, _DARK = "#1f2328", "#e6edf3"
_PAPER, _NIGHT = "#ffffff", "#14171b"
_BRIGHTER = {"#0072b2": "#56b4e9", "#009e73": "#2fc79b", "#d55e00": "#f0813a"}  # the same colours on a dark page


class Picture:
    """A picture that needs nothing beside itself. `save` writes it by its ending; a notebook shows it as it is.

    In a file it is dark where the reader's screen is; in a notebook its lines have the colour of the text around it.
    """

    def __init__(self, drawn: str, page: Callable[[], str], data: Callable[[], dict[str, Any]] | None = None) -> None:
        """`drawn` is SVG in `currentColor`; `page` makes a page of it, `data` is what the timeline of a notebook shows."""
        self._drawn, self._page = visible(drawn), page  # XML has no controls, however they are written
        self._data = data

    @cached_property
    def svg(self) -> str:
        """The picture as a file of its own."""
        return standalone(self._drawn)

    @property
    def html(self) -> str:
        """A page with the picture, to pan and to zoom, which works offline."""
        return visible(self._page())

    def widget(self) -> AnyWidget:
        """The timeline in a notebook, to pan, to zoom and to click in; it needs anywidget."""
        if self._data is None:
            raise RunError("only a timeline is a widget", hint="show the picture itself")
        try:
            from augury.pictures.timeline_widget import TimelineWidget
        except ModuleNotFoundError as error:
            raise RunError(f"the widget needs {error.name}", hint="pip install 'augury[notebook]'") from None
        return TimelineWidget(data=self._data())

    def save(self, path: str | Path) -> Path:
        """Writes the picture as `.svg`, or as `.html` to pan and to zoom."""
        target = Path(path)
        try:
            target.write_text(self.svg if check_ending(target) == ".svg" else self.html, encoding="utf-8")
        except OSError as error:
            raise RunError(f"cannot write {target}: {error.strerror}") from None
        return target

    def __repr__(self) -> str:
        return "<Picture>"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self._drawn.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)


def check_ending(path: str | Path) -> str:
    """The ending of a file for a picture; another one is refused."""
    ending = Path(path).suffix.lower()
    if ending not in (".svg", ".html"):
        raise RunError(f"a picture is not written as `{Path(path).name}`", "name a file that ends in .svg or .html")
    return ending


def standalone(drawn: str) -> str:
    """SVG in `currentColor` as a file: dark on white, also for programs that know no styles, and light in the dark."""
    head, body = drawn.split(">", 1)
    # Arrows go behind labels; where a stroke cannot be painted first, it would hide what is written.
    halo = "@supports (paint-order:stroke){{.label{{paint-order:stroke;stroke:{};stroke-width:3px;stroke-linejoin:round}}}}"
    dark = [halo.format(_NIGHT), f".paper{{fill:{_NIGHT}}}", _swapped(_LIGHT, _DARK)]
    dark += [_swapped(light, bright) for light, bright in _BRIGHTER.items() if light in drawn]
    style = f"<style>{halo.format(_PAPER)}@media (prefers-color-scheme: dark){{{''.join(dark)}}}</style>"
    paper = f'<rect class="paper" width="100%" height="100%" fill="{_PAPER}"/>'
    return f"{head}>{style}{paper}{body.replace('currentColor', _LIGHT)}"


def _swapped(light: str, dark: str) -> str:
    """Rules that give what has one colour another, whether an attribute says it or a style does, as matplotlib has it."""
    return "".join(
        f'[{name}="{light}"]{{{name}:{dark}}}[style*="{name}: {light}"]{{{name}:{dark}!important}}'
        for name in ("fill", "stroke")
    )
