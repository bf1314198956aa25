"""A connection to Ray: what there is, and questions to its nodes."""

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
WAIT = 60.0  # seconds in which a node must answer a question
PURPOSE = "races and simulations on several cores or machines"


class Cluster:
    """A connection to Ray. `close` ends what was started here and nothing else.

    Without an `address` the program's own connection is used where it has one, then the cluster
    that the environment variable RAY_ADDRESS names, else a Ray is started on this machine that
    declares `cores` CPUs (all of its cores, if not given). "auto" joins the Ray that runs on this
    machine, "ray://host:10001" one elsewhere.
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
                f"cores={cores} and address={address!r}, but cores is for a Ray that is started "
                "here: leave one of them out"
            )
        if find_spec("ray") is None:  # an error before anything is begun
            extra("ray", PURPOSE, "ray")
        where = address or os.environ.get("RAY_ADDRESS") or "local"
        self._address = None if where == "local" else where
        self._cores = cores
        self.local = False  # whether Ray was started here
        self.ray: Any = None
        self._closing = ExitStack()  # what was begun here, and nothing else

    def open(self) -> "Cluster":
        """Connect to Ray; raise an error if the address is wrong."""
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
        """End a Ray that was started here, or leave one that was joined."""
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
            self.close()  # some of its processes may run
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
            # A token is shown of itself only to what "auto" finds on this machine, as Ray does:
            # one that is shown to a cluster without tokens locks its workers out of this process.
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
            return  # by the same way; whether to the same place cannot be seen
        there = self.ray.get_runtime_context().gcs_address
        if there != self._address:
            raise ClusterError(
                f"address={self._address!r}, but this program is connected to Ray at {there}: "
                "leave the address out, or call ray.shutdown() first"
            )

    # --- what there is ---

    def nodes(self) -> list[dict[str, Any]]:
        """Return the nodes that are alive, as Ray describes them."""
        return [node for node in self.ray.nodes() if node["Alive"]]

    def room(self, wanted: Mapping[str, float]) -> int:
        """Return how many times `wanted` fits the nodes together, if nothing else uses them.

        Where they fit nowhere, an error says what is asked for and what each node has.
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
        """Return every node's answer to a function call, by node id; exceptions among them."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        remote = self.ray.remote(num_cpus=0, max_retries=2)(question)
        calls = {
            node["NodeID"]: remote.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ).remote(*arguments)
            for node in self.nodes()
        }
        answers = {node: self._answer(call) for node, call in calls.items()}
        there = {node["NodeID"] for node in self.nodes()}  # one may have left meanwhile
        return {node: answer for node, answer in answers.items() if node in there}

    def _answer(self, call: Any) -> Any:
        try:
            return self.ray.get(call, timeout=WAIT)
        except Exception as error:  # of the question or of Ray: the asker decides
            return getattr(error, "cause", None) or error

    def need_same_version(self) -> None:
        """Raise unless every node has this latebloomer: another one may decide otherwise."""
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

    Ray raises plain exceptions, too, where its processes have died.
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
    """Return whether this names a Ray that listens on the loopback interface.

    Where Ray may use all interfaces it replaces such a host by the machine's own address, at
    which that one does not answer, and tries for minutes.

    >>> _is_loopback("127.0.0.1:6379"), _is_loopback("10.0.0.5:6379")
    (True, False)
    """
    host = address.rpartition(":")[0].strip("[]")
    return host in (*LOOPBACK, "localhost")


def _running_here() -> str:
    """Return the address of the Ray that runs on this machine, as `ray start` notes it.

    Ray would also look through all processes for one that some program has started for itself,
    and try for minutes where that one does not let it in.
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
    """Raise where nothing listens: Ray itself would try again for minutes."""
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


# Ray listens on all interfaces unless its node's address is the loopback one, and it takes that
# one only where this variable is 0 (the default on macOS and Windows), whatever `init` is told.
ALL_INTERFACES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
TOKEN = Path("~/.ray/auth_token")  # where Ray keeps one unless told otherwise
# The path of a socket has at most 103 bytes (107 on Linux), of which
# /latebloomer-12345678/ray/session_2026-01-01_00-00-00_000000_1234567/sockets/plasma_store is 89.
LONGEST = 103 - 89
PATIENCE = 60.0  # seconds for the watchdog to end what `ray.shutdown` leaves


class PrivateFolder:
    """A folder for one Ray that only this user can enter; `close` ends that Ray and removes it.

    Ray makes the folder that it is given, and those inside, open to all: it gets one inside.
    Should this program be killed, its watchdog does what `close` does.
    """

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="latebloomer-", dir=_temporary()))
        script = Path(__file__).with_name("watchdog.py")
        # Isolated: it reads no code from the working folder. In its own session: what ends
        # this program by Ctrl-C or with its process group does not reach it.
        self._watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", script, str(os.getpid()), self.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self) -> None:
        """End what is left of the Ray in this folder and remove the folder."""
        with suppress(subprocess.TimeoutExpired):
            self._watchdog.communicate(b"end", timeout=PATIENCE)
        shutil.rmtree(self.path, ignore_errors=True)  # where somebody has ended the watchdog


def _temporary() -> str:
    """Return a temporary folder that leaves room for the names of Ray's sockets."""
    named = os.environ.get("RAY_TMPDIR")
    usual = named or tempfile.gettempdir()
    return "/tmp" if os.name == "posix" and not named and len(usual) > LONGEST else usual


def make_token() -> None:
    """Make a token for Ray that no other user can read, if the user has none yet.

    Ray would make one itself, in a file that all can read. This one gets its name when it is
    whole: another program that starts now finds all of it, or none.
    """
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return
    path = TOKEN.expanduser()
    with suppress(OSError):  # no home to write to: Ray says so when it starts
        if path.exists():
            path.chmod(0o600)  # `ray get-auth-token --generate` leaves it for all to read
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
            # What Ray itself does there; it has no public way to read its environment again.
            # Where this is gone, Ray's default holds (a token, in 2.60).
            with suppress(Exception):
                import_module("ray._raylet").Config.initialize("")
    if os.environ["RAY_AUTH_MODE"].lower() == "token":
        make_token()


@contextmanager
def loopback_only(here: bool) -> Iterator[None]:
    """Keep Ray to the loopback interface while it is imported and started, or joined, here.

    Ray reads the setting when it is imported. Where the program has done that before there is no
    public way left (`init(_node_ip_address="127.0.0.1")` is replaced by the machine's address, and
    so is the host of an address that is joined): it is set where Ray keeps it.
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
