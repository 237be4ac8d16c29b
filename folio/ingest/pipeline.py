"""The ingest pipeline: files -> pages -> text -> chunks -> vectors -> library.

Guarded worker processes read the PDFs (workers.py) while a thread embeds their passages. The caller's thread adds each
paper to the library once all its vectors are there (embedding_queue.py). The FAISS and BM25 indexes are updated at the
end (indexes.py).
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from folio import workers
from folio.errors import PaperError, PaperLimit
from folio.ingest import chunking, cleaning, paper_vectors, section_tree
from folio.ingest.discovery import is_gone
from folio.ingest.embedding_queue import Added, EmbeddedPaper, EmbeddingQueue
from folio.ingest.progress import IngestProgress, Outcome, Status
from folio.pdf import reader
from folio.pdf.limits import PAGE_RANGES, PROBLEMS
from folio.pdf.no_text import ENCODED, NO_TIME, NOT_CHECKED, NOT_READ
from folio.protocols import Embedder
from folio.store.fingerprint import Reading, fingerprint
from folio.store.paper_store import PaperStore
from folio.types import Failure, NewPaper, Page, SourceFile

_MORE_PROBLEMS = "other problems"
# Problems of pages that a later ingest may read better
_MAY_CHANGE = (NOT_READ, NO_TIME, NOT_CHECKED, ENCODED)
# What a person must know first: the pages that are not in the index
_SEVERITY = (f"{ENCODED};", NOT_READ, ENCODED, "cannot be read", NO_TIME, "to read", NOT_CHECKED, "hidden text")
# The layout model and OCR may do work that takes an ordinary core this share of a file's time limit (reader.py).
_MODEL_SHARE = 0.75
# A worker gets its time in seconds of its processor. This many times as long by the clock, and it must be hanging.
_PATIENCE = 5
# Seconds between looks at what other writers are adding: the first, the second, and all others
_WAITS_S = (0.5, 1.0, 2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on reading one file, and the number of worker processes."""

    jobs: int
    timeout_s: float
    memory_mb: int
    max_file_mb: int

    @property
    def model_s(self) -> float:
        """Seconds of work of the layout model and OCR, see reader.read_content."""
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
    ) -> Iterator[Read]:
        """Each file with its paper or its PaperError, as it is read. extra_futures: see workers.run_guarded."""
        ...


def ingest(
    library: PaperStore,
    files: Sequence[SourceFile],
    get_embedder: Callable[[], Embedder],
    reading: Reading,
    limits: Limits,
    progress: IngestProgress,
    *,
    batch: int,
    retry: frozenset[str] = frozenset(),
    read: PaperReader | None = None,
) -> Iterator[Outcome]:
    """Bring the library up to date with these files; yields an outcome for each file as it is done.

    get_embedder is called when there is something to embed. batch: passages per call of the embedder. retry: paths to
    read again although they failed before, or had pages that OCR may be able to read now. read: what reads the files;
    None for guarded workers on this computer. The caller holds the writer lock.
    """
    read = read or partial(_read_papers, reading=reading, limits=limits)
    make_embedder = partial(_make_embedder, library, get_embedder, reading)
    now = {file.path: file.sha256 for file in files}
    left, waits = files, iter(_WAITS_S)
    while True:
        known = {file.path: file.sha256 for file in library.files()}
        others = _Others(library, frozenset(known.values()))
        plan = _plan(library, left, known, retry)
        yield from plan.outcomes
        yield from _link(library, plan.moved, now)  # before new papers take over their old paths
        with closing(EmbeddingQueue(library, make_embedder, batch, progress.embedded)) as queue:
            progress.planned(list(plan.new.values()))
            results = read(others.claimed(plan.new.values()), queue.pending_futures)
            yield from _bring_in(library, plan, known, _add_papers(queue, results), others, now)
        if not others.files:
            break
        left = others.files
        time.sleep(next(waits, _WAITS_S[-1]))
        retry = frozenset()
    paper_vectors.refresh(library, make_embedder, batch)
    library.forget_pending()


class _Others:
    """The files that other writers of the library are adding: they are looked at again when the rest is done."""

    def __init__(self, library: PaperStore, known: frozenset[str]) -> None:
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
    library: PaperStore,
    plan: _Plan,
    known: Mapping[str, str],
    added: Iterable[Added],
    others: _Others,
    now: dict[str, str],
) -> Iterator[Outcome]:
    """The outcomes of the plan's new files, and of their copies. known: path -> SHA-256 before. now: see _link."""
    failed: dict[str, PaperError] = {}
    for file, result in added:
        if isinstance(result, PaperError):
            failed[file.sha256] = result
            outcome = _record_failure(library, file, result)
        else:
            status: Status = "replaced" if file.path in known else "added"
            outcome = Outcome(file, status, len(result.pages.starts), len(result.spans), result.problems)
        library.release(file)
        yield outcome
    elsewhere = {file.sha256 for file in others.files}
    for file in plan.copies:
        if file.sha256 in failed:
            yield _record_failure(library, file, failed[file.sha256])
    others.files += [file for file in plan.copies if file.sha256 in elsewhere]
    yield from _link(library, [file for file in plan.copies if file.sha256 not in failed.keys() | elsewhere], now)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to do with the files of an ingest."""

    outcomes: list[Outcome] = field(default_factory=list)  # of files that need no work
    new: dict[str, SourceFile] = field(default_factory=dict)  # SHA-256 -> the file to read
    moved: list[SourceFile] = field(default_factory=list)  # moved or copied: their paper is in the library already
    copies: list[SourceFile] = field(default_factory=list)  # of files in `new`


def _plan(library: PaperStore, files: Sequence[SourceFile], known: Mapping[str, str], retry: Container[str]) -> _Plan:
    """known: path -> SHA-256 of the files in the library."""
    plan = _Plan()
    failures = {failure.file.path: failure for failure in library.failures()}
    papers = set(known.values())
    for file in files:
        failure = failures.get(file.path)
        if known.get(file.path) == file.sha256 and not (file.path in retry and _may_read_better(library, file)):
            if failure:
                library.forget_failure(file.path)
            plan.outcomes.append(Outcome(file, "unchanged"))
        elif failure and failure.file.sha256 == file.sha256 and file.path not in retry:
            notes = (failure.happened, failure.remedy, "Not tried again: the file has not changed.")
            plan.outcomes.append(Outcome(file, "failed", notes=notes))
        elif file.sha256 in papers and known.get(file.path) != file.sha256:
            plan.moved.append(file)
        elif file.sha256 in plan.new:
            plan.copies.append(file)
        else:
            plan.new[file.sha256] = file
    return plan


def prune(library: PaperStore) -> Iterator[Outcome]:
    """Remove every file that is gone, and its paper; if the whole folder is gone, keep it: a disk may be absent."""
    files = [*(failure.file for failure in library.failures()), *library.files()]
    for file in {file.path: file for file in files}.values():
        if is_gone(Path(file.path)):
            library.drop(file.path)
            yield Outcome(file, "pruned")
        elif not Path(file.path).parent.is_dir():
            yield Outcome(file, "unchanged", notes=("Kept, because its whole folder is missing.",))


def record(library: PaperStore) -> list[dict[str, object]]:
    """The papers of the library and the files that could not be read, in the format of ingested.json."""
    files: dict[str, list[str]] = {}
    for file in library.files():
        files.setdefault(file.sha256, []).append(file.path)
    added = library.added()
    papers: list[dict[str, object]] = [
        {
            "file": paper.file,
            "sha256": paper.id,
            "title": paper.title,
            "authors": list(paper.authors),
            "year": paper.year,
            "venue": paper.metadata.venue.value,
            "doi": paper.metadata.doi.value,
            "arxiv": paper.arxiv,
            "pages": paper.page_count,
            "chunks": paper.chunks,
            "added": added[paper.id],
            "paths": files[paper.id],
            "problems": list(paper.problems),
        }
        for paper in library.papers()
    ]
    failed: list[dict[str, object]] = [
        {"file": f.file.name, "sha256": f.file.sha256, "failed": f.happened, "remedy": f.remedy, "paths": [f.file.path]}
        for f in library.failures()
    ]
    return papers + failed


def read_paper(file: SourceFile, reading: Reading, max_file_mb: int, seconds: float = math.inf) -> NewPaper:
    """Read, clean and split one file. Runs in a worker process. Raises PaperError.

    The file is read once. seconds: the work of the layout model and OCR, as in reader.read_content.
    """
    return paper_of(file, checked_content(file, max_file_mb), reading, seconds)


def checked_content(file: SourceFile, max_file_mb: int) -> bytes:
    """The bytes of a file, which have the hash in `file`.

    Raises PaperLimit, so that it is tried again, also for a file that was replaced since.
    """
    content = reader.read_file(Path(file.path), max_file_mb)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise PaperLimit(*reader.CHANGED)
    return content


def paper_of(file: SourceFile, content: bytes, reading: Reading, seconds: float = math.inf) -> NewPaper:
    """Clean and split the content of a file. Runs in a worker process. Raises PaperError. seconds: see read_paper."""
    name = Path(file.path).name
    parsed = reader.read_content(content, name, layout=reading.parser == "layout", ocr=reading.ocr, seconds=seconds)
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


def _make_embedder(library: PaperStore, get_embedder: Callable[[], Embedder], reading: Reading) -> Embedder:
    embedder = get_embedder()
    if not library.fingerprint():
        library.set_fingerprint(fingerprint(embedder, reading))
    return embedder


def _may_read_better(library: PaperStore, file: SourceFile) -> bool:
    """Whether a paper has pages that may be read now. A paper of several files is not read again for one of them."""
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
) -> Iterator[Read]:
    read = partial(read_paper, reading=reading, max_file_mb=limits.max_file_mb, seconds=limits.model_s)
    return workers.run_guarded(
        read,
        files,
        jobs=limits.jobs,
        timeout_s=limits.patience_s,
        cpu_s=limits.timeout_s,
        memory_mb=limits.memory_mb,
        extra_futures=extra_futures,
    )


def _link(library: PaperStore, files: Sequence[SourceFile], now: dict[str, str]) -> Iterator[Outcome]:
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


def _record_failure(library: PaperStore, file: SourceFile, error: PaperError) -> Outcome:
    # A file over a limit may succeed next time: recorded without its hash, it counts as new then.
    recorded = replace(file, sha256="") if isinstance(error, PaperLimit) else file
    library.record_failure(Failure(recorded, error.happened, error.remedy))
    return Outcome(file, "failed", notes=(error.happened, error.remedy))
