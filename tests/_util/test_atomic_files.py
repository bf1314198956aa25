"""Files that are written: whole or as they were, whatever happens, and what is said then."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from latebloomer._util.atomic_files import (
    make_folder,
    need_different,
    need_folder,
    need_writable,
    write_csv,
    write_file,
)
from latebloomer.errors import LatebloomerError, OutputError


def mode_of(file):
    return stat.S_IMODE(file.stat().st_mode)


@pytest.mark.parametrize(("data", "found"), [("größer\n", "größer\n".encode()), (b"\0", b"\0")])
def test_text_and_bytes_are_written_and_replaced(tmp_path, data, found):
    file = tmp_path / "out"
    for _ in range(2):
        assert write_file(file, data) == file
        assert file.read_bytes() == found
    assert list(tmp_path.iterdir()) == [file]
    assert write_file(tmp_path / ("n" * 250), data).read_bytes() == found
    write_csv(tmp_path / "t.csv", [("a", "b"), (1, "x,y")])
    assert (tmp_path / "t.csv").read_bytes() == b'a,b\r\n1,"x,y"\r\n'


def test_a_link_leads_where_it_led(tmp_path):
    (tmp_path / "folder").mkdir()
    link, file = tmp_path / "link", tmp_path / "folder" / "file"
    link.symlink_to(file)
    for text in ("new", "newer"):
        write_file(link, text)
        assert link.is_symlink() and file.read_text() == text


@pytest.mark.skipif(os.name == "nt", reason="other permissions there")
def test_permissions_are_kept_at_every_moment(tmp_path, monkeypatch):
    file, seen = tmp_path / "private", []
    file.touch(0o600)
    monkeypatch.setattr("os.fsync", lambda handle: seen.append(os.fstat(handle).st_mode & 0o777))
    write_file(file, "secret")
    assert seen == [0o600] and mode_of(file) == 0o600
    file.chmod(0o666)  # more than the umask leaves to a new file
    write_file(file, "for all")
    assert mode_of(file) == 0o666
    (tmp_path / "plain").touch()
    assert mode_of(write_file(tmp_path / "ours", "")) == mode_of(tmp_path / "plain")


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs devices")
def test_a_device_stays_one():
    write_file("/dev/null", "text")
    need_writable("/dev/null")
    need_different({"--csv": "/dev/null", "--plot": "/dev/null"})
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    if Path("/dev/full").exists():
        with pytest.raises(OutputError, match="No space left on device"):
            write_file("/dev/full", "text")


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
@pytest.mark.parametrize("piped", [True, False])
def test_the_process_s_own_output_is_written_like_any_other(tmp_path, piped):
    code = (
        "from latebloomer._util.atomic_files import write_file as w\n"
        "w('/dev/stdout', 'table\\n')\nimport os; os.write(1, b'x' * 9)"
    )
    with open(tmp_path / "out", "wb") as out:
        ran = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE if piped else out, check=True
        )
    written = ran.stdout if piped else (tmp_path / "out").read_bytes()
    assert written.endswith(b"x" * 9)  # nothing went to a file that nobody sees any more
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def disk_full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("before", [None, "good"])
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch, before, step):
    """Whether it is full when the data are flushed, or at the very end."""
    monkeypatch.setattr(f"os.{step}", disk_full)
    file = tmp_path / "out"
    if before is not None:
        file.write_text(before)
    with pytest.raises(OutputError, match=r"\(No space left on device\). Exist.* Make room") as e:
        write_file(file, "new " * 1000)
    assert e.value.errno == errno.ENOSPC  # as of any OSError
    assert [path.read_text() for path in tmp_path.iterdir()] == ([before] if before else [])


@pytest.mark.skipif(os.name == "nt", reason="no such limit there")
def test_a_write_that_ends_half_way_leaves_what_was_there(tmp_path):
    import resource

    (tmp_path / "out").write_text("good")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OutputError, match=r"\(File too large\)\. Existing files are un"):
            write_file(tmp_path / "out", "new " * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["good"]


def test_an_interruption_leaves_what_was_there(tmp_path, monkeypatch):
    (tmp_path / "out").write_text("good")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "out", "new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["good"]


@pytest.mark.parametrize("act", [need_writable, lambda path: write_file(path, "text")])
def test_a_place_that_is_none_is_said(tmp_path, act):
    (tmp_path / "file").write_text("good")
    before = (tmp_path / "file").stat().st_mtime_ns
    need_writable(tmp_path / "new")
    need_writable(tmp_path / "file")
    for path, words in (
        (tmp_path / "none" / "out", "^Cannot write .*out, because there is no folder .*none. M"),
        (tmp_path / "file" / "out", "there is no folder .*file. Make it, or give another path"),
        (tmp_path, "because it is a folder. Give the name of a file"),
        (Path("/proc/self/out"), r"Cannot write /proc/self/out \(.*\)\. .*\. Give another path\."),
    ):
        with pytest.raises(OutputError, match=words) as caught:
            act(path)
        assert isinstance(caught.value, OSError) and isinstance(caught.value, LatebloomerError)
        assert "\n" not in str(caught.value)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["good"]
    assert (tmp_path / "file").stat().st_mtime_ns == before


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_permission_that_is_missing_is_said(tmp_path, monkeypatch, code):
    def forbidden(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("os.open", forbidden)
    with pytest.raises(OutputError, match=rf"{os.strerror(code)}\). Give a path that you may"):
        need_writable(tmp_path / "out")


def test_two_options_must_not_name_one_file(tmp_path):
    need_different({"--report": tmp_path / "a", "--save": tmp_path / "b", "--csv": None})
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(OutputError, match=r"--report and --save are both '.*link': give two"):
        need_different({"--report": tmp_path / "a", "--save": tmp_path / "link"})


def test_a_folder_is_made_or_one_is_told_why_not(tmp_path):
    need_folder(tmp_path)
    need_folder(tmp_path / "a" / "b")
    assert not list(tmp_path.iterdir())  # only looked at
    assert make_folder(tmp_path / "a" / "b").is_dir() and make_folder(tmp_path).is_dir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "folder"):
        for act in (make_folder, need_folder):
            with pytest.raises(OutputError, match=r"Cannot make or write in .* Give another"):
                act(path)
