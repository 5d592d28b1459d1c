"""Who may ask the console, and for how much: token, host, origin, size of requests; what a page may load."""

from __future__ import annotations

import hmac
import json

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from augury.console.request_fields import RequestRefused

MOST_BYTES = 1_000_000  # of a request
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def refusal(error: RequestRefused) -> JSONResponse:
    return JSONResponse({"error": error.message, **error.more}, error.status)


class AccessCheck:
    """Lets through what this machine asks with the token, from a page of this server."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        try:
            check_access(request, self.token)
        except RequestRefused as error:
            await refusal(error)(scope, receive, send)
            return
        await self.app(scope, receive, send)


def check_access(request: Request, token: str) -> None:
    """Raises where a request comes from elsewhere or does not have the token."""
    host = request.headers.get("host", "")
    server = request.scope.get("server") or ("", 0)
    if host not in {f"{name}:{server[1]}" for name in ("127.0.0.1", "localhost")}:
        raise RequestRefused(421, "the console answers 127.0.0.1 and localhost alone")
    origin = request.headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        raise RequestRefused(403, "a request from another origin")
    if request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise RequestRefused(403, "a request from another site")
    first = request.url.path.lstrip("/").partition("/")[0]
    if not hmac.compare_digest(first.encode(), token.encode()):
        raise RequestRefused(403, "the token is missing or wrong: open the address that `augury console` has printed")


def headers_of_page(nonce: str) -> dict[str, str]:
    """The headers of a page: nothing is loaded from elsewhere, and no text of an event runs."""
    return _HEADERS | {"content-security-policy": _POLICY.format(nonce=nonce)}


def secured(response: Response) -> Response:
    response.headers.update(headers_of_page(""))
    return response


async def body_of(request: Request) -> object:
    """The JSON of a request."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise RequestRefused(415, "a request is JSON: content-type application/json")
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MOST_BYTES:
            raise RequestRefused(413, f"a request has at most {MOST_BYTES:,} bytes")
    try:
        return json.loads(content or b"{}")
    except (ValueError, RecursionError):
        raise RequestRefused(400, "the request is not JSON") from None
