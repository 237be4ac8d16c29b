"""A proxy on the loopback that counts the bytes it passes on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class CountingProxy:
    """Passes connections on to a port of this computer."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._sent = self._received = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def counted(self) -> tuple[int, int]:
        """Bytes to the target, and bytes from it."""
        with self._lock:
            return self._sent, self._received

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self._target)) as server:
            back = threading.Thread(target=self._pump, args=(server, client, False), daemon=True)
            back.start()
            self._pump(client, server, True)
            back.join()

    def _pump(self, source: socket.socket, target: socket.socket, is_sent: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                with self._lock:
                    if is_sent:
                        self._sent += len(data)
                    else:
                        self._received += len(data)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


@contextmanager
def serving(target: int) -> Iterator[CountingProxy]:
    """A proxy to this port, until the block ends."""
    proxy = CountingProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
