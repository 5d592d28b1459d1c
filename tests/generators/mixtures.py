"""Random programs that mix everything: rules of every kind over one another, over facts that change, and over runs.

Each event has a key and a number, so that any rule may read what any other derives. `story(seed)` is a program and what
happens to a session of it; `tests/generators/disturbances.py` lets it happen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from augury.core.model import Event, Value
from tests.generators.programs import Choices, Number
from tests.generators.run_stories import FACTS, ON, RunWriter, few
from tests.generators.state_programs import Story, happenings, settings

INPUTS = ("a", "b", "v", "n")
WINDOWS = ("extend", "extend", "extend_backward", "extend_backward", "from_end", "from_start", "shift_forward",
           "shift_backward", "shorten")  # fmt: skip
UP = (
    "fact up(K) <- a(K, X), X > 0.\nfact not up(K) <- b(K, _).",
    "fact up(K) <- a(K, _), not was up(K).\nfact not up(K) <- a(K, _), was up(K).",
    "fact up(K) <- a(K, _).\nfact not up(K) <- o: a(K, _), w: extend(o, 2s), while w: not b(K, _).",
    "fact up(K) <- (v(K, X) SEQ b(K, X)).5.\nfact not up(K) <- n(K, _).",
    "fact up(K) <- w: session(2s, v(K, _)).\nfact not up(K) <- b(K, _) ONCE PER (K) EVERY 3s.",
    "fact latest up(K) PER () <- v(K, X), X != 2.",
)
MODE = (
    "fact latest mode(K, X) PER (K) <- v(K, X).",
    "fact latest mode(K, X) PER (K) <- v(K, X).\nfact not mode(K, _) <- n(K, _).",
    "fact latest mode(K, X) PER (X) <- v(K, X).\nfact latest mode(K, X) PER (X) <- n(K, X), b(K, X).",
    "fact latest mode(K, sum(X)) PER (K) <- w: every(3s), while w: collect v(K, X).",
    "fact latest mode(K, X + Y) PER (K) <- v(K, X), was mode(K, Y), Y < 3.\nfact latest mode(K, 0) PER (K) <- n(K, _).",
    "fact mode(K, X) <- v(K, X).\nfact not mode(K, X) <- b(K, Y), was mode(K, X), X <= Y.",
    "fact mode(K, count(X)) <- o: n(K, _), all: collect v(K, X).\nfact not mode(K, 1) <- b(K, _).",
    "fact latest mode(K, last(X)) PER (K) <- (v(K, X)+).4 WHERE X >= prev(X) PER (K) LONGEST SKIP PAST END.",
    "fact latest mode(K, X) PER (K) <- v(K, X) TOP 1 BY X.\nfact not mode(K, 2) <- n(K, _).",
)
STATIC = (
    "both(K) :- up(K), mode(K, _).",
    "both(K) :- up(K).\nboth(K) :- mode(K, X), X > 1.",
    "both(K) :- mode(K, _), not up(K).",
    "free(K, Y) :- mode(K, X), size(X, Y).",
    "free(K, X) :- mode(K, X), X != 1.\nfree(K, 1) :- up(K).",
    "less(X) :- mode(_, Y), size(Y, X).\nlow(K) :- mode(K, X), not less(X).",
)
AGGREGATES = ("count", "sum", "min", "max", "first", "last", "avg", "median", "mode", "stddev")


@dataclass
class MixtureWriter(Choices):
    """Writes one program."""

    rules: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    derived: list[str] = field(default_factory=list)
    states: dict[str, int] = field(default_factory=dict)  # predicates whose facts change, and their arities
    told: bool = False  # whether a session says facts
    runs: int = 0
    fresh: int = 0

    def program(self) -> str:
        if self.chance(60):
            self._facts()
        for number in range(self.pick([1, 2, 2, 3, 3, 4])):
            self._rule(f"d{number}")
        text = "\n".join([*self.facts, *self.rules])
        plain = [FACTS] if any(f"{name}(" in text for name in ("size", "lim", "one", "shop")) else []
        plain += [ON] if re.search(r"\bon\(", text) else []
        plain += ["static known(x: int)."] if self.told else []
        return "\n".join([*plain, text]) + "\n"

    # Facts that change

    def _facts(self) -> None:
        if self.chance(60):
            self.facts.append(self.pick(UP))
            self.states["up"] = 1
        if self.chance(60) or not self.states:
            self.facts.append(self.pick(MODE))
            self.states["mode"] = 2
        static = [s for s in STATIC if all(p in self.states for p in ("up", "mode") if f"{p}(" in s)]
        if static and self.chance(45):
            self.facts.append(self.pick(static))
            name = self.facts[-1].splitlines()[-1].split("(")[0]
            self.states[name] = 2 if name == "free" else 1
        if self.chance(20):
            self.states["known"], self.told = 1, True

    def _asks(self, key: str, number: str, may_bind: bool = True) -> str:
        """A condition on facts."""
        if not self.states or self.chance(25):
            return self.pick([f"size({number}, {self.pick(['_', '1', '2'])})", f"not lim({number})", f"lim({number})"])
        name = self.pick(list(self.states))
        lead = self.pick(["", "", "not ", "was ", "not was "])
        if name == "known":
            return f"{lead}known({number})"
        if self.states[name] == 1:
            return f"{lead}{name}({key})"
        other = self._new("Y") if may_bind and "not" not in lead and self.chance(40) else self.pick(["_", number, "1"])
        return f"{lead}{name}({key}, {other})"

    # Parts

    def _new(self, letter: str = "X") -> str:
        self.fresh += 1
        return f"{letter}{self.fresh}"

    def _type(self) -> str:
        return self.pick([*INPUTS, "a", "b", "v", *self.derived * 2, *self.derived[-1:] * 2])

    def _atom(self, key: str = "K", number: str | None = None, type: str | None = None) -> tuple[str, str]:
        """An atom, and the variable of its number."""
        name = number or self._new()
        key = self.pick([key, key, key, key, key, "_", "'k'"])
        shown = name if self.chance(85) else self.pick(["_", "1", "1.0"])
        return f"{type or self._type()}({key}, {shown})", name if shown == name else ""

    def _test(self, numbers: Sequence[str]) -> str:
        x = self.pick(numbers)
        y = self.pick([*numbers, "1", "2"])
        return self.pick([
            f"{x} >= {y}", f"{x} < {y} + 1", f"{x} != {y}", f"{x} in (0, 1, 3)", f"{x} not in (2, {y})", f"{x} between 1 and 2",
            f"if({x} > {y}, 1, 0) = 1", f"coalesce({x}, 1) > 0", f"not is_null({x})", f"({x} = 1 or {y} > 1)", f"{x} / {y} >= 1",
        ])  # fmt: skip

    def _value(self, numbers: Sequence[str]) -> str:
        if not numbers:
            return self.pick(["0", "1"])
        x, y = self.pick(numbers), self.pick(numbers)
        return self.pick(
            [x, x, x, x, f"{x} + 1", f"{x} - {y}", f"coalesce({x}, 9)", f"if({x} > {y}, {x}, 5)", f"{x} * 2 mod 4"]
        )

    def _key(self, text: str) -> str:
        return "K" if re.search(r"\bK\b", text) else "'k'"

    def _add(self, type: str, key: str, number: str, body: str, tail: str = "", since: str = "") -> None:
        self.rules.append(f"{type}({key}, {number}){since} <- {body}{tail}.")
        self.derived.append(type)

    def _tail(self, key: str, numbers: Sequence[str], by: str, top: int = 12) -> tuple[str, str | None]:
        """TOP and AT MOST at the end of a rule, and the variable of a place."""
        text, place = "", None
        if self.chance(top):
            per = (
                f" PER ({self.pick([k for k in (key, *numbers) if k[0].isupper()])})"
                if key == "K" and self.chance(40)
                else ""
            )
            place = "R" if self.chance(50) else None
            ties = self.pick(["", " ASC", " WITH TIES", " ASC WITH TIES"])
            text += f" TOP {self.pick([1, 2, 'ALL'])} BY {by}{ties}{per}{' AS R' if place else ''}"
        if self.chance(15):
            names = [n for n in (key, *numbers) if n[0].isupper()]
            per = f" PER ({self.pick(names)})" if names and self.chance(60) else ""
            every = self.pick(["", f" EVERY {self.number(1, 5)}s"])
            text += f" {self.pick(['ONCE', 'AT MOST 1', 'AT MOST 2'])}{per}{every}"
        return text, place

    def _since(self, labels: Sequence[str]) -> str:
        if not labels or not self.chance(12):
            return ""
        label = self.pick(labels)
        return f" SINCE {self.pick(['END', f'start({label})', f'end({label})', f'end({label}) - 1s'])}"

    def _rule(self, type: str) -> None:
        kinds = [
            "pattern",
            "pattern",
            "labels",
            "labels",
            "collects",
            "collects",
            "clock",
            "session",
            "run",
            "run",
            "recursion",
        ]
        kinds += ["holding", "holding", "spans"] if self.states else []
        getattr(self, f"_{self.pick(kinds)}")(type)

    # Rules

    def _pattern(self, type: str) -> None:
        (one, x), (two, y) = self._atom(), self._atom()
        numbers = [n for n in (x, y) if n]
        policy = self.pick(["", "", "", "[recent]", "[chronological]", "[recent shortest]", "[recent per (K)]"])
        policy = policy if "per" not in policy or "K" in one else ""
        op = self.pick(["SEQ", "SEQ", "SEQ", "AND", "AND", "PAR", "MEETS", "DURING", "STARTS", "FINISHES", "EQUALS"])
        asked = self._asks("K", self.pick(numbers)) if numbers and "(K" in one else "1 = 1"
        three, _ = self._atom()
        absent, z = self._atom(self.pick(["K", "_"]) if "(K" in one + two else "_", self._new("Z"))
        where = f" WHERE {self._test([z, *numbers])}" if z and self.chance(40) else ""
        shapes = [
            f"{one} {op}{policy} {two}",
            f"({one} {op}{policy} {two}).{self.number(2, 6)}",
            f"NOT{policy}({absent}{where}).[{one}, {two}]",
            f"(NOT({absent}{where}).[{one}, {two}]).{self.number(3, 7)}",
            f"({one} SEQ{policy} {two}) {self.pick(['SEQ', 'AND'])} {three}",
            f"({one} ^ 2){self.pick(['', ' CONSECUTIVE'])}".replace(") CONSECUTIVE", " CONSECUTIVE)"),
            f"{one} WHERE {asked}",
            f"({one} WHERE {asked}) {op}{policy} {two}",
            f"{one} {op}{policy} {two} WHERE {asked}",
            f"({one} OR {two})",
        ]
        body = self.pick(shapes)
        both = two in body
        numbers = [n for n in ([x] if not both else [x, y]) if n] if " OR " not in body else []
        key = self._key(body) if " OR " not in body or (one.count("K") and two.count("K")) else "'k'"
        if numbers and self.chance(25) and "WHERE 1" not in body and not re.search(r" WHERE [^)]*$", body):
            body += f" WHERE {self._test(numbers)}"
        tail, place = self._tail(key, numbers, numbers[0] if numbers else "1", 8)
        self._add(type, key, place or self._value(numbers), body, tail)

    def _window(self, anchor: str, numbers: Sequence[str]) -> str:
        """A window counted from a label."""
        kind = self.pick(WINDOWS)
        if numbers and self.chance(25):
            length = self.pick([numbers[0], f"{numbers[0]} + 1", f"duration({anchor})"])
            most = self.pick(["", f", most = {self.number(1, 3)}s"])
            if self.chance(35):
                return f"until({anchor}, end({anchor}) + {length}{most})"
            return f"{kind}({anchor}, {length}{most})"
        return f"{kind}({anchor}, {1 if kind == 'shorten' else self.number(1, 5)}s)"

    def _labels(self, type: str) -> None:
        """Labels: relations, and what must not be inside a window."""
        (one, x), (two, y) = self._atom(), self._atom()
        literals, labels, numbers = [f"i: {one}"], ["i"], [n for n in [x] if n]
        if self.chance(45):
            literals.append(f"j: {two}")
            labels.append("j")
            numbers += [n for n in [y] if n]
            literals.append(self.pick(["i before j", "i before j or i meets j", "{i, j} within 4s", "overlap(i, j) > 0", "i contains j",
                                       "start(j) - end(i) <= 3", "i overlaps j or i equals j"]))  # fmt: skip
        if self.chance(75):
            anchor = self.pick(labels)
            literals.append(f"w: {self._window(anchor, numbers)}")
            inside, z = self._atom(
                key=self.pick(["K", "K", "_"]) if "K" in " ".join(literals) else "_", number=self._new("Z")
            )
            tests = [self._test([z, *numbers]), self._asks(self._key(inside), z, False)] if z else []
            where = f" WHERE {self.pick(tests)}" if tests and self.chance(40) else ""
            literals.append(f"while w: not ({inside}{where})" if where else f"while w: not {inside}")
        key = self._key(" ".join(literals[:2] if len(labels) > 1 else literals[:1]))
        if numbers and self.chance(40):
            literals.append(self._asks(key, self.pick(numbers)))
        if numbers and self.chance(20):
            literals.append(self._test(numbers))
        moments = [f"{f}({n})" for n in labels for f in ("duration", "start")]
        tail, place = self._tail(key, numbers, self.pick([*numbers, *moments]))
        value = place or self.pick([self._value(numbers), self._value(numbers), *moments[:1]])
        self._add(type, key, value, ", ".join(literals), tail, self._since(labels))

    def _totals(self, x: str, label: str) -> list[str]:
        """Aggregates over what is collected."""
        found = [f"{self.pick(AGGREGATES)}({x})", f"{self.pick(AGGREGATES)}({x})", "count()", f"count(distinct {x})"]
        found += [
            f"nth({x}, 2)",
            f"arg_max({x}, end({label}))",
            f"arg_min({x}, {x})",
            f"percentile({x}, 50)",
            f"count({label})",
        ]
        test = self.pick([f"{x} > 1", f"{x} != 2", f"end({label}) > 4", f"duration({label}) = 0"])
        found += [
            f"{self.pick(['sum', 'max', 'first', 'last', 'count', 'avg'])}({x} where {test})",
            f"count(where {test})",
        ]
        return [*found, f"max(duration({label}))", f"last(end({label})) - first(start({label}))", f"any({x} > 1)"]

    def _collecting(
        self, type: str, literals: list[str], windows: Sequence[str], labels: list[str], keyed: bool, numbers: list[str]
    ) -> None:
        """One collect or two, conditions on the group, and a head."""
        each: list[str] = []
        group = False
        for i in range(1 if self.chance(75) else 2):
            x, p = self._new("Q"), f"p{i}"
            how = self.pick([*(f"while {w}" for w in [*windows, *windows]), "last 2", "last 1", "exactly 2", "all"] if labels or not windows
                            else [f"while {w}" for w in windows])  # fmt: skip
            key = "K" if keyed or self.chance(50) else "_"
            group = group or (key == "K" and not keyed)
            kind = self._type()
            atom = f"{kind}({key}, {x})"
            if self.chance(12):
                atom = f"({atom} {self.pick(['OR', 'SEQ', 'AND'])} {self._type()}({key}, {x}))"
            none = (key == "_" or keyed) and not group and self.chance(25)
            literals.append(f"{how}: collect {p}: {atom}{' or none' if none else ''}")
            if self.chance(25):
                anchor = self.pick([*labels, *windows])
                literals.append(self.pick([f"start({p}) >= start({anchor}) - 1", f"end({p}) != end({anchor})", f"{x} > 0", f"duration({p}) < 2",
                                           f"overlap({p}, {anchor}) >= 1"]))  # fmt: skip
            if self.chance(20):
                literals.append(self._asks("K" if key == "K" else "'k'", x))
            mine = [t for t in self._totals(x, p) if t != "count()" or not i]
            each.append(self.pick(mine))
            if self.chance(20):
                literals.append(
                    f"{self.pick([t for t in mine if t != 'count()'])} {self.pick(['>= 1', '< 3', '!= 2'])}"
                )
        if len(each) > 1:
            each = [e for e in each if e != "count()"] or ["count(p0)"]
        value = each[0] if len(each) == 1 else f"coalesce({each[0]}, -1) + coalesce({each[1]}, -1)"
        by = value
        key = "K" if keyed or group else "'k'"
        tail, place = self._tail(key, [], by, 20)
        since = self._since([*labels, *windows])
        if place:
            tail_by, value = value, "R"
            del tail_by
        self._add(type, key, value, ", ".join(literals), tail, since)

    def _collects(self, type: str) -> None:
        one, x = self._atom()
        numbers = [x] if x else []
        literals = [f"i: {one}", f"w: {self._window('i', numbers)}"]
        windows = ["w"]
        if self.chance(20):
            literals.append(f"u: {self.pick(WINDOWS)}(w, 1s)")
            windows.append("u")
        self._collecting(type, literals, windows, ["i"], "K" in one, numbers)

    def _clock(self, type: str) -> None:
        hop = self.pick(["", "", f", {self.number(1, 4)}s"])
        origin = self.pick(["", "", "", f", from = {self.number(-2, 3)}"])
        literals, windows = [f"w: every({self.number(1, 6)}s{hop}{origin})"], ["w"]
        if self.chance(20):
            literals.append("u: previous(w)")
            windows.append("u")
        keyed = self.chance(30)
        if keyed:
            literals.append("shop(K)")
        if self.states and self.chance(25):
            literals.append(self._asks("K" if keyed else "'k'", "1", False))
        labels: list[str] = []
        if self.chance(15):
            literals += [
                f"i: {self._atom(key='K' if keyed else '_')[0]}",
                self.pick(["i inside w", "i before w", "w contains i"]),
            ]
            labels = ["i"]
        if self.chance(25):
            inside = self._type()
            literals.append(
                f"while {self.pick(windows)}: not {inside}({'K' if keyed else '_'}, {self.pick(['_', '1'])})"
            )
            tail, place = self._tail("K" if keyed else "'k'", [], "start(w)")
            value = place or self.pick(["start(w)", "length(w)"])
            self._add(type, "K" if keyed else "'k'", value, ", ".join(literals), tail, self._since(["w"]))
            return
        self._collecting(type, literals, windows, labels, keyed, [])

    def _session(self, type: str) -> None:
        keyed = self.chance(70)
        most = self.pick(["", "", f", most = {self.number(3, 9)}s"])
        kind = self._type()
        literals = [f"w: session({self.number(1, 3)}s, {kind}({'K' if keyed else '_'}, _){most})"]
        if self.states and self.chance(25):
            literals.append(self._asks("K" if keyed else "'k'", "1", False))
        choice = self.number(0, 9)
        if choice < 6:
            if self.chance(60):
                x = self._new("Q")
                literals.append(f"while w: collect p: {kind}({'K' if keyed else '_'}, {x})")
                value = self.pick(self._totals(x, "p"))
                tail, place = self._tail("K" if keyed else "'k'", [], value)
                key = "K" if keyed else "'k'"
                self._add(type, key, place or value, ", ".join(literals), tail, self._since(["w"]))
            else:
                self._collecting(type, literals, ["w"], [], keyed, [])
            return
        numbers: list[str] = []
        if choice < 8:
            literals.append(f"while w: not {self._type()}({'K' if keyed else '_'}, {self.pick(['_', '2'])})")
        else:
            atom, y = self._atom(key="K" if keyed else "_")
            literals += [
                f"j: {atom}",
                self.pick(["w before j", "j during w", "overlap(w, j) >= 1", "w meets j", "end(j) <= end(w)"]),
            ]
            numbers = [y] if y else []
        key = "K" if keyed else "'k'"
        tail, place = self._tail(key, numbers, "duration(w)")
        self._add(
            type, key, place or self._value([*numbers, "duration(w)"]), ", ".join(literals), tail, self._since(["w"])
        )

    def _held(self) -> tuple[str, list[str], str]:
        """A predicate that may be held, its arguments, and the variable of its number."""
        name = self.pick([s for s in self.states if s != "known"] or ["known"])
        if name == "known":
            return "known(X)", [], "X"
        if self.states[name] == 1:
            return f"{name}(K)", ["K"], ""
        number = self.pick(["X", "X", "_", "1"])
        return f"{name}({self.pick(['K', 'K', 'K', '_'])}, {number})", [], number if number == "X" else ""

    def _holding(self, type: str) -> None:
        held, _, x = self._held()
        literals, numbers = [f"x: holding {held}"], [x] if x else []
        key = self._key(held)
        if self.chance(40):
            atom, y = self._atom()
            literals += [f"o: {atom}", self.pick(["o during x", "x before o", "overlap(o, x) > 0", "start(o) >= start(x), end(o) <= end(x)",
                                                  "x meets o", "{x, o} within 6s"])]  # fmt: skip
            numbers += [y] if y else []
            key = self._key(", ".join(literals))
        if self.chance(25):
            literals.append(f"w: {self.pick(['extend', 'from_end', 'extend_backward'])}(x, {self.number(1, 3)}s)")
            literals.append(f"while w: not {self._type()}({self.pick([key, '_'])}, _)")
        elif self.chance(25):
            q = self._new("Q")
            literals.append(
                f"{self.pick(['while x', 'last 2', 'all'])}: collect p: {self._type()}({self.pick([key, '_'])}, {q})"
            )
            value = self.pick(self._totals(q, "p"))
            self._add(type, key, value, ", ".join(literals), self._tail(key, [], value, 0)[0], self._since(["x"]))
            return
        if self.chance(30):
            literals.append(
                self.pick(["duration(x) > 1", "duration(x) <= 4", *([self._test(numbers)] if numbers else [])])
            )
        tail, place = self._tail(key, numbers, "duration(x)")
        self._add(
            type,
            key,
            place or self._value([*numbers, "duration(x)", "duration(x)"]),
            ", ".join(literals),
            tail,
            self._since(["x"]),
        )

    def _spans(self, type: str) -> None:
        """How long facts held within windows."""
        held, _, x = self._held()
        keyed = False
        if self.chance(50):
            literals = [f"w: every({self.number(2, 6)}s{self.pick(['', ', 2s'])})"]
        else:
            atom, _ = self._atom()
            keyed = "K" in atom
            literals = [
                f"o: {atom}",
                f"w: {self.pick(['extend', 'from_end', 'extend_backward', 'shift_backward'])}(o, {self.number(2, 5)}s)",
            ]
        key = self._key(held) if not keyed else "K"
        bound = keyed or "K" not in held
        none = " or none" if bound and self.chance(25) else ""
        literals.append(f"while w: collect x: holding {held}{none}")
        if self.chance(30):
            literals.append(
                self.pick(["duration(x) > 1", f"{x} != 1" if x else "duration(x) < 4", "start(x) > start(w)"])
            )
        if self.chance(20):
            literals.append(self._asks(key, x or "1", False))
        options = [
            "sum(duration(x))",
            "sum(duration(x))",
            "count(x)",
            "max(duration(x))",
            "last(end(x))",
            "sum(overlap(x, w))",
        ]
        options += [f"sum({x})", f"last({x})", f"count(distinct {x})", f"sum(duration(x) where {x} > 0)"] if x else []
        value = self.pick(options)
        tail, place = self._tail(key, [], value)
        self._add(type, key, place or value, ", ".join(literals), tail)

    def _run(self, type: str) -> None:
        self._write_run(
            type, _MixedRun(self.number, choosing=self.pick([0, 50, 100]), windows=60, absent=self.pick([0, 40]))
        )

    def _write_run(self, type: str, writer: RunWriter) -> None:
        main = self.pick(["v", "v", *self.derived * 2])
        text = writer._run(main)
        self.runs += 1
        head, _, body = text.partition(" <- ")
        match = re.fullmatch(r"e\((\w+), (.*)\)", head)
        assert match is not None, head
        tail = self._tail(match[1], [], "1", 0)[0] if "LONGEST" not in body and "SHORTEST" not in body else ""
        self._add(type, match[1], match[2], body.removesuffix("."), tail)

    def _recursion(self, type: str) -> None:
        """A type that rests on itself, in order of time."""
        base, _ = self._atom(key="K", number="X", type=self._type())
        base = re.sub(r"\((?:_|'k'), ", "(K, ", base)
        first = "X" if "X" in base else "1"
        self._add(type, "K", first, base)
        step = f"{self._type()}(K, Y)"
        asked = self._asks("K", "Y", False)
        policy = self.pick(["", "", "[recent]", "[chronological]"])
        self._add(type, "K", self.pick(["X", "Y", "X + 1", "coalesce(Y, X) mod 3"]), self.pick([
            f"({type}(K, X) SEQ{policy} {step}).{self.number(3, 6)}",
            f"NOT(n(K, _)).[{type}(K, X), {step}]",
            f"NOT({type}(K, _)).[{type}(K, X), {step}]",
            f"({type}(K, X) SEQ {step}).6 WHERE {asked}",
            f"i: {type}(K, X), j: {self.pick(INPUTS)}(K, Y), h: v(K, _), w: from_end(h, 1s), h before j, while w: not n(K, _), i before j",
        ]))  # fmt: skip


class _MixedRun(RunWriter):
    """A run whose events have one number."""

    def _result(self, count: int) -> str:
        return _first(super()._result(count))


def _first(text: str) -> str:
    """The first of two values."""
    depth = 0
    for i, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            return text[:i]
    return text


def write_mixture(number: Number) -> str:
    return MixtureWriter(number).program()


def happening(
    text: str, number: Number, event: Callable[[str, int], Event], writer: MixtureWriter, lengths: Sequence[int]
) -> Story:
    """A history of events that `event` makes, of these lengths, and a session of the program that it disturbs."""
    actions = happenings(number, event, writer.told)
    if writer.runs:
        actions = few(actions, writer.pick([6, 8, 10]))
    opened = settings(writer, actions)
    chosen = "LONGEST" in text or "SHORTEST" in text
    if chosen and opened["emit"] == "final" and opened["longest"] is None and writer.chance(70):
        opened["longest"] = max(lengths)
    return Story(text, actions, **opened)  # type: ignore[arg-type]


def story(kind: str, seed: object) -> Story:
    """A program, and a history that disturbs it."""
    number = Random(f"{kind} {seed}").randint
    choices, writer = Choices(number), MixtureWriter(number)
    text = writer.program()
    lengths = choices.pick([(0,), (0, 0, 0, 1, 2), (0, 1, 2, 3, 5)])
    keys: Sequence[Value] = choices.pick(["k", "kkkm", "kkkm", "km", ["k", "k", "m", None]])
    types = [type for type in INPUTS if f"{type}(" in text] or ["a"]
    values: list[Value] = choices.pick([[1, 1, 2], [1], [0, 1, 2, 3], [0, 1, 2, 3, None], [1, 1.0, 2, 2.5, 0]])

    def event(id: str, end: int) -> Event:
        args = (choices.pick(keys), choices.pick(values))
        return Event(choices.pick(types), args, end - choices.pick(lengths), end, id)

    return happening(text, number, event, writer, lengths)
