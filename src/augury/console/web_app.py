"""The server: the page, its questions as POST requests, and the state as server-sent events."""

from __future__ import annotations

import asyncio
import mimetypes
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from augury.console.access import AccessCheck, body_of, headers_of_page, refusal, secured
from augury.console.edits import HypothesisRequest
from augury.console.recording import ENDING
from augury.console.request_fields import RequestRefused, read_request
from augury.console.state_views import StateViews
from augury.console.trial_views import ArgumentRequest, AtomRequest, DraftRequest, TrialViews
from augury.console.views import ItemRequest, MomentRequest, Nothing, TimelineRequest, Views, as_text
from augury.console.watched_lanes import WatchedLanes
from augury.core.errors import AuguryError, RunError

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Augury console</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="csp-nonce" nonce="{nonce}">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="app.css">
</head>
<body>
<div id="app"></div>
<noscript>The console needs JavaScript.</noscript>
<script type="module" src="app.js"></script>
</body>
</html>
"""
_BETWEEN_FRAMES, _SILENCE = 0.2, 15.0  # seconds
_MOST_LISTENERS = 32


def questions(watched: WatchedLanes, trials: TrialViews) -> dict[str, tuple[type[Any], Callable[[Any], Any]]]:
    """Each question of the page: what it asks with, and what answers it."""
    views, state = Views(watched), StateViews(watched)
    return {
        "about": (Nothing, views.about),
        "timeline": (TimelineRequest, views.timeline),
        "overview": (TimelineRequest, views.overview),
        "item": (ItemRequest, views.item),
        "why": (ItemRequest, views.why),
        "leads-to": (ItemRequest, views.leads_to),
        "goals": (MomentRequest, state.goals),
        "plan": (Nothing, state.plan),
        "metrics": (Nothing, state.metrics),
        "why-not": (AtomRequest, trials.why_not),
        "values": (ArgumentRequest, trials.values),
        "what-if": (HypothesisRequest, trials.what_if),
        "check": (DraftRequest, trials.check),
        "apply": (DraftRequest, trials.apply),
    }


def application(
    watched: WatchedLanes, trials: TrialViews, token: str, stopping: Callable[[], bool] = lambda: False
) -> Starlette:
    """The console of a watched session."""
    table, views = questions(watched, trials), Views(watched)
    listeners = 0

    async def page(request: Request) -> Response:
        nonce = secrets.token_urlsafe(16)
        return HTMLResponse(_PAGE.format(nonce=nonce), headers=headers_of_page(nonce))

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        path = files("augury.console") / "static" / name
        if "/" in name or name.startswith(".") or not path.is_file():
            raise RequestRefused(404, "there is no such page")
        return secured(Response(path.read_bytes(), media_type=mimetypes.guess_type(name)[0] or "text/plain"))

    async def answer(request: Request) -> Response:
        name = request.path_params["question"]
        if name not in table:
            raise RequestRefused(404, f"there is no question `{name[:60]}`: there is {', '.join(table)}")
        kind, view = table[name]
        asked = read_request(kind, await body_of(request))
        result = await run_in_threadpool(view, asked)
        return secured(Response(as_text(result), media_type="application/json"))

    async def recording(request: Request) -> Response:
        data = await run_in_threadpool(trials.recorded, MomentRequest())
        kept = {"content-disposition": f'attachment; filename="session{ENDING}"'}
        return secured(Response(data, media_type="application/octet-stream", headers=kept))

    async def changes(request: Request) -> Response:
        nonlocal listeners
        if listeners >= _MOST_LISTENERS:
            raise RequestRefused(503, f"more than {_MOST_LISTENERS} pages are open")
        return secured(StreamingResponse(states(), media_type="text/event-stream"))

    async def states() -> AsyncIterator[str]:
        """The latest state, whenever there is another one: a slow browser gets fewer of them."""
        nonlocal listeners
        listeners += 1
        try:
            last, silent = "", 0.0
            while not stopping():
                text = as_text(await run_in_threadpool(views.state))
                if text != last or silent >= _SILENCE:
                    last, silent = text, 0.0
                    yield f"data: {text}\n\n"
                await asyncio.sleep(_BETWEEN_FRAMES)
                silent += _BETWEEN_FRAMES
        finally:
            listeners -= 1

    return Starlette(
        routes=[
            Route(f"/{token}/", page),
            Route(f"/{token}/changes", changes),
            Route(f"/{token}/session{ENDING}", recording),
            Route(f"/{token}/ask/{{question}}", answer, methods=["POST"]),
            Route(f"/{token}/{{name}}", asset),
        ],
        middleware=[Middleware(AccessCheck, token=token)],
        exception_handlers={RequestRefused: _refused, AuguryError: _wrong, HTTPException: _missing},
    )


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestRefused)
    return refusal(error)


async def _wrong(request: Request, error: Exception) -> Response:
    """A question that makes no sense to the session."""
    message, hint = getattr(error, "message", str(error)), getattr(error, "hint", "")
    return JSONResponse({"error": message, "hint": hint}, 422)


async def _missing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


def listening(port: int) -> socket.socket:
    """A socket on this machine alone; who asks before the server runs has to wait a moment."""
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind(("127.0.0.1", port))
    except OSError as error:
        server.close()
        hint = "name another one, or leave --port out for one that is free"
        raise RunError(f"port {port} cannot be opened: {error.strerror}", hint) from None
    server.listen()
    return server
