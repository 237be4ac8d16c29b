"""Notices about works, in the library's table `notices`: retractions, corrections, newer versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from folio.identifiers import version_number
from folio.store import rows, work_rows
from folio.store.database import Database
from folio.store.work_rows import NOTICE_COLUMNS, Notice
from folio.types import Paper
from folio.work_notices import WorkNotice, ordered


def add(database: Database, notice: Notice) -> None:
    """Store a notice, replacing the same notice of the same source. Raises ValueError for an invalid one."""
    database.insert("notices", [work_rows.notice_row(notice)], replace=True)


def drop(database: Database, notice: Notice) -> None:
    """Remove a notice that its source no longer has, whatever its date and time."""
    sql = "DELETE FROM notices WHERE work = :work AND kind = :kind AND link = :link AND source = :source"
    database.execute(sql, work=notice.work, kind=notice.kind, link=notice.link, source=notice.source)


def of_works(database: Database, works: Iterable[str]) -> list[Notice]:
    """The notices of these works, sorted by work, kind and date. Raises StoreDamaged."""
    sql = f"""SELECT {NOTICE_COLUMNS} FROM notices WHERE work IN (SELECT value FROM json_each(:works))
        ORDER BY work, kind, dated, link, source"""
    ids = list(works)
    return database.read(work_rows.notice, sql, works=ids) if ids else []


def of_papers(database: Database, papers: Iterable[str]) -> dict[str, list[Notice]]:
    """Paper id -> the notices of its work, and for a preprint also those of its publications.

    A publication does not get the notices of its preprint, which may be withdrawn because it was published. Leaves out
    papers without notices. Raises StoreDamaged.
    """
    ids = list(papers)
    columns = ", ".join(f"n.{name}" for name in NOTICE_COLUMNS.split(", "))
    sql = f"""
        WITH own AS (
            SELECT p.paper, w.id, w.version_of FROM paper_works p JOIN works w ON w.id = p.work
            WHERE p.paper IN (SELECT value FROM json_each(:papers))
        )
        SELECT own.paper, {columns} FROM own JOIN notices n ON n.work = own.id
        UNION SELECT own.paper, {columns} FROM own JOIN notices n ON n.work = own.version_of
            WHERE own.version_of != '' AND n.source != 'arxiv'
        UNION SELECT own.paper, {columns} FROM own JOIN works v ON v.version_of = own.version_of
            JOIN notices n ON n.work = v.id WHERE v.version_of != '' AND n.source != 'arxiv'
        ORDER BY 1, 3, 4, 5, 6"""
    by_paper: dict[str, list[Notice]] = {}
    for paper, notice in database.read(_of_paper, sql, papers=ids) if ids else ():
        by_paper.setdefault(paper, []).append(notice)
    return by_paper


def _of_paper(paper: object, *row: object) -> tuple[str, Notice]:
    return rows.string(paper), work_rows.notice(*row)


def attached(database: Database, papers: Sequence[Paper]) -> list[Paper]:
    """These papers with their notices, the gravest first. Raises StoreDamaged."""
    by_paper = of_papers(database, [paper.id for paper in papers])
    current = {
        paper.id: ordered(notice.said for notice in by_paper[paper.id] if not _is_old(notice.said, paper))
        for paper in papers
        if paper.id in by_paper
    }
    return [
        replace(paper, notices=ordered((*paper.notices, *current[paper.id]))) if current.get(paper.id) else paper
        for paper in papers
    ]


def _is_old(notice: WorkNotice, paper: Paper) -> bool:
    """Whether a notice is about a version that is not newer than the paper, as far as that is known."""
    if notice.kind != "new-version" or notice.source != "arxiv":
        return False
    version = version_number(paper.arxiv)
    return version is None or (version_number(notice.link) or 0) <= version


def move(database: Database, old: str, new: str) -> None:
    """Move the notices of the work `old` to the work `new`."""
    for notice in of_works(database, [old]):
        drop(database, notice)
        add(database, replace(notice, work=new))
