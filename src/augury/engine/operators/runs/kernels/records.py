"""Records that the kernels of runs share: arrays that belong together, as named tuples, which Numba compiles."""

from __future__ import annotations

from typing import NamedTuple

from augury.core.arrays import Array, Codes, Flags, Integers, RowData


class MomentChains(NamedTuple):
    """The moments of a run: the rows of their table, which stand, and those before and after each in time, for its key."""

    data: RowData
    alive: Flags
    prev: Integers
    after: Integers
    rank: Array  # of moments that end together, in the order of their events


class MomentLinks(NamedTuple):
    """Edges from moment to moment, and the first one into and out of each."""

    edges: Array
    into: Array
    out: Array


class RunShape(NamedTuple):
    """The shape of a run, as a search needs it. Its parts and moves are numbers."""

    moves: Array  # the source and the target of each
    then: int  # which moves are THEN, as bits
    limits: (
        Array  # for each move, how much later than the start and the end of a moment another may start that follows it
    )
    options: Array  # for each part the moves from it and ACCEPT, in the order in which they are tried
    roots: Array  # the parts that a match may begin with, likewise
    least: Array  # how often each part repeats
    most: Array  # -1 for no limit
    quantified: Array  # the parts whose counts LONGEST and SHORTEST compare
    may_end: Array  # whether a match may end with a part
    window: int
    shortest: bool
    skip: int  # -2 for none, -1 for PAST END, else the part of TO FIRST or TO LAST
    skip_to_first: bool
    merged: bool  # one match for each last moment will do
    most_matches: int  # partial matches of one first event, where there are many matches


class SearchStates(NamedTuple):
    """The states that a search has been at, the way to the present one, and a table of them by content."""

    states: Array
    stack: Array
    slots: Array


class MatchPool(NamedTuple):
    """Matches, and the moments and parts that they are made of, one match after the other."""

    moments: Array
    paths: Array


class Decisions(NamedTuple):
    """The decision about each moment as the first of a match."""

    table: Array
    tried: Array  # the call that has decided last, -1 before
    first_paths: Array  # its first match
    lower_bounds: Array  # from when on a match may begin, as matches say that are forgotten
    begins: Array  # as which parts it may begin a match, as bits


class PartialRows(NamedTuple):
    """The partial matches of a run: the rows of their table, which stand, and those at each moment and of each parent."""

    data: RowData
    alive: Flags
    moments: RowData  # the rows of the moments' table
    heads: Integers  # of each moment the last partial match that ends there
    chain: Integers  # of each partial match the one before it at its moment
    kids: Array  # of each the last one that was made of it, and the one before it with the same parent
    parts: int


class RunMoves(NamedTuple):
    """How partial matches may go on."""

    ends: Array  # the source and the target of each move
    least: Array  # how often each part repeats
    most: Array  # -1 for no limit
    longest: int


class ThenSearch(NamedTuple):
    """Moments that look for the soonest one of a part: what they look through, and how far each has come."""

    data: RowData
    alive: Flags
    after: Integers
    target: int  # the field of the part
    state: Array
    longest: int
    lasts: int  # no moment lasts longer


class MomentTests(NamedTuple):
    """Conditions on a moment that compare numbers.

    A test is (comparison, row of `numbers`, of the target, row, of the target); a row of `numbers` has one for each moment.
    `agree` are rows of `codes` that must be equal: of the source, of the target.
    """

    tests: Array
    numbers: Array
    agree: Array
    codes: Codes
    low: Array  # of each block of moments the least number
    high: Array
    whole: Array  # which blocks these rule out
    size: int


class MoveTests(NamedTuple):
    """Conditions on numbers, which kernels test: (move, comparison, row of numbers, the part whose last moment has it, row,
    part); part -1 is the new moment. Moves in `chosen`, as bits, are asked about instead."""

    chosen: int
    tests: Array
    numbers: Array
