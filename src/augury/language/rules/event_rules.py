"""Event rules to the algebra: body, run, collects and head, whichever of the two styles a rule is written in."""

from __future__ import annotations

from dataclasses import replace

from augury.algebra import nodes as n
from augury.algebra.kinds import inner_absences, is_equation
from augury.algebra.terms import Const, Expr, Var, labels, plain_variables
from augury.algebra.window_lengths import bound_of
from augury.core.clock import SECOND, Duration
from augury.core.errors import Note
from augury.language.rules import syntax as s
from augury.language.rules.collecting import CollectDraft, CollectReader, aggregates_in, used_plainly
from augury.language.rules.expressions import ExpressionReader
from augury.language.rules.latest_keys import key_positions, with_any_value
from augury.language.rules.named_arguments import by_place
from augury.language.rules.patterns import PatternReader, read_policy
from augury.language.rules.read_runs import RunReader
from augury.language.rules.rule_bodies import THE_RUN, BodyReader, RuleBody
from augury.language.rules.run_parts import part_labels, run_literal
from augury.language.rules.show import show_node
from augury.language.rules.symbols import Symbols

_EVENTS = "#events"  # the label of the events beside windows by the clock


def read_head(symbols: Symbols, node: s.Node, arrow: str) -> tuple[str, tuple[s.Node, ...]] | None:
    """The name and the arguments; what cannot be a head is reported."""
    message = f"`{show_node(node)}` cannot be a head"
    match node:
        case s.CallTerm():
            return node.name, node.args
        case s.BareName():
            return node.text, ()
        case Var():
            message = f"`{node.name}` is a variable; a head is an event"
            hint = f"write `{node.name}()` or begin it with a small letter"
        case Const(value=Duration() | int() | float() | bool()):
            message = f"`{show_node(node)}` stands alone"
            hint = f"a window follows its full stop directly: `(…).{show_node(node)}`"
        case s.Binary(op="AND" | "OR"):
            hint = "a rule derives one event; write one rule for each"
        case s.Chain(operands=(s.CallTerm() | s.BareName(), *_), ops=("<=",)):
            hint = "the arrow of a rule is `<-`; `<=` compares"
        case _:
            hint = f"a rule is written `name(arguments) {arrow} body.`"
    symbols.findings.add("E217", message, node.span, hint=hint)
    return None


class EventRuleReader:
    """Reads one event rule."""

    def __init__(self, symbols: Symbols, statement: s.RuleStatement, default: n.Policy) -> None:
        self.symbols, self.statement = symbols, statement
        self.findings = symbols.findings
        self.policy = read_policy(statement.policy) if statement.policy else _fitting(default, statement)
        self.reader = ExpressionReader(symbols)
        self.patterns = PatternReader(self.reader, self.policy)

    def translate(self, counts: dict[str, int]) -> n.Rule | None:
        """The rule; `counts` says how many of its name there have been, by which it is labelled."""
        statement = self.statement
        head = read_head(self.symbols, statement.head, "<-")
        literals = BodyReader(self.patterns, statement.body, s.variable_counts(statement))
        run = self._run(statement)
        body = literals.read()
        having = self._having(body, run)
        if run is not None:
            self._finish_run(run, body)
        elif statement.choice is not None and self.findings.sound(statement.span):
            message = "PER, ALL, LONGEST, SHORTEST and SKIP belong to a run, and the rule has none"
            hint = "a run is a chain with NEXT, THEN, a quantifier or a label: `a(I) NEXT b(I)+`"
            self.findings.add("E240", message, statement.choice.span, hint=hint)
        self._check_anchors(body.relatives)
        self._check_lengths(body)
        body.relatives = _in_order(self._bounded(body))
        if not body.patterns and self.findings.sound(statement.span):
            self._no_event(statement)
        if not body.patterns or head is None:
            self.findings.unread.add(head[0] if head else "")
            return None
        groups = self._groups(body, self._join(body.patterns), having)
        node = self._with_windows(body, having)
        where = (*body.relatives, *body.conditions)
        if where:
            node = n.Select(node, where, statement.span)
        name = head[0]
        counts[name] = counts.get(name, 0) + 1
        label = statement.label or (name if counts[name] == 1 else f"{name}#{counts[name]}")
        covers = tuple(r.label for r in body.relatives)
        makes = statement.makes if statement.makes != "event" else ""
        type, of = (n.made_type(name, makes), name) if makes else (name, "")
        reader = replace(self.reader, may_aggregate=bool(body.collects) or run is not None)
        args = self._arguments(reader, *head)
        since = statement.since if statement.since in (None, "END") else reader.value(statement.since)  # type: ignore[arg-type]
        by = reader.value(statement.top.by) if statement.top else None
        if run is not None:
            others = [*([] if by is None else [by]), *([] if since is None or since == "END" else [since])]
            (args, values), node = self._head_of_run(run, args, others, node, bool(body.collects))
            by = None if by is None else values.pop(0)
            since = values.pop(0) if values else since
        latest, at_most = key_positions(statement, args, self.findings), self._at_most(reader)
        rule = n.Rule(
            label, type, args, node, covers, (), statement.span, of, (), self._top(by), at_most, since, latest=latest
        )
        return rule if groups is None else self._grouped(rule, groups)

    def _arguments(self, reader: ExpressionReader, name: str, args: tuple[s.Node, ...]) -> tuple[Expr, ...]:
        """The arguments of the head, each of its declared type."""
        makes_facts = self.statement.makes != "event"
        declared = self.symbols.static.get(name) if makes_facts else self.symbols.events.get(name)
        args = by_place(name, args, declared, self.findings, in_head=True)
        if self.statement.makes == "no fact" and name in self.symbols.latest:
            args = tuple(map(with_any_value, args))
        types = [a.type for a in declared.attributes] if declared else []
        types += ["any"] * len(args)
        return tuple(reader.head_argument(a, t) for a, t in zip(args, types, strict=False))

    def _grouped(self, rule: n.Rule, groups: CollectReader) -> n.Rule:
        """The rule with what it collects, and variables for the aggregates over that."""
        plain, asked = plain_variables(*rule.args), {v for c in groups.having for v in used_plainly(c)}
        used = plain_variables(*rule.values) | asked | rule.per
        since = rule.since if rule.since is None or rule.since == "END" else groups.resolved(rule.since)
        resolved = replace(
            rule,
            args=tuple(groups.resolved(a) for a in rule.args),
            since=since,
            top=rule.top and replace(rule.top, by=groups.resolved(rule.top.by)),
            having=tuple(n.mapped_condition(c, groups.resolved) for c in groups.having),
        )
        sound = self.findings.sound(self.statement.head.span)
        return replace(resolved, collects=groups.collects(used, used - (asked - plain), sound))

    def _top(self, by: Expr | None) -> n.Top | None:
        top = self.statement.top
        if top is None or by is None:
            return None
        if top.count == 0:
            self.findings.add("E225", "TOP 0 keeps nothing", top.span.part(r"\d+"), hint="take at least one")
        position = top.place.name if top.place else None
        per = tuple(v.name for v in top.per)
        return n.Top(top.count, by, top.ascending, top.ties, per, position, top.span)

    def _at_most(self, reader: ExpressionReader) -> n.AtMost | None:
        at_most = self.statement.at_most
        if at_most is None:
            return None
        if at_most.count == 0:
            self.findings.add("E225", "AT MOST 0 keeps nothing", at_most.span.part(r"\d+"), hint="give at least one")
        every = None if at_most.every is None else reader.length(at_most.every)
        if every == 0:
            hint = "write `EVERY 10min`, or leave it out: at most so many at all"
            self.findings.add("E270", "EVERY needs a length of time", at_most.span.part(r"\bevery\b.*"), hint=hint)
        return n.AtMost(at_most.count, tuple(v.name for v in at_most.per), every, at_most.span)

    def _run(self, statement: s.RuleStatement) -> RunReader | None:
        """The run of the rule, its parts read."""
        result = [run for literal in statement.body if (run := run_literal(literal)) is not None]
        for other in result[1:]:
            hint = "give each a rule of its own, and join their events"
            self.findings.add(
                "E232", "a rule has one run", other.span, Note("the other one", result[0].span), hint=hint
            )
        if len(result) != 1:
            return None
        self.reader.counted_labels.update(labelled.label for labelled in part_labels(result[0]))
        return RunReader(self.patterns, result[0], statement.choice)

    def _finish_run(self, run: RunReader, body: RuleBody) -> None:
        """Puts the run where its literal stands, with its conditions, and checks what stands beside it."""
        index = next((i for i, p in enumerate(body.patterns) if p is THE_RUN), None)
        if index is None or not run.ok:
            body.patterns.clear()
            return
        others = [p for p in body.patterns if p is not THE_RUN]
        choice = self.statement.choice
        has_others = others or body.relatives or body.collects or inner_absences(body.conditions)
        if choice is not None and (choice.which in ("LONGEST", "SHORTEST") or choice.skip is not None) and has_others:
            message = "a run with LONGEST, SHORTEST or SKIP stands alone in its rule, with conditions"
            hint = "give the run a rule of its own, and use its event here"
            self.findings.add("E232", message, choice.span, hint=hint)
        if self.statement.policy is not None and not others:
            hint = "what follows is said by NEXT, THEN and SEQ, LONGEST and SHORTEST"
            self.findings.add("E229", "POLICY does not apply to a run", self.statement.policy.span, hint=hint)
        foreign = {v for p in others for v in n.bound_vars(p)} if others else None
        body.conditions = run.assign(body.conditions, foreign)
        if choice is not None and choice.which in ("LONGEST", "SHORTEST") and not has_others:
            for condition in body.conditions:
                message = f"the condition is on the whole run, which {choice.which} chooses first"
                hint = "give the run a window, or use the times of its parts: `last(end(u)) - start(a)`"
                self.findings.add("E240", message, condition.span, hint=hint)
        run.check_others([*others, *(c.pattern for c in inner_absences(body.conditions))])
        for relative in body.relatives:
            run.check_anchor(relative)
        node = run.node()
        if node is None:
            body.patterns.clear()
        else:
            body.patterns[index] = node

    def _head_of_run(
        self, run: RunReader, args: tuple[Expr, ...], others: list[Expr], node: n.Node, collects: bool
    ) -> tuple[tuple[tuple[Expr, ...], list[Expr]], n.Node]:
        """The head, and `others` of TOP and SINCE, with variables for the aggregates over iterations; the body binds them."""
        if self.statement.choice is None or self.statement.choice.per is None:
            for value in (*args, *others) if not collects else ():
                run.check_implicit_key(value)
        args = tuple(run.resolved(arg, collects=collects) for arg in args)
        others = [run.resolved(value, collects=collects) for value in others]
        run.check_bare(args, "the head")
        per = [clause.per for clause in (self.statement.top, self.statement.at_most) if clause is not None]
        run.check_bare((*others, *(v for some in per for v in some)), "the end of the rule")
        return (args, others), run.finished(node)

    def _no_event(self, statement: s.RuleStatement) -> None:
        if any(isinstance(x, s.While | s.Last) for x in statement.body):
            hint = "`collect` looks back from a labelled event: `o: order(N), last 5: collect …`"
        elif tests := [x.name for x in statement.body if isinstance(x, s.CallTerm) and self.symbols.is_test(x.name)]:
            hint = f"`{tests[0]}` is a function; if it is an event of yours, declare it: `event {tests[0]}(…).`"
        elif any(isinstance(x, s.CallTerm | s.BareName) for x in statement.body):
            hint = "a rule over static predicates is written with `:-`"
        else:
            hint = "name the event that the rule waits for"
        self.findings.add("E221", "the body of an event rule has no event", statement.head.span, hint=hint)

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

    def _bounded(self, body: RuleBody) -> list[n.Relative]:
        """The windows with the greatest length that each may have."""
        second = self.symbols.tick or SECOND
        return [
            r if isinstance(r.length, int) else replace(r, bound=bound_of(r, body.conditions, second))
            for r in body.relatives
        ]

    def _check_lengths(self, body: RuleBody) -> None:
        """A length is made of what is known when the events are: not of windows, nor of what is collected."""
        later = {r.label for r in body.relatives} | body.windows.keys() | body.sessions
        later |= {literal.label for literal in body.collects if literal.label}
        for relative in body.relatives:
            if isinstance(relative.length, int):
                continue
            for label in sorted(labels(relative.length) & later):
                message = f"the length of `{relative.label}` uses the time of `{label}`, which is no event of the rule"
                hint = "use times of labelled events, and variables that events and facts bind"
                self.findings.add("E224", message, relative.span, hint=hint)

    def _having(self, body: RuleBody, run: RunReader | None) -> list[n.Condition]:
        """The conditions on what is collected as a whole; those with an aggregate over iterations belong to the run."""
        if not body.collects:
            return []
        result = [c for c in body.conditions if any(run is None or not run.ranges(a) for a in aggregates_in(c))]
        body.conditions = [c for c in body.conditions if c not in result]
        return result

    def _groups(self, body: RuleBody, positive: n.Node, having: list[n.Condition]) -> CollectReader | None:
        """What the rule collects; conditions on it are taken from those of the body."""
        drafts: list[CollectDraft] = []
        for literal in body.collects:
            if isinstance(literal, s.While):
                self.reader.known_label(literal.window, literal.span.part(r"^\w+\s+(?P<it>\w+)"))
            elif literal.count == 0:
                self.findings.add(
                    "E225", "`last 0` collects nothing", literal.span.part(r"\d+"), hint="collect at least one"
                )
            pattern = self._collected(literal)
            if pattern is not None:
                drafts.append(CollectDraft(literal, pattern))
        if not drafts:
            return None
        return CollectReader(drafts, positive, body.conditions, having, self.findings)

    def _collected(self, literal: s.While | s.Last) -> n.Node | None:
        """What a collect reads."""
        if not s.is_holding(literal.body):
            return self.patterns.pattern(literal.body)
        hint = "write `while w: collect x: holding p(X)`"
        names = {x.name for x in s.walk(literal.body) if isinstance(x, s.CallTerm)}
        self.findings.unread |= names if isinstance(literal, s.Last) or literal.label is None else set()
        if isinstance(literal, s.Last):
            self.findings.add("E277", "intervals of facts are collected in a window", literal.span, hint=hint)
            return None
        if literal.label is None:
            self.findings.add("E277", "what `holding` collects has no label", literal.body.span, hint=hint)
            return None
        return self.patterns.holding(literal.body)

    def _with_windows(self, body: RuleBody, having: list[n.Condition]) -> n.Node:
        """The patterns joined. Facts beside windows by the clock are asked at the end of the events, if there are any."""
        events = [p for p in body.patterns if not _is_window(p)]
        if not (body.windows or body.sessions) or not events:
            return self._join(body.patterns)
        node = self._join(events)
        first = self._on_events(body, n.bound_vars(node))
        if first:
            node = n.Select(node, tuple(first), self.statement.span)
            body.conditions = [c for c in body.conditions if c not in first]
        if any(
            isinstance(part, n.Holds | n.Unless) for c in (*body.conditions, *having) for part in n.walk_condition(c)
        ):
            node = n.Label(_EVENTS, node, self.statement.span, interval=True)
            body.conditions = [n.asked_at(c, _EVENTS) for c in body.conditions]
            having[:] = [n.asked_at(c, _EVENTS) for c in having]
        for window in (p for p in body.patterns if _is_window(p)):
            node = n.Join("AND", node, window, span=self.statement.span)
        return node

    @staticmethod
    def _on_events(body: RuleBody, bound: set[str]) -> list[n.Condition]:
        """The conditions that need nothing of a window: no time of one, and no variable that is computed from one."""
        of_windows = set(body.windows) | body.sessions | {r.label for r in body.relatives}
        keys = {v for p in body.patterns if _is_window(p) for v in n.bound_vars(p)} - bound
        late = [
            c
            for c in body.conditions
            if n.condition_labels(c) & of_windows or n.condition_vars(c) & keys or isinstance(c, n.NoneInside)
        ]
        first = [c for c in body.conditions if c not in late]
        while first:
            equations = [c for c in late if is_equation(c)]
            computed = {v for c in equations for v in n.condition_vars(c)} - bound
            more = [c for c in first if n.condition_vars(c) & computed]
            if not more:
                break
            late += more
            first = [c for c in first if c not in more]
        return first

    def _join(self, patterns: list[n.Node]) -> n.Node:
        """Literals side by side are an AND: the interval covers them all."""
        node = patterns[0]
        for pattern in patterns[1:]:
            node = n.Join("AND", node, pattern, policy=self.policy, span=self.statement.span)
        return node


def _in_order(relatives: list[n.Relative]) -> list[n.Relative]:
    """Each after the one that it is counted from."""
    left, done = list(relatives), []
    while left:
        waiting = {r.label for r in left}
        ready = [r for r in left if r.anchor not in waiting] or left
        done += ready
        left = [r for r in left if r not in ready]
    return done


def _is_window(pattern: n.Node) -> bool:
    return isinstance(pattern, n.Label) and isinstance(pattern.input, n.Every | n.SessionWindow)


def _fitting(policy: n.Policy, statement: s.RuleStatement) -> n.Policy:
    """The program's policy; variables that the rule does not have say nothing about it."""
    names = {part.name for literal in statement.body for part in s.walk(literal) if isinstance(part, Var)}
    by = policy.by if policy.by in names else None
    return replace(
        policy,
        by=by,
        ties=policy.ties if by == policy.by else "longest",
        per=tuple(v for v in policy.per if v in names),
    )
