"""A TCP proxy on the loopback that loses connections and delays answers, at exactly one place of a conversation."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

_CHUNK = 2**16


@dataclass
class _State:
    """Of a connection."""

    server_spoke: bool = True  # since the client did
    is_cut: bool = False


class TcpProxy:
    """Forwards connections to a port of the loopback.

    `cut_at` says which bytes of a client end its connection, once: before they are forwarded, or, with `forwards_cut`,
    after that, so that only their answer is lost. With `late_s` they are forwarded so much later than that.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.delay_s = 0.0  # of each answer
        self.round_trips = 0  # times that a client spoke after the server had
        self.cut_at: Callable[[bytes], bool] | None = None
        self.forwards_cut = False
        self.late_s = 0.0
        self.cut_answer: Callable[[bytes], bool] | None = None  # bytes of the server that end the connection
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """End every connection."""
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._open.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    client.close()
                    continue
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open += [client, server]
                state = _State()
                for pump in (self._from_client, self._from_server):
                    threading.Thread(target=pump, args=(client, server, state), daemon=True).start()

    def _from_client(self, client: socket.socket, server: socket.socket, state: _State) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK):
                if state.server_spoke:
                    state.server_spoke = False
                    self.round_trips += 1
                if self.cut_at is not None and self.cut_at(data):
                    self.cut_at, state.is_cut = None, True
                    if self.late_s:
                        _end(client)
                        time.sleep(self.late_s)
                    if self.forwards_cut:
                        server.sendall(data)
                        time.sleep(0.05)  # the server gets it, and does it
                    break
                server.sendall(data)
        _end(client, server)

    def _from_server(self, client: socket.socket, server: socket.socket, state: _State) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK):
                if state.is_cut:
                    continue
                state.server_spoke = True
                if self.cut_answer is not None and self.cut_answer(data):
                    self.cut_answer = None
                    break
                if self.delay_s:
                    time.sleep(self.delay_s)
                client.sendall(data)
        _end(client, server)


def _end(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
