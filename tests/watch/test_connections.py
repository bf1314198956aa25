"""The live page's server keeps serving while others send half of a request, or far too many."""

import re
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

from latebloomer.watch.server import REQUESTS

pytest.importorskip("uvicorn")

SERVE = """
import resource, sys
from pathlib import Path
from latebloomer.watch import server
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
server.HEADER_SECONDS = float(sys.argv[2])
server.serve(Path(sys.argv[1]), say=lambda address: print(address, flush=True))
"""
HALF = b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def address(request, tmp_path):
    """Host, port and path of a server with 256 file descriptors; the time that a head may take."""
    words = [sys.executable, "-c", SERVE, str(tmp_path), str(request.param)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        found = re.fullmatch(r"http://([\d.]+):(\d+)(/.*/)\n", child.stdout.readline())
        yield found[1], int(found[2]), found[3]
        child.terminate()


def half_sent(address, count, stack):
    for _ in range(count):
        made = stack.enter_context(socket.create_connection(address[:2], timeout=60))
        made.sendall(HALF)
        yield made


def answer(address, made):
    """The status line of an answer to the list of races; empty if the connection is closed."""
    host, port, path = address
    made.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    return made.recv(12)


def end_of(made):
    try:
        return made.recv(12)
    except ConnectionResetError:  # beyond the limit
        return b""


@pytest.mark.parametrize("address", [0.3], indirect=True)
def test_half_sent_requests_do_not_make_the_server_unreachable(address):
    with ExitStack() as stack:
        ends = [end_of(made) for made in list(half_sent(address, 400, stack))]
        assert set(ends) <= {b"HTTP/1.1 408", b""} and ends.count(b"HTTP/1.1 408") >= 100
        made = stack.enter_context(socket.create_connection(address[:2], timeout=60))
        assert answer(address, made) == b"HTTP/1.1 200"
        while b"</html>" not in made.recv(65536):
            pass
        made.sendall(HALF)  # nor can the second request of a connection stay half-sent
        assert made.recv(12) == b"HTTP/1.1 408"


@pytest.mark.parametrize("address", [600], indirect=True)
def test_beyond_the_limit_a_request_is_refused_until_others_are_gone(address):
    with ExitStack() as stack:
        held = list(half_sent(address, REQUESTS, stack))
        made = stack.enter_context(socket.create_connection(address[:2], timeout=60))
        assert answer(address, made) == b"HTTP/1.1 503"
        for one in held:
            one.close()
        for _ in range(100):  # the server learns of it in its next turns
            with socket.create_connection(address[:2], timeout=60) as made:
                if answer(address, made) == b"HTTP/1.1 200":
                    return
        raise AssertionError("refused although nobody else is connected")
