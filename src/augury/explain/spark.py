"""How a program runs on Spark: its stages, their keys, and the filters that run before them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from augury.algebra.plan import Plan, Predicate, rule_reads
from augury.algebra.properties import all_properties
from augury.algebra.stages import Stage, stages
from augury.core.clock import show_duration
from augury.explain.operator_plan import OperatorPlan
from augury.planner.lower_queries import lower_queries


@dataclass(frozen=True)
class Hosted:
    """What there is to say about a stage: its key by type, what is filtered before its shuffle, how long it remembers."""

    stage: Stage
    keys: Mapping[str, str]
    filters: Mapping[str, str]
    operators: str
    horizon: int | None
    merges: tuple[str, ...]


def hosted(plan: Plan, operators: OperatorPlan) -> list[Hosted]:
    """The stages of a plan, with its queries as rules, for inputs that are points: cuts in its physical plan."""
    plan = lower_queries(plan)
    spread, found = stages(plan), all_properties(plan)
    result: list[Hosted] = []
    for stage in spread.stages:
        labels = [rule.label for rule in stage.rules]
        read = {type for rule in stage.rules for type in rule_reads(rule)}
        keys = {t[0]: _attribute(plan, t, at) for t, at in stage.reads.items() if at is not None and t in read}
        horizons = [found[rule.label].horizon for rule in stage.rules]
        horizon = None if None in horizons else max((h for h in horizons if h is not None), default=0)
        merges = tuple(sorted(name for name, arity in spread.spread if (name, arity) in stage.gives))
        result.append(Hosted(stage, keys, operators.filters(labels), operators.numbers(labels), horizon, merges))
    return result


def _attribute(plan: Plan, type: Predicate, at: int) -> str:
    declared = plan.declared.get(type[0])
    return declared[at].name if declared is not None and at < len(declared) else f"argument {at + 1}"


def stages_text(plan: Plan, operators: OperatorPlan) -> Iterator[str]:
    for item in hosted(plan, operators):
        stage = item.stage
        match stage.how:
            case "key":
                yield f"  stage {stage.number}   by key: {', '.join(f'{t}.{a}' for t, a in item.keys.items())}"
            case "slices":
                yield f"  stage {stage.number}   by slices of time that overlap by {show_duration(stage.longest or 0)}; a stream has one bucket"
            case "one":
                yield f"  stage {stage.number}   in one bucket"
        yield f"            rules {', '.join(rule.label for rule in stage.rules)}"
        yield f"            operators {item.operators}"
        yield from (f"            before the shuffle: {type} where {text}" for type, text in item.filters.items())
        kept = "without bound" if item.horizon is None else show_duration(item.horizon) if item.horizon else "nothing"
        yield f"            remembers {kept}{', beside the lateness' if item.horizon is not None else ''}"
        if item.merges:
            yield f"            then merged, since several buckets may make the same: {', '.join(item.merges)}"
        if stage.why:
            yield f"            warning: no key, for {stage.why}"
        if item.horizon is None:
            yield "            warning: a stream remembers all of it; say `--retention`, or give the rule a window"


def stages_json(plan: Plan, operators: OperatorPlan) -> list[dict[str, Any]]:
    return [
        {
            "stage": item.stage.number,
            "how": item.stage.how,
            "rules": [rule.label for rule in item.stage.rules],
            "operators": item.operators,
            "key": dict(item.keys),
            "overlap_us": item.stage.longest,
            "filters": dict(item.filters),
            "horizon_us": item.horizon,
            "merged": list(item.merges),
            "no_key_because": item.stage.why or None,
        }
        for item in hosted(plan, operators)
    ]
