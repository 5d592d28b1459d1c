"""Magic sets: static rules that compute only the answers that calls ask for.

    reach(X, Y) :- linked(X, Y).
    reach(X, Z) :- linked(X, Y), reach(Y, Z).        asked for with X bound, becomes

    reach^bf(X, Y) :- asked reach^bf(X), linked(X, Y).
    reach^bf(X, Z) :- reach^bf(X, Y), linked(Y, Z).

`asked` starts with the values that events have. A transitive closure goes from what is asked for, forwards or backwards, so
that there is one row for each value asked and what it reaches; other recursive rules ask for what their bodies need.
Negated conditions, and predicates with no recursion below them, are answered in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from augury.algebra.answering import reads_of
from augury.algebra.nodes import Clause, Condition, Holds, Unless
from augury.algebra.place import binds, is_ready
from augury.algebra.plan import Predicate
from augury.algebra.strata import below, components, recurs
from augury.algebra.terms import Const, Expr, Var, variables
from augury.algebra.transitive import transitive

Clauses = Mapping[Predicate, Sequence[Clause]]
Mode = tuple[bool, ...]  # which arguments are bound
_SEEDS = "asked by events"  # a name that no predicate of a program has
_X, _Y, _Z = Var("X"), Var("Y"), Var("Z")


@dataclass(frozen=True)
class Demand:
    """Clauses that answer `goal`, from facts and what is in `seeds`: values of its arguments at `places`.

    Of transitive closures, `closures` has the edges to follow from the bound argument; None for a whole one.
    """

    goal: Predicate
    clauses: dict[Predicate, list[Clause]]
    closures: dict[Predicate, Predicate | None]
    seeds: Predicate | None = None
    places: tuple[int, ...] = ()


def demand(clauses: Clauses, predicate: Predicate, bound: Iterable[int] = ()) -> Demand:
    """The clauses for all answers of a predicate, or for those with the values that `bound` arguments have."""
    rewriting = _Rewriting(clauses)
    places = set(bound)
    mode = tuple(i in places for i in range(predicate[1]))
    if not any(mode) or predicate not in rewriting.deep:
        rewriting.whole(predicate)
        return Demand(predicate, rewriting.made, rewriting.closures)
    call = rewriting.call(predicate, mode)
    rewriting.rewrite()
    positions = tuple(i for i, bound in enumerate(call.mode) if bound)
    values = tuple(Var(f"X{i}") for i in positions)
    rewriting.made.setdefault(call.asked, []).append(Clause(call.asked[0], values, (Holds(_SEEDS, values),)))
    return Demand(call.answers, rewriting.made, rewriting.closures, (_SEEDS, len(positions)), positions)


def recursive(clauses: Clauses) -> set[Predicate]:
    """The predicates that depend on themselves, and those that read them."""
    reads, result = reads_of(clauses.values()), set[Predicate]()
    for group in components(reads, reads):
        if recurs(group, reads) or any(reads.get(p, set()) & result for p in group):
            result.update(group)
    return result


def in_order(body: Sequence[Condition], bound: set[str], first: int | None = None) -> list[int]:
    """An order for joins: the `first` one, then what can be tested, then what shares most with what is known."""
    left, order = list(range(len(body))), list[int]()
    bound = set(bound)
    while left:
        ready = [i for i in left if not isinstance(body[i], Holds) and is_ready(body[i], bound)]
        calls = [i for i in left if isinstance(body[i], Holds)]
        if first is not None and not order:
            chosen = first
        elif ready or not calls:
            chosen = (ready or left)[0]
        else:
            chosen = max(calls, key=lambda i: (sum(_mode(body[i], bound)), -i))
        left.remove(chosen)
        order.append(chosen)
        bound |= binds(body[chosen], bound)
    return order


@dataclass(frozen=True)
class _Call:
    """A predicate that is asked for with some arguments bound."""

    predicate: Predicate
    mode: Mode

    @property
    def answers(self) -> Predicate:
        """The predicate of its answers, such as `reach^bf`."""
        return f"{self.predicate[0]}^{''.join('b' if b else 'f' for b in self.mode)}", self.predicate[1]

    @property
    def asked(self) -> Predicate:
        """The predicate of the values with which it is asked."""
        return f"asked {self.answers[0]}", sum(self.mode)

    def bound(self, args: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(a for a, bound in zip(args, self.mode, strict=True) if bound)

    def asking(self, args: Sequence[Expr]) -> Holds:
        """That it is asked with some arguments."""
        return Holds(self.asked[0], self.bound(args))


class _Rewriting:
    """The clauses made so far, and the calls whose clauses are still to be made."""

    def __init__(self, clauses: Clauses) -> None:
        self.clauses, self.reads = clauses, reads_of(clauses.values())
        self.deep, self.transitive = recursive(clauses), transitive(clauses)
        self.made: dict[Predicate, list[Clause]] = {}
        self.closures: dict[Predicate, Predicate | None] = {}
        self.open: list[_Call] = []
        self.seen: set[_Call] = set()

    def whole(self, predicate: Predicate) -> None:
        """All answers of a predicate, and of those below it. A path of a closure is made of two that are half as long."""
        for name, arity in below(predicate, self.reads) & self.clauses.keys():
            self.made[name, arity] = list(self.clauses[name, arity])
            if (name, arity) in self.transitive:
                edge, _ = self.transitive[name, arity]
                doubled = (Holds(name, (_X, _Y)), Holds(name, (_Y, _Z)))
                self.made[name, arity] = [
                    Clause(name, (_X, _Y), (Holds(edge, (_X, _Y)),)),
                    Clause(name, (_X, _Z), doubled),
                ]
                self.closures[name, arity] = None

    def call(self, predicate: Predicate, mode: Mode) -> _Call:
        """A call that will be answered; of a closure with both ends bound, one that goes forwards."""
        call = _Call(predicate, (True, False) if predicate in self.transitive and all(mode) else mode)
        if call not in self.seen:
            self.seen.add(call)
            self.open.append(call)
        return call

    def rewrite(self) -> None:
        while self.open:
            call = self.open.pop()
            if call.predicate in self.transitive:
                self._closure(call)
            else:
                for clause in self.clauses[call.predicate]:
                    self._clause(call, clause)

    def _closure(self, call: _Call) -> None:
        """One row for each pair of a demanded value and one that it reaches."""
        edge, name = self.transitive[call.predicate], call.answers[0]
        self.whole(edge)
        first, then = (name, edge[0]) if call.mode[0] else (edge[0], name)
        self._add(call, (_X, _Y), (Holds(edge[0], (_X, _Y)),))
        self.made[call.answers].append(Clause(name, (_X, _Z), (Holds(first, (_X, _Y)), Holds(then, (_Y, _Z)))))
        self.closures[call.answers] = edge

    def _clause(self, call: _Call, clause: Clause) -> None:
        bound = variables(*call.bound(clause.args))
        steps: list[Condition] = []
        for i in in_order(clause.body, bound):
            condition = clause.body[i]
            inner = (condition.name, len(condition.args)) if isinstance(condition, Holds | Unless) else None
            mode = _mode(condition, bound) if isinstance(condition, Holds) and inner in self.deep else ()
            if inner is not None and any(mode):
                assert isinstance(condition, Holds)
                asked = self.call(inner, mode)
                self._ask(asked, condition, (call.asking(clause.args), *steps), clause)
                condition = Holds(asked.answers[0], condition.args, condition.span)
            elif inner is not None:
                self.whole(inner)
            steps.append(condition)
            bound |= binds(condition, bound)
        self._add(call, clause.args, tuple(steps))

    def _ask(self, asked: _Call, condition: Holds, body: tuple[Condition, ...], clause: Clause) -> None:
        """The rule by which a call in a body is asked for, unless it says that what is asked is asked."""
        wanted = asked.asking(condition.args)
        if body != (wanted,):
            rule = Clause(wanted.name, wanted.args, body, span=clause.span)
            self.made.setdefault(asked.asked, []).append(rule)

    def _add(self, call: _Call, args: tuple[Expr, ...], body: tuple[Condition, ...]) -> None:
        rule = Clause(call.answers[0], args, (call.asking(args), *body))
        self.made.setdefault(call.answers, []).append(rule)


def _mode(condition: Condition, bound: set[str]) -> Mode:
    """The arguments of a call that are bound."""
    assert isinstance(condition, Holds)
    return tuple(isinstance(a, Const) or (isinstance(a, Var) and a.name in bound) for a in condition.args)
