"""Why an event was not detected: for each rule the nearest partial match, and what it fails at."""

from augury.explain.why_not.asked import read_asked
from augury.explain.why_not.misses import CAPPED, Miss, misses_as_json, show_misses, why_not
from augury.explain.why_not.words import UNTOLD, FailedCondition

__all__ = ["CAPPED", "UNTOLD", "FailedCondition", "Miss", "misses_as_json", "read_asked", "show_misses", "why_not"]
