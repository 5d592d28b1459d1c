"""How a program runs on Spark: its stages, their keys, and the filters that run before them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from augury.algebra.kinds import of_kind
from augury.algebra.nodes import Rule, Scan
from augury.algebra.plan import Plan, Predicate, rule_reads
from augury.algebra.properties import all_properties
from augury.algebra.stages import ANYWHERE, PART, SLICES, Stage, stages
from augury.algebra.terms import show
from augury.core.clock import show_duration
from augury.explain.operator_plan import OperatorPlan
from augury.planner.cut_rules import cut_rules, is_part, rule_of_part
from augury.planner.lower_queries import lower_queries
from augury.planner.planning import Setting
from augury.planner.specs import InputSpec, SetSpec, Spec
from augury.planner.split_aggregates import split_aggregates


@dataclass(frozen=True)
class Hosted:
    """What there is to say about a stage: its key by type, what is filtered before its shuffle, how long it remembers."""

    stage: Stage
    keys: Mapping[str, tuple[str, ...]]
    filters: Mapping[str, str]
    operators: str
    horizon: int | None
    merges: tuple[str, ...]


def hosted(plan: Plan, operators: OperatorPlan) -> list[Hosted]:
    """The stages of a plan, with its queries as rules, for inputs that are points: cuts in its physical plan."""
    setting = Setting(operators.clock, varying={name for name, _ in plan.made})
    plan = split_aggregates(cut_rules(lower_queries(plan), setting))
    spread_stages, properties = stages(plan), all_properties(plan)
    result: list[Hosted] = []
    for stage in spread_stages.stages:
        read = {type for rule in stage.rules for type in rule_reads(rule)}
        keys = {
            _name(t): _attributes(plan, t, positions) for t, positions in stage.reads.items() if positions and t in read
        }
        horizons = [properties[rule.label].horizon for rule in stage.rules]
        horizon = None if None in horizons else max((h for h in horizons if h is not None), default=0)
        merges = tuple(sorted(t[0] for t in spread_stages.spread if t in stage.gives and not is_part(t)))
        inputs = {type[0] for type in read if type not in plan.derived}
        labels = [rule_of_part(rule.label) for rule in stage.rules]
        filters = {type: text for type, text in operators.filters(labels).items() if type in inputs}
        numbers = operators.numbers(spec for rule in stage.rules for spec in _operators(rule, plan, operators))
        result.append(Hosted(stage, keys, filters, numbers, horizon, merges))
    return result


def _operators(rule: Rule, plan: Plan, operators: OperatorPlan) -> list[Spec]:
    """The operators of a rule; of a part of one those that read nothing but what the part reads, of the last part the rest."""
    whole = operators.below([rule_of_part(rule.label)])
    others = [other for other in plan.rules if rule_of_part(other.label) == rule_of_part(rule.label) and other != rule]
    part_of = {spec for other in others if is_part(other.predicate) for spec in whole if _reads_less(spec, other, plan)}
    if not is_part(rule.predicate):
        return [spec for spec in whole if spec not in part_of]
    below = {other.predicate for other in others} & rule_reads(rule)
    inner = {spec for other in others if other.predicate in below for spec in whole if _reads_less(spec, other, plan)}
    return [spec for spec in whole if _reads_less(spec, rule, plan) and spec not in inner]


def _reads_less(spec: Spec, part: Rule, plan: Plan) -> bool:
    """Whether an operator reads no other events than a part of a rule, and none more often."""
    return _leaves(spec) <= _scanned(part, plan)


def _scanned(part: Rule, plan: Plan) -> Counter[Predicate]:
    counts: Counter[Predicate] = Counter()
    for scan in of_kind(part.nodes, Scan):
        inner = plan.derived.get(scan.predicate, ()) if is_part(scan.predicate) else ()
        counts += sum((_scanned(rule, plan) for rule in inner), Counter()) if inner else Counter([scan.predicate])
    return counts


def _leaves(spec: Spec) -> Counter[Predicate]:
    if isinstance(spec, InputSpec | SetSpec):
        return Counter([(spec.type, spec.arity)])
    return sum((_leaves(rows.source) for rows in spec.inputs), Counter())


def _attributes(plan: Plan, type: Predicate, places: tuple[int, ...]) -> tuple[str, ...]:
    """The names of arguments; those of a part of a rule are its variables."""
    if is_part(type):
        return tuple(show(plan.derived[type][0].args[position]) for position in places)
    declared = plan.declared.get(type[0])
    return tuple(
        declared[position].name if declared is not None and position < len(declared) else f"argument {position + 1}"
        for position in places
    )


def _name(type: Predicate) -> str:
    """`part 1 of delivered` for what is cut out of a rule."""
    if not is_part(type):
        return type[0]
    rule, _, number = type[0].removeprefix(ANYWHERE).removeprefix(PART).rpartition(" ")
    return f"part {number} of {rule}"


def _key(attributes: tuple[str, ...]) -> str:
    names = tuple(dict.fromkeys(attributes))
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def stages_text(plan: Plan, operators: OperatorPlan) -> Iterator[str]:
    for item in hosted(plan, operators):
        stage = item.stage
        match stage.how:
            case "key":
                yield f"  stage {stage.number}   by key: {', '.join(f'{t}.{_key(a)}' for t, a in item.keys.items())}"
            case "slices":
                overlap = show_duration(stage.longest or 0)
                yield f"  stage {stage.number}   by slices of time that overlap by {overlap}; a stream too"
                if stage.longest:
                    longest = show_duration(SLICES * stage.longest)
                    yield f"            two slices for each partition, each {overlap} to {longest} long"
            case "anywhere":
                yield f"  stage {stage.number}   in any bucket: parts of totals, which a later stage combines"
            case "one":
                yield f"  stage {stage.number}   in one bucket"
        yield f"            rules {', '.join(rule.label for rule in stage.rules)}"
        yield (
            f"            operators {item.operators}"
            if item.operators
            else "            combines what its parts have made"
        )
        yield from (f"            before the shuffle: {type} where {text}" for type, text in item.filters.items())
        kept = "without bound" if item.horizon is None else show_duration(item.horizon) if item.horizon else "nothing"
        yield f"            remembers {kept}{', beside the lateness' if item.horizon is not None else ''}"
        if item.merges:
            yield f"            then merged, since several buckets may make the same: {', '.join(item.merges)}"
        if stage.why:
            yield f"            warning: no key, for {stage.why}"
            if stage.advice:
                yield f"            hint: {stage.advice}"
        if item.horizon is None:
            yield "            warning: a stream remembers all of it; say `--retention`, or give the rule a window"


def stages_json(plan: Plan, operators: OperatorPlan) -> list[dict[str, object]]:
    return [
        {
            "stage": item.stage.number,
            "how": item.stage.how,
            "rules": [rule.label for rule in item.stage.rules],
            "operators": item.operators,
            "key": {type: list(attributes) for type, attributes in item.keys.items()},
            "overlap_us": item.stage.longest,
            "filters": dict(item.filters),
            "horizon_us": item.horizon,
            "merged": list(item.merges),
            "no_key_because": item.stage.why or None,
            "advice": item.stage.advice or None,
        }
        for item in hosted(plan, operators)
    ]
