"""What was published about works, in the library's table `notices`: retractions, corrections, newer versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from folio.paper_metadata import version_number
from folio.store import rows, work_rows
from folio.store.database import Database
from folio.store.work_rows import NOTICE_COLUMNS, Notice
from folio.types import Paper
from folio.work_notices import WorkNotice, ordered


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
    """Paper id -> the notices of the work that it is; of a preprint, those of its publications too.

    Not the other way round: a preprint may be withdrawn because its publication took its place. Papers without any are
    left out. Raises StoreDamaged.
    """
    sql = f"""
        WITH own AS (SELECT w.id, w.version_of FROM paper_works p JOIN works w ON w.id = p.work WHERE p.paper = :paper)
        SELECT {NOTICE_COLUMNS} FROM notices WHERE work IN (SELECT id FROM own)
        UNION SELECT {NOTICE_COLUMNS} FROM notices WHERE source != 'arxiv' AND work IN (
            SELECT version_of FROM own WHERE version_of != '' UNION
            SELECT v.id FROM own JOIN works v ON v.version_of = own.version_of WHERE v.version_of != ''
        ) ORDER BY kind, dated, link, source"""
    found = {paper: database.read(work_rows.notice, sql, paper=paper) for paper in papers}
    return {paper: notices for paper, notices in found.items() if notices}


def _with_notices(database: Database) -> set[str]:
    """The papers, of the library or not, that of_papers may have notices of. Raises StoreDamaged."""
    # CROSS JOIN keeps the order: there are few notices.
    sql = """
        SELECT p.paper FROM notices n CROSS JOIN paper_works p ON p.work = n.work
        UNION SELECT p.paper FROM notices n CROSS JOIN works v ON v.version_of = n.work AND v.version_of != ''
            CROSS JOIN paper_works p ON p.work = v.id
        UNION SELECT p.paper FROM notices n CROSS JOIN works w ON w.id = n.work AND w.version_of != ''
            CROSS JOIN works v ON v.version_of = w.version_of AND v.version_of != ''
            CROSS JOIN paper_works p ON p.work = v.id"""
    return set(database.read(rows.string, sql))


def attached_to_all(database: Database, papers: Sequence[Paper]) -> list[Paper]:
    """All papers of a library with their notices, the gravest first. Raises StoreDamaged."""
    some = _with_notices(database)
    noted = {paper.id: paper for paper in attached(database, [paper for paper in papers if paper.id in some])}
    return [noted.get(paper.id, paper) for paper in papers]


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
