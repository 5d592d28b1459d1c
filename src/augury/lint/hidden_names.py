"""Names that hide another one."""

from __future__ import annotations

from augury.algebra.aggregates import AGGREGATES
from augury.algebra.scalar import FUNCTIONS
from augury.compiled import Compiled
from augury.core.errors import Findings, Note, Span
from augury.language.rules import syntax as s
from augury.language.rules.symbols import name_of


def lint_names(program: Compiled, findings: Findings) -> None:
    """L111: an event or a predicate with the name of a built-in function, a label with that of an event or a predicate."""
    built_in = FUNCTIONS.keys() | AGGREGATES.keys()
    defined: dict[str, Span] = {}
    statements = [x for m in program.modules for x in m.statements]
    for statement in statements:
        for name, arity, span in _defined(statement):
            if name in built_in and name not in defined and arity in _arities(name):
                kind = "an aggregate" if name in AGGREGATES else "a function"
                message = f"`{name}` hides {kind} of the same name"
                findings.add("L111", message, span, hint="give it another name, so that readers know which is meant")
            defined.setdefault(name, span)
    for statement in statements:
        for literal in statement.body if isinstance(statement, s.RuleStatement) else ():
            for part in s.walk(literal):
                if isinstance(part, s.Labelled) and part.label in defined:
                    span = part.span.part(rf"^{part.label}")
                    message = f"the label `{part.label}` is also the name of an event or a predicate"
                    findings.add("L111", message, span, Note("which is defined here", defined[part.label]))


def _arities(name: str) -> range:
    """With how many arguments a built-in function is called."""
    function = FUNCTIONS.get(name)
    if function is None:
        return range(1, 3 if AGGREGATES[name].more else 2)
    most = len(function.types)
    return range(most - function.optional, 100 if function.variadic else most + 1)


def _defined(statement: s.Statement) -> list[tuple[str, int, Span]]:
    """The name that a statement defines, and its number of arguments."""
    match statement:
        case s.EventDecl() | s.StaticDecl():
            return [(statement.name, len(statement.attributes), name_of(statement))]
        case s.RuleStatement(head=s.CallTerm() as head) | s.StaticRule(head=s.CallTerm() as head):
            return [(head.name, len(head.args), head.span.part(rf"^{head.name}"))]
    return []
