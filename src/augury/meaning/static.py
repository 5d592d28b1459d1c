"""Static knowledge: facts and clauses, answered call by call.

A call is a predicate with the values of its bound arguments. Its answers are a least fixpoint over the table of calls,
so left recursion and cyclic data end. Negation and the clauses after a cut look at complete answers only, which
stratification makes possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from augury.algebra.nodes import AnyOf, Clause, Compare, Condition, Holds, Unless, condition_vars
from augury.algebra.place import ready_order
from augury.algebra.program import Predicate
from augury.algebra.scalar import RowError, compare
from augury.algebra.terms import Build, Expr, Var, Wild, variables
from augury.meaning.rows import Binding, Proof, Report, Scalars, match, match_all
from augury.model import Fact, OrderKey, Value, equal, order_key

_FREE: OrderKey = ("free",)


class _Call:
    """A predicate with its bound arguments, at a time."""

    def __init__(self, name: str, args: tuple[Value | type[Wild], ...], at: int | None) -> None:
        self.name, self.args, self.at = name, args, at
        self.key = (name, at, tuple(_FREE if a is Wild else order_key(a) for a in args))  # type: ignore[arg-type]


_Answers = dict[tuple[OrderKey, ...], tuple[tuple[Value, ...], Proof]]
_Tables = dict[OrderKey, tuple[_Call, _Answers]]


class Static:
    """The static part of a program, and the facts given to it."""

    def __init__(self, clauses: Iterable[Clause], facts: Iterable[Fact], scalars: Scalars, report: Report) -> None:
        self.scalars, self.report = scalars, report
        self.clauses: dict[Predicate, list[Clause]] = {}
        self.facts: dict[Predicate, list[Fact]] = {}
        for clause in clauses:
            self.clauses.setdefault((clause.name, len(clause.args)), []).append(clause)
        for fact in facts:
            self.facts.setdefault((fact.name, len(fact.args)), []).append(fact)
        self.timed = any(f.since is not None or f.until is not None for fs in self.facts.values() for f in fs)
        self._complete: _Tables = {}

    def solve(self, condition: Holds | Unless, binding: Binding, at: int) -> Iterator[tuple[Binding, Proof]]:
        """The bindings under which a static atom holds, each with a proof."""
        call = self._call(condition.name, condition.args, binding, at if self.timed else None)
        for values, proof in self._answers(call).values():
            result = match_all(condition.args, values, binding)
            if result is not None:
                yield result, proof

    def holds(self, condition: Unless, binding: Binding, at: int) -> bool:
        return any(True for _ in self.solve(condition, binding, at))

    def _call(self, name: str, args: tuple[Expr, ...], binding: Binding, at: int | None) -> _Call:
        given = tuple(self.scalars.evaluate(a, binding, {}) if self.scalars.ground(a, binding) else Wild for a in args)
        return _Call(name, given, at)

    def _answers(self, call: _Call) -> _Answers:
        """The complete answers of a call: passes over all calls it leads to, until nothing is new."""
        if call.key in self._complete:
            return self._complete[call.key][1]
        tables: _Tables = {call.key: (call, {})}
        changed = True
        while changed:
            changed = False
            visited = 0
            while visited < len(tables):  # calls that turn up are visited in the same pass
                visited += self._visit(list(tables.values())[visited:], tables)
            for inner, answers in list(tables.values())[::-1]:
                for values, proof in self._derive(inner, tables):
                    key = tuple(order_key(v) for v in values)
                    if key not in answers:
                        answers[key] = (values, proof)
                        changed = True
        self._complete.update(tables)
        return tables[call.key][1]

    def _visit(self, calls: list[tuple[_Call, _Answers]], tables: _Tables) -> int:
        for inner, _ in calls:
            for _ in self._derive(inner, tables):
                pass
        return len(calls)

    def _derive(self, call: _Call, tables: _Tables) -> Iterator[tuple[tuple[Value, ...], Proof]]:
        """One application of the facts and clauses of a call."""
        predicate = (call.name, len(call.args))
        for fact in self.facts.get(predicate, ()):
            if fact.valid_at(call.at) and _fits(call.args, fact.args):
                yield fact.args, Proof(call.name, fact.args)
        clauses = self.clauses.get(predicate, [])
        for index, clause in enumerate(clauses):
            committed = clause.cut and index < len(clauses) - 1
            used = {v for c in clause.body for v in condition_vars(c)}
            found = False
            for binding, proofs in self._bodies(clause, call, used, None if committed else tables):
                found = True
                values = self._head(clause, call, binding)
                if values is not None:
                    yield values, Proof(call.name, values, proofs)
            if found and clause.cut:
                return

    def _bodies(
        self, clause: Clause, call: _Call, used: set[str], tables: _Tables | None
    ) -> Iterator[tuple[Binding, tuple[Proof, ...]]]:
        """The solutions of a clause's body. Under a cut, arguments that the body does not use wait until after it."""
        binding: Binding = {}
        for expr, value in zip(clause.args, call.args, strict=True):
            if value is Wild or (clause.cut and not variables(expr) & used):
                continue
            extended = match(expr, value, binding)  # type: ignore[arg-type]
            if extended is None:
                return
            binding = extended
        order = ready_order(clause.body, set(binding))
        yield from self._conjunction(order, binding, call.at, tables)

    def _head(self, clause: Clause, call: _Call, binding: Binding) -> tuple[Value, ...] | None:
        values: list[Value] = []
        for expr, given in zip(clause.args, call.args, strict=True):
            if given is not Wild and not (variables(expr) <= binding.keys()):
                # An argument that only the call binds, such as an unused one of a clause with a cut.
                extended = match(expr, given, binding)  # type: ignore[arg-type]
                if extended is None:
                    return None
                binding = extended
            value = self.scalars.evaluate(expr, binding, {}) if not isinstance(expr, Wild) else given
            if given is not Wild and not (value is given or equal(value, given)):  # type: ignore[arg-type]
                return None
            values.append(value)  # type: ignore[arg-type]
        return tuple(values)

    def _conjunction(
        self, where: list[Condition], binding: Binding, at: int | None, tables: _Tables | None
    ) -> Iterator[tuple[Binding, tuple[Proof, ...]]]:
        if not where:
            yield binding, ()
            return
        for extended, proofs in self._condition(where[0], binding, at, tables):
            for final, more in self._conjunction(where[1:], extended, at, tables):
                yield final, proofs + more

    def _condition(
        self, condition: Condition, binding: Binding, at: int | None, tables: _Tables | None
    ) -> Iterator[tuple[Binding, tuple[Proof, ...]]]:
        match condition:
            case Holds():
                call = self._call(condition.name, condition.args, binding, at)
                if tables is None or call.key in self._complete:
                    answers = self._answers(call)
                else:
                    answers = tables.setdefault(call.key, (call, {}))[1]
                for values, proof in list(answers.values()):
                    result = match_all(condition.args, values, binding)
                    if result is not None:
                        yield result, (proof,)
            case Unless():
                call = self._call(condition.name, condition.args, binding, at)
                answers = self._answers(call)
                if not any(match_all(condition.args, v, binding) is not None for v, _ in answers.values()):
                    yield binding, ()
            case Compare():
                extended = compare_or_bind(condition, binding, self.scalars, self.report)
                if extended is not None:
                    yield extended, ()
            case AnyOf():
                if any(any(True for _ in self._conjunction(list(o), binding, at, tables)) for o in condition.options):
                    yield binding, ()
            case _:
                raise AssertionError("a static rule has no events")


def compare_or_bind(
    condition: Compare, binding: Binding, scalars: Scalars, report: Report, labels: dict[str, object] | None = None
) -> Binding | None:
    """The binding under which a comparison holds; `=` binds a side that is not bound yet."""
    named = labels or {}
    left, right = condition.left, condition.right
    try:
        if condition.op == "=":
            for pattern, value in ((left, right), (right, left)):
                if isinstance(pattern, Var | Build) and not variables(pattern) <= binding.keys():
                    return match(pattern, scalars.evaluate(value, binding, named), binding)  # type: ignore[arg-type]
        sides = (scalars.evaluate(left, binding, named), scalars.evaluate(right, binding, named))  # type: ignore[arg-type]
        return binding if compare(condition.op, *scalars.on_clock(sides)) else None
    except RowError as error:
        report(scalars.rule, str(error), binding)
        return None


def _fits(given: tuple[Value | type[Wild], ...], values: tuple[Value, ...]) -> bool:
    return all(g is Wild or equal(g, v) for g, v in zip(given, values, strict=True))  # type: ignore[arg-type]
