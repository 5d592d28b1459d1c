"""What a set of cases covers: which parts of which rules have decided something in some case.

A part is covered once it has gone both ways: its rule has an answer, for which the part held; and in some case the rule
without the part has other answers, so that the part alone decided. All these versions of a rule are rules of one program,
whose equal parts the engine computes once: a case is run once more, however many parts there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from augury.core.errors import AuguryError, ProgramError, Source, Span
from augury.core.model import Change, Event, OrderKey
from augury.language.rules import syntax as s
from augury.program import Program
from augury.testing import Case, Outcome
from augury.tools.rule_variants import Variant, weakened

_TYPE = "coverage_of_part_"
Place: TypeAlias = tuple[Source, int, int]  # of a span; the end of a whole rule is -1


@dataclass
class Part:
    """A part of a rule, and whether cases have made it go both ways.

    A rule `held` where it has an answer, and has nothing to fail. An absence is blocked where it failed. `retracted` is
    whether an answer went because of it: for a rule any answer, for an absence one that something blocked afterwards.
    """

    kind: str  # rule, condition, absence, window, alternative, limit
    rule: str
    span: Span
    held: bool = False
    failed: bool = False
    retracted: bool = False

    @property
    def goals(self) -> dict[str, bool]:
        """What is to be seen of it, and whether it was."""
        match self.kind:
            case "rule":
                return {"has an answer": self.held, RETRACTIONS[0]: self.retracted}
            case "absence":
                return {"passes": self.held, "blocks": self.failed, RETRACTIONS[1]: self.retracted}
        return {"holds": self.held, "decides alone": self.failed}

    @property
    def missed(self) -> list[str]:
        return [goal for goal, reached in self.goals.items() if not reached]


RETRACTIONS = ("loses an answer", "blocks what was an answer")


@dataclass
class Coverage:
    """The parts of all rules of some programs, by their places, and how many cases gave an answer to each rule."""

    parts: dict[Place, Part] = field(default_factory=dict)
    hits: dict[Place, int] = field(default_factory=dict)
    skipped: int = 0  # cases whose program is wrong, as they expect

    def part(self, kind: str, rule: str, span: Span) -> Part:
        position = (span.source, span.start, span.end)
        return self.parts.setdefault(
            position if kind != "rule" else (span.source, span.start, -1), Part(kind, rule, span)
        )

    def counts(self) -> dict[str, tuple[int, int]]:
        """How many goals are reached, and how many there are: by kind of part, with retractions on their own."""
        counts: dict[str, tuple[int, int]] = {}
        for part in self.parts.values():
            for goal, reached in part.goals.items():
                kind = "retraction" if goal in RETRACTIONS else part.kind
                done, goals = counts.get(kind, (0, 0))
                counts[kind] = (done + reached, goals + 1)
        return counts

    @property
    def percent(self) -> float:
        done, goals = (sum(column) for column in zip(*self.counts().values(), strict=True)) if self.parts else (0, 0)
        return 100 * done / goals if goals else 100.0


_Versions: TypeAlias = tuple[tuple[s.RuleStatement, str, tuple[tuple[Variant, str], ...]], ...]


@dataclass(frozen=True)
class InstrumentedProgram:
    """A program with one more rule for each rule, and for each variant of it, that derives a type of its own."""

    program: Program
    versions: _Versions

    @staticmethod
    def of(program: Program) -> InstrumentedProgram:
        counter = iter(range(1 << 62))
        labels = {rule.span: rule.label for rule in program.plan.rules}
        versions: list[tuple[s.RuleStatement, str, tuple[tuple[Variant, str], ...]]] = []
        for statement in (x for module in program.modules for x in module.statements):
            if isinstance(statement, s.RuleStatement):
                variants = tuple((v, f"{_TYPE}{next(counter)}") for v in weakened(statement, program.plan))
                named = replace(statement, label=labels.get(statement.span, statement.label))
                versions.append((named, f"{_TYPE}{next(counter)}", variants))
        return _compiled(program, tuple(versions))


def _compiled(program: Program, versions: _Versions) -> InstrumentedProgram:
    """Compiles the program with all versions; one that does not compile, as it binds too little, is left out."""
    wrong: set[str] = set()
    while True:
        rules: dict[str, s.RuleStatement | s.StaticRule] = {type: rule for rule, type, _ in versions}
        rules |= {type: v.statement for _, _, variants in versions for v, type in variants if type not in wrong}
        added: list[s.Statement] = [_renamed(rule, type) for type, rule in rules.items()]
        if any(isinstance(x, s.OutputDecl) for m in program.modules for x in m.statements):
            added.append(s.OutputDecl(tuple(map(s.BareName, rules))))
        try:
            instrumented = program.with_modules([*program.modules, s.Module(tuple(added))])
        except ProgramError as error:
            named = {d.span.source.name for d in error.diagnostics if d.severity == "error"}
            new = {name for name in named if name.startswith(_TYPE)} - wrong
            if not new:
                raise
            wrong |= new
            continue
        kept = tuple((rule, t, tuple((v, u) for v, u in variants if u not in wrong)) for rule, t, variants in versions)
        return InstrumentedProgram(instrumented, kept)


def _renamed(rule: s.RuleStatement | s.StaticRule, type: str) -> s.RuleStatement:
    """A rule that derives events of another type, and stands in a source of that name, so that its mistakes tell it."""
    assert isinstance(rule, s.RuleStatement)
    source = Source(type, rule.span.source.text)

    def moved(node: s.Node) -> s.Node:
        assert node.span is not None
        return replace(s.with_children(node, moved), span=Span(source, node.span.start, node.span.end))

    args = rule.head.args if isinstance(rule.head, s.CallTerm) else ()
    return replace(
        rule,
        head=s.CallTerm(type, tuple(map(moved, args)), span=Span(source, rule.span.start, rule.span.end)),
        body=tuple(map(moved, rule.body)),
        since=rule.since if rule.since is None or rule.since == "END" else moved(rule.since),
        top=None if rule.top is None else replace(rule.top, by=moved(rule.top.by)),
        label=None,
        makes="event",
        key=None,
        span=Span(source, rule.span.start, rule.span.end),
    )


class CoverageRun:
    """Runs cases on instrumented programs and writes down what they cover."""

    def __init__(self) -> None:
        self.coverage = Coverage()
        self._instrumented: dict[int, InstrumentedProgram] = {}
        self._programs: list[Program] = []  # which keeps their numbers

    def add(self, case: Case) -> None:
        """Runs a case, whose program compiles, once more."""
        try:
            program = case.compiled()
            instrumented = self._of(program)
            outcome = case.run(program=instrumented.program)
        except AuguryError:
            self.coverage.skipped += 1
            return
        if outcome.session is None:
            self.coverage.skipped += 1
            return
        inserted = [change.event for step in outcome.steps for change in step if change.op == "insert"]
        standing = _by_type([*outcome.session.events(), *inserted])
        for rule, type, variants in instrumented.versions:
            base = standing.get(type, set())
            whole = self.coverage.part("rule", rule.label or "", rule.span)
            whole.held |= bool(base)
            whole.retracted |= any(True for step in outcome.steps for _ in _retracted(step, type))
            position = (rule.span.source, rule.span.start, -1)
            self.coverage.hits[position] = self.coverage.hits.get(position, 0) + bool(base)
            for variant, variant_type in variants:
                self._note(rule, variant, base, standing.get(variant_type, set()), outcome, type, variant_type)

    def _note(
        self,
        rule: s.RuleStatement,
        variant: Variant,
        base: set[OrderKey],
        without: set[OrderKey],
        outcome: Outcome,
        type: str,
        variant_type: str,
    ) -> None:
        """What a case shows of one part of a rule."""
        part = self.coverage.part(variant.kind, rule.label or "", variant.span)
        part.held |= bool(base)
        part.failed |= without != base
        if variant.kind == "absence":
            for step in outcome.steps:
                gone = set(_retracted(step, type)) - set(_retracted(step, variant_type))
                part.retracted |= bool(gone)

    def _of(self, program: Program) -> InstrumentedProgram:
        if id(program) not in self._instrumented:
            self._instrumented[id(program)] = InstrumentedProgram.of(program)
            self._programs.append(program)
        return self._instrumented[id(program)]


def _by_type(events: Iterable[Event]) -> dict[str, set[OrderKey]]:
    result: dict[str, set[OrderKey]] = {}
    for event in events:
        result.setdefault(event.type, set()).add(event.content[1:])
    return result


def _retracted(step: Sequence[Change], type: str) -> Iterator[OrderKey]:
    return (change.event.content[1:] for change in step if change.op == "retract" and change.event.type == type)
