"""Bounds what connections hold: their number, and the time for a head, a body, and the reading of a response.

uvicorn ends a connection that is idle between two requests. It waits forever for the first request of a connection,
for the rest of a head or a body, and for a client that does not read its response.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from folio.web.request_guard import ALWAYS


@dataclass(frozen=True)
class ConnectionLimits:
    """What a client can hold without giving or taking anything.

    head_s: seconds for the head of a request, from the start of the connection or the end of the last response
    window_s: seconds after which a body, or the reading of a response, must have got on
    min_bytes_per_s: the slowest body, on average over a window; the largest upload takes hours at this rate
    connections: the most that are open. One more ends the oldest that waits for a request, or is itself refused
    """

    head_s: float = 10.0
    window_s: float = 30.0
    min_bytes_per_s: float = 10_000.0
    connections: int = 200


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 for one connection, within limits. Requests that cannot be read get an error in the API's form."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: ConnectionLimits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = limits
        self._stage: str | None = None
        self._since = 0.0  # when the stage began, in the event loop's time
        self._timer: asyncio.TimerHandle | None = None
        self._is_refused = False
        self.windows = 0  # that have passed
        # Of the current window:
        self._received = 0  # bytes
        self._was_paused = False  # whether the app let the client wait
        self._unsent = 0  # bytes of responses that waited when it began
        self._was_answered = False  # whether the response was complete when it began

    # What uvicorn calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self._make_room():
            self._refuse(503, "Too many requests are being answered.", "Try again in a moment.")
            return
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._received += len(data)
        super().data_received(data)
        self._was_paused |= self.flow.read_paused
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    def shutdown(self) -> None:
        if self._is_refused:
            self.transport.close()
        else:
            super().shutdown()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Refuse what h11 could not read. uvicorn calls it while it handles h11's error."""
        error = sys.exception()
        too_large = isinstance(error, h11.RemoteProtocolError) and error.error_status_hint == 431
        if too_large and self.conn.our_state is h11.IDLE:  # otherwise it was in the body
            self._refuse(431, "The headers of the request are too large.", "Send fewer or shorter ones.")
        else:
            self._refuse(400, "The request is not valid HTTP.", "Send it as HTTP/1.1.")

    # Time

    def _watch(self) -> None:
        """Start the timer of the stage that the connection is in, unless it runs already."""
        stage = self._current_stage()
        if stage == self._stage:
            return
        self._stop_timer()
        self._stage, self._since = stage, self.loop.time()
        if stage == "head":
            self._timer = self.loop.call_later(self._limits.head_s, self._end_head)
        elif stage is not None:
            self._start_window()

    def _current_stage(self) -> str | None:
        """What the client has to do: send a head, send a body, read or leave; None if it waits for the app."""
        if self._is_refused:
            return "leave"
        if self.flow.write_paused or self.transport.is_closing():
            return "read"
        return {h11.IDLE: "head", h11.SEND_BODY: "body"}.get(self.conn.their_state)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_head(self) -> None:
        if self.conn.trailing_data[0]:
            self._refuse(408, "The request took too long.", "Send it again, faster.")
        else:
            self.transport.close()
            self._watch()

    def _start_window(self) -> None:
        self._received = 0
        self._was_paused = self.flow.read_paused
        self._unsent = self.transport.get_write_buffer_size()
        self._was_answered = self.conn.our_state in (h11.DONE, h11.MUST_CLOSE)
        self._timer = self.loop.call_later(self._limits.window_s, self._end_window)

    def _end_window(self) -> None:
        self.windows += 1
        least = self._limits.min_bytes_per_s * self._limits.window_s
        if self._stage == "leave":
            self.transport.abort()
            return
        if self._stage == "read":
            if self._unsent - self.transport.get_write_buffer_size() < least:
                self.transport.abort()
                return
        elif self._was_answered:  # a body that nobody reads had a window to end
            self.transport.close()
            self._watch()
            return
        elif self._received < least and not self._was_paused:
            self._refuse(408, "The request took too long.", "Send it again, faster.")
            return
        self._start_window()

    # Room

    def _make_room(self) -> bool:
        """Whether this connection may stay. Of too many, the oldest that has no request or was refused is ended."""
        others = [
            other
            for other in self.connections
            if isinstance(other, BoundedProtocol) and other is not self and not other.transport.is_closing()
        ]
        if len(others) < self._limits.connections:
            return True
        waiting = (other for other in others if other._stage in ("head", "leave"))
        oldest = min(waiting, key=lambda other: other._since, default=None)
        if oldest is not None:
            oldest.transport.abort()
        return oldest is not None

    # Answers

    def _refuse(self, status: int, happened: str, remedy: str) -> None:
        """Answer with an error if nothing was answered yet, and end the connection.

        What the client still sends is thrown away: closing would reset the connection, and the error would be lost.
        """
        if self.cycle is not None:
            self.cycle.disconnected = True  # the app must not answer too
            self.cycle.message_event.set()
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
        else:
            self._is_refused = True
            body = json.dumps({"error": happened, "remedy": remedy}).encode()
            headers = {
                **ALWAYS,
                "content-type": "application/json",
                "content-length": str(len(body)),
                "cache-control": "no-store",
                "connection": "close",
            }
            start = h11.Response(
                status_code=status,
                headers=[(name.encode(), value.encode()) for name, value in headers.items()],
                reason=HTTPStatus(status).phrase.encode(),
            )
            for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.write_eof()
            self.flow.resume_reading()
        self._watch()
