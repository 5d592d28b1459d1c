"""Property tests are the same each time in CI; `make fuzz` tries many more, each time others.

Tests that take long on Spark run with `make test-long` alone; what they are about is tested on a smaller scale as well.
All that run on Spark are done by one worker, so that there is one virtual machine, while another does the rest. Of the rest,
a piece is some tests of one function, or all that read one spec file, which then is compiled once.
"""

from __future__ import annotations

import gc
import os
import re
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

_QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
settings.register_profile("ci", max_examples=60, deadline=None, derandomize=True, suppress_health_check=_QUIET)
settings.register_profile("fuzz", max_examples=3000, deadline=None, suppress_health_check=_QUIET)
settings.load_profile("fuzz" if os.environ.get("AUGURY_FUZZ") else "ci")

# Virtual machines live for minutes here: to compile well takes them longer than to run what was compiled quickly.
# There is room for all that they compile: else they throw code away, and compile it again.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m")
# With the usual gigabyte, plans of many small cases leave them little to do but to look for garbage.
os.environ.setdefault("SPARK_DRIVER_MEMORY", "3g")

# What runs on Spark in the short run, by file; all of these files run in the long one.
SHORT = {
    "test_spark.py": (
        "test_spec_cases_in_batch[0]", "test_spec_cases_in_a_stream[final]", "test_frames_by_type_and_one_of_all",
        "test_answers_have_ids_and_traces", "test_events_are_taken_back", "test_wrong_arguments_are_refused",
        "test_python_functions_on_workers", "test_stream_resumes_from_its_checkpoint", "test_windows_by_the_clock[batch]", "test_windows_by_the_clock[final]",
    ),
    "test_cli_spark.py": (
        "test_json_lines_and_all_formats", "test_java_is_looked_at_first",
        "test_a_stream_that_is_wrong_from_the_start", "test_places_that_cannot_be_written",
        "test_whoever_follows_sees_each_answer_once",
    ),
    "test_spark_files.py": (
        "test_files_give_the_events_of_the_embedded_reader[intervals]", "test_files_give_the_events_of_the_embedded_reader[unknown types]", "test_files_give_the_events_of_the_embedded_reader[by name]",
        "test_files_give_the_events_of_the_embedded_reader[another number", "test_files_give_the_errors_of_the_embedded_reader[bytes]", "test_files_give_the_errors_of_the_embedded_reader[broken]",
        "test_files_give_the_errors_of_the_embedded_reader[nested, declared]", "test_files_give_the_errors_of_the_embedded_reader[strict]", "test_files_give_the_errors_of_the_embedded_reader[arguments that",
        "test_files_that_are_wrong_as_a_whole[another", "test_files_that_are_read_in_parts[line breaks]",
    ),
    "test_pushdown.py": ("test_examples_push_conditions_down", "test_nothing_that_matters_is_dropped[0-logical]"),
    "test_spark_facts.py": ("test_a_stream_of_facts[final]", "test_many_facts_are_joined[in one branch]", "test_an_event_that_many_facts_speak_of_is_revoked", "test_what_decides_a_match_is_sent_all_the_same[negated]"),
    "test_spark_rules.py": ("test_answers_are_those_of_the_reference[negation]", "test_rules_over_many_facts_are_joined[both bound]"),
    "test_spark_triples.py": ("test_malformed_lines_are_named",),
    "test_spark_conversions.py": ("test_",),
    "test_spark_nested.py": ("test_",),
    "test_time_units_spark.py": ("test_",),
    "test_spaseq_spark.py": ("test_",),
    "test_sink_batches.py": ("test_a_batch_that_is_repeated", "test_what_spark_cannot_read"),
    "test_rebuilding.py": (),
    "test_checkpoint_commands.py": (),
    "test_stream_metrics_on_spark.py": (),
    "test_bench_spark.py": ("test_spark_benchmark_names_select_benchmarks",),
    "test_examples_spark.py": ("test_on_spark[wildfire]",),
}  # fmt: skip
_LONG_PAGES = ("test_page_runs[spark.md]", "test_page_runs_on_spark[tutorial.md]")


def on_spark(nodeid: str) -> bool:
    file, _, name = nodeid.rpartition("/")[2].partition("::")
    return file in SHORT or name in _LONG_PAGES


PIECES = 8  # of a function with many tests: to hand them out one by one costs as much as many of them
_SPEC = re.compile(r"\[(?:\w+, )?(?:\w+/)?(\w+): ")  # the file of a spec case, in the name of its test


def piece(nodeid: str) -> str:
    """The piece of work that a test belongs to."""
    if on_spark(nodeid):
        return "spark"
    if spec := _SPEC.search(nodeid):
        return f"spec {spec[1]}"
    return f"{nodeid.partition('[')[0]} {crc32(nodeid.encode()) % PIECES}"


def is_long(item: pytest.Item) -> bool:
    return on_spark(item.nodeid) and not item.name.startswith(SHORT.get(item.path.name, ()))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts Spark goes first, so that the other tests fill the time of the second core."""
    items.sort(key=lambda item: not on_spark(item.nodeid))
    if not os.environ.get("AUGURY_LONG"):
        for item in items:
            if is_long(item):
                item.add_marker(pytest.mark.skip(reason="takes long on Spark: make test-long"))


def pytest_collection_finish() -> None:
    """Ten thousand tests stay to the end: who collects garbage, as benchmarks do, need not look at them each time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Whoever is free takes the next piece; Spark is the first one."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    config.option.loadscopereorder = False

    class ByPiece(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return piece(nodeid)

    return ByPiece(config, log)
