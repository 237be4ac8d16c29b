"""Works that services describe, in the library's tables `works`, `work_marks`, `paper_works`; some are its papers.

The description from each source is stored unchanged. Two descriptions are of one work if they share an identifier, or
title, first author and year, and their identifiers do not contradict each other. If they share an identifier but
contradict each other, they are versions of one work, and so are a preprint and a publication with the same title and
first author within two years. Versions are linked, and one is preferred: the publication if there is one.

Callers that write hold the writer lock and have a transaction of the library's database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from folio.store import notices, work_rows
from folio.store.citations import add_citations, move_citations
from folio.store.database import Database
from folio.store.work_rows import (
    PAPER_WORK_COLUMNS,
    WORK_COLUMNS,
    FoundBy,
    KeptWork,
    Notice,
    PaperWork,
)
from folio.work import Work, reference_mark, version_keys


def now() -> str:
    """The current time (ISO, UTC)."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# Reading


def get(database: Database, ids: Iterable[str]) -> dict[str, KeptWork]:
    """The works with these ids; unknown ids are skipped. Raises StoreDamaged."""
    unique = list(dict.fromkeys(ids))
    sql = f"SELECT {WORK_COLUMNS} FROM works WHERE id IN (SELECT value FROM json_each(:ids))"
    stored = {work.id: work for work in database.read(work_rows.work, sql, ids=unique)} if unique else {}
    return {id: stored[id] for id in unique if id in stored}


def find(database: Database, work: Work) -> KeptWork | None:
    """The stored work that this describes; None if there is none. Raises StoreDamaged."""
    return next(iter(_same(database, work)), None)


def with_mark(database: Database, mark: str) -> list[KeptWork]:
    """The works with a mark (Work.marks), preferred versions first. Raises StoreDamaged."""

    def checked(*row: object) -> KeptWork:
        work = work_rows.work(*row)
        if mark not in work.marks():
            raise ValueError("a work is listed under another's mark")
        return work

    of_mark = "SELECT work FROM work_marks WHERE mark = :mark"
    sql = f"SELECT {WORK_COLUMNS} FROM works WHERE id IN ({of_mark}) ORDER BY id"
    return sorted(database.read(checked, sql, mark=mark), key=lambda work: bool(work.version_of))


def versions(database: Database, id: str) -> list[KeptWork]:
    """A work with its other versions, the preferred one first; none for an unknown id. Raises StoreDamaged."""
    work = get(database, [id]).get(id)
    if work is None:
        return []
    root = work.version_of or work.id
    group = "id = :root OR (version_of = :root AND version_of != '')"
    sql = f"SELECT {WORK_COLUMNS} FROM works WHERE {group} ORDER BY id"
    return sorted(database.read(work_rows.work, sql, root=root), key=lambda version: version.id != root)


def of_papers(database: Database, papers: Iterable[str]) -> dict[str, PaperWork]:
    """Paper id -> its work, for papers whose work is known. Raises StoreDamaged."""
    ids = list(papers)
    sql = f"SELECT {PAPER_WORK_COLUMNS} FROM paper_works WHERE paper IN (SELECT value FROM json_each(:papers))"
    links = database.read(work_rows.paper_work, sql, papers=ids) if ids else []
    return {link.paper: link for link in links}


def of_paper(database: Database, paper: str) -> list[KeptWork]:
    """The work of a paper, then its other versions; empty if its work is not known. Raises StoreDamaged."""
    link = of_papers(database, [paper]).get(paper)
    return sorted(versions(database, link.work), key=lambda version: version.id != link.work) if link else []


def papers_of(database: Database, work: str) -> list[str]:
    """The papers of the library that are this work or another version of it, those of the work itself first."""
    ids = [version.id for version in versions(database, work)]
    sql = f"""SELECT {PAPER_WORK_COLUMNS} FROM paper_works WHERE work = :work AND paper IN (SELECT id FROM papers)
        ORDER BY paper"""
    ordered = sorted(ids, key=lambda id: id != work)
    return [each.paper for id in ordered for each in database.read(work_rows.paper_work, sql, work=id)]


def marks_of_papers(database: Database, papers: Iterable[str]) -> dict[str, str]:
    """Mark -> the paper whose work, in any version, has it. Raises StoreDamaged."""
    paper_of: dict[str, str] = {}
    for paper in papers:
        for version in of_paper(database, paper):
            for mark in version.marks():
                paper_of.setdefault(mark, paper)
    return paper_of


def publishers_bibtex(database: Database, papers: Iterable[str]) -> dict[str, str]:
    """Paper id -> the publisher's BibTeX entry, for papers that have one. Raises StoreDamaged."""
    links = of_papers(database, papers)
    works = get(database, {link.work for link in links.values()})
    crossref = {paper: works[link.work].said.get("crossref") for paper, link in links.items() if link.work in works}
    return {paper: work.bibtex for paper, work in crossref.items() if work and work.bibtex}


# Writing


def put(database: Database, works: Iterable[Work]) -> list[str]:
    """Store descriptions of works; returns the id of each. References become citations, retractions notices.

    Raises ValueError for a work that has neither an identifier nor title, author and year.
    """
    return [_put(database, work) for work in works]


def link_paper(database: Database, paper: str, work: str, found_by: FoundBy, score: float) -> None:
    """Store which work a paper is. The paper need not be in the library yet."""
    _insert(database, "paper_works", work_rows.paper_work_row(PaperWork(paper, work, found_by, score)))


def inherit(database: Database, old: str, new: str) -> None:
    """Link a paper to the work of the paper that it replaces, unless its own work is known."""
    links = of_papers(database, [old, new])
    if old in links and new not in links:
        _insert(database, "paper_works", work_rows.paper_work_row(replace(links[old], paper=new)))


def _put(database: Database, work: Work) -> str:
    if not work.marks():
        raise ValueError("a work without an identifier and a title cannot be kept")
    same = _same(database, work)
    first = same[0] if same else KeptWork(_new_id(database, work), {}, {})
    descriptions, times = dict(first.said), dict(first.said_at)
    for other in same[1:]:
        descriptions, times = {**other.said, **descriptions}, {**other.said_at, **times}
    stored = replace(first, said={**descriptions, work.source: work}, said_at={**times, work.source: now()})
    _write(database, stored)
    for other in same[1:]:
        _absorb(database, stored.id, other)
    cited = (mark for mark in map(reference_mark, work.references) if mark not in stored.identifiers())
    add_citations(database, stored.id, cited, work.source, now())
    flag = Notice(stored.id, "retraction", "", "", work.source, now())
    (notices.add if work.is_retracted else notices.drop)(database, flag)
    for version in _versions_of(database, stored):
        _link_versions(database, stored.id, version.id)
    return stored.id


def _same(database: Database, work: Work) -> list[KeptWork]:
    """The stored works that match a description, the best match first. Several matches turn out to be one work."""
    matches: dict[str, KeptWork] = {}
    identifiers = set(work.identifiers())
    for mark in work.marks():
        for stored in with_mark(database, mark):
            if not _contradict(identifiers, stored.identifiers()):
                matches[stored.id] = stored
                identifiers |= stored.identifiers()
    return list(matches.values())


def _contradict(first: set[str], second: set[str]) -> bool:
    """Whether two sets of identifiers belong to different works: they have different identifiers of one kind."""
    kinds = {mark.partition(" ")[0] for mark in first} & {mark.partition(" ")[0] for mark in second}
    return any(not {mark for mark in first if mark.startswith(f"{kind} ")} & second for kind in kinds)


def _versions_of(database: Database, work: KeptWork) -> Iterator[KeptWork]:
    """Other works that are versions of this one."""
    for mark in sorted(work.identifiers()):
        yield from (other for other in with_mark(database, mark) if other.id != work.id)
    for mark in version_keys(work.work):
        for other in with_mark(database, mark):
            if other.id != work.id and other.work.is_preprint != work.work.is_preprint:
                yield other


def _link_versions(database: Database, first: str, other: str) -> None:
    """Store that two works are versions of one, and which of all its versions is preferred."""
    group = {version.id: version for id in (first, other) for version in versions(database, id)}
    roots = [version for version in group.values() if not version.version_of]
    root = min(roots, key=lambda version: (version.work.is_preprint, -(version.work.cited or 0), version.id))
    for version in group.values():
        version_of = "" if version is root else root.id
        if version.version_of != version_of:
            _insert(database, "works", work_rows.work_row(replace(version, version_of=version_of)))


def _write(database: Database, work: KeptWork) -> None:
    _insert(database, "works", work_rows.work_row(work))
    database.execute("DELETE FROM work_marks WHERE work = :work", work=work.id)
    marks = [{"mark": mark, "work": work.id} for mark in sorted(work.marks())]
    database.insert("work_marks", marks)


def _absorb(database: Database, id: str, other: KeptWork) -> None:
    """Merge the work `other` into the work `id`: move its citations, notices, papers and versions, and delete it."""
    move_citations(database, other.id, id)
    notices.move(database, other.id, id)
    papers = f"SELECT {PAPER_WORK_COLUMNS} FROM paper_works WHERE work = :work"
    for each in database.read(work_rows.paper_work, papers, work=other.id):
        _insert(database, "paper_works", work_rows.paper_work_row(replace(each, work=id)))
    group = [version for version in versions(database, other.id) if version.id != other.id]
    for version in group:
        if version.version_of == other.id:
            _insert(database, "works", work_rows.work_row(replace(version, version_of="")))
    database.execute("DELETE FROM works WHERE id = :id", id=other.id)
    database.execute("DELETE FROM work_marks WHERE work = :id", id=other.id)
    for version in group:
        if version.id != id:
            _link_versions(database, id, version.id)


def _new_id(database: Database, work: Work) -> str:
    """An unused id; nearly always the same one for the same work in every library."""
    id = hashlib.blake2b(work.marks()[0].encode(), digest_size=8).hexdigest()
    while get(database, [id]):
        id = hashlib.blake2b(id.encode(), digest_size=8).hexdigest()
    return id


def _insert(database: Database, table: str, values: dict[str, object]) -> None:
    """Insert a row, or replace the row with the same key."""
    database.insert(table, [values], replace=True)
