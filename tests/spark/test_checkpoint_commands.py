"""Commands on the checkpoint of a stream: what it holds, and how it is rescaled."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.spark.test_cli_spark import END, RULES, Augury, expected, failed, spread, story, written
from tests.spark.test_cli_spark import augury as augury
from tests.spark.test_cli_spark import pytestmark as pytestmark
from tests.spark.test_cli_spark import spark as spark

STORM = """\
event wind(station: string, speed: float).
event fire(place: string, level: int).
output danger.
near('s1', 'creek').
gust(S, W)   <- (wind(S, V) SEQ wind(S, W)).10min WHERE W > V * 1.2.
danger(S, P) <- (gust(S, _) AND fire(P, L)).1h WHERE (near(S, P), L > 2).
"""
EVENTS = [
    {"type": "wind", "station": "s1", "speed": 50, "time": "2026-07-01 12:00"},
    {"type": "wind", "station": "s1", "speed": 70, "time": "2026-07-01 12:05"},
    {"type": "fire", "place": "creek", "level": 4, "time": "2026-07-01 12:30"},
    {"type": "fire", "place": "hill", "level": 1, "time": "2026-07-01 12:50"},
    {"type": "wind", "station": "s2", "speed": 50, "time": "2026-07-01 12:52"},
    {"type": "wind", "station": "s2", "speed": 80, "time": "2026-07-01 12:55"},
    {"type": "wind", "station": "s3", "speed": 1, "time": "2026-07-01 13:08"},
]


def test_the_state_in_slices_of_time_is_explained(augury: Augury) -> None:
    """Neither the program nor the events are named again, and the slices of time of a stage show nowhere."""
    Path("storm.aug").write_text(STORM)
    Path("in").mkdir()
    Path("in/1.jsonl").write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    run = ("stream", "storm.aug", "--events", "in", "--checkpoint", "cp", "--output", "out")
    done = augury(*run, "--lateness", "10min", "--trigger", "once", "--buckets", "2", "--longest", "0s")
    assert done.code == 0, done.err
    assert "awaits" in augury("goals", "--checkpoint", "cp").out
    stages = {json.loads(line)["stage"] for line in augury("stats", "--checkpoint", "cp").out.splitlines()}
    assert stages == {1, 2}
    shown = augury("why", "--checkpoint", "cp", "--event", "danger('s1', _)")
    assert "fire('creek', 4)" in shown.out and "gust('s1', 70.0)" in shown.out, shown.err
    shown = augury("why-not", "--checkpoint", "cp", "--event", "danger('s2', _)")
    assert "rule danger: 2 of 2 events" in shown.out and "failed: " in shown.out, shown.err
    assert "slice" not in shown.out
    failed(augury("why-not", "--checkpoint", "cp", "--event", "danger('s1', 'creek')"), "was detected")
    failed(augury("why-not", "--checkpoint", "cp", "--event", "danger(_)"), "no rule derives `danger` with 1 argument")
    assert augury("goals").code == 2


def test_a_stream_is_rescaled(augury: Augury, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rescale that dies leaves the old state or the new one, and the stream goes on from either."""
    from augury.spark.stream_job import StreamJob

    lines = story(60)
    answer = expected(augury, [*lines, END])
    spread(lines[:30], 10, Path("in"))
    run = ("stream", "rules.aug", "--checkpoint", "cp", "--lateness", "5s", "--trigger", "once", "--output", "out", "--events", "in")  # fmt: skip
    assert augury(*run, "--buckets", "2").code == 0
    Path("rules.aug").rename("elsewhere.aug")
    rescale = ("checkpoint", "rescale", "cp", "--buckets", "3", "--partitions", "1")
    assert augury("checkpoint", "rescale", "cp").code == 2
    said = augury("checkpoint", "rescale", "cp", "--buckets", "2").err
    assert said == "the state is in 2 buckets and 2 partitions already\n"

    def die(*args: object) -> None:
        raise RuntimeError("killed")

    def describe_and_die(job: StreamJob, describe: Callable[..., None] = StreamJob._describe) -> None:
        describe(job)
        die()

    with monkeypatch.context() as patch:
        patch.setattr(StreamJob, "_describe", die)
        failed(augury(*rescale), "error: RuntimeError: killed")
    assert "buckets: 2" in augury("checkpoint", "show", "cp").out
    with monkeypatch.context() as patch:
        patch.setattr(StreamJob, "_describe", describe_and_die)
        failed(augury(*rescale), "error: RuntimeError: killed")
    assert "buckets: 3" in augury("checkpoint", "show", "cp").out
    Path("elsewhere.aug").rename("rules.aug")
    spread([*lines[30:], END], 31, Path("in"), 100)
    assert augury(*run).code == 0
    assert written(Path("out")) == answer
    shown = augury("checkpoint", "show", "cp").out
    assert "partitions: 1" in shown and "buckets: 3" in shown
    assert augury("checkpoint", "upgrade", "cp").err == "the checkpoint is of this version already\n"


def test_state_of_an_earlier_format_is_upgraded(augury: Augury) -> None:
    """It is refused by its name before Spark starts, and computed anew from the files that the stream has read."""
    from augury.spark.checkpoint_files import sealed, unsealed

    lines = story(60)
    answer = expected(augury, [*lines, END])
    spread(lines[:30], 10, Path("in"))
    run = ("stream", "rules.aug", "--checkpoint", "cp", "--lateness", "5s", "--trigger", "once", "--output", "out", "--events", "in")  # fmt: skip
    assert augury(*run, "--buckets", "2").code == 0
    saved = Path("cp/augury.json")
    saved.write_bytes(sealed({**unsealed(saved, {"rules"}), "state_format": 5}))
    failed(augury(*run), "the state of the checkpoint has format 5", "augury checkpoint upgrade cp", "[S102]")
    done = augury("checkpoint", "upgrade", "cp")
    assert done.code == 0, done.err
    spread([*lines[30:], END], 31, Path("in"), 100)
    assert augury(*run).code == 0
    assert written(Path("out")) == answer


def test_a_run_over_a_history_leaves_the_state_of_a_stream(augury: Augury) -> None:
    """What begins in the history ends live, and nothing comes twice."""
    lines = story(60)
    answer = expected(augury, [*lines, END])
    Path("history.jsonl").write_text("".join(f"{line}\n" for line in lines[:35]))
    run = (
        "run",
        "rules.aug",
        "--events",
        "history.jsonl",
        "--checkpoint",
        "cp",
        "--lateness",
        "5s",
        "--partitions",
        "2",
    )
    assert augury(*run, "--goals").code == 2
    done = augury(*run, "--output", "out")
    assert done.code == 0, done.err
    assert written(Path("out"))
    spread([*lines[35:], END], 50, Path("in"), 100)
    live = ("stream", "rules.aug", "--events", "in", "--checkpoint", "cp", "--lateness", "5s", "--trigger", "once", "--output", "out")  # fmt: skip
    failed(augury(*live, "--events", "in"), "the stream of the checkpoint has 1 source, and not 2")
    assert augury("checkpoint", "copy", "cp", "copied").code == 0
    shutil.rmtree("cp")  # and with it the folder in which Spark says that the schemas of the state are
    Path("copied").rename("cp")
    Path("cp").rename("elsewhere")
    done = augury(*("elsewhere" if arg == "cp" else arg for arg in live))
    assert done.code == 0, done.err
    assert written(Path("out")) == answer


def test_old_answers_are_explained_from_inputs_that_are_kept(augury: Augury) -> None:
    """The rules have forgotten them, and the files are gone from their folder."""
    lines = story(60)
    Path("rules.aug").write_text(RULES)
    run = ("stream", "rules.aug", "--events", "in/*.jsonl", "--checkpoint", "cp", "--lateness", "5s", "--trigger", "once", "--output", "out")  # fmt: skip
    spread(lines, 30, Path("in"))
    assert augury(*run, "--keep", "20d").code == 0
    spread([END], 1, Path("in"), 100)
    assert augury(*run).code == 0
    for path in Path("in").iterdir():
        path.unlink()
    shown = augury("why", "--checkpoint", "cp", "--event", "alarm(_, _)")
    assert "rise(" in shown.out and "wind(" in shown.out, shown.err
    failed(augury("why", "--checkpoint", "cp", "--event", "alarm('nowhere', _)"), "the stream holds no alarm")


def test_a_detection_over_a_history_leaves_the_state_of_a_stream(spark: Any, tmp_path: Path) -> None:
    """The stream has other sources than the history, and emits what the history held back, once."""
    import augury.spark

    program = augury.compile("""
        event order(number: int).
        event shipped(number: int).
        overdue(N) <- o: order(N), w: extend(o, 1h), while w: not shipped(N).
    """)

    def events(first: int, last: int) -> dict[str, list[tuple[int, str]]]:
        times = {n: f"2026-03-01 {10 + n // 60}:{n % 60:02d}" for n in range(200)}
        orders = [(n, times[n]) for n in range(first, last, 3)]
        return {"order": orders, "shipped": [(n - 30, times[n]) for n in range(first, last, 3) if n >= 30 and n % 2]}

    def shown(rows: Any) -> list[tuple[int, str]]:
        return sorted((row["n"], row["end"]) for row in rows)

    schema = "number int, time string"
    past = {name: spark.createDataFrame(rows, schema) for name, rows in events(0, 90).items()}
    state = tmp_path / "state"
    answers = augury.spark.detect(program, past).checkpoint(state, lateness="10 min", buckets=2)
    assert answers.columns == ["op", "type", "n", "start", "end", "id", "trace"]
    early = shown(answers.collect())
    streams = {}
    for name, rows in events(90, 200).items():
        (tmp_path / name).mkdir()
        lines = "".join(json.dumps({"number": number, "time": time}) + "\n" for number, time in rows)
        (tmp_path / name / "1.json").write_text(lines)
        streams[name] = spark.readStream.schema(schema).json(str(tmp_path / name))
    stream = augury.spark.detect_stream(program, streams, lateness="10 min", buckets=2)
    got: list[Any] = []
    stream.check_checkpoint(state)
    query = stream.wide.writeStream.foreachBatch(lambda rows, number: got.extend(rows.collect()))
    query.option("checkpointLocation", str(state)).trigger(availableNow=True).start().awaitTermination()
    whole = {name: spark.createDataFrame(rows, schema) for name, rows in ((n, events(0, 90)[n] + events(90, 200)[n]) for n in past)}  # fmt: skip
    every = shown(augury.spark.detect(program, whole)["overdue"].collect())
    both = sorted(early + shown(got))
    assert early and shown(got)
    assert both == every[: len(both)]  # the last ones are not final
    assert len(every) - len(both) < 5
    with pytest.raises(augury.AuguryError, match="exists already"):
        augury.spark.detect(program, past).checkpoint(state, lateness="10 min")
