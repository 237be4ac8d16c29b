"""Works that services describe, in the library's tables `works`, `work_marks`, `paper_works`; papers are some of them.

What each source says of a work is kept as it is. Two descriptions are of one work if they share an identifier, or
title, first author and year, and no identifier of one contradicts the other's. Those that share one and contradict each
other are versions of one work, and so are a preprint and a publication of the same title and first author within two
years: they are linked, and one of them is preferred, the publication if there is one.

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
    """The time as it is kept."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# Reading


def get(database: Database, ids: Iterable[str]) -> dict[str, KeptWork]:
    """The works with these ids; unknown ids are skipped. Raises StoreDamaged."""
    wanted = list(dict.fromkeys(ids))
    sql = f"SELECT {WORK_COLUMNS} FROM works WHERE id IN (SELECT value FROM json_each(:ids))"
    found = {kept.id: kept for kept in database.read(work_rows.work, sql, ids=wanted)} if wanted else {}
    return {id: found[id] for id in wanted if id in found}


def find(database: Database, work: Work) -> KeptWork | None:
    """The work that this describes, if it is kept. Raises StoreDamaged."""
    return next(iter(_same(database, work)), None)


def with_mark(database: Database, mark: str) -> list[KeptWork]:
    """The works that a mark is of (Work.marks), those first that are preferred. Raises StoreDamaged."""

    def checked(*row: object) -> KeptWork:
        kept = work_rows.work(*row)
        if mark not in kept.marks():
            raise ValueError("a work is listed under another's mark")
        return kept

    of_mark = "SELECT work FROM work_marks WHERE mark = :mark"
    sql = f"SELECT {WORK_COLUMNS} FROM works WHERE id IN ({of_mark}) ORDER BY id"
    return sorted(database.read(checked, sql, mark=mark), key=lambda kept: bool(kept.version_of))


def versions(database: Database, id: str) -> list[KeptWork]:
    """A work with its other versions, the preferred one first; none for an unknown id. Raises StoreDamaged."""
    kept = get(database, [id]).get(id)
    if kept is None:
        return []
    root = kept.version_of or kept.id
    group = "id = :root OR (version_of = :root AND version_of != '')"
    sql = f"SELECT {WORK_COLUMNS} FROM works WHERE {group} ORDER BY id"
    return sorted(database.read(work_rows.work, sql, root=root), key=lambda one: one.id != root)


def of_papers(database: Database, papers: Iterable[str]) -> dict[str, PaperWork]:
    """Paper id -> the work that it is, for those where that is known. Raises StoreDamaged."""
    wanted = list(papers)
    sql = f"SELECT {PAPER_WORK_COLUMNS} FROM paper_works WHERE paper IN (SELECT value FROM json_each(:papers))"
    found = database.read(work_rows.paper_work, sql, papers=wanted) if wanted else []
    return {each.paper: each for each in found}


def of_paper(database: Database, paper: str) -> list[KeptWork]:
    """The work that a paper is, then its other versions; none if that is not known. Raises StoreDamaged."""
    found = of_papers(database, [paper]).get(paper)
    kept = versions(database, found.work) if found else []
    return sorted(kept, key=lambda one: one.id != found.work) if found else []


def papers_of(database: Database, work: str) -> list[str]:
    """The papers that are in the library and are this work or another version of it, those of the work first."""
    ids = [kept.id for kept in versions(database, work)]
    sql = f"""SELECT {PAPER_WORK_COLUMNS} FROM paper_works WHERE work = :work AND paper IN (SELECT id FROM papers)
        ORDER BY paper"""
    ordered = sorted(ids, key=lambda id: id != work)
    return [each.paper for id in ordered for each in database.read(work_rows.paper_work, sql, work=id)]


def marks_of_papers(database: Database, papers: Iterable[str]) -> dict[str, str]:
    """What the works of papers, in any version, are recognised by -> the paper. Raises StoreDamaged."""
    found: dict[str, str] = {}
    for paper in papers:
        for kept in of_paper(database, paper):
            for mark in kept.marks():
                found.setdefault(mark, paper)
    return found


def publishers_bibtex(database: Database, papers: Iterable[str]) -> dict[str, str]:
    """Paper id -> the publisher's BibTeX entry, for papers that have one. Raises StoreDamaged."""
    found = of_papers(database, papers)
    kept = get(database, {each.work for each in found.values()})
    said = {paper: kept[each.work].said.get("crossref") for paper, each in found.items() if each.work in kept}
    return {paper: work.bibtex for paper, work in said.items() if work and work.bibtex}


# Writing


def put(database: Database, works: Iterable[Work]) -> list[str]:
    """Keep what sources say of works; returns the id of each. References become citations, retractions notices.

    Raises ValueError for a work that has neither an identifier nor title, author and year.
    """
    return [_put(database, work) for work in works]


def link_paper(database: Database, paper: str, work: str, found_by: FoundBy, score: float) -> None:
    """Note that a paper is a work. The paper need not be in the library yet."""
    _insert(database, "paper_works", work_rows.paper_work_row(PaperWork(paper, work, found_by, score)))


def inherit(database: Database, old: str, new: str) -> None:
    """A paper whose file another version of it takes over: that is the same work, unless known otherwise."""
    found = of_papers(database, [old, new])
    if old in found and new not in found:
        _insert(database, "paper_works", work_rows.paper_work_row(replace(found[old], paper=new)))


def _put(database: Database, work: Work) -> str:
    if not work.marks():
        raise ValueError("a work without an identifier and a title cannot be kept")
    same = _same(database, work)
    first = same[0] if same else KeptWork(_new_id(database, work), {}, {})
    said, said_at = dict(first.said), dict(first.said_at)
    for other in same[1:]:
        said, said_at = {**other.said, **said}, {**other.said_at, **said_at}
    kept = replace(first, said={**said, work.source: work}, said_at={**said_at, work.source: now()})
    _write(database, kept)
    for other in same[1:]:
        _absorb(database, kept.id, other)
    cited = (mark for mark in map(reference_mark, work.references) if mark not in kept.identifiers())
    add_citations(database, kept.id, cited, work.source, now())
    flag = Notice(kept.id, "retraction", "", "", work.source, now())
    (notices.add if work.is_retracted else notices.drop)(database, flag)
    for version in _versions_of(database, kept):
        _link_versions(database, kept.id, version.id)
    return kept.id


def _same(database: Database, work: Work) -> list[KeptWork]:
    """The works that a description is of, the surest first. More than one: it shows that they are one."""
    found: dict[str, KeptWork] = {}
    known = set(work.identifiers())
    for mark in work.marks():
        for kept in with_mark(database, mark):
            if not _contradict(known, kept.identifiers()):
                found[kept.id] = kept
                known |= kept.identifiers()
    return list(found.values())


def _contradict(ours: set[str], theirs: set[str]) -> bool:
    """Whether two sets of identifiers are of two works: they have different ones of a kind."""
    kinds = {mark.partition(" ")[0] for mark in ours} & {mark.partition(" ")[0] for mark in theirs}
    return any(not {m for m in ours if m.startswith(f"{kind} ")} & theirs for kind in kinds)


def _versions_of(database: Database, kept: KeptWork) -> Iterator[KeptWork]:
    """Other works that are versions of this one."""
    for mark in sorted(kept.identifiers()):
        yield from (other for other in with_mark(database, mark) if other.id != kept.id)
    for mark in version_keys(kept.work):
        for other in with_mark(database, mark):
            if other.id != kept.id and other.work.is_preprint != kept.work.is_preprint:
                yield other


def _link_versions(database: Database, one: str, other: str) -> None:
    """Note that two works are versions of one, and which of all its versions is preferred."""
    group = {kept.id: kept for id in (one, other) for kept in versions(database, id)}
    roots = [kept for kept in group.values() if not kept.version_of]
    root = min(roots, key=lambda kept: (kept.work.is_preprint, -(kept.work.cited or 0), kept.id))
    for kept in group.values():
        version_of = "" if kept is root else root.id
        if kept.version_of != version_of:
            _insert(database, "works", work_rows.work_row(replace(kept, version_of=version_of)))


def _write(database: Database, kept: KeptWork) -> None:
    _insert(database, "works", work_rows.work_row(kept))
    database.execute("DELETE FROM work_marks WHERE work = :work", work=kept.id)
    marks = [{"mark": mark, "work": kept.id} for mark in sorted(kept.marks())]
    database.insert("work_marks", marks)


def _absorb(database: Database, id: str, other: KeptWork) -> None:
    """Remove a work that has turned out to be another; what hangs on it goes to that."""
    move_citations(database, other.id, id)
    notices.move(database, other.id, id)
    papers = f"SELECT {PAPER_WORK_COLUMNS} FROM paper_works WHERE work = :work"
    for each in database.read(work_rows.paper_work, papers, work=other.id):
        _insert(database, "paper_works", work_rows.paper_work_row(replace(each, work=id)))
    group = [kept for kept in versions(database, other.id) if kept.id != other.id]
    for kept in group:
        if kept.version_of == other.id:
            _insert(database, "works", work_rows.work_row(replace(kept, version_of="")))
    database.execute("DELETE FROM works WHERE id = :id", id=other.id)
    database.execute("DELETE FROM work_marks WHERE work = :id", id=other.id)
    for kept in group:
        if kept.id != id:
            _link_versions(database, id, kept.id)


def _new_id(database: Database, work: Work) -> str:
    """An id that no work has: the same one for the same work in every library, nearly always."""
    id = hashlib.blake2b(work.marks()[0].encode(), digest_size=8).hexdigest()
    while get(database, [id]):
        id = hashlib.blake2b(id.encode(), digest_size=8).hexdigest()
    return id


def _insert(database: Database, table: str, values: dict[str, object]) -> None:
    """Insert a row, or replace the one of its key."""
    database.insert(table, [values], replace=True)
