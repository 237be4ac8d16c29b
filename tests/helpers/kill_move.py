"""A move that is killed: `python -m tests.helpers.kill_move TO FOLDER URL STEP` ends with SIGKILL at a step.

A step is a statement that writes, or a transaction; 0 kills nothing, and prints how many there are.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from folio.app import App
from folio.shared.postgres import PostgresDatabase
from folio.store.sqlite import SqliteDatabase
from folio.system.files import replace as replace_file
from tests.helpers.fakes import HashingApp, hashing_app


def app_of(folder: Path, url: str, **more: Any) -> HashingApp:
    """The tool over a folder, with a database to move to or from."""
    return hashing_app(folder, DATABASE_URL=url, LLM="builtin", RERANKER="builtin", **more)


def move(app: App, to: Any, *, replaces: bool = False) -> Any:
    return app.move(to, lambda what, done, of: None, replaces=replaces)


class _Steps:
    """Counts steps, and kills at one of them."""

    def __init__(self, last: int) -> None:
        self.count, self._last = 0, last

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **values: Any) -> Any:
            self.count += 1
            if self.count == self._last:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **values)

        return counted


def main(to: str, folder: str, url: str, step: str) -> None:
    from folio.store import user_file

    steps = _Steps(int(step))
    for database in (PostgresDatabase, SqliteDatabase):
        for name in ("execute", "execute_many", "transaction"):
            setattr(database, name, steps.before(getattr(database, name)))
    PostgresDatabase._commit = steps.before(PostgresDatabase._commit)  # type: ignore[method-assign]
    user_file.replace = steps.before(replace_file)  # type: ignore[attr-defined]
    move(app_of(Path(folder), url), to)
    sys.stdout.write(f"{steps.count}\n")
