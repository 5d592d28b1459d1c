"""How a program runs on Spark: its stages, their keys, and the filters that run before them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from augury.algebra import nodes as n
from augury.algebra.place import place
from augury.algebra.plan import Plan, Predicate, rule_reads
from augury.algebra.properties import all_properties
from augury.algebra.stages import Stage, stages
from augury.algebra.terms import Const, show
from augury.core.clock import show_duration
from augury.explain.wording import show_condition
from augury.queries.lower import lowered


@dataclass(frozen=True)
class Hosted:
    """What there is to say about a stage: its key by type, what is filtered before its shuffle, how long it remembers."""

    stage: Stage
    keys: Mapping[str, str]
    filters: Mapping[str, str]
    horizon: int | None
    merges: tuple[str, ...]


def hosted(plan: Plan) -> list[Hosted]:
    """The stages of a plan, with its queries as rules, for inputs that are points."""
    plan = lowered(plan)
    spread, found = stages(plan), all_properties(plan)
    result: list[Hosted] = []
    for stage in spread.stages:
        read = {type for rule in stage.rules for type in rule_reads(rule)}
        keys = {t[0]: _attribute(plan, t, at) for t, at in stage.reads.items() if at is not None and t in read}
        horizons = [found[rule.label].horizon for rule in stage.rules]
        horizon = None if None in horizons else max((h for h in horizons if h is not None), default=0)
        merges = tuple(sorted(name for name, arity in spread.spread if (name, arity) in stage.gives))
        result.append(Hosted(stage, keys, _filters(stage, plan), horizon, merges))
    return result


def _attribute(plan: Plan, type: Predicate, at: int) -> str:
    declared = plan.declared.get(type[0])
    return declared[at].name if declared is not None and at < len(declared) else f"argument {at + 1}"


def _filters(stage: Stage, plan: Plan) -> dict[str, str]:
    """The conditions on one event under which the stage reads a type; not of a type that it reads without any."""
    ways: dict[str, list[str]] = {}
    for rule in stage.rules:
        for pattern in rule.patterns:
            _note_scans(place(pattern), (), ways, plan)
    return {type: " or ".join(dict.fromkeys(texts)) for type, texts in sorted(ways.items()) if all(texts)}


def _note_scans(node: n.Node, where: tuple[n.Condition, ...], ways: dict[str, list[str]], plan: Plan) -> None:
    """Notes for each scan of an input what the conditions around it ask of one event."""
    if isinstance(node, n.Scan) and node.predicate not in plan.derived:
        fixed = [f"argument {i + 1} = {show(a)}" for i, a in enumerate(node.args) if isinstance(a, Const)]
        tests = [show_condition(c) for c in where if isinstance(c, n.Compare | n.AnyOf)]
        ways.setdefault(node.type, []).append(" and ".join([*fixed, *tests]))
    around = (*where, *node.where) if isinstance(node, n.Select) else where if isinstance(node, n.Label) else ()
    for part in n.inputs(node):
        _note_scans(part, around, ways, plan)
    for absent in n.absences(node):
        _note_scans(place(absent), (), ways, plan)


def stages_text(plan: Plan) -> Iterator[str]:
    for item in hosted(plan):
        stage = item.stage
        match stage.how:
            case "key":
                yield f"  stage {stage.number}   by key: {', '.join(f'{t}.{a}' for t, a in item.keys.items())}"
            case "slices":
                yield f"  stage {stage.number}   by slices of time that overlap by {show_duration(stage.longest or 0)}; a stream has one bucket"
            case "one":
                yield f"  stage {stage.number}   in one bucket"
        yield f"            rules {', '.join(rule.label for rule in stage.rules)}"
        yield from (f"            before the shuffle: {type} where {text}" for type, text in item.filters.items())
        kept = "without bound" if item.horizon is None else show_duration(item.horizon) if item.horizon else "nothing"
        yield f"            remembers {kept}{', beside the lateness' if item.horizon is not None else ''}"
        if item.merges:
            yield f"            then merged, since several buckets may make the same: {', '.join(item.merges)}"
        if stage.why:
            yield f"            warning: no key, for {stage.why}"
        if item.horizon is None:
            yield "            warning: a stream remembers all of it; say `--retention`, or give the rule a window"


def stages_json(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "stage": item.stage.number,
            "how": item.stage.how,
            "rules": [rule.label for rule in item.stage.rules],
            "key": dict(item.keys),
            "overlap_us": item.stage.longest,
            "filters": dict(item.filters),
            "horizon_us": item.horizon,
            "merged": list(item.merges),
            "no_key_because": item.stage.why or None,
        }
        for item in hosted(plan)
    ]
