"""What the kernels of runs pass around: arrays that belong together, as named tuples, which Numba compiles."""

from __future__ import annotations

from typing import NamedTuple

from augury.core.arrays import Array, Flags, Integers, RowData


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
    """What a search has to know of a run. Its parts and moves are numbers."""

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
    """What is known of each moment as the first of a match."""

    known: Array
    tried: Array  # the call that has decided last, -1 before
    first_paths: Array  # its first match
    lower_bounds: Array  # from when on a match may begin, as matches say that are forgotten
    begins: Array  # as which parts it may begin a match, as bits
