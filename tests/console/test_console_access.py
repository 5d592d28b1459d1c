"""Who may ask the console: token, host and origin; what is malformed gets a 4xx and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from augury.console.serving import ConsoleServer
from augury.core.errors import RunError
from tests.support.consoles import ask, served, watched

HOSTILE = "<script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def console() -> Iterator[tuple[str, httpx.Client]]:
    events = [f"s{i}: smoke('{HOSTILE.replace(chr(39), chr(34))}') @ {i}" for i in range(3)]
    with served(watched("output alarm. alarm(L) <- smoke(L).", events)) as address_and_client:
        yield address_and_client


def test_a_wrong_token_is_refused(console: tuple[str, httpx.Client]) -> None:
    address, _ = console
    root = address[: address.rindex("/", 0, -1)]
    for path in ("/", "/wrong/", "/wrong/ask/about", "/wrong/changes", f"/{'a' * 43}/"):
        response = httpx.get(root + path)
        assert response.status_code == 403, path
        assert "token" in response.json()["error"]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "https://127.0.0.1"},
        {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"},
    ],
)  # fmt: skip
def test_another_origin_is_refused(console: tuple[str, httpx.Client], headers: dict[str, str]) -> None:
    response = console[1].post("ask/about", json={}, headers=headers)
    assert response.status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "127.0.0.1:1", ""])
def test_another_host_is_refused(console: tuple[str, httpx.Client], host: str) -> None:
    response = console[1].post("ask/about", json={}, headers={"host": host})
    assert response.status_code in (400, 421)


def test_the_page_of_this_server_may_ask(console: tuple[str, httpx.Client]) -> None:
    address, client = console
    origin = address[: address.index("/", 7)]
    assert client.post("ask/about", json={}, headers={"origin": origin}).status_code == 200


@pytest.mark.parametrize(
    ("question", "content", "status"),
    [
        ("timeline", b"{", 400), ("timeline", b"[]", 400), ("timeline", b"{}", 400), ("timeline", b'{"edges": 3}', 400),
        ("timeline", b'{"edges": [1, "2"]}', 400), ("timeline", b'{"edges": [1, 2], "moment": 1.5}', 400),
        ("timeline", b'{"edges": [2, 1]}', 422), ("timeline", b'{"edges": [1, 99999999999999999999]}', 400),
        ("timeline", b'{"edges": [1, 2], "more": 1}', 400), ("timeline", b"[" * 100_000, 400),
        ("item", b'{"type": "smoke", "id": "nope"}', 422), ("item", b'{"type": "smoke", "id": null}', 400),
        ("why", b'{"type": "smoke", "id": "s1", "all": 1}', 400), ("nothing", b"{}", 404),
        ("what-if", b'{"edits": [{"kind": 1}]}', 400), ("what-if", b'{"edits": [3]}', 400), ("what-if", b'{"sources": {"a": 1}}', 400),
        ("why-not", b'{"atom": "alarm("}', 422), ("why-not", b'{"atom": "smoke(1)"}', 422), ("goals", b'{"moment": "now"}', 400),
        ("about", b"{}" + b" " * 1_000_001, 413), ("overview", b'{"edges": []}', 422),
    ],
)  # fmt: skip
def test_malformed_requests_are_refused(
    console: tuple[str, httpx.Client], question: str, content: bytes, status: int
) -> None:
    _, client = console
    before = ask(client, "about")
    response = client.post(f"ask/{question}", content=content, headers={"content-type": "application/json"})
    assert response.status_code == status, response.text
    assert response.json()["error"]
    assert ask(client, "about") == before


def test_other_methods_and_forms_are_refused(console: tuple[str, httpx.Client]) -> None:
    _, client = console
    assert client.get("ask/about").status_code == 405
    assert client.post("ask/about", data={"a": "b"}).status_code == 415
    assert client.get("..%2fweb_app.py").status_code in (403, 404)
    assert client.get("nothing.js").status_code == 404


def test_a_page_loads_nothing_from_elsewhere(console: tuple[str, httpx.Client]) -> None:
    _, client = console
    page = client.get("")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    for name in ("app.js", "app.css"):
        asset = client.get(name)
        assert asset.status_code == 200 and asset.headers["x-content-type-options"] == "nosniff"
        assert "https://" not in asset.text.replace("https://react.dev", "")


def test_the_state_is_sent_as_it_changes(console: tuple[str, httpx.Client]) -> None:
    with console[1].stream("GET", "changes") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        line = next(line for line in response.iter_lines() if line)
    assert line.startswith('data: {"version":3')


def test_whoever_asks_before_the_server_runs_is_answered() -> None:
    server = ConsoleServer(watched("output alarm. alarm(L) <- smoke(L).", []))
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(httpx.get, server.address, timeout=60)
        with server.running():
            assert early.result().status_code == 200


def test_a_port_that_is_taken_is_named(console: tuple[str, httpx.Client]) -> None:
    port = int(console[0].split(":")[2].partition("/")[0])
    with pytest.raises(RunError, match=f"port {port} cannot be opened: Address already in use"):
        ConsoleServer(watched("output alarm. alarm(L) <- smoke(L).", []), port)
