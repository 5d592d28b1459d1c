"""The parts of a run (SEMANTICS 10): its literal, each part, its key, and the variables of each iteration."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import cast

from augury.algebra import nodes as n
from augury.algebra.terms import Var, show, variables
from augury.algebra.terms import walk as walk_terms
from augury.core.errors import Findings, Note, Span
from augury.language.rules import syntax as s
from augury.language.rules.labelled_alternatives import (
    Alternative,
    Alternatives,
    arguments_of,
    branches,
    labelled_alternatives,
)
from augury.language.rules.patterns import PatternReader
from augury.language.rules.show import show_node

OWN_RULE = "give the run a rule of its own, and use its event here"


@dataclass(frozen=True)
class RunLiteral:
    """A literal that is a run: the chain, and what stands around it."""

    chain: s.Node
    conditions: tuple[s.Node, ...]
    windows: tuple[s.Window, ...]
    label: str | None
    span: Span


def run_literal(literal: s.Node) -> RunLiteral | None:
    """A literal as a run, if it is one: `r: (a NEXT b+).1h WHERE c`."""
    label = literal.label if isinstance(literal, s.Labelled) else None
    node = literal.body if isinstance(literal, s.Labelled) else literal
    conditions: list[s.Node] = []
    windows: list[s.Window] = []
    while isinstance(node, s.Where | s.Window):
        if isinstance(node, s.Where):
            conditions.insert(0, node.condition)
        else:
            windows.append(node)
        node = node.pattern
    if not s.is_run(node):
        return None
    return RunLiteral(node, tuple(conditions), tuple(windows), label, literal.span)


def part_labels(run: RunLiteral) -> Iterator[s.Labelled]:
    """The labels inside a run."""
    for operand in s.run_operands(run.chain):
        node = operand.pattern if isinstance(operand, s.Quantified) else operand
        while isinstance(node, s.Labelled | s.Where) and labelled_alternatives(node) is None:
            if isinstance(node, s.Labelled):
                yield node
            node = node.body if isinstance(node, s.Labelled) else node.pattern
        yield from (part for part in labelled_alternatives(node) or () if isinstance(part, s.Labelled))


@dataclass
class GapDraft:
    """`NOT(b(I, X) WHERE c)` as it is read: what must be absent before a part, by its number."""

    node: n.Node
    part: int
    written: list[s.Node]
    span: Span
    local: set[str] = field(default_factory=set)
    where: list[n.Condition] = field(default_factory=list)


@dataclass
class PartDraft:
    """A part as it is read."""

    node: n.Node
    label: str | None
    least: int
    most: int | None
    written: list[s.Node]
    span: Span
    by: n.Link | None = None
    iterates: bool = False
    own: set[str] = field(default_factory=set)
    where: list[n.Condition] = field(default_factory=list)
    after: list[n.Condition] = field(default_factory=list)
    choice: Alternatives | None = None

    @property
    def repeats(self) -> bool:
        return self.iterates or self.most is None or self.most > 1

    @property
    def vars(self) -> set[str]:
        return n.bound_vars(self.node)


class RunParts:
    """The parts of the run of a rule. `ok` is false once something was reported that the rest rests on."""

    def __init__(self, patterns: PatternReader, literal: RunLiteral, choice: s.Choice | None) -> None:
        self.patterns, self.reader, self.literal = patterns, patterns.reader, literal
        self.choice = choice or s.Choice()
        self.findings: Findings = patterns.findings
        self.ok = True
        self.key: tuple[str, ...] = ()
        self.drafts: list[PartDraft] = []
        self.gaps: list[GapDraft] = []
        self.links: list[n.Link] = []
        self.joined: list[tuple[PartDraft, n.Condition]] = []  # what relates alternatives to other parts
        self.ok = self._read_parts()
        if self.ok:
            self._find_key()
            self._find_shared()
            self._find_own()
            self._find_local()

    def _error(self, code: str, message: str, span: Span, *notes: Note, hint: str | None = None) -> None:
        self.findings.add(code, message, span, *notes, hint=hint)
        self.ok = False

    def _read_parts(self) -> bool:
        operators = s.run_operators(self.literal.chain)
        for operator in operators:
            if operator.policy is not None:
                message = f"{operator.op} takes no policy inside a run"
                hint = "what follows is said by NEXT, THEN and SEQ, LONGEST and SHORTEST"
                self.findings.add("E229", message, operator.policy.span, hint=hint)
        operands, links = s.run_operands(self.literal.chain), [cast(n.Link, operator.op) for operator in operators]
        sound = True
        for number, operand in enumerate(operands):
            if s.is_absent(operand):
                sound = self._read_gap(operands, links, number) and sound
                continue
            draft = self._read_part(operand)
            sound = draft is not None and sound
            self.links += links[number - 1 : number] if self.drafts else []
            self.drafts += [draft] if draft is not None else []
        fits = [self._fits_between(gap) for gap in self.gaps]
        return sound and all(fits)

    def _read_gap(self, operands: list[s.Node], links: list[n.Link], number: int) -> bool:
        """What must be absent between two parts."""
        operand = operands[number]
        assert isinstance(operand, s.Not)
        operators = set(links[number - 1 : number + 1])
        hint = "write `a THEN NOT(b) THEN c`, or with SEQ on both sides"
        if number in (0, len(operands) - 1):
            self._error("E242", f"{operand.span.quoted} does not stand between two parts", operand.span, hint=hint)
            return False
        if len(operators) > 1 or "NEXT" in operators:
            shown = " and ".join(sorted(operators))
            self._error(
                "E242", f"NOT stands between THEN and THEN, or SEQ and SEQ, and not {shown}", operand.span, hint=hint
            )
            return False
        node, written = operand.negated, list[s.Node]()
        while isinstance(node, s.Where):
            written.append(node.condition)
            node = node.pattern
        if isinstance(node, s.Quantified | s.Labelled):
            what = "quantifier" if isinstance(node, s.Quantified) else "label"
            self._error("E242", f"what NOT excludes has no {what}", node.span, hint="write `NOT(b(I, X))`")
            return False
        pattern = self._atoms(node)
        if pattern is None:
            return False
        self.gaps.append(GapDraft(pattern, len(self.drafts), written, operand.span))
        return True

    def _fits_between(self, gap: GapDraft) -> bool:
        """Whether the parts beside NOT are always there."""
        for draft in self.drafts[gap.part - 1 : gap.part + 1]:
            if draft.least == 0:
                message = f"{draft.span.quoted} may be left out, so NOT does not say between which events"
                hint = "put NOT between parts that are always there"
                self._error("E242", message, gap.span, Note("this part", draft.span), hint=hint)
        return self.ok

    def _read_part(self, operand: s.Node) -> PartDraft | None:
        node, least, most, by = operand, 1, cast("int | None", 1), cast("n.Link | None", None)
        if isinstance(operand, s.Quantified):
            node, least, most = operand.pattern, operand.least, operand.most
            by = cast("n.Link | None", operand.by)
            if by is not None and most is not None and most <= 1:
                message = f"{operand.span.quoted} has one iteration at most, and BY stands between iterations"
                self._error("E240", message, operand.span, hint="say BY of a repetition: `(b(I, X)+ BY NEXT)`")
            if most is not None and (most == 0 or most < least):
                message = "a part comes at least once" if most == 0 else f"a part cannot come {least} to {most} times"
                hint = "`*` is any number, `?` once or not at all, `{2,5}` two to five times"
                self._error("E234", message, operand.span.part(r"\{[^{]*\}$"), hint=hint)
                return None
        label: str | None = None
        written: list[s.Node] = []
        while isinstance(node, s.Labelled | s.Where) and labelled_alternatives(node) is None:
            if isinstance(node, s.Labelled):
                label, node = node.label, node.body
            else:
                written.append(node.condition)
                node = node.pattern
        iterates = isinstance(operand, s.Quantified) and least == most == 1
        several = labelled_alternatives(node)
        if several is not None:
            choice = self._alternatives(several, operand.span, label)
            if choice is None:
                return None
            return PartDraft(choice.node(), label, least, most, written, operand.span, by, iterates, choice=choice)
        pattern = self._atoms(node)
        if pattern is None:
            return None
        named = pattern if label is None else n.Label(label, pattern, operand.span)
        return PartDraft(named, label, least, most, written, operand.span, by, iterates)

    def _alternatives(self, operands: list[s.Node], span: Span, label: str | None) -> Alternatives | None:
        """Alternatives of which each has a label."""
        members = []
        for operand in operands:
            if not isinstance(operand, s.Labelled):
                hint = "label all of them, `(u: a(I) OR v: b(I))`, or the part as a whole: `(u: (a(I) OR b(I)))`"
                self._error(
                    "E243", f"{operand.span.quoted} has no label, and another alternative has", operand.span, hint=hint
                )
                return None
            node = self._branch(operand.body)
            if node is None:
                return None
            members.append(Alternative(operand.label, node, operand.span))
        return Alternatives(len(self.drafts), members, span, self.patterns.symbols.aggregates, label)

    @property
    def choices(self) -> list[Alternatives]:
        """The labelled alternatives of all parts."""
        return [draft.choice for draft in self.drafts if draft.choice is not None]

    def _atoms(self, node: s.Node) -> n.Node | None:
        """An event, or several joined by OR."""
        match node:
            case s.CallTerm() | s.BareName():
                return self.patterns.pattern(node)
            case s.Binary(op="OR"):
                sides = [self._branch(operand) for operand in s.joined(node)]
                if None in sides:
                    return None
                whole, *others = [side for side in sides if side is not None]
                for side in others:
                    whole = n.Either(whole, side, node.span)
                return whole
            case s.Quantified():
                hint = "one quantifier a part: `{2,5}`, `+`, `*` or `?`; the fewest iterations are taken by `SHORTEST`, the most by `LONGEST`, at the end of the rule"
                self._error("E233", "a quantifier stands on another one", node.span, hint=hint)
            case s.Binary() if node.op in s.RUN_OPS:
                message = f"`{show_node(node)}` is a part of a run, and a part is an event"
                hint = "a sequence that repeats is an event of its own: `pair(N) <- a(N) NEXT b(N).`, and then `pair(N)+`; one that does not needs no parentheses"
                self._error("E233", message, node.span, hint=hint)
            case s.Binary() if not node.parens:
                hint = "a run is a chain of NEXT, THEN and SEQ; derive an event from the rest, by a rule of its own"
                self._error("E233", f"{node.op} stands in a run", node.span, hint=hint)
            case s.Holding():
                hint = "give it a rule of its own, and use its event here: `down(M) <- x: holding mode(M, 'error').`"
                self._error("E233", f"`{show_node(node)}` cannot be a part of a run", node.span, hint=hint)
            case _:
                hint = "a part is an event, or several joined by OR in parentheses, with its conditions"
                self._error("E233", f"`{show_node(node)}` cannot be a part of a run", node.span, hint=hint)
        return None

    def _branch(self, node: s.Node) -> n.Node | None:
        """A branch of OR, with conditions on it alone."""
        if isinstance(node, s.CallTerm | s.BareName) or (
            isinstance(node, s.Where) and isinstance(node.pattern, s.CallTerm | s.BareName)
        ):
            return self.patterns.pattern(node)
        return self._atoms(node)

    def _scans(self) -> list[n.Scan]:
        return [scan for draft in self.drafts for scan in n.scans(draft.node)]

    def _find_key(self) -> None:
        if self.choice.per is not None:
            self.key = tuple(dict.fromkeys(v.name for v in self.choice.per))
            for variable in self.choice.per:
                lacking = next((scan for scan in self._scans() if variable not in scan.args), None)
                if lacking is not None:
                    message = f"`{variable.name}` is not an argument of `{show_scan(lacking)}`, so it cannot be the key"
                    hint = "every event of a run has the key as an argument of its own; `PER ()` is no key"
                    self._error("E235", message, variable.span, Note("this part", lacking.span), hint=hint)
                    return
            return
        has = [{a.name for a in scan.args if isinstance(a, Var)} for scan in self._scans()]
        self.key = tuple(sorted(set.intersection(*has)))
        if len(self.drafts) == 1 and self.key:  # else there is nothing that it could be a run of but all events
            names = [a.name for a in self._scans()[0].args if isinstance(a, Var) and a.name in self.key]
            hint = f"end the rule with `PER ({names[0]})`, or `PER ()` for all events together"
            self._error("E235", "a run of one part says what it is a run of", self.literal.chain.span, hint=hint)

    def _find_shared(self) -> None:
        """A variable that some branches of OR have, and another part as well, joins where such a branch is taken."""
        for number, draft in enumerate(self.drafts):
            pattern = draft.node.input if isinstance(draft.node, n.Label) else draft.node
            nodes = branches(pattern) if draft.choice is None else ()
            names = (f"alternative {i} of part {number + 1}" for i in itertools.count(1))  # no program can write them
            members = [Alternative(name, node, node.span) for name, node in zip(names, nodes, strict=False)]
            if len(members) > 1:
                choice = Alternatives(number, members, draft.span, self.patterns.symbols.aggregates, draft.label)
                if choice.partial & arguments_of([other.node for other in self.drafts if other is not draft]):
                    draft.choice = choice

    def _find_own(self) -> None:
        seen = set(self.key)
        for number, draft in enumerate(self.drafts):
            for before in self.drafts[:number]:
                self._no_arguments(before, n.scans(draft.node), "another part")
            if draft.choice is not None:
                self._join_alternatives(draft, draft.choice, seen, self.drafts[number + 1 :])
                draft.node = draft.choice.node()
            if draft.repeats:
                draft.own = draft.vars - seen
            seen |= draft.vars

    def _join_alternatives(
        self, draft: PartDraft, choice: Alternatives, earlier: set[str], later: list[PartDraft]
    ) -> None:
        """What a variable of some alternatives has in common with other parts: its value is equal where it is taken."""
        self.joined += [(draft, choice.rename(name, draft.span)) for name in sorted(choice.partial & earlier)]
        for part in later if not draft.repeats else ():
            for name in sorted((choice.partial & arguments_of([part.node])) - choice.renamed.keys()):
                if part.repeats or part.choice is not None:
                    message = f"`{name}` is of some alternatives, and an argument of {part.span.quoted}"
                    hint = "give the argument a variable of its own, and compare the two"
                    self._error("E243", message, part.span, Note("the alternatives", draft.span), hint=hint)
                self.joined.append((part, choice.rename(name, draft.span)))

    def _find_local(self) -> None:
        """The variables of each NOT that no part has; the others are of parts before it, or of the key."""
        for gap in self.gaps:
            for draft in self.drafts:
                self._no_arguments(draft, n.scans(gap.node), "NOT")
            before = [draft for draft in self.drafts[: gap.part] if draft.least > 0]
            sure = set(self.key).union(*(draft.vars for draft in before))
            gap.local = n.bound_vars(gap.node).difference(*(draft.vars for draft in self.drafts))
            for name in sorted(n.bound_vars(gap.node) - gap.local - sure):
                message = f"`{name}` has a value only after {gap.span.quoted}, or may have none"
                hint = "a NOT has variables of its own, and those that parts before it always bind"
                self._error("E242", message, gap.span, hint=hint)

    def _no_arguments(self, draft: PartDraft, scans: Iterable[n.Scan], where: str) -> None:
        """The own variables of a part are no arguments elsewhere."""
        for scan in scans:
            for name in sorted(variables(*scan.args) & draft.own):
                span = next(v.span for a in scan.args for v in walk_terms(a) if isinstance(v, Var) and v.name == name)
                message = f"`{name}` has a value in each iteration of {draft.span.quoted}, and cannot be an argument of {where}"
                hint = f"give the argument a variable of its own, and compare it: `{name}2 = last({name})`"
                self._error("E236", message, span, hint=hint)


def show_scan(scan: n.Scan) -> str:
    return f"{scan.type}({', '.join(show(a) for a in scan.args)})" if scan.args else scan.type
