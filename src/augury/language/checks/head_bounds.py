"""Rules that ask of derived events what no rule gives them: values beyond the bounds of heads, or too long a time.

p(X) <- a(X) WHERE X < 3.   q(X) <- p(X) WHERE X > 5.   →   `q` can never be detected from what rules derive
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from augury.algebra.kinds import of_kind
from augury.algebra.nodes import Compare, Rule, Scan
from augury.algebra.plan import Plan, Predicate
from augury.algebra.properties import length_conflicts
from augury.algebra.relations import Reason
from augury.algebra.strata import strata
from augury.algebra.value_bounds import ValueBound, conflict, loosest, tightest
from augury.core.errors import Findings, Note, Span
from augury.language.checks.value_conflicts import always, certain, comparisons_of

_SIDES = (True, False)  # upper and lower
HeadBounds = dict[tuple[Predicate, int, bool], ValueBound]


def check_head_bounds(plan: Plan, findings: Findings) -> None:
    """Warns of rules that read derived events which no rule makes so. Events of the type that arrive may be so."""
    bounds: HeadBounds = {}
    for stratum in strata(plan):
        for rule in stratum.rules:
            if findings.sound(rule.span):
                _check(rule, bounds, findings)
        new = [_head_bounds(type, plan.derived[type], bounds) for type in stratum.types]
        for more in new:
            bounds |= more
    for rule in plan.rules:
        if findings.sound(rule.span) and (reasons := length_conflicts(plan).get(rule.label)):
            _warn_of_lengths(rule, reasons, findings)


def _warn_of_lengths(rule: Rule, reasons: tuple[Reason, ...], findings: Findings) -> None:
    asked = [reason for reason in reasons if not reason.text.startswith("the length of")]
    asked.sort(key=lambda reason: not reason.text.startswith("the window"))
    against = " and ".join(dict.fromkeys(reason.text for reason in reasons if reason not in asked))
    span = asked[0].span if asked else rule.span
    what = asked[0].text if asked and asked[0].text.startswith("the window") else span.quoted
    too_long = any(reason.text.endswith("at least") for reason in reasons)
    hint = (
        "derived events cover their windows; `SINCE END` after a head makes points of its events" if too_long else None
    )
    _warn(rule, f"{what} contradicts {against}", span, (), findings, hint)


def _check(rule: Rule, bounds: HeadBounds, findings: Findings) -> None:
    written = comparisons_of((*certain(rule.body), *rule.having))
    if not bounds or conflict(written):
        return
    scans = of_kind(always(rule.body), Scan)
    implied = {c: scan for scan in scans for c in _of_scan(scan, bounds) if c not in written}
    if reasons := conflict((*written, *implied)):
        asked = [reason for reason in reasons if reason not in implied]
        scan = next(implied[reason] for reason in reasons if reason in implied)
        span, what = (asked[0].span, asked[0].span.quoted) if asked else (scan.span, scan.span.quoted)
        others = dict.fromkeys(reason.span for reason in reasons if reason in implied)
        against = " and ".join(other.quoted for other in others)
        text = f"{what} contradicts {against} of the rules of `{scan.type}`"
        _warn(rule, text, span, [Note(other.quoted, other) for other in others], findings)


def _warn(
    rule: Rule, text: str, span: Span, notes: Iterable[Note], findings: Findings, hint: str | None = None
) -> None:
    message = f"rule `{rule.label}` can never be detected from what rules derive: {text}"
    findings.add("W314", message, span, *notes, hint=hint)


def _of_scan(scan: Scan, bounds: HeadBounds) -> Iterator[Compare]:
    """What an atom says of its arguments, since rules derive its events."""
    for position, arg in enumerate(scan.args):
        for upper in _SIDES:
            if bound := bounds.get((scan.predicate, position, upper)):
                yield bound.compared(arg, upper)


def _head_bounds(type: Predicate, rules: tuple[Rule, ...], below: HeadBounds) -> HeadBounds:
    """The bounds on the arguments of a derived type: of its rules the loosest."""
    by_rule = [(rule, _comparisons(rule, below)) for rule in rules]
    result: HeadBounds = {}
    for position in range(type[1] if rules else 0):
        for upper in _SIDES:
            each = (tightest(rule.args[position], comparisons, upper) for rule, comparisons in by_rule)
            if (bound := loosest(each, upper)) is not None:
                result[type, position, upper] = bound
    return result


def _comparisons(rule: Rule, bounds: HeadBounds) -> tuple[Compare, ...]:
    implied = (c for scan in of_kind(always(rule.body), Scan) for c in _of_scan(scan, bounds))
    return (*comparisons_of((*certain(rule.body), *rule.having)), *implied)
