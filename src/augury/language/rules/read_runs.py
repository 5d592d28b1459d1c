"""Syntax to runs (SEMANTICS 10): which part each condition belongs to, and the aggregates over iterations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, cast

from augury.algebra import nodes as n
from augury.algebra.ready import binds, ready_order
from augury.algebra.run_terms import (
    asked_of,
    events_of,
    in_turn,
    outer_variables,
    part_variables,
    without_idle_iterations,
)
from augury.algebra.terms import (
    Aggregate,
    Expr,
    Moment,
    Prev,
    Var,
    mapped_term,
    outside_aggregates,
    plain_variables,
    show,
    variables,
)
from augury.algebra.terms import walk as walk_terms
from augury.core.errors import Note, Span
from augury.language.rules import syntax as s
from augury.language.rules.collecting import counted_label
from augury.language.rules.patterns import PatternReader
from augury.language.rules.run_parts import OWN_RULE, GapDraft, PartDraft, RunLiteral, RunParts


class RunReader(RunParts):
    """Reads the run of a rule: its conditions, and what is aggregated over its iterations."""

    def __init__(self, patterns: PatternReader, literal: RunLiteral, choice: s.Choice | None) -> None:
        super().__init__(patterns, literal, choice)
        self.results: dict[str, n.RunResult] = {}
        self.where: list[n.Condition] = []

    def assign(self, others: list[n.Condition], foreign: set[str] | None) -> list[n.Condition]:
        """Gives every condition of the run its place; of the `others` in the body, those that it does not take.

        `foreign` are the variables of other events of the body, None where there is none. Beside other events, facts are
        seen at the end of all of them, so only what needs the iterations, or a part that may be left out, is taken.
        """
        reader = replace(self.reader, in_run=True)
        written = [*((draft, draft.written) for draft in self.drafts), (None, self.literal.conditions)]
        every = [(draft, c) for draft, nodes in written for node in nodes for c in reader.conditions(node)]
        for gap in self.gaps:
            gap.where = [c for node in gap.written for c in reader.conditions(node)]
        if self.choices:
            others = self._with_alternatives(every, others)
        left = list(others)
        while True:
            taken = [c for c in left if self._takes(c, foreign)]
            left = [c for c in left if c not in taken]
            every += [(None, c) for c in taken]
            if not self._bind_own([c for _, c in every]) and not taken:
                break
        for draft, condition in every:
            self._take_to_gap(draft, condition)
        in_gaps = [c for gap in self.gaps for c in gap.where]
        every = [(draft, c) for draft, c in every if c not in in_gaps]
        if self.choice.per is None and len(self.drafts) > 1:
            for term in (t for _, c in every for t in n.condition_terms(c)):
                self.check_implicit_key(term)
        for draft, condition in every:
            self._place(draft, condition)
        for gap in self.gaps:
            self._check_gap(gap)
        return [self._resolved_condition(c) for c in left if self._fits(c)]

    def _with_alternatives(
        self, every: list[tuple[PartDraft | None, n.Condition]], others: list[n.Condition]
    ) -> list[n.Condition]:
        """Asks each condition where the alternatives are taken that have its variables, in `every` and in the others."""
        every[:] = [(draft, self._with_times(c)) for draft, c in every]
        others = [self._with_times(c) for c in others]
        for gap in self.gaps:
            gap.where = [self._guarded(self._with_times(c)) for c in gap.where]
        bound = set().union(*(draft.vars for draft in self.drafts))
        while (taken := self._take_binding([c for _, c in every] + others, bound)) is not None:
            every[:] = [(draft, c) for draft, c in every if c is not taken]
            others = [c for c in others if c is not taken]
            bound |= n.condition_vars(taken)
        every[:] = [(draft, self._guarded(c)) for draft, c in every]
        every += self.joined
        return [self._guarded(c) for c in others]

    def _take_binding(self, conditions: list[n.Condition], bound: set[str]) -> n.Condition | None:
        """A condition that gives a value to a variable in some alternatives, once they have it."""
        for condition in conditions:
            new = binds(condition, bound) - bound
            for draft in self.drafts:
                if draft.choice is not None and draft.choice.take_binding(condition, new, self._report):
                    draft.node = draft.choice.node()
                    draft.own |= new if draft.repeats else set()
                    return condition
        return None

    def _with_times(self, condition: n.Condition) -> n.Condition:
        return n.mapped_condition(condition, self._times)

    def _times(self, expr: Expr) -> Expr:
        """An expression with variables for the times of alternatives."""
        for choice in self.choices:
            expr = choice.with_times(expr)
        return expr

    def _guarded(self, condition: n.Condition) -> n.Condition:
        for choice in self.choices:
            condition = choice.guarded(condition, self._report)
        return condition

    def _report(self, code: str, message: str, span: Span, hint: str) -> None:
        self._error(code, message, span, hint=hint)

    def _takes(self, condition: n.Condition, foreign: set[str] | None) -> bool:
        if isinstance(condition, n.Relative | n.NoneInside):
            return False
        others = n.condition_labels(condition) - {d.label for d in self.drafts}
        if foreign is None:
            return not others
        names, labels = n.condition_vars(condition), n.condition_labels(condition)
        optional = [d for d in self.drafts if d.least == 0]
        takes = bool(self._owners(condition)) or any(
            names & (d.vars - self._certain()) or d.label in labels for d in optional
        )
        if takes and (others or names & foreign):
            each = "a condition on each iteration, or on a part that may be left out"
            self._error("E236", f"{each}, cannot have variables of other events", condition.span, hint=OWN_RULE)
        return takes

    def _take_to_gap(self, draft: PartDraft | None, condition: n.Condition) -> None:
        """A condition with a variable of a NOT is asked of what NOT excludes."""
        gaps = [gap for gap in self.gaps if n.condition_vars(condition) & gap.local]
        if len(gaps) > 1 or (gaps and draft is not None):
            message = "a condition has variables of one NOT, and of parts before it"
            self._error("E242", message, condition.span, hint="a NOT has variables of its own; give each its condition")
        elif gaps:
            gaps[0].where.append(condition)

    def _check_gap(self, gap: GapDraft) -> None:
        """What a condition on NOT asks for is there when NOT is: variables of parts before it, one value in a match each."""
        resolved = tuple(self._resolved_condition(c) for c in gap.where)
        before = [d for d in self.drafts[: gap.part] if d.least > 0]
        sure = {v for d in before for v in d.vars - d.own} | set(self.key) | gap.local
        sure |= {r.name for r in self.results.values() if r.part < gap.part}
        labels = {d.label for d in before if not d.repeats}
        gap.where = ready_order(resolved, sure)
        for condition in gap.where:
            for term in n.condition_terms(condition):
                for prev in (p for p in walk_terms(term) if isinstance(p, Prev)):
                    self._error(
                        "E237",
                        f"`{show(prev)}` stands in a condition on NOT",
                        prev.span,
                        hint="`prev` is of iterations",
                    )
            sure |= binds(condition, sure)
            wrong = sorted(n.condition_vars(condition) - sure) + sorted(n.condition_labels(condition) - labels)
            if wrong and self.ok:
                message = f"`{wrong[0]}` has no value yet where {gap.span.quoted} stands, or one in each iteration"
                hint = "a condition on NOT has its variables, and those of parts before it; of iterations an aggregate, `max(X)`"
                self._error("E242", message, condition.span, hint=hint)

    def _absence(self, gap: GapDraft) -> n.NoneInside:
        """What must be absent, with the conditions that it decides by itself in its pattern."""
        alone = tuple(c for c in gap.where if n.condition_vars(c) <= gap.local and not n.condition_labels(c))
        node = n.Select(gap.node, alone, gap.span) if alone else gap.node
        return n.NoneInside(n.gap_before(gap.part), node, tuple(c for c in gap.where if c not in alone), gap.span)

    def _certain(self) -> set[str]:
        """The variables of parts that no match leaves out."""
        return {v for d in self.drafts if d.least > 0 and not d.repeats for v in d.vars} | set(self.key)

    def _owners(self, condition: n.Condition) -> set[int]:
        """The repeated parts whose own variables or times a condition has outside aggregates."""
        names = plain_variables(*n.condition_terms(condition))
        if isinstance(condition, n.NoneInside):
            names |= n.condition_vars(condition)
        labels = {m.label for t in n.condition_terms(condition) for m in _plain_moments(t)}
        return {i for i, d in enumerate(self.drafts) if d.own & names or (d.repeats and d.label in labels)}

    def _bind_own(self, conditions: list[n.Condition]) -> bool:
        """What a condition on one iteration binds is that iteration's own; whether there was something new."""
        taken = set().union(*(d.vars | d.own for d in self.drafts))
        owned = [(c, owners) for c in conditions if len(owners := self._owners(c)) == 1]
        if self._bind_owned(owned, taken):
            return True
        self._close(taken, [c for c in conditions if not self._owners(c)])  # such as `limit(K)` beside `D = X - K`
        return self._bind_owned(owned, taken)

    def _bind_owned(self, owned: list[tuple[n.Condition, set[int]]], taken: set[str]) -> bool:
        for condition, (number,) in owned:
            new = binds(condition, taken) - taken
            if new and isinstance(condition, n.Compare | n.Holds):
                self.drafts[number].own |= new
                return True
        return False

    def check_implicit_key(self, term: Expr) -> None:
        """A key that was not said is no variable of which earlier values, or aggregates, are asked for."""
        for part in walk_terms(term):
            if not isinstance(part, Prev | Aggregate):
                continue
            wrong = sorted(variables(part.of if isinstance(part, Prev) else part) & set(self.key))
            if wrong and self.choice.per is None and self.ok:
                remaining = ", ".join(v for v in self.key if v not in wrong)
                hint = (
                    f"say which variables are the key: `PER ({remaining})`, after WHERE"
                    if remaining
                    else "a key is the same in all iterations"
                )
                message = (
                    f"`{wrong[0]}` is an argument of every part, so it is part of the key and the same in all of them"
                )
                self._error("E235", message, part.span, hint=hint)

    def _place(self, draft: PartDraft | None, condition: n.Condition) -> None:
        if not self.findings.sound(condition.span):
            self.ok = False
        if not self.ok or not self._fits(condition):
            return
        owners = self._owners(condition)
        if len(owners) > 1:
            first, second = (self.drafts[i].span.quoted for i in sorted(owners)[:2])
            message = f"the condition is asked of every iteration of {first} and of {second}"
            hint = "one of the two goes into an aggregate: `min(…)`, `last(…)`"
            self._error("E236", message, condition.span, hint=hint)
            return
        here = None if draft is None else self.drafts.index(draft)
        if owners and draft is not None and here not in owners:
            message = f"a condition of {draft.span.quoted} has variables of each iteration of another part"
            hint = "they go into an aggregate: `min(…)`, `last(…)`"
            self._error("E236", message, condition.span, hint=hint)
            return
        if owners:
            (number,) = owners
            self._check_prev(condition, number)
            self.drafts[number].where.append(self._resolved_condition(condition, number))
            return
        if _prevs(condition):
            self._no_prev(condition)
            return
        resolved = self._resolved_condition(condition)
        if here is None:
            self.where.append(resolved)
        elif n.condition_vars(resolved) & {r.name for r in self.results.values() if r.part == here}:
            self.drafts[here].after.append(resolved)
        else:
            self.drafts[here].where.append(resolved)

    def _fits(self, condition: n.Condition) -> bool:
        """No relation, window or absence rests on the label of a part that repeats."""
        wrong = {d.label for d in self.drafts if d.repeats and d.label is not None}
        for label in sorted(n.condition_labels(condition) & set[str]().union(*(c.labels for c in self.choices))):
            message = f"`{label}` names an alternative, which a match need not take"
            hint = f"its times stand in conditions and aggregates: `start({label})`, `last(end({label}))`"
            self._error("E236", message, condition.span, hint=hint)
            return False
        if isinstance(condition, n.Relates | n.Spans | n.Relative | n.NoneInside):
            for label in sorted(n.condition_labels(condition) & wrong):
                message = f"`{label}` names each iteration of a part, and has no interval of its own"
                hint = f"its times stand in conditions and aggregates: `first(start({label}))`, `last(end({label}))`"
                self._error("E236", message, condition.span, hint=hint)
                return False
        return True

    def check_anchor(self, relative: n.Relative) -> None:
        """An interval is counted from a part that is always there, and once."""
        if self._fits(relative):
            for draft in self.drafts:
                if draft.label == relative.anchor and draft.least == 0:
                    message = f"`{draft.label}` may be left out, so nothing can be counted from it"
                    hint = "count from a part that is always there"
                    self._error("E236", message, relative.span, hint=hint)

    def _no_prev(self, condition: n.Condition) -> None:
        prev = _prevs(condition)[0]
        message = f"`{show(prev)}` is the same in all iterations, or of a part that does not repeat"
        hint = "`prev` takes a variable that is first bound in a part with `+`, `*` or `{n}`"
        self._error("E237", message, prev.span, hint=hint)

    def _check_prev(self, condition: n.Condition, number: int) -> None:
        draft = self.drafts[number]
        prevs = _prevs(condition)
        for prev in prevs:
            is_local = variables(prev.of) & draft.own or any(m.label == draft.label for m in _plain_moments(prev.of))
            if not is_local:
                self._no_prev(condition)
                return
        taken = set().union(*(d.vars for d in self.drafts))
        new = binds(condition, taken | self._bound_without(condition, draft)) & draft.own
        if new and any(p.default is None for p in prevs):
            name = sorted(new)[0]
            hint = "give `prev` a default: `prev(X, X)`, or put the expression where the variable stands"
            self._error("E237", f"`{name}` would have no value in the first iteration", condition.span, hint=hint)

    def _bound_without(self, condition: n.Condition, draft: PartDraft) -> set[str]:
        """The own variables of a part that other conditions bind."""
        return {v for c in draft.where if c is not condition for v in n.condition_vars(c)}

    # Aggregates

    def resolved(self, expr: Expr, running: int | None = None, collects: bool = False) -> Expr:
        """An expression with a variable in the place of each aggregate over a whole repetition.

        Where the rule also collects, an aggregate without variables of an iteration ranges over what is collected.
        """
        expr = self._times(expr) if self.choices else expr
        if isinstance(expr, Aggregate):
            return expr if collects and not self.ranges(expr) else self._aggregate(expr, running)
        return mapped_term(expr, lambda part: self.resolved(part, running, collects))

    def _aggregate(self, expr: Aggregate, running: int | None) -> Expr:
        part = self.owner(expr)
        if part is None:
            return expr
        label = counted_label(expr)
        plain = expr if label is None else replace(expr, args=())
        if running == part:
            return plain
        if running is not None and part > running:
            message = (
                f"`{show(expr)}` is known only after {self.drafts[running].span.quoted}, whose iterations ask for it"
            )
            hint = "compare two aggregates instead: `max(X) < min(Y)`"
            self._error("E239", message, expr.span, hint=hint)
            return expr
        name = show(expr) if label is None else f"count({label})"
        self.results.setdefault(name, n.RunResult(name, part, plain))
        return Var(name, expr.span)

    def owner(self, expr: Aggregate) -> int | None:
        """The part over whose iterations an aggregate ranges."""
        result = self.ranges(expr) if expr.args else [i for i, d in enumerate(self.drafts) if d.repeats]
        if len(result) == 1:
            return result[0]
        if self.ok:
            several = "could range over the iterations of several parts"
            what = several if result else "has nothing that differs from one iteration to the next"
            hint = "an aggregate takes variables that are first bound in one repeated part; `count(u)` counts those of a label"
            self._error("E238", f"`{show(expr)}` {what}", expr.span, hint=hint)
        return None

    def ranges(self, expr: Aggregate) -> list[int]:
        """The parts whose own variables or times an aggregate has."""
        labels = {m.label for a in expr.args for m in walk_terms(a) if isinstance(m, Moment)}
        names = variables(*expr.args)
        return [i for i, d in enumerate(self.drafts) if d.own & names or (d.repeats and d.label in labels)]

    def _resolved_condition(self, condition: n.Condition, running: int | None = None) -> n.Condition:
        return n.mapped_condition(condition, lambda term: self.resolved(term, running))

    # The whole

    def node(self) -> n.Node | None:
        """The run, once all its conditions have their places."""
        if not self.ok:
            return None
        parts = []
        for number, draft in enumerate(self.drafts):
            link = self.links[number - 1] if number else self.links[0] if self.links else "NEXT"
            local, where, after = tuple(sorted(draft.own)), tuple(draft.where), tuple(draft.after)
            by = draft.by or link
            parts.append(
                n.RunPart(
                    draft.node, link, by, draft.least, draft.most, local, where, after, draft.iterates, draft.span
                )
            )
        windows = tuple(self.reader.length(w.length) for w in self.literal.windows)
        which = cast(Literal["ALL", "LONGEST", "SHORTEST"], self.choice.which or "ALL")
        where = (*self.where, *map(self._absence, self.gaps))
        results, skip = tuple(self.results.values()), self._skip()
        run = n.Run(tuple(parts), self.key, (), results, windows, which, skip, where, self.literal.chain.span)
        self._check_choice(run)
        self._check_later(run)
        if not self.ok:
            return None
        run = replace(run, among=events_of(run))
        return run if self.literal.label is None else n.Label(self.literal.label, run, self.literal.span)

    def _skip(self) -> Literal["PAST END"] | n.SkipTo | None:
        skip = self.choice.skip
        if skip is None:
            return None
        if skip.label is None:
            return n.PAST_END
        for number, draft in enumerate(self.drafts):
            if draft.label == skip.label:
                return n.SkipTo("FIRST" if skip.to == "TO FIRST" else "LAST", number)
        if self.reader.known_label(skip.label, self.choice.span):
            hint = "a label stands inside the part: `(u: b(I))+`"
            self._error("E240", f"`{skip.label}` is no label of a part of the run", self.choice.span, hint=hint)
        self.ok = False
        return None

    def _check_choice(self, run: n.Run) -> None:
        used = [*self.links, *(part.between for part in run.parts if part.repeats)]
        span = self.choice.span
        if run.which != "ALL" and "SEQ" in used:
            message = f"{run.which} chooses among runs of NEXT and THEN, and this one has SEQ"
            hint = "after SEQ any later event may follow; THEN takes the next one that fits"
            self._error("E240", message, span, hint=hint)
        if self.choice.skip is not None and run.which == "ALL":
            self._error("E240", "SKIP follows LONGEST or SHORTEST", span, hint="write `LONGEST SKIP PAST END`")
        if isinstance(run.skip, n.SkipTo) and run.parts[run.skip.part].optional:
            message = f"the part `{run.parts[run.skip.part].label}` may be left out, so there may be nothing to skip to"
            hint = "skip to a part that is always there, or PAST END"
            self._error("E240", message, span, Note("this part", run.parts[run.skip.part].span), hint=hint)

    def finished(self, node: n.Node) -> n.Node:
        """The body with all aggregates that its run is asked for, and without iterations that nothing asks for."""
        below = n.mapped(node, self.finished)
        if not isinstance(below, n.Run):
            return below
        run = without_idle_iterations(replace(below, results=tuple(self.results.values())))
        for part in run.parts:
            if part.most is None and part.between == "SEQ" and not run.windows:
                message = f"{part.span.quoted} may repeat without end, and after SEQ every choice of events is a match"
                hint = "give the run a window, `(…).10min`, or relate its events by NEXT or THEN"
                self._error("E241", message, part.span, hint=hint)
        return run

    def _check_later(self, run: n.Run) -> None:
        """What every iteration asks for is known when it comes."""
        for number, part in enumerate(run.parts):
            later = self._later(run, number)
            for condition in part.where:
                for name in sorted(n.condition_vars(condition) & later):
                    message = f"`{name}` is known only after {part.span.quoted}, which asks for it"
                    hint = "put it into a condition on aggregates, `max(X) < Y`, which is asked when both are known"
                    self._error("E239", message, condition.span, hint=hint)

    def _later(self, run: n.Run, number: int) -> set[str]:
        """The variables without a value while a part repeats: those of later parts, and what depends on them."""
        parts = run.parts
        bound = set(run.key).union(*(n.bound_vars(p.input) - set(p.own) for p in parts[:number]))
        bound |= n.bound_vars(parts[number].input) | set(parts[number].own)
        later = part_variables(run).union(*(p.own for p in parts)) - bound - {r.name for r in run.results}
        conditions = (
            *run.where,
            *(c for p in parts[: number + 1] for c in p.where if not p.repeats or p is parts[number]),
        )
        for condition in in_turn(conditions, run, part_variables(run) | bound):
            names = n.condition_vars(condition)
            late_results = {r.name for r in run.results if r.part >= number or outer_variables(r, run) & later}
            if names & (later | late_results):
                later |= names - bound - {r.name for r in run.results}
            else:
                bound |= names
        results = {r.name for r in run.results if r.part >= number or outer_variables(r, run) & later}
        return (later | results) - bound

    def _close(self, bound: set[str], where: Iterable[n.Condition]) -> None:
        """Adds what conditions bind of what is known."""
        for condition in ready_order(tuple(where), bound):
            bound |= binds(condition, bound)

    def check_bare(self, terms: Iterable[Expr], where: str) -> None:
        """No variable or time of an iteration stands bare outside its part."""
        for term in terms:
            for part in outside_aggregates(term):
                for draft in self.drafts:
                    of_label = isinstance(part, Moment) and draft.repeats and part.label == draft.label
                    if of_label or (isinstance(part, Var) and part.name in draft.own):
                        shown = show(part)
                        message = (
                            f"`{shown}` has a value in each iteration of {draft.span.quoted}, and {where} needs one"
                        )
                        hint = f"say which: `first({shown})`, `last({shown})`, `max({shown})`, `count({shown})` …"
                        self._error("E236", message, part.span, hint=hint)

    def check_others(self, patterns: Iterable[n.Node]) -> None:
        """No other event has a variable of an iteration as an argument."""
        for pattern in patterns:
            for draft in self.drafts:
                self._no_arguments(draft, n.scans(pattern), "another event")


def _plain_moments(expr: Expr) -> list[Moment]:
    return [part for part in outside_aggregates(expr) if isinstance(part, Moment)]


def _prevs(condition: n.Condition) -> list[Prev]:
    return [part for part in asked_of(condition) if isinstance(part, Prev)]
