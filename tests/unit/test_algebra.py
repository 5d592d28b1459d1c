"""The algebra's properties: bounds, memory, keys, strata, sharing; and the nodes that SPAseQ needs."""

from __future__ import annotations

from random import Random

import pytest

import augury
from augury.algebra import relations
from augury.algebra.matching import Scalars
from augury.algebra.nodes import Join, Node, Scan
from augury.algebra.plan import Plan
from augury.algebra.properties import Properties, all_properties
from augury.algebra.relations import Bounds, Contradiction, Limit, Reason
from augury.algebra.strata import strata
from augury.algebra.terms import Var
from augury.core.clock import Clock, read_duration
from augury.core.model import Event
from augury.planner import optimise, physical_plan
from augury.planner.planning import Setting
from augury.planner.specs import InputSpec, JoinSpec, SetSpec, Spec
from augury.semantics.pattern_rows import World
from augury.semantics.static_calls import Static

HOUR = read_duration("1h")
TIMELY = """
timely(N, P) <- o: order(N, P, _), s: shipped(N, T), d: delivered(T), o before s, s before d,
    {o, s} within 12h, {s, d} within 36h.
"""


def properties_of(text: str) -> Properties:
    plan = augury.compile(text).plan
    return all_properties(plan)[plan.rules[-1].label]


# Bounds


@pytest.mark.parametrize("seed", range(40))
def test_a_large_table_is_closed_as_a_small_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By columns or by lists, with strict bounds and with the longest ones, the implied bounds are the same."""
    random = Random(seed)
    points = range(random.randint(2, 30))
    longest = random.choice([3, 10**6, 2**40, 2**62])
    said: list[tuple[int, int, Limit]] = []
    for _ in range(random.randint(1, 60)):
        x, y = random.sample(points, 2)
        said.append((x, y, Limit(random.randint(-longest // 9, longest), random.random() < 0.4)))

    def closed(many: int) -> list[Limit | None] | set[str]:
        monkeypatch.setattr(relations, "_MANY", many)
        table = Bounds[int]()
        for n, (x, y, limit) in enumerate(said):
            table.add(x, y, limit, Reason(str(n)))
        try:
            table.close()
        except Contradiction as found:
            return {reason.text for reason in found.reasons}
        return [table.limit(x, y) for x in points for y in points]

    assert closed(0) == closed(1000)


def test_bounds_add_up() -> None:
    table = Bounds[str]()
    table.add("x", "y", Limit(3))
    table.add("y", "z", Limit(4, strict=True))
    table.close()
    assert table.limit("x", "z") == Limit(7, strict=True)
    assert table.limit("z", "x") is None


def test_a_contradiction_names_its_reasons() -> None:
    table = Bounds[str]()
    table.add("x", "y", Limit(0, strict=True), Reason("x before y"))
    table.add("y", "x", Limit(0), Reason("y not after x"))
    with pytest.raises(Contradiction) as found:
        table.close()
    assert {r.text for r in found.value.reasons} == {"x before y", "y not after x"}


def test_on_a_known_tick_strict_bounds_are_whole() -> None:
    table = Bounds[str](tick=1000)
    table.add("x", "y", Limit(0, strict=True))
    table.close()
    assert table.limit("x", "y") == Limit(-1000)


def test_twelve_and_thirty_six_hours_are_forty_eight() -> None:
    found = properties_of(TIMELY)
    assert found.table.limit(("d", "e"), ("o", "s")) == Limit(48 * HOUR)
    assert found.longest == 48 * HOUR


def test_each_operator_keeps_state_for_its_bound() -> None:
    found = properties_of(TIMELY)
    kept = [(m.side, m.keep) for m in found.memory]
    assert kept == [("left", 36 * HOUR), ("right", -1), ("left", 12 * HOUR), ("right", -1)]
    assert found.horizon == 36 * HOUR


@pytest.mark.parametrize(
    ("text", "horizon"),
    [
        ("e <- a.", 0),
        ("e <- a SEQ b.", None),
        ("e <- (a SEQ b).5s.", 5_000_000),
        ("e <- (a SEQ b SEQ c).5s.", 5_000_000),
        ("e <- (a AND b).5s.", 5_000_000),
        ("e <- (a SEQ b).5s SEQ c.", None),
        ("e <- (NOT(c).[a, b]).5s.", 5_000_000),
        ("e <- a EQUALS b.", 0),
        ("e <- o: a, w: extend(o, 6s), while w: not b.", 6_000_000),
        ("e(count()) <- o: a, w: extend_backward(o, 6s), while w: collect b.", 6_000_000),
        ("d <- (a SEQ b).5s. e(count()) <- o: d, w: extend_backward(o, 6s), while w: collect b.", 11_000_000),
        ("e <- i: a, j: b, start(j) - end(i) < 3s, i before j.", 3_000_000),
        ("e <- i: a, j: b, i during j.", None),
        ("e <- ((a OR b) SEQ c).5s.", 5_000_000),
    ],
)
def test_horizon_follows_from_windows_and_bounds(text: str, horizon: int | None) -> None:
    assert properties_of(text).horizon == horizon


def test_when_an_absence_is_certain() -> None:
    assert properties_of("e <- o: a, w: extend(o, 6h), while w: not b.").certain_when == (
        "while w: at end(w) = end(o) + 6h",
    )
    assert properties_of("e <- NOT(c).[a, b].").certain_when == ("NOT: when the closing part starts",)


# Keys, strata, sharing


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("e(X) <- a(X, Y) SEQ b(Y, X).", ("X", "Y")),
        ("e(X) <- a(X, Y) SEQ b(X).", ("X",)),
        ("e(X) <- a(X) SEQ b(Y) WHERE X = Y.", ("X",)),
        ("e(X) <- NOT(c).[a(X), b(X)].", ()),
        ("e(X) <- NOT(c(X)).[a(X), b(X)].", ("X",)),
        ("comp(N, P) <- o: order(N, P, Q), s: shipped(N, T), d: delivered(T), o before s, s before d.", ()),
    ],
)
def test_the_key_of_a_rule(text: str, key: tuple[str, ...]) -> None:
    assert properties_of(text).key == key


def test_operators_have_keys_of_their_own() -> None:
    plan = augury.compile("comp(N) <- o: order(N), s: shipped(N, T), d: delivered(T), o before s, s before d.").plan
    physical = physical_plan(optimise(plan), Setting(Clock("timestamp")))
    assert [spec.keys for spec in physical.specs if isinstance(spec, JoinSpec)] == [("N",), ("T",)]


def test_strata_follow_negation_and_grouping() -> None:
    plan = augury.compile(
        """
        overdue(N) <- o: order(N), w: extend(o, 6h), while w: not shipped(N).
        many(count(N)) <- o: day, w: extend_backward(o, 24h), while w: collect overdue(N).
        tc(X, Y) <- l(X, Y).
        tc(X, Z) <- tc(X, Y) SEQ l(Y, Z).
        """
    ).plan
    found = {s.types[0][0]: (s.number, s.recursive) for s in strata(plan)}
    assert found == {"overdue": (1, False), "many": (2, False), "tc": (1, True)}


def shared_by(plan: Plan) -> list[tuple[str, set[str]]]:
    """The operators that several rules need, and which rules these are."""
    physical = physical_plan(optimise(plan), Setting(Clock("timestamp")))
    rules: dict[Spec, set[str]] = {}
    for label, head in physical.heads.items():
        below: list[Spec] = [head]
        for spec in below:
            rules.setdefault(spec, set()).add(label)
            below += [rows.source for rows in spec.inputs]
    events = (InputSpec, SetSpec)
    return [(spec.kind, labels) for spec, labels in rules.items() if len(labels) > 1 and not isinstance(spec, events)]


def test_equal_parts_are_shared_whatever_their_variables_are_called() -> None:
    plan = augury.compile(
        """
        e(X) <- (a(X, Y) SEQ b(Y)).5s SEQ c(X).
        f(P) <- (a(P, Q) SEQ b(Q)).5s SEQ d(P).
        g(P) <- (a(Q, P) SEQ b(Q)).5s.
        """
    ).plan
    assert shared_by(plan) == [("join", {"e", "f"})]


def test_a_policy_by_another_attribute_is_another_plan() -> None:
    plan = augury.compile("e <- a(X, Y) SEQ[recent by X] b(X, Y). f <- a(Y, X) SEQ[recent by X] b(Y, X).").plan
    assert shared_by(plan) == []


def rows(node: Node, events: list[Event]) -> list[tuple[int, int, dict[str, object]]]:
    scalars = Scalars({}, {}, Clock())
    world = World(scalars, Static((), (), scalars, lambda *_: None))
    for event in events:
        world.events.setdefault((event.type, len(event.args)), []).append(event)
    return [(r.start, r.end, dict(r.binding)) for r in world.rows(node)]


def at(stream: str, time: int, *args: object) -> Event:
    return Event(stream, args, time, time, f"{stream}{time}{args}")  # type: ignore[arg-type]


A, C = Scan("s1", (Var("L"),)), Scan("s3", (Var("L"),))


def test_parts_at_one_time() -> None:
    events = [at("s1", 5, "x"), at("s3", 5, "x"), at("s3", 6, "x")]
    assert [r[:2] for r in rows(Join("EQUALS", A, C), events)] == [(5, 5)]
