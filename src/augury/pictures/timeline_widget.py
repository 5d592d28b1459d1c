"""The timeline of the console in a notebook."""

from __future__ import annotations

import anywidget
import traitlets

from augury.pictures.page import page_file


class TimelineWidget(anywidget.AnyWidget):
    """Shows the data of a scene, which `page_data` makes."""

    _esm = page_file("timeline.js")
    _css = page_file("timeline.css")
    data = traitlets.Dict().tag(sync=True)
