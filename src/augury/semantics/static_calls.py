"""Static knowledge: facts and clauses, answered call by call.

A call is a predicate with the values of its bound arguments. Its answers are a least fixpoint over the table of calls,
so left recursion and cyclic data end. Negation and the clauses after a cut look at complete answers only, which
stratification makes possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from augury.algebra import nodes as n
from augury.algebra.matching import Binding, Proof, Report, Scalars, compare_or_bind, match, match_all
from augury.algebra.place import ready_order
from augury.algebra.plan import Predicate
from augury.algebra.terms import Const, Expr, Wild, variables
from augury.core.model import Fact, OrderKey, Value, equal, order_key

_FREE: OrderKey = ("free",)


class StaticCall:
    """A predicate with its bound arguments, at a time."""

    def __init__(self, name: str, args: tuple[Value | type[Wild], ...], time: int | None) -> None:
        self.name, self.args, self.at = name, args, time
        self.key = (name, time, tuple(_FREE if a is Wild else order_key(a) for a in args))  # type: ignore[arg-type]


_Answers = dict[tuple[OrderKey, ...], tuple[tuple[Value, ...], Proof]]
_Tables = dict[OrderKey, tuple[StaticCall, _Answers]]


class _Work:
    """The calls that one call leads to: their answers so far, who reads whom, and which are to be derived (again)."""

    def __init__(self, call: StaticCall) -> None:
        self.tables: _Tables = {call.key: (call, {})}
        self.readers: dict[OrderKey, dict[OrderKey, None]] = {}
        self.fresh: list[OrderKey] = [call.key]
        self.stale: list[OrderKey] = []
        self.queued: set[OrderKey] = {call.key}
        self.reader: OrderKey = call.key

    def read(self, call: StaticCall) -> _Answers:
        """The answers of a call so far; its reader is derived again when there are more."""
        if call.key not in self.tables:
            self.tables[call.key] = (call, {})
            self.fresh.append(call.key)
            self.queued.add(call.key)
        self.readers.setdefault(call.key, {})[self.reader] = None
        return self.tables[call.key][1]


class Static:
    """The static part of a program, and the facts given to it."""

    def __init__(self, clauses: Iterable[n.Clause], facts: Iterable[Fact], scalars: Scalars, report: Report) -> None:
        self.scalars, self.report = scalars, report
        self.clauses: dict[Predicate, list[n.Clause]] = {}
        self.facts: dict[Predicate, list[Fact]] = {}
        clauses = list(clauses)
        ordered = {c.predicate for c in clauses if c.cut}
        for clause in clauses:
            predicate = clause.predicate
            if clause.body or predicate in ordered or not all(isinstance(a, Const) for a in clause.args):
                self.clauses.setdefault(predicate, []).append(clause)
            else:
                values = tuple(a.value for a in clause.args if isinstance(a, Const))
                self.facts.setdefault(predicate, []).append(Fact(clause.name, values))
        for fact in facts:
            self.facts.setdefault((fact.name, len(fact.args)), []).append(fact)
        self.timed = any(f.since is not None or f.until is not None for fs in self.facts.values() for f in fs)
        self._complete: _Tables = {}
        self._index: dict[tuple[Predicate, int], dict[OrderKey, list[Fact]]] = {}

    def solve(self, condition: n.Holds | n.Unless, binding: Binding, time: int) -> Iterator[tuple[Binding, Proof]]:
        """The bindings under which a static atom holds, each with a proof."""
        call = self._call(condition.name, condition.args, binding, time if self.timed else None)
        for values, proof in self._answers(call).values():
            result = match_all(condition.args, values, binding)
            if result is not None:
                yield result, proof

    def holds(self, condition: n.Unless, binding: Binding, time: int) -> bool:
        return any(True for _ in self.solve(condition, binding, time))

    def _call(self, name: str, args: tuple[Expr, ...], binding: Binding, time: int | None) -> StaticCall:
        values = tuple(self.scalars.evaluate(a, binding, {}) if self.scalars.ground(a, binding) else Wild for a in args)
        return StaticCall(name, values, time)

    def _answers(self, call: StaticCall) -> _Answers:
        """The complete answers of a call: calls are derived until none of those they read has anything new."""
        if call.key in self._complete:
            return self._complete[call.key][1]
        work = _Work(call)
        while work.fresh or work.stale:
            # New calls first, deepest first: an answer should not travel up by itself.
            key = work.fresh.pop() if work.fresh else work.stale.pop()
            work.queued.discard(key)
            work.reader = key
            inner, answers = work.tables[key]
            new = False
            for values, proof in list(self._derive(inner, work)):
                answer = tuple(order_key(v) for v in values)
                if answer not in answers:
                    answers[answer] = (values, proof)
                    new = True
            if new:
                work.stale.extend(k for k in work.readers.get(key, {}) if k not in work.queued)
                work.queued |= work.readers.get(key, {}).keys()
        self._complete.update(work.tables)
        return work.tables[call.key][1]

    def _derive(self, call: StaticCall, work: _Work) -> Iterator[tuple[tuple[Value, ...], Proof]]:
        """One application of the facts and clauses of a call."""
        predicate = (call.name, len(call.args))
        for fact in self.facts_for(predicate, call):
            if fact.valid_at(call.at) and _fits(call.args, fact.args):
                yield fact.args, Proof(call.name, fact.args)
        clauses = self.clauses.get(predicate, [])
        for index, clause in enumerate(clauses):
            committed = clause.cut and index < len(clauses) - 1
            used = {v for c in clause.body for v in n.condition_vars(c)}
            has_body = False
            for binding, proofs in self._bodies(clause, call, used, None if committed else work):
                has_body = True
                values = self._head(clause, call, binding)
                if values is not None:
                    yield values, Proof(call.name, values, proofs)
            if has_body and clause.cut:
                return

    def facts_for(self, predicate: Predicate, call: StaticCall) -> list[Fact]:
        """The facts that may answer a call, by its first bound argument."""
        facts = self.facts.get(predicate, [])
        position = next((i for i, a in enumerate(call.args) if a is not Wild), None)
        if position is None or len(facts) < 8:
            return facts
        if (predicate, position) not in self._index:
            index = self._index[predicate, position] = {}
            for fact in facts:
                index.setdefault(order_key(fact.args[position]), []).append(fact)
        return self._index[predicate, position].get(call.key[2][position], [])

    def _bodies(
        self, clause: n.Clause, call: StaticCall, used: set[str], work: _Work | None
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
        yield from self._conjunction(order, binding, call.at, work)

    def _head(self, clause: n.Clause, call: StaticCall, binding: Binding) -> tuple[Value, ...] | None:
        values: list[Value] = []
        for expr, arg in zip(clause.args, call.args, strict=True):
            if arg is not Wild and not (variables(expr) <= binding.keys()):
                # An argument that only the call binds, such as an unused one of a clause with a cut.
                extended = match(expr, arg, binding)  # type: ignore[arg-type]
                if extended is None:
                    return None
                binding = extended
            value = self.scalars.evaluate(expr, binding, {}) if not isinstance(expr, Wild) else arg
            if arg is not Wild and not (value is arg or equal(value, arg)):  # type: ignore[arg-type]
                return None
            values.append(value)  # type: ignore[arg-type]
        return tuple(values)

    def _conjunction(
        self, where: list[n.Condition], binding: Binding, time: int | None, work: _Work | None
    ) -> Iterator[tuple[Binding, tuple[Proof, ...]]]:
        if not where:
            yield binding, ()
            return
        for extended, proofs in self._condition(where[0], binding, time, work):
            for final, more in self._conjunction(where[1:], extended, time, work):
                yield final, proofs + more

    def _condition(
        self, condition: n.Condition, binding: Binding, time: int | None, work: _Work | None
    ) -> Iterator[tuple[Binding, tuple[Proof, ...]]]:
        match condition:
            case n.Holds():
                call = self._call(condition.name, condition.args, binding, time)
                if work is None or call.key in self._complete:
                    answers = self._answers(call)
                else:
                    answers = work.read(call)
                for values, proof in list(answers.values()):
                    result = match_all(condition.args, values, binding)
                    if result is not None:
                        yield result, (proof,)
            case n.Unless():
                call = self._call(condition.name, condition.args, binding, time)
                answers = self._answers(call)
                if not any(match_all(condition.args, v, binding) is not None for v, _ in answers.values()):
                    yield binding, ()
            case n.Compare():
                extended = compare_or_bind(condition, binding, self.scalars, self.report)
                if extended is not None:
                    yield extended, ()
            case n.AnyOf():
                if any(any(True for _ in self._conjunction(list(o), binding, time, work)) for o in condition.options):
                    yield binding, ()
            case n.NoneInside() | n.Relates() | n.Relative() | n.Spans():
                raise AssertionError("a static rule has no events")
            case _:
                assert_never(condition)


def _fits(pattern: tuple[Value | type[Wild], ...], values: tuple[Value, ...]) -> bool:
    return all(g is Wild or equal(g, v) for g, v in zip(pattern, values, strict=True))  # type: ignore[arg-type]
