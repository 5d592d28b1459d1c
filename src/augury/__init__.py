"""Augury: complex event processing with knowledge."""

from augury.algebra.register import aggregate, function
from augury.core.errors import (
    AuguryError,
    CallbackErrors,
    DataError,
    Diagnostic,
    ProgramError,
    RunError,
    SnapshotError,
    UnusableError,
)
from augury.core.model import Change, Event, Fact, Iri, Revocation, Term
from augury.knowledge.graphs import rdf
from augury.knowledge.timeline import Statement
from augury.program import Program, compile
from augury.program import ProgramSession as Session
from augury.run import Result, run
from augury.service import live
from augury.sources import read


def load_ipython_extension(shell: object) -> None:
    """`%load_ext augury` in a notebook: cells that begin with `%%augury` are rules."""
    from augury.editor.cell_magic import register

    register(shell)


__all__ = [
    "AuguryError", "CallbackErrors", "Change", "DataError", "Diagnostic", "Event", "Fact", "Iri", "Program",
    "ProgramError", "Result", "Revocation", "RunError", "Session", "SnapshotError", "Statement", "Term", "UnusableError",
    "aggregate", "compile", "function", "live", "rdf", "read", "run",
]  # fmt: skip
