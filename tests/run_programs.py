"""Random runs with small histories, and their answers found by trying every way to give events to iterations.

The answers are read off section 10 of the semantics, from the description of a run (`Spec`) and not from its syntax or its
algebra: nothing here is shared with `augury.meaning.runs`. `Spec.text` is the program that says the same.

    spec, events = example(7)
    answers(spec, events) == what any executor says of spec.text
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from random import Random

from hypothesis import strategies as st

from augury.model import Event, HistoryItem, Revocation, Value, equal, order_key
from tests.programs import Choices, Number, Step, between

TYPES = ("r", "q", "u")  # each with a key and a number
Answer = tuple[tuple[Value, ...], int, int]


@dataclass(frozen=True)
class Atom:
    """`r(I, X)`: what stands for the key and what stands for the number: a variable, a constant or `_`."""

    type: str
    key: str
    value: str

    @property
    def text(self) -> str:
        return f"{self.type}({self.key}, {self.value})"


@dataclass(frozen=True)
class PartSpec:
    """A part: its atoms (several are joined by OR), how often it comes, the operator to its left, its label."""

    atoms: tuple[Atom, ...]
    least: int
    most: int | None
    link: str
    between: str
    label: str = ""

    @property
    def repeats(self) -> bool:
        return self.most is None or self.most > 1

    @property
    def var(self) -> str:
        """The variable of the number, if there is one."""
        value = self.atoms[0].value
        return value if value[0].isupper() else ""

    @property
    def text(self) -> str:
        inner = " OR ".join(a.text for a in self.atoms)
        if self.label:
            inner = f"{self.label}: {f'({inner})' if len(self.atoms) > 1 else inner}"
        sign = {(1, 1): "", (0, 1): "?", (1, None): "+", (0, None): "*"}.get((self.least, self.most))
        if sign is None:
            many = "," if self.most is None else f",{self.most}"
            sign = f"{{{self.least}{'' if self.most == self.least else many}}}"
        return f"({inner}){sign}" if self.label or len(self.atoms) > 1 else inner + sign


@dataclass(frozen=True)
class Taken:
    """An event in the place of one iteration of a part, matched by one of its atoms."""

    part: int
    event: Event
    atom: Atom


@dataclass(frozen=True)
class So:
    """A match as far as it has come, for the conditions: `taken` ends with the iteration that they are asked of."""

    spec: Spec
    taken: tuple[Taken, ...]

    def of(self, part: int) -> list[Event]:
        return [t.event for t in self.taken if t.part == part]

    def value(self, part: int) -> Value:
        return self.of(part)[-1].args[1]


# Whether a condition holds; None where it is not asked.
Holds = Callable[[So], "bool | None"]


@dataclass(frozen=True)
class Asked:
    """A condition: its text, the part it is asked at, whether only once that part is complete, and when it holds."""

    text: str
    part: int
    holds: Holds
    after: bool = False


@dataclass(frozen=True)
class Spec:
    """A run. The head has the key, the variables of parts that do not repeat, and the results."""

    parts: tuple[PartSpec, ...]
    per: str  # the text after WHERE
    key: bool
    window: int | None
    asked: tuple[Asked, ...]
    results: tuple[tuple[str, Callable[[So], Value]], ...]
    which: str = "ALL"
    skip: str = ""
    joined: dict[int, int] = field(default_factory=dict)  # a part whose number is that of an earlier one

    @property
    def plain(self) -> list[int]:
        return [n for n, p in enumerate(self.parts) if p.var and not p.repeats and n not in self.joined]

    @property
    def text(self) -> str:
        chain = self.parts[0].text + "".join(f" {p.link} {p.text}" for p in self.parts[1:])
        body = f"({chain}).{self.window}" if self.window is not None else chain
        where = f" WHERE ({', '.join(a.text for a in self.asked)})" if self.asked else ""
        head = [*(["I"] if self.key else []), *(self.parts[n].var for n in self.plain), *(t for t, _ in self.results)]
        tail = " ".join(x for x in (self.per, "" if self.which == "ALL" else self.which, self.skip) if x)
        return f"e({', '.join(head)}) <- {body}{where}{' ' + tail if tail else ''}."


# The answers, by trying everything


def answers(spec: Spec, events: Sequence[Event]) -> set[tuple[object, int, int]]:
    """All answers of a run over some events."""
    found = [m for m in _assignments(spec, list(events)) if _is_match(spec, m, events)]
    if spec.which != "ALL":
        found = [m for m in found if _best(spec, m, found)]
    if spec.skip:
        found = _skipped(spec, found)
    return {_answer(spec, m) for m in found}


def _answer(spec: Spec, match: tuple[Taken, ...]) -> tuple[object, int, int]:
    so = So(spec, match)
    values: list[Value] = [match[0].event.args[0]] if spec.key else []
    values += [so.value(n) if so.of(n) else _elsewhere(spec, so, n) for n in spec.plain]
    values += [compute(so) for _, compute in spec.results]
    return tuple(order_key(v) for v in values), match[0].event.start, match[-1].event.end


def _elsewhere(spec: Spec, so: So, part: int) -> Value:
    """The value of a variable whose first part was left out: that of another part that has it."""
    others = [so.value(n) for n, first in spec.joined.items() if first == part and so.of(n)]
    return others[0] if others else None


def _assignments(spec: Spec, events: list[Event]) -> Iterator[tuple[Taken, ...]]:
    """Every sequence of events, each after the one before, in every division into parts."""

    def sequences(before: tuple[Event, ...]) -> Iterator[tuple[Event, ...]]:
        if before:
            yield before
        for event in events:
            if not before or before[-1].end < event.start:
                yield from sequences((*before, event))

    def divisions(count: int, parts: Sequence[PartSpec]) -> Iterator[tuple[int, ...]]:
        if not parts:
            if count == 0:
                yield ()
            return
        most = count if parts[0].most is None else min(count, parts[0].most)
        for n in range(parts[0].least, most + 1):
            yield from ((n, *rest) for rest in divisions(count - n, parts[1:]))

    for sequence in sequences(()):
        for counts in divisions(len(sequence), spec.parts):
            places = [n for n, count in enumerate(counts) for _ in range(count)]
            options = [[Taken(p, e, a) for a in spec.parts[p].atoms] for p, e in zip(places, sequence, strict=True)]
            yield from product(*options)


def _is_match(spec: Spec, match: tuple[Taken, ...], events: Sequence[Event]) -> bool:
    for n in range(len(match)):
        if not _joins_and_holds(spec, match[: n + 1]):
            return False
        if n and not _linked(spec, match[:n], match[n], events):
            return False
    whole = So(spec, match)
    if any(a.holds(whole) is False for a in spec.asked if a.after):
        return False
    return spec.window is None or match[-1].event.end - match[0].event.start <= spec.window


def _joins_and_holds(spec: Spec, prefix: tuple[Taken, ...]) -> bool:
    """Whether the last event of a prefix is a row of its part that joins and meets the conditions decidable by then."""
    last = prefix[-1]
    event, atom, part = last.event, last.atom, spec.parts[last.part]
    if event.type != atom.type:
        return False
    key, value = event.args
    if spec.key and (key is None or not equal(key, prefix[0].event.args[0])):
        return False
    if atom.value.isdigit() and not equal(value, int(atom.value)):
        return False
    if (part.var and not part.repeats) or last.part in spec.joined:
        first = spec.joined.get(last.part, last.part)
        same = [t for t in prefix[:-1] if spec.joined.get(t.part, t.part) == first]
        if any(not equal(value, t.event.args[1]) for t in same):
            return False
    so = So(spec, prefix)
    return all(a.holds(so) is not False for a in spec.asked if a.part == last.part and not a.after)


def _linked(spec: Spec, before: tuple[Taken, ...], taken: Taken, events: Sequence[Event]) -> bool:
    """Whether the operator lets an event follow those before it."""
    part = spec.parts[taken.part]
    link = part.between if before[-1].part == taken.part else part.link
    end, start = before[-1].event.end, taken.event.start
    between = [e for e in events if end < e.start and e.end < start]
    if link == "NEXT":
        return not any(_of_the_run(spec, e, before[0].event.args[0]) for e in between)
    if link == "THEN":
        options = [Taken(taken.part, e, a) for e in between for a in part.atoms]
        return not any(_joins_and_holds(spec, (*before, option)) for option in options)
    return True


def _of_the_run(spec: Spec, event: Event, key: Value) -> bool:
    if event.type not in {a.type for p in spec.parts for a in p.atoms}:
        return False
    return not spec.key or equal(event.args[0], key)


def _counts(spec: Spec, match: tuple[Taken, ...]) -> list[int]:
    quantified = [n for n, p in enumerate(spec.parts) if p.least != p.most]
    return [sum(t.part == n for t in match) for n in quantified]


def _best(spec: Spec, match: tuple[Taken, ...], found: list[tuple[Taken, ...]]) -> bool:
    rivals = [_counts(spec, m) for m in found if m[0].event is match[0].event]
    return _counts(spec, match) == (max(rivals) if spec.which == "LONGEST" else min(rivals))


def _skipped(spec: Spec, found: list[tuple[Taken, ...]]) -> list[tuple[Taken, ...]]:
    keys = {order_key(m[0].event.args[0]) if spec.key else () for m in found}
    kept: list[tuple[Taken, ...]] = []
    for key in keys:
        mine = [m for m in found if not spec.key or order_key(m[0].event.args[0]) == key]
        mine.sort(key=lambda m: [t.event.order for t in m])
        before: tuple[Taken, ...] | None = None
        for match in mine:
            if before is None or [t.event for t in match] == [t.event for t in before] or _after(spec, match, before):
                before = match
                kept.append(match)
    return kept


def _after(spec: Spec, match: tuple[Taken, ...], before: tuple[Taken, ...]) -> bool:
    first = match[0].event
    if spec.skip.endswith("END"):
        return first.start > before[-1].event.end
    label = spec.skip.split()[-1]
    part = next(n for n, p in enumerate(spec.parts) if p.label == label)
    last = [t.event for t in before if t.part == part][-1]
    return first.start >= last.start and first.order > before[0].event.order


# Values


def _less(x: Value, y: Value, or_equal: bool = False) -> bool:
    if not isinstance(x, int) or not isinstance(y, int):
        return False
    return x <= y if or_equal else x < y


def _numbers(events: list[Event]) -> list[int]:
    return [v for e in events if isinstance(v := e.args[1], int)]


RESULTS: dict[str, Callable[[list[Event]], Value]] = {
    "count": lambda events: len(_numbers(events)),
    "sum": lambda events: sum(_numbers(events)) if _numbers(events) else None,
    "min": lambda events: min(_numbers(events), default=None),
    "max": lambda events: max(_numbers(events), default=None),
    "first": lambda events: events[0].args[1] if events else None,
    "last": lambda events: events[-1].args[1] if events else None,
}


# Writing


@dataclass
class _RunWriter(Choices):
    """Writes one run."""

    def spec(self) -> Spec:
        count = self.pick([2, 3, 1, 2, 2])
        seq = self.chance(25)
        links = [self.pick(["NEXT", "THEN", *(["SEQ"] if seq else [])]) for _ in range(count)]
        if count == 1:
            links = ["NEXT"]
        elif links:
            links[0] = links[1]  # the first part has the operator to its right between its iterations
        keyed = self.chance(75)
        types = self.pick([("r", "q", "u"), ("r", "q", "r"), ("r", "r", "r")])
        parts: list[PartSpec] = []
        joined: dict[int, int] = {}
        for n in range(count):
            plain = n == count - 1 and set(links[1:]) <= {"SEQ"} and all((p.least, p.most) == (1, 1) for p in parts)
            parts.append(self._part(n, links[n], keyed, types, parts, joined, quantified=plain))
        bounded = all(p.most is not None or p.between != "SEQ" for p in parts)
        window = self.pick([2, 3, 4, 6]) if not bounded or self.chance(30) else None
        per = "PER (I)" if keyed else "PER ()"
        if keyed and count > 1 and self.chance(50) and not joined:
            per = ""  # the key is what all have
        asked = tuple(a for n in range(count) for a in self._conditions(n, parts, joined))
        results = tuple(r for n, p in enumerate(parts) for r in self._results(n, p))
        which, skip = "ALL", ""
        used = [p.link for p in parts[1:]] + [p.between for p in parts if p.repeats]
        if "SEQ" not in used and self.chance(60):
            which = self.pick(["LONGEST", "LONGEST", "SHORTEST"])
            labels = [p.label for p in parts if p.label and p.least > 0]
            skip = self.pick(["", "SKIP PAST END", *(f"SKIP TO LAST {label}" for label in labels)])
        return Spec(tuple(parts), per, keyed, window, asked, results, which, skip, joined)

    def _part(
        self,
        n: int,
        link: str,
        keyed: bool,
        types: tuple[str, ...],
        before: list[PartSpec],
        joined: dict[int, int],
        quantified: bool,
    ) -> PartSpec:
        key = "I" if keyed else "_"
        often = [(1, None), (0, None), (0, 1), (2, 2), (1, 2), (2, None), (0, 2)]
        least, most = self.pick(often if quantified else [(1, 1), (1, 1), *often])
        value = self.pick([f"X{n}", f"X{n}", f"X{n}", "_", "1"])
        singles = [i for i, p in enumerate(before) if p.var and not p.repeats and i not in joined]
        if singles and self.chance(20):
            joined[n] = self.pick(singles)
            value = before[joined[n]].var
        atoms = [Atom(types[n], key, value)]
        if self.chance(20):
            atoms.append(Atom(self.pick(TYPES), key, value))
        label = f"l{n}" if self.chance(40) else ""
        return PartSpec(tuple(atoms), least, most, link, link, label)

    def _results(self, n: int, part: PartSpec) -> list[tuple[str, Callable[[So], Value]]]:
        if not part.repeats:
            return []
        found: list[tuple[str, Callable[[So], Value]]] = []
        if part.var == f"X{n}":
            for name in self.some(sorted(RESULTS), 1, 2):
                found.append((f"{name}({part.var})", partial(lambda name, so: RESULTS[name](so.of(n)), name)))
        if part.label:
            found.append((f"count({part.label})", lambda so: len(so.of(n))))
        return found

    def _conditions(self, n: int, parts: list[PartSpec], joined: dict[int, int]) -> Iterator[Asked]:
        part = parts[n]
        own = part.var == f"X{n}"
        if part.repeats and own and self.chance(70):
            yield self._each(n, parts)
        if part.repeats and own and self.chance(20):
            yield self._whole(n, part)
        if part.label and part.repeats and self.chance(30):
            most = self.pick([1, 2, 3])
            yield Asked(
                f"start({part.label}) - prev(end({part.label})) <= {most}",
                n,
                lambda so: None if len(so.of(n)) < 2 else so.of(n)[-1].start - so.of(n)[-2].end <= most,
            )
        if not part.repeats and own and self.chance(40):
            yield self._single(n, parts, joined)

    def _each(self, n: int, parts: list[PartSpec]) -> Asked:
        var = parts[n].var
        earlier = [i for i, p in enumerate(parts[:n]) if p.var == f"X{i}"]
        singles = [i for i in earlier if not parts[i].repeats]
        repeated = [i for i in earlier if parts[i].repeats]
        kinds = ["prev", "prev", "default", "constant", "running"]
        kinds += ["single", "prev single"] * bool(singles) + ["result", "prev result"] * bool(repeated)
        number = self.pick([0, 1, 2])

        def values(so: So) -> list[Value]:
            return [e.args[1] for e in so.of(n)]

        match self.pick(kinds):
            case "prev":
                return Asked(
                    f"{var} > prev({var})",
                    n,
                    lambda so: None if len(values(so)) < 2 else _less(values(so)[-2], values(so)[-1]),
                )
            case "default":
                return Asked(
                    f"{var} >= prev({var}, {number})", n,
                    lambda so: _less(values(so)[-2] if len(values(so)) > 1 else number, values(so)[-1], True),
                )  # fmt: skip
            case "constant":
                return Asked(f"{var} > {number}", n, lambda so: _less(number, values(so)[-1]))
            case "running":
                return Asked(
                    f"{var} + {number} > sum({var}) - {var}", n,
                    lambda so: isinstance(v := values(so)[-1], int) and v + number > sum(_numbers(so.of(n))) - v,
                )  # fmt: skip
            case "single":
                i = self.pick(singles)
                return Asked(
                    f"{var} > {parts[i].var}", n, lambda so: _less(so.value(i), values(so)[-1]) if so.of(i) else None
                )
            case "prev single":
                i = self.pick(singles)
                return Asked(
                    f"{var} > prev({var}, {parts[i].var})", n,
                    lambda so: (_less(values(so)[-2] if len(values(so)) > 1 else so.value(i), values(so)[-1]) if so.of(i) else None),
                )  # fmt: skip
            case "result":
                i, name = self.pick(repeated), self.pick(["min", "last", "max"])
                return Asked(
                    f"{var} >= {name}({parts[i].var})", n,
                    lambda so: _less(RESULTS[name](so.of(i)), values(so)[-1], True),
                )  # fmt: skip
            case _:
                i = self.pick(repeated)
                return Asked(
                    f"{var} > prev({var}, last({parts[i].var}))", n,
                    lambda so: _less(values(so)[-2] if len(values(so)) > 1 else RESULTS["last"](so.of(i)), values(so)[-1]),
                )  # fmt: skip

    def _whole(self, n: int, part: PartSpec) -> Asked:
        name, number = self.pick(["count", "max", "sum"]), self.pick([1, 2, 3])
        return Asked(
            f"{name}({part.var}) >= {number}", n, lambda so: _less(number, RESULTS[name](so.of(n)), True), True
        )

    def _single(self, n: int, parts: list[PartSpec], joined: dict[int, int]) -> Asked:
        var = parts[n].var
        # A variable that another part has as well gets its value from whichever of them is there first.
        shared = set(joined.values())
        singles = [
            i
            for i, p in enumerate(parts[:n])
            if p.var == f"X{i}" and not p.repeats and not (i in shared and p.least == 0)
        ]
        repeated = [i for i, p in enumerate(parts[:n]) if p.var == f"X{i}" and p.repeats]
        number = self.pick([0, 1, 2])
        if n in shared and parts[n].least == 0:
            return Asked("1 = 1", n, lambda so: True)
        match self.pick(["constant", *["single"] * bool(singles), *["result"] * 2 * bool(repeated)]):
            case "constant":
                return Asked(f"{var} > {number}", n, lambda so: _less(number, so.value(n)))
            case "single":
                i = self.pick(singles)
                return Asked(
                    f"{var} > {parts[i].var}", n, lambda so: _less(so.value(i), so.value(n)) if so.of(i) else None
                )
            case _:
                i, name = self.pick(repeated), self.pick(["min", "count", "last"])
                return Asked(
                    f"{name}({parts[i].var}) <= {var}", n, lambda so: _less(RESULTS[name](so.of(i)), so.value(n), True)
                )


def write_spec(number: Number) -> Spec:
    return _RunWriter(number).spec()


def write_run(number: Number) -> str:
    """A program with one run: for what compares executors, together with `write_run_telling`."""
    return write_spec(number).text


_VALUES: tuple[Value, ...] = (1, 2, 0, 3, 1, 2, 3, 4, None)
_KEYS: tuple[Value, ...] = ("k", "k", "k", "k", "k", "k", "m", None)


def write_event(number: Number, id: str, lengths: Sequence[int]) -> Event:
    choices = Choices(number)
    start = number(0, 8)
    args = (choices.pick(_KEYS), choices.pick(_VALUES))
    return Event(choices.pick(["r", "r", "q", "q", "u"]), args, start, start + choices.pick(lengths), id)


def write_history(number: Number, most: int = 7) -> list[Event]:
    """A few events, close together, mostly points, mostly of one key."""
    lengths = Choices(number).pick([(0,), (0,), (0, 0, 1, 2)])
    return [write_event(number, f"i{n}", lengths) for n in range(number(2, most))]


def write_run_telling(number: Number, most: int = 14) -> list[Step]:
    """A history in steps: late events, revocations, and advances of the clock."""
    choices = Choices(number)
    lengths = choices.pick([(0,), (0,), (0, 0, 1, 2)])
    told: list[HistoryItem] = [write_event(number, f"i{n}", lengths) for n in range(number(3, most))]
    told.sort(key=lambda item: item.end + choices.pick([0, 0, 0, 0, 1, 4]) if isinstance(item, Event) else 0)
    for id in [item.id for item in told if choices.chance(12)]:
        told.insert(number(0, len(told)), Revocation(id))
    steps: list[Step] = []
    at = 0
    while at < len(told):
        size = choices.pick([1, 1, 2, 5, 20])
        steps.append(told[at : at + size])
        at += size
        left = [item.end for item in told[at:] if isinstance(item, Event)]
        if choices.chance(20) and (bound := min(left, default=12) - 1) >= 0:
            steps.append(("advance", bound))
    return steps


def example(seed: object) -> tuple[Spec, list[Event]]:
    number = Random(f"run {seed}").randint
    return write_spec(number), write_history(number)


@st.composite
def examples(draw: st.DrawFn) -> tuple[Spec, list[Event]]:
    def number(least: int, most: int) -> int:
        return draw(between(least, most))

    return write_spec(number), write_history(number)
