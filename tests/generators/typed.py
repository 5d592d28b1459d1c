"""Random programs of every kind whose values are of every type: texts, times, durations, truth values, terms, mixtures and nulls.

The rules are those of `mixtures`, which compares and computes with numbers; here the number of an event is of one type, or of
several in one column, and terms and conditions are those that the type has. Half of the programs declare their events, and with them
what a column holds. What a value cannot do is an error of its row, in the engine as in the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from augury.core.clock import Duration, Timestamp
from augury.core.model import Event, Iri, Term, Value
from tests.generators import mixtures
from tests.generators.mixtures import INPUTS, MixtureWriter
from tests.generators.state_programs import Story

NOON = 1_767_268_800_000_000  # 2026-01-01 12:00
POOLS: dict[str, tuple[Value, ...]] = {
    "string": ("a", "b", "", "ä", "10", "9", "a"),
    "timestamp": (Timestamp(NOON), Timestamp(NOON + 1), Timestamp(NOON), Timestamp(-1), Timestamp(NOON + 3_600_000_000)),
    "duration": (Duration(1_000_000), Duration(0), Duration(1_000_000), Duration(2_500_000), Duration(-1_000_000)),
    "bool": (True, False, True),
    "int": (2**53, 2**53 + 1, 1, -(2**62), 2**62, 2**63 - 1, 1),
    "float": (0.1, 0.2, -0.0, 0.0, 1e308, 2.0, 0.30000000000000004),
    "number": (2**53, float(2**53), 2**53 + 1, 1, 1.0, 0, -0.0, 0.5),
    "term": (Term("loc", (1, 2)), Term("loc", (1.0, 2)), Term("loc", (1, None)), Term("p", ("a",)), (1, 2), (1.0, 2.0), ()),
    "any": (1, 1.0, "1", True, Iri("http://x/a"), "http://x/a", Timestamp(NOON), Duration(1_000_000), Term("loc", (1, 2)), (1,)),
}  # fmt: skip
# Conditions with two values, and values of one, for each type; `c` is a constant.
CONSTANTS = {
    "string": "'b'",
    "timestamp": "@'2026-01-01 12:00'",
    "duration": "1s",
    "bool": "true",
    "int": "9007199254740993",
    "float": "0.2",
    "number": "1",
    "term": "loc(1, 2)",
    "any": "1",
}
OWN_TESTS = {
    "string": ["length({x}) > 0", "matches({x}, '^[ab]')", "lower({x}) = {y}", "{x} != ''"],
    "timestamp": ["{x} - {y} >= {y} - {x}", "hour({x}) = 12", "day({x}) = day({y})"],
    "duration": ["{x} + {y} > {x}", "{x} * 2 >= {y}", "{x} / {y} >= 1"],
    "bool": ["{x} = {y}", "not is_null({x})"],
    "int": ["{x} + 1 > {y}", "{x} * 2 > {y}", "{x} mod 2 = 0", "{x} // 2 > {y}"],
    "float": ["{x} + {y} = 0.30000000000000004", "{x} * 10 > {y}", "{x} / {y} >= 1", "round({x}) = 0"],
    "number": ["{x} + 1 > {y}", "{x} / {y} = 1", "abs({x}) >= {y}"],
    "term": ["{x} = loc(A9, B9)", "{x} != {y}"],
    "any": ["{x} + 1 > {y}", "length({x}) = 1", "{x} = '1'", "{x} > {y}"],
}
OWN_VALUES = {
    "string": ["concat({x}, 'z')", "upper({x})", "replace({x}, 'a', '')", "length({x})"],
    "timestamp": ["{x} - {y}", "truncate({x}, hour)", "hour({x})", "format_time({x}, '%H:%M')"],
    "duration": ["{x} + {y}", "{x} * 2", "{x} / {y}", "abs({x})"],
    "bool": ["if({x}, 1, 0)"],
    "int": ["{x} + 1", "{x} - {y}", "{x} * 2", "{x} // 3", "{x} mod 7"],
    "float": ["{x} + 0.1", "{x} * {y}", "floor({x})", "{x} / {y}"],
    "number": ["{x} + 1", "{x} * 1.0", "{x} - {y}", "floor({x})"],
    "term": ["loc({x}, {y})"],
    "any": ["{x} + 1", "concat({x}, 'z')", "loc({x})"],
}
SUMMED = ("sum", "avg", "median", "stddev")
PLAIN = ("min", "max", "first", "last", "mode", "count")


@dataclass
class TypedWriter(MixtureWriter):
    """Writes one program over values of a type."""

    type: str = "string"
    arithmetic: bool = False  # whether rules compute as they do with numbers, which other values refuse

    def _test(self, numbers: Sequence[str]) -> str:
        if self.arithmetic:
            return super()._test(numbers)
        x, y = self.pick(numbers), self.pick([*numbers, CONSTANTS[self.type]])
        return self.pick([
            f"{x} >= {y}", f"{x} < {y}", f"{x} != {y}", f"{x} = {y}", f"{x} in ({CONSTANTS[self.type]}, {y})", f"{x} not in ({y}, 1)",
            f"{x} between {y} and {CONSTANTS[self.type]}", f"coalesce({x}, {y}) = {y}", f"not is_null({x})", f"({x} = {y} or {x} > {y})",
            f"if({x} > {y}, {x}, {y}) = {x}", *(t.format(x=x, y=y) for t in OWN_TESTS[self.type]),
        ])  # fmt: skip

    def _value(self, numbers: Sequence[str]) -> str:
        if self.arithmetic or not numbers:
            return super()._value(numbers)
        x, y = self.pick(numbers), self.pick(numbers)
        own = self.pick(OWN_VALUES[self.type]).format(x=x, y=y)
        return self.pick([x, x, x, x, f"coalesce({x}, 9)", f"if({x} > {y}, {x}, {y})", own, own])

    def _totals(self, x: str, label: str) -> list[str]:
        if self.arithmetic:
            return super()._totals(x, label)
        test = self.pick([self._test([x]), f"end({label}) > 4"])
        plain = [f"{name}({x})" for name in PLAIN] + ["count()", f"count(distinct {x})", f"list({x})"]
        plain += [f"nth({x}, 2)", f"arg_max({x}, end({label}))", f"arg_min({x}, {x})", f"arg_max(end({label}), {x})"]
        plain += [f"{self.pick(PLAIN)}({x} where {test})", f"count(where {test})", f"last(end({label}))"]
        summed = [f"{name}({x})" for name in SUMMED] if self.type not in ("string", "bool", "term", "timestamp") else []
        return [*plain, *summed]

    def _run(self, type: str) -> None:
        writer = _TypedRun(self.number, choosing=self.pick([0, 50, 100]), windows=60, absent=self.pick([0, 40]))
        writer.typed = None if self.arithmetic else self
        self._write_run(type, writer)


class _TypedRun(mixtures._MixedRun):
    """A run whose conditions are those of a type."""

    typed: TypedWriter | None = None

    def _of_part(self, i: int) -> list[str]:
        if self.typed is None:
            return super()._of_part(i)
        x, own = self.names[i], self._own(i)
        options = [self.typed._test([x])]
        options += [f"{x} {op} prev({x})" for op in (">=", "!=", "=")] * 2 if own else []
        options += (
            [f"start(l{i}) - prev(end(l{i})) <= 3", f"max({x}) >= first({x})", f"count(l{i}) <= 2"] if own else []
        )
        options += [f"{x} {self.pick(['>=', '!=', '='])} {self.names[j]}" for j in range(i) if not self._repeated(j)]
        options = [o for o in options if o.split(" ")[0] != o.split(" ")[-1]]
        return self.some(options, 0, self.pick([1, 1, 2])) if options else []

    def _of_whole(self, count: int) -> list[str]:
        return super()._of_whole(count) if self.typed is None else []

    def _totals(self, i: int) -> list[str]:
        if self.typed is None or not self._own(i):
            return super()._totals(i)
        return [t for t in self.typed._totals(self.names[i], f"l{i}") if t != "count()"]


def story(seed: object) -> Story:
    """A program over values of one type, or of all, and a history that disturbs it."""
    number = Random(f"typed {seed}").randint
    writer = TypedWriter(number)
    writer.type = writer.pick(list(POOLS))
    writer.arithmetic = writer.chance(25)
    text = writer.program()
    pool = list(POOLS[writer.type])
    values: list[Value] = [*writer.some(pool, 2, 4), *([None] if writer.chance(40) else [])]
    keyed: Sequence[Value] = writer.pick([["k"], ["k", "k", "m"], ["k", "m", None], [*writer.some(pool, 2, 2), "k"]])
    if writer.chance(50) and all(isinstance(k, str | None) for k in keyed):
        column = writer.type if writer.type not in ("term", "any") else "value"
        declared = [f"event {t}(k: string, x: {column})." for t in INPUTS if f"{t}(" in text]
        text = "\n".join([*(declared if column != "value" else []), text])
    lengths = writer.pick([(0,), (0, 0, 0, 1, 2), (0, 1, 2, 3, 5)])
    types = [type for type in INPUTS if f"{type}(K" in text or f"{type}(_" in text or f"{type}('k'" in text] or ["a"]

    def event(id: str, end: int) -> Event:
        args = (writer.pick(keyed), writer.pick(values))
        return Event(writer.pick(types), args, end - writer.pick(lengths), end, id)

    return mixtures.happening(text, number, event, writer, lengths)
