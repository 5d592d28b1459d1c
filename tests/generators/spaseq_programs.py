"""Random queries over small graph streams, and their answers found by trying every way to give times to iterations.

The answers are read off section 8 of the semantics, from the description of a query (`Spec`) and not from its text, its
algebra or RDF: nothing here is shared with `augury.reference.spaseq`, and graph patterns are matched with plain tuples.
`Spec.text` is the query that says the same, and `GraphSpec.event` the event.

    spec, events = example(7)
    answers(spec, events) == what any executor says of spec.text
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from random import Random

import numpy as np

from augury.core.model import Event, Iri, Value
from augury.knowledge.rdf import RdfTriples

Mapping = dict[str, Value]
Answer = tuple[tuple[Value, ...], int, int]
E = "http://e/"
STREAMS = ("S", "T")
KINDS = ("A", "B")
NEAR = {"n0": ("x", "y"), "n1": ("x",)}  # static knowledge: what is near what
MADE = "made"  # the stream of graphs that a query makes
XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


# Events


@dataclass(frozen=True)
class Thing:
    """`e:n0 a e:A ; e:k 1 ; e:v 5`: a kind, a key, and maybe a value."""

    name: str
    kind: str
    key: int
    value: int | None

    @property
    def text(self) -> str:
        value = "" if self.value is None else f" ; <{E}v> {self.value}"
        return f"<{E}{self.name}> a <{E}{self.kind}> ; <{E}k> {self.key}{value} ."


@dataclass(frozen=True)
class GraphSpec:
    stream: str
    time: int
    things: tuple[Thing, ...]

    @property
    def event(self) -> Event:
        return Event(f"<{E}{self.stream}>", ("\n".join(thing.text for thing in self.things),), self.time, self.time)


# Queries


@dataclass(frozen=True)
class GpmSpec:
    """`?s a e:A ; e:k ?k ; e:v ?v`: of a kind, with variables for the key and the value, and filters.

    `optional`: the value is in an OPTIONAL. `least`: a filter on the value alone. `above`: a filter that the value is more than
    another variable, which may be of a GPM before. `rises`: a filter that it is more than in the iteration before; in the first
    one not asked (""), or more than a number or another variable.
    """

    name: str
    streams: tuple[str, ...]
    kind: str
    subject: str
    key: str | None = None
    value: str | None = None
    optional: bool = False
    least: int | None = None
    above: str | None = None
    near: str | None = None  # a variable for what is near the subject, in the static graph
    rises: str | int | None = None

    @property
    def text(self) -> str:
        parts = [f"?{self.subject} a e:{self.kind}"]
        if self.key:
            parts.append(f"; e:k ?{self.key}")
        if self.value:
            triple = f"?{self.subject} e:v ?{self.value}"
            parts.append(f". OPTIONAL {{ {triple} }}" if self.optional else f". {triple}")
        if self.near:
            parts.append(f". GRAPH e:g {{ ?{self.subject} e:near ?{self.near} }}")
        if self.least is not None:
            parts.append(f"FILTER(?{self.value} > {self.least})")
        if self.above is not None:
            parts.append(f"FILTER(?{self.value} > ?{self.above})")
        if self.rises is not None:
            default = f", {self.rises}" if isinstance(self.rises, int) else f", ?{self.rises}" if self.rises else ""
            parts.append(f"FILTER(?{self.value} > PREV(?{self.value}{default}))")
        return f"DEFINE GPM {self.name} ON {', '.join(self.streams)} {{ {' '.join(parts)} }}"

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(v for v in (self.subject, self.key, self.value, self.near) if v)

    @property
    def certain(self) -> frozenset[str]:
        sure = not self.optional or self.least is not None
        return frozenset(v for v in (self.subject, self.key, self.value if sure else None, self.near) if v)

    def solutions(self, event: GraphSpec) -> Iterator[Mapping]:
        for thing in event.things:
            if thing.kind != self.kind or event.stream not in self.streams:
                continue
            found: Mapping = {self.subject: Iri(E + thing.name)}
            if self.key:
                found[self.key] = thing.key
            if self.value and thing.value is not None:
                found[self.value] = thing.value
            if self.value and thing.value is None and not self.optional:
                continue
            if self.least is not None and not (thing.value is not None and thing.value > self.least):
                continue
            if self.near is None:
                yield found
                continue
            for place in NEAR.get(thing.name, ()):
                yield {**found, self.near: Iri(E + place)}

    def holds(self, joined: Mapping, previous: Mapping | None) -> bool:
        return self._is_above(joined) and self._rises(joined, previous)

    def _is_above(self, joined: Mapping) -> bool:
        if self.above is None:
            return True
        left, right = joined.get(self.value or ""), joined.get(self.above)
        return isinstance(left, int) and isinstance(right, int) and left > right

    def _rises(self, joined: Mapping, previous: Mapping | None) -> bool:
        if self.rises is None or (previous is None and self.rises == ""):
            return True
        first = self.rises if isinstance(self.rises, int) else joined.get(self.rises)
        left, right = joined.get(self.value or ""), first if previous is None else previous.get(self.value or "")
        return isinstance(left, int) and isinstance(right, int) and left > right


@dataclass(frozen=True)
class ItemSpec:
    """GPMs joined by `&` and `|`, from left to right; a quantifier, and the separator to its left."""

    names: tuple[str, ...]
    joiners: tuple[str, ...] = ()
    quantifier: str = ""
    separator: str = ","

    @property
    def text(self) -> str:
        joined = " ".join([self.names[0], *(f"{j} {n}" for j, n in zip(self.joiners, self.names[1:], strict=True))])
        return (f"({joined})" if self.joiners else joined) + self.quantifier

    @property
    def ways(self) -> list[list[str]]:
        """The GPMs that have to match at one time, for each way to choose among alternatives."""
        found = [[self.names[0]]]
        for joiner, name in zip(self.joiners, self.names[1:], strict=True):
            found = [[*way, name] for way in found] if joiner == "&" else [*found, [name]]
        return found


# Expressions over one variable, which a match may leave out: as they are written, and what they come to.
COMPUTED: dict[str, tuple[str, Callable[[Value], Value]]] = {
    "less": ("?{} - 2", lambda v: v - 2 if isinstance(v, int) else None),
    "other": ("COALESCE(?{}, 7)", lambda v: 7 if v is None else v),
    "constant": ("1 + 2", lambda v: 3),
}


@dataclass(frozen=True)
class Spec:
    streams: tuple[str, ...]
    items: tuple[ItemSpec, ...]
    gpms: tuple[GpmSpec, ...]
    window: tuple[str, int, int | None] | None  # its kind, its length, its origin
    partition: str | None
    columns: tuple[str, ...]
    aggregates: tuple[tuple[str, str, int], ...]  # the function, its variable, the number of its item
    group: tuple[str, int, int | None] | None = (
        None  # GROUP BY a variable of an item; those with more than so many of it
    )
    template: tuple[tuple[str, str], ...] = ()  # of a CONSTRUCT: subjects and objects
    computed: tuple[
        tuple[str, str], ...
    ] = ()  # columns that are expressions: which one, of `COMPUTED`, and its variable
    choice: str = ""  # LONGEST or SHORTEST
    skip: str = ""  # PAST END, TO FIRST or TO LAST
    to: int = 0  # the number of the item to skip to

    @property
    def text(self) -> str:
        columns = [f"?{v}" for v in self.columns]
        columns += [f"({f}(?{v}) AS ?{f.lower()}{n})" for n, (f, v, _) in enumerate(self.aggregates)]
        columns += [f"({COMPUTED[c][0].format(v)} AS ?{c}{n})" for n, (c, v) in enumerate(self.computed)]
        made = " . ".join(f"?{s} e:out{n} ?{o}" for n, (s, o) in enumerate(self.template))
        sequence = "".join(f"{item.separator if n else ''} {item.text}" for n, item in enumerate(self.items))
        answer = f"CONSTRUCT {{ {made} }} INTO e:{MADE}" if self.template else f"SELECT {' '.join(columns)}"
        lines = ["PREFIX e: <http://e/>", answer]
        if self.window is not None:
            kind, length, origin = self.window
            tumbling = " TUMBLING" if kind == "tumbling" else ""
            since = f" FROM {origin}" if origin is not None else ""
            lines.append(f"WITHIN {length} {'EVENTS' if kind == 'events' else 'SECONDS'}{tumbling}{since}")
        lines += [f"PARTITION BY (?{self.partition})"] if self.partition else []
        lines += [f"FROM STREAM {name} <{E}{name}>" for name in self.streams]
        skip = f" SKIP {self.skip}" if self.skip else ""
        skip += f" {self.items[self.to].names[0]}" if self.skip.startswith("TO") else ""
        lines += ["WHERE {", f"SEQ({sequence}) {self.choice}{skip}", *(gpm.text for gpm in self.gpms), "}"]
        if self.group is not None:
            variable, _, more = self.group
            lines.append(f"GROUP BY ?{variable}" + ("" if more is None else f" HAVING (COUNT(?{variable}) > {more})"))
        return "\n".join(lines)

    def gpm(self, name: str) -> GpmSpec:
        return next(gpm for gpm in self.gpms if gpm.name == name)


# Answers, by trying everything


def answers(spec: Spec, events: Sequence[GraphSpec], now: int | None = None) -> set[Answer]:
    """The rows of a query by the clock."""
    seen = [event for event in events if event.stream in spec.streams]
    clock = max((event.time for event in events), default=0) if now is None else now
    found: set[Answer] = set()
    for value in _values(spec, seen):
        found |= _Tries(spec, seen, value).rows(clock)
    return found


def _values(spec: Spec, events: Sequence[GraphSpec]) -> list[Value]:
    if spec.partition is None:
        return [None]
    keys = {s[spec.partition] for e in events for g in spec.gpms for s in g.solutions(e) if spec.partition in s}
    return list(keys)


@dataclass(frozen=True)
class Found:
    """A mapping for every iteration of every item that is there, with their times, and what each item makes by itself."""

    times: tuple[int, ...]
    mappings: tuple[tuple[int, Mapping], ...]
    there: tuple[bool, ...]
    made: tuple[tuple[str, ...], ...]

    @property
    def order(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        return tuple(zip(self.times, self.made, strict=True))

    def times_of(self, item: int) -> list[int]:
        return [time for time, (number, _) in zip(self.times, self.mappings, strict=True) if number == item]


class _Tries:
    """All that can be tried for one value of the partition."""

    def __init__(self, spec: Spec, events: Sequence[GraphSpec], value: Value) -> None:
        self.spec, self.events = spec, events
        self.start: Mapping = {} if spec.partition is None else {spec.partition: value}
        mine = [
            e
            for e in events
            if spec.partition is None or any(s.get(spec.partition) == value for g in spec.gpms for s in g.solutions(e))
        ]
        self.visible = sorted(e.time for e in mine)
        self.times = sorted({e.time for e in events})

    def rows(self, clock: int) -> set[Answer]:
        return {row for match in self._chosen(list(self._matches())) for row in self._answered(match, clock)}

    def _chosen(self, matches: list[Found]) -> list[Found]:
        """Those that LONGEST or SHORTEST takes, and then SKIP."""
        spec, kept = self.spec, list[Found]()
        if spec.choice:
            sign = 1 if spec.choice == "LONGEST" else -1
            counted = [
                (m, [sign * len(m.times_of(n)) for n, i in enumerate(spec.items) if i.quantifier == "+"])
                for m in matches
            ]
            matches = [m for m, c in counted if all(d <= c for other, d in counted if other.order[0] == m.order[0])]
        if not spec.skip:
            return matches
        for match in sorted(matches, key=lambda m: m.order):
            if kept and match.order != kept[-1].order:
                end = kept[-1].times if spec.skip == "PAST END" else kept[-1].times_of(spec.to)
                begins = end[0] if spec.skip == "TO FIRST" else end[-1] + (spec.skip == "PAST END")
                if match.times[0] < begins or match.order[0] <= kept[-1].order[0]:
                    continue
            kept.append(match)
        return kept

    def _matches(self) -> Iterator[Found]:
        choices = [(True, False) if i.quantifier == "?" else (i.quantifier != "!",) for i in self.spec.items]
        for there in product(*choices):
            present = [n for n, is_there in enumerate(there) if is_there]
            if not present:
                continue
            most = len(self.times) - len(present) + 1
            counts = [range(1, most + 1) if self.spec.items[n].quantifier == "+" else (1,) for n in present]
            for repeated in product(*counts):
                slots = [n for n, count in zip(present, repeated, strict=True) for _ in range(count)]
                for times in combinations(self.times, len(slots)):
                    if self._in_window(times[0], times[-1]):
                        for found in self._mappings(slots, times, there, 0, self.start, ()):
                            mappings = tuple((number, mapping) for number, mapping, _ in found)
                            yield Found(times, mappings, there, tuple(made for _, _, made in found))

    def _answered(self, match: Found, clock: int) -> Iterator[Answer]:
        times, mappings = match.times, match.mappings
        absent = list(range(mappings[-1][0] + 1, len(match.there)))
        if absent:
            bound = self._bound(times[0])
            if bound > clock or self._any(absent, mappings[-1][1], times[-1] + 1, bound):
                return
        elif times[-1] > clock:
            return
        if self.spec.template:
            graph = self._graph(mappings[-1][1])
            if graph:
                yield (graph,), times[-1], times[-1]
            return
        for row in self._rows(mappings):
            yield row, times[0], times[-1]

    def _graph(self, mapping: Mapping) -> str:
        """The graph that the template makes: a line for each triple of which all is bound."""
        lines = set()
        for number, (subject, object) in enumerate(self.spec.template):
            s, o = mapping.get(subject), mapping.get(object)
            if isinstance(s, Iri) and o is not None:
                text = f"<{o.text}>" if isinstance(o, Iri) else f'"{o}"^^<{XSD_INTEGER}>'
                lines.add(f"<{s.text}> <{E}out{number}> {text} .")
        return "\n".join(sorted(lines))

    def _rows(self, mappings: tuple[tuple[int, Mapping], ...]) -> Iterator[tuple[Value, ...]]:
        """The row of a match, or one for each group."""
        if self.spec.group is None:
            yield self._row(mappings)
            return
        variable, number, more = self.spec.group
        for value in {m.get(variable) for n, m in mappings if n == number}:
            group = tuple((n, m) for n, m in mappings if n == number and m.get(variable) == value)
            if more is None or (value is not None and len(group) > more):
                yield (value, *self._row(group)[len(self.spec.columns) :])

    def _mappings(
        self,
        slots: list[int],
        times: tuple[int, ...],
        there: tuple[bool, ...],
        at: int,
        before: Mapping,
        found: tuple[tuple[int, Mapping, tuple[str, ...]], ...],
    ) -> Iterator[tuple[tuple[int, Mapping, tuple[str, ...]], ...]]:
        """All mappings for the slots from one on, where `before` is what was bound before its item."""
        if at == len(slots):
            yield found
            return
        number, item = slots[at], self.spec.items[slots[at]]
        again = at > 0 and slots[at - 1] == number
        if at > 0 and not again:
            before = found[-1][1]
        previous = found[-1][1] if again else None
        if at > 0:
            separator = (";" if number == slots[0] else ",") if again else item.separator
            if not self._follows(item, before, times[at - 1], times[at], separator, previous):
                return
            missing = [] if again else [n for n in range(slots[at - 1] + 1, number) if not there[n]]
            if self._any(missing, before, times[at - 1] + 1, times[at] - 1):
                return
        for mapping, made in self._made(item, before, times[at], previous):
            yield from self._mappings(slots, times, there, at + 1, before, (*found, (number, mapping, made)))

    def _follows(
        self, item: ItemSpec, before: Mapping, last: int, time: int, separator: str, previous: Mapping | None
    ) -> bool:
        if separator == ",":
            return time in self.visible and not any(last < t < time for t in self.visible)
        if separator == ";":
            return not any(self._made(item, before, t, previous) for t in self.times if last < t < time)
        return True

    def _any(self, numbers: list[int], before: Mapping, first: int, last: int) -> bool:
        items = [self.spec.items[n] for n in numbers]
        return any(self._made(item, before, t) for item in items for t in self.times if first <= t <= last)

    def _made(
        self, item: ItemSpec, before: Mapping, time: int, previous: Mapping | None = None
    ) -> list[tuple[Mapping, tuple[str, ...]]]:
        """All joins of a mapping with what an item has at a time, with the texts of what it has."""
        found: list[tuple[Mapping, tuple[str, ...]]] = []
        names = dict.fromkeys(v for name in item.names for v in self.spec.gpm(name).variables)
        here = [event for event in self.events if event.time == time]
        for way in item.ways:
            options = [[s for event in here for s in self.spec.gpm(name).solutions(event)] for name in way]
            for chosen in product(*options):
                joined, made = dict(before), dict[str, Value]()
                for name, solution in zip(way, chosen, strict=True):
                    if any(joined.get(v, x) != x for v, x in solution.items()):
                        break
                    joined |= solution
                    made |= solution
                    if not self.spec.gpm(name).holds(joined, previous):
                        break
                else:
                    found.append((joined, tuple(_term_text(made.get(v)) for v in names)))
        return found

    def _in_window(self, first: int, last: int) -> bool:
        if self.spec.window is None:
            return True
        kind, length, origin = self.spec.window
        if kind == "events":
            return sum(first <= t <= last for t in self.visible) <= length
        if kind == "sliding":
            return last - first <= length
        if origin is not None and first < origin:
            return False
        return (first - (origin or 0)) // length == (last - (origin or 0)) // length

    def _bound(self, first: int) -> int:
        assert self.spec.window is not None
        kind, length, origin = self.spec.window
        if kind == "sliding":
            return first + length
        window = (first - (origin or 0)) // length
        return (origin or 0) + (window + 1) * length - 1

    def _row(self, mappings: tuple[tuple[int, Mapping], ...]) -> tuple[Value, ...]:
        final = mappings[-1][1]
        row = [final.get(column) for column in self.spec.columns]
        for function, variable, number in self.spec.aggregates:
            values = [m.get(variable) for n, m in mappings if n == number]
            there = [v for v in values if isinstance(v, int)]
            if function == "COUNT":
                row.append(sum(v is not None for v in values))
            else:
                row.append(sum(there) if len(there) == len(values) else None)
        row += [COMPUTED[name][1](final.get(variable)) for name, variable in self.spec.computed]
        return tuple(row)


def _term_text(value: Value) -> str:
    """What terms are ordered by: their text as N-Triples, nothing first."""
    return "" if value is None else f"<{value.text}>" if isinstance(value, Iri) else f'"{value}"^^<{XSD_INTEGER}>'


# Random ones


def example(seed: int) -> tuple[Spec, list[GraphSpec]]:
    """A query and a history."""
    random = Random(seed)
    spec = random_spec(random)
    return spec, random_events(random)


def varied(seed: int) -> tuple[Spec, list[GraphSpec]]:
    """The same with static knowledge, a GROUP BY or a CONSTRUCT."""
    random = Random(f"varied {seed}")
    while True:
        spec = random_spec(random)
        places = [n for n, gpm in enumerate(spec.gpms) if random.random() < 0.6]
        gpms = tuple(
            replace(g, near=random.choice(("p", f"p{n}"))) if n in places else g for n, g in enumerate(spec.gpms)
        )
        groups = [(v, n) for function, v, n in spec.aggregates if function == "COUNT"]
        form = random.choice(("plain", "group", "group", "construct"))
        if form == "construct":
            variables = [v for v in spec.columns if not v.startswith("s")]
            subjects = [v for v in spec.columns if v.startswith("s")]
            if not variables:
                continue
            template = tuple((random.choice(subjects), random.choice(variables)) for _ in range(random.choice((1, 2))))
            spec = replace(spec, template=template, aggregates=(), computed=())
        elif form == "group" and groups:
            variable, item = random.choice(groups)
            mine = tuple(one for one in spec.aggregates if one[2] == item)
            group = (variable, item, random.choice((None, 0, 1)))
            spec = replace(spec, columns=(variable,), aggregates=mine, group=group, computed=())
        elif not places:
            continue
        return replace(spec, gpms=gpms), random_events(random)


def choosing(seed: int) -> tuple[Spec, list[GraphSpec]]:
    """A query with PREV in the filters of a repetition, one that takes the longest or shortest matches, or both."""
    random = Random(f"choosing {seed}")
    while True:
        spec, events = varied(random.randrange(10**6)) if random.random() < 0.2 else example(random.randrange(10**6))
        looks_back = _looking_back(spec, random)
        spec = looks_back if random.random() < 0.7 else spec
        chooses = _chosen(spec, random)
        result = chooses if random.random() < 0.7 else spec
        if not result.choice and all(gpm.rises is None for gpm in result.gpms):
            continue
        if random.random() < 0.2 or answers(result, events):
            return result, events


def _looking_back(spec: Spec, random: Random) -> Spec:
    """With a PREV in each GPM that is in one repetition, and whose value nothing before it has."""
    gpms = list(spec.gpms)
    for number, gpm in enumerate(gpms):
        uses = [n for n, item in enumerate(spec.items) if gpm.name in item.names]
        if len(uses) > 1 or spec.items[uses[0]].quantifier != "+":
            continue
        before = {
            v
            for item in spec.items[: uses[0]]
            if item.quantifier != "!"
            for n in item.names
            for v in spec.gpm(n).variables
        }
        if gpm.value is not None and gpm.value not in before:
            others = sorted(v for v in before if v.startswith("v"))
            rises: list[str | int] = ["", "", random.randrange(3), gpm.value, *others]
            gpms[number] = replace(gpm, rises=random.choice(rises))
    return replace(spec, gpms=tuple(gpms))


def _chosen(spec: Spec, random: Random) -> Spec:
    """With LONGEST or SHORTEST, and maybe SKIP, if there is something to choose from."""
    items = tuple(
        replace(
            i,
            separator=";" if i.separator == ":" else i.separator,
            quantifier="" if i.quantifier == "?" else i.quantifier,
        )
        for i in spec.items
    )
    if items[-1].quantifier == "!" or not any(item.quantifier == "+" for item in items):
        return spec
    names = [name for item in items for name in dict.fromkeys(item.names)]
    targets = [n for n, i in enumerate(items) if i.quantifier != "!" and names.count(i.names[0]) == 1]
    skip = random.choice(("", "PAST END", "PAST END", *(("TO FIRST", "TO LAST") if targets else ())))
    window = None if spec.window is not None and spec.window[0] == "events" else spec.window
    choice, to = random.choice(("LONGEST", "LONGEST", "SHORTEST")), random.choice(targets or [0])
    return replace(spec, items=items, window=window, choice=choice, skip=skip, to=to)


def static_knowledge() -> RdfTriples:
    """What is near what, in the graph `e:g`."""
    pairs = [(name, place) for name, places in NEAR.items() for place in places]
    names = list(dict.fromkeys(["g", "near", *(one for pair in pairs for one in pair)]))
    columns = [[names.index(one) for one in column] for column in zip(*pairs, strict=True)]
    subject, object = (np.array(column, np.int32) for column in columns)
    predicate, graph = np.full(len(pairs), names.index("near"), np.int32), np.full(len(pairs), 0, np.int32)
    return RdfTriples([Iri(E + name) for name in names], subject, predicate, object, graph)


def random_events(random: Random) -> list[GraphSpec]:
    longest = random.choice((4, 5, 7))
    return [
        GraphSpec(
            random.choice(STREAMS[: random.choice((1, 1, 2))]),
            random.randrange(longest + 1),
            tuple(
                Thing(f"n{i}", random.choice(KINDS), random.randrange(2), random.choice((None, *(1, 2, 3) * 3)))
                for i in range(random.choice((0, 1, 1, 2, 2, 2)))
            ),
        )
        for _ in range(random.randrange(3, longest + 4))
    ]


def random_spec(random: Random) -> Spec:
    streams = STREAMS[: random.choice((1, 2, 2))]
    gpms: list[GpmSpec] = []
    items: list[ItemSpec] = []
    bound: list[str] = []  # variables that a match may have bound before the next item
    for number in range(random.choice((1, 2, 2, 2, 3, 3, 4))):
        names: list[str] = []
        seen = list(bound)
        joiners: list[str] = []
        for place in range(random.choice((1, 1, 1, 1, 2, 3))):
            if place:
                joiners.append(random.choice("&|"))
                if joiners[-1] == "|":
                    seen = list(bound)  # the other side is not seen
            gpm = _random_gpm(random, streams, gpms, seen)
            gpms += [gpm] if gpm not in gpms else []
            names.append(gpm.name)
            seen += [v for v in gpm.variables if v not in seen]
        quantifier = random.choice(("", "", "+")) if not number else random.choice(("", "", "", "+", "+", "?", "!"))
        items.append(ItemSpec(tuple(names), tuple(joiners), quantifier, random.choice(",;;::")))
        if quantifier != "!":
            bound += [v for name in names for v in _named(gpms, name).variables if v not in bound]
    window = _random_window(random, items[-1].quantifier in ("?", "!"))
    spec = Spec(
        streams, tuple(items), tuple(gpms), window, _random_partition(random, items, gpms),
        tuple(sorted(set(bound))), tuple(_aggregates(items, gpms)),
    )  # fmt: skip
    numbers, chance = [v for v in spec.columns if v.startswith("v")], Random(repr(spec))
    some = (
        [(chance.choice(list(COMPUTED)), chance.choice(numbers)) for _ in range(chance.choice((0, 0, 1, 2)))]
        if numbers
        else []
    )
    return _with_options_first(replace(spec, computed=tuple(dict.fromkeys(some))), chance)


def _with_options_first(spec: Spec, chance: Random) -> Spec:
    """Sometimes the first item may be left out, if no absence follows it."""
    items = spec.items
    after = next((item.quantifier for item in items[1:] if item.quantifier != "?"), "")
    if items[0].quantifier or after == "!" or chance.random() < 0.6:
        return spec
    return replace(spec, items=(replace(items[0], quantifier="?"), *items[1:]))


def _named(gpms: Sequence[GpmSpec], name: str) -> GpmSpec:
    return next(gpm for gpm in gpms if gpm.name == name)


def _random_gpm(random: Random, streams: tuple[str, ...], known: Sequence[GpmSpec], seen: list[str]) -> GpmSpec:
    """A new one, or one that exists already and looks at no other."""
    plain = [gpm for gpm in known if gpm.above is None]
    if plain and random.random() < 0.15:
        return random.choice(plain)
    name = f"G{len(known)}"
    value = random.choice((None, *[f"v{len(known)}"] * 4, "v"))
    numbers = [v for v in seen if v.startswith("v") and v != value]
    return GpmSpec(
        name,
        streams if random.random() < 0.6 else (random.choice(streams),),
        random.choice(KINDS),
        random.choice((*[f"s{len(known)}"] * 5, "s")),
        random.choice((None, "k", f"k{len(known)}")),
        value,
        optional=value is not None and random.random() < 0.3,
        least=random.choice((*[None] * 4, 1)) if value is not None else None,
        above=random.choice(numbers) if value is not None and numbers and random.random() < 0.4 else None,
    )


def _random_window(random: Random, needs_time: bool) -> tuple[str, int, int | None] | None:
    kind = random.choice(("sliding", "sliding", "tumbling") if needs_time else ("sliding", "tumbling", "events", None))
    if kind is None:
        return None
    return kind, random.randrange(3, 9), random.choice((None, 0, 1, 2)) if kind == "tumbling" else None


def _random_partition(random: Random, items: Sequence[ItemSpec], gpms: Sequence[GpmSpec]) -> str | None:
    """A variable that all that is matched binds for sure, sometimes."""
    there = [item for item in items if item.quantifier != "!"]
    sure = [
        v
        for v in ("k", "s")
        if all(any(v in _named(gpms, n).certain for n in way) for item in there for way in item.ways)
    ]
    return random.choice(sure) if sure and random.random() < 0.6 else None


def _aggregates(items: Sequence[ItemSpec], gpms: Sequence[GpmSpec]) -> Iterator[tuple[str, str, int]]:
    """A count and a sum for each repetition, over a variable that nothing else has."""
    for number, item in enumerate(items):
        if item.quantifier != "+":
            continue
        elsewhere = {v for n, i in enumerate(items) if n != number for g in i.names for v in _named(gpms, g).variables}
        own = {v for g in item.names for v in _named(gpms, g).variables} - elsewhere - {"k", "s"}
        for variable in sorted(own):
            yield "COUNT", variable, number
            if variable.startswith("v"):
                yield "SUM", variable, number
