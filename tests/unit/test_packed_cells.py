"""Parquet files whose columns are unpacked when they are looked at: the same events as from the table in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import augury
from augury.core.errors import DataError
from augury.sources import packed_cells
from augury.sources.packed_cells import PackedGroups

ROWS = 60
PROGRAM = "both(X, S) <- a(X, S, _, _, _, _), b(X, _)."


@pytest.fixture
def table() -> Any:
    numbers = range(ROWS)
    columns: dict[str, Any] = {
        "x": pa.array([n % 7 if n % 11 else None for n in numbers], pa.int32()),
        "s": pa.array([f"é{n % 5}" * 3 if n % 13 else None for n in numbers]),
        "f": pa.array([n / 4 if n % 3 else None for n in numbers]),
        "t": pa.array([10**15 + n // 2 if n % 17 else None for n in numbers], pa.timestamp("us")),
        "b": pa.array([n % 2 == 0 if n % 5 else None for n in numbers]),
        "u": pa.array([f"unlike any other {n}" for n in numbers]),
        "time": pa.array([n * 10**6 for n in numbers], pa.timestamp("us", "UTC")),
    }
    return pa.table(columns)


def derived(a: object, b: object) -> list[Any]:
    """All that a run says, with the ids of inputs, which rest on each of their columns."""
    result = augury.run(augury.compile(PROGRAM), {"a": a, "b": b}, until="1970-01-02")
    return [(event, event.id, event.trace) for event in result]


@pytest.mark.parametrize("group", [1, 7, ROWS])
@pytest.mark.parametrize("rows", [1, 16, 1000])
def test_events_are_those_of_the_table(
    table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int, rows: int
) -> None:
    monkeypatch.setattr(packed_cells, "ROWS", rows)
    other = table.select(["x", "u", "time"])
    for name, columns in (("a", table), ("b", other)):
        pq.write_table(columns, tmp_path / f"{name}.parquet", row_group_size=group)
    files = [augury.read(tmp_path / f"{name}.parquet") for name in "ab"]
    expected = derived(table, other)
    assert len(expected) > 100 and derived(*files) == expected
    files = [augury.read(tmp_path / "a.parquet"), other.slice(0, 0)]
    assert derived(*files) == []


def test_columns_that_no_rule_reads_stay_packed(table: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)
    names: list[str] = []
    read = PackedGroups._read

    def noted(groups: PackedGroups) -> Any:
        names.append(groups.name)
        return read(groups)

    monkeypatch.setattr(PackedGroups, "_read", noted)
    result = augury.run(augury.compile("c(S) <- a(X, S, _, _, _, _), X > 3."), {"a": augury.read(path)})
    count = len(result.to_arrow(trace=False))
    assert count and sorted(names) == ["s", "time", "x"]
    path.write_bytes(b"another file by now")
    assert {name for event in result for name in event.trace} and set(names) == set(table.column_names)


def test_an_infinite_number_is_refused_also_where_no_rule_reads_it(table: Any, tmp_path: Path) -> None:
    numbers = pa.array([float("inf"), *range(ROWS - 1)])
    pq.write_table(table.set_column(2, "f", numbers), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="inf"):
        augury.run(augury.compile("c(S) <- a(X, S, _, _, _, _), X > 3."), {"a": augury.read(tmp_path / "a.parquet")})


def test_texts_that_repeat_are_read_by_their_dictionary(tmp_path: Path) -> None:
    texts = [f"a text that comes again {n % 4}" for n in range(2000)]
    own = [f"a text of its own {n}" for n in range(2000)]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"s": texts, "u": own, "time": range(2000)}), path, row_group_size=500)
    assert packed_cells.repeated_texts(pq.ParquetFile(path)) == ["s"]
    result = augury.run(augury.compile("c(S, U) <- a(S, U)."), {"a": augury.read(path)})
    assert [event.args for event in result] == [*zip(texts, own, strict=True)]
