"""Random runs with small histories.

    spec, events = example(7)
    answers(spec, events) == what any executor says of spec.text

Variables: `I` is the key, `X0` the number of part 0, `D1` a value that a condition binds. Part n may also have the number of an
earlier part that does not repeat; then the two join.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from hypothesis import strategies as st

from augury.core.model import Event, HistoryItem, Revocation, Value
from tests.generators.programs import Choices, Number, Step, between
from tests.generators.run_answers import answers
from tests.generators.run_specs import (
    AbsentSpec,
    Apply,
    Asked,
    Atom,
    Compare,
    Holds,
    Let,
    Name,
    Num,
    PartSpec,
    Prev,
    Spec,
    Term,
    Time,
    Total,
)

__all__ = [
    "Spec",
    "answers",
    "example",
    "examples",
    "write_history",
    "write_run",
    "write_run_case",
    "write_run_telling",
]

TYPES = ("r", "q", "u")  # each with a key and a number
FACTS: dict[str, list[tuple[Value, ...]]] = {
    "size": [(0, 1), (1, 1), (1, 2), (2, 0), (3, 3), (4, 1)],
    "limit": [(1,), (2,)],
    "only": [(2,)],
}
# Rules that derive `u` from `v` and `n`: points and intervals that a late event takes back or changes.
DERIVATIONS = (
    "u(I, X) SINCE END <- a: v(I, X), w: extend_backward(a, 2s), while w: not n(I, _).",
    "u(I, X) SINCE END <- a: v(I, X), w: extend(a, 1s), while w: not n(I, _).",
    "u(I, max(X)) SINCE END <- a: v(I, _), last 2: collect v(I, X).",
    "u(I, X) <- v(I, X).",
    "u(I, count(X)) <- v(I, X)+ PER (I) LONGEST SKIP PAST END.",
    "u(I, Y) <- n(I, X) THEN v(I, Y).",
)
OFTEN = [(1, None), (1, None), (0, None), (0, 1), (0, 1), (2, 2), (1, 2), (2, None), (0, 2), (1, 3)]
Slot = tuple[int, int]  # a part, and 0 while it goes on or 1 when it is complete
FIRST: Slot = (-1, 0)


@dataclass
class _RunWriter(Choices):
    """Writes one run. `known` says from when on each variable that is no iteration's own has a value at the latest."""

    parts: list[PartSpec] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    known: dict[str, Slot] = field(default_factory=dict)
    own: dict[int, list[str]] = field(default_factory=dict)  # by part
    fresh: int = 0

    def spec(self) -> Spec:
        count = self.pick([2, 3, 1, 2, 3, 3])
        seq = self.chance(20)
        links = [self.pick(["NEXT", "THEN", *(["SEQ"] if seq else [])]) for _ in range(count)]
        if count == 1:
            links = ["NEXT"]
        elif links:
            links[0] = links[1]  # between the iterations of the first part
        keyed = self.chance(75)
        types = self.pick([("r", "q", "u"), ("r", "q", "r"), ("r", "r", "r"), ("u", "r", "u"), ("r", "u", "u")])
        for n in range(count):
            quantified = n == count - 1 and set(links[1:]) <= {"SEQ"} and all((p.least, p.most) == (1, 1) for p in self.parts)  # fmt: skip
            self.parts.append(self._part(n, links[n], keyed, types, quantified))
        self._find_own()
        self._absences()
        parts = self.parts
        used = [p.link for p in parts[1:]] + [p.by or p.link for p in parts if p.repeats]
        bounded = all(p.most is not None or (p.by or p.link) != "SEQ" or self._is_idle(n) for n, p in enumerate(parts))
        window = self.pick([1, 2, 3, 4, 6]) if not bounded or self.chance(30) else None
        shared = len({p.var for p in parts if p.var}) < len([p for p in parts if p.var])
        per = "" if keyed and count > 1 and self.chance(50) and not shared else "PER (I)" if keyed else "PER ()"
        self._conditions()
        results = tuple(t for n in range(count) for t in self._results(n))
        results += tuple(Name(a.condition.name) for a in self.asked if a.owner is None and not isinstance(a.condition, Compare) and self.chance(60))  # fmt: skip
        rules: tuple[str, ...]
        which, skip = "ALL", ""
        if "SEQ" not in used and self.chance(50):
            which = self.pick(["LONGEST", "LONGEST", "SHORTEST"])
            labels = [p.label for p in parts if p.label and p.least > 0]
            skip = self.pick(
                ["", "SKIP PAST END", *(f"SKIP TO {end} {label}" for label in labels for end in ("FIRST", "LAST"))]
            )
        rules, inputs = (), tuple(a.type for p in parts for a in p.atoms)
        if "u" in inputs and self.chance(60):
            rules = (self.pick(DERIVATIONS),)
            inputs = (
                *(t for t in inputs if t != "u"),
                *["v"] * inputs.count("u"),
                *(["n"] if "n(" in rules[0] else []),
            )
        inputs = (*inputs, *inputs, *inputs, self.pick(TYPES if not rules else ("r", "q")))
        return Spec(tuple(parts), per, keyed, window, tuple(self.asked), results, which, skip, FACTS, rules, inputs)

    # Parts

    def _part(self, n: int, link: str, keyed: bool, types: tuple[str, ...], quantified: bool) -> PartSpec:
        key = "I" if keyed else "_"
        least, most = self.pick(OFTEN if quantified else [(1, 1), (1, 1), (1, 1), *OFTEN])
        value = self.pick([f"X{n}"] * 6 + ["_", "1"])
        singles = [p.var for p in self.parts if p.var and not p.repeats]
        if singles and self.chance(20):
            value = self.pick(singles)
        atoms = [Atom(types[n], key, value)]
        if self.chance(15):
            atoms.append(Atom(self.pick(TYPES), key, value))
        part = PartSpec(tuple(atoms), least, most, link, f"l{n}" if self.chance(50) else "")
        if part.most == 1 and part.least == 1 and self.chance(8):
            return replace(part, iterates=True)
        by = self.pick(["NEXT", "THEN"]) if part.repeats and self.chance(15) else ""
        return replace(part, by=by)

    def _absences(self) -> None:
        """What must be absent before some of the parts."""
        for n in range(1, len(self.parts)):
            before, part = self.parts[n - 1], self.parts[n]
            if part.link != "NEXT" and before.least and part.least and self.chance(25):
                absent = tuple(self._absent(n, i) for i in range(self.pick([1, 1, 1, 2])))
                self.parts[n] = replace(part, absent=absent)

    def _absent(self, n: int, i: int) -> AbsentSpec:
        singles = [p.var for p in self.parts[:n] if p.var and p.least and not p.repeats]
        value = self.pick([f"N{n}{i}", f"N{n}{i}", "_", "1", *singles])
        atom = Atom(self.pick(TYPES), self.parts[n].atoms[0].key, value)
        if value[0] != "N":
            return AbsentSpec(atom)
        sure = [Name(v) for v in singles]
        options: list[Term] = [*sure, *(t for m in range(n) if self.parts[m].repeats for t in self._totals(m, FIRST))]
        other = self.pick([Num(self.pick([1, 2, 3])), *(t for t in options if not self._is_time(t))])
        return AbsentSpec(atom, Compare(self.pick(["<", ">=", "!="]), Name(value), other), self.chance(50))

    def _is_idle(self, n: int) -> bool:
        """Whether a part is a repetition after SEQ that nothing asks for: it needs no window."""
        part, beside = self.parts[n], [p.link for p in self.parts[max(n, 1) : n + 2]]
        alone = all(p.least == 0 for p in self.parts[:n]) and all(p.least == 0 for p in self.parts[n + 1 :])
        return not (part.label or part.var or part.by or alone) and set(beside) == {"SEQ"}

    def _find_own(self) -> None:
        for n, part in enumerate(self.parts):
            self.own[n] = []
            if part.var and part.repeats and part.var not in self.known:
                self.own[n] = [part.var]
            elif part.var:
                self.known.setdefault(part.var, (n, 0))

    # Terms

    def _terms(self, until: Slot) -> list[Term]:
        """What has a value by then, one for the whole match."""
        found: list[Term] = [Name(v) for v, slot in self.known.items() if slot <= until]
        for n, part in enumerate(self.parts):
            if part.label and not part.repeats and (n, 0) <= until:
                found.append(Time(part.label, self.pick(["start", "end"])))
            if part.repeats and (n, 1) <= until:
                found += self._totals(n, until)
        return found

    def _totals(self, n: int, until: Slot) -> list[Term]:
        """Aggregates over a repeated part, some with a variable from elsewhere."""
        part, found = self.parts[n], list[Term]()
        if part.label:
            found.append(Total("count", (), n, part.label))
            found.append(Total(self.pick(["first", "last", "max"]), (Time(part.label, "end"),), n))
        for v in self.own[n]:
            found.append(Total(self.pick(["count", "sum", "min", "max", "first", "last"]), (Name(v),), n))
            if self.chance(25):
                found.append(Total("nth", (Name(v), Num(self.pick([1, 2, 3]))), n))
            outer = [u for u, slot in self.known.items() if slot <= until]
            if outer and self.chance(60):
                inner = Apply(self.pick(["*", "-", "+"]), Name(v), Name(self.pick(outer)))
                found.append(Total(self.pick(["sum", "min", "count", "last", "first"]), (inner,), n))
                if self.chance(30):
                    found.append(Total(self.pick(["arg_max", "arg_min"]), (Name(v), inner), n))
        return [self._filtered(t, n, until) if isinstance(t, Total) and self.chance(20) else t for t in found]

    def _filtered(self, total: Total, n: int, until: Slot) -> Total:
        """An aggregate over the iterations of a part for which a condition holds."""
        terms: list[Term] = [
            *map(Name, self.own[n]),
            *([Time(self.parts[n].label, "end")] if self.parts[n].label else []),
        ]
        if not terms:
            return total
        term = self.pick(terms)
        other = self._other(term, [*terms, *(Name(u) for u, slot in self.known.items() if slot <= until)])
        return replace(total, where=Compare(self.pick(["<", ">=", "!=", "="]), term, other))

    def _own_terms(self, n: int) -> list[Term]:
        """What an iteration of a repeated part has of its own."""
        part = self.parts[n]
        return [*map(Name, self.own[n]), *([Time(part.label, self.pick(["start", "end"]))] if part.label else [])]

    def _small(self, term: Term) -> Term:
        """A term, sometimes with a number added."""
        return Apply(self.pick(["+", "-"]), term, Num(self.pick([1, 2]))) if self.chance(30) else term

    def _is_time(self, term: Term) -> bool:
        return isinstance(term, Time) or (
            isinstance(term, Total) and bool(term.args) and isinstance(term.args[0], Time)
        )

    def _other(self, term: Term, options: Sequence[Term]) -> Term:
        """Something to compare a term with: a time with a time, a number with a number."""
        alike = [t for t in options if self._is_time(t) == self._is_time(term) and t != term]
        if alike and self.chance(80):
            return self.pick(alike)
        return Num(self.pick([3, 4, 5, 6])) if self._is_time(term) else Num(self.pick([0, 1, 2, 3]))

    # Conditions

    def _conditions(self) -> None:
        last = (len(self.parts) - 1, 1)
        if self.chance(15):
            self._fact(FIRST, None)
        for n, part in enumerate(self.parts):
            if part.repeats and self._own_terms(n):
                for _ in range(self.pick([0, 1, 1, 1, 2])):
                    self._of_iterations(n)
            elif part.var and self.chance(30):
                self._once((n, 0))
            if self.chance(20):
                self._binding((n, self.pick([0, 1])))
        for _ in range(self.pick([0, 0, 0, 1, 1, 2])):
            self._once(last)
        if len(self.parts) > 2 and self.chance(30):
            self._far_apart()

    def _far_apart(self) -> None:
        """A value of the first and the last part, and a condition on it."""
        ends = [self._of_part(n) for n in (0, len(self.parts) - 1)]
        if all(ends):
            first, last = (self.pick(options) for options in ends)
            self._let(Apply("-", last, first), (len(self.parts) - 1, 1))
            bound = Name(f"D{self.fresh}")
            self.asked.append(Asked(Compare(self.pick(["<=", ">=", "<", "!="]), bound, Num(self.pick([0, 1, 2, 3])))))

    def _of_part(self, n: int) -> list[Term]:
        part = self.parts[n]
        if part.repeats:
            return self._totals(n, (n, 1))
        times: list[Term] = [Time(part.label, "start")] if part.label else []
        return [*times, *([Name(part.var)] if part.var else [])]

    def _once(self, until: Slot) -> None:
        options = self._terms(until)
        if options:
            term = self.pick(options)
            other = self._other(term, options)
            self.asked.append(Asked(Compare(self._operator(term, other), self._small(term), other)))

    def _operator(self, *terms: Term) -> str:
        """A comparison: no `=` where it could bind what another condition binds."""
        names = {t.name for t in terms if isinstance(t, Name)}
        tests = any(name[0] == "D" for name in names)
        return self.pick(["<=", "<=", ">=", ">=", "<", ">", "!=", "!=", *([] if tests else ["="])])

    def _binding(self, until: Slot) -> None:
        options = [t for t in self._terms(until) if not self._is_time(t)]
        names = [t for t in options if isinstance(t, Name)]
        if names and self.chance(40):
            self._fact(until, self.pick(names))
        elif options:
            self._let(self._small(self.pick(options)), until)

    def _let(self, value: Term, until: Slot) -> None:
        self.fresh += 1
        self.asked.append(Asked(Let(f"D{self.fresh}", value)))
        self.known[f"D{self.fresh}"] = until

    def _fact(self, until: Slot, needed: Term | None) -> None:
        self.fresh += 1
        name = f"D{self.fresh}"
        predicate = "size" if needed else self.pick(["limit", "only"])
        self.asked.append(Asked(Holds(predicate, (needed,) if needed else (), name)))
        self.known[name] = until

    def _of_iterations(self, n: int) -> None:
        """A condition, or a binding, of every iteration of a part."""
        own = self._own_terms(n)
        term, numbers = self.pick(own), [t for t in own if isinstance(t, Name)]
        earlier = self._terms((n - 1, 1))
        if numbers and self.chance(15):
            self._own_binding(n, self.pick(numbers), earlier)
            return
        other: Term
        match self.pick(["prev", "prev", "default", "default", "running", "earlier", "earlier"]):
            case "prev":
                other = Prev(term)
            case "default":
                other = Prev(term, self._small(self._other(term, [term, *earlier])))
            case "running" if isinstance(term, Name):
                running = Total(self.pick(["sum", "max", "min", "count", "first"]), (term,), n)
                less: Term = Apply("-", running, self._other(term, earlier))
                other = less if self.chance(50) else running
            case _:
                other = self._other(term, earlier)
        left = Apply("-", term, Num(self.pick([1, 2]))) if self.chance(20) else term
        self.asked.append(Asked(Compare(self.pick([">", ">=", "<", "<=", "!="]), left, other), n))

    def _own_binding(self, n: int, term: Term, earlier: list[Term]) -> None:
        self.fresh += 1
        name = f"D{self.fresh}"
        if self.chance(30):
            self.asked.append(Asked(Holds("size", (term,), name), n))
        else:
            other = self.pick(list[Term]([Prev(term, self._other(term, [term, *earlier])), self._other(term, earlier)]))
            self.asked.append(Asked(Let(name, Apply(self.pick(["-", "+"]), term, other)), n))
        self.own[n].append(name)

    def _results(self, n: int) -> Iterator[Term]:
        if self.parts[n].repeats:
            options = self._totals(n, (len(self.parts), 1))
            yield from {self.pick(options): None for _ in range(self.pick([1, 2, 3]))} if options else ()


def write_spec(number: Number) -> Spec:
    return _RunWriter(number).spec()


def write_run(number: Number) -> str:
    """A program with one run: for what compares executors, together with `write_run_telling`."""
    return write_spec(number).text


def write_run_case(number: Number, most: int = 14) -> tuple[Spec, list[Step]]:
    """A run, and a history of its events in steps."""
    spec = write_spec(number)
    return spec, write_run_telling(number, most, spec.types)


# Histories

_VALUES: tuple[Value, ...] = (1, 2, 0, 3, 1, 2, 3, 4, 5, 1, 2, 3, None)
_KEYS: tuple[Value, ...] = (*["k"] * 9, "m", "m", None)
_TYPES = ("r", "r", "q", "q", "u")


def write_event(number: Number, id: str, lengths: Sequence[int], types: Sequence[str] = _TYPES, last: int = 8) -> Event:
    choices = Choices(number)
    start = number(0, last)
    args = (choices.pick(_KEYS), choices.pick(_VALUES))
    return Event(choices.pick(types), args, start, start + choices.pick(lengths), id)


def write_history(number: Number, most: int = 10, types: Sequence[str] = _TYPES) -> list[Event]:
    """A few events, close together, mostly points, mostly of one key."""
    lengths = Choices(number).pick([(0,), (0,), (0, 0, 1, 2), (0, 1, 3)])
    return [write_event(number, f"i{n}", lengths, types) for n in range(number(min(5, most), most))]


def write_run_telling(number: Number, most: int = 14, types: Sequence[str] = _TYPES) -> list[Step]:
    """A history in steps: late events, revocations, and advances of the clock."""
    choices = Choices(number)
    lengths = choices.pick([(0,), (0,), (0, 0, 1, 2), (0, 1, 3)])
    last = choices.pick([8, 8, 4, 14])  # few times: many ties
    items: list[HistoryItem] = [write_event(number, f"i{n}", lengths, types, last) for n in range(number(3, most))]
    items.sort(key=lambda item: item.end + choices.pick([0, 0, 0, 0, 1, 4]) if isinstance(item, Event) else 0)
    for id in [item.id for item in items if choices.chance(15)]:
        items.insert(number(0, len(items)), Revocation(id))
    steps: list[Step] = []
    done = 0
    while done < len(items):
        size = choices.pick([1, 1, 2, 5, 20])
        steps.append(items[done : done + size])
        done += size
        left = [item.end for item in items[done:] if isinstance(item, Event)]
        if choices.chance(20) and (bound := min(left, default=12) - 1) >= 0:
            steps.append(("advance", bound))
    return steps


def example(seed: object) -> tuple[Spec, list[Event]]:
    number = Random(f"run {seed}").randint
    spec = write_spec(number)
    return spec, write_history(number, types=spec.types)


@st.composite
def examples(draw: st.DrawFn) -> tuple[Spec, list[Event]]:
    def number(least: int, most: int) -> int:
        return draw(between(least, most))

    spec = write_spec(number)
    return spec, write_history(number, types=spec.types)
