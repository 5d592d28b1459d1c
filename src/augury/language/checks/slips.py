"""Warnings for what is legal but most likely a mistake: a lower-case variable, a window of another language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from augury.algebra.kinds import of_kind
from augury.algebra.nodes import Holds, Rule, Scan, SessionWindow, Unless
from augury.algebra.plan import Plan, static_atoms
from augury.algebra.terms import Const, Expr, Var, Wild, show, variables, walk
from augury.core.clock import Duration, show_duration
from augury.core.errors import Findings, Note
from augury.language.checks.arity import scans

_LETTER = re.compile(r"[a-z]\d*")


def check_slips(plan: Plan, findings: Findings) -> None:
    atoms: dict[str, list[Holds | Unless]] = {}
    for atom, rule in static_atoms(plan):
        if rule is not None:
            atoms.setdefault(rule.label, []).append(atom)
    types = {*plan.declared, *(rule.type for rule in plan.rules)}
    for rule in plan.rules:
        rule_scans = scans(rule)
        _check_small_letters(
            rule.args, [a for atom in (*rule_scans, *atoms.get(rule.label, ())) for a in atom.args], findings
        )
        for scan in rule_scans:
            if scan.type not in types:
                _check_window(scan, rule, findings)
        _check_session_keys(rule, findings)
    for clause in plan.clauses:
        body = [a for c in clause.body if isinstance(c, Holds | Unless) for a in c.args]
        if clause.body:
            _check_small_letters(clause.args, body, findings)


def _check_small_letters(head: tuple[Expr, ...], body: list[Expr], findings: Findings) -> None:
    """`a(x) <- b(x)`: one bare name on both sides, a single letter, or in a rule that has no variable at all.

    Other bare names are mostly meant as strings, `alert(P, high) <- level(P, high)`.
    """
    places = {const.value: const for const in reversed(list(_bare(body)))}
    plain = not any(isinstance(part, Var | Wild) for arg in (*head, *body) for part in walk(arg))
    plain = plain and all(isinstance(arg, Const) and arg.value in places for arg in (*head,))
    for const in _bare(head):
        name = const.value
        if name in places and (plain or _LETTER.fullmatch(str(name))):
            message = f"`{name}` is a string here; a variable begins with a capital"
            hint = f"write `{str(name)[0].upper()}{str(name)[1:]}`, or `'{name}'` if the string is meant"
            findings.add("W308", message, const.span, Note("the same string", places[name].span), hint=hint)


def _check_session_keys(rule: Rule, findings: Findings) -> None:
    """`w: session(30min, click(U, V)), while w: collect click(U, V)` with `sum(V)`: a session for each user and value."""
    aggregated = {v for total in rule.totals.values() for v in variables(*total.args)} - variables(*rule.args)
    for window in of_kind(rule.nodes, SessionWindow):
        for arg in window.input.args:
            for name in sorted(variables(arg) & aggregated):
                message = f"`{name}` is part of the key of the session, and an aggregate ranges over it"
                hint = "there is a session for each of its values; write `_` in the session, and the variable where events are collected"
                findings.add("W316", message, arg.span, hint=hint)


def _bare(args: Iterable[Expr]) -> Iterator[Const]:
    """The strings that are written without quotes."""
    for arg in args:
        if isinstance(arg, Const) and isinstance(arg.value, str) and arg.span.text == arg.value:
            yield arg


def _check_window(scan: Scan, rule: Rule, findings: Findings) -> None:
    """`tumbling(1h)` would be an event with a duration for its argument, which never comes."""
    lengths = [arg.value for arg in scan.args if isinstance(arg, Const) and isinstance(arg.value, Duration)]
    if not lengths or any(isinstance(arg, Var) for arg in scan.args):
        return
    length = show_duration(lengths[0].us)
    message = f"`{scan.type}({', '.join(map(show, scan.args))})` is an event here, which nothing declares or derives"
    form = f"`(…).{length}`, `{{o, s}} within {length}` or `w: extend(o, {length})`"
    hint = f"a window is written {form}; if it is an event, declare it: `event {scan.type}(length: duration).`"
    findings.add("W309", message, scan.span, hint=hint)
