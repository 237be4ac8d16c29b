"""The papers of the web library: their files, which are added and removed; their list; their citations; their pages."""

from __future__ import annotations

import os
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePath
from secrets import token_hex
from threading import Lock
from time import time
from typing import BinaryIO, NamedTuple

from folio.app import EDIT_WAIT_S, App
from folio.errors import NotKnown, PaperError, StoreBusy, StoreError, StoreMissing
from folio.ingest.discovery import IngestProgress, Outcome
from folio.ingest.removed import Emptied, is_due
from folio.papers.model import Failure, Paper, SourceFile
from folio.papers.work import Work
from folio.schema import web as schema
from folio.schema.papers import ListedPaperJson, found_paper_json, listed_paper_json, papers_notice
from folio.search.filters import PaperFilter, SectionFilter, fitting_papers
from folio.search.pool import RetrieverPool
from folio.search.retriever import NOTHING_KNOWN
from folio.services.keep import PaperFound, keep_papers, paper_marks
from folio.store import indexes, readings, works
from folio.store.library import Library
from folio.store.readings import MovedFile, Removal
from folio.store.works import KeptWork
from folio.system.files import REMOVED, discard, identity, no_device, no_space, replace, sha256_file, shortened, sync
from folio.text import one_line, reason_of
from folio.web.stream import StageProgress

_UPLOAD = ".upload-"
# Seconds without a write after which an upload is stale: its process was killed. A local copy takes far less.
STALE_S = 3600
# Seconds that removing a paper waits for the writer lock; ingesting another paper can hold it for minutes
_LOCK_TIMEOUT_S = 2
# Seconds that bringing papers back waits: the page offers it before the removal has updated the indexes
_RESTORE_TIMEOUT_S = 30
_MAX_NAME_BYTES = 200  # without the suffix; file systems allow 255
_BLOCK_BYTES = 2**20
# The header is within the first kilobyte of a PDF (ISO 32000-1, Annex H, implementation note 13).
_PDF_HEADER, PDF_HEAD_BYTES = b"%PDF-", 1024


@dataclass(frozen=True, slots=True)
class Upload:
    """A PDF in PAPERS_DIR that was just uploaded (`is_new`), or an identical one that existed before."""

    file: SourceFile
    is_new: bool


class Placed(NamedTuple):
    """The file of an upload in PAPERS_DIR; device and inode tell it from another file with the same name."""

    name: str
    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class Removed:
    """A paper that was removed from the index."""

    file: str
    kept_at: str | None  # new path of its file, relative to PAPERS_DIR; None if it was not moved


class PaperFiles:
    """Thread-safe; papers are added and removed one at a time."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._writing = Lock()
        self._hashes: dict[tuple[str, int, int], str] = {}  # (path, size, mtime in ns) -> SHA-256

    @property
    def _folder(self) -> Path:
        """PAPERS_DIR, as ingestion stores paths. The setting may change."""
        return Path(os.path.abspath(self._app.papers_folder))

    def pdf(self, library: Library, paper: str) -> Path:
        """The file of the paper with this id, unchanged since it was ingested.

        Raises NotKnown for an unknown id, PaperError for a file that is missing or has changed.
        """
        files = [file for file in library.files() if file.sha256 == paper]
        if not files:
            raise unknown_paper()
        paths = [Path(file.path) for file in files]
        # Another computer may have added the paper from the same folder, under another path.
        for path in (*paths, *(self._folder / file.name for file in files)):
            with suppress(OSError):
                if self._sha256(path) == paper:
                    return path
        if copy := self._app.backend.copy_of(library, paper, self._app.fetched_pdfs):
            return copy
        raise PaperError(
            f"The file {paths[0].name} is missing or has changed since it was ingested.",
            "Put the original file back, or read your folders again in Settings.",
        )

    def save_upload(self, content: BinaryIO, name: str) -> Upload:
        """Write a PDF to PAPERS_DIR, under its own name or a similar one. An identical file is reused.

        Raises PaperError if it is not a PDF, DiskFull.
        """
        head = content.read(PDF_HEAD_BYTES)
        require_pdf(head)
        with no_space(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            temporary = self._folder / f"{_UPLOAD}{token_hex(8)}.pdf"
            try:
                with temporary.open("xb") as file:
                    file.write(head)
                    while block := content.read(_BLOCK_BYTES):
                        file.write(block)
                    file.flush()
                    os.fsync(file.fileno())
                return self._move_into_place(temporary, safe_name(name))
            finally:
                discard(temporary)

    def add_queued(
        self, content: Path, name: str, progress: IngestProgress, on_place: Callable[[Placed, str], None]
    ) -> Outcome:
        """Copy a queued file into PAPERS_DIR, as save_upload does, and ingest it. `content` does not change.

        on_place: called with the hash of the file before it exists there, so that it can be deleted after a kill
        (take_back), or refused. Raises as ingest does; StoreBusy before anything is written.
        """
        with self._writer_lock(_LOCK_TIMEOUT_S):
            return self._ingest(self._copy_in(content, name, on_place), progress, None)

    def take_back(self, placed: Placed) -> None:
        """Delete the file that add_queued put into PAPERS_DIR before it was killed, unless its paper is in the index.

        Raises StoreBusy while another process is writing, which may be adding the file.
        """
        path = self._folder / placed.name
        if identity(path) == placed[1:]:
            with self.writing():
                self._discard(Upload(SourceFile(str(path), path.name, ""), is_new=True))

    def _copy_in(self, content: Path, name: str, on_place: Callable[[Placed, str], None]) -> Upload:
        with no_space(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            temporary = self._folder / f"{_UPLOAD}{token_hex(8)}.pdf"
            os.utime(content)  # a link has the time of its file, and delete_stale_uploads deletes old files
            try:
                try:
                    temporary.hardlink_to(content)
                except OSError:  # another disk, or a disk without hard links
                    shutil.copyfile(content, temporary)
                    sync(temporary)
                return self._move_into_place(temporary, name, on_place)
            finally:
                discard(temporary)

    def delete_stale_uploads(self) -> None:
        """Delete the partial uploads in PAPERS_DIR that a killed process left behind."""
        for path in self._folder.glob(f"{_UPLOAD}*"):
            with suppress(OSError):
                if time() - path.stat().st_mtime > STALE_S:
                    path.unlink()

    def delete_expired(self) -> None:
        """Delete the files of papers whose removal can no longer be undone, unless another process is writing."""
        with suppress(StoreError, OSError):
            if is_due(removed_papers(self._app)):
                with self.writing():
                    self._app.delete_expired()

    def empty_removed(self) -> Emptied:
        """Delete the files of all removed papers at once. Raises StoreBusy."""
        with self.writing():
            return self._app.empty_removed()

    def ingest(self, upload: Upload, progress: IngestProgress, found: PaperFound | None = None) -> Outcome:
        """Ingest an uploaded file. A new file is deleted again if that fails or if it duplicates a paper.

        found: the metadata that services on the internet have. Raises PaperError if no text can be read, StoreBusy,
        StoreMismatch, ModelError, DiskFull.
        """
        try:
            with self._writer_lock():
                return self._ingest(upload, progress, found)
        except StoreBusy:
            self._discard(upload)
            raise

    def _ingest(self, upload: Upload, progress: IngestProgress, found: PaperFound | None) -> Outcome:
        """As `ingest`; the caller holds the writer lock."""
        file = upload.file
        try:
            if found is not None:
                with closing(self._app.open_library(create=True)) as library:
                    self._app.require_same_settings(library)
                    keep_papers(library, {file.sha256: found})
            if upload.is_new and (other := self._find_duplicate(file)):
                self._discard(upload)
                return Outcome(other, "duplicate", notes=(f"The same file as {other.name}.",))
            outcomes = list(self._app.ingest([file], progress, retry=frozenset([file.path])))
            (outcome,) = [outcome for outcome in outcomes if outcome.file.path == file.path]
            if outcome.status != "failed":
                self._app.finish_ingest()
            elif upload.is_new:
                with closing(self._app.open_library()) as library:
                    library.forget_failure(file.path)
        except BaseException:
            self._discard(upload)
            raise
        if outcome.status == "failed":
            self._discard(upload)
            happened, remedy, *_ = outcome.notes
            raise PaperError(happened, remedy)
        return outcome

    def _discard(self, upload: Upload) -> None:
        """Delete the file of a new upload, unless its paper is in the index. Files from before are never deleted."""
        if not upload.is_new:
            return
        with suppress(StoreMissing), closing(self._app.open_library()) as library:
            if any(known.path == upload.file.path for known in library.files()):
                return
        Path(upload.file.path).unlink(missing_ok=True)

    def remove(self, *papers: str) -> list[Removed]:
        """Remove papers from the index, which is updated once. Their files move to .removed in PAPERS_DIR, so that the
        next ingest does not add the papers again; a file outside PAPERS_DIR is not touched. `restore` brings a paper
        back.

        Raises NotKnown for an unknown id, and removes none then; StoreBusy.
        """
        with self.writing(), closing(self._app.open_library()) as library:
            stored = require_papers(library, papers)
            files: dict[str, list[SourceFile]] = {paper.id: [] for paper in stored}
            for file in library.files():
                if file.sha256 in files:
                    files[file.sha256].append(file)
            if not all(files.values()):
                raise unknown_paper()
            try:
                # A paper is recorded before the indexes are updated: if that fails, it can still be brought back.
                return [self._remove(library, paper, files[paper.id]) for paper in stored]
            finally:
                self._app.finish_ingest()  # pages hear of it now, and list the removals

    def _remove(self, library: Library, paper: Paper, files: Sequence[SourceFile]) -> Removed:
        for file in files:
            library.drop(file.path)
        moved = [self._move_to_removed(Path(file.path)) for file in files]
        kept = [MovedFile(file.name, file.path, str(to or file.path)) for file, to in zip(files, moved, strict=True)]
        readings.record_removal(library.database, paper.id, paper.title, kept)
        place = next(filter(None, moved), None)
        return Removed(files[0].name, f"{REMOVED}/{place.name}" if place else None)

    def restore(self, *papers: str) -> list[Failure]:
        """Bring removed papers back: their files move back, under a similar name where another file has theirs, and are
        read again. The indexes are updated once. Returns why some papers stay removed; their files are where they were.

        Raises NotKnown if no removal of a paper is offered, and restores none then; as ingest does.
        """
        with self._writer_lock(_RESTORE_TIMEOUT_S):
            with closing(self._app.open_library()) as library:
                offered = {removal.paper: removal for removal in readings.removals(library.database)}
                here = {paper.id for paper in library.papers_by_id(papers)}
            if not here | offered.keys() >= set(papers):
                raise NotKnown("This paper cannot be brought back.", f"Its file may be in {REMOVED}: add it again.")
            failures: dict[str, Failure] = {}  # by paper
            placed: dict[SourceFile, Path] = {}  # file -> where it was before
            try:
                for removal in (offered[paper] for paper in dict.fromkeys(papers) if paper in offered):
                    try:
                        self._place(removal, placed)
                    except (PaperError, OSError) as error:
                        failures[removal.paper] = _not_restored(removal, error)
                failures |= {failure.file.sha256: failure for failure in self._read_again(list(placed))}
            finally:
                back = self._finish_restoring(placed)
        return [failure for paper, failure in failures.items() if paper not in back]

    def _place(self, removal: Removal, placed: dict[SourceFile, Path]) -> None:
        """Move the files of a removed paper back, and enter them. Raises PaperError if none is there, OSError."""
        is_there = False
        for file in removal.files:
            # A restore that was killed has moved it back already.
            kept = next((each for each in (file.kept_at, file.path) if _is_paper(Path(each), removal.paper)), None)
            if kept:
                is_there = True
                path = self._move_back(Path(kept), Path(file.path))
                name = PurePath(file.name).with_name(path.name).as_posix()
                placed[SourceFile(str(path), name, removal.paper)] = Path(kept)
        if not is_there:
            raise PaperError(f"The file {removal.files[0].name} is gone, or has changed.", "Add the paper again.")

    def _read_again(self, files: Sequence[SourceFile]) -> Iterator[Failure]:
        """Ingest files; yields those that cannot be read."""
        silent = StageProgress(lambda *_: None, lambda: None)
        for outcome in self._app.ingest(files, silent, retry=frozenset(file.path for file in files)):
            if outcome.status == "failed":
                happened, remedy, *_ = outcome.notes
                yield Failure(outcome.file, happened, remedy)

    def _finish_restoring(self, placed: Mapping[SourceFile, Path]) -> set[str]:
        """Move the files of papers that are not in the library back to where they were, and forget the removals of the
        other papers, which are returned. Raises StoreBusy and as finish_ingest does, after all files were moved."""
        with closing(self._app.open_library()) as library:
            added = {(file.path, file.sha256) for file in library.files()}
            unread = [source for source in placed if (source.path, source.sha256) not in added]
            for source in unread:
                if source.path != str(placed[source]):
                    with suppress(OSError):  # it stays where it is, and is found there by the next attempt
                        replace(Path(source.path), placed[source])
            for source in unread:
                library.forget_failure(source.path)
        back = {source.sha256 for source in placed.keys() - set(unread)}
        if back:
            self._app.finish_ingest()
            with closing(self._app.open_library()) as library:
                readings.forget_removals(library.database, back)
        return back

    def _move_back(self, path: Path, original: Path) -> Path:
        """Move a file back to its original path or, if another file is there, to a similar one. Returns the path."""
        if path == original:
            return path
        original.parent.mkdir(parents=True, exist_ok=True)
        for target in _candidates(original.parent, original.name):
            try:
                _put(path, target)
            except FileExistsError:
                continue
            path.unlink(missing_ok=True)
            return target
        raise AssertionError("names never run out")

    def finish_edit(self, *, is_renamed: bool) -> None:
        """Update the indexes after an edit (App.finish_edit), unless this process is writing.

        The edit of a title waits for another edit, which may have begun to update the indexes without it.
        """
        if self._writing.acquire(timeout=EDIT_WAIT_S if is_renamed else 0):
            try:
                self._app.finish_edit(is_renamed=is_renamed)
            finally:
                self._writing.release()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the writer lock for a short time. Raises StoreBusy."""
        with self._writer_lock(_LOCK_TIMEOUT_S):
            yield

    @contextmanager
    def _writer_lock(self, timeout_s: float = -1) -> Iterator[None]:
        """Hold the writer locks of this process and of the store. Raises StoreBusy.

        timeout_s: for the lock of this process; -1 waits forever.
        """
        if not self._writing.acquire(timeout=timeout_s):
            raise StoreBusy("Another paper is being added to the index.", "Try again when it has been added.")
        try:
            with indexes.writing(self._app.store_folder):
                yield
        finally:
            self._writing.release()

    def _find_duplicate(self, file: SourceFile) -> SourceFile | None:
        """Another file with the same content, both in the index and on disk."""
        with suppress(StoreMissing), closing(self._app.open_library()) as library:
            others = (other for other in library.files() if other.sha256 == file.sha256 and other.path != file.path)
            return next((other for other in others if Path(other.path).is_file()), None)
        return None

    def _sha256(self, path: Path) -> str:
        stat = path.stat()
        key = (str(path), stat.st_size, stat.st_mtime_ns)
        if key not in self._hashes:
            self._hashes[key] = sha256_file(path)
        return self._hashes[key]

    def _move_into_place(
        self, temporary: Path, name: str, on_place: Callable[[Placed, str], None] = lambda *_: None
    ) -> Upload:
        """Give a file this name or the next free one. Never overwrites; an identical file is reused.

        on_place: see add_queued; called with each name that is tried.
        """
        digest, stat = sha256_file(temporary), temporary.stat()
        for path in _candidates(self._folder, name):
            on_place(Placed(path.name, stat.st_dev, stat.st_ino), digest)
            try:
                _put(temporary, path)
            except FileExistsError:
                with suppress(OSError):  # the path is a folder, or was deleted meanwhile
                    if sha256_file(path) == digest:
                        return Upload(SourceFile(str(path), path.name, digest), is_new=False)
                continue
            return Upload(SourceFile(str(path), path.name, digest), is_new=True)
        raise AssertionError("names never run out")

    def _move_to_removed(self, path: Path) -> Path | None:
        """Move a file in PAPERS_DIR to .removed. Returns its new path; None for any other file."""
        if not path.is_relative_to(self._folder) or not path.is_file():
            return None
        folder = self._folder / REMOVED
        folder.mkdir(exist_ok=True)
        target = next(candidate for candidate in _candidates(folder, path.name) if not candidate.exists())
        replace(path, target)
        return target


def _is_paper(path: Path, paper: str) -> bool:
    """Whether this file is there, and is this paper's."""
    try:
        return sha256_file(path) == paper
    except OSError:
        return False


def _not_restored(removal: Removal, error: PaperError | OSError) -> Failure:
    file = SourceFile(removal.files[0].path, removal.files[0].name, removal.paper)
    if isinstance(error, PaperError):
        return Failure(file, error.happened, error.remedy)
    return Failure(
        file,
        f"The file {file.name} could not be moved back to its folder ({reason_of(error)}).",
        f"It is in {REMOVED} in your papers folder.",
    )


def removed_papers(app: App) -> list[Removal]:
    """The papers that can be brought back, latest first; none if there is no index yet."""
    try:
        library = app.open_library()
    except StoreMissing:
        return []
    with closing(library):
        return readings.removals(library.database)


def safe_name(name: str) -> str:
    """A file name without folders and without characters that a file system or terminal treats specially."""
    last = PurePath(name.replace("\\", "/")).name
    kept = "".join(char if char.isprintable() else " " for char in unicodedata.normalize("NFC", last))
    stem = re.sub(r"\.pdf$", "", re.sub(r'[<>:"|?*]', "_", kept), flags=re.I)
    stem = shortened(one_line(stem).strip(". "), _MAX_NAME_BYTES)
    return no_device(f"{stem or 'paper'}.pdf")


def _put(temporary: Path, path: Path) -> None:
    """Give a file a second name, atomically. Raises FileExistsError."""
    try:
        path.hardlink_to(temporary)  # the caller deletes the other name
    except FileExistsError:
        raise
    except OSError:  # a disk without hard links; a kill between these two lines leaves an empty file
        path.touch(exist_ok=False)
        temporary.replace(path)


def require_pdf(head: bytes) -> None:
    """Raise PaperError if the file is not a PDF. head: its first PDF_HEAD_BYTES bytes."""
    if _PDF_HEADER not in head:
        raise PaperError("The file is not a PDF.", "Choose a PDF file.")


def _candidates(folder: Path, name: str) -> Iterator[Path]:
    """The name, then "name (2)", "name (3)" and so on."""
    yield folder / name
    plain = PurePath(name)
    for number in count(2):
        yield folder / f"{plain.stem} ({number}){plain.suffix}"


def require_papers(library: Library, ids: Sequence[str]) -> list[Paper]:
    """The papers with these ids. Raises NotKnown."""
    wanted = list(dict.fromkeys(ids))
    papers = library.papers_by_id(wanted)
    if len(papers) < len(wanted):
        raise unknown_paper()
    return papers


def unknown_paper() -> NotKnown:
    """The error for an id that no paper has."""
    return NotKnown(
        "This paper is not in the index.", f"If it was removed, its file may be in {REMOVED} in the papers folder."
    )


_DEFAULT_LIMIT = 20  # papers that a query returns by default


def list_papers(app: App, retrievers: RetrieverPool, query: schema.PaperQuery) -> schema.PaperList:
    """The chosen papers, ranked if there is a query, and the unreadable files; empty if there is no index yet.

    Raises StoreMismatch and ModelError if there is a query.
    """
    try:
        library = app.open_library()
    except StoreMissing:
        return schema.PaperList(papers=[], failures=[])
    with closing(library), library.reading():
        failures = [schema.FailureJson.model_validate(failure) for failure in library.failures()]
        if query.query.strip() and library.chunk_count():
            papers, notice = _ranked(retrievers, query)
            return schema.PaperList(papers=papers, failures=failures, notice=notice)
        added = library.added()
        fitting = fitting_papers(library, _filter(query))
        end = None if query.limit is None else query.offset + query.limit
        opened = readings.readings(library.database)
        listed = [
            listed_paper_json(paper, added[paper.id], opened.get(paper.id)) for paper in fitting[query.offset : end]
        ]
        return schema.PaperList(papers=listed, failures=failures)


def _ranked(retrievers: RetrieverPool, query: schema.PaperQuery) -> tuple[list[ListedPaperJson], str]:
    """The papers that fit, best first, and a notice about what the ranking lacked."""
    wanted = _filter(query)
    with retrievers.acquire() as reader, reader.library.reading():
        library = reader.library
        words = reader.retriever.respelled(query.query).question
        hits = reader.retriever.search_papers(
            words,
            query.limit or _DEFAULT_LIMIT,
            query.offset,
            None if wanted == PaperFilter() else fitting_papers(library, wanted),
            sections=SectionFilter(wanted.sections) if wanted.sections else None,
        )
        # The metadata of a paper may have a word that no passage has, such as an author's name.
        if not any(hit.lexical for hit in hits) and not reader.retriever.is_understood(words):
            return [], NOTHING_KNOWN
        added, opened = library.added(), readings.readings(library.database)
        notice = reader.retriever.notice or papers_notice(reader.retriever.papers_without_vector())
    return [found_paper_json(hit, added[hit.paper.id], opened.get(hit.paper.id)) for hit in hits], notice


def _filter(query: schema.PaperQuery) -> PaperFilter:
    return schema.paper_filter(query, warnings=query.warnings, unsure=query.unsure)


# Stored citations

MOST_LISTED = 1000  # references, and as many works that cite a paper


def paper_citations(app: App, paper: str) -> schema.PaperCitations:
    """The works that a paper cites and that cite it: the library's first, then the most cited. Raises NotKnown."""
    with closing(app.open_library()) as library, library.reading():
        require_papers(library, [paper])
        known = works.of_paper(library.database, paper)
        if not known:
            return schema.PaperCitations(known=False, references=[], cited_by=[], reference_count=0, cited_by_count=0)
        marks = works.references_of(library.database, known[0].id)
        citing = works.citing(library.database, known[0].id)
        items = _WorkItems(library)
        cited_by = works.get(library.database, citing[:MOST_LISTED]).values()
        return schema.PaperCitations(
            known=True,
            references=_ordered(items.of_mark(mark) for mark in marks[:MOST_LISTED]),
            cited_by=_ordered(items.of_work(work) for work in cited_by),
            reference_count=len(marks),
            cited_by_count=len(citing),
        )


def library_citations(app: App) -> schema.LibraryCitations:
    """The citations between papers of the library; none if there is no index yet."""
    try:
        library = app.open_library()
    except StoreMissing:
        return schema.LibraryCitations(edges=[])
    with closing(library):
        edges = works.library_edges(library.database)
    return schema.LibraryCitations(edges=[schema.CitationEdge(citing=citing, cited=cited) for citing, cited in edges])


class _WorkItems:
    """Makes the items of lists of works."""

    def __init__(self, library: Library) -> None:
        self._database = library.database
        self._papers = {paper.id: paper for paper in library.papers()}
        self._by_mark = paper_marks(self._papers.values())

    def of_mark(self, mark: str) -> schema.WorkJson:
        """A work with this mark, such as "doi 10.1/x"; nothing else may be known about it."""
        if stored := works.with_mark(self._database, mark):
            return self.of_work(stored[0])
        kind, _, value = mark.partition(" ")
        paper = self._by_mark.get(mark)
        about = {"title": paper.title, "year": paper.metadata.year.value} if paper else {}
        work = Work("openalex", **{kind: value}, **about)  # type: ignore[arg-type]
        return schema.work_json(work, paper.id if paper else "", paper.file if paper else "")

    def of_work(self, stored: KeptWork) -> schema.WorkJson:
        ids = works.papers_of(self._database, stored.id)
        papers = [self._papers[id] for id in ids if id in self._papers]
        papers += [self._by_mark[mark] for mark in sorted(stored.marks()) if mark in self._by_mark]
        if not papers:
            return schema.work_json(stored.work)
        return schema.work_json(stored.work, papers[0].id, papers[0].file)


def _ordered(items: Iterable[schema.WorkJson]) -> list[schema.WorkJson]:
    """Works in the library first, then works with a title, then the most cited."""
    return sorted(items, key=lambda work: (not work.paper, not work.title, -(work.cited or 0)))
