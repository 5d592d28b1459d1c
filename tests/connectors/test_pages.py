"""The examples of the pages of connectors print what the pages say, against real servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.test_docs import SERVED, run_page
from tests.support.servers import free_port


@pytest.mark.parametrize("page", SERVED)
def test_the_example_of_a_connector_runs(
    page: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, usual = SERVED[page]
    port = free_port() if server is None else request.getfixturevalue(server).port
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, spark=False, port=(str(usual), str(port)))
