"""Damaged checkpoints: every kind of file, in every way, is refused by our own message with its name and a hint."""

from __future__ import annotations

import json
import random
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import augury
from augury.core.clock import Clock
from augury.core.errors import SnapshotError
from augury.settings import Settings, Task
from augury.spark.checkpoint import _UNFORMATTED, StreamOptions
from augury.spark.checkpoint_files import check_files, sealed
from augury.spark.checkpoint_report import copy, report, verify
from augury.spark.failures import user_error
from augury.spark.stream import DetectionStream

PROGRAM = augury.compile("event a(x: int).\nr(X) <- a(X).")
CHANGED = "event a(x: int).\nr(X) <- a(X).\ns(X) <- a(X) WHERE X > 1."
TABLE = "000008-8e16.sst"


def write(path: Path, data: bytes | str, sums: bool = True) -> None:
    """A file as Hadoop writes it: with its checksums beside it."""
    data = data.encode() if isinstance(data, str) else data
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if sums:
        crc = b"".join(zlib.crc32(data[i : i + 512]).to_bytes(4, "big") for i in range(0, len(data), 512))
        path.with_name(f".{path.name}.crc").write_bytes(b"crc\0\0\0\2\0" + crc)


def options(folder: Path, format: str = "jsonl", buckets: int | None = 2) -> StreamOptions:
    task = Task(PROGRAM, (), settings=Settings(lateness=0))
    return StreamOptions(task, folder / "ck", str(folder / "out"), format, asked_buckets=buckets)  # type: ignore[arg-type]


def make(folder: Path) -> Path:
    """A checkpoint after two batches, the second of which is committed, and a third that was broken off."""
    made = folder / "ck"
    made.mkdir()
    options(folder).save(Clock())
    write(made / "output" / "ready.json", sealed({"batch": 1, "parts": {"output": "out"}}), sums=False)
    spark = made / "spark"
    write(spark / "metadata", '{"id":"4bfb5080"}')
    for batch in range(3):
        offset = json.dumps({"logOffset": batch})
        write(spark / "offsets" / str(batch), f'v1\n{{"batchWatermarkMs":0}}\n{offset}')
        write(spark / "sources" / "0" / str(batch), 'v1\n{"path":"file:///in/1.jsonl","batchId":0}')
    for batch in range(2):
        write(spark / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":0}')
    state = spark / "state" / "0"
    about = {"numPartitions": 2, "stateSchemaFilePaths": ["file:/elsewhere/_stateSchema/default/0_35ee"]}
    write(state / "_metadata" / "v2" / "0", f"v2\n{json.dumps({'operatorInfo': {}, 'stateStoreInfo': [about]})}")
    write(state / "_stateSchema" / "default" / "0_35ee", b"\x00schema" * 20)
    for partition in ("0", "1"):
        write(state / partition / "SSTs" / TABLE, b"table" * 300)
        with zipfile.ZipFile(state / partition / "1.zip", "w") as packed:
            table = {"localFileName": "000008.sst", "dfsSstFileName": TABLE, "sizeBytes": 1500}
            packed.writestr("metadata", f"v1\n{json.dumps({'sstFiles': [table]})}")
            packed.writestr("MANIFEST-000005", b"manifest" * 100)
        write(state / partition / "1.zip", (state / partition / "1.zip").read_bytes())
        write(state / partition / "2.changelog", b"changes" * 200)
        (state / partition / "3.changelog").write_bytes(b"half of the third bat")  # nobody reads it again
    (spark / "offsets" / ".3.5f6e.tmp").write_bytes(b"v1\n")
    return made


def needed(checkpoint: Path) -> list[str]:
    skipped = ("3.changelog", "tmp", ".crc")
    files = (p.relative_to(checkpoint).as_posix() for p in sorted(checkpoint.rglob("*")) if p.is_file())
    return [
        name
        for name in files
        if not name.endswith(skipped) and name not in ("spark/offsets/0", "spark/commits/0", "spark/offsets/2")
    ]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


WAYS: dict[str, Callable[[Path], object]] = {
    "one bit is another": flip,
    "cut off": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "emptied": lambda path: path.write_bytes(b""),
    "too long": lambda path: path.write_bytes(path.read_bytes() * 2),
    "deleted": Path.unlink,
    "something else": lambda path: path.write_bytes(b"\x00\xff" * 20),
    "a folder": folder_instead,
}


def test_undamaged_checkpoint_resumes(tmp_path: Path) -> None:
    make(tmp_path)
    options(tmp_path).check()
    options(tmp_path, buckets=None).check()
    assert len(needed(tmp_path / "ck")) == 16


def test_a_new_checkpoint_needs_nothing(tmp_path: Path) -> None:
    options(tmp_path).check()
    (tmp_path / "ck").mkdir()
    options(tmp_path).check()
    check_files(tmp_path / "ck", {})


@pytest.mark.parametrize("way", WAYS)
def test_damaged_checkpoint_file_is_named(way: str, tmp_path: Path) -> None:
    """With its checksums, and without them, where the file itself shows it."""
    for n, name in enumerate(needed(make(tmp_path))):
        folder = tmp_path / str(n)
        folder.mkdir()
        target = make(folder) / name
        WAYS[way](target)
        with pytest.raises(SnapshotError) as caught:
            options(folder).check()
        message = str(caught.value)
        assert str(target.parent) in message and target.name in message, (name, message)
        assert "[S101]" in message and "hint: restore the checkpoint from a copy" in message


@pytest.mark.parametrize("way", ["emptied", "deleted", "something else", "a folder"])
def test_a_damaged_file_without_checksums(way: str, tmp_path: Path) -> None:
    made = make(tmp_path)
    names = [name for name in needed(made) if not name.endswith("changelog") and "_stateSchema" not in name]
    for n, name in enumerate(names):
        folder = tmp_path / str(n)
        folder.mkdir()
        target = make(folder) / name
        target.with_name(f".{target.name}.crc").unlink(missing_ok=True)
        WAYS[way](target)
        with pytest.raises(SnapshotError, match=r"the checkpoint is damaged: .*\[S101\]"):
            options(folder).check()


@pytest.mark.parametrize(
    "name", ["spark/state/0/1", "spark/offsets", "spark/commits", "spark/sources", "spark/sources/0"]
)
def test_a_folder_is_missing(name: str, tmp_path: Path) -> None:
    import shutil

    shutil.rmtree(make(tmp_path) / name)
    with pytest.raises(SnapshotError, match=f"the checkpoint is damaged: .*/{name}.* is missing"):
        options(tmp_path).check()


def test_a_batch_that_was_written_is_not_forgotten(tmp_path: Path) -> None:
    """Without its entry, the next batch would have its number, and its answers would be taken for written."""
    made = make(tmp_path)
    for batch in ("1", "2"):
        (made / "spark" / "offsets" / batch).unlink()
    (made / "spark" / "commits" / "1").unlink()
    with pytest.raises(SnapshotError, match=r"offsets/1 is missing"):
        options(tmp_path).check()


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_another_format_is_refused(format: str, tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(augury.AuguryError, match=f"format was jsonl, is {format}"):
        options(tmp_path, format).check()


def test_a_checkpoint_that_does_not_say_its_format(tmp_path: Path) -> None:
    """As earlier versions wrote it, which left no note before their first answer either."""
    saved = make(tmp_path) / "augury.json"
    said = json.loads(saved.read_text())
    said = {name: value for name, value in said.items() if name in _UNFORMATTED}
    saved.write_text(json.dumps(said))
    (tmp_path / "ck" / "output" / "ready.json").unlink()
    options(tmp_path).check()


def test_a_stream_of_dataframes_can_check_its_checkpoint(tmp_path: Path) -> None:
    """`start()` is Spark's own: a user calls the check before it."""
    spark = make(tmp_path) / "spark"
    DetectionStream.check_checkpoint(spark)
    DetectionStream.check_checkpoint(tmp_path / "new")
    (spark / "commits" / "1").write_bytes(b"v1\n{}")
    with pytest.raises(SnapshotError, match="commits/1"):
        DetectionStream.check_checkpoint(str(spark))


def test_what_a_worker_raises_is_said_in_its_own_words() -> None:
    """The last line of its traceback names the class of the error, wherever that is defined."""
    raised = augury.RunError("the checkpoint is of another program", "start anew")
    kind = type(raised)
    text = f"Traceback (most recent call last):\n{kind.__module__}.{kind.__qualname__}: {raised}\n"
    assert str(user_error(ValueError(text), None)).startswith("the checkpoint is of another program")


# Other programs, and a look inside


def test_a_changed_program_resumes_and_says_what_becomes_of_its_rules(tmp_path: Path) -> None:
    made = make(tmp_path)
    options(tmp_path).save(Clock("timestamp"))
    write(made / "spark" / "commits" / "1", 'v1\n{"nextBatchWatermarkMs":60000}')
    other = replace(options(tmp_path), task=Task(augury.compile(CHANGED), (), settings=Settings(lateness=10**6)))
    other.check()
    change = other.upgrade()
    assert change is not None
    assert list(change.lines()) == [
        "rule `r` is unchanged and keeps its state",
        "rule `s` is new: it sees what starts after 1970-01-01T00:01:00.000999Z",
    ]
    other.save(Clock("timestamp"))
    assert replace(other).upgrade() is None
    assert list(report(made))[:6] == [
        "version 2 of its program, 2 rules",
        "  r   from the beginning",
        "  s   what starts after 1970-01-01T00:01:00.000999Z",
        "batches 0 to 1 are complete, 2 has begun",
        "watermark 1970-01-01T00:01:00Z",
        "settings",
    ]


def test_another_policy_changes_rules_that_are_written_alike(tmp_path: Path) -> None:
    text = "event a(x: int).\nr(X, Y) <- a(X) SEQ a(Y)."
    recent = augury.compile(text, policy="recent")
    options_of = {
        name: replace(options(tmp_path), task=Task(program, (), settings=Settings(lateness=0)))
        for name, program in (("recent", recent), ("unrestricted", augury.compile(text)))
    }
    (tmp_path / "ck").mkdir()
    options_of["recent"].save(Clock())
    assert options_of["recent"].upgrade() is None
    change = options_of["unrestricted"].upgrade()
    assert change is not None and change.fates == {"r": "changed"}


def test_facts_of_the_program_are_part_of_it(tmp_path: Path) -> None:
    text = "event a(x: int).\nlit({}).\nr(X) <- a(X) WHERE lit(X)."
    (tmp_path / "ck").mkdir()
    for value in (1, 2):
        task = Task(augury.compile(text.format(value)), (), settings=Settings(lateness=0))
        changed = replace(options(tmp_path), task=task)
        if value == 1:
            changed.save(Clock())
    with pytest.raises(augury.RunError, match="its static rules or facts are others"):
        changed.check()


def test_what_cannot_be_taken_over_is_refused_with_the_reason(tmp_path: Path) -> None:
    make(tmp_path)
    for text, why in {
        "event a(x: string).\nr(X) <- a(X).": "the attribute `x` of `a` is another",
        "event a(x: int).\nr(X) <- a(X).\nlit(1).\ns(X) <- a(X) WHERE lit(X).": "static rules or facts",
        "event a(x: int).\nr(X) <- a(X).\nt() <- a(X) SEQ b(X).": "in 2 stages, and ran in 1|merged in another way",
    }.items():
        other = replace(options(tmp_path), task=Task(augury.compile(text), (), settings=Settings(lateness=0)))
        with pytest.raises(augury.RunError, match=why):
            other.check()


def test_a_batch_that_was_written_belongs_to_the_program_that_wrote_it(tmp_path: Path) -> None:
    made = make(tmp_path)
    other = replace(options(tmp_path), task=Task(augury.compile(CHANGED), (), settings=Settings(lateness=0)))
    other.check()
    write(made / "output" / "ready.json", sealed({"batch": 2, "parts": {"output": "out"}}), sums=False)
    options(tmp_path).check()
    with pytest.raises(augury.RunError, match="the answers of batch 2 are written"):
        other.check()


def test_copies(tmp_path: Path) -> None:
    made = make(tmp_path)
    copy(made, tmp_path / "copied")
    verify(tmp_path / "copied")
    lines, copied = ([line for line in report(folder) if "B" not in line] for folder in (made, tmp_path / "copied"))
    assert lines == copied
    about = (tmp_path / "copied" / "spark" / "state" / "0" / "_metadata" / "v2" / "0").read_text()
    assert f"file:{tmp_path}/copied/spark/state/0/_stateSchema/default/0_35ee" in about
    with pytest.raises(augury.DataError, match="exists already"):
        copy(made, tmp_path / "copied")
    (made / "spark" / "commits" / "1").unlink()
    with pytest.raises(SnapshotError):
        copy(made, tmp_path / "again")
    assert not list(tmp_path.glob("*again*"))
