"""`augury why`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import click

from augury.cli.options import Given, as_of_option, given_options, until_option
from augury.clock import Clock
from augury.engine.batch import Answer
from augury.entailment import Model
from augury.errors import AuguryError, RunError
from augury.explain.why import derivation_tree, show_tree, tree_as_json, tree_as_mermaid
from augury.job import Job
from augury.model import Event
from augury.notation import read_atom, read_event, show_event
from augury.terminal import say, show


@click.command()
@given_options
@until_option
@as_of_option
@click.option(
    "--event",
    "wanted",
    required=True,
    metavar="ATOM",
    help="The event, such as 'fire_alarm(\"l1\")' or 'fire_alarm(\"l1\") @ [1, 3]'.",
)
@click.option("--all", "every", is_flag=True, help="Every derivation, not just one.")
@click.option("--format", "format_", type=click.Choice(["text", "json", "mermaid"]), default="text")
def why(given: Given, until: str | None, as_of: str | None, wanted: str, every: bool, format_: str) -> None:
    """Show why an event was detected: the rules, events and facts behind it; or what came nearest, if it was not."""
    plan = given.compiled.plan
    derived = [query.predicate[0] for query in plan.graph_queries] + [rule.type for rule in plan.rules]
    everything = replace(plan, outputs=tuple(dict.fromkeys(derived)))
    compiled = replace(given.compiled, plan=everything)  # one may ask for any derived event
    job = Job(replace(given.task(), program=compiled))
    model = job.evaluate(until, as_of, engine="reference" if plan.graph_queries else "embedded")
    found = [e for e in model.all_events if _matches(e, wanted, job.clock, job.plan.prefixes)]
    if not found:
        missing = _not_detected(wanted, model, job)
        if isinstance(model, Answer):
            with suppress(AuguryError):  # the error below says what is wrong with the question
                say(f"What came nearest:\n\n{model.session.why_not(wanted)}\n")
        raise missing
    trees = [derivation_tree(model, event, every) for event in found]
    if format_ == "json":
        show(json.dumps([tree_as_json(t, job.clock) for t in trees], indent=2, ensure_ascii=False))
    elif format_ == "mermaid":
        show("\n".join(tree_as_mermaid(t, job.clock, compiled.plan.prefixes) for t in trees), newline=False)
    else:
        show("\n\n".join(show_tree(t, job.clock, compiled.plan.prefixes) for t in trees))
    job.report(model)


def _matches(event: Event, wanted: str, clock: Clock, prefixes: Mapping[str, str]) -> bool:
    """By type alone, by type and arguments, or with the interval too."""
    if "@" in wanted:
        asked = read_event(wanted, clock, prefixes)
        if not isinstance(asked, Event):
            return False
        if "(" not in wanted:
            return (asked.type, asked.start, asked.end) == (event.type, event.start, event.end)
        return asked.content == event.content
    type, args = read_atom(wanted, prefixes)
    same = Event(type, args, event.start, event.end)
    return type == event.type and ("(" not in wanted or same.content == event.content)


def _not_detected(wanted: str, model: Model, job: Job) -> RunError:
    type = read_atom(wanted.partition("@")[0].strip(), job.plan.prefixes)[0]
    others = [show_event(e, job.clock) for e in model.all_events if e.type == type]
    if not any(name == type for name, _ in job.plan.derived):
        known = ", ".join(sorted({name for name, _ in job.plan.derived}))
        return RunError(f"no rule derives `{type}`", f"the program derives {known}")
    if not others:
        return RunError(f"no `{type}` was detected")
    return RunError(
        f"{wanted} was not detected", f"these were: {'; '.join(others[:5])}{' …' if len(others) > 5 else ''}"
    )
