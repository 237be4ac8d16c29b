"""Damage to a store's files: a flipped bit, a page of zeros, a row that Folio did not write. And threads at once."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from tests.helpers.fakes import overwrite

PAGE = 4096


def flip(path: Path, at: int | None = None, mask: int = 1) -> None:
    """Flip bits of one byte: that in the middle if `at` is not given."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if at is None else at] ^= mask
    overwrite(path, bytes(content))


def cut(path: Path, length: int = -1) -> None:
    """Keep so many bytes; all but the last if none is given."""
    overwrite(path, path.read_bytes()[:length])


def tamper(path: Path, *statements: str) -> None:
    """Run SQL in a database without its foreign keys, checks and checksums."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            connection.execute(statement)


def page_of(path: Path, table: str) -> int:
    """Where the first page of a table or index begins in the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        return (int(root) - 1) * PAGE


def zero_pages(path: Path, *tables: str) -> None:
    """Overwrite the first page of these tables and indexes with zeros."""
    for start in [page_of(path, table) for table in tables]:
        with path.open("rb+") as file:
            file.seek(start)
            file.write(bytes(PAGE))


def at_once(count: int, act: Callable[[int], object]) -> None:
    """Call act(0), act(1) ... in threads that begin at the same time. Raises what one of them raised."""
    gate = threading.Barrier(count)

    def begin(number: int) -> None:
        gate.wait()
        act(number)

    with ThreadPoolExecutor(count) as pool:
        list(pool.map(begin, range(count)))
