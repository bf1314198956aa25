"""The server of the live page: this machine only, with a secret in its address, reading only."""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from functools import partial
from html import escape
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

from latebloomer import errors
from latebloomer.errors import JournalError, SettingError
from latebloomer.page.race_html import NO_ICON, html_document, page_file
from latebloomer.page.race_page import RUNNING
from latebloomer.watch.live_page import FollowedRace, LivePage, RaceContent, RaceFolder

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
REFUSED = "This page is for this machine's own browser, at the address that was printed.\n"
SCRIPT = "text/javascript"
FILES = {"race_page.css": "text/css", "page.js": SCRIPT, "watch.js": SCRIPT}  # that pages load
BACK = '<nav><a href="{}">All races</a></nav>'
LIST = (
    '<p class="eyebrow">latebloomer watch</p><h1>Races in {place}</h1><form action="compare">'
    '<p><input type="search" id="filter" placeholder="filter" aria-label="filter races"> '
    "<button>Compare selected</button></p><section>{body}</section></form>"
)
PAGE = (
    '<header>{nav}<p id="status" role="status" class="small soft"></p></header>'
    '<main id="page" data-seen="{seen}" data-events="{events}" data-alive="{up}alive">'
    "{body}</main>"
)
HEAD = (
    f'{NO_ICON}<link rel="stylesheet" href="{{up}}file/race_page.css">'
    '<script defer src="{up}file/page.js"></script><script defer src="{up}file/watch.js"></script>'
)


extra = partial(errors.extra, purpose="live pages", name="watch")


class Watch:
    """The pages of one place, a folder or a journal, and the answers to requests for them."""

    def __init__(self, place: Path, token: str) -> None:
        self.place, self.token = place, token
        self.folder = RaceFolder(place)
        self.server = secrets.token_hex(4)
        self.tabs = 0
        self.last_sign = monotonic()  # of an open tab
        self.list = LivePage(self.folder, self.server)
        self._races: dict[str, LivePage] = {}
        self._made, self._error = extra("starlette.responses"), extra("starlette.exceptions")

    def _live(self, request: Any) -> LivePage:
        """Return the list, or the page of a journal of this place, by its name; of no other."""
        name = request.path_params.get("name")
        if name is None:
            return self.list
        path = next((path for path in self.folder.journals() if path.name == name), None)
        if path is None:
            raise self._error.HTTPException(404)
        return self._races.setdefault(name, LivePage(RaceContent(FollowedRace(path)), self.server))

    def is_needed(self) -> bool:
        """Return whether a race runs here or a tab is open."""
        if self.tabs or monotonic() - self.last_sign < HIDDEN:
            return True
        return any(race.state == RUNNING for race in self.folder.races())

    # --- what is answered ---

    async def compare(self, request: Any) -> Any:
        """Show the best learners of the races that were selected."""
        names = request.query_params.getlist("race")
        body = "<h1>Compare races</h1>" + await asyncio.to_thread(self.folder.compare_html, names)
        return self._page("Compare", body, nav=BACK.format("./"))

    async def page(self, request: Any) -> Any:
        """Show one race, or the list of races."""
        body, seen = await asyncio.to_thread(self._live(request).body)
        name = request.path_params.get("name")
        if name is not None:
            return self._page(name, body, seen, f"{quote(name)}/events", "../", BACK.format("../"))
        place = self.place.name or str(self.place)
        place = escape(f"the folder {place}/" if self.place.is_dir() else place)
        return self._page("Races", LIST.format(place=place, body=body), seen, "events")

    def _page(
        self, title: str, body: str, seen: str = "", events: str = "", up: str = "", nav: str = ""
    ) -> Any:
        main = PAGE.format(nav=nav, seen=escape(seen), events=escape(events), up=up, body=body)
        text = html_document(f"{title} · latebloomer", "", main, HEAD.format(up=up))
        return self._made.HTMLResponse(text)

    async def not_found(self, request: Any, error: Any) -> Any:
        """Lead back to the list, if the address has the secret."""
        start = f"/{self.token}/"
        if not request.url.path.startswith(start):
            return self._made.PlainTextResponse("Not found\n", status_code=404)
        body = f'<p>No such page. <a href="{start}">All races</a></p>'
        return self._made.HTMLResponse(html_document("Not found", "", body), status_code=404)

    async def events(self, request: Any) -> Any:
        """Answer with what changes, as server-sent events."""
        seen = request.headers.get("last-event-id") or request.query_params.get("seen", "")
        stream = self._stream(self._live(request), seen)
        return self._made.StreamingResponse(stream, media_type="text/event-stream")

    async def _stream(self, page: LivePage, seen: str) -> AsyncIterator[str]:
        self.tabs += 1
        quiet = monotonic()
        try:
            yield "retry: 1000\n\n"
            while True:
                messages, seen = await asyncio.to_thread(page.since, seen)
                for text in messages:
                    yield f"id: {seen}\ndata: {text}\n\n"
                if not messages and monotonic() - quiet > BEAT:
                    messages = [": here\n\n"]
                    yield messages[0]
                quiet = monotonic() if messages else quiet
                await asyncio.sleep(LOOK)
        finally:
            self.tabs -= 1
            self.last_sign = monotonic()

    async def alive(self, request: Any) -> Any:
        """Note that a hidden tab is still open."""
        self.last_sign = monotonic()
        return self._made.Response(status_code=204)

    async def file(self, request: Any) -> Any:
        """Answer with the style or a script."""
        name = request.path_params["file"]
        if name not in FILES:
            raise self._error.HTTPException(404)
        return self._made.Response(page_file(name), media_type=FILES[name])


def app_of(watch: Watch, port: int) -> Any:
    """Return the application, for a server that listens on this port.

    It answers requests to this address from pages of this address, and nothing else. Another
    site's page can make a browser send requests here, and another domain can be made to resolve
    to 127.0.0.1: the headers Host and Origin show both.
    """
    base = extra("starlette.middleware.base").BaseHTTPMiddleware
    route = extra("starlette.routing").Route
    answers = {
        "/": watch.page, "/race/{name}": watch.page, "/events": watch.events,
        "/race/{name}/events": watch.events, "/compare": watch.compare, "/alive": watch.alive,
        "/file/{file}": watch.file,
    }  # fmt: skip

    async def guard(request: Any, answer: Callable[[Any], Any]) -> Any:
        sent = request.headers
        host, origin = sent.get("host", ""), sent.get("origin")
        known = host in (f"{HOST}:{port}", f"localhost:{port}")
        own = origin in (None, f"http://{host}")
        if not (known and own and sent.get("sec-fetch-site", "none") in ("none", "same-origin")):
            return extra("starlette.responses").PlainTextResponse(REFUSED, status_code=403)
        response = await answer(request)
        response.headers.update(HEADERS)
        return response

    return extra("starlette.applications").Starlette(
        routes=[route(f"/{watch.token}{path}", each) for path, each in answers.items()],
        middleware=[extra("starlette.middleware").Middleware(base, dispatch=guard)],
        exception_handlers={404: watch.not_found},
    )


# --- the server ---


def serve(
    place: Path, port: int = 0, say: Callable[[str], object] = print,
    exit_after_idle: float | None = None,
) -> None:  # fmt: skip
    """Serve until Ctrl-C, or until no race or tab has needed it for `exit_after_idle` seconds."""
    uvicorn = extra("uvicorn")
    if not place.exists():
        raise JournalError(f"there is no journal or folder {place}: check the path")
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(16)
    if not token.replace("-", "").replace("_", "").isalnum() or len(token) < 16:
        raise SettingError(f"{TOKEN} must be 16 letters and digits at least")
    watch = Watch(place.absolute(), token)
    try:
        listening = socket.create_server((HOST, port))  # a reader of the address may connect now
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or "ports are 0 to 65535"
        raise SettingError(f"port={port} cannot be used ({why}). Give another or none.") from error
    real_port = listening.getsockname()[1]
    settings = uvicorn.Config(
        app_of(watch, real_port), log_level="critical", access_log=False, lifespan="off",
        timeout_graceful_shutdown=1, server_header=False, http=limited_protocol(),
        limit_concurrency=REQUESTS,
    )  # fmt: skip
    only = "" if place.is_dir() else f"race/{quote(place.name)}"
    say(f"http://{HOST}:{real_port}/{token}/{only}")
    asyncio.run(_run(uvicorn.Server(settings), listening, watch, exit_after_idle))


async def _run(
    server: Any, listening: socket.socket, watch: Watch, exit_after_idle: float | None
) -> None:
    serving = asyncio.create_task(server.serve(sockets=[listening]))
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


# --- connections: a limited number, and none that waits for a request for ever ---

REQUESTS = 64  # connections from which on a request is answered 503
CONNECTIONS = 160  # connections beyond which one is closed unread: file descriptors may be few
HEADER_SECONDS = 10.0  # in which the head of a request must have arrived
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def limited_protocol() -> Any:
    """Return uvicorn's protocol with a limit on connections and on the time that a head takes."""
    protocol = extra("uvicorn.protocols.http.h11_impl").H11Protocol

    class LimitedProtocol(protocol):  # type: ignore[misc, valid-type]
        """One connection; between two requests uvicorn's own keep-alive time holds."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.start_deadline()
            if len(self.connections) > CONNECTIONS:
                transport.abort()

        def data_received(self, data: bytes) -> None:
            if self.deadline.cancelled() and self.waits_for_head():
                self.start_deadline()
            super().data_received(data)
            if not self.waits_for_head():
                self.deadline.cancel()

        def connection_lost(self, exc: Exception | None) -> None:
            self.deadline.cancel()
            super().connection_lost(exc)

        def start_deadline(self) -> None:
            self.deadline = self.loop.call_later(HEADER_SECONDS, self.give_up)

        def waits_for_head(self) -> bool:
            return self.cycle is None or bool(self.cycle.response_complete)

        def give_up(self) -> None:
            self.transport.write(TOO_SLOW)
            self.transport.close()

    return LimitedProtocol
