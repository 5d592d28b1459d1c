"""Pictures of what was detected: timelines, which are drawn here, and maps and charts, which matplotlib draws."""

from augury.pictures.lanes import Lane, Scene, Selection, lanes_of
from augury.pictures.maps import Places, draw_map, located
from augury.pictures.picture import Picture, check_ending
from augury.pictures.progress import Watch, stream_chart
from augury.pictures.view import TimelineOptions, timeline
from augury.sinks.markup import Explanation

__all__ = [
    "Explanation", "Lane", "Picture", "Places", "Scene", "Selection", "TimelineOptions", "Watch", "check_ending", "draw_map", "lanes_of", "located",
    "stream_chart", "timeline",
]  # fmt: skip
