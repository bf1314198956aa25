"""The pages of the live server, which are read-only: checks of requests, and answers."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from functools import partial
from html import escape
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

from latebloomer import errors
from latebloomer.page.race_html import NO_ICON, html_document, page_file
from latebloomer.page.race_page import RUNNING
from latebloomer.watch.followed_race import FollowedRace
from latebloomer.watch.live_page import LivePage
from latebloomer.watch.race_content import RaceContent
from latebloomer.watch.race_folder import RaceFolder

HOST = "127.0.0.1"
LOOK = 0.25  # seconds between two checks for new messages for a tab
BEAT = 15.0  # after this many seconds without a message, a tab gets a keep-alive
HIDDEN = 90.0  # seconds a hidden tab counts as open after its last keep-alive
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",  # the secret is in the URL
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
REFUSED = "This page is for this machine's own browser, at the address that was printed.\n"
SCRIPT = "text/javascript"
# Files that pages load.
FILES = {"race_page.css": "text/css", "page.js": SCRIPT, "watch.js": SCRIPT}
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
        self.last_sign = monotonic()  # time of the last sign of an open tab
        self.list = LivePage(self.folder, self.server)
        self._races: dict[str, LivePage] = {}
        self._made, self._error = extra("starlette.responses"), extra("starlette.exceptions")

    def _live(self, request: Any) -> LivePage:
        """Return the list, or the page of a journal of this place by name; of no other file."""
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

    # --- answers to requests ---

    async def compare(self, request: Any) -> Any:
        """Show the best learners of the selected races."""
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
        """Link to the list if the URL has the secret."""
        start = f"/{self.token}/"
        if not request.url.path.startswith(start):
            return self._made.PlainTextResponse("Not found\n", status_code=404)
        body = f'<p>No such page. <a href="{start}">All races</a></p>'
        return self._made.HTMLResponse(html_document("Not found", "", body), status_code=404)

    async def events(self, request: Any) -> Any:
        """Answer with the changes as server-sent events."""
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
        """Record that a hidden tab is still open."""
        self.last_sign = monotonic()
        return self._made.Response(status_code=204)

    async def file(self, request: Any) -> Any:
        """Answer with the style sheet or a script."""
        name = request.path_params["file"]
        if name not in FILES:
            raise self._error.HTTPException(404)
        return self._made.Response(page_file(name), media_type=FILES[name])


class SameOrigin:
    """Answer only requests from pages of this server, and add `HEADERS` to each answer.

    A page of another site can make a browser send requests to this server; the headers Origin and
    Sec-Fetch-Site show it. This class is plain ASGI, so that endless streams are not buffered.
    """

    def __init__(self, app: Any) -> None:
        self._app, self._headers = app, extra("starlette.datastructures")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or answer it with 403."""
        sent = self._headers.Headers(scope=scope)
        own = sent.get("origin") in (None, f"http://{sent.get('host', '')}")
        app = self._app
        if not (own and sent.get("sec-fetch-site", "none") in ("none", "same-origin")):
            app = extra("starlette.responses").PlainTextResponse(REFUSED, status_code=403)

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._headers.MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await app(scope, receive, send_with_headers)


def app_of(watch: Watch) -> Any:
    """Return the application, which only answers requests for this machine by its own name.

    Another domain can be made to resolve to 127.0.0.1. The header Host shows this, and Starlette
    answers with status 400.
    """
    middleware = extra("starlette.middleware").Middleware
    trusted_host = extra("starlette.middleware.trustedhost").TrustedHostMiddleware
    route = extra("starlette.routing").Route
    answers = {
        "/": watch.page,
        "/race/{name}": watch.page,
        "/events": watch.events,
        "/race/{name}/events": watch.events,
        "/compare": watch.compare,
        "/alive": watch.alive,
        "/file/{file}": watch.file,
    }

    return extra("starlette.applications").Starlette(
        routes=[route(f"/{watch.token}{path}", each) for path, each in answers.items()],
        middleware=[
            middleware(trusted_host, allowed_hosts=[HOST, "localhost"], www_redirect=False),
            middleware(SameOrigin),
        ],
        exception_handlers={404: watch.not_found},
    )
