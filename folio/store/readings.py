"""What a person did with papers: when each was last opened and at which page, and which papers were removed.

Both are user data. As in rows.py, a row that has changed since it was written raises ValueError.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from folio.store.database import Database, storable
from folio.store.rows import number, string

READING_COLUMNS = "paper, opened, page"
REMOVAL_COLUMNS = "paper, title, files, removed"


@dataclass(frozen=True, slots=True)
class Reading:
    """When a paper was last open in the reader, and at which page."""

    paper: str
    opened: str  # ISO time in UTC
    page: int  # physical, from 1


@dataclass(frozen=True, slots=True)
class Use:
    """What a person did with a paper."""

    added: str  # ISO time in UTC
    opened: str  # when it was last open in the reader, ISO time in UTC; "" for never
    notes: int  # number of notes on it


@dataclass(frozen=True, slots=True)
class MovedFile:
    """A file of a removed paper."""

    name: str  # as SourceFile.name
    path: str  # before the removal
    kept_at: str  # since then; the same path if it was not moved


@dataclass(frozen=True, slots=True)
class Removal:
    """A paper that a person removed."""

    paper: str
    title: str
    files: tuple[MovedFile, ...]
    removed: str  # ISO time in UTC


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def readings(database: Database, papers: Iterable[str] | None = None) -> dict[str, Reading]:
    """Paper -> its reading, for these papers or all. Raises StoreDamaged."""
    sql = f"SELECT {READING_COLUMNS} FROM readings"
    if papers is None:
        rows = database.read(reading, sql)
    else:
        rows = database.read(reading, f"{sql} WHERE paper IN (SELECT value FROM json_each(:ids))", ids=list(papers))
    return {each.paper: each for each in rows}


def uses(database: Database) -> dict[str, Use]:
    """Paper -> what a person did with it, for all papers of the library. Raises StoreDamaged."""
    sql = """SELECT p.id, p.added, COALESCE(r.opened, ''),
            (SELECT count(DISTINCT q.note) FROM note_quotes q WHERE q.paper = p.id)
        FROM papers p LEFT JOIN readings r ON r.paper = p.id"""

    def use(paper: object, added: object, opened: object, notes: object) -> tuple[str, Use]:
        return string(paper), Use(string(added), string(opened), number(notes))

    return dict(database.read(use, sql))


def record_reading(database: Database, paper: str, page: int) -> None:
    """A person has this page of a paper open now."""
    with database.transaction("user"):
        database.insert("readings", [{"paper": paper, "opened": now(), "page": page}], replace=True)


def inherit(database: Database, old: str, new: str) -> None:
    """Give a paper the reading of the paper that it replaces, unless it has one."""
    stored = readings(database, [old, new])
    if old in stored and new not in stored:
        database.insert("readings", [{"paper": new, "opened": stored[old].opened, "page": stored[old].page}])


def removals(database: Database) -> list[Removal]:
    """The removed papers that can be brought back and are not in the library, latest first. Raises StoreDamaged."""
    sql = f"""SELECT {REMOVAL_COLUMNS} FROM removals WHERE paper NOT IN (SELECT id FROM papers)
        ORDER BY removed DESC, paper"""
    return database.read(removal, sql)


def all_removals(database: Database) -> list[Removal]:
    """The removals whose files were not deleted yet, also of papers that are in the library again."""
    return database.read(removal, f"SELECT {REMOVAL_COLUMNS} FROM removals ORDER BY removed, paper")


def redate_removals(database: Database, papers: Iterable[str]) -> None:
    """Set the time of removals to now."""
    with database.transaction("user"):
        for paper in papers:
            database.execute("UPDATE removals SET removed = :now WHERE paper = :paper", now=now(), paper=paper)


def record_removal(database: Database, paper: str, title: str, files: Sequence[MovedFile]) -> None:
    """A person has removed a paper. It can be brought back until its files are deleted (ingest/removed.py)."""
    listed = json.dumps([[file.name, file.path, file.kept_at] for file in files])
    row = {"paper": paper, "title": storable(title), "files": listed, "removed": now()}
    with database.transaction("user"):
        database.insert("removals", [row], replace=True)


def forget_removals(database: Database, papers: Iterable[str]) -> None:
    with database.transaction("user"):
        for paper in papers:
            database.execute("DELETE FROM removals WHERE paper = :paper", paper=paper)


def reading(paper: object, opened: object, page: object) -> Reading:
    """From READING_COLUMNS."""
    read = Reading(string(paper), string(opened), number(page))
    datetime.fromisoformat(read.opened)
    if read.page < 1:
        raise ValueError("the page at which a paper was read is not a page")
    return read


def removal(paper: object, title: object, files: object, removed: object) -> Removal:
    """From REMOVAL_COLUMNS."""
    paths = [MovedFile(*map(string, file)) for file in json.loads(string(files))]
    datetime.fromisoformat(string(removed))
    return Removal(string(paper), string(title), tuple(paths), string(removed))
