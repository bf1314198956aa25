"""Limits on connections: on their number, and on the time until a request arrives."""

from typing import Any

from latebloomer.watch.watch_app import extra

REQUESTS = 64  # with more connections, a request is answered with status 503
CONNECTIONS = 160  # further connections are closed unread, because file descriptors may be few
HEADER_SECONDS = 10.0  # seconds in which the header of a request must arrive
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def limited_protocol() -> Any:
    """Return uvicorn's protocol with limits on connections and on the time for a header."""
    protocol = extra("uvicorn.protocols.http.h11_impl").H11Protocol

    class LimitedProtocol(protocol):  # type: ignore[misc, valid-type]
        """One connection; between requests, uvicorn's own keep-alive time applies."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.start_deadline()
            if len(self.connections) > CONNECTIONS:
                transport.abort()

        def data_received(self, data: bytes) -> None:
            if self.deadline.cancelled() and self.waits_for_head():
                self.start_deadline()
            super().data_received(data)
            if not self.waits_for_head():
                self.deadline.cancel()

        def connection_lost(self, exc: Exception | None) -> None:
            self.deadline.cancel()
            super().connection_lost(exc)

        def start_deadline(self) -> None:
            self.deadline = self.loop.call_later(HEADER_SECONDS, self.give_up)

        def waits_for_head(self) -> bool:
            return self.cycle is None or bool(self.cycle.response_complete)

        def give_up(self) -> None:
            self.transport.write(TOO_SLOW)
            self.transport.close()

    return LimitedProtocol
