"""Syntax tree to algebra: each statement becomes declarations, clauses or a rule; both styles of rules become one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from augury.algebra import nodes as n
from augury.algebra.aggregates import AggregateFunction
from augury.algebra.graph_queries import GraphQuery
from augury.algebra.plan import Attribute, Plan
from augury.algebra.scalar import Function
from augury.algebra.terms import Apply, Const, Var, Wild, walk
from augury.core.clock import Duration
from augury.core.errors import Findings, Note, Span
from augury.language.rules import syntax as s
from augury.language.rules.alternatives import read_alternatives
from augury.language.rules.event_rules import EventRuleReader, read_head
from augury.language.rules.expressions import ExpressionReader
from augury.language.rules.named_arguments import by_place
from augury.language.rules.patterns import read_policy
from augury.language.rules.symbols import Symbols, collect_symbols, known_type, statements

__all__ = ["read_policy", "translate"]


def translate(
    modules: list[s.Module],
    findings: Findings,
    functions: Mapping[str, Function] = {},
    aggregates: Mapping[str, AggregateFunction] = {},
    facts: Iterable[str] = (),
    policy: n.Policy | None = None,
    graph_queries: tuple[GraphQuery, ...] = (),
) -> Plan:
    """The plan of a program, conditions as written. `policy` stands in where the program names none."""
    symbols = collect_symbols(modules, findings, functions, aggregates, facts, graph_queries)
    default, outputs, output_seen = policy or n.UNRESTRICTED, [], False
    for statement in statements(modules):
        match statement:
            case s.PolicyDecl():
                default = read_policy(statement.policy)
            case s.TickDecl():
                assert isinstance(statement.length.value, Duration)
                symbols.tick = statement.length.value.us
                if symbols.tick == 0:
                    findings.add(
                        "E215", "a tick must be longer than zero", statement.length.span, hint="write `tick 1ms.`"
                    )
                    symbols.tick = None
            case s.OutputDecl():
                output_seen = True
                for name in statement.names:
                    if name.text in symbols.heads:
                        outputs.append(name.text)
                    else:
                        hint = "an output is an event that some rule derives"
                        symbols.unknown("derived event", name.text, name.span, symbols.heads, hint)
    _doubt_before_loose_windows(modules, findings)
    rules: list[n.Rule] = []
    clauses: list[n.Clause] = []
    counts: dict[str, int] = {}
    labels: dict[str, Span] = {}
    for statement in statements(modules):
        match statement:
            case s.RuleStatement():
                rule = EventRuleReader(symbols, statement, default).translate(counts)
                if rule is not None:
                    _unique_label(rule, labels, findings)
                    rules.append(rule)
            case s.StaticRule():
                clause = _clause(symbols, statement)
                if clause is not None:
                    clauses.extend(read_alternatives(clause))
    return Plan(
        tuple(rules),
        tuple(clauses),
        {name: _attributes(decl) for name, decl in symbols.events.items()},
        {name: _attributes(decl) for name, decl in symbols.static.items()},
        tuple(outputs) if output_seen else _derived(rules, graph_queries),
        symbols.tick,
        symbols.functions,
        symbols.aggregates,
        symbols.prefixes,
        queries=symbols.queries,
        graph_queries=graph_queries,
    )


def _derived(rules: Iterable[n.Rule], queries: Iterable[GraphQuery]) -> tuple[str, ...]:
    """All types that rules and queries derive."""
    types = [query.predicate[0] for query in queries if not query.inside] + [
        rule.type for rule in rules if not rule.makes
    ]
    return tuple(dict.fromkeys(types))


def _doubt_before_loose_windows(modules: list[s.Module], findings: Findings) -> None:
    """`(a SEQ b). 10min.` is two statements; of the first, nothing is said that the window would change."""
    for module in modules:
        for before, after in pairwise(module.statements):
            if isinstance(after, s.StaticRule) and isinstance(after.head, Const):
                findings.doubt(before.span)


def _attributes(decl: s.EventDecl | s.StaticDecl) -> tuple[Attribute, ...]:
    return tuple(Attribute(a.name, known_type(a.type), column=a.column) for a in decl.attributes)


def _unique_label(rule: n.Rule, labels: dict[str, Span], findings: Findings) -> None:
    if rule.label in labels:
        message = f"two rules are labelled `{rule.label}`"
        findings.add("E216", message, _label_of(rule.span), Note("the other one", _label_of(labels[rule.label])))
    labels[rule.label] = rule.span


def _label_of(rule: Span) -> Span:
    return rule.part(r"^rule\s+(?P<it>\w+)")


def _clause(symbols: Symbols, statement: s.StaticRule) -> n.Clause | None:
    head = read_head(symbols, statement.head, ":-")
    if head is None:
        return None
    name, head_args = head
    reader = ExpressionReader(symbols, in_static_rule=True)
    head_args = by_place(name, head_args, symbols.static.get(name), symbols.findings, in_head=True)
    body: list[n.Condition] = []
    matched: list[s.Node] = []
    for number, node in enumerate(_named_wildcards(list(head_args))):
        if isinstance(node, s.Arith) or (isinstance(node, s.CallTerm) and node.name in symbols.functions):
            # `f(X, X + 1) :- n(X)` is `f(X, Y) :- n(X), Y = X + 1`.
            value = Var(f"_{name}{number}", node.span)
            body.append(n.Compare("=", value, reader.value(node), node.span))
            matched.append(value)
        else:
            matched.append(node)
    args = reader.static_args(name, tuple(matched))
    cut = False
    for index, literal in enumerate(statement.body):
        match literal:
            case s.Cut():
                cut = True
                if index != len(statement.body) - 1:
                    hint = "conditions after `!` belong in another rule"
                    symbols.findings.add("E218", "a cut stands at the end of a body", literal.span, hint=hint)
            case s.Binary(op="AND" | "OR"):
                body.extend(reader.conditions(literal))
            case s.Binary() | s.Labelled() | s.While() | s.Last() | s.Where() | s.Window() | s.Power():
                hint = "event rules use `<-`"
                symbols.findings.add("E219", "a static rule cannot hold an event pattern", literal.span, hint=hint)
            case _:
                body.extend(reader.conditions(literal))
    for condition in body:
        for part in (p for term in n.condition_terms(condition) for p in walk(term)):
            if isinstance(part, Apply) and not part.pure:
                message = f"`{part.function}` is not pure: the answers of a static rule must not depend on when it is evaluated"
                hint = "call it in the event rule"
                symbols.findings.add("E231", message, part.span or statement.span, hint=hint)
    return n.Clause(name, args, tuple(body), cut, statement.span)


def _named_wildcards(args: list[s.Node]) -> list[s.Node]:
    """The arguments of a clause's head with a variable of its own for each `_`, so that a call can give it a value."""
    count = 0

    def named(node: s.Node) -> s.Node:
        nonlocal count
        match node:
            case Wild():
                count += 1
                return Var(f"_any{count}", node.span)
            case s.CallTerm():
                return replace(node, args=tuple(named(a) for a in node.args))
        return node

    return [named(arg) for arg in args]
