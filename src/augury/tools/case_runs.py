"""Runs cases, and explains those that fail: why an unexpected answer is there, and why a missing one is not."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter

from augury.core.errors import AuguryError, RunError
from augury.explain import sessions
from augury.notation import show_event
from augury.testing import Case, Outcome

_MOST = 3  # answers of a case that are explained


@dataclass(frozen=True)
class CaseResult:
    """How a case ended: `error` is what stopped it, `explanations` say why its answers are, or are not, there."""

    case: Case
    seconds: float
    outcome: Outcome | None = None
    error: str = ""
    explanations: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.outcome is not None and self.outcome.passed

    @property
    def message(self) -> str:
        """What differs, and why."""
        differences = [] if self.outcome is None else [str(m).rstrip() for m in self.outcome.mismatches]
        return "\n\n".join(([self.error] if self.error else []) + differences + list(self.explanations))


def run_cases(cases: Iterable[Case], engine: str = "embedded") -> Iterator[CaseResult]:
    """The results of cases, as they come."""
    for case in cases:
        begun = perf_counter()
        try:
            outcome = case.run(engine=engine)
        except (AuguryError, AssertionError) as error:
            yield CaseResult(case, perf_counter() - begun, error=str(error))
            continue
        explanations = () if outcome.passed else tuple(explained(outcome))
        yield CaseResult(case, perf_counter() - begun, outcome, explanations=explanations)


def explained(outcome: Outcome) -> Iterator[str]:
    """Why unexpected answers are there, and why missing ones are not: of the first few."""
    session = outcome.session
    if session is None or outcome.program is None or outcome.program.plan.graph_queries:
        return
    unexpected = [event for mismatch in outcome.mismatches for event in mismatch.unexpected]
    missing = [event for mismatch in outcome.mismatches for event in mismatch.missing]
    for event in unexpected[:_MOST]:
        yield from _section(f"why {show_event(event, outcome.clock)}", lambda event=event: sessions.why(session, event))  # type: ignore[misc]
    for event in missing[:_MOST]:
        shown = show_event(event, outcome.clock)
        yield from _section(f"why not {shown}", lambda shown=shown: sessions.why_not(session, shown))  # type: ignore[misc]


def _section(title: str, text: Callable[[], str]) -> Iterator[str]:
    try:
        lines = text().splitlines()
    except AuguryError as error:
        lines = str(error).splitlines()
    yield "\n".join([f"{title}:", *(f"  {line}" for line in lines)])


def selected(cases: Iterable[Case], expression: str = "", tags: Iterable[str] = ()) -> list[Case]:
    """The cases whose file or name meets an expression, such as `shipped and not late`, and that have one of the tags."""
    test = _read_expression(expression) if expression else None
    wanted = set(tags)
    return [
        case
        for case in cases
        if (test is None or test(f"{case.path} {case.name}".lower())) and (not wanted or wanted & set(case.tags))
    ]


_JOINING = re.compile(r"\b(?:and|or|not)\s*$|^\s*(?:and|or)\b", re.IGNORECASE)


def _read_expression(text: str) -> Callable[[str], bool]:
    """Words joined by `and`, `or` and `not`; a word is met where it occurs. Several words side by side are one text."""
    if _JOINING.search(text):
        raise RunError(f"not a selection: {text!r}", hint="such as -k 'fire and not late'")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return lambda name: text.lower() in name

    def is_selection(node: ast.expr) -> bool:
        match node:
            case ast.BoolOp():
                return all(map(is_selection, node.values))
            case ast.UnaryOp(op=ast.Not()):
                return is_selection(node.operand)
        return isinstance(node, ast.Name | ast.Constant | ast.Attribute)

    def met(node: ast.expr, name: str) -> bool:
        match node:
            case ast.BoolOp(op=ast.And()):
                return all(met(value, name) for value in node.values)
            case ast.BoolOp():
                return any(met(value, name) for value in node.values)
            case ast.UnaryOp(op=ast.Not()):
                return not met(node.operand, name)
        return ast.unparse(node).strip("'\"").lower() in name

    if not is_selection(tree):  # `shipped in time` reads as Python, and is a text
        return lambda name: text.lower() in name
    return lambda name: met(tree, name)
