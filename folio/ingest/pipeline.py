"""The ingest pipeline: files -> pages -> text -> chunks -> vectors -> library.

Guarded worker processes read the PDFs (workers.py) while a thread embeds their passages. The caller's thread adds each
paper to the library once all its vectors are there (embedding_queue.py). The FAISS and BM25 indexes are updated at the
end (indexes.py).
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import deque
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

import folio
from folio import workers
from folio.errors import PaperBusy, PaperError, PaperLimit
from folio.ingest import chunking, cleaning, paper_vectors, section_tree
from folio.ingest.discovery import is_gone
from folio.ingest.embedding_queue import Added, EmbeddedPaper, EmbeddingQueue
from folio.ingest.progress import IngestProgress, Outcome, Status
from folio.ingest.scanned_pages import ScannedPages
from folio.pdf import ocr, reader
from folio.pdf.limits import PAGE_RANGES, PROBLEMS
from folio.pdf.no_text import ENCODED, LIMITED, NO_TIME, NOT_CHECKED, NOT_READ, UNFINISHED
from folio.pdf.ocr import NotScannedYet, Scan
from folio.protocols import Embedder
from folio.store.fingerprint import Reading, fingerprint, reading_fingerprint
from folio.store.library import Library
from folio.types import Failure, NewPaper, Page, SourceFile

_MORE_PROBLEMS = "other problems"
# Problems of pages that a later ingest may read better
_MAY_CHANGE = (NOT_READ, NO_TIME, NOT_CHECKED, ENCODED)
# What a person must know first: the pages that are not in the index
_SEVERITY = (f"{ENCODED};", NOT_READ, ENCODED, "cannot be read", NO_TIME, "to read", NOT_CHECKED, "hidden text")
# The layout model may do work that takes an ordinary core this share of a file's time limit (reader.py).
_MODEL_SHARE = 0.75
# A worker gets its time in seconds of its processor. This many times as long by the clock, and it must be hanging.
_PATIENCE = 5
# Seconds between looks at what other writers are adding: the first, the second, and all others
_WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0)
NOTHING_SCANNED = ScannedPages(None)
# In the record of a failure: stands between the file's SHA-256 and that of what it was read with
_WITH = "+"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on reading one file, or one page of it by OCR, and the number of worker processes."""

    jobs: int
    timeout_s: float
    memory_mb: int
    max_file_mb: int

    @property
    def model_s(self) -> float:
        """Seconds of work of the layout model, see reader.read_content."""
        return _MODEL_SHARE * self.timeout_s

    @property
    def patience_s(self) -> float:
        """Seconds by the clock."""
        return _PATIENCE * self.timeout_s


# A file that was read, or word that something else is done
Read = workers.Finished[SourceFile, NewPaper | EmbeddedPaper] | workers.Woken


class PaperReader(Protocol):
    """Reads files, and may embed their passages."""

    def __call__(
        self, files: Iterable[SourceFile], extra_futures: Callable[[], Sequence[Future[Any]]], /
    ) -> Generator[Read, None, None]:
        """Each file with its paper or its PaperError, as it is read. extra_futures: see workers.run_guarded."""
        ...


def ingest(
    library: Library,
    files: Sequence[SourceFile],
    get_embedder: Callable[[], Embedder],
    reading: Reading,
    limits: Limits,
    progress: IngestProgress,
    *,
    batch: int,
    retry: frozenset[str] = frozenset(),
    read: PaperReader | None = None,
    scans: ScannedPages = NOTHING_SCANNED,
) -> Iterator[Outcome]:
    """Bring the library up to date with these files; yields an outcome for each file as it is done.

    get_embedder is called when there is something to embed. batch: passages per call of the embedder. retry: paths to
    read again although they failed before, or had pages that OCR may be able to read now. read: what reads the files;
    None for guarded workers on this computer. scans: where they keep the pages that OCR has read. The caller holds the
    writer lock.
    """
    read = read or partial(_read_papers, reading=reading, limits=limits, progress=progress, scans=scans)
    make_embedder = partial(_make_embedder, library, get_embedder, reading)
    now = {file.path: file.sha256 for file in files}
    left, waits = files, iter(_WAITS_S)
    while True:
        known = {file.path: file.sha256 for file in library.files()}
        others = _Others(library, frozenset(known.values()))
        tried_with = partial(_tried_with, reading=reading, limits=limits)
        plan = _plan(library, left, known, retry, _unfinished(scans, reading, limits), tried_with)
        yield from plan.outcomes
        yield from _link(library, plan.moved, now)  # before new papers take over their old paths
        with closing(EmbeddingQueue(library, make_embedder, batch, progress.embedded)) as queue:
            progress.planned(list(plan.new.values()))
            # Closed here: a garbage collector that closes it as the program ends waits for threads that are gone.
            with closing(read(others.claimed(plan.new.values()), queue.pending_futures)) as results:
                for outcome in _bring_in(library, plan, known, _add_papers(queue, results), others, now, tried_with):
                    _forget_scans(scans, outcome, _conditions(reading, limits))
                    yield outcome
        if not others.files:
            break
        left = others.files
        time.sleep(next(waits, _WAITS_S[-1]))
        retry = frozenset()
    paper_vectors.refresh(library, make_embedder, batch)
    library.forget_pending()


class _Others:
    """The files that other writers of the library are adding: they are looked at again when the rest is done."""

    def __init__(self, library: Library, known: frozenset[str]) -> None:
        """known: the papers that were there when this was planned."""
        self.files: list[SourceFile] = []
        self._library, self._known = library, known

    def claimed(self, files: Iterable[SourceFile]) -> Iterator[SourceFile]:
        """The files that are ours, each when it is taken."""
        for file in files:
            if self._library.claim(file, is_known=file.sha256 in self._known):
                yield file
            else:
                self.files.append(file)


def _bring_in(
    library: Library,
    plan: _Plan,
    known: Mapping[str, str],
    added: Iterable[Added],
    others: _Others,
    now: dict[str, str],
    tried_with: Callable[[str], str],
) -> Iterator[Outcome]:
    """The outcomes of the plan's new files, and of their copies.

    known: path -> SHA-256 before. now: see _link. tried_with: see _tried_with.
    """
    failed: dict[str, PaperError] = {}
    for file, result in added:
        if isinstance(result, PaperError):
            failed[file.sha256] = result
            outcome = _record_failure(library, file, result, tried_with)
        else:
            status: Status = "replaced" if file.path in known else "added"
            outcome = Outcome(file, status, len(result.pages.starts), len(result.spans), result.problems)
        library.release(file)
        yield outcome
    elsewhere = {file.sha256 for file in others.files}
    for file in plan.copies:
        if file.sha256 in failed:
            yield _record_failure(library, file, failed[file.sha256], tried_with)
    others.files += [file for file in plan.copies if file.sha256 in elsewhere]
    yield from _link(library, [file for file in plan.copies if file.sha256 not in failed.keys() | elsewhere], now)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to do with the files of an ingest."""

    outcomes: list[Outcome] = field(default_factory=list)  # of files that need no work
    new: dict[str, SourceFile] = field(default_factory=dict)  # SHA-256 -> the file to read
    moved: list[SourceFile] = field(default_factory=list)  # moved or copied: their paper is in the library already
    copies: list[SourceFile] = field(default_factory=list)  # of files in `new`


def _plan(
    library: Library,
    files: Sequence[SourceFile],
    known: Mapping[str, str],
    retry: Container[str],
    unfinished: Container[str],
    tried_with: Callable[[str], str],
) -> _Plan:
    """known: path -> SHA-256 of the files in the library. unfinished: files whose pages OCR has not finished.

    tried_with: see _tried_with.
    """
    plan = _Plan()
    failures = {failure.file.path: failure for failure in library.failures()}
    papers = set(known.values())
    for file in files:
        failure = failures.get(file.path)
        again = file.sha256 in unfinished or file.path in retry
        if known.get(file.path) == file.sha256 and not (again and _may_read_better(library, file)):
            if failure:
                library.forget_failure(file.path)
            plan.outcomes.append(Outcome(file, "unchanged"))
        elif failure and file.path not in retry and (why := _not_again(failure, file, tried_with)):
            plan.outcomes.append(Outcome(file, "failed", notes=(failure.happened, failure.remedy, why)))
        elif file.sha256 in papers and known.get(file.path) != file.sha256:
            plan.moved.append(file)
        elif file.sha256 in plan.new:
            plan.copies.append(file)
        else:
            plan.new[file.sha256] = file
    return plan


def _not_again(failure: Failure, file: SourceFile, tried_with: Callable[[str], str]) -> str:
    """Why a file that could not be read is not read again; "" if that may end otherwise."""
    if failure.file.sha256 == file.sha256:
        return "Not tried again: the file has not changed."
    if failure.file.sha256.startswith(f"{file.sha256}{_WITH}") and failure.file.sha256 == tried_with(file.sha256):
        return "Not tried again: neither the file nor what it is read with has changed."
    return ""


def _tried_with(sha256: str, reading: Reading, limits: Limits) -> str:
    """A file with the conditions that it was read under."""
    return f"{sha256}{_WITH}{_conditions(reading, limits)}"


def _conditions(reading: Reading, limits: Limits) -> str:
    """A digest of everything but a file's content that decides whether it, or a page of it, runs into a limit: other
    settings, another engine or version may read it."""
    how = (folio.__version__, reading_fingerprint(reading), reading.ocr and _engine(), replace(limits, jobs=1))
    return hashlib.blake2b(repr(how).encode(), digest_size=8).hexdigest()


def prune(library: Library, scans: ScannedPages = NOTHING_SCANNED) -> Iterator[Outcome]:
    """Remove every file that is gone, and its paper; if the whole folder is gone, keep it: a disk may be absent."""
    files = [*(failure.file for failure in library.failures()), *library.files()]
    for file in {file.path: file for file in files}.values():
        if is_gone(Path(file.path)):
            library.drop(file.path)
            if sha256 := file.sha256.partition(_WITH)[0]:
                scans.forget(sha256)
            yield Outcome(file, "pruned")
        elif not Path(file.path).parent.is_dir():
            yield Outcome(file, "unchanged", notes=("Kept, because its whole folder is missing.",))


def record(library: Library) -> list[dict[str, object]]:
    """The papers of the library and the files that could not be read, in the format of ingested.json.

    Raises StoreDamaged.
    """
    with library.reading(), library.database.rows_expected():
        return _papers_read(library) + _failures(library)


def _papers_read(library: Library) -> list[dict[str, object]]:
    files: dict[str, list[str]] = {}
    for file in library.files():
        files.setdefault(file.sha256, []).append(file.path)
    added = library.added()
    return [
        {
            "file": paper.file,
            "sha256": paper.id,
            "title": paper.title,
            "authors": list(paper.authors),
            "year": paper.year,
            "venue": (about := paper.metadata).venue.value,
            "doi": about.doi.value,
            "arxiv": paper.arxiv,
            "pages": paper.page_count,
            "chunks": paper.chunks,
            "added": added[paper.id],
            "paths": files[paper.id],
            "problems": list(paper.problems),
        }
        for paper in library.papers()
    ]


def _failures(library: Library) -> list[dict[str, object]]:
    return [
        {
            "file": failure.file.name,
            "sha256": failure.file.sha256.partition(_WITH)[0],
            "failed": failure.happened,
            "remedy": failure.remedy,
            "paths": [failure.file.path],
        }
        for failure in library.failures()
    ]


def read_paper(file: SourceFile, reading: Reading, max_file_mb: int, seconds: float = math.inf) -> NewPaper:
    """Read, clean and split one file, pages of OCR included. Raises PaperError.

    The file is read once. seconds: the work of the layout model, as in reader.read_content.
    """
    return paper_of(file, checked_content(file, max_file_mb), reading, seconds)


@dataclass(frozen=True, slots=True)
class Part:
    """What a worker reads of a file at a time: one page of it by OCR, or all of it, given the pages by OCR."""

    file: SourceFile
    page: int | None = None  # from 0
    scans: Mapping[int, Scan] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        return self.file.sha256


@dataclass(frozen=True, slots=True)
class Unscanned:
    """Pages of a file, from 0, that OCR has to read before the file can be read."""

    pages: tuple[int, ...]


def read_part(part: Part, reading: Reading, max_file_mb: int, seconds: float) -> NewPaper | Unscanned | Scan:
    """Read a part of a file. Runs in a worker process. Raises PaperError. seconds: see read_paper."""
    return part_of(part, checked_content(part.file, max_file_mb), reading, seconds)


def part_of(part: Part, content: bytes, reading: Reading, seconds: float) -> NewPaper | Unscanned | Scan:
    """The same of the content of a file."""
    if part.page is not None:
        return reader.scan(content, part.page)
    try:
        return paper_of(part.file, content, reading, seconds, part.scans)
    except NotScannedYet as missing:
        return Unscanned(missing.pages)


def checked_content(file: SourceFile, max_file_mb: int) -> bytes:
    """The bytes of a file, which have the hash in `file`.

    Raises PaperLimit, and PaperBusy for a file that was replaced since.
    """
    content = reader.read_file(Path(file.path), max_file_mb)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise PaperBusy(*reader.CHANGED)
    return content


def paper_of(
    file: SourceFile,
    content: bytes,
    reading: Reading,
    seconds: float = math.inf,
    scans: Mapping[int, Scan] | None = None,
) -> NewPaper:
    """Clean and split the content of a file. Runs in a worker process. Raises PaperError.

    seconds: see read_paper. scans: see reader.read_content.
    """
    name, layout = Path(file.path).name, reading.parser == "layout"
    parsed = reader.read_content(content, name, layout=layout, ocr=reading.ocr, seconds=seconds, scans=scans)
    text, pages = cleaning.clean(parsed.pages)
    if not any(map(str.isalnum, text)):
        raise PaperError("No text is left after cleaning.", "Run OCR on it, for example `ocrmypdf in.pdf out.pdf`.")
    problems = tuple(sorted((*_page_problems(parsed.pages), *parsed.problems), key=_severity))
    sections = section_tree.sections(parsed.headings, text, pages)
    spans, fine = chunking.chunked(text, reading, sections)
    return NewPaper(file.sha256, parsed.metadata, text, pages, spans, problems, sections, fine)


def _add_papers(queue: EmbeddingQueue, results: Iterable[Read]) -> Iterator[Added]:
    """Embed and add what was read; yields each file with its paper once that is in the library, or with its error."""
    for read in results:
        if isinstance(read, workers.Finished):
            file, result = read
            if isinstance(result, PaperError):
                yield file, result
            else:
                queue.put(file, result)
        yield from queue.advance(allow_partial=isinstance(read, workers.Woken))
    yield from queue.finish()


def _make_embedder(library: Library, get_embedder: Callable[[], Embedder], reading: Reading) -> Embedder:
    embedder = get_embedder()
    if not library.fingerprint():
        library.set_fingerprint(fingerprint(embedder, reading))
    return embedder


def _may_read_better(library: Library, file: SourceFile) -> bool:
    """Whether a paper has pages that may be read now. A paper of several files is not read again for one of them."""
    with library.database.rows_expected():
        paper = library.papers_by_id([file.sha256])[0]
    has_one_file = sum(other.sha256 == file.sha256 for other in library.files()) == 1
    return has_one_file and any(reason in problem for problem in paper.problems for reason in _MAY_CHANGE)


def _severity(problem: str) -> int:
    """The order in which problems are told: what was not read, what was read otherwise, and all else."""
    return next((place for place, reason in enumerate(_SEVERITY) if reason in problem), len(_SEVERITY))


def _page_problems(pages: Sequence[Page]) -> Iterator[str]:
    """The problems of pages, grouped: "pp. 2-4, 9: no text". Those that a later ingest may not have come first."""
    numbers: dict[str, list[int]] = {}
    for page in pages:
        if page.problem:
            numbers.setdefault(page.problem, []).append(page.number)
    if len(numbers) > PROBLEMS:
        first = sorted(numbers, key=lambda problem: not any(reason in problem for reason in _MAY_CHANGE))
        for problem in first[PROBLEMS - 1 :]:
            numbers.setdefault(_MORE_PROBLEMS, []).extend(numbers.pop(problem))
        numbers[_MORE_PROBLEMS].sort()
    for problem, found in numbers.items():
        runs: list[list[int]] = []
        for number in found:
            if runs and number == runs[-1][1] + 1:
                runs[-1][1] = number
            else:
                runs.append([number, number])
        listed = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs[:PAGE_RANGES])
        more = sum(last - first + 1 for first, last in runs[PAGE_RANGES:])
        yield f"{'p.' if len(found) == 1 else 'pp.'} {listed}{f' and {more:,} more' if more else ''}: {problem}"


def _read_papers(
    files: Iterable[SourceFile],
    extra_futures: Callable[[], Sequence[Future[Any]]],
    *,
    reading: Reading,
    limits: Limits,
    progress: IngestProgress,
    scans: ScannedPages,
) -> Generator[Read, None, None]:
    """Files with a text layer first; then the pages of scans, each under the limits of a file."""
    scanning = Scanning(scans, progress.scanned, reading, limits)
    for parts in (map(Part, files), scanning):
        results = workers.run_guarded(
            partial(read_part, reading=reading, max_file_mb=limits.max_file_mb, seconds=limits.model_s),
            parts,
            jobs=limits.jobs,
            timeout_s=limits.patience_s,
            cpu_s=limits.timeout_s,
            memory_mb=limits.memory_mb,
            extra_futures=extra_futures,
        )
        with closing(results):
            for found in results:
                if isinstance(found, workers.Woken):
                    yield found
                elif (paper := scanning.take(*found)) is not None:
                    yield workers.Finished(found.item.file, paper)


class Scanning:
    """The parts of scans that are still to be read: an iterator that may have more after each result."""

    def __init__(
        self,
        scans: ScannedPages,
        scanned: Callable[[SourceFile, int, int], None],
        reading: Reading,
        limits: Limits,
    ) -> None:
        """scanned: see IngestProgress."""
        self._scans, self._scanned = scans, scanned
        self._reading, self._limits = reading, limits
        self._read: dict[SourceFile, dict[int, Scan]] = {}
        self._left: dict[SourceFile, int] = {}  # pages of each file that have not come back
        self._pages: deque[Part] = deque()
        self._whole: deque[SourceFile] = deque()  # files whose pages have all come back

    def __iter__(self) -> Iterator[Part]:
        return self

    def __next__(self) -> Part:
        if self._whole:
            file = self._whole.popleft()
            return Part(file, None, self._read.pop(file))
        if self._pages:
            return self._pages.popleft()
        raise StopIteration

    def take(self, part: Part, result: NewPaper | Unscanned | Scan | PaperError) -> NewPaper | PaperError | None:
        """Note what has come back of a file; returns its paper, or why there is none, once that is known."""
        if part.page is not None:
            assert not isinstance(result, NewPaper | Unscanned)
            self._take_page(part.file, part.page, _as_scan(result))
            return None
        if isinstance(result, Unscanned):
            self._begin(part.file, result.pages, part.scans)
            return None
        assert not isinstance(result, Scan)
        return result

    def _begin(self, file: SourceFile, pages: Sequence[int], known: Mapping[int, Scan]) -> None:
        """Read these pages of a file, but those that an earlier run has read."""
        self._scans.begin(file.sha256, _engine())
        self._read[file] = {**self._scans.read(file.sha256, _engine(), self._conditions), **known}
        missing = [page for page in pages if page not in self._read[file]]
        self._left[file] = len(missing)
        self._pages += [Part(file, page) for page in missing]
        self._report(file)

    def _take_page(self, file: SourceFile, page: int, scan: Scan) -> None:
        if not scan.failed or scan.stopped_by == "limit":
            self._scans.keep(file.sha256, _engine(), page, scan, self._conditions)
        self._read[file][page] = scan
        self._left[file] -= 1
        self._report(file)

    @cached_property
    def _conditions(self) -> str:
        return _conditions(self._reading, self._limits)

    def _report(self, file: SourceFile) -> None:
        done = len(self._read[file])
        self._scanned(file, done, done + self._left[file])
        if not self._left[file]:
            self._whole.append(file)


def _as_scan(result: Scan | PaperError) -> Scan:
    """What came of a page, also where its worker was stopped."""
    if isinstance(result, Scan):
        return result
    why = result.happened.replace("the file", "the page").rstrip(".")
    is_limit = isinstance(result, PaperLimit) and not isinstance(result, PaperBusy)
    stopped_by: Any = "limit" if is_limit else "computer" if isinstance(result, PaperBusy) else ""
    return Scan([], f"did not finish ({why[0].lower()}{why[1:]})", stopped_by)


def _engine() -> str:
    """The identity of the OCR engine; "" for none."""
    found = ocr.engine()
    return found.identity if found else ""


def _unfinished(scans: ScannedPages, reading: Reading, limits: Limits) -> frozenset[str]:
    """The files with pages that OCR has not finished, and may be able to finish now."""
    if not reading.ocr or scans.is_empty or not _engine():
        return frozenset()
    return scans.unfinished(_conditions(reading, limits))


def _forget_scans(scans: ScannedPages, outcome: Outcome, conditions: str) -> None:
    """Delete the pages of a paper that is in the library whole; of another one, note when it is to be read again."""
    if outcome.status not in ("added", "replaced"):
        return
    is_unfinished, is_limited = (any(why in note for note in outcome.notes) for why in (UNFINISHED, LIMITED))
    if is_unfinished or is_limited:
        scans.note_unfinished(outcome.file.sha256, "" if is_unfinished else conditions)
    elif not scans.is_empty:
        scans.forget(outcome.file.sha256)


def _link(library: Library, files: Sequence[SourceFile], now: dict[str, str]) -> Iterator[Outcome]:
    """Link files whose papers are in the library already: copies, or files that were moved.

    now: path -> SHA-256 of every file of this ingest; a known path may hold another paper by now.
    """
    if not files:
        return
    papers = {file.sha256 for file in files}
    linked = [other for other in library.files() if other.sha256 in papers]
    gone = [other.path for other in linked if not Path(other.path).exists()]
    library.link(files, gone)
    for file in files:
        others = [other for other in linked if other.sha256 == file.sha256]
        kept = [o for o in others if o.path not in gone and now.get(o.path, o.sha256) == o.sha256]
        note = f"The same file as {kept[0].name}." if kept else f"Moved from {others[0].name}."
        yield Outcome(file, "duplicate", notes=(note,))


def _record_failure(library: Library, file: SourceFile, error: PaperError, tried_with: Callable[[str], str]) -> Outcome:
    # What the computer stopped may succeed at any time: recorded without its hash, the file counts as new then.
    sha256 = file.sha256
    if isinstance(error, PaperLimit):
        sha256 = "" if isinstance(error, PaperBusy) else tried_with(sha256)
    library.record_failure(Failure(replace(file, sha256=sha256), error.happened, error.remedy))
    return Outcome(file, "failed", notes=(error.happened, error.remedy))
