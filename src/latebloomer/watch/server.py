"""The server of the live page: for this machine only, with a secret in its URL."""

import asyncio
import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import quote

from latebloomer.errors import JournalError, SettingError
from latebloomer.watch.connection_limits import REQUESTS, limited_protocol
from latebloomer.watch.watch_app import HOST, Watch, app_of, extra

# Environment variable for the secret, which keeps the URL after a restart.
TOKEN = "LATEBLOOMER_WATCH_TOKEN"


def serve(
    place: Path,
    port: int = 0,
    say: Callable[[str], object] = print,
    exit_after_idle: float | None = None,
) -> None:
    """Serve until Ctrl-C, or until `exit_after_idle` seconds without any race or open tab."""
    uvicorn = extra("uvicorn")
    if not place.exists():
        raise JournalError(f"there is no journal or folder {place}: check the path")
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(16)
    if not token.replace("-", "").replace("_", "").isalnum() or len(token) < 16:
        raise SettingError(f"{TOKEN} must be 16 letters and digits at least")
    watch = Watch(place.absolute(), token)
    try:
        listening = socket.create_server((HOST, port))  # browsers can connect from now on
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or "ports are 0 to 65535"
        raise SettingError(f"port={port} cannot be used ({why}). Give another or none.") from error
    real_port = listening.getsockname()[1]
    settings = uvicorn.Config(
        app_of(watch),
        log_level="critical",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
        server_header=False,
        http=limited_protocol(),
        limit_concurrency=REQUESTS,
    )
    only = "" if place.is_dir() else f"race/{quote(place.name)}"
    say(f"http://{HOST}:{real_port}/{token}/{only}")
    asyncio.run(_run(uvicorn.Server(settings), listening, watch, exit_after_idle))


async def _run(
    server: Any, listening: socket.socket, watch: Watch, exit_after_idle: float | None
) -> None:
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    needed = monotonic()
    while not serving.done():
        await asyncio.wait([serving], timeout=1.0)
        if exit_after_idle is None:
            continue
        if await asyncio.to_thread(watch.is_needed):
            needed = monotonic()
        elif monotonic() - needed > exit_after_idle:
            server.should_exit = True
    await serving
