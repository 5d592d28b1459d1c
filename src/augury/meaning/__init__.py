"""The reference evaluator: the equations of the semantics, one by one, naive and obviously right.

Every other executor is compared with it. It recomputes everything from the events that stand; nothing here is
incremental, and nothing is clever beyond an index on shared variables.
"""

from augury.meaning.evaluator import evaluate
from augury.meaning.replaying import replay

__all__ = ["evaluate", "replay"]
