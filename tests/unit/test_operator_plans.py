"""What `explain` says of every example is golden: operators, keys, conditions in order, columns, kept state.

`python -m tests.unit.test_operator_plans` writes the files again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import augury
from augury.core.fields import FIELDS
from augury.core.model import type_name
from augury.examples import EXAMPLES, load
from augury.planner.specs import InputSpec, SetSpec

GOLDEN = Path(__file__).parents[1] / "golden" / "explain"
SOURCE = Path(augury.__file__).parent / "examples"


def operators(name: str) -> str:
    """The physical plan of an example."""
    example = load(name)
    sources = [SOURCE / name / path for path in example.program]
    facts = [source.partition("=")[0] for source in example.facts]
    return augury.compile(sources, facts=facts).explain() + "\n"


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs_as_its_golden_plan(name: str) -> None:
    if load(name).missing:
        pytest.skip("an extra is not installed")
    assert operators(name) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_metrics_of_a_session_stand_beside_its_operators() -> None:
    session = augury.compile("m(X) <- (a(X) SEQ b(X)).10s.").session(clock="logical")
    session.push([augury.Event("a", (1,), 1, 1), augury.Event("b", (1,), 2, 2)])
    lines = session.explain().splitlines()
    join = next(i for i, line in enumerate(lines) if "join SEQ, on X, within 10s" in line)
    assert lines[join].endswith("keeps left 10s")
    assert lines[join + 1].split(" in, ")[1].startswith("1 out, 1 kept, ")
    metrics = {o["text"]: o["metrics"] for o in json.loads(session.explain("json"))["operators"]}
    stats = [o for o in session.stats()["operators"] if o["operator"] == "join"]
    assert all(
        stats[0][name] == value for name, value in metrics["join SEQ, on X, within 10s → X; keeps left 10s"].items()
    )
    assert stats[0]["seconds"] > 0


def test_shared_variables_come_before_windows_in_join_order() -> None:
    """A window relates all three events, but a and b share no variable: c is joined before b."""
    text = "x(N) <- o: a(N), p: b(M), s: c(N, M), {o, p, s} within 100s."
    joins = [line for line in augury.compile(text).explain().splitlines() if " join " in line]
    assert [line.split(" on ")[1].split(",")[0] for line in joins] == ["M", "N"]  # the outer join first


TYPED = """
event a(k: string, x: int). event b(k: string, y: float). static size(k: string, n: int).
size('p', 3). size('q', 4).
sum2(K, X + N, Y) <- (a(K, X) SEQ b(K, Y)).10s WHERE size(K, N).
half(K, X / 2) <- a(K, X) WHERE X > 1.
either(K, V) <- a(K, V) OR b(K, V).
total(K, sum(X), count(), L) <- o: b(K, _), L = duration(o), w: extend_backward(o, 9s), while w: collect a(K, X).
run(K, max(Y), count(Y)) <- (a(K, _) NEXT b(K, Y)+).10s LONGEST.
chain(K, X) <- a(K, X). chain(K, X + 1) <- (chain(K, X) SEQ a(K, _)).3s WHERE X < 5.
"""


def test_columns_have_the_types_that_their_values_have() -> None:
    session = augury.compile(TYPED).session(clock="logical")
    for time in range(12):
        key = "pq"[time % 2]
        session.push([augury.Event("a", (key, time), time, time), augury.Event("b", (key, time / 2), time, time)])
    circuit, decode = session.circuit, session.circuit.tables.dictionary.decode
    named: dict[str, set[str]] = {}
    for spec, operator in circuit.built.items():
        table = operator.out.table
        for position, type in enumerate(spec.types if not isinstance(spec, InputSpec) else ()):
            codes = table.data[FIELDS + position, table.standing()]
            values = [decode(int(code)) for code in codes]
            assert type != "" or not values
            numbers = {"number": {"int", "float"}, "float": {"int", "float"}}.get(type, {type})
            assert type == "any" or {type_name(v) for v in values if v is not None} <= numbers, (spec.kind, position)
            named.setdefault(type, set()).add(spec.kind)
    assert (
        {"scan", "set", "greedy runs"} <= named["string"] and {"set", "collect"} <= named["int"] and "number" in named
    )


def test_a_rule_that_comes_later_widens_the_types_of_what_reads_its_events() -> None:
    session = augury.compile("event a(x: int). m(X) <- a(X). n(X) <- m(X).").session(clock="logical")
    assert _types_of_sets(session) == {"m": ("int",), "n": ("int",)}
    session.add_rules("m(X * 0.5) <- a(X).")
    assert _types_of_sets(session) == {"m": ("number",), "n": ("number",)}


def _types_of_sets(session: augury.Session) -> dict[str, tuple[str, ...]]:
    return {spec.type: spec.types for spec in session.circuit.built if isinstance(spec, SetSpec)}


if __name__ == "__main__":
    for each in EXAMPLES:
        (GOLDEN / f"{each}.txt").write_text(operators(each), encoding="utf-8")
