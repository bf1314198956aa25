"""What keeps a Ray that is started here to its user: loopback, a token, a folder, and its end."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

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
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip

    @property
    def for_ray(self) -> str:
        return str(self.path / "ray")

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
