"""Random programs over the whole rule language, and histories told in steps, to compare executors with one another.

Programs are scoped by construction: every event type has fixed columns (`COLUMNS`), every variable belongs to one kind of
value, and a part of a pattern says which variables it surely binds. Few are refused all the same, mostly because their
times contradict one another; `tests.generators.programs.compiled` says so with None.

`python -m tests.generators.programs` prints how many examples are refused, how many have an answer, and how long the reference takes.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from random import Random
from typing import Literal, TypeVar

from hypothesis import strategies as st

import augury
from augury.algebra.plan import Plan
from augury.core.clock import Clock
from augury.core.errors import AuguryError
from augury.core.model import Event, Fact, HistoryItem, Revocation, Term, Value
from augury.reference import evaluate

T = TypeVar("T")
between = cache(st.integers)  # they are drawn by the thousand
Number = Callable[[int, int], int]
Step = list[HistoryItem] | tuple[Literal["advance"], int]

# The columns of each type: n is a number, s a string, t a nested term, l a list. Inputs first, then what rules derive, each
# from those before it, but for recursion.
INPUTS = {"a": "n", "b": "n", "c": "n", "d": "ns", "p": "t"}
DERIVED = {"e": "n", "f": "n", "g": "nn", "h": "ns", "k": "t", "z": "", "v": "l"}
COLUMNS = INPUTS | DERIVED
VARIABLES = {"n": ("X", "Y", "X", "Y", "Z"), "s": ("S", "S", "R"), "t": ("T",), "l": ("L",)}
CONSTANTS = {"n": ("1", "2", "1", "1.0"), "s": ("'k'", "'m'"), "t": ("loc(1, 2)",)}
OPERATORS = ("SEQ", "AND", "PAR", "OR", "EQUALS", "MEETS", "DURING", "STARTS", "FINISHES")
RELATIONS = (
    "before", "after", "meets", "met_by", "overlaps", "overlapped_by", "starts", "started_by", "during", "contains",
    "finishes", "finished_by", "equals",
)  # fmt: skip
RELATIVE = ("extend", "extend_backward", "shorten", "shift_forward", "shift_backward", "from_end", "from_start")
AGGREGATES = ("count", "sum", "avg", "min", "max", "first", "last", "stddev")
OUTSIDE = "static known(x: int).\nstatic cost(x: int, y: int)."  # what `facts` gives


def kind_of(variable: str) -> str:
    """The kind of value that a variable holds, by its first letter."""
    return {"S": "s", "R": "s", "T": "t", "L": "l"}.get(variable[0], "n")


@dataclass(frozen=True)
class Part:
    """A pattern: its text, and the variables that every occurrence of it binds."""

    text: str
    sure: frozenset[str]

    @property
    def numbers(self) -> list[str]:
        return sorted(v for v in self.sure if kind_of(v) == "n")


def part(text: str, *parts: Part, more: Iterable[str] = ()) -> Part:
    """A pattern made of others that are all found; it binds what they bind, and more."""
    return Part(text, frozenset(more).union(*(p.sure for p in parts)))


@dataclass
class Choices:
    """Random choices, all made of one: an integer between two others. It comes from Hypothesis, or from `random`."""

    number: Number

    def pick(self, options: Sequence[T]) -> T:
        """One of them; shrinks to the first."""
        return options[self.number(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """Shrinks to no."""
        return self.number(0, 99) >= 100 - percent

    def some(self, options: Sequence[T], least: int, most: int) -> list[T]:
        """Several of them, some perhaps twice."""
        return [self.pick(options) for _ in range(self.number(least, most))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        left, result = list(items), []
        while left:
            result.append(left.pop(self.number(0, len(left) - 1)))
        return result


@dataclass
class Writer(Choices):
    """Writes one program. `reads` are the derived types that the rule at hand may read."""

    rules: list[str] = field(default_factory=list)
    clauses: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    seen: list[Part] = field(default_factory=list)  # parts of earlier rules, to be shared
    used: set[str] = field(default_factory=set)  # what of them this rule has
    policies: bool = False
    statics: list[str] = field(default_factory=list)
    computes: bool = True
    outside: bool = False
    other: str = "c"  # a type that this program reads more than others do
    fresh: int = 0
    throttles: int = 8  # how many rules in a hundred are throttled

    def __post_init__(self) -> None:
        self.other = self.pick(["c", "d", "p"])

    # Names

    def new(self, prefix: str = "N") -> str:
        """A variable that nothing else has."""
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    # Patterns

    def atom(self, types: Sequence[str] | None = None, local: frozenset[str] | None = None) -> Part:
        """An atom. Inside a negation only the variables of its surroundings, `local`, and new ones are used."""
        if types is None:
            types = [*["a", "b"] * 5, self.other, "c", "d", "p", *self.reads[-3:], *self.reads[-2:]]
        type = self.pick(types)
        args = [self._argument(kind, local) for kind in COLUMNS[type]]
        names = {n for a in args for n in re.findall(r"\b[A-Z]\w*", a)}
        return part(f"{type}({', '.join(args)})" if args else type, more=names)

    def _argument(self, kind: str, local: frozenset[str] | None, nested: bool = False) -> str:
        if kind == "t" and not nested and self.chance(80):
            inner = ", ".join(self._argument("n", local, True) for _ in range(2))
            return f"loc({inner})"
        which = self.number(0, 19)
        if which == 19 and kind != "l":
            return self.pick(CONSTANTS[kind])
        if which >= 16:
            return "_"
        if local is None:
            return self.pick(VARIABLES[kind])
        known = [v for v in sorted(local) if kind_of(v) == kind]
        if known and self.chance(60):
            return self.pick(known)
        return self.pick(["_", self.new({"n": "N", "s": "S", "t": "T", "l": "L"}[kind])])

    def pattern(self, depth: int = 2, local: frozenset[str] | None = None) -> Part:
        """Any pattern."""
        if depth <= 0 or self.chance(20):
            return self.atom(local=local)
        shared = [s for s in self.seen if s.text not in self.used]
        if shared and local is None and self.chance(25):
            found = self.pick(shared)
            self.used.add(found.text)
            return found
        which = self.pick(["binary"] * 8 + ["window", "window", "not", "not", "power", "where", "where", "instant"])
        made = self._compound(which, depth, local)
        if local is None:
            self.used.add(made.text)
            if len(made.text) < 60:
                self.seen.append(made)
        return made

    def _compound(self, which: str, depth: int, local: frozenset[str] | None) -> Part:
        match which:
            case "window":
                inner = self.binary(depth, local)
                return part(f"({inner.text}).{self.pick(['6', '4', '3s', '8', '4500ms'])}", inner)
            case "not":
                return self.absence(depth, local)
            case "power":
                inner = self.pattern(0 if self.chance(70) else depth - 1, local)
                consecutive = self.pick(["", " CONSECUTIVE"])
                return part(f"(({inner.text}) ^ {self.pick([2, 2, 3])}{consecutive})", inner)
            case "where":
                return self.where(self.pattern(depth - 1, local), local)
            case "instant":
                inner, early, late = self.pattern(depth - 1, local), self.pick(["1", "@2", "0"]), self.pick(["@7", "6"])
                return part(self.pick([f"({early} SEQ {inner.text})", f"({inner.text} SEQ {late})",
                                       f"({early} AND {inner.text})", f"({late} DURING {inner.text})"]), inner)  # fmt: skip
        return self.binary(depth, local)

    def binary(self, depth: int = 2, local: frozenset[str] | None = None) -> Part:
        usual = ["SEQ", "SEQ", "AND", "AND", "OR"]
        op = self.pick([*usual, *usual, *OPERATORS] if depth < 2 else [*usual, *OPERATORS])
        rare = op in ("PAR", "EQUALS", "DURING", "STARTS", "FINISHES")
        left = self.atom(local=local) if rare and self.chance(70) else self.pattern(depth - 1, local)
        return self.joined(left, op, self.pattern(depth - 1, local))

    def joined(self, left: Part, op: str, right: Part) -> Part:
        if op == "OR":
            return Part(f"({left.text} OR {right.text})", left.sure & right.sure)
        policy = self.policy(left, right) if self.policies and self.chance(50) else ""
        return part(f"({left.text} {op}{f'[{policy}]' if policy else ''} {right.text})", left, right)

    def absence(self, depth: int, local: frozenset[str] | None = None) -> Part:
        left, right = self.pattern(depth - 1, local), self.pattern(depth - 1, local)
        return self.without(left, right)

    def without(self, left: Part, right: Part, types: Sequence[str] | None = None) -> Part:
        """NOT, mostly of an atom, sometimes of a pattern or with a condition on what is around it."""
        around = left.sure | right.sure
        absent = self.atom(types or ["a", "b", "c", "c", "d", *self.reads[-2:]], around)
        if types is None and self.chance(20):
            absent = self.pattern(1, around)
        if absent.numbers and self.chance(40):
            absent = part(f"{absent.text} WHERE {self.test([*absent.numbers, *part('', left, right).numbers])}", absent)
        policy = f"[{self.policy(left, right)}]" if self.policies and self.chance(40) else ""
        return part(f"(NOT{policy}({absent.text}).[{left.text}, {right.text}])", left, right)

    def where(self, inner: Part, local: frozenset[str] | None = None) -> Part:
        """Conditions, some of which give a value to a further variable."""
        tests, bound = self.conditions(inner.sure, local)
        if not tests:
            return inner
        text = tests[0] if len(tests) == 1 else f"({', '.join(tests)})"
        return part(f"({inner.text} WHERE {text})", inner, more=bound)

    def conditions(self, sure: frozenset[str], local: frozenset[str] | None = None) -> tuple[list[str], set[str]]:
        """One or two conditions over variables, and what they bind."""
        tests: list[str] = []
        bound: set[str] = set()
        for _ in range(self.number(1, 2)):
            numbers = sorted(v for v in sure | bound if kind_of(v) == "n")
            texts = sorted(v for v in sure if kind_of(v) == "s")
            if numbers and self.statics and self.chance(60):
                tests.append(self.call(numbers, bound, local))
            elif numbers and self.computes and self.chance(25):
                name = self.new("V") if local is not None or self.chance(50) else self.pick(["Y", "Z"])
                if name not in sure:
                    bound.add(name)
                tests.append(f"{name} = {self.value(numbers)}")
            elif texts and self.chance(60):
                s = self.pick(texts)
                tests.append(self.pick([f"{s} = 'k'", f"{s} != 'm'", f"length({s}) = 1", f"starts_with({s}, 'k')"]))
            elif numbers:
                tests.append(self.test(numbers))
        return tests, bound

    def call(self, numbers: list[str], bound: set[str], local: frozenset[str] | None) -> str:
        """A static predicate as a condition; of two arguments the second may be bound by it."""
        name = self.pick(self.statics)
        first = self.pick(numbers)
        if name in ("known", "good", "bad"):
            return self.pick([f"{name}({first})", f"not {name}({first})"])
        if self.chance(25):
            return self.pick([f"not {name}({first}, _)", f"{name}({first}, _)", f"not {name}({first}, 2)"])
        if self.chance(30):
            second = self.pick(numbers)
        else:
            second = self.new("V") if local is not None else self.pick(["Y", "Z"])
        bound.add(second)
        return f"{name}({first}, {second})"

    def test(self, numbers: Sequence[str]) -> str:
        """A condition that binds nothing."""
        x = self.pick(numbers)
        y = self.pick([n for n in numbers if n != x] or ["1", "2"])
        return self.pick([
            f"{x} <= {y}", f"{x} <= 2", f"{x} < 2", f"{x} >= 1", f"{x} = 1", f"{x} != {y}", f"0 < {x} < 3", f"{x} + {y} > 2",
            f"{x} mod 2 = 1", f"not ({x} = 2)", f"is_null({x})", f"not is_null({x})", f"({x} = 1 or {y} > 1)",
            f"{x} / {y} >= 1", f"coalesce({x}, 1) = 1", f"({x} > 0 and {y} > 0)",
        ])  # fmt: skip

    def value(self, numbers: Sequence[str]) -> str:
        x, y = self.pick(numbers), self.pick(numbers)
        return self.pick([f"{x} + 1", f"{x} * 2", f"{x} + {y}", f"max({x}, {y})", f"{x} - 1", f"{x} // {y}", f"{x} / {y}",
                          f"coalesce({x}, 0)", f"{x} * 1.0"])  # fmt: skip

    def policy(self, *parts: Part) -> str:
        """A policy over variables of parts that it selects from."""
        name = self.pick(["recent", "recent", "chronological", "chronological", "unrestricted"])
        names = sorted(frozenset().union(*(p.sure for p in parts)))
        ties = self.pick(["", "", " longest", " shortest", *([f" by {self.pick(names)}"] if names else [])])
        per = f" per ({self.pick(names)})" if name != "unrestricted" and names and self.chance(30) else ""
        return f"{name}{ties}{per}" if name != "unrestricted" else name

    # Rules

    def add(self, head: str, body: str) -> None:
        label = f"rule r{len(self.rules)}: " if self.chance(10) else ""
        self.rules.append(f"{label}{head} <- {body}.")
        self.used = set()

    def head(self, type: str, sure: Iterable[str], moments: Sequence[str] = ()) -> str:
        """A head over variables that are bound: mostly themselves, sometimes computed or constant."""
        left = sorted(sure)
        args = []
        for kind in COLUMNS[type]:
            names = [v for v in left if kind_of(v) == kind]
            numbers = [v for v in sure if kind_of(v) == "n"]
            if kind == "n" and moments and self.chance(25):
                args.append(self.pick(moments))
            elif kind == "n" and numbers and self.computes and self.chance(20):
                args.append(self.value(sorted(numbers)))
            elif names and not self.chance(10):
                args.append(self.pick(names))
                left.remove(args[-1])
            elif kind == "t":
                args.append(f"loc({self.pick([*sorted(numbers), '1'])}, {self.pick(['1', *sorted(numbers)])})")
            else:
                args.append(self.pick([*CONSTANTS[kind], "null"] if self.chance(20) else CONSTANTS[kind]))
        return f"{type}({', '.join(args)})" if args else type

    def at_most(self, names: Iterable[str]) -> str:
        """Now and then, how many answers there may be."""
        if not self.chance(self.throttles):
            return ""
        per = f" PER ({', '.join(self.shuffled(sorted(names))[:2])})" if names and self.chance(60) else ""
        every = self.pick(["", f" EVERY {self.number(1, 5)}s", f" EVERY {self.number(1, 3)}s"])
        return f" {self.pick(['ONCE', 'ONCE', 'AT MOST 2', 'AT MOST 3'])}{per}{every}"

    def operator_rule(self, type: str) -> None:
        """A rule whose body is one pattern."""
        body = self.pattern(self.pick([1, 2, 2, 3]))
        if self.chance(25):
            body = self.where(body)
        text = body.text
        if self.chance(30) and text.startswith("(") and text.endswith(")") and _closed(text[1:-1]):
            text = text[1:-1]
        if self.chance(10):
            text = f"{text}, {self.atom(['a', 'b']).text}"  # literals side by side
        joins = re.search(r"SEQ|AND|PAR|EQUALS|MEETS|DURING|STARTS|FINISHES|\^", text)
        policy = f" POLICY {self.policy(body)}" if self.policies and joins and self.chance(50) else ""
        self.add(self.head(type, body.sure), text + policy + self.at_most(body.sure))

    def policy_rule(self, type: str) -> None:
        """A chain of atoms with few shared variables, so that there is something to select from."""
        names = [["X", "Y", "Z"], ["X", "X", "Y"], ["X", "_", "Z"], ["_", "Y", "Y"]]
        parts: list[Part] = []
        for name in self.pick(names)[: self.pick([2, 2, 3])]:
            kind = self.pick([*["a", "b"] * 3, "c", "d", *[t for t in self.reads[-1:] if COLUMNS[t][:1] == "n"]])
            rest = ", _" * (len(COLUMNS[kind]) - 1)
            parts.append(part(f"{kind}({name}{rest})", more=[name] if name != "_" else []))
        body = parts[0]
        for other in parts[1:]:
            if self.chance(15):
                body = self.without(body, other)
            else:
                body = self.joined(body, self.pick(["SEQ", "SEQ", "SEQ", "AND", "AND", *OPERATORS[:3]]), other)
        if self.chance(30):
            body = self.where(body)
        text = f"({body.text}).{self.number(4, 7)}" if self.chance(25) else body.text
        policy = f" POLICY {self.policy(*parts)}" if self.chance(80) and not body.text.count(" OR ") else ""
        self.add(self.head(type, body.sure), text + policy + self.at_most(body.sure))

    def labelled(self, count: int) -> tuple[list[str], Part, list[str]]:
        """Labelled patterns: the literals, what they bind, and the labels."""
        labels = ["i", "j", "m"][:count]
        parts = [self.atom() if self.chance(80) else self.pattern(1) for _ in labels]
        return [f"{n}: {p.text}" for n, p in zip(labels, parts, strict=True)], part("", *parts), labels

    def relations(self, labels: Sequence[str]) -> list[str]:
        """How labelled occurrences lie: for each label at most one relation with an earlier one, and what bounds them all."""
        found: list[str] = []
        for n, j in enumerate(labels[1:], 1):
            i = self.pick(labels[:n])
            r = self.pick([*RELATIONS, *["before"] * 5, "after", "contains"])
            d = self.pick(["3", "2", "4s"])
            found += self.pick([
                [f"{i} {r} {j}"], [f"{i} {r} {j}"], [f"{i} {r} {j} or {j} before {i}"], [f"start({j}) - end({i}) <= {d}"],
                [f"end({j}) >= start({i})", f"duration({i}) <= {d}"], [f"{i} before {j} or {i} meets {j}"], [],
            ])  # fmt: skip
        if self.chance(40):
            found.append(f"{{{', '.join(labels)}}} within {self.pick(['6s', '5s', '8s', '6'])}")
        return found

    def relative(self, anchor: str, label: str = "w", names: Iterable[str] = ()) -> str:
        kind = self.pick([*RELATIVE, "extend", "extend", "extend_backward", "from_end"])
        if label == "w" and self.chance(30):
            return f"{label}: {self.from_value(kind, anchor, names)}"
        return f"{label}: {kind}({anchor}, {1 if kind == 'shorten' else self.number(1, 4)}s)"

    def from_value(self, kind: str, anchor: str, names: Iterable[str]) -> str:
        """A window whose length, or end, is data."""
        numbers = sorted(v for v in names if kind_of(v) == "n")
        number = self.pick([*numbers, *numbers, f"duration({anchor})", f"end({anchor}) - start({anchor}) + 1"])
        most = self.pick(["", "", f", most = {self.number(1, 4)}s"])
        if self.chance(30):
            return (
                f"until({anchor}, {self.pick([f'end({anchor}) + {number}', *numbers, f'start({anchor}) + 2'])}{most})"
            )
        return f"{kind}({anchor}, {self.pick([number, number, f'{number} + 1', f'abs({number})'])}{most})"

    def label_rule(self, type: str) -> None:
        """A rule over labels: relations, windows counted from them, and what must not be inside."""
        literals, body, labels = self.labelled(self.pick([1, 2, 2, 2, 3]))
        literals += self.relations(labels)
        if len(labels) == 1 or self.chance(40):
            anchor, window = self.pick(labels), "w"
            literals.append(self.relative(anchor, names=body.sure))
            if self.chance(15):
                literals.append(self.relative("w", "u"))
                window = "u"
            if self.chance(10):
                name = self.new()
                test = self.pick([f"{name} <= start({anchor})", f"{name} > duration({anchor})"])
                literals.append(f"while {window}: not ({self.pick(['a', 'b', 'c'])}({name}) WHERE {test})")
            elif self.chance(70):
                literals.append(self.not_inside(window, body))
        elif self.chance(25):
            literals.append(self.not_inside(self.pick(labels), body))
        bound = set(body.sure)
        if body.numbers and self.chance(15):
            x, i = self.pick(body.numbers), self.pick(labels)
            literals.append(self.pick([f"{x} <= end({i})", f"{x} >= duration({i})", f"start({i}) mod 2 = {x} mod 2"]))
        if body.sure and self.chance(60 if self.statics else 30):
            tests, more = self.conditions(body.sure)
            literals += tests
            bound |= more
        moments = [f"{m}({n})" for n in labels for m in ("start", "end", "duration")]
        policy = ""
        if self.policies and len(labels) > 1 and self.chance(60):
            policy = f" POLICY {self.policy(body)}"
        since = self.since(labels) if self.chance(15) else ""
        tail = policy + self.at_most(bound)
        self.add(self.head(type, bound, moments) + since, ", ".join(self._mixed(literals)) + tail)

    def _mixed(self, literals: list[str]) -> list[str]:
        """Their order says nothing."""
        return self.shuffled(literals) if self.chance(20) else literals

    def not_inside(self, window: str, body: Part) -> str:
        absent = self.atom(["a", "b", "c", "c", "c", "d", *self.reads[-2:]], body.sure)
        if absent.numbers and self.chance(40):
            numbers = [*absent.numbers, *body.numbers]
            return f"while {window}: not ({absent.text} WHERE {self.test(numbers)})"
        if self.chance(15):
            other = self.atom(["a", "b", "c"], body.sure)
            return f"while {window}: not ({absent.text} {self.pick(['SEQ', 'AND'])} {other.text})"
        return f"while {window}: not {absent.text}"

    def window_rule(self, type: str) -> None:
        """A rule over windows by the clock, alone, beside an event, or with the window before."""
        hop = self.pick(["", "", f", {self.number(1, 4)}s"])
        origin = self.pick(["", "", f", from = {self.number(0, 3)}"])
        literals = [f"w: every({self.number(1, 5)}s{hop}{origin})"]
        beside = part("")
        if self.chance(25):
            found, beside, _ = self.labelled(1)
            literals += [
                *found,
                self.pick(["i inside w", "i inside w", "start(i) < end(w), end(i) > start(w) - 3", "w contains i"]),
            ]
        if self.chance(20):
            literals.append("v: previous(w)")
        if self.statics and self.chance(30):
            literals += self.conditions(beside.sure)[0]
        if self.chance(15):
            literals.append(self.not_inside("w", beside))
            tail = self.at_most(beside.sure)
            self.add(self.head(type, beside.sure, ["start(w)", "length(w)"]), ", ".join(literals) + tail)
            return
        names = frozenset(v for v in beside.sure if self.chance(40)) | {self.new(), self.new()}
        collected = self.atom(["a", "b", "a", "b", "d"], names)
        if self.chance(15):
            collected = self.joined(collected, self.pick(["SEQ", "OR"]), self.atom(["a", "b"], names))
        if not collected.numbers:
            collected = part(f"{self.pick(['a', 'b'])}(Q)", more=["Q"])
        none = self.chance(15)
        window = "v" if "v: previous(w)" in literals and self.chance(50) else "w"
        named = "p: " if self.chance(15) else ""
        literals.append(f"while {window}: collect {named}{collected.text}{' or none' if none else ''}")
        if named and self.chance(50):
            literals.append(self.pick(["start(p) > start(w)", "end(p) < end(w)", "length(p) = 1"]))
        if self.chance(20) and not none:
            literals += self.conditions(beside.sure | collected.sure)[0]
        literals += self._having(collected) if self.chance(30) else []
        head = self._aggregated(type, beside, part("", more=[]) if none else collected, collected.numbers)
        top, place = self._top(collected.numbers, beside.sure) if self.chance(15) else ("", "")
        if place and head.endswith(", count())"):
            head = head.removesuffix("count())") + f"{place})"
        since = self.since(["w"]) if self.chance(15) else ""
        self.add(head + since, ", ".join(literals) + top + self.at_most({*beside.sure, *filter(None, [place])}))

    def aggregate_rule(self, type: str) -> None:
        """A rule that collects: in a window, or the last few."""
        literals, body, labels = self.labelled(self.pick([1, 1, 1, 2]))
        if len(labels) > 1:
            literals += self.relations(labels)
        names = frozenset(v for v in body.sure if self.chance(40)) | {self.new(), self.new()}
        collected = self.atom(["a", "b", "a", "b", "d", *self.reads[-1:], *self.reads[-1:]], names)
        if self.chance(20):
            collected = self.joined(collected, self.pick(["SEQ", "AND", "OR"]), self.atom(["a", "b"], names))
        if collected.numbers and self.chance(20):
            collected = part(f"({collected.text} WHERE {self.test(collected.numbers)})", collected)
        if not collected.numbers:
            collected = part(f"{self.pick(['a', 'b'])}(Q)", more=["Q"])
        which = self.number(0, 9)
        if which < 6:
            anchor = self.pick(labels)
            window = self.pick(["w", "w", "w", "w", anchor]) if len(labels) > 1 else "w"
            if window == "w":
                kind = self.pick([*["extend_backward"] * 4, *["extend"] * 2, *RELATIVE])
                length = f"w: {kind}({anchor}, {1 if kind == 'shorten' else self.number(2, 5)}s)"
                literals.append(f"w: {self.from_value(kind, anchor, body.sure)}" if self.chance(20) else length)
            if self.chance(25):
                literals.append(self.not_inside(window, body))
            lead = f"while {window}: collect"
        else:
            lead = f"{self.pick(['last 2', 'last 1', 'exactly 2', 'last 3', 'all'])}: collect"
        none = bool(body.sure) and self.chance(15)
        named = self.chance(20)
        literals.append(f"{lead} {'p: ' if named else ''}{collected.text}{' or none' if none else ''}")
        if named and self.chance(60):
            at = self.pick(labels)
            literals.append(self.pick([f"start(p) >= start({at}) - 2", f"end(p) != end({at})", "duration(p) < 2"]))
        every = body.sure | (frozenset() if none else collected.sure)
        if self.chance(30) and not none:
            literals += self.conditions(every)[0]
        literals += self._having(collected) if self.chance(30) else []
        policy = f" POLICY {self.policy(body)}" if self.policies and len(labels) > 1 and self.chance(50) else ""
        head = self._aggregated(type, body, part("", more=[]) if none else collected, collected.numbers)
        top, place = self._top(collected.numbers, every) if self.chance(20) else ("", "")
        if place and head.endswith(", count())"):
            head = head.removesuffix("count())") + f"{place})"
        since = self.since(labels) if self.chance(20) else ""
        tail = policy + top + self.at_most({*body.sure, *filter(None, [place])})
        self.add(head + since, ", ".join(literals) + tail)

    def since(self, labels: Sequence[str]) -> str:
        """Where an event starts."""
        at = self.pick(labels)
        return f" SINCE {self.pick(['END', f'start({at})', f'end({at})', f'start({at}) - 1s', f'start({at}) + 2s'])}"

    def _having(self, collected: Part) -> list[str]:
        """Conditions on a group."""
        x = self.pick(collected.numbers)
        return self.pick([
            ["count() >= 2"], [f"max({x}) > 1"], [f"N9 = count({x})", "N9 < 3"], [f"count() = 1 or min({x}) = 1"],
            [f"sum({x}) between 1 and 4"], [f"any({x} > 1)"],
        ])  # fmt: skip

    def _top(self, numbers: Sequence[str], names: Iterable[str]) -> tuple[str, str]:
        """A ranking, and the variable of its place."""
        by = self.pick(["count()", f"sum({self.pick(numbers)})", f"max({self.pick(numbers)})"])
        how = self.pick([" ASC", "", "", " WITH TIES", " ASC WITH TIES"])
        plain = sorted(v for v in names if kind_of(v) in ("n", "s"))
        per = f" PER ({self.pick(plain)})" if plain and self.chance(30) else ""
        place = "R9" if self.chance(60) else ""
        return f" TOP {self.pick([1, 2, 'ALL'])} BY {by}{how}{per}{f' AS {place}' if place else ''}", place

    def _aggregated(self, type: str, body: Part, collected: Part, numbers: Sequence[str]) -> str:
        """A head with at least one aggregate; its other variables make groups."""
        args: list[str] = []
        columns = COLUMNS[type]
        for i, kind in enumerate(columns):
            others = [v for v in sorted(body.sure | collected.sure) if kind_of(v) == kind]
            if i < len(columns) - 1 and others and self.chance(70):
                args.append(self.pick(others))
            elif kind == "l":
                args.append(f"list({self.pick([*numbers, f'{numbers[0]} + 1'])})")
            elif kind == "n":
                x = self.pick(numbers)
                simple = f"{self.pick(AGGREGATES)}({x})"
                args.append(self.pick([simple, simple, simple, "count()", f"count(distinct {x})", f"sum(distinct {x})",
                                       f"max({x}) - min({x})", f"sum({x} * 2)", f"nth({x}, 2)", f"mode({x})",
                                       f"arg_max({x}, {self.pick(numbers)})", "count()", self._filtered(x, numbers)]))  # fmt: skip
            else:
                text = self.pick([v for v in collected.sure if kind_of(v) == "s"] or ["'k'"])
                args.append(f"concat({self.pick(['first', 'last', 'min'])}({text}), count())")
        return f"{type}({', '.join(args)})"

    def _filtered(self, x: str, numbers: Sequence[str]) -> str:
        """An aggregate over what meets a condition."""
        value = self.pick(
            [f"{self.pick(AGGREGATES)}({x}", "count(", f"nth({x}, 2", f"arg_min({x}, {self.pick(numbers)}"]
        )
        return f"{value} where {self.pick(numbers)} {self.pick(['>', '<=', '!='])} {self.pick([1, 2, x])})"

    # Static knowledge

    def static(self) -> None:
        """Facts and static rules; with `outside`, also predicates whose facts come with the run."""
        pairs = ["1, 2", "1, 2", "2, 1", "1, 1", "2, 3", "1.0, 3", "3, 2", "2, 2"]
        self.clauses = [f"near({pair})." for pair in dict.fromkeys(self.some(pairs, 2, 5))]
        known = ["near"]
        if self.chance(60):
            self.outside = True
            known += ["known", "cost"]
        for name in dict.fromkeys(self.some(["reach", "good", "size", "bad", "twice"], 0, 4)):
            self.clauses += self._clauses(name, known)
            known.append(name)
        self.statics = [*known[-3:], *known]

    def _clauses(self, name: str, known: list[str]) -> list[str]:
        other = self.pick([k for k in known if k in ("near", "cost")])
        unary = self.pick([k for k in known if k in ("known", "bad", "good")] or ["near"])
        call = f"{unary}(X, _)" if unary == "near" else f"{unary}(X)"
        match name:
            case "reach":
                step = [f"reach(X, Z) :- {other}(X, Y), reach(Y, Z).", f"reach(X, Z) :- reach(X, Y), {other}(Y, Z).",
                        "reach(X, Z) :- reach(X, Y), reach(Y, Z)."]  # fmt: skip
                return [f"reach(X, Y) :- {other}(X, Y).", self.pick(step)]
            case "good":
                return [self.pick([f"good(X) :- {other}(X, Y), X < Y.", f"good(X) :- {other}(_, X), not {other}(X, X).",
                                   f"good(X) :- near(X, _), not {call}.", "good(1). good(2) :- near(1, 2)."])]  # fmt: skip
            case "bad":
                return [self.pick([f"bad(X) :- {other}(X, Y), Z = Y + 1, Z > 2.", f"bad(X) :- near(X, Y), not {other}(Y, X).",
                                   f"bad(X) :- {call}, near(_, X)."])]  # fmt: skip
            case "size":
                return ["size(X, 1) :- X < 2, !.", self.pick([f"size(X, Y) :- {other}(X, Y), !.", "size(X, 2) :- near(X, _)."]),
                        "size(_, 3)."]  # fmt: skip
        return [self.pick([f"twice(X, Y) :- {other}(X, Z), Y = Z * 2.", f"twice(X, Y) :- {other}(X, Z), near(Z, Y)."])]

    # Recursion

    def recursion(self) -> None:
        """Types that depend on themselves, in one of several ways."""
        which = self.pick(["closure", "counting", "absence", "mutual", "window", "policy", "any"])
        getattr(self, f"_{which}")()
        found = {m for rule in self.rules for m in re.findall(r"^(?:rule \w+: )?(\w+)", rule)}
        self.reads = [t for t in DERIVED if t in found]

    def _window(self) -> None:
        """Absence and collecting on a cycle, where the window ends before a later part."""
        first, last = self.pick(["a", "c"]), self.pick(["b", "a"])
        kind = self.pick(["extend", "from_start", "from_end", "extend_backward"])
        body = f"i: {first}(X), j: {last}(Y), w: {kind}(i, {self.number(1, 2)}s), w before j"
        if self.chance(50):
            seen = self.pick(["e(X)", "e(_)", "e(Y)", "(e(N) WHERE N >= X)", "(e(N) SEQ b(_))"])
            self.add(self.pick(["e(X)", "e(Y)"]), f"{body}, while w: not {seen}")
            if self.chance(40):
                self.add("e(X)", f"e(X) SEQ {self.pick(['c(_)', 'b(X)'])}")
        else:
            self.add("e(X)", self.pick(["b(X)", "c(X)", "a(X) SEQ b(_)"]))
            value = self.pick(["count()", "sum(N)", "max(N)", "count() + X"])
            self.add(f"e({value})", f"{body}, while w: collect e(N)")

    def _base(self, type: str = "e") -> None:
        """What is there before the recursion."""
        if type == "g":
            text = ["p(loc(X, Y))", "a(X) SEQ b(Y)", "a(X) AND b(Y)", "b(X) MEETS a(Y)", "(a(X) SEQ a(Y)).4"]
            self.add("g(X, Y)", self.pick(text))
        else:
            text = ["a(X)", "b(X)", "a(X)", "a(X) OR b(X)", "a(X) SEQ b(_)", "a(X) OR d(X, 'k')", "p(loc(X, _))"]
            self.add(f"{type}(X)", self.pick(text))

    def _closure(self) -> None:
        self._base("g")
        op = self.pick(["SEQ", "SEQ", "AND", "AND", "PAR", "MEETS", "DURING"])
        step = self.pick(["p(loc(Y, Z))", "b(Y)", "a(Y)", "d(Y, _)"])
        head = "g(X, Z)" if "Z" in step else "g(X, Y)"
        self.add(*self.pick([
            (head, f"g(X, Y) {op} {step}"), (head, f"{step} {op} g(X, Y)"), (head, f"(g(X, Y) {op} {step}).6"),
            ("g(X, Z)", "g(X, Y) SEQ g(Y, Z)"), ("g(X, Z)", "g(X, Y) SEQ b(Z) WHERE Y <= Z"),
            ("g(Y, X)", "g(X, Y) OR p(loc(X, Y))"),
        ]))  # fmt: skip

    def _counting(self) -> None:
        self.add(self.pick(["e(1)", "e(0)", "e(X)"]), self.pick(["a(X)", "a(X)", "b(X)"]))
        head = self.pick(["e(C + 1)", "e(C + 1)", "e(C + X)", "e(C * 2)", "e(max(C, X))"])
        step = self.pick(["b(X)", "a(X)", "a(X)", "d(X, _)"])
        body = self.pick([f"(e(C) AND {step}).2 WHERE C < 2", f"(e(C) PAR {step}).3 WHERE C + 1 <= 2",
                          f"e(C) SEQ {step}", f"NOT(c(_)).[e(C), {step}]", f"{step} SEQ e(C)", f"(e(C) SEQ {step}).5",
                          f"e(C) SEQ {step} WHERE C < 3", f"(e(C) SEQ {step}) OR (e(C) SEQ c(X))",
                          f"NOT(e(_)).[e(C), {step}]", f"NOT(e(C)).[e(C), {step}]", f"e(C) SEQ[recent] {step}"])  # fmt: skip
        self.add(head, body)

    def _absence(self) -> None:
        if self.chance(60):
            self._base()
        negated = self.pick(["e(X)", "e(_)", "(e(N) WHERE N < X)", "(e(_) SEQ e(_))"])
        ends = self.pick([("a(X)", "b(_)"), ("a(X)", "b(X)"), ("e(X)", "b(_)"), ("c(_)", "e(X)"), ("a(X)", "e(_)")])
        self.add("e(X)", self._windowed(f"NOT({negated}).[{ends[0]}, {ends[1]}]"))
        if self.chance(40):
            self.add("e(X)", self.pick(["NOT(f(_)).[e(X), b(_)]", "NOT(f(X)).[c(_), e(X)]", "f(X) SEQ a(_)"]))
            self.add("f(X)", self.pick(["NOT(e(_)).[c(X), b(_)]", "NOT(e(X)).[b(X), a(_)]", "e(X) SEQ c(_)"]))
        elif self.chance(25):
            self.add("e(X)", self.pick(["e(X) ^ 2 CONSECUTIVE", "(e(X) ^ 2 CONSECUTIVE) AND a(_)"]))

    def _mutual(self) -> None:
        self._base()
        ops = ["SEQ", "AND", "SEQ", "SEQ", "AND", "PAR", "MEETS", "DURING", "FINISHES"]
        steps = ["b(X)", "a(_)", "b(_)", "a(X)", "c(_)", "d(X, _)"]
        self.add("f(X)", self._windowed(f"e(X) {self.pick(ops)} {self.pick(steps)}"))
        self.add("e(X)", self._windowed(f"f(X) {self.pick(ops)} {self.pick(steps)}"))
        if self.chance(40):
            self.add("f(X)", self.pick(["c(X)", "NOT(e(X)).[f(X), a(_)]", "b(X) OR e(X)"]))

    def _policy(self) -> None:
        self._base()
        policy = self.pick(["recent", "chronological", "recent shortest", "chronological shortest", "recent by X",
                            "recent per (X)", "chronological by Y"])  # fmt: skip
        pair = self.pick([("e(X)", "b(Y)"), ("e(X)", "a(Y)"), ("b(X)", "e(Y)"), ("e(X)", "e(Y)"), ("a(X)", "e(Y)")])
        head = self.pick(["e(X)", "e(Y)", "e(X + Y)"])
        body = self.pick([f"{pair[0]} SEQ[{policy}] {pair[1]}", f"NOT[{policy}](c(_)).[{pair[0]}, {pair[1]}]",
                          f"({pair[0]} SEQ[{policy}] {pair[1]}).5", f"{pair[0]} SEQ {pair[1]} POLICY {policy}",
                          f"{pair[0]} SEQ {pair[1]} WHERE X <= Y POLICY {policy}"])  # fmt: skip
        self.add(head, body)

    def _any(self) -> None:
        """Any pattern that reads the type it derives."""
        self._base()
        self.computes = False
        inner = self.pattern(1)
        loop = part("e(X)", more=["X"])
        both = (loop, inner) if self.chance(50) else (inner, loop)
        op = self.pick([*OPERATORS, "SEQ", "SEQ", "AND"])
        absent = self.pick([None, ["e", "c"]])
        body = self.without(*both, absent) if self.chance(20) else self.joined(both[0], op, both[1])
        names = [v for v in body.numbers if not v.startswith("V")] or ["1"]
        self.add(f"e({self.pick(names)})", self._windowed(body.text))
        self.computes = True

    def _windowed(self, text: str) -> str:
        return f"({text}).{self.number(4, 8)}" if self.chance(30) else text

    # The whole

    def heads(self, counts: Sequence[int], among: Sequence[str]) -> list[str]:
        """The types of the rules to come, in an order in which each may read those before it."""
        return sorted((self.pick(among) for _ in range(self.pick(counts))), key=list(DERIVED).index)

    def below(self, type: str) -> list[str]:
        """The derived types that a rule for a type may read: what exists already and comes before it."""
        found = {m for rule in self.rules for m in re.findall(r"^(?:rule \w+: )?(\w+)", rule)}
        return [t for t in DERIVED if t in found and list(DERIVED).index(t) < list(DERIVED).index(type)]

    def write(self, kinds: Sequence[str], heads: Sequence[str]) -> None:
        """One rule for each head, each of one of the kinds."""
        for type in heads:
            self.reads = self.below(type)
            kind = "aggregate" if type == "v" else self.pick([k for k in kinds if k != "aggregate" or type not in "kz"])
            getattr(self, f"{kind}_rule")(type)

    def text(self) -> str:
        """The program, with the declarations that it needs and perhaps some that it does not."""
        heads = [re.sub(r"^rule \w+: ", "", rule).partition(" <-")[0] for rule in self.rules]
        before = ["event k(t: term)."] if any(h.startswith("k(") for h in heads) else []
        before += [OUTSIDE] if self.outside else []
        if self.chance(15):
            before.append(f"output {', '.join(sorted({re.split('[(]', h)[0] for h in heads[-2:]}))}.")
        if self.chance(5):
            before.append("tick 1s.")
        return "\n".join([*before, *self.clauses, *self.rules]) + "\n"


def _closed(text: str) -> bool:
    """Whether every parenthesis that closes was opened before."""
    depth = 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return False
    return True


_PLAIN = ["e", "e", "f", "g", "h", "k", "z"]


def write_operator(number: Number) -> str:
    """Rules of one pattern each, over one another."""
    writer = Writer(number)
    writer.write(["operator"], writer.heads([2, 1, 3, 4], _PLAIN))
    return writer.text()


def write_label(number: Number) -> str:
    """Labels, their relations, relative temporal events and absence inside them."""
    writer = Writer(number)
    writer.write(["label"], writer.heads([2, 1, 3, 4], _PLAIN))
    return writer.text()


def write_aggregate(number: Number) -> str:
    """Collecting and aggregates."""
    writer = Writer(number)
    heads = writer.heads([2, 1, 3, 4], ["e", "f", "g", "g", "h", "v"])
    writer.write(["aggregate", "aggregate", "aggregate", "window", "operator"], heads)
    return writer.text()


def write_window(number: Number) -> str:
    """Windows by the clock."""
    writer = Writer(number)
    heads = writer.heads([2, 1, 3], ["e", "f", "g", "g", "h"])
    writer.write(["window", "window", "window", "operator", "aggregate"], heads)
    return writer.text()


def write_policy(number: Number) -> str:
    """Policies of the program, of rules and of operators."""
    writer = Writer(number, policies=True)
    writer.write(["policy", "policy", "policy", "operator", "label"], writer.heads([2, 1, 3, 4], _PLAIN))
    policy = f"policy {writer.policy(part('', more=['X', 'Y']))}.\n" if writer.chance(30) else ""
    return policy + writer.text()


def write_recursive(number: Number) -> str:
    """Types that depend on themselves, and sometimes rules that read them."""
    writer = Writer(number)
    writer.recursion()
    writer.write(["operator", "label", "aggregate"], writer.heads([0, 1, 2], ["h", "k", "z"]))
    return writer.text()


def write_static(number: Number) -> str:
    """Facts and static rules, read by conditions of every kind of rule; facts from outside are those of `facts`."""
    writer = Writer(number)
    writer.static()
    for type in writer.heads([2, 1, 3, 4], _PLAIN):
        writer.reads = writer.below(type)
        if writer.chance(50):
            body = writer.where(writer.pattern(writer.pick([1, 0, 2])))
            writer.add(writer.head(type, body.sure), body.text)
        else:
            writer.write(["label", "operator", "aggregate"], [type])
    return writer.text()


def write_mixed(number: Number) -> str:
    """Everything at once: rules of all kinds over one another, some recursive, with policies and static knowledge."""
    writer = Writer(number)
    if writer.chance(40):
        writer.static()
    if writer.chance(35):
        writer.recursion()
        among = ["h", "k", "z"]
    else:
        among = ["e", "f", "g", "h", "k", "z", "v"]
    writer.policies = writer.chance(40)
    writer.write(["operator", "operator", "label", "aggregate", "policy"], writer.heads([2, 3, 4], among))
    return writer.text()


WRITERS: dict[str, Callable[[Number], str]] = {
    "operator": write_operator,
    "label": write_label,
    "aggregate": write_aggregate,
    "window": write_window,
    "policy": write_policy,
    "recursive": write_recursive,
    "static": write_static,
    "mixed": write_mixed,
}


def write_any(number: Number) -> str:
    return WRITERS[list(WRITERS)[number(0, len(WRITERS) - 1)]](number)


@st.composite
def _drawn(draw: st.DrawFn, make: Callable[[Number], T]) -> T:
    return make(lambda least, most: draw(between(least, most)))


operator_programs = partial(_drawn, write_operator)
label_programs = partial(_drawn, write_label)
aggregate_programs = partial(_drawn, write_aggregate)
policy_programs = partial(_drawn, write_policy)
recursive_programs = partial(_drawn, write_recursive)
static_programs = partial(_drawn, write_static)
mixed_programs = partial(_drawn, write_mixed)
programs = partial(_drawn, write_any)
STRATEGIES: dict[str, Callable[[], st.SearchStrategy[str]]] = {n: partial(_drawn, w) for n, w in WRITERS.items()}


def compiled(text: str) -> Plan | None:
    """The plan of a program, or None where it is refused."""
    try:
        return augury.compile(text).plan
    except augury.ProgramError:
        return None


# Histories

_TYPES = ["a", "b", "a", "b", "a", "b", "a", "b", "c", "d", "p"]
_VALUES: dict[str, list[Value]] = {
    "n": [1, 1, 1, 1, 2, 2, 2, 1.0, 3, 1, 2, 1, 1, 2, 1, 2, None, 2.5, 0, "k"],
    "s": ["k", "k", "k", "m", "k", "m", "kk", None, 1, True],
}


_LENGTHS = (0, 0, 0, 1, 0, 2, 3, 4, 1)


def write_event(number: Number, id: str = "", derived: bool = True, lengths: Sequence[int] = _LENGTHS) -> Event:
    """An event of an input type, mostly a or b, or, if `derived`, rarely of one that rules may derive too; close to the others."""
    choices = Choices(number)
    type = choices.pick([*_TYPES, *_TYPES, *_TYPES, "e", "g"] if derived else _TYPES)
    args: list[Value] = []
    for kind in COLUMNS[type]:
        if kind == "t":
            args.append(Term("loc", tuple(choices.pick(_VALUES["n"][:-3]) for _ in range(2))))
        else:
            args.append(choices.pick(_VALUES[kind]))
    start = choices.pick([1, 2, 3, 4, 5, 6, 7, 8, 0, 2, 3, 4, 5])
    return Event(type, tuple(args), start, start + choices.pick(lengths), id)


def write_telling(
    number: Number, least: int = 4, most: int = 12, derived: bool = True, advances: bool = True
) -> list[Step]:
    choices = Choices(number)
    told: list[HistoryItem] = []
    lengths = choices.pick([_LENGTHS, _LENGTHS, (0,), (1, 2, 3, 4, 5, 0)])
    versions = choices.chance(20)
    for n in range(max(number(least, most), number(least, most))):
        event = write_event(number, "" if choices.chance(20) else f"i{n}", derived, lengths)
        told.append(event)
        match number(0, 15):
            case 15:
                told.append(event)  # said twice: one with an id, two without
            case 12 | 11 if event.id and versions:
                told.append(
                    replace(write_event(number, event.id, derived, lengths), version=choices.pick([1, 2, 2, -1]))
                )
            case 10 if event.id and versions:
                told.append(Revocation(event.id, None, choices.pick([0, 1, 2])))
            case 14 if event.id:
                told.append(write_event(number, event.id, derived, lengths))  # another one under a used id
            case 13 if event.id:
                told.append(Revocation(event.id))
    if choices.chance(5):
        told.append(Revocation("nothing"))
    match number(0, 3):
        case 0:
            told.sort(key=_end)
        case 1 | 2:  # somewhat late
            delayed = [(_end(item) + choices.pick([0, 0, 0, 1, 2, 5]), n) for n, item in enumerate(told)]
            told = [told[n] for _, n in sorted(delayed)]
        case _:
            told = choices.shuffled(told)
    steps: list[Step] = []
    at = 0
    while at < len(told):
        size = choices.pick([1, 1, 1, 2, 3, 5, 20, 0])
        steps.append(told[at : at + size])
        at += size
        if advances and choices.chance(20) and (bound := _promise(told, at)) >= 0:
            steps.append(("advance", number(max(0, bound - 3), bound)))
    return steps


def tellings(
    least: int = 4, most: int = 12, derived: bool = True, advances: bool = True
) -> st.SearchStrategy[list[Step]]:
    """A history in steps: batches of events and revocations, and `("advance", t)`, which promises that no event that is
    new ends at or before t any more. With repeats, ids used twice, events without an id, late ones, and revocations
    before and after their events.
    """
    return _drawn(partial(write_telling, least=least, most=most, derived=derived, advances=advances))


def _end(item: HistoryItem) -> int:
    """Where in time an item is told if it is told in time; a revocation, some time after most events."""
    return item.end if isinstance(item, Event) else 6


def _promise(told: Sequence[HistoryItem], at: int) -> int:
    """The latest time that the clock may be put to when the first items have been told."""
    known = {item.id for item in told[:at] if isinstance(item, Event)}
    left = [item.end for item in told[at:] if isinstance(item, Event) and (not item.id or item.id not in known)]
    return min(left, default=15) - 1


def flat(steps: Iterable[Step]) -> list[HistoryItem]:
    """All that is said, in the order of arrival."""
    return [item for step in steps if isinstance(step, list) for item in step]


def clock_of(steps: Iterable[Step]) -> int:
    """Where the clock stands in the end: the `until` of the reference."""
    found = [0]
    known: set[str] = set()
    for step in steps:
        if isinstance(step, tuple):
            found.append(step[1])
            continue
        for item in step:
            if isinstance(item, Event) and (not item.id or item.id not in known):
                known.add(item.id)
                found.append(item.end)
    return max(found)


def write_facts(number: Number) -> list[Fact]:
    """Facts of the static predicates that `OUTSIDE` declares, most of them valid for a time only."""
    choices = Choices(number)
    found: list[Fact] = []
    for _ in range(number(1, 6)):
        name = choices.pick(["known", "cost"])
        args = tuple(choices.pick([1, 1, 1, 2, 2, 3, 1.0]) for _ in range(1 if name == "known" else 2))
        since, until = None, None
        if choices.chance(60):
            since = choices.pick([None, 0, 2, 3, 4, 6])
            until = choices.pick([None, 4, 5, 6, 8, 12])
            if since is not None and until is not None and until <= since:
                until = since + 2
        found.append(Fact(name, args, since, until))
    return found


facts = partial(_drawn, write_facts)


# Measures


def example(kind: str, seed: object) -> tuple[str, list[Step], list[Fact]]:
    """A program of one kind, a history and facts, from a seed: quicker than Hypothesis, but nothing shrinks them."""
    number = Random(f"{kind} {seed}").randint
    return WRITERS[kind](number), write_telling(number), write_facts(number)


def _measure(kind: str, examples: int, verbose: bool) -> None:
    """Prints a line about one kind of programs, and what went wrong other than by the errors that are Augury's own."""
    counts: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    times: list[float] = []
    for seed in range(examples):
        text, steps, known = example(kind, seed)
        try:
            plan = augury.compile(text).plan
            began = time.perf_counter()
            model = evaluate(plan, flat(steps), Clock(), known, clock_of(steps))
        except augury.ProgramError as error:
            counts["refused"] += 1
            codes.update({d.code for d in error.diagnostics if d.code.startswith("E")})
            if verbose:
                sys.stdout.write(f"--- refused, {kind} {seed}:\n{text}{error}\n")
            continue
        except AuguryError as error:
            counts["failed"] += 1
            codes[str(error)[:60]] += 1
            continue
        except Exception:
            sys.stdout.write(f"--- crash, {kind} {seed}:\n{text}{flat(steps)}\n{known}\n{traceback.format_exc()}\n")
            continue
        times.append(time.perf_counter() - began)
        if times[-1] > 1:
            sys.stdout.write(f"--- slow, {kind} {seed}, {times[-1]:.1f} s:\n{text}{flat(steps)}\n")
        shown = {e.id for e in model.events}
        ways = {d.rule: id in shown for id, found in model.derivations.items() for d in found if d.rule}
        counts["answered"] += any(ways.values())
        counts["rules"] += len(plan.rules)
        counts["detecting"] += len(ways)
        counts["row errors"] += bool(model.errors)
    ran = len(times) or 1
    milliseconds = [t * 1e3 for t in sorted(times)]
    sys.stdout.write(
        f"{kind:10} {examples} examples: refused {counts['refused'] / examples:.1%}, answered {counts['answered'] / ran:.1%},"
        f" rules that detect {counts['detecting'] / (counts['rules'] or 1):.1%}, row errors {counts['row errors'] / ran:.1%},"
        f" time: median {statistics.median(milliseconds):.1f} ms, 95 % {milliseconds[int(ran * 0.95)]:.1f} ms,"
        f" most {milliseconds[-1]:.0f} ms; {dict(codes)}\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    for kind in [a for a in sys.argv[1:] if a in WRITERS] or WRITERS:
        _measure(kind, next((int(a) for a in sys.argv[1:] if a.isdigit()), 1000), "-v" in sys.argv)
