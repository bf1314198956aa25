"""Downloads come whole and right, or not at all. The server is on this machine."""

import hashlib
import http.server
import io
import os
import tarfile
import threading
from urllib.parse import unquote

import numpy as np
import pytest
from typer.testing import CliRunner

from latebloomer.cli import app
from latebloomer.errors import CurveError
from latebloomer.problems import problem, public_curves


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


@pytest.mark.skipif(
    not os.environ.get(public_curves.DATA), reason=f"{public_curves.DATA} is not set"
)
def test_the_right_curves_are_kept_and_used(served, tmp_path, monkeypatch):
    files, address = served
    original = problem("imdb")
    for name, curve in zip(original.names, original.curves, strict=True):
        files[public_curves.IMDB_FILES[name]] = as_npy(curve)
    file = public_curves.download_imdb(tmp_path, source=address)
    assert file == tmp_path / public_curves.IMDB_FILE
    monkeypatch.setenv(public_curves.DATA, str(tmp_path))
    found = problem("imdb")
    assert found.names == original.names
    assert np.array_equal(found.curves, original.curves)


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, r"NN: \(1, 1, 2\)_avg.npy could not be read"), (b"<html>", r"npy could not be read"),
     (as_npy(np.zeros(50_000)), r"not the paper's curves: .* nothing was written")],
)  # fmt: skip
def test_missing_broken_and_other_curves_are_refused(served, tmp_path, content, words):
    files, address = served
    files.update(dict.fromkeys(public_curves.IMDB_FILES.values(), content))
    with pytest.raises(CurveError, match=words):
        public_curves.download_imdb(tmp_path, source=address)
    assert list(tmp_path.iterdir()) == []


def test_the_size_of_a_download_is_said_before_it_begins(tmp_path, monkeypatch):
    def refuse(folder):
        raise CurveError("no")

    monkeypatch.setattr(public_curves, "download_lcdb", refuse)
    ran = CliRunner().invoke(app, ["download", "lcdb", str(tmp_path)])
    assert ran.exit_code == 2
    assert ran.stderr == "fetching lcdb==0.1.0 from PyPI, 68 MB\nCurveError: no\n"
    ran = CliRunner().invoke(app, ["download", "imbd", str(tmp_path)])
    assert ran.exit_code == 2 and "did you mean 'imdb'" in ran.stderr


LEARNERS = ["e", "d", "c", "b", "a"]


def lcdb_lines(sizes=(500, 800, 1000, 1200, 2000), runs=10, data_set=7, learners=LEARNERS):
    """A table like the package's: accuracy .0 + run/100 + place/1000, a second per row."""
    yield ",".join(public_curves.COLUMNS)
    for learner in learners:
        for run in range(runs):
            for place, size in enumerate(sizes):
                accuracy = run / 100 + place / 1000
                yield f"{data_set},{learner},{run // 5},{run % 5},{size},{accuracy},{size / 1000}"


def packed(tmp_path, lines):
    """The lines in an archive like PyPI's, its sha256, and what puts it where it is wanted."""
    content = "\n".join(lines).encode()
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        entry = tarfile.TarInfo(public_curves.LCDB_TABLE)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))

    def fetch(place):
        (place / public_curves.LCDB_ARCHIVE).write_bytes(file.getvalue())
        return place / public_curves.LCDB_ARCHIVE

    return fetch, hashlib.sha256(file.getvalue()).hexdigest()


def test_lcdb_is_made_smaller_as_its_readme_says(tmp_path):
    fetch, sha256 = packed(tmp_path, lcdb_lines())
    with pytest.raises(CurveError, match=r"is not lcdb==0\.1\.0: .* nothing was written"):
        public_curves.download_lcdb(tmp_path / "data_folder", fetch)
    assert not (tmp_path / "data_folder").exists()
    file = public_curves.download_lcdb(tmp_path / "data_folder", fetch, sha256)
    assert file == tmp_path / "data_folder" / public_curves.LCDB_FILE
    with np.load(file) as arrays:
        assert set(arrays) == {f"7|{what}" for what in ("learners", "rows", "accuracy", "seconds")}
        assert arrays["7|learners"].tolist() == sorted(LEARNERS)
        assert arrays["7|rows"].tolist() == [500, 800, 1000, 1200, 2000]
        assert arrays["7|accuracy"].shape == (5, 10, 5)
        assert arrays["7|accuracy"][0, 3].tolist() == [300, 310, 320, 330, 340]
        assert arrays["7|seconds"][0] == pytest.approx([0.5, 0.8, 1, 1.2, 2])


def test_of_lcdb_whole_runs_count_and_what_they_lack_is_interpolated():
    # Run (0, 0) lacks one of five sizes: 1000 lies halfway between 800 (.001) and 1200 (.003).
    # Run (0, 1) lacks the largest and does not count; an eleventh run takes its place.
    def lacking(line):
        return line.startswith(("7,a,0,0,1000,", "7,a,0,1,2000,"))

    arrays = public_curves.made_smaller(line for line in lcdb_lines(runs=11) if not lacking(line))
    assert arrays["7|accuracy"][0, 0].tolist() == [0, 10, 20, 30, 40]
    assert arrays["7|accuracy"][0, :, 0].tolist() == [0, *range(200, 1100, 100)]
    few = [line for line in lcdb_lines(runs=10) if not lacking(line)]
    assert public_curves.made_smaller(few) == {}  # nine whole runs of `a`, so four learners
    assert public_curves.made_smaller(lcdb_lines(sizes=(500, 999))) == {}  # too small a data set


def test_pip_without_a_connection_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(CurveError, match=r"pip could not fetch lcdb==0\.1\.0 .*: check") as error:
        public_curves.fetch_with_pip(tmp_path)
    assert "\n" not in str(error.value)
