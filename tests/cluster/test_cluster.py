"""Whose Ray it is: joined by its address, or started here, private, and ended with the program."""

import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from latebloomer.cluster import Cluster, connection, watchdog
from latebloomer.errors import ClusterError, LearnerError, MissingExtra

pytestmark = pytest.mark.ray
linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


def said_at(address, folder):
    """What a program that is not connected yet is told."""
    script = f"from latebloomer.cluster import Cluster; Cluster({address!r}).open()"
    env = os.environ | {"RAY_TMPDIR": str(folder)}
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env)
    return ran.stderr


def test_auto_is_the_ray_that_was_started_on_this_machine(tmp_path):
    assert "no Ray that was started with `ray start` runs on" in said_at("auto", tmp_path)
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("127.0.0.1:9\n")
    assert "no Ray cluster answers at address='127.0.0.1:9'" in said_at("auto", tmp_path)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9"])
def test_no_cluster_at_the_address(address, tmp_path):
    said = said_at(address, tmp_path)
    assert f"no Ray cluster answers at address='{address}'" in said
    assert "leave the address out to start Ray on this machine" in said


def test_a_ray_that_does_not_start_is_a_cluster_error(monkeypatch):
    """Ray raises a plain exception where its first processes die; what it has made is removed."""
    ray = pytest.importorskip("ray")

    def fail(**settings):
        raise Exception("The current node timed out during startup")

    monkeypatch.setattr(ray, "init", fail)
    cluster = Cluster()
    with pytest.raises(ClusterError, match=r"could not be started .*timed out.*: try again"):
        cluster.open()


def test_what_rays_own_code_raises_says_what_to_do():
    space = {"__name__": "ray.util.placement_group"}
    exec("def look(error): raise error", space)
    said = pytest.raises(ClusterError, match=r"^Ray failed \(Exception: gone\): resume")
    with said, connection.explained("resume(...)"):
        space["look"](Exception("gone"))
    for error in (KeyError("ours"), LearnerError("known")):
        with pytest.raises(type(error)), connection.explained("resume(...)"):
            raise error


def test_ray_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr(connection, "make_token", lambda: None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[ray\]'"):
        Cluster().open()


ITS_OWN = """
import json, os, subprocess, sys
written = []
def hook(name, args):
    if name == "open" and str(args[0]).endswith("auth_token") and "w" in str(args[1]):
        written.append(str(args[0]))
sys.addaudithook(hook)
os.umask(0)
from latebloomer import race
from latebloomer.racing.runners.ray_runner import RayRunner

def look(self, stage):
    start(self, stage)
    cluster, token = self._cluster, os.path.expanduser("~/.ray/auth_token")
    seen.update(
        addresses=[node["NodeManagerAddress"] for node in cluster.nodes()],
        auth=os.environ["RAY_AUTH_MODE"], written=written,
        folder=str(cluster._folder.path), modes=[os.stat(path).st_mode & 0o777
                                                 for path in (cluster._folder.path, token)])

def curve(best):
    def pull():
        sleeper = subprocess.Popen(["sleep", "600"])  # a learner may start processes, too
        try:
            yield from ((best * n / (n + 3), n) for n in range(1, 1000))
        finally:
            sleeper.kill()
    return pull

def pause(event, view):
    if len(sys.argv) > 1 and view.spent == 10:
        print(json.dumps(seen), flush=True)
        sys.stdin.read()

seen, start = {}, RayRunner.start
RayRunner.start = look
race({"a": curve(1), "b": curve(.5)}, 40, journal=None, runner="ray", progress=False,
     callbacks=[pause])
import ray
seen["left"] = [ray.is_initialized(), "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" in os.environ,
                os.path.exists(seen["folder"])]
print(json.dumps(seen))
"""
PRIVATE = {"addresses": ["127.0.0.1"], "auth": "token", "modes": [0o700, 0o600], "written": []}


def started(home, script, *words):
    """A program that starts Ray, as a user who has no token yet."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.Popen([sys.executable, "-c", script, *words], env=env | {"HOME": str(home)},
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=home)  # fmt: skip


def test_a_ray_that_is_started_is_private_and_ended(tmp_path):
    ran = started(tmp_path, "import ray\n" + ITS_OWN)  # which reads its settings when imported
    seen = json.loads(ran.communicate()[0])
    assert {name: seen[name] for name in PRIVATE} == PRIVATE
    assert seen["left"] == [False, False, False]


@linux
def test_nothing_of_it_outlives_a_program_that_is_killed(tmp_path):
    with started(tmp_path, ITS_OWN, "pause") as driver:
        seen = json.loads(driver.stdout.readline())
        assert {name: seen[name] for name in PRIVATE} == PRIVATE
        names = descendants(driver.pid)
        assert {"gcs_server", "raylet", "ray::RuntimeEnv", "sleep"} <= set(names.values())
        handles = [os.pidfd_open(pid) for pid in names]
        driver.send_signal(signal.SIGKILL)
        alive = [pid for pid, handle in zip(names, handles, strict=True) if not ended(handle)]
    assert not alive, {pid: names[pid] for pid in alive}
    assert not Path(seen["folder"]).exists()


def descendants(root):
    """The names of all processes below one, by id."""
    parents, names = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, _, rest = file.read_text().partition(" (")
        except OSError:  # it has ended meanwhile
            continue
        name, _, fields = rest.rpartition(") ")
        parents[int(pid)], names[int(pid)] = int(fields.split()[1]), name
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: names[pid] for pid in found - {root}}


def ended(handle, within=30.0):
    """Whether a process ends; Ray's agents would take a minute."""
    gone = bool(select.select([handle], [], [], within)[0])
    os.close(handle)
    return gone


@linux
def test_the_watchdog_ends_those_who_write_output_into_the_folder(tmp_path):
    def sleeper(path, mode):
        with open(tmp_path / path, mode) as file:
            return subprocess.Popen(["sleep", "600"], stdout=file)

    writes, another = sleeper("ray.out", "w"), sleeper("ray.log", "w")
    reads = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[
        number := os.open(tmp_path / "ray.out", os.O_RDONLY)])  # fmt: skip
    os.close(number)
    watchdog.end_writers(f"{tmp_path}/")
    assert writes.wait() == -signal.SIGKILL
    assert another.poll() is None and reads.poll() is None
    for process in (another, reads):
        process.kill()
        process.communicate()


def test_the_folder_goes_with_its_ray_also_without_a_watchdog():
    for end in ([], ["kill"]):
        folder = connection.PrivateFolder()
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        (folder.path / "ray").mkdir()
        for word in end:
            getattr(folder._watchdog, word)()
        folder.close()
        assert not folder.path.exists()


HOLDS_ON = """
import subprocess, sys
from latebloomer.cluster.connection import PrivateFolder
folder = PrivateFolder()
held = [folder._watchdog.stdin.fileno()]  # as by a process that the program has forked
child = subprocess.Popen(["sleep", "600"], pass_fds=held, stdout=subprocess.DEVNULL)
print(folder.path, folder._watchdog.pid, child.pid, flush=True)
if sys.stdin.readline() == "close\\n":
    folder.close()
"""


@linux
@pytest.mark.parametrize("end", ["close", "kill"])
def test_a_child_of_the_program_neither_delays_the_end_nor_is_ended(end):
    with subprocess.Popen([sys.executable, "-c", HOLDS_ON], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as driver:  # fmt: skip
        folder, *pids = driver.stdout.readline().split()
        watching, child = (os.pidfd_open(int(pid)) for pid in pids)
        if end == "close":
            driver.communicate("close\n")
        else:
            driver.kill()
    assert ended(watching) and not Path(folder).exists()
    signal.pidfd_send_signal(child, signal.SIGKILL)  # there is such a process
    assert ended(child)


def test_sockets_have_room_for_their_names(monkeypatch, tmp_path):
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.setattr(connection.tempfile, "tempdir", str(tmp_path))
    assert connection._temporary() == "/tmp" and len(str(tmp_path)) > connection.LONGEST
    monkeypatch.setattr(connection.tempfile, "tempdir", "/var/tmp")
    assert connection._temporary() == "/var/tmp"
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))  # the user's word
    assert connection._temporary() == str(tmp_path)


def test_a_token_is_private_before_it_has_its_name(monkeypatch, tmp_path):
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    token, renamed = tmp_path / ".ray" / "auth_token", os.replace

    def publish(draft, path):
        assert stat.S_IMODE(os.stat(draft).st_mode) == 0o600
        assert len(Path(draft).read_text()) == 64
        renamed(draft, path)

    monkeypatch.setattr(connection.os, "replace", publish)
    before = os.umask(0)
    try:
        connection.make_token()
        first = token.read_text()
        token.chmod(0o644)  # as Ray itself would leave it
        connection.make_token()
    finally:
        os.umask(before)
    assert token.read_text() == first and stat.S_IMODE(token.stat().st_mode) == 0o600
    assert [file.name for file in token.parent.iterdir()] == ["auth_token"]
    shutil.rmtree(token.parent)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "given")
    connection.make_token()
    assert not token.exists()
