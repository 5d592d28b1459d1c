"""How many answers each pattern has, from the definition of the streams and without any engine."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bench.streams import A, B, C, D, Floats, Ints, Stream


@dataclass(frozen=True)
class Bundles:
    """abcd by key: when each kind happened, and the y of b. A key has each kind once, inside the window."""

    when: Ints
    y_of_b: Floats

    def before(self, first: int, second: int) -> NDArray[np.bool_]:
        return np.asarray(self.when[:, first] < self.when[:, second])


def bundles(stream: Stream) -> Bundles:
    keys = len(stream) // 4
    when = np.zeros((keys, 4), np.int64)
    when[stream.key, stream.kind] = stream.time
    y_of_b = np.zeros(keys)
    is_b = stream.kind == B
    y_of_b[stream.key[is_b]] = stream.y[is_b]
    return Bundles(when, y_of_b)


def sequences(stream: Stream) -> int:
    """a before b before c."""
    keys = bundles(stream)
    return int(np.sum(keys.before(A, B) & keys.before(B, C)))


def selected(stream: Stream, below: float) -> int:
    """a before a b with a small y."""
    keys = bundles(stream)
    return int(np.sum(keys.before(A, B) & (keys.y_of_b < below)))


def without_c(stream: Stream) -> int:
    """a before b, and c not between them."""
    keys = bundles(stream)
    return int(np.sum(keys.before(A, B) & ~(keys.before(A, C) & keys.before(C, B))))


def all_three(stream: Stream) -> int:
    """a, b and c in any order."""
    return len(bundles(stream).when)


def first_of_two(stream: Stream) -> int:
    """a before b or before c, once an a."""
    keys = bundles(stream)
    return int(np.sum(keys.before(A, B) | keys.before(A, C)))


def each_of_two(stream: Stream) -> int:
    """a before b, and a before c, each on its own."""
    keys = bundles(stream)
    return int(np.sum(keys.before(A, B)) + np.sum(keys.before(A, C)))


def rising_runs(stream: Stream) -> int:
    """Keys whose a, b…, c are all there, the b with rising x; d does not count."""
    parts: dict[int, list[tuple[int, float]]] = {}
    for kind, key, x in zip(stream.kind.tolist(), stream.key.tolist(), stream.x.tolist(), strict=True):
        if kind != D:
            parts.setdefault(key, []).append((kind, x))
    return sum(_rises(run) for run in parts.values())


def _rises(run: list[tuple[int, float]]) -> bool:
    whole = run[0][0] == A and run[-1][0] == C  # the end of the stream cuts some runs short
    xs = [x for kind, x in run if kind == B]
    return whole and all(p < q for p, q in pairwise(xs))


def valleys(stream: Stream) -> int:
    """Falls followed at once by rises, per symbol; a valley counts once a tick that does not rise has closed it."""
    found = 0
    state: dict[int, tuple[float, bool, bool]] = {}  # last price, whether it fell before, whether it rose since
    for symbol, price in zip(stream.key.tolist(), stream.x.tolist(), strict=True):
        last, fell, rose = state.get(symbol, (price, False, False))
        if price > last:
            state[symbol] = price, fell, fell
        else:
            found += rose
            state[symbol] = price, price < last, False
    return found
