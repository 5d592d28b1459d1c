"""Random static programs: facts, recursion, negation, comparison, alternatives, cuts, and calls with any argument bound."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from augury.core.model import Fact, Value

FACTS = {"e": 2, "f": 1, "g": 2}
RULES = {"p": 2, "q": 1, "r": 2}
_VARIABLES = ["X", "Y", "Z"]
_CONSTANTS = ["1", "2", "'a'", "1.0"]


@st.composite
def terms(draw: st.DrawFn) -> str:
    return draw(st.sampled_from([*_VARIABLES, *_VARIABLES, "_", *_CONSTANTS]))


@st.composite
def atoms(draw: st.DrawFn, names: dict[str, int]) -> str:
    name = draw(st.sampled_from(sorted(names)))
    return f"{name}({', '.join(draw(terms()) for _ in range(names[name]))})"


@st.composite
def literals(draw: st.DrawFn, level: int) -> str:
    """A condition in a rule of the predicate with this number: negated are just those before it."""
    kind = draw(st.sampled_from(["atom", "atom", "atom", "atom", "not", "compare", "or"]))
    below = FACTS | dict(list(RULES.items())[:level])
    if kind == "atom":
        return draw(atoms(FACTS | RULES))
    if kind == "not":
        return f"not {draw(atoms(below))}"
    if kind == "compare":
        left, right = draw(st.sampled_from(_VARIABLES)), draw(st.sampled_from([*_VARIABLES, "1", "2"]))
        return f"{left} {draw(st.sampled_from(['!=', '=', '<', '<=']))} {right}"
    return f"({draw(atoms(FACTS | RULES))} or {draw(atoms(FACTS | RULES))})"


@st.composite
def clauses(draw: st.DrawFn, level: int) -> str:
    name, arity = list(RULES.items())[level]
    head = ", ".join(draw(st.sampled_from([*_VARIABLES, *_VARIABLES, "1", "'a'"])) for _ in range(arity))
    body = draw(st.lists(literals(level), min_size=1, max_size=3))
    given = set(re.findall("[XYZ]", "".join(b for b in body if re.match(r"[a-z]\(", b))))
    bind = draw(st.integers(0, 19)) > 0  # else the call must bind what the body does not
    body += [f"f({v})" for v in sorted(set(re.findall("[XYZ]", head + "".join(body))) - given) if bind]
    cut = ", !" if not re.search(r"[pqr]\(", "".join(body)) and draw(st.integers(0, 3)) == 0 else ""
    return f"{name}({head}) :- {', '.join(body)}{cut}."


CLOSURES = (
    "p(X, Y) :- e(X, Y).\np(X, Z) :- e(X, Y), p(Y, Z).",
    "p(X, Y) :- e(X, Y).\np(X, Z) :- p(X, Y), e(Y, Z).",
    "p(X, Z) :- p(X, Y), p(Y, Z).\np(X, Y) :- e(X, Y).",
    "p(X, Y) :- e(X, Y).\np(X, Z) :- g(Y, Z), p(X, Y).",
    "p(X, Y) :- n(X, Y).\np(X, Z) :- n(X, Y), p(Y, Z).\nn(X, Y) :- e(X, Y).\nn(X, Y) :- g(Y, X), not e(X, Y).",
)
CALLS = (
    "both(X, Y) <- b(X, Y) WHERE {0}(X, Y).",
    "first(X, Y) <- a(X) WHERE {0}(X, Y).",
    "second(X, Y) <- a(Y) WHERE {0}(X, Y).",
    "free(X, Y) <- a(_) WHERE {0}(X, Y).",
    "some(X) <- a(X) WHERE {0}(X, _).",
    "same(X) <- a(_) WHERE {0}(X, X).",
    "none(X) <- a(X) WHERE not {0}(X, _).",
    "neither(X, Y) <- b(X, Y) WHERE not {0}(X, Y).",
    "left(X, Y) <- (a(X) OR c(Y)) WHERE {0}(X, Y).",
)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A program as text. It may be one that is refused."""
    if draw(st.integers(0, 3)) == 0:
        lines = [draw(st.sampled_from(CLOSURES)), *draw(st.lists(clauses(1), max_size=2))]
        lines += ["q(X) :- f(X).", "r(X, Y) :- g(X, Y), X != Y."]
    else:
        lines = [draw(clauses(level)) for level in range(3) for _ in range(draw(st.integers(1, 3)))]
    calls = draw(st.lists(st.sampled_from(CALLS), min_size=1, max_size=4, unique=True))
    lines += [call.format(draw(st.sampled_from(["p", "r", "p"]))) for call in calls]
    if draw(st.booleans()):
        lines.append("one(X) <- a(X) WHERE q(X).")
    declared = [f"static {n}({', '.join(f'x{i}: any' for i in range(a))})." for n, a in FACTS.items()]
    return "\n".join([*declared, *lines])


values: st.SearchStrategy[Value] = st.sampled_from([1, 2, 3, 4, 1.0, 2.5, "a", "b", None])
plain_values: st.SearchStrategy[Value] = st.integers(1, 6)


@st.composite
def facts(draw: st.DrawFn, timed: bool = False) -> list[Fact]:
    kinds = draw(st.sampled_from([values, plain_values]))
    times = st.one_of(st.none(), st.integers(0, 6))
    found: list[Fact] = []
    for name, arity in FACTS.items():
        for row in draw(st.lists(st.tuples(*(kinds for _ in range(arity))), max_size=7)):
            since, until = (draw(times), draw(times)) if timed else (None, None)
            found.append(Fact(name, row, since, until))
    return found
