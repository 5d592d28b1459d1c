"""Which nodes of a directed graph reach which, by a path of one or more edges.

What an index has: components (nodes that reach each other) are one, and in the acyclic graph of components labels decide
most pairs. Some components are hubs, and each component knows which it reaches and which reach it. What is left is
searched from both ends.

What follows changes: *base* edges are those that the index was built of. An added edge is *beside* them where the index says
that its source reaches its target, else it is *extra*.

- Paths take turns between base edges, of which the index knows, and extra ones, which are few.
- A base edge is removed and another path of base edges leads the same way: nothing changes.
- Else all pairs that might have gone through it are in doubt. Where base paths are unique, as in a forest, these are lost,
  and all added edges are extra; elsewhere each pair is searched for edge by edge on demand.

Once changes have cost as much as a new index, there is a new index.
"""

from __future__ import annotations

from augury.knowledge.reachability.reach import Reach

__all__ = ["Reach"]
