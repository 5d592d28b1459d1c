"""The reference evaluator: the equations of the semantics, one by one, naive and obviously right.

Every other executor is compared with it. It recomputes everything from the events that stand; nothing here is
incremental, and nothing is clever beyond an index on shared variables.
"""

from augury.reference.evaluator import evaluate
from augury.reference.replaying import replay
from augury.reference.static_graphs import static_graphs
from augury.semantics.rdf_by_rdflib import triple_lines

__all__ = ["evaluate", "replay", "static_graphs", "triple_lines"]
