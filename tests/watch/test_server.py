"""The server: this machine's browser with the secret, and nobody else; it reads only."""

import asyncio
import socket
import sys

import pytest

from latebloomer import race
from latebloomer.errors import JournalError, MissingExtra, SettingError
from latebloomer.watch import serve
from latebloomer.watch.server import TOKEN, Watch, app_of

pytest.importorskip("starlette")
SECRET, PORT = "a-secret-of-letters", 4321


def rising(best):
    return lambda: (best * n / (n + 5) for n in range(1, 1000))


@pytest.fixture
def app(tmp_path):
    learners = {"slow": rising(1.0), "quick": rising(0.5)}
    folder = tmp_path / "races"
    folder.mkdir()
    for path in (folder / "race.db", tmp_path / "outside.db"):
        race(learners, 60, journal=path, progress=False)
    return app_of(Watch(folder, SECRET), PORT)


def ask(app, path, method="GET", host=f"127.0.0.1:{PORT}", **headers):
    """Status, headers and body of an answer."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    pairs = {"host": host} | {name.replace("_", "-"): text for name, text in headers.items()}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
        "path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"",
        "scheme": "http", "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), text.encode()) for name, text in pairs.items()],
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
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
    "wrong",
    [
        {"host": "example.org"},
        {"host": f"example.org:{PORT}"},  # a name that was made to mean 127.0.0.1
        {"host": f"127.0.0.1:{PORT + 1}"},
        {"origin": "http://example.org"},
        {"origin": "null"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"sec_fetch_site": "cross-site"},
    ],
    ids=str,
)
def test_other_hosts_and_other_sites_are_refused(app, wrong):
    assert ask(app, f"/{SECRET}/", **wrong)[0] == 403
    assert ask(app, f"/{SECRET}/race/race.db", **wrong)[0] == 403


def test_its_own_pages_are_let_in(app):
    own = f"http://127.0.0.1:{PORT}"
    assert ask(app, f"/{SECRET}/", origin=own, sec_fetch_site="same-origin")[0] == 200
    local = f"localhost:{PORT}"
    assert ask(app, f"/{SECRET}/", host=local, origin=f"http://{local}")[0] == 200


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


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_sent_to_it(app, method):
    assert ask(app, f"/{SECRET}/", method)[0] == 405


def test_what_cannot_be_served_says_why(tmp_path, monkeypatch):
    with pytest.raises(JournalError, match="no journal or folder"):
        serve(tmp_path / "none.db")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SettingError, match=f"port={port} cannot be used"):
            serve(tmp_path, port)
    monkeypatch.setenv(TOKEN, "../short")
    with pytest.raises(SettingError, match=TOKEN):
        serve(tmp_path)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtra, match=r"latebloomer\[watch\]"):
        serve(tmp_path)
