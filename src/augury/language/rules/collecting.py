"""The collects of a rule: which conditions filter members, which apply to a group, and over what each aggregate ranges
(SEMANTICS 3 and 11)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from augury.algebra import nodes as n
from augury.algebra.kinds import atoms_in, inner_absences, is_equation, positive_atoms
from augury.algebra.ready import binds
from augury.algebra.terms import Aggregate, Expr, Moment, Var, labels, mapped_term, plain_variables, show, variables
from augury.algebra.terms import walk as walk_terms
from augury.core.errors import Findings, Note, Span
from augury.language.rules import syntax as s


@dataclass
class CollectDraft:
    """A collect on its way: `own` are the variables that only it binds."""

    literal: s.While | s.Last
    pattern: n.Node
    own: set[str] = field(default_factory=set)
    where: list[n.Condition] = field(default_factory=list)
    totals: dict[str, n.Total] = field(default_factory=dict)

    @property
    def labels(self) -> set[str]:
        return {self.literal.label} if self.literal.label else set()

    def concerns(self, names: set[str], used: set[str]) -> bool:
        """Whether variables or labels are those of what is collected."""
        return bool(names & self.own or used & self.labels)


def counted_label(expr: Aggregate) -> str | None:
    """The label in `count(u)`: its occurrences are counted by a time that each has, which stands where the call does."""
    match expr.args:
        case (Moment(label=label) as moment,) if expr.function == "count" and moment.span is expr.span:
            return label
    return None


def aggregates_in(condition: n.Condition) -> list[Aggregate]:
    """The aggregates of a condition."""
    return [part for term in n.condition_terms(condition) for part in walk_terms(term) if isinstance(part, Aggregate)]


class CollectReader:
    """The collects of one rule. `conditions` are those of its body, of which those on rows are left in the end."""

    def __init__(
        self,
        drafts: list[CollectDraft],
        positive: n.Node,
        conditions: list[n.Condition],
        having: list[n.Condition],
        findings: Findings,
    ) -> None:
        self.drafts, self.findings = drafts, findings
        self.having, self.conditions = having, conditions
        self.outer = n.bound_vars(positive)
        for draft in drafts:
            draft.own = n.bound_vars(draft.pattern) - self.outer
            self._inside(draft)
        self._follow_totals()
        for draft in drafts:
            if draft.literal.none:
                self._bind_beside(draft)
        self._share()

    def _inside(self, draft: CollectDraft) -> None:
        """Conditions of the collected pattern that use labels are asked of each pair of a row and what it collects."""
        if isinstance(draft.pattern, n.Select):
            clips = s.is_holding(draft.literal.body)
            draft.where = [c for c in draft.pattern.where if n.condition_labels(c) or (clips and atoms_in(c))]
            kept = tuple(c for c in draft.pattern.where if c not in draft.where)
            draft.pattern = replace(draft.pattern, where=kept) if kept else draft.pattern.input

    def _follow_totals(self) -> None:
        """`N = count(), N > 3`: what rests on a name for a total is asked of the group, too."""
        named = self._named_totals()
        while more := [c for c in self.conditions if n.condition_vars(c) & named and not isinstance(c, n.NoneInside)]:
            self.having += more
            self.conditions[:] = [c for c in self.conditions if c not in more]
            named = self._named_totals()

    def _named_totals(self) -> set[str]:
        """The variables that conditions on groups bind."""
        inner = {v for draft in self.drafts for v in draft.own} | self.outer
        bound = {v for c in positive_atoms(self.conditions) for v in n.condition_vars(c)}
        result = {v for c in self.having if is_equation(c) for v in used_plainly(c)}
        return result - inner - bound

    def _bind_beside(self, draft: CollectDraft) -> None:
        """`shop(S), while w: collect sale(S, A) or none`: a static literal beside it binds what the head needs."""
        bound = set(self.outer)
        changed = True
        while changed:
            changed = False
            for condition in self.conditions:
                new = binds(condition, bound) - bound
                if new & draft.own or (isinstance(condition, n.Holds) and new):
                    bound |= n.condition_vars(condition)
                    draft.own -= bound
                    changed = True
        self.outer |= bound - {v for other in self.drafts if other is not draft for v in other.own}

    def _share(self) -> None:
        """Conditions on what only the collected have filter them; the others filter the rule's rows."""
        absent = {v for c in inner_absences(self.conditions) for v in n.condition_vars(c)}
        changed = True
        while changed:
            changed = False
            for condition in list(self.conditions):
                names, used = n.condition_vars(condition), n.condition_labels(condition)
                mine = [draft for draft in self.drafts if draft.concerns(names, used)]
                if not mine or isinstance(condition, n.NoneInside) or self._stays(condition, mine, absent):
                    continue
                if len(mine) > 1 and not self._of_groups(names):
                    message = "the condition is on what two collects have of their own"
                    hint = "compare aggregates: `max(A) < min(B)`"
                    self.findings.add(
                        "E223",
                        message,
                        condition.span,
                        Note("the one", mine[0].literal.span),
                        Note("the other", mine[1].literal.span),
                        hint=hint,
                    )
                    mine = []
                self.conditions.remove(condition)
                for draft in mine:
                    draft.where.append(condition)
                    draft.own |= names - self.outer
                changed = True

    def _stays(self, condition: n.Condition, mine: list[CollectDraft], absent: set[str]) -> bool:
        """Whether a condition binds what an absence needs, so that it belongs to the rule's row."""
        variables = {v for draft in mine for v in draft.own}
        return isinstance(condition, n.Holds | n.Compare) and bool(n.condition_vars(condition) & variables & absent)

    def _of_groups(self, names: set[str]) -> bool:
        """Whether all variables are those that collects share: they have one value in a group."""
        return all(sum(name in draft.own for draft in self.drafts) != 1 for name in names - self.outer)

    # Aggregates

    def resolved(self, expr: Expr) -> Expr:
        """An expression with a variable in the place of each aggregate over what is collected."""
        if not isinstance(expr, Aggregate):
            return mapped_term(expr, self.resolved)
        draft = self._ranges_over(expr)
        if draft is None:
            return expr
        label = counted_label(expr)
        name = show(expr) if label is None else f"count({label})"
        draft.totals.setdefault(name, n.Total(name, expr))
        return Var(name, expr.span)

    def _ranges_over(self, expr: Aggregate) -> CollectDraft | None:
        """The collect that binds the variables of an aggregate, or has its label."""
        if len(self.drafts) == 1:
            return self.drafts[0]
        result = [draft for draft in self.drafts if draft.concerns(variables(expr), labels(expr))]
        if len(result) == 1:
            return result[0]
        if self.findings.sound(expr.span):
            what = "ranges over none" if not result else "could range over several"
            label = next((d.literal.label for d in self.drafts if d.literal.label), "p")
            message = f"the rule collects several times, and `{show(expr)}` {what} of them"
            hint = f"label what is collected, `collect {label}: …`, and write `count({label})`; or use a variable that one collect binds"
            self.findings.add("E223", message, expr.span, hint=hint)
        return None

    # The result

    def collects(self, used: set[str], head: set[str], sound: bool) -> tuple[n.Collect, ...]:
        """The collects, those with `or none` last. `used` are the variables outside of aggregates, `head` those of the head."""
        result: list[n.Collect] = []
        for draft in sorted(self.drafts, key=lambda d: d.literal.none):
            by = used & draft.own
            if sound:
                self._check(draft, by, head)
            literal = draft.literal
            last = isinstance(literal, s.Last)
            result.append(
                n.Collect(
                    draft.pattern,
                    literal.window if isinstance(literal, s.While) else None,
                    literal.count if isinstance(literal, s.Last) else None,
                    last and literal.exactly,  # type: ignore[union-attr]
                    tuple(n.asked_at(c, n.SEEN) for c in draft.where)
                    if s.is_holding(literal.body)
                    else tuple(draft.where),
                    literal.span,
                    tuple(sorted(by)),
                    tuple(draft.totals.values()),
                    literal.label,
                    literal.none,
                )
            )
        return tuple(result)

    def _check(self, draft: CollectDraft, by: set[str], head: set[str]) -> None:
        span = draft.literal.span
        if not self.findings.sound(span):
            return
        if not draft.totals and not by and not draft.literal.none:
            hint = "write, for instance, `count(X)` in the head; to ask for presence use a pattern"
            self.findings.add("E220", "the rule collects, but its head has no aggregate", span, hint=hint)
        elsewhere = {v for other in self.drafts if other is not draft for v in other.own}
        if draft.literal.none and by - elsewhere:
            name = sorted(by - elsewhere)[0]
            message = f"`{name}` has no value where nothing is collected"
            hint = f"bind it beside: with an event, or a static literal such as `known({name})`"
            self.findings.add(
                "E265", message, self._use(name, span), Note("or none", span.part(r"\bor\s+none\b")), hint=hint
            )
        alone = {v for v in by - head if v in n.bound_vars(draft.pattern)}
        for name in sorted(alone):
            message = f"`{name}` has a value for each collected event, but a condition on a group needs one value"
            hint = f"put it inside an aggregate, `max({name})`, or into the head, where it makes groups"
            self.findings.add("E264", message, self._use(name, span), hint=hint)
        for other in self.drafts:
            shared = (draft.own & other.own) - by if other is not draft else set()
            for name in sorted(shared):
                if draft.literal.span.start < other.literal.span.start:
                    message = f"two collects share `{name}`, which makes no group"
                    hint = f"put `{name}` into the head, or give it two names"
                    self.findings.add("E223", message, span, Note("the other one", other.literal.span), hint=hint)

    def _use(self, name: str, otherwise: Span) -> Span:
        sides = (side for c in self.having if isinstance(c, n.Compare) for side in (c.left, c.right))
        parts = (part for side in sides for part in walk_terms(side))
        return next((part.span for part in parts if isinstance(part, Var) and part.name == name), otherwise)


def used_plainly(condition: n.Condition) -> set[str]:
    """The variables of a condition on a group outside of its aggregates."""
    return plain_variables(*n.condition_terms(condition))
