"""One Spark session for all tests of a process; without Java they are skipped, and say so."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the Spark executor is an extra")
pytest.importorskip("pandas", reason="streams on Spark come with pandas")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java, but none was found here", allow_module_level=True)

from pyspark.sql import SparkSession

# For the decorator of a module: the libraries of Spark warn of their own future.
SPARK = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
_ROOT = Path(__file__).parents[2]
# Workers come from a process that has imported what they need.
FORKED = {
    "spark.python.daemon.module": "tests.support.spark_daemon",
    "spark.executorEnv.PYTHONPATH": os.pathsep.join(map(str, (_ROOT, _ROOT / "src", _ROOT / "tests" / "spark_site"))),
}
# Small jobs of large plans: to generate and compile code takes most of their time.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
SETTINGS = {
    **FORKED,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def builder(master: str = "local[2]") -> SparkSession.Builder:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    made: SparkSession.Builder = SparkSession.builder.master(master).appName("augury tests")
    for name, value in SETTINGS.items():
        made = made.config(name, value)
    return made


def session() -> SparkSession:
    """The session of this process; a new one where another test has stopped it."""
    found = builder().getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


@pytest.fixture(name="spark")
def spark_fixture() -> SparkSession:
    return session()
