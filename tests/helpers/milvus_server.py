"""A Milvus Lite server on the loopback that can end and begin again, and what may stand between it and Folio."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import grpc
from milvus_lite.adapter.grpc.server import start_server_in_thread

# Reads of bytes on their way, and how long one waits for the next
_CHUNK = 65_536


class LiteServer:
    """Serves a file of Milvus Lite at an address that stays the same."""

    def __init__(self, folder: Path) -> None:
        self._file, self.port = str(folder / "served.db"), 0
        self._running: tuple[Any, Any] | None = None
        self.start()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        server, database, self.port = start_server_in_thread(self._file, port=self.port)
        self._running = server, database

    def stop(self) -> None:
        """End it: whoever is asking gets no answer."""
        if self._running is not None:
            server, database = self._running
            server.stop(0).wait()
            database.close()
            self._running = None


class CuttingProxy:
    """Passes bytes on to a server; each of the first connections is reset after so many bytes of answers."""

    def __init__(self, port: int, cuts: list[int]) -> None:
        """cuts: for each connection in turn, the bytes after which it is reset; those after them are left alone."""
        self._port, self.cuts, self.cut = port, cuts, 0
        self._lock = Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        Thread(target=self._accept, daemon=True).start()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                left = self.cuts.pop(0) if self.cuts else None
            try:
                server = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                client.close()
                continue
            Thread(target=self._pass, args=(client, server, None), daemon=True).start()
            Thread(target=self._pass, args=(server, client, left), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, left: int | None) -> None:
        with suppress(OSError):
            while read := source.recv(_CHUNK):
                if left is not None and len(read) >= left:
                    target.sendall(read[:left])
                    self.cut += 1
                    break
                left = None if left is None else left - len(read)
                target.sendall(read)
        for each in (source, target):
            with suppress(OSError):  # at once, and without an orderly end
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                each.shutdown(socket.SHUT_RDWR)
            each.close()


# What happens to a request: its name, its bytes, how to send it on; returns the answer, or ends the call
Treatment = Callable[[str, bytes, Callable[[], bytes], grpc.ServicerContext], bytes]


@contextmanager
def call_proxy(port: int, treat: Treatment) -> Iterator[str]:
    """The address of a server that passes each call on as `treat` says."""
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_receive_message_length", -1)])

    class Everything(grpc.GenericRpcHandler):  # type: ignore[misc]
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
            method = details.method
            send = channel.unary_unary(method)

            def handle(request: bytes, context: grpc.ServicerContext) -> bytes:
                return treat(method.rpartition("/")[2], request, lambda: send(request), context)

            return grpc.unary_unary_rpc_method_handler(handle)

    options = [("grpc.max_receive_message_length", -1)]
    made = grpc.server(ThreadPoolExecutor(8), handlers=[Everything()], options=options)
    found = made.add_insecure_port("127.0.0.1:0")
    made.start()
    try:
        yield f"http://127.0.0.1:{found}"
    finally:
        made.stop(0).wait()
        channel.close()
