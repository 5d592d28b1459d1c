"""What is in deploy/ names options and metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from augury.cli import cli
from augury.service.service_metrics import FIGURES

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def _metrics(text: str) -> set[str]:
    return set(re.findall(r"augury_[a-z_]+", text))


@pytest.mark.parametrize("name", ["grafana.json", "alerts.yaml"])
def test_dashboards_and_alerts_ask_for_metrics_that_there_are(name: str) -> None:
    histograms = {f"augury_{what}_seconds_bucket" for what in ("latency", "step")}
    assert _metrics((DEPLOY / name).read_text()) <= FIGURES.keys() | histograms


def test_the_documentation_names_metrics_that_there_are() -> None:
    named = _metrics((ROOT / "docs" / "production.md").read_text())
    assert named - {"augury_public_stations"} <= FIGURES.keys() | {"augury_latency_seconds", "augury_step_seconds"}


@pytest.mark.parametrize("name", ["augury-live.service", "Containerfile", "kubernetes.yaml"])
def test_options_are_those_of_the_command(name: str) -> None:
    helped = CliRunner().invoke(cli, ["live", "--help"]).output
    text = "\n".join(
        line for line in (DEPLOY / name).read_text().splitlines() if not line.startswith(("RUN", "    &&", "COPY"))
    )
    for option in set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", text)) - {"--now"}:
        assert option in helped, option


def test_the_dashboard_is_whole() -> None:
    panels = json.loads((DEPLOY / "grafana.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) and all(panel["targets"] for panel in panels)


def test_manifests_are_yaml() -> None:
    yaml = pytest.importorskip("yaml")
    kinds = [document["kind"] for document in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())]
    assert kinds == ["ConfigMap", "Service", "StatefulSet"]
    (group,) = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]
    assert all({"alert", "expr", "for", "labels", "annotations"} == rule.keys() for rule in group["rules"])


def test_the_unit_is_one_of_systemd(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    text = (DEPLOY / "augury-live.service").read_text().replace("/opt/augury/bin/augury", "/bin/true")
    (tmp_path / "augury-live.service").write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", tmp_path / "augury-live.service"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if "augury-live.service" in line]
    assert said == []
