"""Times that are numbers since 1970, and times without a zone: every way in reads them alike, and no unit is taken silently."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import augury
from augury import DataError, Event, RunError
from augury.core.clock import Clock, Timestamp, read_timestamp
from augury.core.time_units import PER_SECOND, TIME_UNITS, likely_unit, to_microseconds
from augury.sources.cells import MISSING, time_points

PROGRAM = "event a(x: int). b(X) <- a(X)."
NOW = 1_700_000_000  # 2023-11-14T22:13:20Z
US = 10**6
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia")


def ways(times: list[Any], folder: Path) -> dict[str, Any]:
    """Events at some times in all forms in which they come in."""
    rows = [{"type": "a", "x": i, "time": t} for i, t in enumerate(times)]
    frame = pandas.DataFrame({"x": range(len(times)), "time": times})
    (folder / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "array.json").write_text(json.dumps(rows, indent=1))
    frame.to_csv(folder / "e.csv", index=False)
    pq.write_table(pa.table({"x": list(range(len(times))), "time": times}), folder / "e.parquet")
    return {
        "dicts": rows,
        "many dicts": rows * 40,
        "pandas": {"a": frame},
        "arrow": {"a": pa.table({"x": list(range(len(times))), "time": times})},
        "json lines": augury.read(folder / "e.jsonl"),
        "json array": augury.read(folder / "array.json"),
        "csv": {"a": augury.read(folder / "e.csv")},
        "parquet": {"a": augury.read(folder / "e.parquet")},
    }


def ends(events: Any, **settings: Any) -> set[int]:
    return {event.end for event in augury.run(PROGRAM, events, **settings)}


@pytest.mark.parametrize("unit", TIME_UNITS)
def test_every_way_in_reads_a_unit(unit: Any, tmp_path: Path) -> None:
    times = [NOW * PER_SECOND[unit], (NOW + 60) * PER_SECOND[unit]]
    for way, events in ways(times, tmp_path).items():
        assert ends(events, time_unit=unit) == {NOW * US, (NOW + 60) * US}, way
        with pytest.warns(UserWarning, match=rf'time_unit="{unit}"'):
            assert ends(events) == {NOW * US, (NOW + 60) * US}, way
        with pytest.warns(UserWarning, match=rf'time_unit="{unit}"'):
            assert ends(events, clock="timestamp") == {NOW * US, (NOW + 60) * US}, way
        if unit != "ns":  # which are beyond the times of the engine
            assert ends(events, clock="logical") == set(times), way
        session = augury.compile(PROGRAM).session(time_unit=unit)
        session.push(events)
        assert {event.end for event in session.events()} == {NOW * US, (NOW + 60) * US}, way


def test_fractions_of_seconds_are_exact(tmp_path: Path) -> None:
    for way, events in ways([NOW + 0.25, NOW + 0.5], tmp_path).items():
        assert ends(events, time_unit="s") == {NOW * US + 250_000, NOW * US + 500_000}, way
    assert ends([{"type": "a", "x": 1, "time": f"{NOW}.123456"}], time_unit="s") == {NOW * US + 123_456}


def test_a_unit_that_is_not_clear_is_refused(tmp_path: Path) -> None:
    for way, events in ways([5, 6], tmp_path).items():
        with pytest.raises(DataError, match="may be a time in seconds, milliseconds") as refused:
            ends(events, clock="timestamp")
        assert refused.value.code == "D101" and "--time-unit" in refused.value.hint, way
        assert ends(events) == {5, 6}, way  # ticks


def test_times_of_several_units_are_refused(tmp_path: Path) -> None:
    for way, events in ways([NOW, NOW * 1000], tmp_path).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(
                DataError, match="looks like milliseconds since 1970, among times in seconds"
            ) as refused:
                ends(events)
        assert refused.value.code == "D101", way
        assert ends(events, clock="logical") == {NOW, NOW * 1000}


def test_ticks_are_not_followed_by_epoch_times(tmp_path: Path) -> None:
    for way, events in ways([0, NOW], tmp_path).items():
        with pytest.raises(DataError, match="looks like seconds since 1970, among times in ticks") as refused:
            ends(events)
        assert refused.value.code == "D101", way
        assert ends(events, clock="logical") == {0, NOW}, way
        assert ends(events, time_unit="s") == {0, NOW * US}, way
    assert {e.end for e in augury.run("tick 1s. " + PROGRAM, [{"type": "a", "x": 1, "time": NOW}])} == {NOW}


def test_event_objects_have_points_of_the_clock() -> None:
    assert {e.end for e in augury.run(PROGRAM, [Event("a", (1,), 5)], clock="timestamp")} == {5}
    assert {e.end for e in augury.run(PROGRAM, [Event("a", (1,), NOW)], clock="logical")} == {NOW}
    with pytest.raises(DataError, match="looks like seconds since 1970") as refused:
        augury.run(PROGRAM, [Event("a", (1,), NOW)])
    assert refused.value.code == "D101"
    with pytest.warns(UserWarning, match="microseconds"):
        found = augury.run(PROGRAM, [Event("a", (1,), NOW * US)])
    assert found.clock.kind == "timestamp"


def test_a_session_decides_with_its_first_number() -> None:
    session = augury.compile(PROGRAM).session(clock="timestamp")
    session.push({"op": "revoke", "id": "x"})
    with pytest.warns(UserWarning, match="seconds"):
        session.push({"type": "a", "x": 1, "time": NOW})
    session.push({"type": "a", "x": 2, "time": NOW + 1})
    assert [e.end for e in session.events()] == [NOW * US, (NOW + 1) * US]
    again = augury.compile(PROGRAM).restore(session.snapshot())
    again.push({"type": "a", "x": 3, "time": NOW + 2})
    assert [e.end for e in again.events()][-1] == (NOW + 2) * US
    with pytest.raises(DataError, match="among times in seconds"):
        again.push({"type": "a", "x": 3, "time": NOW * 1000})


def test_facts_and_options_are_in_the_unit() -> None:
    program = "static p(x: int). b(X) <- a(X) WHERE p(X)."
    facts = {"p": [{"args": [1], "valid_from": NOW, "valid_to": NOW + 10}]}
    rows = [{"type": "a", "args": [1], "time": NOW + seconds} for seconds in (0, 5, 10)]
    found = augury.run(program, rows, facts=facts, time_unit="s", until=NOW + 20)
    assert [e.end for e in found] == [NOW * US, (NOW + 5) * US]


def test_settings_that_do_not_fit() -> None:
    with pytest.raises(RunError, match="unknown time unit `h`"):
        augury.run(PROGRAM, [], time_unit="h")  # type: ignore[arg-type]
    with pytest.raises(RunError, match="unknown time zone"):
        augury.run(PROGRAM, [], zone="Mars/Base")
    with pytest.raises(RunError, match="--time-unit is for calendar times"):
        augury.run(PROGRAM, [], time_unit="s", clock="logical")
    with pytest.raises(RunError, match="declares its tick"):
        augury.run("tick 1s. " + PROGRAM, [], time_unit="s")
    with pytest.raises(DataError, match="the number 5 among calendar times"):
        augury.run(PROGRAM, [{"type": "a", "x": 1, "time": "2026-01-01"}, {"type": "a", "x": 1, "time": 5}])


# Zones


@pytest.mark.parametrize("zone", ZONES)
def test_every_way_in_reads_local_times(zone: str, tmp_path: Path) -> None:
    """Also an hour that comes twice, one that is skipped, and a day that is."""
    texts = [
        "2026-03-29 02:30:00",
        "2026-10-25 02:30:00",
        "2026-03-08 02:30:00",
        "2011-12-30 12:00:00",
        "2026-07-01 00:00:00",
    ]
    local = [datetime.fromisoformat(text) for text in texts]
    expected = {int(t.replace(tzinfo=ZoneInfo(zone)).timestamp()) * US for t in local}
    naive = {
        "dicts": [{"type": "a", "x": i, "time": t} for i, t in enumerate(local)],
        "pandas": {"a": pandas.DataFrame({"x": range(len(local)), "time": local})},
        "arrow": {"a": pa.table({"x": list(range(len(local))), "time": local})},
    }
    for way, events in {**ways(texts, tmp_path), **naive}.items():
        assert ends(events, zone=zone) == expected, way
    aware = [
        {"type": "a", "x": 1, "time": "2026-07-01T12:00:00Z"},
        {"type": "a", "x": 2, "time": datetime(2026, 7, 1, 12, tzinfo=UTC)},
    ]
    assert ends(aware, zone=zone) == {read_timestamp("2026-07-01 12:00")}


def test_every_way_in_reads_attributes_as_local_times(tmp_path: Path) -> None:
    texts = ["2026-03-29 02:30:00", "2026-10-25 02:30:00", "2026-07-01 00:00:00"]
    local = [datetime.fromisoformat(text) for text in texts]
    expected = {int(t.replace(tzinfo=ZoneInfo("Europe/Berlin")).timestamp()) * US for t in local}
    number, days = list(range(len(texts))), ["2026-07-01"] * len(texts)
    frames = [pandas.DataFrame({"x": x, "time": days}) for x in (texts, local)]
    for n, frame in enumerate(frames):
        frame.to_csv(tmp_path / f"{n}.csv", index=False)
        frame.to_parquet(tmp_path / f"{n}.parquet")
    rows = [{"type": "a", "x": x, "time": days[0]} for x in texts]
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows * 20))
    everything: dict[str, Any] = {
        "dicts": rows,
        "many dicts": rows * 40,
        "Events": [Event("a", (x,), NOW * US, NOW * US) for x in texts],
        "datetimes": [{**rows[i], "x": local[i]} for i in number],
        "json lines": augury.read(tmp_path / "e.jsonl"),
        **{f"pandas {n}": {"a": frame} for n, frame in enumerate(frames)},
        **{f"csv {n}": {"a": augury.read(tmp_path / f"{n}.csv")} for n in number[:2]},
        **{f"parquet {n}": {"a": augury.read(tmp_path / f"{n}.parquet")} for n in number[:2]},
        "with a zone": [
            {**row, "x": t.replace(tzinfo=ZoneInfo("Europe/Berlin")).isoformat()}
            for row, t in zip(rows, local, strict=True)
        ],
    }
    program = augury.compile("event a(x: timestamp). b(X) <- a(X).")
    for way, events in everything.items():
        assert _moments(augury.run(program, events, zone="Europe/Berlin")) == expected, way
    session = program.session(zone="Europe/Berlin")
    for row in rows:
        session.push([row])
    assert _moments(session.events()) == expected
    with pytest.raises(DataError, match="`x` is declared as timestamp, but is"):
        augury.run(program, [{**rows[0], "x": True}], zone="Europe/Berlin")


def _moments(events: Iterable[Event]) -> set[int]:
    return {e.args[0].us for e in events if isinstance(e.args[0], Timestamp)}


def test_rows_with_mistakes_are_in_the_zone(tmp_path: Path) -> None:
    """Where a row is wrong, all are read one by one."""
    table = pa.table({"x": ["1", "no"], "time": [datetime(2026, 7, 1, 12)] * 2})
    program = augury.compile(PROGRAM)
    pq.write_table(table, tmp_path / "e.parquet")
    from augury.sources import Reader, Skipped, SourceFile

    reader = Reader(program.plan, Clock("timestamp", zone="Europe/Berlin"), Skipped("skip"))
    history = reader.source(SourceFile(str(tmp_path / "e.parquet"), "a"))
    assert len(history.items()) == 0 and len(reader.skipped.problems) == 2  # an int is no text
    table = pa.table({"x": [1, None, 3], "time": [datetime(2026, 7, 1, 12), None, datetime(2026, 7, 1, 13)]})
    pq.write_table(table, tmp_path / "e.parquet")
    history = Reader(program.plan, Clock("timestamp", zone="Europe/Berlin"), Skipped("skip")).source(
        SourceFile(str(tmp_path / "e.parquet"), "a")
    )
    assert [e.end for e in history.items() if isinstance(e, Event)] == [
        read_timestamp("2026-07-01 10:00"),
        read_timestamp("2026-07-01 11:00"),
    ]


# One by one, and by columns


@given(
    st.lists(st.integers(-(10**19), 10**19) | st.integers(NOW - 10, NOW + 10), max_size=5),
    st.sampled_from(TIME_UNITS),
    st.booleans(),
)
def test_columns_are_read_as_single_times(numbers: list[int], unit: Any, guessed: bool) -> None:
    import numpy as np

    clocks = [Clock("timestamp", unit=unit, unit_guessed=guessed, guessed=guessed), Clock("logical", guessed=guessed)]
    within = [n for n in numbers if -(2**63) < n < 2**63]
    for clock in clocks:
        single: list[int] | None
        try:
            single = [clock.read(n) for n in within]
        except DataError:
            single = None
        try:
            many = time_points(np.array(within, np.int64), clock).tolist()
        except DataError:
            many = None
        assert many == single


@given(st.integers(-(2**62), 2**62), st.sampled_from(TIME_UNITS))
def test_no_number_is_likely_in_two_units(number: int, unit: Any) -> None:
    likely = [u for u in TIME_UNITS if 1980 <= (datetime(1970, 1, 1) + _span(number, u)).year < 2100]
    assert likely == ([] if likely_unit(number) is None else [likely_unit(number)])
    assert to_microseconds(number, unit) == number * US // PER_SECOND[unit] and MISSING == -(2**63)


def _span(number: int, unit: Any) -> timedelta:
    seconds = number / PER_SECOND[unit]
    return timedelta(seconds=min(max(seconds, -(10**9)), 10**10))
