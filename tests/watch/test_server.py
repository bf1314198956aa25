"""The server: this machine's browser with the secret, and nobody else; it reads only.

It keeps serving while others send half of a request, or far too many.
"""

import asyncio
import re
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from latebloomer import race
from latebloomer.errors import JournalError, MissingExtra, SettingError
from latebloomer.watch.connection_limits import REQUESTS
from latebloomer.watch.server import TOKEN, serve
from latebloomer.watch.watch_app import Watch, app_of

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
SECRET, PORT = "a-secret-of-letters", 4321
HERE = f"127.0.0.1:{PORT}"


@pytest.fixture
def watch(tmp_path):
    best = {"slow": 1, "quick": 0.5}
    learners = {k: lambda b=b: (b * n / (n + 5) for n in range(1, 99)) for k, b in best.items()}
    (tmp_path / "races").mkdir()
    for path in (tmp_path / "races" / "race.db", tmp_path / "outside.db"):
        race(learners, 60, journal=path, progress=False)
    return Watch(tmp_path / "races", SECRET)


@pytest.fixture
def app(watch):
    return app_of(watch)


def request_for(path, method="GET", host=HERE, **headers):
    pairs = {"host": host} | {name.replace("_", "-"): text for name, text in headers.items()}
    return {
        "type": "http", "method": method, "path": path, "query_string": b"", "scheme": "http",
        "headers": [(name.encode(), text.encode()) for name, text in pairs.items()],
    }  # fmt: skip


def ask(app, path, method="GET", host=HERE, **headers):
    """Status, headers and body of an answer."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(app(request_for(path, method, host, **headers), receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:]).decode()
    given = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], given, body


def test_the_list_the_race_and_what_they_load(app):
    status, headers, body = ask(app, f"/{SECRET}/")
    assert status == 200 and 'href="race/race.db"' in body and "outside" not in body
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer" and headers["cache-control"] == "no-store"
    status, _, body = ask(app, f"/{SECRET}/race/race.db")
    assert status == 200 and "<h1>Keep slow</h1>" in body and "<style" not in body
    scripts = [(name, "text/javascript") for name in ("page.js", "watch.js")]
    for file, kind in (("race_page.css", "text/css"), *scripts):
        status, headers, _ = ask(app, f"/{SECRET}/file/{file}")
        assert status == 200 and headers["content-type"].startswith(kind)
    assert ask(app, f"/{SECRET}/alive")[0] == 204


@pytest.mark.parametrize(
    "status, headers",
    [
        (200, {"origin": f"http://{HERE}", "sec_fetch_site": "same-origin"}),
        (200, {"host": f"localhost:{PORT}", "origin": f"http://localhost:{PORT}"}),
        (200, {"host": f"127.0.0.1:{PORT + 1}"}),  # through a tunnel
        (400, {"host": ""}),
        (400, {"host": "example.org"}),
        (400, {"host": f"example.org:{PORT}"}),  # a name that was made to mean 127.0.0.1
        (400, {"host": f"127.0.0.1.example.org:{PORT}"}),
        (403, {"origin": f"http://127.0.0.1:{PORT + 1}"}),  # another program's page
        (403, {"origin": "http://example.org"}),
        (403, {"origin": "null"}),
        (403, {"origin": f"https://{HERE}"}),
        (403, {"sec_fetch_site": "cross-site"}),
    ],
    ids=str,
)
def test_its_own_pages_are_let_in_other_hosts_and_sites_are_not(app, status, headers):
    assert ask(app, f"/{SECRET}/", **headers)[0] == status
    assert ask(app, f"/{SECRET}/race/race.db", **headers)[0] == status


@pytest.mark.parametrize(
    "path",
    [
        "/", "/race/race.db", "/another-secret/", f"/{SECRET}x/", f"/{SECRET}/race/outside.db",
        f"/{SECRET}/race/../outside.db", f"/{SECRET}/race/..%2foutside.db",
        f"/{SECRET}/file/server.py", f"/{SECRET}/file/../server.py", f"/{SECRET}/race/race.db-wal",
    ],
)  # fmt: skip
def test_without_the_secret_or_beyond_the_folder_there_is_nothing(app, path):
    status, _, body = ask(app, path)
    assert status == 404
    leads_back = f'href="/{SECRET}/"' in body
    assert leads_back == path.startswith(f"/{SECRET}/")


def test_a_stream_is_sent_piece_by_piece_and_ends_with_its_tab(watch, app):
    async def tab():
        sent, first = [], asyncio.Event()

        async def receive():
            await first.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append((message.get("body"), watch.tabs))
            if message.get("body"):
                first.set()

        await app(request_for(f"/{SECRET}/events"), receive, send)
        return sent

    sent = asyncio.run(tab())
    assert sent[1] == (b"retry: 1000\n\n", 1)
    assert watch.tabs == 0


def test_nothing_can_be_sent_to_it(app):
    sent = [ask(app, f"/{SECRET}/", method)[0] for method in ("POST", "PUT", "DELETE", "PATCH")]
    assert sent == [405] * 4


def test_what_cannot_be_served_says_why(tmp_path, monkeypatch):
    with pytest.raises(JournalError, match="no journal or folder"):
        serve(tmp_path / "none.db")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingError, match=f"port={port} cannot be used"):
            serve(tmp_path, port)
    monkeypatch.setenv(TOKEN, "../short")
    with pytest.raises(SettingError, match=TOKEN):
        serve(tmp_path)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[watch\]"):
        serve(tmp_path)


SERVE = """
import resource, sys
from pathlib import Path
from latebloomer.watch import connection_limits, server
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
connection_limits.HEADER_SECONDS = float(sys.argv[2])
server.serve(Path(sys.argv[1]), say=lambda address: print(address, flush=True))
"""
HALF = b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n"


class Client:
    """Connections to a server with 256 file descriptors, with a limit on the seconds of a head."""

    def __init__(self, stack, folder, seconds):
        words = [sys.executable, "-c", SERVE, str(folder), str(seconds)]
        child = stack.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        stack.callback(child.terminate)
        found = re.fullmatch(r"http://([\d.]+):(\d+)(/.*/)\n", child.stdout.readline())
        self._stack, self._to, self._path = stack, (found[1], int(found[2])), found[3]

    def connect(self, sent=b""):
        made = self._stack.enter_context(socket.create_connection(self._to, timeout=60))
        made.sendall(sent)
        return made

    def answer(self, made):
        """The status line of an answer to the list of races; empty if the connection is closed."""
        host, port = self._to
        made.sendall(f"GET {self._path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        return made.recv(12)

    def fresh_answer(self):
        with socket.create_connection(self._to, timeout=60) as made:
            return self.answer(made)


def end_of(made):
    try:
        return made.recv(12)
    except ConnectionResetError:  # beyond the limit
        return b""


def test_half_sent_requests_do_not_make_the_server_unreachable(tmp_path):
    with ExitStack() as stack:
        client = Client(stack, tmp_path, 0.3)
        ends = [end_of(made) for made in [client.connect(HALF) for _ in range(400)]]
        assert set(ends) <= {b"HTTP/1.1 408", b""} and ends.count(b"HTTP/1.1 408") >= 100
        made = client.connect()
        assert client.answer(made) == b"HTTP/1.1 200"
        while b"</html>" not in made.recv(65536):
            pass
        made.sendall(HALF)  # nor can the second request of a connection stay half-sent
        assert made.recv(12) == b"HTTP/1.1 408"


def test_beyond_the_limit_a_request_is_refused_until_others_are_gone(tmp_path):
    with ExitStack() as stack:
        client = Client(stack, tmp_path, 600)
        held = [client.connect(HALF) for _ in range(REQUESTS)]
        assert client.fresh_answer() == b"HTTP/1.1 503"
        for one in held:
            one.close()
        # The server learns of it in its next turns.
        assert any(client.fresh_answer() == b"HTTP/1.1 200" for _ in range(100))
