"""Random runs beside everything that a session does: late and revoked events, prunes, snapshots, both modes of emission.

    story("runs-then", 7)    # a program with a run, and what happens to a session of it

Each kind stresses one thing: events that other rules derive and take back (`runs-then`), windows around one event (`runs-windows`),
LONGEST and SKIP with intervals and ties (`runs-choices`), NOT between parts (`runs-not`), alternatives with labels (`runs-alternatives`), aggregates with variables of later parts and facts (`runs-totals`). The
reference looks at all matches, so that a history has few events where a program has many matches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from augury.core.model import Event, Value
from tests.generators.programs import Choices, Number
from tests.generators.state_programs import Action, Story, happenings, settings

INPUTS = ("a", "b", "v", "n")  # each with a key and a number
FACTS = "size(0, 1). size(1, 1). size(1, 2). size(2, 0). size(3, 3). lim(1). lim(2). one(2). shop('k')."
ON = "fact on(X) <- n(_, X).\nfact not on(X) <- b(_, X) WHERE X != 1."
# Rules that derive `u`, whose events a late or revoked event takes back.
DERIVATIONS = (
    "u(K, X) <- v(K, X).",
    "u(K, X) SINCE END <- a: v(K, X), w: extend_backward(a, 2s), while w: not n(K, _).",
    "u(K, X) SINCE END <- a: v(K, X), w: extend(a, 1s), while w: not n(K, _).",
    "u(K, max(X)) SINCE END <- a: v(K, _), last 2: collect v(K, X).",
    "u(K, count(X)) <- v(K, X)+ PER (K) LONGEST SKIP PAST END.",
    "u(K, last(X)) <- (v(K, X)+).3 WHERE X >= prev(X) PER (K) LONGEST.",
    "u(K, Y) <- n(K, X) THEN v(K, Y).",
    "u(K, Y) <- v(K, X) THEN v(K, Y) WHERE Y >= X PER (K).",
    "u(K, X) <- NOT(n(K, _)).[v(K, X), v(K, _)].",
    "u(K, count(X)) <- w: every(3s), while w: collect v(K, X).",
    "u(K, 1) <- w: every(4s), shop(K), while w: not v(K, _).",
    "u(K, X) <- v(K, X) SEQ[recent] n(K, _).",
    "u(K, X) <- v(K, X) AT MOST 1 PER (K) EVERY 3s.",
    "u(K, X) <- v(K, X) WHERE on(X).",
)
QUANTIFIERS = ("", "", "", "+", "+", "*", "?", "{2}", "{1,2}", "{2,}", "{0,2}")
# Rules over the answers of a run: what is taken back is felt there.
READERS = (
    "g(K) <- e(K, _, _) SEQ a(K, _).",
    "g(K) <- o: a(K, _), w: extend(o, 3s), while w: not e(K, _, _).",
    "g(K, count()) <- o: b(K, _), last 2: collect e(K, _, _).",
    "g(K, Y) <- a(K, _) THEN e(K, _, Y).",
)


@dataclass
class RunWriter(Choices):
    """Writes a program with one run; the numbers say in how many of a hundred programs it has what."""

    derived: int = 30
    then: int = 35
    windows: int = 30
    choosing: int = 50
    absent: int = 6  # NOT between two parts
    alternatives: int = 4  # parts of alternatives with labels
    later: int = 25  # aggregates with variables of other parts and of facts
    counts: tuple[int, ...] = (1, 1, 2, 2, 3)
    facts: set[str] = field(default_factory=set)
    quantifiers: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    labelled: set[int] = field(default_factory=set)  # parts whose alternatives have labels
    others: dict[int, str] = field(
        default_factory=dict
    )  # of a part of labelled alternatives: the variable of the second

    def program(self) -> str:
        derives = self.chance(self.derived)
        rules = [self.pick(DERIVATIONS)] if derives else []
        run = self._run("u" if derives else "v")
        rules += [run, *([self.pick(READERS)] if self.chance(15) else [])]
        text = "\n".join(rules)
        facts = [FACTS] if any(f"{name}(" in text for name in ("size", "lim", "one", "shop")) else []
        return "\n".join([*facts, *([ON] if "on(" in text else []), text]) + "\n"

    def _run(self, main: str) -> str:
        keyed, count = self.chance(75), self.pick(self.counts)
        types = [self.pick([main, main, "a", "a", "b"]) for _ in range(count)]
        types[self.number(0, count - 1)] = main
        self.quantifiers = [self.pick(QUANTIFIERS) for _ in range(count)]
        if count == 1 and self.quantifiers[0] in ("", "?"):
            self.quantifiers[0] = self.pick(["+", "{1,2}", "{2,}", "{2}"])
        choosing = self.chance(self.choosing)
        seq = not choosing and self.chance(20)
        links = [self._link(seq) for _ in range(count)]
        parts = [self._part(i, types[i], "K" if keyed else "_") for i in range(count)]
        absent = [self._absent(i, links[i], main, "K" if keyed else "_") for i in range(count)]
        body = parts[0] + "".join(f" {links[i]} {absent[i]}{parts[i]}" for i in range(1, count))
        unbounded = "SEQ" in body and any(q.endswith(("+", "*", ",}")) for q in self.quantifiers)
        if unbounded or self.chance(self.windows):
            body = f"({body}).{self.pick([0, 1, 2, 3, 5, 8] if not unbounded else [2, 3, 4])}"
        where = self._conditions(count)
        body += f" WHERE ({', '.join(where)})" if where else ""
        tail = "PER (K)" if keyed else "PER ()"
        if choosing:
            firm = [i for i in range(count) if self.quantifiers[i] not in ("*", "?", "{0,2}")]
            skips = [
                "",
                "SKIP PAST END",
                "SKIP PAST END",
                *(f"SKIP TO {end} l{i}" for i in firm for end in ("FIRST", "LAST")),
            ]
            tail += f" {self.pick(['LONGEST', 'LONGEST', 'SHORTEST'])} {self.pick(skips)}".rstrip()
        elif keyed and count > 1 and len(set(self.names)) == count and self.chance(40):
            tail = ""
        return f"e({'K' if keyed else 0}, {self._result(count)}) <- {body} {tail}".rstrip() + "."

    def _link(self, seq: bool) -> str:
        return self.pick(["THEN", "SEQ"]) if seq else "THEN" if self.chance(self.then) else "NEXT"

    def _part(self, i: int, type: str, key: str) -> str:
        singles = [name for name, q in zip(self.names, self.quantifiers, strict=False) if q in ("", "?")]
        name = self.pick(singles) if singles and self.chance(12) else f"X{i}"
        self.names.append(name)
        atom = f"{type}({key}, {name})"
        if self.chance(self.alternatives):
            second = self.pick([type, "a", "b", "v", "n"])
            other = self.pick([f"Y{i}", f"Y{i}", f"Y{i}", name, "_"])
            if other == f"Y{i}" and name == f"X{i}":
                self.others[i] = other
            one = f"({atom} WHERE {name} != 1)" if self.chance(15) else atom
            atom = f"u{i}: {one} OR v{i}: {second}({key}, {other})"
            atom += f" OR w{i}: b({key}, {name})" if self.chance(15) else ""
            atom = f"({atom})"
            self.labelled.add(i)
        elif self.chance(10):
            other = self.pick([t for t in ("a", "b", "v") if t != type])
            atom = f"({atom} OR {other}({key}, {name}))"
        part = f"(l{i}: {atom}){self.quantifiers[i]}"
        repeats = self.quantifiers[i] not in ("", "?")
        return f"({part} BY {self.pick(['NEXT', 'THEN'])})" if repeats and self.chance(15) else part

    def _absent(self, i: int, link: str, main: str, key: str) -> str:
        """What must be absent to the left of a part."""
        firm = i > 0 and not {"*", "?", "{0,2}"} & {*self.quantifiers[i - 1 : i + 1]}
        if not firm or link == "NEXT" or not self.chance(self.absent):
            return ""
        name = f"N{i}"
        singles = [n for n, q in zip(self.names[:i], self.quantifiers, strict=False) if q in ("", "{1}")]
        values = [f"{name} >= {self.pick([0, 1, 2])}", f"size({name}, _)", *(f"{name} != {n}" for n in singles)]
        values += [f"{name} > max({n})" for j, n in enumerate(self.names[:i]) if self._own(j)]
        atom = f"{self.pick([main, 'a', 'b', 'n'])}({key}, {self.pick([name, name, '_', '1', *singles])})"
        condition = f" WHERE {self.pick(values)}" if name in atom else ""
        return f"NOT({atom}{condition}) {link} "

    # Conditions and results

    def _repeated(self, i: int) -> bool:
        return self.quantifiers[i] not in ("", "?")

    def _own(self, i: int) -> bool:
        return self._repeated(i) and self.names[i] == f"X{i}"

    def _conditions(self, count: int) -> list[str]:
        found = [c for i in range(count) for c in self._of_part(i)]
        if self.chance(self.later):
            found += self._of_whole(count)
        found = list(dict.fromkeys(found))
        return self.shuffled(found) if self.chance(50) else found

    def _of_part(self, i: int) -> list[str]:
        x, singles = self.names[i], [j for j in range(i) if not self._repeated(j)]
        length, number = self.pick([1, 2, 3, 5]), self.pick([0, 1, 2])
        options = [f"{x} >= {number}", f"{x} != {number}", f"size({x}, {number})"]
        if self.chance(20):
            options += [f"on({x})", f"not on({x})"]
        if self._own(i):
            options += [f"start(l{i}) - prev(end(l{i})) <= {length}"] * 3
            options += [
                f"end(l{i}) - prev(start(l{i})) < {length + 1}",
                f"{x} >= prev({x})",
                f"{x} > prev({x}, {number})",
            ]
            options += [f"sum({x}) - {x} <= {number + 2}", f"max({x}) <= {number + 1}", f"count(l{i}) <= {number + 1}"]
            options += [f"{x} <= prev({x} + 1, 2)", f"last({x}) >= first({x})"]
        if y := self.others.get(i):
            options += [f"{y} >= {number}", f"{y} != {number}"]
            options += (
                [f"{y} >= prev({y})", f"{x} > coalesce(prev({y}), 0)", f"{y} > prev({x}, 0)", f"count(v{i}) <= 1"]
                if self._own(i)
                else []
            )
        for j in singles:
            y = self.names[j]
            if self._own(i):
                options += [f"{x} >= prev({x}, {y})", f"{x} > {y} - count({x})"]
            options += [f"start(l{i}) - end(l{j}) <= {length}", f"end(l{i}) - start(l{j}) <= {length + 2}"]
            options += [f"{x} >= {y}", f"{x} > {y}", f"{x} != {y}"] if x != y else []
        for j in range(i):
            if self._own(j) and not self._repeated(i):
                options.append(f"{x} >= {self.pick(['max', 'last', 'sum', 'count'])}({self.names[j]})")
            elif self._own(j) and self._own(i):
                options.append(f"{x} > prev({x}, {self.pick(['max', 'last'])}({self.names[j]}))")
        return self.some(options, 0, self.pick([1, 1, 2]))

    def _of_whole(self, count: int) -> list[str]:
        """Conditions with values of several parts, of facts, and of aggregates with them."""
        found = [self.pick(["lim(D)", "one(D)"])] if self.chance(50) else []
        self.facts |= {"D"} if found else set()
        singles = [n for i, n in enumerate(self.names) if not self._repeated(i)]
        totals = [t for i in range(count) for t in self._totals(i)]
        if singles and self.chance(40):
            found += [f"size({self.pick(singles)}, S)"]
            self.facts.add("S")
        if len(singles) > 1 and self.chance(50):
            found += [f"N = {singles[-1]} - {singles[0]}", f"N {self.pick(['<=', '>=', '!='])} {self.pick([0, 1])}"]
            self.facts.add("N")
        if totals:
            found += self.some([f"{t} {self.pick(['<=', '>=', '!='])} {self.pick([1, 2, 4])}" for t in totals], 0, 1)
            plain = [t for t in totals if not t.startswith(("list", "avg"))]
            if self.chance(25):
                found += [f"M = {self.pick(plain)}", *self.some(["size(M, _)", "M > 0"], 0, 1)]
                self.facts.add("M")
        return found

    def _totals(self, i: int) -> list[str]:
        """Aggregates over the iterations of a part, some with variables that other parts or facts bind."""
        if not self._own(i):
            return []
        x = self.names[i]
        if i in self.labelled and self.chance(60):
            pair = [
                f"{name}({self.pick([x, self.others.get(i, x)])})"
                for name in ("count", "sum", "last", "max", "first", "list")
            ]
            y = self.others.get(i, x)
            return [
                *pair,
                f"count(u{i})",
                f"count(v{i})",
                f"last(end(v{i}))",
                f"max(start(u{i}))",
                f"sum({y} where {y} > 0)",
            ]
        others = [n for j, n in enumerate(self.names) if not self._repeated(j)] + sorted(self.facts)
        found = [f"count(l{i})", f"sum({x})", f"last({x})", f"first({x})", f"max(end(l{i}))", f"nth({x}, 2)"]
        found += [
            f"percentile({x}, 0.5)",
            f"arg_max({x}, end(l{i}))",
            f"count(distinct {x})",
            f"list({x})",
            f"avg({x})",
            f"{self.pick(['sum', 'last', 'first', 'list', 'max'])}({x} where {x} {self.pick(['>', '!='])} {self.pick([0, 1, 2])})",
            f"{self.pick(['count(where', f'nth({x}, 2 where'])} {self.pick([f'end(l{i}) > 5', f'{x} >= 1'])})",
        ]
        if others and self.chance(2 * self.later):
            y = self.pick(others)
            inner = f"{x} {self.pick(['*', '-', '+'])} {y}"
            later = [f"sum({inner})", f"min({inner})", f"last({inner})", f"count(if({x} > {y}, 1, null))"]
            found = [*later, f"arg_max({x}, {inner})", f"percentile({inner}, 0.5)"]
            found += [f"nth({x}, M)"] * 2 if "M" in self.facts else []
        return found

    def _result(self, count: int) -> str:
        options = [t for i in range(count) for t in self._totals(i)]
        options += [n for i, n in enumerate(self.names) if not self._repeated(i)] + sorted(self.facts)
        options += [y for i, y in self.others.items() if not self._repeated(i)]
        options += [f"end({self.pick('uv')}{i})" for i in sorted(self.labelled) if not self._repeated(i)]
        return f"{self.pick(options)}, {self.pick([*options, '0'])}" if options else "0, 0"


KINDS: dict[str, Callable[[Number], RunWriter]] = {
    "runs-then": lambda number: RunWriter(number, derived=80, then=80, choosing=35),
    "runs-windows": lambda number: RunWriter(number, windows=100, counts=(1, 1, 1, 2)),
    "runs-choices": lambda number: RunWriter(number, choosing=100),
    "runs-not": lambda number: RunWriter(number, derived=70, then=80, absent=80, counts=(2, 2, 3)),
    "runs-alternatives": lambda number: RunWriter(number, derived=50, alternatives=60, counts=(1, 1, 2, 2, 3)),
    "runs-totals": lambda number: RunWriter(number, later=80, counts=(1, 2, 2, 3)),
}


def story(kind: str, seed: object) -> Story:
    """A program of a kind, and a history that disturbs it."""
    number = Random(f"runs {kind} {seed}").randint
    choices, text = Choices(number), KINDS[kind](number).program()
    lengths = choices.pick([(0,), (0,), (0, 0, 0, 1, 2), (0, 1, 2, 3, 5)])
    keys = choices.pick(["k", "kkkm", "kkkm", "km"])
    types = [type for type in INPUTS if f"{type}(" in text]
    values: list[Value] = choices.pick([[1, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, None]])

    def event(id: str, end: int) -> Event:
        args = (choices.pick(keys), choices.pick(values))
        return Event(choices.pick(types), args, end - choices.pick(lengths), end, id)

    choosing = "LONGEST" in text or "SHORTEST" in text
    most = choices.pick([6, 8, 8, 10] if "SEQ" in text or not choosing else [6, 8, 10, 12])
    actions = few(happenings(number, event, False), most)
    opened = settings(choices, actions)
    if choosing and opened["emit"] == "final" and opened["longest"] is None and choices.chance(70):
        opened["longest"] = max(lengths)  # otherwise nothing is final before the end
    return Story(text, actions, **opened)  # type: ignore[arg-type]


def few(actions: tuple[Action, ...], most: int) -> tuple[Action, ...]:
    """What happens until so many events have come."""
    kept: list[Action] = []
    for action in actions:
        if isinstance(action, list):
            events = [item for item in action if isinstance(item, Event)]
            if len(events) > most:
                return tuple(kept)
            most -= len(events)
        kept.append(action)
    return tuple(kept)
