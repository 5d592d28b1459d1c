"""Pictures drawn by matplotlib, with the fonts and colours of timelines, light and dark."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from augury.core.errors import RunError, visible
from augury.pictures.page import page_of
from augury.pictures.picture import Picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of Okabe and Ito, those first that stand out on light and on dark pages.
PALETTE = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("D", "o", "s", "^", "v", "P")
_INK = "#1f2328"
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif", "font.size": 10, "svg.fonttype": "none", "svg.hashsalt": "augury", "text.color": _INK,
    "axes.edgecolor": _INK, "axes.labelcolor": _INK, "axes.titlecolor": _INK, "axes.titlelocation": "left",
    "axes.titleweight": "bold", "axes.titlesize": 11, "axes.spines.top": False, "axes.spines.right": False,
    "xtick.color": _INK, "ytick.color": _INK, "grid.color": _INK, "grid.alpha": 0.14, "axes.grid": True,
    "axes.axisbelow": True, "axes.facecolor": "none", "figure.facecolor": "none", "legend.frameon": False,
    "text.parse_math": False, "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6, "savefig.facecolor": "none",
}  # fmt: skip


@contextmanager
def style() -> Iterator[None]:
    """How all that is drawn looks; and what to do where matplotlib is not there."""
    try:
        from matplotlib import rc_context
    except ImportError:
        raise RunError("maps and charts need matplotlib", "pip install 'augury[pictures]'") from None
    with rc_context(_STYLE):
        yield


def figure(width: float, height: float) -> Figure:
    """A figure of so many pixels."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width / 96, height / 96), dpi=96, layout="constrained")


def picture_of(drawn: Figure, title: str) -> Picture:
    """A figure as a picture."""
    text = io.StringIO()
    metadata: dict[str, object] = {"Date": None, "Creator": "Augury", "Title": visible(title)}
    drawn.savefig(text, format="svg", metadata=metadata)
    xml = text.getvalue()
    svg = xml[xml.index("<svg") :].replace(_INK, "currentColor")
    return Picture(svg, lambda: page_of(svg, title))
