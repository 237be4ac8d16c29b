"""A real llama.cpp server, where one is installed outside the checkout.

FOLIO_LLAMA names a folder with bin/python, of a virtual environment with `llama-cpp-python[server]`, and tiny.gguf, a
small chat model in ChatML. Default: ~/.cache/folio-tests/llama.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

FOLDER = Path(os.environ.get("FOLIO_LLAMA") or Path.home() / ".cache/folio-tests/llama")
PYTHON, MODEL = FOLDER / "bin/python", FOLDER / "tiny.gguf"
START_S = 60
CONTEXT = 2048  # tokens


def missing() -> str:
    """Why there is no such server; "" where it can be started."""
    gone = [str(path) for path in (PYTHON, MODEL) if not path.exists()]
    return f"no llama.cpp server here: {', '.join(gone)} is missing (tests/helpers/llama_cpp.py)" if gone else ""


@contextmanager
def llama_server(*options: str) -> Iterator[str]:
    """The base URL of a server of the small model, named "tiny"."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [str(PYTHON), "-m", "llama_cpp.server", "--model", str(MODEL), "--model_alias", "tiny",
               "--chat_format", "chatml", "--n_ctx", str(CONTEXT), "--host", "127.0.0.1", "--port", str(port),
               *options]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url, opener, end = f"http://127.0.0.1:{port}/v1", build_opener(ProxyHandler({})), monotonic() + START_S
        while True:
            assert process.poll() is None, f"{' '.join(command)} ended"
            assert monotonic() < end, f"{' '.join(command)} did not start"
            try:
                opener.open(f"{url}/models", timeout=5).close()
                break
            except (URLError, ConnectionError):
                sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait()
