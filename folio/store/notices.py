"""What was published about works, in the library's table `notices`: retractions, corrections, newer versions."""

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
    """Keep a notice; the same one of the same source is replaced. Raises ValueError for one that cannot be."""
    database.insert("notices", [work_rows.notice_row(notice)], replace=True)


def drop(database: Database, notice: Notice) -> None:
    """Remove what a source no longer says. Its time and date do not count."""
    sql = "DELETE FROM notices WHERE work = :work AND kind = :kind AND link = :link AND source = :source"
    database.execute(sql, work=notice.work, kind=notice.kind, link=notice.link, source=notice.source)


def of_works(database: Database, works: Iterable[str]) -> list[Notice]:
    """The notices of these works, those of each by kind and date. Raises StoreDamaged."""
    sql = f"""SELECT {NOTICE_COLUMNS} FROM notices WHERE work IN (SELECT value FROM json_each(:works))
        ORDER BY work, kind, dated, link, source"""
    wanted = list(works)
    return database.read(work_rows.notice, sql, works=wanted) if wanted else []


def of_papers(database: Database, papers: Iterable[str]) -> dict[str, list[Notice]]:
    """Paper id -> the notices of the work that it is; of a preprint, those of its publications too.

    Not the other way round: a preprint may be withdrawn because its publication took its place. Papers without any are
    left out. Raises StoreDamaged.
    """
    wanted = list(papers)
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
    found: dict[str, list[Notice]] = {}
    for paper, notice in database.read(_of_paper, sql, papers=wanted) if wanted else ():
        found.setdefault(paper, []).append(notice)
    return found


def _of_paper(paper: object, *row: object) -> tuple[str, Notice]:
    return rows.string(paper), work_rows.notice(*row)


def attached(database: Database, papers: Sequence[Paper]) -> list[Paper]:
    """These papers with their notices, the gravest first. Raises StoreDamaged."""
    known = of_papers(database, [paper.id for paper in papers])
    said = {
        paper.id: ordered(notice.said for notice in known[paper.id] if not _is_old(notice.said, paper))
        for paper in papers
        if paper.id in known
    }
    return [
        replace(paper, notices=ordered((*paper.notices, *said[paper.id]))) if said.get(paper.id) else paper
        for paper in papers
    ]


def _is_old(notice: WorkNotice, paper: Paper) -> bool:
    """Whether a notice tells of a version that a paper is, or that may be older than it is."""
    if notice.kind != "new-version" or notice.source != "arxiv":
        return False
    own = version_number(paper.arxiv)
    return own is None or (version_number(notice.link) or 0) <= own


def move(database: Database, old: str, new: str) -> None:
    """Give a work the notices of another."""
    for notice in of_works(database, [old]):
        drop(database, notice)
        add(database, replace(notice, work=new))
