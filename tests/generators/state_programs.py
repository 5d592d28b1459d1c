"""Random programs whose operators hold state in every way that there is, and histories that disturb it.

`tests/generators/programs.py` has programs over the whole language. These add what it has little of: several collects in a rule, in
all their forms; windows by the clock beside facts and without events; facts that events make, that `was` looks back at,
and that a session asserts; and rules in layers over all of them. A history goes on for long enough that a lateness lets
a session forget, with late events, revocations soon after what they revoke, and advances of the clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from augury.core.model import Event, Fact, HistoryItem, Revocation, Term, Value
from augury.knowledge.timeline import Statement
from tests.generators.programs import COLUMNS, DERIVED, WRITERS, Choices, Number, Part, Writer, part, write_event
from tests.generators.spaseq_programs import choosing, example, varied

Disturbance = Literal["prune", "save"]
Action = list[HistoryItem] | int | Statement | Disturbance  # a push, an advance, a fact that changes, or a disturbance
_PLAIN = ["e", "f", "g", "g", "h"]


@dataclass
class StateWriter(Writer):
    """Writes rules over collects, clock windows and facts that change."""

    made: list[str] = field(default_factory=list)  # the predicates whose facts change

    # Facts

    def changing(self) -> None:
        """Facts that events make and end, each predicate in one of several ways."""
        self.clauses.append(self.pick([
            "fact on(X) <- c(X).\nfact not on(X) <- d(X, _).",
            "fact on(X) <- c(X).\nfact not on(X) <- b(X) WHERE X > 1.",
            "fact on(X) <- (a(X) SEQ c(_)).4.\nfact not on(X) <- d(X, 'k').",
            "fact on(X) <- c(X), not was on(X).\nfact not on(X) <- c(X), was on(X).",
            "fact on(X) <- o: c(X), w: extend(o, 2s), while w: not d(X, _).",
            "fact on(X) <- w: every(3s), while w: collect c(X).\nfact not on(X) <- d(X, _).",
            "fact on(X) <- o: c(X), last 2: collect d(Y, _), count() > 1.\nfact not on(X) <- b(X).",
            "up(X) <- c(X), not was on(X).\ndown(X) <- c(X), was on(X).\nfact on(X) <- up(X).\nfact not on(X) <- down(X).",
        ]))  # fmt: skip
        self.made = ["on"]
        if self.chance(50):
            self.clauses.append(self.pick(["fact at(X, Y) <- p(loc(X, Y)).\nfact not at(X, 1) <- d(X, _).",
                                           "fact at(X, X) <- a(X) SEQ b(X).", "at(X, Y) :- on(X), on(Y).",
                                           "fact latest at(X, Y) PER (X) <- p(loc(X, Y)).\nfact not at(X, _) <- d(X, _).",
                                           "fact latest at(X, Y) PER (X) <- (a(X) SEQ b(Y)).4.\nfact not at(X, 1) <- d(X, _).",
                                           "fact latest at(X, Y) PER () <- b(X), a(Y).",
                                           "fact latest at(X, Y) PER (X) <- c(X), a(Y), not was at(X, Y).",
                                           "fact latest at(X, Y) PER (X) <- p(loc(X, Y)).\nfact latest at(X, Y) PER (X) <- d(X, _), b(Y).\n"
                                           "fact not at(X, _) <- c(X)."]))  # fmt: skip
            self.made.append("at")
        if self.chance(40):
            self.clauses.append("static known(x: int).")
            self.made.append("known")

    def fact(self, numbers: Sequence[str], bound: set[str] | None = None) -> str:
        """A condition on facts that change; it may bind a further variable."""
        name, x = self.pick(self.made), self.pick(numbers or ["1"])
        lead = self.pick(["", "", "", "not ", "was ", "not was "])
        if name != "at":
            return f"{lead}{name}({x})"
        if "not" not in lead and bound is not None and self.chance(50):
            y = self.new("V")
            bound.add(y)
            return f"{lead}at({x}, {y})"
        return f"{lead}at({x}, {self.pick([*numbers, '1', '_'])})"

    def facts_rule(self, type: str) -> None:
        """A rule with conditions on facts, at any place."""
        bound: set[str] = set()
        first, second = (self.pick(["a(X)", "b(X)", "a(X)", "c(X)", *self._numeric("X")]),
                         self.pick(["b(Y)", "a(Y)", "b(X)", "d(Y, _)", *self._numeric("Y")]))  # fmt: skip
        inner = ["X"]
        both = ["X"] if "(X" in second else ["X", "Y"]
        c, d = self.fact(inner, bound), self.fact(both)
        policy = self.pick(["recent", "chronological", "recent per (X)", "recent shortest"])
        body = self.pick([
            f"{first} WHERE {c}",
            f"({first} WHERE {c}) SEQ {second}",
            f"({first} SEQ {second}).5 WHERE ({c}, {d})",
            f"({first} WHERE {c}) AND {second} WHERE {d}",
            f"{first} SEQ[{policy}] {second} WHERE {d}",
            f"({first} WHERE {c}) SEQ[{policy}] {second}",
            f"NOT(c(N1) WHERE {self.fact(['N1', 'X'])}).[{first}, {second}]",
            f"NOT(c(_)).[{first}, {second}] WHERE {c}",
            f"o: {first}, w: extend(o, 3s), while w: not (b(N1) WHERE {self.fact(['N1', 'X'])}), {c}",
            f"o: {first}, w: extend_backward(o, 3s), while w: not b(X), {c}",
            f"({first} ^ 2) WHERE {c}",
        ])  # fmt: skip
        names = {"X"} | (set(both) if second in body else set()) | {v for v in bound if v in body}
        self.add(self.head(type, names), body + self.at_most(names))

    def _numeric(self, variable: str) -> list[str]:
        """Atoms of derived types whose first column is a number."""
        return [f"{t}({variable}{', _' * (len(COLUMNS[t]) - 1)})" for t in self.reads[-2:] if COLUMNS[t][:1] == "n"]

    # Collects

    def labelled(self, count: int) -> tuple[list[str], Part, list[str]]:
        """Mostly plain atoms: a rule that holds little collects little."""
        if count > 1 or self.chance(30):
            return super().labelled(count)
        name = self.pick(["X", "X", "_"])
        atom = self.pick(["a({})", "b({})", "c({})", "d({}, _)", *self._numeric("{}")]).format(name)
        return [f"i: {atom}"], part(atom, more=[name] if name != "_" else []), ["i"]

    def collects_rule(self, type: str) -> None:
        """A rule that collects once or several times, in windows, of the last ones, of exactly n, or of none."""
        literals, body, labels = self.labelled(self.pick([1, 1, 1, 2]))
        literals += self.relations(labels) if len(labels) > 1 else []
        anchor = self.pick(labels)
        lengths = [self.number(1, 5), self.number(1, 5)]
        kinds = [
            "extend_backward",
            "extend_backward",
            "extend",
            "from_end",
            "from_start",
            "shift_backward",
            "shift_forward",
        ]
        windows = ["w"]
        literals.append(f"w: {self.pick(kinds)}({anchor}, {lengths[0]}s)")
        if self.chance(30):
            literals.append(f"v: {self.pick(kinds)}({self.pick([anchor, 'w'])}, {lengths[1]}s)")
            windows.append("v")
        shared = self.pick([*body.numbers, "G", "G", "_", "_"])
        self._collecting(type, literals, body, [*windows, anchor], shared, [*labels, "w"])

    def _collecting(
        self, type: str, literals: list[str], body: Part, windows: Sequence[str], shared: str, labels: Sequence[str]
    ) -> None:
        """Collects, conditions on their groups, a ranking and a head."""
        count, totals, groups, each = self.pick([1, 1, 1, 2, 2, 3]), list[str](), list[str](), list[str]()
        types = self.some(["a", "b", "a", "b", "c", "d"], 1, 1)  # few types, so that there is something to collect
        for i in range(count):
            n, p = f"Q{i}", f"p{i}"
            kind = self.pick([*types * 3, *types, "a", "b", *[t for t in self.reads[-2:] if COLUMNS[t][:1] == "n"]])
            key = self.pick([shared, shared, "_"])
            rest = ["_"] * (len(COLUMNS[kind]) - 1)
            args = [n, *rest] if COLUMNS[kind][:2] != "nn" else [key, n, *rest[1:]]
            own = [n]
            if args[0] == n and self.chance(35) and key != "_":
                args[0], own = key, []
            atom = f"{kind}({', '.join(args)})"
            if own and self.chance(15):
                atom = f"({atom} {self.pick(['SEQ', 'OR', 'AND'])} {self.pick(['a', 'b'])}({n}))"
            if own and self.chance(15):
                atom = f"({atom} WHERE {self.test(own)})"
            how = self.pick([*[f"while {w}" for w in windows], f"while {windows[0]}", "last 1", "last 2", "last 3",
                             "exactly 1", "exactly 2"])  # fmt: skip
            outside = key == "_" or key in body.sure or key not in args
            none = outside and self.chance(40)
            if key in args and key not in body.sure and key != "_":
                groups.append(key)
            literals.append(f"{how}: collect {p}: {atom}{' or none' if none else ''}")
            if self.chance(20):
                literals.append(self.pick([f"start({p}) >= start({labels[0]}) - 2", f"end({p}) != end({labels[0]})",
                                           f"duration({p}) < 2"]))  # fmt: skip
            if own and self.made and self.chance(35):
                literals.append(self.fact([*own, *own, *body.numbers]))
            mine = [f"count({p})", f"last(end({p}))"]
            mine += [f"{f}({n})" for f in ("sum", "min", "max", "first", "last", "avg")] if own else []
            mine += [f"count(distinct {n})", f"nth({n}, 2)", f"arg_max({n}, end({p}))"] if own else []
            filtered = self.pick(["sum", "last", "first", "max", "median", "count"]) if own else "count"
            mine.append(
                f"{filtered}({self.pick([n, p]) if filtered == 'count' and own else n if own else p} where end({p}) > 4)"
            )
            mine += [f"count(where {n} != 2)", f"nth({n}, 2 where {n} > 1)"] if own else []
            totals += mine
            each.append(self.pick(mine))
        if self.chance(25):
            literals.append(f"{self.pick(totals)} {self.pick(['>= 1', '< 3', '= 1', '!= 2'])}")
        if self.made and self.chance(15):
            literals += [f"N8 = {self.pick(totals)}", self.fact(["N8"])]
        names = [v for v in [*groups, *body.numbers] if self.chance(70)]
        args = [self.pick([*names, *totals]) if k == "n" else "'k'" for k in COLUMNS[type]]
        # Every collect has an aggregate in the head.
        args[0] = each[0] if len(each) == 1 else " + ".join(f"coalesce({t}, -1)" for t in each)
        if "n" in COLUMNS[type][1:] and names:
            args[COLUMNS[type].index("n", 1)] = self.pick(names)
        top = ""
        if self.chance(20):
            per = f" PER ({self.pick(names)})" if names and self.chance(40) else ""
            top = f" TOP {self.pick([1, 2, 'ALL'])} BY {args[0]}{self.pick(['', ' ASC'])}{per}"
            if self.chance(50) and len(args) > 1 and COLUMNS[type][1] == "n":
                args[1], top = "R9", f"{top} AS R9"
        since = self.since(labels) if self.chance(20) else ""
        tail = top + self.at_most({*names, *(["R9"] if top.endswith("R9") else [])})
        self.add(f"{type}({', '.join(args)}){since}", ", ".join(literals) + tail)

    # Windows by the clock, and sessions

    def session(self) -> tuple[list[str], list[str]]:
        """A session window, and its key."""
        atom = self.pick(["a({})", "b({})", "c({})", "d({}, _)", *self._numeric("{}")])
        key = self.pick(["S1", "S1", "_"])
        most = self.pick(["", "", f", most = {self.number(2, 9)}s"])
        window = f"w: session({self.number(1, 4)}s, {atom.format(key)}{most})"
        return ([window], []) if key == "_" else ([window, "S1 != 99"], ["S1"])

    def clock_rule(self, type: str) -> None:
        """A rule over clock windows: beside facts, events or nothing; with what must not be inside, or collects."""
        size, hop = self.number(1, 5), self.pick(["", "", f", {self.number(1, 4)}s"])
        origin = self.pick(["", "", "", f", from = {self.number(-2, 3)}"])
        literals, sure = [f"w: every({size}s{hop}{origin})"], list[str]()
        windows = ["w"]
        if self.chance(40):
            literals, sure = self.session()
        elif self.chance(25):
            literals.append("v: previous(w)")
            windows.append("v")
        if self.chance(40):
            literals.append("shop(K)")
            sure.append("K")
            self.clauses += [] if any("shop(" in c for c in self.clauses) else ["shop(1). shop(2). shop('q')."]
        if self.made and self.chance(50):
            literals.append(self.fact([*sure, "1"]))
        event = part("")
        if self.chance(25):
            found, event, _ = self.labelled(1)
            literals += [*found, self.pick(["i inside w", "i inside w", "w contains i", "i before w", "i meets w"])]
        sure += event.numbers
        if self.made and self.chance(40):  # facts asked with a value that only the window gives
            values = ["start(w) - end(w) + 2", "length(w)", "length(w) - 1"]
            values += ["end(i) - start(w)", "end(w) - start(i)"] * 2 if event.text else []
            literals += [f"T9 = {self.pick(values)}", self.fact(["T9", "T9", *sure])]
        if self.chance(40):
            inside = self.pick(["a({})", "b({})", "c({})", "d({}, _)", *self._numeric("{}")])
            text = inside.format(self.pick([*sure, "_", "_"]))
            if self.chance(20):
                text = f"({inside.format('N1')} WHERE {self.fact(['N1']) if self.made else 'N1 > 1'})"
            literals.append(f"while {self.pick(windows)}: not {text}")
            if self.chance(60):
                names = [v for v in sure if v != "K"] or ["1"]
                args = [self.pick([*names, "start(w)", "length(w)"]) if k == "n" else "'k'" for k in COLUMNS[type]]
                since = self.since(["w"]) if self.chance(15) else ""
                self.add(f"{type}({', '.join(args)}){since}", ", ".join(literals) + self.at_most(sure))
                return
        body = part("", more=sure)
        self._collecting(type, literals, body, windows, self.pick([*sure, "G", "_"]), ["w"])

    # Runs over what rules derive

    def run_rule(self, type: str) -> None:
        """A plain run; `tests/generators/run_programs.py` has the others."""
        one, two = (self.pick(["a({})", "b({})", "c({})", *self._numeric("{}"), *self._numeric("{}")]) for _ in "12")
        body, value = self.pick([
            (f"{one.format('X')} NEXT {two.format('Y')} PER ()", "Y"),
            (f"{one.format('X')} NEXT {two.format('X')}", "X"),
            (f"({one.format('X')} NEXT {two.format('Y')}+).6 PER ()", "sum(Y)"),
            (f"({one.format('X')}{{2}}).6 PER ()", "last(X)"),
            (f"(({one.format('X')})+).4 WHERE X >= prev(X) PER ()", "count(X)"),
        ])  # fmt: skip
        args = [value if k == "n" else "'k'" for k in COLUMNS[type]]
        self.add(f"{type}({', '.join(args)})", body + self.at_most([]))

    # Policies over what may still vanish

    def revised_rule(self, type: str) -> None:
        """A policy that chooses among longest runs, which a later event may replace, and rules that hold some of them."""
        if not self.clauses:
            grows = self.pick(["a(X)+ PER (X) LONGEST", "(a(X)+).6 PER (X) LONGEST", "a(X)+ PER () LONGEST"])
            value = "last(X)" if "()" in grows else "X"
            self.clauses += ["l(X) <- c(X).", f"l({value}) <- {grows}."]
        policy = self.pick(
            ["recent", "chronological", "recent shortest", "chronological shortest", "chronological by Y"]
        )
        first, second = self.pick([("l(X)", "b(Y)"), ("l(X)", "b(Y)"), ("b(X)", "l(Y)"), ("l(X)", "l(Y)")])
        body = self.pick([
            f"({first} {self.pick(['SEQ', 'SEQ', 'AND'])}[{policy}] {second}).{self.number(3, 9)}",
            f"(NOT[{policy}](d(_, _)).[{first}, {second}]).{self.number(3, 9)}",
            f"({first} SEQ[{policy}] {second}).{self.number(3, 9)} WHERE X <= Y",
            f"(l(X) SEQ d(Y, _)).{self.number(1, 3)} SEQ f(_)",
        ])  # fmt: skip
        if self.chance(self.throttles):
            body = self.pick(["l(X), Y = X", body])
        self.add(self.head(type, {"X", "Y"}), body + self.at_most(["X", "Y"]))


def _writing(*kinds: str, facts: int = 0, policies: int = 0, throttles: int = 8) -> Callable[[Number], str]:
    def write(number: Number) -> str:
        writer = StateWriter(number, throttles=throttles)
        writer.policies = writer.chance(policies)
        if writer.chance(facts):
            writer.changing()
        usable = [k for k in kinds if k != "facts" or writer.made]
        writer.write(usable, writer.heads([1, 2, 2, 3], _PLAIN))
        return writer.text()

    return write


KINDS: dict[str, Callable[[Number], str]] = {
    **WRITERS,
    "collects": _writing("collects", facts=20),
    "clock": _writing("clock", facts=40),
    "facts": _writing("facts", facts=100),
    "revised": _writing("revised"),
    "throttles": _writing("operator", "label", "collects", "clock", "facts", "run", facts=30, throttles=70),
    "throttled": _writing("revised", throttles=60),
    "layers": _writing("collects", "clock", "facts", "operator", "label", "policy", "run", facts=60, policies=40),
}


# Histories


@dataclass(frozen=True)
class Story:
    """A program, what happens to a session of it, and how it is opened. Lengths are in ticks."""

    text: str
    actions: tuple[Action, ...]
    facts: tuple[Fact, ...] = ()
    emit: Literal["early", "final"] = "early"
    lateness: int | None = None
    revisable: int | None = None  # how old a revoked event may be, where it is not the lateness
    longest: int | None = None
    language: Literal["rules", "spaseq"] = "rules"


def settings(choices: Choices, actions: Sequence[Action]) -> dict[str, object]:
    """How a session is opened."""
    lateness = choices.pick([None, 0, 0, 1, 2, 4, 8])
    lengths = [i.end - i.start for a in actions if isinstance(a, list) for i in a if isinstance(i, Event)]
    return {
        "emit": choices.pick(["early", "early", "final"]),
        "lateness": lateness,
        "revisable": choices.pick([None, None, None, 0, 3, 12]),
        "longest": choices.pick([None, max(lengths, default=0), 1]),
    }


def happenings(number: Number, events: Callable[[str, int], Event], facts: bool) -> tuple[Action, ...]:
    """What happens: `events` makes an event with an id that ends about a time. Short stories find most."""
    choices, time, done, actions = Choices(number), number(-2, 6), list[str](), list[Action]()
    disturbed, steps = choices.pick([20, 50, 90, 90]), choices.pick([4, 5, 6, 8, 8, 12, 25])
    sizes, back = choices.pick([(1,), (1, 1, 2), (1, 2, 4)]), choices.pick([(0, 0, 0, 1), (0, 0, 1, 2, 3, 6)])
    versions = choices.chance(30)
    revoking, gaps = choices.pick([2, 5, 8]), choices.pick([(0, 1, 1, 2), (0, 1, 2, 3, 7), (4, 6, 1)])
    for step in range(steps):
        time += choices.pick(gaps)
        which = number(0, 19)
        if which < revoking and done:
            actions.append(
                [Revocation(id) for id in dict.fromkeys(choices.some(done[-6:], 1, choices.pick([1, 1, 2])))]
            )
        elif which == 19:
            actions.append(time - choices.pick([0, 1, 2, 4]))
        elif which > 16 and facts:
            since = time - choices.pick([0, 0, 1, 3])
            retract, until = choices.chance(40), choices.pick([None, None, since + 2])
            fact = Fact("known", (choices.pick([1, 2, 3]),), since, None if retract else until)
            actions.append(Statement(fact, retract))
        else:
            push: list[HistoryItem] = []
            for i in range(choices.pick(sizes)):
                push.append(events(f"i{step}.{i}", time - choices.pick(back)))
                done.append(f"i{step}.{i}")
                if versions and choices.chance(40):
                    version = events(choices.pick(done[-5:]), time - choices.pick(back))
                    push.append(replace(version, version=choices.pick([1, 2, 3, 3, -1])))
                if choices.chance(3):
                    push.append(Revocation(f"i{step}.{choices.pick([i, i + 1])}"))
            if choices.chance(10):
                push.append(Revocation(choices.pick(done[-6:]), None, choices.pick([None, 1, 2]) if versions else None))
            actions.append(push)
        for disturbance in ("prune", "save"):
            if choices.chance(disturbed):
                actions.append(disturbance)
    return tuple(actions)


def graph_story(seed: object) -> Story:
    """A SPAseQ query, and graph events of its streams."""
    number = Random(f"state spaseq {seed}").randint
    choices = Choices(number)
    spec, graphs = choices.pick([example, varied, choosing])(number(0, 10**9))

    def event(id: str, end: int) -> Event:
        graph = choices.pick(graphs).event
        return Event(graph.type, graph.args, end, end, id)

    actions = happenings(number, event, False)
    return Story(spec.text, actions, language="spaseq", **settings(choices, actions))  # type: ignore[arg-type]


def story(kind: str, seed: object) -> Story:
    """A story of a kind, from a seed."""
    if kind == "spaseq":
        return graph_story(seed)
    number = Random(f"state {kind} {seed}").randint
    choices, text = Choices(number), KINDS[kind](number)
    lengths = choices.pick([(0,), (0, 0, 0, 1, 2), (0, 1, 2, 3, 5)])
    read = sorted({type for type in re.findall(r"\b([a-z])\(", text) if type in COLUMNS and type not in DERIVED}) or [
        "a"
    ]
    few = choices.chance(85)  # whether most values are equal

    def event(id: str, end: int) -> Event:
        made = write_event(number, id, lengths=lengths)
        if few or choices.chance(50):
            type = choices.pick([*read, *read, choices.pick(["a", "b", "c"])])
            values: dict[str, Value] = {
                "n": choices.pick([1, 1, 1, 1, 2]),
                "s": "k",
                "t": Term("loc", (1, choices.pick([1, 2]))),
            }
            made = Event(type, tuple(values[kind] for kind in COLUMNS[type]), made.start, made.end, id)
        return Event(made.type, made.args, end - (made.end - made.start), end, id)

    actions = happenings(number, event, "static known(x: int)." in text)
    opened = settings(choices, actions)
    if (
        "LONGEST" in text
    ):  # when such a run is final depends on more than the time (`tests/differential/test_runs_final.py`)
        opened["emit"] = "early"
    return Story(text, actions, **opened)  # type: ignore[arg-type]
