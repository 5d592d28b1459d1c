"""Recursive event rules that count up to a constant, so that their rounds end without a longer interval.

sum(C + 1, O + X) <- sum(C, O) AND a(X) WHERE C < 5.   sum(0, 0) <- start.   →   C counts from 0 to 5 in steps of 1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from augury.algebra import nodes as n
from augury.algebra.plan import Predicate
from augury.algebra.strata import components
from augury.algebra.terms import Apply, Const, Expr, Var
from augury.algebra.value_bounds import tightest
from augury.language.checks.value_conflicts import always, certain, comparisons_of

_MOST_CHOICES = 1000  # of an argument for each type of a cycle, which are tried one after the other


class ShortRead(NamedTuple):
    """A rule of a cycle, and an atom of the cycle that it reads over an interval that may be as long as the derived one."""

    rule: n.Rule
    scan: n.Scan


def counts_to_an_end(
    group: Sequence[Predicate], reads: Iterable[ShortRead], computing: Iterable[n.Rule], rules: Iterable[n.Rule]
) -> bool:
    """Whether an argument counts the rounds of a cycle, from a constant to a constant.

    The cycle has the types of `group`, which depend on each other through `reads`; `computing` are the rules that make
    new values, `rules` all that derive its types. Each read has to pass the counter on, as it is or one or more further.
    A round that makes values has to count, under a condition with the constant that ends it.
    """
    reads, makers, rules = list(reads), {rule.label for rule in computing}, list(rules)
    if prod(max(arity, 1) for _, arity in group) > _MOST_CHOICES:
        return False
    choices = (dict(zip(group, places, strict=True)) for places in product(*(range(arity) for _, arity in group)))
    return any(_counts(counter, reads, makers, rules, up) for counter in choices for up in (True, False))


def _counts(
    counter: Mapping[Predicate, int], reads: list[ShortRead], computing: set[str], rules: list[n.Rule], up: bool
) -> bool:
    """Whether the arguments at `counter` count the rounds, upwards or downwards."""
    unchanged: dict[Predicate, set[Predicate]] = {}
    for rule, scan in reads:
        step = _step(rule, scan, counter, up)
        if step is None or (step and not _ends(rule, scan, counter, up)):
            return False
        if not step:
            unchanged.setdefault(rule.predicate, set()).add(scan.predicate)
    for inner in components(unchanged, unchanged):
        if any(r.label in computing and r.predicate in inner and s.predicate in inner and not _step(r, s, counter, up)
               for r, s in reads):  # fmt: skip
            return False
    return all(_starts(rule, counter, up) for rule in rules)


def _step(rule: n.Rule, scan: n.Scan, counter: Mapping[Predicate, int], up: bool) -> int | None:
    """By how much a rule counts on from an atom that each of its rows has; None where it does something else."""
    if not any(isinstance(part, n.Scan) and part.span == scan.span for part in always(rule.body)):
        return None
    match scan.args[counter[scan.predicate]], _made(rule, rule.args[counter[rule.predicate]]):
        case Var(name=before), Var(name=after) if before == after:
            return 0
        case Var(name=before), Apply(function="+", args=(Var(name=name), Const(value=int(step)))) if before == name:
            return step if up and step > 0 else None
        case Var(name=before), Apply(function="+", args=(Const(value=int(step)), Var(name=name))) if before == name:
            return step if up and step > 0 else None
        case Var(name=before), Apply(function="-", args=(Var(name=name), Const(value=int(step)))) if before == name:
            return step if not up and step > 0 else None
        case _:
            return None


def _made(rule: n.Rule, arg: Expr) -> Expr:
    """What an argument of a head is computed from, where a condition says so: for D that is C + 1 in `D = C + 1`."""
    return next((made for made in _equals(rule, arg) if isinstance(made, Apply)), arg)


def _equals(rule: n.Rule, arg: Expr) -> Iterator[Expr]:
    for condition in certain(rule.body):
        if isinstance(condition, n.Compare) and condition.op == "=":
            if condition.left == arg:
                yield condition.right
            if condition.right == arg:
                yield condition.left


def _ends(rule: n.Rule, scan: n.Scan, counter: Mapping[Predicate, int], up: bool) -> bool:
    """Whether the rule asks that the counter is below a constant, before it counts or after."""
    after = rule.args[counter[rule.predicate]]
    if any(_bounded(rule, side, up) for side in (scan.args[counter[scan.predicate]], after)):
        return True
    beyond = {"<": True, "<=": True, ">": False, ">=": False}
    for c in certain(rule.body):
        if isinstance(c, n.Compare) and c.op in beyond:
            low, high = (c.left, c.right) if beyond[c.op] else (c.right, c.left)
            inside, limit = (low, high) if up else (high, low)
            if inside == after and isinstance(limit, Const) and _is_number(limit):
                return True
    return False


def _starts(rule: n.Rule, counter: Mapping[Predicate, int], up: bool) -> bool:
    """Whether a rule begins the counter at a constant, or beyond one, or counts on."""
    if rule.predicate not in counter:
        return True
    if any(scan.predicate in counter and _step(rule, scan, counter, up) is not None for scan in n.scans(rule.body)):
        return True
    return _bounded(rule, rule.args[counter[rule.predicate]], not up)


def _bounded(rule: n.Rule, side: Expr, upper: bool) -> bool:
    """Whether the conditions of a rule keep a value below a number, or with `upper` false above one."""
    bound = tightest(side, comparisons_of(certain(rule.body)), upper)
    return bound is not None and _is_number(bound.constant)


def _is_number(constant: Const) -> bool:
    return isinstance(constant.value, int | float) and not isinstance(constant.value, bool)
