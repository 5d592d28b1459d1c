"""Which nodes of a directed graph reach which, by a path of one or more edges.

What an index tells: components (nodes that reach each other) are one, and in the acyclic graph of components labels decide
most pairs. Some components are hubs, and each component knows which it reaches and which reach it. What is left is
searched from both ends.

What changes keep: *base* edges have the closure that the index tells, *spare* edges were added since and go beyond it.

- An added edge whose ends reach each other already is a base edge, any other is spare: paths take turns between both.
- A base edge is removed and another path of base edges leads the same way: nothing changes.
- Else all that its target reaches is cut off, or all that reaches its source: nodes of two *blocks* do not reach each
  other by base edges. Other edges across the cut become spare.
- Where those are too many, or a component falls apart, nodes are marked such that all lost pairs start or end with one.
- Where those are too many as well, the edge is in *doubt*: all that might have gone through it may be lost.

What may be lost is searched for edge by edge. Once changes have cost as much as a new index, there is a new index.
"""

from __future__ import annotations

from augury.knowledge.reachability.reach import Reach

__all__ = ["Reach"]
