"""Syntax tree to algebra: each statement becomes declarations, clauses or a rule; both styles of rules become one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from augury.algebra import nodes as n
from augury.algebra.aggregates import AggregateFunction
from augury.algebra.clock_windows import Windows
from augury.algebra.graph_queries import GraphQuery
from augury.algebra.plan import Attribute, Plan
from augury.algebra.relations import OPERATORS, RELATIONS, RELATIVE
from augury.algebra.scalar import Function
from augury.algebra.terms import Apply, Const, Expr, Var, Wild, plain_variables, walk
from augury.clock import Duration, show_duration
from augury.errors import Findings, Note, Span, misspelt
from augury.language.rules import syntax as s
from augury.language.rules.collecting import Draft, Groups, aggregates_in, used_plainly
from augury.language.rules.expressions import Expressions
from augury.language.rules.named_arguments import by_place
from augury.language.rules.patterns import Patterns, read_policy
from augury.language.rules.read_runs import Runs, part_labels, run_literal
from augury.language.rules.read_windows import ELSEWHERE, WindowReader
from augury.language.rules.show import show_node
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
            case s.Tick():
                assert isinstance(statement.length.value, Duration)
                symbols.tick = statement.length.value.us
                if symbols.tick == 0:
                    findings.add("E215", "a tick cannot last no time", statement.length.span, hint="write `tick 1ms.`")
                    symbols.tick = None
            case s.Output():
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
            case s.EventRule():
                rule = _EventRule(symbols, statement, default).translate(counts)
                if rule is not None:
                    _unique_label(rule, labels, findings)
                    rules.append(rule)
            case s.StaticRule():
                clause = _clause(symbols, statement)
                if clause is not None:
                    clauses.append(clause)
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
    return tuple(Attribute(a.name, known_type(a.type)) for a in decl.attributes)


def _unique_label(rule: n.Rule, labels: dict[str, Span], findings: Findings) -> None:
    if rule.label in labels:
        message = f"two rules are labelled `{rule.label}`"
        findings.add("E216", message, _label_of(rule.span), Note("the other one", _label_of(labels[rule.label])))
    labels[rule.label] = rule.span


def _label_of(rule: Span) -> Span:
    return rule.part(r"^rule\s+(?P<it>\w+)")


def _head(symbols: Symbols, node: s.Node, arrow: str) -> tuple[str, tuple[s.Node, ...]] | None:
    message = f"`{show_node(node)}` cannot be a head"
    match node:
        case s.Call():
            return node.name, node.args
        case s.Name():
            return node.text, ()
        case Var():
            message = f"`{node.name}` is a variable; a head is an event"
            hint = f"write `{node.name}()` or begin it with a small letter"
        case Const(value=Duration() | int() | float() | bool()):
            message = f"`{show_node(node)}` stands alone"
            hint = f"a window follows its full stop directly: `(…).{show_node(node)}`"
        case s.Binary(op="AND" | "OR"):
            hint = "a rule derives one event; write one rule for each"
        case s.Chain(operands=(s.Call() | s.Name(), *_), ops=("<=",)):
            hint = "the arrow of a rule is `<-`; `<=` compares"
        case _:
            hint = f"a rule is written `name(arguments) {arrow} body.`"
    symbols.findings.add("E217", message, node.span, hint=hint)
    return None


def _clause(symbols: Symbols, statement: s.StaticRule) -> n.Clause | None:
    head = _head(symbols, statement.head, ":-")
    if head is None:
        return None
    name, head_args = head
    reader = Expressions(symbols, in_static_rule=True)
    head_args = by_place(name, head_args, symbols.static.get(name), symbols.findings, in_head=True)
    body: list[n.Condition] = []
    matched: list[s.Node] = []
    for number, node in enumerate(_named_wildcards(list(head_args))):
        if isinstance(node, s.Arith) or (isinstance(node, s.Call) and node.name in symbols.functions):
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
                message = f"`{part.function}` is not pure: what a static rule says must not hang on when it is asked"
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
            case s.Call():
                return replace(node, args=tuple(named(a) for a in node.args))
        return node

    return [named(arg) for arg in args]


def _in_order(relatives: list[n.Relative]) -> list[n.Relative]:
    """Each after the one that it is counted from."""
    left, done = list(relatives), []
    while left:
        waiting = {r.label for r in left}
        ready = [r for r in left if r.anchor not in waiting] or left
        done += ready
        left = [r for r in left if r not in ready]
    return done


_THE_RUN = n.Run(())  # stands for the run of a rule until all its conditions are read


def _with_results(node: n.Node, results: tuple[n.Result, ...]) -> n.Node:
    """The body with all aggregates that its run is asked for."""
    below = n.mapped(node, lambda part: _with_results(part, results))
    return replace(below, results=results) if isinstance(below, n.Run) else below


@dataclass
class _Body:
    """What the literals of a rule come to."""

    patterns: list[n.Node]
    conditions: list[n.Condition]
    relatives: list[n.Relative]
    collects: list[s.While | s.Last] = field(default_factory=list)
    windows: dict[str, Windows] = field(default_factory=dict)  # those by the clock, by their labels
    previous: list[n.Relative] = field(default_factory=list)


def _collecting(literal: s.Node) -> s.While | s.Last | None:
    """The literal, where it collects."""
    match literal:
        case s.Last() | s.While(collect=True):
            return literal
    return None


def _is_window(pattern: n.Node) -> bool:
    return isinstance(pattern, n.Label) and isinstance(pattern.input, n.Every)


def _fitting(policy: n.Policy, statement: s.EventRule) -> n.Policy:
    """The program's policy; variables that the rule does not have say nothing about it."""
    names = {part.name for literal in statement.body for part in s.walk(literal) if isinstance(part, Var)}
    by = policy.by if policy.by in names else None
    return replace(
        policy,
        by=by,
        ties=policy.ties if by == policy.by else "longest",
        per=tuple(v for v in policy.per if v in names),
    )


class _EventRule:
    """Reads one event rule."""

    def __init__(self, symbols: Symbols, statement: s.EventRule, default: n.Policy) -> None:
        self.symbols, self.statement = symbols, statement
        self.findings = symbols.findings
        self.policy = read_policy(statement.policy) if statement.policy else _fitting(default, statement)
        self.reader = Expressions(symbols)
        self.patterns = Patterns(self.reader, self.policy)
        self._runs = any(run_literal(literal) is not None for literal in statement.body)
        self._collects = any(_collecting(literal) is not None for literal in statement.body)

    def translate(self, counts: dict[str, int]) -> n.Rule | None:
        statement = self.statement
        head = _head(self.symbols, statement.head, "<-")
        self._define_labels(statement.body)
        run = self._run(statement)
        body = _Body([], [], [])
        for literal in statement.body:
            self._literal(literal, body)
        self._counted_back(body)
        having = self._having(body, run)
        if run is not None:
            self._finish_run(run, body)
        elif statement.choice is not None and self.findings.sound(statement.span):
            message = "PER, ALL, LONGEST, SHORTEST and SKIP belong to a run, and the rule has none"
            hint = "a run is a chain with NEXT, THEN or a quantifier: `a(I) NEXT b(I)+`"
            self.findings.add("E240", message, statement.choice.span, hint=hint)
        self._check_anchors(body.relatives)
        body.relatives = _in_order(body.relatives)
        if not body.patterns and self.findings.sound(statement.span):
            self._no_event(statement)
        if not body.patterns or head is None:
            self.findings.unread.add(head[0] if head else "")
            return None
        node = self._with_windows(body)
        groups = self._groups(body, node, having)
        where = (*body.relatives, *body.conditions)
        if where:
            node = n.Select(node, where, statement.span)
        name, head_args = head
        reader = replace(self.reader, may_aggregate=bool(body.collects) or run is not None)
        makes = statement.makes if statement.makes != "event" else ""
        declared = self.symbols.static.get(name) if makes else self.symbols.events.get(name)
        head_args = by_place(name, head_args, declared, self.findings, in_head=True)
        types = [a.type for a in declared.attributes] if declared else []
        types += ["any"] * len(head_args)
        args = tuple(reader.head_argument(a, t) for a, t in zip(head_args, types, strict=False))
        since = statement.since if statement.since in (None, "END") else reader.value(statement.since)  # type: ignore[arg-type]
        by = reader.value(statement.top.by) if statement.top else None
        if run is not None:
            args, node = self._head_of_run(run, args, node, bool(body.collects))
        asked = tuple(groups.having) if groups else ()
        collects: tuple[n.Collect, ...] = ()
        if groups is not None:
            plain = plain_variables(*args)
            used = plain.union(*(used_plainly(c) for c in asked))
            used |= {v.name for v in statement.top.per} if statement.top else set()
            used |= {v for e in (since, by) if e is not None and e != "END" for v in plain_variables(e)}
            args = tuple(groups.resolved(a) for a in args)
            since = since if since is None or since == "END" else groups.resolved(since)
            by = by and groups.resolved(by)
            only = {v for c in asked for v in used_plainly(c)} - plain
            asked = tuple(n.mapped_condition(c, groups.resolved) for c in asked)
            collects = groups.collects(used, used - only, self.findings.sound(statement.head.span))
        counts[name] = counts.get(name, 0) + 1
        label = statement.label or (name if counts[name] == 1 else f"{name}#{counts[name]}")
        covers = tuple(r.label for r in body.relatives)
        type = n.made_type(name, makes) if makes else name
        of = name if makes else ""
        return n.Rule(label, type, args, node, covers, collects, statement.span, of, asked, self._top(by), since)

    def _top(self, by: Expr | None) -> n.Top | None:
        top = self.statement.top
        if top is None or by is None:
            return None
        if top.count == 0:
            self.findings.add("E225", "the first 0 are none", top.span.part(r"\d+"), hint="take at least one")
        place = top.place.name if top.place else None
        return n.Top(top.count, by, top.ascending, tuple(v.name for v in top.per), place, top.span)

    def _run(self, statement: s.EventRule) -> Runs | None:
        """The run of the rule, its parts read."""
        found = [run for literal in statement.body if (run := run_literal(literal)) is not None]
        for other in found[1:]:
            hint = "give each a rule of its own, and join their events"
            self.findings.add("E232", "a rule has one run", other.span, Note("the other one", found[0].span), hint=hint)
        if len(found) != 1:
            return None
        self.reader.counted_labels.update(labelled.label for labelled in part_labels(found[0]))
        return Runs(self.patterns, found[0], statement.choice)

    def _finish_run(self, run: Runs, body: _Body) -> None:
        """Puts the run where its literal stands, with its conditions, and checks what stands beside it."""
        at = next((i for i, p in enumerate(body.patterns) if p is _THE_RUN), None)
        if at is None or not run.ok:
            body.patterns.clear()
            return
        others = [p for p in body.patterns if p is not _THE_RUN]
        choice = self.statement.choice
        beside = (
            others or body.relatives or body.collects or [c for c in body.conditions if isinstance(c, n.NoneInside)]
        )
        if choice is not None and (choice.which in ("LONGEST", "SHORTEST") or choice.skip is not None) and beside:
            message = "a run with LONGEST, SHORTEST or SKIP stands alone in its rule, with conditions"
            hint = "give the run a rule of its own, and use its event here"
            self.findings.add("E232", message, choice.span, hint=hint)
        if self.statement.policy is not None and not others:
            hint = "what follows is said by NEXT, THEN and SEQ, LONGEST and SHORTEST"
            self.findings.add("E229", "POLICY does not apply to a run", self.statement.policy.span, hint=hint)
        foreign = {v for p in others for v in n.bound_vars(p)} if others else None
        body.conditions = run.assign(body.conditions, foreign)
        if choice is not None and choice.which in ("LONGEST", "SHORTEST") and not beside:
            for condition in body.conditions:
                message = f"the condition is on the whole run, which {choice.which} chooses first"
                hint = "give the run a window, or use the times of its parts: `last(end(u)) - start(a)`"
                self.findings.add("E240", message, condition.span, hint=hint)
        run.check_others([*others, *(c.pattern for c in body.conditions if isinstance(c, n.NoneInside))])
        for relative in body.relatives:
            run.check_anchor(relative)
        node = run.node()
        if node is None:
            body.patterns.clear()
        else:
            body.patterns[at] = node

    def _head_of_run(
        self, run: Runs, args: tuple[Expr, ...], node: n.Node, collects: bool
    ) -> tuple[tuple[Expr, ...], n.Node]:
        """The head with variables for the aggregates over iterations, and the body that binds them."""
        known = len(run.results)
        if self.statement.choice is None or self.statement.choice.per is None:
            for arg in args if not collects else ():
                run.check_implicit_key(arg)
        args = tuple(run.resolved(arg, collects=collects) for arg in args)
        run.check_bare(args, "the head")
        return args, _with_results(node, tuple(run.results.values())) if len(run.results) > known else node

    def _no_event(self, statement: s.EventRule) -> None:
        if any(isinstance(x, s.While | s.Last) for x in statement.body):
            hint = "`collect` looks back from a labelled event: `o: order(N), last 5: collect …`"
        elif tests := [x.name for x in statement.body if isinstance(x, s.Call) and self._tests(x.name)]:
            hint = f"`{tests[0]}` is a function; if it is an event of yours, declare it: `event {tests[0]}(…).`"
        elif any(isinstance(x, s.Call | s.Name) for x in statement.body):
            hint = "a rule over static predicates is written with `:-`"
        else:
            hint = "name the event that the rule waits for"
        self.findings.add("E221", "the body of an event rule has no event", statement.head.span, hint=hint)

    def _define_labels(self, body: tuple[s.Node, ...]) -> None:
        for literal in body:
            run = run_literal(literal)
            collected = _collecting(literal)
            named = (
                s.Labelled(collected.label, collected.body, collected.span) if collected and collected.label else None
            )
            for labelled in (
                *([literal] if isinstance(literal, s.Labelled) else []),
                *(part_labels(run) if run else ()),
                *([named] if named else []),
            ):
                self._define_label(labelled)
            if named:
                self.reader.counted_labels.add(named.label)

    def _define_label(self, literal: s.Labelled) -> None:
        previous = self.reader.labels.get(literal.label)
        if previous is not None:
            message = f"the label `{literal.label}` is used twice"
            self.findings.add("E222", message, literal.span.part(r"\w+"), Note("used here first", previous))
        self.reader.labels.setdefault(literal.label, literal.span.part(r"\w+"))
        if isinstance(literal.body, s.Name | s.Call):
            name = literal.body.text if isinstance(literal.body, s.Name) else literal.body.name
            self.reader.labelled.setdefault(literal.label, name)

    def _check_anchors(self, relatives: list[n.Relative]) -> None:
        """Intervals counted from one another have no first one."""
        anchors = {r.label: r.anchor for r in relatives}
        for relative in relatives:
            way = [relative.label]
            while way[-1] in anchors and anchors[way[-1]] not in way:
                way.append(anchors[way[-1]])
            if anchors.get(way[-1]) == relative.label and self.findings.sound(relative.span):
                message = f"the interval `{relative.label}` is counted from itself"
                hint = "count from the label of an event"
                self.findings.add(
                    "E224", message, relative.span, Note("the cycle: " + " → ".join([*way, relative.label])), hint=hint
                )
                return

    # Literals

    def _literal(self, literal: s.Node, body: _Body) -> None:
        if run_literal(literal) is not None:
            body.patterns.append(_THE_RUN)
            return
        match literal:
            case s.Labelled(body=s.Call() as call) if call.name in RELATIVE:
                relative = self._relative(literal, call)
                if relative is not None:
                    body.relatives.append(relative)
            case s.Labelled(body=s.Call(name="every") as call) if not self.symbols.is_event("every"):
                windows = WindowReader(call, self.symbols.tick, self.findings).windows()
                if windows is not None:
                    body.windows[literal.label] = windows
                    body.patterns.append(n.Label(literal.label, n.Every(windows, call.span), literal.span))
            case s.Labelled(body=s.Call(name="previous") as call) if not self.symbols.is_event("previous"):
                self._previous(literal, call, body)
            case s.Labelled(body=s.Call() as call) if call.name.lower() in ELSEWHERE and self._a_length(call):
                message = f"`{call.name}` is not a word of the language"
                hint = "windows by the clock are `w: every(1h)`, and `w: every(1h, 5min)` where they hop"
                self.findings.add("E268", message, call.span.part(r"\w+"), hint=hint)
            case s.Labelled(body=s.Call() as call) if self._meant_relative(call):
                close = misspelt(call.name, RELATIVE)
                message = f"unknown relative temporal event `{call.name}`"
                hint = f"did you mean `{close}`?"
                self.findings.add("E201", message, call.span.part(r"\w+"), hint=hint)
            case s.Labelled():
                pattern = self.patterns.pattern(literal.body)
                if pattern is not None:
                    body.patterns.append(n.Label(literal.label, pattern, literal.span))
            case s.While(collect=False):
                self.reader.known_label(literal.window, literal.span.part(r"^\w+\s+(?P<it>\w+)"))
                pattern = self.patterns.pattern(literal.body)
                if pattern is not None:
                    body.conditions.append(n.NoneInside(literal.window, pattern, span=literal.span))
            case s.While() | s.Last():
                body.collects.append(literal)
            case s.Cut():
                hint = "to take one of several events, use a policy: `a SEQ[recent] b`"
                self.findings.add("E218", "a cut belongs to a static rule", literal.span, hint=hint)
            case s.Group() if not all(self._is_condition(item) for item in literal.items):
                hint = "write the literals without parentheses, or join patterns with AND"
                self.findings.add("E228", "a list of literals stands where one is expected", literal.span, hint=hint)
            case _ if self._is_condition(literal):
                reader = replace(self.reader, in_run=self._runs, may_aggregate=self._collects)
                body.conditions.extend(reader.conditions(literal))
            case _:
                pattern = self.patterns.pattern(literal)
                if pattern is not None:
                    body.patterns.append(pattern)

    def _is_condition(self, node: s.Node) -> bool:
        """Whether a literal tests or binds rather than matches events."""
        symbols, labels = self.symbols, self.reader.labels
        match node:
            case s.Chain() | s.Among() | s.Between() | s.WithinSet() | s.Group() | s.Not(between=None) | s.Was():
                return True
            case s.Binary(left=s.Name(text=left), right=s.Name(text=right)) if node.op.lower() in RELATIONS:
                return node.op not in OPERATORS or (left in labels and right in labels)
            case s.Binary(op="AND" | "OR"):
                return self._is_condition(node.left) and self._is_condition(node.right)
            case s.Call(name=name, args=args):
                if name == "sparql" and not symbols.is_event(name):
                    return True
                if symbols.is_property(name) and len(args) == 2:  # an event with such a name is declared, or derived
                    return True
                aggregate = symbols.aggregates.get(name) if self._collects or self._runs else None
                tests = self._tests(name) or (aggregate is not None and aggregate.result == "bool")
                return symbols.is_static(name) or (tests and not symbols.is_event(name))
            case s.Name(text=name):
                return symbols.is_static(name)
            case Const(value=bool()):
                return True
        return False

    def _tests(self, name: str) -> bool:
        """Whether a name is a function that is true or false."""
        function = self.symbols.functions.get(name)
        return function is not None and (
            function.result == "bool" or (function.registered and function.result == "any")
        )

    def _a_length(self, call: s.Call) -> bool:
        lengths = any(isinstance(a, Const) and isinstance(a.value, Duration) for a in call.args)
        return lengths and not self.symbols.is_event(call.name)

    def _previous(self, literal: s.Labelled, call: s.Call, body: _Body) -> None:
        """`v: previous(w)`, once all windows are read."""
        match call.args:
            case (s.Name() as anchor,) if self.reader.known_label(anchor.text, anchor.span):
                body.previous.append(n.Relative(literal.label, "previous", anchor.text, 0, literal.span))
            case (s.Name(),):
                pass
            case _:
                hint = f"write `{literal.label}: previous(w)`"
                self.findings.add("E268", "`previous` takes the label of a window by the clock", call.span, hint=hint)

    def _counted_back(self, body: _Body) -> None:
        """The windows that `previous` counts in; of a window before that one, the same."""
        for relative in body.previous:
            chain = {r.label: r.anchor for r in body.previous}
            anchor = relative.anchor
            while anchor in chain and anchor not in body.windows:
                anchor = chain[anchor] if chain[anchor] != relative.label else relative.label
                if anchor == relative.label:
                    break
            if anchor in body.windows:
                body.relatives.append(replace(relative, windows=body.windows[anchor]))
            elif self.findings.sound(relative.span):
                hint = "`previous` is the window before one of `every`"
                self.findings.add("E268", f"`{relative.anchor}` is no window by the clock", relative.span, hint=hint)

    def _meant_relative(self, call: s.Call) -> bool:
        """Whether `extends(o, 6h)` looks like a relative temporal event."""
        match call.args:
            case (s.Name(text=anchor), Const(value=Duration())) if anchor in self.reader.labels:
                return not self.symbols.is_event(call.name) and misspelt(call.name, RELATIVE) is not None
        return False

    def _relative(self, literal: s.Labelled, call: s.Call) -> n.Relative | None:
        match call.args:
            case (s.Name() as anchor, Const(value=Duration()) as length):
                if not self.reader.known_label(anchor.text, anchor.span):
                    return None
                tick = self.symbols.tick
                if tick is not None and self.reader.length(length) % tick:
                    message = f"{length.span.quoted} is not a whole number of ticks of {show_duration(tick)}"
                    hint = "declare a finer tick"
                    self.findings.add("E224", message, length.span, hint=hint)
                    return None
                return n.Relative(literal.label, call.name, anchor.text, self.reader.length(length), literal.span)
            case (s.Name() as anchor, Const(value=int() | float()) as length):
                if self.symbols.tick is None:
                    hint = f"write `{show_node(length)}s` or `{show_node(length)}min`; ticks count where the program declares `tick`"
                    self.findings.add("E224", "a duration needs a unit", length.span, hint=hint)
                    return None
                if self.reader.known_label(anchor.text, anchor.span):
                    return n.Relative(literal.label, call.name, anchor.text, self.reader.length(length), literal.span)
                return None
        hint = f"write `{literal.label}: {call.name}(o, 6h)`"
        self.findings.add("E224", f"`{call.name}` takes a label and a duration", call.span, hint=hint)
        return None

    def _having(self, body: _Body, run: Runs | None) -> list[n.Condition]:
        """The conditions on what is collected as a whole; those with an aggregate over iterations belong to the run."""
        if not body.collects:
            return []
        found = [c for c in body.conditions if any(run is None or not run.ranges(a) for a in aggregates_in(c))]
        body.conditions = [c for c in body.conditions if c not in found]
        return found

    def _groups(self, body: _Body, positive: n.Node, having: list[n.Condition]) -> Groups | None:
        """What the rule collects; conditions on it are taken from those of the body."""
        drafts: list[Draft] = []
        for literal in body.collects:
            if isinstance(literal, s.While):
                self.reader.known_label(literal.window, literal.span.part(r"^\w+\s+(?P<it>\w+)"))
            elif literal.count == 0:
                self.findings.add("E225", "the last 0 are none", literal.span.part(r"\d+"), hint="collect at least one")
            pattern = self.patterns.pattern(literal.body)
            if pattern is not None:
                drafts.append(Draft(literal, pattern))
        if not drafts:
            return None
        return Groups(drafts, positive, body.conditions, having, self.findings)

    def _with_windows(self, body: _Body) -> n.Node:
        """The patterns joined. Facts beside windows by the clock are asked at the end of the events, if there are any."""
        events = [p for p in body.patterns if not _is_window(p)]
        if not body.windows or not events:
            return self._join(body.patterns)
        node = self._join(events)
        of_windows = set(body.windows) | {r.label for r in body.relatives}
        late = [c for c in body.conditions if n.condition_labels(c) & of_windows or isinstance(c, n.NoneInside)]
        named = {v for c in late for v in n.condition_vars(c)} - n.bound_vars(node)
        first = [c for c in body.conditions if c not in late and not n.condition_vars(c) & named and not body.collects]
        if first:
            node = n.Select(node, tuple(first), self.statement.span)
            body.conditions = [c for c in body.conditions if c not in first]
        for window in (p for p in body.patterns if _is_window(p)):
            node = n.Join("AND", node, window, span=self.statement.span)
        return node

    def _join(self, patterns: list[n.Node]) -> n.Node:
        """Literals side by side are an AND: the interval covers them all."""
        node = patterns[0]
        for pattern in patterns[1:]:
            node = n.Join("AND", node, pattern, policy=self.policy, span=self.statement.span)
        return node
