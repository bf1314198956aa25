"""The server of the live page: this machine only, with a secret in its address, reading only."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from functools import partial
from html import escape
from importlib.resources import files as resources
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

from latebloomer.errors import JournalError, SettingError, extra
from latebloomer.page.html_document import html_document, page_file
from latebloomer.page.race_html import NO_ICON
from latebloomer.page.race_page import RUNNING
from latebloomer.watch import race_list
from latebloomer.watch.connections import REQUESTS, limited_protocol
from latebloomer.watch.followed_race import FollowedRace
from latebloomer.watch.live_page import ListContent, LivePage, RaceContent

HOST = "127.0.0.1"
TOKEN = "LATEBLOOMER_WATCH_TOKEN"  # in the environment: the same address after a restart
LOOK = 0.25  # seconds between two checks for messages of a tab
BEAT = 15.0  # seconds without a message after which a tab gets a sign of life
HIDDEN = 90.0  # seconds a hidden tab counts as open after its last keep-alive
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",  # the secret is in the address
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}

BACK = '<nav><a href="{}">All races</a></nav>'
LIST = (
    '<p class="eyebrow">latebloomer watch</p><h1>Races in {name}</h1><form action="compare">'
    '<p><input type="search" id="filter" placeholder="filter" aria-label="filter races"> '
    "<button>Compare selected</button></p><section>{body}</section></form>"
)


class Watch:
    """The pages of one place, a folder or a journal."""

    def __init__(self, place: Path, token: str) -> None:
        self.place, self.token = place, token
        self.folder = race_list.RaceFolder(place)
        self.server = secrets.token_hex(4)
        self.tabs = 0
        self.last_sign = monotonic()  # of an open tab
        self.list = LivePage(ListContent(partial(race_list.list_html, self.folder)), self.server)
        self._races: dict[str, LivePage] = {}

    def race(self, name: str) -> LivePage | None:
        """Return the page of a journal of this place, by its file name; never of another."""
        path = next((path for path in self.folder.journals() if path.name == name), None)
        if path is None:
            return None
        if name not in self._races:
            self._races[name] = LivePage(RaceContent(FollowedRace(path)), self.server)
        return self._races[name]

    def is_needed(self) -> bool:
        """Return whether a race runs here or a tab is open."""
        if self.tabs or monotonic() - self.last_sign < HIDDEN:
            return True
        return any(race.state == RUNNING for race in self.folder.races())


# --- what is answered ---


def app_of(watch: Watch, port: int) -> Any:
    """Return the application, for a server that listens on this port."""
    applications = extra("starlette.applications", "live pages", "watch")
    routing = extra("starlette.routing", "live pages", "watch")
    start = f"/{watch.token}"
    answers = Answers(watch)
    routes = [
        routing.Route(f"{start}/", answers.races),
        routing.Route(f"{start}/race/{{name}}", answers.race),
        routing.Route(f"{start}/events", answers.events),
        routing.Route(f"{start}/race/{{name}}/events", answers.events),
        routing.Route(f"{start}/compare", answers.compare),
        routing.Route(f"{start}/alive", answers.alive),
        routing.Route(f"{start}/file/{{file}}", answers.file),
    ]
    handlers = {404: answers.not_found}
    return Guard(applications.Starlette(routes=routes, exception_handlers=handlers), port)


class Guard:
    """Pass on requests to this address from pages of this address, and nothing else.

    Another site's page can make a browser send requests here, and another domain can be made to
    resolve to 127.0.0.1: the headers Host and Origin show both.
    """

    def __init__(self, app: Any, port: int) -> None:
        self._app = app
        self._hosts = {f"{HOST}:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        fine = host in self._hosts and origin in (None, f"http://{host}")
        if not fine or headers.get(b"sec-fetch-site", "none") not in ("none", "same-origin"):
            await _refuse(send)
        else:
            await self._app(scope, receive, _with_headers(send))


async def _refuse(send: Any) -> None:
    body = b"This page is for this machine's own browser, at the address that was printed.\n"
    await send({"type": "http.response.start", "status": 403,
                "headers": [(b"content-type", b"text/plain")]})  # fmt: skip
    await send({"type": "http.response.body", "body": body})


def _with_headers(send: Any) -> Callable[[Any], Any]:
    more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def sends(message: Any) -> None:
        if message["type"] == "http.response.start":
            own = [pair for pair in message["headers"] if pair[0] != b"cache-control"]
            message = {**message, "headers": [*own, *more]}
        await send(message)

    return sends


class Answers:
    """The answers to requests."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._made = extra("starlette.responses", "live pages", "watch")

    async def races(self, request: Any) -> Any:
        """Answer with the list of races."""
        body, seen = await asyncio.to_thread(self._watch.list.body)
        name = self._watch.place.name or str(self._watch.place)
        return self._page("Races", LIST.format(name=escape(name), body=body), seen, "events", "")

    async def compare(self, request: Any) -> Any:
        """Show the best learners of the races that were selected."""
        names = request.query_params.getlist("race")
        pages = await asyncio.to_thread(race_list.races_to_compare, self._watch.folder, names)
        body = "<h1>Compare races</h1>" + await asyncio.to_thread(race_list.compare_html, pages)
        return self._page("Compare", body, "", "", "", BACK.format("./"))

    async def not_found(self, request: Any, error: Any) -> Any:
        """Lead back to the list, if the address has the secret."""
        start = f"/{self._watch.token}/"
        if not request.url.path.startswith(start):
            return self._made.PlainTextResponse("Not found\n", status_code=404)
        body = f'<p>No such page. <a href="{start}">All races</a></p>'
        return self._made.HTMLResponse(html_document("Not found", "", body), status_code=404)

    async def race(self, request: Any) -> Any:
        """Show one race."""
        name = request.path_params["name"]
        page = self._watch.race(name)
        if page is None:
            return await self.not_found(request, None)
        body, seen = await asyncio.to_thread(page.body)
        here = f"{quote(name)}/events"
        return self._page(name, body, seen, here, "../", BACK.format("../"))

    def _page(self, title: str, body: str, seen: str, events: str, up: str, nav: str = "") -> Any:
        head = (
            f'{NO_ICON}<link rel="stylesheet" href="{up}file/race_page.css">'
            f'<script defer src="{up}file/page.js"></script>'
            f'<script defer src="{up}file/watch.js"></script>'
        )
        status = '<p id="status" role="status" class="small soft"></p>'
        main = (
            f'<main id="page" data-seen="{escape(seen)}" data-events="{escape(events)}" '
            f'data-alive="{up}alive">{body}</main>'
        )
        text = html_document(
            f"{title} · latebloomer", "", f"<header>{nav}{status}</header>{main}", head
        )
        return self._made.HTMLResponse(text)

    async def events(self, request: Any) -> Any:
        """Answer with what changes, as server-sent events."""
        name = request.path_params.get("name")
        page = self._watch.list if name is None else self._watch.race(name)
        if page is None:
            return await self.not_found(request, None)
        seen = request.headers.get("last-event-id") or request.query_params.get("seen", "")
        stream = self._stream(page, seen)
        return self._made.StreamingResponse(stream, media_type="text/event-stream")

    async def _stream(self, page: LivePage, seen: str) -> AsyncIterator[str]:
        self._watch.tabs += 1
        quiet = monotonic()
        try:
            yield "retry: 1000\n\n"
            while True:
                if page.is_due():
                    await asyncio.to_thread(page.update)
                messages, seen = await asyncio.to_thread(page.since, seen)
                for text in messages:
                    yield f"id: {seen}\ndata: {text}\n\n"
                if messages:
                    quiet = monotonic()
                elif monotonic() - quiet > BEAT:
                    quiet = monotonic()
                    yield ": here\n\n"
                await asyncio.sleep(LOOK)
        finally:
            self._watch.tabs -= 1
            self._watch.last_sign = monotonic()

    async def alive(self, request: Any) -> Any:
        """Note that a hidden tab is still open."""
        self._watch.last_sign = monotonic()
        return self._made.Response(status_code=204)

    async def file(self, request: Any) -> Any:
        """Answer with the style or the script."""
        file = request.path_params["file"]
        if file == "race_page.css":
            return self._made.Response(page_file(file), media_type="text/css")
        if file == "page.js":
            return self._made.Response(page_file(file), media_type="text/javascript")
        if file == "watch.js":
            script = resources("latebloomer.watch").joinpath(file).read_text(encoding="utf-8")
            return self._made.Response(script, media_type="text/javascript")
        return await self.not_found(request, None)


# --- the server ---


def serve(
    place: Path,
    port: int = 0,
    say: Callable[[str], object] = print,
    exit_after_idle: float | None = None,
) -> None:
    """Serve until Ctrl-C, or until no race or tab has needed it for `exit_after_idle` seconds."""
    uvicorn = extra("uvicorn", "live pages", "watch")
    extra("starlette", "live pages", "watch")
    if not place.exists():
        raise JournalError(f"there is no journal or folder {place}: check the path")
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(16)
    if not token.replace("-", "").replace("_", "").isalnum() or len(token) < 16:
        raise SettingError(f"{TOKEN} must be 16 letters and digits at least")
    listening = _listen(port)
    watch = Watch(place.absolute(), token)
    real_port = listening.getsockname()[1]
    address = f"http://{HOST}:{real_port}/{token}/"
    if not place.is_dir():
        address += f"race/{quote(place.name)}"
    settings = uvicorn.Config(
        app_of(watch, real_port), log_level="critical", access_log=False, lifespan="off",
        timeout_graceful_shutdown=1, server_header=False, http=limited_protocol(),
        limit_concurrency=REQUESTS,
    )  # fmt: skip
    asyncio.run(_run(uvicorn.Server(settings), listening, watch, exit_after_idle, say, address))


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen()  # a reader of the address may connect immediately
    except (OSError, OverflowError) as error:
        listening.close()
        why = getattr(error, "strerror", None) or "ports are 0 to 65535"
        raise SettingError(
            f"port={port} cannot be used ({why}). Choose another port, or omit it for a free one."
        ) from error
    return listening


async def _run(
    server: Any, listening: socket.socket, watch: Watch, exit_after_idle: float | None,
    say: Callable[[str], object], address: str,
) -> None:  # fmt: skip
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    say(address)
    needed = monotonic()
    while not serving.done():
        await asyncio.wait([serving], timeout=1.0)
        if exit_after_idle is None:
            continue
        if await asyncio.to_thread(watch.is_needed):
            needed = monotonic()
        elif monotonic() - needed > exit_after_idle:
            server.should_exit = True
    await serving
