"""Lints: what is legal, and better written otherwise. Each looks at a compiled program; codes begin with L.

A finding may have a fix; a safe one leaves the answers as they are, and `augury check --fix` applies it.
"""

from __future__ import annotations

from augury.compiled import Compiled
from augury.core.errors import Diagnostic, Findings
from augury.lint.fixes import with_fix
from augury.lint.hidden_names import lint_names
from augury.lint.join_shapes import lint_join_shapes
from augury.lint.repeated_parts import lint_repeated_parts
from augury.lint.repeated_rules import lint_repeated_rules
from augury.lint.rule_windows import lint_windows
from augury.lint.spellings import lint_spellings
from augury.lint.suppressions import suppressed
from augury.lint.truths import lint_truths
from augury.lint.unreachable import lint_unreachable
from augury.lint.unread import lint_unread
from augury.lint.unused_policies import lint_policies

LINTS = (
    lint_unreachable,
    lint_repeated_rules,
    lint_repeated_parts,
    lint_truths,
    lint_join_shapes,
    lint_unread,
    lint_names,
    lint_policies,
    lint_spellings,
)


def lint(program: Compiled, retention: int | None = None) -> tuple[Diagnostic, ...]:
    """The warnings of a program and what the lints find, in the order of the text, without those that comments suppress.

    `retention` is the window, in microseconds, that a run would give to rules without bound.
    """
    findings = Findings(prefixes=dict(program.plan.prefixes))
    findings.items.extend(program.warnings)
    for look in LINTS:
        look(program, findings)
    lint_windows(program, findings, retention)
    return tuple(map(with_fix, suppressed(findings, program)))
