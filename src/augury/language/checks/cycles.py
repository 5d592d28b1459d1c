"""Recursive event rules: that they are stratified (B 2.4), that they end, and that policies on them make sense."""

from __future__ import annotations

from collections.abc import Iterator

from augury.algebra import nodes as n
from augury.algebra.kinds import of_kind
from augury.algebra.place import place
from augury.algebra.plan import Plan, Predicate
from augury.algebra.properties import interval_table
from augury.algebra.strata import Edge, components, cycle, edges, fact_edges, recursive_parts
from augury.algebra.terms import Apply, Build, computes, variables
from augury.algebra.terms import walk as walk_terms
from augury.core.errors import Findings
from augury.language.checks.arity import head_of
from augury.language.checks.counters import ShortRead, counts_to_an_end
from augury.language.checks.making import MadePositions, way_round

_WORDS = {
    "negation": "the absence that it asks for",
    "grouping": "what it collects",
    "temporal": "the event that {} is counted from",
    "facts": "facts that it makes",
    "holding": "intervals of facts that it makes",
}


def check_cycles(plan: Plan, findings: Findings) -> None:
    derived = plan.derived
    all_edges = [e for rule in plan.rules for e in edges(rule) if e.reads in derived] + fact_edges(plan)
    reads: dict[Predicate, set[Predicate]] = {}
    edges_of: dict[Predicate, list[Edge]] = {}
    for edge in all_edges:
        reads.setdefault(edge.head, set()).add(edge.reads)
        edges_of.setdefault(edge.head, []).append(edge)
    for group in components(derived, reads):
        members = set(group)
        inside = [e for head in group for e in edges_of.get(head, ()) if e.reads in members]
        wrong = [
            e
            for e in inside
            if e.kind in _WORDS and (e.kind in ("temporal", "facts", "holding") or not _ends_before(e, plan.tick))
        ]
        for edge in sorted(wrong, key=lambda e: e.span.start)[:1]:
            _unstratified(edge, group, reads, findings)
        if inside:
            _check_computing(plan, group, findings)
            _check_policies(plan, group, findings)
            _check_choices(plan, group, findings)
            _check_windows(plan, group, findings)


def _unstratified(
    edge: Edge, group: list[Predicate], reads: dict[Predicate, set[Predicate]], findings: Findings
) -> None:
    way = [edge.head, *cycle(edge.reads, edge.head, reads, group)]
    hint = (
        "count from an event that does not depend on this rule"
        if edge.kind == "temporal"
        else "ask how the facts were just before, `was p(X)`; a recursion over facts is a static rule, written with `:-`"
        if edge.kind == "facts"
        else "range over facts that do not depend on this rule; ask how its own facts were just before: `was p(X)`"
        if edge.kind == "holding"
        else f"ask for events that do not depend on `{edge.head[0]}`, or let the window end before a later event of the rule"
    )
    words = _WORDS[edge.kind].format(edge.span.quoted)
    findings.add("E404", f"`{edge.head[0]}` depends on itself through {words}", edge.span, way_round(way), hint=hint)


def _ends_before(edge: Edge, tick: int | None) -> bool:
    """Whether the bounds prove that what is inside the window ends before the derived event does."""
    if edge.window is None:
        return False
    bounds = interval_table(edge.rule, tick)
    if bounds is None:
        return False
    table, _, whole = bounds
    labels = {node.label for node in of_kind(n.walk(place(edge.rule.body)), n.Label)}
    return any(table.surely_before((edge.window, "e"), (name, "e")) for name in {*labels, whole})


def _check_computing(plan: Plan, group: list[Predicate], findings: Findings) -> None:
    """A cycle that computes must lengthen the interval somewhere, or count to a constant, or it never ends."""
    rules = [rule for rule in plan.rules if rule.predicate in group]
    since = any(rule.since is not None for rule in rules)
    making = MadePositions(plan.clauses)
    reads = [read for rule in rules for read in _short_reads(rule, group, plan.tick, since)]
    computing = [rule for rule in rules if _computes_head(rule, making)]
    short: dict[Predicate, set[Predicate]] = {}
    for read in reads:
        short.setdefault(read.rule.predicate, set()).add(read.scan.predicate)
    for inner in components(short, short):
        inside = [r for r in reads if r.rule.predicate in inner and r.scan.predicate in inner]
        endless = {(r.rule.label, r.scan.predicate): r for r in inside if r.rule in computing}
        if not endless or counts_to_an_end(inner, inside, computing, [r for r in rules if r.predicate in inner]):
            continue
        for rule, scan in endless.values():
            way = [rule.predicate, *cycle(scan.predicate, rule.predicate, short, inner)]
            message = f"the recursive rule `{rule.label}` computes new values at the same time, without end"
            hint = "let the cycle pass through SEQ or NOT, which lengthen the interval, or count from a constant to one: `n(C + 1) <- n(C) AND a WHERE C < 5`"
            findings.add("E403", message, head_of(rule.span), way_round(way), hint=hint)


def _short_reads(rule: n.Rule, group: list[Predicate], tick: int | None, since: bool) -> Iterator[ShortRead]:
    """The atoms of the cycle that the rule reads over an interval that may be as long as the derived one.

    Where some rule of the cycle says when its event starts (`since`), only a later end makes an interval longer.
    """
    bounds = interval_table(rule, tick)
    body = place(rule.body)
    for node in n.scans(body) if since else _unlengthened(body):
        if node.predicate in group and bounds is not None:
            table, names, whole = bounds
            name = names.get(node.span.start, "")
            has_times = (name, "s") in table.points
            inside = has_times and table.surely_before((name, "e"), (whole, "e"))
            inside = inside or (has_times and not since and table.surely_before((whole, "s"), (name, "s")))
            if not inside:
                yield ShortRead(rule, node)


def _unlengthened(node: n.Node) -> Iterator[n.Scan]:
    """The scans on whose way up there is no sequence."""
    if isinstance(node, n.Scan):
        yield node
    elif not _lengthens(node):
        for part in n.inputs(node):
            yield from _unlengthened(part)


def _lengthens(node: n.Node) -> bool:
    if isinstance(node, n.Run):
        return sum(part.least for part in node.parts) > 1
    return (isinstance(node, n.Join) and node.op == "SEQ") or (isinstance(node, n.Repeat) and node.count > 1)


def _computes_head(rule: n.Rule, making: MadePositions) -> bool:
    where = [c for node in n.walk(rule.body) for c in n.conditions(node)]
    bound = {v for scan in n.scans(rule.body) for v in variables(*scan.args)}
    made = making.made(where, bound)
    made |= rule.totals.keys()
    if rule.since is not None and rule.since != "END" and any(isinstance(p, Apply) for p in walk_terms(rule.since)):
        return True
    return any(computes(a) or (isinstance(a, Build) and variables(a)) or variables(a) & made for a in rule.args)


def _check_windows(plan: Plan, group: list[Predicate], findings: Findings) -> None:
    for rule in plan.rules:
        for node in n.walk(rule.body) if rule.predicate in group else ():
            if isinstance(node, n.Every):
                message = f"windows by the clock stand in a rule of `{rule.type}`, which depends on itself"
                hint = "collect in a rule of its own, that nothing in the cycle reads"
                findings.add("E268", message, node.span, hint=hint)


def _check_choices(plan: Plan, group: list[Predicate], findings: Findings) -> None:
    for rule in plan.rules:
        if rule.predicate in group and rule.top is not None:
            hint = "rank in a rule of its own, that nothing in the cycle reads"
            findings.add("E266", f"TOP cannot rank `{rule.type}`, which depends on itself", rule.top.span, hint=hint)
        if rule.predicate in group and rule.at_most is not None:
            message = f"AT MOST cannot choose among events of `{rule.type}`, which depends on itself"
            hint = "throttle in a rule of its own, that nothing in the cycle reads"
            findings.add("E270", message, rule.at_most.span, hint=hint)


def _check_policies(plan: Plan, group: list[Predicate], findings: Findings) -> None:
    for rule in plan.rules:
        if rule.predicate not in group:
            continue
        for node in n.walk(rule.body):
            if (
                isinstance(node, n.Join)
                and node.policy != n.UNRESTRICTED
                and node.op != "SEQ"
                and recursive_parts(node, group)
            ):
                message = f"`{node.policy.name}` cannot select on {node.op}, which is recursive here"
                hint = f"only SEQ may be recursive under a policy; write `{node.op}[unrestricted]`"
                findings.add("E405", message, node.span, hint=hint)
