"""Integer bounds that all layers share. Numbers of 64 bits hold every time, every difference of times, and a mark beyond both."""

from __future__ import annotations

TIME_LIMIT = 2**60  # times are nearer to the origin than this, so that differences and windows stay within 64 bits
MIN_TIME, MAX_TIME = 1 - TIME_LIMIT, TIME_LIMIT - 1
FAR = 2**62  # beyond any time and any difference of two times
