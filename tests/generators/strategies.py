"""Random syntax trees, patterns and histories."""

from __future__ import annotations

from hypothesis import strategies as st

from augury.algebra.terms import Const, Var, Wild
from augury.core.clock import Duration, Timestamp
from augury.core.model import Event, Iri
from augury.language.rules import syntax as s

NAMES = st.sampled_from(
    [
        "a",
        "b",
        "wind",
        "last",
        "event",
        "seq",
        "start",
        "Fire",
        "while_",
        "not_",
        "tick",
        "in",
        "between",
        "every",
        "was",
        "none",
        "top",
        "since",
        "once",
        "at",
        "most",
    ]
)
LOWER = st.sampled_from(["a", "b", "wind", "last", "event", "start", "min", "recent", "output", "once", "at"])
VARS = st.sampled_from(["X", "Y", "Loc", "_Z", "W2"])
LABELS = st.sampled_from(["o", "s", "w", "i1"])

variables = st.builds(Var, VARS)
durations = st.integers(0, 10**12).map(lambda us: Const(Duration(us)))
constants = st.one_of(
    st.integers(-(2**63) + 1, 2**63 - 1).map(Const),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda f: Const(f + 0.0)),
    st.text(max_size=6).map(Const),
    st.sampled_from([Const(True), Const(False), Const(None), Const(Iri("http://example.org/x"))]),
    durations,
    st.integers(0, 4 * 10**15).map(lambda us: Const(Timestamp(us))),
)
policies = st.one_of(
    st.builds(
        s.PolicyClause,
        st.sampled_from(["recent", "chronological", "unrestricted"]),
        st.sampled_from(["longest", "shortest"]),
    ),
    st.builds(lambda v, p: s.PolicyClause("recent", "by", v, p), VARS, st.lists(VARS, max_size=2).map(tuple)),
)


def _calls(inner: st.SearchStrategy[s.Node]) -> st.SearchStrategy[s.Node]:
    return st.builds(lambda n, a: s.CallTerm(n, tuple(a)), NAMES, st.lists(inner, max_size=3))


def _negative(node: s.Node) -> s.Node:
    # The reader folds a sign into a number.
    if isinstance(node, Const) and type(node.value) in (int, float):
        return Const(0 - node.value)  # type: ignore[operator]
    return s.Arith("-", (node,))


values: st.SearchStrategy[s.Node] = st.recursive(
    st.one_of(variables, constants, st.builds(Wild), st.builds(s.BareName, LOWER)),
    lambda inner: st.one_of(
        _calls(inner),
        st.builds(
            lambda op, x, y: s.Arith(op, (x, y)), st.sampled_from(["+", "-", "*", "/", "//", "mod", "**"]), inner, inner
        ),
        inner.map(_negative),
    ),
    max_leaves=6,
)
conditions: st.SearchStrategy[s.Node] = st.one_of(
    st.builds(lambda x, y: s.Chain((x, y), ("<",)), values, values),
    st.builds(lambda x, y, z: s.Chain((x, y, z), ("<=", "!=")), values, values, values),
    _calls(values),
    _calls(values).map(s.Not),
    st.builds(
        lambda f, x, y, c: s.Chain((s.CallTerm(f, (x, s.Where(y, c))), y), ("<",)),
        NAMES,
        values,
        values,
        _calls(values),
    ),
    st.builds(lambda f, x, c: s.Chain((s.CallTerm(f, (s.Filtered(c),)), x), (">",)), NAMES, values, _calls(values)),
    st.builds(s.Among, values, st.lists(values, min_size=1, max_size=3).map(tuple), st.booleans()),
    st.builds(s.Between, values, values, values),
    st.builds(lambda a, b: s.Group((a, b)), _calls(values), _calls(values)),
)
lengths = st.one_of(st.integers(0, 10**6).map(Const), durations)
OPERATORS = ["SEQ", "NEXT", "THEN", "AND", "PAR", "OR", "EQUALS", "MEETS", "DURING", "STARTS", "FINISHES"]


def _compound(inner: st.SearchStrategy[s.Node]) -> st.SearchStrategy[s.Node]:
    return st.one_of(
        st.builds(
            lambda op, x, y, p: s.Binary(op, x, y, p), st.sampled_from(OPERATORS), inner, inner, st.none() | policies
        ),
        st.builds(s.Window, inner, lengths),
        st.builds(s.Power, inner, st.integers(1, 9), st.booleans()),
        st.builds(
            s.Quantified,
            inner,
            st.integers(0, 3),
            st.none() | st.integers(0, 3),
            st.none() | st.sampled_from(["NEXT", "THEN", "SEQ"]),
        ),
        st.builds(lambda n, x, y, p: s.Not(n, (x, y), p), inner, inner, inner, st.none() | policies),
        st.builds(s.Where, inner, conditions),
    )


patterns: st.SearchStrategy[s.Node] = st.recursive(
    st.one_of(_calls(values), st.builds(s.BareName, LOWER), st.integers(0, 99).map(Const)), _compound, max_leaves=5
)
literals: st.SearchStrategy[s.Node] = st.one_of(
    patterns,
    st.builds(s.Labelled, LABELS, patterns),
    st.builds(s.While, LABELS, st.just(False), patterns),
    st.builds(s.While, LABELS, st.just(True), patterns, st.none() | LABELS, st.booleans()),
    st.builds(s.Last, st.integers(1, 9), st.booleans(), patterns, st.none() | LABELS, st.booleans()),
    st.builds(
        lambda i, r, j: s.Binary(r, s.BareName(i), s.BareName(j)),
        LABELS,
        st.sampled_from(["BEFORE", "OVERLAPS", "MET_BY", "DURING"]),
        LABELS,
    ),
    st.builds(lambda i, j, d: s.WithinSet(s.Group((s.BareName(i), s.BareName(j))), d), LABELS, LABELS, durations),
    conditions,
)
attributes = st.lists(
    st.builds(s.AttributeDecl, LOWER, st.sampled_from(["int", "string", "any", "iri"])), max_size=3
).map(tuple)
comments = st.builds(
    s.Comments,
    st.lists(st.sampled_from(["% one", "# two", "/* three */"]), max_size=2).map(tuple),
    st.sampled_from(["", "% after"]),
)
choices = st.builds(
    s.Choice,
    st.none() | st.lists(variables, max_size=2).map(tuple),
    st.sampled_from(["ALL", "LONGEST", "SHORTEST"]),
    st.none() | st.just(s.Skip("PAST END")) | st.builds(s.Skip, st.sampled_from(["TO FIRST", "TO LAST"]), LOWER),
)
tops = st.builds(
    s.TopClause,
    st.none() | st.integers(0, 9),
    values,
    st.booleans(),
    st.booleans(),
    st.lists(variables, max_size=2).map(tuple),
    st.none() | variables,
)
at_mosts = st.builds(s.AtMostClause, st.integers(0, 9), st.lists(variables, max_size=2).map(tuple), st.none() | lengths)
statements: st.SearchStrategy[s.Statement] = st.one_of(
    st.builds(
        s.RuleStatement,
        _calls(values),
        st.lists(literals, min_size=1, max_size=3).map(tuple),
        st.none() | LOWER,
        st.none() | policies,
        st.sampled_from(["event", "event", "fact", "no fact"]),
        st.none() | choices,
        st.none() | st.just("END") | values,
        st.none() | tops,
        st.none() | at_mosts,
        comments=comments,
    ),
    st.builds(
        lambda head, body, key, comments: s.RuleStatement(head, body, makes="latest", key=key, comments=comments),
        _calls(values),
        st.lists(literals, min_size=1, max_size=3).map(tuple),
        st.lists(variables, max_size=2).map(tuple),
        comments,
    ),
    st.builds(
        s.StaticRule,
        _calls(values),
        st.lists(conditions, max_size=2).map(lambda b: (*b, s.Cut()) if b else ()),
        st.none(),
        comments=comments,
    ),
    st.builds(s.EventDecl, NAMES, attributes, comments=comments),
    st.builds(s.StaticDecl, NAMES, attributes, comments=comments),
    st.builds(s.FunctionDecl, LOWER, attributes, st.sampled_from(["any", "float"]), comments=comments),
    st.builds(s.PolicyDecl, policies, comments=comments),
    st.builds(s.TickDecl, st.integers(1, 10**9).map(lambda us: Const(Duration(us))), comments=comments),
    st.builds(s.Include, st.sampled_from(["other.aug", 'a "quoted" name.aug']), comments=comments),
    st.builds(
        s.OutputDecl, st.lists(st.builds(s.BareName, LOWER), min_size=1, max_size=3).map(tuple), comments=comments
    ),
)
modules = st.builds(s.Module, st.lists(statements, max_size=4).map(tuple))


# Programs that mean something: events a, b, c, d with one argument each

TYPES = ["a", "b", "c", "d"]
_atoms = st.builds(lambda t, v: f"{t}({v})", st.sampled_from(TYPES), st.sampled_from(["X", "Y", "Z", "_", "1"]))
_BINARY = ["SEQ", "AND", "PAR", "EQUALS", "MEETS", "DURING", "STARTS", "FINISHES"]


def _texts(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds(lambda x, op, y: f"({x} {op} {y})", inner, st.sampled_from([*_BINARY, "SEQ", "AND", "OR"]), inner),
        st.builds(lambda n, x, y: f"(NOT({n}).[{x}, {y}])", _atoms, inner, inner),
        st.builds(lambda x, n: f"({x}).{n}", inner, st.integers(1, 6)),
        st.builds(lambda x, n, c: f"({x} ^ {n}{c})", _atoms, st.integers(2, 3), st.sampled_from(["", " CONSECUTIVE"])),
    )


pattern_texts = st.recursive(_atoms, _texts, max_leaves=4)


@st.composite
def histories(draw: st.DrawFn, most: int = 9, types: list[str] = TYPES) -> list[Event]:
    """A few events, close together, some of them intervals, with ids."""
    count = draw(st.integers(0, most))
    events: list[Event] = []
    for number in range(count):
        start = draw(st.integers(0, 7))
        end = start + draw(st.sampled_from([0, 0, 0, 1, 2, 3]))
        value = draw(st.sampled_from([1, 2, 1.0]))
        events.append(Event(draw(st.sampled_from(types)), (value,), start, end, f"e{number}"))
    return events
