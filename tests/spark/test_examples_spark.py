"""The applications on Spark: the answers are those of the embedded engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from augury.examples import EXAMPLES, load
from augury.job import Job
from augury.spark.job import SparkJob
from tests.docs.test_examples import task_of
from tests.support.spark_session import SPARK, session

pytestmark = SPARK


@pytest.mark.parametrize("name", EXAMPLES)
def test_on_spark(name: str, tmp_path: Path) -> None:
    example = load(name)
    example.prepare(tmp_path, example.sizes[1])
    task = task_of(example, tmp_path)
    found = SparkJob(session(), task, example.until).evaluate()
    expected = Job(task).evaluate(example.until, engine="embedded").events
    assert {e.content for e in found.events} == {e.content for e in expected}
    assert expected
