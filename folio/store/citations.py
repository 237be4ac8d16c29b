"""Which work cites which, in the library's table `citations`: a work, and the mark of a work that it cites."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from folio.store import work_rows
from folio.store.database import Database
from folio.store.work_rows import CITATION_COLUMNS, Citation
from folio.work import SourceName

# The work `:work` and its other versions
_ROOT = "SELECT CASE version_of WHEN '' THEN id ELSE version_of END FROM works WHERE id = :work"
_GROUP = f"""SELECT id FROM works WHERE id = ({_ROOT})
    UNION SELECT id FROM works WHERE version_of = ({_ROOT}) AND version_of != ''"""


def add_citations(database: Database, citing: str, cited: Iterable[str], source: SourceName, said_at: str) -> None:
    """Store which works a work cites. cited: their marks (Work.identifiers); invalid ones are skipped.

    The caller has a transaction.
    """
    marks = filter(work_rows.is_mark, dict.fromkeys(cited))
    insert(database, [Citation(citing, mark, source, said_at) for mark in marks])


def insert(database: Database, citations: Iterable[Citation]) -> None:
    """Store citations, in this order; the caller has a transaction."""
    last = int(database.query("SELECT coalesce(max(place), 0) FROM citations")[0][0])
    new = [{**work_rows.citation_row(each), "place": place} for place, each in enumerate(citations, last + 1)]
    database.insert("citations", new, replace=True)


def references_of(database: Database, work: str) -> list[str]:
    """The marks of the works that a work cites in any version, in the order of storing. Raises StoreDamaged."""
    sql = f"SELECT {CITATION_COLUMNS} FROM citations WHERE citing IN ({_GROUP}) ORDER BY place"
    return list(dict.fromkeys(each.cited for each in database.read(work_rows.citation, sql, work=work)))


def citing(database: Database, work: str) -> list[str]:
    """The ids of the works that cite a work in any version, in the order of storing. Raises StoreDamaged."""
    sql = f"""SELECT {CITATION_COLUMNS} FROM citations
        WHERE cited IN (SELECT mark FROM work_marks WHERE work IN ({_GROUP})) ORDER BY place"""
    return list(dict.fromkeys(each.citing for each in database.read(work_rows.citation, sql, work=work)))


def library_edges(database: Database) -> list[tuple[str, str]]:
    """Sorted pairs of paper ids of the library, citing and cited. Raises StoreDamaged."""
    root = "SELECT id, CASE version_of WHEN '' THEN id ELSE version_of END AS root FROM works"
    columns = ", ".join(f"c.{name}" for name in CITATION_COLUMNS.split(", "))
    sql = f"""
        WITH roots AS ({root}), here AS (
            SELECT p.paper, r.root FROM paper_works p JOIN roots r ON r.id = p.work
            WHERE p.paper IN (SELECT id FROM papers)
        )
        SELECT a.paper, b.paper, {columns} FROM citations c
        JOIN roots ra ON ra.id = c.citing JOIN here a ON a.root = ra.root
        JOIN work_marks m ON m.mark = c.cited
        JOIN roots rb ON rb.id = m.work JOIN here b ON b.root = rb.root
        WHERE a.paper != b.paper"""

    def edge(citing: str, cited: str, *row: object) -> tuple[str, str]:
        work_rows.citation(*row)
        return citing, cited

    return sorted(set(database.read(edge, sql)))


def cited_papers(database: Database, paper: str) -> set[str] | None:
    """The papers of the library that a paper cites; None if none of its references is known. Raises StoreDamaged."""
    work = "SELECT work FROM paper_works WHERE paper = :paper"
    group = _GROUP.replace(":work", f"({work})")
    if not database.query(f"SELECT 1 FROM citations WHERE citing IN ({group}) LIMIT 1", paper=paper):
        return None
    return {cited for citing, cited in library_edges(database) if citing == paper}


def move_citations(database: Database, old: str, new: str) -> None:
    """Move the references of the work `old` to the work `new`."""
    sql = f"SELECT {CITATION_COLUMNS} FROM citations WHERE citing = :citing ORDER BY place"
    moved = [replace(each, citing=new) for each in database.read(work_rows.citation, sql, citing=old)]
    database.execute("DELETE FROM citations WHERE citing = :citing", citing=old)
    insert(database, moved)
