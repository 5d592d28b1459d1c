"""The answers of a run, read off section 10 of the semantics by trying every way to give events to iterations.

A condition is asked as soon as all that it has is known, and never where something that it has stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import augury
from augury.core.clock import Clock
from augury.core.model import Event, Value, equal, order_key
from augury.reference import evaluate
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

Bound = Mapping[str, Value]


@dataclass(frozen=True)
class Taken:
    """An event as an iteration of a part, matched by one of its atoms; `own` is what conditions bind in it."""

    part: int
    event: Event
    atom: Atom
    own: Bound = field(default_factory=dict)


@dataclass(frozen=True)
class State:
    """A match as far as it has come: it is in `part`. `open` are conditions not asked yet, with their iteration."""

    taken: tuple[Taken, ...] = ()
    part: int = 0
    bound: Bound = field(default_factory=dict)
    open: tuple[tuple[Asked, int], ...] = ()

    def of(self, part: int) -> list[int]:
        return [i for i, t in enumerate(self.taken) if t.part == part]


def answers(spec: Spec, events: Sequence[Event]) -> set[tuple[object, int, int]]:
    """All answers of a run over some events, with the clock at the greatest end of these."""
    now = max(e.end for e in events)
    return {answer for answer in Search(spec, derived(spec, events)).answers() if answer[2] <= now}


def derived(spec: Spec, events: Sequence[Event]) -> list[Event]:
    """The events with those that other rules of the program derive, whenever they end."""
    if not spec.rules:
        return list(events)
    model = evaluate(augury.compile("\n".join(spec.rules)).plan, list(events), Clock(), until=10**6)
    return [*events, *model.events]


class Search:
    def __init__(self, spec: Spec, events: list[Event]) -> None:
        self.spec, self.events = spec, events

    def answers(self) -> set[tuple[object, int, int]]:
        matches = [m for m in self._complete() if self._within(m) and not self._is_blocked(m)]
        if self.spec.which != "ALL":
            matches = [m for m in matches if self._best(m, matches)]
        if self.spec.skip:
            matches = self._skipped(matches)
        return {self._answer(m) for m in matches}

    def _answer(self, match: State) -> tuple[object, int, int]:
        values: list[Value] = [match.taken[0].event.args[0]] if self.spec.key else []
        values += [self._variable(name, match, None) for name in self.spec.plain]
        values += [self.value(term, match, None) for term in self.spec.results]
        return tuple(order_key(v) for v in values), match.taken[0].event.start, match.taken[-1].event.end

    # Matches

    def _complete(self) -> Iterator[State]:
        once = tuple((a, -1) for a in self.spec.asked if a.owner is None)
        open_ = self._settled(State(open=once))
        while open_:
            state = open_.pop()
            if state.part == len(self.spec.parts):
                if state.taken:
                    yield state
                continue
            part, count = self.spec.parts[state.part], len(state.of(state.part))
            if part.most is None or count < part.most:
                open_ += self._longer(state, part)
            if count >= part.least:
                open_ += self._settled(replace(state, part=state.part + 1))

    def _longer(self, state: State, part: PartSpec) -> list[State]:
        end = state.taken[-1].event.end if state.taken else None
        rows = [(e, a) for e in self.events for a in part.atoms if end is None or end < e.start]
        found = [(event, longer) for event, atom in rows for longer in self._with(state, event, atom)]
        if end is None:
            return [longer for _, longer in found]
        link = self._link(state)
        if link == "THEN":
            return [longer for event, longer in found if not any(other.end < event.start for other, _ in found)]
        if link == "NEXT":
            key = state.taken[0].event.args[0]
            blocking = [e.end for e in self.events if e.start > end and self._of_the_run(e, key)]
            return [longer for event, longer in found if not any(other < event.start for other in blocking)]
        return [longer for _, longer in found]

    def _link(self, state: State) -> str:
        """The operator before the next iteration; the first part has the one to its right between its iterations."""
        parts = self.spec.parts
        if parts[state.part].by and state.taken and state.taken[-1].part == state.part:
            return parts[state.part].by
        if state.part == 0:
            return parts[1].link if len(parts) > 1 else "NEXT"
        return parts[state.part].link

    def _of_the_run(self, event: Event, key: Value) -> bool:
        if event.type not in {a.type for p in self.spec.parts for a in p.atoms}:
            return False
        return not self.spec.key or equal(event.args[0], key)

    def _with(self, state: State, event: Event, atom: Atom) -> list[State]:
        """The match with one more event, if it joins and meets what can be asked by then."""
        key, value = event.args
        if event.type != atom.type or (atom.value.isdigit() and not equal(value, int(atom.value))):
            return []
        if self.spec.key and (key is None or (state.taken and not equal(key, state.taken[0].event.args[0]))):
            return []
        if atom.value[0].isupper() and not self.spec.owns(state.part, atom.value):
            same = [t.event.args[1] for t in state.taken if t.atom.value == atom.value]
            if any(not equal(value, other) for other in same):
                return []
        index = len(state.taken)
        mine = tuple((a, index) for a in self.spec.asked if a.owner == state.part)
        return self._settled(
            replace(state, taken=(*state.taken, Taken(state.part, event, atom)), open=(*state.open, *mine))
        )

    def _settled(self, state: State) -> list[State]:
        """The match after all conditions that can be asked now: one for each way to meet them."""
        for asked, index in state.open:
            here = None if index < 0 else index
            if not all(self.known(t, state, here) for t in asked.condition.terms):
                continue
            rest = replace(state, open=tuple(o for o in state.open if o != (asked, index)))
            if here is not None and self._unasked_first(asked, rest, here):
                return self._settled(rest)
            return [s for met in self._met(asked, rest, here) for s in self._settled(met)]
        return [state]

    def _unasked_first(self, asked: Asked, state: State, index: int) -> bool:
        """A condition with a `prev` without default is not asked of the first iteration."""
        bare = any(isinstance(t, Prev) and t.default is None for term in asked.condition.terms for t in plain(term))
        return bare and state.of(state.taken[index].part)[0] == index

    def _met(self, asked: Asked, state: State, index: int | None) -> Iterator[State]:
        condition = asked.condition
        if isinstance(condition, Compare):
            left, right = (self.value(t, state, index) for t in condition.terms)
            if compared(condition.op, left, right):
                yield state
        elif isinstance(condition, Let):
            yield self._bind(state, index, condition.name, self.value(condition.value, state, index))
        else:
            needed = [self.value(t, state, index) for t in condition.terms]
            for *row, last in self.spec.facts[condition.predicate]:
                if all(equal(a, b) for a, b in zip(row, needed, strict=True)):
                    yield self._bind(state, index, condition.name, last)

    def _bind(self, state: State, index: int | None, name: str, value: Value) -> State:
        if index is None:
            return replace(state, bound={**state.bound, name: value})
        taken = list(state.taken)
        taken[index] = replace(taken[index], own={**taken[index].own, name: value})
        return replace(state, taken=tuple(taken))

    # Values

    def known(self, term: Term, state: State, index: int | None) -> bool:
        """Whether a term has a value by now, in an iteration or, where that is None, in the match."""
        match term:
            case Num():
                return True
            case Apply():
                return self.known(term.left, state, index) and self.known(term.right, state, index)
            case Prev():
                return self.known(term.of, state, index) and (
                    term.default is None or self.known(term.default, state, index)
                )
            case Time():
                part = next(n for n, p in enumerate(self.spec.parts) if p.label == term.label)
                return self.spec.parts[part].repeats or bool(state.of(part))
            case Total():
                running = index is not None and state.taken[index].part == term.part
                outer = self._outer(term.terms, term.part)
                return (running or state.part > term.part) and all(self.known(Name(v), state, None) for v in outer)
            case Name():
                if index is not None and term.name in state.taken[index].own:
                    return True
                if index is not None and state.taken[index].atom.value == term.name:
                    return True
                return term.name in state.bound or any(t.atom.value == term.name for t in state.taken)

    def _outer(self, terms: Iterable[Term], part: int) -> set[str]:
        """The variables of the match in an aggregate, also those that its iterations compute something of."""
        binders = [a.condition for a in self.spec.asked if a.owner == part and isinstance(a.condition, Let | Holds)]
        own, seen, found, left = self._own_names(part), set[str](), set[str](), list(terms)
        while left:
            term = left.pop()
            if isinstance(term, Total):
                found |= self._outer(term.terms, term.part)
            elif isinstance(term, Name) and term.name not in own:
                found.add(term.name)
            elif isinstance(term, Name) and term.name not in seen:
                seen.add(term.name)
                left += [t for c in binders if c.name == term.name for t in c.terms]
            else:
                left += inside(term)
        return found

    def _own_names(self, part: int) -> set[str]:
        """The variables that an iteration of a part has of its own."""
        names = {c.name for a in self.spec.asked if a.owner == part and isinstance(c := a.condition, Let | Holds)}
        var = self.spec.parts[part].var
        return names | ({var} if var and self.spec.owns(part, var) else set())

    def _variable(self, name: str, state: State, index: int | None) -> Value:
        if index is not None:
            here = state.taken[index]
            if here.atom.value == name:
                return here.event.args[1]
            if name in here.own or name in self._own_names(here.part):
                return here.own.get(name)
        if name in state.bound:
            return state.bound[name]
        return next((t.event.args[1] for t in state.taken if t.atom.value == name), None)

    def value(self, term: Term, state: State, index: int | None) -> Value:
        match term:
            case Num():
                return term.value
            case Name():
                return self._variable(term.name, state, index)
            case Time():
                if index is None or self.spec.parts[state.taken[index].part].label != term.label:
                    part = next(n for n, p in enumerate(self.spec.parts) if p.label == term.label)
                    index = next(iter(state.of(part)), None)
                return None if index is None else getattr(state.taken[index].event, term.edge)
            case Apply():
                left, right = self.value(term.left, state, index), self.value(term.right, state, index)
                if not isinstance(left, int) or not isinstance(right, int):
                    return None
                return left + right if term.op == "+" else left - right if term.op == "-" else left * right
            case Prev():
                assert index is not None
                before = [i for i in state.of(state.taken[index].part) if i < index]
                if before:
                    return self.value(term.of, state, before[-1])
                return None if term.default is None else self.value(term.default, state, index)
            case Total():
                over = [i for i in state.of(term.part) if i <= (len(state.taken) if index is None else index)]
                if (where := term.where) is not None:
                    over = [i for i in over if compared(where.op, *(self.value(t, state, i) for t in where.terms))]
                rows = [tuple(self.value(a, state, i) for a in term.args) for i in over]
                return aggregated(term, rows)

    # Which matches

    def _within(self, match: State) -> bool:
        length = match.taken[-1].event.end - match.taken[0].event.start
        return self.spec.window is None or length <= self.spec.window

    def _is_blocked(self, match: State) -> bool:
        """Whether something that NOT excludes lies between a part and the event before it."""
        for n, part in enumerate(self.spec.parts):
            for absent in part.absent:
                first = match.of(n)[0]
                end, start = match.taken[first - 1].event.end, match.taken[first].event.start
                between = [e for e in self.events if end < e.start and e.end < start and e.type == absent.atom.type]
                if any(self._is_excluded(event, absent, match) for event in between):
                    return True
        return False

    def _is_excluded(self, event: Event, absent: AbsentSpec, match: State) -> bool:
        key, value = event.args
        if self.spec.key and not equal(key, match.taken[0].event.args[0]):
            return False
        name, condition = absent.atom.value, absent.condition
        if name.isdigit() and not equal(value, int(name)):
            return False
        if name[0] == "X" and not equal(value, self._variable(name, match, None)):
            return False
        return condition is None or compared(condition.op, value, self.value(condition.right, match, None))

    def _counts(self, match: State) -> list[int]:
        return [len(match.of(n)) for n, p in enumerate(self.spec.parts) if p.least != p.most]

    def _best(self, match: State, matches: list[State]) -> bool:
        rivals = [self._counts(m) for m in matches if m.taken[0].event is match.taken[0].event]
        return self._counts(match) == (max(rivals) if self.spec.which == "LONGEST" else min(rivals))

    def _skipped(self, matches: list[State]) -> list[State]:
        kept: list[State] = []
        for key in {self._key(m) for m in matches}:
            mine = [m for m in matches if self._key(m) == key]
            mine.sort(key=lambda m: [t.event.order for t in m.taken])
            before: State | None = None
            for match in mine:
                same = before is not None and [t.event for t in match.taken] == [t.event for t in before.taken]
                if before is None or same or self._after(match, before):
                    before = match
                    kept.append(match)
        return kept

    def _key(self, match: State) -> object:
        return order_key(match.taken[0].event.args[0]) if self.spec.key else ()

    def _after(self, match: State, before: State) -> bool:
        first = match.taken[0].event
        if self.spec.skip.endswith("END"):
            return first.start > before.taken[-1].event.end
        label = self.spec.skip.split()[-1]
        part = next(n for n, p in enumerate(self.spec.parts) if p.label == label)
        last = before.taken[before.of(part)[0 if "FIRST" in self.spec.skip else -1]].event
        return first.start >= last.start and first.order > before.taken[0].event.order


def inside(term: Term) -> list[Term]:
    """What a term is made of, without what an aggregate ranges over."""
    match term:
        case Apply():
            return [term.left, term.right]
        case Prev():
            return [term.of, *([] if term.default is None else [term.default])]
    return []


def plain(term: Term) -> Iterator[Term]:
    """A term and all that it is made of."""
    yield term
    for part in inside(term):
        yield from plain(part)


def compared(op: str, left: Value, right: Value) -> bool:
    if not isinstance(left, int) or not isinstance(right, int):
        return False
    return {
        "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
        "=": left == right, "!=": left != right,
    }[op]  # fmt: skip


def aggregated(total: Total, rows: list[tuple[Value, ...]]) -> Value:
    """An aggregate over the arguments of the iterations, in the order of the match."""
    if not total.args:
        return len(rows)
    firsts = [row[0] for row in rows]
    numbers = [v for v in firsts if isinstance(v, int)]
    match total.function:
        case "count":
            return len(numbers)
        case "sum":
            return sum(numbers) if numbers else None
        case "min":
            return min(numbers, default=None)
        case "max":
            return max(numbers, default=None)
        case "first":
            return firsts[0] if firsts else None
        case "last":
            return firsts[-1] if firsts else None
        case "nth":
            place = rows[0][1] if rows else None
            return firsts[place - 1] if isinstance(place, int) and 0 < place <= len(firsts) else None
        case _:
            assert total.function in ("arg_max", "arg_min")
            choose = max if total.function == "arg_max" else min
            rated = [(e, v) for v, e in rows if isinstance(e, int)]
            return choose(rated, key=lambda pair: pair[0])[1] if rated else None
