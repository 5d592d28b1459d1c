"""Pictures of what was detected: timelines, which are drawn here, and maps and charts, which matplotlib draws."""

from augury.pictures.lanes import Lane, Scene, Selection, lanes_of
from augury.pictures.markup import Explanation
from augury.pictures.picture import Picture, check_ending
from augury.pictures.view import TimelineOptions, timeline

__all__ = [
    "Explanation",
    "Lane",
    "Picture",
    "Scene",
    "Selection",
    "TimelineOptions",
    "check_ending",
    "lanes_of",
    "timeline",
]
