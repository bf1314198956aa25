"""Downloads come whole and right, or not at all. The server is on this machine."""

import http.server
import io
import os
import threading
from urllib.parse import unquote

import numpy as np
import pytest
from typer.testing import CliRunner

from latebloomer.cli import app
from latebloomer.errors import CurveError
from latebloomer.problems import download, problem
from latebloomer.problems.paper_settings import DATA, IMDB_FILE


@pytest.fixture
def served():
    """A folder of files, by name, on a loopback address."""
    files = {}

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = files.get(unquote(self.path.removeprefix("/")))
            self.send_response(404 if content is None else 200)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield files, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def as_npy(values):
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


@pytest.mark.skipif(not os.environ.get(DATA), reason=f"{DATA} is not set")
def test_the_right_curves_are_kept_and_used(served, tmp_path, monkeypatch):
    files, address = served
    original = problem("imdb")
    for name, curve in zip(original.names, original.curves, strict=True):
        files[download.IMDB_FILES[name]] = as_npy(curve)
    file = download.download_imdb(tmp_path, source=address)
    assert file == tmp_path / IMDB_FILE
    monkeypatch.setenv(DATA, str(tmp_path))
    found = problem("imdb")
    assert found.names == original.names
    assert np.array_equal(found.curves, original.curves)


def test_other_curves_are_refused_and_nothing_is_written(served, tmp_path):
    files, address = served
    for file in download.IMDB_FILES.values():
        files[file] = as_npy(np.zeros(50_000))
    with pytest.raises(CurveError, match=r"not the paper's curves: .* nothing was written"):
        download.download_imdb(tmp_path, source=address)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [None, b"<html>"])
def test_a_missing_or_broken_file_is_named(served, tmp_path, content):
    files, address = served
    if content is not None:
        files[download.IMDB_FILES["NN112"]] = content
    with pytest.raises(CurveError, match=r"NN: \(1, 1, 2\)_avg.npy could not be read"):
        download.download_imdb(tmp_path, source=address)


def test_an_unknown_data_set_is_one_line(tmp_path):
    ran = CliRunner().invoke(app, ["download", "imbd", str(tmp_path)])
    assert ran.exit_code == 2
    assert "did you mean 'imdb'" in ran.stderr
