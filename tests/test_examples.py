"""The applications that come with Augury: their answers, worked out in another way, and what the command shows of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from augury.examples import EXAMPLES, Example, load
from augury.job import Job
from augury.knowledge.graphs import Graph
from augury.program import compile
from augury.settings import Settings, Task
from augury.sources import SourceFile


def task_of(example: Example, folder: Path) -> Task:
    """An example whose files are in a folder."""
    facts = tuple(
        (name, path) for name, _, path in (one.partition("=") for one in example.located(example.facts, folder))
    )
    program = compile([folder / path for path in example.program], facts=[name for name, _ in facts])
    sources = tuple(map(SourceFile.parse, example.located(example.events, folder)))
    return Task(program, sources, facts, tuple(map(Graph, example.located(example.rdf, folder))), Settings())


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_reference_agrees(name: str, tmp_path: Path) -> None:
    example = load(name)
    assert example.prepare(tmp_path, example.sizes[1]) > 0
    job = Job(task_of(example, tmp_path))
    found, expected = (job.evaluate(example.until, engine=engine) for engine in ("embedded", "reference"))
    assert [e.content for e in found.events] == [e.content for e in expected.events]
    assert not found.errors and not found.rejected
    assert {e.type for e in found.events} == set(job.plan.outputs)  # there is something of each output to see
