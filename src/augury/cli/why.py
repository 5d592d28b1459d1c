"""`augury why` and `augury why-not`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import click

from augury.cli.checkpoint_options import CheckpointOptions
from augury.cli.inspect_stream import opened
from augury.cli.options import Cluster, TaskOptions, as_of_option, gathered, spark_options, until_option
from augury.console.derivation_graph import without_extra
from augury.core.clock import Clock
from augury.core.errors import AuguryError, RunError
from augury.core.model import Event
from augury.engine.batch import SessionModel
from augury.entailment import Model
from augury.explain import sessions
from augury.explain.derivations import explained
from augury.explain.why import ExplainedEvent, derivation_tree, show_tree, tree_as_json, tree_as_mermaid
from augury.explain.why_not import Miss, misses_as_json, show_misses
from augury.explain.why_not.asked import atom_with_extra, read_asked, underivable
from augury.job import Job
from augury.notation import show_event
from augury.settings import Task
from augury.terminal import say, show

event_option = click.option(
    "--event",
    "wanted",
    required=True,
    metavar="ATOM",
    help="The event, such as 'fire_alarm(\"l1\")' or 'fire_alarm(_) @ [1, 3]'; `_` is anything.",
)


FormatOfText = Literal["text", "json"]


@click.command()
@gathered(CheckpointOptions, "options")
@until_option
@as_of_option
@event_option
@click.option("--all", "every", is_flag=True, help="Every derivation, not just one.")
@click.option("--format", "format_", type=click.Choice(["text", "json", "mermaid"]), default="text")
@spark_options
def why(
    options: CheckpointOptions,
    until: str | None,
    as_of: str | None,
    wanted: str,
    every: bool,
    format_: str,
    cluster: Cluster,
) -> None:
    """Show why an event was detected: the rules, events and facts behind it; or what came nearest, if it was not.

    With --checkpoint the event is one that a stream holds, which may run meanwhile.
    """
    if options.checkpoint is not None:
        _why_of_stream(options, cluster, wanted, every, format_)
        return
    job, model = evaluated(options, until, as_of)
    asked = read_asked(wanted, job.clock, job.plan.prefixes)
    events = [e for e in model.all_events if asked.is_met(e)]
    if not events:
        missing = _not_detected(wanted, asked.type, model, job)
        if isinstance(model, SessionModel):
            with suppress(AuguryError):  # the error below says what is wrong with the question
                say(f"What came nearest:\n\n{sessions.why_not(model.session, wanted)}\n")
        raise missing
    _show_trees(model, events, job.clock, job.plan.prefixes, every, format_)
    job.report(model, as_of)


def _show_trees(
    model: Model,
    events: list[Event],
    clock: Clock,
    prefixes: Mapping[str, str],
    every: bool,
    format_: str,
    extra: int = 0,
) -> None:
    trees = [_without_extra(derivation_tree(explained(model), event, every), extra) for event in events]
    if format_ == "json":
        show(json.dumps([tree_as_json(t, clock) for t in trees], indent=2, ensure_ascii=False))
    elif format_ == "mermaid":
        show("\n".join(tree_as_mermaid(t, clock, prefixes) for t in trees), newline=False)
    else:
        show("\n\n".join(show_tree(t, clock, prefixes) for t in trees))


def _without_extra(tree: ExplainedEvent, extra: int) -> ExplainedEvent:
    """A tree whose events have the arguments of the user alone."""
    if not extra:
        return tree
    ways = tuple((way, tuple(_without_extra(part, extra) for part in parts)) for way, parts in tree.ways)
    made = {fact: _without_extra(maker, extra) for fact, maker in tree.made.items()}
    return replace(tree, event=without_extra(tree.event, extra), ways=ways, made=made)


def _why_of_stream(options: CheckpointOptions, cluster: Cluster, wanted: str, every: bool, format_: str) -> None:
    """Explains an event from the state of a stream: in the bucket that has derived it."""
    for bucket in opened(options, cluster):
        session, extra = bucket.session, bucket.extra
        asked = read_asked(wanted, session.clock, session.program.plan.prefixes)
        model = SessionModel(session, session.now or 0)
        derived = {(rule.type, len(rule.args)) for rule in session.program.plan.rules}
        held = (event for event in model.all_events if (event.type, len(event.args)) in derived)
        events = [event for event in held if asked.is_met(without_extra(event, extra))]
        if events:
            _show_trees(model, events, session.clock, session.program.plan.prefixes, every, format_, extra)
            return
    if not _why_of_kept_inputs(options, wanted, every, format_):
        hint = "it was not detected, or what it was made of is forgotten by now; `augury stream --keep 7d` keeps it"
        raise RunError(f"the stream holds no {wanted}", hint)


def _why_of_kept_inputs(options: CheckpointOptions, wanted: str, every: bool, format_: str) -> bool:
    """Explains an event that the state has forgotten, from the inputs that the stream has kept; whether it is there."""
    from augury.spark.kept_inputs import KeptInputs

    task = options.stream_task()
    sources = KeptInputs.of(Path(str(options.checkpoint))).events()
    if not sources:
        return False
    settings = replace(task.settings, lateness=None, emit="early")
    job, model = _everything(replace(task, events=sources, settings=settings), None, None)
    events = [event for event in model.all_events if read_asked(wanted, job.clock, job.plan.prefixes).is_met(event)]
    if events:
        _show_trees(model, events, job.clock, job.plan.prefixes, every, format_)
    return bool(events)


def _why_not_of_stream(options: CheckpointOptions, cluster: Cluster, wanted: str, format_: FormatOfText) -> None:
    """Explains what came nearest, of all buckets that could derive an event."""
    nearest: dict[str, Miss] = {}
    plan, clock = options.compiled.plan, None
    for bucket in opened(options, cluster):
        clock = bucket.session.clock
        asked = read_asked(wanted, clock, plan.prefixes)
        lengths = [len(rule.args) for rule in plan.rules if rule.type == asked.type]
        if not lengths or (asked.args is not None and len(asked.args) not in lengths):
            raise underivable(plan, asked)
        if any(rule.type == asked.type for rule in bucket.session.program.plan.rules):
            if any(asked.is_met(without_extra(event, bucket.extra)) for event in bucket.session.events()):
                raise RunError(f"{wanted} was detected", "`augury why` shows how")
            for miss in sessions.misses_of(bucket.session, atom_with_extra(wanted, bucket.extra)):
                shown = miss.without_extra(bucket.extra)
                nearest[miss.rule] = min(nearest.get(miss.rule, shown), shown, key=lambda miss: miss.farness)
    if clock is None:
        raise RunError("the stream has completed no batch yet", "wait for its first events")
    if not nearest:
        raise RunError("no bucket has anything yet that the rules need", "wait for its first events")
    misses = list(nearest.values())
    click.echo(
        json.dumps(misses_as_json(misses, clock), ensure_ascii=False)
        if format_ == "json"
        else show_misses(misses, clock)
    )


@click.command("why-not")
@gathered(CheckpointOptions, "options")
@until_option
@as_of_option
@event_option
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text")
@spark_options
def why_not(
    options: CheckpointOptions,
    until: str | None,
    as_of: str | None,
    wanted: str,
    format_: FormatOfText,
    cluster: Cluster,
) -> None:
    """Show why an event was not detected: for each rule the nearest partial match, and what failed."""
    if options.checkpoint is not None:
        _why_not_of_stream(options, cluster, wanted, format_)
        return
    job, model = evaluated(options, until, as_of)
    if not isinstance(model, SessionModel):
        raise RunError("queries over graph streams have no why-not yet", "it explains rules")
    asked = read_asked(wanted, job.clock, job.plan.prefixes)
    detected = [show_event(event, job.clock) for event in model.all_events if asked.is_met(event)]
    if detected:
        raise RunError(f"{wanted} was detected: {_few(detected)}", "`augury why` shows how")
    click.echo(sessions.why_not(model.session, wanted, format_))
    job.report(model, as_of)


def evaluated(options: TaskOptions, until: str | None, as_of: str | None) -> tuple[Job, Model]:
    """The answer of a program with all that it derives: one may ask for any derived event."""
    return _everything(options.task(), until, as_of)


def _everything(task: Task, until: str | None, as_of: str | None) -> tuple[Job, Model]:
    plan = task.plan
    derived = [query.predicate[0] for query in plan.graph_queries] + [rule.type for rule in plan.rules]
    everything = replace(plan, outputs=tuple(dict.fromkeys(derived)))
    job = Job(replace(task, program=replace(task.program, plan=everything)))
    return job, job.evaluate(until, as_of, engine="reference" if plan.graph_queries else "embedded")


def _not_detected(wanted: str, type: str, model: Model, job: Job) -> RunError:
    others = [show_event(e, job.clock) for e in model.all_events if e.type == type]
    if not any(name == type for name, _ in job.plan.derived):
        names = ", ".join(sorted({name for name, _ in job.plan.derived}))
        return RunError(f"no rule derives `{type}`", f"the program derives {names}")
    if not others:
        return RunError(f"no `{type}` was detected")
    return RunError(f"{wanted} was not detected", f"these were: {_few(others)}")


def _few(events: list[str]) -> str:
    return "; ".join(events[:5]) + (" …" if len(events) > 5 else "")
