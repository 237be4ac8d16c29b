"""What surrounds Ray in this process: its settings, and nothing of it on the terminal."""

from __future__ import annotations

import os
import secrets
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# Ray's own settings. It reads them from the environment when it is imported, once for the process, and its processes
# inherit them. Nothing is reported; workers are as urgent as this process: at 15, Ray's own choice, they would wait for
# whatever else the computer does.
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
}
# A Ray of this process's own listens on the loopback, where other users of the computer are, and answers nobody else.
_PRIVATE = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}
_imported_here = False


@contextmanager
def settings(*, is_own: bool) -> Iterator[None]:
    """Inside, Ray may be imported, and run. is_own: a Ray of this process's own."""
    with _environment(_QUIET | (_PRIVATE if is_own and _is_ours() else {})):
        yield


def _is_ours() -> bool:
    """Whether this module was the first to import Ray, which has not read any other settings then."""
    global _imported_here
    _imported_here = _imported_here or "ray" not in sys.modules
    return _imported_here


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, nothing that Ray says comes to the terminal: its warnings, and what its libraries write to stderr."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
