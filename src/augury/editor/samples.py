"""Runs a program on the sample that its remarks name, for the lenses of an editor: how many answers, and what rules cost."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from augury.core.errors import RunError
from augury.editor.open_files import Document, ProjectFiles
from augury.engine.batch import SessionModel
from augury.explain.costs import profile
from augury.job import Job
from augury.knowledge.graphs import RdfGraph
from augury.notation import show_event
from augury.program import Program
from augury.settings import Settings, Task
from augury.sources import SourceFile

_SHOWN = 100  # answers of each type


@dataclass(frozen=True)
class SampleRun:
    """How many events of each type a run derived, the first of them in words, and what rules cost."""

    versions: dict[Document, int] = field(repr=False)
    counts: dict[str, int]
    answers: dict[str, list[str]]
    costs: dict[str, dict[str, Any]]
    events: int

    @property
    def is_current(self) -> bool:
        return all(document.version == version for document, version in self.versions.items())

    def text(self) -> str:
        """All of it as text."""
        lines = [f"{self.events:,} events"]
        for type, count in self.counts.items():
            lines += ["", f"{type}: {count:,}", *(f"  {line}" for line in self.answers[type])]
            if count > _SHOWN:
                lines.append(f"  … and {count - _SHOWN:,} more")
        return "\n".join(lines) + "\n"


def run_sample(project: ProjectFiles, document: Document) -> SampleRun:
    """Runs the program that a document belongs to; raises AuguryError where it, or the sample, is wrong."""
    root = project.root(document)
    remarks = root.remarks if root.remarks.events else document.remarks
    if not remarks.events:
        raise RunError("no comment names a sample", hint="write `%! events: sample.jsonl` at the top of the program")
    documents = project.program(document)
    versions = {member: member.version for member in documents}
    program = Program.of(project.sources(root), facts=remarks.fact_names, unsaved=project.unsaved())
    plan = program.plan
    derived = [query.predicate[0] for query in plan.graph_queries] + [
        rule.type for rule in plan.rules if not rule.makes
    ]
    everything = replace(program, plan=replace(plan, outputs=tuple(dict.fromkeys(derived))))
    clock = {"clock": remarks.clock} if remarks.clock else {}
    task = Task(
        everything,
        tuple(SourceFile.parse(source, plan=plan) for source in remarks.events),
        remarks.facts,
        tuple(map(RdfGraph, remarks.rdf)),
        Settings.of(everything, **clock),
    )
    job = Job(task)
    model = job.evaluate(remarks.until or None, engine="embedded")
    assert isinstance(model, SessionModel)
    counts: dict[str, int] = dict.fromkeys(everything.plan.outputs, 0)
    answers: dict[str, list[str]] = {type: [] for type in counts}
    for event in model.events:
        counts[event.type] = counts.get(event.type, 0) + 1
        if len(answers.setdefault(event.type, [])) < _SHOWN:
            answers[event.type].append(show_event(event, job.clock))
    costs = {rule["rule"]: rule for rule in profile(model.session).as_json()["rules"]}
    return SampleRun(versions, counts, answers, costs, len(job.history))


def saved_costs(document: Document) -> dict[str, dict[str, object]]:
    """The costs by rule of the file that a remark names, which `augury profile --json` has written."""
    try:
        rules = json.loads(Path(document.remarks.profile).read_text(encoding="utf-8"))["rules"]
        return {rule["rule"]: rule for rule in rules}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
