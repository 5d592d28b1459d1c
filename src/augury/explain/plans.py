"""How a program is read and what follows from its shape: as text, JSON or a Mermaid diagram."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

from augury.algebra import nodes as n
from augury.algebra.answering import answering
from augury.algebra.place import place
from augury.algebra.plan import Plan
from augury.algebra.properties import Properties, all_properties, operator_key
from augury.algebra.sharing import canonical, sharing
from augury.algebra.strata import Stratum, strata
from augury.algebra.terms import show
from augury.core.clock import Clock, show_duration
from augury.core.errors import RunError, Span
from augury.explain.operator_plan import operators_json, operators_text
from augury.explain.query_words import query_json, query_text
from augury.explain.spark import stages_json, stages_text
from augury.explain.tree import Flowchart, Tree
from augury.explain.wording import show_condition
from augury.language.checks.static import call_modes
from augury.language.rules import syntax as s
from augury.language.rules.show import Printer
from augury.planner.physical_plan import plan_on_some_clock
from augury.planner.specs import Spec

FORMATS = ("text", "json", "mermaid", "operators")


@dataclass(frozen=True)
class Explained:
    """What there is to say about one rule."""

    label: str
    reading: str
    tree: Tree
    runs: Tree | None  # after the optimiser, where it has changed the rule
    properties: Properties
    stratum: Stratum
    shares: tuple[str, ...]


def explain(plan: Plan, optimised: Plan, modules: Iterable[s.Module], format: str = "text") -> str:
    """The plan as it is written, and where the optimiser has changed a rule, as it runs."""
    if format not in FORMATS:
        raise RunError(f"unknown format `{format}`", hint=f"there is {', '.join(FORMATS)}")
    rules = explain_rules(plan, optimised, modules)
    match format:
        case "json":
            found = {
                "outputs": list(plan.outputs),
                "rules": [_as_json(rule) for rule in rules],
                **({"queries": [query_json(query) for query in plan.graph_queries]} if plan.graph_queries else {}),
                "knowledge": _knowledge_json(plan),
                "operators": operators_json(*_physical(optimised), {}),
                "spark": stages_json(plan),
            }
            return json.dumps(found, indent=2, ensure_ascii=False)
        case "mermaid":
            return mermaid(optimised)
        case "operators":
            return operators_text(*_physical(optimised), {})
    queries = [query_text(query) for query in plan.graph_queries]
    if not rules and not queries:
        return "no event rules"
    known = [["knowledge", *_knowledge_text(plan)]] if call_modes(plan) else []
    parts = [*known, ["on Spark", *stages_text(plan)]]
    return "\n\n".join([*queries, *(_as_text(rule) for rule in rules), *("\n".join(part) for part in parts)])


def _physical(optimised: Plan) -> tuple[tuple[Spec, ...], Clock]:
    physical, clock = plan_on_some_clock(optimised)
    return physical.specs, clock


def explain_rules(plan: Plan, optimised: Plan, modules: Iterable[s.Module]) -> list[Explained]:
    readings = _readings(modules)
    shared, by_label = sharing(plan), all_properties(plan)
    running = {rule.label: rule for rule in optimised.rules}
    result: list[Explained] = []
    for stratum in strata(plan):
        for rule in stratum.rules:
            found, runs = by_label[rule.label], running[rule.label]
            own = {canonical(node): node for node in n.walk(place(rule.body))}
            with_others = tuple(
                f"{describe(own[x.form], plan).text} — also in {', '.join(o for o in x.rules if o != rule.label)}"
                for x in shared
                if rule.label in x.rules
            )
            result.append(
                Explained(
                    rule.label,
                    readings.get(rule.span, ""),
                    rule_tree(rule, plan),
                    rule_tree(runs, plan) if runs != rule else None,
                    found,
                    stratum,
                    with_others,
                )
            )
    order = {rule.label: i for i, rule in enumerate(plan.rules)}
    return sorted(result, key=lambda e: order[e.label])


def _readings(modules: Iterable[s.Module]) -> Mapping[Span, str]:
    printer = Printer(explicit=True, width=10_000)
    found: dict[Span, str] = {}
    for module in modules:
        for statement in module.statements:
            text = printer.statement(statement)
            if isinstance(statement, s.RuleStatement):
                found[statement.span] = text
    return found


# Trees


def rule_tree(rule: n.Rule, plan: Plan) -> Tree:
    head = f"{rule.type}({', '.join(show(a) for a in rule.args)})"
    children = [describe(place(rule.body), plan)]
    children += [_collect_tree(collect, plan) for collect in rule.collects]
    covers = f" covering {', '.join(rule.covers)}" if rule.covers else ""
    since = "" if rule.since is None else f" since {'END' if rule.since == 'END' else show(rule.since)}"
    if rule.having:
        children.append(Tree(f"having {_all(rule.having)}"))
    if rule.top:
        children.append(Tree(_top_text(rule.top)))
    if rule.at_most:
        children.append(Tree(_at_most_text(rule.at_most)))
    return Tree(head + covers + since, tuple(children), "derived")


def _top_text(top: n.Top) -> str:
    which = "all" if top.count is None else str(top.count)
    order = (" ascending" if top.ascending else "") + (" with ties" if top.ties else "")
    per = f" per {', '.join(top.per)}" if top.per else ""
    return f"top {which} by {show(top.by)}{order}{per}{f' as {top.place}' if top.place else ''}"


def _at_most_text(at_most: n.AtMost) -> str:
    per = f" per {', '.join(at_most.per)}" if at_most.per else ""
    every = "" if at_most.every is None else f" every {show_duration(at_most.every)}"
    return f"at most {at_most.count}{per}{every}"


def _collect_tree(collect: n.Collect, plan: Plan) -> Tree:
    if collect.window:
        which = f"while {collect.window}"
    elif collect.last == n.ALL_COLLECTED:
        which = "all"
    else:
        which = f"{'exactly' if collect.exactly else 'last'} {collect.last}"
    where = f" where {_all(collect.where)}" if collect.where else ""
    by = f" by {', '.join(collect.by)}" if collect.by else ""
    none = " or none" if collect.none else ""
    return Tree(f"collect {which}{by}{where}{none}", (describe(place(collect.pattern), plan),))


def describe(node: n.Node, plan: Plan) -> Tree:
    """A pattern as a tree of operators."""
    return replace(_describe(node, plan), form=canonical(node))


def _describe(node: n.Node, plan: Plan) -> Tree:
    match node:
        case n.Scan():
            kind = "derived" if node.predicate in plan.derived else "input"
            args = f"({', '.join(show(a) for a in node.args)})" if node.args else ""
            return Tree(f"{node.type}{args}", (), kind)
        case n.Instant():
            return Tree(f"time point {show(node.time)}", (), "input")
        case n.Every():
            return Tree(node.windows.text, (), "input")
        case n.SessionWindow():
            return Tree(node.text, (describe(node.input, plan),))
        case n.Label():
            inner = describe(node.input, plan)
            return inner if node.interval else replace(inner, text=f"{node.label}: {inner.text}")
        case n.Select():
            return Tree(f"where {_all(node.where)}", (describe(node.input, plan), *_absent(node, plan)))
        case n.Within():
            return Tree(f"within {show_duration(node.length)}", (describe(node.input, plan),))
        case n.Join():
            return _join_tree(node, plan)
        case n.Either():
            return Tree("OR", (describe(node.left, plan), describe(node.right, plan)))
        case n.Repeat():
            how = " consecutive" if node.consecutive else ""
            window = f", within {show_duration(min(node.windows))}" if node.windows else ""
            return Tree(f"{node.count} times{how}{window}{_policy(node.policy)}", (describe(node.input, plan),))
        case n.Unfold():
            return Tree(f"each ({', '.join(node.binds)}) of {show(node.of)}", (describe(node.input, plan),))
        case n.Graph():
            return Tree(f"graph {node.pattern}", (describe(node.input, plan),))
        case n.Run():
            return _run_tree(node, plan)
        case _:
            assert_never(node)


def _join_tree(node: n.Join, plan: Plan) -> Tree:
    key = operator_key(node)
    parts = [node.op if node.absent is None else "NOT between"]
    if key:
        parts.append(f"on {', '.join(key)}")
    if node.windows:
        parts.append(f"within {show_duration(min(node.windows))}")
    if node.where:
        parts.append(f"where {_all(node.where)}")
    children = (describe(node.left, plan), describe(node.right, plan), *_absent(node, plan))
    return Tree(", ".join(parts) + _policy(node.policy), children)


def _all(where: Iterable[n.Condition]) -> str:
    return ", ".join(map(show_condition, where))


def _absent(node: n.Join | n.Run | n.Select, plan: Plan) -> list[Tree]:
    """What an operator asks to be absent."""
    patterns = [node.absent] if isinstance(node, n.Join) and node.absent is not None else []
    patterns += [place(c.pattern) for c in node.where if isinstance(c, n.NoneInside)]
    return [replace(tree, text=f"absent: {tree.text}", form="") for tree in (describe(p, plan) for p in patterns)]


def _run_tree(node: n.Run, plan: Plan) -> Tree:
    """A run: its key and how it chooses; below, each part with the operator to its left and how often it may come."""
    parts = [f"run per {', '.join(node.key)}" if node.key else "run over all its events"]
    if node.windows:
        parts.append(f"within {show_duration(min(node.windows))}")
    if node.which != "ALL":
        parts.append(node.which.lower())
    if node.skip is not None:
        to = "past the end" if node.skip == n.PAST_END else f"to the last {node.parts[node.skip].label}"
        parts.append(f"skip {to}")
    if node.where:
        parts.append(f"at the end {_all(node.where)}")
    children = [_part_tree(part, number > 0, plan) for number, part in enumerate(node.parts)]
    return Tree(", ".join(parts), (*children, *_absent(node, plan)))


def _part_tree(part: n.RunPart, linked: bool, plan: Plan) -> Tree:
    inner = describe(part.input, plan)
    words: list[str] = [part.link] if linked else []
    if (part.least, part.most) != (1, 1):
        words.append(_times(part) + ("" if part.between == part.link or not part.repeats else f" by {part.between}"))
    if part.where:
        each = "each " if part.repeats else ""
        words.append(f"{each}where {_all(part.where)}")
    if part.after:
        words.append(f"then {_all(part.after)}")
    return Tree(", ".join(words), (inner,)) if words else inner


def _times(part: n.RunPart) -> str:
    match part.least, part.most:
        case 0, 1:
            return "or not"
        case least, None:
            return {0: "any number of times", 1: "once or more"}.get(least, f"{least} times or more")
        case least, most:
            return f"{least} times" if least == most else f"{least} to {most} times"


def _policy(policy: n.Policy) -> str:
    if policy == n.UNRESTRICTED:
        return ""
    ties = f" by {policy.by}" if policy.by else f" {policy.ties}" if policy.ties != "longest" else ""
    per = f" per {', '.join(policy.per)}" if policy.per else ""
    return f", {policy.name}{ties}{per}"


# Text, JSON, Mermaid


def _as_text(rule: Explained) -> str:
    found = rule.properties
    lines = [f"rule {rule.label}", f"  reading   {rule.reading}"]
    lines.append(f"  key       {', '.join(found.key) or 'none: its events share no variable'}")
    horizon = {None: "without bound", 0: "nothing is kept"}.get(found.horizon) or show_duration(found.horizon or 0)
    longest = "" if found.longest is None else f", its events last {show_duration(found.longest)} at most"
    points = ", for point inputs" if found.horizon is not None and found.any_length is None else ""
    lines.append(f"  horizon   {horizon}{points}{longest}")
    lines.extend(f"            {m.operator} {m.side}: {m.text}" for m in found.memory)
    lines.extend(f"  certain   {text}" for text in found.certain_when)
    lines.append(f"  stratum   {rule.stratum.number}{', recursive' if rule.stratum.recursive else ''}")
    lines.extend(f"  shares    {text}" for text in rule.shares)
    for name, tree in (("plan", rule.tree), ("runs as", rule.runs)):
        if tree is not None:
            first, *rest = tree.lines()
            lines += [f"  {name:<9} {first}", *(f"            {line}" for line in rest)]
    return "\n".join(lines)


def _as_json(rule: Explained) -> dict[str, Any]:
    found = rule.properties
    return {
        "label": rule.label,
        "reading": rule.reading,
        "plan": rule.tree.as_json(),
        **({} if rule.runs is None else {"runs": rule.runs.as_json()}),
        "key": list(found.key),
        "horizon_us": found.horizon,
        "horizon_any_length_us": found.any_length,
        "longest_us": found.longest,
        "memory": [{"operator": m.operator, "side": m.side, "keep_us": m.keep} for m in found.memory],
        "certain": list(found.certain_when),
        "stratum": rule.stratum.number,
        "recursive": rule.stratum.recursive,
        "shares": list(rule.shares),
    }


# Knowledge


def _knowledge_text(plan: Plan) -> Iterator[str]:
    printer = Printer()
    printer.prefixes |= plan.prefixes
    for one in answering(plan, call_modes(plan)):
        name, arity = one.predicate
        shown = (
            f'sparql("{" ".join(plan.queries[name].text.split())[:60]}…")'
            if name in plan.queries
            else printer.name(name)
        )
        yield f"  {shown}/{arity}"
        yield f"            {one.how}"


def _knowledge_json(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "name": one.predicate[0],
            "arity": one.predicate[1],
            "bound": [[i for i, bound in enumerate(mode) if bound] for mode in one.modes],
            "answered": one.how,
        }
        for one in answering(plan, call_modes(plan))
    ]


def mermaid(plan: Plan) -> str:
    """Events and operators of a plan as a flow chart, from inputs to derived events; equal sub-plans appear once."""
    chart = Flowchart("LR")

    def event(type: str) -> str:
        derived = any(name == type for name, _ in plan.derived)
        return chart.box(type, ("([", "])") if derived else ("[/", "/]"), ("event", type))[0]

    def visit(tree: Tree) -> str:
        name = tree.text.removeprefix("absent: ")
        if tree.kind in ("input", "derived") and not tree.children:
            return event(name.split(": ")[-1].split("(")[0])
        here, new = chart.box(tree.text, key=("operator", tree.form or str(tree)))
        for child in tree.children if new else ():
            absent = child.text.startswith("absent: ")
            chart.arrow(visit(child), here, "absent" if absent else "", dotted=absent)
        return here

    for query in plan.graph_queries:
        target = event(query.predicate[0])
        box, _ = chart.box(f"query {query.name}")
        chart.arrow(box, target)
        for type, _ in query.reads:
            chart.arrow(event(type), box)
    for rule in plan.rules:
        target = event(rule.type)
        for child in rule_tree(rule, plan).children:
            chart.arrow(visit(child), target)
    return str(chart)
