"""Inputs that a stream keeps for longer than its rules remember them: no Spark."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from augury.core.errors import RunError
from augury.sources import SourceFile
from augury.spark.kept_inputs import KeptInputs, check_keeping


def arrive(home: Path, number: int) -> Path:
    """A file of events, which Spark's log says a batch has read."""
    path = home / "in" / f"{number}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"type": "a", "x": number, "time": number}) + "\n")
    log = home / "cp" / "spark" / "sources" / "0"
    log.mkdir(parents=True, exist_ok=True)
    (log / str(number)).write_text(f'v1\n{{"path":"file://{path}","timestamp":1,"batchId":{number}}}')
    return path


def kept(home: Path) -> list[str]:
    """What a new run sees of the files that are kept."""
    folders = [Path(source.path) for source in KeptInputs.of(home / "cp").events()]
    return [gzip.decompress(file.read_bytes()).decode() for folder in folders for file in sorted(folder.glob("[!.]*"))]


def test_files_are_kept_until_their_events_are_old(tmp_path: Path) -> None:
    sources = [SourceFile(str(tmp_path / "in" / "*.jsonl"), "a")]
    inputs, spark = KeptInputs.of(tmp_path / "cp"), tmp_path / "cp" / "spark"
    texts = [arrive(tmp_path, number).read_text() for number in range(2)]
    inputs.update(spark, sources, end=100, keep=50)
    assert kept(tmp_path) == texts
    (source,) = KeptInputs.of(tmp_path / "cp").events()
    assert (source.type, source.files()[0].form()) == ("a", "jsonl")
    (tmp_path / "in" / "0.jsonl").unlink()  # what is gone stays here
    texts.append(arrive(tmp_path, 2).read_text())
    inputs = KeptInputs.of(tmp_path / "cp")
    inputs.update(spark, sources, end=140, keep=50)
    inputs.update(spark, sources, end=140, keep=50)
    assert kept(tmp_path) == texts
    arrive(tmp_path, 3).unlink()  # gone before it could be copied
    inputs.update(spark, sources, end=160, keep=50)
    assert kept(tmp_path) == texts[2:]
    KeptInputs.of(tmp_path / "cp").update(spark, sources, end=160, keep=0)
    assert kept(tmp_path) == [] and KeptInputs.of(tmp_path / "cp").events() == ()


def test_a_copy_that_was_broken_off_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [SourceFile(str(tmp_path / "in"))]
    text = arrive(tmp_path, 0).read_text()

    def die(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", die)
        with pytest.raises(KeyboardInterrupt):
            KeptInputs.of(tmp_path / "cp").update(tmp_path / "cp" / "spark", sources, end=100, keep=50)
    assert kept(tmp_path) == []
    KeptInputs.of(tmp_path / "cp").update(tmp_path / "cp" / "spark", sources, end=100, keep=50)
    assert kept(tmp_path) == [text]


def test_what_is_elsewhere_is_not_kept() -> None:
    with pytest.raises(RunError, match="--keep copies files of this machine"):
        check_keeping([SourceFile("s3a://lake/in")])
