"""`augury pack`: an archive that spark-submit runs, and that says how."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from augury.cli import cli
from tests.support.servers import Server, free_port
from tests.support.service_kills import PATIENCE

LONG = bool(os.environ.get("AUGURY_LONG"))
PROGRAM = """
include "wind.aug".
static near(station: string, village: string).
output alarm.
alarm(V, S) <- wind(S, X) WHERE X > 5, near(S, V).
"""


def packed(folder: Path, *options: str) -> Path:
    """The folder of an unpacked archive of a program with an included file and facts."""
    (folder / "rules").mkdir()
    (folder / "rules" / "wind.aug").write_text("event wind(station: string, speed: float).\n")
    (folder / "rules" / "p.aug").write_text(PROGRAM)
    (folder / "near.csv").write_text("station,village\ns1,Brook\n")
    (folder / "in").mkdir()
    arguments = [
        "pack", str(folder / "fire.tar.gz"), str(folder / "rules" / "p.aug"), "--facts", f"near={folder / 'near.csv'}",
        "--from", str(folder / "in" / "*.jsonl"), "--to", str(folder / "out"), "--state", str(folder / "state"), *options,
    ]  # fmt: skip
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    assert "--master spark://HOST:7077" in result.output and "spark.kubernetes.container.image" in result.output
    with tarfile.open(folder / "fire.tar.gz") as tar:
        tar.extractall(folder, filter="tar")
    return folder / "fire"


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077", "yarn", "k8s://https://host:6443"])
def test_the_script_submits_to_each_kind_of_cluster(tmp_path: Path, master: str) -> None:
    inside = packed(tmp_path, "--no-environment", "--lateness", "10min", "--strict", "--conf", "a.b=c d")
    assert (inside / "files" / "wind.aug").exists()
    main = (inside / "main.py").read_text()
    assert "'--lateness', '10min'" in main and "'--strict'" in main and "near=files/" in main and "a.b" not in main
    compile(main, "main.py", "exec")
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "spark-submit"
    fake.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    fake.chmod(0o755)
    done = subprocess.run(
        [inside / "submit.sh", master, "--conf", "more=x y"], capture_output=True, text=True, check=True,
        env={**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"},
    )  # fmt: skip
    submitted = json.loads(done.stdout)
    assert submitted[:2] == ["--master", master] and submitted[-3:] == ["--conf", "more=x y", "main.py"]
    assert "a.b=c d" in submitted and ("files.zip#files" in submitted) == (not master.startswith("local"))
    assert subprocess.run([inside / "submit.sh", "nowhere"], capture_output=True, check=False).returncode == 2


def test_what_cannot_be_packed_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.aug").write_text("event a(n: int).\nb(N) <- a(N).\n")
    archive, program = str(tmp_path / "x.tar.gz"), str(tmp_path / "p.aug")
    stream = ["--from", str(tmp_path), "--state", "st"]
    for arguments, message in (
        ([program, *stream], "name it first"),
        ([archive, program, *stream, "--latenes", "5s"], "--lateness"),
        ([archive, program, *stream, "--facts", "c=shop.duckdb:SELECT 1"], "cannot be packed"),
        ([archive, program, *stream, "--with", "no-such-package-of-anyone"], "is not installed here"),
        ([archive, str(tmp_path / "q.aug"), *stream], "q.aug"),
    ):
        result = CliRunner().invoke(cli, ["pack", *arguments])
        assert result.exit_code != 0 and message in result.output + str(result.exception), arguments
    assert not Path(archive).exists()


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A master of Spark with one worker."""
    pyspark = pytest.importorskip("pyspark")
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class")]
    parts = [*command, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1"]
    port, work = free_port(), folder / "work"
    url = f"spark://127.0.0.1:{port}"
    worker = [
        *command,
        "org.apache.spark.deploy.worker.Worker",
        "--host",
        "127.0.0.1",
        "--cores",
        "2",
        "--memory",
        "2g",
    ]
    with ExitStack() as stack:
        for line, listening in (
            ([*parts, "--port", str(port), "--webui-port", str(free_port())], port),
            (
                [*worker, "--port", str(other := free_port()), "--webui-port", str(free_port()), "-d", str(work), url],
                other,
            ),
        ):
            server = Server(line, listening, folder)
            stack.callback(server.stop)
            server.start()
        yield url


def test_a_packed_stream_runs_on_a_standalone_master(tmp_path: Path) -> None:
    if not LONG:
        pytest.skip("starts a cluster: AUGURY_LONG=1")
    inside = packed(tmp_path, "--trigger", "once", "--emit", "early")
    rows = [{"type": "wind", "station": f"s{n % 2}", "speed": n, "time": f"2026-07-01 12:00:{n:02}"} for n in range(20)]
    (tmp_path / "in" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with standalone(tmp_path) as url:
        import pyspark

        tools = Path(pyspark.__file__).parent / "bin"
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        settings = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"]
        done = subprocess.run(
            [inside / "submit.sh", url, *settings], capture_output=True, text=True, check=False, timeout=20 * PATIENCE,
            env={**environment, "PATH": f"{tools}:{os.environ['PATH']}"},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    answers = [
        json.loads(line) for path in (tmp_path / "out").rglob("*.json") for line in path.read_text().splitlines()
    ]
    assert len(answers) == 7 and {answer["args"][0] for answer in answers} == {"Brook"}
