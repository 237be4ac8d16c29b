"""Works that services describe, in the library's tables `works`, `work_marks`, `paper_works`; some are its papers.

The description from each source is stored unchanged. Two descriptions are of one work if they share an identifier, or
title, first author and year, and their identifiers do not contradict each other. If they share an identifier but
contradict each other, they are versions of one work, and so are a preprint and a publication with the same title and
first author within two years. Versions are linked, and one is preferred: the publication if there is one.

Callers that write hold the writer lock and have a transaction of the library's database. As in rows.py, a row that has
changed since it was written raises ValueError.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal, get_args

from folio.papers.identifiers import version_number
from folio.papers.model import Paper
from folio.papers.work import (
    KINDS,
    SOURCE_NAMES,
    NoticeKind,
    SourceName,
    Work,
    WorkNotice,
    from_json,
    merged,
    ordered,
    reference_mark,
    to_json,
    version_keys,
)
from folio.store.database import Database
from folio.store.rows import mapped, string, typed

# The sources by trust: Crossref first for a work with a DOI, because journals register there; otherwise arXiv first
_PUBLISHED: tuple[SourceName, ...] = ("crossref", "openalex", "semanticscholar", "europepmc", "arxiv")
_PREPRINT: tuple[SourceName, ...] = ("arxiv", "openalex", "semanticscholar", "europepmc", "crossref")
FoundBy = Literal["doi", "arxiv", "openalex", "semanticscholar", "pmid", "pmcid", "title", "fetched"]
_DATE = re.compile(r"(?:\d{4}(?:-\d\d(?:-\d\d)?)?)?", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", re.ASCII)
_ID = re.compile(r"[0-9a-f]{16}")
_MARK = re.compile(r"(?:doi|arxiv|openalex|semanticscholar|pmid|pmcid) .{1,500}")
_LONGEST_LINK = 500
_WHOLE = 1000  # the best score, as it is stored

WORK_COLUMNS = "id, version_of, said"
CITATION_COLUMNS = "citing, cited, source, said_at"
PAPER_WORK_COLUMNS = "paper, work, found_by, score"
NOTICE_COLUMNS = "work, kind, dated, link, source, said_at"


def found_by(mark: str) -> FoundBy:
    """The kind of a mark (Work.marks)."""
    kind = mark.partition(" ")[0]
    return next(each for each in get_args(FoundBy) if each == kind)


@dataclass(frozen=True)
class KeptWork:
    """A work in the library's tables."""

    id: str  # Folio's own: 16 hex digits
    said: Mapping[SourceName, Work]  # the description from each source
    said_at: Mapping[SourceName, str]  # the time of each description (ISO, UTC)
    version_of: str = ""  # the id of the preferred version; "" if it is this one

    @cached_property
    def work(self) -> Work:
        """The merged description: each field from the most trusted source that has it."""
        return merged(trusted_first(self.said.values()))

    def marks(self) -> set[str]:
        """The marks of all descriptions."""
        return {mark for work in self.said.values() for mark in work.marks()}

    def identifiers(self) -> set[str]:
        return {mark for work in self.said.values() for mark in work.identifiers()}


@dataclass(frozen=True, slots=True)
class Citation:
    citing: str  # a work
    cited: str  # a mark (Work.identifiers)
    source: SourceName
    said_at: str


@dataclass(frozen=True, slots=True)
class PaperWork:
    """Which work a paper of the library is."""

    paper: str
    work: str
    found_by: FoundBy
    score: float  # the quality of the match, 0 to 1


@dataclass(frozen=True, slots=True)
class Notice:
    """A retraction, a correction or a newer version of a work."""

    work: str
    kind: NoticeKind
    dated: str  # "2021-05-26", "2021", "" if not known
    link: str  # a DOI, an address or an arXiv id with its version; "" if not known
    source: SourceName
    said_at: str

    @property
    def said(self) -> WorkNotice:
        """The notice without its work."""
        return WorkNotice(self.kind, self.dated, self.link, self.source)


def trusted_first(views: Iterable[Work]) -> list[Work]:
    """The descriptions of a work from several sources, the most trusted one first."""
    works = list(views)
    order = _PUBLISHED if any(work.doi for work in works) else _PREPRINT
    return sorted(works, key=lambda work: order.index(work.source))


def get(database: Database, ids: Iterable[str]) -> dict[str, KeptWork]:
    """The works with these ids; unknown ids are skipped. Raises StoreDamaged."""
    unique = list(dict.fromkeys(ids))
    sql = f"SELECT {WORK_COLUMNS} FROM works WHERE id IN (SELECT value FROM json_each(:ids))"
    stored = {work.id: work for work in database.read(work_of_row, sql, ids=unique)} if unique else {}
    return {id: stored[id] for id in unique if id in stored}


def find(database: Database, work: Work) -> KeptWork | None:
    """The stored work that this describes; None if there is none. Raises StoreDamaged."""
    return next(iter(_same(database, work)), None)


def with_mark(database: Database, mark: str) -> list[KeptWork]:
    """The works with a mark (Work.marks), preferred versions first. Raises StoreDamaged."""

    def checked(*row: object) -> KeptWork:
        work = work_of_row(*row)
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
    return sorted(database.read(work_of_row, sql, root=root), key=lambda version: version.id != root)


def of_papers(database: Database, papers: Iterable[str]) -> dict[str, PaperWork]:
    """Paper id -> its work, for papers whose work is known. Raises StoreDamaged."""
    ids = list(papers)
    sql = f"SELECT {PAPER_WORK_COLUMNS} FROM paper_works WHERE paper IN (SELECT value FROM json_each(:papers))"
    links = database.read(paper_work, sql, papers=ids) if ids else []
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
    return [each.paper for id in ordered for each in database.read(paper_work, sql, work=id)]


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


def put(database: Database, works: Iterable[Work]) -> list[str]:
    """Store descriptions of works; returns the id of each. References become citations, retractions notices.

    Raises ValueError for a work that has neither an identifier nor title, author and year.
    """
    return [_put(database, work) for work in works]


def link_paper(database: Database, paper: str, work: str, found_by: FoundBy, score: float) -> None:
    """Store which work a paper is. The paper need not be in the library yet."""
    _insert(database, "paper_works", paper_work_row(PaperWork(paper, work, found_by, score)))


def inherit(database: Database, old: str, new: str) -> None:
    """Link a paper to the work of the paper that it replaces, unless its own work is known."""
    links = of_papers(database, [old, new])
    if old in links and new not in links:
        _insert(database, "paper_works", paper_work_row(replace(links[old], paper=new)))


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
    (add_notice if work.is_retracted else drop_notice)(database, flag)
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
            _insert(database, "works", work_row(replace(version, version_of=version_of)))


def _write(database: Database, work: KeptWork) -> None:
    _insert(database, "works", work_row(work))
    database.execute("DELETE FROM work_marks WHERE work = :work", work=work.id)
    marks = [{"mark": mark, "work": work.id} for mark in sorted(work.marks())]
    database.insert("work_marks", marks)


def _absorb(database: Database, id: str, other: KeptWork) -> None:
    """Merge the work `other` into the work `id`: move its citations, notices, papers and versions, and delete it."""
    _move_citations(database, other.id, id)
    _move_notices(database, other.id, id)
    papers = f"SELECT {PAPER_WORK_COLUMNS} FROM paper_works WHERE work = :work"
    for each in database.read(paper_work, papers, work=other.id):
        _insert(database, "paper_works", paper_work_row(replace(each, work=id)))
    group = [version for version in versions(database, other.id) if version.id != other.id]
    for version in group:
        if version.version_of == other.id:
            _insert(database, "works", work_row(replace(version, version_of="")))
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


def work_of_row(*row: Any) -> KeptWork:
    """From WORK_COLUMNS."""
    id, version_of, said = row
    label = f"the record of work {str(id)[:16]}"
    if not _ID.fullmatch(string(id)) or (version_of and not _ID.fullmatch(string(version_of))):
        raise ValueError(f"{label} has no identifier")
    by_source = mapped(said, label)
    works: dict[SourceName, Work] = {}
    times: dict[SourceName, str] = {}
    for source, fields in by_source.items():
        name = _source(source, label)
        times[name] = _time(typed(dict, fields, label).pop("at"), label)
        works[name] = from_json(name, fields)
    if not works:
        raise ValueError(f"{label} is empty")
    return KeptWork(id, works, times, version_of)


def work_row(kept: KeptWork) -> dict[str, object]:
    """The values of WORK_COLUMNS, by name."""
    said = json.dumps(
        {source: {"at": kept.said_at[source], **to_json(work)} for source, work in kept.said.items()},
    )
    return {"id": kept.id, "version_of": kept.version_of, "said": said}


def _is_mark(text: str) -> bool:
    """Whether a text is a mark that a citation can have."""
    return bool(_MARK.fullmatch(text))


def citation(*row: Any) -> Citation:
    """From CITATION_COLUMNS."""
    citing, cited, source, said_at = row
    label = "the record of a citation"
    if not _is_mark(string(cited)):
        raise ValueError(f"{label} names no work")
    return Citation(string(citing), cited, _source(source, label), _time(said_at, label))


def paper_work(*row: Any) -> PaperWork:
    """From PAPER_WORK_COLUMNS."""
    paper, work, found_by, score = row
    label = "the record of which work a paper is"
    if found_by not in get_args(FoundBy) or not 0 <= typed(int, score, label) <= _WHOLE:
        raise ValueError(f"{label} cannot be read")
    return PaperWork(string(paper), string(work), found_by, score / _WHOLE)


def paper_work_row(link: PaperWork) -> dict[str, object]:
    """The values of PAPER_WORK_COLUMNS, by name."""
    return {**asdict(link), "score": round(link.score * _WHOLE)}


def notice(*row: Any) -> Notice:
    """From NOTICE_COLUMNS."""
    work, kind, dated, link, source, said_at = row
    return _require_notice(Notice(string(work), kind, dated, link, source, said_at))


def _require_notice(notice: Notice) -> Notice:
    """The notice. Raises ValueError if one of its values is invalid."""
    label = "a notice about a work"
    if notice.kind not in KINDS or not _DATE.fullmatch(string(notice.dated)):
        raise ValueError(f"{label} cannot be read")
    if len(string(notice.link)) > _LONGEST_LINK or not notice.link.isprintable():
        raise ValueError(f"{label} has a link that cannot be read")
    _source(notice.source, label)
    _time(notice.said_at, label)
    return notice


def _source(source: object, label: str) -> SourceName:
    if source not in SOURCE_NAMES:
        raise ValueError(f"{label} is from an unknown source")
    return source


def _time(value: object, label: str) -> str:
    if not _TIME.fullmatch(string(value)):
        raise ValueError(f"{label} has no time")
    return string(value)


# SQL for the ids of the work `:work` and its other versions
_ROOT = "SELECT CASE version_of WHEN '' THEN id ELSE version_of END FROM works WHERE id = :work"
_GROUP = f"""SELECT id FROM works WHERE id = ({_ROOT})
    UNION SELECT id FROM works WHERE version_of = ({_ROOT}) AND version_of != ''"""


def add_citations(database: Database, citing: str, cited: Iterable[str], source: SourceName, said_at: str) -> None:
    """Store which works a work cites. cited: their marks (Work.identifiers); invalid ones are skipped.

    The caller has a transaction.
    """
    marks = filter(_is_mark, dict.fromkeys(cited))
    _insert_citations(database, [Citation(citing, mark, source, said_at) for mark in marks])


def _insert_citations(database: Database, citations: Iterable[Citation]) -> None:
    """Store citations, in this order; the caller has a transaction."""
    last = int(database.query("SELECT coalesce(max(place), 0) FROM citations")[0][0])
    new = [{**asdict(each), "place": place} for place, each in enumerate(citations, last + 1)]
    database.insert("citations", new, replace=True)


def references_of(database: Database, work: str) -> list[str]:
    """The marks of the works that a work cites in any version, in the order of storing. Raises StoreDamaged."""
    sql = f"SELECT {CITATION_COLUMNS} FROM citations WHERE citing IN ({_GROUP}) ORDER BY place"
    return list(dict.fromkeys(each.cited for each in database.read(citation, sql, work=work)))


def citing(database: Database, work: str) -> list[str]:
    """The ids of the works that cite a work in any version, in the order of storing. Raises StoreDamaged."""
    sql = f"""SELECT {CITATION_COLUMNS} FROM citations
        WHERE cited IN (SELECT mark FROM work_marks WHERE work IN ({_GROUP})) ORDER BY place"""
    return list(dict.fromkeys(each.citing for each in database.read(citation, sql, work=work)))


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
        citation(*row)
        return citing, cited

    return sorted(set(database.read(edge, sql)))


def cited_papers(database: Database, paper: str) -> set[str] | None:
    """The papers of the library that a paper cites; None if none of its references is known. Raises StoreDamaged."""
    work = "SELECT work FROM paper_works WHERE paper = :paper"
    group = _GROUP.replace(":work", f"({work})")
    if not database.query(f"SELECT 1 FROM citations WHERE citing IN ({group}) LIMIT 1", paper=paper):
        return None
    return {cited for citing, cited in library_edges(database) if citing == paper}


def _move_citations(database: Database, old: str, new: str) -> None:
    """Move the references of the work `old` to the work `new`."""
    sql = f"SELECT {CITATION_COLUMNS} FROM citations WHERE citing = :citing ORDER BY place"
    moved = [replace(each, citing=new) for each in database.read(citation, sql, citing=old)]
    database.execute("DELETE FROM citations WHERE citing = :citing", citing=old)
    _insert_citations(database, moved)


def add_notice(database: Database, notice: Notice) -> None:
    """Store a notice, replacing the same notice of the same source. Raises ValueError for an invalid one."""
    database.insert("notices", [asdict(_require_notice(notice))], replace=True)


def drop_notice(database: Database, notice: Notice) -> None:
    """Remove a notice that its source no longer has, whatever its date and time."""
    sql = "DELETE FROM notices WHERE work = :work AND kind = :kind AND link = :link AND source = :source"
    database.execute(sql, work=notice.work, kind=notice.kind, link=notice.link, source=notice.source)


def notices_of_works(database: Database, works: Iterable[str]) -> list[Notice]:
    """The notices of these works, sorted by work, kind and date. Raises StoreDamaged."""
    sql = f"""SELECT {NOTICE_COLUMNS} FROM notices WHERE work IN (SELECT value FROM json_each(:works))
        ORDER BY work, kind, dated, link, source"""
    ids = list(works)
    return database.read(notice, sql, works=ids) if ids else []


def notices_of_papers(database: Database, papers: Iterable[str]) -> dict[str, list[Notice]]:
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
    read = database.read(lambda paper, *row: (string(paper), notice(*row)), sql, papers=ids) if ids else ()
    for paper, stored in read:
        by_paper.setdefault(paper, []).append(stored)
    return by_paper


def with_notices(database: Database, papers: Sequence[Paper]) -> list[Paper]:
    """These papers with their notices, the gravest first. Raises StoreDamaged."""
    by_paper = notices_of_papers(database, [paper.id for paper in papers])
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


def _move_notices(database: Database, old: str, new: str) -> None:
    """Move the notices of the work `old` to the work `new`."""
    for notice in notices_of_works(database, [old]):
        drop_notice(database, notice)
        add_notice(database, replace(notice, work=new))


def now() -> str:
    """The current time (ISO, UTC)."""
    return datetime.now(UTC).isoformat(timespec="seconds")
