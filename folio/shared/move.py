"""Copies a library from one engine to the other, row by row: no PDF is read and nothing is embedded again.

The copy is made next to the target's current library, compared row by row, and replaces it at the end. An interrupted
move leaves both libraries unchanged, and starts again.
"""

from __future__ import annotations

import uuid
from contextlib import closing
from dataclasses import dataclass

from folio.errors import StoreMissing, UsageError
from folio.papers.model import Progress
from folio.shared.postgres import USER_SCHEMA, PostgresDatabase
from folio.shared.store import PostgresStore
from folio.store.database import FIRST, NAMES, Database
from folio.store.library import Library
from folio.store.sqlite import SqliteDatabase
from folio.store.store import LocalStore, Store
from folio.store.table_copy import copy_tables
from folio.store.user_file import place_both
from folio.system.files import discard, no_space

_FOLDER = "move"


@dataclass(frozen=True, slots=True)
class Moved:
    """The numbers of moved rows."""

    papers: int
    files: int
    pages: int
    passages: int
    questions: int  # of the log
    conversations: int
    works: int
    notes: int


def move(source: Store, target: Store, progress: Progress, *, replaces: bool = False) -> Moved:
    """Copy the library of `source` to `target`; the caller holds the writer lock of this computer.

    progress: called for each table. replaces: whether an existing library may be replaced, with all its user data; it
    is used until the new one is complete. Raises UsageError if there is one and it may not be replaced, StoreMissing if
    there is nothing to move, and whatever reading and writing raise.
    """
    with closing(source.open()) as old, old.reading():
        if not old.counts()["papers"]:
            raise StoreMissing(f"The library in {source.place} has no papers to move.", "Check the settings.")
        if target.exists() and not replaces:
            with closing(target.open()) as existing:
                if any(existing.counts().values()) or existing.described():
                    raise UsageError(
                        f"There is a library in {target.place} already.",
                        "Add --yes to replace it, with its log and its conversations; or choose another place:"
                        " docs/scale.md.",
                    )
        if isinstance(target, LocalStore):
            _to_folder(old.database, target, progress)
        else:
            assert isinstance(target, PostgresStore)
            _to_server(old, target, progress)
        with closing(target.open()) as new:
            target.update_indexes(new)
            counts = new.counts()
            of = {name: int(new.database.query(f"SELECT count(*) FROM {name}")[0][0]) for name in NAMES["user"]}
            pages = sum(paper.page_count for paper in new.papers())
            passages = new.chunk_count() + new.chunk_count("fine")
            user = (of[name] for name in ("queries", "conversations", "works", "notes"))
            return Moved(counts["papers"], counts["files"], pages, passages, *user)


def _to_folder(old: Database, target: LocalStore, progress: Progress) -> None:
    folder = target.folder / _FOLDER
    with no_space(target.folder):
        discard(folder)
        folder.mkdir(parents=True)
        new_file = folder / target.database_path.name
        with closing(SqliteDatabase(new_file, create=True)) as new:
            with new.transaction():
                copy_tables(old, new, [*NAMES["library"], *NAMES["user"]], progress)
            new.merge_log()
        place_both(folder, target.database_path)


def _to_server(old: Library, target: PostgresStore, progress: Progress) -> None:
    with closing(target.open(create=True)) as library:
        library.keep_pdfs(old.files())
        serving = library.database
        assert isinstance(serving, PostgresDatabase)
        schema = f"{USER_SCHEMA}_{uuid.uuid4().hex[:12]}"
        with closing(target.database(schema=schema)) as new:
            for table in NAMES["library"]:
                with new.transaction():
                    copy_tables(old.database, new, [table], progress)
        with serving.transaction():
            for table in reversed(NAMES["user"]):
                only = " WHERE key = 'said'" if table == FIRST["user"] else ""
                serving.execute(f"DELETE FROM {USER_SCHEMA}.{table}{only}")
            copy_tables(old.database, serving, NAMES["user"], progress)
            serving.serve(schema)
        serving.drop_unused()
        library.forget_pdfs()
