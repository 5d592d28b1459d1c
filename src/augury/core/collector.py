"""Python's collector of garbage, switched off where very many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector, which would look at every one of many new objects, and finds none that may go."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextmanager
def rarely_collected() -> Iterator[None]:
    """With a collector that leaves alone what is there already, and comes a hundred times less often. For a process of our own
    that makes many objects which end without it, such as messages."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
