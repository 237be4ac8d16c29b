"""What was published about works, in the library's table `notices`: retractions, corrections, newer versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from folio.store import work_rows
from folio.store.database import Database
from folio.store.work_rows import NOTICE_COLUMNS, Notice


def add(database: Database, notice: Notice) -> None:
    """Keep a notice; the same one of the same source is replaced. Raises ValueError for one that cannot be."""
    sql = "INSERT OR REPLACE INTO notices VALUES (:work, :kind, :dated, :link, :source, :said_at, :digest)"
    database.execute(sql, **work_rows.notice_row(notice))


def drop(database: Database, notice: Notice) -> None:
    """Remove what a source no longer says. Its time and date do not count."""
    sql = "DELETE FROM notices WHERE work = :work AND kind = :kind AND link = :link AND source = :source"
    database.execute(sql, work=notice.work, kind=notice.kind, link=notice.link, source=notice.source)


def of_works(database: Database, works: Iterable[str]) -> list[Notice]:
    """The notices of these works, those of each by kind and date. Raises StoreDamaged."""
    sql = f"SELECT {NOTICE_COLUMNS} FROM notices WHERE work = :work ORDER BY kind, dated, link, source"
    return [notice for work in works for notice in database.read(work_rows.notice, sql, work=work)]


def of_papers(database: Database, papers: Iterable[str]) -> dict[str, list[Notice]]:
    """Paper id -> the notices of the work that it is and of its other versions; papers without any are left out.

    Raises StoreDamaged.
    """
    sql = f"""
        SELECT {", ".join(f"n.{name}" for name in NOTICE_COLUMNS.split(", "))} FROM notices n WHERE n.work IN (
            SELECT v.id FROM paper_works p JOIN works w ON w.id = p.work
                JOIN works v ON v.id IN (w.id, w.version_of) OR v.version_of IN (w.id, nullif(w.version_of, ''))
            WHERE p.paper = :paper
        ) ORDER BY n.kind, n.dated, n.link, n.source"""
    found = {paper: database.read(work_rows.notice, sql, paper=paper) for paper in papers}
    return {paper: notices for paper, notices in found.items() if notices}


def move(database: Database, old: str, new: str) -> None:
    """Give a work the notices of another."""
    for notice in of_works(database, [old]):
        drop(database, notice)
        add(database, replace(notice, work=new))
