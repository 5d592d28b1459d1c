"""Static rules that answer what is asked for, not all there is: magic sets.

    reach(X, Z) :- linked(X, Y), reach(Y, Z).        asked for with X bound, becomes

    reach^bf(X, Z) :- asked reach^bf(X), reach^bf(X, Y), linked(Y, Z).

`asked` starts with the values that events have. A transitive closure goes from what is asked for, forwards or backwards, so
that there is one row for each value asked and what it reaches; other recursive rules ask for what their bodies need.
Negated conditions, and predicates with no recursion below them, are answered in full.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from augury.algebra.nodes import Clause, Condition, Holds, Unless
from augury.algebra.place import binds, is_ready
from augury.algebra.plan import Predicate
from augury.algebra.strata import components, static_reads
from augury.algebra.terms import Const, Expr, Var, variables
from augury.algebra.transitive import transitive

Clauses = Mapping[Predicate, Sequence[Clause]]
Mode = tuple[bool, ...]  # which arguments are bound


@dataclass(frozen=True)
class Reach:
    """A transitive closure of edges: all of it, or what is reached from the values asked for."""

    edge: Predicate
    asked: Predicate | None = None
    forwards: bool = True


@dataclass
class Demand:
    """Clauses that answer `goal`, from facts and what is in `asked`: values of its arguments at `places`."""

    goal: Predicate
    asked: Predicate | None = None
    places: tuple[int, ...] = ()
    clauses: dict[Predicate, list[Clause]] = field(default_factory=dict)
    closures: dict[Predicate, Reach] = field(default_factory=dict)
    facts: dict[Predicate, Predicate] = field(default_factory=dict)  # under another name, those of rules' predicates


def demand(clauses: Clauses, given: Collection[Predicate], predicate: Predicate, bound: Iterable[int] = ()) -> Demand:
    """The clauses for all answers of a predicate, or for those with the values that `bound` arguments have."""
    rewriting = _Rewriting(clauses, given)
    places = set(bound)
    mode = tuple(i in places for i in range(predicate[1]))
    if not any(mode) or predicate not in rewriting.deep:
        rewriting.whole(predicate)
        return Demand(predicate, clauses=rewriting.made, closures=rewriting.closures)
    mode = rewriting.call(predicate, mode)
    rewriting.rewrite()
    goal = _adorned(predicate, mode)
    at = tuple(i for i, bound in enumerate(mode) if bound)
    return Demand(goal, _asked(predicate, mode), at, rewriting.made, rewriting.closures, rewriting.facts)


def below(clauses: Clauses, predicate: Predicate) -> set[Predicate]:
    """The predicates that a predicate rests on, itself included."""
    reads, found, open_ = reads_of(clauses), {predicate}, [predicate]
    while open_:
        new = reads.get(open_.pop(), set()) - found
        found |= new
        open_ += new
    return found


def recursive(clauses: Clauses) -> set[Predicate]:
    """The predicates that depend on themselves, and those that read them."""
    reads, found = reads_of(clauses), set[Predicate]()
    for group in components(reads, reads):
        if recurs(group, reads) or any(reads.get(p, set()) & found for p in group):
            found.update(group)
    return found


def reads_of(clauses: Clauses) -> dict[Predicate, set[Predicate]]:
    """The predicates that the clauses of each ask for."""
    return {head: set(found) for head, found in static_reads(c for own in clauses.values() for c in own).items()}


def recurs(group: Sequence[Predicate], reads: Mapping[Predicate, set[Predicate]]) -> bool:
    """Whether a component depends on itself."""
    return len(group) > 1 or group[0] in reads.get(group[0], ())


def in_order(body: Sequence[Condition], known: set[str], first: int | None = None) -> list[int]:
    """An order for joins: the `first` one, then what can be tested, then what shares most with what is known."""
    left, order = list(range(len(body))), list[int]()
    known = set(known)
    while left:
        ready = [i for i in left if not isinstance(body[i], Holds) and is_ready(body[i], known)]
        calls = [i for i in left if isinstance(body[i], Holds)]
        if first is not None and not order:
            chosen = first
        elif ready or not calls:
            chosen = (ready or left)[0]
        else:
            chosen = max(calls, key=lambda i: (_shared(body[i], known), -i))
        left.remove(chosen)
        order.append(chosen)
        known |= binds(body[chosen], known)
    return order


def _shared(call: Condition, known: set[str]) -> int:
    assert isinstance(call, Holds)
    return sum(isinstance(a, Const) or (isinstance(a, Var) and a.name in known) for a in call.args)


def _adorned(predicate: Predicate, mode: Mode) -> Predicate:
    return f"{predicate[0]}^{''.join('b' if b else 'f' for b in mode)}", predicate[1]


def _asked(predicate: Predicate, mode: Mode) -> Predicate:
    return f"asked {_adorned(predicate, mode)[0]}", sum(mode)


class _Rewriting:
    """The clauses made so far, and the calls whose clauses are still to be made."""

    def __init__(self, clauses: Clauses, given: Collection[Predicate]) -> None:
        self.clauses, self.given = clauses, given
        self.deep = recursive(clauses)
        self.transitive = {p: e for p, e in transitive(clauses).items() if p not in given}
        self.made: dict[Predicate, list[Clause]] = {}
        self.closures: dict[Predicate, Reach] = {}
        self.facts: dict[Predicate, Predicate] = {}
        self.calls: list[tuple[Predicate, Mode]] = []
        self.seen: set[tuple[Predicate, Mode]] = set()

    def whole(self, predicate: Predicate) -> None:
        """All answers of a predicate, and of those below it."""
        for one in below(self.clauses, predicate):
            if one in self.clauses:
                self.made[one] = list(self.clauses[one])
                if one in self.transitive:
                    self.closures[one] = Reach(self.transitive[one])

    def call(self, predicate: Predicate, mode: Mode) -> Mode:
        """Sees to it that a call will be answered; a closure with both ends bound goes forwards."""
        if predicate in self.transitive and all(mode):
            mode = (True, False)
        if (predicate, mode) not in self.seen:
            self.seen.add((predicate, mode))
            self.calls.append((predicate, mode))
        return mode

    def rewrite(self) -> None:
        while self.calls:
            predicate, mode = self.calls.pop()
            if predicate in self.transitive:
                self._closure(predicate, mode)
                continue
            listed = self.clauses[predicate]
            if predicate in self.given:
                facts = (f"given {predicate[0]}", predicate[1])
                self.facts[facts] = predicate
                args = tuple(Var(f"X{i}") for i in range(predicate[1]))
                self._add(predicate, mode, args, (Holds(facts[0], args),))
            for clause in listed:
                self._clause(predicate, mode, clause)

    def _closure(self, predicate: Predicate, mode: Mode) -> None:
        """One row for each pair of what is asked for and what it reaches."""
        edge = self.transitive[predicate]
        self.whole(edge)
        x, y, z = Var("X"), Var("Y"), Var("Z")
        own = _adorned(predicate, mode)[0]
        self._add(predicate, mode, (x, y), (Holds(edge[0], (x, y)),))
        if mode[0]:
            self._add(predicate, mode, (x, z), (Holds(own, (x, y)), Holds(edge[0], (y, z))))
        else:
            self._add(predicate, mode, (x, z), (Holds(edge[0], (x, y)), Holds(own, (y, z))))
        self.closures[_adorned(predicate, mode)] = Reach(edge, _asked(predicate, mode), mode[0])

    def _clause(self, predicate: Predicate, mode: Mode, clause: Clause) -> None:
        known = variables(*_bound(clause.args, mode))
        steps: list[Condition] = []
        for i in in_order(clause.body, known):
            condition = clause.body[i]
            call = (condition.name, len(condition.args)) if isinstance(condition, Holds | Unless) else None
            if isinstance(condition, Holds) and call in self.deep:
                condition = self._called(predicate, mode, clause, condition, known, steps)
            elif call is not None:
                self.whole(call)
            steps.append(condition)
            known |= binds(condition, known)
        self._add(predicate, mode, clause.args, tuple(steps))

    def _called(
        self,
        predicate: Predicate,
        mode: Mode,
        clause: Clause,
        condition: Holds,
        known: set[str],
        steps: list[Condition],
    ) -> Holds:
        """A call in a body, and the rule by which it is asked for."""
        call = (condition.name, len(condition.args))
        own = tuple(isinstance(a, Const) or (isinstance(a, Var) and a.name in known) for a in condition.args)
        if not any(own):
            self.whole(call)
            return condition
        own = self.call(call, own)
        asked, wanted = _asked(call, own), _bound(condition.args, own)
        asking = Holds(_asked(predicate, mode)[0], _bound(clause.args, mode))
        if steps or (asking.name, asking.args) != (asked[0], wanted):
            rule = Clause(asked[0], wanted, (asking, *steps), span=clause.span)
            self.made.setdefault(asked, []).append(rule)
        return Holds(_adorned(call, own)[0], condition.args, condition.span)

    def _add(self, predicate: Predicate, mode: Mode, args: tuple[Expr, ...], body: tuple[Condition, ...]) -> None:
        asking = Holds(_asked(predicate, mode)[0], _bound(args, mode))
        own = _adorned(predicate, mode)
        self.made.setdefault(own, []).append(Clause(own[0], args, (asking, *body)))


def _bound(args: Sequence[Expr], mode: Mode) -> tuple[Expr, ...]:
    return tuple(a for a, bound in zip(args, mode, strict=True) if bound)
