"""How a program is read and what follows from its shape: as text, JSON or a Mermaid diagram."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

from augury.algebra.answering import answering
from augury.algebra.nodes import (
    UNRESTRICTED,
    AnyOf,
    Collect,
    Compare,
    Condition,
    Either,
    Follow,
    Holds,
    Instant,
    Join,
    Kleene,
    Label,
    Node,
    NoneInside,
    Policy,
    Relates,
    Relative,
    Repeat,
    Rule,
    Scan,
    Select,
    Spans,
    Unless,
    Within,
    absences,
    inputs,
    walk,
)
from augury.algebra.place import place
from augury.algebra.program import Plan, Predicate, rule_reads
from augury.algebra.properties import Memory, all_properties, operator_key
from augury.algebra.sharing import canonical, sharing
from augury.algebra.stages import Stage, stages
from augury.algebra.strata import strata
from augury.algebra.terms import Const, show
from augury.clock import show_duration
from augury.errors import RunError, Span
from augury.language import syntax as s
from augury.language.checks.static import call_modes
from augury.language.show import Printer
from augury.optimiser import optimise

FORMATS = ("text", "json", "mermaid")


@dataclass(frozen=True)
class Tree:
    """A line and what is below it."""

    text: str
    children: tuple[Tree, ...] = ()
    kind: str = "operator"
    form: str = ""  # equal for equal sub-plans

    def lines(self, first: str = "", rest: str = "") -> Iterator[str]:
        yield first + self.text
        for number, child in enumerate(self.children):
            last = number == len(self.children) - 1
            yield from child.lines(rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))

    def as_json(self) -> dict[str, Any]:
        below = {"children": [c.as_json() for c in self.children]} if self.children else {}
        return {"text": self.text, "kind": self.kind, **below}


@dataclass(frozen=True)
class Explained:
    """What there is to say about one rule."""

    label: str
    reading: str
    tree: Tree
    runs: Tree | None  # after the optimiser, where it has changed the rule
    key: tuple[str, ...]
    horizon: int | None
    longest: int | None
    any_length: int | None
    memory: tuple[Memory, ...]
    settles: tuple[str, ...]
    stratum: int
    recursive: bool
    shares: tuple[str, ...]


def explain(plan: Plan, modules: Iterable[s.Module], format: str = "text") -> str:
    if format not in FORMATS:
        raise RunError(f"unknown format `{format}`", hint=f"there is {', '.join(FORMATS)}")
    rules = explain_rules(plan, modules)
    match format:
        case "json":
            return json.dumps(
                _as_json(plan, rules) | {"knowledge": _knowledge_json(plan), "spark": _spark_json(plan)},
                indent=2,
                ensure_ascii=False,
            )
        case "mermaid":
            return mermaid(plan)
    if not rules:
        return "no event rules"
    known = [["knowledge", *_knowledge_text(plan)]] if call_modes(plan) else []
    parts = [*known, ["on Spark", *_spark_text(plan)]]
    return "\n\n".join([*(_as_text(rule) for rule in rules), *("\n".join(part) for part in parts)])


def explain_rules(plan: Plan, modules: Iterable[s.Module]) -> list[Explained]:
    readings = _readings(modules)
    shared, by_label = sharing(plan), all_properties(plan)
    optimised = {rule.label: rule for rule in optimise(plan).rules}
    result: list[Explained] = []
    for stratum in strata(plan):
        for rule in stratum.rules:
            found = by_label[rule.label]
            own = {canonical(node): node for node in walk(place(rule.body))}
            with_others = tuple(
                f"{describe(own[x.form], plan).text} — also in {', '.join(o for o in x.rules if o != rule.label)}"
                for x in shared
                if rule.label in x.rules
            )
            result.append(
                Explained(
                    rule.label, readings.get(rule.span, ""), rule_tree(rule, plan), _runs(rule, optimised[rule.label], plan), found.key, found.horizon, found.longest, found.any_length,
                    found.memory, found.settles, stratum.number, stratum.recursive, with_others,
                )
            )  # fmt: skip
    order = {rule.label: n for n, rule in enumerate(plan.rules)}
    return sorted(result, key=lambda e: order[e.label])


def _runs(rule: Rule, optimised: Rule, plan: Plan) -> Tree | None:
    return None if optimised == rule else rule_tree(optimised, plan)


def _readings(modules: Iterable[s.Module]) -> Mapping[Span, str]:
    printer = Printer(explicit=True, width=10_000)
    found: dict[Span, str] = {}
    for module in modules:
        for statement in module.statements:
            text = printer.statement(statement)
            if isinstance(statement, s.EventRule):
                found[statement.span] = text
    return found


# Trees


def rule_tree(rule: Rule, plan: Plan) -> Tree:
    head = f"{rule.type}({', '.join(show(a) for a in rule.args)})"
    children = [describe(place(rule.body), plan)]
    if rule.collect is not None:
        children.append(_collect_tree(rule.collect, plan))
    covers = f" covering {', '.join(rule.covers)}" if rule.covers else ""
    return Tree(head + covers, tuple(children), "derived")


def _collect_tree(collect: Collect, plan: Plan) -> Tree:
    which = (
        f"while {collect.window}" if collect.window else f"{'exactly' if collect.exactly else 'last'} {collect.last}"
    )
    where = f" where {', '.join(show_condition(c) for c in collect.where)}" if collect.where else ""
    return Tree(f"collect {which}{where}", (describe(place(collect.pattern), plan),))


def describe(node: Node, plan: Plan) -> Tree:
    """A pattern as a tree of operators."""
    return replace(_describe(node, plan), form=canonical(node))


def _describe(node: Node, plan: Plan) -> Tree:
    match node:
        case Scan():
            kind = "derived" if (node.type, len(node.args)) in plan.derived else "input"
            args = f"({', '.join(show(a) for a in node.args)})" if node.args else ""
            return Tree(f"{node.type}{args}", (), kind)
        case Instant():
            return Tree(f"time point {show(node.time)}", (), "input")
        case Label():
            inner = describe(node.input, plan)
            return Tree(f"{node.label}: {inner.text}", inner.children, inner.kind)
        case Select():
            inner = describe(node.input, plan)
            below = tuple(describe(place(c.pattern), plan) for c in node.where if isinstance(c, NoneInside))
            absent = tuple(Tree(f"absent: {b.text}", b.children, b.kind) for b in below)
            return Tree(f"where {', '.join(show_condition(c) for c in node.where)}", (inner, *absent))
        case Within():
            return Tree(f"within {show_duration(node.length)}", (describe(node.input, plan),))
        case Join():
            return _join_tree(node, plan)
        case Either():
            return Tree("OR", (describe(node.left, plan), describe(node.right, plan)))
        case Repeat():
            how = " consecutive" if node.consecutive else ""
            window = f", within {show_duration(min(node.windows))}" if node.windows else ""
            return Tree(f"{node.count} times{how}{window}{_policy(node.policy)}", (describe(node.input, plan),))
        case Follow():
            absent = (
                (Tree(f"absent: {(a := describe(node.absent, plan)).text}", a.children, a.kind),) if node.absent else ()
            )
            return Tree(f"then ({node.skip})", (describe(node.first, plan), describe(node.then, plan), *absent))
        case Kleene():
            return Tree(f"one or more ({node.skip})", (describe(node.input, plan),))
        case _:
            assert_never(node)


def _join_tree(node: Join, plan: Plan) -> Tree:
    key = operator_key(node)
    parts = [node.op if node.absent is None else "NOT between"]
    if key:
        parts.append(f"on {', '.join(key)}")
    if node.windows:
        parts.append(f"within {show_duration(min(node.windows))}")
    if node.where:
        parts.append("where " + ", ".join(show_condition(c) for c in node.where))
    children = [describe(node.left, plan), describe(node.right, plan)]
    absent = [node.absent] if node.absent is not None else []
    for pattern in [*absent, *(place(c.pattern) for c in node.where if isinstance(c, NoneInside))]:
        inner = describe(pattern, plan)
        children.append(Tree(f"absent: {inner.text}", inner.children, inner.kind))
    return Tree(", ".join(parts) + _policy(node.policy), tuple(children))


def _policy(policy: Policy) -> str:
    if policy == UNRESTRICTED:
        return ""
    ties = f" by {policy.by}" if policy.by else f" {policy.ties}" if policy.ties != "longest" else ""
    per = f" per {', '.join(policy.per)}" if policy.per else ""
    return f", {policy.name}{ties}{per}"


def show_condition(condition: Condition) -> str:
    match condition:
        case Compare():
            return f"{show(condition.left)} {condition.op} {show(condition.right)}"
        case Holds():
            return f"{condition.name}({', '.join(show(a) for a in condition.args)})"
        case Unless():
            return f"not {condition.name}({', '.join(show(a) for a in condition.args)})"
        case AnyOf():
            return "(" + " or ".join(" and ".join(show_condition(c) for c in o) for o in condition.options) + ")"
        case Relates():
            return f"{condition.left} {condition.relation} {condition.right}"
        case Spans():
            return f"{{{', '.join(condition.labels)}}} within {show_duration(condition.length)}"
        case Relative():
            return f"{condition.label} = {condition.kind}({condition.anchor}, {show_duration(condition.length)})"
        case NoneInside():
            return f"none inside {condition.window}"
        case _:
            assert_never(condition)


# Text, JSON, Mermaid


def _as_text(rule: Explained) -> str:
    lines = [f"rule {rule.label}", f"  reading   {rule.reading}"]
    lines.append(f"  key       {', '.join(rule.key) or 'none: its events share no variable'}")
    horizon = (
        "without bound" if rule.horizon is None else show_duration(rule.horizon) if rule.horizon else "nothing is kept"
    )
    longest = "" if rule.longest is None else f", its events last {show_duration(rule.longest)} at most"
    points = ", for point inputs" if rule.horizon is not None and rule.any_length is None else ""
    lines.append(f"  horizon   {horizon}{points}{longest}")
    lines.extend(f"            {m.operator} {m.side}: {m.text}" for m in rule.memory)
    lines.extend(f"  certain   {text}" for text in rule.settles)
    lines.append(f"  stratum   {rule.stratum}{', recursive' if rule.recursive else ''}")
    lines.extend(f"  shares    {text}" for text in rule.shares)
    for name, tree in (("plan", rule.tree), ("runs as", rule.runs)):
        if tree is not None:
            first, *rest = tree.lines()
            lines += [f"  {name:<9} {first}", *(f"            {line}" for line in rest)]
    return "\n".join(lines)


def _as_json(plan: Plan, rules: list[Explained]) -> dict[str, Any]:
    return {
        "outputs": list(plan.outputs),
        "rules": [
            {
                "label": rule.label,
                "reading": rule.reading,
                "plan": rule.tree.as_json(),
                **({} if rule.runs is None else {"runs": rule.runs.as_json()}),
                "key": list(rule.key),
                "horizon_us": rule.horizon,
                "horizon_any_length_us": rule.any_length,
                "longest_us": rule.longest,
                "memory": [{"operator": m.operator, "side": m.side, "keep_us": m.keep} for m in rule.memory],
                "certain": list(rule.settles),
                "stratum": rule.stratum,
                "recursive": rule.recursive,
                "shares": list(rule.shares),
            }
            for rule in rules
        ],
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
    """Events and operators as a flow chart of what runs, from inputs to derived events; equal sub-plans appear once."""
    plan = optimise(plan)
    lines = ["flowchart LR"]
    seen: dict[tuple[str, ...], str] = {}

    def quoted(text: str) -> str:
        return text.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")

    def box(key: tuple[str, ...], shape: str, text: str) -> tuple[str, bool]:
        if key in seen:
            return seen[key], False
        name = f"n{len(seen)}"
        seen[key] = name
        lines.append(f'  {name}{shape[0]}"{quoted(text)}"{shape[1]}')
        return name, True

    def event(type: str) -> str:
        derived = any(name == type for name, _ in plan.derived)
        return box(("event", type), ("([", "])") if derived else ("[/", "/]"), type)[0]  # type: ignore[arg-type]

    def visit(tree: Tree) -> str:
        name = tree.text.removeprefix("absent: ")
        if tree.kind in ("input", "derived") and not tree.children:
            return event(name.split(": ")[-1].split("(")[0])
        here, new = box(("operator", tree.form) if tree.form else ("operator", *tree.lines()), ("[", "]"), tree.text)  # type: ignore[arg-type]
        if new:
            for child in tree.children:
                arrow = "-. absent .->" if child.text.startswith("absent: ") else "-->"
                lines.append(f"  {visit(child)} {arrow} {here}")
        return here

    for rule in plan.rules:
        tree = rule_tree(rule, plan)
        target = event(rule.type)
        for child in tree.children:
            lines.append(f"  {visit(child)} --> {target}")
    return "\n".join(lines)


# How it runs on Spark


@dataclass(frozen=True)
class Hosted:
    """What there is to say about a stage: its key by type, what is filtered before its shuffle, how long it remembers."""

    stage: Stage
    keys: Mapping[str, str]
    filters: Mapping[str, str]
    horizon: int | None
    merges: tuple[str, ...]


def hosted(plan: Plan) -> list[Hosted]:
    """The stages of a plan, for inputs that are points."""
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
        for pattern in (rule.body, *((rule.collect.pattern,) if rule.collect else ())):
            _note_scans(place(pattern), (), ways, plan)
    return {type: " or ".join(dict.fromkeys(texts)) for type, texts in sorted(ways.items()) if all(texts)}


def _note_scans(node: Node, where: tuple[Condition, ...], ways: dict[str, list[str]], plan: Plan) -> None:
    match node:
        case Scan():
            if (node.type, len(node.args)) not in plan.derived:
                fixed = [f"argument {i + 1} = {show(a)}" for i, a in enumerate(node.args) if isinstance(a, Const)]
                tests = [show_condition(c) for c in where if isinstance(c, Compare | AnyOf)]
                ways.setdefault(node.type, []).append(" and ".join([*fixed, *tests]))
        case Label():
            _note_scans(node.input, where, ways, plan)
        case Select():
            _note_scans(node.input, (*where, *node.where), ways, plan)
        case _:
            for part in inputs(node):
                _note_scans(part, (), ways, plan)
    for absent in absences(node):
        _note_scans(place(absent), (), ways, plan)


def _spark_text(plan: Plan) -> Iterator[str]:
    for one in hosted(plan):
        stage = one.stage
        match stage.how:
            case "key":
                yield f"  stage {stage.number}   by key: {', '.join(f'{t}.{a}' for t, a in one.keys.items())}"
            case "slices":
                yield f"  stage {stage.number}   by slices of time that overlap by {show_duration(stage.longest or 0)}; a stream has one bucket"
            case "one":
                yield f"  stage {stage.number}   in one bucket"
        yield f"            rules {', '.join(rule.label for rule in stage.rules)}"
        yield from (f"            before the shuffle: {type} where {text}" for type, text in one.filters.items())
        kept = "without bound" if one.horizon is None else show_duration(one.horizon) if one.horizon else "nothing"
        yield f"            remembers {kept}{', beside the lateness' if one.horizon is not None else ''}"
        if one.merges:
            yield f"            then merged, since several buckets may make the same: {', '.join(one.merges)}"
        if stage.why:
            yield f"            warning: no key, for {stage.why}"
        if one.horizon is None:
            yield "            warning: a stream remembers all of it; say `--retention`, or give the rule a window"


def _spark_json(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "stage": one.stage.number,
            "how": one.stage.how,
            "rules": [rule.label for rule in one.stage.rules],
            "key": dict(one.keys),
            "overlap_us": one.stage.longest,
            "filters": dict(one.filters),
            "horizon_us": one.horizon,
            "merged": list(one.merges),
            "no_key_because": one.stage.why or None,
        }
        for one in hosted(plan)
    ]
