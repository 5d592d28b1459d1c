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

# Nothing of the key but d may lie between two neighbours of the run.
RUN = "found(K) <- (a(K, _, _) NEXT b(K, X, _)+ NEXT c(K, _, _)).1000 WHERE X > prev(X)."

# A valley is a fall and the rise that follows at once, up to the tick that no longer rises; the next one begins where it ends.
VALLEY = """
found(S) <- (a(S, P0, _) NEXT a(S, P, _)+ NEXT (u: a(S, Q, _))+ NEXT a(S, R, _)).10000
    WHERE (P < prev(P, P0), Q > prev(Q, last(P)), R <= last(Q)) LONGEST SKIP TO LAST u.
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
