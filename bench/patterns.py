"""P1 to P8: the patterns on which engines are compared, as programs.

All ask for one key and have a window of 1000 ms, but for P8, whose steps have it. An answer carries what a user would
want of it, not the key alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from bench import counts
from bench.streams import Stream, Streams

PRELUDE = """
tick 1ms.
output found.
event a(key: int, x: float, y: float).
event b(key: int, x: float, y: float).
event c(key: int, x: float, y: float).
event d(key: int, x: float, y: float).
"""

SEQUENCE = "found(K, X, Y, Z) <- (a(K, X, _) SEQ b(K, Y, _) SEQ c(K, Z, _)).1000."

COPIES = 16

# A climb is a run of b after its a. Nothing of the key but d may lie between two neighbours of the run.
RUN = """
climb(K, X) <- (NOT(PART).[a(K, _, _), b(K, X, _)]).1000.
climb(K, Y) <- (NOT(PART).[climb(K, X), b(K, Y, _)]).1000 WHERE Y > X.
found(K) <- (NOT(PART).[climb(K, _), c(K, _, _)]).1000.
""".replace("PART", "a(K, _, _) OR b(K, _, _) OR c(K, _, _)")

# A step is two neighbouring ticks: each round of 100 ms has one of every symbol, so they are less than 200 ms apart.
# Of all falls that end where a rise begins, `recent` takes the longest: one a valley.
VALLEY = """
step(S, P, Q) <- (NOT(a(S, _, _)).[a(S, P, _), a(S, Q, _)]).200.
down(S) <- step(S, P, Q) WHERE Q < P.
up(S) <- step(S, P, Q) WHERE Q > P.
turn(S) <- step(S, P, Q) WHERE Q <= P.
fall(S) <- down(S).
fall(S) <- (fall(S) MEETS down(S)).10000.
low(S) <- (fall(S) MEETS[recent] up(S)).10000.
rise(S) <- low(S).
rise(S) <- (rise(S) MEETS up(S)).10000.
found(S) <- (rise(S) MEETS turn(S)).10000.
"""


@dataclass(frozen=True)
class Pattern:
    """A program, the stream it reads, and how many answers it has there."""

    name: str
    title: str
    source: Literal["abcd", "kleene", "stock"]
    rules: str
    expected: Callable[[Stream], int]
    outputs: str = "found"

    @property
    def text(self) -> str:
        return PRELUDE.replace("output found", f"output {self.outputs}") + self.rules

    def stream(self, streams: Streams) -> Stream:
        return {"abcd": streams.abcd, "kleene": streams.kleene, "stock": streams.stock}[self.source]


def selection(percent: int) -> Pattern:
    below = percent / 100
    return Pattern(
        f"P2-{percent}",
        f"a SEQ b WHERE b.y < {below:g}",
        "abcd",
        f"found(K, X, Y) <- (a(K, X, _) SEQ b(K, _, Y)).1000 WHERE Y < {below}.",
        partial(counts.selected, below=below),
    )


def copies(number: int) -> Pattern:
    """The same rule under many heads: what engines that share equal parts do once."""
    heads = [f"found{i}" for i in range(1, number + 1)]
    return Pattern(
        "P7",
        f"{number} copies of P1",
        "abcd",
        "\n".join(SEQUENCE.replace("found", head) for head in heads),
        lambda stream: number * counts.sequences(stream),
        ", ".join(heads),
    )


PATTERNS = (
    Pattern("P1", "a SEQ b SEQ c", "abcd", SEQUENCE, counts.sequences),
    selection(10),
    selection(50),
    selection(100),
    Pattern(
        "P3",
        "NOT(c).[a, b]",
        "abcd",
        "found(K, X, Y) <- (NOT(c(K, _, _)).[a(K, X, _), b(K, Y, _)]).1000.",
        counts.without_c,
    ),
    Pattern(
        "P4",
        "a AND b AND c",
        "abcd",
        "found(K, X, Y, Z) <- (a(K, X, _) AND b(K, Y, _) AND c(K, Z, _)).1000.",
        counts.all_three,
    ),
    Pattern(
        "P5-first",
        "a SEQ (b OR c), the first",
        "abcd",
        "found(K, X, Y) <- (NOT(b(K, _, _) OR c(K, _, _)).[a(K, X, _), b(K, Y, _) OR c(K, Y, _)]).1000.",
        counts.first_of_two,
    ),
    Pattern(
        "P5-each",
        "a SEQ (b OR c), each",
        "abcd",
        "found(K, X, Y) <- (a(K, X, _) SEQ (b(K, Y, _) OR c(K, Y, _))).1000.",
        counts.each_of_two,
    ),
    Pattern("P6", "a b+ c, b.x rising", "kleene", RUN, counts.rising_runs),
    copies(COPIES),
    Pattern("P8", "V per symbol: down+ up+", "stock", VALLEY, counts.valleys),
)
