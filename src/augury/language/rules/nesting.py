"""How large a rule may be. Later passes follow its nesting, and relate the times of every two of its parts.

Long lists and chains of conditions, many rules and many facts are no matter of these limits.
"""

from __future__ import annotations

from augury.core.errors import Span
from augury.language.rules import syntax as s

DEEPEST = 200  # parts inside one another, and literals side by side
MOST_REPEATED = 200


def too_large(statement: s.RuleStatement | s.StaticRule) -> tuple[str, Span, str] | None:
    """What is too large about a rule, where, and what to do about it."""
    event = isinstance(statement, s.RuleStatement)
    hint = f"{'derive an event' if event else 'define a static predicate'} from some of them, and use it here"
    if _deeper(statement, DEEPEST):
        return f"more than {DEEPEST} parts are nested in one another", statement.head.span, hint
    if sum(not isinstance(literal, s.Chain) for literal in statement.body) > DEEPEST:
        return f"the body has more than {DEEPEST} literals", statement.head.span, hint
    for node in (node for literal in statement.body for node in s.walk(literal)):
        if isinstance(node, s.Power) and node.count > MOST_REPEATED:
            return (
                f"a pattern is repeated at most {MOST_REPEATED} times, not {node.count}",
                node.span.part(r"\^\s*(?P<it>\d+)[^^]*$"),
                "to count events, collect them: `while w: collect …` with `count()` in the head",
            )
    return None


def _deeper(statement: s.RuleStatement | s.StaticRule, levels: int) -> bool:
    """Whether a rule has more levels. A chain of conditions, `X = 1 or X = 2 or …`, is one level, however long it is."""
    static = isinstance(statement, s.StaticRule)
    level: list[tuple[s.Node, bool]] = [(statement.head, False), *((literal, static) for literal in statement.body)]
    for _ in range(levels):
        level = [part for node, condition in level for part in _parts(node, condition)]
        if not level:
            return False
    return True


def _parts(node: s.Node, condition: bool) -> list[tuple[s.Node, bool]]:
    """The parts of a node, each with whether it is surely a condition."""
    match node:
        case s.Where():
            return [(node.pattern, False), (node.condition, True)]
        case s.Binary(op="AND" | "OR") if condition or isinstance(node.right, s.Chain):
            return [(operand, True) for operand in s.joined(node)]
        case s.Group():
            return [(item, condition) for item in node.items]
    return [(child, False) for child in s.children(node)]
