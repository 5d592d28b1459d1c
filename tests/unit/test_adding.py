"""What the tables of the code promise: a new row is all it takes, and every executor uses it.

Each test adds one thing at run time, as a user of the code would in its file, and runs a program with it. "Where to add
what" in docs/design.md lists the places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner

import augury
from augury import Event
from augury.algebra.aggregates import AGGREGATES, AggregateFunction, StateForm
from augury.algebra.nodes import Join, Node, Scan
from augury.algebra.plan import Plan
from augury.algebra.relations import RELATIVE
from augury.algebra.scalar import FUNCTIONS, Function
from augury.algebra.selection import POLICIES, SelectionPolicy
from augury.cli import cli
from augury.core.clock import Clock
from augury.engine.operators import group_totals
from augury.engine.operators.map import EachRow
from augury.engine.operators.recent import Recent
from augury.engine.operators.runs import sight
from augury.engine.runtime import Runtime
from augury.engine.wiring import OPERATORS
from augury.language.rules import grammar
from augury.planner import physical_plan
from augury.planner.choose_operators import choose_pattern
from augury.planner.planning import Planning, Setting, same_columns
from augury.planner.policies import POLICY_SPECS, Selection
from augury.planner.project import Needs
from augury.planner.specs import ChoosingJoinSpec, KeptState, RankedChoiceSpec, Reading, RecentSpec, Spec
from augury.sources import files
from augury.sources.parquet import sheet_of
from augury.sources.sheet import Sheet
from augury.storage.frame import Frame

ENGINES = ("embedded", "reference")


def answers(program: str, events: list[Event], engine: str) -> list[tuple[Any, ...]]:
    found = augury.run(program, events, engine=engine)
    return [(*e.args, e.start, e.end) for e in found]


@pytest.mark.parametrize("engine", ENGINES)
def test_aggregate_is_one_row(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = AggregateFunction("spread", "number", "number", lambda values: max(values) - min(values))
    monkeypatch.setitem(AGGREGATES, "spread", row)
    events = [Event("a", (4,), 1, 1), Event("a", (9,), 2, 2), Event("go", (), 11, 11)]
    program = "r(spread(X)) <- o: go, w: extend_backward(o, 10s), while w: collect a(X)."
    assert answers(program, events, engine) == [(5, 1, 11)]


SQUARES = AggregateFunction(
    "sum_squares", "number", "number", lambda values: sum(v * v for v in values), form=StateForm(("square",))
)
RANGE = AggregateFunction(
    "range", "number", "number", lambda values: max(values) - min(values),
    form=StateForm(picks=("greatest", "least"), result=lambda n, high, low: high - low),
)  # fmt: skip
COLUMN_FORMS = {
    "a collect that lists": "r(K, {0}(X)) <- o: go, w: extend_backward(o, 10s), while w: collect a(K, X).",
    "windows by the clock": "r(K, {0}(X)) <- w: every(4s, 2s), while w: collect a(K, X).",
    "a window of each event": "r(K, {0}(X)) <- o: a(K, _), w: extend_backward(o, 4s), while w: collect a(K, X).",
    "partial matches of a run": "r(K, {0}(X)) <- (a(K, X)+ NEXT go).10s WHERE {0}(X) > 2 PER ().",
    "longest matches of a run": "r(K, {0}(X)) <- a(K, X)+ WHERE {0}(X) < 90 PER (K) LONGEST SKIP PAST END.",
}


@pytest.mark.parametrize("row", [SQUARES, RANGE], ids=lambda row: row.name)
@pytest.mark.parametrize("text", COLUMN_FORMS.values(), ids=COLUMN_FORMS)
def test_an_aggregate_with_a_column_form(row: AggregateFunction, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All executors compute it by columns: none calls its definition on a list of values."""
    monkeypatch.setitem(AGGREGATES, row.name, row)
    events = [Event("a", (i % 2, v), i, i) for i, v in enumerate([4, 9, 2.5, 7, 1, 4.25, 3, 3])]
    if "go" in text:
        events.append(Event("go", (), 9, 9))
    program = text.format(row.name).replace("r(K, ", "r(") if "PER ()" in text else text.format(row.name)
    expected = answers(program, events, "reference")
    assert expected
    for module in (group_totals, sight):
        monkeypatch.setattr(module, "code_of", None)
    assert answers(program, events, "embedded") == expected


TWICE = Function("twice", ("number",), "number", lambda x: 2 * x, spark="try_multiply({0}, 2)")
WINDY = "event wind(place: string, speed: float). high(L) <- wind(L, S) WHERE twice(S) > 40."


@pytest.mark.parametrize("engine", ENGINES)
def test_scalar_function_is_one_row(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FUNCTIONS, "twice", TWICE)
    assert answers(WINDY, [Event("wind", ("l1", 20.5), 1, 1), Event("wind", ("l2", 20.0), 1, 1)], engine) == [
        ("l1", 1, 1)
    ]


class Written:
    """A column of Spark as the text of what makes it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __getattr__(self, name: str) -> Any:
        return lambda *args: Written(f"{name}({', '.join(map(str, (self, *args)))})")

    def __str__(self) -> str:
        return self.text

    def __gt__(self, other: object) -> Written:
        return Written(f"{self} > {other}")

    def __or__(self, other: object) -> Written:
        return Written(f"{self} or {other}")

    def __invert__(self) -> Written:
        return Written(f"not {self}")


class Functions:
    """`pyspark.sql.functions` without a session."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args: Written(f"{name}({', '.join(map(str, args))})")


def test_a_scalar_function_before_the_shuffle_on_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    pushdown = pytest.importorskip("augury.spark.pushdown")
    monkeypatch.setitem(FUNCTIONS, "twice", TWICE)
    for module in ("pushdown", "relation_frames"):
        monkeypatch.setattr(f"augury.spark.{module}.F", Functions())
    specs = physical_plan(augury.compile(WINDY).optimised, Setting(Clock("logical"))).specs
    columns = [(Written("place"), "string"), (Written("speed"), "float")]
    start, end = Written("start"), Written("end")
    kept = pushdown.keep(specs, ("wind", 2), columns, start, end, Clock("logical"))
    assert "call_function(try_multiply, cast(speed, double), lit(2)) > " in str(kept)


@pytest.mark.parametrize("engine", ENGINES)
def test_temporal_relation_is_one_row(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RELATIVE, "around", (("start", -1), ("end", 1)))
    program = "calm(X) <- a: fire(X), w: around(a, 5s), while w: not wind(X)."
    fires = [Event("fire", (place,), 10, 10) for place in ("l1", "l2", "l3", "l4")]
    winds = [Event("wind", (place,), t, t) for place, t in (("l1", 6), ("l2", 14), ("l3", 4), ("l4", 16))]
    assert answers(program, [*fires, *winds], engine) == [("l3", 5, 15), ("l4", 5, 15)]


@pytest.mark.parametrize("engine", ENGINES)
def test_policy_is_one_row(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name is a word of the language, and all executors take what ranks highest."""
    monkeypatch.setitem(POLICIES, "oldest", SelectionPolicy("oldest", lambda start, end: -end))
    parser = grammar.made(grammar.grammar_text())
    monkeypatch.setattr("augury.language.rules.read.parser", lambda: parser)
    events = [Event("a", (2,), 2, 2), Event("a", (1,), 1, 1), Event("b", (1,), 5, 5), Event("b", (2,), 6, 6)]
    program = "m(X, Y) <- a(X) SEQ[oldest] b(Y)."
    assert answers(program, events, engine) == [(1, 1, 1, 5), (1, 2, 1, 6)]
    if engine == "embedded":
        session = augury.compile(program).session(clock="logical")
        session.push([*events[:1], *events[2:]])
        assert [e.args for e in session.events()] == [(2, 1), (2, 2)]
        session.push(events[1])
        assert [e.args for e in session.events()] == [(1, 1), (1, 2)]


class JoinedSpec(ChoosingJoinSpec):
    """`recent`, by a join of its own."""


def test_join_of_a_policy_is_a_spec_a_class_and_two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Recent] = []

    class JoinedPolicy(Recent):
        def __init__(self, runtime: Runtime, spec: RecentSpec) -> None:
            super().__init__(runtime, spec)
            made.append(self)

    monkeypatch.setitem(POLICY_SPECS, "recent", Selection(RankedChoiceSpec, JoinedSpec))
    monkeypatch.setitem(OPERATORS, JoinedSpec, JoinedPolicy)
    events = [Event("a", (1,), 1, 1), Event("a", (2,), 2, 2), Event("b", (1,), 5, 5)]
    assert answers("m(X, Y) <- a(X) SEQ[recent] b(Y).", events, "embedded") == [(2, 1, 2, 5)]
    assert len(made) == 1


@dataclass(frozen=True, eq=False, kw_only=True)
class LongRowsSpec(Spec):
    """Rows that last."""

    kind: ClassVar[str] = "long rows"
    least: int

    @property
    def keeps(self) -> tuple[KeptState, ...]:
        return (KeptState("nothing else", 0),)


class LongRows(EachRow):
    """The rows that last for `least` time points or more."""

    spec: LongRowsSpec

    def mapped(self, frame: Frame) -> Frame:
        return frame.where(frame.end - frame.start >= self.spec.least)


def test_operator_is_a_spec_a_class_a_row_and_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it keeps, shows, counts, saves and retracts follows from the spec and the base class."""

    def choose(planning: Planning, node: Node, needs: Needs, rule: str) -> Reading:
        rows = choose_pattern(planning, node, needs, rule)
        if not isinstance(node, Join):
            return rows
        return planning.add(LongRowsSpec(inputs=(rows,), out=same_columns(rows), rule=rule, least=3))

    monkeypatch.setitem(OPERATORS, LongRowsSpec, LongRows)
    monkeypatch.setattr("augury.engine.circuit.new_planning", lambda: Planning(choose))
    program = augury.compile("m(X) <- (a(X) SEQ b(X)).9s.")
    session = program.session(clock="logical", lateness="5s")
    session.push([Event("a", (1,), 1, 1, "a1"), Event("b", (1,), 2, 2), Event("b", (1,), 6, 6)])
    assert [(e.start, e.end) for e in session.events()] == [(1, 6)]
    assert "long rows → X" in session.explain()
    assert [o["rows"] for o in session.stats()["operators"] if o["operator"] == "long rows"] == [1]
    resumed = program.restore(session.snapshot())
    for each in (session, resumed):
        assert [c.op for c in each.revoke("a1")] == ["retract"]
        each.advance(100)
        assert each.prune() == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_input_format_is_one_row(engine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def read(stream: Any, source: files.SourceFile, plan: Plan | None) -> Iterator[Sheet]:
        rows = [line.split(b"|") for line in stream.read().splitlines()]
        columns = {"time": [int(t) for t, _ in rows], "place": [p.decode() for _, p in rows]}
        yield sheet_of(pa.table(columns), source.path)

    formats: dict[Any, Any] = {**files.FORMATS, "bars": files.Format("bars", "bars", (".bars",), read)}
    monkeypatch.setattr(files, "FORMATS", formats)
    monkeypatch.setattr(files, "ENDINGS", {**files.ENDINGS, ".bars": "bars"})
    path = tmp_path / "smoke.bars"
    path.write_text("1|l1\n3|l2\n")
    found = augury.run(
        "event smoke(place: string). seen(P) <- smoke(P).", augury.read(path, type="smoke"), engine=engine
    )
    assert [(*e.args, e.start) for e in found] == [("l1", 1), ("l2", 3)]


def test_rewrite_is_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def the_other_way_round(plan: Plan) -> Plan:
        """`a AND b` is `b AND a`."""
        bodies = [replace(r.body, left=r.body.right, right=r.body.left) for r in plan.rules if isinstance(r.body, Join)]
        return replace(plan, rules=tuple(replace(r, body=b) for r, b in zip(plan.rules, bodies, strict=True)))

    monkeypatch.setattr("augury.planner.REWRITES", (the_other_way_round,))
    program = augury.compile("m(X, Y) <- a(X) AND b(Y).")
    shown = program.explain()
    assert shown.index("reading   m(X, Y) <- a(X) AND b(Y)") < shown.index(" b(Y)\n") < shown.rindex(" a(X)\n")
    session = program.session(clock="logical")
    (rule,) = session.circuit.plan.rules
    assert isinstance(rule.body, Join) and isinstance(rule.body.left, Scan) and rule.body.left.type == "b"
    session.push([Event("a", (1,), 1, 1), Event("b", (2,), 2, 2)])
    assert [(*e.args, e.start, e.end) for e in session.events()] == [(1, 2, 1, 2)]


def test_command_is_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command("rules")
    @click.argument("program")
    def rules(program: str) -> None:
        """How many rules a program has."""
        click.echo(len(augury.compile(program).plan.rules))

    monkeypatch.setattr(cli, "commands", dict(cli.commands))
    cli.add_command(rules)
    run = CliRunner()
    assert run.invoke(cli, ["rules", "m <- a. n <- b."]).output == "2\n"
    assert "How many rules a program has." in run.invoke(cli, ["--help"]).output
