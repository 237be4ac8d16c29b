"""Updates the indexes of a shared library, and kills itself before a statement of it. Used by test_server_search.py.

Its main takes URL STATEMENT: the place of the statement among those that write, from 1. Prints how many there were, if
it was not reached.
"""

from __future__ import annotations

import os
import signal
import sys

from folio.shared import server_index
from folio.shared.postgres import PostgresDatabase
from folio.store.library import Library


class Fatal(PostgresDatabase):
    """Ends this process before one of its statements that write, or in the midst of a copy."""

    left = 0
    written = 0

    def _step(self) -> None:
        self.written += 1
        if self.written == self.left:
            os.kill(os.getpid(), signal.SIGKILL)

    def execute(self, sql: str, /, **values: object) -> list[tuple[object, ...]]:
        self._step()
        return super().execute(sql, **values)

    def copy_in(self, table: str, rows: object) -> None:
        listed = list(rows)  # type: ignore[call-overload]

        def some() -> object:
            yield from listed[: len(listed) // 2]
            self._step()
            yield from listed[len(listed) // 2 :]

        super().copy_in(table, some())  # type: ignore[arg-type]


def main(url: str, statement: str) -> None:
    database = Fatal(url)
    database.left = int(statement)
    server_index.update(database, Library(database))
    sys.stdout.write(str(database.written))
