"""The variables and labels of a run, and those that its conditions use."""

from __future__ import annotations

from dataclasses import replace

from augury.algebra.kinds import inner_absences, positive_atoms
from augury.algebra.nodes import (
    Compare,
    Condition,
    NoneInside,
    Run,
    RunResult,
    Scan,
    bound_vars,
    condition_terms,
    condition_vars,
    conditions,
    scans,
)
from augury.algebra.ready import binds, is_ready
from augury.algebra.terms import Aggregate, Const, Prev, Var, Wild, variables
from augury.algebra.terms import walk as walk_terms
from augury.algebra.window_lengths import FLIPPED


def asked_of(condition: Condition) -> list[Prev | Aggregate]:
    """The earlier values and the aggregates that a condition asks for."""
    return [p for term in condition_terms(condition) for p in walk_terms(term) if isinstance(p, Prev | Aggregate)]


def part_variables(run: Run) -> set[str]:
    """The variables that the parts of a run bind, those of iterations among them, and its results."""
    return {v for part in run.parts for v in bound_vars(part.input)} | {result.name for result in run.results}


def outer_variables(result: RunResult, run: Run) -> set[str]:
    """The variables that a result waits for: those in it that are not each iteration's own.

    `sum(V * K)` over `row(V)+` waits for K, and so does `sum(D)` where `D = V * K`.
    """
    part, names, done = run.parts[result.part], variables(*result.aggregate.args), set[str]()
    computed = set(part.own) - bound_vars(part.input)
    while new := (names & computed) - done:
        done |= new
        names = names.union(*(condition_vars(c) for c in part.where if new & binds(c, condition_vars(c) - new)))
    others = {r.name: r for r in run.results if r.name in names}
    names = names.union(*(outer_variables(r, run) for r in others.values()))
    return names - set(part.own) - others.keys()


def run_variables(run: Run) -> set[str]:
    """The variables with one value in a run: those of its parts, of its conditions and its results."""
    part_own, bound = {v for part in run.parts for v in part.own}, part_variables(run)
    for condition in conditions(run):
        bound |= binds(condition, bound | part_own)
    return bound - part_own


def in_turn(where: tuple[Condition, ...], run: Run, bound: set[str]) -> list[Condition]:
    """The conditions in an order in which each finds its variables bound, as far as there is one.

    A result is bound once the variables in it are: `nth(V, N) > 3` comes after `N = count(V)`.
    """
    left, order = [c for c in where if not isinstance(c, NoneInside)], list[Condition]()
    every = {result.name for result in run.results}
    bound_before = bound - every
    while left:
        results = {r.name for r in run.results if outer_variables(r, run) <= bound_before}
        # An equation cannot give a result its value: `M = last(V + D)` waits for D where M is known.
        ready = (c for c in left if is_ready(c, bound_before | results) and not condition_vars(c) & (every - results))
        chosen = next(ready, None) or next(iter(positive_atoms(left)), left[0])
        left.remove(chosen)
        order.append(chosen)
        bound_before |= binds(chosen, bound_before | results)
    return order + inner_absences(where)


def with_counts_in_quantifiers(run: Run) -> Run:
    """The same run, where a condition on how often a part repeats is part of its quantifier.

    `(c: click(U))+ WHERE count(c) >= 3`    →    `(c: click(U)){3,}`
    """
    counts = {r.name: r.part for r in run.results if r.aggregate.function == "count" and not r.aggregate.args}
    parts = list(run.parts)
    for number, part in enumerate(run.parts):
        for condition in part.after:
            bounds = _count_bounds(condition, {name for name, of in counts.items() if of == number})
            least, most = parts[number].least, parts[number].most
            if bounds is not None and part.repeats:
                least = max(least, bounds[0])
                most = min((m for m in (most, bounds[1]) if m is not None), default=None)
                # A part that comes once at most is no repetition: its variables would have another meaning.
                if most is None or most >= max(least, 2):
                    after = tuple(c for c in parts[number].after if c is not condition)
                    parts[number] = replace(parts[number], least=least, most=most, after=after)
    return replace(run, parts=tuple(parts))


def without_idle_iterations(run: Run) -> Run:
    """The same run without iterations that change no answer: after SEQ, one match with fewer of them stands for all.

    `a SEQ b+ SEQ c`    →    `a SEQ b{1} SEQ c`
    """
    asked = {result.part for result in run.results}
    parts = list(run.parts)
    for number, part in enumerate(parts):
        links = (part.link if number else part.between, *(p.link for p in parts[number + 1 : number + 2]))
        first = all(p.optional for p in parts[:number])
        last = all(p.optional for p in parts[number + 1 :])
        free = part.label is None and number not in asked and not any(map(asked_of, part.where))
        if run.which == "ALL" and part.repeats and free and not (first and last) and {*links, part.between} == {"SEQ"}:
            parts[number] = replace(part, most=max(part.least, 1), iterates=True)
    return replace(run, parts=tuple(parts))


def _count_bounds(condition: Condition, names: set[str]) -> tuple[int, int | None] | None:
    """The least and the greatest number that a comparison of a count with a constant allows."""
    if not isinstance(condition, Compare) or condition.op not in FLIPPED:
        return None
    op: str = condition.op
    left, right = condition.left, condition.right
    if isinstance(left, Const):
        op, left, right = FLIPPED[op], right, left
    if not (isinstance(left, Var) and left.name in names and isinstance(right, Const)):
        return None
    if type(number := right.value) is not int:
        return None
    bounds = {
        ">=": (number, None),
        ">": (number + 1, None),
        "<=": (0, number),
        "<": (0, number - 1),
        "=": (number, number),
    }
    return bounds[op]


def bound_at_the_end(run: Run) -> set[str]:
    """The variables that conditions on the complete match bind."""
    bound_before, bound_later = run_variables(replace(run, where=())), set[str]()
    for condition in in_turn(run.where, run, bound_before):
        bound_later |= binds(condition, bound_before | bound_later)
    return bound_later


def run_labels(run: Run) -> set[str]:
    """The labels of parts that do not repeat, those that may be left out included."""
    return {part.label for part in run.parts if part.label is not None and not part.repeats}


def events_of(run: Run) -> tuple[Scan, ...]:
    """The events of a run: each atom of its parts with nothing but the key."""
    result: dict[Scan, None] = {}
    for scan in (scan for part in run.parts for scan in scans(part.input)):
        args = (Var(a.name) if isinstance(a, Var) and a.name in run.key else Wild() for a in scan.args)
        result[Scan(scan.type, tuple(args))] = None
    return tuple(result)
