"""Every built-in function and aggregate is computed by columns, and registered functions may be given arrays of Arrow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import augury
from augury.algebra.aggregates import AGGREGATES
from augury.algebra.scalar import FUNCTIONS, TESTS
from augury.core.errors import RunError
from augury.core.model import Value
from augury.engine.operators.group_totals import Totals
from augury.storage.column_expressions import ColumnExpressions
from augury.storage.column_functions import COLUMN_FORMS

# Arguments of the usual types, as rules have them. A is an integer, F a float from 0 to 1, S a text, T a time, U another.
USUAL = {
    "substring": "S, 2, 3", "replace": "S, 'a', 'b'", "contains": "S, 'a'", "starts_with": "S, 'a'", "ends_with": "S, 'a'",
    "matches": "S, 'a+'", "regexp_extract": "S, '(a+)', 1", "split": "S, 'a', 1", "occurrences": "S, 'a'",
    "truncate": "T, 'hour'", "format_time": "T, '%H:%M'", "overlap": "o, w", "distance_km": "F, F, F, F",
    "min": "A, 3", "max": "A, 3", "concat": "S, '-', A", "coalesce": "S, 'x'", "round": "F", "log": "F", "pi": "",
    "is_null": "S", "iri": "S", "to_string": "S", "**": "A, 2", "pow": "A, 2", "if": "A > 3, A, F",
}  # fmt: skip
BY_TYPE = {"number": "F", "int": "A", "float": "F", "string": "S", "timestamp": "T", "any": "A", "iri": "S"}
INFIX = ("+", "-", "*", "/", "//", "mod", "**", "&", "|")
EVENTS = [
    {"type": "e", "args": [n % 7, n / 60, f"a{n % 5}ab", f"2026-07-0{1 + n % 9} 10:00", "2026-07-11"], "time": n}
    for n in range(60)
]
DECLARED = "event e(a: int, f: float, s: string, t: timestamp, u: timestamp).\n"


def refused(*_: object, **__: object) -> Any:
    raise AssertionError("computed row by row")


def written(name: str) -> str:
    function = FUNCTIONS[name]
    types = function.types[: len(function.types) - function.optional]
    return USUAL.get(name) or ", ".join(BY_TYPE[type] for type in types)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_each_function_has_a_form_for_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name in COLUMN_FORMS
    args = written(name)
    if name in ("&", "|") or name in TESTS:
        return
    call = f"({f' {name} '.join(args.split(', '))})" if name in INFIX else f"{name}({args})"
    program = augury.compile(f"{DECLARED}r(A, {call}) <- o: e(A, F, S, T, U), w: extend(o, 3s).")
    expected = [event.args for event in augury.run(program, EVENTS[1:], engine="reference")]
    if name != "pi":
        monkeypatch.setattr(ColumnExpressions, "_one_by_one", refused)
    assert [event.args for event in augury.run(program, EVENTS[1:])] == expected


def test_no_form_is_without_a_function() -> None:
    assert set(COLUMN_FORMS) <= {*FUNCTIONS, *TESTS}


@pytest.mark.parametrize("name", sorted(AGGREGATES))
def test_each_aggregate_has_a_form_for_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    more = {"nth": ", 2", "arg_max": ", A", "arg_min": ", A", "percentile": ", 30"}.get(name, "")
    value = {"any": "A > 3", "all": "A > 3", "percentile": "A"}.get(name, "F")
    for total in (f"{name}({value}{more})", f"{name}({value}{more} where A < 5)"):
        program = augury.compile(f"{DECLARED}r({total}) <- w: every(10s), while w: collect e(A, F, _, _, _).")
        events = [{**event, "time": n} for n, event in enumerate(EVENTS)]
        expected = [event.args for event in augury.run(program, events, engine="reference", until=100)]
        with monkeypatch.context() as patch:
            patch.setattr(Totals, "_one_by_one", refused)
            assert [event.args for event in augury.run(program, events, until=100)] == expected
        assert expected


# Registered functions of arrays of Arrow


def results(function: Any, events: list[dict[str, Any]], args: str = "X") -> list[Value]:
    program = augury.compile(f"r({function.name}({args})) <- a({args}).", functions=[function])
    per_engine = [
        [event.args[0] for event in augury.run(program, events, engine=engine)] for engine in ("embedded", "reference")
    ]
    assert per_engine[0] == per_engine[1]
    return per_engine[0]


def test_a_function_of_arrow_is_given_whole_columns() -> None:
    lengths: list[int] = []

    def shouted(texts: Any) -> Any:
        lengths.append(len(texts))
        return pc.utf8_upper(texts)

    made = augury.function(shouted, types=("string",), result="string", vectorized=True)
    events = [{"type": "a", "args": [f"x{n % 3}"], "time": n} for n in range(200)]
    program = augury.compile("r(shouted(X)) <- a(X).", functions=[made])
    assert [event.args for event in augury.run(program, events)] == [(f"X{n % 3}",) for n in range(200)]
    assert lengths == [200]


@pytest.mark.parametrize(
    "values",
    [[1, 2, 3], [1.5, -0.0, 2.0], ["a", "ß", ""], [True, False, True], [1, None, 3], ["a", None, "b"], [None, None], [2, 2.5]],
)  # fmt: skip
def test_values_pass_through_arrow(values: list[Any]) -> None:
    same = augury.function(lambda x: x, name="same", types=("any",), result="any", vectorized="arrow")
    events = [{"type": "a", "args": [value], "time": n} for n, value in enumerate(values)]
    expected = [value + 0.0 if isinstance(value, float) else value for value in values]
    assert [value == wanted for value, wanted in zip(results(same, events), expected, strict=True)]


def test_times_pass_through_arrow() -> None:
    def later(times: Any, pauses: Any) -> Any:
        assert (times.type, pauses.type) == (pa.timestamp("us", "UTC"), pa.duration("us"))
        return pc.add(times, pauses)

    made = augury.function(later, types=("timestamp", "duration"), result="timestamp", vectorized=True)
    program = augury.compile("r(later(start(o), D)) <- o: a(D).", functions=[made])
    events = [{"type": "a", "args": [timedelta(hours=n)], "time": f"2026-07-01 1{n}:00"} for n in range(3)]
    answers = [event.args for event in augury.run(program, events)]
    assert answers == [event.args for event in augury.run(program, events, engine="reference")]
    assert len(answers) == 3


def test_what_arrow_cannot_hold_is_computed_row_by_row() -> None:
    def doubled(x: Any) -> Any:
        return pc.multiply(x, pa.scalar(2.0))

    made = augury.function(doubled, types=("float",), result="float", vectorized=True)
    events = [{"type": "a", "args": [x], "time": n} for n, x in enumerate((1.0, 0.25, 3.0))]
    assert results(made, events) == [2.0, 0.5, 6.0]


def test_an_aggregate_of_arrow() -> None:
    made = augury.aggregate(pc.sum, name="all_of", argument="number", result="number", vectorized=True)
    program = augury.compile("r(all_of(X)) <- b, last 3: collect a(X).", functions=[made])
    events = [{"type": "a", "args": [x], "time": n} for n, x in enumerate((1, 2, 3))] + [{"type": "b", "time": 3}]
    for engine in ("embedded", "reference"):
        assert [event.args for event in augury.run(program, events, engine=engine)] == [(6,)]


def test_which_arrays_a_function_takes() -> None:
    seen: list[type] = []

    def seeing(x: Any) -> Any:
        seen.append(type(x))
        return x

    for chosen in ({"vectorized": "numpy"}, {"vectorised": True}, {"vectorized": True}):
        made = augury.function(seeing, types=("int",), result="int", **chosen)
        assert made.vectorised
        augury.run(augury.compile("r(seeing(X)) <- a(X).", functions=[made]), [{"type": "a", "args": [1], "time": 0}])
    assert seen == [np.ndarray, np.ndarray, pa.Int64Array]
    with pytest.raises(RunError, match="vectorized='rows'"):
        augury.function(seeing, types=("int",), result="int", vectorized="rows")  # type: ignore[arg-type]
