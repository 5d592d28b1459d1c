"""The reference evaluator against figure 2 of the paper, read literally: the intervals of a pattern under an assignment.

The evaluator joins rows; this oracle tries every assignment of values to variables and writes each equation out again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from hypothesis import given

from augury.algebra.nodes import Either, Join, Label, Node, Repeat, Scan, Select, Within, bound_vars, walk_all
from augury.algebra.terms import Var, Wild
from augury.core.clock import SECOND
from augury.core.model import Event, OrderKey, order_key
from tests.differential.test_laws import answer, rule
from tests.generators.strategies import histories, pattern_texts

Interval = tuple[int, int]
Assignment = Mapping[str, int]
VALUES = (1, 2)


def related(op: str, left: Interval, right: Interval) -> bool:
    (q1, q2), (q3, q4) = left, right
    match op:
        case "SEQ":
            return q2 < q3
        case "AND":
            return True
        case "PAR":
            return max(q1, q3) < min(q2, q4)
        case "EQUALS":
            return q1 == q3 and q2 == q4
        case "MEETS":
            return q2 == q3
        case "DURING":
            return q3 < q1 and q2 < q4
        case "STARTS":
            return q1 == q3 and q2 < q4
        case "FINISHES":
            return q2 == q4 and q3 < q1
    raise AssertionError(op)


def result(op: str, left: Interval, right: Interval) -> Interval:
    (q1, q2), (q3, q4) = left, right
    match op:
        case "SEQ" | "MEETS":
            return (q1, q4)
        case "DURING" | "STARTS" | "FINISHES":
            return (q3, q4)
        case "EQUALS":
            return (q1, q2)
    return (min(q1, q3), max(q2, q4))


def names(node: Node) -> set[str]:
    return {a.name for n in walk_all(node) if isinstance(n, Scan) for a in n.args if isinstance(a, Var)}


def assignments(variables: set[str]) -> Iterator[Assignment]:
    order = sorted(variables)
    for values in itertools.product(VALUES, repeat=len(order)):
        yield dict(zip(order, values, strict=True))


def intervals(node: Node, mu: Assignment, history: list[Event]) -> set[Interval]:
    """The extension of a pattern under an assignment."""
    match node:
        case Scan():
            return {(e.start, e.end) for e in history if e.type == node.type and fits(node, e, mu)}
        case Within():
            return {i for i in intervals(node.input, mu, history) if i[1] - i[0] <= node.length // SECOND}
        case Either():
            return intervals(node.left, mu, history) | intervals(node.right, mu, history)
        case Join():
            pairs = itertools.product(intervals(node.left, mu, history), intervals(node.right, mu, history))
            return {
                result(node.op, i, j)
                for i, j in pairs
                if related(node.op, i, j) and not (node.absent and between(node.absent, i, j, mu, history))
            }
        case Repeat():
            found = intervals(node.input, mu, history)
            for _ in range(node.count - 1):
                pairs = itertools.product(found, intervals(node.input, mu, history))
                found = {
                    (i[0], j[1])
                    for i, j in pairs
                    if i[1] < j[0] and not (node.consecutive and between(node.input, i, j, mu, history))
                }
            return found
        case Select() | Label():
            raise AssertionError("not among the patterns of this test")
    raise AssertionError(node)


def fits(scan: Scan, event: Event, mu: Assignment) -> bool:
    (arg,) = scan.args
    if isinstance(arg, Wild):
        return True
    return event.args[0] == (mu[arg.name] if isinstance(arg, Var) else 1)


def between(absent: Node, i: Interval, j: Interval, mu: Assignment, history: list[Event]) -> bool:
    """Whether the absent pattern lies between two occurrences, for some value of the variables that only it has."""
    local = names(absent) - mu.keys()
    return any(
        i[1] < k[0] and k[1] < j[0] for more in assignments(local) for k in intervals(absent, {**mu, **more}, history)
    )


def oracle(body: Node, history: list[Event]) -> set[OrderKey]:
    heads = sorted(bound_vars(body))
    # A variable that only an absent pattern has is not the assignment's business.
    positive = {a.name for n in positives(body) for a in n.args if isinstance(a, Var)}
    found: set[OrderKey] = set()
    for mu in assignments(positive):
        for start, end in intervals(body, mu, history):
            found.add(("e", len(heads), tuple(order_key(mu[v]) for v in heads), start, end))
    return found


def positives(node: Node) -> Iterator[Scan]:
    match node:
        case Scan():
            yield node
        case Join() | Either():
            yield from positives(node.left)
            yield from positives(node.right)
        case Within() | Repeat():
            yield from positives(node.input)


@given(pattern_texts, histories())
def test_patterns_mean_what_the_figure_says(text: str, history: list[Event]) -> None:
    plan = rule(text)
    assert answer(plan, history) == oracle(plan.rules[0].body, history)
