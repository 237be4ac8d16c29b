"""A server on the loopback whose replies never end: what any program on Ollama's port could be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def endless_server(
    first: bytes = b"", again: bytes = b"", *, status: int = 200, headers: dict[str, str] | None = None
) -> Iterator[str]:
    """Its URL, while the block lasts. Each request is answered with `first`, then with `again` for ever.

    Without `again`, the reply ends after `first`.
    """
    stopping = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.do_GET()

        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in (headers or {"Content-Type": "application/json"}).items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(first)
                while again and not stopping.is_set():
                    self.wfile.write(again)
            except ConnectionError:  # the client had enough
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Keeps the tests' output free of a line for each request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()
