"""The hot loops of runs: from an event to those before and after it, and from a partial match to longer ones.

An *edge* leads from a moment to one that may follow it in a run; its bits say by which *moves*, each from a part to a part.
A partial match is a row: its parent (left), its moment (right), its part, its first moment, then for each part its last
moment there, or -1, and how often the part was repeated.
"""

from augury.core.bounds import FAR

PART, FIRST, STATE = 5, 6, 7  # of a partial match, after the fields that all rows have
# Of an edge: its ends, its moves, the next one into and out of the same moments.
FROM, TO, BITS, INTO, OUT = 0, 1, 2, 3, 4
NEIGHBOUR = 1  # the kind of an edge between neighbours; that of an edge to a part is 2 << part
FOUND = 1 << 61  # marks an edge for a while
NO_CODE = -1  # of null, which equals nothing
FOREVER = FAR
EVER = 1 << 61  # longer than all times are apart: there is no window
