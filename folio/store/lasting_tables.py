"""What outlives papers: the log, conversations, works. A move takes it from one store to another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from folio.store import asked_rows, works
from folio.store.database import Database
from folio.store.work_rows import AboutWork

if TYPE_CHECKING:
    from folio.store.history import Asked

# Those that others refer to come first
TABLES = ("queries", "conversations", "turns", "works", "work_marks", "citations", "paper_works", "notices")


@dataclass(frozen=True, slots=True)
class Lasting:
    """What outlives papers, to be read once."""

    asked: Iterable[Asked]
    works: Iterable[AboutWork]


def replace(database: Database, lasting: Lasting) -> None:
    """Make this what a database has of it."""
    database.overwrite_deleted()
    with database.transaction():
        for table in reversed(TABLES):
            database.execute(f"DELETE FROM {table}")
    asked_rows.keep_all(database, lasting.asked)
    with database.transaction():
        works.insert_rows(database, lasting.works)
