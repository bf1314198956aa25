"""A connection to Ray: its nodes and their resources, and calls of functions on all nodes."""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from typing import Any

from latebloomer._util.text import reason_of
from latebloomer.errors import (
    ClusterError,
    LatebloomerError,
    SettingError,
    extra,
    need_whole,
    require,
)
from latebloomer.version import __version__

LOOPBACK = ("127.0.0.1", "::1")
WAIT = 60.0  # seconds in which a node must answer a call
PURPOSE = "races and simulations on several cores or machines"


class Cluster:
    """A connection to Ray; `close` ends only what this connection has started.

    Without an `address`, the connection of the program is used if it has one; otherwise the
    cluster in the environment variable RAY_ADDRESS; otherwise Ray is started on this machine with
    `cores` CPUs (default: all cores). "auto" joins the Ray that runs on this machine, and
    "ray://host:10001" joins a cluster elsewhere.
    """

    def __init__(self, address: str | None = None, cores: int | None = None) -> None:
        named = isinstance(address, str) and address.strip() != ""
        require(
            address is None or named,
            "address",
            address,
            "None, 'auto' or like 'ray://host:10001'",
            "it says where Ray runs",
        )
        if cores is not None:
            need_whole("cores", cores, 1, "a Ray without CPUs trains nothing")
        if address is not None and cores is not None:
            raise SettingError(
                f"cores={cores} and address={address!r}, but cores applies only if Ray is started "
                "here: leave one of them out"
            )
        if find_spec("ray") is None:  # raise an error before anything is started
            extra("ray", PURPOSE, "ray")
        where = address or os.environ.get("RAY_ADDRESS") or "local"
        self._address = None if where == "local" else where
        self._cores = cores
        self.local = False  # whether Ray was started here
        self.ray: Any = None
        self._closing = ExitStack()  # ends only what was started here

    def open(self) -> "Cluster":
        """Connect to Ray; raise an error if that is not possible."""
        ray = sys.modules.get("ray")
        connected = ray is not None and ray.is_initialized()
        address = self._address
        if address == "auto" and not connected:
            address = _running_here()
        with loopback_only(address is None or _is_loopback(address)):
            if not connected and address is None:
                ask_for_token(ray is not None)
            self.ray = extra("ray", PURPOSE, "ray")
            if connected:
                self._need_the_same()
            elif address is None:
                self._start()
            else:
                self._join(address)
        return self

    def close(self) -> None:
        """End Ray if it was started here, or leave a cluster that was joined."""
        self._closing.close()

    __enter__ = open

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- connecting ---

    def _start(self) -> None:
        self._folder = PrivateFolder()
        self._closing.callback(self._folder.close)
        where = {"address": "local", "_temp_dir": str(self._folder.path / "ray")}
        try:
            self._init(**where, num_cpus=self._cores, include_dashboard=False)
        except BaseException as error:
            self.close()  # some of its processes may already run
            if not isinstance(error, Exception):
                raise
            problem = f"Ray could not be started on this machine ({reason_of(error)})"
            raise ClusterError(f"{problem}: try again, or run without Ray") from error
        self.local = True

    def _join(self, address: str) -> None:
        if address.startswith("ray://"):
            extra("grpc", "addresses that begin with ray://", "ray")
        try:
            _need_listener(address)
            # Like Ray, send a token by default only to the cluster that "auto" finds on this
            # machine: if a cluster without tokens gets a token, its workers cannot connect to this
            # process.
            self._init(address="auto" if self._address == "auto" else address)
        except (self.ray.exceptions.RayError, RuntimeError, ValueError, OSError) as error:
            if "uthentication" in f"{type(error)} {error} {error.__cause__}":
                raise ClusterError(
                    f"the Ray cluster at address={address!r} asks for a token, and none "
                    "or another one was shown: set RAY_AUTH_MODE=token, and put its token into "
                    "RAY_AUTH_TOKEN or ~/.ray/auth_token"
                ) from error
            raise ClusterError(
                f"no Ray cluster answers at address={address!r} ({reason_of(error)}): check the "
                "address and that the cluster runs there (`ray status`), or leave the address out "
                "to start Ray on this machine"
            ) from error

    def _init(self, **where: Any) -> None:
        quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
        self.ray.init(**where, **quiet)
        self._closing.callback(self._leave)

    def _leave(self) -> None:
        if self.ray.is_initialized():
            self.ray.shutdown()

    def _need_the_same(self) -> None:
        """Raise an error if this program is connected to another cluster than requested."""
        if self._address in (None, "auto"):
            return
        if str(self._address).startswith("ray://") and self.ray.util.client.ray.is_connected():
            return  # connected in the same way; whether to the same cluster is not known
        there = self.ray.get_runtime_context().gcs_address
        if there != self._address:
            raise ClusterError(
                f"address={self._address!r}, but this program is connected to Ray at {there}: "
                "leave the address out, or call ray.shutdown() first"
            )

    # --- nodes and resources ---

    def nodes(self) -> list[dict[str, Any]]:
        """Return the nodes that are alive, as Ray describes them."""
        return [node for node in self.ray.nodes() if node["Alive"]]

    def room(self, wanted: Mapping[str, float]) -> int:
        """Return how many times `wanted` fits all nodes together, if nothing else uses them.

        If it fits on no node, an error says what is requested and what each node has.
        """
        nodes = self.nodes()
        need = {name: amount for name, amount in wanted.items() if amount}
        fits = 0
        for node in nodes:
            have = node["Resources"]
            each = (int(have.get(name, 0) / amount + 1e-9) for name, amount in need.items())
            fits += min(each, default=1)
        if not fits:
            there = "; ".join(_named(node["Resources"], need) for node in nodes) or "no node"
            raise ClusterError(
                f"one learner or task asks for {_named(need, need)}, but no node of the Ray "
                f"cluster has that (they have: {there}): ask for less, or add such a node"
            )
        return fits

    def ask_nodes(self, question: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Return the result of a function call on every node, by node ID, or its exception."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        remote = self.ray.remote(num_cpus=0, max_retries=2)(question)
        calls = {
            node["NodeID"]: remote.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ).remote(*arguments)
            for node in self.nodes()
        }
        answers = {node: self._answer(call) for node, call in calls.items()}
        there = {node["NodeID"] for node in self.nodes()}  # a node may have left meanwhile
        return {node: answer for node, answer in answers.items() if node in there}

    def _answer(self, call: Any) -> Any:
        try:
            return self.ray.get(call, timeout=WAIT)
        except Exception as error:  # an error of the function or of Ray: the caller decides
            return getattr(error, "cause", None) or error

    def need_same_version(self) -> None:
        """Raise an error unless all nodes have this version of latebloomer and Python."""
        for node, answer in self.ask_nodes(_version).items():
            if answer != _version():
                answered = (
                    reason_of(answer) if isinstance(answer, Exception) else f"it has {answer}"
                )
                raise ClusterError(
                    f"node {node[:8]} of the Ray cluster cannot run {_version()} ({answered}): "
                    "install the same, with its extras, on every node"
                )


@contextmanager
def explained(advice: str) -> Iterator[None]:
    """Return a context in which an error of Ray's own code becomes a `ClusterError`.

    Ray also raises plain exceptions if its processes have died.
    """
    try:
        yield
    except LatebloomerError:
        raise
    except Exception as error:
        frames = (frame for frame, _ in walk_tb(error.__traceback__))
        if not any(str(frame.f_globals.get("__name__")).startswith("ray.") for frame in frames):
            raise
        raise ClusterError(f"Ray failed ({reason_of(error)}): {advice}") from error


def _is_loopback(address: str) -> bool:
    """Return whether an address is on the loopback interface.

    If Ray may use all interfaces, it replaces such a host by the machine's own address, at which a
    Ray on the loopback interface does not answer, and tries for minutes.

    >>> _is_loopback("127.0.0.1:6379"), _is_loopback("10.0.0.5:6379")
    (True, False)
    """
    host = address.rpartition(":")[0].strip("[]")
    return host in (*LOOPBACK, "localhost")


def _running_here() -> str:
    """Return the address of the Ray on this machine from the file that `ray start` writes.

    Ray itself would also search all processes for a Ray that some program has started for its own
    use, and try for minutes to connect to it.
    """
    note = Path(os.environ.get("RAY_TMPDIR") or "/tmp", "ray", "ray_current_cluster")
    try:
        return note.read_text().strip()
    except OSError:
        raise ClusterError(
            "address='auto', but no Ray that was started with `ray start` runs on this machine: "
            "start one (`ray start --head`), give its address host:port, or leave the address out"
        ) from None


def _need_listener(address: str) -> None:
    """Raise an error if nothing listens at an address: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _version() -> str:
    return f"latebloomer {__version__} on Python {sys.version_info[0]}.{sys.version_info[1]}"


def _named(have: Mapping[str, float], wanted: Mapping[str, float]) -> str:
    """Return amounts of resources as text.

    >>> _named({"CPU": 4.0, "memory": 1e9}, {"CPU": 1, "GPU": 2})
    '4 CPU, 0 GPU'
    """
    return ", ".join(f"{have.get(name, 0):g} {name}" for name in wanted)


# Ray listens on all interfaces unless its node has the loopback address, which it uses only if
# this variable is 0 (the default on macOS and Windows), whatever the arguments of `init` are.
ALL_INTERFACES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
TOKEN = Path("~/.ray/auth_token")  # default place of Ray's token
# The path of a socket can have at most 103 bytes (107 on Linux), and
# /latebloomer-12345678/ray/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store needs
# 89.
LONGEST = 103 - 89
PATIENCE = 60.0  # seconds to wait until the watchdog has ended what `ray.shutdown` left


class PrivateFolder:
    """A folder for one Ray that only this user can enter; `close` ends Ray and removes the folder.

    Ray opens its folder, and the folders inside, to all users. So it gets a folder inside of this
    one. If this program is killed, its watchdog does the same as `close`.
    """

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="latebloomer-", dir=_temporary()))
        script = Path(__file__).with_name("watchdog.py")
        # The watchdog is isolated, so it reads no code from the working folder. It has its own
        # session, so Ctrl-C or signals to this program's process group do not reach it.
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", script, str(os.getpid()), self.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """End remaining processes of the Ray in this folder, and remove the folder."""
        with suppress(subprocess.TimeoutExpired):
            self._watchdog.communicate(b"end", timeout=PATIENCE)
        shutil.rmtree(self.path, ignore_errors=True)  # in case the watchdog was ended


def _temporary() -> str:
    """Return a temporary folder with a path short enough for the names of Ray's sockets."""
    named = os.environ.get("RAY_TMPDIR")
    usual = named or tempfile.gettempdir()
    return "/tmp" if os.name == "posix" and not named and len(usual) > LONGEST else usual


def make_token() -> None:
    """Create a token for Ray that no other user can read, if the user has none yet.

    Ray itself would create a token in a file that all users can read. Here the file gets its name
    when it is complete, so another program that starts at the same time finds the complete token
    or none.
    """
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return
    path = TOKEN.expanduser()
    with suppress(OSError):  # the home folder cannot be written: Ray reports it when it starts
        if path.exists():
            path.chmod(0o600)  # `ray get-auth-token --generate` lets all users read it
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, draft = tempfile.mkstemp(prefix=".auth_token-", dir=path.parent)  # mode 0600
        with os.fdopen(number, "w") as file:
            file.write(secrets.token_hex(32))
        os.replace(draft, path)


def ask_for_token(loaded: bool) -> None:
    """Make Ray require a token; call it before Ray starts here (known since Ray 2.52)."""
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        if loaded:
            # Ray has no public function to read its environment again, so do what Ray does. If
            # this attribute is removed, Ray's default applies (a token, in 2.60).
            with suppress(Exception):
                import_module("ray._raylet").Config.initialize("")
    if os.environ["RAY_AUTH_MODE"].lower() == "token":
        make_token()


@contextmanager
def loopback_only(here: bool) -> Iterator[None]:
    """Restrict Ray to the loopback interface while it is imported and started or joined.

    Ray reads the setting when it is imported. If the program has already imported Ray, there is no
    public way to change it: Ray replaces `init(_node_ip_address="127.0.0.1")`, and the host of an
    address to join, by the machine's address. So the value that Ray has stored is set.
    """
    if not here or ALL_INTERFACES in os.environ:
        yield
        return
    os.environ[ALL_INTERFACES] = "0"
    constants = sys.modules.get("ray._private.ray_constants")
    before = getattr(constants, "ENABLE_RAY_CLUSTER", sys.platform not in ("darwin", "win32"))
    try:
        if constants is not None:
            constants.ENABLE_RAY_CLUSTER = False  # type: ignore[attr-defined]
        yield
    finally:
        del os.environ[ALL_INTERFACES]
        constants = sys.modules.get("ray._private.ray_constants")
        if constants is not None:
            constants.ENABLE_RAY_CLUSTER = before  # type: ignore[attr-defined]
