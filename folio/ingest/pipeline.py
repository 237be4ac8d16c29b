"""The ingest pipeline: files -> pages -> text -> chunks -> vectors -> library.

Guarded processes read the PDFs (system/workers.py) while a thread embeds their passages. The caller's thread adds each
paper to the library once all its vectors are there (ingest/queue.py). The FAISS and BM25 indexes are updated at the
end (indexes.py).
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Container, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

from folio.errors import PaperBusy, PaperError, PaperLimit, SlowDrawing
from folio.ingest import chunking, cleaning
from folio.ingest import queue as paper_vectors
from folio.ingest import sections as section_tree
from folio.ingest.discovery import IngestProgress, Outcome, Status, is_gone
from folio.ingest.queue import Added, EmbeddedPaper, EmbeddingQueue
from folio.ingest.scanned_pages import ScannedPages
from folio.papers.model import Failure, NewPaper, Page, Paper, SourceFile
from folio.pdf import ocr, reader
from folio.pdf.damage import TORN
from folio.pdf.limits import PAGE_RANGES, PROBLEMS
from folio.pdf.ocr import NotScannedYet, Scan
from folio.pdf.reader import ENCODED, LIMITED, NO_TIME, NOT_CHECKED, NOT_READ, UNFINISHED
from folio.protocols import Embedder
from folio.store.claims import Claims
from folio.store.fingerprint import Reading, fingerprint, reading_fingerprint
from folio.store.library import Library
from folio.system import workers
from folio.version import __version__

_MORE_PROBLEMS = "other problems"
# Problems of pages that a later ingest may be able to read
_MAY_CHANGE = (NOT_READ, NO_TIME, NOT_CHECKED, ENCODED)
# The order of problems in a message: first the pages that are not in the index, wholly or in part
_SEVERITY = (TORN, f"{ENCODED};", NOT_READ, ENCODED, "cannot be read", NO_TIME, "to read", NOT_CHECKED, "hidden text")
# The share of a file's time limit that the layout model may use (reader.py)
_MODEL_SHARE = 0.75
# A worker's time limit is in seconds of processor time. A worker that takes this many times as long by the clock hangs.
_PATIENCE = 5
# Seconds between checks of the files that other writers are adding; the last one is used from then on
_WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0)
NOTHING_SCANNED = ScannedPages(None)
# In the record of a failure: separates the file's SHA-256 from the digest of the conditions
_CONDITIONS_MARK = "+"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on reading one file, or one page of it by OCR, and the number of worker processes."""

    jobs: int
    timeout_s: float
    memory_mb: int
    max_file_mb: int

    @property
    def model_s(self) -> float:
        """The work that the layout model may do, in seconds; see reader.read_content."""
        return _MODEL_SHARE * self.timeout_s

    @property
    def patience_s(self) -> float:
        """The limit by the clock, in seconds."""
        return _PATIENCE * self.timeout_s


# A file that was read, or the event that a future is done
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
    claims: Claims,
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
    read again although they failed before, or had pages that OCR may be able to read now. read: reads the files; None
    for guarded workers on this computer, which keep the pages read by OCR in `scans`. The caller holds the writer lock.
    """
    read = read or partial(_read_papers, reading=reading, limits=limits, progress=progress, scans=scans)
    make_embedder = partial(_make_embedder, library, get_embedder, reading)
    current = {file.path: file.sha256 for file in files}
    remaining, waits = files, iter(_WAITS_S)
    while True:
        stored = {file.path: file.sha256 for file in library.files()}
        claimed = _Claimed(claims, frozenset(stored.values()))
        failure_key = partial(_failure_key, reading=reading, limits=limits)
        plan = _plan(library, remaining, stored, retry, _unfinished(scans, reading, limits), failure_key)
        yield from plan.outcomes
        yield from _link(library, plan.moved, current)  # before new papers take over their old paths
        with closing(EmbeddingQueue(library, make_embedder, batch, progress.embedded)) as queue:
            progress.planned(list(plan.new.values()))
            # Closed here: closed by the garbage collector as the program ends, it would wait for threads that are gone.
            with closing(read(claimed.files(plan.new.values()), queue.pending_futures)) as results:
                added = _add_papers(queue, results)
                for outcome in _outcomes(library, plan, stored, added, claimed, current, failure_key):
                    _forget_scans(scans, outcome, _conditions(reading, limits))
                    yield outcome
        if not claimed.deferred:
            break
        remaining = claimed.deferred
        time.sleep(next(waits, _WAITS_S[-1]))
        retry = frozenset()
    paper_vectors.refresh(library, make_embedder, batch)
    library.forget_pending()


class _Claimed:
    """Claims files for this ingest, and defers those that other writers of the library are adding."""

    def __init__(self, claims: Claims, stored: frozenset[str]) -> None:
        """stored: the papers in the library when the ingest was planned."""
        self.deferred: list[SourceFile] = []
        self.claims, self._stored = claims, stored

    def files(self, files: Iterable[SourceFile]) -> Iterator[SourceFile]:
        """The files that this ingest adds; each is claimed when it is yielded."""
        for file in files:
            if self.claims.claim(file, is_known=file.sha256 in self._stored):
                yield file
            else:
                self.deferred.append(file)


def _outcomes(
    library: Library,
    plan: _Plan,
    stored: Mapping[str, str],
    added: Iterable[Added],
    claimed: _Claimed,
    current: dict[str, str],
    failure_key: Callable[[str], str],
) -> Iterator[Outcome]:
    """The outcomes of the plan's new files, and of their copies.

    stored: path -> SHA-256 in the library before. current: see _link. failure_key: see _failure_key.
    """
    failed: dict[str, PaperError] = {}
    for file, result in added:
        if isinstance(result, PaperError):
            failed[file.sha256] = result
            outcome = _record_failure(library, file, result, failure_key)
        else:
            status: Status = "replaced" if file.path in stored else "added"
            outcome = Outcome(file, status, len(result.pages.starts), len(result.spans), result.problems)
        claimed.claims.release(file)
        yield outcome
    deferred = {file.sha256 for file in claimed.deferred}
    for file in plan.copies:
        if file.sha256 in failed:
            yield _record_failure(library, file, failed[file.sha256], failure_key)
    claimed.deferred += [file for file in plan.copies if file.sha256 in deferred]
    yield from _link(library, [file for file in plan.copies if file.sha256 not in failed.keys() | deferred], current)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to do with the files of an ingest."""

    outcomes: list[Outcome] = field(default_factory=list)  # of files that need no work
    new: dict[str, SourceFile] = field(default_factory=dict)  # SHA-256 -> the file to read
    moved: list[SourceFile] = field(default_factory=list)  # moved or copied files whose papers are in the library
    copies: list[SourceFile] = field(default_factory=list)  # of files in `new`


def _plan(
    library: Library,
    files: Sequence[SourceFile],
    stored: Mapping[str, str],
    retry: Container[str],
    unfinished: Container[str],
    failure_key: Callable[[str], str],
) -> _Plan:
    """What to do with each file.

    stored: path -> SHA-256 of the files in the library. unfinished: the SHA-256s of files with pages that OCR has not
    finished. failure_key: see _failure_key.
    """
    plan = _Plan()
    failures = {failure.file.path: failure for failure in library.failures()}
    papers = set(stored.values())
    for file in files:
        failure = failures.get(file.path)
        again = file.sha256 in unfinished or file.path in retry
        if stored.get(file.path) == file.sha256 and not (again and _may_read_better(library, file)):
            if failure:
                library.forget_failure(file.path)
            plan.outcomes.append(Outcome(file, "unchanged"))
        elif failure and file.path not in retry and (why := _why_skipped(failure, file, failure_key)):
            plan.outcomes.append(Outcome(file, "failed", notes=(failure.happened, failure.remedy, why)))
        elif file.sha256 in papers and stored.get(file.path) != file.sha256:
            plan.moved.append(file)
        elif file.sha256 in plan.new:
            plan.copies.append(file)
        else:
            plan.new[file.sha256] = file
    return plan


def _why_skipped(failure: Failure, file: SourceFile, failure_key: Callable[[str], str]) -> str:
    """Why a file that could not be read is not read again; "" if it is, because the result may differ."""
    if failure.file.sha256 == file.sha256:
        return "Not tried again: the file has not changed."
    if failure.file.sha256.startswith(f"{file.sha256}{_CONDITIONS_MARK}") and failure.file.sha256 == failure_key(
        file.sha256
    ):
        return "Not tried again: the file, the settings and the OCR engine have not changed."
    return ""


def _failure_key(sha256: str, reading: Reading, limits: Limits) -> str:
    """A file's SHA-256 with the conditions under which it was read, for the record of a failure by a limit."""
    return f"{sha256}{_CONDITIONS_MARK}{_conditions(reading, limits)}"


def _conditions(reading: Reading, limits: Limits) -> str:
    """A digest of the version, the settings and the OCR engine: they decide whether a file or page exceeds a limit."""
    how = (__version__, reading_fingerprint(reading), reading.ocr and _engine(), replace(limits, jobs=1))
    return hashlib.blake2b(repr(how).encode(), digest_size=8).hexdigest()


def prune(library: Library, scans: ScannedPages = NOTHING_SCANNED) -> Iterator[Outcome]:
    """Remove every missing file and its paper. If its whole folder is missing, keep it: a disk may be unplugged."""
    files = [*(failure.file for failure in library.failures()), *library.files()]
    for file in {file.path: file for file in files}.values():
        if is_gone(Path(file.path)):
            yield _drop(library, file, scans)
        elif not Path(file.path).parent.is_dir():
            yield Outcome(file, "unchanged", notes=("Kept, because its whole folder is missing.",))


def remove(library: Library, paths: Collection[str], scans: ScannedPages = NOTHING_SCANNED) -> Iterator[Outcome]:
    """Remove these files, and their papers, unless they are back."""
    files = [*(failure.file for failure in library.failures()), *library.files()]
    for file in {file.path: file for file in files if file.path in paths}.values():
        if not os.path.lexists(file.path):
            yield _drop(library, file, scans)


def _drop(library: Library, file: SourceFile, scans: ScannedPages) -> Outcome:
    library.drop(file.path)
    if sha256 := file.sha256.partition(_CONDITIONS_MARK)[0]:
        scans.forget(sha256)
    return Outcome(file, "pruned")


def record(library: Library, papers: Sequence[Paper]) -> list[dict[str, object]]:
    """The papers of the library and the files that could not be read, in the format of ingested.json.

    papers: all of the library, in the caller's snapshot. Raises StoreDamaged.
    """
    with library.database.rows_expected():
        return _papers_read(library, papers) + _failures(library)


def _papers_read(library: Library, papers: Sequence[Paper]) -> list[dict[str, object]]:
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
        for paper in papers
    ]


def _failures(library: Library) -> list[dict[str, object]]:
    return [
        {
            "file": failure.file.name,
            "sha256": failure.file.sha256.partition(_CONDITIONS_MARK)[0],
            "failed": failure.happened,
            "remedy": failure.remedy,
            "paths": [failure.file.path],
        }
        for failure in library.failures()
    ]


def read_paper(file: SourceFile, reading: Reading, max_file_mb: int) -> NewPaper:
    """Read, clean and split one file, pages of OCR included. Raises PaperError."""
    return paper_of(file, checked_content(file, max_file_mb), reading)


@dataclass(frozen=True, slots=True)
class Part:
    """One job of a worker: OCR of one page of a file, or reading the whole file."""

    file: SourceFile
    page: int | None = None  # from 0; None for the whole file
    scans: Mapping[int, Scan] = field(default_factory=dict)  # page index -> its OCR, for the whole file
    draw_apart: bool = False  # whether an attempt to read the whole file ended in a slow drawing

    @property
    def sha256(self) -> str:
        return self.file.sha256


@dataclass(frozen=True, slots=True)
class Unscanned:
    """A file that cannot be read before OCR has read these of its pages (indexes from 0). of: the number of all."""

    pages: tuple[int, ...]
    of: int


def read_part(part: Part, reading: Reading, max_file_mb: int, seconds: float) -> NewPaper | Unscanned | Scan:
    """Read a part of a file. Runs in a worker process. Raises PaperError. seconds: see read_paper."""
    return part_of(part, checked_content(part.file, max_file_mb), reading, seconds)


def part_of(part: Part, content: bytes, reading: Reading, seconds: float) -> NewPaper | Unscanned | Scan:
    """read_part on the content of a file."""
    if part.page is not None:
        return reader.scan(content, part.page)
    try:
        return paper_of(part.file, content, reading, seconds, part.scans, draw_apart=part.draw_apart)
    except NotScannedYet as missing:
        return Unscanned(missing.pages, missing.of)


def checked_content(file: SourceFile, max_file_mb: int) -> bytes:
    """The bytes of a file, checked against its SHA-256.

    Raises PaperLimit if it is too large, and PaperBusy if it cannot be read or has changed since it was hashed.
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
    *,
    draw_apart: bool = False,
) -> NewPaper:
    """Clean and split the content of a file. Runs in a worker process. Raises PaperError.

    seconds, scans, draw_apart: see reader.read_content.
    """
    options = reader.ReadOptions(
        layout=reading.parser == "layout", ocr=reading.ocr, seconds=seconds, scans=scans, draw_apart=draw_apart
    )
    parsed = reader.read_content(content, Path(file.path).name, **options)
    if cleaning.is_numbers_alone(parsed.pages):
        raise PaperError("The file has no text but the numbers of its pages.", reader.OCR_OR_OUT)
    text, pages = cleaning.clean(parsed.pages)
    if not any(map(str.isalnum, text)):
        raise PaperError("No text is left after cleaning.", "Run OCR on it, for example `ocrmypdf in.pdf out.pdf`.")
    problems = tuple(sorted((*_page_problems(parsed.pages), *parsed.problems), key=_severity))
    sections = section_tree.sections(parsed.headings, text, pages)
    spans, fine = chunking.chunk_text(text, reading, sections)
    return NewPaper(file.sha256, parsed.metadata, text, pages, spans, problems, sections, fine)


def _add_papers(queue: EmbeddingQueue, results: Iterable[Read]) -> Iterator[Added]:
    """Embed and add papers; yields each file with its paper once that is in the library, or with its error."""
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
    """Whether a paper has pages that may be readable now. A paper with several files is not read again."""
    with library.database.rows_expected():
        paper = library.papers_by_id([file.sha256])[0]
    has_one_file = sum(other.sha256 == file.sha256 for other in library.files()) == 1
    return has_one_file and any(reason in problem for problem in paper.problems for reason in _MAY_CHANGE)


def _severity(problem: str) -> int:
    """The rank of a problem: pages that were not read, then pages that were read in another way, then all others."""
    return next((place for place, reason in enumerate(_SEVERITY) if reason in problem), len(_SEVERITY))


def _page_problems(pages: Sequence[Page]) -> Iterator[str]:
    """The problems of pages, grouped: "pp. 2-4, 9: no text". At most PROBLEMS; those of _MAY_CHANGE are kept first."""
    numbers: dict[str, list[int]] = {}
    for page in pages:
        if page.problem:
            numbers.setdefault(page.problem, []).append(page.number)
    if len(numbers) > PROBLEMS:
        first = sorted(numbers, key=lambda problem: not any(reason in problem for reason in _MAY_CHANGE))
        for problem in first[PROBLEMS - 1 :]:
            numbers.setdefault(_MORE_PROBLEMS, []).extend(numbers.pop(problem))
        numbers[_MORE_PROBLEMS].sort()
    for problem, affected in numbers.items():
        runs: list[list[int]] = []
        for number in affected:
            if runs and number == runs[-1][1] + 1:
                runs[-1][1] = number
            else:
                runs.append([number, number])
        listed = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs[:PAGE_RANGES])
        more = sum(last - first + 1 for first, last in runs[PAGE_RANGES:])
        yield f"{'p.' if len(affected) == 1 else 'pp.'} {listed}{f' and {more:,} more' if more else ''}: {problem}"


def _read_papers(
    files: Iterable[SourceFile],
    extra_futures: Callable[[], Sequence[Future[Any]]],
    *,
    reading: Reading,
    limits: Limits,
    progress: IngestProgress,
    scans: ScannedPages,
) -> Generator[Read, None, None]:
    """Read the files with a text layer; then the pages of scans, each under the limits of a file."""
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
            for result in results:
                if isinstance(result, workers.Woken):
                    yield result
                elif (paper := scanning.take(*result)) is not None:
                    yield workers.Finished(result.item.file, paper)


class Scanning:
    """The parts of scanned files that are still to be read: an iterator that may have more parts after each result."""

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
        self._of: dict[SourceFile, int] = {}  # file -> the number of its pages
        self._left: dict[SourceFile, int] = {}  # file -> the number of its pages without a result
        self._pages: deque[Part] = deque()
        self._whole: deque[Part] = deque()  # files whose pages all have a result, and files to read again
        self._drawn_apart: set[SourceFile] = set()

    def __iter__(self) -> Iterator[Part]:
        return self

    def __next__(self) -> Part:
        if self._whole:
            return self._whole.popleft()
        if self._pages:
            return self._pages.popleft()
        raise StopIteration

    def take(self, part: Part, result: NewPaper | Unscanned | Scan | PaperError) -> NewPaper | PaperError | None:
        """Take the result of a part. Returns the file's paper or error once it is read, None before that."""
        if part.page is not None:
            assert not isinstance(result, NewPaper | Unscanned)
            self._take_page(part.file, part.page, _as_scan(result))
            return None
        if isinstance(result, SlowDrawing) and not part.draw_apart:
            self._drawn_apart.add(part.file)
            self._whole.append(replace(part, draw_apart=True))
            return None
        if isinstance(result, Unscanned):
            self._of[part.file] = result.of
            self._begin(part.file, result.pages, part.scans)
            return None
        assert not isinstance(result, Scan)
        return result

    def _begin(self, file: SourceFile, pages: Sequence[int], scans: Mapping[int, Scan]) -> None:
        """Queue these pages of a file, except those that an earlier run has read."""
        self._scans.begin(file.sha256, _engine())
        self._read[file] = {**self._scans.read(file.sha256, _engine(), self._conditions), **scans}
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
        self._scanned(file, self._of[file] - self._left[file], self._of[file])
        if not self._left[file]:
            self._whole.append(Part(file, None, self._read.pop(file), file in self._drawn_apart))


def _as_scan(result: Scan | PaperError) -> Scan:
    """The result of OCR on a page, also if its worker was stopped."""
    if isinstance(result, Scan):
        return result
    why = result.happened.replace("the file", "the page").rstrip(".")
    is_limit = isinstance(result, PaperLimit) and not isinstance(result, PaperBusy)
    stopped_by: Any = "limit" if is_limit else "computer" if isinstance(result, PaperBusy) else ""
    return Scan([], f"did not finish ({why[0].lower()}{why[1:]})", stopped_by)


def _engine() -> str:
    """The identity of the OCR engine; "" if none is installed."""
    engine = ocr.engine()
    return engine.identity if engine else ""


def _unfinished(scans: ScannedPages, reading: Reading, limits: Limits) -> frozenset[str]:
    """The SHA-256s of files with pages that OCR has not finished, and may be able to finish now."""
    if not reading.ocr or scans.is_empty or not _engine():
        return frozenset()
    return scans.unfinished(_conditions(reading, limits))


def _forget_scans(scans: ScannedPages, outcome: Outcome, conditions: str) -> None:
    """Delete the OCR pages of a paper that was added completely; for another one, note when to read it again."""
    if outcome.status not in ("added", "replaced"):
        return
    is_unfinished, is_limited = (any(why in note for note in outcome.notes) for why in (UNFINISHED, LIMITED))
    if is_unfinished or is_limited:
        scans.note_unfinished(outcome.file.sha256, "" if is_unfinished else conditions)
    elif not scans.is_empty:
        scans.forget(outcome.file.sha256)


def _link(library: Library, files: Sequence[SourceFile], current: dict[str, str]) -> Iterator[Outcome]:
    """Link files whose papers are in the library already: copies, or files that were moved.

    current: path -> SHA-256 of every file of this ingest; a path in the library may hold another paper now.
    """
    if not files:
        return
    papers = {file.sha256 for file in files}
    linked = [other for other in library.files() if other.sha256 in papers]
    gone = [other.path for other in linked if not Path(other.path).exists()]
    library.link(files, gone)
    for file in files:
        same_paper = [other for other in linked if other.sha256 == file.sha256]
        copies = [o for o in same_paper if o.path not in gone and current.get(o.path, o.sha256) == o.sha256]
        note = f"The same file as {copies[0].name}." if copies else f"Moved from {same_paper[0].name}."
        yield Outcome(file, "duplicate", notes=(note,))


def _record_failure(
    library: Library, file: SourceFile, error: PaperError, failure_key: Callable[[str], str]
) -> Outcome:
    # A file that failed because the computer was busy may succeed later: recorded without a hash, it counts as new.
    sha256 = file.sha256
    if isinstance(error, PaperLimit):
        sha256 = "" if isinstance(error, PaperBusy) else failure_key(sha256)
    library.record_failure(Failure(replace(file, sha256=sha256), error.happened, error.remedy))
    return Outcome(file, "failed", notes=(error.happened, error.remedy))
