"""The reference evaluator: the equations of the semantics, one by one, naive and obviously right.

Every other executor is compared with it. It recomputes everything from the events that stand; nothing here is
incremental, and nothing is clever beyond an index on shared variables.
"""

from augury.meaning.evaluator import evaluate
from augury.meaning.rdf_by_rdflib import triple_lines
from augury.meaning.replaying import replay
from augury.meaning.static_graphs import static_graphs

__all__ = ["evaluate", "replay", "static_graphs", "triple_lines"]
