"""How a program is read and what runs: its physical plan, as text, JSON or a Mermaid diagram."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from augury.algebra.answering import answering
from augury.algebra.nodes import Rule
from augury.algebra.plan import Plan
from augury.algebra.properties import Properties, all_properties, event_lengths
from augury.algebra.strata import Stratum, strata
from augury.core.clock import SECOND, Clock, show_duration
from augury.core.errors import RunError, Span
from augury.explain.operator_plan import OperatorPlan
from augury.explain.query_words import query_json, query_text
from augury.explain.spark import stages_json, stages_text
from augury.explain.tree import Flowchart, Tree
from augury.language.checks.static import call_modes
from augury.language.rules import syntax as s
from augury.language.rules.show import Printer
from augury.planner import physical_plan
from augury.planner.choose_operators import PhysicalPlan
from augury.planner.planning import Setting

FORMATS = ("text", "json", "mermaid")


def explain(plan: Plan, optimised: Plan, modules: Iterable[s.Module], format: str = "text") -> str:
    """The rules as they are written, and the operators that run them, for inputs that are points."""
    physical = plan_on_some_clock(optimised)
    return explained(plan, OperatorPlan(optimised, physical.specs, physical.heads, physical.clock), modules, format)


def explained(plan: Plan, operators: OperatorPlan, modules: Iterable[s.Module], format: str) -> str:
    """The same of operators that are known, as those of a session are."""
    match format:
        case "text":
            return _text(plan, operators, _readings(modules))
        case "json":
            return json.dumps(_json(plan, operators, _readings(modules)), indent=2, ensure_ascii=False)
        case "mermaid":
            chart = Flowchart("LR")
            operators.draw(chart)
            return str(chart)
    raise RunError(f"unknown format `{format}`", hint=f"there is {', '.join(FORMATS)}")


def plan_on_some_clock(plan: Plan) -> PhysicalPlan:
    """The physical plan on the timestamp clock, or on the logical one where the program names ticks."""
    changing, lengths = {name for name, _ in plan.made}, event_lengths(plan, 0)
    for kind in ("timestamp", "logical"):
        clock = Clock(kind, plan.tick or SECOND)
        try:
            return physical_plan(plan, Setting(clock, lengths, changing, changing))
        except RunError as error:
            refused = error
    raise refused


def _readings(modules: Iterable[s.Module]) -> Mapping[Span, str]:
    printer = Printer(explicit=True, width=10_000)
    readings: dict[Span, str] = {}
    for module in modules:
        for statement in module.statements:
            text = printer.statement(statement)
            if isinstance(statement, s.RuleStatement):
                readings[statement.span] = text
    return readings


# Text


def _text(plan: Plan, operators: OperatorPlan, readings: Mapping[Span, str]) -> str:
    properties, layers = all_properties(plan), _strata(plan)
    parts = [
        "\n".join(_rule_text(rule, properties[rule.label], layers[rule.label], readings, operators))
        for rule in plan.rules
    ]
    labels = operators.heads.keys() - properties.keys()  # of the rules that queries are
    for query in plan.graph_queries:
        heads = [label for label in operators.heads if label in labels and label.startswith(f"{query.name}·")]
        trees = [line for label in heads for line in _labelled("runs as", operators.tree(label))]
        parts.append("\n".join([query_text(query), *trees]))
    if not parts:
        return "no event rules"
    knowledge = ["\n".join(["knowledge", *_knowledge_text(plan)])] if call_modes(plan) else []
    return "\n\n".join([*parts, *knowledge, "\n".join(["on Spark", *stages_text(plan, operators)])])


def _strata(plan: Plan) -> dict[str, Stratum]:
    return {rule.label: stratum for stratum in strata(plan) for rule in stratum.rules}


def _rule_text(
    rule: Rule, properties: Properties, stratum: Stratum, readings: Mapping[Span, str], operators: OperatorPlan
) -> Iterator[str]:
    yield f"rule {rule.label}"
    yield f"  reading   {readings.get(rule.span, '')}"
    yield f"  key       {', '.join(properties.key) or 'none: its events share no variable'}"
    horizon = {None: "without bound", 0: "nothing is kept"}.get(properties.horizon) or show_duration(
        properties.horizon or 0
    )
    longest = "" if properties.longest is None else f", its events last {show_duration(properties.longest)} at most"
    points = ", for point inputs" if properties.horizon is not None and properties.any_length is None else ""
    yield f"  horizon   {horizon}{points}{longest}"
    yield from (f"  certain   {text}" for text in properties.certain_when)
    yield f"  stratum   {stratum.number}{', recursive' if stratum.recursive else ''}"
    if rule.label in operators.heads:
        yield from _labelled("runs as", operators.tree(rule.label))


def _labelled(name: str, tree: Tree) -> Iterator[str]:
    first, *rest = tree.lines()
    yield f"  {name:<9} {first}"
    yield from (f"            {line}" for line in rest)


# JSON


def _json(plan: Plan, operators: OperatorPlan, readings: Mapping[Span, str]) -> dict[str, Any]:
    properties, layers = all_properties(plan), _strata(plan)
    rules = [_rule_json(rule, properties[rule.label], layers[rule.label], readings, operators) for rule in plan.rules]
    queries = {"queries": [query_json(query) for query in plan.graph_queries]} if plan.graph_queries else {}
    return {
        "outputs": list(plan.outputs),
        "rules": rules,
        **queries,
        "knowledge": _knowledge_json(plan),
        "operators": operators.as_json(),
        "spark": stages_json(plan, operators),
    }


def _rule_json(
    rule: Rule, properties: Properties, stratum: Stratum, readings: Mapping[Span, str], operators: OperatorPlan
) -> dict[str, object]:
    head = operators.heads.get(rule.label)
    return {
        "label": rule.label,
        "reading": readings.get(rule.span, ""),
        "head": None if head is None else operators.number[head],
        "key": list(properties.key),
        "horizon_us": properties.horizon,
        "horizon_any_length_us": properties.any_length,
        "longest_us": properties.longest,
        "certain": list(properties.certain_when),
        "stratum": stratum.number,
        "recursive": stratum.recursive,
    }


# Knowledge


def _knowledge_text(plan: Plan) -> Iterator[str]:
    printer = Printer()
    printer.prefixes |= plan.prefixes
    for answer in answering(plan, call_modes(plan)):
        name, arity = answer.predicate
        shown = (
            f'sparql("{" ".join(plan.queries[name].text.split())[:60]}…")'
            if name in plan.queries
            else printer.name(name)
        )
        yield f"  {shown}/{arity}"
        yield f"            {answer.how}"


def _knowledge_json(plan: Plan) -> list[dict[str, object]]:
    return [
        {
            "name": answer.predicate[0],
            "arity": answer.predicate[1],
            "bound": [[i for i, bound in enumerate(mode) if bound] for mode in answer.modes],
            "answered": answer.how,
        }
        for answer in answering(plan, call_modes(plan))
    ]
